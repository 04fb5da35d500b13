"""What is known of torch and its neighbours, as data keyed by name.

What waits was measured on an H200 with torch 2.11: a spinning kernel is queued, the call is
made, and the host's clock tells whether it came back before the kernel was done. A name that
stands nowhere here behaves like most of torch: it queues work and returns a tensor on the
device of its arguments.
"""

from __future__ import annotations

HOST_METHODS = frozenset(
    """size dim ndimension numel nelement element_size stride is_floating_point is_complex
    is_contiguous is_pinned is_signed is_sparse get_device data_ptr storage untyped_storage
    storage_offset retain_grad is_shared has_names is_same_size __len__ __hash__
    record_stream is_inference nbytes sparse_dim dense_dim is_set_to""".split()
)
"""Tensor methods that answer from what the host knows."""

HOST_ATTRIBUTES = frozenset(
    """shape dtype ndim requires_grad is_cuda is_cpu layout is_leaf grad_fn names itemsize nbytes
    is_sparse is_quantized is_meta output_nr name _version""".split()
)

TENSOR_ATTRIBUTES = frozenset("data grad T mT H mH real imag values indices".split())

VIEWS = frozenset(
    """view reshape permute transpose t squeeze unsqueeze expand expand_as detach detach_ flatten
    unflatten chunk split tensor_split unbind narrow select movedim moveaxis swapaxes swapdims
    view_as reshape_as requires_grad_ contiguous diagonal as_strided T alias ravel to_device
    unfold squeeze_ unsqueeze_ broadcast_to vsplit hsplit dsplit atleast_1d atleast_2d
    atleast_3d is_tensor numel""".split()
)
"""What launches no kernel."""

KEEPS_KIND = VIEWS | frozenset(
    """clone roll flip cat stack concat hstack vstack gather index_select clamp clamp_ abs neg max
    min amax amin cumsum sum prod masked_fill masked_fill_ repeat tile sort topk where
    repeat_interleave relu relu_ add_ sub_ mul_ copy_ fill_ zero_ detach triu tril take
    lerp pow square cummax cummin aminmax maximum minimum index_add index_add_ scatter
    scatter_ scatter_add scatter_add_ index_copy index_copy_ index_put index_put_ pin_memory
    masked_select add sub mul nan_to_num diff rot90 fliplr flipud""".split()
)

MAKES_BOOL = frozenset(
    """eq ne lt le gt ge isnan isinf isfinite isin any all logical_and logical_or logical_not
    logical_xor bool greater less greater_equal less_equal not_equal signbit isclose isposinf
    isneginf""".split()
)
MAKES_INT = frozenset(
    """argmax argmin argsort long int short byte count_nonzero nonzero argwhere bincount randint
    randperm searchsorted bucketize multinomial unique_consecutive one_hot nonzero_static""".split()
)
MAKES_FLOAT = frozenset(
    """float half double bfloat16 mean std var softmax log_softmax sigmoid tanh exp log norm rand
    randn softplus gelu silu logsigmoid sqrt rsqrt cross_entropy mse_loss l1_loss nll_loss
    smooth_l1_loss huber_loss binary_cross_entropy binary_cross_entropy_with_logits kl_div
    cosine_similarity logsumexp erf sin cos quantile normalize layer_norm dropout linspace
    rand_like randn_like dist cdist vector_norm matrix_norm nanmean log1p expm1 median_float
    div true_divide ctc_loss triplet_margin_loss margin_ranking_loss poisson_nll_loss
    gaussian_nll_loss cosine_embedding_loss multi_margin_loss soft_margin_loss normal
    normal_ uniform_ exponential_ bernoulli std_mean var_mean""".split()
)

TENSOR_METHODS = frozenset(
    """detach float long double softmax log_softmax sigmoid relu unsqueeze topk gather permute
    logsumexp argsort eq ne lt gt le ge masked_fill scatter index_select chunk unbind
    contiguous nonzero expand flip norm log exp sqrt type_as backward retain_grad clone
    add_ mul_ copy_ zero_ fill_ normal_ uniform_ isnan isfinite isinf multinomial""".split()
)
"""Methods by whose name one knows a tensor."""
ARRAY_METHODS = frozenset(
    """sum mean max min std var argmax argmin any all abs pow cumsum view reshape flatten
    squeeze transpose round prod clamp median split""".split()
)
"""Methods that arrays have too."""

LOSSES = frozenset(n for n in MAKES_FLOAT if n.endswith(("_loss", "entropy", "_logits", "kl_div")))
REDUCES = frozenset(
    """sum mean max min amax amin prod any all argmax argmin norm std var median nansum nanmean
    logsumexp count_nonzero mode quantile""".split()
)
"""To 0 dimensions, if no dimension is given."""

