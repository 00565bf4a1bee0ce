"""Products of a matrix by a vector that a kernel's tiles compute for themselves, on a CPU.

A kernel whose tiles read consecutive rows of such a product can compute these rows first. Then they
come from the cache of the core that computed them, one launch is saved, and while one core waits
for the matrix another one computes. The elements are those of the kernel ``rows``, bit for bit.
"""

from __future__ import annotations

from collections.abc import Iterator

from attrs import frozen

from passkit.ast.expr import Binary, Const, Expr, Load, Select, Var, const
from passkit.ast.stage import (
    Dot,
    Fold,
    KernelAST,
    Let,
    Level,
    Loop,
    Part,
    Prefetch,
    Running,
    Stage,
    Store,
)
from passkit.ast.walk import walk
from passkit.graph.kernel import Kernel
from passkit.runtime.opencl.compiler import program_text
from passkit.runtime.opencl.matrix_vector import ROW_PRODUCT, TYPES
from passkit.values.dtype import DType, float64

TILES_PER_UNIT = 4
"""The tiles that a kernel has at least for each core, so that the cores end together."""

TEXT = """
{text}
{pragma}
#define T {type}
{row_product}
static void rows_of_tile(__global const T *x, __global const T *v, __global T *y, const long low,
                         const long high, const long width) {{
  for (long i = low; i < high; i++) y[i] = row_product(x + i * width, v, width);
}}

__kernel void {name}({buffers}, __global const {type} *matrix, __global const {type} *vector,
                     {numbers}, const long tile_rows, const long height, const long width) {{
  for (long tile = get_group_id(0); tile < {tiles}; tile += get_num_groups(0)) {{
    const long low = tile * tile_rows;
    rows_of_tile(matrix, vector, (__global {type} *){product}, low, min(low + tile_rows, height),
                 width);
  }}
  {kernel}({arguments});
}}
"""


@frozen
class TileRows:
    """Which elements of a vector the tiles of a kernel read.

    Attributes:
        chunk: a tile reads so many elements times the number of its rows, consecutive ones.
        rows: the size argument that is the number of a tile's rows.
        total: the size argument that ends the last tile: the elements of the vector.
        tiles: the size argument that is the number of tiles.
    """

    chunk: int
    rows: str
    total: str
    tiles: str


def rows_of_tiles(ast: KernelAST, buffer: str) -> TileRows | None:
    """Return which elements of an input each tile of a kernel reads, where that is a range.

    Tile t reads those from ``t * rows * chunk`` to ``(t + 1) * rows * chunk`` only, up to
    ``total``. Returns: None for a kernel of another form; its tiles may read any.
    """
    if len(ast.phases) != 1 or len(ast.phases[0].parts) != 1:
        return None
    tile, part = ast.phases[0].tile, ast.phases[0].parts[0]
    rows = part.rows
    if rows is None or part.lets or part.span is not None or len(part.row_lets) != 2:
        return None
    if tile.start != const(0, tile.var.dtype) or not isinstance(tile.stop, Var):
        return None
    begin, end = part.row_lets
    row_range = _consecutive(tile.var, rows)
    chunk = _chunk(rows.var, begin, end)
    if tile.level is not Level.GRID or row_range is None or chunk is None:
        return None
    length, total = chunk
    reads = 0
    for stage in part.stages:
        if isinstance(stage, Dot):
            return None
        loop = stage.loops[0] if len(stage.loops) == 1 else None
        is_range = loop is not None and (loop.start, loop.stop) == (begin.var, end.var)
        for expression in _expressions(stage):
            for x in walk(expression):
                if isinstance(x, Load) and x.buffer == buffer:
                    if not is_range or loop is None or x.index != loop.var:
                        return None
                    reads += 1
    if not reads or _is_elsewhere(part, buffer):
        return None
    return TileRows(length, row_range, total, tile.stop.name)


def _consecutive(tile: Var, rows: Loop) -> str | None:
    """Return the name of n if a loop over rows goes from ``tile * n`` to ``tile * n + n``."""
    start = rows.start
    if not isinstance(start, Binary) or start.op != "*" or start.a != tile:
        return None
    if not isinstance(start.b, Var) or rows.stop != Binary("+", start, start.b, start.dtype):
        return None
    return start.b.name


def _chunk(row: Var, begin: Let, end: Let) -> tuple[int, str] | None:
    """Return c and the name of n if locals are ``row * c`` and ``min(row * c + c, n)``."""
    x, y = begin.value, end.value
    if not isinstance(x, Binary) or x.op != "*" or x.a != row or not isinstance(x.b, Const):
        return None
    if not isinstance(y, Select) or not isinstance(y.b, Var):
        return None
    after = Binary("+", begin.var, x.b, begin.var.dtype)
    is_below = y.condition
    if not isinstance(is_below, Binary) or is_below.op != "<":
        return None
    if (is_below.a, is_below.b, y.a) != (after, y.b, after):
        return None
    return int(x.b.value), y.b.name


def _expressions(stage: Stage) -> Iterator[Expr]:
    """Yield the expressions of a stage that are computed; hints to the cache are none."""
    for let in stage.before:
        yield let.value
    for statement in (*stage.body, *stage.after):
        if isinstance(statement, Prefetch):
            continue
        if isinstance(statement, (Store, Fold, Running)) and statement.index is not None:
            yield statement.index
        yield statement.value


def _is_elsewhere(part: Part, buffer: str) -> bool:
    """Return whether locals or bounds outside of stages' bodies read a buffer."""
    bounds = [let.value for let in (*part.lets, *part.row_lets)]
    loops = [loop for s in part.stages if isinstance(s, Stage) for loop in s.loops]
    for loop in (*loops, *([] if part.rows is None else [part.rows])):
        bounds += [loop.start, loop.stop, *([] if loop.limit is None else [loop.limit])]
    return any(isinstance(x, Load) and x.buffer == buffer for e in bounds for x in walk(e))


def kernel_text(kernel: Kernel, product: int, rows: TileRows, dtype: DType) -> tuple[str, str]:
    """Return the OpenCL C of a kernel that computes a product in its tiles, and its name.

    Its parameters are the buffers of ``kernel``, the matrix, the vector, the other parameters of
    ``kernel``, the product's rows that a tile reads, and the rows and columns of the matrix.

    Args:
        kernel: the kernel, without phases.
        product: which of its buffers is the product.
        rows: which rows its tiles read.
        dtype: the dtype of the product: float32 or float64.
    """
    head = f"__kernel void {kernel.name}("
    start = kernel.source.index(head) + len(head)
    params = kernel.source[start : kernel.source.index(") {", start)].split(", ")
    names = [param.split()[-1].lstrip("*") for param in params]
    params = [param.replace("restrict ", "") for param in params]
    count = len(kernel.ast.params)
    name = f"{kernel.name}_with_product"
    text = TEXT.format(
        text=program_text([kernel]),
        pragma="#pragma OPENCL EXTENSION cl_khr_fp64 : enable" if dtype is float64 else "",
        type=TYPES[dtype],
        row_product=ROW_PRODUCT,
        name=name,
        buffers=", ".join(params[:count]),
        numbers=", ".join(params[count:]),
        tiles=rows.tiles,
        product=names[product],
        kernel=kernel.name,
        arguments=", ".join(names),
    )
    return text, name
