"""Kernels as stages: loops over statements, put together to phases, and those to a `KernelAST`."""

from __future__ import annotations

from enum import Enum

from attrs import field, frozen

from passkit.ast import Const, Expr, Var
from passkit.values.dtype import DType
from passkit.values.size import Extent


class Level(Enum):
    """Which parallelism runs a loop: blocks, rows of a block, lanes, or nothing."""

    GRID = "grid"
    WARP = "warp"
    CTA = "cta"
    THREAD = "thread"


class Place(Enum):
    """Where a value lives between its producer and its consumers."""

    INLINE = "inline"
    REGISTER = "register"
    LANES = "lanes"
    SHARED = "shared"
    GLOBAL = "global"


@frozen
class Loop:
    """``for var in [start, stop)``, not past ``limit`` where there is one, run at ``level``.

    One that is ``wide`` has lanes for many vectors; one that goes ``down`` begins at the last.
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
    """A local."""

    var: Var
    value: Expr


@frozen
class Store:
    """``buffer[index] = value``; one that streams may go past the caches."""

    buffer: str
    index: Expr
    value: Expr
    stream: bool = False


@frozen
class Prefetch:
    """A hint that ``buffer[index]`` is read soon. It has no meaning, so it may lie past the end."""

    buffer: str
    index: Expr


@frozen
class Fold:
    """A reduction of ``value`` over the loops of its stage: a local, or a buffer element.

    ``combine`` is an expression of `ast.left` and `ast.right`. With ``buffer`` the partial result
    lives in memory at ``index``, one for each lane; else in ``var``, combined across lanes at the
    end of the stage.
    """

    var: Var
    value: Expr
    identity: Const
    combine: Expr
    buffer: str | None = None
    index: Expr | None = None


@frozen
class Running:
    """A scan along the loops of its stage: ``var`` is the fold of ``value`` over all steps so far.

    Not over this step if ``exclusive``. With ``buffer`` each lane keeps its own total in memory at
    ``index``; else the steps are the lanes.
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
    """Loops over one fused body; no local of it is seen by another stage, but folds are.

    ``before`` are locals computed once in front of the loops; the loops run outermost first. A
    WARP loop runs over rows: each row folds by itself, and ``after`` stores what it folded to; in a
    row of a part, its rows follow each other. One that ``waits`` begins when all threads of its
    row, or of its tile, have come so far.
    """

    name: str
    loops: tuple[Loop, ...]
    body: tuple[Statement, ...]
    before: tuple[Let, ...] = ()
    after: tuple[Store, ...] = ()
    waits: bool = False


@frozen
class Matrix:
    """A matrix in a buffer: element (i, j) is at ``start + i * down + j * along``."""

    buffer: str
    start: Expr
    down: Expr
    along: Expr


@frozen
class Dot:
    """A stage that computes ``c = a @ b``: (m, k) x (k, n), each element by fma from step 0 on.

    Products in ``dtype`` float16 or bfloat16 are chains in float32; the buffers may hold either.
    ``loops``, of level THREAD, go around it. How the elements of ``c`` are shared out is up to the
    dialect. As with any stage, one that ``waits`` begins when all threads have come so far.
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
    waits: bool = False


@frozen
class Part:
    """Stages of a tile, or of each of its rows.

    ``lets`` decode coordinates. ``rows``, if there is one, is a loop at WARP level around the
    stages, with ``row_lets`` in it. One that ``waits`` begins when all threads of the tile have
    come so far. Where parts are packed, each has a ``span`` of the tiles, which it counts from 0.
    """

    lets: tuple[Let, ...]
    rows: Loop | None
    row_lets: tuple[Let, ...]
    stages: tuple[Stage | Dot, ...]
    waits: bool = False
    span: tuple[Expr, Expr] | None = None


@frozen
class Phase:
    """What stands between two grid barriers: a GRID loop over tiles, and their parts in order.

    All tiles of a phase have ended before any of the next one begins.
    """

    tile: Loop
    parts: tuple[Part, ...]

    @property
    def stages(self) -> tuple[Stage | Dot, ...]:
        """The stages of all parts."""
        return tuple(s for p in self.parts for s in p.stages)


@frozen
class Buffer:
    """A parameter (GLOBAL) or a scratch array (SHARED) of ``extent`` elements.

    Scratch is shared by the threads of a tile; where it is ``of_row``, by those of a row only. It
    begins ``offset`` bytes into that of tiles, or of rows, which lies behind; without, arrays lie
    one behind the other.
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
    """A whole kernel: what every dialect prints and every interpreter runs.

    ``sizes`` names the int64 arguments in order; ``params`` are inputs, then outputs.
    """

    params: tuple[Buffer, ...]
    sizes: tuple[str, ...]
    scratch: tuple[Buffer, ...]
    phases: tuple[Phase, ...]
    comment: str = field(default="", eq=False)
