"""How one operator is written: by its row, else by what its attributes say it means."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from passkit.ast import Expr, Var
from passkit.ast.walk import walk
from passkit.errors import ModelError
from passkit.frontends.tf_graphdef.export.elements import by_element
from passkit.frontends.tf_graphdef.export.expressions import Speller, work_type
from passkit.frontends.tf_graphdef.export.sizes import Source
from passkit.frontends.tf_graphdef.export.table import ROWS, Call, as_tuple
from passkit.frontends.tf_graphdef.export.writer import Scope, Tensor
from passkit.graph import rules
from passkit.graph.graph import post_order
from passkit.graph.narrow import expanded
from passkit.graph.node import CONSTANT, Entry, Node
from passkit.values.size import Shape


def write(
    node: Node, inputs: Sequence[Tensor], scope: Scope, known: Mapping[str, Source]
) -> tuple[Tensor, ...]:
    """The results of ``node``. Raises: ModelError when TensorFlow has nothing that means it."""
    assert node.op is not None
    call = Call(node, scope, known, _parts)
    if node.op is CONSTANT:
        return (scope.writer.constant(node.params["value"], call.dtype, scope.name, scope.name),)
    if node.op.name in ROWS:
        made = ROWS[node.op.name](call, *inputs)
        if made is not None:
            return as_tuple(made)
    if node.op.has_attr("FExpand"):
        return _by_expansion(call, inputs)
    if node.op.has_attr("FCodeGen"):
        return _by_code(call, inputs)
    if node.op.has_attr("FElement"):
        return by_element(call, inputs)
    raise ModelError(f"TensorFlow has no operator that means {node.op.name}")


def _by_expansion(call: Call, inputs: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """A composite as its parts."""
    assert call.node.op is not None
    shapes = [e.shape for e in call.node.inputs]
    return _parts(call, call.scope, lambda *x: expanded(call.node, x), shapes, inputs)


def _parts(
    call: Call,
    scope: Scope,
    function: Callable[..., Any],
    shapes: Sequence[Shape | None],
    inputs: Sequence[Tensor],
) -> tuple[Tensor, ...]:
    """What a function makes of stand-ins; the part that makes its first result has the name."""
    stand_ins = [
        Node(None, (), {"shape": s, "dtype": t.dtype}, f"input {k}").entries[0]
        for k, (s, t) in enumerate(zip(shapes, inputs, strict=True))
    ]
    made = function(*stand_ins)
    heads = (made,) if isinstance(made, Entry) else tuple(made)
    values = dict(zip(stand_ins, inputs, strict=True))
    for part in post_order(e.node for e in heads):
        if part.op is None:
            continue
        inner = scope if part is heads[0].node else scope.inner(part.label)
        results = write(part, [values[e] for e in part.inputs], inner, call.known)
        values.update(zip(part.entries, results, strict=True))
    return tuple(values[e] for e in heads)


def _by_code(call: Call, inputs: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """An elementwise operator as its kernel expression."""
    node, scope = call.node, call.scope
    variables = [Var(f"x{k}", t.dtype) for k, t in enumerate(inputs)]
    given: dict[Expr, Tensor] = {
        v: scope.cast(t, work_type(t.dtype)) for v, t in zip(variables, inputs, strict=True)
    }
    codes = rules.code(node, *variables)
    speller = Speller(scope, given, call.known)
    if len(codes) != 1:
        return tuple(scope.cast(speller.write(x), x.dtype) for x in codes)
    (code,) = codes
    used = {part for part in walk(code) if isinstance(part, Var)}
    if len(used) == len(variables):
        return (speller.result(code),)
    made = speller.write(code)
    for v, t in zip(variables, inputs, strict=True):
        if v not in used:  # read for its shape all the same
            same = scope.op("Equal", t, t)
            made = scope.op("SelectV2", same, made, made, T=made.dtype)
    return (scope.cast(made, code.dtype, last=True),)
