"""Arguments that `functools.lru_cache` ignores, for caches whose key is a digest."""

from __future__ import annotations

from typing import Generic, TypeVar

T = TypeVar("T")


class UncachedArgument(Generic[T]):
    """A wrapper that equals any other, so that a cached function ignores this argument.

    The cache key is then a digest passed beside it: hashing the value itself, such as a group of
    nodes, would cost more than the look-up saves.
    """

    def __init__(self, value: T) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        """Return whether ``other`` is a wrapper, too, whatever either holds."""
        return isinstance(other, UncachedArgument)

    def __hash__(self) -> int:
        """Return 0, for all wrappers."""
        return 0
