"""Windows: views of what convolutions and pools read: index maps that fuse with what folds them.

Shapes are channels last: (batch, *size, channels), with one to three spatial axes. A window covers
``window`` elements of each spatial axis, ``dilations`` apart; the next one begins ``strides``
further on. ``padding`` is 0 or 'VALID' (none), 'SAME' (as many windows as elements, divided by the
stride and rounded up; the odd one is padded at the end, as in TensorFlow), or what is added in
front and behind: a number, one for each axis, or a pair for each axis.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from passkit import ast
from passkit.errors import ShapeError
from passkit.graph.infer import agree, demand, show_shape
from passkit.graph.node import Entry, Node, known_shape
from passkit.graph.op import REQUIRED, OpPattern
from passkit.ops.composites import composite
from passkit.ops.helpers import common_dtype, make, parse_extents
from passkit.ops.movement import movement
from passkit.ops.reduce import lowest
from passkit.ops.window_padding import absorb, each, paddings
from passkit.values.size import Extent, Shape, Size, numel

if TYPE_CHECKING:
    from passkit.ast import Expr
    from passkit.space.reads import Index, Reader

WINDOWED = {"strides": 1, "padding": 0, "dilations": 1}
"""The parameters that say where windows lie, with their defaults."""


class Windows(NamedTuple):
    """Where the windows of each spatial axis lie; result k begins at ``k * stride - before``."""

    size: tuple[Extent, ...]
    window: tuple[int, ...]
    stride: tuple[int, ...]
    dilation: tuple[int, ...]
    before: tuple[int, ...]
    after: tuple[Extent, ...]
    result: tuple[Extent, ...]

    @property
    def reach(self) -> tuple[int, ...]:
        """The elements from the first to the last of a window."""
        return tuple((w - 1) * d + 1 for w, d in zip(self.window, self.dilation, strict=True))

    @property
    def inside(self) -> bool:
        """Whether no window reads padding."""
        return not any(self.before) and all(a == 0 for a in self.after)


def spatial(node: Node, shape: Shape) -> tuple[Extent, ...]:
    """The spatial axes of an input. Raises: ShapeError where there are not one to three."""
    if not 3 <= len(shape) <= 5:
        raise ShapeError(
            f"{node.where} needs (batch, *size, channels) with one to three spatial axes, got "
            f"{show_shape(shape)}; insert expand_dims"
        )
    return tuple(shape[1:-1])


def windows_of(
    node: Node, size: tuple[Extent, ...], window: tuple[int, ...], strides: Any = None
) -> Windows:
    """Where the windows that a node's parameters describe lie; ``strides``, if given, win.

    Raises: ShapeError where a window does not fit, or the padding says nothing known.
    """
    count = len(size)
    stride = each(node, "strides", count, given=strides)
    dilation = each(node, "dilations", count)
    reach = [(w - 1) * d + 1 for w, d in zip(window, dilation, strict=True)]
    given = node.params["padding"]
    pairs = paddings(node, size, reach, stride)
    result: list[Extent] = []
    for k, (n, (low, high), r, s) in enumerate(zip(size, pairs, reach, stride, strict=True)):
        room = n + (low + high - r)
        if isinstance(room, int) and room < 0:
            if n != 0 or given != "SAME":
                raise ShapeError(
                    f"{node.where} needs at least {r} elements with padding at spatial axis {k}, "
                    f"for its window to fit, got {n} + {low} + {high}; pad more"
                )
            result.append(0)
            continue
        demand(node, n, r - low - high, f"spatial axis {k} must be long enough for the window")
        result.append(room + 1 if s == 1 else room // s + 1)
    before = tuple(low for low, _ in pairs)
    after = tuple(
        _least(0, high) if high == 0 else _after(n, o, s, low, r)
        for n, o, s, (low, high), r in zip(size, result, stride, pairs, reach, strict=True)
    )
    return Windows(size, window, stride, dilation, before, after, tuple(result))


def check_count(node: Node, found: Windows, result: Shape) -> None:
    """Make sure that windows are as many as ``result`` has. Raises: ShapeError where they are not.

    Else what goes back from windows to a size would have another shape than what came from it.
    """
    for k, (have, need) in enumerate(zip(result, found.result, strict=True)):
        agree(node, have, need, f"the windows given and those of the size at spatial axis {k}")


def _least(low: int, high: Extent) -> Extent:
    return high if isinstance(high, Size) else max(low, high)


def _after(n: Extent, count: Extent, stride: int, before: int, reach: int) -> Extent:
    """The padding that windows read behind the last element; what is not read does not count."""
    needed = (count - 1) * stride + reach - before - n
    return _least(0, needed)


def _window(node: Node) -> tuple[int, ...]:
    """The parameter ``window``, for each spatial axis of a node's input."""
    return each(node, "window", len(known_shape(node.inputs[0])) - 2)


