"""Loop nests on OpenCL devices, scheduled as for a GPU: groups of threads with barriers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import passkit as pk
from passkit import xp
from passkit.ast.stage import KernelAST
from passkit.errors import DeviceError
from passkit.ir.loop import KernelIR
from passkit.passes.kernels import loops
from tests.nest_kernels import feeds_of, graphs, stitched_graphs
from tests.opencl import gpu_target, require_pyopencl, with_limits
from tests.planned import plan
from tests.random_stitches import random_stitch
from tests.test_random_stitches import agree

require_pyopencl()
o = pk.ops
NAMES = (
    "gelu(6, 94, 3)",
    "float16(3, 1000)",
    "softmax7x5",
    "softmax7x40",
    "softmax7x100",
    "softmax3x1000",
    "layer_norm3x4096",
    "max3x1024",
    "sum_float64x1024",
    "masked",
    "mean_over(1, 3)",
    "column_sum_float32(300, 70)",
    "column_max(3, 40, 33)",
    "long_sum40001",
    "long_softmax20000",
    "rows_by_number",
    "transpose(70, 33)",
    "transpose_batch",
    "unknown_rows",
    "unknown_lengths",
    "unknown_columns",
    "unknown_transpose",
)
"""Names of graphs of `tests.nest_kernels`, of each schedule rule."""


def run(graph: pk.Graph, **options: Any) -> pk.Executable:
    """Return the program of a graph, whose results are those of NumPy."""
    exe = pk.compile(graph, target=gpu_target(), **options)
    feeds = feeds_of(graph)
    for expected, result in zip(pk.interpret(graph, feeds), exe(feeds), strict=True):
        wide = np.asarray(expected).astype(np.float64)
        near = 1e-3 if expected.dtype == np.float16 else 1e-5
        atol = near * np.abs(wide).max(initial=1)
        np.testing.assert_allclose(np.asarray(result).astype(np.float64), wide, near, atol)
    return exe


def test_single_nests() -> None:
    """Elementwise kernels, rows, short rows, columns and tiles of loop IR are right."""
    outputs = dict(graphs())
    for name in NAMES:
        exe = run(pk.Graph(outputs[name]))

        assert all(isinstance(k.ast, KernelIR) for k in exe.kernels), name


def test_stitched_nests() -> None:
    """Several nests in a block, with products and rows in shared memory, are right."""
    for name, outputs in stitched_graphs():
        graph = pk.Graph(outputs)
        together = [graph.names[n] for n in graph.nodes if n.op is not None]
        (kernel,) = run(graph, keep_together=[together]).kernels

        assert isinstance(kernel.ast, KernelIR), name


STITCHES = (*range(12), 50)
"""Seeds of random stitches; 50 copies a padded operand in several steps."""


def test_random_stitches() -> None:
    """Random groups of several nests are right, most of them as one block of loop IR."""
    kinds = []
    for seed in STITCHES:
        graph, names = random_stitch(seed)
        exe = pk.compile(graph, target=gpu_target(), keep_together=names)
        agree(graph, exe)
        kinds += [isinstance(k.ast, KernelIR) for k in exe.kernels]

    assert sum(kinds) > len(kinds) / 2


def test_kernels_without_schedules_of_nests() -> None:
    """Packs and phases have kernels of work-groups as before: blocks do not wait for each other."""
    x, y = pk.var("x", (40, 50)), pk.var("y", (30,))
    exe = run(pk.Graph([o.exp(x), o.reduce_sum(y)]), keep_together=[["exp", "reduce_sum"]])
    z = pk.var("z", (300, 400))
    total = pk.Graph([o.softmax(z, axis=0) / o.reduce_sum(z)])
    names = [total.names[n] for n in total.nodes if n.op is not None]
    phased = run(total, keep_together=[names])
    kernels = *exe.kernels, *(k for k in phased.kernels if k.phases)

    assert [isinstance(k.ast, KernelAST) for k in kernels] == [True, True]


def test_a_pack_has_a_reason() -> None:
    """The schedule of a pack says why it has none of loop nests."""
    x, y = pk.var("x", (40,)), pk.var("y", (30,))
    graph = pk.Graph([o.exp(x), o.sin(y)])
    planned = plan(graph, target=gpu_target(), keep_together=[["exp", "sin"]])
    (schedule,) = planned.attrs["schedule"].values()

    assert str(schedule.no_nest) == "kernels of target opencl have one loop nest each"


def test_groups_are_those_of_the_schedule() -> None:
    """A kernel is launched in groups of the threads of its schedule, in two dimensions."""
    exe = run(pk.Graph(dict(graphs())["softmax7x256"]))
    (kernel,) = exe.kernels
    assert isinstance(kernel.ast, KernelIR)
    launch = kernel.ast.launch

    assert f"reqd_work_group_size({launch.x}, {launch.y}, 1)" in kernel.source


def test_too_much_local_memory_raises() -> None:
    """A kernel that needs more local memory than a device has is refused when it is bound."""
    graph = pk.Graph([o.softmax(pk.var("x", (7, 48)))])
    exe = pk.compile(graph, target=gpu_target())
    with with_limits(local_nbytes=64), pytest.raises(DeviceError, match=r"KiB of local memory"):
        exe(feeds_of(graph))


def test_a_step_too_few_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sums of which threads exchange too few partial results are wrong."""
    own = loops.print_ir
    text = "(int)get_local_id(0) ^ 1]"
    monkeypatch.setattr(
        loops, "print_ir", lambda *a: own(*a).replace(text, text.replace(" ^ 1", ""))
    )
    graph = pk.Graph([o.reduce_sum(pk.var("x", (9, 353)), axis=1)])
    exe = pk.compile(graph, target=gpu_target())
    feeds = feeds_of(graph)

    assert not np.allclose(exe(feeds)[0], pk.interpret(graph, feeds)[0], atol=1e-2)


def test_arrays_on_a_gpu_are_only_enqueued(rng: Any) -> None:
    """The registered target has loop nests on a GPU; later runs of a sequence launch them, too."""
    kernels: list[Any] = []
    with with_limits(is_cpu=False):
        for _ in range(4):
            host = rng.standard_normal((37, 1000)).astype(np.float32)
            x = xp.asarray(host, device="opencl:0")
            with xp.inspect() as runs:
                e = xp.exp(x - xp.max(x, axis=1, keepdims=True))
                y = e / xp.sum(e, axis=1, keepdims=True)
                xp.eval(y)
            exact = np.exp(host.astype(np.float64) - host.max(axis=1, keepdims=True))
            exact /= exact.sum(axis=1, keepdims=True)
            np.testing.assert_allclose(y.numpy(), exact, 1e-5)
            kernels += runs[0].executable.kernels

    assert kernels and all(isinstance(k.ast, KernelIR) for k in kernels)
