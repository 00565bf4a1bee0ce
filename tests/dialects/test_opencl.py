"""Kernels in OpenCL C are built by a driver if there is one; otherwise their syntax is checked."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

import passkit as pk
from passkit.dialects import OPENCL
from passkit.dialects.opencl import COUNTS
from passkit.dialects.used_definitions import used_definitions
from passkit.runtime.opencl.compiler import HEAD, compiler_options
from passkit.runtime.opencl.device import device
from tests import opencl
from tests.dialects.test_cuda import MANY
from tests.dialects.test_printer import GOLDEN, GOLDENS, PROGRAMS
from tests.planned import agrees, feeds_of, plan

RESERVED = ["kernel", "global", "local", "constant", "private"]
TYPES = ["uchar", "ushort", "uint", "ulong", "char", "short", "int", "long"]
# OpenCL C for a C compiler: enough to find wrong names, types, operators and missing functions.
SYNTAX = "\n".join(
    [
        "#include <stdbool.h>",
        "#include <stddef.h>",
        "#include <math.h>",
        "typedef unsigned char uchar; typedef unsigned short ushort; typedef unsigned int uint;",
        "typedef unsigned long ulong;",
        "#define __kernel",
        "#define __global",
        "#define __local",
        "#define CLK_LOCAL_MEM_FENCE 1",
        "#define CLK_GLOBAL_MEM_FENCE 2",
        "#define __constant static const",
        "void barrier(int); size_t get_group_id(uint), get_num_groups(uint);",
        "size_t get_local_id(uint), get_local_size(uint);",
        "#define half short",
        *(f"#define {word}" for word in RESERVED),
        "float vload_half(size_t, const half *);",
        "void vstore_half_rte(double, size_t, half *); uint as_uint(float);",
        "float as_float(uint); double as_double(ulong); int as_int(float); long as_long(double);",
        "double rsqrt(double);",
        "long abs(long); long max(long, long); long min(long, long);",
        *(f"{t} convert_{t}_sat(double);" for t in TYPES),
        *(
            f"typedef {t} {t}{n} __attribute__((vector_size({n} * sizeof({t}))));"
            for t in [*TYPES, "float", "double"]
            for n in COUNTS
        ),
        "#define VECTOR(n, p) __typeof__(*(p)) __attribute__((vector_size(n * sizeof(*(p)))))",
        *(f"#define vload{n}(at, p) (*(VECTOR({n}, p) *)(p))" for n in COUNTS),
        *(f"#define vstore{n}(x, at, p) (*(VECTOR({n}, p) *)(p) = (x))" for n in COUNTS),
    ]
)


def texts() -> list[str]:
    """Return the goldens, and a kernel for each dtype, cast and function."""
    texts = [p.read_text() for p in sorted(GOLDEN.glob("*.cl"))]
    assert len(texts) == len(GOLDENS)
    return texts + [k.source for k in plan(MANY, target="opencl").attrs["kernel"].values()]


def messages_of(kernels: list[str], folder: Path) -> str:
    """Return the messages of a C compiler for kernels."""
    source = folder / "kernels.c"
    preamble = used_definitions(OPENCL.preamble, "\n".join(kernels))
    source.write_text("\n".join([SYNTAX, preamble, *kernels]))
    command = [
        "gcc",
        "-std=gnu11",
        "-fsyntax-only",
        "-Werror=implicit-function-declaration",
        "-Wno-builtin-declaration-mismatch",
        str(source),
    ]
    return subprocess.run(command, capture_output=True, text=True).stderr


def test_syntax(tmp_path: Path) -> None:
    """Kernels use names of OpenCL C, of the preamble, and their own ones."""
    assert "error" not in messages_of(texts(), tmp_path)
    gelu = (GOLDEN / "gelu.cl").read_text()
    assert "erg" in messages_of([gelu.replace("erf(", "erg(")], tmp_path)
    for word in ("half", "local"):
        assert "error" in messages_of(
            [f"float of(float x) {{ float {word} = x; return x; }}"], tmp_path
        )


def test_types_are_opencls() -> None:
    """Kernels have no type names of C99, and no bool in a buffer."""
    for text in texts():
        assert not re.search(r"\b(u?int\d+_t|__global (const )?bool)\b", text)


def built(kernels: list[str]) -> Any:
    """Return kernels as a program. Raises: pyopencl.RuntimeError with the compiler's messages."""
    cl, own = opencl.require_pyopencl(), device()
    text = "\n".join([HEAD, OPENCL.preamble, *kernels])
    return cl.Program(own.context, text).build(list(compiler_options(own, 1)), cache_dir=False)


def test_a_driver_builds_all() -> None:
    """A driver builds the goldens and every dtype, cast and function."""
    cl = opencl.require_pyopencl()
    built(texts())
    gelu = (GOLDEN / "gelu.cl").read_text()

    with pytest.raises(cl.RuntimeError, match="erg"):
        built([gelu.replace("erf(", "erg(")])


def test_on_a_driver(rng: Any) -> None:
    """Kernels that a driver builds agree with the interpreter, in groups of sixteen items."""
    opencl.require_pyopencl()
    for text in PROGRAMS.values():
        graph = pk.parse(text)
        exe = pk.compile(graph, target=opencl.target_with_block(16))
        feeds = feeds_of(graph, rng, n=37)
        agrees(graph, feeds, exe(feeds), rtol=2e-5)
