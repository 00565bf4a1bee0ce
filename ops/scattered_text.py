"""The kernels of scattered rows, as texts of their own: in C++ by the prelude's loop, and CUDA C.

Bits do not depend on how the work is shared out: updates of an element are taken in their order.
"""

from __future__ import annotations

from passkit.plan.kernel import OwnKernel
from passkit.values.dtype import DType, is_narrow
from passkit.values.size import Extent

JOINS = {
    "update": "b",
    "add": "a + b",
    "sub": "a - b",
    "mul": "a * b",
    "min": "minimum(a, b)",
    "max": "maximum(a, b)",
}
"""What an update ``b`` makes of what is there, ``a``, in CUDA C, by its kind."""

TILES = {"cxx": 32, "cuda": 1024}
"""Parts of the rows, or of their columns, that threads or blocks share."""

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


def own_kernel(
    dtype: DType, kind: str, dialect: str, sizes: tuple[Extent, ...]
) -> OwnKernel | None:
    """The kernel of a kind for elements of a dtype; None where there is none.

    ``sizes`` are outer, middle, rows, updates and length.
    """
    of = _type_of(dtype)
    text = {"cxx": CXX, "cuda": CUDA}.get(dialect)
    if text is None or of is None:
        return None
    source = text.format(type=of, kind=kind, join=f"{of}({JOINS[kind]})")
    return OwnKernel(source, (*sizes, TILES[dialect]), TILES[dialect])


def _type_of(dtype: DType) -> str | None:
    """What a kernel takes elements for; None where it has no such type."""
    if dtype.kind == "c":
        return None
    if dtype.is_float and not is_narrow(dtype):
        return "float" if dtype.nbytes == 4 else "double"
    sign = "" if dtype.kind == "i" else "u"
    return f"{sign}int{8 * dtype.nbytes}_t"
