"""Products of matrices and vectors on an OpenCL device: their kernels, and how they are launched.

A product whose result has one row or one column reads its matrix once, row by row as it lies in
memory. Either each row is multiplied by a vector and summed (``rows``), or the rows are multiplied
by a number each and added up (``columns``). What several work-items or work-groups contribute to
one sum is stored, and added up by ``columns`` again.

A CPU runs the items of a group one after the other, and its compiler vectorizes loops: there, an
item computes a block of rows by itself. On other devices the items of a group load neighbouring
elements, and add up their sums in local memory. How sums are divided depends on the shape and on
this kind of device only.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np

from passkit.runtime.opencl.compiler import HEAD, compiler_options
from passkit.runtime.opencl.device import OpenClDevice, power_of_two, pyopencl
from passkit.runtime.program import MatrixProduct
from passkit.target import Target
from passkit.values.dtype import DType, float32, float64

TYPES = {float32: "float", float64: "double"}
"""The dtypes that the kernels compute in, as OpenCL C writes them."""

MAX_PARTS = 1024
"""The most parts that a row is divided into."""
FEW_ROWS = 64
"""With fewer rows than this, each row is divided into parts."""
PART_COLUMNS = 4096
"""The least columns of such a part."""

SERIAL_ELEMENTS = 16384
"""The elements of a matrix that an item of a CPU multiplies in ``rows``."""
SERIAL_SUM_ELEMENTS = 65536
"""Those that it adds up in ``columns``: more, as it stores a sum for each column."""
SERIAL_ROWS = 64
"""The least rows that it adds up."""
MAX_SERIAL_ROWS = 4096
"""The most rows that it adds up: errors of rounding grow with them."""
NARROW_COLUMNS = range(9, 33)
"""The numbers of columns for each of which ``columns`` is compiled, so that sums stay in registers.
Fewer take as long without."""
NARROW_ROWS = 1024
"""The rows that an item of it adds up."""
SERIAL_COLUMNS = 2048
"""The most columns of an item: their sums stay in the first cache."""

GROUP_ITEMS = 64
"""The items of a group that uses local memory."""
GROUP_STEPS = 32
"""The elements that each of these items adds up in ``columns``."""

ROW_PRODUCT = """
static inline T row_product(__global const T *x, __global const T *y, const long length) {
  T sums[8] = {0, 0, 0, 0, 0, 0, 0, 0};
  long j = 0;
  for (; j + 8 <= length; j += 8)
    for (int l = 0; l < 8; l++) sums[l] += x[j + l] * y[j + l];
  for (; j + 4 <= length; j += 4)
    for (int l = 0; l < 4; l++) sums[l] += x[j + l] * y[j + l];
  T sum = ((sums[0] + sums[4]) + (sums[2] + sums[6])) +
          ((sums[1] + sums[5]) + (sums[3] + sums[7]));
  for (; j < length; j++) sum += x[j] * y[j];
  return sum;
}
"""
"""The product of a row and a vector, in vectors of eight or four elements. ``dot`` is OpenCL's."""

