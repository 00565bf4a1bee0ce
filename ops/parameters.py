"""The type and meaning of the parameters of operators, for help, stubs and reference pages.

`COMMON_PARAMETERS` holds the meaning of a name wherever it appears, `SPECIFIC_PARAMETERS` its
meaning for some operators. The names and defaults themselves are in the definitions of the
operators. Types are those of the generated stubs; `passkit.graph.argtypes` defines those that
Python does not have.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from passkit.graph.op import TParameters, get_op, list_ops
from passkit.graph.registry import Setting, calling_place, register_value

ParameterTable = Mapping[str, tuple[str, str]]
"""Type and meaning of parameters, by their names."""

BOOL = "bool"
INT = "int"
FLOAT = "float"
INTS = "Sequence[int]"
OPTIONAL_INTS = "Sequence[int] | None"
LENGTHS = "int | Sequence[int]"
OPTIONAL_LENGTHS = "int | Sequence[int] | None"
SHAPE = "ShapeLike"
DTYPE = "DTypeLike"
NUMBER = "complex"
AXES = OPTIONAL_LENGTHS
PAD_MODES = "Literal['constant', 'edge', 'reflect', 'symmetric', 'wrap']"

COMMON_PARAMETERS: ParameterTable = {
    "activation": ("Literal['tanh', 'relu', 'sigmoid']", "function of the new state"),
    "adjoint": (BOOL, "solve with the conjugate transpose of the matrix"),
    "align_corners": (BOOL, "map the centres of corner pixels to each other, as in TensorFlow"),
    "alpha": (FLOAT, "slope or scale of the negative side"),
    "approximate": ("Literal['none', 'tanh', 'sigmoid']", "exact, or by that function"),
    "atol": (FLOAT, "absolute tolerance"),
    "axes": (INTS, "the axes, in order"),
    "axis": (INT, "the axis; negative ones count from the end"),
    "axis1": (INT, "the first of the two axes"),
    "axis2": (INT, "the second of the two axes"),
    "base": (FLOAT, "wavelengths grow up to 2 pi times this number"),
    "batch_axis": (INT, "the axis along which `lengths` runs"),
    "batch_dims": (INT, "number of leading axes that the inputs share"),
    "begin": ("Sequence[int | Size]", "first position along each axis"),
    "begin_mask": (INT, "bit k set: ignore begin[k] and start at the first element"),
    "beta": (FLOAT, "a positive number of the formula"),
    "bias": (FLOAT, "number that is added to the scaled sum of squares"),
    "bins": (INT, "number of equal bins"),
    "block_shape": (LENGTHS, "lengths of a block along the axes after the first"),
    "block_size": (INT, "edge length of a block"),
    "causal": (BOOL, "hide keys that come after the query"),
    "cell_clip": (FLOAT, "bound of the cell state; not positive: no bound"),
    "center": (BOOL, "add the input beta"),
    "channel_axis": (INT, "the axis of the channels"),
    "channels_last": (BOOL, "whether the channels are the last axis"),
    "clip_norm": (FLOAT, "largest length of the result"),
    "constant_values": (NUMBER, "value that mode 'constant' pads with"),
    "correction": (FLOAT, "subtracted from the number of elements; 1 for an unbiased estimate"),
    "count_include_pad": (BOOL, "count padding in the mean"),
    "crops": ("int | Sequence[Sequence[int]]", "(before, after) cut from each axis of the blocks"),
    "data_format": ("str", "order of the axes: channels last, as NHWC, or first, as NCHW"),
    "delta": (FLOAT, "difference at which the square becomes a straight line"),
    "depth": (INT, "length of the new axis"),
    "depth_radius": (INT, "number of channels summed on each side"),
    "descending": (BOOL, "largest first"),
    "destination": (LENGTHS, "positions of these axes in the result"),
    "dilations": (LENGTHS, "distance between the elements of a window, one or for each axis"),
    "dtype": (DTYPE, "dtype of the result"),
    "ellipsis_mask": (INT, "bit k set: entry k stands for all axes that are not given"),
    "end": ("Sequence[int | Size]", "position after the last along each axis"),
    "end_mask": (INT, "bit k set: ignore end[k] and go to the last element"),
    "endpoint": (BOOL, "whether stop is the last number"),
    "epsilon": (FLOAT, "small number that keeps the division or logarithm finite"),
    "equal_nan": (BOOL, "whether NaN is close to NaN"),
    "equation": ("str", "subscripts of the inputs and the result, such as 'ij,jk->ik'"),
    "exclusive": (BOOL, "leave each element out of its own result"),
    "exponential_avg_factor": (FLOAT, "weight of the batch in the running statistics"),
    "factors": (INTS, "distance of the elements along each axis"),
    "fill": (NUMBER, "what padding is filled with"),
    "fill_value": (NUMBER, "value of the elements that are filled"),
    "forget_bias": (FLOAT, "added to the forget gate"),
    "full_matrices": (BOOL, "square U and Vh instead of the reduced ones"),
    "groups": (INT, "number of groups of channels that are computed apart"),
    "half": ("Literal[0, 1]", "selects the first or second 64 of the 128 random bits"),
    "half_pixel_centers": (BOOL, "pixels have their centres at halves, as in TensorFlow 2"),
    "high": (FLOAT, "upper end, excluded from draws"),
    "include_initial": (BOOL, "begin with the result of no elements"),
    "interleaved": (BOOL, "pairs are neighbours instead of half an axis apart"),
    "invert": (BOOL, "negate the result"),
    "is_training": (BOOL, "use the statistics of the batch"),
    "k": (INT, "number of the diagonal; 0 is the main one, positive ones are above it"),
    "keepdims": (BOOL, "keep reduced axes with length 1"),
    "kind": (
        "Literal['update', 'add', 'sub', 'mul', 'min', 'max']",
        "how an update is combined with the element",
    ),
    "length": (INT, "length of the result"),
    "low": (FLOAT, "lower end"),
    "lower": (BOOL, "read the lower triangle, not the upper one"),
    "masked": (BOOL, "there is a fourth input, the mask"),
    "maxlen": (INT, "length of the new axis"),
    "mean": (FLOAT, "mean of the distribution"),
    "mode": (
        "Literal['clip', 'zero']",
        "for an index out of range: 'clip' takes the nearest, 'zero' reads 0 and drops writes",
    ),
    "momentum": (FLOAT, "weight of the old running statistics"),
    "n": (INT, "number of repetitions"),
    "n_cols": ("int | None", "number of columns; None: as many as rows"),
    "n_rows": (INT, "number of rows"),
    "nan": (FLOAT, "replaces NaN"),
    "neginf": ("float | None", "replaces -inf; None: the lowest finite number"),
    "new_axis_mask": (INT, "bit k set: entry k is a new axis"),
    "no_bias": (BOOL, "there is no input bias"),
    "noise_shape": ("ShapeLike | None", "shape of the random mask, which broadcasts to x"),
    "num": (INT, "number of elements of the result"),
    "num_hidden": ("int | None", "number of outputs; None: the rows of weight"),
    "num_lower": (INT, "diagonals kept below the main one; negative: all"),
    "num_segments": (INT, "number of segments, the length of the first axis of the result"),
    "num_upper": (INT, "diagonals kept above the main one; negative: all"),
    "off_value": (NUMBER, "value elsewhere"),
    "offset": (INT, "number of the diagonal; 0 is the main one, positive ones are above it"),
    "offsets": (INTS, "first position along each axis that is cut"),
    "on_value": (NUMBER, "value at the index"),
    "ord": ("float", "order of the norm; inf for the largest magnitude"),
    "output_padding": (LENGTHS, "added to one side of the result, to choose among sizes that fit"),
    "output_shape": (OPTIONAL_INTS, "sizes of the result; None: the smallest that fit"),
    "pad_width": ("int | Sequence[Any]", "(before, after) for each axis, one pair or one number"),
    "padding": ("Padding", "'SAME', 'VALID', a number, or (before, after) for each axis"),
    "paddings": ("int | Sequence[Sequence[int]]", "(before, after) added to each axis of blocks"),
    "posinf": ("float | None", "replaces inf; None: the largest finite number"),
    "q": (FLOAT, "part of the elements that lies below, from 0 to 1"),
    "range": ("Sequence[float]", "lower and upper end of the bins"),
    "rate": (FLOAT, "probability with which an element becomes 0"),
    "reduction": ("Literal['mean', 'sum', 'none']", "how the losses of elements are combined"),
    "repeats": ("int | Sequence[int]", "number of copies of each element, one or for each element"),
    "repetitions": (LENGTHS, "number of copies of x along each axis"),
    "reset_after": (BOOL, "apply the reset gate after the matrix product"),
    "reverse": (BOOL, "accumulate from the end"),
    "right": (BOOL, "bins include their right end instead of the left one"),
    "rtol": ("float", "relative tolerance"),
    "scale": (BOOL, "multiply by the input gamma"),
    "shape": (SHAPE, "shape of the result"),
    "shift": (LENGTHS, "number of positions; negative ones shift to the front"),
    "shrink_axis_mask": (INT, "bit k set: take begin[k] only, and drop the axis"),
    "side": ("Literal['left', 'right']", "before or after equal numbers"),
    "sine": (BOOL, "the sine instead of the cosine"),
    "size": ("Sequence[int | Size]", "length along each axis"),
    "smoothing": (FLOAT, "weight of the even distribution"),
    "source": (LENGTHS, "axes that are moved"),
    "start": (FLOAT, "first number"),
    "stddev": (FLOAT, "standard deviation of the distribution"),
    "step": ("Sequence[int] | None", "distance along each axis; None: 1"),
    "stop": ("float", "end of the range"),
    "stream": (INT, "number of an independent stream of the same key"),
    "strides": (LENGTHS, "distance between windows, one or for each axis"),
    "temperature": (FLOAT, "divides the logits; small ones give nearly one-hot draws"),
    "threshold": (FLOAT, "magnitude at which the function changes"),
    "transpose_a": (BOOL, "transpose the last two axes of the first operand"),
    "transpose_b": (BOOL, "transpose the last two axes of the second operand"),
    "updates": (INT, "number of updates"),
    "upper": (BOOL, "the upper triangle instead of the lower one"),
    "value": (FLOAT, "value of the elements that are replaced"),
    "window": (LENGTHS, "lengths of a window, one or for each axis"),
}

SPECIFIC_PARAMETERS: Mapping[str, ParameterTable] = {
    "arange": {
        "start": (FLOAT, "first number; the end, if stop is None"),
        "stop": ("float | Size | None", "end, which is excluded"),
        "step": (FLOAT, "distance of the numbers"),
        "dtype": ("DTypeLike | None", "dtype of the result; None: int64 or float64 by the numbers"),
    },
    "argwhere flatnonzero unique": {"size": (INT, "number of elements or rows of the result")},
    "avg_pool1d avg_pool2d avg_pool3d max_pool1d max_pool2d max_pool3d": {
        "strides": (OPTIONAL_LENGTHS, "distance between windows; None: the lengths of a window"),
    },
    "cumsum cumprod cummax cummin logcumsumexp cumulative_sum cumulative_prod": {
        "axis": ("int | None", "the axis; None: all elements in row-major order"),
    },
    "cumulative_sum cumulative_prod prod sum": {
        "dtype": ("DTypeLike | None", "dtype of the result; None: that of x"),
    },
    "mean": {
        "dtype": ("DTypeLike | None", "dtype of the result; None: that of x, float64 for integers"),
    },
    "dilate": {"padding": ("Sequence[Sequence[Any]]", "(before, after) for each axis")},
    "div_by_size": {"size": ("int | Size", "the divisor")},
    "expand_dims": {"axis": (LENGTHS, "positions of the new axes in the result")},
    "full": {"fill_value": ("complex", "the value of all elements")},
    "group_norm": {"groups": (INT, "number of groups that the channels are split into")},
    "local_response_normalization": {
        "alpha": (FLOAT, "factor of the sum of squares"),
        "beta": (FLOAT, "exponent"),
    },
    "matrix_norm": {
        "ord": ("float | Literal['fro', 'nuc'] | None", "as in numpy.linalg; None: 'fro'"),
    },
    "matrix_rank pinv lstsq": {
        "rtol": ("float | None", "smallest singular value kept, relative to the largest"),
    },
    "pad": {
        "mode": (PAD_MODES, "values of the padding, as numpy.pad defines them"),
    },
    "polygamma": {"n": (INT, "order of the derivative")},
    "qr": {"mode": ("Literal['reduced', 'complete']", "the shapes of Q and R")},
    "random_bernoulli": {"shape": ("ShapeLike | None", "shape of the result; None: that of p")},
    "random_integers": {
        "low": (INT, "smallest number"),
        "high": (INT, "end, which is excluded"),
    },
    "repeat take": {"axis": ("int | None", "the axis; None: all elements in row-major order")},
    "reshape": {"shape": ("ShapeLike", "the new shape; one length may be -1, which is filled in")},
    "roll": {"axis": (AXES, "the axes; None: all elements in row-major order")},
    "rotate": {
        "shift": (INT, "number of positions"),
        "axis": (INT, "the axis"),
    },
    "rot90": {"k": (INT, "number of quarter turns")},
    "rotary_embedding rotary_wave": {"offset": (INT, "position of the first element")},
    "scaled_dot_product_attention": {
        "scale": ("float | None", "factor of the scores; None: 1 / sqrt(length of a query)"),
    },
    "slice slice_assign": {
        "size": ("Sequence[int | Size]", "number of elements along each axis; -1: the rest"),
    },
    "softmax softmin log_softmax masked_softmax l2_normalize cosine_similarity": {
        "axis": (AXES, "the axis or axes; negative ones count from the end, None is all"),
    },
    "strided_slice": {"strides": (OPTIONAL_INTS, "distance along each axis; None: 1")},
    "tensordot": {
        "axes": ("int | Sequence[Any]", "number of axes, or the axes of a and those of b"),
    },
    "threshold": {"value": (FLOAT, "value where x does not exceed the threshold")},
    "top_k": {"k": (INT, "number of elements of the result along axis")},
    "transpose": {"axes": (OPTIONAL_INTS, "order of the axes; None: reversed")},
}

SEVERAL_AXES = (AXES, "the axis or axes; negative ones count from the end, None is all")
"""The meaning of ``axis`` where its default is None, as in reductions."""


def document() -> None:
    """Set TParameters on every operator of this folder that has parameters.

    The attribute maps each parameter to its type and meaning, from `SPECIFIC_PARAMETERS`, else from
    `COMMON_PARAMETERS`; a parameter in neither has the type Any and no meaning. Operators that are
    registered elsewhere document their parameters themselves.
    """
    specific: dict[tuple[str, str], tuple[str, str]] = {
        (op_name, parameter): entry
        for op_names, table in SPECIFIC_PARAMETERS.items()
        for op_name in op_names.split()
        for parameter, entry in table.items()
    }
    place, folder = calling_place(), str(Path(__file__).parent)
    for name in list_ops():
        op = get_op(name)
        if not op.place.startswith(folder):
            continue
        table = {}
        for parameter, default in op.params.items():
            if (name, parameter) in specific:
                table[parameter] = specific[name, parameter]
            elif parameter == "axis" and default is None:
                table[parameter] = SEVERAL_AXES
            else:
                table[parameter] = COMMON_PARAMETERS.get(parameter, ("Any", ""))
        if table:
            register_value(TParameters.key, name, Setting(table, 1, place, f"op {name}"))


document()
