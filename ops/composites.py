"""Registration of composites: operators that expand to others, and fuse with their neighbours."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from passkit.graph import attribute_calls
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
    **attributes: Any,
) -> Op:
    """Register a composite.

    Floats of 16 bits are computed in float32 and rounded once, as in every operator that expands:
    ``expand`` gets them as float32, in ``node`` too, where it would round in between.

    Args:
        name: Name of the operator.
        inputs: The names of the inputs, or their number, -1 for any.
        expand: FExpand: ``expand(node, *inputs)`` returns the output, or a tuple of them.
        doc: What the output is, for help and reference pages.
        params: Parameters with their defaults.
        shape: FInferShape; None: the shapes that expanding gives.
        types: FInferType; None: inputs are floats of one dtype, and the outputs have that.
        results: Number of outputs.
        aliases: Further names, separated by spaces.
        **attributes: Further attributes by their names, which win over those set here. TOpCost is
            "expensive" by default.

    Returns:
        The registered operator.

    Raises:
        RegistryError: If the operator exists with other numbers of inputs or outputs, an attribute
            is misspelt or was set elsewhere, or an alias names another operator.
        ArgumentError: If a name or alias is no identifier; a SettingError for a number of inputs
            below -1 or of results that is 0 or below -1.
    """
    input_names = None if isinstance(inputs, int) else list(inputs)
    num_inputs = inputs if isinstance(inputs, int) else len(inputs)
    op = register_op(name, num_inputs, results, params, doc)
    op.set_attr("FExpand", expand)
    op.set_attr("FInferShape", shape or expanded_shape)
    op.set_attr("FInferType", types or common_dtype("f"))
    op.set_attr("TOpCost", attributes.pop("TOpCost", "expensive"))
    if input_names:
        op.set_attr("FListInputNames", lambda params: input_names)
    for key, value in attributes.items():
        op.set_attr(key, value)
    add_aliases(op, aliases)
    return op


def expanded_shape(node: Node, *shapes: Shape) -> Any:
    """Infer the shape of the output, or a tuple of shapes, by expanding ``node`` (FInferShape).

    Where all dtypes are known, the operator's own FInferType is called first, so that errors of
    dtypes name the operator, and not one that it expands to.

    Args:
        node: The node; its operator has FExpand.
        *shapes: The shapes of its inputs.

    Returns:
        The shape of the output, or a tuple of shapes for several outputs. A shape is None where the
        rank is unknown, each is where FExpand declines.

    Raises:
        PasskitError: What FInferType and FExpand raise for inputs and parameters that do not fit:
            DTypeError, ShapeError or GraphError; a RuleError if one of them returns something else
            than it must.
    """
    assert node.op is not None
    dtypes = [e.dtype for e in node.inputs if e.dtype is not None]
    if FInferType.get(node.op.name) is not None and len(dtypes) == len(node.inputs):
        attribute_calls.call_infer_type(node, dtypes)
    variables = [
        Node(None, (), {"shape": s, "dtype": e.dtype}, f"input {k}").entries[0]
        for k, (s, e) in enumerate(zip(shapes, node.inputs, strict=True))
    ]
    outputs = attribute_calls.call_expand(node, variables)
    if outputs is None:
        return (None,) * node.op.num_outputs if node.op.num_outputs > 1 else None
    return outputs[0].shape if node.op.num_outputs == 1 else tuple(e.shape for e in outputs)