SERIAL = """
__kernel void rows(__global const T *restrict x, __global const T *restrict v, __global T *y,
                   const long xs, const long vs, const long ys, const long height,
                   const long width, const long block, const long part) {
  const long low = get_global_id(0) * block, high = min(low + block, height);
  const long left = get_global_id(1) * part, length = min(left + part, width) - left;
  const long batch = get_global_id(2);
  __global const T *w = v + batch * vs + left;
  for (long i = low; i < high; i++) {
    __global const T *row = x + batch * xs + i * width + left;
    y[batch * ys + get_global_id(1) * height + i] = row_product(row, w, length);
  }
}

__kernel void columns(__global const T *restrict x, __global const T *restrict d,
                      __global T *restrict y, const long xs, const long ds, const long ys,
                      const long height, const long width, const long block, const long part,
                      const int weighted) {
  const long low = get_global_id(0) * block, high = min(low + block, height);
  const long left = get_global_id(1) * part, length = min(left + part, width) - left;
  const long batch = get_global_id(2);
  __global T *restrict sums = y + batch * ys + get_global_id(0) * width + left;
  __global const T *restrict row = x + batch * xs + low * width + left;
  d += batch * ds;
#ifdef WIDTH
  T own[WIDTH] = {0};  /* in registers */
  long i = low;
  for (; i + 2 <= high; i += 2, row += 2 * WIDTH) {  /* two rows are read at a time */
    const T a = weighted ? d[i] : 1, b = weighted ? d[i + 1] : 1;
    for (int j = 0; j < WIDTH; j++) own[j] = own[j] + row[j] * a + row[WIDTH + j] * b;
  }
  for (; i < high; i++, row += WIDTH) {
    const T a = weighted ? d[i] : 1;
    for (int j = 0; j < WIDTH; j++) own[j] += row[j] * a;
  }
  for (int j = 0; j < WIDTH; j++) sums[j] = own[j];
#else
  for (long j = 0; j < length; j++) sums[j] = 0;
  long i = low;
  if (width <= 8)  /* sums are loaded and stored once for four rows */
    for (; i + 4 <= high; i += 4, row += 4 * width) {
      const T a = weighted ? d[i] : 1, b = weighted ? d[i + 1] : 1;
      const T c = weighted ? d[i + 2] : 1, e = weighted ? d[i + 3] : 1;
      for (long j = 0; j < length; j++)
        sums[j] += (row[j] * a + row[width + j] * b) +
                   (row[2 * width + j] * c + row[3 * width + j] * e);
    }
  for (; i < high; i++, row += width) {
    const T a = weighted ? d[i] : 1;
    for (long j = 0; j < length; j++) sums[j] += row[j] * a;
  }
#endif
}
"""
"""The kernels for CPUs: ``block`` rows and ``part`` columns for each item of a group of one."""

GROUPED = """
__kernel void rows(__global const T *restrict x, __global const T *restrict v, __global T *y,
                   const long xs, const long vs, const long ys, const long height,
                   const long width, const long lanes, const long part, __local T *sums) {
  const long lane = get_local_id(0) % lanes, i = get_global_id(0) / lanes;
  const long left = get_global_id(1) * part, right = min(left + part, width);
  __global const T *row = x + get_global_id(2) * xs + i * width;
  T sum = 0;
  v += get_global_id(2) * vs;
  if (i < height)
    for (long j = left + lane; j < right; j += lanes) sum += row[j] * v[j];
  sums[get_local_id(0)] = sum;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (long step = lanes / 2; step > 0; step /= 2) {
    if (lane < step) sums[get_local_id(0)] += sums[get_local_id(0) + step];
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  if (lane == 0 && i < height)
    y[get_global_id(2) * ys + get_global_id(1) * height + i] = sums[get_local_id(0)];
}

__kernel void columns(__global const T *restrict x, __global const T *restrict d,
                      __global T *restrict y, const long xs, const long ds, const long ys,
                      const long height, const long width, const long block, const long lanes,
                      const int weighted, __local T *sums) {
  const long lane = get_local_id(0) % lanes, apart = get_local_size(0) / lanes;
  const long low = get_group_id(0) * block, high = min(low + block, height);
  const long j = get_group_id(1) * lanes + lane;
  T sum = 0;
  x += get_global_id(2) * xs;
  d += get_global_id(2) * ds;
  if (j < width)
    for (long i = low + get_local_id(0) / lanes; i < high; i += apart)
      sum += weighted ? x[i * width + j] * d[i] : x[i * width + j];
  sums[get_local_id(0)] = sum;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (long step = apart / 2; step > 0; step /= 2) {
    if (get_local_id(0) < step * lanes)
      sums[get_local_id(0)] += sums[get_local_id(0) + step * lanes];
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  if (get_local_id(0) < lanes && j < width)
    y[get_global_id(2) * ys + get_group_id(0) * width + j] = sums[lane];
}
"""
"""The kernels for other devices: ``lanes`` items of a group lie along a row."""


