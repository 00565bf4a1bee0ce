"""Programs on an OpenCL device: what comes out, what moves, and what it says of itself."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import passkit as pk

pytestmark = pytest.mark.opencl
pytest.importorskip("pyopencl", reason="the extra `opencl` is not installed")


def test_gelu(rng: Any) -> None:
    """One kernel, at every size, and results that are the caller's."""
    x = pk.var("x", (None, 512))
    graph = pk.Graph([x * (pk.ops.erf(x / 2**0.5) + 1) / 2])
    exe = pk.compile(graph, target="opencl")

    for n in (1, 300, 7):
        feed = rng.standard_normal((n, 512)).astype(np.float32)
        (found,) = exe(x=feed)
        np.testing.assert_allclose(found, pk.interpret(graph, {"x": feed})[0], rtol=1e-5, atol=1e-6)
    assert [type(s).__name__ for s in exe.steps] == ["Launch"]
    assert exe.stats["target"] == "opencl"
