"""Whole groups in CUDA C and OpenCL C: stitched and packed kernels compile, and run on a driver."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from attrs import frozen

import passkit as pk
from passkit.graph.kernel import Kernel
from passkit.schedule.tiling import Composition
from tests import opencl
from tests.dialects import test_cuda, test_opencl
from tests.fusion.test_pack import adam, random_packs
from tests.planned import plan
from tests.planner.test_multi_nest import PROGRAMS, feeds_of, together
from tests.random_stitches import random_stitch

EXTENT = 33
SEEDS = range(30)


@frozen(eq=False)
class Fused:
    """A kernel, its graph, and the composition of its schedule."""

    name: str
    graph: pk.Graph
    node: Any
    kernel: Kernel
    composition: Composition

    @property
    def whole(self) -> bool:
        """Whether the kernel is all that its graph runs."""
        ops = [n for n in self.graph.nodes if n.op is not None and n.op.name != "constant"]
        return ops == [self.node]


def program_groups() -> dict[str, tuple[pk.Graph, list[list[str]]]]:
    """Return programs at one extent, random groups, updates of several tensors, random packs."""
    kernels = {p.__name__: together(p(EXTENT)) for p in PROGRAMS}
    kernels |= {f"random{seed}": random_stitch(seed) for seed in SEEDS}
    text, names = random_packs(6)
    return kernels | {
        "adam": (adam([10, 300, 7000, 40, 90000])[0], []),
        "packs": (pk.parse(text), names),
    }


@cache
def fused(target: str) -> list[Fused]:
    """Return the kernels of these graphs, equal texts once; work-groups have 16 items."""
    own = opencl.target_with_block(16) if target == "opencl" else target
    kernels: dict[str, Fused] = {}
    for name, (graph, names) in program_groups().items():
        planned = plan(graph, target=own, keep_together=names)
        for node, kernel in planned.attrs["kernel"].items():
            composition = planned.attrs["schedule"][node].composition
            kernels.setdefault(kernel.key, Fused(name, planned, node, kernel, composition))
    return list(kernels.values())


def texts(target: str) -> list[str]:
    """Return the texts; every program is one kernel, and most random groups are."""
    kernels = fused(target)
    whole = {f.name for f in kernels if f.whole}
    kinds = [f.composition for f in kernels]

    assert {p.__name__ for p in PROGRAMS} <= whole and len(whole) > 25
    assert kinds.count(Composition.MULTI_NEST) > 15 and kinds.count(Composition.PACKED) > 4
    return [f.kernel.source for f in kernels]


@test_cuda.needs_compiler
def test_cuda_compiles(tmp_path: Path) -> None:
    """All kernels compile in one translation unit."""
    assert test_cuda.errors_of(texts("cuda"), tmp_path) is None


def test_opencl_syntax(tmp_path: Path) -> None:
    """A C compiler accepts all kernels, given the names of OpenCL C."""
    assert "error" not in test_opencl.messages_of(texts("opencl"), tmp_path)


def test_opencl_on_a_driver(rng: np.random.Generator) -> None:
    """Kernels that a driver builds and runs agree with the interpreter."""
    opencl.require_pyopencl()
    for f in filter(lambda f: f.whole, fused("opencl")):
        feeds = {k: np.abs(v) for k, v in feeds_of(f.graph, rng).items()}
        actual = pk.compile(f.graph)(feeds)
        for one, other in zip(actual, pk.interpret(f.graph, feeds), strict=True):
            scale = np.abs(other).max(initial=1e-9)
            np.testing.assert_allclose(one, other, atol=1e-5 * scale, rtol=0, err_msg=f.name)
