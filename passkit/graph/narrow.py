"""16-bit floats: composites and gradients compute in float32 and round each result once.

An operator that is built of several others would round between them to 16 bits: a sum stops growing
at 2,048, a square overflows, a small quotient becomes 0. Where a computation would go on with
values that it has rounded, it is built again on inputs that are widened to float32.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np

from passkit.errors import DTypeError
from passkit.graph.attribute_calls import call_expand
from passkit.graph.call import convert
from passkit.graph.node import CONSTANT, Entry, Node, constant
from passkit.graph.node_view import NodeLike, NodeView
from passkit.graph.op import TStateful
from passkit.graph.rounding import Effect, Rounding, effect_of, is_narrow_entry, worst_rounding
from passkit.values.dtype import float32


def widen(entry: Entry) -> Entry:
    """Return a 16-bit float entry converted to float32, any other entry itself.

    A constant of one element becomes a constant of float32, others are cast.
    """
    if not is_narrow_entry(entry):
        return entry
    if entry.node.op is CONSTANT and entry.node.params["value"].size == 1:
        return constant(entry.node.params["value"].astype(np.float32))
    return convert(entry, float32)


def narrow_like(entry: Entry, like: Entry) -> Entry:
    """Return ``entry`` cast to the dtype of ``like`` if that is a 16-bit float.

    Otherwise, or where ``entry`` has that dtype or an unknown one, return ``entry`` itself.
    """
    return convert(entry, like.dtype) if like.dtype and is_narrow_entry(like) else entry


def expand_node(node: NodeLike, inputs: Sequence[Entry]) -> tuple[Entry, ...] | None:
    """Expand ``node`` by its FExpand so that each 16-bit result is rounded only once.

    Args:
        node: a node whose operator has FExpand.
        inputs: the entries to compute from, in place of the node's inputs.

    Returns:
        The entries that replace the node's results, or None where FExpand declines. Where it
        declines only for float32 inputs, the operator itself runs in float32, and its results are
        rounded.

    Raises:
        RuleError: FExpand does not return an entry for each result, or takes other arguments.
        DTypeError: FExpand mixes dtypes when its 16-bit inputs are widened to float32.
        PasskitError: FExpand refuses the inputs or a parameter, such as by a ShapeError.
    """
    with np.errstate(over="ignore"):  # of constants, in what may be built again
        heads = call_expand(node, inputs)
    if heads is None or not any(map(is_narrow_entry, (*inputs, *node.entries))):
        return heads
    if worst_rounding(heads, dict.fromkeys(inputs, Rounding.NEVER)) <= Rounding.ONCE:
        return heads
    wide = Node(node.op, map(widen, inputs), node.params, node.name)
    with explain_float32(node, "FExpand"):
        wide_heads = call_expand(wide, wide.inputs)
    return tuple(map(narrow_like, wide_heads or wide.entries, heads))


def widened_view(node: NodeLike) -> NodeView:
    """Return a view of ``node`` with its 16-bit inputs and results in float32, for FGradient.

    A result that was rounded is computed again from the widened inputs; for a composite the forward
    computes the same value, before it rounds. Other 16-bit results, and those of operators with
    state, are converted where the widened node gives another dtype.

    Raises: RuleError where an attribute function returns something else than it must; ShapeError or
    DTypeError where one needs a rank or dtype that is unknown.
    """
    assert node.op is not None
    wide = Node(node.op, map(widen, node.inputs), node.params)
    recompute = effect_of(node) is Effect.ROUNDS and not TStateful.get(node.op.name)
    results = [
        (new if recompute else convert(old, new.dtype))
        if new.dtype is not old.dtype and new.dtype is not None and is_narrow_entry(old)
        else old
        for old, new in zip(node.entries, wide.entries, strict=True)
    ]
    return node.view(wide.inputs, results)


@contextmanager
def explain_float32(node: NodeLike, attribute: str) -> Iterator[None]:
    """Replace a DTypeError that the body raises by one that explains that inputs were widened.

    Its message says that the function gets float32 in place of 16-bit floats, and quotes the first.

    Args:
        node: the node that the function was called for.
        attribute: the attribute's name.
    """
    try:
        yield
    except DTypeError as e:
        raise DTypeError(
            f"{attribute} of {node.where} was called with float32 inputs in place of its 16-bit "
            f"floats, so that the result is rounded only once, and mixed dtypes: {e}. It must take "
            f"dtypes from its inputs (x.dtype) instead of writing them down"
        ) from e
