"""Views of windows, which convolutions, pools and their gradients read.

The views are index maps, so no array with the elements of all windows is written: they fuse with
the reduction that follows. `passkit.ops.window_geometry` describes the parameters.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from passkit import ast
from passkit.errors import ShapeError
from passkit.graph.infer import show_shape
from passkit.graph.node import Entry, Node, known_shape
from passkit.graph.op import REQUIRED, OpPattern
from passkit.ops.composites import composite
from passkit.ops.helpers import common_dtype, make, parse_extents
from passkit.ops.movement import register_movement
from passkit.ops.ranges import check_number
from passkit.ops.reduce import lowest
from passkit.ops.window_geometry import (
    WINDOW_PARAMS,
    WindowGeometry,
    absorb_padding,
    check_window_count,
    per_axis,
    spatial_sizes,
    window_geometry,
)
from passkit.values.size import Extent, Shape, Size, numel

if TYPE_CHECKING:
    from passkit.analysis.accesses import Index, Reader
    from passkit.ast import Expr


def _window_params(node: Node) -> dict[str, Any]:
    """Return strides, padding and dilations of a node, which position windows, by name."""
    return {k: node.params[k] for k in WINDOW_PARAMS}


def _known_window(node: Node, window: Shape) -> tuple[int, ...]:
    """Return the extents of a window as ints.

    Raises: ShapeError, naming ``node``, if one is symbolic.
    """
    if any(isinstance(n, Size) for n in window):
        raise ShapeError(f"{node.where} needs a window of known size, got {show_shape(window)}")
    return tuple(int(n) for n in window)


# windows: from elements to windows.


def _view_geometry(node: Node, shape: Shape) -> WindowGeometry:
    """Return the positions of windows, of the parameter ``window``, in an input of shape ``shape``.

    ``node`` has the parameters ``dilations``, ``padding``, ``strides`` and ``window``.

    Raises: ShapeError if they do not fit, the rank is not 3 to 5, or a parameter is invalid.
    """
    size = spatial_sizes(node, shape)
    return window_geometry(node, size, per_axis(node, "window", len(size)))


def _windows_shape(node: Node, shape: Shape) -> Shape:
    """Infer the shape (batch, *result, *window, channels) of windows in an input of ``shape``.

    ``node`` has the parameters ``dilations``, ``fill``, ``padding``, ``strides`` and ``window``.

    Raises: ShapeError if they do not fit, the rank is not 3 to 5, or a parameter is invalid;
    DTypeError if the dtype of the input is known and cannot hold ``fill``.
    """
    geometry = _view_geometry(node, shape)
    if node.inputs[0].dtype is not None:
        fill_value(node)
    return (shape[0], *geometry.result, *geometry.window, shape[-1])


def fill_value(node: Node) -> Any:
    """Return the value of padding, a NumPy scalar in the dtype of a node's input, which is known.

    It is the parameter ``fill``, 0 without one. "least" is the lowest value of the dtype, -inf for
    floats, which never is the maximum of a window unless all elements are as low.

    Raises: DTypeError if ``fill`` is neither "least" nor a number that the dtype holds, or "least"
    for complex numbers.
    """
    dtype = node.inputs[0].dtype
    assert dtype is not None
    value = node.params.get("fill", 0)
    if isinstance(value, str) and value == "least":
        value = lowest(dtype)
    check_number(node, value, dtype)
    return dtype.numpy.type(value)


def _windows_element(node: Node, index: Index, read: Reader) -> Expr:
    """Return x[n, o * stride + k * dilation - before, c], or the fill outside of x.

    ``index`` has expressions for (batch, *result, *window, channels); ``read`` reads x. ``node``
    has the parameters ``dilations``, ``fill``, ``padding``, ``strides`` and ``window``.

    Raises: ShapeError if its rank is unknown or a parameter is invalid, DTypeError if its dtype
    cannot hold ``fill``.
    """
    geometry = _view_geometry(node, known_shape(node.inputs[0]))
    return _element_under_window(node, geometry, index, read, ())


def _element_under_window(
    node: Node, geometry: WindowGeometry, index: Index, read: Reader, window_index: Index
) -> Expr:
    """Return the element that a position of a window covers, or the fill where that is padding.

    Args:
        node: Has the parameter ``fill`` and the dtype, which is known.
        geometry: Positions of the windows.
        index: An index into (batch, *result, *window, channels).
        read: Reads the input; valid only inside of it.
        window_index: Further indices of the input, between those of the spatial axes and channels.

    Raises: DTypeError if the dtype cannot hold ``fill``.
    """
    count = len(geometry.size)
    positions: list[Expr] = []
    is_inside: Expr | None = None
    for k in range(count):
        o, tap = index[1 + k], index[1 + count + k]
        position = _scaled(o, geometry.stride[k]) + _scaled(tap, geometry.dilation[k])
        if geometry.before[k]:
            position = position - ast.size_of(geometry.before[k])
        positions.append(position)
        if geometry.before[k]:
            test = position >= ast.size_of(0)
            is_inside = test if is_inside is None else is_inside & test
        if geometry.after[k] != 0:
            test = position < ast.size_of(geometry.size[k])
            is_inside = test if is_inside is None else is_inside & test
    value = read(index[0], *positions, *window_index, index[-1])
    if is_inside is None:
        return value
    dtype = node.inputs[0].dtype
    assert dtype is not None
    return ast.where(is_inside, value, ast.const(fill_value(node), dtype))


def _scaled(index: Expr, factor: int) -> Expr:
    """Return ``index * factor``, without a multiplication by 1."""
    return index if factor == 1 else index * ast.size_of(factor)


def _windows_simplify(node: Node) -> Entry | None:
    """Return a view that absorbs padding of the input, or None if there is nothing to absorb.

    None too if the input is padded by another value than ``node`` itself pads with. ``node`` has
    the parameters ``dilations``, ``fill``, ``padding``, ``strides`` and ``window``.

    Raises: ShapeError if the rank of the input is unknown or a parameter is invalid, DTypeError if
    its dtype cannot hold ``fill``.
    """
    window = per_axis(node, "window", len(known_shape(node.inputs[0])) - 2)
    return absorb_padding(node, window, fill_value(node))


def _windows_gradient(node: Node, dy: Entry) -> list[Entry]:
    """Return the gradient of the input: dy, summed over all windows that read an element.

    ``node`` is the forward node; ``dy`` is the gradient of its output.

    Raises: ShapeError if a rank is unknown.
    """
    size = known_shape(node.inputs[0])[1:-1]
    return [sum_windows_back(dy, size, **_window_params(node))]


windows = register_movement(
    "windows",
    params={"window": REQUIRED, **WINDOW_PARAMS, "fill": 0},
    doc="the elements under each window: (batch, *size, channels) -> (batch, *result, *window, "
    "channels)",
    pattern=OpPattern.INJECTIVE,
)
windows.set_attr("FInferShape", _windows_shape)
windows.set_attr("FElement", _windows_element)
windows.set_attr("FSimplify", _windows_simplify)
windows.set_attr("FGradient", _windows_gradient)


# windows_back: from windows to the elements they cover.


def _windows_back_shape(node: Node, shape: Shape) -> Shape:
    """Infer the shape (batch, *size, *window, channels) from (batch, *result, *window, channels).

    ``size`` is a parameter of ``node``.

    Raises:
        ShapeError: If ``size`` is no tuple of ints >= 0 or sizes, the rank does not fit it, the
            window is symbolic or does not fit, or the number of windows is not the one of that
            size.
    """
    given_size = node.params["size"]
    if not isinstance(given_size, tuple):
        raise ShapeError(f"{node.where} needs a tuple as size, got {given_size!r}")
    size = parse_extents(node, given_size, "size")
    if any(isinstance(n, int) and n < 0 for n in size):
        raise ShapeError(f"{node.where} needs extents >= 0 as size, got {show_shape(size)}")
    count = len(size)
    if not count or len(shape) != 2 * count + 2:
        raise ShapeError(
            f"{node.where} needs (batch, *result, *window, channels) for {count} spatial axes, got "
            f"{show_shape(shape)}"
        )
    geometry = window_geometry(node, size, _known_window(node, shape[1 + count : -1]))
    check_window_count(node, geometry, shape[1 : 1 + count])
    return (shape[0], *size, *shape[1 + count :])


def _windows_back_element(node: Node, index: Index, read: Reader) -> Expr:
    """Return w[n, (p + before - k * dilation) / stride, k, c] where that is a window, else 0.

    Quotients and remainders are taken of p + before and of k * dilation, which are not negative:
    where axes are split by strides and positions of windows are unrolled, most of them are folded.

    Args:
        node: The node, with the parameter ``size``; the dtype of its input is known.
        index: Expressions for (batch, *size, *window, channels).
        read: Reads w, the input; valid only where the output is not 0.

    Raises: ShapeError if a rank is unknown, or a parameter is invalid.
    """
    shape = known_shape(node.inputs[0])
    count = len(node.params["size"])
    window = _known_window(node, shape[1 + count : -1])
    geometry = window_geometry(node, node.params["size"], window)
    window_numbers: list[Expr] = []
    tests: list[Expr] = []
    for k in range(count):
        stride = ast.size_of(geometry.stride[k])
        position = index[1 + k] + ast.size_of(geometry.before[k])
        offset = index[1 + count + k] * ast.size_of(geometry.dilation[k])
        if geometry.stride[k] != 1:
            tests.append(ast.equal(position % stride, offset % stride))
            position, offset = position // stride, offset // stride
        number = position - offset
        tests += [number >= ast.size_of(0), number < ast.size_of(shape[1 + k])]
        window_numbers.append(number)
    is_window = tests[0]
    for test in tests[1:]:
        is_window = is_window & test
    dtype = node.inputs[0].dtype
    assert dtype is not None
    value = read(index[0], *window_numbers, *index[1 + count :])
    return ast.where(is_window, value, ast.const(0, dtype))


def _windows_back_gradient(node: Node, dy: Entry) -> list[Entry]:
    """Return the gradient of the input: the elements of dy at the positions that windows cover.

    The result of `windows_back` keeps the axes of the window, so it holds each element of a window
    at most once, and nothing is summed. ``node`` is the forward node; ``dy`` is the gradient of its
    output.
    """
    return [make("windows_taken", dy, **_window_params(node))]


windows_back = register_movement(
    "windows_back",
    params={"size": REQUIRED, **WINDOW_PARAMS},
    doc="the elements of windows at the positions that they cover, to be summed over the window: "
    "(batch, *result, *window, channels) -> (batch, *size, *window, channels)",
    pattern=OpPattern.INJECTIVE,
)
windows_back.set_attr("FInferShape", _windows_back_shape)
windows_back.set_attr("FElement", _windows_back_element)
windows_back.set_attr("FGradient", _windows_back_gradient)


def sum_windows_back(dy: Entry, size: Sequence[Extent], **params: Any) -> Entry:
    """Return the sum of overlapping windows at their positions, the adjoint of ``windows``.

    Args:
        dy: Windows, (batch, *result, *window, channels).
        size: Extents of the spatial axes of the result (batch, *size, channels).
        params: Strides, padding and dilations.

    Raises:
        ShapeError: If the number of windows is not the one of that size.
    """
    count = len(size)
    elements = make("windows_back", dy, size=tuple(size), **params)
    return make("reduce_sum", elements, axis=tuple(range(1 + count, 1 + 2 * count)))


# windows_taken: the gradient of windows_back.


def _windows_taken_geometry(node: Node, shape: Shape) -> WindowGeometry:
    """Return the positions of windows over an input of ``shape`` (batch, *size, *window, channels).

    ``node`` has the parameters ``dilations``, ``padding`` and ``strides``.

    Raises:
        ShapeError: If the shape has another rank, the window is symbolic, or windows do not fit.
    """
    count = (len(shape) - 2) // 2
    if len(shape) != 2 * count + 2 or not 1 <= count <= 3:
        raise ShapeError(
            f"{node.where} needs (batch, *size, *window, channels), got {show_shape(shape)}"
        )
    window = _known_window(node, shape[1 + count : -1])
    return window_geometry(node, shape[1 : 1 + count], window)


def _windows_taken_shape(node: Node, shape: Shape) -> Shape:
    """Infer the shape (batch, *result, *window, channels) from (batch, *size, *window, channels).

    ``node`` has the parameters ``dilations``, ``padding`` and ``strides``.

    Raises: ShapeError if the shape has another rank, or windows do not fit.
    """
    geometry = _windows_taken_geometry(node, shape)
    return (shape[0], *geometry.result, *shape[1 + len(geometry.size) :])


def _windows_taken_element(node: Node, index: Index, read: Reader) -> Expr:
    """Return the input's element at the position that an element of a window covers.

    Outside of the input it is 0. ``index`` has expressions for (batch, *result, *window, channels),
    ``read`` reads the input (batch, *size, *window, channels). ``node`` has the parameters
    ``dilations``, ``padding`` and ``strides``.

    Raises: ShapeError if a rank is unknown, or a parameter is invalid.
    """
    geometry = _windows_taken_geometry(node, known_shape(node.inputs[0]))
    window_index = index[1 + len(geometry.size) : -1]
    return _element_under_window(node, geometry, index, read, window_index)


def _windows_taken_gradient(node: Node, dy: Entry) -> list[Entry]:
    """Return the gradient of the input: dy, written back to the positions that it was read from.

    ``node`` is the forward node; ``dy`` is the gradient of its output.

    Raises: ShapeError if a rank is unknown.
    """
    count = (len(known_shape(dy)) - 2) // 2
    size = known_shape(node.inputs[0])[1 : 1 + count]
    return [make("windows_back", dy, size=size, **_window_params(node))]


windows_taken = register_movement(
    "windows_taken",
    params=WINDOW_PARAMS,
    doc="the inverse of windows_back, the windows at their positions: (batch, *size, *window, "
    "channels) -> (batch, *result, *window, channels)",
    pattern=OpPattern.INJECTIVE,
)
windows_taken.set_attr("FInferShape", _windows_taken_shape)
windows_taken.set_attr("FElement", _windows_taken_element)
windows_taken.set_attr("FGradient", _windows_taken_gradient)


# extract_patches.


def _extract_patches(node: Node, x: Entry) -> Entry:
    """Expand extract_patches: a view of windows, each flattened with its channels.

    ``node`` has the parameter ``window``.

    Raises: ShapeError if the rank of ``x`` is not 3 to 5 or unknown, the windows do not fit, or a
    parameter of them is invalid.
    """
    view = make("windows", x, window=node.params["window"], **_window_params(node))
    shape = known_shape(view)
    count = len(known_shape(x)) - 2
    return make("reshape", view, shape=(*shape[: 1 + count], numel(shape[1 + count :])))


composite(
    "extract_patches",
    inputs=1,
    expand=_extract_patches,
    doc="each window as one row: (batch, *size, channels) -> (batch, *result, window * channels)",
    params={"window": REQUIRED, **WINDOW_PARAMS},
    types=common_dtype("biuf"),
    aliases="extract_image_patches",
)
