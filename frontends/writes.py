"""Writes that come before a node: of each variable the last one in the run counts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeVar

Of = TypeVar("Of")
Value = TypeVar("Value")


def newest(found: Iterable[Mapping[Of, tuple[int, Value]]]) -> Mapping[Of, tuple[int, Value]]:
    """The writes of all that come before, of each variable the last.

    >>> newest([{"a": (1, "old"), "b": (3, "b")}, {"a": (2, "new")}])
    {'a': (2, 'new'), 'b': (3, 'b')}
    """
    some = [writes for writes in found if writes]
    if not some:
        return {}
    first, *others = some
    if all(writes is first for writes in others):
        return first  # most nodes have one past: it is not copied
    out = dict(first)
    for writes in others:
        for variable, (number, value) in writes.items():
            if variable not in out or out[variable][0] < number:
                out[variable] = (number, value)
    return out
