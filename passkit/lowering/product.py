"""Products of matrices inside a stitched kernel: operands and result where they lie in a tile."""

from __future__ import annotations

from collections.abc import Callable

from passkit.ast import Contract, Expr, Var, dt, size_of
from passkit.errors import CodeGenError
from passkit.index import Sum, add, expression, normal, times
from passkit.lowering.homes import Place
from passkit.lowering.loops import FIRST, LAST, decoded
from passkit.node import Node, known_shape
from passkit.op import FContract
from passkit.reads import Index, aligned
from passkit.region import Region, bounds, place_of
from passkit.size import Extent
from passkit.space import Axis
from passkit.stage import Dot, Let, Level, Loop, Matrix
from passkit.walk import variables

ROW, COLUMN, STEP = (Var(name, dt.int64) for name in ("m", "n", "k"))
"""The coordinates of a product, by which its operands are told apart into steps."""

Where = Callable[[int, Index], Place]
"""Where the element of an operand (0, 1) or the result (2) at an index is."""


def product_stages(
    node: Node, where: Where, results: int, region: Region, tiles: Extent, name: str
) -> tuple[list[Let], list[Dot]]:
    """The stage of a product for each place of its result, and the coordinates that it needs.

    Raises: CodeGenError for an operand whose elements do not lie evenly.
    """
    assert node.op is not None
    contract: Contract = FContract.get(node.op.name)(node)
    batch = [Axis(Var(f"b{k}", dt.int64), n) for k, n in enumerate(contract.batch)]
    outside = [batch[k] for k in region.outside]
    lets = decoded(place_of(region, tiles), outside)
    window = region.window
    lets += bounds(region, tiles, FIRST, LAST)
    loops = tuple(
        Loop(batch[k].var, *(_ends(region, k)), Level.THREAD)
        for k in region.inside
        if k < len(batch)
    )
    split = window == len(batch)
    first: Expr = FIRST if split else size_of(0)
    m: Expr = LAST - FIRST if split else size_of(contract.m)
    at = tuple(a.var for a in batch)
    sides = (
        (STEP, ROW) if contract.transpose_a else (ROW, STEP),
        (COLUMN, STEP) if contract.transpose_b else (STEP, COLUMN),
        (ROW, COLUMN),
    )
    steps = ((ROW, STEP), (STEP, COLUMN), (ROW, COLUMN))
    dtype = node.entries[0].dtype
    assert dtype is not None

    def matrix(k: int, which: int) -> Matrix:
        shape = known_shape(node.inputs[k]) if k < 2 else known_shape(node.entries[0])
        index = (*aligned(at, shape[:-2]), *sides[k])
        buffer, place = where(which, index)
        return _matrix(buffer, place, *steps[k], first, node)

    a, b = matrix(0, 0), matrix(1, 1)
    found = [
        Dot(
            f"{name}_{j}" if j else name,
            loops,
            a,
            b,
            matrix(2, 2 + j),
            m,
            size_of(contract.n),
            size_of(contract.k),
            dtype,
        )
        for j in range(results)
    ]
    return lets, found


def _ends(region: Region, k: int) -> tuple[Expr, Expr]:
    return (FIRST, LAST) if k == region.window else (size_of(0), size_of(region.shape[k]))


def _matrix(buffer: str, place: Sum, down: Var, along: Var, first: Expr, node: Node) -> Matrix:
    """A matrix whose rows are counted from ``first`` where it has those of the result."""
    steps = [place.coefficient(down), place.coefficient(along)]
    rest = add(place, Sum(((down, 1),)), steps[0] * -1)
    rest = add(rest, Sum(((along, 1),)), steps[1] * -1)
    if any(v in (down, along) for atom, _ in rest.terms for v in variables(atom)):
        raise CodeGenError(f"{node.where} reads an operand whose elements do not lie evenly")
    if down == ROW:
        rest = add(rest, times(normal(first, {}), steps[0]))
    return Matrix(buffer, expression(rest), size_of(steps[0]), size_of(steps[1]))
