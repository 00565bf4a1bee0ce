"""Whether each element of an array belongs to one thread, for strides that only a call knows.

An index such as ``row * n + j`` is a sum of terms with symbolic coefficients. If ``0 <= j < n``, as
guards and the bounds of loops say, then ``row`` and ``j`` follow from the element as its digits in
a mixed radix. Their digits in turn are the block, the threads and the iterations of loops. Where
all accesses to an array find the block and the threads in the same way, an element has one thread.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from attrs import evolve, frozen

from passkit.ast.expr import Binary, Const, Expr, Load, SizeOf, Var, const, size_of
from passkit.ast.index import Sum, add, normal
from passkit.ast.tidy import replace_children
from passkit.ast.walk import loads, minimum_operands, walk
from passkit.checks.digits import Path, digits_of
from passkit.checks.size_bounds import SizeBounds, positive
from passkit.ir.loop import (
    Bind,
    For,
    If,
    KernelIR,
    LastBlock,
    LetStmt,
    Return,
    Stmt,
    StoreStmt,
    ThreadIndex,
    VectorLoad,
    VectorStore,
    expressions_of,
    walk_statements,
)
from passkit.ir.rewrite import substitute
from passkit.values.dtype import bool_, int64
from passkit.values.size import Extent, Quotient, Size, divide_exactly

_THREADS = {bind: f"@{bind.value}" for bind in (Bind.GRID, Bind.THREAD_Y, Bind.THREAD_X)}
_GRID = _THREADS[Bind.GRID]
_ELEMENT = Var("vector'", int64)
"""The position in a vector access."""


@frozen
class _Access:
    """An access that finds the block and the threads of its element.

    Attributes:
        threads: for the block and each thread index, by name, how it follows from the element.
            Indices of which there is one value are left out.
        sides: the branches around it whose condition is the same for all threads of a block, by
            number, each with whether the condition holds.
    """

    threads: Mapping[str, Path]
    sides: tuple[tuple[int, bool], ...]

    def agrees(self, other: _Access) -> bool:
        """Return whether another access of the element is by the same thread, if there is one."""
        own = dict(self.sides)
        if any(own.get(branch, side) is not side for branch, side in other.sides):
            return self.threads.get(_GRID) == other.threads.get(_GRID)
        return self.threads == other.threads


@frozen
class _Position:
    """Where a statement is.

    Attributes:
        values: the values of variables, with literals, sizes and indices of threads alone.
        bounds: what is known of them.
        only: the threads that come here, where a condition names one, by name.
        sides: the branches around it, see `_Access`.
    """

    values: Mapping[str, Expr]
    bounds: SizeBounds
    only: Mapping[str, int]
    sides: tuple[tuple[int, bool], ...] = ()

    def closed(self, x: Expr) -> Expr:
        """Return an expression with the values of its variables."""
        if isinstance(x, Var):
            return self.values.get(x.name, x)
        if isinstance(x, ThreadIndex):
            name = _THREADS[x.bind]
            return const(self.only[name], int64) if name in self.only else Var(name, int64)
        whole = replace_children(x, self.closed)
        if isinstance(whole, Binary) and whole.op == "//":  # of sizes: it is a size, too
            a, b = self.bounds.sum(whole.a), self.bounds.sum(whole.b)
            if not a.terms and not b.terms and b.constant != 0:
                return size_of(a.constant // b.constant)
        return whole

    def where(self, condition: Expr, holds: bool) -> _Position:
        """Return the position where a condition, of closed values, holds or does not."""
        facts = (*self.bounds.facts, *self.bounds.facts_of(condition, holds))
        only = {**self.only, **dict(_named_threads(condition))} if holds else self.only
        return evolve(self, bounds=evolve(self.bounds, facts=facts), only=only)


def _named_threads(condition: Expr) -> Iterator[tuple[str, int]]:
    """Yield the threads that a condition names: ``tx == 0``."""
    match condition:
        case Binary("&", a, b):
            yield from _named_threads(a)
            yield from _named_threads(b)
        case Binary("==", Var(name), Const() as value) if name in _THREADS.values():
            yield name, value.integer


def has_own_elements(
    kernel: KernelIR, names: frozenset[str], sizes: Sequence[Extent], blocks: Extent
) -> bool:
    """Return whether each element of an array is certainly accessed by one thread alone.

    Args:
        kernel: the kernel in final form.
        names: the names of the array, which is several parameters if they share memory.
        sizes: the values of the size arguments.
        blocks: the number of blocks.
    """
    if any(isinstance(s, LastBlock) for s in walk_statements(kernel.body)):
        return False
    launch = kernel.launch
    counts = {Bind.GRID: blocks, Bind.THREAD_Y: launch.y, Bind.THREAD_X: launch.x}
    extents = {_THREADS[bind]: n for bind, n in counts.items()}
    values: dict[str, Expr] = {
        name: SizeOf(n) if isinstance(n, Size) else const(n, int64)
        for name, n in zip(kernel.sizes, sizes, strict=True)
    }
    needed = frozenset(name for name, n in extents.items() if n != 1)
    products = _products(kernel, values)
    limits = tuple(dict.fromkeys(_limits((blocks, *sizes, *products))))
    bounds = SizeBounds(extents, (), limits)
    collector = _Collector(names, needed)
    collector.body(kernel.body, _Position(values, bounds, {}))
    accesses = collector.accesses
    return collector.is_understood and all(
        a.agrees(b) for k, a in enumerate(accesses) for b in accesses[:k]
    )


def _products(kernel: KernelIR, values: Mapping[str, Expr]) -> Iterator[Extent]:
    """Yield the products of sizes in a kernel: an argument times a number, or another argument.

    ``values`` are the arguments.
    """
    for s in walk_statements(kernel.body):
        for x in (y for whole in expressions_of(s) for y in walk(whole)):
            match x:
                case Binary("*", Var(name), b) if name in values:
                    total = normal(Binary("*", values[name], substitute(b, values), int64), {})
                    if not total.terms:
                        yield total.constant


def _limits(sizes: Sequence[Extent]) -> Iterator[Extent]:
    """Yield the symbolic sizes and the dividends in them, and how many vectors they are."""
    for size in sizes:
        if isinstance(size, Size):
            parts = (divide_exactly(size, width) for width in (1, 2, 4, 8, 16))
            yield from (n for n in parts if n is not None)
            for monomial, _ in size.terms:
                yield from _limits([a.numerator for a in monomial if isinstance(a, Quotient)])


class _Collector:
    """The walk over one kernel.

    ``names`` are the parameters that are one array, and ``needed`` the indices of threads that must
    follow from an element. ``is_understood`` says whether they did for all accesses so far.
    """

    def __init__(self, names: frozenset[str], needed: frozenset[str]) -> None:
        self.names, self.needed = names, needed
        self.accesses: list[_Access] = []
        self.is_understood = True
        self.branches = 0

    def body(self, body: Sequence[Stmt], at: _Position) -> None:
        """Add the accesses of statements."""
        for s in body:
            if not self.is_understood:
                return
            self._loads(s, at)
            match s:
                case LetStmt(var, value) if var.dtype in (int64, bool_):
                    at = evolve(at, values={**at.values, var.name: at.closed(value)})
                case StoreStmt(buffer, index):
                    self._access(buffer, index, 1, at)
                case VectorLoad() | VectorStore():
                    self._access(s.buffer, s.index, s.width, at)
                case If():
                    at = self._branch(s, at)
                case For():
                    self._loop(s, at)

    def _loads(self, s: Stmt, at: _Position) -> None:
        """Add the loads in the expressions of a statement itself."""
        for x in expressions_of(s):
            for load in loads(x):
                self._access(load.buffer, load.index, 1, at)

    def _branch(self, s: If, at: _Position) -> _Position:
        """Add the accesses of a branch; return the position behind it."""
        condition = at.closed(s.condition)
        self.branches += 1
        number = self.branches
        for body, side in ((s.body, True), (s.otherwise, False)):
            inner = at.where(condition, side)
            if _is_uniform(condition):
                inner = evolve(inner, sides=(*at.sides, (number, side)))
            self.body(body, inner)
        is_last = bool(s.body) and isinstance(s.body[-1], Return)
        return at.where(condition, False) if is_last and not s.otherwise else at

    def _loop(self, s: For, at: _Position) -> None:
        """Add the accesses of a loop, for any iteration of it."""
        start, stop = at.closed(s.start), at.closed(s.stop)
        number = Var(f"{s.var.name}'", int64)
        bounds = at.bounds
        begin = bounds.sum(start)
        extents = {k: n for k, n in bounds.extents.items() if k != number.name}
        ends = [add(bounds.sum(x), begin, -1) for x in minimum_operands(stop, {})]
        for end in ends:
            if not end.terms:
                extents[number.name] = (end.constant + (s.step - 1)) // s.step
        facts = [positive(add(end, Sum(((number, s.step),)), -1)) for end in ends]
        kept = [f for f in bounds.facts if all(a != number for a, _ in f.terms)]
        value = Binary("+", start, Binary("*", number, const(s.step, int64), int64), int64)
        inner = evolve(bounds, extents=extents, facts=(*kept, *facts))
        self.body(s.body, evolve(at, values={**at.values, s.var.name: value}, bounds=inner))

    def _access(self, buffer: str, index: Expr, width: int, at: _Position) -> None:
        """Add an access to ``width`` elements."""
        if buffer not in self.names:
            return
        bounds, total = at.bounds, at.bounds.sum(at.closed(index))
        if width > 1:
            total = add(total, Sum(((_ELEMENT, 1),)))
            bounds = evolve(bounds, extents={**bounds.extents, _ELEMENT.name: width})
        threads = {k: p for k, p in digits_of(total, bounds).items() if k in self.needed}
        threads |= {k: Path(("is", n)) for k, n in at.only.items() if k in self.needed}
        self.is_understood &= threads.keys() == self.needed
        self.accesses.append(_Access(threads, at.sides))


def _is_uniform(condition: Expr) -> bool:
    """Return whether a condition is the same in all threads of a block."""
    names = {x.name for x in walk(condition) if isinstance(x, Var)}
    return names <= {_GRID} and not any(isinstance(x, Load) for x in walk(condition))
