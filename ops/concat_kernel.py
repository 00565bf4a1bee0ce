"""The kernel of a concat of many inputs: a loop over a table of the inputs' pointers.

A fused concat selects among its inputs by nested conditions, so its text grows with their number,
and the time of a C++ compiler grows faster than that. The text of this kernel has constant size in
C++, and grows by one parameter for each input in CUDA C and OpenCL C.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from passkit.graph.node import Node, known_shape
from passkit.ops.helpers import normalize_axis
from passkit.values.size import Extent, numel

if TYPE_CHECKING:
    from passkit.graph.kernel import OwnKernel

FUSED_INPUTS = 16
"""The largest number of inputs of a concat that fuses with its producers and consumers."""

KERNEL_PARAMETERS = {"cuda": 480, "opencl": 120}
"""The largest number of kernel parameters, of 8 bytes: CUDA has 4 KiB, OpenCL guarantees 1 KiB.

Source: CUDA C++ programming guide, function parameters; OpenCL 1.2,
CL_DEVICE_MAX_PARAMETER_SIZE.
"""

TILES = {"cxx": 32, "cuda": 1024, "opencl": 256}
"""Number of tiles that threads or blocks work on."""

CXX_TEMPLATE = (
    'extern "C" void KERNEL(void *const *buf, const int64_t *size, int64_t begin, '
    "int64_t end, unsigned char *) {{\n"
    "  concat_parts<{type}>(buf, size, begin, end);\n"
    "}}\n"
)

DEVICE_TEMPLATE = """\
// Blocks go through the parts in turn; the threads of all blocks share the elements of a part.
{kernel} KERNEL({parameters}) {{
  {pointer} part[] = {{{parts}}};
  const {int64} length[] = {{{lengths}}};
  const {int64} thread = {thread}, threads = {threads};
  {int64} width = 0, start = 0;
  for (int p = 0; p < {count}; ++p) width += length[p];
  for (int p = 0; p < {count}; ++p) {{
    for ({int64} i = thread; i < outer * length[p]; i += threads) {{
      const {int64} row = i / length[p];
      y[row * width + start + i - row * length[p]] = part[p][i];
    }}
    start += length[p];
  }}
}}
"""

DIALECT_WORDS = {
    "cuda": {
        "kernel": 'extern "C" __global__ void',
        "global": "",
        "int64": "int64_t",
        "thread": "blockIdx.x * (int64_t)blockDim.x + threadIdx.x",
        "threads": "gridDim.x * (int64_t)blockDim.x",
    },
    "opencl": {
        "kernel": "__kernel void",
        "global": "__global ",
        "int64": "long",
        "thread": "get_global_id(0)",
        "threads": "get_global_size(0)",
    },
}
"""The words of `DEVICE_TEMPLATE` that differ in CUDA C and OpenCL C."""


def concat_kernel(node: Node, dialect: str) -> OwnKernel | None:
    """Return the kernel of a concat of more than `FUSED_INPUTS` inputs, the FKernel of ``concat``.

    Args:
        node: A node of ``concat`` whose output dtype is known.
        dialect: The language of the kernel: "cxx", "cuda" or "opencl".

    Returns:
        The text with the sizes to pass to it and its number of tiles; None for `FUSED_INPUTS` or
        fewer inputs, for complex elements, for other dialects, and where a device kernel cannot
        have so many parameters.

    Raises:
        ShapeError: If there is a kernel, and the rank of an input is unknown or the parameter
            ``axis`` is out of range.
    """
    count = len(node.inputs)
    dtype = node.entries[0].dtype
    assert dtype is not None
    if count <= FUSED_INPUTS or dialect not in TILES or dtype.kind == "c":
        return None
    if 2 * count + 4 > KERNEL_PARAMETERS.get(dialect, 2 * count + 4):
        return None
    from passkit.graph.kernel import OwnKernel  # it needs attrs, which a warm start does not load

    shapes = [known_shape(e) for e in node.inputs]
    axis = normalize_axis(node, len(shapes[0]), node.params["axis"])
    lengths: list[Extent] = [numel(s[axis:]) for s in shapes]
    outer = numel(shapes[0][:axis])
    tiles = TILES[dialect]
    if dialect == "cxx":
        text = CXX_TEMPLATE.format(type=f"uint{8 * dtype.nbytes}_t")
        return OwnKernel(text, (count, outer, *lengths, tiles), tiles)
    return OwnKernel(_device_text(dialect, 8 * dtype.nbytes, count), (outer, *lengths), tiles)


def _device_text(dialect: str, bits: int, count: int) -> str:
    """Return the text of the kernel of ``count`` inputs in CUDA C or OpenCL C.

    Args:
        dialect: "cuda" or "opencl".
        bits: Size of an element in bits: 8, 16, 32 or 64.
        count: Number of inputs.
    """
    words = DIALECT_WORDS[dialect]
    opencl_types = {8: "uchar", 16: "ushort", 32: "uint", 64: "ulong"}
    element = opencl_types[bits] if dialect == "opencl" else f"uint{bits}_t"
    pointer = f"{words['global']}const {element} *"
    parts = [f"x{k}" for k in range(count)]
    lengths = [f"n{k}" for k in range(count)]
    parameters = [
        *(f"{pointer}{part}" for part in parts),
        f"{words['global']}{element} *y",
        *(f"const {words['int64']} {size}" for size in ("outer", *lengths)),
    ]
    if dialect == "opencl":  # every launch passes two blocks of local memory
        parameters += ["__local ulong2 *scratch", "__local ulong2 *joined"]
    return DEVICE_TEMPLATE.format(
        **words,
        parameters=", ".join(parameters),
        pointer=pointer + "const",
        parts=", ".join(parts),
        lengths=", ".join(lengths),
        count=count,
    )
