"""The accesses of a kernel of loop IR in final form, in the order in which a thread executes them.

A kernel has a path for each outcome of its uniform branches with barriers: those whose condition is
the same in all threads of a block. On a path each access has an epoch, the number of barriers in
front of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum

import numpy as np
from attrs import define, evolve, field, frozen

from passkit.ast.expr import Binary, Expr, Load, Select
from passkit.ast.walk import children, loads, minimum_operands
from passkit.checks.affine import UNBOUNDED, Affine, Array, IndexAtom
from passkit.checks.contexts import Context, context_of_threads
from passkit.errors import CodeGenError
from passkit.ir.loop import (
    Barrier,
    BarrierScope,
    Declare,
    Fence,
    For,
    If,
    KernelIR,
    LastBlock,
    LetStmt,
    Return,
    Stmt,
    StoreStmt,
    VectorLoad,
    VectorStore,
    expressions_of,
    nested,
)
from passkit.values.dtype import bool_, int64

FIRST_AXIS = 2
"""The number of the axis of an outermost loop, behind those of the threads."""
MAX_ITERATIONS = 64
"""The number of iterations of a loop with barriers that are followed one by one, at most."""
MAX_POINTS = 1 << 22
"""The number of elements of one access that are enumerated, at most."""


class FenceState(Enum):
    """How far a block is on the way to making its stores visible to other blocks."""

    CLEAN = "no store"
    STORED = "stored"
    SYNCHRONIZED = "a barrier of the block behind the stores"
    FENCED = "a fence behind that barrier"


@frozen(eq=False)
class BlockCount:
    """A count of blocks, behind which only the last block of each counter continues.

    Attributes:
        counter: the number of the counter.
        count: the blocks that are counted.
        is_fenced: whether a barrier of the block and a fence stand behind all stores in front.
    """

    counter: Affine
    count: int
    is_fenced: bool


@frozen(eq=False)
class ElementAccess:
    """An access of all threads of a block, and of all iterations of the loops around it.

    Attributes:
        buffer: the name of the buffer.
        is_store: whether it writes.
        statement: the statement.
        index: the elements, the last axis being that of a vector.
        mask: the points (threads and iterations) that make the access; others may be included.
        block_epoch: the barriers of the block in front of it.
        warp_epoch: the barriers of the warp in front of it.
        sides: the uniform branches around it, and the side of each.
        facts: sums that are not negative there.
        count: the count of blocks in front of it, if there is one.
    """

    buffer: str
    is_store: bool
    statement: Stmt
    index: Affine
    mask: Array
    block_epoch: int
    warp_epoch: int
    sides: tuple[tuple[int, bool], ...]
    facts: tuple[Affine, ...]
    count: BlockCount | None = None

    def excludes(self, other: ElementAccess) -> bool:
        """Return whether a block makes only one of both accesses."""
        own = dict(self.sides)
        return any(own.get(branch, side) is not side for branch, side in other.sides)


@frozen
class _Position:
    """Where a statement is.

    Attributes:
        context: the values and conditions that hold there.
        axis: the number of the next loop's axis.
        sides: the branches around it, see `ElementAccess`.
    """

    context: Context
    axis: int = FIRST_AXIS
    sides: tuple[tuple[int, bool], ...] = ()


@define
class _Path:
    """A path while it is followed.

    Attributes:
        choices: the sides of uniform branches with barriers, in the order of the statements.
        branches: the number of such branches so far.
        block_epoch: the number of barriers of the block so far.
        warp_epoch: the number of barriers of the warp so far.
        other_branches: the number of other branches so far.
        fence: the visibility of the stores so far.
        accesses: the accesses so far.
        count: the last count of blocks.
    """

    choices: tuple[bool, ...]
    branches: int = 0
    block_epoch: int = 0
    warp_epoch: int = 0
    other_branches: int = 0
    fence: FenceState = FenceState.CLEAN
    accesses: list[ElementAccess] = field(factory=list)
    count: BlockCount | None = None


def paths_of(
    kernel: KernelIR,
    watched: frozenset[str],
    sizes: Mapping[str, int | None],
    blocks: int | None,
) -> list[list[ElementAccess]]:
    """Return the accesses of each path of a kernel to the buffers ``watched``.

    Args:
        kernel: the kernel in final form.
        watched: the names of buffers.
        sizes: the size arguments, with their values if these are settled.
        blocks: the number of blocks; None if it is not settled.

    Raises: CodeGenError for a loop with barriers whose bounds depend on the thread.
    """
    collector = _Collector(kernel, watched)
    launch = kernel.launch
    rank = 3 + _depth(kernel.body)
    first = context_of_threads(rank, launch.y, launch.x, blocks, sizes)
    todo: list[tuple[bool, ...]] = [()]
    out = []
    while todo:
        choices = todo.pop()
        path = _Path(choices)
        collector.path = path
        collector.body(kernel.body, _Position(first))
        if path.branches > len(choices):  # the path took the bodies of branches without a choice
            settled = choices + (True,) * (path.branches - len(choices))
            todo += [(*settled[:k], False) for k in range(len(choices), len(settled))]
        out.append(path.accesses)
    return out


def _depth(body: Sequence[Stmt]) -> int:
    """Return the number of loops inside of each other."""
    inner = [
        _depth(b) + isinstance(s, For) for s in body if isinstance(s, (For, If)) for b in nested(s)
    ]
    return max(inner, default=0)


class _Collector:
    """The walk along the paths of one kernel.

    Statements are classified once before it. The identities of those that have watched accesses
    or change what holds behind them are in ``relevant``, of those whose own expressions load from
    watched buffers in ``loading``, and of barriers and statements that contain one in ``waiting``.
    """

    def __init__(self, kernel: KernelIR, watched: frozenset[str]) -> None:
        self.watched = watched
        self.params = {b.name for b in kernel.params}
        self.path = _Path(())
        self.relevant: set[int] = set()
        self.loading: set[int] = set()
        self.waiting: set[int] = set()
        for s in kernel.body:
            self._classify(s)

    def _classify(self, s: Stmt) -> None:
        """Add a statement, and those inside it, to the sets that they belong to."""
        inner = [x for body in nested(s) for x in body]
        for x in inner:
            self._classify(x)
        if any(y.buffer in self.watched for x in expressions_of(s) for y in loads(x)):
            self.loading.add(id(s))
        if isinstance(s, (Barrier, LastBlock)) or any(id(x) in self.waiting for x in inner):
            self.waiting.add(id(s))
        if self._is_relevant(s, [x for x in inner if id(x) in self.relevant]):
            self.relevant.add(id(s))

    def _is_relevant(self, s: Stmt, inner: Sequence[Stmt]) -> bool:
        """Return whether a statement has watched accesses or changes the context behind it.

        ``inner`` are the statements inside it that do. A loop that only defines variables does not.
        """
        if isinstance(s, For):
            return any(
                id(x) in self.loading or not isinstance(x, (LetStmt, Declare)) for x in inner
            )
        if isinstance(s, (VectorLoad, VectorStore, StoreStmt)) and s.buffer in self.watched:
            return True
        is_changing = isinstance(s, (LetStmt, Declare, Barrier, Fence, LastBlock, Return))
        return is_changing or bool(inner) or id(s) in self.loading

    def body(self, body: Sequence[Stmt], place: _Position) -> None:
        """Follow the statements of a body.

        Those behind an index that is selected, such as the row of a thread or else the first one,
        are followed for each of its values, so that all that depends on it agrees.
        """
        for k, statement in enumerate(body):
            if id(statement) not in self.relevant:
                continue
            chosen = self._selected(statement, body[k + 1 :], place)
            if chosen is not None:
                for context in chosen:
                    self.body(body[k + 1 :], _Position(context, place.axis, place.sides))
                return
            context = self._statement(statement, place)
            if context is not place.context:
                place = _Position(context, place.axis, place.sides)

    def _selected(
        self, s: Stmt, rest: Sequence[Stmt], place: _Position
    ) -> tuple[Context, Context] | None:
        """Return the contexts behind the definition of a selected index, one for each value.

        None for another statement, for values between which the context decides or makes no
        difference, outside of loops, and where barriers are among the statements behind it.

        Args:
            s: the statement.
            rest: the statements behind it.
            place: where it is.
        """
        if place.axis == FIRST_AXIS or not isinstance(s, LetStmt) or s.var.dtype is not int64:
            return None
        if not isinstance(s.value, Select) or any(id(x) in self.waiting for x in rest):
            return None
        context, condition = place.context, s.value.condition
        value = context.value(s.value)
        if value.is_exact or value.is_unbounded or id(s) in self.loading:
            return None
        return (
            context.where(condition, True).defined(s.var.name, s.value.a),
            context.where(condition, False).defined(s.var.name, s.value.b),
        )

    def _statement(self, s: Stmt, place: _Position) -> Context:
        """Follow a statement; return the context behind it."""
        context, path = place.context, self.path
        if id(s) in self.loading:
            for x in expressions_of(s):
                self._loads(x, s, place)
        match s:
            case LetStmt(var, value):
                return context.defined(var.name, value)
            case Declare(var):
                return context.with_form(var.name, context.unknown())
            case StoreStmt(buffer, index):
                self._access(buffer, index, 1, True, s, place)
            case VectorLoad():
                self._access(s.buffer, s.index, s.width, False, s, place)
            case VectorStore():
                self._access(s.buffer, s.index, s.width, True, s, place)
            case Barrier(scope):
                self._barrier(scope)
            case Fence() if path.fence is FenceState.SYNCHRONIZED:
                path.fence = FenceState.FENCED
            case LastBlock(counter, count):
                path.block_epoch += 1
                is_fenced = path.fence in (FenceState.CLEAN, FenceState.FENCED)
                path.count = BlockCount(context.value(counter), count, is_fenced)
            case Return():
                return evolve(context, mask=np.zeros_like(context.mask), cache={})
            case If():
                return self._branch(s, place)
            case For():
                self._loop(s, place)
        return context

    def _barrier(self, scope: BarrierScope) -> None:
        """Count a barrier."""
        path = self.path
        if scope is BarrierScope.WARP:
            path.warp_epoch += 1
            return
        path.block_epoch += 1
        if path.fence is FenceState.STORED:
            path.fence = FenceState.SYNCHRONIZED

    def _branch(self, s: If, place: _Position) -> Context:
        """Follow a branch; return the context behind it."""
        context, path = place.context, self.path
        if isinstance(s.body[-1], Return) and not s.otherwise:
            return context.where(s.condition, False)
        is_uniform = context.is_uniform(s.condition)
        sides = place.sides
        if is_uniform and id(s) in self.waiting:
            number = path.branches
            path.branches += 1
            side = path.choices[number] if number < len(path.choices) else True
            chosen = s.body if side else s.otherwise
            self.body(chosen, evolve(place, context=context.where(s.condition, side)))
            return context
        path.other_branches += 1
        number = path.other_branches
        for body, side in ((s.body, True), (s.otherwise, False)):
            own = (*sides, (number, side)) if is_uniform else sides
            if body:
                at = context.where(s.condition, side)
                self.body(body, _Position(at, place.axis, own))
        return context

    def _loop(self, s: For, place: _Position) -> None:
        """Follow a loop: all iterations together, or one after the other if it has barriers."""
        context = place.context
        start = context.value(s.start)
        if id(s) in self.waiting:
            self._loop_with_barriers(s, place, start)
            return
        distance = context.distance(s.start, s.stop)
        if (distance.high >= UNBOUNDED).any() or start.is_unbounded:
            inner = context.with_form(s.var.name, context.unknown())
        else:
            count = -(-int(distance.high.max()) // s.step)
            if count <= 0:
                return
            steps = context.along(place.axis, np.arange(count) * s.step)
            mask = steps.low < distance.high
            inner = context.with_form(s.var.name, start + steps, mask)
            bounds = tuple(minimum_operands(s.stop, context.definitions))
            for bound in bounds if len(bounds) > 1 else ():
                inner = inner.where(Binary("<", s.var, bound, bool_), True)
        self.body(s.body, _Position(inner, place.axis + 1, place.sides))

    def _loop_with_barriers(self, s: For, place: _Position, start: Affine) -> None:
        """Follow a loop with barriers, whose iterations all threads make together.

        Each iteration, if there are few; else two consecutive ones, for any first one.

        Raises: CodeGenError if the bounds depend on the thread, or are not understood.
        """
        context = place.context
        distance = context.value(s.stop) + start.scaled(-1)
        if not distance.is_exact or distance.low.size > 1:
            raise CodeGenError(
                f"the loop over {s.var.name} has barriers, and its bounds differ between threads "
                f"or are not understood"
            )
        count = -(-int(distance.low.item()) // s.step)
        if not distance.terms and count <= MAX_ITERATIONS:
            values = [start + context.number(k * s.step) for k in range(count)]
        else:
            variable = start + context.atom(IndexAtom(s.var.name))
            values = [variable, variable + context.number(s.step)]
        for value in values:
            self.body(s.body, evolve(place, context=context.with_form(s.var.name, value)))

    def _loads(self, x: Expr, s: Stmt, place: _Position) -> None:
        """Add the loads in an expression."""
        if isinstance(x, Select):
            self._loads(x.condition, s, place)
            for operand, side in ((x.a, True), (x.b, False)):
                at = evolve(place, context=place.context.where(x.condition, side))
                self._loads(operand, s, at)
            return
        if isinstance(x, Load):
            self._access(x.buffer, x.index, 1, False, s, place)
        for y in children(x):
            self._loads(y, s, place)

    def _access(
        self, buffer: str, index: Expr, width: int, is_store: bool, s: Stmt, place: _Position
    ) -> None:
        """Add an access to ``width`` elements."""
        if buffer not in self.watched:
            return
        context = place.context
        elements = context.value(index)
        if width > 1:
            elements = elements + context.along(context.rank - 1, np.arange(width))
        path = self.path
        if is_store and buffer in self.params:
            path.fence = FenceState.STORED
        path.accesses.append(
            ElementAccess(
                buffer,
                is_store,
                s,
                elements,
                context.mask,
                path.block_epoch,
                path.warp_epoch,
                place.sides,
                context.facts,
                path.count,
            )
        )
