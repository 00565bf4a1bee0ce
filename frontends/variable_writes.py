"""Bookkeeping of variable writes that precede a node in program order."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeVar

Of = TypeVar("Of")
Value = TypeVar("Value")


def latest_writes(
    write_maps: Iterable[Mapping[Of, tuple[int, Value]]],
) -> Mapping[Of, tuple[int, Value]]:
    """Merge maps of variable writes and keep the latest write of each variable.

    Args:
        write_maps: For each predecessor of a node, a map from a variable to the sequence number of
            a write and the value written.

    Returns:
        A map from each variable to the write with the largest number. If all nonempty maps are the
        same object, it is returned without a copy.

    >>> latest_writes([{"a": (1, "old"), "b": (3, "b")}, {"a": (2, "new")}])
    {'a': (2, 'new'), 'b': (3, 'b')}
    """
    nonempty_maps = [writes for writes in write_maps if writes]
    if not nonempty_maps:
        return {}
    first, *later_maps = nonempty_maps
    if all(writes is first for writes in later_maps):
        return first  # most nodes have one past: it is not copied
    merged = dict(first)
    for writes in later_maps:
        for variable, (number, value) in writes.items():
            if variable not in merged or merged[variable][0] < number:
                merged[variable] = (number, value)
    return merged
