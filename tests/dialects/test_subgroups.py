"""Reductions by sub-groups in OpenCL C, in the same order as by local memory alone."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from attrs import evolve

import passkit as pk
from passkit.runtime.opencl import compiler
from tests.dialects.test_printer import GOLDEN, PROGRAMS
from tests.opencl import gpu_target, require_pyopencl, target_with_block, with_limits
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


WARPS = """
#define sub_group_barrier(memory) barrier(memory)
float of_warp(__local float *room, float x, uint o) {
  const uint own = get_local_id(1) * get_local_size(0) + get_local_id(0);
  barrier(CLK_LOCAL_MEM_FENCE);
  room[own] = x;
  barrier(CLK_LOCAL_MEM_FENCE);
  return room[own ^ o];
}
#define sub_group_shuffle_xor(x, o) of_warp(room, x, o)
"""


@pytest.mark.parametrize(
    ("nest", "used"),
    [
        ("x: f32[8, 1000]; return softmax(x)", "sub_group_shuffle_xor(reduce_max_1, o)"),
        ("x: f32[12, 700]; return reduce_max(x, axis=1)", "sub_group_shuffle_xor(reduce_max_1, o)"),
        ("x: f32[16, 40]; return softmax(x)", "sub_group_barrier(CLK_LOCAL_MEM_FENCE)"),
    ],
)
def test_loop_nests_of_warps_have_the_same_bits(
    nest: str, used: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With emulated sub-groups, rows of loop nests have the bits that they have without."""
    require_pyopencl()
    graph = pk.parse(nest)
    (shape,) = (pk.ApplyPasses(graph, "InferShape").shape(v.entries[0]) for v in graph.inputs)
    feeds = {"x": np.random.default_rng(0).standard_normal(shape).astype(np.float32)}
    targets = [gpu_target(warps=is_warp, shuffles=is_warp) for is_warp in (False, True)]
    texts: list[str] = []

    def text(kernels: Any, own: Callable[..., str] = compiler.program_text) -> str:
        texts.append(own(kernels))
        if "sub_group_" not in texts[-1]:
            return texts[-1]
        room = r"\1\n__local float room[256];"
        return WARPS + re.sub(r"(__kernel [^{]*\{)", room, texts[-1])

    monkeypatch.setattr(compiler, "program_text", text)
    plain, warps = (pk.compile(graph, target=t)(feeds)[0] for t in targets)

    assert used in texts[-1]
    assert np.array_equal(plain, warps)
    np.testing.assert_allclose(plain, pk.interpret(graph, feeds)[0], 1e-5, 1e-6)
