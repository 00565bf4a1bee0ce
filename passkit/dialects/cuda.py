"""CUDA C. Source: CUDA C++ Programming Guide, language extensions.

A block is (32, rows) threads where a tile has rows, else one row of threads.
"""

from passkit.ast import FUNCTIONS
from passkit.dialects.base import Dialect, register_dialect

FLOATS = [f for f in FUNCTIONS if f not in ("abs", "maximum", "minimum", "sigmoid")]

CUDA = register_dialect(
    Dialect(
        name="cuda",
        kernel='extern "C" __global__ void {name}({params})',
        buffer="{const}{type} *__restrict__ {name}",
        scratch="{type} *const {name} = ({type} *)(scratch + threadIdx.y * ({total}) + {offset});",
        scratch_base="extern __shared__ unsigned char scratch[];",
        grid="for (int64_t {var} = blockIdx.x; {var} < {stop}; {var} += gridDim.x)",
        warp="for (int64_t {var} = {start} + threadIdx.y; {var} < {stop}; {var} += blockDim.y)",
        lane="for (int64_t {var} = {start} + threadIdx.x; {var} < {stop}; {var} += blockDim.x)",
        fold=(
            "{type} {name} = {acc};\n"
            "for (int o = 16; o; o >>= 1) {{\n"
            "  const {type} a = {name}, b = __shfl_xor_sync(0xffffffffu, {name}, o);\n"
            "  {name} = {combine};\n"
            "}}"
        ),
        infinity="__int_as_float(0x7f800000)",
        bits="bits_{short}({bits})",
        calls={
            **{f"{f}/float32": f"{f}f" for f in FLOATS},
            "abs/float32": "fabsf",
            "abs/float64": "fabs",
        },
    )
)
