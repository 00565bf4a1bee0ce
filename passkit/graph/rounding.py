"""Where a computation on floats of 16 bits rounds: never, once, or between its operations."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import IntEnum

import numpy as np

from passkit.ast import Cast, Expr, Reduce, Scan, Var, const, left
from passkit.ast.rounding import commutes_with_rounding, may_round
from passkit.graph import rules
from passkit.graph.graph import post_order
from passkit.graph.node import AS_READ, CONSTANT, Entry, Node
from passkit.graph.op import FCodeGen, FElement, FExpand, OpPattern
from passkit.values.dtype import int64, is_narrow


class Rounding(IntEnum):
    """How often a value was rounded to 16 bits since the values that its computation was given."""

    NEVER = 0
    ONCE = 1
    BETWEEN = 2
    """It was computed from a value that had been rounded."""


class Effect(IntEnum):
    """The effect of an operator on 16-bit values: it moves them, decides by them, or rounds."""

    MOVES = 0
    """It never rounds, and rounding its inputs is the same as rounding its results."""
    DECIDES = 1
    """It never rounds, but rounding its inputs may change its results by more: a comparison."""
    ROUNDS = 2


def is_narrow_entry(entry: Entry) -> bool:
    """Whether an entry is known to be of floats of 16 bits."""
    return entry.dtype is not None and is_narrow(entry.dtype)


def worst_rounding(heads: Iterable[Entry | None], given: Mapping[Entry, Rounding]) -> Rounding:
    """The worst rounding among ``heads`` of a computation that begins at the entries ``given``."""
    found = dict(given)
    results = [e for e in heads if e is not None]

    def inner(node: Node) -> list[Node]:
        return [e.node for e in node.inputs if e not in given]

    for node in post_order((e.node for e in results if e not in given), inner):
        rounding = _after(node, max((found[e] for e in node.inputs), default=Rounding.NEVER))
        for e in node.entries:
            found.setdefault(e, rounding)
    return max((found[e] for e in results), default=Rounding.NEVER)


def effect_of(node: Node) -> Effect:
    """Return the effect of a node's operator on the 16-bit floats of its inputs and results."""
    op = node.op
    if op is None or op is AS_READ:
        return Effect.MOVES
    if FCodeGen.get(op.name) is not None:
        return _effect_of_code(node)
    if FElement.get(op.name) is not None and op.pattern <= OpPattern.INJECTIVE:
        return Effect.MOVES
    fold = rules.reduce_of(node) or rules.scan_of(node)
    if fold is not None:
        return _effect_of_fold(fold)
    if FExpand.get(op.name) is not None:
        return _effect_of_composite(node)
    return Effect.ROUNDS


def _after(node: Node, before: Rounding) -> Rounding:
    """The rounding of the results of ``node``, whose inputs were rounded as ``before`` says."""
    if node.op is CONSTANT:
        return Rounding.ONCE if _is_rounded(node) else Rounding.NEVER
    effect = effect_of(node)
    if before and effect is not Effect.MOVES:
        return Rounding.BETWEEN
    rounds = effect is Effect.ROUNDS and any(map(is_narrow_entry, node.entries))
    return Rounding.ONCE if rounds and not before else before


def _is_rounded(node: Node) -> bool:
    """Whether a 16-bit constant may stand for a number that it cannot hold.

    Powers of two, 0 and NaN are taken to be meant as they are; inf may be a number that is too
    large.
    """
    if not is_narrow_entry(node.entries[0]):
        return False
    value = node.params["value"].astype(np.float64)
    mantissa = np.abs(np.frexp(value)[0])
    return not bool(np.all(np.isnan(value) | (value == 0) | (mantissa == 0.5)))


def _effect_of_code(node: Node) -> Effect:
    """The effect of an elementwise operator, by its kernel expression."""
    args = [Var(f"x{k}", e.dtype) for k, e in enumerate(node.inputs) if e.dtype is not None]
    if len(args) < len(node.inputs):
        return Effect.ROUNDS
    return max(map(_effect, rules.code(node, *args)))


def _effect_of_fold(fold: Reduce | Scan) -> Effect:
    """The effect of a reduction or scan: that of combining, and of what is done to the total.

    A final cast to the result's dtype rounds only what was rounded before.
    """
    parts = [fold.combine]
    if fold.finish is not None:
        total = left(fold.identity.dtype)
        end = fold.finish(total) if isinstance(fold, Scan) else fold.finish(total, const(1, int64))
        parts.append(end.x if isinstance(end, Cast) else end)
    return max(map(_effect, parts))


def _effect_of_composite(node: Node) -> Effect:
    """The effect of a composite: the worst of what it expands to."""
    heads = rules.expansion(node, node.inputs)
    if heads is None:
        return Effect.ROUNDS
    if worst_rounding(heads, dict.fromkeys(node.inputs, Rounding.NEVER)):
        return Effect.ROUNDS
    once = worst_rounding(heads, dict.fromkeys(node.inputs, Rounding.ONCE))
    return Effect.DECIDES if once is Rounding.BETWEEN else Effect.MOVES


def _effect(x: Expr) -> Effect:
    if may_round(x):
        return Effect.ROUNDS
    return Effect.MOVES if commutes_with_rounding(x) else Effect.DECIDES
