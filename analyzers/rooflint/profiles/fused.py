"""What Inductor says of the kernels that it made: the operators that one fuses, by its name."""

from __future__ import annotations

import re

_FUSED = re.compile(r"triton_[a-z]+_fused_(?P<operators>\w+?)(?:_\d+)?")


def fused_operators(kernel: str) -> str | None:
    """`fused: add, mul` for `triton_poi_fused_add_mul_0`; `None`: no kernel of Inductor's.

    The name joins the operators with the character that they hold too, and leaves out some of
    many: a best effort.
    """
    found = _FUSED.fullmatch(kernel)
    if found is None:
        return None
    operators = _OPERATOR.findall(found["operators"])
    return "fused: " + ", ".join(operators) if operators else None


# Operators of torch whose names hold an underscore and that Inductor often fuses.
_LONG = """
    _log_softmax _log_softmax_backward_data _native_batch_norm_legit
    _native_batch_norm_legit_functional
    _scaled_dot_product_attention _softmax _softmax_backward_data _to_copy _unsafe_index
    _unsafe_index_put _unsafe_view avg_pool2d bitwise_and bitwise_not bitwise_or
    clamp_max clamp_min constant_pad_nd convolution_backward cross_entropy embedding_dense_backward
    empty_like full_like gelu_backward hardtanh_backward index_add index_put index_select
    layer_norm log_softmax logical_and logical_not logical_or masked_fill max_pool2d_with_indices
    max_pool2d_with_indices_backward mse_loss native_batch_norm native_batch_norm_backward
    native_dropout native_dropout_backward native_group_norm native_layer_norm
    native_layer_norm_backward new_full new_ones new_zeros nll_loss nll_loss_backward
    nll_loss_forward ones_like pow_backward relu_backward scalar_tensor scatter_add select_backward
    select_scatter sigmoid_backward silu_backward slice_backward slice_scatter softmax_backward
    split_with_sizes tanh_backward threshold_backward upsample_bilinear2d upsample_nearest2d
    zeros_like
""".split()
_OPERATOR = re.compile("|".join([*sorted(_LONG, key=len, reverse=True), "[A-Za-z0-9]+"]))
