"""``scatter_rows``, to which all scatters expand, its kernels, and row numbers from indices.

An update belongs to the row that an index names; a row that does not exist drops it. Updates of one
row are applied in their order, however many threads share the rows, so results do not depend on
the number of threads.
"""

from __future__ import annotations

from functools import reduce
from operator import add, and_
from typing import TYPE_CHECKING, Any

import numpy as np

from passkit import ast
from passkit.errors import DTypeError, GraphError, ShapeError, nearest
from passkit.graph.infer import agree, same_dtype_rule, show_shape
from passkit.graph.kernel import OwnKernel
from passkit.graph.node import Entry, Node, known_shape
from passkit.graph.op import REQUIRED, OpPattern, register_op
from passkit.ops.helpers import check_broadcast, check_kinds, make, normalize_axis, parse_extents
from passkit.ops.indices import check_indices, clipped_position, index_mode, is_inside
from passkit.values.dtype import DType, int64, is_narrow
from passkit.values.lazy import Lazy
from passkit.values.size import Extent, Shape, numel

if TYPE_CHECKING:
    from passkit.analysis import accesses
    from passkit.analysis.accesses import Index, Reader
    from passkit.ast import Expr
else:
    accesses = Lazy("passkit.analysis.accesses")

Array = Any

COMBINE: dict[str, Any] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "min": np.minimum,
    "max": np.maximum,
}
"""How an element and an update are combined in NumPy, by kind; kind "update" replaces it."""

KINDS = ("update", *COMBINE)
"""The values of the parameter ``kind``."""

COMBINE_CUDA = {
    "update": "b",
    "add": "a + b",
    "sub": "a - b",
    "mul": "a * b",
    "min": "minimum(a, b)",
    "max": "maximum(a, b)",
}
"""How an element ``a`` and an update ``b`` are combined in CUDA C, by kind."""

COMBINE_INTEGERS = {
    **COMBINE_CUDA,
    **{kind: f"wrapped_{kind}(a, b)" for kind in ("add", "sub", "mul")},
}
"""The same for integers, which wrap."""

BOOL_KINDS = {"add": "max", "mul": "min"}
"""The kinds by which kernels compute sums and products of bools, which they hold as integers."""

TILES = {"cxx": 32, "cuda": 1024}
"""Number of tiles of rows or columns that threads or blocks work on."""

CXX = (
    'extern "C" void KERNEL(void *const *buf, const int64_t *size, int64_t begin, '
    "int64_t end, unsigned char *) {{\n"
    "  scatter<{type}, join_{kind}>(buf, size, begin, end);\n"
    "}}\n"
)

CUDA = """\
// A tile is a part of all rows, or where these are few, of their columns too. Its block goes
// through all updates, and keeps the numbers of those that are for it in their order.
extern "C" __global__ void KERNEL(const {type} *x, const int64_t *rows, \
const {type} *updates, {type} *y, const int64_t outer, const int64_t middle, \
const int64_t height, const int64_t count, const int64_t length, const int64_t tiles) {{
  __shared__ unsigned kept[1024], found[32];
  const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
  const int64_t all = outer * middle * height;
  if (!all || !length) return;
  const int64_t wide = (length + 127) / 128, spare = all < tiles ? tiles / all : 1;
  const int64_t across = wide < spare ? wide : spare;
  const int64_t down = all < tiles / across ? all : tiles / across;
  for (int64_t tile = blockIdx.x; tile < across * down; tile += gridDim.x) {{
    const int64_t from = all * (tile / across) / down, until = all * (tile / across + 1) / down;
    const int64_t first = length * (tile % across) / across;
    const int64_t last = length * (tile % across + 1) / across;
    if (x != y && across == 1) {{
      const int64_t end = until * length;
      for (int64_t i = from * length + threadIdx.x; i < end; i += blockDim.x) y[i] = x[i];
    }} else if (x != y) {{
      for (int64_t r = from; r < until; ++r) {{
        for (int64_t c = first + threadIdx.x; c < last; c += blockDim.x) {{
          y[r * length + c] = x[r * length + c];
        }}
      }}
    }}
    __syncthreads();
    // Each warp has rows of its own; a few are shared by columns. So an element has one thread.
    const bool own = until - from >= warps;
    const int64_t start = first + (own ? lane : threadIdx.x), step = own ? 32 : blockDim.x;
    for (int64_t image = from / height; image * height < until; ++image) {{
      const int64_t low = from - image * height, high = until - image * height;
      const int64_t *const named = rows + image / middle * count;
      const {type} *const given = updates + image * count * length;
      {type} *const out = y + image * height * length;
      for (int64_t begin = 0; begin < count; begin += blockDim.x) {{
        const int64_t k = begin + threadIdx.x;
        const int64_t at = k < count ? named[k] : -1;
        const bool here = at >= 0 && at < height && at >= low && at < high;
        const unsigned votes = __ballot_sync(0xffffffffu, here);
        if (lane == 0) found[warp] = __popc(votes);
        __syncthreads();
        unsigned before = 0, several = 0;
        for (unsigned w = 0; w < warps; ++w) {{
          if (w < warp) before += found[w];
          several += found[w];
        }}
        if (here) kept[before + __popc(votes & ((1u << lane) - 1))] = threadIdx.x;
        __syncthreads();
        for (unsigned h = 0; h < several; ++h) {{
          const int64_t update = begin + kept[h], row = named[update];
          if (own && (unsigned)(row % warps) != warp) continue;
          for (int64_t c = start; c < last; c += step) {{
            const {type} a = out[row * length + c], b = given[update * length + c];
            out[row * length + c] = {join};
          }}
        }}
        __syncthreads();
      }}
    }}
  }}
}}
"""

