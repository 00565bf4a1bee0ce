"""RTCGen: kernels become addresses; each text is compiled once, with the prelude that it needs."""

from __future__ import annotations

from typing import Any

import pytest
from attrs import evolve

import passkit as pk
from passkit.errors import CompilerError, PassError
from tests.dialects.plain_c import PLAIN
from tests.planned import plan, translation_unit


def test_every_kernel_has_an_entry() -> None:
    """Each fused node has its compiled kernel; equal kernels have one address."""
    graph = plan(pk.parse("x: f32[90000]; y: f32[80000]; return exp(x), exp(y)"), "RTCGen")
    rtc = list(graph.attrs["rtc"].values())

    assert [r.kernel for r in rtc] == list(graph.attrs["kernel"].values())
    assert rtc[0].entry == rtc[1].entry != 0


def test_nothing_is_compiled_twice() -> None:
    """A second graph with the same kernels compiles nothing."""
    text = "x: f32[90]; return sub(exp(x), 0.765625)"

    assert pk.compile(pk.parse(text)).stats["compiled"] == 1
    assert pk.compile(pk.parse(text.replace("x", "z").replace("ezp", "exp"))).stats["compiled"] == 0


@pytest.mark.parametrize(
    "body, sections",
    [
        ("add(x, x)", {"core"}),
        ("exp(x)", {"core", "math_f32"}),
        ("div(x, reduce_sum(x))", {"core", "divisor"}),
        ("exp(cast(x, dtype=dtype(f64)))", {"core", "math_f32", "math_f64"}),
    ],
)
def test_kernels_include_the_needed_sections_only(body: str, sections: set[str]) -> None:
    """A kernel is compiled with the sections of the prelude that it calls, and no others."""
    (kernel,) = plan(pk.parse(f"x: f32[90]; return {body}"), "CodeGen").attrs["kernel"].values()
    marks = {
        "core": "choose_lanes(",
        "divisor": "struct divisor {",
        "math_f32": "to eighths",
        "math_f64": "// exp(x) = (1 + small) 2^n",
    }
    text, _, _ = translation_unit(kernel)

    assert {name for name, mark in marks.items() if mark in text} == sections


def test_other_targets_are_printed_only() -> None:
    """The error for a target that nothing compiles names the pass to stop at."""
    graph = pk.parse("x: f32[9]; return exp(x)")
    target = pk.Target("mine", PLAIN.name, 1, 1 << 15)
    message = "'opencl' and 'cuda', not 'mine'; stop at CodeGen to read the plain_c text"
    with pytest.raises(PassError, match=message):
        pk.ApplyPasses(graph, ["Fusion", "CodeGen", "RTCGen"], target=target)


def test_a_compiler_error_has_the_text_of_the_kernel() -> None:
    """The compiler's own words are shown, with the kernel's text."""
    graph = plan(pk.parse("x: f32[9]; return exp(x)"), "CodeGen")
    broken: Any = {
        n: evolve(k, key="broken", source=k.source.replace("exp(", "exq("))
        for n, k in graph.attrs["kernel"].items()
    }

    with pytest.raises(CompilerError, match="(?s)failed to compile exp_.*exq"):
        pk.ApplyPasses(graph.with_attrs(kernel=pk.Annotation("kernel", broken)), "RTCGen")


def test_the_compiled_text_has_the_namespace_and_name() -> None:
    """A kernel stands in the prelude's namespace under its own name."""
    (kernel,) = plan(pk.parse("x: f32[9]; return exp(x)"), "CodeGen").attrs["kernel"].values()
    _, source, symbol = translation_unit(kernel)

    assert symbol == kernel.name
    assert source.startswith("namespace pk {\n") and kernel.source in source
