"""Analysis of 16-bit floats: whether a computation rounds never, once, or between operations.

`passkit.graph.narrow` and `passkit.graph.backward` compute in float32 what would round in between.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import IntEnum

import numpy as np

from passkit.ast import Cast, Expr, Reduce, Scan, Var, const, left
from passkit.ast.rounding import commutes_with_rounding, may_round
from passkit.graph.attribute_calls import call_codegen, call_expand, reduce_of, scan_of
from passkit.graph.graph import post_order
from passkit.graph.node import AS_READ, CONSTANT, Entry, Node
from passkit.graph.node_view import NodeLike
from passkit.graph.op import FCodeGen, FElement, FExpand, OpPattern
from passkit.values.dtype import int64, is_narrow


class Rounding(IntEnum):
    """How often a value was rounded to 16 bits since the inputs of a computation."""

    NEVER = 0
    ONCE = 1
    BETWEEN = 2
    """It was rounded, and computed from a value that had been rounded before."""


class Effect(IntEnum):
    """The effect of an operator on 16-bit values: it moves them, compares them, or rounds."""

    MOVES = 0
    """It never rounds, and rounding its inputs is the same as rounding its results."""
    DECIDES = 1
    """It never rounds, but rounding its inputs may change its results by more: a comparison."""
    ROUNDS = 2


def is_narrow_entry(entry: Entry) -> bool:
    """Return whether an entry is known to have a 16-bit float dtype."""
    return entry.dtype is not None and is_narrow(entry.dtype)


def worst_rounding(heads: Iterable[Entry | None], given: Mapping[Entry, Rounding]) -> Rounding:
    """Return the worst rounding among ``heads``; NEVER for no results.

    Args:
        heads: the results of a computation; None is skipped.
        given: its inputs, and how each of them was rounded. Variables that are not in it count as
            never rounded.

    Raises: RuleError where an attribute function returns something else than it must; ShapeError or
    DTypeError where FReduce, FScan or FExpand needs a rank or dtype that is unknown.
    """
    roundings = dict(given)
    results = [e for e in heads if e is not None]

    def inner(node: Node) -> list[Node]:
        """Return the nodes of a node's inputs, except of inputs that ``given`` has as keys."""
        return [e.node for e in node.inputs if e not in given]

    for node in post_order((e.node for e in results if e not in given), inner):
        rounding = _after(node, max((roundings[e] for e in node.inputs), default=Rounding.NEVER))
        for e in node.entries:
            roundings.setdefault(e, rounding)
    return max((roundings[e] for e in results), default=Rounding.NEVER)


def effect_of(node: NodeLike) -> Effect:
    """Return the effect of a node's operator on the 16-bit floats of its inputs and results.

    It is MOVES for a variable, and ROUNDS where no attribute tells.

    Raises: RuleError where an attribute function returns something else than it must; ShapeError or
    DTypeError where FReduce, FScan or FExpand needs a rank or dtype that is unknown.
    """
    op = node.op
    if op is None or op is AS_READ:
        return Effect.MOVES
    if FCodeGen.get(op.name) is not None:
        return _effect_of_code(node)
    if FElement.get(op.name) is not None and op.pattern <= OpPattern.INJECTIVE:
        return Effect.MOVES
    reduction = reduce_of(node) or scan_of(node)
    if reduction is not None:
        return _effect_of_reduction(reduction)
    if FExpand.get(op.name) is not None:
        return _effect_of_composite(node)
    return Effect.ROUNDS


def _after(node: NodeLike, before: Rounding) -> Rounding:
    """Return the rounding of the results of ``node``; ``before`` is the worst of its inputs.

    Raises: RuleError where an attribute function returns something else than it must; ShapeError or
    DTypeError where FReduce, FScan or FExpand needs a rank or dtype that is unknown.
    """
    if node.op is CONSTANT:
        return Rounding.ONCE if _is_rounded(node) else Rounding.NEVER
    effect = effect_of(node)
    if before and effect is not Effect.MOVES:
        return Rounding.BETWEEN
    rounds = effect is Effect.ROUNDS and any(map(is_narrow_entry, node.entries))
    return Rounding.ONCE if rounds and not before else before


def _is_rounded(node: NodeLike) -> bool:
    """Return whether a 16-bit constant may be the rounded value of another number.

    Powers of two and their negatives, 0 and NaN count as exact; inf may be a number that is too
    large. It is False for constants of other dtypes.
    """
    if not is_narrow_entry(node.entries[0]):
        return False
    value = node.params["value"].astype(np.float64)
    mantissa = np.abs(np.frexp(value)[0])
    return not bool(np.all(np.isnan(value) | (value == 0) | (mantissa == 0.5)))


def _effect_of_code(node: NodeLike) -> Effect:
    """Return the effect of an elementwise operator: the worst of its FCodeGen expressions.

    It is ROUNDS where the dtype of an input is unknown.

    Raises: RuleError where FCodeGen does not return an expression for each result.
    """
    args = [Var(f"x{k}", e.dtype) for k, e in enumerate(node.inputs) if e.dtype is not None]
    if len(args) < len(node.inputs):
        return Effect.ROUNDS
    return max(map(_effect, call_codegen(node, *args)))


def _effect_of_reduction(reduction: Reduce | Scan) -> Effect:
    """Return the effect of a reduction or scan: that of ``combine`` and of ``finish``.

    A final cast to the result's dtype rounds only what was rounded before.
    """
    parts = [reduction.combine]
    if reduction.finish is not None:
        total = left(reduction.identity.dtype)
        end = (
            reduction.finish(total)
            if isinstance(reduction, Scan)
            else reduction.finish(total, const(1, int64))
        )
        parts.append(end.x if isinstance(end, Cast) else end)
    return max(map(_effect, parts))


def _effect_of_composite(node: NodeLike) -> Effect:
    """Return the effect of a composite, by what FExpand expands it to; ROUNDS if that declines.

    Raises: RuleError where FExpand returns something else than entries or None; ShapeError or
    DTypeError where it needs a rank or dtype that is unknown.
    """
    heads = call_expand(node, node.inputs)
    if heads is None:
        return Effect.ROUNDS
    if worst_rounding(heads, dict.fromkeys(node.inputs, Rounding.NEVER)):
        return Effect.ROUNDS
    once = worst_rounding(heads, dict.fromkeys(node.inputs, Rounding.ONCE))
    return Effect.DECIDES if once is Rounding.BETWEEN else Effect.MOVES


def _effect(x: Expr) -> Effect:
    """Return the effect of evaluating ``x`` on 16-bit values: it rounds, moves or compares them."""
    if may_round(x):
        return Effect.ROUNDS
    return Effect.MOVES if commutes_with_rounding(x) else Effect.DECIDES
