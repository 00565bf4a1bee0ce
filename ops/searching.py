"""Searches: positions of extremes, of values and of nonzero elements, and counts of values.

Results are integers or bools without gradients. NaN counts as the largest number. Where the shape
of a result depends on the data, as for `argwhere`, a parameter ``size`` says it: the result is cut
to it, or filled up.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from passkit.errors import GraphError, ShapeError, nearest
from passkit.graph.infer import show_shape
from passkit.graph.node import Entry, Node, constant, known_dtype, known_shape
from passkit.graph.op import REQUIRED
from passkit.ops.composites import composite
from passkit.ops.helpers import check_kinds, common_dtype, count_param, make, normalize_axes
from passkit.ops.ranges import LARGEST, check_number
from passkit.ops.reduce import nonempty_shape, reduced_shape
from passkit.ops.sorting import no_gradient, register_numpy_op, result_dtype
from passkit.values.arguments import shown
from passkit.values.dtype import DType, bool_, dtype_of, int64
from passkit.values.size import Extent, Shape, numel

Array = Any


# argmax, argmin, count_nonzero: ``axis`` is None (all axes), an int or a tuple, which counts as one
# flattened axis.


def flat_positions(x: Entry, axes: tuple[int, ...]) -> Entry:
    """Return the position of each element of ``x`` in the flattened ``axes``.

    Args:
        x: An entry.
        axes: Sorted axes of it.

    Returns:
        int32 numbers, or int64 if there may be 2**31 or more, in a shape that broadcasts to that of
        x; the scalar 0 without axes.

    Raises:
        ShapeError: If the rank of x is unknown.
    """
    shape = known_shape(x)
    count = numel(shape[k] for k in axes)
    dtype = "int32" if isinstance(count, int) and count < 1 << 31 else "int64"
    stride: Extent = 1
    total: Entry | None = None
    for k in reversed(axes):
        numbers = make("arange", start=0, stop=shape[k], dtype=dtype)
        trailing = (1,) * (len(shape) - 1 - k)
        numbers = make("reshape", numbers, shape=(shape[k], *trailing))
        if total is not None:
            numbers = numbers * _stride_factor(stride, dtype) + total
        total, stride = numbers, stride * shape[k]
    return make("full", shape=(), fill_value=0, dtype=dtype) if total is None else total


def _stride_factor(stride: Extent, dtype: str) -> Any:
    """Return a stride as a factor of arrays of dtype ``dtype``: an int, or an entry for a Size.

    A symbolic one is computed as the maximum of a range.
    """
    if isinstance(stride, int):
        return stride
    return make("reduce_max", make("arange", start=0, stop=stride + 1, dtype=dtype))


def _expand_arg_extreme(reduction: str) -> Callable[[Node, Entry], Entry]:
    """Return the FExpand of argmax or argmin.

    The result is the smallest position whose element equals the extreme, or is NaN: the extreme is
    NaN then.

    Args:
        reduction: The operator that computes the extreme.
    """

    def expand(node: Node, x: Entry) -> Entry:
        """Expand to the extreme, and the smallest position of an element that equals it, as int64.

        Bools are compared as int32. ``node`` has the parameters ``axis``, one or several axes or
        None for all, and ``keepdims``.

        Raises: ShapeError if the axis is out of range, no int, listed twice or empty, or the rank
        is unknown; DTypeError if the dtype of ``x`` is unknown.
        """
        axes = normalize_axes(node, len(known_shape(x)), node.params["axis"])
        if known_dtype(x).kind == "b":
            x = make("cast", x, dtype="int32")
        is_extreme = make("equal", x, make(reduction, x, axis=axes, keepdims=True))
        if x.dtype is not None and x.dtype.is_float:
            is_extreme = make("logical_or", is_extreme, make("isnan", x))
        positions = flat_positions(x, axes)
        assert positions.dtype is not None
        no_position = int(np.iinfo(positions.dtype.numpy).max)
        candidates = make("where", is_extreme, positions, no_position)
        first = make("reduce_min", candidates, axis=axes, keepdims=node.params["keepdims"])
        return make("cast", first, dtype="int64")

    return expand


def _count_nonzero(node: Node, x: Entry) -> Entry:
    """Expand count_nonzero: the number of elements other than 0 along ``axis``, in int64.

    NaN is counted. ``node`` has the parameters that are passed on.

    Raises: ShapeError if the axis is out of range, no int or listed twice.
    """
    is_nonzero = make("cast", make("not_equal", x, make("zeros_like", x)), dtype="int64")
    return make("reduce_sum", is_nonzero, **node.params)


composite(
    "argmax",
    inputs=1,
    expand=_expand_arg_extreme("reduce_max"),
    doc="the index of the largest element along axis, of the first of equal ones or the first "
    "NaN, as int64; without an axis, that in row-major order",
    params={"axis": None, "keepdims": False},
    shape=nonempty_shape,
    types=common_dtype("biuf", int64),
    aliases="arg_max",
    FGradient=no_gradient,
)
composite(
    "argmin",
    inputs=1,
    expand=_expand_arg_extreme("reduce_min"),
    doc="the index of the smallest element along axis, of the first of equal ones or the first "
    "NaN, as int64; without an axis, that in row-major order",
    params={"axis": None, "keepdims": False},
    shape=nonempty_shape,
    types=common_dtype("biuf", int64),
    aliases="arg_min",
    FGradient=no_gradient,
)
composite(
    "count_nonzero",
    inputs=1,
    expand=_count_nonzero,
    doc="the number of elements over axis that are not 0, as int64",
    params={"axis": None, "keepdims": False},
    shape=reduced_shape,
    types=common_dtype("biuf", int64),
    FGradient=no_gradient,
)


# bincount and histogram: a scatter of ones.


def _positive_param(node: Node, name: str) -> int:
    """Return the parameter ``name`` of a node, an int of at least 1.

    Raises: ShapeError if it is anything else, a Size or a bool included.
    """
    count = count_param(node, name)
    if not isinstance(count, int) or count < 1:
        raise ShapeError(f"{node.where} needs an int of at least 1 as {name}, got {count!r}")
    return count


def _count_values(values: Entry, length: int) -> Entry:
    """Return how often each number from 0 to below ``length`` occurs in ``values``, of int64.

    The result is an int64 vector of that length. Other numbers are ignored.

    Raises: ShapeError if a rank is unknown.
    """
    count = numel(known_shape(values))
    ones = make("full", shape=(1, 1, count, 1), fill_value=1, dtype="int64")
    zeros = make("full", shape=(1, 1, length, 1), fill_value=0, dtype="int64")
    out = make("scatter_rows", zeros, make("reshape", values, shape=(1, count)), ones)
    return make("reshape", out, shape=(length,))


def _bincount(node: Node, x: Entry) -> Entry:
    """Expand bincount: how often each number below ``length`` occurs.

    ``node`` has the parameter ``length``.

    Raises: ShapeError if that parameter is no int of at least 1, or the rank of ``x`` is unknown.
    """
    return _count_values(make("cast", x, dtype="int64"), _positive_param(node, "length"))


def _bincount_dtype(node: Node, dtype: DType) -> DType:
    """Infer the dtype, int64.

    Raises: DTypeError, naming ``node``, if ``dtype``, the input's, is no integer.
    """
    check_kinds(node, "iu", dtype)
    return int64


def _histogram_range(node: Node) -> tuple[float, float]:
    """Return the parameter ``range`` of ``node``, (low, high).

    Raises: ShapeError if it is no pair of finite ints or floats with low < high.
    """
    value = node.params["range"]
    is_pair = isinstance(value, tuple) and len(value) == 2
    is_pair = is_pair and all(type(v) in (int, float) and abs(v) <= LARGEST for v in value)
    if not is_pair or not value[0] < value[1]:
        raise ShapeError(
            f"{node.where} needs finite (low, high) with low < high as range, got {shown(value)}"
        )
    return value  # type: ignore[no-any-return]


def _histogram_shape(node: Node, shape: Shape) -> Shape:
    """Infer the shape: one count for each of ``bins``.

    ``node`` has the parameters ``bins`` and ``range``. ``shape``, that of the input, is not used.

    Raises: ShapeError if ``bins`` is no int of at least 1, or ``range`` no finite (low, high) with
    low < high.
    """
    _histogram_range(node)
    return (_positive_param(node, "bins"),)


def _histogram(node: Node, x: Entry) -> Entry:
    """Expand histogram to a search for the bin of each element, and counts of them, in int64.

    ``node`` has the parameters ``bins`` and ``range``. Elements outside of the range and NaN are
    not counted.

    Source: numpy.histogram with equal bins, of which the last includes its upper end.

    Raises: ShapeError if ``bins`` is no int of at least 1, or of more edges than the memory holds,
    ``range`` is no finite (low, high) with low < high, or the rank of ``x`` is unknown; DTypeError
    for complex numbers.
    """
    bins, (low, high) = _positive_param(node, "bins"), _histogram_range(node)
    values = make("cast", x, dtype="float64")
    try:
        edges = constant(np.linspace(low, high, bins + 1))
    except (MemoryError, ValueError):  # NumPy's error for a length beyond 64 bits
        raise ShapeError(f"{node.where} has no memory for the edges of {bins} bins") from None
    edges_below = make("searchsorted", edges, values, side="right")
    is_upper_end = make("equal", values, make("full_like", values, fill_value=high))
    last_bin = make("full_like", edges_below, fill_value=bins)
    bin_number = make("where", is_upper_end, last_bin, edges_below)
    return _count_values(bin_number - 1, bins)


composite(
    "bincount",
    inputs=1,
    expand=_bincount,
    doc="how often each integer from 0 to below length occurs in x: int64 of shape (length,); "
    "others are ignored",
    params={"length": 1},
    shape=lambda node, shape: (_positive_param(node, "length"),),
    types=_bincount_dtype,
    FGradient=no_gradient,
)
composite(
    "histogram",
    inputs=1,
    expand=_histogram,
    doc="the number of elements in each of bins equal intervals of range: int64 of shape (bins,); "
    "others are ignored",
    params={"bins": 10, "range": (0.0, 1.0)},
    shape=_histogram_shape,
    types=common_dtype("biuf", int64),
    FGradient=no_gradient,
)


# searchsorted and digitize: binary search.

SIDES = ("left", "right")
"""The values of the parameter ``side`` of searchsorted."""


def _searchsorted_shape(node: Node, sequence: Shape, values: Shape) -> Shape:
    """Infer the shape, ``values``; ``sequence`` is the shape of the sorted sequence.

    Raises:
        ShapeError: If the sequence is neither a vector nor known to be a vector for each row of the
            values, which has their leading axes.
        GraphError: If the parameter ``side`` of ``node`` is neither "left" nor "right".
    """
    side = node.params["side"]
    if side not in SIDES:
        raise GraphError(f"{node.where} has no side {side!r}; {nearest(side, SIDES)}")
    has_rows = len(sequence) == len(values) > 1 and sequence[:-1] == values[:-1]
    if len(sequence) != 1 and not has_rows:
        raise ShapeError(
            f"{node.where} needs a vector, or a vector for each row of the values, got "
            f"{show_shape(sequence)} for {show_shape(values)}"
        )
    return values


def _compute_searchsorted(node: Node, sequence: Array, values: Array) -> Array:
    """Compute searchsorted of arrays with NumPy, as int64, in the shape of ``values``.

    It is done row by row if there is a sequence for each row. The parameter ``side`` of ``node`` is
    "left" or "right".
    """
    side = node.params["side"]
    if dtype_of(sequence.dtype).name == "bfloat16":  # NumPy has no order of NaN for it
        sequence, values = sequence.astype(np.float32), values.astype(np.float32)
    if sequence.ndim == 1:
        return np.asarray(np.searchsorted(sequence, values, side), np.int64)
    count = math.prod(sequence.shape[:-1])
    sequence_rows = sequence.reshape(count, sequence.shape[-1])
    value_rows = values.reshape(count, values.shape[-1])
    positions = [
        np.searchsorted(s, v, side) for s, v in zip(sequence_rows, value_rows, strict=True)
    ]
    return np.asarray(positions, np.int64).reshape(values.shape)


def _expand_searchsorted(node: Node, sequence: Entry, values: Entry) -> Entry | None:
    """Expand to an unrolled binary search, with a step for each bit of the length.

    A step tests whether so many more elements come before the value, or with ``side`` "right" equal
    it. ``node`` has the parameter ``side``.

    Returns:
        Positions as int64; None for a sequence of unknown length and for complex numbers, where
        NumPy searches.

    Raises: ShapeError if a rank is unknown, DTypeError if the dtype of ``values`` is.
    """
    n = known_shape(sequence)[-1]
    if not isinstance(n, int) or known_dtype(values).kind == "c":
        return None
    position = make("full_like", make("cast", values, dtype="int64"), fill_value=0)
    is_vector = len(known_shape(sequence)) == 1
    for bit in reversed(range(n.bit_length())):
        advanced = position + (1 << bit)
        if is_vector:
            element = make("take", sequence, advanced - 1, axis=0)
        else:
            element = make("take_along_axis", sequence, advanced - 1, axis=-1)
        in_range = make("less_equal", advanced, make("full_like", advanced, fill_value=n))
        is_before = _comes_before(element, values, node.params["side"] == "right")
        position = make("where", make("logical_and", in_range, is_before), advanced, position)
    return position


def _comes_before(element: Entry, value: Entry, or_equal: bool) -> Entry:
    """Return whether an element is less than a value, or equal if ``or_equal``; NaN is largest.

    Raises: DTypeError if the dtype of ``value`` is unknown.
    """
    dtype = known_dtype(value)
    if dtype.kind == "b":
        element, value = (make("cast", e, dtype="uint8") for e in (element, value))
    is_before = make("less_equal" if or_equal else "less", element, value)
    if not dtype.is_float:
        return is_before
    before_nan = make("isnan", value)
    if not or_equal:
        before_nan = make("logical_and", before_nan, make("logical_not", make("isnan", element)))
    return make("logical_or", is_before, before_nan)


def _digitize(node: Node, x: Entry, bins: Entry) -> Entry:
    """Expand digitize to searchsorted of ``x`` in ``bins``, which are increasing.

    With the parameter ``right`` of ``node`` it is the number of bins below the element, else of
    those that are at most it.

    Raises: ShapeError if the bins are neither a vector nor one for each row of x, DTypeError if
    both have different dtypes.
    """
    return make("searchsorted", bins, x, side="left" if node.params["right"] else "right")


searchsorted = register_numpy_op(
    "searchsorted",
    inputs=["sorted_sequence", "values"],
    compute=_compute_searchsorted,
    doc="the index at which each value would be inserted into the increasing sorted_sequence, "
    "before equal elements, or after them with side 'right'; in the shape of values",
    params={"side": "left"},
)
searchsorted.set_attr("FInferShape", _searchsorted_shape)
searchsorted.set_attr("FInferType", result_dtype(int64))
searchsorted.set_attr("FExpand", _expand_searchsorted)
searchsorted.set_attr("FGradient", no_gradient)
composite(
    "digitize",
    inputs=["x", "bins"],
    expand=_digitize,
    doc="the number of bins, an increasing vector, that are at most the element, or below it with "
    "right; in the shape of x",
    params={"right": False},
    types=result_dtype(int64),
    FGradient=no_gradient,
    aliases="bucketize",
)


# isin.

MAX_COMPARED = 64
"""The most elements of a set that each element is compared with; a larger set is sorted."""


def _expand_isin(node: Node, x: Entry, test: Entry) -> Entry | None:
    """Expand to comparisons with all elements of a small set, or to a search in a large one.

    ``test`` is the set, in any shape, large if it has more than `MAX_COMPARED` elements; the
    parameter ``invert`` of ``node`` negates the result. NaN is in no set.

    Returns:
        None for a set of symbolic size and for complex numbers, where NumPy computes isin.

    Raises: ShapeError if a rank is unknown, DTypeError if the dtype of ``x`` is.
    """
    count = numel(known_shape(test))
    if not isinstance(count, int) or known_dtype(x).kind == "c":
        return None
    flat = make("reshape", test, shape=(count,))
    if count <= MAX_COMPARED:
        equal = make("equal", make("expand_dims", x, axis=-1), flat)
        is_member = make("reduce_any", equal, axis=-1)
    else:
        ordered = make("sort", flat)
        candidate = make("take", ordered, make("searchsorted", ordered, x), axis=0)
        is_member = make("equal", candidate, x)
    return make("logical_not", is_member) if node.params["invert"] else is_member


isin = register_numpy_op(
    "isin",
    inputs=["x", "test"],
    compute=lambda node, x, test: np.isin(x, test, invert=node.params["invert"]),
    doc="whether each element of x is among those of test, or is not with invert; bool in the "
    "shape of x",
    params={"invert": False},
)
isin.set_attr("FInferShape", lambda node, shape, test: shape)
isin.set_attr("FInferType", result_dtype(bool_))
isin.set_attr("FExpand", _expand_isin)
isin.set_attr("FGradient", no_gradient)


# argwhere and flatnonzero: a scatter to the number of nonzero elements before each.


def _compact_nonzero(node: Node, x: Entry, rows: Entry, width: Extent) -> Entry:
    """Return the rows that belong to the first ``size`` elements of ``x`` that are not 0.

    Args:
        node: Has the parameters ``size``, and ``fill_value`` for the rows behind them.
        x: An entry.
        rows: Int64 numbers, a row for each element of x.
        width: Length of a row.

    Returns:
        (1, 1, size, width).

    Raises:
        ShapeError: If ``size`` is no int >= 0 or Size, or the rank of ``x`` is unknown.
        DTypeError: If int64 cannot hold ``fill_value``.
    """
    count, size = numel(known_shape(x)), count_param(node, "size")
    flat = make("reshape", x, shape=(count,))
    is_nonzero = make("not_equal", flat, make("zeros_like", flat))
    one = make("cast", is_nonzero, dtype="int64")
    position = make("cumsum", one, axis=0) - one
    dropped = make("full_like", position, fill_value=-1)
    targets = make("where", is_nonzero, position, dropped)
    fill = make(
        "full",
        shape=(1, 1, size, width),
        fill_value=node.params["fill_value"],
        dtype="int64",
    )
    return make(
        "scatter_rows",
        fill,
        make("reshape", targets, shape=(1, count)),
        make("reshape", rows, shape=(1, 1, count, width)),
        kind="update",
    )


def _argwhere(node: Node, x: Entry) -> Entry:
    """Expand argwhere: the coordinates of nonzero elements, cut or filled to ``size`` rows.

    ``node`` has the parameters ``fill_value`` and ``size``. NaN is not 0. Rows of a scalar ``x``
    have no elements.

    Raises: ShapeError if ``size`` is no int >= 0 or Size, or the rank of ``x`` is unknown;
    DTypeError if int64 cannot hold ``fill_value``.
    """
    shape, size = known_shape(x), count_param(node, "size")
    rank = len(shape)
    if rank == 0:
        return make("full", shape=(size, 0), fill_value=0, dtype="int64")
    numbers = [make("arange", start=0, stop=n, dtype="int64") for n in shape]
    coordinates = []
    for k, n in enumerate(shape):
        trailing = (1,) * (rank - 1 - k)
        aligned = make("reshape", numbers[k], shape=(n, *trailing))
        coordinates.append(make("broadcast_to", aligned, shape=shape))
    out = _compact_nonzero(node, x, make("stack", *coordinates, axis=-1), rank)
    return make("reshape", out, shape=(size, rank))


def _flatnonzero(node: Node, x: Entry) -> Entry:
    """Expand flatnonzero: the row-major positions of nonzero elements.

    They are cut or filled to ``size``. ``node`` has the parameters ``fill_value`` and ``size``.

    Raises: ShapeError if ``size`` is no int >= 0 or Size, or the rank of ``x`` is unknown;
    DTypeError if int64 cannot hold ``fill_value``.
    """
    count, size = numel(known_shape(x)), count_param(node, "size")
    out = _compact_nonzero(node, x, make("arange", start=0, stop=count, dtype="int64"), 1)
    return make("reshape", out, shape=(size,))


def _nonzero_dtype(node: Node, x: DType) -> DType:
    """Infer the dtype, int64, which must be able to hold the parameter ``fill_value`` of ``node``.

    Raises: DTypeError if it cannot, ``fill_value`` is no int, whole float or bool, or ``x``, the
    input's dtype, is complex.
    """
    check_kinds(node, "biuf", x)
    check_number(node, node.params["fill_value"], int64)
    return int64


composite(
    "argwhere",
    inputs=1,
    expand=_argwhere,
    doc="the coordinates of the first size elements that are not 0, in row-major order: int64 of "
    "shape (size, rank); rows beyond them hold fill_value",
    params={"size": REQUIRED, "fill_value": -1},
    shape=lambda node, shape: (count_param(node, "size"), len(shape)),
    types=_nonzero_dtype,
    FGradient=no_gradient,
)
composite(
    "flatnonzero",
    inputs=1,
    expand=_flatnonzero,
    doc="the row-major indices of the first size elements that are not 0: int64 of shape (size,); "
    "fill_value beyond them",
    params={"size": REQUIRED, "fill_value": -1},
    shape=lambda node, shape: (count_param(node, "size"),),
    types=_nonzero_dtype,
    FGradient=no_gradient,
)
