"""Arrays, sizes and loops of a stitched kernel, for the builders of its parts."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from passkit.ast import Binary, Cast, Expr, SizeOf, Var, const
from passkit.ast.tidy import replace_children
from passkit.ir.index import literal, plus
from passkit.ir.loop import Bind, CachePolicy, For, If, LoopBuffer, Stmt, StorageScope, index_let
from passkit.schedule.block import BlockSchedule
from passkit.schedule.block_nest import BlockNest
from passkit.transforms.nest_values import SizeArguments
from passkit.values import dtype as dt
from passkit.values.size import Size

THREAD = Var("thread", dt.int64)
"""The number of the thread in its block."""


def index_var(name: str) -> Var:
    """Return an index variable."""
    return Var(name, dt.int64)


def binary(op: str, a: Expr, b: Expr) -> Expr:
    """Return a binary operation of indices."""
    return Binary(op, a, b, dt.int64)


def less(a: Expr, b: Expr) -> Expr:
    """Return whether an index is less than another one."""
    return Binary("<", a, b, dt.bool_)


def all_of(conditions: Sequence[Expr]) -> Expr | None:
    """Return whether all conditions hold; None if there are none."""
    if not conditions:
        return None
    return reduce(lambda a, b: Binary("&", a, b, dt.bool_), conditions)


def guarded(conditions: Sequence[Expr], statement: Stmt) -> Stmt:
    """Return a statement that is executed where all conditions hold."""
    condition = all_of(conditions)
    return statement if condition is None else If(condition, (statement,))


def quotient(a: Expr, divisor: int) -> Expr:
    """Return ``a // divisor`` of an index; a divisor of 1 is left out."""
    return a if divisor == 1 else binary("//", a, literal(divisor))


def remainder(a: Expr, divisor: int) -> Expr:
    """Return ``a % divisor`` of an index."""
    return literal(0) if divisor == 1 else binary("%", a, literal(divisor))


def unrolled(var: Var, count: int, *body: Stmt) -> Stmt:
    """Return an unrolled loop."""
    return For(var, literal(0), literal(count), Bind.UNROLL, body)


def in_steps(var: Var, count: int, step: int, *body: Stmt) -> list[Stmt]:
    """Return serial loops of ``count`` iterations, of which ``step`` are unrolled at a time."""
    whole = count // step * step
    base, number = index_var(f"{var.name}_base"), index_var(f"{var.name}_number")
    out: list[Stmt] = []
    if whole:
        inner = unrolled(number, step, index_let(var, plus(base, number)), *body)
        out.append(For(base, literal(0), literal(whole), Bind.SERIAL, (inner,), step))
    if count > whole:
        out.append(For(var, literal(whole), literal(count), Bind.SERIAL, body))
    return out


def zero_of(dtype: dt.DType) -> Expr:
    """Return 0 as a value of a dtype."""
    return Cast(const(0, dt.float32), dtype) if dt.is_narrow(dtype) else const(0, dtype)


class BlockValues:
    """The arrays and size arguments of one kernel while it is built.

    Args:
        nest: the parts of the kernel.
        schedule: how the threads of a block share them out.
        aliased: the names of parameters that may share memory with another.
    """

    def __init__(self, nest: BlockNest, schedule: BlockSchedule, aliased: frozenset[str]) -> None:
        self.nest, self.schedule, self.aliased = nest, schedule, aliased
        self.sizes = SizeArguments()
        self.params = {b.name: b for b in nest.params}
        self.homes = dict(zip((b.name for b in nest.shared), schedule.homes, strict=True))
        pitches = dict(schedule.pitches)
        values = zip(nest.values, nest.shared, strict=True)
        self.pitches = {b.name: pitches.get(value, 1) for value, b in values}
        self.flat = nest.flat
        self.definitions = {x.var.name: x.value for x in nest.lets}
        self.arrays: dict[str, LoopBuffer] = {
            name: LoopBuffer(name, dtype, StorageScope.SHARED, extent, True)
            for name, dtype, extent in schedule.arrays
        }

    def settled(self, x: Expr) -> Expr:
        """Return ``x`` with literals in place of known sizes, and arguments for symbols."""
        if isinstance(x, SizeOf):
            if isinstance(x.size, Size):
                return self.sizes.argument(x.size)
            return literal(int(x.size))
        return replace_children(x, self.settled)

    def register(self, name: str, extent: int, dtype: dt.DType = dt.float32) -> str:
        """Add a register array, and return its name."""
        array = LoopBuffer(name, dtype, StorageScope.REGISTER, extent, True)
        self.arrays.setdefault(name, array)
        return name

    def array(self, buffer: str) -> str:
        """Return the array that a value lies in, or the parameter."""
        return self.homes.get(buffer, buffer)

    def is_shared(self, buffer: str) -> bool:
        """Return whether a value lies in shared memory."""
        return buffer in self.homes

    def access(self, buffer: str) -> CachePolicy:
        """Return how a parameter is loaded that several threads or blocks read."""
        return CachePolicy.CHANGING if buffer in self.aliased else CachePolicy.KEEP