def _of(node: Node, shape: Shape) -> Windows:
    size = spatial(node, shape)
    return windows_of(node, size, each(node, "window", len(size)))


def _view_shape(node: Node, shape: Shape) -> Shape:
    found = _of(node, shape)
    return (shape[0], *found.result, *found.window, shape[-1])


def fill_of(node: Node) -> Any:
    """What padding holds: the parameter, in the result's dtype; "least" is what max never takes."""
    dtype = node.inputs[0].dtype
    assert dtype is not None
    value = node.params.get("fill", 0)
    if value == "least":
        value = lowest(dtype) if dtype.kind != "b" else False
    return dtype.numpy.type(value)


def _fill(node: Node) -> Expr:
    """`fill_of` as a constant of a kernel."""
    dtype = node.inputs[0].dtype
    assert dtype is not None
    return ast.const(fill_of(node), dtype)


def _view_element(node: Node, index: Index, read: Reader) -> Expr:
    """Source: x[n, o * stride + k * dilation - before, c]; outside of x, the fill."""
    found = _of(node, known_shape(node.inputs[0]))
    return _taken(node, found, index, read, ())


def _taken(
    node: Node, found: Windows, index: Index, read: Reader, taps: Index
) -> Expr:
    """What lies under a place of a window; ``taps`` are further indices of the source."""
    count = len(found.size)
    at: list[Expr] = []
    inside: Expr | None = None
    for k in range(count):
        o, tap = index[1 + k], index[1 + count + k]
        place = _step(o, found.stride[k]) + _step(tap, found.dilation[k])
        place = place - ast.size_of(found.before[k]) if found.before[k] else place
        at.append(place)
        if found.before[k]:
            test = place >= ast.size_of(0)
            inside = test if inside is None else inside & test
        if found.after[k] != 0:
            test = place < ast.size_of(found.size[k])
            inside = test if inside is None else inside & test
    value = read(index[0], *at, *taps, index[-1])
    return value if inside is None else ast.where(inside, value, _fill(node))


def _step(count: Expr, length: int) -> Expr:
    return count if length == 1 else count * ast.size_of(length)


windows = movement(
    "windows",
    {"window": REQUIRED, **WINDOWED, "fill": 0},
    "(batch, *size, channels) -> (batch, *result, *window, channels): what each window covers",
    OpPattern.INJECTIVE,
)
windows.set_attr("FInferShape", _view_shape)
windows.set_attr("FElement", _view_element)
windows.set_attr("FSimplify", lambda node: absorb(node, _window(node), fill_of(node)))


def _back_shape(node: Node, shape: Shape) -> Shape:
    given = node.params["size"]
    if not isinstance(given, tuple):
        raise ShapeError(f"{node.where} needs a tuple as size, got {given!r}")
    size = parse_extents(node, given, "size")
    count = len(size)
    if not count or len(shape) != 2 * count + 2:
        raise ShapeError(
            f"{node.where} needs (batch, *result, *window, channels) for {count} spatial axes, got "
            f"{show_shape(shape)}"
        )
    found = windows_of(node, size, _whole(node, shape[1 + count : -1]))
    check_count(node, found, shape[1 : 1 + count])
    return (shape[0], *size, *shape[1 + count :])


def _back_element(node: Node, index: Index, read: Reader) -> Expr:
    """Source: w[n, (p + before - k * dilation) / stride, k, c] where that is a whole window.

    Quotients and remainders are those of p + before and of k * dilation, which are not negative, so
    that where axes are cut by strides, and taps are known, little of them is left.
    """
    shape = known_shape(node.inputs[0])
    count = len(node.params["size"])
    found = windows_of(node, node.params["size"], _whole(node, shape[1 + count : -1]))
    at: list[Expr] = []
    tests: list[Expr] = []
    for k in range(count):
        stride = ast.size_of(found.stride[k])
        place = index[1 + k] + ast.size_of(found.before[k])
        back = index[1 + count + k] * ast.size_of(found.dilation[k])
        if found.stride[k] != 1:
            tests.append(ast.equal(place % stride, back % stride))
            place, back = place // stride, back // stride
        whole = place - back
        tests += [whole >= ast.size_of(0), whole < ast.size_of(shape[1 + k])]
        at.append(whole)
    inside = tests[0]
    for test in tests[1:]:
        inside = inside & test
    dtype = node.inputs[0].dtype
    assert dtype is not None
    value = read(index[0], *at, *index[1 + count :])
    return ast.where(inside, value, ast.const(0, dtype))


