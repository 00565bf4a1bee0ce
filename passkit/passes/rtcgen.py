"""RTCGen: kernels become callable at run time, each text compiled once on a machine."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from passkit.ast import FUNCTIONS, VARIANTS, WORDS
from passkit.dialects.cxx import PRELUDE
from passkit.errors import KernelRefusedError, PassError
from passkit.graph.graph import Annotation, Graph
from passkit.graph.node import Node
from passkit.passes.base import register_pass
from passkit.passes.context import PassContext
from passkit.plan.kernel import RTC, Kernel
from passkit.plan.target import Target
from passkit.runtime.native.build import KernelText, build


@register_pass("RTCGen", depends=("kernel",), provides=("rtc",), target_dependent=True)
def rtcgen(graph: Graph, context: PassContext) -> Graph:
    """Annotate each fused node with its `RTC`: the compiled kernel and its entry.

    For target "blocks" nothing is compiled: entries run the kernels' ASTs in NumPy.

    Raises: CompilerError with the compiler's text; DeviceError without a device of the target;
    PassError on a target that does not compile.
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
    found = {n: _rtc(k, entries[k.key]) for n, k in kernels.items()}
    return graph.with_attrs(rtc=Annotation("rtc", found))


def _rtc(kernel: Kernel, entry: Any) -> RTC:
    """A kernel with what runs it, and what that says of itself."""
    return RTC(kernel, entry, *(getattr(entry, x, None) for x in ("registers", "spills")))


def build_kernels(kernels: Iterable[Kernel], target: Target) -> Mapping[str, Any]:
    """What runs each kernel on a target, by its key; equal ones are built once.

    Raises: CompilerError, DeviceError and PassError as `rtcgen`.
    """
    wanted = {k.key: k for k in kernels}
    if target.dialect == "cxx":
        return build(map(kernel_text, wanted.values()), FLAGS)
    if target.device:
        from passkit.runtime.device.runtimes import runtime_of  # where somebody needs it

        return runtime_of(target).build(wanted.values(), target)
    raise PassError(
        f"RTCGen compiles for targets 'cpu', 'opencl' and 'cuda', not '{target.name}'; "
        f"stop at CodeGen to read the {target.dialect} text"
    )


def _interpreted(graph: Graph) -> dict[Node, RTC]:
    from passkit.runtime.blocks.entry import blocks_entry  # few programs run so

    return {n: RTC(k, blocks_entry(k)) for n, k in graph.attrs["kernel"].items()}


FLAGS = ("-fwrapv",)
"""What kernels need besides the usual flags: scalar integers wrap as the vector ones do."""


def kernel_text(kernel: Kernel) -> KernelText:
    """What is compiled for a kernel: its source in the prelude's namespace."""
    source = f"namespace pk {{\n{kernel.source}}}\n"
    return KernelText(kernel.key, kernel.name, source, sections_of(kernel.source))


CORE = frozenset(
    [*("sqrt", "abs", "maximum", "minimum", "floor", "ceil", "trunc", "rint"), "fma", "copysign"]
)
"""Functions that the prelude's core has for every type."""

WHOLE = frozenset(["floor_divide", "remainder", "fmod", "cut_divide", "gcd", "whole_power"])
BITS = frozenset(["left_shift", "right_shift", "nextafter", "ldexp"])
SPECIAL = frozenset(
    ["cbrt", "hypot", "lgamma", "tgamma", "digamma", "trigamma", "erfinv", "erfcinv"]
)
INCOMPLETE = frozenset(["igamma", "igammac", "betainc", "zeta"])
"""Functions that have sections of their own."""


@cache
def sections_of(source: str) -> tuple[str, ...]:
    """The sections of the prelude that a kernel's text needs, each after those it needs itself."""
    called = set(re.findall(r"\b(\w+)\(", source))
    functions = {*FUNCTIONS, *VARIANTS} - CORE - WHOLE - BITS - SPECIAL - INCOMPLETE
    mathematics = bool(called & functions)
    narrow = re.search(r"\b(half|bfloat)\b", source) is not None
    wanted = {
        "core.h": True,
        "divisor.h": "divisor" in source,
        "sums.h": "summing<" in source,
        "scans.h": "running<" in source or "lanes_down(" in source,
        "rows.h": "folds_of_rows<" in source,
        "pairs.h": re.search(r"\b(pairs|bundles)_of_rows<", source) is not None,
        "strided.h": re.search(r"\bload_(second|back|columns)\b", source) is not None,
        "turn.h": "turn(" in source or "turn_rows<" in source,
        "dot.h": "dot" in called,
        "mixed_dot.h": "dot" in called and narrow,
        "narrow.h": "columns_apart<" in source or "columns_together<" in source,
        "gather.h": "gather_at(" in source,
        "scatter.h": "scatter<" in source,
        "concat.h": "concat_parts<" in source,
        "half.h": narrow,
        "integer.h": bool(called & WHOLE),
        "bits.h": bool(called & BITS),
        "random.h": bool(called & set(WORDS)),
        "math_f32.h": mathematics and (narrow or "float" in source),
        "math_f64.h": mathematics and "double" in source,
        "special.h": bool(called & SPECIAL),
        "incomplete.h": bool(called & INCOMPLETE),
    }
    names = dict.fromkeys(n for k, v in wanted.items() if v for n in (*_needs(PRELUDE / k), k))
    return tuple(_section(PRELUDE / name) for name in names)


@cache
def _section(path: Path) -> str:
    """A section's text; the parts of a unit stand one after the other, so it includes nothing."""
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    return "".join(x for x in lines if not x.startswith(("#pragma once", '#include "')))


@cache
def _needs(path: Path) -> tuple[str, ...]:
    """The sections that a section includes, their own needs first."""
    found: dict[str, None] = {}
    for name in re.findall(r'^#include "(\w+\.h)"', path.read_text(encoding="utf-8"), re.M):
        found.update(dict.fromkeys((*_needs(path.with_name(name)), name)))
    return tuple(found)
