"""Example calls (FExample) of operators that do not take variables of one dtype and shape (4, 6).

The reference pages and `passkit ops` show these calls and their kernels.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from passkit.graph.node import Entry, state, var
from passkit.graph.op import FExample
from passkit.graph.registry import Setting, calling_place, register_value
from passkit.values.dtype import DType, dtype_of


def example(name: str, inputs: str, **params: Any) -> None:
    """Set FExample of the operator ``name``, which need not be registered yet.

    Args:
        name: Name of the operator.
        inputs: Dtype and shape of each input, such as "T[4,6] int64[7]"; T is the dtype that the
            example is asked for, and ``state`` a state variable of it.
        **params: Parameters of the call other than the defaults; "T" is that dtype.

    Raises:
        RegistryError: If another place has set FExample of that operator.
    """
    setting = Setting(_call_builder(inputs, params), 10, calling_place(), f"op {name}")
    register_value(FExample.key, name, setting)


def _call_builder(inputs: str, params: dict[str, Any]) -> Callable[[DType], Any]:
    """Return the function of a dtype that returns the inputs and parameters of an example call.

    Args:
        inputs: The inputs as text, separated by spaces, such as ``"T[4,6] int64[4]"``.
        params: The parameters; the value "T" stands for the name of the dtype.
    """

    def build(dtype: DType) -> tuple[list[Entry], dict[str, Any]]:
        """Return the inputs of the example call, variables x0, x1, …, and its parameters by name.

        ``dtype`` takes the place of "T" in both.

        Raises: DTypeError for an unknown dtype in the text, ShapeError for a shape with too many
        elements or axes.
        """
        variables = [_variable(f"x{k}", text, dtype) for k, text in enumerate(inputs.split())]
        return variables, {k: dtype.name if v == "T" else v for k, v in params.items()}

    return build


def _variable(name: str, text: str, dtype: DType) -> Entry:
    """Return a variable of the dtype and shape in ``text``, such as "T[4,6]".

    "T" is ``dtype``; "state" makes a state variable of it. Extents are ints of at least 0.

    Raises: DTypeError for an unknown dtype, ShapeError for too many elements or axes.
    """
    dtype_name, _, extents = text.rstrip("]").partition("[")
    shape = tuple(int(n) for n in extents.split(",") if n)
    if dtype_name == "state":
        return state(name, (shape, dtype))
    return var(name, shape, dtype if dtype_name == "T" else dtype_of(dtype_name))


example("add_along_axis", "T[5,4] int64[5,3] T[5,3]")
example("alibi_bias", "T[3,4,4]")
example("angle", "T[6]")
example("arange", "", start=40, dtype="T")
example("argwhere", "T[3,4]", size=9)
example("assign", "state[4,6] T[4,6]")
example("avg_pool1d", "T[2,8,3]", window=2)
example("avg_pool2d", "T[2,8,8,3]", window=2)
example("avg_pool3d", "T[2,4,4,4,3]", window=2)
example("batch_norm", "T[4,6] T[6] T[6] T[6] T[6]")
example("batch_norm_training", "T[4,6] T[6] T[6] T[6] T[6]")
example("batch_to_space", "T[6,2,3,2]", block_shape=(2, 3))
example("bilinear", "T[4,3] T[4,2] T[5,3,2]")
example("bitcast", "float32[4,6]", dtype="int32")
example("broadcast_to", "T[6]", shape=(4, 6))
example("cholesky", "T[2,4,4]")
example("complex", "T[2] T[2,1]")
example("conj", "T[6]")
example("conv1d", "T[2,7,3] T[3,3,4]")
example("conv1d_transpose", "T[2,7,3] T[3,4,3]")
example("conv2d", "T[2,7,8,3] T[3,3,3,4]")
example("conv2d_transpose", "T[2,7,8,3] T[3,3,4,3]")
example("conv3d", "T[2,5,6,7,3] T[3,3,3,3,4]")
example("conv3d_transpose", "T[2,5,6,7,3] T[3,3,3,4,3]")
example("convolution", "T[2,7,8,3] T[3,3,3,4]")
example("convolution_backprop_filter", "T[2,7,8,3] T[2,5,6,4]", window=(3, 3))
example("convolution_backprop_input", "T[3,3,3,4] T[2,5,6,4]", size=(7, 8))
example("crop", "T[2,4,6,3]", offsets=(1, 2), size=(2, 3))
example("cross", "T[4,3] T[4,3]")
example("cummax", "T[37]")
example("cummin", "T[37]")
example("cumprod", "T[37]")
example("cumsum", "T[37]")
example("cumulative_prod", "T[7]")
example("cumulative_sum", "T[7]")
example("depth_to_space", "T[2,3,2,12]", block_size=2)
example("depthwise_conv2d", "T[2,7,8,3] T[3,3,3,2]")
example("det", "T[2,4,4]")
example("dilate", "T[2,4,3]", factors=(1, 2, 1), padding=((0, 0), (1, 1), (0, 0)))
example("div_by_size", "T[4,6]", size=3)
example("dot", "T[3] T[3]")
example("dropout", "T[5,7] int64[]")
example("eigh", "T[2,4,4]")
example("eigvalsh", "T[2,4,4]")
example("einsum", "T[3,4] T[4,5]", equation="ij,jk")
example("expm", "T[2,3,3]")
example("extract_patches", "T[2,8,8,3]", window=(2, 2))
example("eye", "", n_rows=20, dtype="T")
example("first_positions", "int64[9]")
example("flatnonzero", "T[3,4]", size=9)
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
example("imag", "T[6]")
example("index_add", "T[5,3] int64[7] T[7,3]")
example("index_max", "T[5,3] int64[7] T[7,3]")
example("index_min", "T[5,3] int64[7] T[7,3]")
example("index_mul", "T[5,3] int64[7] T[7,3]")
example("index_sub", "T[5,3] int64[7] T[7,3]")
example("index_update", "T[5,3] int64[7] T[7,3]")
example("instance_norm", "T[2,3,5,6] T[6] T[6]")
example("inv", "T[2,4,4]")
example("invert_permutation", "int64[4]")
example("layer_norm", "T[4,9] T[9] T[9]", axis=-1)
example("ldexp", "T[5,7] int64[7]")
example("linear", "T[4,6] T[5,6] T[5]")
example("linspace", "", start=0.0, stop=1.0, dtype="T")
example("logcumsumexp", "T[37]")
example("lstm_block_cell", "T[3,4] T[3,5] T[3,5] T[9,20] T[20]")
example("lstm_cell", "T[3,4] T[3,5] T[3,5] T[4,20] T[5,20] T[20]")
example("masked_softmax", "T[5,7] bool[5,7]", axis=-1)
example("matmul", "T[4,6] T[6,5]")
example("matrix_power", "T[2,3,3]", n=3)
example("matrix_solve", "T[2,4,4] T[2,4,3]")
example("matrix_triangular_solve", "T[2,4,4] T[2,4,3]")
example("matmul_sum", "T[4,6] T[6,3] T[4,2] T[2,3]")
example("max_pool1d", "T[2,8,3]", window=2)
example("max_pool2d", "T[2,8,8,3]", window=2)
example("max_pool3d", "T[2,4,4,4,3]", window=2)
example("moveaxis", "T[2,3,4]", source=0, destination=-1)
example("multi_dot", "T[3,4] T[4,5] T[5,2] T[2,6]")
example("nextafter", "T[4,6] T[4,6]")
example("nll_loss", "int32[5] T[5,7]")
example("one_hot", "int64[4,3]", depth=20, dtype="T")
example("ones", "", shape=(2, 3), dtype="T")
example("pad", "T[3,40]", pad_width=((1, 2), (0, 3)))
example("pad_with", "T[5,6]", pad_width=((-1, 2), (2, -3)))
example("pick_label", "T[5,7] int32[5]")
example("polyval", "T[4] T[4,6]")
example("put_along_axis", "T[5,4] int64[5,3] T[5,3]")
example("qr", "T[6,4]")
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
example("real", "T[6]")
example("repeat", "T[2,3]", repeats=2)
example("reshape", "T[4,6]", shape=(3, 8))
example("resize_area", "T[2,3,4,5]", size=(6, 7))
example("resize_bicubic", "T[2,3,4,5]", size=(6, 7))
example("resize_bilinear", "T[2,3,4,5]", size=(6, 7))
example("resize_nearest", "T[2,3,4,5]", size=(6, 7))
example("reverse_sequence", "T[4,7] int64[4]")
example("rms_norm", "T[4,9] T[9]")
example("roll", "T[5,33]", shift=2, axis=1)
example("rotate", "T[5,33]", shift=2, axis=0)
example("rows_along_axis", "int64[5,3]", shape=(5, 4), updates=(5, 3))
example("rows_of_points", "int64[7,2]", shape=(5, 3))
example("scatter_nd", "int64[6,1] T[6,3]", shape=(5, 3))
example("scatter_rows", "T[2,3,5,4] int64[2,7] T[2,3,7,4]", kind="update")
example("segment_max", "T[8,3] int64[8]", num_segments=4)
example("segment_mean", "T[8,3] int64[8]", num_segments=4)
example("segment_min", "T[8,3] int64[8]", num_segments=4)
example("segment_prod", "T[8,3] int64[8]", num_segments=4)
example("segment_sqrt_n", "T[8,3] int64[8]", num_segments=4)
example("segment_sum", "T[8,3] int64[8]", num_segments=4)
example("separable_conv2d", "T[2,7,8,3] T[3,3,3,2] T[1,1,6,4]")
example("sequence_mask", "T[4]", maxlen=7)
example("shift", "T[3,20]", shift=3)
example("shuffle", "T[4,6] int64[]")
example("simple_rnn_cell", "T[3,4] T[3,5] T[4,5] T[5,5] T[5]")
example("slice", "T[4,6]", begin=(1, 2), size=(2, 3))
example("slice_assign", "T[5,40] T[2,30]", begin=(1, 3), size=(2, 30))
example("slogdet", "T[2,4,4]")
example("solve", "T[4,4] T[4]")
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
example("tensor_scatter_nd_mul", "T[5,3] int64[6,2] T[6]")
example("tensor_scatter_nd_sub", "T[5,3] int64[6,2] T[6]")
example("tensor_scatter_nd_update", "T[5,3] int64[6,2] T[6]")
example("tile", "T[2,3]", repetitions=(2, 2))
example("triangular_solve", "T[4,4] T[4]")
example("unique", "T[3,4]", size=12)
example("unslice", "T[2,3]", shape=(4, 6), begin=(1, 2))
example("vecmat", "T[2,3] T[2,3,4]")
example("where", "bool[5,7] T[5,7] T[5,7]")
example("window_products", "T[2,7,8,3] T[2,5,6,4]", window=(3, 3))
example("windows", "T[2,8,8,3]", window=(2, 2))
example("windows_back", "T[2,7,7,2,2,3]", size=(8, 8))
example("windows_taken", "T[2,7,7,2,2,3]")
example("zeros", "", shape=(2, 3), dtype="T")
