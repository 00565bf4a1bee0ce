"""Philox4x32-10 in NumPy: a counter and a key become random words, whatever was drawn before.

Source: Salmon, Moraes, Dror and Shaw, Parallel Random Numbers: As Easy as 1, 2, 3, section 3.3.
"""

from __future__ import annotations

from typing import Any

import numpy as np

Array = Any

MULTIPLIERS = np.uint64(0xD2511F53), np.uint64(0xCD9E8D57)
STEPS = np.uint64(0x9E3779B9), np.uint64(0xBB67AE85)
WORD, HALF = np.uint64(0xFFFFFFFF), np.uint64(32)
ROUNDS = 10


def philox(counter: Array, stream: Array, key: Array) -> tuple[Array, Array]:
    """The two halves of a block, each of two words, for int64 arrays that broadcast.

    The words of a half are its lower and upper 32 bits; so are those of the counter and the key.
    """
    inputs = (np.asarray(x).astype(np.int64) for x in (counter, stream, key))
    low, high, secret = (x.view(np.uint64) for x in inputs)
    a, b, c, d = low & WORD, low >> HALF, high & WORD, high >> HALF
    k, m = secret & WORD, secret >> HALF
    for _ in range(ROUNDS):
        p, q = a * MULTIPLIERS[0], c * MULTIPLIERS[1]
        a, b, c, d = (q >> HALF) ^ b ^ k, q & WORD, (p >> HALF) ^ d ^ m, p & WORD
        k, m = (k + STEPS[0]) & WORD, (m + STEPS[1]) & WORD
    return (a | b << HALF).view(np.int64), (c | d << HALF).view(np.int64)
