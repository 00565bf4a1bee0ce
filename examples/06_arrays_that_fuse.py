"""Write NumPy-like code: operations are queued, and run as a few fused kernels when needed."""

import time

import numpy as np

from passkit import xp


def potential(x, y):
    """A made-up energy of points, 13 operations on arrays."""
    r2 = x * x + y * y
    wave = xp.sin(3 * x) * xp.exp(-0.5 * r2)
    return xp.sqrt(r2 + 1) + 0.25 * wave * wave


rng = np.random.default_rng(0)
points = rng.standard_normal((2, 4_000_000), dtype=np.float32)
x, y = xp.asarray(points[0]), xp.asarray(points[1])

with xp.inspect() as runs:
    energy = xp.mean(potential(x, y))  # nothing has run yet
    mean = float(energy)
print(runs[0])


def numpy_potential(x, y):
    """The same in NumPy, which writes an array for each operation."""
    r2 = x * x + y * y
    wave = np.sin(3 * x) * np.exp(-0.5 * r2)
    return np.sqrt(r2 + 1) + 0.25 * wave * wave


def milliseconds(function):
    """Return the best of five calls."""
    times = []
    for _ in range(5):
        begin = time.perf_counter()
        function()
        times.append(time.perf_counter() - begin)
    return min(times) * 1e3


fused = milliseconds(lambda: float(xp.mean(potential(x, y))))
numpy = milliseconds(lambda: float(np.mean(numpy_potential(*points))))
print(f"NumPy {numpy:.1f} ms, fused {fused:.1f} ms: {numpy / fused:.1f} times as fast")
assert abs(mean - np.mean(numpy_potential(*points), dtype=np.float64)) < 1e-4
