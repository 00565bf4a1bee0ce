"""Scans: at each step along an axis what all elements so far come to.

``axis`` may be left out for a vector only. ``exclusive`` leaves this element out, ``reverse`` goes
from the last to the first, as in TensorFlow. The result has the input's dtype: integers wrap; sums
and products of floats are accumulated in float64, each result is rounded once.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import TYPE_CHECKING, Any

from passkit import ast
from passkit.errors import ShapeError
from passkit.graph.node import Entry, Node, known_shape
from passkit.graph.op import Op, OpPattern, register_op
from passkit.ops.composites import composite
from passkit.ops.helpers import (
    add_aliases,
    as_replacement,
    check_kinds,
    common_dtype,
    make,
    normalize_axis,
)
from passkit.ops.reduce import highest, lowest
from passkit.values.dtype import DType, dtype_of, float64, int32
from passkit.values.size import Shape

if TYPE_CHECKING:
    from passkit.ast import Expr, Scan

PARAMS = {"axis": None, "exclusive": False, "reverse": False}


def scan_axis(node: Node, rank: int) -> int:
    """The axis that is scanned. Raises: ShapeError when none is named and there are several."""
    axis = node.params["axis"]
    if axis is None and rank != 1:
        raise ShapeError(
            f"{node.where} needs an axis for an input of rank {rank}; name one, or reshape it to "
            f"(-1,)"
        )
    return normalize_axis(node, rank, 0 if axis is None else axis)


def _kept_shape(node: Node, shape: Shape) -> Shape:
    """The input's shape, once the axis is checked."""
    scan_axis(node, len(shape))
    return shape


def _one_step(node: Node) -> Entry | None:
    """A scan over one step is its input."""
    x = node.inputs[0]
    if node.params["exclusive"] or x.shape is None or x.shape[scan_axis(node, len(x.shape))] != 1:
        return None
    return as_replacement(node, x)


def wide(dtype: DType) -> DType:
    """The dtype in which a scan of ``dtype`` is accumulated where that may round."""
    return float64 if dtype.is_float else dtype


def scan(
    name: str,
    kinds: str,
    identity: Callable[[DType], Any],
    combine: Callable[[Expr, Expr], Expr],
    gradient: Callable[..., Any],
    doc: str,
    *,
    rounds: bool = True,
    aliases: str = "",
) -> Op:
    """Register ``name`` with what all scans share; ``rounds`` says that combining may round."""

    def fold(node: Node) -> Scan:
        dtype = node.inputs[0].dtype
        assert dtype is not None
        acc = wide(dtype) if rounds else dtype
        same = acc is dtype
        return ast.Scan(
            axis=scan_axis(node, len(known_shape(node.inputs[0]))),
            identity=ast.const(identity(acc), acc),
            combine=combine(ast.left(acc), ast.right(acc)),
            exclusive=node.params["exclusive"],
            reverse=node.params["reverse"],
            prepare=None if same else lambda x: ast.cast(x, acc),
            finish=None if same else lambda total: ast.cast(total, dtype),
        )

    op = register_op(name, num_inputs=1, params=PARAMS, doc=doc)
    op.set_attr("FScan", fold)
    op.set_attr("FInferShape", _kept_shape)
    op.set_attr("FInferType", common_dtype(kinds))
    op.set_attr("FSimplify", _one_step)
    op.set_attr("FGradient", gradient)
    op.set_attr("TOpPattern", OpPattern.REDUCE)
    op.set_attr("TOpCost", "expensive")
    add_aliases(op, aliases)
    return op


# Gradients.


def _again(node: Node, x: Entry, name: str, **params: Any) -> Entry:
    """Another scan of ``x`` along the same axis, in the same direction unless told otherwise."""
    axis = scan_axis(node, len(known_shape(node.inputs[0])))
    return make(name, x, **{**node.params, "axis": axis, **params})


def _back(node: Node, x: Entry, name: str = "cumsum") -> Entry:
    """A scan of ``x`` from the other end: for each element all results that it takes part in."""
    return _again(node, x, name, reverse=not node.params["reverse"])


def _cumsum_gradient(node: Node, dy: Entry) -> list[Entry]:
    return [_back(node, dy)]


def _cumprod_gradient(node: Node, dy: Entry) -> list[Entry]:
    """The sum of dy * y behind an element, over the element; right where elements are 0.

    In front of the first zero that quotient is good. At the first zero the results are those with
    1 in its place; behind it every product keeps a zero.
    """
    x = node.inputs[0]
    zero = make("equal", x, 0)
    zeros = _again(node, make("cast", zero, dtype="int32"), "cumsum", exclusive=False)
    one = make("ones_like", x)
    quotient = _back(node, dy * node.entries[0]) / make("where", zero, one, x)
    first = make("logical_and", zero, make("equal", zeros, 1))
    without = _again(node, make("where", first, one, x), "cumprod")
    at_first = make("where", first, _back(node, dy * without), 0.0)
    return [make("where", make("equal", zeros, 0), quotient, at_first)]