# scatter_rows.


def scatter_kind(node: Node) -> str:
    """Return the parameter ``kind`` of ``node``: "update", "add", "sub", "mul", "min" or "max".

    Raises: GraphError for another.
    """
    kind = node.params["kind"]
    if kind not in KINDS:
        raise GraphError(f"{node.where} has no kind {kind!r}; {nearest(str(kind), KINDS)}")
    return str(kind)


def _scatter_rows_shape(node: Node, x: Shape, rows: Shape, updates: Shape) -> Shape:
    """Infer the shape (a, b, n, c) from (a, b, n, c), (a, m) and (a, b, m, c).

    These are the shapes ``x``, ``rows`` and ``updates``. Errors name ``node``.

    Raises:
        ShapeError: If ranks or extents differ from that.
    """
    if (len(x), len(rows), len(updates)) != (4, 2, 4):
        raise ShapeError(
            f"{node.where} needs (a, b, n, c), (a, m) and (a, b, m, c), got {show_shape(x)}, "
            f"{show_shape(rows)} and {show_shape(updates)}"
        )
    agree(node, x[0], rows[0], "dimension 0 of x and rows")
    for k, n in enumerate((x[0], x[1], rows[1], x[3])):
        agree(node, n, updates[k], f"dimension {k} of the updates")
    return x


def _scatter_rows_dtype(node: Node, x: DType, rows: DType, updates: DType) -> DType:
    """Infer the dtype, that of x and updates.

    Raises:
        DTypeError: If rows are not int64, updates have another dtype than x, bools are subtracted,
            or floats of 16 bits are combined, which accumulate in float32.
        GraphError: If the parameter ``kind`` of ``node`` is unknown.
    """
    check_indices(node, rows, "rows")
    if rows is not int64:
        raise DTypeError(f"{node.where} needs rows of int64, got {rows}; pk.ops.cast(x, 'int64')")
    kind = scatter_kind(node)
    if kind != "update" and is_narrow(x):
        raise DTypeError(
            f"{node.where} joins floats of 32 bits or more, got {x}; pk.ops.cast(x, 'float32')"
        )
    if kind == "sub":
        check_kinds(node, "iufc", x)
    return same_dtype_rule(node, x, updates)


def _compute_scatter_rows(node: Node, x: Array, rows: Array, updates: Array) -> Array:
    """Compute a scatter of arrays with NumPy; updates of rows that do not exist are dropped.

    The result is a copy of ``x``, (a, b, n, c), with ``updates``, (a, b, m, c), combined into the
    ``rows``, (a, m), by the parameter ``kind`` of ``node``. A negative row does not exist.

    Raises: GraphError if the kind is unknown.
    """
    out, kind = np.array(x), scatter_kind(node)
    for image, row_numbers, image_updates in zip(out, rows, updates, strict=True):
        valid = (row_numbers >= 0) & (row_numbers < x.shape[2])
        at = (slice(None), row_numbers[valid])
        if kind == "update":
            image[at] = image_updates[:, valid]
        else:
            COMBINE[kind].at(image, at, image_updates[:, valid])
    return out


def _scatter_rows_kernel(node: Node, dialect: str) -> OwnKernel | None:
    """Return the kernel of a node of known dtype for the dialect "cxx" or "cuda".

    It combines bools by a maximum for "add" and a minimum for "mul".

    Returns:
        None for other dialects and for complex numbers, where NumPy computes the scatter.

    Raises: ShapeError if a rank is unknown, GraphError if the parameter ``kind`` is.
    """
    dtype = node.entries[0].dtype
    assert dtype is not None
    element_type = _element_type(dtype)
    template = {"cxx": CXX, "cuda": CUDA}.get(dialect)
    if template is None or element_type is None:
        return None
    kind = scatter_kind(node)
    kind = BOOL_KINDS.get(kind, kind) if dtype.kind == "b" else kind
    combine = COMBINE_CUDA if dtype.is_float else COMBINE_INTEGERS
    text = template.format(type=element_type, kind=kind, join=f"{element_type}({combine[kind]})")
    outer, middle, rows, length = known_shape(node.inputs[0])
    count = known_shape(node.inputs[1])[1]
    tiles = TILES[dialect]
    return OwnKernel(text, (outer, middle, rows, count, length, tiles), tiles)


