"""Transposed accesses: inputs that vectors read across, and the tiles in which they are transposed.

Elements of a vector along the last axis may lie in rows of an input, so that each is in a cache
line of its own. If another axis has stride 1 in that input, blocks of both axes are read row by row
and transposed in registers. If the last axis is narrow, vectors run along the axis before it, and
results are transposed, too.
"""

from __future__ import annotations

from passkit.analysis.domain import Axis
from passkit.analysis.domain_info import DomainInfo
from passkit.ast import Var
from passkit.ast.index import Sum
from passkit.ast.walk import variables
from passkit.ir.vector import MAX_COLUMNS
from passkit.values.size import Extent

BLOCK = 16
"""The steps of both axes of a block that is transposed in registers."""
TILE_POINTS = 16384
"""The points of a tile of blocks."""
TILE_WIDTHS = (BLOCK, 64, 256)
"""The steps that such a tile may have along the last axis."""
MAX_NARROW = MAX_COLUMNS
"""The largest extent of a narrow last axis."""


def transposed_axis(info: DomainInfo) -> Axis | None:
    """Return the axis along which most transposed accesses have stride 1; None without any."""
    domain = info.domain
    if domain.reduced or len(domain.axes) < 2:
        return None
    *others, last = domain.axes
    counts = dict.fromkeys(others, 0)
    for accesses in info.input_accesses.values():
        for access in accesses:
            for axis in others:
                counts[axis] += is_transposed(access, last.var, axis.var)
    best = max(others, key=lambda a: counts[a])
    is_single = any(isinstance(n, int) and n < 2 for n in (best.extent, last.extent))
    return best if counts[best] and not is_single else None


def penultimate_vector_axis(info: DomainInfo) -> Axis | None:
    """Return the axis before the last if vectors should run along it, as the last one is narrow.

    None if accesses are not linear in both axes, or values depend on their place along them.
    """
    domain = info.domain
    if domain.reduced or len(domain.axes) < 2:
        return None
    axis, last = domain.axes[-2:]
    if not isinstance(last.extent, int) or not 1 < last.extent <= MAX_NARROW:
        return None
    both = {axis.var, last.var}
    is_short = isinstance(axis.extent, int) and axis.extent <= last.extent
    is_linear = all(
        isinstance(atom, Var) or both.isdisjoint(variables(atom))
        for accesses in info.input_accesses.values()
        for access in accesses
        for atom, _ in access.terms
    )
    return axis if is_linear and not is_short and both.isdisjoint(info.pinned) else None


def is_transposed(access: Sum, last: Var, axis: Var) -> bool:
    """Return whether an access has stride 1 along an axis, and a larger one along the last axis."""
    if access.coefficient(axis) != 1 or access.coefficient(last) in (0, 1, -1):
        return False
    return all(
        isinstance(atom, Var) or {last, axis}.isdisjoint(variables(atom))
        for atom, _ in access.terms
    )


def narrow_tile_rows(points: int, width: int) -> int:
    """Return the rows of a tile of about so many points, with a narrow last axis: whole blocks."""
    return max(BLOCK, points // width // BLOCK * BLOCK)


def transposed_tile(last: Extent, other: Extent, points: int) -> tuple[int, int]:
    """Return the steps of a tile along the last axis and along the other axis of its blocks.

    There are few such tiles, so that shapes share kernels. If the other axis has one block, the
    tile has all of it.

    Args:
        last: the extent of the last axis.
        other: the extent of the other axis.
        points: the points of a tile if the other axis has one block.
    """
    if isinstance(other, int) and other <= BLOCK:
        return narrow_tile_rows(points, other), other
    fitting = (w for w in TILE_WIDTHS if isinstance(last, int) and last <= w)
    width = next(fitting, TILE_WIDTHS[-1])
    return width, TILE_POINTS // width