class ProductLaunch(NamedTuple):
    """A launch that computes products, or parts of them.

    Attributes:
        name: "rows" or "columns".
        operands: its buffers: 0 and 1 are the product's operands, 2 its result, and 3 and 4 hold
            sums of parts.
        numbers: the integers that follow the buffers: their strides from product to product of a
            batch, a matrix's rows and columns, and how these are divided among items.
        items: the work-items of the three dimensions of the grid; the last one is the batch.
    """

    name: str
    operands: tuple[int, int, int]
    numbers: tuple[int, ...]
    items: tuple[int, int, int]


class VectorProducts(NamedTuple):
    """How products by vectors are computed.

    Attributes:
        launches: the launches, in order; none for an empty result.
        parts: the elements of the two buffers that hold sums of parts.
    """

    launches: list[ProductLaunch]
    parts: tuple[int, int]


class ProductOperand(NamedTuple):
    """A batch of row-major matrices, or of vectors, which are matrices of one row.

    Attributes:
        buffer: its number, as `ProductLaunch` has them; -1 for a vector of ones.
        stride: the elements from one matrix of the batch to the next one, 0 where it has only one.
        height: the rows of a matrix.
        width: its columns.
    """

    buffer: int
    stride: int
    height: int
    width: int


@cache
def build_program(device: OpenClDevice, dtype: DType, block: int, width: int) -> Any:
    """Build the kernels for groups of ``block`` work-items; return pyopencl's program.

    A CPU has groups of one item. ``width`` is the columns that ``columns`` is compiled for, 0 for
    any. Raises: pyopencl.Error where the compiler refuses.
    """
    double = "#pragma OPENCL EXTENSION cl_khr_fp64 : enable\n" if dtype is float64 else ""
    body = ROW_PRODUCT + SERIAL if block == 1 else GROUPED
    fixed = f"#define WIDTH {width}\n" if width else ""
    program = pyopencl().Program(
        device.context, f"{HEAD}\n{double}#define T {TYPES[dtype]}\n{fixed}{body}"
    )
    return program.build(list(compiler_options(device, block)), cache_dir=False)


def compiled_width(launch: ProductLaunch, block: int) -> int:
    """Return the width that the kernel of a launch is compiled for; 0 for any width.

    ``block`` is the work-items of a group.
    """
    width = launch.numbers[4]
    is_narrow = launch.name == "columns" and block == 1 and width in NARROW_COLUMNS
    return width if is_narrow else 0


def group_items(target: Target) -> int:
    """Return the work-items of a group for a target: its ``block``, at most `GROUP_ITEMS`.

    It is rounded down to a power of two; a target that was adapted to a CPU has 1.
    """
    return min(GROUP_ITEMS, power_of_two(target.block))


def is_vector_product(operation: Any, dtype: DType) -> bool:
    """Return whether an operation is a product by vectors that the kernels here compute.

    That is a matrix product of float32 or float64 whose result has one row or one column, with
    equal batches, or with one matrix or vector for the entire batch. A symbolic extent does not
    count as 1.
    """
    if not isinstance(operation, MatrixProduct) or dtype not in TYPES:
        return False
    if operation.m != 1 and operation.n != 1:
        return False
    batches = operation.batch_a, operation.batch_b
    return batches[0] == batches[1] or any(all(n == 1 for n in batch) for batch in batches)


def vector_products(
    m: int, n: int, k: int, transposed: tuple[bool, bool], counts: tuple[int, int], block: int
) -> VectorProducts:
    """Return how products (m, k) x (k, n) are computed, where m or n is 1.

    Args:
        m: the rows of each result.
        n: its columns.
        k: the length of the sums.
        transposed: whether each operand is stored transposed.
        counts: the number of matrices of each operand: equal, or one is 1.
        block: the work-items of a group, 1 on a CPU.
    """
    batch = max(counts) if min(counts) else 0
    if not (m and n and batch):
        return VectorProducts([], (0, 0))
    strides = [size if count > 1 else 0 for size, count in zip((m * k, k * n), counts, strict=True)]
    matrix = 0 if n == 1 else 1
    length = max(m, n)
    is_stored_by_result = transposed[0] is False if matrix == 0 else transposed[1] is True
    if is_stored_by_result or length == 1:
        x = ProductOperand(matrix, strides[matrix], length, k)
        return _rows(x, ProductOperand(1 - matrix, strides[1 - matrix], 1, k), batch, block)
    x = ProductOperand(matrix, strides[matrix], k, length)
    return _columns(x, ProductOperand(1 - matrix, strides[1 - matrix], 1, k), batch, block)


