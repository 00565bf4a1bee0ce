"""Matrix products as nests of a tile: their operands and results in buffers."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from passkit.analysis.accesses import Index, broadcast_index
from passkit.analysis.domain import Axis
from passkit.analysis.tile_layout import window_bounds
from passkit.analysis.tilemap import TileMap
from passkit.ast import Contract, Expr, Var, dt, size_of
from passkit.ast.index import Extents, Sum, add, expression, normal
from passkit.ast.stage import Dot, Let, Level, Loop, Matrix
from passkit.ast.walk import variables
from passkit.errors import CodeGenError
from passkit.graph.attribute_calls import contraction_of
from passkit.graph.node import Node, known_dtype, known_shape
from passkit.schedule.tile_loops import FIRST, LAST, decode_index
from passkit.transforms.buffer_map import StoredElement

ROW, COLUMN, STEP = (Var(name, dt.int64) for name in ("m", "n", "k"))
"""The row, the column and the step of a product, from whose coefficients strides follow."""

Where = Callable[[int, Index, Extents], StoredElement]
"""The buffer and position of an element of an operand (0, 1) or a result (2 and more)."""


def product_stages(
    node: Node, where: Where, results: int, tile_map: TileMap, name: str
) -> tuple[list[Let], list[Dot]]:
    """Return the coordinates of a tile, and the statement of a product for each result buffer.

    Args:
        node: the product.
        where: the buffer and position of an element.
        results: the number of result buffers.
        tile_map: the part of the result that a tile has.
        name: the name of the first statement.

    Raises: CodeGenError for an operand without constant strides.
    """
    contract = contraction_of(node)
    assert isinstance(contract, Contract)
    names = (*(f"b{k}" for k in range(len(contract.batch))), "first_m", "first_n")
    extents = (*contract.batch, contract.m, contract.n)
    axes = [Axis(Var(name, dt.int64), n) for name, n in zip(names, extents, strict=True)]
    batch, rows, columns = axes[:-2], axes[-2], axes[-1]
    lets = decode_index(tile_map.outer_number(), [axes[k] for k in tile_map.outer])
    lets += window_bounds(tile_map, FIRST, LAST)
    loops = tuple(
        Loop(axes[k].var, *_ends(tile_map, k), Level.THREAD)
        for k in tile_map.inner
        if k < len(batch)
    )
    (low_m, m), (low_n, n) = (
        _part(tile_map, k, a) for k, a in ((len(batch), rows), (len(batch) + 1, columns))
    )
    at = tuple(a.var for a in batch)
    sides = (
        (STEP, ROW) if contract.transpose_a else (ROW, STEP),
        (COLUMN, STEP) if contract.transpose_b else (STEP, COLUMN),
        (ROW, COLUMN),
    )
    steps = ((ROW, STEP), (STEP, COLUMN), (ROW, COLUMN))
    sizes = {ROW.name: contract.m, COLUMN.name: contract.n, STEP.name: contract.k}
    sizes |= {a.var.name: a.extent for a in batch}
    dtype = known_dtype(node.entries[0])

    def matrix(k: int, which: int) -> Matrix:
        shape = known_shape(node.inputs[k]) if k < 2 else known_shape(node.entries[0])
        index = (*broadcast_index(at, shape[:-2]), *sides[k])
        buffer, place = where(which, index, sizes)
        return _matrix(buffer, place, *steps[k], {ROW: low_m, COLUMN: low_n}, node)

    a, b = matrix(0, 0), matrix(1, 1)
    products = [
        Dot(
            f"{name}_{j}" if j else name,
            loops,
            a,
            b,
            matrix(2, 2 + j),
            m,
            n,
            size_of(contract.k),
            dtype,
        )
        for j in range(results)
    ]
    return lets, products


def _ends(tile_map: TileMap, k: int) -> tuple[Expr, Expr]:
    """Return the ends of a tile's part of a dimension."""
    return (FIRST, LAST) if k == tile_map.window else (size_of(0), size_of(tile_map.shape[k]))


def _part(tile_map: TileMap, k: int, axis: Axis) -> tuple[Expr, Expr]:
    """Return the first row or column of a tile, and how many there are."""
    if k in tile_map.outer:
        return axis.var, size_of(1)
    low, high = _ends(tile_map, k)
    return low, high - low if k == tile_map.window else high


def _matrix(
    buffer: str, place: Sum, down: Var, along: Var, first: Mapping[Var, Expr], node: Node
) -> Matrix:
    """Return a matrix whose rows and columns are counted from the first ones of a tile.

    Raises: CodeGenError if the elements do not have even strides.
    """
    steps = {v: place.coefficient(v) for v in (down, along)}
    rest = place
    for v, step in steps.items():
        rest = add(rest, Sum(((v, 1),)), step * -1)
    if any(v in steps for atom, _ in rest.terms for v in variables(atom)):
        raise CodeGenError(f"{node.where} reads an operand whose elements do not lie evenly")
    for v, step in steps.items():
        if v in first:
            rest = add(rest, normal(first[v], {}), step)
    return Matrix(buffer, expression(rest), size_of(steps[down]), size_of(steps[along]))
