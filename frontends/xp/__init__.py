"""The array API standard on operation streams: NumPy-like code that runs as fused kernels.

Operations on arrays are queued and run when a result is needed: as a Python number, as a NumPy
array, or by `eval`. What was queued then runs as a few compiled kernels, which are kept for later
runs of the same sequence of operations, at any sizes.

>>> from passkit import xp
>>> x = xp.asarray([1.0, 2.0, 3.0])
>>> float(xp.sum(x * 2))
12.0
"""

from __future__ import annotations

from passkit.frontends.xp.array import Array
from passkit.frontends.xp.control import (
    config,
    eager,
    eval,
    forget_plans,
    inspect,
    pending_operations,
    reset_stats,
    stats,
    stream,
)

__all__ = [
    "Array",
    "config",
    "eager",
    "eval",
    "forget_plans",
    "inspect",
    "pending_operations",
    "reset_stats",
    "stats",
    "stream",
]
