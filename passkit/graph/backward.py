"""Differentiation of one node: from the adjoints of its results to those of its inputs.

An operator's FGradient takes precedence. Without one, an elementwise operator is differentiated by
the symbolic derivative of its FCodeGen, and a composite through its expansion; the forward expands
to the same nodes, which Simplify then merges. Where the gradient of 16-bit floats would be computed
from values that were rounded, it is computed in float32, and `passkit.graph.adjoint` rounds it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np

from passkit.ast import Expr, Var, cast, const
from passkit.ast.derivative import derivative, product
from passkit.errors import DTypeError, GraphError, ShapeError
from passkit.graph.attribute_calls import call_codegen, call_gradient
from passkit.graph.call import convert, find_operator
from passkit.graph.expr_to_graph import OperatorSequence, expr_to_graph
from passkit.graph.graph import freeze
from passkit.graph.infer import show_shape
from passkit.graph.narrow import expand_node, explain_float32, widened_view
from passkit.graph.node import CONSTANT, Entry
from passkit.graph.node_view import NodeLike
from passkit.graph.op import FCodeGen, FExpand, FGradient
from passkit.graph.rounding import Effect, Rounding, effect_of, is_narrow_entry, worst_rounding
from passkit.values.size import Shape

Adjoint = Entry | None
"""The gradient of the differentiated sum by an entry; None where it is 0 for all values."""

ExpansionGradient = Callable[
    [Sequence[Entry], Sequence[Adjoint], Sequence[Entry]], Sequence[Adjoint]
]
"""Maps the results of an expansion, their adjoints and its inputs to the adjoints of the inputs."""


def backward(
    node: NodeLike,
    dys: Sequence[Adjoint],
    needed: Sequence[bool],
    has_more: Sequence[bool],
    through_expansion: ExpansionGradient,
) -> Sequence[Adjoint]:
    """Return the adjoints that ``node`` passes to its inputs, given those of its results.

    Args:
        node: the node, or a view of it.
        dys: the adjoint of each result; None where it is zero.
        needed: for each input whether its adjoint is used; that of others is None.
        has_more: for each input whether other adjoints will be added to the returned one.
        through_expansion: differentiates what a composite expands to.

    Returns:
        An adjoint for each input, in its dtype; None where it is zero or not needed. That of a
        16-bit input may be float32, not rounded yet, where otherwise both it and the sum that it is
        a part of would be rounded.

    Raises:
        GraphError: The operator has no gradient: none of FGradient, FCodeGen and FExpand, or only
            an FExpand that declines to expand this node.
        CodeGenError: No operator computes the derivative of its FCodeGen.
        RuleError: FGradient, FCodeGen or FExpand returns something else than it must.
        ShapeError: A gradient does not fit its input.
        DTypeError: A gradient does not fit its input, FGradient mixes dtypes when 16-bit inputs
            are widened to float32, or FCodeGen is differentiated and the dtype of an input is not
            known.
    """
    with np.errstate(over="ignore"):  # of constants, in what may be computed again
        dxs = _input_adjoints(node, dys, needed, through_expansion)
    sources = (*node.inputs, *(dy for dy in dys if dy is not None))
    if not any(map(is_narrow_entry, sources)):
        return dxs
    own = Rounding.ONCE if effect_of(node) is Effect.ROUNDS else Rounding.NEVER
    start = dict.fromkeys(node.entries, own) | dict.fromkeys(sources, Rounding.NEVER)
    if all(
        worst_rounding([dx], start) <= (Rounding.NEVER if more else Rounding.ONCE)
        for dx, more in zip(dxs, has_more, strict=True)
    ):
        return dxs
    view = widened_view(node)
    wide_dys = [
        dy if dy is None or y.dtype is None else convert(dy, y.dtype)
        for dy, y in zip(dys, view.entries, strict=True)
    ]
    with explain_float32(node, "FGradient"):
        return _input_adjoints(view, wide_dys, needed, through_expansion)


def _input_adjoints(
    node: NodeLike,
    dys: Sequence[Adjoint],
    needed: Sequence[bool],
    through_expansion: ExpansionGradient,
) -> Sequence[Adjoint]:
    """Return the adjoints of a node's inputs: by FGradient, FCodeGen or FExpand, the first it has.

    Args:
        node: the node, whose inputs have the dtypes to compute in.
        dys: the adjoint of each result; None where it is zero.
        needed: for each input whether its adjoint is used.
        through_expansion: differentiates the graph that FExpand gives.

    Returns: An adjoint for each input, None where it is zero or not needed.

    Raises: GraphError where the operator has none of the three, or FExpand is the first and
    declines; RuleError where a function returns something else; CodeGenError where no operator
    computes the derivative; ShapeError or DTypeError where an adjoint does not fit its input.
    """
    assert node.op is not None
    name = node.op.name
    if FGradient.get(name) is not None:
        dxs = call_gradient(node, dys)
    elif FCodeGen.get(name) is not None:
        dxs = _elementwise_adjoints(node, dys, needed)
    else:
        heads = None if FExpand.get(name) is None else expand_node(node, node.inputs)
        if heads is None:
            raise GraphError(
                f"{node.where} has no gradient: set FGradient on op {name}, (node, *dy) -> an "
                f"entry or None for each input, or put stop_gradient in front of it"
            )
        dxs = through_expansion(heads, dys, node.inputs)
    return [
        _reduce_to_input(node, k, dx) if need and dx is not None else None
        for k, (dx, need) in enumerate(zip(dxs, needed, strict=True))
    ]


def _reduce_to_input(node: NodeLike, k: int, dx: Entry) -> Entry:
    """Return the adjoint ``dx`` of input ``k`` of ``node``, summed over the axes that it broadcast.

    It is ``dx`` itself where both shapes are known and equal.

    Raises: DTypeError where both dtypes are known and differ; ShapeError where the input's shape
    cannot broadcast to that of ``dx``.
    """
    x = node.inputs[k]
    if dx.dtype is not x.dtype and dx.dtype is not None and x.dtype is not None:
        raise DTypeError(
            f"FGradient of {node.where} gives {dx.dtype} for input {k}, which is {x.dtype}; "
            f"insert pk.ops.cast(…, '{x.dtype}')"
        )
    if dx.shape == x.shape and x.shape is not None:
        return dx
    if not _may_broadcast(x.shape, dx.shape):
        raise ShapeError(
            f"FGradient of {node.where} gives {show_shape(dx.shape)} for input {k}, which is "
            f"{show_shape(x.shape)}; a gradient has the shape of its input"
        )
    return find_operator("sum_like")(dx, x)  # type: ignore[no-any-return]


def _may_broadcast(shape: Shape | None, to: Shape | None) -> bool:
    """Return whether ``shape`` may broadcast to ``to``.

    None is an unknown rank. It is True where unknown ranks or symbolic extents leave it open.
    """
    if shape is None or to is None:
        return True
    if len(shape) > len(to):
        return False
    tail = to[len(to) - len(shape) :]
    return all(
        a == 1 or a == b or not (isinstance(a, int) and isinstance(b, int))
        for a, b in zip(shape, tail, strict=True)
    )


MOST_DERIVATIVES = 4096
"""The derivative cache is cleared when it has this many entries."""
_derivatives: dict[Hashable, OperatorSequence] = {}


def _elementwise_adjoints(
    node: NodeLike, dys: Sequence[Adjoint], needed: Sequence[bool]
) -> list[Adjoint]:
    """Return the adjoints of the inputs of an operator with FCodeGen, by its symbolic derivative.

    Derivatives are cached by FCodeGen, parameters, and the dtypes, shapes and single constant
    values of the inputs.

    Args:
        node: the node, or a view of it.
        dys: the adjoint of each result; None where it is zero.
        needed: for each input whether its adjoint is used.

    Returns: An adjoint for each input; None where it is zero or not needed, and for constants of
    one element.

    Raises: DTypeError where the dtype of an input is not known; ShapeError where known shapes do
    not broadcast; CodeGenError where no operator computes the derivative; RuleError where FCodeGen
    returns no expression for each result.
    """
    assert node.op is not None
    input_keys: list[Any] = []
    for k, e in enumerate(node.inputs):
        if e.dtype is None:
            raise DTypeError(
                f"the gradient of {node.where} needs the dtype of input {k}, which is not known; "
                f"give its variable one"
            )
        number = _constant_number(e)
        input_keys += (e.dtype, e.shape, None if number is None else number.tobytes())
    has_adjoint = tuple(dy is not None for dy in dys)
    params = freeze(node.params) if node.params else ()
    code = FCodeGen.get(node.op.name)
    key: Hashable = code, params, tuple(input_keys), has_adjoint, tuple(needed)
    sequence = _derivatives.get(key)
    if sequence is None:
        if len(_derivatives) >= MOST_DERIVATIVES:
            _derivatives.clear()
        sequence = _derivatives[key] = _differentiate(node, has_adjoint, needed)
    return sequence.apply([*node.entries, *node.inputs, *(dy for dy in dys if dy is not None)])


def _differentiate(
    node: NodeLike, has_adjoint: Sequence[bool], needed: Sequence[bool]
) -> OperatorSequence:
    """Translate the derivative of FCodeGen to operators.

    The sequence takes the node's results, its inputs, and the adjoints of those results for which
    ``has_adjoint`` is true; it computes an adjoint for each input that is ``needed`` and no
    constant number, and None for the others and where the derivative is zero.

    Raises: CodeGenError where no operator computes the derivative; RuleError where FCodeGen returns
    no expression for each result.
    """
    args = tuple(_argument(k, e) for k, e in enumerate(node.inputs))
    values = call_codegen(node, *args)
    dys = [
        Var(f"dy{k}", x.dtype) if has else None
        for k, (x, has) in enumerate(zip(values, has_adjoint, strict=True))
    ]
    inputs = [*values, *args, *(dy for dy in dys if dy is not None)]
    dxs: list[Expr | None] = []
    for arg, need in zip(args, needed, strict=True):
        dx = _adjoint_expr(values, dys, arg) if need and isinstance(arg, Var) else None
        dxs.append(None if dx is None else cast(dx, arg.dtype))
    return expr_to_graph(dxs, {x: k for k, x in enumerate(inputs)})


def _constant_number(e: Entry) -> np.ndarray[Any, Any] | None:
    """Return the array of an entry that is a constant of one element, of any rank; else None."""
    if e.node.op is CONSTANT and e.node.params["value"].size == 1:
        return e.node.params["value"]  # type: ignore[no-any-return]
    return None


def _argument(k: int, e: Entry) -> Expr:
    """Return the argument of FCodeGen for input ``k``, which is ``e``.

    That is a variable ``x{k}`` of its dtype, which must be known, or a literal if it is a constant
    of one number.
    """
    assert e.dtype is not None
    number = _constant_number(e)
    return Var(f"x{k}", e.dtype) if number is None else const(number.reshape(-1)[0], e.dtype)


def _adjoint_expr(values: Sequence[Expr], dys: Sequence[Var | None], by: Var) -> Expr | None:
    """Return the sum over all results of adjoint times derivative by ``by``; None if it is 0.

    ``values`` are the expressions of the results, ``dys`` the variables of their adjoints, None for
    an adjoint that is zero. Raises: CodeGenError for a function without derivative.
    """
    total: Expr | None = None
    for x, dy in zip(values, dys, strict=True):
        term = None if dy is None else product(dy, derivative(x, by))
        if term is not None:
            total = term if total is None else total + cast(term, total.dtype)
    return total
