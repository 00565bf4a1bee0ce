"""Decompression of raw Snappy blocks, as LevelDB tables hold them.

Source: `format_description.txt` of google/snappy.
"""

from __future__ import annotations

from passkit.errors import ModelError
from passkit.frontends.tf_graphdef.proto import Budget, varint


def decompressed(data: bytes, where: str, budget: Budget) -> bytes:
    r"""The bytes that a block of Snappy stands for.

    Args:
        data: The compressed block: its decompressed size, then literals and copies of what was
            decompressed before them.
        where: How messages call the block.
        budget: Pays for the decompressed size before anything is decompressed.

    Raises: ModelError when the block is damaged, or exceeds the budget.

    >>> decompressed(b"\x06\x04ab\x0e\x02\x00", "a block", Budget(99, 99))
    b'ababab'
    """
    size, at = varint(data, 0, len(data))
    budget.take(size, f"{where}, decompressed,")
    out = bytearray()
    while at < len(data):
        start, tag = at, data[at]
        at += 1
        kind, length = tag & 3, (tag >> 2) + 1
        if kind == 0:  # a literal: its length, or how many bytes hold the length
            if length > 60:
                extra = length - 60
                length = int.from_bytes(data[at : at + extra], "little") + 1
                at += extra
            literal = data[at : at + length]
            at += length
            if at > len(data) or len(out) + length > size:
                raise _damaged(where, start, f"a literal of {length:,} bytes", len(out), size)
            out += literal
            continue
        if kind == 1:  # a copy of 4 to 11 bytes, from up to 2047 bytes before
            length = 4 + (tag >> 2 & 7)
            offset, at = (tag >> 5) << 8 | int.from_bytes(data[at : at + 1], "little"), at + 1
        else:  # a copy of up to 64 bytes, from an offset of 2 or 4 bytes
            width = 2 if kind == 2 else 4
            offset, at = int.from_bytes(data[at : at + width], "little"), at + width
        if at > len(data) or not 0 < offset <= len(out) or len(out) + length > size:
            what = f"a copy of {length} bytes from {offset:,} before"
            raise _damaged(where, start, what, len(out), size)
        first = len(out) - offset
        part = out[first : first + length]
        out += (part * -(-length // len(part)))[:length]  # a copy may repeat what it copies
    if len(out) != size:
        raise _damaged(where, at, "the end", len(out), size)
    return bytes(out)


def _damaged(where: str, at: int, what: str, so_far: int, size: int) -> ModelError:
    return ModelError(
        f"{where} is no Snappy block: at {at:,} it has {what}, with {so_far:,} of {size:,} bytes "
        f"decompressed; copy the checkpoint again"
    )
