"""RTCGen: compile kernels at run time; each text is compiled once on a machine."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from passkit.ast import FUNCTIONS, VARIANTS, WORDS
from passkit.dialects.base import dialect_of
from passkit.dialects.cxx import PRELUDE
from passkit.errors import KernelRefusedError, PassError
from passkit.graph.graph import Annotation, Graph
from passkit.graph.kernel import RTC, Kernel
from passkit.graph.node import Node
from passkit.passes.base import register_pass
from passkit.passes.context import PassContext
from passkit.runtime.native.build import build
from passkit.runtime.native.units import KernelText
from passkit.target import Target

PRELUDE_WIDTH = 16
"""The elements of a vector of the prelude, unless something else is defined in front of it."""
FLAGS = ("-fwrapv",)
"""Compiler flags of kernels: scalar integers wrap on overflow, like those in vectors."""
HEADER = ("core.h", "divisor.h", "sums.h", "rows.h", "math_f32.h")
"""The sections of the prelude that are precompiled: those of most kernels of float32."""
BASIC_FUNCTIONS = frozenset(
    [
        "sqrt",
        "abs",
        "maximum",
        "minimum",
        "floor",
        "ceil",
        "trunc",
        "rint",
        "fma",
        "copysign",
    ]
)
"""Functions that the section core.h of the prelude defines for every dtype."""
INTEGER_FUNCTIONS = frozenset(
    ["floor_divide", "remainder", "fmod", "cut_divide", "gcd", "whole_power"]
)
"""Functions of the section integer.h."""
BIT_FUNCTIONS = frozenset(["left_shift", "right_shift", "nextafter", "ldexp"])
"""Functions of the section bits.h."""
SPECIAL_FUNCTIONS = frozenset(
    ["cbrt", "hypot", "lgamma", "tgamma", "digamma", "trigamma", "erfinv", "erfcinv"]
)
"""Functions of the section special.h."""
INCOMPLETE_FUNCTIONS = frozenset(["igamma", "igammac", "betainc", "zeta"])
"""Functions of the section incomplete.h."""


@register_pass("RTCGen", depends=("kernel",), provides=("rtc",), target_dependent=True)
def rtcgen(graph: Graph, context: PassContext) -> Graph:
    """Annotate each node that has a `Kernel` with its `RTC`: the compiled kernel and its entry.

    They are compiled for the target of ``context``. For target "blocks" nothing is compiled:
    entries run the kernels' ASTs in NumPy.

    Raises:
        CompilerError: The compiler refuses a kernel, with its text, or there is no compiler.
        KernelRefusedError: A device refuses a kernel, with the group and its nodes.
        DeviceError: The target's device is not available.
        MissingDependencyError: A package that the device needs is not installed.
        CacheError: Others can write to the cache folder, or it is a file.
        PassError: Nothing compiles for the target.
    """
    if context.target.name == "blocks":
        return graph.with_attrs(rtc=Annotation("rtc", _interpreted(graph)))
    kernels = graph.attrs["kernel"]
    try:
        entries = build_kernels(kernels.values(), context.target)
    except KernelRefusedError as error:
        node = next(n for n, k in kernels.items() if k.key == error.key)
        group = graph.attrs["subgraph"].get(node)
        error.group = graph.names[node]
        error.nodes = () if group is None else tuple(map(group.called, group.ops))
        raise
    compiled = {n: _rtc(k, entries[k.key]) for n, k in kernels.items()}
    return graph.with_attrs(rtc=Annotation("rtc", compiled))


def _rtc(kernel: Kernel, entry: Any) -> RTC:
    """Return a compiled kernel as `RTC`, with its numbers of registers and spills.

    ``entry`` is what the compiler returned: an address, or an object of a device's runtime. The
    numbers are None where it does not report them.
    """
    registers = getattr(entry, "registers", None)
    spills = getattr(entry, "spills", None)
    return RTC(kernel, entry, registers, spills)


def build_kernels(kernels: Iterable[Kernel], target: Target) -> Mapping[str, Any]:
    """Compile kernels for a target, equal ones once; return their entry points by the kernel's key.

    Raises:
        CompilerError: There is no compiler, it fails, or what it compiled cannot be loaded.
        KernelRefusedError: The device cannot run a kernel.
        DeviceError: There is no such device.
        MissingDependencyError: A package that the device needs is not installed.
        CacheError: Others can write to the cache folder, or it is a file.
        PassError: The target has no device, and its dialect is no C++ that is compiled here. For
            other targets without a device, such as "interpret", kernels are compiled as for "cpu".
        RegistryError: The target's dialect is not registered.
    """
    by_key = {k.key: k for k in kernels}
    if dialect_of(target.dialect).compiled_here:
        return build(map(kernel_text, by_key.values()), FLAGS, header=header_sections())
    if target.device:
        from passkit.runtime.device.runtimes import runtime_of  # only targets of devices need it

        return runtime_of(target).build_kernels(by_key.values(), target)
    raise PassError(
        f"RTCGen compiles for targets 'cpu', 'opencl' and 'cuda', not '{target.name}'; "
        f"stop at CodeGen to read the {target.dialect} text"
    )


def _interpreted(graph: Graph) -> dict[Node, RTC]:
    """Return the kernels of a graph, by node, with entries that run them in NumPy."""
    from passkit.runtime.blocks.entry import blocks_entry  # only target "blocks" needs it

    return {n: RTC(k, blocks_entry(k)) for n, k in graph.attrs["kernel"].items()}


def kernel_text(kernel: Kernel) -> KernelText:
    """Return the text to compile for a kernel of the CPU: its source and sections of the prelude.

    The compiled text belongs to namespace ``pk``. In front of the prelude stands the number of a
    vector's elements, where it is not the prelude's own.

    Raises: RegistryError if the kernel's dialect is not registered.
    """
    source = f"namespace pk {{\n{kernel.source}}}\n"
    vectors = dialect_of(kernel.dialect).vectors
    sections = sections_of(kernel.source)
    if vectors is not None and vectors.width != PRELUDE_WIDTH:
        sections = (f"#define PK_LANES {vectors.width}\n", *sections)
    return KernelText(kernel.key, kernel.name, source, sections)


@cache
def sections_of(source: str) -> tuple[str, ...]:
    """Return the texts of the prelude's sections that a kernel's ``source`` needs.

    Each section comes after those that it includes.
    """
    called = set(re.findall(r"\b(\w+)\(", source))
    math_functions = (
        {*FUNCTIONS, *VARIANTS}
        - BASIC_FUNCTIONS
        - INTEGER_FUNCTIONS
        - BIT_FUNCTIONS
        - SPECIAL_FUNCTIONS
        - INCOMPLETE_FUNCTIONS
    )
    calls_math = bool(called & math_functions)
    has_half = re.search(r"\b(half|bfloat)\b", source) is not None
    is_needed = {
        "core.h": True,
        "divisor.h": "divisor" in source,
        "sums.h": "summing<" in source,
        "scans.h": "running<" in source or "lanes_down(" in source,
        "rows.h": "reductions_of_rows<" in source,
        "pairs.h": re.search(r"\b(pairs|groups)_of_rows<", source) is not None,
        "strided.h": re.search(r"\bload_(second|back|columns)\b", source) is not None,
        "turn.h": "turn(" in source or "turn_rows<" in source,
        "dot.h": "dot" in called,
        "mixed_dot.h": "dot" in called and has_half,
        "narrow.h": "columns_apart<" in source or "columns_together<" in source,
        "gather.h": "gather_at(" in source,
        "scatter.h": "scatter<" in source,
        "concat.h": "concat_parts<" in source,
        "half.h": has_half,
        "integer.h": bool(called & INTEGER_FUNCTIONS),
        "bits.h": bool(called & BIT_FUNCTIONS),
        "random.h": bool(called & set(WORDS)),
        "math_f32.h": calls_math and (has_half or "float" in source),
        "math_f64.h": calls_math and "double" in source,
        "special.h": bool(called & SPECIAL_FUNCTIONS),
        "incomplete.h": bool(called & INCOMPLETE_FUNCTIONS),
    }
    names: dict[str, None] = {}
    for name, needed in is_needed.items():
        if needed:
            names.update(dict.fromkeys((*_included_sections(PRELUDE / name), name)))
    return tuple(_section_text(PRELUDE / name) for name in names)


@cache
def header_sections() -> tuple[str, ...]:
    """Return the texts of the sections of the prelude that are precompiled, in order."""
    names: dict[str, None] = {}
    for name in HEADER:
        names.update(dict.fromkeys((*_included_sections(PRELUDE / name), name)))
    return tuple(_section_text(PRELUDE / name) for name in names)


@cache
def _section_text(path: Path) -> str:
    """Return the text of the section in a file without its includes.

    A unit has all sections one after the other.
    """
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    return "".join(x for x in lines if not x.startswith(("#pragma once", '#include "')))


@cache
def _included_sections(path: Path) -> tuple[str, ...]:
    """Return the file names of sections that a section includes, directly or not.

    Each comes after those that it includes itself.
    """
    names: dict[str, None] = {}
    for name in re.findall(r'^#include "(\w+\.h)"', path.read_text(encoding="utf-8"), re.M):
        names.update(dict.fromkeys((*_included_sections(path.with_name(name)), name)))
    return tuple(names)
