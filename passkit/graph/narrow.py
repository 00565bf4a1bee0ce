"""Floats of 16 bits: composites and gradients compute in float32 and round each result once.

An operator that is built of several others would round between them in 16 bits: a sum stops growing
at 2,048, a square overflows, a small quotient becomes 0. Where a computation would go on with
values that it has rounded, it is built again on inputs that are widened to float32.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np

from passkit.errors import DTypeError
from passkit.graph import rules
from passkit.graph.call import convert
from passkit.graph.node import CONSTANT, Entry, Node, constant
from passkit.graph.op import TStateful
from passkit.graph.rounding import Effect, Rounding, effect_of, is_narrow_entry, worst_rounding
from passkit.values.dtype import float32


def widened(entry: Entry) -> Entry:
    """``entry`` in float32 if it is a float of 16 bits; a constant number stays a constant."""
    if not is_narrow_entry(entry):
        return entry
    if entry.node.op is CONSTANT and entry.node.params["value"].size == 1:
        return constant(entry.node.params["value"].astype(np.float32))
    return convert(entry, float32)


def expanded(node: Node, inputs: Sequence[Entry]) -> tuple[Entry, ...] | None:
    """Expand ``node`` on ``inputs`` by its FExpand, and round each 16-bit result once.

    None where FExpand declines. Where it declines in float32 only, the operator runs in float32.

    Raises: DTypeError where FExpand mixes dtypes when its 16-bit inputs come as float32.
    """
    with np.errstate(over="ignore"):  # of constants, in what may be built again
        heads = rules.expansion(node, inputs)
    if heads is None or not any(map(is_narrow_entry, (*inputs, *node.entries))):
        return heads
    if worst_rounding(heads, dict.fromkeys(inputs, Rounding.NEVER)) <= Rounding.ONCE:
        return heads
    view = Node(node.op, map(widened, inputs), node.params, node.name)
    with in_float32(node, "FExpand"):
        again = rules.expansion(view, view.inputs)
    return tuple(map(narrowed, again or view.entries, heads))


def narrowed(entry: Entry, like: Entry) -> Entry:
    """``entry`` rounded to the dtype of ``like`` if that is a float of 16 bits."""
    return convert(entry, like.dtype) if like.dtype and is_narrow_entry(like) else entry


def widened_view(node: Node) -> Node:
    """``node`` as a gradient rule is to see it: its 16-bit inputs and results in float32.

    A result that was rounded is computed again from the widened inputs; that of a composite is what
    the forward computes, too, before it rounds. Other results are cast.
    """
    assert node.op is not None
    again = Node(node.op, map(widened, node.inputs), node.params)
    rounds = effect_of(node) is Effect.ROUNDS and not TStateful.get(node.op.name)
    results = [
        (new if rounds else convert(old, new.dtype))
        if new.dtype is not old.dtype and new.dtype is not None and is_narrow_entry(old)
        else old
        for old, new in zip(node.entries, again.entries, strict=True)
    ]
    return node.seen(again.inputs, results)


@contextmanager
def in_float32(node: Node, attribute: str) -> Iterator[None]:
    """Explain a DTypeError of a rule that is given float32 in place of floats of 16 bits."""
    try:
        yield
    except DTypeError as e:
        raise DTypeError(
            f"{attribute} of {node.where} is given float32 in place of floats of 16 bits, so that "
            f"it rounds once, and must take the dtypes of what it makes from what it is given: {e}"
        ) from e
