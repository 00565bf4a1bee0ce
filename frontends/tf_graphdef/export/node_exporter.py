"""Export of one operator, by its exporter, expansion, kernel expression or elements."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from passkit.ast import Expr, Var
from passkit.ast.walk import walk
from passkit.errors import ModelError
from passkit.frontends.tf_graphdef.export.element_gathers import export_by_element
from passkit.frontends.tf_graphdef.export.expressions import ExpressionWriter, work_type
from passkit.frontends.tf_graphdef.export.graphdef_writer import NameScope, NodeOutput
from passkit.frontends.tf_graphdef.export.registry import OP_EXPORTERS, ExportCall, as_tuple
from passkit.frontends.tf_graphdef.export.size_arithmetic import SizeSource
from passkit.graph import attribute_calls
from passkit.graph.graph import post_order
from passkit.graph.narrow import expand_node
from passkit.graph.node import CONSTANT, Entry, Node
from passkit.values.size import Shape


def export_node(
    node: Node,
    inputs: Sequence[NodeOutput],
    scope: NameScope,
    size_sources: Mapping[str, SizeSource],
) -> tuple[NodeOutput, ...]:
    """Write a node and return its results, in order.

    It is written by its exporter, else by its expansion, its kernel expression or its elements: the
    first that the operator has and that does not decline.

    Args:
        node: The node to write.
        inputs: Tensors of its inputs.
        scope: Name scope of the node.
        size_sources: The tensor dimension from which each symbolic size is read, by symbol.

    Raises:
        ModelError: If TensorFlow has no equivalent of the operator, or of one that it consists of,
            no kernel for a dtype, or if a size has a symbol without a source.
        ShapeError: If the operator is written by its shape, and the rank or a size that it needs is
            unknown.
    """
    assert node.op is not None
    call = ExportCall(node, scope, size_sources, _parts)
    if node.op is CONSTANT:
        return (scope.writer.constant(node.params["value"], call.dtype, scope.name, scope.name),)
    if node.op.name in OP_EXPORTERS:
        result = OP_EXPORTERS[node.op.name](call, *inputs)
        if result is not None:
            return as_tuple(result)
    if node.op.has_attr("FExpand"):
        results = _by_expansion(call, inputs)
        if results is not None:
            return results
    if node.op.has_attr("FCodeGen"):
        return _by_code(call, inputs)
    if node.op.has_attr("FElement"):
        return export_by_element(call, inputs)
    raise ModelError(f"TensorFlow has no equivalent of the operator {node.op.name}")


def _by_expansion(call: ExportCall, inputs: Sequence[NodeOutput]) -> tuple[NodeOutput, ...] | None:
    """Write a composite by its expansion (FExpand) and return its results; None if it declines.

    ``call`` is the node to write.

    Raises:
        ModelError: If an operator of the expansion has no equivalent in TensorFlow.
        ShapeError: If a rank or size that the expansion needs is unknown.
    """
    assert call.node.op is not None
    stand_ins = _stand_ins([e.shape for e in call.node.inputs], inputs)
    heads = expand_node(call.node, stand_ins)
    return None if heads is None else _write_heads(call, call.scope, heads, stand_ins, inputs)


def _parts(
    call: ExportCall,
    scope: NameScope,
    function: Callable[..., Any],
    shapes: Sequence[Shape | None],
    inputs: Sequence[NodeOutput],
) -> tuple[NodeOutput, ...]:
    """Write the nodes that a function of passkit entries builds, and return its results.

    The node of the first result gets the scope's name.

    Args:
        call: The node that the function implements.
        scope: Name scope to write in.
        function: Takes an entry for each input and returns one or several entries.
        shapes: Shapes of the entries, None for an unknown rank.
        inputs: Tensors that the entries stand for.

    Raises:
        ModelError: If an operator that the function builds has no equivalent in TensorFlow.
        ShapeError: If a rank or size that the function or such an operator needs is unknown.
    """
    stand_ins = _stand_ins(shapes, inputs)
    results = function(*stand_ins)
    heads = (results,) if isinstance(results, Entry) else tuple(results)
    return _write_heads(call, scope, heads, stand_ins, inputs)


def _stand_ins(shapes: Sequence[Shape | None], inputs: Sequence[NodeOutput]) -> tuple[Entry, ...]:
    """Return a new variable for each input, of its shape (None: unknown rank) and dtype."""
    return tuple(
        Node(None, (), {"shape": s, "dtype": t.dtype}, f"input {k}").entries[0]
        for k, (s, t) in enumerate(zip(shapes, inputs, strict=True))
    )


def _write_heads(
    call: ExportCall,
    scope: NameScope,
    heads: Sequence[Entry],
    stand_ins: Sequence[Entry],
    inputs: Sequence[NodeOutput],
) -> tuple[NodeOutput, ...]:
    """Write the nodes that ``heads`` depend on, and return the tensors of ``heads``.

    The node of the first head gets the scope's name.

    Args:
        call: The node that they implement.
        scope: Name scope to write in.
        heads: The results.
        stand_ins: Variables that the nodes read.
        inputs: Tensors of these variables.

    Raises:
        ModelError: If an operator among the nodes has no equivalent in TensorFlow.
        ShapeError: If a rank or size that such an operator needs is unknown.
    """
    values = dict(zip(stand_ins, inputs, strict=True))
    for part in post_order(e.node for e in heads):
        if part.op is None:
            continue
        inner_scope = scope if part is heads[0].node else scope.inner(part.label)
        results = export_node(
            part, [values[e] for e in part.inputs], inner_scope, call.size_sources
        )
        values.update(zip(part.entries, results, strict=True))
    return tuple(values[e] for e in heads)


def _by_code(call: ExportCall, inputs: Sequence[NodeOutput]) -> tuple[NodeOutput, ...]:
    """Write an elementwise operator by its kernel expression (FCodeGen) and return its results.

    An input that the expression does not use takes part in the broadcast of a single result.
    Several results have the shapes of their expressions, and none gets the scope's name. ``call``
    is the node to write.

    Raises:
        ModelError: If TensorFlow has no equivalent of a function, sign or kind of expression, or no
            kernel for a dtype, or if a size has a symbol without a source.
    """
    node, scope = call.node, call.scope
    variables = [Var(f"x{k}", t.dtype) for k, t in enumerate(inputs)]
    tensors: dict[Expr, NodeOutput] = {
        v: scope.cast(t, work_type(t.dtype)) for v, t in zip(variables, inputs, strict=True)
    }
    codes = attribute_calls.call_codegen(node, *variables)
    expressions = ExpressionWriter(scope, tensors, call.size_sources)
    if len(codes) != 1:
        return tuple(scope.cast(expressions.write(x), x.dtype) for x in codes)
    (code,) = codes
    used_variables = {part for part in walk(code) if isinstance(part, Var)}
    if len(used_variables) == len(variables):
        return (expressions.result(code),)
    value = expressions.write(code)
    for v, t in zip(variables, inputs, strict=True):
        if v not in used_variables:  # its shape takes part in the broadcast of the result
            is_equal = scope.op("Equal", t, t)
            value = scope.op("SelectV2", is_equal, value, value, T=value.dtype)
    return (scope.cast(value, code.dtype, is_result=True),)
