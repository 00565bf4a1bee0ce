"""Constant folding: evaluate operators whose inputs are all constants, once, in NumPy."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any
from weakref import ref

from passkit.graph.graph import Graph
from passkit.graph.node import CONSTANT, Entry, Node, constant
from passkit.graph.op import OpPattern, TStateful
from passkit.runtime.interpret import interpret
from passkit.values.size import has_symbols, numel

MAX_FOLDED_BYTES = 64 << 20
"""The bytes of the largest value that is folded."""
SMALL_BYTES = 4 << 10
"""Up to this size a value is folded although it is larger than its operands."""
_origins: dict[int, tuple[ref[Any], Entry]] = {}
"""By the id of a folded array: a weak reference to it, and the entry whose value it is."""


def can_fold(node: Node) -> bool:
    """Return whether a node is folded.

    It must be an operator, but no constant; its inputs must be constants, and its outputs have
    known sizes and at most 64 MiB together; it must have no state, no control dependencies and no
    parameter of symbolic size. Elementwise and injective operators whose outputs are larger than
    their inputs (a broadcast, zeros of a shape) are folded only up to 4 KiB, because reading the
    result costs more than computing it.
    """
    if node.op is None or node.op is CONSTANT or node.control or TStateful.get(node.op.name):
        return False
    if any(e.node.op is not CONSTANT for e in node.inputs) or has_symbols(node.params):
        return False
    total = 0
    for entry in node.entries:
        size = nbytes(entry)
        if size is None:
            return False
        total += size
    if total <= SMALL_BYTES:
        return True
    operand_bytes = sum(nbytes(e) or 0 for e in node.inputs)
    replicates = node.op.pattern <= OpPattern.INJECTIVE and total > operand_bytes
    return total <= MAX_FOLDED_BYTES and not replicates


def nbytes(entry: Entry) -> int | None:
    """Return the bytes of an entry, None if dtype, rank or an extent is no known number."""
    if entry.shape is None or entry.dtype is None:
        return None
    count = numel(entry.shape)
    return count * entry.dtype.nbytes if isinstance(count, int) else None


def fold(node: Node) -> Sequence[Entry]:
    """Return constants with the values of a node's outputs, and record their expressions.

    Only those of constants of more than 4 KiB are recorded, for `origin_of`. The node's inputs are
    constants.

    Raises: What `interpret` raises if the operator cannot be evaluated for these values: FeedError
    for the inverse of a singular matrix, CapacityError, RuleError or others.
    """
    values = interpret(Graph(list(node.entries)))
    has_several = len(values) > 1
    folded = [
        constant(v, name=f"{node.name}_{k}" if has_several and node.name else node.name)
        for k, v in enumerate(values)
    ]
    for result, origin in zip(folded, node.entries, strict=True):
        array = result.node.params["value"]
        if array.nbytes > SMALL_BYTES:
            _record_origin(array, origin)
    return folded


def _record_origin(array: Any, origin: Entry) -> None:
    """Record in ``_origins`` that constant folding computed ``array`` from the entry ``origin``.

    The record is dropped with the array, which is referred to weakly.
    """
    key = id(array)

    def forget(_: ref[Any]) -> None:
        """Drop the record of the array, which is garbage now."""
        _origins.pop(key, None)

    _origins[key] = ref(array, forget), origin


def origins() -> Iterator[tuple[Any, Entry]]:
    """Yield each folded array of more than 4 KiB that is alive, with the entry whose value it is.

    The entry's operands are constants, which may have been folded themselves.
    """
    for reference, entry in list(_origins.values()):
        array = reference()
        if array is not None:
            yield array, entry


def origin_of(array: Any) -> Entry | None:
    """Return the entry that was folded into this array object, None if none was recorded."""
    reference, entry = _origins.get(id(array), (None, None))
    return entry if reference is not None and reference() is array else None