PAIRS = {
    "max": ("values", "indices"),
    "min": ("values", "indices"),
    "median": ("values", "indices"),
    "mode": ("values", "indices"),
    "kthvalue": ("values", "indices"),
    "sort": ("values", "indices"),
    "topk": ("values", "indices"),
    "cummax": ("values", "indices"),
    "cummin": ("values", "indices"),
    "aminmax": ("min", "max"),
    "std_mean": ("std", "mean"),
    "var_mean": ("var", "mean"),
    "slogdet": ("sign", "logabsdet"),
    "qr": ("Q", "R"),
    "svd": ("U", "S", "Vh"),
    "eigh": ("eigenvalues", "eigenvectors"),
    "eig": ("eigenvalues", "eigenvectors"),
    "cholesky_ex": ("L", "info"),
    "inv_ex": ("inverse", "info"),
    "solve_ex": ("result", "info"),
    "lstsq": ("solution", "residuals", "rank", "singular_values"),
    "lu_factor": ("LU", "pivots"),
    "histogram": ("hist", "bin_edges"),
}
"""Functions that return a named tuple (max and its like: only along a dimension)."""
ALWAYS_PAIRS = frozenset(PAIRS) - {"max", "min", "median"}
LISTS = frozenset("chunk split tensor_split unbind meshgrid vsplit hsplit dsplit".split())

WAITS: dict[str, tuple[str, str]] = {
    "nonzero": ("nonzero", "the number of hits decides the shape of the result"),
    "argwhere": ("nonzero", "the number of hits decides the shape of the result"),
    "masked_select": ("mask", "the number of hits decides the shape of the result"),
    "unique": ("unique", "the number of distinct values decides the shape of the result"),
    "unique_consecutive": ("unique", "the number of distinct values decides the shape"),
    "bincount": ("unique", "the largest value decides the shape of the result"),
    "combinations": ("unique", "it selects with a mask inside"),
    "cov": ("check", "it checks its weights on the host"),
    "corrcoef": ("check", "it checks its weights on the host"),
    "equal": ("compare", "the answer is a Python bool"),
    "allclose": ("compare", "the answer is a Python bool"),
    "is_nonzero": ("compare", "the answer is a Python bool"),
    "to_sparse": ("nonzero", "the number of non-zero elements decides the shape of the result"),
    "to_sparse_csr": ("nonzero", "the number of non-zero elements decides the shape"),
    "to_sparse_coo": ("nonzero", "the number of non-zero elements decides the shape"),
    "coalesce": ("unique", "the number of distinct indices decides the shape of the result"),
    "gaussian_nll_loss": ("check", "it checks that no variance is negative"),
    "assert_close": ("compare", "the comparison ends in a Python bool"),
    "ctc_loss": ("check", "it reads the lengths on the host"),
    "inverse": ("linalg", "it checks on the host whether the matrix could be inverted"),
    "cholesky": ("linalg", "it checks on the host whether the factorization succeeded"),
    "svd": ("linalg", "it checks on the host whether the factorization succeeded"),
    "pca_lowrank": ("linalg", "it checks on the host whether the factorization succeeded"),
    "svd_lowrank": ("linalg", "it checks on the host whether the factorization succeeded"),
    "nuclear_norm": ("linalg", "it checks on the host whether the factorization succeeded"),
    "pinverse": ("linalg", "it checks on the host whether the factorization succeeded"),
    "__float__": ("float", "the answer is a Python number"),
    "__int__": ("float", "the answer is a Python number"),
    "__index__": ("float", "the answer is a Python number"),
    "__bool__": ("float", "the answer is a Python bool"),
}
"""Functions and methods that wait whenever a tensor of theirs is on the GPU."""

NEEDS_SIZES = frozenset(
    """view reshape expand repeat tile split split_with_sizes narrow roll chunk topk unfold pad
    interpolate unflatten adaptive_avg_pool1d adaptive_avg_pool2d""".split()
)
"""Functions whose other arguments are sizes: numbers on the host."""

COUNTS_IN_BACKWARD = frozenset("prod cumprod ctc_loss".split())
"""Functions whose gradient is computed with a count that is read on the host."""

LINALG_WAITS = frozenset(
    """inv solve lstsq svd svdvals eigh eigvalsh eig eigvals pinv matrix_exp cond tensorinv
    tensorsolve cholesky lu_factor ldl_factor ldl_factor_ex matrix_rank""".split()
)
LINALG_REASON = "it checks on the host whether it succeeded"

CREATES = frozenset(
    """zeros ones empty full rand randn randint arange linspace logspace eye randperm
    tril_indices triu_indices hann_window hamming_window blackman_window empty_strided range
    complex""".split()
)
CREATES_LIKE = frozenset(
    "zeros_like ones_like empty_like full_like rand_like randn_like randint_like".split()
)
NEW = frozenset("new_zeros new_ones new_empty new_full".split())

