"""CRC-32C of arrays, as TensorFlow's checkpoints store it.

Google's library computes it with CPU instructions at gigabytes per second, where it is installed.
Otherwise NumPy computes it, many times slower: a CRC is linear over bits, so the data is cut into
chunks whose registers advance side by side, eight bytes per step. The registers are then combined:
appending zero bytes to a chunk multiplies its register by a 32 by 32 bit matrix. Sources:
Castagnoli's polynomial; masking as in LevelDB.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

_POLYNOMIAL = 0x82F63B78
_LANES = 4096
_MASK = 0xFFFFFFFF
_BITS = np.arange(32, dtype=np.uint32)


@cache
def _tables() -> NDArray[Any]:
    """Return the slicing-by-8 tables, uint32 (8, 256).

    Element [k, b] is the CRC register after the byte b and k zero bytes.
    """
    tables = np.zeros((8, 256), np.uint32)
    first = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        first = np.where(first & 1, (first >> 1) ^ np.uint32(_POLYNOMIAL), first >> 1)
    tables[0] = first
    for k in range(1, 8):
        tables[k] = first[tables[k - 1] & 255] ^ (tables[k - 1] >> 8)
    return tables


def _apply_bit_matrix(registers: NDArray[Any], matrix: NDArray[Any]) -> NDArray[Any]:
    """Multiply CRC registers by a bit matrix, which stands for appending a run of zero bytes.

    Args:
        registers: uint32 registers.
        matrix: 32 columns as uint32: the image of each bit.

    Returns:
        The new registers; the argument is unchanged.
    """
    bits = (registers[:, None] >> _BITS) & 1
    moved: NDArray[Any] = np.bitwise_xor.reduce(bits * matrix, axis=1)
    return moved


@cache
def _zeros_matrix(power: int) -> NDArray[Any]:
    """Return the bit matrix of appending ``2**power`` zero bytes."""
    if power:
        half_matrix = _zeros_matrix(power - 1)
        return _apply_bit_matrix(half_matrix, half_matrix)
    bits = np.uint32(1) << _BITS
    matrix: NDArray[Any] = _tables()[0][bits & 255] ^ (bits >> 8)
    return matrix


def _run_matrix(count: int) -> NDArray[Any]:
    """Return the bit matrix of appending ``count`` zero bytes."""
    matrix = np.uint32(1) << _BITS
    for power in range(count.bit_length()):
        if count >> power & 1:
            matrix = _apply_bit_matrix(matrix, _zeros_matrix(power))
    return matrix


def _crc_of_chunks(words: NDArray[Any]) -> int:
    """Return the CRC register of data, started at 0.

    ``words`` is the data as uint32 (chunks, steps, 2), where the number of chunks is a power of
    two.
    """
    tables = _tables()
    num_chunks, steps, _ = words.shape
    registers = np.zeros(num_chunks, np.uint32)
    for step in range(steps):
        low, high = registers ^ words[:, step, 0], words[:, step, 1]
        registers = tables[3][high & 255] ^ tables[7][low & 255]
        for k in (1, 2, 3):
            registers ^= tables[3 - k][(high >> 8 * k) & 255] ^ tables[7 - k][(low >> 8 * k) & 255]
    matrix = _run_matrix(8 * steps)
    while len(registers) > 1:
        registers = _apply_bit_matrix(registers[::2], matrix) ^ registers[1::2]
        matrix = _apply_bit_matrix(matrix, matrix)
    return int(registers[0])


def crc32c(data: Any, before: int = 0) -> int:
    """Return the CRC-32C of a buffer.

    Args:
        data: Any contiguous buffer.
        before: Checksum of the bytes in front of it, to continue a checksum; 0 for none.

    Returns:
        The checksum as an unsigned 32-bit integer.

    Raises:
        TypeError: If ``data`` is no buffer.
        ValueError: If the buffer is not contiguous.

    >>> hex(crc32c(b"123456789"))
    '0xe3069283'
    """
    data_bytes = np.frombuffer(data, np.uint8)
    extend = library_crc32c()
    if extend is not None:
        return extend(
            before, data_bytes if not data_bytes.flags.writeable else data_bytes.tobytes()
        )
    return numpy_crc32c(data_bytes, before)


@cache
def library_crc32c() -> Callable[[int, Any], int] | None:
    """Return google_crc32c.extend; None if it is not installed, or only its Python fallback is.

    The function takes a checksum and bytes, and returns the checksum continued over these.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it warns of its fallback
            import google_crc32c
    except ImportError:
        return None
    extend: Callable[[int, Any], int] = google_crc32c.extend
    return extend if google_crc32c.implementation == "c" else None


def numpy_crc32c(data_bytes: NDArray[Any], before: int) -> int:
    """Return the CRC-32C of a uint8 vector, computed with NumPy in chunks of equal length.

    ``data_bytes`` is the vector, ``before`` the checksum of the bytes in front of it, 0 for none.
    """
    num_chunks = 1 << min(max(len(data_bytes) // 64, 1).bit_length() - 1, _LANES.bit_length() - 1)
    stride = 8 * num_chunks
    num_leading = len(data_bytes) % stride
    leading = np.zeros(stride, np.uint8)  # leading zeros leave a sum of 0 as it is
    leading[stride - num_leading :] = data_bytes[:num_leading]
    register = _crc_of_chunks(leading.view("<u4").reshape(num_chunks, 1, 2)) if num_leading else 0
    if len(data_bytes) > num_leading:
        words = data_bytes[num_leading:].view("<u4").reshape(num_chunks, -1, 2)
        register = _append_zeros(register, len(data_bytes) - num_leading) ^ _crc_of_chunks(words)
    return register ^ _append_zeros(before ^ _MASK, len(data_bytes)) ^ _MASK


def _append_zeros(register: int, count: int) -> int:
    """Return a CRC register after ``count`` further zero bytes."""
    return int(_apply_bit_matrix(np.array([register], np.uint32), _run_matrix(count))[0])


def masked(checksum: int) -> int:
    """Return a 32-bit checksum rotated and offset, as LevelDB stores it; also a 32-bit number."""
    return ((checksum >> 15 | checksum << 17) + 0xA282EAD8) & _MASK
