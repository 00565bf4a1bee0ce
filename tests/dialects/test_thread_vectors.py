"""Vectors of OpenCL C: threads that compute with as many elements as the device has."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from attrs import evolve

import passkit as pk
from passkit.dialects import dialect_of
from passkit.dialects.used_definitions import used_definitions
from passkit.passes import codegen
from passkit.target import Target
from tests.dialects.test_printer import GOLDEN, PROGRAMS
from tests.opencl import BLOCKS, require_pyopencl, target_with_block
from tests.planned import agrees, feeds_of, plan


def simd(block: int = 1, access: int = 32) -> Target:
    """Return the target of a device with vectors of so many bytes."""
    return target_with_block(block, access=access, simd=True)


def sources(text: str, target: Target) -> str:
    """Return the texts of the kernels of a graph."""
    return "\n".join(k.source for k in plan(text, target=target).attrs["kernel"].values())


@pytest.mark.parametrize("name", ["gelu", "softmax_last", "softmax_first"])
def test_goldens(name: str, golden: Callable[[Path, str], None]) -> None:
    """Return programs: elementwise, reductions of rows, and of columns in scratch."""
    (kernel,) = plan(PROGRAMS[name], target=simd()).attrs["kernel"].values()

    golden(GOLDEN / "whole" / f"{name}.cl", kernel.source.replace(kernel.name, name))


TEXTS = {
    "functions": "x: f32[37]; y: f32[37]; one = div(sqrt(abs(y)), maximum(x, y));"
    "return sub(add(exp(x), mul(tanh(y), sigmoid(x))), one)",
    "masks": "x: f32[37]; y: f32[37]; b: bool[37]; k: i32[37];"
    "one = logical_and(logical_or(less(x, 0.5), logical_not(greater_equal(y, x))), b);"
    "three = where(one, minimum(x, y), where(greater(x, y), exp(x), neg(x)));"
    "return add(three, cast(k, dtype=dtype(f32)))",
    "wide": "x: f32[37]; w: f64[37]; return sub(mul(cast(x, dtype=dtype(f64)), w), erf(w))",
    "compared": "x: f32[37]; y: f32[37]; return greater(exp(x), y)",
    "places": "x: f32[9, 37]; return add(tril(x), exp(x))",
    "counted": "x: f32[9, 37]; return reduce_sum(cast(greater(x, 0.25), dtype=dtype(f32)), axis=1)",
    "rows": "x: f32[5, 148]; v: f32[5, 1]; return add(reduce_max(mul(x, v), axis=1),"
    "reduce_sum(exp(sub(x, v)), axis=1))",
    "columns": "x: f32[148, 37]; return softmax(x, axis=0)",
    "extremes": "x: f64[5, 149]; k: i64[5, 149];"
    "return add(reduce_min(where(greater(x, 0.5), k, 9), axis=1), reduce_max(k, axis=1))",
    "gammas": "x: f64[5, 37]; y: f32[5, 37];"
    "return add(lgamma(x), cast(lgamma(y), dtype=dtype(f64)))",
    "norm": "x: f32[9, 148]; return layer_norm(x, scale=false, center=false)",
}
"""Programs that are printed with vectors, with sizes that leave a remainder."""


def test_operators_are_not_calls() -> None:
    """Absolute values, choices and extremes are operators: drivers may not inline functions."""
    source = sources(TEXTS["masks"], simd()) + sources(TEXTS["functions"], simd())
    text = used_definitions(dialect_of("opencl").preamble, source) + source

    assert "float8" in text and "absolute_float8" in text and "? " in text
    assert not re.search(r"\b(fabs|fmin|fmax|select|min|max)\(", text)


@pytest.mark.parametrize("block", BLOCKS)
def test_on_a_driver(block: int, rng: Any) -> None:
    """Kernels with vectors of 32 or 16 bytes agree with the interpreter."""
    require_pyopencl()
    chosen = list(TEXTS) if block == 1 else ["masks", "rows", "columns"]
    for name in chosen:
        graph = pk.parse(TEXTS[name])
        feeds = feeds_of(graph, rng)
        exe = pk.compile(graph, target=simd(block, 32 if block == 1 else 16))
        assert all(re.search(r"\b(float|double)[248] ", k.source) for k in exe.kernels), name
        for actual, expected in zip(exe(feeds), pk.interpret(graph, feeds), strict=True):
            scale = max(1e-9, np.abs(expected.astype(np.float64)).max(initial=0))
            np.testing.assert_allclose(actual, expected, atol=2e-6 * scale, rtol=0, err_msg=name)


def test_gamma_functions_of_vectors(rng: Any) -> None:
    """They agree with the interpreter between poles, far away, and where results are not finite."""
    require_pyopencl()
    special = [0.0, -0.0, -1.0, -7.0, 1.0, 2.0, 8.0, np.inf, -np.inf, np.nan, 1e-300, 1e300]
    x = np.concatenate([rng.uniform(-9, 30, 4000), 10.0 ** rng.uniform(-20, 200, 500), special])
    v = pk.var("x", ("n",), "float64")
    graph = pk.Graph([pk.ops.lgamma(v)])
    exe = pk.compile(graph, target=simd())
    assert "lgamma_double4(" in exe.source
    for actual, expected in zip(exe(x=x), pk.interpret(graph, {"x": x}), strict=True):
        np.testing.assert_allclose(actual, expected, rtol=1e-12, atol=3e-14)


@pytest.mark.parametrize("function", ["digamma", "trigamma", "igamma"])
def test_functions_without_vectors_take_elements(function: str, rng: Any) -> None:
    """Drivers need not compile vectors of functions that are long."""
    require_pyopencl()
    arguments = "x, y" if function == "igamma" else "x"
    graph = pk.parse(f"x: f32[19, 30]; y: f32[19, 30]; return add({function}({arguments}), y)")
    feeds: dict[str, Any] = {
        name: rng.uniform(0.5, 9, (19, 30)).astype(np.float32) for name in "xy"
    }
    exe = pk.compile(graph, target=simd())

    assert f"{function}_float(" in exe.source
    agrees(graph, feeds, exe(feeds), rtol=1e-5)


def test_an_element_too_many_is_reported(rng: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Reductions without masks of the last vector give other numbers."""
    require_pyopencl()
    own = dialect_of("opencl")
    assert own.accesses is not None and own.accesses.vectors is not None
    broken = evolve(own.accesses.vectors, masked_update="{new}")
    graph = pk.parse("x: f32[3, 21]; return reduce_sum(exp(x), axis=1)")
    feeds = {"x": rng.standard_normal((3, 21)).astype(np.float32)}

    def error(name: str) -> float:
        (actual,) = pk.compile(graph, target=evolve(simd(), dialect=name))(feeds)
        return float(np.abs(actual - pk.interpret(graph, feeds)[0]).max())

    assert error("opencl") < 1e-4
    faulty = evolve(own, accesses=evolve(own.accesses, vectors=broken))
    monkeypatch.setattr(codegen, "dialect_of", lambda _: faulty)
    codegen._kernel.cache_clear()
    assert error("opencl") > 2  # exp(0) three times
    codegen._kernel.cache_clear()


