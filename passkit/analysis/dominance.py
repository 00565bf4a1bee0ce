"""Dominance: the values through which all paths from a value to the results of a group lead."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from attrs import frozen


@frozen
class Dominance:
    """The dominator tree of the reversed data flow, from results to operands.

    The exit, to which all results lead, is numbered as one more value.

    Attributes:
        above: for each value its immediate dominator: the first value through which all paths from
            it to the exit lead, or the exit itself; -1 if no path leads there.
        first: the number of each node of the tree, in pre-order.
        last: the last number in the subtree of each node.
    """

    above: tuple[int, ...]
    first: tuple[int, ...]
    last: tuple[int, ...]

    def dominates(self, a: int, b: int) -> bool:
        """Return whether every path from ``b`` to a result leads through ``a``; so does ``b``.

        A value from which no path leads to a result is dominated by none, and dominates none.
        """
        if self.above[a] < 0 or self.above[b] < 0:
            return False
        return self.first[a] <= self.first[b] <= self.last[a]


def dominance(operands: Sequence[Sequence[int]], roots: Collection[int]) -> Dominance:
    """Return the dominator tree of a data flow without cycles.

    Source: Cooper, Harvey and Kennedy, "A Simple, Fast Dominance Algorithm", on the reversed data
    flow. All users of a value come before it in reverse post-order, so one sweep is enough.

    Args:
        operands: for each value the numbers of its operands.
        roots: the numbers of the results.
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
        dominator = users[v][0]
        for user in users[v][1:]:
            dominator = _nearest_common(dominator, user, above, number)
        above[v] = dominator
    return Dominance(tuple(above), *_ranges(above, order))


def _postorder(flow: Sequence[Sequence[int]], start: int) -> list[int]:
    """Return the values that are reached from a value in post-order: operands before users."""
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


def _nearest_common(a: int, b: int, above: Sequence[int], number: dict[int, int]) -> int:
    """Return the nearest common ancestor of two nodes of the tree, by post-order numbers."""
    while a != b:
        while number[a] < number[b]:
            a = above[a]
        while number[b] < number[a]:
            b = above[b]
    return a


def _ranges(above: Sequence[int], order: Sequence[int]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the pre-order number of each node, and the last number in its subtree."""
    size = [1] * len(above)
    for v in order[:-1]:
        size[above[v]] += size[v]  # in post-order a node comes before its dominators
    first, used = [0] * len(above), [1] * len(above)
    for v in reversed(order[:-1]):
        parent = above[v]
        first[v] = first[parent] + used[parent]
        used[parent] += size[v]
    return tuple(first), tuple(f + s - 1 for f, s in zip(first, size, strict=True))
