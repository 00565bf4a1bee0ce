"""Programs in work-groups of 1, 64 and 256: barriers and reductions at every size."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import passkit as pk
from tests.opencl import (
    BLOCKS,
    changed_reduction,
    opencl_device,
    require_pyopencl,
    step_kinds,
    target_with_block,
)
from tests.planner.test_multi_nest import PROGRAMS, feeds_of, together

ROOT = Path(__file__).resolve().parents[3]

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
    return {name: pk.Graph(outputs) for name, outputs in (softmaxes | norms | more).items()}


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


def softmax_error(length: int, rng: Any) -> float:
    """Return the largest error of a softmax of rows in work-groups of 64 items."""
    graph = pk.Graph([o.softmax(pk.var("x", (40, length)), axis=1)])
    feeds = {"x": rng.standard_normal((40, length)).astype(np.float32)}
    (result,) = pk.compile(graph, target=target_with_block(64))(feeds)
    return float(np.abs(result - pk.interpret(graph, feeds)[0]).max(initial=0))


@pytest.mark.parametrize(
    "length, old, new",
    [
        (301, "  barrier(CLK_LOCAL_MEM_FENCE);\n", ""),
        (302, "o; o >>= 1", "o > 1; o >>= 1"),
    ],
    ids=["without_a_barrier", "without_the_last_step"],
)
def test_a_wrong_reduction_is_detected(length: int, old: str, new: str, rng: Any) -> None:
    """A reduction without a barrier gives other numbers, and so does one that stops early."""
    if not opencl_device().limits.is_cpu:
        pytest.skip("items of a GPU go in step, so that it may not matter there who waits")
    assert softmax_error(300, rng) < 1e-6
    with changed_reduction(old, new):
        assert softmax_error(length, rng) > 1e-4


ROWS_AFTER_TOTALS = """
import numpy as np
import passkit as pk

graph = pk.parse(
    "x: f64[31, 61]; c = mul(x, rsqrt(reduce_mean(mul(x, x), axis=(0,), keepdims=true)));"
    "t = div(c, reduce_sum(abs(c), axis=(0, 1), keepdims=true));"
    "return div(t, reduce_sum(abs(t), axis=(1,), keepdims=true))"
)
operators = [graph.names[n] for n in graph.nodes if n.op and n.op.name != "constant"]
exe = pk.compile(graph, target="opencl", keep_together=[operators])
feeds = {"x": np.random.default_rng(0).standard_normal((31, 61))}
np.testing.assert_allclose(exe(feeds)[0], pk.interpret(graph, feeds)[0], rtol=1e-12)
print(len(exe.kernels))
"""
"""A kernel of which PoCL 3 aborts the process where it has barriers, in groups of one item."""


def test_a_kernel_of_totals_and_rows_is_built(tmp_path: Path) -> None:
    """Columns, a total and rows in one kernel are built and computed by the driver."""
    command = [sys.executable, "-c", ROWS_AFTER_TOTALS]
    environ = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, env=environ)
    assert (done.returncode, done.stdout) == (0, "1\n"), done.stderr