def _rows(x: ProductOperand, vector: ProductOperand, batch: int, block: int) -> VectorProducts:
    """Return how each row of a matrix is multiplied by a vector, and the products added up.

    Args:
        x: the matrices.
        vector: the vectors.
        batch: the number of products.
        block: the work-items of a group.
    """
    parts = 1
    if x.height < FEW_ROWS:
        parts = max(1, min(x.width // PART_COLUMNS, MAX_PARTS))
    part = max(1, -(-x.width // parts))
    parts = max(1, -(-x.width // part))
    if block == 1:
        across = max(1, SERIAL_ELEMENTS // part)
        items = -(-x.height // across)
    else:
        across = min(power_of_two(part), block)
        items = -(-x.height * across // block) * block
    sums = ProductOperand(2 if parts == 1 else 3, parts * x.height, parts, x.height)
    launch = ProductLaunch(
        "rows",
        (x.buffer, vector.buffer, sums.buffer),
        (x.stride, vector.stride, sums.stride, x.height, x.width, across, part),
        (items, parts, batch),
    )
    return _with_sums(launch, sums, batch, block)


def _columns(x: ProductOperand, vector: ProductOperand, batch: int, block: int) -> VectorProducts:
    """Return how each row of a matrix is multiplied by a number, and the rows added up.

    ``vector`` has the numbers; the other arguments are as in `_rows`.
    """
    if block == 1:
        part = min(x.width, SERIAL_COLUMNS)
        rows = min(max(SERIAL_ROWS, SERIAL_SUM_ELEMENTS // part), MAX_SERIAL_ROWS)
        rows = NARROW_ROWS if x.width in NARROW_COLUMNS else rows
    else:
        part = min(power_of_two(x.width), block)
        rows = GROUP_STEPS * (block // part)
    parts = max(1, -(-x.height // rows))
    spare = 4 if x.buffer == 3 else 3
    sums = ProductOperand(2 if parts == 1 else spare, parts * x.width, parts, x.width)
    is_weighted = vector.buffer >= 0
    launch = ProductLaunch(
        "columns",
        (x.buffer, vector.buffer if is_weighted else x.buffer, sums.buffer),
        (x.stride, vector.stride, sums.stride, x.height, x.width, rows, part, int(is_weighted)),
        (parts * block, -(-x.width // part), batch),
    )
    return _with_sums(launch, sums, batch, block)


def _with_sums(
    launch: ProductLaunch, sums: ProductOperand, batch: int, block: int
) -> VectorProducts:
    """Return a launch, and those that add up the parts of sums that it stores in ``sums``."""
    if sums.buffer == 2:
        return VectorProducts([launch], (0, 0))
    more, parts = _columns(sums, ProductOperand(-1, 0, 1, sums.height), batch, block)
    elements = list(parts)
    elements[sums.buffer - 3] = max(elements[sums.buffer - 3], batch * sums.stride)
    return VectorProducts([launch, *more], (elements[0], elements[1]))


def launch_arguments(launch: ProductLaunch, dtype: DType, block: int) -> list[Any]:
    """Return the arguments of a launch that follow its buffers, as pyopencl takes them."""
    values: list[Any] = [np.int64(n) for n in launch.numbers]
    if launch.name == "columns":
        values[-1] = np.int32(launch.numbers[-1])
    if block > 1:
        values.append(pyopencl().LocalMemory(block * dtype.nbytes))
    return values
