"""Memory: the values that clusters leave for each other, and how merges raise their peak.

A kernel of several clusters needs all that they read at once. So values that one of them was the
last to read live until the kernel runs, and with what is computed meanwhile the peak may grow.

Source: XLA and Inductor, whose users met more memory after fusion; both estimate peaks.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from attrs import frozen

from passkit.fusion.cluster_groups import ClusterGroups
from passkit.graph.node import Entry


@frozen
class _LiveValue:
    """The bytes of a value, and the first and the last cluster that need it while they run."""

    nbytes: int
    start: int
    end: int


class Memory:
    """The bytes of values between clusters that run in order.

    Inputs and results of the graph are not counted. Unknown sizes have the values that
    `ClusterGroups.nbytes` assumes.

    Attributes:
        groups: the clusters.
        room: the bytes that caches hold; so many count for nothing.
        live: the bytes while each cluster runs.
        peak: the largest of these.
    """

    def __init__(self, groups: ClusterGroups) -> None:
        self.groups, self.room = groups, groups.context.target.machine.llc_bytes
        self._values: dict[Entry, _LiveValue] = {}
        count = len(groups)
        changes = [0] * (count + 1)
        # The result of a silent cluster is the memory that it reads.
        ends = list(range(count))
        for k in reversed(range(count)):
            for e in groups.live_outs[k]:
                readers = groups.readers(e)
                end = max((ends[r] if groups.takes_no_time[r] else r for r in readers), default=k)
                if groups.takes_no_time[k]:
                    ends[k] = max(ends[k], end)
                elif e not in groups.quotient.heads:
                    self._values[e] = value = _LiveValue(groups.nbytes(e), k, end)
                    changes[k] += value.nbytes
                    changes[end + 1] -= value.nbytes
        total, self.live = 0, list[int]()
        for change in changes[:-1]:
            total += change
            self.live.append(total)
        self.peak = max(self.live, default=0)

    def growth(self, numbers: Collection[int]) -> int:
        """Return the bytes by which the peak grows, beyond the caches, if clusters are one kernel.

        The kernel runs in the turn of the last of them.
        """
        inside, begin, turn = set(numbers), min(numbers), max(numbers)
        changes = [0] * (turn - begin + 2)
        for nbytes, first, behind in self._changes(inside, turn):
            changes[first - begin] += nbytes
            changes[behind - begin] -= nbytes
        total = most = 0
        for k in range(begin, turn + 1):
            total += changes[k - begin]
            most = max(most, self.live[k] + total)
        return self.beyond(most)

    def beyond(self, peak: int) -> int:
        """Return the bytes of another peak that exceed this one, and the room in caches."""
        return max(0, peak - max(self.peak, self.room))

    def _changes(self, inside: set[int], turn: int) -> Iterator[tuple[int, int, int]]:
        """Yield changes of the live bytes, each from a cluster on and before another one.

        Args:
            inside: the clusters that become one kernel.
            turn: the last of them.
        """
        groups = self.groups
        read = {e for k in inside for e in groups.quotient.clusters[k].live_ins}
        for e in read:
            value = self._values.get(e)
            if value is not None and value.start not in inside and value.end < turn:
                yield value.nbytes, max(value.end + 1, min(inside)), turn + 1
        for k in inside:
            for e in groups.live_outs[k]:
                value = self._values.get(e)
                if value is not None:
                    stays = groups.readers(e) - inside
                    yield -value.nbytes, k, turn if stays else min(value.end, turn) + 1
