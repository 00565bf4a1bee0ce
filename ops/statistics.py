"""Statistics by folds: sums in other dtypes, variances, norms, medians; NaN left out.

``axis`` and ``keepdims`` are those of the reductions. What is a composite fuses: mean and variance
of `moments` are one kernel where rows fit.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf, isfinite, nan
from typing import Any

from passkit.errors import ShapeError
from passkit.graph.node import Entry, Node, known_shape
from passkit.ops.composites import composite
from passkit.ops.helpers import (
    check_broadcast,
    check_kinds,
    common_dtype,
    make,
    normalize_axes,
    normalize_axis,
)
from passkit.ops.reduce import nonempty_shape, reduced_shape, reduction
from passkit.values.dtype import DType, dtype_of, float64
from passkit.values.size import Extent, Shape, Size, numel

PARAMS = {"axis": None, "keepdims": False}


def _folded(node: Node, x: Entry) -> tuple[int, ...]:
    return normalize_axes(node, len(known_shape(x)), node.params["axis"])


def _spread(node: Node, x: Entry, value: Entry) -> Entry:
    """A result, or its gradient, with the folded axes in it as 1."""
    axes = _folded(node, x)
    shape = tuple(1 if k in axes else n for k, n in enumerate(known_shape(x)))
    return value if value.shape == shape else make("reshape", value, shape=shape)


# Sums in a dtype.


def _summing_type(kinds: str, whole: DType | None = None) -> Callable[[Node, DType], DType]:
    def infer_type(node: Node, dtype: DType) -> DType:
        check_kinds(node, kinds, dtype)
        given = node.params["dtype"]
        found = dtype if given is None else dtype_of(given)
        return found if whole is None or found.is_float else whole

    return infer_type


def _cast_first(name: str) -> Callable[[Node, Entry], Entry]:
    def expand(node: Node, x: Entry) -> Entry:
        wanted = node.entries[0].dtype
        assert wanted is not None
        x = x if x.dtype is wanted else make("cast", x, dtype=wanted.name)
        return make(name, x, axis=node.params["axis"], keepdims=node.params["keepdims"])

    return expand


for _name, _doc in (("sum", "the sum; 0 of nothing"), ("prod", "the product; 1 of nothing")):
    composite(
        _name,
        1,
        _cast_first(f"reduce_{_name}"),
        f"{_doc}; of x in dtype, if that is given",
        {"axis": None, "dtype": None, "keepdims": False},
        shape=reduced_shape,
        types=_summing_type("iuf"),
    )
composite(
    "mean",
    1,
    _cast_first("reduce_mean"),
    "the sum divided by the count; of x in dtype, of whole numbers in float64",
    {"axis": None, "dtype": None, "keepdims": False},
    shape=reduced_shape,
    types=_summing_type("iuf", float64),
)

reduction("reduce_bitwise_and", "iu", lambda d: -1 if d.kind == "i" else (1 << 8 * d.nbytes) - 1,
          lambda a, b: a & b, "the bits that all have", aliases="reduce_and")  # fmt: skip
reduction("reduce_bitwise_or", "iu", lambda d: 0, lambda a, b: a | b, "the bits that any has",
          aliases="reduce_or")  # fmt: skip
reduction("reduce_bitwise_xor", "iu", lambda d: 0, lambda a, b: a ^ b,
          "the bits that an odd number have", aliases="reduce_xor")  # fmt: skip


# Variances.


def _correction(node: Node) -> float:
    """The parameter ``correction``. Raises: ShapeError for what is no finite number."""
    given = node.params["correction"]
    if isinstance(given, bool) or not isinstance(given, (int, float)) or not isfinite(given):
        raise ShapeError(f"{node.where} needs a finite number as correction, got {given!r}")
    return float(given)


def _corrected_shape(node: Node, shape: Shape) -> Shape:
    _correction(node)
    return reduced_shape(node, shape)  # type: ignore[no-any-return]


def _less(node: Node, x: Entry, correction: float, keepdims: bool) -> Any:
    """How many elements are folded, minus ``correction`` but at least 0."""
    count = numel(known_shape(x)[k] for k in _folded(node, x))
    if isinstance(count, int):
        return max(count - correction, 0.0)
    ones = make("reduce_sum", make("ones_like", x), axis=node.params["axis"], keepdims=keepdims)
    return make("maximum", ones - correction, 0.0)


def _variance(node: Node, x: Entry) -> Entry:
    """The sum of squared distances to the mean, over the count minus ``correction``."""
    axis, keepdims = node.params["axis"], node.params["keepdims"]
    correction = _correction(node)
    d = x - make("reduce_mean", x, axis=axis, keepdims=True)
    if correction == 0:
        return make("reduce_mean", d * d, axis=axis, keepdims=keepdims)
    total = make("reduce_sum", d * d, axis=axis, keepdims=keepdims)
    out: Entry = total / _less(node, x, correction, keepdims)
    return out


def _deviation(node: Node, x: Entry) -> Entry:
    return make("sqrt", make("var", x, **node.params))


def _deviation_gradient(node: Node, dy: Entry) -> list[Entry]:
    """0 where all elements are equal."""
    x = node.inputs[0]
    y, dy = _spread(node, x, node.entries[0]), _spread(node, x, dy)
    d = x - make("reduce_mean", x, axis=node.params["axis"], keepdims=True)
    flat = make("equal", y, 0.0)
    slope = make("where", flat, 0.0, dy / make("where", flat, 1.0, y))
    return [d * slope / _less(node, x, _correction(node), keepdims=True)]


composite(
    "var",
    1,
    _variance,
    "the squared distances to the mean, summed, over count - correction",
    {**PARAMS, "correction": 0},
    shape=_corrected_shape,
)
composite(
    "std",
    1,
    _deviation,
    "the root of var; its gradient is 0 where that is 0",
    {**PARAMS, "correction": 0},
    shape=_corrected_shape,
    aliases="reduce_std",
    FGradient=_deviation_gradient,
)


def _moments(node: Node, x: Entry) -> tuple[Entry, Entry]:
    axis, keepdims = node.params["axis"], node.params["keepdims"]
    mean = make("reduce_mean", x, axis=axis, keepdims=True)
    d = x - mean
    variance = make("reduce_mean", d * d, axis=axis, keepdims=keepdims)
    return make("reshape", mean, shape=known_shape(variance)), variance


composite("moments", 1, _moments, "the mean, and the mean squared distance to it", PARAMS,
          results=2)  # fmt: skip


def _average_shape(node: Node, shape: Shape, weights: Shape) -> Shape:
    check_broadcast(node, weights, shape, "the weights")
    return reduced_shape(node, shape)  # type: ignore[no-any-return]


def _average(node: Node, x: Entry, weights: Entry) -> Entry:
    w = make("broadcast_to", weights, shape=known_shape(x))
    return make("reduce_sum", x * w, **node.params) / make("reduce_sum", w, **node.params)


composite("average", ["x", "weights"], _average,
          "the mean of x by weights, which broadcast to it", PARAMS,
          shape=_average_shape)  # fmt: skip


# Norms.


def _order(node: Node) -> float:
    """The parameter ``ord``. Raises: ShapeError for what is no number."""
    given = node.params["ord"]
    if isinstance(given, bool) or not isinstance(given, (int, float)) or given != given:
        raise ShapeError(f"{node.where} needs a number, or inf, as ord, got {given!r}")
    return float(given)


def _vector_norm(node: Node, x: Entry) -> Entry:
    """Source: numpy.linalg.vector_norm."""
    order, rest = _order(node), {k: node.params[k] for k in PARAMS}
    if order == 2:
        return make("sqrt", make("reduce_sum", x * x, **rest))
    size = make("abs", x)
    if order in (inf, -inf):
        return make("reduce_max" if order > 0 else "reduce_min", size, **rest)
    if order == 0:
        assert x.dtype is not None
        some = make("cast", make("not_equal", x, 0.0), dtype=x.dtype.name)
        return make("reduce_sum", some, **rest)
    if order == 1:
        return make("reduce_sum", size, **rest)
    return make("reduce_sum", size**order, **rest) ** (1 / order)


def _norm_gradient(node: Node, dy: Entry) -> list[Entry | None]:
    """0 where the norm is; among the largest of ord inf each takes its share."""
    x, order = node.inputs[0], _order(node)
    y, dy = _spread(node, x, node.entries[0]), _spread(node, x, dy)
    if order == 0:
        return [None]
    sign, size = make("sign", x), make("abs", x)
    if order == 1:
        return [dy * sign]
    if order in (inf, -inf):
        assert x.dtype is not None
        hit = make("cast", make("equal", size, y), dtype=x.dtype.name)
        many = make("reduce_sum", hit, axis=node.params["axis"], keepdims=True)
        return [dy * sign * hit / many]
    none = make("equal", y, 0.0)
    ratio = size / make("where", none, 1.0, y)
    if order == 2:
        slope = sign * ratio
    else:
        empty = make("equal", size, 0.0)
        slope = sign * make("where", empty, 1.0, ratio) ** (order - 1)
    return [make("where", none, 0.0, dy * slope)]


composite(
    "vector_norm",
    1,
    _vector_norm,
    "the length of vectors along axis: ord 1, 2, inf or any other; its gradient at 0 is 0",
    {**PARAMS, "ord": 2},
    shape=lambda node, shape: (
        nonempty_shape if abs(_order(node)) == inf else reduced_shape
    )(node, shape),
    FGradient=_norm_gradient,
)
for _name, _ord in (("l1", 1), ("l2", 2), ("linf", inf)):
    composite(
        f"reduce_{_name}",
        1,
        lambda node, x, ord=_ord: make("vector_norm", x, ord=ord, **node.params),
        f"the {_name} norm along axis",
        PARAMS,
        shape=nonempty_shape if _ord == inf else reduced_shape,
        aliases="reduce_euclidean_norm" if _ord == 2 else "",
    )
composite("ptp", 1, lambda node, x: make("reduce_max", x, **node.params)
          - make("reduce_min", x, **node.params), "the largest less the smallest", PARAMS,
          shape=nonempty_shape, types=common_dtype("iuf"))  # fmt: skip


# NaN left out.


def _without(fold: str, instead: Callable[[Entry], Any]) -> Callable[[Node, Entry], Entry]:
    def expand(node: Node, x: Entry) -> Entry:
        kept = make("where", make("isnan", x), instead(x), x)
        return make(fold, kept, **node.params)

    return expand


def _all_nan(node: Node, x: Entry, out: Entry) -> Entry:
    """NaN where nothing else was."""
    none = make("reduce_all", make("isnan", x), **node.params)
    return make("where", none, nan, out)


def _nan_count(node: Node, x: Entry, keepdims: bool) -> Entry:
    assert x.dtype is not None
    some = make("cast", make("logical_not", make("isnan", x)), dtype=x.dtype.name)
    return make("reduce_sum", some, axis=node.params["axis"], keepdims=keepdims)


def _nanmean(node: Node, x: Entry) -> Entry:
    total = make("nansum", x, axis=node.params["axis"], keepdims=node.params["keepdims"])
    return total / _nan_count(node, x, node.params["keepdims"])


def _nanvar(node: Node, x: Entry) -> Entry:
    axis, keepdims = node.params["axis"], node.params["keepdims"]
    d = x - make("nanmean", x, axis=axis, keepdims=True)
    total = make("nansum", d * d, axis=axis, keepdims=keepdims)
    left = _nan_count(node, x, keepdims) - _correction(node)
    return total / make("where", left > 0.0, left, nan)


def _nanstd(node: Node, x: Entry) -> Entry:
    return make("sqrt", make("nanvar", x, **node.params))


composite("nansum", 1, _without("reduce_sum", lambda x: 0.0), "the sum of what is not NaN", PARAMS,
          shape=reduced_shape)  # fmt: skip
composite("nanprod", 1, _without("reduce_prod", lambda x: 1.0), "the product of what is not NaN",
          PARAMS, shape=reduced_shape)  # fmt: skip
for _name, _far in (("max", -inf), ("min", inf)):
    composite(
        f"nan{_name}",
        1,
        lambda node, x, name=_name, far=_far: _all_nan(
            node, x, _without(f"reduce_{name}", lambda x: far)(node, x)
        ),
        f"the {'largest' if _name == 'max' else 'smallest'} that is not NaN; NaN if all are",
        PARAMS,
        shape=nonempty_shape,
    )
composite("nanmean", 1, _nanmean, "the mean of what is not NaN", PARAMS, shape=reduced_shape)
composite("nanvar", 1, _nanvar, "the variance of what is not NaN", {**PARAMS, "correction": 0},
          shape=_corrected_shape)  # fmt: skip
composite("nanstd", 1, _nanstd, "the root of nanvar", {**PARAMS, "correction": 0},
          shape=_corrected_shape)  # fmt: skip


# Order statistics: sorted, then looked up.


def _sorted_rows(node: Node, x: Entry) -> tuple[Entry, int]:
    """The folded axes as one last axis, sorted; how long it is."""
    shape, axes = known_shape(x), _folded(node, x)
    kept = tuple(k for k in range(len(shape)) if k not in axes)
    count = numel(shape[k] for k in axes)
    if isinstance(count, Size) or count < 1:
        raise ShapeError(
            f"{node.where} needs axes of known lengths, at least 1, to look up a rank; got "
            f"{count} element(s) along {axes}"
        )
    rows = make("transpose", x, axes=(*kept, *axes))
    rows = make("reshape", rows, shape=(*(shape[k] for k in kept), count))
    return make("sort", rows, axis=-1), count


def _ranked(node: Node, x: Entry, q: float) -> Entry:
    """The value at rank q * (count - 1), between neighbours on a line; NaN where any is."""
    rows, count = _sorted_rows(node, x)
    at = q * (count - 1)
    low = int(at)
    value = _at(rows, low)
    part = at - low
    if part:
        value = value + (_at(rows, low + 1) - value) * part
    last = _at(rows, count - 1)  # NaN is sorted to the end
    value = make("where", make("isnan", last), last, value)
    axes = _folded(node, x)
    shape = tuple(1 if k in axes else n for k, n in enumerate(known_shape(x)))
    if not node.params["keepdims"]:
        shape = tuple(n for k, n in enumerate(known_shape(x)) if k not in axes)
    return make("reshape", value, shape=shape)


def _at(rows: Entry, k: int) -> Entry:
    return rows[..., k : k + 1]


def _quantile(node: Node, x: Entry) -> Entry:
    q = node.params["q"]
    if isinstance(q, bool) or not isinstance(q, (int, float)) or not 0 <= q <= 1:
        raise ShapeError(f"{node.where} needs a number from 0 to 1 as q, got {q!r}")
    return _ranked(node, x, float(q))


composite("median", 1, lambda node, x: _ranked(node, x, 0.5),
          "the middle element, or the mean of the two; NaN if any is", PARAMS)  # fmt: skip
composite("quantile", 1, _quantile, "the element that a part q lies below, between two on a line",
          {"q": 0.5, **PARAMS})  # fmt: skip


# Differences.


def _diff(node: Node, x: Entry) -> Entry:
    axis, times = normalize_axis(node, len(known_shape(x)), node.params["axis"]), node.params["n"]
    if isinstance(times, bool) or not isinstance(times, int) or times < 0:
        raise ShapeError(f"{node.where} needs an int of at least 0 as n, got {times!r}")
    lead: tuple[Any, ...] = (slice(None),) * axis
    for _ in range(times):
        length: Extent = known_shape(x)[axis]
        if length == 0:
            return x
        x = x[(*lead, slice(1, None))] - x[(*lead, slice(None, -1))]
    return x


composite("diff", 1, _diff, "each element along axis less the one before, n times",
          {"n": 1, "axis": -1}, types=common_dtype("iuf"))  # fmt: skip
