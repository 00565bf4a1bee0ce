"""Examples: a call of each operator that variables of one dtype and shape (4, 6) do not fit.

A row has the operator's name, its inputs, and parameters other than the defaults. Inputs are dtype
and shape; T is the dtype at hand, and ``state`` a state variable of it. The reference pages are
made from these calls.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from passkit.dtype import DType, dtype_of
from passkit.node import Entry, state, var
from passkit.op import FExample
from passkit.registry import Setting, calling_place, put


def example(name: str, inputs: str, **params: Any) -> None:
    """Set FExample; the operator itself need not be registered yet."""
    made = Setting(_maker(inputs, params), 10, calling_place(), f"op {name}")
    put(FExample.key, name, made)


def _maker(inputs: str, params: dict[str, Any]) -> Callable[[DType], Any]:
    def make(dtype: DType) -> tuple[list[Entry], dict[str, Any]]:
        more = {k: dtype.name if v == "T" else v for k, v in params.items()}
        return [_input(f"x{k}", text, dtype) for k, text in enumerate(inputs.split())], more

    return make


def _input(name: str, text: str, dtype: DType) -> Entry:
    """A variable of what ``text`` says, such as ``T[4,6]``."""
    kind, _, shape = text.rstrip("]").partition("[")
    extents = tuple(int(n) for n in shape.split(",") if n)
    if kind == "state":
        return state(name, (extents, dtype))
    return var(name, extents, dtype if kind == "T" else dtype_of(kind))


example("add_along_axis", "T[5,4] int64[5,3] T[5,3]")
example("alibi_bias", "T[3,4,4]")
example("arange", "", start=40, dtype="T")
example("argwhere", "T[3,4]", size=9)
example("assign", "state[4,6] T[4,6]")
example("avg_pool1d", "T[2,8,3]", window=2)
example("avg_pool2d", "T[2,8,8,3]", window=2)
example("avg_pool3d", "T[2,4,4,4,3]", window=2)
example("batch_norm", "T[4,6] T[6] T[6] T[6] T[6]")
example("batch_norm_training", "T[4,6] T[6] T[6] T[6] T[6]")
example("batch_to_space", "T[6,2,3,2]", block_shape=(2, 3))
example("broadcast_to", "T[6]", shape=(4, 6))
example("conv1d", "T[2,7,3] T[3,3,4]")
example("conv1d_transpose", "T[2,7,3] T[3,4,3]")
example("conv2d", "T[2,7,8,3] T[3,3,3,4]")
example("conv2d_transpose", "T[2,7,8,3] T[3,3,4,3]")
example("conv3d", "T[2,5,6,7,3] T[3,3,3,3,4]")
example("conv3d_transpose", "T[2,5,6,7,3] T[3,3,3,4,3]")
example("convolution", "T[2,7,8,3] T[3,3,3,4]")
example("convolution_backprop_filter", "T[2,7,8,3] T[2,5,6,4]", window=(3, 3))
example("convolution_backprop_input", "T[2,7,8,4] T[3,3,3,4]", size=(7, 8))
example("crop", "T[2,4,6,3]", offsets=(1, 2), size=(2, 3))
example("depth_to_space", "T[2,3,2,12]", block_size=2)
example("depthwise_conv2d", "T[2,7,8,3] T[3,3,3,2]")
example("dilate", "T[2,4,3]", factors=(1, 2, 1), padding=((0, 0), (1, 1), (0, 0)))
example("div_by_size", "T[4,6]", size=3)
example("dropout", "T[5,7] int64[]")
example("extract_patches", "T[2,8,8,3]", window=(2, 2))
example("eye", "", n_rows=20, dtype="T")
example("full", "", shape=(2, 30), fill_value=1, dtype="T")
example("full_like", "T[2,30]", fill_value=1)
example("fused_batch_norm", "T[4,6] T[6] T[6] T[6] T[6]")
example("gather", "T[5] int64[7]")
example("gather_nd", "T[5,3] int64[4,2]")
example("global_avg_pool", "T[2,7,8,3]")
example("global_max_pool", "T[2,7,8,3]")
example("group_norm", "T[2,3,5,6] T[6] T[6]", groups=3)
example("gru_cell", "T[3,4] T[3,5] T[4,15] T[5,15] T[2,15]")
example("gumbel_softmax", "T[5,7] int64[]")
example("index_add", "T[5,3] int64[7] T[7,3]")
example("index_max", "T[5,3] int64[7] T[7,3]")
example("index_min", "T[5,3] int64[7] T[7,3]")
example("index_sub", "T[5,3] int64[7] T[7,3]")
example("index_update", "T[5,3] int64[7] T[7,3]")
example("instance_norm", "T[2,3,5,6] T[6] T[6]")
example("invert_permutation", "int64[4]")
example("layer_norm", "T[4,9] T[9] T[9]", axis=-1)
example("ldexp", "T[5,7] int64[7]")
example("linear", "T[4,6] T[5,6] T[5]")
example("linspace", "", start=0.0, stop=1.0, dtype="T")
example("lstm_block_cell", "T[3,4] T[3,5] T[3,5] T[9,20] T[20]")
example("lstm_cell", "T[3,4] T[3,5] T[3,5] T[4,20] T[5,20] T[20]")
example("masked_softmax", "T[5,7] bool[5,7]", axis=-1)
example("matmul", "T[4,6] T[6,5]")
example("max_pool1d", "T[2,8,3]", window=2)
example("max_pool2d", "T[2,8,8,3]", window=2)
example("max_pool3d", "T[2,4,4,4,3]", window=2)
example("moveaxis", "T[2,3,4]", source=0, destination=-1)
example("nextafter", "T[4,6] T[4,6]")
example("nll_loss", "int32[5] T[5,7]")
example("one_hot", "int64[4,3]", depth=20, dtype="T")
example("ones", "", shape=(2, 3), dtype="T")
example("pad", "T[3,40]", pad_width=((1, 2), (0, 3)))
example("pad_with", "T[5,6]", pad_width=((-1, 2), (2, -3)))
example("pick_label", "T[5,7] int32[5]")
example("polyval", "T[4] T[4,6]")
example("put_along_axis", "T[5,4] int64[5,3] T[5,3]")
example("random_bernoulli", "T[5,7] int64[]")
example("random_bits", "int64[]", shape=(4, 6), dtype="T")
example("random_categorical", "T[4,6] int64[]")
example("random_exponential", "int64[]", shape=(4, 6), dtype="T")
example("random_gumbel", "int64[]", shape=(4, 6), dtype="T")
example("random_integers", "int64[]", shape=(4, 6), high=10, dtype="T")
example("random_laplace", "int64[]", shape=(4, 6), dtype="T")
example("random_logistic", "int64[]", shape=(4, 6), dtype="T")
example("random_normal", "int64[]", shape=(4, 6), dtype="T")
example("random_permutation", "int64[]", num=6)
example("random_truncated_normal", "int64[]", shape=(4, 6), dtype="T")
example("random_uniform", "int64[]", shape=(4, 6), dtype="T")
example("random_words", "int64[]", shape=(3, 5))
example("repeat", "T[2,3]", repeats=2)
example("reshape", "T[4,6]", shape=(3, 8))
example("resize_bilinear", "T[2,3,4,5]", size=(6, 7))
example("resize_nearest", "T[2,3,4,5]", size=(6, 7))
example("reverse_sequence", "T[4,7] int64[4]")
example("rms_norm", "T[4,9] T[9]")
example("roll", "T[5,33]", shift=2, axis=1)
example("scatter_nd", "int64[6,1] T[6,3]", shape=(5, 3))
example("segment_max", "T[8,3] int64[8]", num_segments=4)
example("segment_mean", "T[8,3] int64[8]", num_segments=4)
example("segment_min", "T[8,3] int64[8]", num_segments=4)
example("segment_sum", "T[8,3] int64[8]", num_segments=4)
example("separable_conv2d", "T[2,7,8,3] T[3,3,3,2] T[1,1,6,4]")
example("sequence_mask", "T[4]", maxlen=7)
example("shift", "T[3,20]", shift=3)
example("shuffle", "T[4,6] int64[]")
example("simple_rnn_cell", "T[3,4] T[3,5] T[4,5] T[5,5] T[5]")
example("slice", "T[4,6]", begin=(1, 2), size=(2, 3))
example("slice_assign", "T[5,40] T[2,30]", begin=(1, 3), size=(2, 30))
example("space_to_batch", "T[1,4,6,2]", block_shape=(2, 3))
example("space_to_depth", "T[2,4,6,5]", block_size=2)
example("sparse_softmax_cross_entropy_with_logits", "int32[5] T[5,7]")
example("split_key", "int64[]")
example("strided_slice", "T[5,40]", begin=(1, 0), end=(4, 30), strides=(2, 3), end_mask=2)
example("swapaxes", "T[2,3,4]", axis1=0, axis2=-1)
example("take", "T[5,3] int64[2,4]")
example("take_along_axis", "T[5,3] int64[5,3]")
example("tensor_scatter_nd_add", "T[5,3] int64[6,2] T[6]")
example("tensor_scatter_nd_max", "T[5,3] int64[6,2] T[6]")
example("tensor_scatter_nd_min", "T[5,3] int64[6,2] T[6]")
example("tensor_scatter_nd_sub", "T[5,3] int64[6,2] T[6]")
example("tensor_scatter_nd_update", "T[5,3] int64[6,2] T[6]")
example("tile", "T[2,3]", repetitions=(2, 2))
example("unique", "T[3,4]", size=12)
example("unslice", "T[2,3]", shape=(4, 6), begin=(1, 2))
example("where", "bool[5,7] T[5,7] T[5,7]")
example("windows", "T[2,8,8,3]", window=(2, 2))
example("windows_back", "T[2,7,7,2,2,3]", size=(8, 8))
example("windows_taken", "T[2,7,7,2,2,3]")
example("zeros", "", shape=(2, 3), dtype="T")
