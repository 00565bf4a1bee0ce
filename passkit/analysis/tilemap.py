"""Splits: how the elements of a value are shared out over blocks (FusionStitching 2018).

A `Split` is a partition: every element belongs to one block. A `Whole` is what a block needs where
that is none: all of the value, or all that has the leading coordinates of the block.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from functools import lru_cache
from math import gcd, isqrt, log2
from typing import NamedTuple

from attrs import frozen

from passkit.ast import Binary, Expr, size_of
from passkit.ast.index import normal, unravel
from passkit.errors import ScheduleError
from passkit.graph.infer import show_shape
from passkit.values import dtype as dt
from passkit.values.size import Extent, Shape, Size, at_least, divide_exactly, evaluate, numel


class SplitKind(Enum):
    """ROW keeps the dimensions after the split one whole in a block, COLUMN those before it."""

    ROW = "Row"
    COLUMN = "Column"


class Digit(NamedTuple):
    """One digit of a block's number: ``coordinate // chunk`` of a dimension, below ``pieces``."""

    dim: int
    chunk: Extent
    pieces: Extent


@frozen(cache_hash=True)
class Split:
    """The 2018 triple: cut ``split_dim`` into pieces of ``chunk`` elements; the last may be short.

    ``sword``, the number of pieces, is ``ceil(extent / chunk)``. What follows in the shape (ROW) or
    stands before it (COLUMN) is whole in a block; the other dimensions are cut into elements. The
    pieces are numbered in row-major order. A shape () is cut as (1,) is; one without elements is
    not cut at all. Of extents that only a call knows, what cannot be decided is taken not to hold.

    >>> split = Split(1, 4)
    >>> split.blocks((3, 10)), split.number((2, 9), (3, 10)), split.sword(10)
    (9, 8, 3)
    """

    split_dim: int
    chunk: Extent
    kind: SplitKind = SplitKind.ROW

    def sword(self, extent: Extent) -> Extent:
        """How many pieces an extent is cut into."""
        return (extent + self.chunk - 1) // self.chunk

    def digits(self, shape: Shape) -> tuple[Digit, ...]:
        """What a block's number is made of, outermost first, without what is always 0.

        Two splits are the same partition, with the same numbers, just where their digits are equal.

        Raises: ScheduleError for a split that does not fit the shape.
        """
        return _digits(self, shape)

    def _check(self, shape: Shape) -> None:
        if not 0 <= self.split_dim < len(shape):
            raise ScheduleError(
                f"the split {self} needs a dimension {self.split_dim}; the shape "
                f"{show_shape(shape)} has {len(shape)}; split_dim counts from 0"
            )
        if not at_least(self.chunk, 1):
            raise ScheduleError(
                f"the split {self} needs a chunk of 1 or more elements, got {self.chunk}"
            )
        if any(n == 0 for n in shape):
            raise ScheduleError(
                f"the shape {show_shape(shape)} has no elements that the split {self} could share "
                "out; a value without elements needs no blocks"
            )

    def canonical(self, shape: Shape) -> Split:
        """The one of its kind that stands for all splits with the same blocks.

        One block is (0, whole, Row); a dimension that is whole in a Row is cut before it, in a
        Column after it.
        """
        digits = self.digits(shape)
        if not digits:
            return single_block(shape)
        dim, chunk, _ = digits[-1 if self.kind is SplitKind.ROW else 0]
        return Split(dim, chunk, self.kind)

    def same(self, other: Split, shape: Shape) -> bool:
        """Whether both give every element to the same block, as far as that can be known."""
        return self.digits(shape) == other.digits(shape)

    def blocks(self, shape: Shape) -> Extent:
        """How many blocks there are."""
        return numel(d.pieces for d in self.digits(shape))

    def owner(self, index: Sequence[Expr], shape: Shape) -> Expr:
        """The number of the block that has the element at ``index``, as an expression."""
        block: Expr = size_of(0)
        for k, (dim, chunk, pieces) in enumerate(self.digits(shape)):
            at = index[dim]
            at = at if chunk == 1 else Binary("//", at, size_of(chunk), dt.int64)
            block = at if k == 0 else block * size_of(pieces) + at
        return block

    def number(self, index: Sequence[int], shape: Shape) -> int:
        """The number of the block that has the element at ``index``, for a known shape."""
        block = 0
        for dim, chunk, pieces in self.digits(shape):
            block = block * int(pieces) + index[dim] // int(chunk)
        return block

    def elements(self, shape: Shape) -> Extent:
        """How many elements a block has; the last one along the split may have fewer."""
        return numel(self.part(shape))

    def part(self, shape: Shape) -> Shape:
        """The shape of what a block has: 1 where it is cut into elements, the chunk, the rest."""
        cut = {d.dim: d.chunk for d in self.digits(shape)}
        return tuple(cut.get(k, n) for k, n in enumerate(shape or (1,)))

    def local(self, index: Sequence[Expr], shape: Shape) -> tuple[Expr, ...]:
        """The index in its block's `part` of the element at ``index``."""
        cut = {d.dim: d.chunk for d in self.digits(shape)}
        return tuple(
            i if k not in cut else size_of(0) if cut[k] == 1 else i % size_of(cut[k])
            for k, i in enumerate(index)
        )

    def __str__(self) -> str:
        return f"({self.split_dim}, {self.chunk}, {self.kind.value})"


