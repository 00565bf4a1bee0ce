"""The kernel AST: loop nests (stages) of statements, grouped into parts, phases and a kernel.

Lowering builds a `KernelAST`; dialects print it, and the interpreters of tests execute it.
"""

from __future__ import annotations

from enum import Enum

from attrs import field, frozen

from passkit.ast import Const, Expr, Var
from passkit.values.dtype import DType
from passkit.values.size import Extent


class Level(Enum):
    """The parallelism of a loop: blocks of the grid, rows of a block, threads of a row, or none."""

    GRID = "grid"
    WARP = "warp"
    CTA = "cta"
    THREAD = "thread"


class Place(Enum):
    """The storage of a value between its producer and its consumers."""

    INLINE = "inline"
    REGISTER = "register"
    LANES = "lanes"
    SHARED = "shared"
    GLOBAL = "global"


@frozen
class Loop:
    """``for var in [start, stop)``, executed at ``level``.

    Attributes:
        limit: an upper bound that ``stop`` may exceed; the loop ends there.
        wide: whether there are enough iterations for several vectors.
        down: whether it runs from the last iteration to the first.
    """

    var: Var
    start: Expr
    stop: Expr
    level: Level
    limit: Expr | None = None
    wide: bool = False
    down: bool = False


@frozen
class Let:
    """The definition of a local variable."""

    var: Var
    value: Expr


@frozen
class Store:
    """``buffer[index] = value``; with ``stream`` it may bypass the caches."""

    buffer: str
    index: Expr
    value: Expr
    stream: bool = False


@frozen
class Prefetch:
    """A hint that ``buffer[index]`` is read soon; the index may be out of bounds."""

    buffer: str
    index: Expr


@frozen
class Fold:
    """A reduction of ``value`` over the loops of its stage.

    ``combine`` is an expression of `ast.left` and `ast.right`. With ``buffer`` each thread has its
    partial result in memory at ``index``. Otherwise the partial results are locals ``var``, which
    are combined across threads at the end of the stage.
    """

    var: Var
    value: Expr
    identity: Const
    combine: Expr
    buffer: str | None = None
    index: Expr | None = None


@frozen
class Running:
    """A scan along the loops of its stage: ``var`` is the reduction of ``value`` up to here.

    ``exclusive`` leaves out the current iteration. With ``buffer`` each thread has a total of its
    own in memory at ``index``; otherwise the scan runs across threads.
    """

    var: Var
    value: Expr
    identity: Const
    combine: Expr
    exclusive: bool = False
    buffer: str | None = None
    index: Expr | None = None


Statement = Let | Store | Fold | Running | Prefetch


@frozen
class Stage:
    """A loop nest over one fused body.

    Results of reductions are visible to later stages; other locals are not. A WARP loop runs over
    rows, each of which is reduced by itself.

    Attributes:
        loops: the loops, outermost first.
        body: the statements of the innermost loop.
        before: locals that are computed once, in front of the loops.
        after: stores of reduction results, after the loops.
        barrier_before: whether a barrier of the threads of the row, or of the tile, precedes it.
    """

    name: str
    loops: tuple[Loop, ...]
    body: tuple[Statement, ...]
    before: tuple[Let, ...] = ()
    after: tuple[Store, ...] = ()
    barrier_before: bool = False


@frozen
class Matrix:
    """A matrix in a buffer; element (i, j) is at ``start + i * down + j * along``."""

    buffer: str
    start: Expr
    down: Expr
    along: Expr


@frozen
class Dot:
    """A stage that computes the matrix product ``c = a @ b``, (m, k) x (k, n).

    Each element is a chain of fused multiply-adds in order of k; for float16 and bfloat16 it is
    computed in float32, and the buffers may have either dtype. ``loops``, of level THREAD, enclose
    the product. The dialect distributes the elements of ``c`` among threads. ``barrier_before``
    means that a barrier precedes it.
    """

    name: str
    loops: tuple[Loop, ...]
    a: Matrix
    b: Matrix
    c: Matrix
    m: Expr
    n: Expr
    k: Expr
    dtype: DType
    barrier_before: bool = False


@frozen
class Part:
    """Stages of a tile, or of each row of a tile.

    Attributes:
        lets: locals that decode the coordinates of the tile.
        rows: a loop at WARP level around the stages, if there is one.
        row_lets: locals inside that loop.
        stages: the stages, in order.
        barrier_before: whether a barrier of the threads of the tile precedes it.
        span: the tiles of this part, counted from 0, where several parts are packed into a phase.
    """

    lets: tuple[Let, ...]
    rows: Loop | None
    row_lets: tuple[Let, ...]
    stages: tuple[Stage | Dot, ...]
    barrier_before: bool = False
    span: tuple[Expr, Expr] | None = None


@frozen
class Phase:
    """The code between two grid barriers: a GRID loop over tiles, and the parts of a tile in order.

    All tiles of a phase end before the next phase begins.
    """

    tile: Loop
    parts: tuple[Part, ...]

    @property
    def stages(self) -> tuple[Stage | Dot, ...]:
        """Return the stages of all parts in order."""
        return tuple(s for p in self.parts for s in p.stages)


@frozen
class Buffer:
    """A parameter of the kernel (GLOBAL) or a scratch array (SHARED) of ``extent`` elements.

    Scratch is shared by the threads of a tile, or with ``of_row`` by those of a row. ``offset`` is
    its position in bytes in the scratch memory of tiles, or in that of rows, which follows; without
    offsets, arrays are laid out one after the other.
    """

    name: str
    dtype: DType
    place: Place
    extent: Extent
    written: bool = False
    of_row: bool = False
    offset: Extent | None = None


@frozen
class KernelAST:
    """A complete kernel.

    Attributes:
        params: the buffers that are arguments: inputs, then outputs.
        sizes: the names of the int64 arguments, in order.
        scratch: the scratch arrays.
        phases: the phases, in order.
        comment: a text for readers of the source.
    """

    params: tuple[Buffer, ...]
    sizes: tuple[str, ...]
    scratch: tuple[Buffer, ...]
    phases: tuple[Phase, ...]
    comment: str = field(default="", eq=False)
