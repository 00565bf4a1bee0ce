"""Accesses of a thread to 16 bytes of consecutive elements, at any alignment of arrays."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from attrs import evolve

from passkit.dialects import CUDA
from passkit.graph.kernel import Kernel
from passkit.transforms import final_form
from passkit.transforms.printing import print_kernel
from tests.emulator import EmulatedDevice, EmulatedError, LaunchOptions
from tests.planned import plan, target

HALVES = "x: f16[n]; y: f32[n]; z: u8[n]; return add(add(cast(x, dtype=dtype(f32)), y), cast(z, "
TEXTS = {
    "scaled": "x: f32[n]; return mul(x, 3)",
    "mixed": f"{HALVES}dtype=dtype(f32)))",
    "folded": "x: f32[n, 100]; return reduce_sum(x, axis=1)",
    "columns": "x: f32[100, n]; return reduce_sum(x, axis=0)",
    "softmax": "x: f32[n, 200]; return softmax(x)",
}


BUNDLED = target("cuda", nests=False)
"""The target whose kernels are all printed from kernel ASTs."""


def kernel_of(name: str) -> Kernel:
    """Return the only kernel of one of the texts."""
    return only(TEXTS[name])


def only(text: str) -> Kernel:
    """Return the kernel of a graph that has one."""
    (kernel,) = plan(text, target=BUNDLED).attrs["kernel"].values()
    return kernel  # type: ignore[no-any-return]


def at(array: Any, offset: int) -> Any:
    """Return a copy of an array at ``offset`` bytes behind a multiple of 16."""
    raw = np.zeros(array.nbytes + 32, np.uint8)
    start = -raw.ctypes.data % 16 + offset
    copy = raw[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


def given(name: str, n: int) -> tuple[list[Any], Any]:
    """Return arrays for one of the kernels, and the expected result."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((n, 200 if name == "softmax" else 100)).astype(np.float32)
    e = np.exp(x - x.max(1, keepdims=True))
    flat, half = x[:, 0].copy(), x[:, 0].astype(np.float16)
    bytes_ = rng.integers(0, 255, n).astype(np.uint8)
    return {
        "scaled": ([flat], flat * 3),
        "mixed": ([half, flat, bytes_], half.astype(np.float32) + flat + bytes_),
        "folded": ([x], x.sum(1)),
        "columns": ([x.T.copy()], x.sum(1)),
        "softmax": ([x], e / e.sum(1, keepdims=True)),
    }[name]


def run(driver: EmulatedDevice, kernel: Kernel, name: str, n: int, offset: int = 0) -> Any:
    """Return a kernel's result for arrays at an offset, and the expected one."""
    inputs, expected = given(name, n)
    out = at(np.full_like(expected, 77), offset)
    driver.launch(kernel, {"n": n}, [at(a, offset * a.itemsize // 4) for a in inputs], [out])
    return out, expected


def test_any_alignment() -> None:
    """Results do not depend on alignment, lengths of rows, or a remainder of elements.

    A reduction has the same bits for any alignment of its input.
    """
    driver, kernels = (
        EmulatedDevice(LaunchOptions(2, 64, 2)),
        {name: kernel_of(name) for name in TEXTS},
    )
    driver.prepare(kernels.values())
    for name, kernel in kernels.items():
        for n in (64, 37):
            (aligned, expected), (off, _) = (run(driver, kernel, name, n, k) for k in (0, 4))
            np.testing.assert_allclose(aligned, expected, rtol=2e-6, atol=1e-5)
            assert np.array_equal(aligned, off), (name, n)


def test_counts() -> None:
    """A thread accesses 16 bytes of the narrowest type: four floats, or eight with halves."""
    scaled, mixed = kernel_of("scaled").source, kernel_of("mixed").source

    assert "float (&x0_vector)[4]" in scaled and "put(y0 + i0_first, y0_vector)" in scaled
    assert "uint16_t x0_vector[8]" in mixed and "uint8_t x2_vector[8]" in mixed
    assert "take_any(" not in scaled and "take_any(" in kernel_of("folded").source


def test_accesses_that_are_loaded_ahead() -> None:
    """Two accesses are loaded first, unless the loop is short, or each loads several inputs."""
    turns = {
        name: re.findall(r"_step < (\d+)", only(text).source)[:1]
        for name, text in {
            "one": "x: f32[n]; return mul(x, 3.0)",
            "three": "x: f32[n]; y: f32[n]; z: f32[n]; return add(add(x, y), z)",
            "short": "x: f32[n, 32]; return reduce_sum(x, axis=1)",
            "longer": "x: f32[n, 40]; return reduce_sum(x, axis=1)",
        }.items()
    }
    assert turns == {"one": ["2"], "three": [], "short": [], "longer": ["2"]}


def test_an_unaligned_access_is_reported() -> None:
    """The emulator refuses an unaligned access, for which a device aborts."""
    kernel = kernel_of("folded")
    wrong = evolve(kernel, key="w", source=kernel.source.replace("take_any(", "take("))

    with pytest.raises(EmulatedError, match="loads 16 bytes that are not aligned"):
        run(EmulatedDevice(LaunchOptions(2, 64, 2)), wrong, "folded", 8, 4)


def test_stages_agree_on_the_elements_of_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stages that exchange elements distribute them alike; without an agreement a race results."""
    kernel = kernel_of("columns")
    assert "n0 % 4 == 0 ? (high - low + 3) / 4 : 0" in kernel.source
    actual, expected = run(EmulatedDevice(LaunchOptions(2, 64, 2)), kernel, "columns", 63)
    np.testing.assert_allclose(actual, expected, rtol=2e-6, atol=1e-5)

    monkeypatch.setattr(final_form, "agreements_of", lambda phase, *_: [None] * len(phase.stages))
    text = print_kernel(kernel.ast, kernel.name, CUDA)
    apart = evolve(kernel, key="apart", source=text)
    with pytest.raises(EmulatedError, match="which nothing has stored"):
        run(EmulatedDevice(LaunchOptions(2, 64, 2)), apart, "columns", 63)


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
    for kernel in plan(text, target=BUNDLED).attrs["kernel"].values():
        assert "take" not in kernel.source


def test_scratch_of_packed_parts() -> None:
    """Parts with overlapping scratch need no barrier: threads have the same elements."""
    text = (
        "x: f64[9, 5, 3]; y: f64[4, 5, 8]; one = reduce_sum(x, axis=1); "
        "two = reduce_min(y, axis=1); return one, two"
    )
    planned = plan(text, target=BUNDLED, keep_together=[["one", "two"]])
    (kernel,) = planned.attrs["kernel"].values()
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((9, 5, 3)), rng.standard_normal((4, 5, 8))
    actual = [np.full((9, 3), 7.0), np.full((4, 8), 7.0)]
    assert [b.offset for b in kernel.ast.scratch] == [0, 0]
    EmulatedDevice(LaunchOptions(2, 64, 2)).launch(kernel, {}, [x, y], actual)

    np.testing.assert_allclose(actual[0], x.sum(1), rtol=1e-14)
    assert np.array_equal(actual[1], y.min(1))