@lru_cache(maxsize=1 << 14)
def _digits(split: Split, shape: Shape) -> tuple[Digit, ...]:
    """The digits of a split: searches ask for those of the same ones again and again."""
    shape = shape or (1,)
    split._check(shape)
    dim, own = split.split_dim, shape[split.split_dim]
    pieces = 1 if at_least(split.chunk, own) else _pieces(own, split.chunk)
    cut = Digit(dim, split.chunk, pieces)
    single = [Digit(k, 1, n) for k, n in enumerate(shape)]
    found = [*single[:dim], cut] if split.kind is SplitKind.ROW else [cut, *single[dim + 1 :]]
    return tuple(d for d in found if d.pieces != 1)


def _pieces(extent: Extent, chunk: Extent) -> Extent:
    """How many chunks an extent has, in lowest terms: 512*n in 2048s is as n in 4s."""
    common = chunk if isinstance(chunk, int) else 1
    for _, factor in extent.terms if isinstance(extent, Size) else (((), extent),):
        common = gcd(common, factor)
    n, c = divide_exactly(extent, common), divide_exactly(chunk, common)
    assert n is not None and c is not None
    exact = divide_exactly(n, c)
    return (n + c - 1) // c if exact is None else exact


def rows_with(points: int, length: Extent) -> Extent:
    """How many rows of ``length`` have about so many points."""
    if isinstance(length, int):
        return max(1, points // max(1, length))
    return points // (length + 1) + 1  # the length may turn out to be 0


def single_block(shape: Shape) -> Split:
    """The split into one block, which every operator allows."""
    return Split(0, shape[0] if shape else 1)


@frozen
class Whole:
    """Every block needs all of the value that has the block's ``prefix`` leading coordinates.

    They are the row-major index ``block // per``, modulo as many as there are: ``per`` blocks in a
    row share one. With no prefix every block needs everything.

    >>> Whole(1, 4).needs(7, (1, 2), (3, 5)), Whole(1, 4).needs(8, (1, 2), (3, 5))
    (True, False)
    """

    prefix: int = 0
    per: Extent = 1

    def canonical(self, shape: Shape) -> Whole:
        """The same need without leading or trailing parts that say nothing."""
        prefix = self.prefix
        while prefix and shape[prefix - 1] == 1:
            prefix -= 1
        return Whole(prefix, self.per) if prefix else WHOLE

    def coordinates(self, block: Expr, shape: Shape) -> tuple[Expr, ...]:
        """The leading coordinates of what a block needs, as expressions of its number."""
        lead = shape[: self.prefix]
        if not lead:
            return ()
        at = Binary("//", block, size_of(self.per), dt.int64) if self.per != 1 else block
        around = Binary("%", at, size_of(numel(lead)), dt.int64)
        return unravel(normal(around, {}), lead, {})

    def needs(self, block: int, index: Sequence[int], shape: Shape) -> bool:
        """Whether a block may need the element at ``index``, for a known shape."""
        at, many = 0, 1
        for i, n in zip(index[: self.prefix], shape[: self.prefix], strict=True):
            at, many = at * int(n) + i, many * int(n)
        return block // int(self.per) % many == at

    def elements(self, shape: Shape) -> Extent:
        """How many elements a block needs."""
        return numel(self.part(shape))

    def part(self, shape: Shape) -> Shape:
        """The shape of what a block needs, with 1 for the leading coordinates that it has."""
        return (1,) * self.prefix + shape[self.prefix :]

    def local(self, index: Sequence[Expr], shape: Shape) -> tuple[Expr, ...]:
        """The index in a block's `part` of the element at ``index``."""
        return (size_of(0),) * self.prefix + tuple(index[self.prefix :])

    def __str__(self) -> str:
        return f"WHOLE({self.prefix})" if self.prefix else "WHOLE"


WHOLE = Whole()
"""Every block needs all of it."""

SplitState = Split | Whole


@frozen
class Reject:
    """An operator cannot be split this way, and why."""

    reason: str


def covering(split: Split, shape: Shape) -> Whole:
    """A `Whole` that has at least what a split gives to each block."""
    digits = split.digits(shape)
    if split.kind is SplitKind.COLUMN or not digits:
        return WHOLE
    last = digits[-1]
    per = 1 if last.chunk == 1 else last.pieces
    return Whole(last.dim + (last.chunk == 1), per).canonical(shape)


def join(a: SplitState, b: SplitState, shape: Shape) -> SplitState:
    """What a block needs that needs both: one of them where they are the same, else a `Whole`."""
    if isinstance(a, Split) and isinstance(b, Split) and a.same(b, shape):
        return a
    first, second = (
        covering(s, shape) if isinstance(s, Split) else s.canonical(shape) for s in (a, b)
    )
    if first.prefix > second.prefix:
        first, second = second, first
    between = numel(shape[first.prefix : second.prefix])
    return first if first.prefix and first.per == second.per * between else WHOLE


MOST = 64
"""How many splits of one value are tried at most."""
BLOCKS = 65_535
"""The most blocks that a launch has."""
GUESS = 4096
"""What an extent that only a call knows is taken for where candidates are put in order, and where
room for it is wanted."""


def candidate_tilings(shape: Shape, most: int = MOST, blocks: int = BLOCKS) -> tuple[Split, ...]:
    """Canonical splits of a shape: no partition twice, at most ``most``, most blocks first.

    Chunks are divisors and powers of two. Where there are too many, Row and Column have half each,
    spread evenly over the logarithms of their numbers of blocks. Equal ones come in a fixed order,
    Row first and strided columns last. A shape without elements has none, nor has one that may have
    none for all that is known, as where an extent is a number of chunks.
    """
    if not all(at_least(n, 1) for n in shape):
        return ()
    shape = shape or (1,)
    found: dict[tuple[Digit, ...], Split] = {}
    for kind in SplitKind:
        for dim, n in enumerate(shape):
            for chunk in _chunks(n):
                split = Split(dim, chunk, kind)
                digits = split.digits(shape)
                many = numel(d.pieces for d in digits)
                if isinstance(many, Size) or many <= blocks:
                    found.setdefault(digits, split.canonical(shape))
    ordered = sorted(found.values(), key=lambda s: _order(s, shape))
    if len(ordered) <= most:
        return tuple(ordered)
    columns = [s for s in ordered if s.kind is SplitKind.COLUMN]
    rows = [s for s in ordered if s.kind is SplitKind.ROW]
    few = min(len(columns), most // 2)
    chosen = _spread(rows, most - few, shape)
    chosen |= _spread(columns, most - len(chosen), shape)
    return tuple(s for s in ordered if s in chosen)


def _chunks(extent: Extent) -> Sequence[Extent]:
    """Divisors and powers of two; of an unknown extent powers of two and all of it."""
    powers = [1 << k for k in range(17)]
    if isinstance(extent, Size):
        return [*powers, extent]
    below = min(isqrt(extent), GUESS)
    small = [d for d in range(1, below + 1) if extent % d == 0]
    divisors = {*small, *(extent // d for d in small), *(p for p in powers if p < extent)}
    return sorted(divisors)


def guessed(size: Extent, guess: int = GUESS) -> int:
    """A size as if every extent that only a call knows were ``guess``."""
    return evaluate(size, dict.fromkeys(size.symbols, guess)) if isinstance(size, Size) else size


def _estimated(split: Split, shape: Shape) -> int:
    return guessed(split.blocks(shape))


def _order(split: Split, shape: Shape) -> tuple[int, bool, bool, int, str]:
    column = split.kind is SplitKind.COLUMN
    strided = column and split.split_dim < len(shape) - 1
    many = _estimated(split, shape)
    return -many, column, strided, split.split_dim, str(split.chunk).zfill(20)


def _spread(splits: list[Split], most: int, shape: Shape) -> set[Split]:
    """At most ``most`` of them, at even steps of the logarithm of their numbers of blocks.

    Both ends are taken. Of those at one step the first that cuts without a rest is taken.
    """
    if len(splits) <= most:
        return set(splits)
    places = [log2(max(1, _estimated(s, shape))) for s in splits]
    top, end = max(places), min(places)
    chosen: set[Split] = set()
    for j in range(most):
        wanted = top - (top - end) * j / max(1, most - 1)

        def distance(k: int, wanted: float = wanted) -> tuple[float, bool, int]:
            n = shape[splits[k].split_dim]
            return abs(places[k] - wanted), divide_exactly(n, splits[k].chunk) is None, k

        free = [k for k, s in enumerate(splits) if s not in chosen]
        chosen.add(splits[min(free, key=distance)])
    return chosen