@pytest.mark.parametrize(
    "text",
    [
        "x: f32[n]; return sin(x)",  # PoCL's is wrong for vectors of denormals
        "x: f32[n]; return div(x, 3)",  # a compiler makes better ones
        "x: f16[n]; return exp(x)",
        "x: i32[n, 40]; return reduce_sum(x, axis=1)",
        "x: f32[n, n]; return exp(tril(x))",  # loads what is chosen alone
        "x: f32[n, 5]; return reduce_sum(x, axis=1)",
        "x: f32[300, n]; return reduce_sum(sin(x), axis=0)",  # one of its loops, so all of them
    ],
)
def test_single_elements(text: str) -> None:
    """Functions, types and rows without vectors, and loops that exchange elements with them."""
    source = sources(text, simd())

    assert not re.search(r"\b(float|int|ushort)[248]\b", source)


def test_widths() -> None:
    """The widest type of a loop decides the number of elements; a device may have no vectors."""
    text = "x: f32[n]; w: f64[n]; return add(cast(x, dtype=dtype(f64)), exp(w))"
    assert "double4 " in sources(text, simd()) and "double2 " in sources(text, simd(access=16))
    assert "float16 " in sources("x: f32[n]; return exp(x)", simd(access=64))
    assert not re.search(r"vload|take_", sources(text, target_with_block(1, access=0)))
    assert "*(__global const double2 *)" in sources(
        "w: f64[n]; return exp(w)", target_with_block(64)
    )
