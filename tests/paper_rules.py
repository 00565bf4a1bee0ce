"""The rules of FusionStitching's Table 1 for splits by ``(dimension, pieces, kind)``: oracles.

``sound`` rules are the corrected ones, for canonical splits; each gives the operand's triple, FULL,
or None where the table rejects. `literal_reduce` is the table as it is printed, which is wrong.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod

from passkit.analysis.tilemap import SplitKind

ROW, COLUMN = SplitKind
Shape = tuple[int, ...]
Triple = tuple[int, int, SplitKind]
FULL = "FULL"
Rule = Callable[[Triple], "Triple | str | None"]


def elementwise(triple: Triple) -> Triple:
    """The same for every operand."""
    return triple


def transpose(axes: Shape) -> Rule:
    """Row before the first dimension that moves, Column after the last."""
    moved = [k for k, a in enumerate(axes) if k != a]

    def rule(t: Triple) -> Triple | None:
        fits = t[0] < min(moved) if t[2] is ROW else t[0] > max(moved)
        return t if fits else None

    return rule


def reduce(rank: int, axes: Shape) -> Rule:
    """Row before the first folded dimension, Column after the last; dimensions by the input's."""
    keep = [k for k in range(rank) if k not in axes]

    def rule(t: Triple) -> Triple | None:
        d = keep[t[0]]
        fits = d < min(axes) if t[2] is ROW else d > max(axes)
        return (d, t[1], t[2]) if fits else None

    return rule


def literal_reduce(axes: Shape) -> Rule:
    """As printed: `<=` and `>=`, with the result's numbers of dimensions."""

    def rule(t: Triple) -> Triple | None:
        fits = t[0] <= min(axes) if t[2] is ROW else t[0] >= max(axes)
        return t if fits else None

    return rule


def batch_dot(rank: int) -> Rule:
    """Row within the batch only."""
    return lambda t: t if t[2] is ROW and t[0] < rank - 2 else None


def reshape(source: Shape, shape: Shape) -> Rule:
    """The same blocks of the row-major order (Row), or of what is left of it (Column)."""

    def rule(t: Triple) -> Triple | None:
        d, s, kind = t
        for k, n in enumerate(source):
            if kind is ROW:
                blocks = s * prod(shape[:d])
                pieces, rest = divmod(blocks, prod(source[:k]))
                if rest == 0 and pieces and n % pieces == 0:
                    return k, pieces, ROW
            elif prod(source[k:]) == prod(shape[d:]) and (
                prod(source[k + 1 :]) == prod(shape[d + 1 :]) or s == shape[d]
            ):
                return k, n if s == shape[d] else s, COLUMN
        return None

    return rule


def broadcast(source: Shape, shape: Shape) -> Rule:
    """Dimensions that are not stretched go on; where none is cut every block needs everything."""
    lead = len(shape) - len(source)

    def kept(k: int) -> bool:
        return k >= lead and source[k - lead] == shape[k]

    def rule(t: Triple) -> Triple | str | None:
        d, s, kind = t
        if kind is ROW:
            if not any(k >= lead and source[k - lead] != 1 for k in range(d + 1)):
                return FULL
            return t if lead == 0 and all(kept(k) for k in range(d + 1)) else None
        return (d - lead, s, kind) if all(kept(k) for k in range(d, len(shape))) else None

    return rule


def untouched(first: int, last: int) -> Rule:
    """Concat, slice, pad, scan: Row before the dimensions that are touched, Column after them."""

    def rule(t: Triple) -> Triple | None:
        return t if (t[0] < first if t[2] is ROW else t[0] > last) else None

    return rule
