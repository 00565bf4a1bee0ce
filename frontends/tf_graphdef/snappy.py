"""Decompression of raw Snappy blocks, as LevelDB tables hold them.

Source: `format_description.txt` of google/snappy.
"""

from __future__ import annotations

from passkit.errors import ModelError
from passkit.frontends.tf_graphdef.proto import Budget, varint


def decompress(data: bytes, where: str, budget: Budget) -> bytes:
    r"""Decompress a raw Snappy block.

    Args:
        data: The compressed block: the decompressed size, then literals and copies of earlier
            output.
        where: Name of the block in errors.
        budget: Memory budget; the decompressed size is taken from it before decompression.

    Returns:
        The decompressed bytes.

    Raises:
        ModelError: If the block is damaged, or exceeds the budget.

    >>> decompress(b"\x06\x04ab\x0e\x02\x00", "a block", Budget(99, 99))
    b'ababab'
    """
    size, position = varint(data, 0, len(data))
    budget.take(size, f"{where}, decompressed,")
    out = bytearray()
    while position < len(data):
        start, tag = position, data[position]
        position += 1
        tag_type, length = tag & 3, (tag >> 2) + 1
        if tag_type == 0:  # a literal: its length, or how many bytes hold the length
            if length > 60:
                extra = length - 60
                length = int.from_bytes(data[position : position + extra], "little") + 1
                position += extra
            literal = data[position : position + length]
            position += length
            if position > len(data) or len(out) + length > size:
                raise _damaged(where, start, f"a literal of {length:,} bytes", len(out), size)
            out += literal
            continue
        if tag_type == 1:  # a copy of 4 to 11 bytes, from up to 2047 bytes before
            length = 4 + (tag >> 2 & 7)
            offset, position = (
                (tag >> 5) << 8 | int.from_bytes(data[position : position + 1], "little"),
                position + 1,
            )
        else:  # a copy of up to 64 bytes, from an offset of 2 or 4 bytes
            width = 2 if tag_type == 2 else 4
            offset, position = (
                int.from_bytes(data[position : position + width], "little"),
                position + width,
            )
        if position > len(data) or not 0 < offset <= len(out) or len(out) + length > size:
            element = f"a copy of {length} bytes from {offset:,} bytes before"
            raise _damaged(where, start, element, len(out), size)
        first = len(out) - offset
        repeated = out[first : first + length]
        out += (repeated * -(-length // len(repeated)))[:length]  # a copy may repeat what it copies
    if len(out) != size:
        raise _damaged(where, position, "the end", len(out), size)
    return bytes(out)


def _damaged(
    where: str, position: int, element: str, num_decompressed: int, size: int
) -> ModelError:
    """Return the error for a damaged block.

    The error is returned, not raised.

    Args:
        where: Name of the block.
        position: Offset of the damaged element.
        element: Description of that element.
        num_decompressed: Number of bytes decompressed so far.
        size: Number of bytes that the block declares.
    """
    return ModelError(
        f"{where}: expected a Snappy block of {size:,} bytes, found {element} at offset "
        f"{position:,}, after {num_decompressed:,} decompressed bytes; copy the checkpoint again"
    )
