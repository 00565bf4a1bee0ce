"""Vector accesses of threads: which elements follow each other, and how many a thread has.

A loop over threads becomes two: one whose iterations have several consecutive elements each, which
are loaded by one access in front of all that they are for and stored behind it, and the loop as it
was for the elements that are left.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence
from functools import reduce

from attrs import evolve, frozen

from passkit.ast import Binary, Const, Expr, Load, Select, Var
from passkit.ast.index import expression, normal
from passkit.ast.stage import Fold, Loop, Prefetch, Running, Statement, Store
from passkit.ast.tidy import replace_children
from passkit.ast.walk import children, variables
from passkit.ir.features import AccessFeatures
from passkit.ir.rewrite import substitute
from passkit.ir.strides import stride_of
from passkit.ir.threads import (
    AccessArray,
    AccessFor,
    ElementFor,
    ThreadFor,
    ThreadStmt,
    element_of,
    rest_of,
)
from passkit.transforms.partial_results import memory_of
from passkit.transforms.vector_shape import vector_variables
from passkit.values import dtype as dt
from passkit.values.dtype import DType

MOST_NBYTES = 256
"""The most bytes of registers for all arrays of a stage: with more, few threads are resident."""
BufferElement = tuple[str, Expr]


@frozen
class Agreement:
    """The accesses of loops that share what they store: as many elements, and by the same sizes.

    Attributes:
        count: the elements of an iteration; 0 for loops without vector accesses.
        multiples: the sizes that must be multiples of ``count``.
    """

    count: int
    multiples: tuple[Expr, ...]


@frozen
class ThreadAccesses:
    """The vector accesses of a loop, see `passkit.ir.threads.AccessFor`.

    ``statements`` are those of an element, with the elements of arrays in the place of buffers.
    """

    loop: Loop
    count: int
    arrays: tuple[AccessArray, ...]
    statements: tuple[Statement, ...]
    is_by_size: bool
    multiples: tuple[Expr, ...]
    is_ragged: bool

    @property
    def starts(self) -> tuple[AccessArray, ...]:
        """Return the arrays with the indices of the first elements of the loop."""
        begin = {self.loop.var.name: self.loop.start}
        return tuple(
            evolve(a, index=expression(normal(substitute(a.index, begin), {}))) for a in self.arrays
        )


def thread_accesses(
    loop: Loop,
    statements: Iterable[Statement],
    features: AccessFeatures | None,
    sizes: Container[str],
    agreement: Agreement | None,
) -> ThreadAccesses | None:
    """Return the vector accesses of a loop; None where there are none, or too many.

    A loop without an agreement may test addresses, unless it reduces over its iterations: the bits
    of a reduction must not depend on where an array is.

    Args:
        loop: the loop over elements.
        statements: its statements.
        features: the vector accesses of the language.
        sizes: the names of the kernel's size arguments.
        agreement: what the loop has in common with others; None for nothing.
    """
    if features is None or features.vector_functions is not None:
        return None
    plain = plain_statements(statements)
    arrays = consecutive_elements(loop, plain)
    if arrays is None or (agreement is None and not arrays):
        return None
    count = agreement.count if agreement is not None else access_count(loop, arrays, features)
    reduces = any(isinstance(s, Fold) for s in plain)
    multiples: Sequence[Expr] | None = ()
    if agreement is not None:
        multiples = agreement.multiples
    elif reduces and count:
        multiples = required_multiples(loop, arrays, count, sizes)
    if not count or multiples is None:
        return None
    is_by_size = reduces or agreement is not None
    ends_by_size = all(isinstance(x, Const) or is_size(x, sizes) for x in (loop.start, loop.stop))
    return ThreadAccesses(
        loop,
        count,
        tuple(arrays),
        elements_of_arrays(loop, plain, arrays),
        is_by_size,
        tuple(multiples),
        is_by_size and not ends_by_size,
    )


def access_count(loop: Loop, arrays: Sequence[AccessArray], features: AccessFeatures) -> int:
    """Return how many elements an iteration has; 0 where vector accesses do not pay."""
    sizes = [a.dtype.nbytes for a in arrays]
    count = min(features.nbytes // min(sizes), 2 * features.nbytes // max(sizes))
    is_short = _is_shorter(loop, count * features.least)
    return 0 if count < 2 or count * sum(sizes) > MOST_NBYTES or is_short else count


def _is_shorter(loop: Loop, least: int) -> bool:
    """Return whether a loop is known to have less iterations."""
    if not isinstance(loop.stop, Const) or not isinstance(loop.start, Const):
        return False
    return int(loop.stop.value) - int(loop.start.value) < least


def plain_statements(statements: Iterable[Statement]) -> list[Statement]:
    """Return statements with reductions in memory as what they store, and without hints."""
    plain: list[Statement] = []
    for s in statements:
        if isinstance(s, Fold) and s.buffer is not None:
            old = memory_of(s)
            step = substitute(s.combine, {"a": old, "b": s.value})
            plain.append(Store(old.buffer, old.index, step))
        elif not isinstance(s, Prefetch):
            plain.append(s)
    return plain


def consecutive_elements(loop: Loop, statements: Sequence[Statement]) -> list[AccessArray] | None:
    """Return the arrays of a loop: elements of buffers that are next to each other.

    None where a statement loads what one before it has stored.
    """
    if loop.down or any(isinstance(s, Running) for s in statements):
        return None
    others = vector_variables(statements, loop.var) - {loop.var}

    def is_next(index: Expr) -> bool:
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
        return None  # an element that another thread may store
    counts: dict[str, int] = {}
    arrays = []
    for element, dtype in (loaded | stored).items():
        buffer, index = element
        number = counts[buffer] = counts.get(buffer, -1) + 1
        name = f"{buffer}_vector{number or ''}"
        arrays.append(AccessArray(name, buffer, index, dtype, element in loaded, element in stored))
    return arrays


def _loads(x: Expr, always: bool = True) -> Iterator[tuple[Load, bool]]:
    """Yield the loads of an expression, and whether each happens whatever it chooses."""
    if isinstance(x, Load):
        yield x, always
    if isinstance(x, Select):
        yield from _loads(x.condition, always)
        yield from _loads(x.a, False)
        yield from _loads(x.b, False)
        return
    for child in children(x):
        yield from _loads(child, always)


def required_multiples(
    loop: Loop, arrays: Iterable[AccessArray], count: int, sizes: Container[str]
) -> list[Expr] | None:
    """Return the sizes that must be multiples of ``count`` for the accesses of all rows alike.

    None where one is known to be none, or more than sizes decides.
    """
    multiples = dict.fromkeys(x for x in (loop.start, loop.stop) if is_size(x, sizes))
    numbers = [int(x.value) for x in (loop.start, loop.stop) if isinstance(x, Const)]
    for a in arrays:
        total = normal(a.index, {})
        numbers += [total.constant] if isinstance(total.constant, int) else []
        for atom, c in total.terms:
            if atom in (loop.var, loop.start) or (isinstance(c, int) and c % count == 0):
                continue
            factors = [f for f in _factors(atom) if is_size(f, sizes)]
            if not factors:
                return None
            multiples[reduce(lambda a, b: Binary("*", a, b, dt.int64), factors)] = None
    return None if any(n % count for n in numbers) else list(multiples)


def is_size(x: Expr, sizes: Container[str]) -> bool:
    """Return whether a number is an argument of the kernel, the same in all tiles."""
    return isinstance(x, Var) and x.name in sizes


def _factors(x: Expr) -> Iterator[Expr]:
    """Yield the factors of a product."""
    if isinstance(x, Binary) and x.op == "*":
        yield from _factors(x.a)
        yield from _factors(x.b)
    else:
        yield x


def elements_of_arrays(
    loop: Loop, statements: Iterable[Statement], arrays: Iterable[AccessArray]
) -> tuple[Statement, ...]:
    """Return statements with the elements of arrays in the place of those of buffers."""
    element = element_of(loop)
    names = {(a.buffer, a.index): a.name for a in arrays}

    def expr(x: Expr) -> Expr:
        if isinstance(x, Load) and (x.buffer, x.index) in names:
            return Load(names[x.buffer, x.index], element, x.dtype)
        return replace_children(x, expr)

    def statement(s: Statement) -> Statement:
        assert not isinstance(s, Prefetch)
        moved = evolve(s, value=expr(s.value))
        if isinstance(moved, Store) and (moved.buffer, moved.index) in names:
            return evolve(moved, buffer=names[moved.buffer, moved.index], index=element)
        return moved

    return tuple(map(statement, statements))


def access_for(accesses: ThreadAccesses, body: Iterable[ThreadStmt], plain: ThreadFor) -> AccessFor:
    """Return the loop of vector accesses with the statements of an iteration.

    ``plain`` is the loop without vector accesses.
    """
    loop = accesses.loop
    return AccessFor(
        loop,
        accesses.count,
        accesses.arrays,
        accesses.is_by_size,
        accesses.multiples,
        () if accesses.is_by_size else accesses.starts,
        accesses.is_ragged,
        tuple(body),
        evolve(plain, loop=evolve(loop, start=rest_of(loop))),
    )


def element_loop(loop: Loop, body: Iterable[ThreadStmt], is_ragged: bool) -> ElementFor:
    """Return the loop over the elements of an access of a loop.

    Where the access ``is_ragged``, the numbers of elements say which of them exist.
    """
    statements = tuple(body)
    return ElementFor(statements, is_ragged or any(_reads(s, loop.var) for s in statements))


def _reads(s: ThreadStmt, var: Var) -> bool:
    """Return whether a statement of an element reads a variable."""
    parts = (getattr(s, name, None) for name in ("value", "index"))
    return any(isinstance(x, Expr) and var in set(variables(x)) for x in parts)
