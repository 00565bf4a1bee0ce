"""Loop IR: a kernel as nested statements.

`passkit.transforms` builds it from a schedule and rewrites it, pass by pass, until it contains what
is printed: vector accesses, shuffles, barriers, thread indices. It has a text form, see
`passkit.ir.text`. Two forms are distinguished, and `passkit.ir.verify` checks them:

- scalar: loops have a `Bind`; every access is of one element; a `ReduceStmt` stands in the loops
  over which it reduces.
- final: no loop is bound to GRID, THREAD_Y, THREAD_X or VECTOR; there is no `ReduceStmt`; variables
  that stand for thread indices are defined by `ThreadIndex`.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from typing import Any

from attrs import field, frozen

from passkit.ast.expr import Const, Expr, Var
from passkit.values.dtype import DType, bool_, int64
from passkit.values.lazy import Lazy
from passkit.values.size import Extent

text: Any = Lazy("passkit.ir.text")


WARP = 32
"""The threads of a warp."""
ACCESS_NBYTES = 16
"""The bytes of a vector access, at most."""


class Bind(Enum):
    """How the iterations of a loop are executed.

    GRID: one per thread block. THREAD_Y and THREAD_X: one per thread of that index. SERIAL: one
    after the other. UNROLL: the same, unrolled. VECTOR: the positions of a vector access.
    """

    GRID = "grid"
    THREAD_Y = "thread_y"
    THREAD_X = "thread_x"
    SERIAL = "serial"
    UNROLL = "unroll"
    VECTOR = "vector"


class StorageScope(Enum):
    """Where a buffer is: a thread's registers, a block's shared memory, or device memory."""

    REGISTER = "register"
    SHARED = "shared"
    GLOBAL = "global"


class BarrierScope(Enum):
    """The threads that wait for each other at a barrier."""

    WARP = "warp"
    BLOCK = "block"


class CachePolicy(Enum):
    """How a vector load treats the caches.

    STREAM: the elements are read once, past the first-level cache. KEEP: other threads read them,
    too. CHANGING: the kernel may write the buffer, so that the read-only path is not allowed.
    SHARED: the buffer is in shared memory.
    """

    STREAM = "stream"
    KEEP = "keep"
    CHANGING = "changing"
    SHARED = "shared"


# Expressions beside those of `passkit.ast`.


@frozen(order=False, cache_hash=True)
class ThreadIndex(Expr):
    """The index of the thread in its block, or of the block in the grid, as an index value."""

    bind: Bind
    dtype: DType = int64


@frozen(order=False, cache_hash=True)
class IsAligned(Expr):
    """Whether the addresses of parameters are multiples of ``nbytes``, a power of two."""

    buffers: tuple[str, ...]
    nbytes: int
    dtype: DType = bool_


# Statements.


@frozen
class LetStmt:
    """The definition of a local variable that does not change.

    With ``is_index`` it is a part of index arithmetic, in whose width it is computed.
    """

    var: Var
    value: Expr
    is_index: bool = False


@frozen
class Declare:
    """The definition of a local variable that `Assign` changes, with its first value."""

    var: Var
    value: Expr


@frozen
class Assign:
    """The assignment of a new value to a variable of `Declare`."""

    var: Var
    value: Expr


@frozen
class StoreStmt:
    """``buffer[index] = value``; with ``stream`` the caches should evict it first."""

    buffer: str
    index: Expr
    value: Expr
    stream: bool = False


@frozen
class VectorLoad:
    """``target[at + k] = buffer[index + k]`` for each k below ``width``, as one access.

    ``target`` is a REGISTER buffer. ``index`` is a multiple of ``width``.
    """

    target: str
    at: Expr
    buffer: str
    index: Expr
    width: int
    access: CachePolicy = CachePolicy.STREAM


@frozen
class VectorStore:
    """``buffer[index + k] = source[at + k]`` for each k below ``width``, as one access.

    ``source`` is a REGISTER buffer. ``index`` is a multiple of ``width``.
    """

    buffer: str
    index: Expr
    source: str
    at: Expr
    width: int
    stream: bool = False


@frozen
class ReduceStmt:
    """The reduction of ``value`` over the loops around it and over ``lanes`` threads of a row.

    Afterwards ``var`` has the result in every thread. ``combine`` is an expression of
    `passkit.ast.left` and `passkit.ast.right`. The threads are neighbours along THREAD_X.
    """

    var: Var
    value: Expr
    identity: Const
    combine: Expr
    lanes: int


@frozen
class WarpReduce:
    """Groups of ``lanes`` threads combine their values of ``var``; all get the same result.

    In step o = lanes / 2, lanes / 4, … 1 each thread combines its value with that of the thread
    whose index differs by the bit o, the value of the lower index first. ``combine`` is an
    expression of `passkit.ast.left` and `passkit.ast.right`.
    """

    var: Var
    combine: Expr
    lanes: int


@frozen
class PrepareDivisor:
    """The preparation of ``value``, a float32, as the divisor called ``name``."""

    name: str
    value: Var


@frozen
class DivideVector:
    """``target[k] = source[k] / divisor`` for each element of two register arrays.

    ``divisor`` is the name of a `PrepareDivisor`, or a literal.
    """

    target: str
    source: str
    divisor: str | Const


@frozen
class Barrier:
    """All threads of the warp, or of the block, wait for each other here."""

    scope: BarrierScope


@frozen
class Fence:
    """The block's stores become visible to other blocks before what its first thread does next.

    These are the stores in front of a barrier of the block that stands in front of the fence.
    """


@frozen
class LastBlock:
    """The block counts itself at a counter of the kernel; all but the last one end here.

    The last of ``count`` blocks sets the counter to 0 again and goes on. It sees all that the
    others stored in front of a `Fence`. This is a barrier of the block, too.

    Attributes:
        counter: the number of the counter, which is below `KernelIR.counters`.
        count: the blocks that count themselves there.
    """

    counter: Expr
    count: int


@frozen
class Return:
    """The end of the thread: it has no more work, and no barrier or shuffle waits for it."""


@frozen
class For:
    """``for var in range(start, stop, step)``."""

    var: Var
    start: Expr
    stop: Expr
    bind: Bind
    body: tuple[Stmt, ...]
    step: int = 1


@frozen
class If:
    """``body`` where the condition holds, else ``otherwise``.

    With ``is_peeled``, ``otherwise`` computes the same as ``body`` without vector accesses, also
    where a part of the block's points does not exist.
    """

    condition: Expr
    body: tuple[Stmt, ...]
    otherwise: tuple[Stmt, ...] = ()
    is_peeled: bool = False


Stmt = (
    LetStmt
    | Declare
    | Assign
    | StoreStmt
    | VectorLoad
    | VectorStore
    | ReduceStmt
    | WarpReduce
    | PrepareDivisor
    | DivideVector
    | Barrier
    | Fence
    | LastBlock
    | Return
    | For
    | If
)


@frozen
class LoopBuffer:
    """A parameter of the kernel (GLOBAL), or an array of a block (SHARED) or thread (REGISTER).

    Attributes:
        name: its name.
        dtype: the dtype of its elements.
        scope: where it is.
        extent: the number of elements; a Python int unless the scope is GLOBAL.
        written: whether the kernel writes it.
    """

    name: str
    dtype: DType
    scope: StorageScope
    extent: Extent
    written: bool = False


@frozen
class LaunchShape:
    """The threads of a block, and how many blocks a multiprocessor should have at a time.

    Attributes:
        y: the extent of THREAD_Y.
        x: the extent of THREAD_X.
        blocks: the second argument of ``__launch_bounds__``: it limits the registers of a thread.
    """

    y: int
    x: int
    blocks: int

    @property
    def threads(self) -> int:
        """Return the number of threads of a block."""
        return self.y * self.x


@frozen
class KernelIR:
    """A complete kernel.

    Attributes:
        params: the buffers that are arguments: inputs, then outputs.
        sizes: the names of the size arguments, in order.
        arrays: the SHARED and REGISTER buffers.
        body: the statements.
        launch: the threads of a block.
        index_bits: the width of index arithmetic, 32 or 64.
        aliased: the names of params that may share memory with another.
        comment: a text for readers of the source.
        counters: the counters of blocks, see `LastBlock`. They are an argument behind the buffers,
            integers of 32 bits that are 0 before and after a launch.
    """

    params: tuple[LoopBuffer, ...]
    sizes: tuple[str, ...]
    arrays: tuple[LoopBuffer, ...]
    body: tuple[Stmt, ...]
    launch: LaunchShape
    index_bits: int = 64
    aliased: frozenset[str] = frozenset()
    comment: str = field(default="", eq=False)
    counters: int = 0

    def __str__(self) -> str:
        """Return the text form, see `passkit.ir.text`."""
        return str(text.print_kernel_ir(self))

    @property
    def phases(self) -> tuple[()]:
        """Return an empty tuple: the kernel has no grid barrier, see `passkit.ast.stage`."""
        return ()

    @property
    def scratch(self) -> tuple[()]:
        """Return an empty tuple: all its shared arrays are declared in the text."""
        return ()

    @property
    def shared_nbytes(self) -> int:
        """Return the bytes of all SHARED buffers, each aligned to 16 bytes."""
        sizes = [b.extent * b.dtype.nbytes for b in self.arrays if b.scope is StorageScope.SHARED]
        return sum(-(-int(n) // 16) * 16 for n in sizes)


def index_let(var: Var, value: Expr) -> LetStmt:
    """Return the definition of a variable of index arithmetic."""
    return LetStmt(var, value, is_index=True)


def nested(statement: Stmt) -> tuple[tuple[Stmt, ...], ...]:
    """Return the bodies inside a statement: one of a loop, two of an `If`, else none."""
    if isinstance(statement, For):
        return (statement.body,)
    if isinstance(statement, If):
        return statement.body, statement.otherwise
    return ()


def walk_statements(body: tuple[Stmt, ...]) -> Iterator[Stmt]:
    """Yield all statements of a body in order, each before those inside it."""
    for statement in body:
        yield statement
        for inner in nested(statement):
            yield from walk_statements(inner)


def expressions_of(statement: Stmt) -> tuple[Expr, ...]:
    """Return the expressions of a statement itself, without those of statements inside it."""
    match statement:
        case LetStmt() | Declare() | Assign():
            return (statement.value,)
        case StoreStmt(_, index, value):
            return index, value
        case VectorLoad(_, at, _, index) | VectorStore(_, index, _, at):
            return at, index
        case ReduceStmt(_, value):
            return (value,)
        case For(_, start, stop):
            return start, stop
        case If(condition):
            return (condition,)
        case PrepareDivisor(_, value):
            return (value,)
        case LastBlock(counter):
            return (counter,)
    return ()
