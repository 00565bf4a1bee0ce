"""Philox4x32-10 in NumPy: a random number generator whose words depend on a counter and a key only.

Source: Salmon, Moraes, Dror and Shaw, Parallel Random Numbers: As Easy as 1, 2, 3, section 3.3.
"""

from __future__ import annotations

from typing import Any

import numpy as np

Array = Any

MULTIPLIERS = np.uint64(0xD2511F53), np.uint64(0xCD9E8D57)
KEY_INCREMENTS = np.uint64(0x9E3779B9), np.uint64(0xBB67AE85)
WORD_MASK, WORD_BITS = np.uint64(0xFFFFFFFF), np.uint64(32)
ROUNDS = 10


def philox(counter: Array, stream: Array, key: Array) -> tuple[Array, Array]:
    """Return a block of four random 32-bit words for each element of the broadcast arguments.

    Args:
        counter: the lower two words of the counter, as an int64 array.
        stream: the upper two words of the counter, as an int64 array.
        key: the two words of the key, as an int64 array.

    Returns:
        The lower and the upper two words of the block, as int64 arrays of the broadcast shape,
        NumPy scalars for shape (). The first of two words is in the lower 32 bits.
    """
    inputs = (np.asarray(x).astype(np.int64) for x in (counter, stream, key))
    low, high, secret = (x.view(np.uint64) for x in inputs)
    a, b, c, d = low & WORD_MASK, low >> WORD_BITS, high & WORD_MASK, high >> WORD_BITS
    k, m = secret & WORD_MASK, secret >> WORD_BITS
    for _ in range(ROUNDS):
        p, q = a * MULTIPLIERS[0], c * MULTIPLIERS[1]
        a, b, c, d = (
            (q >> WORD_BITS) ^ b ^ k,
            q & WORD_MASK,
            (p >> WORD_BITS) ^ d ^ m,
            p & WORD_MASK,
        )
        k, m = (k + KEY_INCREMENTS[0]) & WORD_MASK, (m + KEY_INCREMENTS[1]) & WORD_MASK
    return (a | b << WORD_BITS).view(np.int64), (c | d << WORD_BITS).view(np.int64)
