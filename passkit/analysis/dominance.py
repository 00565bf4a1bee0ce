"""Dominance: which values all paths from a value to what leaves the group go through."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from attrs import frozen


@frozen
class Dominance:
    """The dominator tree of a data flow, read from its results back to its operands.

    ``above[v]`` is the first value that all paths from ``v`` to the exit go through: the exit
    itself, which is numbered as one more value, where there is no other; -1 where no path leads
    there. ``first`` and ``last`` number the tree's nodes, so that what lies below a node is a
    range.
    """

    above: tuple[int, ...]
    first: tuple[int, ...]
    last: tuple[int, ...]

    def dominates(self, a: int, b: int) -> bool:
        """Whether every path from ``b`` to a result goes through ``a``; each value is on its own.

        A value from which no path leads to a result is dominated by none, and dominates none.
        """
        if self.above[a] < 0 or self.above[b] < 0:
            return False
        return self.first[a] <= self.first[b] <= self.last[a]


def dominance(operands: Sequence[Sequence[int]], roots: Collection[int]) -> Dominance:
    """The dominators of values given by the numbers of their operands; ``roots`` leave the group.

    Cooper, Harvey and Kennedy: "A Simple, Fast Dominance Algorithm", on the reversed data flow: it
    begins at an exit that all roots lead to, and an edge goes from a user to its operand. The
    data flow must have no cycle: then all users of a value come before it in reverse post-order,
    and one sweep is enough.
    """
    flow = [*operands, tuple(dict.fromkeys(roots))]
    order = _postorder(flow, len(operands))
    number = {v: k for k, v in enumerate(order)}
    users: list[list[int]] = [[] for _ in flow]
    for user in order:
        for v in flow[user]:
            users[v].append(user)
    above = [-1] * len(flow)
    above[order[-1]] = order[-1]
    for v in reversed(order[:-1]):
        found = users[v][0]
        for user in users[v][1:]:
            found = _meet(found, user, above, number)
        above[v] = found
    return Dominance(tuple(above), *_ranges(above, order))


def _postorder(flow: Sequence[Sequence[int]], start: int) -> list[int]:
    """What is reached from ``start``, each after all that it leads to."""
    order: list[int] = []
    seen = {start}
    path = [(start, iter(flow[start]))]
    while path:
        v, rest = path[-1]
        step = next((w for w in rest if w not in seen), None)
        if step is None:
            order.append(v)
            path.pop()
        else:
            seen.add(step)
            path.append((step, iter(flow[step])))
    return order


def _meet(a: int, b: int, above: Sequence[int], number: dict[int, int]) -> int:
    """The nearest node of the tree above both."""
    while a != b:
        while number[a] < number[b]:
            a = above[a]
        while number[b] < number[a]:
            b = above[b]
    return a


def _ranges(above: Sequence[int], order: Sequence[int]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """For each node of the tree its number, parents first, and the last number below it."""
    size = [1] * len(above)
    for v in order[:-1]:
        size[above[v]] += size[v]  # in post-order a node comes before what is above it
    first, used = [0] * len(above), [1] * len(above)
    for v in reversed(order[:-1]):
        parent = above[v]
        first[v] = first[parent] + used[parent]
        used[parent] += size[v]
    return tuple(first), tuple(f + s - 1 for f, s in zip(first, size, strict=True))
