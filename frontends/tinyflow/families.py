"""Shapes of one rank that feeds of unknown rank came with, and what is the same in all of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from attrs import define, field

from passkit.values.size import Shape, Size

Fed = Mapping[Any, tuple[int, ...]]
"""For each placeholder the shape of what it is fed."""


def rank_of(shapes: Iterable[tuple[int, ...]]) -> tuple[tuple[bool, ...], ...]:
    """The ranks of shapes, and which sizes are 1, as these broadcast.

    >>> rank_of([(32, 1), ()])
    ((False, True), ())
    """
    return tuple(tuple(n == 1 for n in shape) for shape in shapes)


@define(eq=False)
class Family:
    """The feeds of one rank.

    >>> family = Family()
    >>> family.joined({"x": (32, 784), "y": (32,)})
    >>> family.joined({"x": (50, 784), "y": (50,)})
    {'x': (fed.0, 784), 'y': (fed.0,)}
    >>> family.fits({"x": (7, 784), "y": (7,)}), family.fits({"x": (7, 784), "y": (9,)})
    (True, False)
    """

    is_exact: bool = False
    """Whether every shape needs a plan of its own."""
    _came: list[list[int]] = field(factory=list)
    """The sizes of the feeds that came, one after the other."""
    _free: dict[Any, Shape] | None = None

    def fits(self, fed: Fed) -> bool:
        """Whether the plan with free sizes serves a feed."""
        if self._free is None or self.is_exact:
            return False
        known: dict[Any, int] = {}
        sizes = (n for shape in self._free.values() for n in shape)
        numbers = (n for shape in fed.values() for n in shape)
        return all(known.setdefault(n, m) == m if isinstance(n, Size) else n == m
                   for n, m in zip(sizes, numbers, strict=True))

    def joined(self, fed: Fed) -> dict[Any, Shape] | None:
        """The shapes of all feeds so far, with free sizes where they differ.

        None for the first feed, and where every shape needs a plan of its own.
        """
        self._came.append([n for shape in fed.values() for n in shape])
        if len(self._came) == 1 or self.is_exact:
            return None
        names: dict[tuple[int, ...], Size] = {}
        columns = iter(list(zip(*self._came, strict=True)))
        self._free = {
            key: tuple(_size(next(columns), names) for _ in shape) for key, shape in fed.items()
        }
        return self._free


def _size(column: tuple[int, ...], names: dict[tuple[int, ...], Size]) -> int | Size:
    """The size that was so much in each feed: a number, or one that a call tells."""
    if len(set(column)) == 1:
        return column[0]
    return names.setdefault(column, Size.symbol(f"fed.{len(names)}"))
