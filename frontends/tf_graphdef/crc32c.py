"""CRC-32C of whole arrays, as TensorFlow's checkpoints carry it.

Google's library computes it by the CPU's instructions, at gigabytes a second, where it is
installed; else NumPy does, many times slower. There a checksum is linear over bits: the bytes are
cut into lanes that are folded side by side, eight bytes of each at a time, and the lanes' sums are
put together as if each had been moved to its place by so many bytes of zeros. Source: Castagnoli's
polynomial; masking as in LevelDB.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

_POLYNOMIAL = 0x82F63B78
_LANES = 4096
_MASK = 0xFFFFFFFF
_BITS = np.arange(32, dtype=np.uint32)


@cache
def _tables() -> Array:
    """For each of eight bytes, what it becomes on its way to the end of them."""
    tables = np.zeros((8, 256), np.uint32)
    first = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        first = np.where(first & 1, (first >> 1) ^ np.uint32(_POLYNOMIAL), first >> 1)
    tables[0] = first
    for k in range(1, 8):
        tables[k] = first[tables[k - 1] & 255] ^ (tables[k - 1] >> 8)
    return tables


def _moved(sums: Array, move: Array) -> Array:
    """Sums after a run of zero bytes; ``move`` says where each of 32 bits goes."""
    bits = (sums[:, None] >> _BITS) & 1
    found: Array = np.bitwise_xor.reduce(bits * move, axis=1)
    return found


@cache
def _move(power: int) -> Array:
    """Where each bit goes over ``2**power`` bytes of zeros."""
    if power:
        half = _move(power - 1)
        return _moved(half, half)
    one = np.uint32(1) << _BITS
    found: Array = _tables()[0][one & 255] ^ (one >> 8)
    return found


def _over(count: int) -> Array:
    """Where each bit goes over ``count`` bytes of zeros."""
    found = np.uint32(1) << _BITS
    for power in range(count.bit_length()):
        if count >> power & 1:
            found = _moved(found, _move(power))
    return found


def _folded(words: Array) -> int:
    """The sum, from 0 on, of words of shape (lanes, steps, 2); lanes are a power of two."""
    tables = _tables()
    lanes, steps, _ = words.shape
    sums = np.zeros(lanes, np.uint32)
    for step in range(steps):
        low, high = sums ^ words[:, step, 0], words[:, step, 1]
        sums = tables[3][high & 255] ^ tables[7][low & 255]
        for k in (1, 2, 3):
            sums ^= tables[3 - k][(high >> 8 * k) & 255] ^ tables[7 - k][(low >> 8 * k) & 255]
    move = _over(8 * steps)
    while len(sums) > 1:
        sums = _moved(sums[::2], move) ^ sums[1::2]
        move = _moved(move, move)
    return int(sums[0])


def crc32c(data: Any, before: int = 0) -> int:
    """The checksum of a buffer; ``before`` is that of the bytes in front of it.

    >>> hex(crc32c(b"123456789"))
    '0xe3069283'
    """
    flat = np.frombuffer(data, np.uint8)
    extend = _library()
    if extend is not None:
        return extend(before, flat if not flat.flags.writeable else flat.tobytes())
    return _by_numpy(flat, before)


@cache
def _library() -> Callable[[int, Any], int] | None:
    """The library's function, unless it is missing or is its own fallback in Python."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it warns of its fallback
            import google_crc32c
    except ImportError:
        return None
    found: Callable[[int, Any], int] = google_crc32c.extend
    return found if google_crc32c.implementation == "c" else None


def _by_numpy(flat: Array, before: int) -> int:
    """The checksum of bytes, in lanes."""
    lanes = 1 << min(max(len(flat) // 64, 1).bit_length() - 1, _LANES.bit_length() - 1)
    turn = 8 * lanes
    rest = len(flat) % turn
    front = np.zeros(turn, np.uint8)  # leading zeros leave a sum of 0 as it is
    front[turn - rest :] = flat[:rest]
    total = _folded(front.view("<u4").reshape(lanes, 1, 2)) if rest else 0
    if len(flat) > rest:
        body = flat[rest:].view("<u4").reshape(lanes, -1, 2)
        total = _after(total, len(flat) - rest) ^ _folded(body)
    return total ^ _after(before ^ _MASK, len(flat)) ^ _MASK


def _after(total: int, count: int) -> int:
    """A sum after ``count`` bytes of zeros."""
    return int(_moved(np.array([total], np.uint32), _over(count))[0])


def masked(checksum: int) -> int:
    """A checksum as it is stored beside the data it is of."""
    return ((checksum >> 15 | checksum << 17) + 0xA282EAD8) & _MASK
