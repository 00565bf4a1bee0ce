"""Checkpoints and their checksums, written by the definition of their formats.

An index is a table of LevelDB: blocks of sorted keys with shared prefixes, each followed by its
kind of compression and a masked CRC-32C. The tables of this module have one block.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.frontends.tf_graphdef.models import NUMBERS, message

Entry, Header = message("BundleEntryProto"), message("BundleHeaderProto")


def bitwise_crc32c(data: bytes) -> int:
    """Compute CRC-32C bit by bit, by its definition (RFC 3720, appendix B.4)."""
    total = 0xFFFFFFFF
    for byte in data:
        total ^= byte
        for _ in range(8):
            total = total >> 1 ^ (0x82F63B78 if total & 1 else 0)
    return total ^ 0xFFFFFFFF


def masked_crc32c(data: bytes) -> int:
    """Return the checksum of ``data`` as LevelDB stores it: rotated by 15 bits, plus a constant."""
    total = bitwise_crc32c(data)
    return ((total >> 15 | total << 17) + 0xA282EAD8) & 0xFFFFFFFF


def varint(n: int) -> bytes:
    """Return a number in groups of seven bits, the lowest first."""
    out = bytearray()
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    return bytes([*out, n])


def block(
    pairs: list[tuple[bytes, bytes]], kind: int = 0, compress: Callable[[bytes], bytes] = bytes
) -> bytes:
    """Return a block of a LevelDB table, with shared key prefixes."""
    out, last = b"", b""
    for key, value in pairs:
        shared = next((k for k in range(len(key)) if key[: k + 1] != last[: k + 1]), len(key))
        rest = key[shared:]
        out += varint(shared) + varint(len(rest)) + varint(len(value)) + rest + value
        last = key
    return checked(compress(out + bytes(4) + (1).to_bytes(4, "little")) + bytes([kind]))


def checked(data: bytes) -> bytes:
    """Return ``data`` followed by its checksum."""
    return data + masked_crc32c(data).to_bytes(4, "little")


def table(
    pairs: list[tuple[bytes, bytes]], kind: int = 0, compress: Callable[[bytes], bytes] = bytes
) -> bytes:
    """Return a LevelDB table of one block."""
    return table_of_block(block(pairs, kind, compress))


def table_of_block(data: bytes) -> bytes:
    """Return a LevelDB table whose only block is given."""
    index = block([(b"\xff", varint(0) + varint(len(data) - 5))])
    handles = varint(0) + varint(0) + varint(len(data)) + varint(len(index) - 5)
    magic = (0xDB4775248B80FB57).to_bytes(8, "little")
    return data + index + handles.ljust(40, b"\0") + magic


def entry(array: np.ndarray[Any, Any], offset: int = 0, **changes: Any) -> bytes:
    """Return the index entry of an array at an offset, with some fields replaced."""
    fields = {
        "dtype": NUMBERS[array.dtype.name],
        "shape": {"dim": [{"size": n} for n in array.shape]},
        "offset": offset,
        "size": array.nbytes,
        "crc32c": masked_crc32c(array.tobytes()),
    }
    data: bytes = Entry(**(fields | changes)).SerializeToString()
    return data


def header(**fields: Any) -> tuple[bytes, bytes]:
    """Return the first key and value of an index."""
    return b"", Header(**{"num_shards": 1, **fields}).SerializeToString()
