"""The final form of kernels that are lowered stage by stage: facts about what is to be printed."""

from __future__ import annotations

from attrs import frozen

from passkit.ast import Expr
from passkit.ast.stage import Buffer, Let, Loop
from passkit.ir.threads import ThreadStmt
from passkit.ir.vector import VectorStmt

Statements = tuple[VectorStmt, ...] | tuple[ThreadStmt, ...]


@frozen
class FinalStage:
    """A stage as statements.

    Attributes:
        statements: those of vectors, or those of threads.
        is_of_vectors: whether they are those of vectors.
        variables: the names of its loops' variables.
        barrier_before: whether a barrier of the threads of the row, or of the tile, precedes it.
    """

    statements: Statements
    is_of_vectors: bool
    variables: tuple[str, ...] = ()
    barrier_before: bool = False


@frozen
class RowDigit:
    """A coordinate of a row that is counted up: its local, and how many values it has.

    ``extent`` is None for the first coordinate, whose values have no end.
    """

    let: Let
    extent: Expr | None


@frozen
class FinalPart:
    """A part of a tile.

    Attributes:
        lets: locals that decode the coordinates of the tile.
        rows: the loop over the rows around all stages, if there is one.
        row_lets: locals of a row.
        digits: coordinates of a row that are counted.
        stages: the stages.
        barrier_before: whether a barrier of the threads of the tile precedes it.
        span: the tiles of this part, where several parts are packed into a phase.
        are_rows_inside: whether the statements of the stages have the loop over rows themselves.
    """

    lets: tuple[Let, ...]
    rows: Loop | None
    row_lets: tuple[Let, ...]
    digits: tuple[RowDigit, ...]
    stages: tuple[FinalStage, ...]
    barrier_before: bool
    span: tuple[Expr, Expr] | None
    are_rows_inside: bool = False


@frozen
class FinalPhase:
    """The parts of a phase, and its loop over tiles."""

    tile: Loop
    parts: tuple[FinalPart, ...]


@frozen
class FinalKernel:
    """A kernel, or a function of one, as it is printed.

    Attributes:
        params: its buffers.
        sizes: the names of its size arguments.
        scratch: the scratch arrays.
        phase: its loop over tiles.
        aliased: the names of buffers that share memory with another.
        rereads: whether it reads what it has written to a result.
        has_whole_tiles: whether a loop over a part of a tile has as many iterations in each tile.
    """

    params: tuple[Buffer, ...]
    sizes: tuple[str, ...]
    scratch: tuple[Buffer, ...]
    phase: FinalPhase
    aliased: frozenset[str]
    rereads: bool
    has_whole_tiles: bool


@frozen
class PartCall:
    """The call of a part of a packed kernel, a function, for its own of the kernel's tiles.

    Attributes:
        function: the function.
        span: the first of its tiles and the end of them.
        buffers: the numbers of the kernel's buffers that it gets.
        sizes: the numbers of the kernel's size arguments that it gets.
    """

    function: FinalKernel
    span: tuple[Expr, Expr]
    buffers: tuple[int, ...]
    sizes: tuple[int, ...]


@frozen
class PackedKernel:
    """A kernel, or a phase of one, whose parts are functions; ``sizes`` are its size arguments."""

    sizes: tuple[str, ...]
    calls: tuple[PartCall, ...]


@frozen
class PhasedKernel:
    """A kernel whose phases are functions, and launches; ``sizes`` are its size arguments."""

    sizes: tuple[str, ...]
    phases: tuple[FinalKernel | PackedKernel, ...]


FinalForm = FinalKernel | PackedKernel | PhasedKernel
