"""Memory: what units leave for each other while they run in order, and what patterns do to that.

A kernel of several units needs all that they read at once. So what one of them would have been done
with stays until the last one's turn has come, and beside what is made meanwhile the peak may grow.

Source: XLA and Inductor, whose users met more memory after fusion; both estimate peaks.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from attrs import frozen

from passkit.graph.node import Entry
from passkit.passes.fusion.board import Board
from passkit.target import Target


@frozen
class _Life:
    """Bytes, and the first and the last unit that runs while they are wanted."""

    nbytes: int
    made: int
    last: int


class Memory:
    """Bytes of values between units of a board: not of inputs, nor of results of the graph.

    ``live`` are those while each unit runs, ``peak`` is the most. Whatever finds ``room`` in caches
    counts for nothing. What unknown sizes are is guessed as everywhere on a board.
    """

    def __init__(self, board: Board) -> None:
        self.board, self.room = board, board.context.target.machine.llc_bytes
        self.lives: dict[Entry, _Life] = {}
        count = len(board.list)
        changes = [0] * (count + 1)
        ends = list(range(count))  # of a silent unit, whose result is the memory that it reads
        for k in reversed(range(count)):
            for e in board.left[k]:
                readers = board.readers.get(e, ())
                last = max((ends[r] if board.list[r].silent else r for r in readers), default=k)
                if board.list[k].silent:
                    ends[k] = max(ends[k], last)
                elif e not in board.heads:
                    self.lives[e] = life = _Life(board.nbytes(e), k, last)
                    changes[k] += life.nbytes
                    changes[last + 1] -= life.nbytes
        total, self.live = 0, list[int]()
        for change in changes[:-1]:
            total += change
            self.live.append(total)
        self.peak = max(self.live, default=0)

    def growth(self, members: Collection[int]) -> int:
        """The bytes by which the peak grows where units are one kernel, in the turn of the last.

        Those in excess of the caches.
        """
        inside, begin, turn = set(members), min(members), max(members)
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
        """The bytes of another peak that neither this one has, nor caches have room for."""
        return max(0, peak - max(self.peak, self.room))

    def _changes(self, inside: set[int], turn: int) -> Iterator[tuple[int, int, int]]:
        """Bytes more, from which unit on and before which one."""
        board = self.board
        read = {e for k in inside for e in board.list[k].reads}
        for e in read:
            life = self.lives.get(e)
            if life is not None and life.made not in inside and life.last < turn:
                yield life.nbytes, max(life.last + 1, min(inside)), turn + 1
        for k in inside:
            for e in board.left[k]:
                life = self.lives.get(e)
                if life is not None:
                    stays = board.readers.get(e, set()) - inside
                    yield -life.nbytes, k, turn if stays else min(life.last, turn) + 1


def penalty(grown: int, target: Target) -> float:
    """The seconds that count for so many bytes more at the peak: they are new to the caches."""
    return target.machine.peak_byte_weight * target.moving(grown) if grown else 0.0
