"""Padding, shifting and cropping of arrays.

``pad_with``, padding by a constant, is an index map; the others expand to it, to slices and to
concatenations of parts of the input.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from passkit import ast
from passkit.errors import GraphError, ShapeError, nearest
from passkit.graph.infer import demand, show_shape
from passkit.graph.node import Entry, Node, known_shape
from passkit.graph.op import REQUIRED, OpPattern, register_op
from passkit.ops.helpers import int_param, make, normalize_axis, parse_extents
from passkit.ops.movement_composites import movement_composite, slice_axis
from passkit.ops.ranges import check_number
from passkit.values.dtype import DType
from passkit.values.size import Extent, Shape

if TYPE_CHECKING:
    from passkit.analysis.accesses import Index, Reader
    from passkit.ast import Expr

PadWidths = tuple[tuple[Extent, Extent], ...]
"""(before, after) for each axis; negative widths cut."""

PAD_MODES = ("constant", "edge", "reflect", "symmetric", "wrap")
"""The modes of ``pad``, as in numpy.pad."""


def parse_pad_widths(node: Node, rank: int, pad_width: Any, name: str = "pad_width") -> PadWidths:
    """Return widths of padding as (before, after) for each axis.

    Args:
        node: The node to name in errors; it has the parameter ``name``.
        rank: Number of axes.
        pad_width: An int or Size for all ends, alone or in a tuple; a pair for all axes; or a tuple
            with a pair for each axis or one pair for all. Negative widths cut.
        name: The parameter to name in errors.

    Raises:
        ShapeError: If ``pad_width`` is anything else.
    """
    if not isinstance(pad_width, tuple):
        pad_width = ((pad_width, pad_width),)
    if all(not isinstance(w, tuple) for w in pad_width):
        pad_width = (pad_width if len(pad_width) == 2 else (*pad_width, *pad_width),)
    pairs = pad_width * rank if len(pad_width) == 1 else pad_width
    if len(pairs) != rank or any(not isinstance(w, tuple) or len(w) != 2 for w in pairs):
        raise ShapeError(
            f"{node.where} needs an int, a pair, or a pair for each of {rank} axes as {name}, got "
            f"{node.params[name]}"
        )
    return tuple((a, b) for a, b in (parse_extents(node, w, name) for w in pairs))


# pad_with: padding by a constant.


def _pad_widths(node: Node, shape: Shape) -> PadWidths:
    """Return the parameter ``pad_width`` for an input of shape ``shape``: a pair for each axis.

    ``node`` has the parameter ``pad_width``.

    Raises: ShapeError if it is neither an int or Size, nor a pair, nor a pair for each axis.
    """
    return parse_pad_widths(node, len(shape), node.params["pad_width"])


def _pad_with_shape(node: Node, shape: Shape) -> Shape:
    """Infer the shape: each axis of ``shape``, the input's, is longer by its two widths.

    ``node`` has the parameter ``pad_width``. What negative ints cut off a symbolic axis is recorded
    as a guard.

    Raises:
        ShapeError: If negative widths cut more than there is, or ``pad_width`` does not fit the
            rank.
    """
    out: list[Extent] = []
    for k, (n, (a, b)) in enumerate(zip(shape, _pad_widths(node, shape), strict=True)):
        for cut in (-w for w in (a, b) if isinstance(w, int) and w < 0):
            demand(node, n, cut, f"axis {k} must be as long as what is cut")
        total = n + a + b
        if isinstance(total, int) and total < 0:
            raise ShapeError(f"{node.where} cuts axis {k} of length {n} by {a} and {b}, below 0")
        out.append(total)
    return tuple(out)


def _pad_with_dtype(node: Node, x: DType) -> DType:
    """Infer the dtype, ``x`` of the input.

    Raises: DTypeError if the parameter ``value`` of ``node`` is neither an int, a float nor a bool
    (a complex number is none), or ``x`` an integer that cannot hold it.
    """
    check_number(node, node.params["value"], x)
    return x


def _pad_with_element(node: Node, index: Index, read: Reader) -> Expr:
    """Return the input's element at the shifted index, or the constant outside of the input.

    Args:
        node: The node, with the parameters ``pad_width`` and ``value``.
        index: An expression for each axis of the output.
        read: Reads the input at an index; valid only inside of it.

    Raises: ShapeError if a rank is unknown, or a parameter is invalid.
    """
    shape = known_shape(node.inputs[0])
    positions: list[Expr] = []
    is_inside: Expr | None = None
    for i, n, (a, b) in zip(index, shape, _pad_widths(node, shape), strict=True):
        position = i if a == 0 else i - ast.size_of(a)
        positions.append(position)
        for width, test in ((a, position >= 0), (b, position < ast.size_of(n))):
            if not isinstance(width, int) or width > 0:
                is_inside = test if is_inside is None else is_inside & test
    value = read(*positions)
    if is_inside is None:
        return value
    return ast.where(is_inside, value, ast.const(node.params["value"], value.dtype))


def _pad_with_gradient(node: Node, dy: Entry) -> list[Entry]:
    """Return the gradient of the input: dy, that of the output, without the padding.

    ``node`` is the forward node, with the parameter ``pad_width``; ``dy`` is the gradient of its
    output.

    Raises: ShapeError if a rank is unknown, or a parameter is invalid.
    """
    shape = known_shape(node.inputs[0])
    widths = tuple((-a, -b) for a, b in _pad_widths(node, shape))
    return [make("pad_with", dy, pad_width=widths)]


pad_with = register_op(
    "pad_with",
    num_inputs=1,
    params={"pad_width": REQUIRED, "value": 0},
    doc="x with a constant around it: pad_width is (before, after) for each axis; negative widths "
    "cut off",
)
pad_with.set_attr("FInferShape", _pad_with_shape)
pad_with.set_attr("FInferType", _pad_with_dtype)
pad_with.set_attr("FElement", _pad_with_element)
pad_with.set_attr("FGradient", _pad_with_gradient)
pad_with.set_attr("TOpPattern", OpPattern.INJECTIVE)
pad_with.set_attr("TOpCost", "light")


# pad: padding by a constant or by elements of the input.


def _pad(node: Node, x: Entry) -> Entry:
    """Expand pad of ``x``, axis by axis unless the padding is constant.

    ``node`` has the parameters ``constant_values``, ``mode`` and ``pad_width``.

    Raises:
        GraphError: If ``mode``, in any case of letters, is unknown.
        ShapeError: If ``pad_width`` does not fit the rank, a width is more than its axis has
            elements to cut off or to take, negative in another mode than "constant", or the rank is
            unknown.
        DTypeError: If ``constant_values``, in mode "constant", is no number that ``x`` can hold.
    """
    mode = node.params["mode"].lower()
    if mode not in PAD_MODES:
        raise GraphError(f"{node.where} has no mode {mode!r}; {nearest(mode, PAD_MODES)}")
    widths = parse_pad_widths(node, x.ndim, node.params["pad_width"])
    if mode == "constant":
        return make("pad_with", x, pad_width=widths, value=node.params["constant_values"])
    for axis, (before, after) in enumerate(widths):
        x = _pad_axis(node, x, axis, before, after, mode)
    return x


def _pad_axis(node: Node, x: Entry, axis: int, before: Extent, after: Extent, mode: str) -> Entry:
    """Return ``x`` padded along one axis by parts of itself, an ``identity`` of it for widths of 0.

    Args:
        node: The node, for messages.
        x: The array.
        axis: The axis.
        before: The elements to add in front.
        after: The elements to add behind.
        mode: "edge", "reflect", "symmetric" or "wrap", as numpy.pad defines them.

    Raises:
        ShapeError: If a width is negative, or larger than the mode can take from the axis: its
            length for "symmetric" and "wrap", one less for "reflect"; for "edge" if the axis is
            empty.
    """
    n = known_shape(x)[axis]
    for width in (before, after):
        if isinstance(width, int) and width < 0:
            raise ShapeError(f"{node.where} in mode {mode!r} needs widths >= 0, got {width}")
        needed = width + 1 if mode == "reflect" else 1 if mode == "edge" else width
        if width != 0:
            demand(node, n, needed, f"axis {axis} must be long enough to be padded by {mode}")
    if mode == "edge":
        parts = [_repeat_edge(x, axis, 0, before), x, _repeat_edge(x, axis, n - 1, after)]
    else:
        begins: tuple[Extent, Extent] = {
            "reflect": (1, n - after - 1),
            "symmetric": (0, n - after),
            "wrap": (n - before, 0),
        }[mode]
        sides = [
            slice_axis(x, axis, begin, width)
            for begin, width in zip(begins, (before, after), strict=True)
        ]
        if mode != "wrap":
            sides = [make("flip", side, axis=axis) for side in sides]
        parts = [sides[0], x, sides[1]]
    nonempty = [p for p, w in zip(parts, (before, 1, after), strict=True) if w != 0]
    return make("concat", *nonempty, axis=axis) if len(nonempty) > 1 else make("identity", x)


def _repeat_edge(x: Entry, axis: int, position: Extent, count: Extent) -> Entry:
    """Return ``count`` copies of the slice of ``x`` at ``position`` along ``axis``, side by side.

    For a count of 0 the axis is empty.

    Raises: ShapeError if a rank is unknown.
    """
    shape = known_shape(x)
    edge = slice_axis(x, axis, position if count != 0 else 0, 1 if count != 0 else 0)
    return make("broadcast_to", edge, shape=(*shape[:axis], count, *shape[axis + 1 :]))


movement_composite(
    "pad",
    inputs=["x"],
    expand=_pad,
    doc="x with padding around it: pad_width is (before, after) for each axis. In mode constant "
    "negative widths cut off; reflect takes up to n - 1 elements of an axis of n, symmetric "
    "and wrap up to n",
    params={"pad_width": REQUIRED, "mode": "constant", "constant_values": 0},
    aliases="mirror_pad",
)


# shift and crop.


def _shift(node: Node, x: Entry) -> Entry:
    """Expand shift: padding by ``fill_value`` at one end of ``axis``, cut off at the other.

    A shift beyond the length leaves padding only; a symbolic length must be at least the shift,
    which a call checks. ``node`` has the parameters ``axis``, ``fill_value`` and ``shift``.

    Raises: ShapeError if ``shift`` is no int, ``axis`` no axis, or the rank is unknown; DTypeError
    if ``x`` cannot hold ``fill_value``.
    """
    shift, axis = int_param(node, "shift"), normalize_axis(node, x.ndim, node.params["axis"])
    n = known_shape(x)[axis]
    if isinstance(n, int):
        shift = max(-n, min(n, shift))
    widths = tuple((shift, -shift) if k == axis else (0, 0) for k in range(x.ndim))
    return make("pad_with", x, pad_width=widths, value=node.params["fill_value"])


def _crop(node: Node, x: Entry) -> Entry:
    """Expand crop to a slice of ``size`` elements from ``offsets`` on.

    They are for the last axes, or with ``channels_last`` for those before the last, unless there is
    one for each axis. ``node`` has the parameters ``channels_last``, ``offsets`` and ``size``.

    Raises:
        ShapeError: If there are not as many offsets as sizes, more than axes, one is neither an int
            nor a Size, the slice is out of range, or the rank of ``x`` is unknown.
    """
    begin = parse_extents(node, node.params["offsets"], "offsets")
    size = parse_extents(node, node.params["size"], "size")
    uncropped = x.ndim - len(begin)
    if uncropped < 0 or len(begin) != len(size):
        raise ShapeError(
            f"{node.where} needs as many offsets as sizes, at most {x.ndim}, got "
            f"{show_shape(begin)} and {show_shape(size)}"
        )
    shape = known_shape(x)
    channels = 1 if node.params["channels_last"] and uncropped else 0
    front = uncropped - channels
    zeros_front: tuple[Extent, ...] = (0,) * front
    zeros_back: tuple[Extent, ...] = (0,) * channels
    return make(
        "slice",
        x,
        begin=(*zeros_front, *begin, *zeros_back),
        size=(*shape[:front], *size, *shape[len(shape) - channels :]),
    )


movement_composite(
    "shift",
    inputs=["x"],
    expand=_shift,
    doc="x shifted along axis towards the end, or the front for negative numbers; vacated "
    "positions get fill_value",
    params={"shift": REQUIRED, "axis": -1, "fill_value": 0},
)
movement_composite(
    "crop",
    inputs=["x"],
    expand=_crop,
    doc="the part of x that begins at offsets and has the lengths size, along the axes before the "
    "channels; without channels_last along the last axes",
    params={"offsets": REQUIRED, "size": REQUIRED, "channels_last": True},
)
