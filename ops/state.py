"""Operators that write state variables; the pass Functionalize replaces them by values."""

from __future__ import annotations

from passkit.errors import GraphError, ShapeError
from passkit.graph.infer import agree, same_dtype_rule, show_shape
from passkit.graph.node import Node
from passkit.graph.op import OpPattern, register_op
from passkit.values.size import Shape


def _infer_assign_shape(node: Node, old: Shape | None, new: Shape | None) -> Shape | None:
    """Return the shape of the variable, ``old``; None where its rank is unknown.

    ``new`` is the shape of the value, or None. Symbolic extents are recorded as equal; a known
    extent of the value takes the place of the variable's. ``node`` has the variable as its first
    input.

    Raises:
        GraphError: If the first input is no state variable.
        ShapeError: If the value has another shape.
    """
    target = node.inputs[0].node
    if not (target.is_variable and target.params.get("state")):
        raise GraphError(
            f"{node.where} writes state variables only, got {target.where}; make it with pk.state"
        )
    if old is None or new is None:
        return old
    if len(old) != len(new):
        raise ShapeError(
            f"{node.where} needs a value of shape {show_shape(old)} for '{target.name}', got "
            f"{show_shape(new)}; insert broadcast_to or reshape"
        )
    return tuple(
        agree(node, a, b, f"dimension {k}") for k, (a, b) in enumerate(zip(old, new, strict=True))
    )


_infer_assign_shape.__dict__["partial"] = True  # also for inputs of unknown rank

assign = register_op(
    "assign",
    num_inputs=2,
    doc="the new value of a state variable, which a call writes; the inputs are the variable and "
    "the value",
)
assign.set_attr("FInferShape", _infer_assign_shape)
assign.set_attr("FInferType", same_dtype_rule)
assign.set_attr("FInferShapeBack", lambda node, shapes, outs: [shapes[0], shapes[1] or shapes[0]])
assign.set_attr("FCompute", lambda node, old, new: new)
assign.set_attr("FExpand", lambda node, old, new: new)
assign.set_attr("FGradient", lambda node, dy: [None, dy])
assign.set_attr("TStateful", True)
assign.set_attr("TOpPattern", OpPattern.OPAQUE)
