"""Row chains: products with a long matrix, and the kernels between them, that run block by block.

A program often reads a long matrix twice: to multiply each row by a vector, and, after element-wise
work on the results, to sum the rows weighted by them. The derivatives of linear models do:

    z = x @ w;  d = f(z, y);  gradient = d @ x

Launched one after the other, both products read ``x`` from memory. A row chain runs all of them on
one block of rows before any runs on the next block, so that the second product finds its rows, and
the kernels find ``z`` and ``d``, in the caches. The launcher's kernel "row_chain" does this.

A kernel can be a member if its tiles are ranges of rows: it has one phase and no scratch memory,
and each of its loops runs over all elements of a tile, or over those of a chunk that is reduced.
Results have the same bits as without the chain.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from passkit.ast import Const, Expr, Var
from passkit.ast.stage import Fold, KernelAST, Let, Part, Prefetch, Stage, Store
from passkit.ast.walk import loads
from passkit.runtime.epilogue import RowTiling, elements_of, rows_of
from passkit.runtime.program import (
    ArrayRef,
    LaunchStep,
    LibraryCall,
    MatrixProduct,
    ProgramStep,
    PythonCall,
)
from passkit.runtime.table_binder import RowChain, RowTiles
from passkit.values.size import Extent, numel

MAX_MEMBERS = 8
"""The most members of a chain."""

Key = tuple[str, int]
"""The memory of an array: kind and index of an `ArrayRef`."""


def row_chains(
    steps: Sequence[ProgramStep], donors: Sequence[int]
) -> tuple[list[int], list[RowChain]]:
    """Find the row chains of a program, and an order in which their kernels follow the product.

    A chain begins with a product of each row of a long matrix with a vector and ends with a sum of
    its rows that depends on the product. The kernels of the chain follow the product. Other steps
    between the product and the sum are before or behind these. No two steps that access the same
    memory, of which one writes, change their order.

    The sum keeps its position: the launch of the chain sums the rows of each block, and the sum of
    these results is stored there.

    Args:
        steps: the steps in a valid order.
        donors: for each output the position of the input over which it may be stored, or -1.

    Returns:
        The positions of all steps in the new order, and the chains, whose positions are those in
        the new order.
    """
    order = list(range(len(steps)))
    chains: list[RowChain] = []
    accesses = [_Accesses.of(step, donors) for step in steps]
    first = 0
    while first < len(order):
        chain = _chain_from(first, order, steps, donors, accesses)
        if chain is None:
            first += 1
            continue
        order[first : first + len(chain.order)] = chain.order
        positions = tuple(first + chain.order.index(k) for k in chain.members)
        chains.append(RowChain(positions, chain.tiles))
        first = positions[-1] + 1
    return order, chains


class _Accesses(NamedTuple):
    """The memory that a step reads and writes."""

    reads: frozenset[Key]
    writes: frozenset[Key]

    @staticmethod
    def of(step: ProgramStep, donors: Sequence[int]) -> _Accesses:
        """Return the accesses of a step; an output that a donor's memory may hold counts as it."""
        return _Accesses(
            frozenset(_key(r, donors) for r in step.reads),
            frozenset(_key(r, donors) for r in step.writes),
        )

    def conflicts(self, later: _Accesses) -> bool:
        """Return whether a later step must stay behind this one."""
        return bool(self.writes & (later.reads | later.writes) or self.reads & later.writes)


def _key(ref: ArrayRef, donors: Sequence[int]) -> Key:
    """Return the memory of a reference: that of the donor for an output that has one."""
    if ref.kind == "output" and donors[ref.index] >= 0:
        return "input", donors[ref.index]
    return ref.key


class _FoundChain(NamedTuple):
    """A chain before the steps are in order.

    Attributes:
        order: the steps from the product to the sum in their new order.
        members: the steps of the chain.
        tiles: for each member how its tiles divide the rows; None for a product.
    """

    order: list[int]
    members: list[int]
    tiles: tuple[RowTiles | None, ...]


