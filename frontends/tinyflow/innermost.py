"""What ``with`` makes the default: in each thread a stack of its own, the innermost last."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Generic, TypeVar

T = TypeVar("T")


class Innermost(threading.local, Generic[T]):
    """Things that are the default one inside the other; every thread begins with none."""

    def __init__(self) -> None:
        self.items: list[T] = []

    @property
    def last(self) -> T | None:
        """The default, if there is one."""
        return self.items[-1] if self.items else None

    @contextmanager
    def within(self, item: T) -> Iterator[T]:
        """Inside, ``item`` is the default."""
        self.items.append(item)
        try:
            yield item
        finally:
            self.drop(item)

    def drop(self, item: T) -> None:
        """Take out the innermost of these, if there is one: blocks may end in any order."""
        for k in reversed(range(len(self.items))):
            if self.items[k] is item:
                del self.items[k]
                return
