"""Kernels of loop IR compute what their graphs mean, by an interpreter in NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import passkit as pk
from passkit.ir.text import parse_kernel_ir
from passkit.values.size import evaluate
from tests.kernel_interpreter import KernelFault, run_kernel
from tests.nest_kernels import NestProgram, feeds_of, program, programs

SIZES = {"n": 5, "m": 37}
NARROW = {"rtol": 2e-2, "atol": 1e-2}
WIDE = {"rtol": 3e-5, "atol": 1e-5}


def check(p: NestProgram, is_aligned: bool) -> None:
    """Compare the interpreter's results with those of the graph."""
    feeds = feeds_of(p.graph, SIZES)
    expected = [np.asarray(x) for x in pk.compile(p.graph, target="interpret")(feeds)]
    outputs = p.outputs(expected)
    sizes = [evaluate(n, SIZES) for n in p.kernel.sizes]
    inputs = [feeds[v.name] for v in p.graph.inputs]
    blocks = evaluate(p.kernel.grid, SIZES)
    run_kernel(p.ir, blocks, sizes, inputs, outputs, is_aligned, order=11)
    for a, b in zip(outputs[-len(expected) :], expected, strict=True):
        tolerance = NARROW if b.dtype == np.float16 else WIDE
        np.testing.assert_allclose(
            a.astype(np.float64), b.astype(np.float64), err_msg=p.name, **tolerance
        )


@pytest.mark.parametrize("is_aligned", [True, False])
def test_kernels_agree_with_their_graphs(is_aligned: bool) -> None:
    """All kernels of the corpus, for aligned addresses and for others, give NumPy's results."""
    for p in programs():
        check(p, is_aligned)


EDITS = {
    "x0[row * 1000 +": ("x0[row * 1000 + 4000 +", r"x0\[\d+\] is out of bounds, x0 has 3000"),
    "store y0[row * 1000 + tx * 4": ("store y0[tx * 4", r"y0\[1000\] is not stored"),
    "x0_r[u * 4] = x0[": ("x0_r[0] = x0[", r"x0_r\[4\] is loaded and nothing stored it"),
    "+ u * 128] width 4 stream": ("+ u * 128 + 1] width 4 stream", r"x0\[1\] is not aligned to 4"),
    "    return\n": ("    barrier block\n", "32 of 128 threads come to a barrier of the block"),
    "if aligned(16, x0, y0) {": ("if true {", "4 elements of x0 are accessed, not aligned"),
}


@pytest.mark.parametrize("old", EDITS)
def test_faults_of_kernels_are_named(old: str) -> None:
    """An access out of bounds, of nothing, or not aligned, and missing threads are refused."""
    new, message = EDITS[old]
    p = program("softmax3x1000")
    ir = parse_kernel_ir(str(p.ir).replace(old, new, 1))
    feeds = feeds_of(p.graph)
    outputs = [np.zeros((3, 1000), np.float32)]
    is_aligned = "aligned" not in old

    with pytest.raises(KernelFault, match=message):
        run_kernel(ir, 1, [3], [feeds["x"]], outputs, is_aligned)
