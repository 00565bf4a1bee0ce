"""From the gradients of a node's results to those of its inputs: by a rule, or derived.

An operator's FGradient wins. Elementwise operators are differentiated by the derivative of their
FCodeGen. A composite is differentiated through what it expands to; the forward expands to the
same, so that Simplify makes the two one. Where a gradient of floats of 16 bits would be computed
from values that were rounded, it is computed in float32, and the sweep rounds it once.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np

from passkit.ast import Expr, Var, cast, const
from passkit.ast.derivative import derivative, product
from passkit.errors import DTypeError, GraphError, ShapeError
from passkit.graph import rules
from passkit.graph.call import convert, find_operator
from passkit.graph.expr_to_graph import Recipe, expr_to_graph
from passkit.graph.graph import freeze
from passkit.graph.infer import show_shape
from passkit.graph.narrow import expanded, in_float32, widened_view
from passkit.graph.node import CONSTANT, Entry, Node
from passkit.graph.op import FCodeGen, FExpand, FGradient
from passkit.graph.rounding import Effect, Rounding, effect_of, is_narrow_entry, worst_rounding
from passkit.values.size import Shape

Flow = Entry | None
"""A gradient, or None where none flows: it is 0 whatever the values are."""

Sweep = Callable[[Sequence[Entry], Sequence[Flow], Sequence[Entry]], Sequence[Flow]]
"""What makes gradients of entries out of those of what is computed from them."""


def backward(
    node: Node,
    dys: Sequence[Flow],
    wanted: Sequence[bool],
    summed: Sequence[bool],
    through: Sweep,
) -> Sequence[Flow]:
    """The gradients that ``node`` passes to its inputs, given those of its results.

    Args:
        node: the node, or a view of it as `Node.seen` makes it.
        dys: the gradient of each result.
        wanted: for each input whether its gradient is needed; others may be anything.
        summed: for each input whether other gradients will be added to its gradient.
        through: differentiates what a composite expands to.

    Returns:
        A gradient for each input, in its dtype. That of a 16-bit input may be float32, not rounded
        yet: where it would be rounded more than once with the sum that it is a part of.

    Raises:
        GraphError: The operator has no gradient.
        RuleError: FGradient gives something else than an entry or None for each input.
        ShapeError: A gradient does not fit its input.
        DTypeError: A gradient does not fit its input, or FGradient mixes dtypes when 16-bit inputs
            come as float32.
    """
    with np.errstate(over="ignore"):  # of constants, in what may be computed again
        flows = _passed(node, dys, wanted, through)
    sources = (*node.inputs, *(dy for dy in dys if dy is not None))
    if not any(map(is_narrow_entry, sources)):
        return flows
    rounded = Rounding.ONCE if effect_of(node) is Effect.ROUNDS else Rounding.NEVER
    given = {**dict.fromkeys(node.entries, rounded), **dict.fromkeys(sources, Rounding.NEVER)}
    if all(
        worst_rounding([flow], given) <= (Rounding.NEVER if more else Rounding.ONCE)
        for flow, more in zip(flows, summed, strict=True)
    ):
        return flows
    view = widened_view(node)
    wide = [
        dy if dy is None or y.dtype is None else convert(dy, y.dtype)
        for dy, y in zip(dys, view.entries, strict=True)
    ]
    with in_float32(node, "FGradient"):
        return _passed(view, wide, wanted, through)


def _passed(
    node: Node, dys: Sequence[Flow], wanted: Sequence[bool], through: Sweep
) -> Sequence[Flow]:
    """The gradients of the inputs of ``node``, computed in the dtypes of its inputs."""
    assert node.op is not None
    name = node.op.name
    if FGradient.get(name) is not None:
        flows = rules.gradient(node, dys)
    elif FCodeGen.get(name) is not None:
        flows = _by_code(node, dys, wanted)
    elif FExpand.get(name) is not None:
        heads = expanded(node, node.inputs)
        assert heads is not None
        flows = through(heads, dys, node.inputs)
    else:
        raise GraphError(
            f"{node.where} has no gradient: set FGradient on op {name}, (node, *dy) -> an entry "
            f"or None for each input, or put stop_gradient in front of it"
        )
    return [
        _fitting(node, k, flow) if want and flow is not None else None
        for k, (flow, want) in enumerate(zip(flows, wanted, strict=True))
    ]


def _fitting(node: Node, k: int, flow: Entry) -> Entry:
    """``flow`` as the gradient of input ``k``: where that was broadcast, it is summed."""
    x = node.inputs[k]
    if flow.dtype is not x.dtype and flow.dtype is not None and x.dtype is not None:
        raise DTypeError(
            f"FGradient of {node.where} gives {flow.dtype} for input {k}, which is {x.dtype}; "
            f"insert pk.ops.cast(…, '{x.dtype}')"
        )
    if flow.shape == x.shape and x.shape is not None:
        return flow
    if not _spreads(x.shape, flow.shape):
        raise ShapeError(
            f"FGradient of {node.where} gives {show_shape(flow.shape)} for input {k}, which is "
            f"{show_shape(x.shape)}; a gradient has the shape of its input"
        )
    return find_operator("sum_like")(flow, x)  # type: ignore[no-any-return]


def _spreads(shape: Shape | None, wanted: Shape | None) -> bool:
    """Whether ``shape`` may broadcast to ``wanted``, as far as it is known."""
    if shape is None or wanted is None:
        return True
    if len(shape) > len(wanted):
        return False
    tail = wanted[len(wanted) - len(shape) :]
    return all(
        a == 1 or a == b or not (isinstance(a, int) and isinstance(b, int))
        for a, b in zip(shape, tail, strict=True)
    )


def _by_code(node: Node, dys: Sequence[Flow], wanted: Sequence[bool]) -> list[Flow]:
    """The derivative of FCodeGen, spelled out in operators."""
    assert node.op is not None
    facts: list[Any] = []
    for k, e in enumerate(node.inputs):
        if e.dtype is None:
            raise DTypeError(
                f"the gradient of {node.where} needs the dtype of input {k}, which is not known; "
                f"give its variable one"
            )
        value = e.node.params["value"] if e.node.op is CONSTANT else None
        one = value is not None and value.size == 1
        facts += (e.dtype, e.shape, value.tobytes() if value is not None and one else None)
    code, flowing = FCodeGen.get(node.op.name), tuple(dy is not None for dy in dys)
    params = freeze(node.params) if node.params else ()
    key: Hashable = code, params, tuple(facts), flowing, tuple(wanted)
    recipe = _recipes.get(key)
    if recipe is None:
        if len(_recipes) >= RECIPES:
            _recipes.clear()
        recipe = _recipes[key] = _recipe(node, flowing, wanted)
    return recipe.made([*node.entries, *node.inputs, *(dy for dy in dys if dy is not None)])


RECIPES = 4096
"""As many derivatives are remembered."""
_recipes: dict[Hashable, Recipe] = {}


def _recipe(node: Node, flowing: Sequence[bool], wanted: Sequence[bool]) -> Recipe:
    """How the gradients of inputs are made of results, inputs, and what flows to the results."""
    args = tuple(_argument(k, e) for k, e in enumerate(node.inputs))
    values = rules.code(node, *args)
    flows = [
        Var(f"dy{k}", x.dtype) if flows_to else None
        for k, (x, flows_to) in enumerate(zip(values, flowing, strict=True))
    ]
    given = [*values, *args, *(f for f in flows if f is not None)]
    totals: list[Expr | None] = []
    for arg, want in zip(args, wanted, strict=True):
        total = _total(values, flows, arg) if want and isinstance(arg, Var) else None
        totals.append(None if total is None else cast(total, arg.dtype))
    return expr_to_graph(totals, {x: k for k, x in enumerate(given)})


def _argument(k: int, e: Entry) -> Expr:
    """What stands for an input in FCodeGen: a variable, or the one value that it has."""
    assert e.dtype is not None
    if e.node.op is CONSTANT and e.node.params["value"].size == 1:
        return const(e.node.params["value"].reshape(-1)[0], e.dtype)
    return Var(f"x{k}", e.dtype)


def _total(values: Sequence[Expr], flows: Sequence[Var | None], by: Var) -> Expr | None:
    """The gradient by one argument, as an expression of all and of the gradients of results."""
    out: Expr | None = None
    for x, dy in zip(values, flows, strict=True):
        term = None if dy is None else product(dy, derivative(x, by))
        if term is not None:
            out = term if out is None else out + cast(term, out.dtype)
    return out
