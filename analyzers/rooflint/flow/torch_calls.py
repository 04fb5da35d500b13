"""What is known of torch and its neighbours.

What functions return comes from torch's schemas (`torch_returns`), what waits from measurements
(`torch_waits`); here stand the questions asked of these, and by hand what neither can tell. A
function that stands nowhere behaves like most of torch: it queues work and returns a tensor on
the device of its arguments.
"""

from __future__ import annotations

from rooflint.flow.torch_returns import (
    HOST,
    KINDS,
    NUMBERS,
    PROMOTES,
    SAME_DIMENSIONS,
    VIEWS,
)
from rooflint.flow.torch_waits import BACKWARD_WAITS, WAITS
from rooflint.flow.values import Kind

LINALG_REASON = "it checks on the host whether it succeeded"

_VIEWS_TOO = frozenset(
    """requires_grad_ retain_grad atleast_1d atleast_2d atleast_3d broadcast_tensors alias view_as
    reshape_as""".split()
)
"""Views that the schemas do not tell, because Python code makes them."""

_HOST_TOO = frozenset("__len__ __hash__ has_names is_tensor".split())
"""Answers of the host that have no schema."""

_SAME_DIMENSIONS_TOO = frozenset("dropout normalize repeat_interleave roll softmax".split())
"""What keeps the number of dimensions and needs more arguments than were tried."""


def is_view(path: str) -> bool:
    """Whether a function launches no kernel."""
    name = path.rpartition(".")[2]
    return path in VIEWS or path.rstrip("_") in VIEWS or name in _VIEWS_TOO


def waits_in_backward(path: str) -> bool:
    """Whether the gradient is computed with something that is read on the host."""
    return path.replace(".Tensor", "") in BACKWARD_WAITS


def is_on_host(path: str) -> bool:
    """Whether the host knows the answer without a look at the values."""
    if path in HOST:
        return path not in WAITS and path.replace(".Tensor", "") not in WAITS
    return path.rpartition(".")[2] in _HOST_TOO


def kind_after(path: str, kind: Kind | None) -> Kind | None:
    """The kind of number in the result, from that in the first argument."""
    letters = _LETTERS.get(path)
    if letters is None:
        # In place, or unknown: floats mostly stay floats.
        return kind if path.endswith("_") or kind == "float" else None
    if kind is not None:
        return _KIND_OF.get(letters["fib".index(kind[0])])
    possible = set(letters) - {"-"}
    return _KIND_OF[letters[0]] if len(possible) == 1 and letters[0] != "-" else None


def promotes(path: str) -> bool:
    """Whether floats among the arguments make the result one of floats."""
    return path in PROMOTES or path.rstrip("_") in PROMOTES


def keeps_ndim(path: str) -> bool:
    """Whether the result has as many dimensions as the first argument."""
    return (
        path in SAME_DIMENSIONS
        or path.endswith("_")
        or path.rpartition(".")[2] in _SAME_DIMENSIONS_TOO
    )


def position_of_dim(path: str) -> int:
    """Where a function's `dim` stands among its positional arguments."""
    names = NUMBERS.get(path, "").replace("#*", "#").split()
    if "#dim" in names:
        return names.index("#dim")
    return 0 if path.startswith("torch.Tensor.") else 1


_KIND_OF: dict[str, Kind] = {"f": "float", "i": "int", "b": "bool"}
_LETTERS = {path: letters for letters, paths in KINDS.items() for path in paths.split()}

NEW_TENSORS = frozenset(path.rpartition(".")[2] for path in _LETTERS if not is_view(path))
"""Names of functions and methods that give a tensor of its own."""

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

WHY: dict[str, tuple[str, str]] = {
    "nonzero": ("nonzero", "the number of hits decides the shape of the result"),
    "argwhere": ("nonzero", "the number of hits decides the shape of the result"),
    "masked_select": ("mask", "the number of hits decides the shape of the result"),
    "unique": ("unique", "the number of distinct values decides the shape of the result"),
    "unique_consecutive": ("unique", "the number of distinct values decides the shape"),
    "bincount": ("unique", "the largest value decides the shape of the result"),
    "combinations": ("unique", "it selects with a mask inside"),
    "cov": ("check", "it checks its weights on the host"),
    "corrcoef": ("check", "it checks its weights on the host"),
    "allclose": ("compare", "the answer is a Python bool"),
    "to_sparse": ("nonzero", "the number of non-zero elements decides the shape of the result"),
    "gaussian_nll_loss": ("check", "it checks that no variance is negative"),
    "assert_close": ("compare", "the comparison ends in a Python bool"),
    "ctc_loss": ("check", "it reads the lengths on the host"),
    "istft": ("check", "it checks on the host that the window overlaps itself everywhere"),
    "unravel_index": ("check", "it checks on the host that no index is too large"),
    "matrix_exp": ("linalg", "it looks at the norms on the host to choose how to compute"),
    "inverse": ("linalg", "it checks on the host whether the matrix could be inverted"),
    "cholesky": ("linalg", LINALG_REASON),
    "lu": ("linalg", LINALG_REASON),
    "svd": ("linalg", LINALG_REASON),
    "pinverse": ("linalg", LINALG_REASON),
}
"""What a measured wait is called and why it is one, where torch's own tags do not say."""

