"""The matrix products of a stitched kernel, read from the statements that it is lowered to."""

from __future__ import annotations

from collections.abc import Mapping

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
    part = ProductPart(
        *(a, b, c),
        heads=head_window.rows,
        head_bound=head_window.bound,
        rows=window.rows,
        bound=window.bound,
        columns=columns,
        steps=steps,
    )
    return part if _has_even_arrays(part, tile) else problem


def _has_even_arrays(part: ProductPart, tile: BlockCoordinates) -> bool:
    """Return whether it computes something, and its arrays have whole rows, of all heads."""
    if min(part.rows, part.columns, part.steps, part.heads) < 1:
        return False
    for x in (part.a, part.b, part.c):
        length = tile.length_of.get(x.buffer)
        is_even = x.along == 1 or (x.down == 1 and x is not part.c)
        pitch = x.down if x.along == 1 else x.along
        if length is not None and not (is_even and tile.is_zero(x.start)):
            return False
        if length is not None and length != pitch and part.rows > 1:
            return False
    if part.heads == 1:
        return True
    a, b, c = part.a, part.b, part.c
    sides = (
        (a, part.rows, part.steps, a.down, a.along),
        (b, part.columns, part.steps, b.along, b.down),
        (c, part.rows, part.columns, c.down, 1 if c.buffer in tile.place else 0),
    )
    for x, outer_count, count, outer, step in sides:
        is_along = outer != 1 and step == 1
        even = outer_count * outer if is_along else count * step
        if (x.head not in (0, even) and step != 0) or part.bound is not None:
            return False
    return True


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
    return Operand(x.buffer, begin, down, along, inner)