GPU_TENSOR_TYPES = frozenset(
    f"torch.cuda.{kind}Tensor"
    for kind in ("Float", "Double", "Half", "BFloat16", "Long", "Int", "Short", "Byte", "Bool")
)
CPU_TENSOR_TYPES = frozenset(t.replace("torch.cuda.", "torch.") for t in GPU_TENSOR_TYPES) | {
    "torch.Tensor"
}

CLOCKS = frozenset(
    """time.time time.perf_counter time.monotonic time.process_time time.time_ns
    time.perf_counter_ns time.monotonic_ns timeit.default_timer datetime.datetime.now
    datetime.datetime.utcnow""".split()
)

BREAKS_GRAPH = frozenset(
    """item tolist float condition compare iterate print format log nonzero mask unique one-hot
    repeat index""".split()
)
"""Kinds of wait that torch.compile cannot put into a graph, as `torch._dynamo.explain` says."""

BROADCASTS = frozenset(
    """Normal LogNormal Laplace Uniform Cauchy Gumbel Beta Gamma Weibull Pareto VonMises Kumaraswamy
    FisherSnedecor""".split()
)
"""Distributions of several parameters: a number among tensors is copied to the GPU."""
_MAKES_ANOTHER = "the distribution that it is made of checks its own parameters on the host"
_COPIES_NUMBER = "it copies a number of its own to the GPU"
_FACTORIZES = "it checks on the host whether the factorization succeeded"
MAKING_WAITS = {
    "OneHotCategorical": _MAKES_ANOTHER,
    "OneHotCategoricalStraightThrough": _MAKES_ANOTHER,
    "Multinomial": _MAKES_ANOTHER,
    "RelaxedBernoulli": _MAKES_ANOTHER,
    "StudentT": _COPIES_NUMBER,
    "HalfNormal": _COPIES_NUMBER,
    "HalfCauchy": _COPIES_NUMBER,
    "Chi2": _COPIES_NUMBER,
    "Binomial": _COPIES_NUMBER,
    "NegativeBinomial": _COPIES_NUMBER,
    "MultivariateNormal": _FACTORIZES,
    "LowRankMultivariateNormal": _FACTORIZES,
}
"""Distributions that wait while they are made even without validation."""
_CHECKS_SCALE = "torch.normal checks its deviation on the host"
SAMPLE_WAITS = {
    "Normal": _CHECKS_SCALE,
    "LogNormal": _CHECKS_SCALE,
    "HalfNormal": _CHECKS_SCALE,
    "VonMises": "it draws until all of the proposals are accepted",
}
"""Distributions whose `sample` waits even without validation."""
LOG_PROB_WAITS = frozenset(("OneHotCategorical", "RelaxedBernoulli"))
"""Distributions whose `log_prob` waits even without validation."""
ENTROPY_WAITS = frozenset(("Multinomial", "Binomial"))

OPTIMIZERS_WAIT = {
    "LBFGS": "LBFGS looks at the loss and the gradient on the host",
    "ASGD": "ASGD copies its step sizes to the GPU",
    "Adafactor": "Adafactor reads the size of each parameter's values on the host",
}
"""Optimizers whose `step` waits; all others of torch do not."""

TRACKERS = frozenset(
    """wandb.log mlflow.log_metric mlflow.log_metrics neptune.log_metric swanlab.log
    trackio.log""".split()
)
WRITER_METHODS = frozenset(
    """add_scalar add_scalars add_histogram add_image add_images add_figure add_text add_embedding
    add_video add_tensor""".split()
)
PROGRESS_METHODS = frozenset("set_postfix set_postfix_str set_description write".split())
LOG_LEVELS = {"warning": True, "error": True, "critical": True, "exception": True, "info": False}
"""Whether a message of that level is shown by default."""

CHANGES_NDIM = frozenset(
    """Embedding EmbeddingBag Flatten Unflatten Bilinear CosineSimilarity PairwiseDistance
    AdaptiveLogSoftmaxWithLoss""".split()
)
"""Modules of torch whose output has not as many dimensions as their input."""

STEP_METHODS = frozenset(
    """training_step validation_step test_step predict_step compute_loss run_step train_step
    eval_step prediction_step""".split()
)
"""Methods that a framework calls once a step."""

STEP_HOOKS = frozenset(
    """on_train_batch_start on_train_batch_end on_validation_batch_end on_test_batch_end
    on_before_backward on_after_backward on_before_optimizer_step on_before_zero_grad
    on_step_begin on_step_end on_substep_end on_pre_optimizer_step on_optimizer_step
    on_prediction_step configure_gradient_clipping optimizer_step""".split()
)
"""Methods of a framework's class that it calls once a step around the step itself."""
