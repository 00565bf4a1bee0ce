"""Which elements that lanes of one number meet follow each other, and how many a lane takes."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence
from functools import reduce

from attrs import frozen

from passkit.ast import Binary, Const, Expr, Load, Select, Var
from passkit.ast.index import normal
from passkit.ast.stage import Fold, Let, Loop, Prefetch, Running, Statement, Store
from passkit.ast.walk import children, variables
from passkit.dialects.base import BundleTemplates
from passkit.ir.rewrite import substitute
from passkit.ir.strides import stride_of
from passkit.transforms.partial_results import memory_of
from passkit.values import dtype as dt
from passkit.values.dtype import DType

MOST_NBYTES = 256
"""Of the registers that all bundles of a stage take: with more, few threads are on a processor."""
BufferElement = tuple[str, Expr]


@frozen
class Tie:
    """The bundles of loops that share what they store: as many elements, and by the same sizes."""

    count: int
    even: tuple[Expr, ...]


@frozen
class Bundle:
    """The elements of a lane from one place on. ``name`` is that of the array that they are in."""

    name: str
    buffer: str
    index: Expr
    dtype: DType
    loaded: bool
    stored: bool


def turns_of(loop: Loop, found: Iterable[Bundle], count: int, templates: BundleTemplates) -> int:
    """How many bundles a lane asks for at a time."""
    ahead = templates.ahead
    loaded = count * sum(b.dtype.nbytes for b in found if b.loaded)
    if ahead is None or not loaded:
        return 1
    turns = min(ahead.most, ahead.nbytes // loaded)
    while turns > 1 and _is_shorter(loop, (turns - 1) * ahead.lanes * count + 1):
        turns -= 1
    return max(1, turns)


def count_of(loop: Loop, found: Sequence[Bundle], templates: BundleTemplates) -> int:
    """How many elements a lane has; 0 where bundles do not pay, or there are too many."""
    sizes = [b.dtype.nbytes for b in found]
    count = min(templates.nbytes // min(sizes), 2 * templates.nbytes // max(sizes))
    short = _is_shorter(loop, count * templates.least)
    few = count < 2 or count * sum(sizes) > MOST_NBYTES or short
    return 0 if few else count


def _is_shorter(loop: Loop, least: int) -> bool:
    """Whether there are known to be less elements."""
    if not isinstance(loop.stop, Const) or not isinstance(loop.start, Const):
        return False
    return int(loop.stop.value) - int(loop.start.value) < least


def plain_of(statements: Iterable[Statement]) -> list[Statement]:
    """Statements with folds in memory as what they store, and without hints."""
    found: list[Statement] = []
    for s in statements:
        if isinstance(s, Fold) and s.buffer is not None:
            old = memory_of(s)
            step = substitute(s.combine, {"a": old, "b": s.value})
            found.append(Store(old.buffer, old.index, step))
        elif not isinstance(s, Prefetch):
            found.append(s)
    return found


def found_in(loop: Loop, statements: Sequence[Statement]) -> list[Bundle] | None:
    """The bundles of statements; None where one loads what one before it has stored."""
    if loop.down or any(isinstance(s, Running) for s in statements):
        return None
    different = {loop.var}
    for s in statements:
        if isinstance(s, Let) and not different.isdisjoint(variables(s.value)):
            different.add(s.var)

    def is_next(index: Expr) -> bool:
        others = different - {loop.var}
        if not others.isdisjoint(variables(index)):
            return False
        return stride_of(index, loop.var, lambda x: loop.var in set(variables(x))) == 1

    loaded: dict[BufferElement, DType] = {}
    stored: dict[BufferElement, DType] = {}
    written: set[str] = set()
    for s in statements:
        for x, always in _loads(s.value):  # type: ignore[union-attr]
            if x.buffer in written:
                return None
            if always and is_next(x.index):
                loaded[x.buffer, x.index] = x.dtype
        if isinstance(s, Store):
            if s.buffer in written:
                return None
            written.add(s.buffer)
            if is_next(s.index):
                stored[s.buffer, s.index] = s.value.dtype
    if any(b in written and (b, i) not in stored for b, i in loaded):
        return None  # what another lane may store
    counts: dict[str, int] = {}
    made = []
    for place, dtype in (loaded | stored).items():
        buffer, index = place
        number = counts[buffer] = counts.get(buffer, -1) + 1
        name = f"{buffer}_bundle{number or ''}"
        made.append(Bundle(name, buffer, index, dtype, place in loaded, place in stored))
    return made


def _loads(x: Expr, always: bool = True) -> Iterator[tuple[Load, bool]]:
    """What an expression loads, and whether it does so whatever it chooses."""
    if isinstance(x, Load):
        yield x, always
    if isinstance(x, Select):
        yield from _loads(x.condition, always)
        yield from _loads(x.a, False)
        yield from _loads(x.b, False)
        return
    for child in children(x):
        yield from _loads(child, always)


def even_in(
    loop: Loop, found: Iterable[Bundle], count: int, sizes: Container[str]
) -> list[Expr] | None:
    """Which sizes must be multiples of ``count`` for bundles of all rows alike.

    None where one is known to be none, or more than sizes decides.
    """
    even = dict.fromkeys(x for x in (loop.start, loop.stop) if is_size(x, sizes))
    known = [int(x.value) for x in (loop.start, loop.stop) if isinstance(x, Const)]
    for b in found:
        total = normal(b.index, {})
        known += [total.constant] if isinstance(total.constant, int) else []
        for atom, c in total.terms:
            if atom in (loop.var, loop.start) or (isinstance(c, int) and c % count == 0):
                continue
            factors = [f for f in _factors(atom) if is_size(f, sizes)]
            if not factors:
                return None
            even[reduce(lambda a, b: Binary("*", a, b, dt.int64), factors)] = None
    return None if any(n % count for n in known) else list(even)


def is_size(x: Expr, sizes: Container[str]) -> bool:
    """Whether a number is an argument of the kernel, the same in all tiles."""
    return isinstance(x, Var) and x.name in sizes


def _factors(x: Expr) -> Iterator[Expr]:
    """What a product is made of."""
    if isinstance(x, Binary) and x.op == "*":
        yield from _factors(x.a)
        yield from _factors(x.b)
    else:
        yield x
