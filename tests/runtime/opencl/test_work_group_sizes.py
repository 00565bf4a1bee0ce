"""Programs in work-groups of 1, 64 and 256: barriers and reductions at every size."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from attrs import evolve

import passkit as pk
from passkit.dialects import dialect_of
from passkit.runtime.opencl.device import device
from tests.opencl import BLOCKS, require_pyopencl, step_kinds, target_with_block
from tests.test_stitched import PROGRAMS, feeds_of, together

require_pyopencl()
pytestmark = pytest.mark.opencl
o = pk.ops


def composites(n: int) -> dict[str, pk.Graph]:
    """Return graphs of composite operators over the first, the middle and the last axis."""
    x = pk.var("x", (5, n, 3))
    softmaxes = {f"softmax {k}": [o.softmax(x, axis=k)] for k in range(3)}
    norms = {
        f"layer_norm {k}": [o.layer_norm(x, axis=k, scale=False, center=False)] for k in range(3)
    }
    more = {"gelu": [o.gelu(x)], "all": [o.reduce_sum(x), o.reduce_max(x, axis=(0, 2))]}
    return {name: pk.Graph(made) for name, made in (softmaxes | norms | more).items()}


@pytest.mark.parametrize("block", BLOCKS)
def test_programs_in_work_groups_of_all_sizes(block: int, rng: Any) -> None:
    """Every program is one kernel, and agrees with `interpret`."""
    kept = {p.__name__: together(p(33)) for p in PROGRAMS}
    graphs = {name: (g, []) for name, g in composites(70).items()} | kept
    target = target_with_block(block)
    for name, (graph, names) in graphs.items():
        exe = pk.compile(graph, target=target, keep_together=names)
        feeds = {k: np.abs(v) for k, v in feeds_of(graph, rng).items()}
        assert set(step_kinds(exe)) == {"LaunchStep"}, name
        assert name not in kept or len(exe.kernels) == 1, name
        assert {k.block for k in exe.kernels} == {block}
        for result, expected in zip(exe(feeds), pk.interpret(graph, feeds), strict=True):
            scale = np.abs(expected).max(initial=1e-9)
            np.testing.assert_allclose(result, expected, atol=1e-5 * scale, rtol=0, err_msg=name)


def softmax_error(dialect: str, rng: Any) -> float:
    """Return the largest error of a softmax in work-groups of 64 items."""
    graph = pk.Graph([o.softmax(pk.var("x", (40, 300)), axis=1)])
    feeds = {"x": rng.standard_normal((40, 300)).astype(np.float32)}
    (result,) = pk.compile(graph, target=target_with_block(64, dialect=dialect))(feeds)
    return float(np.abs(result - pk.interpret(graph, feeds)[0]).max(initial=0))


def test_a_missing_barrier_is_detected(rng: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A reduction without a barrier gives other numbers, and so does one that stops early."""
    from passkit.passes import codegen

    if not device().limits.is_cpu:
        pytest.skip("items of a GPU go in step, so that it may not matter there who waits")
    own = dialect_of("opencl")
    assert softmax_error("opencl", rng) < 1e-6
    for broken in (
        own.fold.replace("  barrier(CLK_LOCAL_MEM_FENCE);\n", ""),
        own.fold.replace("o; o >>= 1", "o > 1; o >>= 1"),
    ):
        assert broken != own.fold
        monkeypatch.setitem(codegen.__dict__, "dialect_of", lambda _, b=broken: evolve(own, fold=b))
        codegen._kernel.cache_clear()
        assert softmax_error("opencl", rng) > 1e-4
    codegen._kernel.cache_clear()
