"""Steps without a kernel run in NumPy, are counted, and are warned of."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import passkit as pk
from tests.loops import while_loop

SUMS = pk.register_op("test_host_steps_sums", num_inputs=1)
SUMS.set_attr("FCompute", lambda node, x: np.cumsum(x, axis=-1, dtype=x.dtype))
SUMS.set_attr("FInferShape", lambda node, shape: shape)


def test_steps_without_a_kernel_are_reported() -> None:
    """One warning has each operator, the reason and way out, and names the caller's line."""
    x, z = pk.var("x", (4, 8)), pk.var("z", (3,), "complex64")
    results = [SUMS(pk.ops.exp(x), name="sums"), pk.ops.mul(z, z, name="square")]
    with pytest.warns(pk.InterpretedWarning) as caught:
        run = pk.compile(results)

    (warning,) = caught
    text = str(warning.message)
    assert "compiled for target 'cpu', 2 steps of 3 run in NumPy" in text
    assert "'sums': test_host_steps_sums has no FCodeGen, FElement, FReduce or FScan; set" in text
    assert "'square': kernels do not compute with complex64; compute with its real" in text
    assert warning.filename == __file__
    assert (run.stats["python_calls"], run.stats["interpreted_calls"]) == (2, 2)
    (edge,) = pk.explain(run.graph, "sums")
    assert edge.code == "op.code" and edge.way_out.startswith("set FCodeGen on test_host_steps_su")


def test_a_product_of_integers_is_reported() -> None:
    """An integer product that "nnvm" leaves to a library runs in NumPy, as no library has one."""
    a = pk.var("a", (3, 3), "int32")
    reason = "'p': no library computes matmul of int32; cast it to float32, or"
    with pytest.warns(pk.InterpretedWarning, match=reason):
        pk.compile([pk.ops.matmul(a, a, name="p")], fusion="nnvm")


def test_one_line_is_warned_of_once() -> None:
    """Python shows one warning for a line, so a loop that compiles is warned of once."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        for _ in range(3):
            pk.compile([SUMS(pk.var("x", (5,)))])

    assert len(caught) == 1


def test_python_by_design_is_no_warning() -> None:
    """Loops, and operators with THostLibrary such as sorts, run in Python without a warning."""
    op = pk.register_op("test_host_steps_library", num_inputs=1)
    op.set_attr("FCompute", lambda node, x: x[..., ::-1].copy())
    op.set_attr("FInferShape", lambda node, shape: shape)
    op.set_attr("THostLibrary", "scipy")
    x = pk.var("x", (4, 4))
    (doubled,) = while_loop(
        lambda value: pk.ops.reduce_sum(value) < 100.0, lambda value: [value * 2.0], [x]
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run = pk.compile([doubled, pk.ops.sort(x), pk.ops.inv(x), op(x)])

    assert run.stats["interpreted_calls"] == 0 and run.stats["python_calls"] == 4
    result: list[Any] = run(x=np.eye(4, dtype=np.float32))
    assert result[0].sum() == 128 and result[3][0, 3] == 1
    assert {d.way_out for d in pk.explain(run.graph)} <= {""}
