"""Rows of loop nests by sub-groups in OpenCL C, in the same order as by local memory alone."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from attrs import evolve

import passkit as pk
from passkit.runtime.opencl import compiler
from passkit.target import target_of
from tests.opencl import gpu_target, require_pyopencl, with_limits
from tests.planned import plan


def test_language() -> None:
    """Kernels for devices with sub-groups are OpenCL C 2.0, others 1.2."""
    require_pyopencl()
    with with_limits(shuffles=True, is_cpu=False) as own:
        three = "CL3.0" if own.version.startswith("OpenCL 3") else "CL2.0"
        assert f"-cl-std={three}" in compiler.compiler_options(own, 1)
    assert "-cl-std=CL1.2" in compiler.compiler_options(own, 1)


WARPS = """
float of_warp(__local float *room, float x, uint o) {
  const uint own = get_local_id(1) * get_local_size(0) + get_local_id(0);
  barrier(CLK_LOCAL_MEM_FENCE);
  room[own] = x;
  barrier(CLK_LOCAL_MEM_FENCE);
  return room[own ^ o];
}
#define sub_group_shuffle_xor(x, o) of_warp(room, x, o)
"""
MAXIMA = "x: f32[5, 3000]; return reduce_max(x, axis=1)"


@pytest.mark.parametrize("nest", ["x: f32[8, 4000]; return softmax(x)", MAXIMA])
def test_loop_nests_of_warps_have_the_same_bits(nest: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With emulated sub-groups, rows of loop nests have the bits that they have without.

    A row has all threads of a block: the emulation waits, so that no thread may have returned.
    """
    require_pyopencl()
    graph = pk.parse(nest)
    (shape,) = (pk.ApplyPasses(graph, "InferShape").shape(v.entries[0]) for v in graph.inputs)
    feeds = {"x": np.random.default_rng(0).standard_normal(shape).astype(np.float32)}
    targets = [gpu_target(shuffles=x) for x in (False, True)]
    texts: list[str] = []

    def text(kernels: Any, own: Callable[..., str] = compiler.program_text) -> str:
        texts.append(own(kernels))
        if "sub_group_" not in texts[-1]:
            return texts[-1]
        room = r"\1\n__local float room[256];"
        return WARPS + re.sub(r"(__kernel [^{]*\{)", room, texts[-1])

    monkeypatch.setattr(compiler, "program_text", text)
    plain, warps = (pk.compile(graph, target=t)(feeds)[0] for t in targets)

    assert "sub_group_shuffle_xor(reduce_max_1, o)" in texts[-1] and "return;" not in texts[-1]
    assert "cl_khr_subgroup_shuffle : enable" in texts[-1]
    assert np.array_equal(plain, warps)
    np.testing.assert_allclose(plain, pk.interpret(graph, feeds)[0], 1e-5, 1e-6)


def test_short_rows_wait_in_sub_groups() -> None:
    """The rows of a warp move through local memory, with barriers of the sub-group."""
    target = evolve(target_of("opencl"), nests=True, shuffles=True)
    (kernel,) = plan("x: f32[16, 40]; return softmax(x)", target=target).attrs["kernel"].values()

    assert "sub_group_barrier(CLK_LOCAL_MEM_FENCE);" in kernel.source


def test_an_exchange_too_few_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Threads that exchange their values with themselves get other sums."""
    require_pyopencl()
    graph = pk.parse("x: f32[8, 4000]; return reduce_sum(x, axis=1)")
    feeds = {"x": np.random.default_rng(0).standard_normal((8, 4000)).astype(np.float32)}
    alone = "#define sub_group_shuffle_xor(x, o) (x)\n"
    text = compiler.program_text
    monkeypatch.setattr(compiler, "program_text", lambda kernels: alone + text(kernels))
    (sums,) = pk.compile(graph, target=gpu_target(shuffles=True))(feeds)

    assert not np.allclose(sums, pk.interpret(graph, feeds)[0], atol=1e-2)
