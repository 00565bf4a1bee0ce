"""The matrix products of a stitched kernel, read from the statements that it is lowered to."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import evolve

from passkit.ast import Binary, Expr, Var
from passkit.ast.index import expression
from passkit.ast.stage import Dot, Matrix
from passkit.diagnostics import Diagnostic
from passkit.ir.index import times, with_literals
from passkit.ir.rewrite import substitute
from passkit.schedule.block_nest import Operand, ProductPart
from passkit.transforms.block_coordinates import ZERO, BlockCoordinates, Window, ends_of, resolved
from passkit.values import dtype as dt


def read_product_part(
    dot: Dot, names: Mapping[str, Expr], tile: BlockCoordinates
) -> ProductPart | Diagnostic:
    """Return a matrix product, or why there is no schedule of it.

    Args:
        dot: the product.
        names: what stands for the variables of its part.
        tile: the coordinates of the tile.
    """
    m, n, k = (resolved(x, names) for x in (dot.m, dot.n, dot.k))
    first, last = (m.b, m.a) if isinstance(m, Binary) and m.op == "-" else (ZERO, m)
    window = tile.window(first, last)
    heads = _heads(dot, names, tile)
    problem = Diagnostic("block.product", {"product": dot.name})
    columns, steps = (tile.sum(x).constant for x in (n, k))
    if isinstance(window, Diagnostic) or heads is None:
        return problem
    if not isinstance(columns, int) or not isinstance(steps, int):
        return problem
    strides, head_window = heads
    a, b, c = (_operand(x, strides, head_window, names, tile) for x in (dot.a, dot.b, dot.c))
    if a is None or b is None or c is None:
        return problem
    rows, count = window.rows, head_window.rows
    if min(rows, columns, steps, count) < 1 or (count > 1 and window.bound is not None):
        return problem
    along_a = _is_along_steps(a, (rows, a.down), (steps, a.along), count, tile)
    along_b = _is_along_steps(b, (columns, b.along), (steps, b.down), count, tile)
    is_stored = _is_along_steps(c, (rows, c.down), (columns, c.along), count, tile)
    if along_a is None or along_b is None or (c.buffer in tile.place and not is_stored):
        return problem
    return ProductPart(
        *(evolve(a, is_along=along_a), evolve(b, is_along=along_b), c),
        heads=count,
        head_bound=head_window.bound,
        rows=rows,
        bound=window.bound,
        columns=columns,
        steps=steps,
        dtype=dot.dtype,
    )


def _is_along_steps(
    x: Operand,
    outer: tuple[int, int],
    inner: tuple[int, int],
    heads: int,
    tile: BlockCoordinates,
) -> bool | None:
    """Return whether the elements of a matrix follow each other along the steps of a product.

    Else they do so along the rows, or columns, of the result. The lines of a matrix in shared
    memory are rows of its array, from the first one on. None if it has no such lines, or those of
    heads do not follow each other.

    Args:
        x: the matrix.
        outer: the number of rows, or columns, of the result, and how far apart they are.
        inner: the number of steps, and how far apart they are.
        heads: the number of heads.
        tile: the coordinates of the tile.
    """
    length = tile.length_of.get(x.buffer)
    if length is None:
        is_along = outer[1] != 1 and inner[1] == 1
    else:
        row = max(length, 1)  # a value of each row has one element
        is_along = _are_rows(outer, inner, row)
        if not tile.is_zero(x.start) or not (is_along or _are_rows(inner, outer, row)):
            return None
    count, distance = outer if is_along else inner
    if length is not None:
        distance = max(length, 1)
    are_even = heads == 1 or x.head in (0, count * distance)
    is_line = length is None and count == 1  # each head may begin anywhere
    return is_along if are_even or is_line else None


def _are_rows(lines: tuple[int, int], elements: tuple[int, int], row: int) -> bool:
    """Return whether lines of a matrix are rows of an array in shared memory.

    Args:
        lines: the number of lines, and how far apart they are.
        elements: the number of elements of a line, and how far apart they are.
        row: the elements of a row of the array.
    """
    (count, distance), (own, step) = lines, elements
    return own <= row and (count == 1 or distance == row) and (own == 1 or step == 1)


def _heads(
    dot: Dot, names: Mapping[str, Expr], tile: BlockCoordinates
) -> tuple[dict[str, int], Window] | None:
    """Return how far apart heads are for each variable that counts them, and how many.

    None if their number is not known. Only the outermost loop may have a window.
    """
    strides: dict[str, int] = {}
    whole = Window(ZERO, 1, None)
    for loop in reversed(dot.loops):
        first, last = ends_of(loop, names)
        window = tile.window(first, last)
        if isinstance(window, Diagnostic) or whole.bound is not None:
            return None
        if loop is not dot.loops[0] and not tile.is_zero(first):
            return None
        strides[loop.var.name] = whole.rows
        bound = None if window.bound is None else times(window.bound, whole.rows)
        whole = Window(first, window.rows * whole.rows, bound)
    return strides, whole


def _operand(
    x: Matrix,
    strides: dict[str, int],
    heads: Window,
    names: Mapping[str, Expr],
    tile: BlockCoordinates,
) -> Operand | None:
    """Return an operand; None if its strides are not known, or its heads not evenly apart.

    Args:
        x: the matrix.
        strides: how far apart heads are for each variable that counts them, innermost first.
        heads: the heads of a tile.
        names: what stands for the variables of the part.
        tile: the coordinates of the tile.
    """
    start = tile.sum(resolved(x.start, names))
    steps = {name: start.coefficient(Var(name, dt.int64)) for name in strides}
    numbers = [tile.sum(with_literals(e)).constant for e in (x.down, x.along)]
    inner = next((steps[name] for name, s in strides.items() if s == 1), 0)
    if not all(isinstance(n, int) for n in (*numbers, *steps.values(), inner)):
        return None
    if any(steps[name] != inner * s for name, s in strides.items()):
        return None
    outer = next(iter(reversed(strides)), None)
    values: dict[str, Expr] = dict.fromkeys(strides, ZERO)
    if outer is not None:
        values[outer] = heads.first
    down, along = numbers
    assert isinstance(down, int) and isinstance(along, int) and isinstance(inner, int)
    begin = with_literals(expression(tile.sum(substitute(expression(start), values))))
    return Operand(x.buffer, begin, down, along, inner, is_along=False)
