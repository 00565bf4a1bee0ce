"""Rolls of arrays along axes, and the primitive `rotate` that they consist of.

``roll`` is a composite. Along an axis with long rows behind it, it is a `rotate`, whose index map
is a remainder that kernels compute once for a row. Along the innermost axis, where a remainder
would break up vectors of consecutive elements, it joins two slices.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from passkit import ast
from passkit.errors import ShapeError
from passkit.graph.infer import show_shape
from passkit.graph.node import Entry, Node, known_shape
from passkit.graph.op import REQUIRED, OpPattern
from passkit.ops.helpers import as_replacement, int_param, make, normalize_axis
from passkit.ops.movement import register_movement
from passkit.ops.movement_composites import movement_composite, slice_axis
from passkit.values.size import Extent, Shape, Size, numel

if TYPE_CHECKING:
    from passkit.analysis.accesses import Index, Reader
    from passkit.ast import Expr

MIN_ROW = 16
"""The fewest elements behind an axis from which on a roll along it is a `rotate`.

These are a vector of the kernels of CPUs: rows of fewer elements are not worth a remainder each."""


# rotate: one axis of a known extent.


def _rotation(node: Node) -> tuple[int, int, int]:
    """Return the axis of a rotate, its extent, and the shift as an int from 0 to below the extent.

    ``node`` has the parameters ``axis`` and ``shift``. The shift is 0 for an extent of 0.

    Raises: ShapeError if the axis is no int or out of range, the shift is no int, the rank is
    unknown, or the extent is symbolic.
    """
    shape = known_shape(node.inputs[0])
    axis = normalize_axis(node, len(shape), node.params["axis"])
    shift = int_param(node, "shift")
    extent = shape[axis]
    if not isinstance(extent, int):
        raise ShapeError(
            f"{node.where} needs a known extent of axis {axis}, got {show_shape(shape)}; "
            f"roll takes others, too"
        )
    return axis, extent, shift % extent if extent else 0


def _infer_rotate_shape(node: Node, shape: Shape | None) -> Shape | None:
    """Infer the shape, that of the input; ``shape`` is the input's, None for an unknown rank.

    ``node`` has the parameters ``axis`` and ``shift``.

    Raises: ShapeError if a parameter is invalid, or the extent of the axis is symbolic.
    """
    if shape is not None:
        _rotation(node)
    return shape


def _rotate_element(node: Node, index: Index, read: Reader) -> Expr:
    """Return the input's element at ``index``, its axis shifted back.

    ``index`` has an expression for each axis; ``read`` reads the input at an index. ``node`` has
    the parameters ``axis`` and ``shift``.

    Raises: ShapeError if a parameter is invalid, or the rank is unknown.
    """
    axis, extent, shift = _rotation(node)
    rotated = index[axis]
    if shift:
        rotated = (rotated + ast.size_of(extent - shift)) % ast.size_of(extent)
    return read(*index[:axis], rotated, *index[axis + 1 :])


def _compute_rotate(node: Node, x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return ``x`` rolled by NumPy. ``node`` has the parameters ``axis`` and ``shift``."""
    return np.roll(x, node.params["shift"], node.params["axis"])


def _simplify_rotate(node: Node) -> Entry | None:
    """Remove a rotate by 0; merge two rotates along one axis.

    ``node`` has the parameters ``axis`` and ``shift``.

    Returns: The input for the former, a rotate of its input for the latter; None if neither
    applies, or the shape of the input is not known.

    Raises: ShapeError if a parameter is invalid.
    """
    x = node.inputs[0]
    if x.shape is None:
        return None
    axis, _, shift = _rotation(node)
    if shift == 0:
        return as_replacement(node, x)
    if x.node.op is not node.op:
        return None
    inner_axis, _, inner_shift = _rotation(x.node)
    if inner_axis != axis:
        return None
    return make("rotate", x.node.inputs[0], shift=shift + inner_shift, axis=axis)


def _rotate_gradient(node: Node, dy: Entry) -> list[Entry]:
    """Return the gradient of the input: ``dy``, that of the output, rotated the other way.

    ``node`` is the forward node, with the parameters ``axis`` and ``shift``.

    Raises: ShapeError if a parameter is invalid, or the rank is unknown.
    """
    axis, _, shift = _rotation(node)
    return [make("rotate", dy, shift=-shift, axis=axis)]


rotate = register_movement(
    "rotate",
    params={"shift": REQUIRED, "axis": REQUIRED},
    doc="x rolled along one axis of a known extent by shift positions; elements that leave one end "
    "enter at the other",
    pattern=OpPattern.INJECTIVE,
)
rotate.set_attr("FInferShape", _infer_rotate_shape)
rotate.set_attr("FElement", _rotate_element)
rotate.set_attr("FCompute", _compute_rotate)
rotate.set_attr("FSimplify", _simplify_rotate)
rotate.set_attr("FGradient", _rotate_gradient)


# roll.


def _roll(node: Node, x: Entry) -> Entry:
    """Expand roll, axis by axis, or along the row-major order if ``axis`` is None.

    ``node`` has the parameters ``axis`` and ``shift``; one shift is for all axes. An axis that is
    listed twice is rolled twice.

    Raises:
        ShapeError: If there is not a shift for each axis, a shift is no int, an axis is no int or
            out of range, there are several shifts and no axis, or the rank is unknown.
    """
    shape, axis, shift = known_shape(x), node.params["axis"], node.params["shift"]
    if axis is None:
        if isinstance(shift, tuple):
            raise ShapeError(f"{node.where} without an axis needs one shift, got {shift}")
        flat = make("reshape", x, shape=(-1,) if numel(shape) != 0 else (0,))
        return make("reshape", _roll_axis(node, flat, shift, 0), shape=shape)
    axes = axis if isinstance(axis, tuple) else (axis,)
    shifts = shift if isinstance(shift, tuple) else (shift,) * len(axes)
    if len(shifts) != len(axes):
        raise ShapeError(f"{node.where} needs a shift for each axis of {axes}, got {shifts}")
    for a, s in zip(axes, shifts, strict=True):
        x = _roll_axis(node, x, s, normalize_axis(node, len(shape), a))
    return x


def _roll_axis(node: Node, x: Entry, shift: Any, axis: int) -> Entry:
    """Return ``x`` rolled by ``shift`` along ``axis``: a `rotate`, or two slices, swapped.

    A shift of a multiple of the length gives an ``identity``. A symbolic length must be at least
    the shift, which a call checks.

    Raises: ShapeError if the shift is no int (the error names ``node``), or the rank is unknown.
    """
    shape = known_shape(x)
    n = shape[axis]
    if isinstance(shift, bool) or not isinstance(shift, int):
        raise ShapeError(f"{node.where} needs ints as shift, got {shift!r}")
    # An unknown length is assumed to be at least the shift: the slices check it at the call.
    cut: Extent = -shift if shift <= 0 else n - shift
    if isinstance(n, int):
        cut = -shift % n if n else 0
    if cut == 0 or (isinstance(n, Size) and shift == 0):
        return make("identity", x)
    row = numel(shape[axis + 1 :])
    if isinstance(n, int) and isinstance(row, int) and row >= MIN_ROW:
        return make("rotate", x, shift=shift, axis=axis)
    return make("concat", slice_axis(x, axis, cut, n - cut), slice_axis(x, axis, 0, cut), axis=axis)


movement_composite(
    "roll",
    inputs=["x"],
    expand=_roll,
    doc="x rotated along axis by shift positions, by default in row-major order; elements that "
    "leave one end enter at the other",
    params={"shift": REQUIRED, "axis": None},
)
