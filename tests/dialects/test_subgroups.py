"""Reductions by sub-groups in OpenCL C, in the same order as by local memory alone."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from attrs import evolve

import passkit as pk
from passkit.runtime.opencl import compiler
from tests.dialects.test_printer import GOLDEN, PROGRAMS
from tests.opencl import require_pyopencl, target_with_block, with_limits
from tests.planned import plan

# Sub-groups of 16 on a device without: what its items exchange goes through local memory.
EMULATED = """
#define get_sub_group_size() 16u
#define get_sub_group_local_id() (get_local_id(0) % 16)
float exchanged(__local float *room, float x, uint o) {
  barrier(CLK_LOCAL_MEM_FENCE);
  room[get_local_id(0)] = x;
  barrier(CLK_LOCAL_MEM_FENCE);
  return room[get_local_id(0) ^ o];
}
#define sub_group_shuffle_xor(x, o) exchanged((__local float *)joined, x, o)
"""
TEXT = "x: f32[9, 301]; return reduce_sum(exp(x), axis=1), reduce_max(mul(x, 3), axis=1)"


def test_golden(golden: Callable[[Path, str], None]) -> None:
    """Steps use local memory down to a sub-group, and shuffles within it."""
    target = target_with_block(256, shuffles=True)
    (kernel,) = plan(PROGRAMS["softmax_last"], target=target).attrs["kernel"].values()

    golden(GOLDEN / "whole" / "softmax_shuffled.cl", kernel.source.replace(kernel.name, "softmax"))


def test_language() -> None:
    """Kernels for devices with sub-groups are OpenCL C 2.0, others 1.2."""
    require_pyopencl()
    with with_limits(shuffles=True, is_cpu=False) as own:
        three = "CL3.0" if own.version.startswith("OpenCL 3") else "CL2.0"
        assert f"-cl-std={three}" in compiler.compiler_options(own, 1)
    assert "-cl-std=CL1.2" in compiler.compiler_options(own, 1)


def results(rng: Any, shuffles: bool) -> list[Any]:
    """Return rows reduced by groups of 64."""
    x = rng.standard_normal((9, 301)).astype(np.float32)
    return list(
        pk.compile(pk.parse(TEXT), target=target_with_block(64, shuffles=shuffles))({"x": x})
    )


def test_same_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    """With emulated sub-groups reductions have the bits that they have without."""
    require_pyopencl()
    plain = results(np.random.default_rng(0), False)
    heads: list[str] = []

    def text(kernels: Any, own: Callable[..., str] = compiler.program_text) -> str:
        source = own(kernels)
        heads.extend(line for line in source.splitlines() if line.startswith("#pragma OPENCL EXT"))
        return EMULATED + source if "sub_group_" in source else source

    monkeypatch.setattr(compiler, "program_text", text)
    shuffled = results(np.random.default_rng(0), True)

    assert heads and "cl_khr_subgroup_shuffle : enable" in "".join(heads)
    for one, other in zip(plain, shuffled, strict=True):
        assert np.array_equal(one, other)


def test_an_exchange_too_few_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A reduction that stops one step too early gives other sums."""
    from passkit.dialects import dialect_of
    from passkit.passes import codegen

    require_pyopencl()
    own = dialect_of("opencl")
    broken = own.shuffled.replace("o; o >>= 1", "o > 1; o >>= 1")
    assert broken != own.shuffled
    plain = results(np.random.default_rng(0), False)
    text = compiler.program_text
    monkeypatch.setattr(compiler, "program_text", lambda kernels: EMULATED + text(kernels))
    monkeypatch.setattr(codegen, "dialect_of", lambda _: evolve(own, shuffled=broken))
    codegen._kernel.cache_clear()
    assert not np.allclose(results(np.random.default_rng(0), True)[0], plain[0])
    codegen._kernel.cache_clear()
