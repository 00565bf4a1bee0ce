"""Units: what runs by itself, in an order that is kept valid when some of them become one."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence


class Units:
    """Operators by number, or groups of them by the number of one.

    ``needs`` has for each operator, in an order in which they can run, those that it reads or waits
    for. Whether some units can become one is asked of what stands between them, not of all.

    Source: D. J. Pearce, P. H. J. Kelly, A Dynamic Topological Sort Algorithm for Directed Acyclic
    Graphs, 2007.
    """

    def __init__(self, needs: Sequence[Collection[int]]) -> None:
        self.members = {u: [u] for u in range(len(needs))}
        self.of = list(self.members)
        self.before = {u: set(found) for u, found in enumerate(needs)}
        self.after: dict[int, set[int]] = {u: set() for u in self.members}
        for u, found in self.before.items():
            for b in found:
                self.after[b].add(u)
        self._order: list[int | None] = list(self.members)
        self._place = {u: u for u in self.members}

    def __iter__(self) -> Iterator[int]:
        """The units, each behind those that it needs."""
        return (u for u in self._order if u is not None)

    def spans(self) -> dict[int, int]:
        """The length of the longest way from each unit to one that nobody waits for."""
        found: dict[int, int] = {}
        for unit in reversed(list(self)):
            found[unit] = max((found[u] + 1 for u in self.after[unit]), default=0)
        return found

    def can_join(self, units: Collection[int]) -> bool:
        """Whether no way leads from one of ``units`` to another through units outside."""
        return self._below(units) is not None

    def between(self, units: Collection[int]) -> set[int]:
        """The units on ways that lead from some of them to another, but for themselves."""
        first = min(self._place[u] for u in units)
        last = max(self._place[u] for u in units)
        below = self._reached(units, self.after, lambda p: p < last)
        return below & self._reached(units, self.before, lambda p: p > first)

    def _reached(
        self, units: Collection[int], ways: Mapping[int, set[int]], near: Callable[[int], bool]
    ) -> set[int]:
        inside, found = set(units), set[int]()
        todo = [a for u in inside for a in ways[u]]
        while todo:
            unit = todo.pop()
            if unit not in inside and unit not in found and near(self._place[unit]):
                found.add(unit)
                todo += ways[unit]
        return found

    def join(self, units: Collection[int]) -> int:
        """Make some of them one, which has the number of the first, and say that number.

        Raises: ValueError where they cannot be one.
        """
        below = self._below(units)
        if below is None:
            raise ValueError("units that others stand between cannot be one")
        places = sorted(self._place[u] for u in units)
        span = slice(places[0], places[-1] + 1)
        region = [u for u in self._order[span] if u is not None]
        first = next(u for u in region if u in units)
        above = [u for u in region if u not in units and u not in below]
        moved = [*above, first, *(u for u in region if u in below)]
        self._order[span] = [*moved, *[None] * (span.stop - span.start - len(moved))]
        self._place.update({u: span.start + k for k, u in enumerate(moved)})
        self._merge(first, [u for u in region if u in units and u != first])
        return first

    def _merge(self, first: int, others: Collection[int]) -> None:
        inside = {first, *others}
        for u in others:
            self.members[first] += self.members.pop(u)
            self.before[first] |= self.before.pop(u)
            self.after[first] |= self.after.pop(u)
            del self._place[u]
        self.before[first] -= inside
        self.after[first] -= inside
        for k in self.members[first]:
            self.of[k] = first
        for u in self.before[first]:
            self.after[u] = (self.after[u] - inside) | {first}
        for u in self.after[first]:
            self.before[u] = (self.before[u] - inside) | {first}

    def _below(self, units: Collection[int]) -> set[int] | None:
        """The units behind some, as far as these reach in the order; None if one leads back."""
        inside = set(units)
        last = max(self._place[u] for u in inside)
        todo = [a for u in inside for a in self.after[u] if a not in inside]
        found: set[int] = set()
        while todo:
            unit = todo.pop()
            if unit in found or self._place[unit] > last:
                continue
            found.add(unit)
            for a in self.after[unit]:
                if a in inside:
                    return None
                todo.append(a)
        return found
