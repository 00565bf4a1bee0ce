"""More around an array, or less: padding by constants, by its own elements, shifting, cropping."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from passkit import ast
from passkit.errors import GraphError, ShapeError, nearest
from passkit.graph.infer import demand, show_shape
from passkit.graph.node import Entry, Node, known_shape
from passkit.graph.op import REQUIRED, OpPattern, register_op
from passkit.ops.helpers import int_param, make, normalize_axis, parse_extents
from passkit.ops.ranges import check_number
from passkit.ops.shaping import move, part
from passkit.values.dtype import DType
from passkit.values.size import Extent, Shape

if TYPE_CHECKING:
    from passkit.ast import Expr
    from passkit.space.reads import Index, Reader

Widths = tuple[tuple[Extent, Extent], ...]
MODES = ("constant", "edge", "reflect", "symmetric", "wrap")


def widths_of(node: Node, rank: int, given: Any, what: str = "pad_width") -> Widths:
    """(before, after) of each axis, from an int, a pair for all axes, or a pair for each.

    Raises: ShapeError for anything else.
    """
    if not isinstance(given, tuple):
        given = ((given, given),)
    if all(not isinstance(w, tuple) for w in given):
        given = (given if len(given) == 2 else (*given, *given),)
    pairs = given * rank if len(given) == 1 else given
    if len(pairs) != rank or any(not isinstance(w, tuple) or len(w) != 2 for w in pairs):
        raise ShapeError(
            f"{node.where} needs an int, a pair, or a pair for each of {rank} axes as {what}, got "
            f"{node.params[what]}"
        )
    return tuple((a, b) for a, b in (parse_extents(node, w, what) for w in pairs))


def _with_shape(node: Node, shape: Shape) -> Shape:
    """Longer by what stands before and after; shorter where that is negative.

    Raises: ShapeError when more is cut than there is.
    """
    out: list[Extent] = []
    for k, (n, (a, b)) in enumerate(zip(shape, _widths(node, shape), strict=True)):
        for cut in (-w for w in (a, b) if isinstance(w, int) and w < 0):
            demand(node, n, cut, f"axis {k} must be as long as what is cut")
        total = n + a + b
        if isinstance(total, int) and total < 0:
            raise ShapeError(f"{node.where} cuts axis {k} of length {n} by {a} and {b}, below 0")
        out.append(total)
    return tuple(out)


def _widths(node: Node, shape: Shape) -> Widths:
    return widths_of(node, len(shape), node.params["pad_width"])


def _with_type(node: Node, x: DType) -> DType:
    check_number(node, node.params["value"], x)
    return x


def _with_element(node: Node, index: Index, read: Reader) -> Expr:
    shape = known_shape(node.inputs[0])
    at: list[Expr] = []
    there: Expr | None = None
    for i, n, (a, b) in zip(index, shape, _widths(node, shape), strict=True):
        moved = i if a == 0 else i - ast.size_of(a)
        at.append(moved)
        for wide, test in ((a, moved >= 0), (b, moved < ast.size_of(n))):
            if not isinstance(wide, int) or wide > 0:
                there = test if there is None else there & test
    value = read(*at)
    if there is None:
        return value
    return ast.where(there, value, ast.const(node.params["value"], value.dtype))


def _with_gradient(node: Node, dy: Entry) -> list[Entry | None]:
    shape = known_shape(node.inputs[0])
    back = tuple((-a, -b) for a, b in _widths(node, shape))
    return [make("pad_with", dy, pad_width=back)]


pad_with = register_op(
    "pad_with",
    num_inputs=1,
    params={"pad_width": REQUIRED, "value": 0},
    doc="x with a value around it: (before, after) for each axis, negative numbers cut",
)
pad_with.set_attr("FInferShape", _with_shape)
pad_with.set_attr("FInferType", _with_type)
pad_with.set_attr("FElement", _with_element)
pad_with.set_attr("FGradient", _with_gradient)
pad_with.set_attr("TOpPattern", OpPattern.INJECTIVE)
pad_with.set_attr("TOpCost", "light")


def _pad(node: Node, x: Entry) -> Entry:
    mode = node.params["mode"].lower()
    if mode not in MODES:
        raise GraphError(f"{node.where} has no mode {mode!r}; {nearest(mode, MODES)}")
    widths = widths_of(node, x.ndim, node.params["pad_width"])
    if mode == "constant":
        return make("pad_with", x, pad_width=widths, value=node.params["constant_values"])
    for axis, (a, b) in enumerate(widths):
        x = _surrounded(node, x, axis, a, b, mode)
    return x


def _surrounded(node: Node, x: Entry, axis: int, a: Extent, b: Extent, mode: str) -> Entry:
    """``x`` between parts of itself along one axis."""
    n = known_shape(x)[axis]
    for wide in (a, b):
        if isinstance(wide, int) and wide < 0:
            raise ShapeError(f"{node.where} in mode {mode!r} needs widths >= 0, got {wide}")
        least = wide + 1 if mode == "reflect" else 1 if mode == "edge" else wide
        if wide != 0:
            demand(node, n, least, f"axis {axis} must be long enough to be padded by {mode}")
    begins: tuple[Extent, Extent]
    if mode == "edge":
        pieces = [_edge(x, axis, 0, a), x, _edge(x, axis, n - 1, b)]
    else:
        begins = {"reflect": (1, n - b - 1), "symmetric": (0, n - b), "wrap": (n - a, 0)}[mode]
        sides = [part(x, axis, begin, w) for begin, w in zip(begins, (a, b), strict=True)]
        if mode != "wrap":
            sides = [make("flip", side, axis=axis) for side in sides]
        pieces = [sides[0], x, sides[1]]
    kept = [p for p, w in zip(pieces, (a, 1, b), strict=True) if w != 0]
    return make("concat", *kept, axis=axis) if len(kept) > 1 else make("identity", x)


def _edge(x: Entry, axis: int, at: Extent, count: Extent) -> Entry:
    shape = known_shape(x)
    one = part(x, axis, at if count != 0 else 0, 1 if count != 0 else 0)
    return make("broadcast_to", one, shape=(*shape[:axis], count, *shape[axis + 1 :]))


move(
    "pad",
    ("x",),
    _pad,
    "x with more around it: (before, after) for each axis; mode constant, edge, reflect, symmetric "
    "or wrap. Negative widths cut, in mode constant. As in TensorFlow, reflect takes up to n - 1 "
    "elements, symmetric and wrap up to n",
    {"pad_width": REQUIRED, "mode": "constant", "constant_values": 0},
    aliases="mirror_pad",
)


def _shift(node: Node, x: Entry) -> Entry:
    shift, axis = int_param(node, "shift"), normalize_axis(node, x.ndim, node.params["axis"])
    n = known_shape(x)[axis]
    if isinstance(n, int):
        shift = max(-n, min(n, shift))
    widths = tuple((shift, -shift) if k == axis else (0, 0) for k in range(x.ndim))
    return make("pad_with", x, pad_width=widths, value=node.params["fill_value"])


move("shift", ("x",), _shift,
     "x moved along axis by a number of elements; fill_value comes in where there is nothing",
     {"shift": REQUIRED, "axis": -1, "fill_value": 0})


def _crop(node: Node, x: Entry) -> Entry:
    begin = parse_extents(node, node.params["offsets"], "offsets")
    size = parse_extents(node, node.params["size"], "size")
    lead = x.ndim - len(begin)
    if lead < 0 or len(begin) != len(size):
        raise ShapeError(
            f"{node.where} needs as many offsets as sizes, at most {x.ndim}, got "
            f"{show_shape(begin)} and {show_shape(size)}"
        )
    shape = known_shape(x)
    first = 1 if node.params["channels_last"] and lead else 0
    rest: tuple[Extent, ...] = (0,) * first
    front = lead - first
    return make(
        "slice",
        x,
        begin=(*(0,) * front, *begin, *rest),
        size=(*shape[:front], *size, *shape[len(shape) - first :]),
    )


move("crop", ("x",), _crop,
     "the part of x of a size from offsets on, along the axes in front of the channels, or the last"
     " ones without channels_last",
     {"offsets": REQUIRED, "size": REQUIRED, "channels_last": True})