def _element_type(dtype: DType) -> str | None:
    """Return the C type for elements of a dtype; None for complex numbers.

    Floats of 16 bits, which are only replaced, and bools count as unsigned integers.
    """
    if dtype.kind == "c":
        return None
    if dtype.is_float and not is_narrow(dtype):
        return "float" if dtype.nbytes == 4 else "double"
    sign = "" if dtype.kind == "i" else "u"
    return f"{sign}int{8 * dtype.nbytes}_t"


def _scatter_rows_gradient(node: Node, dy: Entry) -> list[Entry | None]:
    """Return the gradients of x, rows (None) and updates, those of the scatter along axis 2.

    There negative indices count from the end: negative rows, which are dropped here, are replaced
    by a row that does not exist. ``dy`` is the gradient of the output. ``node`` is the forward
    node, with the parameter ``kind``.

    Raises: GraphError if the kind is unknown, ShapeError if the rank of an input is.
    """
    x, rows, updates = node.inputs
    nowhere = make("full_like", rows, fill_value=np.iinfo(np.int64).max)
    zeros = make("full_like", rows, fill_value=0)
    indices = make("where", make("less", rows, zeros), nowhere, rows)
    equivalent = make(f"index_{scatter_kind(node)}", x, indices, updates, axis=2, batch_dims=1).node
    assert equivalent.op is not None
    gradient = equivalent.op.get_attr("FGradient")
    return gradient(equivalent, dy)  # type: ignore[no-any-return]


scatter_rows = register_op(
    "scatter_rows",
    num_inputs=3,
    params={"kind": "add"},
    doc="x with updates combined into the rows that are named, in order: (a, b, n, c), (a, m), "
    "(a, b, m, c) -> (a, b, n, c); updates of rows out of range are dropped",
)
scatter_rows.set_attr("FListInputNames", lambda params: ["x", "rows", "updates"])
scatter_rows.set_attr("FInferShape", _scatter_rows_shape)
scatter_rows.set_attr("FInferType", _scatter_rows_dtype)
scatter_rows.set_attr("FCompute", _compute_scatter_rows)
scatter_rows.set_attr("FKernel", _scatter_rows_kernel)
scatter_rows.set_attr("FGradient", _scatter_rows_gradient)
scatter_rows.set_attr("FInplaceOption", lambda node: [(0, 0)])
scatter_rows.set_attr("TOpPattern", OpPattern.OPAQUE)


# Row numbers from indices; -1 where an index is out of range.


def _row_number(indices: list[tuple[Expr, Extent]], strides: list[Extent], clip: bool) -> Expr:
    """Return the row-major number of the element at indices, as int64; 0 without indices.

    Args:
        indices: Each index with the length of its axis.
        strides: The distance of neighbours along each axis, in elements.
        clip: Whether an index that is out of range takes the nearest element; else the number is
            -1.
    """
    if not indices:
        return ast.size_of(0)
    positions = [clipped_position(i, n) for i, n in indices]
    number = reduce(
        add,
        [p if n == 1 else p * ast.size_of(n) for (p, _), n in zip(positions, strides, strict=True)],
    )
    if clip:
        return number
    inside = [
        is_inside(from_front, n) for (_, from_front), (_, n) in zip(positions, indices, strict=True)
    ]
    return ast.where(reduce(and_, inside), number, -1)


def _row_number_dtype(node: Node, indices: DType) -> DType:
    """Infer the dtype of row numbers, int64.

    Raises: DTypeError, naming ``node``, if ``indices``, the input's dtype, is no integer.
    """
    check_indices(node, indices)
    return int64


def _strides(shape: Shape) -> list[Extent]:
    """Return the row-major strides of a shape, in elements."""
    return [numel(shape[k + 1 :]) for k in range(len(shape))]


def _rows_of_points_element(node: Node, index: Index, read: Reader) -> Expr:
    """Return the row-major number of the point whose coordinates are the last axis of the input.

    The numbers are those in an array of the parameter ``shape`` of ``node``; that of a point out of
    range is -1, or in mode "clip" that of the nearest. ``index`` has an expression for each axis of
    the output, ``read`` reads the input.

    Raises: ShapeError if a parameter is invalid; GraphError if ``mode`` is unknown.
    """
    shape = parse_extents(node, node.params["shape"], "shape")
    coordinates = [(read(*index, ast.size_of(k)), n) for k, n in enumerate(shape)]
    return _row_number(coordinates, _strides(shape), index_mode(node) == "clip")


