"""Products of matrices and vectors run on an OpenCL device."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import passkit as pk
from passkit import xp
from passkit.errors import DeviceError
from tests.opencl import require_pyopencl, target_with_block, with_limits

require_pyopencl()
pytestmark = pytest.mark.opencl
o = pk.ops

SHAPES = (
    (700, 1, 20),
    (1, 20, 700),
    (3, 1, 9000),
    (1, 1, 20_000),
    (1, 5000, 70),
    (1, 9, 5000),
    (1, 8, 5000),
    (1, 32, 2500),
    (1, 33, 2500),
    (1, 7, 9001),
    (33, 1, 1),
    (1, 3, 0),
    (5, 1, 0),
    (1, 0, 4),
)
"""Rows, columns and terms of products: long and short sums, sums in parts, and empty ones."""


def transposed(x: Any, is_transposed: bool) -> Any:
    """Return an array with its last two axes swapped in memory, where that is asked for."""
    return np.ascontiguousarray(np.swapaxes(x, -1, -2)) if is_transposed else x


@pytest.mark.parametrize("block", [1, 64])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_products_agree_with_numpy(block: int, dtype: str, rng: Any) -> None:
    """Rows and columns of every length, either operand stored transposed, in groups of any size."""
    tolerance = 1e-5 if dtype == "float32" else 1e-13
    for m, n, k in SHAPES:
        a, b = rng.standard_normal((m, k)).astype(dtype), rng.standard_normal((k, n)).astype(dtype)
        feeds, products = {}, []
        for number, flags in enumerate([(False, False), (True, False), (False, True)]):
            arrays = [transposed(x, flag) for x, flag in zip((a, b), flags, strict=True)]
            x = pk.var(f"a{number}", arrays[0].shape, dtype)
            y = pk.var(f"b{number}", arrays[1].shape, dtype)
            feeds |= {x.name: arrays[0], y.name: arrays[1]}
            products.append(o.matmul(x, y, transpose_a=flags[0], transpose_b=flags[1]))
        exe = pk.compile(pk.Graph(products), target=target_with_block(block), fusion="nnvm")
        expected = a.astype(np.float64) @ b
        scale = np.abs(expected).max(initial=0) + np.sqrt(k)
        for result in exe(feeds):
            np.testing.assert_allclose(result, expected, rtol=0, atol=tolerance * scale)
        assert (exe.stats["host_steps"], exe.stats["device_library_steps"]) == (0, 3), (m, n, k)


@pytest.mark.parametrize("block", [1, 64])
def test_batches(block: int, rng: Any) -> None:
    """Each matrix of a batch has its vector, or all have one; other broadcasts run on the host."""
    target = target_with_block(block)
    for batch_a, batch_b, on_device in (
        ((3, 2), (3, 2), 1),
        ((5,), (1,), 1),
        ((1,), (4,), 1),
        ((0,), (0,), 1),
        ((3, 1), (1, 2), 0),
    ):
        for m, n, k in ((300, 1, 17), (1, 17, 300)):
            a, b = rng.standard_normal((*batch_a, m, k)), rng.standard_normal((*batch_b, k, n))
            x, y = pk.var("a", a.shape, "float64"), pk.var("b", b.shape, "float64")
            exe = pk.compile(pk.Graph([o.matmul(x, y)]), target=target, fusion="nnvm")
            np.testing.assert_allclose(exe(a=a, b=b)[0], a @ b, rtol=1e-12, atol=1e-12)
            assert exe.stats["device_library_steps"] == on_device


def test_symbolic_sizes(rng: Any) -> None:
    """One program serves every size; a product between kernels stays on the device."""
    x, v = pk.var("x", ("n", "k")), pk.var("v", ("k",))
    y = o.matvec(o.exp(x), v)
    exe = pk.compile(pk.Graph([o.vecmat(o.tanh(y), x)]), target="opencl")
    for n, k in ((40, 8), (3000, 30), (2, 5)):
        a, w = (rng.standard_normal(s).astype(np.float32) / 8 for s in ((n, k), (k,)))
        (result,) = exe(x=a, v=w)
        np.testing.assert_allclose(result, np.tanh(np.exp(a) @ w) @ a, rtol=1e-3, atol=1e-4)
        assert exe.stats["bytes_uploaded"] == a.nbytes + w.nbytes
        assert exe.stats["bytes_downloaded"] == result.nbytes
    assert (exe.stats["host_steps"], exe.stats["device_library_steps"]) == (0, 2)


def test_steps_of_arrays_on_the_device_are_only_enqueued(rng: Any) -> None:
    """A generalized linear model moves nothing between host and device."""
    a = rng.standard_normal((500, 6))
    y, x, beta = (xp.asarray(v, device="opencl:0") for v in (a[:, 0], a, a[0]))
    with xp.inspect() as runs:
        value, by = xp.stats.with_derivatives(xp.stats.normal_id_glm_lpdf, y, x, 0.5, beta, 2.0)
        xp.eval(value, by["beta"])
    z = (a[:, 0] - a @ a[0] - 0.5) / 2
    stats = runs[0].executable.stats

    np.testing.assert_allclose(by["beta"].numpy(), z / 2 @ a, rtol=1e-9)
    assert (stats["host_steps"], stats["device_library_steps"]) == (0, 2)
    assert stats["bytes_uploaded"] + stats["bytes_downloaded"] == 0


def test_other_products_run_on_the_host(rng: Any) -> None:
    """A product of matrices, and one of float64 where the device has none."""
    a, b = rng.standard_normal((2, 8, 8))
    x, y = pk.var("x", (8, 8), "float64"), pk.var("y", (8, 8), "float64")
    exe = pk.compile(pk.Graph([o.matmul(x, y)]), target="opencl", fusion="nnvm")
    np.testing.assert_allclose(exe(x=a, y=b)[0], a @ b)
    assert (exe.stats["host_steps"], exe.stats["device_library_steps"]) == (1, 0)

    v = pk.var("v", (8, 1), "float64")
    exe = pk.compile(pk.Graph([o.matmul(x, v)]), target="opencl", fusion="nnvm")
    with with_limits(double=False):
        np.testing.assert_allclose(exe(x=a, v=b[:, :1])[0], a @ b[:, :1])
        assert exe.stats["host_steps"] == 1


def test_a_refused_launch_raises(rng: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error names the product, its work-items and the driver's message."""
    cl = require_pyopencl()
    a = rng.standard_normal((300, 4))
    graph = pk.Graph([o.matmul(pk.var("x", (300, 4), "float64"), np.ones((4, 1)))])
    exe = pk.compile(graph, target="opencl", fusion="nnvm")

    def refuse(*_: Any, **__: Any) -> None:
        raise cl.LogicError("the driver is out of order")

    monkeypatch.setattr(cl, "enqueue_nd_range_kernel", refuse)
    expected = r"did not launch \S+ \(1, 300, 4\) x \(4, 1\) of 1 work-items .*order; .*smaller"
    with pytest.raises(DeviceError, match=expected):
        exe(x=a)
