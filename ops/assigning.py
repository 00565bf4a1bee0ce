"""Slices replaced: ``slice_assign`` gives x with a part of it from elsewhere; x itself stays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from passkit import ast
from passkit.errors import ShapeError
from passkit.graph.infer import agree, show_shape
from passkit.graph.node import Entry, Node, as_entry, known_shape
from passkit.graph.op import REQUIRED, OpPattern
from passkit.ops.helpers import int_param, make
from passkit.ops.indices import zeros_of
from passkit.ops.movement import register_movement
from passkit.ops.movement_composites import movement_composite
from passkit.ops.slicing import index, parse_key, slice_params, slice_shape
from passkit.values.size import Shape

if TYPE_CHECKING:
    from passkit.ast import Expr
    from passkit.space.reads import Index, Reader


def _assign_shape(node: Node, shape: Shape, value: Shape) -> Shape:
    """The input's shape. Raises: ShapeError when the value has not the shape of the slice."""
    size = slice_shape(node, shape)
    if len(size) != len(value):
        raise ShapeError(
            f"{node.where} needs a value of shape {show_shape(size)}, that of the slice, got "
            f"{show_shape(value)}"
        )
    for k, (n, m) in enumerate(zip(size, value, strict=True)):
        agree(node, n, m, f"dimension {k} of slice and value")
    return shape


def _assign_element(node: Node, at: Index, read: Reader, read_value: Reader) -> Expr:
    """The value's element where the index lies in the slice on every axis."""
    shape = known_shape(node.inputs[0])
    begin, size, step = slice_params(node, shape)
    there: Expr | None = None
    inner: list[Expr] = []
    for i, n, b, count, s in zip(at, shape, begin, size, step, strict=True):
        if (b, s) == (0, 1) and count == n:
            inner.append(i)
            continue
        assert isinstance(s, int)
        ahead = i - ast.size_of(b) if s > 0 else ast.size_of(b) - i
        here = ahead >= 0
        place = ahead if abs(s) == 1 else ahead // abs(s)
        if abs(s) != 1:
            here = here & ast.equal(ahead % abs(s), 0)
        here = here & (place < ast.size_of(count))
        there = here if there is None else there & here
        inner.append(place)
    return read_value(*inner) if there is None else ast.where(there, read_value(*inner), read(*at))


def _assign_gradient(node: Node, dy: Entry) -> list[Entry | None]:
    """What is replaced has no part in the result."""
    value = node.inputs[1]
    rest = make("slice_assign", dy, zeros_of(value), **node.params)
    size = known_shape(value)
    mine = make("slice", dy, begin=node.params["begin"], size=size, step=node.params["step"])
    return [rest, mine]


assign = register_movement(
    "slice_assign",
    {"begin": REQUIRED, "size": REQUIRED, "step": None},
    "x with the slice of these begin, size and step replaced by a value of its shape",
    OpPattern.INJECTIVE,
    2,
)
assign.set_attr("FListInputNames", lambda params: ["x", "value"])
assign.set_attr("FInferShape", _assign_shape)
assign.set_attr("FElement", _assign_element)
assign.set_attr("FGradient", _assign_gradient)


def assign_index(x: Any, key: Any, value: Any) -> Entry:
    """What ``x`` would be after ``x[key] = value`` in NumPy; ``value`` is stretched."""
    entry = as_entry(x)
    found = parse_key(entry, key)
    taken = known_shape(index(entry, key))
    whole = make("broadcast_to", _like(value, entry), shape=taken)
    if found.new_axes:
        whole = make("squeeze", whole, axis=tuple(found.new_axes))
    if found.squeezed_axes:
        whole = make("expand_dims", whole, axis=tuple(found.squeezed_axes))
    return make(
        "slice_assign", entry, whole, begin=found.begin, size=found.size, step=found.step
    )


def _like(value: Any, x: Entry) -> Entry:
    """``value`` as an entry; a Python number of the dtype of ``x``."""
    if isinstance(value, (bool, int, float)) and x.dtype is not None:
        return make("full", shape=(), fill_value=value, dtype=x.dtype.name)
    return as_entry(value)


# TensorFlow's strided_slice.


def _strided(node: Node, x: Entry) -> Entry:
    """The masks as a Python index."""
    p = node.params
    masks = {what: int_param(node, what) for what in p if what.endswith("_mask")}
    begin, end = p["begin"], p["end"]
    strides = p["strides"]
    if strides is None:
        strides = (1,) * len(begin) if isinstance(begin, tuple) else 1
    if any(not isinstance(v, tuple) or len(v) != len(begin) for v in (begin, end, strides)):
        raise ShapeError(
            f"{node.where} needs begin, end and strides of one length, got {begin}, {end} and "
            f"{strides}"
        )

    def marked(mask: str, k: int) -> bool:
        return bool(masks[mask] >> k & 1)

    key: list[Any] = []
    for k, (b, e, s) in enumerate(zip(begin, end, strides, strict=True)):
        if marked("ellipsis_mask", k):
            key.append(Ellipsis)
        elif marked("new_axis_mask", k):
            key.append(None)
        elif marked("shrink_axis_mask", k):
            key.append(b)
        else:
            first = None if marked("begin_mask", k) else b
            last = None if marked("end_mask", k) else e
            key.append(slice(first, last, s))
    out = index(x, tuple(key))
    return make("identity", out) if out is x else out


movement_composite(
    "strided_slice",
    ("x",),
    _strided,
    "x from begin to end by strides; bit k of a mask says what entry k means: begin_mask, end_mask "
    "from or to the end, ellipsis_mask all missing axes, new_axis_mask a new axis, "
    "shrink_axis_mask one element whose axis goes",
    {
        "begin": REQUIRED,
        "end": REQUIRED,
        "strides": None,
        **dict.fromkeys(
            ("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask"), 0
        ),
    },
)