def _rows_of_points_shape(node: Node, indices: Shape) -> Shape:
    """Infer the shape, that of the points: the input's without the axis of coordinates.

    ``indices`` is the shape of the input.

    Raises:
        ShapeError: If there is not one coordinate for each axis of the parameter ``shape`` of
            ``node``, or that is no shape.
        GraphError: If ``mode`` is unknown.
    """
    shape = parse_extents(node, node.params["shape"], "shape")
    index_mode(node)
    if not indices or indices[-1] != len(shape):
        raise ShapeError(
            f"{node.where} needs {len(shape)} coordinates in the last axis of indices, got "
            f"{show_shape(indices)}"
        )
    return indices[:-1]


rows_of_points = register_op(
    "rows_of_points",
    num_inputs=1,
    params={"shape": REQUIRED, "mode": "zero"},
    doc="the row-major numbers, in an array of a shape, of the points whose coordinates are the "
    "last axis of x; -1 for a point out of range",
)
rows_of_points.set_attr("FElement", _rows_of_points_element)
rows_of_points.set_attr("FInferShape", _rows_of_points_shape)
rows_of_points.set_attr("FInferType", _row_number_dtype)
rows_of_points.set_attr("TOpPattern", OpPattern.INJECTIVE)
rows_of_points.set_attr("TOpCost", "light")


def _rows_along_axis_element(node: Node, index: Index, read: Reader) -> Expr:
    """Return the row-major number of the element whose position along ``axis`` is the input.

    Its positions along the other axes are those of the index. It is -1 for a position out of range,
    or in mode "clip" that of the nearest. ``index`` has an expression for each axis of the output,
    ``read`` reads the input. ``node`` has the parameters ``axis``, ``mode`` and ``shape``.

    Raises: ShapeError if a rank is unknown, or a parameter is invalid; GraphError if ``mode`` is
    unknown.
    """
    shape = parse_extents(node, node.params["shape"], "shape")
    axis = normalize_axis(node, len(shape), node.params["axis"])
    i = read(*accesses.broadcast_index(index, known_shape(node.inputs[0])))
    strides = _strides(shape)
    number = _row_number([(i, shape[axis])], [strides[axis]], index_mode(node) == "clip")
    other_axes = [
        position * ast.size_of(stride)
        for k, (position, stride) in enumerate(
            zip(accesses.broadcast_index(index, shape), strides, strict=True)
        )
        if k != axis
    ]
    return reduce(lambda total, more: ast.where(total < 0, total, total + more), other_axes, number)


def _rows_along_axis_shape(node: Node, indices: Shape) -> Shape:
    """Infer the shape, the parameter ``updates``; ``indices`` is the shape of the input.

    ``node`` has the parameters ``axis``, ``mode``, ``shape`` and ``updates``.

    Raises:
        ShapeError: If it or ``shape`` has negative extents or anything else than ints and sizes, it
            has a lower rank than shape or indices, the indices do not broadcast to it, or ``axis``
            is no int or out of range.
        GraphError: If ``mode`` is unknown.
    """
    index_mode(node)
    shape = parse_extents(node, node.params["shape"], "shape")
    updates = parse_extents(node, node.params["updates"], "updates")
    has_negative = any(isinstance(n, int) and n < 0 for n in (*shape, *updates))
    if has_negative or max(len(shape), len(indices)) > len(updates):
        raise ShapeError(
            f"{node.where} needs updates of extents >= 0 and of no lower rank than shape and "
            f"indices, got {show_shape(updates)} for {show_shape(shape)} and {show_shape(indices)}"
        )
    normalize_axis(node, len(shape), node.params["axis"])
    check_broadcast(node, indices, updates, "the indices")
    return updates


rows_along_axis = register_op(
    "rows_along_axis",
    num_inputs=1,
    params={"shape": REQUIRED, "updates": REQUIRED, "axis": -1, "mode": "zero"},
    doc="the row-major numbers, in an array of a shape, of the elements that indices x refer to "
    "along axis, one for each of updates; -1 for an index out of range",
)
rows_along_axis.set_attr("FElement", _rows_along_axis_element)
rows_along_axis.set_attr("FInferShape", _rows_along_axis_shape)
rows_along_axis.set_attr("FInferType", _row_number_dtype)
rows_along_axis.set_attr("TOpPattern", OpPattern.INJECTIVE)
rows_along_axis.set_attr("TOpCost", "light")
