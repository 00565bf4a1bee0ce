"""Constant folding: `interpret` evaluates, once, an operator whose inputs are all constants."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any
from weakref import ref

from passkit.graph.graph import Graph
from passkit.graph.node import CONSTANT, Entry, Node, constant
from passkit.graph.op import OpPattern, TStateful
from passkit.values.size import awaits, numel

MOST = 64 << 20
"""Bytes of the largest value that folding makes."""
SMALL = 4 << 10
"""Bytes up to which a value may be folded although it is larger than its operands."""
_origins: dict[int, tuple[ref[Any], Entry]] = {}
"""By the id of a folded array: a weak reference to it, and the entry that it is the value of."""


def can_fold(node: Node) -> bool:
    """Whether a node is to be computed now.

    It has constant inputs, no state and no parameter that waits for a size, and the result is at
    most 64 MiB. What only spreads a value out (a broadcast, zeros of a shape) is left alone:
    reading it costs more than making it.
    """
    if node.op is None or node.op is CONSTANT or node.control or TStateful.get(node.op.name):
        return False
    if any(e.node.op is not CONSTANT for e in node.inputs) or awaits(node.params):
        return False
    sizes = [nbytes(e) for e in node.entries]
    total = 0
    for size in sizes:
        if size is None:
            return False
        total += size
    if total <= SMALL:
        return True
    spreads = node.op.pattern <= OpPattern.INJECTIVE
    return total <= MOST and not (spreads and total > sum(nbytes(e) or 0 for e in node.inputs))


def nbytes(entry: Entry) -> int | None:
    """The bytes of an entry, or None when they are not known before a call."""
    if entry.shape is None or entry.dtype is None:
        return None
    count = numel(entry.shape)
    return count * entry.dtype.nbytes if isinstance(count, int) else None


def fold(node: Node) -> Sequence[Entry]:
    """Return constants with the values of a node's results, and remember where they come from."""
    from passkit.runtime.interpret import interpret  # NumPy code that most graphs never need here

    values = interpret(Graph(list(node.entries)))
    many = len(values) > 1
    folded = [
        constant(v, name=f"{node.name}_{k}" if many and node.name else node.name)
        for k, v in enumerate(values)
    ]
    for result, origin in zip(folded, node.entries, strict=True):
        array = result.node.params["value"]
        if array.nbytes > SMALL:
            _remember(array, origin)
    return folded


def _remember(array: Any, origin: Entry) -> None:
    """Note the entry that an array is the value of, for as long as the array lives."""
    key = id(array)

    def forget(_: ref[Any]) -> None:
        _origins.pop(key, None)

    _origins[key] = ref(array, forget), origin


def origins() -> Iterator[tuple[Any, Entry]]:
    """Yield each folded array of more than 4 KiB that is alive, with the entry that it was.

    The entry's operands are constants, which may have been folded themselves. `origin_of` looks
    one up.
    """
    for reference, entry in list(_origins.values()):
        array = reference()
        if array is not None:
            yield array, entry


def origin_of(array: Any) -> Entry | None:
    """Return the entry whose value was folded into this very array; None where there is none."""
    reference, entry = _origins.get(id(array), (None, None))
    return entry if reference is not None and reference() is array else None