WHY_UNMEASURED: dict[str, tuple[str, str]] = {
    "to_sparse_csr": ("nonzero", "the number of non-zero elements decides the shape"),
    "to_sparse_csc": ("nonzero", "the number of non-zero elements decides the shape"),
    "to_sparse_bsr": ("nonzero", "the number of non-zero blocks decides the shape"),
    "to_sparse_bsc": ("nonzero", "the number of non-zero blocks decides the shape"),
    "lobpcg": ("linalg", "it looks at its residuals on the host"),
    "to_sparse_coo": ("nonzero", "the number of non-zero elements decides the shape of the result"),
    "coalesce": ("unique", "the number of distinct indices decides the shape of the result"),
    "pca_lowrank": ("linalg", LINALG_REASON),
    "nuclear_norm": ("linalg", LINALG_REASON),
    "svd_lowrank": ("linalg", LINALG_REASON),
    "__float__": ("float", "the answer is a Python number"),
    "__int__": ("float", "the answer is a Python number"),
    "__index__": ("float", "the answer is a Python number"),
    "__bool__": ("float", "the answer is a Python bool"),
    "__format__": ("format", "the answer is text"),
}
"""Waits that no measured call of the plain form shows: of sparse tensors, by Python's protocols."""

SIZED = frozenset("pad interpolate adaptive_avg_pool1d adaptive_avg_pool2d unflatten".split())
"""Functions whose other arguments are sizes, as no schema says."""

CREATES = frozenset(
    """zeros ones empty full rand randn randint arange linspace logspace eye randperm
    tril_indices triu_indices hann_window hamming_window blackman_window empty_strided range
    """.split()
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
    """item tolist float condition compare print format log nonzero mask unique one-hot repeat
    index""".split()
)
"""Kinds of wait that torch.compile cannot put into a graph, as `torch._dynamo.explain` says."""

BROADCASTS = frozenset(
    """Normal LogNormal Laplace Uniform Cauchy Gumbel Beta Gamma Weibull Pareto VonMises Kumaraswamy
    FisherSnedecor""".split()
)
"""Distributions of several parameters: a number among tensors is copied to the GPU."""
_MAKES_ANOTHER = "the distribution that it is made of checks its own parameters on the host"
_COPIES_NUMBER = "it copies a number of its own to the GPU"
MAKING_WAITS = {
    "OneHotCategorical": _MAKES_ANOTHER,
    "OneHotCategoricalStraightThrough": _MAKES_ANOTHER,
    "Multinomial": _MAKES_ANOTHER,
    "RelaxedBernoulli": _MAKES_ANOTHER,
    "RelaxedOneHotCategorical": _MAKES_ANOTHER,
    "FisherSnedecor": _MAKES_ANOTHER,
    "Wishart": _MAKES_ANOTHER,
    "ContinuousBernoulli": "it checks its probabilities on the host all the same",
    "StudentT": _COPIES_NUMBER,
    "HalfNormal": _COPIES_NUMBER,
    "HalfCauchy": _COPIES_NUMBER,
    "Chi2": _COPIES_NUMBER,
    "Binomial": _COPIES_NUMBER,
    "NegativeBinomial": _COPIES_NUMBER,
    "MultivariateNormal": LINALG_REASON,
    "LowRankMultivariateNormal": LINALG_REASON,
}
"""Distributions that wait while they are made even without validation."""
_CHECKS_SCALE = "torch.normal checks its deviation on the host"
SAMPLE_WAITS = {
    "Normal": _CHECKS_SCALE,
    "LogNormal": _CHECKS_SCALE,
    "HalfNormal": _CHECKS_SCALE,
    "LogisticNormal": _CHECKS_SCALE,
    "VonMises": "it draws until all of the proposals are accepted",
    "Wishart": "it draws again what cannot be inverted",
}
"""Distributions whose `sample` waits even without validation."""
RSAMPLE_WAITS = frozenset(("Wishart",))
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
    """wandb.log wandb.run.log mlflow.log_metric mlflow.log_metrics neptune.log_metric swanlab.log
    trackio.log loguru.logger.debug loguru.logger.info loguru.logger.success loguru.logger.warning
    loguru.logger.error loguru.logger.critical rich.print""".split()
)
"""Functions that read what they are given at once."""
TRACKER_METHODS = frozenset("log_metric log_metrics log_scalar report_scalar add_scalar".split())
"""By whose name one knows a tracker; most of them read the value at once."""
WRITER_METHODS = frozenset(
    """add_scalar add_scalars add_histogram add_image add_images add_figure add_text add_embedding
    add_video add_tensor add_pr_curve add_hparams add_mesh""".split()
)
PROGRESS_METHODS = frozenset("set_postfix set_postfix_str set_description write".split())
LOG_LEVELS = {
    "debug": 10,
    "info": 20,
    "warning": 30,
    "warn": 30,
    "error": 40,
    "exception": 40,
    "critical": 50,
    "fatal": 50,
}
"""The level of a message by the method that writes it."""

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
