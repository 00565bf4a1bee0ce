"""Thread forms: what a stage is where threads compute with elements or with vectors of their own.

The passes of `passkit.transforms` decide which elements a thread has, which accesses are vectors,
what is computed once, and which loop is inside of another; the printer spells the statements.
`passkit.ir.vector` has the forms of languages whose statements are vectors of a CPU.
"""

from __future__ import annotations

from attrs import frozen

from passkit.ast import Expr, Var
from passkit.ast.stage import Dot, Fold, Let, Loop, Prefetch, Store
from passkit.ir.loop import Assign, Declare
from passkit.values.dtype import DType, int64


@frozen
class AccessArray:
    """An array of a thread: consecutive elements of ``buffer``, loaded or stored by one access.

    Attributes:
        name: its name.
        buffer: the buffer.
        index: the index of an element, of which the loop's variable is the number.
        dtype: the dtype of its elements.
        is_loaded: whether it is loaded in front of what it is for.
        is_stored: whether it is stored behind.
    """

    name: str
    buffer: str
    index: Expr
    dtype: DType
    is_loaded: bool
    is_stored: bool


@frozen
class RowFor:
    """Loops over the rows of a tile, whose elements all threads of the tile share out."""

    loops: tuple[Loop, ...]
    body: tuple[ThreadStmt, ...]


@frozen
class SequentialFor:
    """A loop whose iterations a thread executes in order.

    ``unroll`` iterations may be executed at a time; 0 leaves that to the compiler.
    """

    loop: Loop
    body: tuple[ThreadStmt, ...]
    unroll: int = 0


@frozen
class ThreadFor:
    """A loop whose iterations are shared out over the threads of a tile."""

    loop: Loop
    body: tuple[ThreadStmt, ...]


@frozen
class AccessFor:
    """A `ThreadFor` whose iterations have ``count`` consecutive elements each.

    Attributes:
        loop: the loop over all elements.
        count: the elements of an iteration.
        arrays: the arrays of an iteration.
        is_by_size: whether sizes alone decide which thread has which element. Otherwise all
            addresses are tested, and there are no such iterations unless they are aligned.
        multiples: the sizes that must be multiples of ``count``, else there are no iterations.
        starts: the arrays with the indices of their first elements, whose addresses are tested.
        is_ragged: whether the last iteration may have fewer elements.
        body: the statements of an iteration.
        rest: the elements that are in no iteration, from `rest_of` on.
    """

    loop: Loop
    count: int
    arrays: tuple[AccessArray, ...]
    is_by_size: bool
    multiples: tuple[Expr, ...]
    starts: tuple[AccessArray, ...]
    is_ragged: bool
    body: tuple[ThreadStmt, ...]
    rest: ThreadFor


@frozen
class OpenArray:
    """The declaration of an array of the `AccessFor` around it, which is loaded with ``loads``."""

    array: AccessArray
    loads: bool


@frozen
class StoreArray:
    """The store of an array of the `AccessFor` around it."""

    array: AccessArray


@frozen
class ElementFor:
    """The loop over the elements of an iteration of the `AccessFor` around it.

    Its variable is `element_of` that loop; with ``is_numbered`` the variable of the loop itself is
    defined, too.
    """

    body: tuple[ThreadStmt, ...]
    is_numbered: bool


@frozen
class VectorThreadFor:
    """A `ThreadFor` whose threads compute with vectors of ``count`` consecutive elements.

    Attributes:
        loop: the loop over all elements.
        count: the elements of a vector.
        arrays: the vectors that are loaded or stored.
        varying: the variables that differ from element to element.
        reads_number: whether a value depends on an element's number, other than in an index.
        partials: the partial results of a thread, one for each reduction in the body.
        body: the statements, about one element.
    """

    loop: Loop
    count: int
    arrays: tuple[AccessArray, ...]
    varying: frozenset[Var]
    reads_number: bool
    partials: tuple[Var, ...]
    body: tuple[Let | Store | Fold, ...]


@frozen
class Block:
    """Statements whose variables are not visible behind them."""

    body: tuple[ThreadStmt, ...]


@frozen
class ExtentLet:
    """The definition of a number that is above 0 wherever something is divided by it."""

    var: Var
    value: Expr


@frozen
class StoreOnce:
    """A store by one thread, where all have the value."""

    store: Store


@frozen
class FinishReduction:
    """``var`` becomes the partial results ``partial`` of all threads, combined."""

    var: Var
    partial: Var
    combine: Expr


@frozen
class MatrixProduct:
    """A product of matrices, by the language's function."""

    dot: Dot


ThreadStmt = (
    Let
    | Store
    | Prefetch
    | Declare
    | Assign
    | RowFor
    | SequentialFor
    | ThreadFor
    | AccessFor
    | OpenArray
    | StoreArray
    | ElementFor
    | VectorThreadFor
    | Block
    | ExtentLet
    | StoreOnce
    | FinishReduction
    | MatrixProduct
)


def element_of(loop: Loop) -> Var:
    """Return the number of an element in an iteration of an `AccessFor`."""
    return Var(f"{loop.var.name}_k", int64)


def first_of(loop: Loop) -> Var:
    """Return the first value of a loop's variable in an iteration of an `AccessFor`."""
    return Var(f"{loop.var.name}_first", int64)


def rest_of(loop: Loop) -> Var:
    """Return the first value of a loop's variable that no iteration of an `AccessFor` has."""
    return Var(f"{loop.var.name}_rest", int64)


def total_of(f: Fold) -> Var:
    """Return the vector of what a reduction of a `VectorThreadFor` has combined so far."""
    return Var(f"{f.var.name}_partial", f.var.dtype)


def term_of(f: Fold) -> Var:
    """Return the value that a reduction combines next."""
    return Var(f"{f.var.name}_term", f.var.dtype)