windows_back = movement(
    "windows_back",
    {"size": REQUIRED, **WINDOWED},
    "(batch, *result, *window, channels) -> (batch, *size, *window, channels): what each element "
    "gets from each place of a window, to be summed over the window",
    OpPattern.INJECTIVE,
)
windows_back.set_attr("FInferShape", _back_shape)
windows_back.set_attr("FElement", _back_element)


def scattered(dy: Entry, size: Sequence[Extent], **params: Any) -> Entry:
    """The sum of windows (batch, *result, *window, channels) at their places in ``size``."""
    count = len(size)
    spread = make("windows_back", dy, size=tuple(size), **params)
    return make("reduce_sum", spread, axis=tuple(range(1 + count, 1 + 2 * count)))


def _view_gradient(node: Node, dy: Entry) -> list[Entry]:
    return [scattered(dy, known_shape(node.inputs[0])[1:-1], **_passed(node))]


def _taken_of(node: Node, shape: Shape) -> Windows:
    """Windows over (batch, *size, *window, channels). Raises: ShapeError at another rank."""
    count = (len(shape) - 2) // 2
    if len(shape) != 2 * count + 2 or not 1 <= count <= 3:
        raise ShapeError(
            f"{node.where} needs (batch, *size, *window, channels), got {show_shape(shape)}"
        )
    return windows_of(node, shape[1 : 1 + count], _whole(node, shape[1 + count : -1]))


def _whole(node: Node, window: Shape) -> tuple[int, ...]:
    """A window's extents. Raises: ShapeError for one that is not known."""
    if any(isinstance(n, Size) for n in window):
        raise ShapeError(f"{node.where} needs a window of known size, got {show_shape(window)}")
    return tuple(int(n) for n in window)


def _taken_shape(node: Node, shape: Shape) -> Shape:
    found = _taken_of(node, shape)
    return (shape[0], *found.result, *shape[1 + len(found.size) :])


def _taken_element(node: Node, index: Index, read: Reader) -> Expr:
    found = _taken_of(node, known_shape(node.inputs[0]))
    return _taken(node, found, index, read, index[1 + len(found.size) : -1])


windows_taken = movement(
    "windows_taken",
    WINDOWED,
    "(batch, *size, *window, channels) -> (batch, *result, *window, channels): what windows_back "
    "has put at a size, at its windows again",
    OpPattern.INJECTIVE,
)
windows_taken.set_attr("FInferShape", _taken_shape)
windows_taken.set_attr("FElement", _taken_element)


def _passed(node: Node) -> dict[str, Any]:
    return {k: node.params[k] for k in WINDOWED}


def _back_gradient(node: Node, dy: Entry) -> list[Entry]:
    """Each place of a window is read once at most: it is read back."""
    return [make("windows_taken", dy, **_passed(node))]


def _taken_gradient(node: Node, dy: Entry) -> list[Entry]:
    count = (len(known_shape(dy)) - 2) // 2
    size = known_shape(node.inputs[0])[1 : 1 + count]
    return [make("windows_back", dy, size=size, **_passed(node))]


windows_taken.set_attr("FGradient", _taken_gradient)
windows.set_attr("FGradient", _view_gradient)
windows_back.set_attr("FGradient", _back_gradient)


def _patches(node: Node, x: Entry) -> Entry:
    view = make("windows", x, window=node.params["window"], **_passed(node))
    shape = known_shape(view)
    count = len(known_shape(x)) - 2
    return make("reshape", view, shape=(*shape[: 1 + count], numel(shape[1 + count :])))


composite(
    "extract_patches",
    1,
    _patches,
    "(batch, *size, channels) -> (batch, *result, window * channels): each window as one row",
    {"window": REQUIRED, **WINDOWED},
    types=common_dtype("biuf"),
    aliases="extract_image_patches",
)
