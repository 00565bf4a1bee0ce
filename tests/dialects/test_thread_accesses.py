"""Accesses of a thread to 16 consecutive bytes, on devices without vector arithmetic."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from attrs import evolve

import passkit as pk
from passkit.dialects import dialect_of
from passkit.graph.kernel import Kernel
from passkit.transforms import final_form
from passkit.transforms.printing import print_kernel
from tests.opencl import require_pyopencl, target_with_block
from tests.planned import plan

WIDE = target_with_block(64, access=16, simd=False)
"""The target of a device whose threads access 16 bytes, and compute with single elements."""
HALVES = "x: f16[n]; y: f32[n]; z: u8[n]; return add(add(cast(x, dtype=dtype(f32)), y), cast(z, "
TEXTS = {
    "scaled": "x: f32[n]; return mul(x, 3)",
    "mixed": f"{HALVES}dtype=dtype(f32)))",
    "reduced": "x: f32[n, 100]; return reduce_sum(x, axis=1)",
    "columns": "x: f32[100, n]; return reduce_sum(x, axis=0)",
    "softmax": "x: f32[n, 200]; return softmax(x)",
}


def kernel_of(text: str) -> Kernel:
    """Return the kernel of a graph that has one."""
    (kernel,) = plan(text, target=WIDE).attrs["kernel"].values()
    return kernel  # type: ignore[no-any-return]


@pytest.mark.parametrize("name", TEXTS)
def test_rows_and_remainders_of_any_length(name: str, rng: Any) -> None:
    """Elements that are in no whole access are computed as all others."""
    require_pyopencl()
    graph = pk.parse(TEXTS[name])
    exe = pk.compile(graph, target=WIDE)
    for n in (64, 37, 3):
        feeds = {}
        for node in graph.inputs:
            shape = [n if isinstance(k, pk.Size) else k for k in node.entries[0].shape]
            values = rng.standard_normal(shape) * 4 + (7 if name == "mixed" else 0)
            feeds[graph.names[node]] = np.abs(values).astype(str(node.entries[0].dtype))
        for actual, expected in zip(exe(feeds), pk.interpret(graph, feeds), strict=True):
            np.testing.assert_allclose(actual, expected, rtol=2e-6, atol=1e-5)


def test_counts() -> None:
    """A thread accesses 16 bytes of the narrowest type: four floats, or eight with halves."""
    scaled, mixed = kernel_of(TEXTS["scaled"]).source, kernel_of(TEXTS["mixed"]).source

    assert "float x0_vector[4]" in scaled and "(y0 + i0_first) = vload4(0, y0_vector)" in scaled
    assert "ushort x0_vector[8]" in mixed and "uchar x2_vector[8]" in mixed
    assert "vload4(0, x0" not in scaled
    assert "vload4(0, x0" in kernel_of(TEXTS["reduced"]).source  # at any address


def test_stages_agree_on_the_elements_of_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stages that exchange elements distribute them alike, by sizes and not by addresses."""
    kernel = kernel_of(TEXTS["columns"])
    agreed = "n0 % 4 == 0 ? (high - low + 3) / 4 : 0"
    assert kernel.source.count(agreed) == kernel.source.count("i1_vectors = ") > 1

    monkeypatch.setattr(final_form, "agreements_of", lambda phase, *_: [None] * len(phase.stages))
    opencl = dialect_of("opencl")
    accesses = evolve(opencl.accesses, nbytes=16, has_arithmetic=False)
    apart = print_kernel(kernel.ast, kernel.name, evolve(opencl, accesses=accesses))
    assert "sizeof(float4) == 0" in apart and agreed not in apart


@pytest.mark.parametrize(
    "text",
    [
        "x: f32[n, 9]; return reduce_sum(slice(x, begin=(0, 3), size=(-1, 2)), axis=1)",
        "x: f32[n, 8]; return reduce_sum(x, axis=1)",
        "x: f32[n, 70]; return slice(x, begin=(0, 0), size=(-1, 23), step=(1, 3))",
    ],
)
def test_single_elements(text: str) -> None:
    """Short rows and strided elements are loaded one by one."""
    for kernel in plan(text, target=WIDE).attrs["kernel"].values():
        assert "vload" not in kernel.source and "take_" not in kernel.source
