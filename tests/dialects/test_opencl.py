"""OpenCL C: what is printed is built by a driver where one is there, else its syntax is checked."""

from __future__ import annotations

import re
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import passkit as pk
from passkit.dialects import OPENCL
from passkit.kernel import Kernel
from passkit.size import evaluate
from tests.dialects.test_cuda import MANY
from tests.dialects.test_printer import GOLDEN, GOLDENS, PROGRAMS, kernel_of
from tests.planned import feeds_of, plan

RESERVED = ["kernel", "global", "local", "constant", "private"]
TYPES = ["uchar", "ushort", "uint", "ulong", "char", "short", "int", "long"]
BUILD = ["-cl-std=CL1.2", "-w", "-cl-opt-disable"]
"""How a driver builds: the language that passkit prints, without warnings, which are of style.

When it optimises, PoCL 3.0 leaves out stores of loops that stand between two barriers.
"""
# OpenCL C for a C compiler: enough to find wrong names, types, operators and missing functions.
SYNTAX = "\n".join([
    "#include <stdbool.h>", "#include <stddef.h>", "#include <math.h>",
    "typedef unsigned char uchar; typedef unsigned short ushort; typedef unsigned int uint;",
    "typedef unsigned long ulong;",
    "#define __kernel", "#define __global", "#define __local",
    "#define CLK_LOCAL_MEM_FENCE 1", "#define CLK_GLOBAL_MEM_FENCE 2",
    "#define __constant static const",
    "void barrier(int); size_t get_group_id(uint), get_num_groups(uint);",
    "size_t get_local_id(uint), get_local_size(uint);",
    "#define half short", *(f"#define {word}" for word in RESERVED),
    "float vload_half(size_t, const half *);",
    "void vstore_half_rte(double, size_t, half *); uint as_uint(float);",
    "float as_float(uint); double as_double(ulong); double rsqrt(double);",
    "long abs(long); long max(long, long); long min(long, long);",
    *(f"{t} convert_{t}_sat(double);" for t in TYPES),
])


def texts() -> list[str]:
    """The goldens, and a kernel for each dtype, cast and function."""
    found = [p.read_text() for p in sorted(GOLDEN.glob("*.cl"))]
    assert len(found) == len(GOLDENS)
    return found + [k.source for k in plan(MANY, target="opencl").attrs["kernel"].values()]


def said(kernels: list[str], folder: Path) -> str:
    """What a C compiler says of them."""
    source = folder / "kernels.c"
    source.write_text("\n".join([SYNTAX, OPENCL.preamble, *kernels]))
    command = ["gcc", "-std=gnu11", "-fsyntax-only", "-Werror=implicit-function-declaration",
               "-Wno-builtin-declaration-mismatch", str(source)]
    return subprocess.run(command, capture_output=True, text=True).stderr


def test_syntax(tmp_path: Path) -> None:
    """Every name is one of OpenCL C, of the preamble, or of the kernel."""
    assert "error" not in said(texts(), tmp_path)
    gelu = (GOLDEN / "gelu.cl").read_text()
    assert "erg" in said([gelu.replace("erf(", "erg(")], tmp_path)
    for word in ("half", "local"):
        assert "error" in said([f"float of(float x) {{ float {word} = x; return x; }}"], tmp_path)


def test_types_are_opencls() -> None:
    """No C99 type names, and no bool in a buffer."""
    for text in texts():
        assert not re.search(r"\b(u?int\d+_t|__global (const )?bool)\b", text)


@cache
def driver() -> Any:
    """A queue of an OpenCL device; a test that asks for it is skipped where there is none."""
    cl = pytest.importorskip("pyopencl", reason="the extra `opencl` is not installed")
    return cl.CommandQueue(cl.create_some_context(interactive=False))


def built(queue: Any, kernels: list[str]) -> Any:
    """Kernels as a driver's program. Raises: pyopencl.RuntimeError with what its compiler says."""
    import pyopencl as cl

    return cl.Program(queue.context, "\n".join([OPENCL.preamble, *kernels])).build(BUILD)


def run_on(queue: Any, kernel: Kernel, feeds: list[Any], wanted: list[Any], **sizes: int) -> Any:
    """What a kernel stores by three work-groups of sixteen items; its results are as ``wanted``."""
    import pyopencl as cl

    program = built(queue, [kernel.source])
    flags = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
    arrays = [np.ascontiguousarray(a) for a in (*feeds, *(np.full_like(w, 77) for w in wanted))]
    buffers = [cl.Buffer(queue.context, flags, hostbuf=a) for a in arrays]
    numbers = [np.int64(evaluate(s, sizes)) for s in kernel.sizes]
    scratch = [cl.LocalMemory(max(64, evaluate(kernel.shared_nbytes, sizes))),
               cl.LocalMemory(8 * 16)]
    getattr(program, kernel.name)(queue, (48,), (16,), *buffers, *numbers, *scratch)
    found = [np.empty_like(w) for w in wanted]
    for array, buffer in zip(found, buffers[len(feeds):], strict=True):
        cl.enqueue_copy(queue, array, buffer)
    return found


def test_on_a_driver(rng: Any) -> None:
    """Built and run by an OpenCL driver where pyopencl finds one."""
    queue = driver()
    built(queue, texts())
    for text in PROGRAMS.values():
        graph, kernel = pk.parse(text), kernel_of(text, "opencl")
        feeds = feeds_of(graph, rng, n=37)
        wanted = pk.interpret(graph, feeds)
        (found,) = run_on(queue, kernel, list(feeds.values()), wanted, n=37)
        np.testing.assert_allclose(found, wanted[0], rtol=2e-5, atol=2e-6)