def _chain_from(
    first: int,
    order: Sequence[int],
    steps: Sequence[ProgramStep],
    donors: Sequence[int],
    accesses: Sequence[_Accesses],
) -> _FoundChain | None:
    """Return the chain whose first product is at position ``first`` of ``order``, or None.

    ``order`` has indices of ``steps`` and ``accesses``. Of several sums over the rows of the
    matrix, the first one ends the chain.
    """
    product = _mapped_product(steps[order[first]])
    if product is None:
        return None
    for last in range(first + 1, len(order)):
        step = steps[order[last]]
        if isinstance(step, PythonCall):
            return None
        if _sums_rows(step, product):
            break
    else:
        return None
    between = order[first + 1 : last]
    start, end = order[first], order[last]
    following = [start]  # the product, and the steps that must stay behind it
    before: list[int] = []
    for k in between:
        if any(accesses[j].conflicts(accesses[k]) for j in following):
            following.append(k)
        else:
            before.append(k)
    members = [end]
    for k in reversed(following):
        is_operand = bool(accesses[k].writes & accesses[end].reads)
        if is_operand or any(accesses[k].conflicts(accesses[j]) for j in members[:-1]):
            members.insert(0, k)
    after = [k for k in following if k not in members]
    if members[0] != start or not 2 <= len(members) <= MAX_MEMBERS:
        return None
    chain_accesses = [accesses[k] for k in members]
    tiles = _member_tiles([steps[k] for k in members], donors, chain_accesses, product)
    if tiles is None:
        return None
    return _FoundChain([*before, *members[:-1], *after, end], members, tiles)


class _MappedProduct(NamedTuple):
    """A product of each row of a matrix with a vector.

    Attributes:
        matrix: the matrix.
        result: an element for each row.
        rows: the number of rows.
    """

    matrix: ArrayRef
    result: ArrayRef
    rows: Extent


def _product(step: ProgramStep) -> MatrixProduct | None:
    """Return the product of two matrices that a step computes, None for other steps and batches."""
    if not isinstance(step, LibraryCall) or not isinstance(step.operation, MatrixProduct):
        return None
    product = step.operation
    if numel(product.batch_a) != 1 or numel(product.batch_b) != 1:
        return None
    return product if step.table_entry[0] == "gemm" else None


def _mapped_product(step: ProgramStep) -> _MappedProduct | None:
    """Return the product of rows with a vector that a step computes, None for other steps."""
    product = _product(step)
    if product is None:
        return None
    a, b, result = step.refs  # type: ignore[union-attr]
    if product.n == 1 and not product.transpose_a and product.m != 1:
        return _MappedProduct(a, result, product.m)
    if product.m == 1 and product.transpose_b and product.n != 1:
        return _MappedProduct(b, result, product.n)
    return None


def _sums_rows(step: ProgramStep, mapped: _MappedProduct) -> bool:
    """Return whether a step sums the weighted rows of the matrix of another product."""
    product = _product(step)
    if product is None or product.k != mapped.rows:
        return False
    a, b, _ = step.refs  # type: ignore[union-attr]
    if product.m == 1 and not product.transpose_b:
        return bool(b.key == mapped.matrix.key)
    return product.n == 1 and product.transpose_a and bool(a.key == mapped.matrix.key)


def _member_tiles(
    members: Sequence[ProgramStep],
    donors: Sequence[int],
    accesses: Sequence[_Accesses],
    product: _MappedProduct,
) -> tuple[RowTiles | None, ...] | None:
    """Return how the tiles of each member divide the rows, None for products.

    None in place of the tuple where the members cannot run block by block: a kernel's tiles are no
    ranges of rows, or a member accesses what another one writes at other rows than its own.
    """
    by_row: list[set[Key]] = [{_key(product.result, donors)}]
    tiles: list[RowTiles | None] = [None]
    for step in members[1:-1]:
        rows = _row_kernel(step, product.rows)
        if rows is None:
            return None
        by_row.append({_key(ref, donors) for ref in rows.by_row})
        tiles.append(rows.tiles)
    last = members[-1]
    by_row.append({_key(r, donors) for r in last.reads if r.key != product.matrix.key})
    tiles.append(None)
    itemsizes: dict[Key, set[int]] = {}
    for step in members:
        for ref in (*step.reads, *step.writes):
            itemsizes.setdefault(_key(ref, donors), set()).add(ref.dtype.nbytes)
    written: set[Key] = set()
    for member in accesses[:-1]:
        written |= member.writes
    for key in written:
        users = [k for k, a in enumerate(accesses[:-1]) if key in a.reads | a.writes]
        if key in accesses[-1].reads:
            users.append(len(members) - 1)
        if len(users) == 1:
            continue
        if len(itemsizes.get(key, ())) != 1 or any(key not in by_row[k] for k in users):
            return None
    return tuple(tiles)


class _ChainKernel(NamedTuple):
    """A kernel whose tiles are ranges of rows.

    Attributes:
        tiles: how the tiles divide the rows.
        by_row: the arrays of an element for each row, of which each row accesses its own.
    """

    tiles: RowTiles
    by_row: list[ArrayRef]


