"""Statistics along axes: sums in other dtypes, variances, norms, medians, with and without NaN.

``axis`` and ``keepdims`` are those of the reductions. The operators are composites of reductions,
so they fuse: mean and variance of `moments` are one kernel where rows fit into a cache.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf, nan
from sys import float_info
from typing import Any

from passkit.errors import ShapeError
from passkit.graph.node import Entry, Node, known_dtype, known_shape
from passkit.ops.composites import composite
from passkit.ops.helpers import (
    check_broadcast,
    check_kinds,
    common_dtype,
    make,
    normalize_axes,
    normalize_axis,
)
from passkit.ops.reduce import PARAMS, nonempty_shape, reduced_shape, reduction
from passkit.values.arguments import shown
from passkit.values.dtype import DType, dtype_of, float64
from passkit.values.size import Extent, Shape, Size, numel


def _reduced_axes(node: Node, x: Entry) -> tuple[int, ...]:
    """Return the parameter ``axis`` as a sorted tuple of axes of ``x``; None is all of them.

    ``node`` has the parameter ``axis``.

    Raises: ShapeError if it is neither None nor an int or ints, out of range, or has an axis twice,
    or the rank of x is unknown.
    """
    return normalize_axes(node, len(known_shape(x)), node.params["axis"])


def _keep_axes(node: Node, x: Entry, value: Entry) -> Entry:
    """Return ``value``, of the shape of the node's output, so that it broadcasts to ``x``.

    Its reduced axes are put back with length 1; it is returned itself if it has them.

    Raises: ShapeError if the rank of x is unknown.
    """
    axes = _reduced_axes(node, x)
    shape = tuple(1 if k in axes else n for k, n in enumerate(known_shape(x)))
    return value if value.shape == shape else make("reshape", value, shape=shape)


# Sums, products and means in a dtype.

DTYPE_PARAMS = {"axis": None, "dtype": None, "keepdims": False}


def _infer_sum_type(node: Node, dtype: DType) -> DType:
    """Return the parameter ``dtype`` of ``node``, or where it is None ``dtype`` of the input.

    Raises: DTypeError if either is bool or complex, or there is no such dtype.
    """
    result = dtype if node.params["dtype"] is None else dtype_of(node.params["dtype"])
    for checked in (dtype, result):
        check_kinds(node, "iuf", checked)
    return result


def _infer_mean_type(node: Node, dtype: DType) -> DType:
    """Return the dtype of a mean: the parameter ``dtype``, or where it is None that of the input.

    If that is an integer dtype, it is float64. ``node`` has the parameter ``dtype``.

    Raises: DTypeError if either is bool or complex, or there is no such dtype.
    """
    result = _infer_sum_type(node, dtype)
    return result if result.is_float else float64


def _cast_and_reduce(reduction_name: str) -> Callable[[Node, Entry], Entry]:
    """Return the FExpand that casts the input to the output's dtype and reduces it.

    ``reduction_name`` is the operator that reduces, such as "reduce_sum".
    """

    def expand(node: Node, x: Entry) -> Entry:
        """Cast x to the dtype of the output of ``node``, and reduce it.

        Raises: DTypeError if that dtype is unknown, ShapeError if the parameter ``axis`` is out of
        range, no int or listed twice.
        """
        dtype = known_dtype(node.entries[0])
        x = x if x.dtype is dtype else make("cast", x, dtype=dtype.name)
        return make(reduction_name, x, axis=node.params["axis"], keepdims=node.params["keepdims"])

    return expand


composite(
    name="sum",
    inputs=1,
    expand=_cast_and_reduce("reduce_sum"),
    params=DTYPE_PARAMS,
    shape=reduced_shape,
    types=_infer_sum_type,
    doc="the sum over axis, computed in dtype; 0 of no elements",
)
composite(
    name="prod",
    inputs=1,
    expand=_cast_and_reduce("reduce_prod"),
    params=DTYPE_PARAMS,
    shape=reduced_shape,
    types=_infer_sum_type,
    doc="the product over axis, computed in dtype; 1 of no elements",
)
composite(
    name="mean",
    inputs=1,
    expand=_cast_and_reduce("reduce_mean"),
    params=DTYPE_PARAMS,
    shape=reduced_shape,
    types=_infer_mean_type,
    doc="the mean over axis, computed in dtype; by default float64 for integers",
)


# Reductions of bits.

reduction(
    name="reduce_bitwise_and",
    aliases="reduce_and",
    kinds="iu",
    identity=lambda dtype: -1 if dtype.kind == "i" else (1 << 8 * dtype.nbytes) - 1,
    combine=lambda a, b: a & b,
    doc="the bits that are 1 in all elements over axis",
)
reduction(
    name="reduce_bitwise_or",
    aliases="reduce_or",
    kinds="iu",
    identity=lambda dtype: 0,
    combine=lambda a, b: a | b,
    doc="the bits that are 1 in any element over axis",
)
reduction(
    name="reduce_bitwise_xor",
    aliases="reduce_xor",
    kinds="iu",
    identity=lambda dtype: 0,
    combine=lambda a, b: a ^ b,
    doc="the bits that are 1 in an odd number of elements over axis",
)


# Means and variances.

VARIANCE_PARAMS = {**PARAMS, "correction": 0}


def _correction_param(node: Node) -> float:
    """Return the parameter ``correction`` of ``node`` as a float.

    Raises:
        ShapeError: If it is no int or float in the range of float64; a bool is none.
    """
    value = node.params["correction"]
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not is_number or not abs(value) <= float_info.max:
        raise ShapeError(f"{node.where} needs a finite number as correction, got {shown(value)}")
    return float(value)


def _infer_variance_shape(node: Node, shape: Shape) -> Shape:
    """Infer the shape, that of a reduction of ``shape``; check the parameter ``correction``.

    ``node`` has the parameters ``axis``, ``correction`` and ``keepdims``.

    Returns: None where the rank is unknown and matters.

    Raises: ShapeError if it is no finite number, or ``axis`` is out of range, no int or listed
    twice.
    """
    _correction_param(node)
    return reduced_shape(node, shape)  # type: ignore[no-any-return]


def _corrected_count(node: Node, x: Entry, correction: float, keepdims: bool) -> Any:
    """Return the number of reduced elements of ``x`` minus ``correction``, at least 0.

    ``keepdims`` says whether an entry keeps the reduced axes with length 1.

    Returns:
        A float, or an entry where the number depends on symbolic extents.

    Raises:
        ShapeError: If the parameter ``axis`` of ``node`` is out of range, no int or listed twice,
            or the rank of x is unknown.
    """
    count = numel(known_shape(x)[k] for k in _reduced_axes(node, x))
    if isinstance(count, int):
        return max(count - correction, 0.0)
    ones = make("reduce_sum", make("ones_like", x), axis=node.params["axis"], keepdims=keepdims)
    return make("maximum", ones - correction, 0.0)


def _variance(node: Node, x: Entry) -> Entry:
    """Expand to the sum of squared distances to the mean over the count minus ``correction``.

    A divisor below 0 counts as 0; the quotient is then infinite or NaN. ``node`` has the parameters
    ``axis``, ``correction`` and ``keepdims``.

    Raises: ShapeError if ``correction`` is no finite number, or ``axis`` is out of range, no int or
    listed twice; for a ``correction`` other than 0 also if the rank is unknown.
    """
    axis, keepdims = node.params["axis"], node.params["keepdims"]
    correction = _correction_param(node)
    d = x - make("reduce_mean", x, axis=axis, keepdims=True)
    if correction == 0:
        return make("reduce_mean", d * d, axis=axis, keepdims=keepdims)
    total = make("reduce_sum", d * d, axis=axis, keepdims=keepdims)
    variance: Entry = total / _corrected_count(node, x, correction, keepdims)
    return variance


def _standard_deviation(node: Node, x: Entry) -> Entry:
    """Expand std to the square root of the variance.

    ``node`` has the parameters that are passed on.

    Raises: ShapeError if ``correction`` is no finite number, or ``axis`` is out of range, no int or
    listed twice.
    """
    return make("sqrt", make("var", x, **node.params))


def _standard_deviation_gradient(node: Node, dy: Entry) -> list[Entry]:
    """Return the gradient of x: dy d / (y (count - correction)), 0 where all elements are equal.

    d is the distance to the mean, y the standard deviation. ``node`` is the forward node, with the
    parameters ``axis`` and ``correction``; ``dy`` is the gradient of its output.

    Raises: ShapeError if a rank is unknown, or a parameter is invalid.
    """
    x = node.inputs[0]
    y, dy = _keep_axes(node, x, node.entries[0]), _keep_axes(node, x, dy)
    d = x - make("reduce_mean", x, axis=node.params["axis"], keepdims=True)
    is_zero = make("equal", y, 0.0)
    slope = make("where", is_zero, 0.0, dy / make("where", is_zero, 1.0, y))
    return [d * slope / _corrected_count(node, x, _correction_param(node), keepdims=True)]


def _moments(node: Node, x: Entry) -> tuple[Entry, Entry]:
    """Expand moments to the mean and the variance of ``x`` along ``axis``.

    ``node`` has the parameters ``axis`` and ``keepdims``.

    Raises: ShapeError if that is out of range, no int or listed twice, or the rank is unknown.
    """
    axis, keepdims = node.params["axis"], node.params["keepdims"]
    mean = make("reduce_mean", x, axis=axis, keepdims=True)
    d = x - mean
    variance = make("reduce_mean", d * d, axis=axis, keepdims=keepdims)
    return make("reshape", mean, shape=known_shape(variance)), variance


def _infer_average_shape(node: Node, shape: Shape, weights: Shape) -> Shape:
    """Infer the shape, that of a reduction of ``shape``.

    ``node`` has the parameters ``axis`` and ``keepdims``.

    Raises: ShapeError if the shape ``weights`` does not broadcast to ``shape``, or ``axis`` is out
    of range, no int or listed twice.
    """
    check_broadcast(node, weights, shape, "the weights")
    return reduced_shape(node, shape)  # type: ignore[no-any-return]


def _average(node: Node, x: Entry, weights: Entry) -> Entry:
    """Expand average: the sum of weighted elements over the sum of the weights along ``axis``.

    ``node`` has the parameters that are passed on.

    Raises: ShapeError if the weights do not broadcast to x, the axis is out of range, no int or
    listed twice, or the rank of x is unknown.
    """
    w = make("broadcast_to", weights, shape=known_shape(x))
    return make("reduce_sum", x * w, **node.params) / make("reduce_sum", w, **node.params)


composite(
    name="var",
    inputs=1,
    expand=_variance,
    params=VARIANCE_PARAMS,
    shape=_infer_variance_shape,
    doc="the sum of squared distances to the mean over axis, divided by their number minus "
    "correction",
)
composite(
    name="std",
    aliases="reduce_std",
    inputs=1,
    expand=_standard_deviation,
    params=VARIANCE_PARAMS,
    shape=_infer_variance_shape,
    FGradient=_standard_deviation_gradient,
    doc="the square root of var; its gradient is 0 where it is 0",
)
composite(
    name="moments",
    inputs=1,
    results=2,
    expand=_moments,
    params=PARAMS,
    doc="the mean over axis, and the mean squared distance to it: two results",
)
composite(
    name="average",
    inputs=["x", "weights"],
    expand=_average,
    params=PARAMS,
    shape=_infer_average_shape,
    doc="the mean of x over axis weighted by weights, which broadcast to x",
)


# Norms.


def _order_param(node: Node) -> float:
    """Return the parameter ``ord`` of ``node``, the order of a norm, as a float, perhaps infinite.

    Raises:
        ShapeError: If it is no int or float, such as a bool or a text, or NaN.
    """
    value = node.params["ord"]
    if isinstance(value, bool) or not isinstance(value, (int, float)) or value != value:
        raise ShapeError(f"{node.where} needs a number, or inf, as ord, got {value!r}")
    return float(value)


def _infer_norm_shape(node: Node, shape: Shape) -> Shape:
    """Return the reduced ``shape``; norms of infinite order have no value for no elements.

    ``node`` has the parameters ``axis``, ``keepdims`` and ``ord``. None where the rank is unknown
    and matters.

    Raises: ShapeError if ``ord`` is no number, ``axis`` is out of range, no int, listed twice, or
    for an infinite order empty.
    """
    infer_shape = nonempty_shape if abs(_order_param(node)) == inf else reduced_shape
    return infer_shape(node, shape)  # type: ignore[no-any-return]


def _vector_norm(node: Node, x: Entry) -> Entry:
    """Expand to the norm of vectors along ``axis``, as numpy.linalg.vector_norm defines it.

    The order is the parameter ``ord`` of ``node``.

    Raises: ShapeError if it is no number, or the axis out of range, no int, listed twice, or for an
    infinite order empty; DTypeError if it is 0 and the dtype of ``x`` is unknown.
    """
    order, params = _order_param(node), {k: node.params[k] for k in PARAMS}
    if order == 2:
        return make("sqrt", make("reduce_sum", x * x, **params))
    magnitude = make("abs", x)
    if order in (inf, -inf):
        return make("reduce_max" if order > 0 else "reduce_min", magnitude, **params)
    if order == 0:
        nonzero = make("cast", make("not_equal", x, 0.0), dtype=known_dtype(x).name)
        return make("reduce_sum", nonzero, **params)
    if order == 1:
        return make("reduce_sum", magnitude, **params)
    return make("reduce_sum", magnitude**order, **params) ** (1 / order)


def _vector_norm_gradient(node: Node, dy: Entry) -> list[Entry | None]:
    """Return the gradient of the input: that of a norm, 0 where the norm is 0; None for order 0.

    For infinite orders dy is divided equally among the elements of the largest, for -inf the
    smallest magnitude. ``node`` is the forward node, with the parameters ``axis`` and ``ord``;
    ``dy`` is the gradient of its output.

    Raises: ShapeError if ``ord`` is no number or a rank is unknown; DTypeError if ``ord`` is
    infinite and the dtype of the input is unknown.
    """
    x, order = node.inputs[0], _order_param(node)
    y, dy = _keep_axes(node, x, node.entries[0]), _keep_axes(node, x, dy)
    if order == 0:
        return [None]
    sign, magnitude = make("sign", x), make("abs", x)
    if order == 1:
        return [dy * sign]
    if order in (inf, -inf):
        is_extremum = make("cast", make("equal", magnitude, y), dtype=known_dtype(x).name)
        count = make("reduce_sum", is_extremum, axis=node.params["axis"], keepdims=True)
        return [dy * sign * is_extremum / count]
    is_zero = make("equal", y, 0.0)
    ratio = magnitude / make("where", is_zero, 1.0, y)
    if order == 2:
        slope = sign * ratio
    else:
        element_is_zero = make("equal", magnitude, 0.0)
        slope = sign * make("where", element_is_zero, 1.0, ratio) ** (order - 1)
    return [make("where", is_zero, 0.0, dy * slope)]


composite(
    name="vector_norm",
    inputs=1,
    expand=_vector_norm,
    params={**PARAMS, "ord": 2},
    shape=_infer_norm_shape,
    FGradient=_vector_norm_gradient,
    doc="the norm of vectors along axis, of the order ord; its gradient is 0 where it is 0",
)
composite(
    name="reduce_l1",
    inputs=1,
    expand=lambda node, x: make("vector_norm", x, ord=1, **node.params),
    params=PARAMS,
    shape=reduced_shape,
    doc="the l1 norm along axis",
)
composite(
    name="reduce_l2",
    aliases="reduce_euclidean_norm",
    inputs=1,
    expand=lambda node, x: make("vector_norm", x, ord=2, **node.params),
    params=PARAMS,
    shape=reduced_shape,
    doc="the l2 norm along axis",
)
composite(
    name="reduce_linf",
    inputs=1,
    expand=lambda node, x: make("vector_norm", x, ord=inf, **node.params),
    params=PARAMS,
    shape=nonempty_shape,
    doc="the linf norm along axis",
)


def _peak_to_peak(node: Node, x: Entry) -> Entry:
    """Expand ptp: the maximum less the minimum along ``axis``.

    ``node`` has the parameters that are passed on.

    Raises: ShapeError if that is out of range, no int, listed twice or empty.
    """
    return make("reduce_max", x, **node.params) - make("reduce_min", x, **node.params)


composite(
    name="ptp",
    inputs=1,
    expand=_peak_to_peak,
    params=PARAMS,
    shape=nonempty_shape,
    types=common_dtype("iuf"),
    doc="the largest minus the smallest element over axis",
)


# Statistics of the elements that are not NaN.


def _reduce_without_nan(node: Node, x: Entry, reduction_name: str, identity: float) -> Entry:
    """Reduce ``x`` by the operator ``reduction_name`` with NaN replaced by ``identity``.

    ``node`` has the parameters ``axis`` and ``keepdims``.

    Raises: ShapeError if the axis is out of range, no int, listed twice or, for a maximum or
    minimum, empty.
    """
    numbers = make("where", make("isnan", x), identity, x)
    return make(reduction_name, numbers, **node.params)


def _extremum_without_nan(node: Node, x: Entry, reduction_name: str, identity: float) -> Entry:
    """Return the extremum of the elements that are not NaN; NaN where all are.

    Args:
        node: The node, whose parameters are those of the reduction.
        x: The input.
        reduction_name: "reduce_max" or "reduce_min".
        identity: The element to put in place of NaN.

    Raises: ShapeError if the parameter ``axis`` is out of range, no int, listed twice or empty.
    """
    extremum = _reduce_without_nan(node, x, reduction_name, identity)
    all_nan = make("reduce_all", make("isnan", x), **node.params)
    return make("where", all_nan, nan, extremum)


def _count_without_nan(node: Node, x: Entry, keepdims: bool) -> Entry:
    """Return the number of elements along ``axis`` that are not NaN, in the dtype of ``x``.

    ``keepdims`` says whether the reduced axes stay with length 1. ``node`` has the parameter
    ``axis``.

    Raises: DTypeError if that dtype is unknown, ShapeError if the axis is out of range, no int or
    listed twice.
    """
    is_number = make("cast", make("logical_not", make("isnan", x)), dtype=known_dtype(x).name)
    return make("reduce_sum", is_number, axis=node.params["axis"], keepdims=keepdims)


def _nanmean(node: Node, x: Entry) -> Entry:
    """Expand nanmean: the sum of the elements that are not NaN over their number, along ``axis``.

    It is NaN where there are none. ``node`` has the parameters ``axis`` and ``keepdims``.

    Raises: ShapeError if the axis is out of range, no int or listed twice, DTypeError if the dtype
    of ``x`` is unknown.
    """
    total = make("nansum", x, axis=node.params["axis"], keepdims=node.params["keepdims"])
    return total / _count_without_nan(node, x, node.params["keepdims"])


def _nanvar(node: Node, x: Entry) -> Entry:
    """Expand to the variance of the elements that are not NaN; NaN where too few are left.

    These are no more than the parameter ``correction`` of ``node``.

    Raises: ShapeError if that is no finite number, or ``axis`` is out of range, no int or listed
    twice; DTypeError if the dtype of ``x`` is unknown.
    """
    axis, keepdims = node.params["axis"], node.params["keepdims"]
    d = x - make("nanmean", x, axis=axis, keepdims=True)
    total = make("nansum", d * d, axis=axis, keepdims=keepdims)
    count = _count_without_nan(node, x, keepdims) - _correction_param(node)
    return total / make("where", count > 0.0, count, nan)


composite(
    name="nansum",
    inputs=1,
    expand=lambda node, x: _reduce_without_nan(node, x, "reduce_sum", 0.0),
    params=PARAMS,
    shape=reduced_shape,
    doc="the sum over axis of the elements that are not NaN",
)
composite(
    name="nanprod",
    inputs=1,
    expand=lambda node, x: _reduce_without_nan(node, x, "reduce_prod", 1.0),
    params=PARAMS,
    shape=reduced_shape,
    doc="the product over axis of the elements that are not NaN",
)
composite(
    name="nanmax",
    inputs=1,
    expand=lambda node, x: _extremum_without_nan(node, x, "reduce_max", -inf),
    params=PARAMS,
    shape=nonempty_shape,
    doc="the largest element over axis that is not NaN; NaN if all are",
)
composite(
    name="nanmin",
    inputs=1,
    expand=lambda node, x: _extremum_without_nan(node, x, "reduce_min", inf),
    params=PARAMS,
    shape=nonempty_shape,
    doc="the smallest element over axis that is not NaN; NaN if all are",
)
composite(
    name="nanmean",
    inputs=1,
    expand=_nanmean,
    params=PARAMS,
    shape=reduced_shape,
    doc="the mean over axis of the elements that are not NaN",
)
composite(
    name="nanvar",
    inputs=1,
    expand=_nanvar,
    params=VARIANCE_PARAMS,
    shape=_infer_variance_shape,
    doc="the variance over axis of the elements that are not NaN",
)
composite(
    name="nanstd",
    inputs=1,
    expand=lambda node, x: make("sqrt", make("nanvar", x, **node.params)),
    params=VARIANCE_PARAMS,
    shape=_infer_variance_shape,
    doc="the square root of nanvar",
)


# Order statistics, by sorting.


def _sorted_rows(node: Node, x: Entry) -> tuple[Entry, int]:
    """Return ``x`` with the reduced axes as one last axis, sorted, and the length of that.

    The axes are the parameter ``axis`` of ``node``, None for all. NaN is sorted to the end.

    Raises:
        ShapeError: If the length is symbolic or 0, an axis is out of range, no int or listed twice,
            or the rank is unknown.
    """
    shape, axes = known_shape(x), _reduced_axes(node, x)
    other_axes = tuple(k for k in range(len(shape)) if k not in axes)
    count = numel(shape[k] for k in axes)
    if isinstance(count, Size) or count < 1:
        raise ShapeError(
            f"{node.where} needs axes of known lengths, at least 1, to look up a rank; got "
            f"{count} element(s) along {axes}"
        )
    rows = make("transpose", x, axes=(*other_axes, *axes))
    rows = make("reshape", rows, shape=(*(shape[k] for k in other_axes), count))
    return make("sort", rows, axis=-1), count


def _quantile_at(node: Node, x: Entry, q: float) -> Entry:
    """Return the value at rank ``q`` * (count - 1), interpolated linearly, for q from 0 to 1.

    It is NaN where any element along ``axis`` is. ``node`` has the parameters ``axis`` and
    ``keepdims``.

    Raises: ShapeError if the number of these is symbolic or 0, an axis is out of range, no int or
    listed twice, or the rank is unknown.
    """
    rows, count = _sorted_rows(node, x)
    rank = q * (count - 1)
    lower = int(rank)
    value = rows[..., lower : lower + 1]
    weight = rank - lower
    if weight:
        value = value + (rows[..., lower + 1 : lower + 2] - value) * weight
    last = rows[..., count - 1 : count]  # NaN is sorted to the end
    value = make("where", make("isnan", last), last, value)
    return make("reshape", value, shape=reduced_shape(node, known_shape(x)))


def _quantile(node: Node, x: Entry) -> Entry:
    """Expand to the quantile ``q``, interpolated linearly, along the parameter ``axis``.

    ``node`` has the parameters ``axis``, ``keepdims`` and ``q``.

    Raises:
        ShapeError: If ``q`` is no number from 0 to 1, the axis is empty or of symbolic length, out
            of range, no int or listed twice, or the rank is unknown.
    """
    q = node.params["q"]
    if isinstance(q, bool) or not isinstance(q, (int, float)) or not 0 <= q <= 1:
        raise ShapeError(f"{node.where} needs a number from 0 to 1 as q, got {q!r}")
    return _quantile_at(node, x, float(q))


composite(
    name="median",
    inputs=1,
    expand=lambda node, x: _quantile_at(node, x, 0.5),
    params=PARAMS,
    doc="the middle element over axis, or the mean of the two middle ones; NaN if any is NaN",
)
composite(
    name="quantile",
    inputs=1,
    expand=_quantile,
    params={"q": 0.5, **PARAMS},
    doc="the value below which a part q of the elements over axis lies, interpolated linearly "
    "between two elements",
)


# Differences.


def _diff(node: Node, x: Entry) -> Entry:
    """Expand to differences of neighbours along ``axis``, taken ``n`` times; an axis of 0 stays.

    For 0 times it is ``x`` itself. ``node`` has the parameters ``axis``, one int, and ``n``.

    Raises:
        ShapeError: If ``n`` is no int of at least 0, ``axis`` is no int or out of range, or the
            rank is unknown.
    """
    axis, n = normalize_axis(node, len(known_shape(x)), node.params["axis"]), node.params["n"]
    if isinstance(n, bool) or not isinstance(n, int) or n < 0:
        raise ShapeError(f"{node.where} needs an int of at least 0 as n, got {n!r}")
    leading: tuple[Any, ...] = (slice(None),) * axis
    for _ in range(n):
        length: Extent = known_shape(x)[axis]
        if length == 0:
            return x
        x = x[(*leading, slice(1, None))] - x[(*leading, slice(None, -1))]
    return x


composite(
    name="diff",
    inputs=1,
    expand=_diff,
    params={"n": 1, "axis": -1},
    types=common_dtype("iuf"),
    doc="the differences of neighbouring elements along axis, taken n times; the axis is shorter "
    "by n",
)