def _extreme_gradient(node: Node, dy: Entry) -> list[Entry]:
    """Each result's gradient goes to the element that it is, the first of equal ones."""
    x, name = node.inputs[0], node.op.name if node.op else ""
    axis, down = scan_axis(node, len(known_shape(x))), node.params["reverse"]
    before = _again(node, x, name, exclusive=True)
    ones = make("cast", make("ones_like", x), dtype="int32")
    place = make("cumsum", ones, axis=axis, exclusive=True)
    beats = make("greater" if name == "cummax" else "less", x, before)
    first = make("equal", _again(node, ones, "cumsum", exclusive=True), 0)
    record = make("logical_or", beats, first)
    if down:
        at = _again(node, make("where", record, place, highest(int32)), "cummin")
    else:
        at = _again(node, make("where", record, place, lowest(int32)), "cummax")
    return [make("add_along_axis", make("zeros_like", x), at, dy, axis=axis)]


def _log_gradient(node: Node, dy: Entry) -> list[Entry]:
    """The sum of dy * exp(x - y) over the results y behind x, positive and negative dy apart.

    Each is the exponential of a running logarithm, so nothing overflows. Elements and results of
    -inf have no part in anything.
    """
    x, y = node.inputs[0], node.entries[0]
    y = make("where", make("equal", y, -inf), 0.0, y)

    def share(weight: Entry) -> Entry:
        some = make("greater", weight, 0.0)
        log = make("where", some, make("log", make("where", some, weight, 1.0)), -inf)
        return make("exp", x + _back(node, log - y, "logcumsumexp"))

    return [share(dy) - share(-dy)]


def _log_add(a: Expr, b: Expr) -> Expr:
    """log(exp(a) + exp(b)); infinities are what they are."""
    top, low = ast.maximum(a, b), ast.minimum(a, b)
    return ast.where(ast.equal(ast.abs(top), inf), top, top + ast.log1p(ast.exp(low - top)))


# name, kinds, identity, combination of two, gradient, meaning
scan("cumsum", "iuf", lambda d: 0, lambda a, b: a + b, _cumsum_gradient, "the sums so far",
     aliases="running_sum")  # fmt: skip
scan("cumprod", "iuf", lambda d: 1, lambda a, b: a * b, _cumprod_gradient, "the products so far")
scan(
    "cummax",
    "iuf",
    lowest,
    lambda a, b: ast.maximum(a, b),
    _extreme_gradient,
    "the largest so far; NaN from the first on",
    rounds=False,
)
scan(
    "cummin",
    "iuf",
    highest,
    lambda a, b: ast.minimum(a, b),
    _extreme_gradient,
    "the smallest so far; NaN from the first on",
    rounds=False,
)
scan(
    "logcumsumexp",
    "f",
    lambda d: -inf,
    _log_add,
    _log_gradient,
    "log(cumsum(exp(x)))",
    aliases="cumulative_logsumexp",
)


# The array API's spelling.


def _cumulative(name: str, start: int) -> Callable[[Node, Entry], Entry]:
    def expand(node: Node, x: Entry) -> Entry:
        dtype, shape = node.params["dtype"], known_shape(x)
        axis = scan_axis(node, len(shape))
        x = x if dtype is None else make("cast", x, dtype=dtype)
        out = make(name, x, axis=axis)
        if not node.params["include_initial"]:
            return out
        assert x.dtype is not None
        lead = (*shape[:axis], 1, *shape[axis + 1 :])
        first = make("full", shape=lead, fill_value=start, dtype=x.dtype.name)
        return make("concat", first, out, axis=axis)

    return expand


def _cumulative_type(node: Node, dtype: DType) -> DType:
    check_kinds(node, "iuf", dtype)
    given = node.params["dtype"]
    return dtype if given is None else dtype_of(given)


for _name, _of, _start, _what in (
    ("cumulative_sum", "cumsum", 0, "sums"),
    ("cumulative_prod", "cumprod", 1, "products"),
):
    composite(
        _name,
        1,
        _cumulative(_of, _start),
        f"the {_what} so far, in dtype; with include_initial behind that of nothing",
        {"axis": None, "dtype": None, "include_initial": False},
        types=_cumulative_type,
    )