def _row_kernel(step: ProgramStep, rows: Extent) -> _ChainKernel | None:
    """Return how a step runs on ranges of rows; None where it is no kernel that can.

    ``rows`` is the number of rows.
    """
    if not isinstance(step, LaunchStep) or callable(step.entry):
        return None
    kernel = step.kernel
    ast = kernel.ast
    if kernel.dialect != "cxx" or kernel.phases or ast.scratch:
        return None
    if not isinstance(ast, KernelAST) or len(ast.phases) != 1 or len(ast.phases[0].parts) != 1:
        return None
    part, tile = ast.phases[0].parts[0], ast.phases[0].tile.var
    stages = tuple(s for s in part.stages if isinstance(s, Stage))
    if part.barrier_before or part.span is not None or len(stages) < len(part.stages):
        return None
    tiling = _tiling_of(part, stages, tile, ast.sizes)
    if tiling is None or kernel.sizes[tiling.rows_index] != rows:
        return None
    by_row = _arrays_by_row(stages, tiling.row)
    if by_row is None:
        return None
    refs = {b.name: ref for b, ref in zip(ast.params, step.refs, strict=True)}
    return _ChainKernel(tiling.tiles, [refs[name] for name in by_row])


class _Tiling(NamedTuple):
    """The loop over the rows of a tile.

    Attributes:
        row: the variable of the loop over rows.
        rows_index: the index of the size argument that is the number of rows.
        tiles: how the tiles divide the rows.
    """

    row: Var
    rows_index: int
    tiles: RowTiles


def _tiling_of(
    part: Part, stages: Sequence[Stage], tile: Var, sizes: Sequence[str]
) -> _Tiling | None:
    """Return the tiling of a part by rows, None where its tiles are no ranges of rows.

    Args:
        part: the part.
        stages: its stages.
        tile: the variable of the tile.
        sizes: the names of the kernel's size arguments.
    """
    if part.rows is None:
        elements = None if part.row_lets else elements_of(part.lets, stages, tile)
        if elements is None or not isinstance(elements.per_tile, Const):
            return None
        tiles = RowTiles(int(elements.per_tile.value), -1, -1)
        return _tiling(elements, tiles, sizes)
    chunks = None if part.lets else rows_of(part, tile)
    elements = None if chunks is None else elements_of(part.row_lets, stages, chunks.row)
    if chunks is None or elements is None or not isinstance(elements.per_tile, Const):
        return None
    length, per_tile = int(elements.per_tile.value), chunks.per_tile
    if isinstance(per_tile, Const):
        tiles = RowTiles(length * int(per_tile.value), -1, -1)
    elif isinstance(per_tile, Var) and {per_tile.name, chunks.limit.name} <= set(sizes):
        tiles = RowTiles(length, sizes.index(chunks.limit.name), sizes.index(per_tile.name))
    else:
        return None
    return _tiling(elements, tiles, sizes)


def _tiling(elements: RowTiling, tiles: RowTiles, sizes: Sequence[str]) -> _Tiling | None:
    """Return the tiling of a loop over rows; None if their number is no size argument."""
    if elements.limit.name not in sizes:
        return None
    return _Tiling(elements.row, sizes.index(elements.limit.name), tiles)


def _arrays_by_row(stages: Sequence[Stage], row: Var) -> set[str] | None:
    """Return the names of the arrays of which each row only accesses its own element.

    None where a stage does more than element-wise work and reductions of a chunk. ``row`` is the
    variable of the loop over rows.
    """
    own: set[str] = set()
    others: set[str] = set()
    for stage in stages:
        if stage.barrier_before or not all(
            isinstance(s, (Let, Store, Fold, Prefetch)) for s in stage.body
        ):
            return None
        if any(isinstance(s, Fold) and s.buffer is not None for s in stage.body):
            return None
        for buffer, index in _accesses(stage):
            is_own = isinstance(index, Var) and index.name == row.name
            (own if is_own else others).add(buffer)
    return own - others


def _accesses(stage: Stage) -> Iterator[tuple[str, Expr]]:
    """Yield the buffer's name and the index of each load and store of a stage, in any order."""
    for statement in (*stage.before, *stage.body, *stage.after):
        if isinstance(statement, Prefetch):
            continue
        if isinstance(statement, (Let, Store, Fold)):
            for load in loads(statement.value):
                yield load.buffer, load.index
        if isinstance(statement, Store):
            yield statement.buffer, statement.index
            for load in loads(statement.index):
                yield load.buffer, load.index
