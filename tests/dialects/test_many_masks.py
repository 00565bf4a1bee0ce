"""Kernels with more masks than the machine has registers for them."""

from __future__ import annotations

import numpy as np

import passkit as pk

o = pk.ops


def test_masks_of_both_halves_survive_in_memory() -> None:
    """Compilers have stored a mask of eight lanes as a byte and loaded two."""
    a, b, c = (pk.var(name, (19, 30)) for name in "abc")
    y = o.local_response_normalization(o.concat(a, a, b, c, axis=1), depth_radius=5, beta=0.5)
    graph = pk.Graph([y])
    rng = np.random.default_rng(0)
    feeds = {name: rng.standard_normal((19, 30), np.float32) for name in "abc"}
    (expected,) = pk.interpret(graph, feeds)
    exe = pk.compile(graph)
    for _ in range(3):
        np.testing.assert_allclose(np.asarray(exe(feeds)[0]), expected, rtol=1e-5, atol=1e-6)
