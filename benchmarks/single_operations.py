"""One operation of `passkit.xp`, from record to result, beside its basic kernel and NumPy.

    python benchmarks/single_operations.py [--device opencl:0] [--dtype float32] [--only exp]

The basic kernel of an operation is what one would write for it alone: in C++ a loop that all cores
share (OpenMP), in OpenCL C one element for each work-item, in groups that the driver chooses.
A call of it allocates its result, from NumPy or from pyopencl's pool, runs and waits, and so does a
call of xp, which also records the operation and finds its plan. All take the same arrays.

Figures are medians of rounds that alternate, and the least times: on a machine that does other
things, those say more. Results are verified first. The report goes to
`results/single_operations.json`, by device.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import sys
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from attrs import frozen

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks")]

from hand.building import build_library  # noqa: E402  (after the path)
from rounds import times_of  # noqa: E402

from passkit import xp  # noqa: E402

RESULTS = ROOT / "benchmarks" / "results" / "single_operations.json"
SIZES = (1_000, 100_000, 1_000_000, 4_000_000, 16_000_000)
OPENCL_FLAGS = ("-cl-std=CL1.2", "-w")
CPU_KERNEL = """
#include <cmath>
#include <cstdint>
using std::exp;
using std::log;
using std::sqrt;
extern "C" void basic_{name}_{type}(int64_t n, const {type} *__restrict a,
                                    const {type} *__restrict b, const {type} *__restrict c,
                                    {type} *__restrict y) {{
#pragma omp parallel for simd if (n > 20000)
  for (int64_t i = 0; i < n; i++) y[i] = {expression};
}}
"""
OPENCL_KERNEL = """
__kernel void basic_{name}(__global const {type} *restrict a, __global const {type} *restrict b,
                     __global const {type} *restrict c, __global {type} *restrict y) {{
  const long i = get_global_id(0);
  y[i] = {expression};
}}
"""


@frozen
class SingleOperation:
    """An operation.

    Attributes:
        name: its name.
        expression: one element of it in C, of ``a[i]``, ``b[i]`` and ``c[i]``.
        compute: computes it in `passkit.xp` and in NumPy, from the namespace and three arrays.
    """

    name: str
    expression: str
    compute: Callable[[Any, Any, Any, Any], Any]


OPERATIONS = (
    SingleOperation("add", "a[i] + b[i]", lambda xp, a, b, c: a + b),
    SingleOperation("multiply", "a[i] * b[i]", lambda xp, a, b, c: a * b),
    SingleOperation("multiply_add", "a[i] * b[i] + c[i]", lambda xp, a, b, c: a * b + c),
    SingleOperation("scaled", "3 * (a[i] + b[i])", lambda xp, a, b, c: 3 * (a + b)),
    SingleOperation("sqrt", "sqrt(a[i])", lambda xp, a, b, c: xp.sqrt(a)),
    SingleOperation("exp", "exp(a[i])", lambda xp, a, b, c: xp.exp(a)),
    SingleOperation("log", "log(a[i])", lambda xp, a, b, c: xp.log(a)),
)


@cache
def cpu_library() -> Any:
    """Compile and return the basic kernels of the CPU."""
    text = "".join(
        CPU_KERNEL.format(name=op.name, type=t, expression=op.expression)
        for op in OPERATIONS
        for t in ("float", "double")
    )
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "basic.cpp"
        source.write_text(text)
        return build_library(source)


def basic_on_cpu(operation: SingleOperation, arrays: list[Any]) -> Callable[[], Any]:
    """Return a call of the basic kernel on NumPy arrays."""
    (n,), dtype = arrays[0].shape, arrays[0].dtype
    kind = "float" if dtype == np.float32 else "double"
    function = getattr(cpu_library(), f"basic_{operation.name}_{kind}")
    function.argtypes = [ctypes.c_int64, *[ctypes.c_void_p] * 4]
    addresses = [a.ctypes.data for a in arrays]

    def run() -> Any:
        result = np.empty(n, dtype)
        function(n, *addresses, result.ctypes.data)
        return result

    return run


def basic_on_opencl(operation: SingleOperation, arrays: list[Any], dtype: Any) -> Any:
    """Return a call of the basic kernel on arrays of xp, and a function that copies its result."""
    import pyopencl as cl  # only for this device
    from pyopencl.tools import ImmediateAllocator, MemoryPool

    memory = [a.__opencl_array__ for a in arrays]
    device, (n,) = memory[0].device, arrays[0].shape
    queue = device.queue.handle
    kind = "float" if dtype == np.float32 else "double"
    text = OPENCL_KERNEL.format(name=operation.name, type=kind, expression=operation.expression)
    program = cl.Program(device.context, text).build(list(OPENCL_FLAGS))
    kernel = cl.Kernel(program, f"basic_{operation.name}")
    pool = MemoryPool(ImmediateAllocator(queue))
    for k, array in enumerate(memory):
        kernel.set_arg(k, array.buffer)

    def run() -> Any:
        result = pool.allocate(n * dtype.itemsize)
        kernel.set_arg(3, result)
        cl.enqueue_nd_range_kernel(queue, kernel, (n,), None)
        queue.finish()
        return result

    def copied(result: Any) -> Any:
        array = np.empty(n, dtype)
        cl.enqueue_copy(queue, array, result)
        return array

    return run, copied


def measure(
    operation: SingleOperation, n: int, dtype: Any, device: str, rounds: int
) -> dict[str, Any]:
    """Verify and time an operation on arrays of ``n`` elements.

    Returns:
        For each competitor, its median and least seconds.
    """
    arrays = [np.random.default_rng(k).uniform(0.5, 1.5, n).astype(dtype) for k in range(3)]
    ours = [xp.asarray(a, device=device) for a in arrays]
    compute = operation.compute

    def by_xp() -> Any:
        result = compute(xp, *ours)
        xp.eval(result)
        return result

    runs: dict[str, Callable[[], Any]] = {"xp": by_xp}
    copied = np.asarray
    if device == "cpu":
        runs["basic"] = basic_on_cpu(operation, arrays)
    else:
        runs["basic"], copied = basic_on_opencl(operation, ours, np.dtype(dtype))
    runs["numpy"] = lambda: compute(np, *arrays)
    expected = compute(np, *[a.astype(np.float64) for a in arrays])
    tolerance = 1e-6 if dtype == np.float32 else 1e-14
    for name, run in runs.items():
        result = np.asarray(run()) if name != "basic" else copied(run())
        np.testing.assert_allclose(result, expected, rtol=tolerance, atol=tolerance)
    return times_of(runs, rounds)


def main(arguments: list[str] | None = None) -> None:
    """Measure, print times in microseconds with ratios, and write the report."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--device", default="cpu", help='"cpu" or an OpenCL device: "opencl:0"')
    parser.add_argument("--dtype", choices=("float32", "float64"), default="float32")
    parser.add_argument("--sizes", type=int, nargs="*", default=SIZES, help="numbers of elements")
    parser.add_argument("--rounds", type=int, default=31)
    parser.add_argument("--only", default="", help="operations whose name contains this")
    parser.add_argument("--json", type=Path, default=RESULTS)
    options = parser.parse_args(arguments)
    rows = []
    for operation in OPERATIONS:
        for n in options.sizes if options.only in operation.name else ():
            dtype, device = np.dtype(options.dtype), options.device
            row = measure(operation, n, dtype, device, options.rounds)
            ratios = {k: row["xp"][k] / row["basic"][k] for k in ("median", "least")}
            rows.append({"operation": operation.name, "elements": n, **row, "ratios": ratios})
            figures = ", ".join(
                f"{who} {t['median'] * 1e6:,.0f} (least {t['least'] * 1e6:,.0f}) us"
                for who, t in row.items()
            )
            texts = ", ".join(f"{r:.2f} ({k})" for k, r in ratios.items())
            print(f"{operation.name:13} {n:>10,}  {figures}; xp / basic {texts}", flush=True)
    if not options.only:
        reports = json.loads(options.json.read_text()) if options.json.exists() else {}
        reports[options.device] = {"dtype": options.dtype, "rows": rows}
        options.json.write_text(json.dumps(reports, indent=1) + "\n")


if __name__ == "__main__":
    main()
