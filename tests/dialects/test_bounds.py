"""No byte beyond an array is accessed: arrays lie between pages without access rights."""

from __future__ import annotations

import ctypes
import faulthandler
import os
from typing import Any

import numpy as np
import pytest

import passkit as pk
from tests.fences import fenced
from tests.planned import prebuild

LENGTHS = [*range(51), 255, 256, 257]

GRAPHS = {
    name: pk.parse(text)
    for name, text in {
        "flat": "x: f32[n]; return add(exp(x), x)",
        "doubles": "x: f64[n]; return mul(x, x)",
        "bytes": "x: u8[n]; return add(x, 1)",
        "bools": "x: bool[n]; return logical_not(x)",
        "rows": "x: f32[3, n]; return div(x, reduce_sum(abs(x), axis=1, keepdims=true))",
        "columns": "x: f32[n, 3]; return sub(x, reduce_sum(x, axis=0, keepdims=true))",
        "short": "x: f32[n, 7]; return reduce_sum(exp(x), axis=1)",
        "transposed": "x: f32[n, 5]; return neg(transpose(x))",
        "turned": "x: f32[n, 37]; return neg(transpose(x))",
        "narrow": "x: f32[n, 3]; y: f32[3]; z: f64[n, 3]; w: f64[3]; return add(x, y), mul(z, w)",
        "images": "x: f32[3, n]; y: f32[n, 3]; return add(transpose(x), y)",
        "bytes turned": "x: u8[7, n]; return transpose(x)",
        "lazy": "x: f32[n]; y: f32[n]; return concat(x, neg(y), x, axis=0)",
        "guarded": "x: f32[n]; y: f32[n]; z = mul(y, y); return concat(x, z, add(z, y), x, axis=0)",
        "shared": "x: f32[n, 4]; y: f32[n, 1]; return concat(x, mul(x, y), add(y, x), axis=0)",
        "sliced": "x: f32[n]; return concat(slice(x, begin=(0,), size=(-1,)), x, axis=0)",
        "parts": (
            'x: f32[40, 130]; i: i64[n]; g = gather(x, i, mode="zero");'
            "w = reshape(mul(g, g), shape=(-1,));"
            "u = unslice(w, shape=(33540,), begin=(0,), step=(1,)); y: f32[258, 130];"
            "return add(y, reshape(u, shape=(258, 130)))"
        ),
        "where": "x: f32[n]; c: bool[n]; return where(c, sqrt(x), concat(x, axis=0))",
        "broadcast": "x: f32[n, 1]; y: f32[n]; return add(x, y)",
    }.items()
}


@pytest.fixture(scope="module", autouse=True)
def _built() -> None:
    """Compile all kernels at once."""
    prebuild(GRAPHS.values())


@pytest.mark.parametrize("end", [True, False], ids=["end", "begin"])
@pytest.mark.parametrize("name", GRAPHS)
def test_nothing_beyond_an_array(name: str, end: bool, rng: Any) -> None:
    """Arrays of every length at either end of a page give right results without a fault."""
    graph = GRAPHS[name]
    exe = pk.compile(graph)
    for n in LENGTHS:
        given = {}
        for s in exe.inputs:
            shape = tuple(d if isinstance(d, int) else n for d in s.shape)
            given[s.name] = (10 * rng.random(shape)).astype(s.dtype.numpy)
        plain = exe(given)
        managers = {k: fenced(a, end) for k, a in given.items()}
        outs = [fenced(np.zeros_like(a), end) for a in plain]
        out = [m.__enter__() for m in outs]
        actual = exe({k: m.__enter__() for k, m in managers.items()}, out=out)
        for a, b, expected in zip(actual, plain, pk.interpret(graph, given), strict=True):
            assert a.tobytes() == b.tobytes()
            np.testing.assert_allclose(a, expected, rtol=1e-5)
        for m in (*managers.values(), *outs):
            m.__exit__(None, None, None)


def test_the_fence_holds() -> None:
    """A load beyond the array is a fault, which a child process shows."""
    child = os.fork()
    if child == 0:
        faulthandler.disable()
        with fenced(np.zeros(4, np.float32), end=True) as array:
            print(ctypes.c_float.from_address(array.ctypes.data + array.nbytes).value)
        os._exit(0)
    _, status = os.waitpid(child, 0)

    assert os.WIFSIGNALED(status)
