"""Composites: operators that are what they expand to, so that they fuse with their neighbours."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from passkit.graph import rules
from passkit.graph.node import Node
from passkit.graph.op import FInferType, Op, register_op
from passkit.ops.helpers import add_aliases, common_dtype
from passkit.values.size import Shape


def composite(
    name: str,
    inputs: int | Sequence[str],
    expand: Callable[..., Any],
    doc: str,
    params: Mapping[str, Any] | None = None,
    *,
    shape: Callable[..., Any] | None = None,
    types: Callable[..., Any] | None = None,
    results: int = 1,
    aliases: str = "",
    **more: Any,
) -> Op:
    """Register ``name`` as what ``expand(node, *entries)`` makes of its inputs.

    ``inputs`` is their number, -1 for any, or their names. The shapes of results are those that
    expanding gives unless ``shape`` says them; dtypes are floats all alike unless ``types`` does.
    Floats of 16 bits are computed in float32 and rounded once, as in every operator that expands:
    ``expand`` gets them as float32, in ``node`` too, where it would round in between.
    ``more`` are attributes, which win over those set here.
    """
    names = None if isinstance(inputs, int) else list(inputs)
    count = inputs if isinstance(inputs, int) else len(inputs)
    op = register_op(name, count, results, params, doc)
    op.set_attr("FExpand", expand)
    op.set_attr("FInferShape", shape or expanded_shape)
    op.set_attr("FInferType", types or common_dtype("f"))
    op.set_attr("TOpCost", more.pop("TOpCost", "expensive"))
    if names:
        op.set_attr("FListInputNames", lambda params: names)
    for key, value in more.items():
        op.set_attr(key, value)
    add_aliases(op, aliases)
    return op


def expanded_shape(node: Node, *shapes: Shape) -> Any:
    """The shapes of what ``node`` expands to, for inputs of ``shapes``.

    What the operator itself says of dtypes comes first: its message names it, and not a part of it.
    """
    assert node.op is not None
    dtypes = [e.dtype for e in node.inputs if e.dtype is not None]
    if FInferType.get(node.op.name) is not None and len(dtypes) == len(node.inputs):
        rules.dtypes(node, dtypes)
    stand_ins = [
        Node(None, (), {"shape": s, "dtype": e.dtype}, f"input {k}").entries[0]
        for k, (s, e) in enumerate(zip(shapes, node.inputs, strict=True))
    ]
    heads = rules.expansion(node, stand_ins)
    if heads is None:
        return (None,) * node.op.num_outputs if node.op.num_outputs > 1 else None
    return heads[0].shape if node.op.num_outputs == 1 else tuple(e.shape for e in heads)
