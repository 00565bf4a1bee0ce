"""Specimens of the commonest operators, by each of the functions that register them."""

from __future__ import annotations

import numpy as np

from tests.ops.specimens import call, calls, elementwise, reduction

elementwise("add", np.add, kinds="iuf")
elementwise("exp", np.exp, ulps=4)
reduction("reduce_max", np.max, kinds="iuf", empty=False)
reduction("reduce_sum", lambda x, **k: np.sum(x, dtype=x.dtype, **k), kinds="iuf", slack=8)
calls(
    "softmax",
    lambda x, axis: (
        np.exp(x - x.max(axis, keepdims=True))
        / np.exp(x - x.max(axis, keepdims=True)).sum(axis, keepdims=True)
    ),
    [call((5, 7), axis=-1), call((5, 7, 2), axis=1)],
    slack=40,
)
