"""Snappy blocks are decompressed, and damage is detected."""

from __future__ import annotations

import numpy as np
import pytest

from passkit.errors import ModelError
from passkit.frontends.tf_graphdef.proto import Budget
from passkit.frontends.tf_graphdef.snappy import decompress


def decompress_block(data: bytes, limit: int = 1 << 20) -> bytes:
    """Decompress a block within a budget."""
    return decompress(data, "the block", Budget(limit, limit))


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"\0", b""),
        (b"\3\10abc", b"abc"),
        (b"\6\4ab\x0e\2\0", b"ababab"),  # a copy of 4, from 2 before, that overlaps itself
        (b"\x0a\4ab\x11\2", b"ab" * 5),  # the short form of a copy, of 4 to 11
        (b"\6\4ab\x0f\2\0\0\0", b"ababab"),  # an offset of four bytes
        (b"\x46\xf0\x43" + b"z" * 68 + b"\6\1\0", b"z" * 70),  # a length of one byte
        (b"\xac\2\xf4\x2b\1" + bytes(300), bytes(300)),  # a length of two bytes
    ],
)
def test_literals_and_copies_are_decompressed(data: bytes, text: bytes) -> None:
    """Each form of literal and copy gives its bytes."""
    assert decompress_block(data) == text


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"\5\10ab", "at 1 it has a literal of 3 bytes, with 0 of 5 bytes decompressed"),
        (b"\2\10abc", "at 1 it has a literal of 3 bytes, with 0 of 2"),
        (b"\6\4ab\x0e\3\0", "at 4 it has a copy of 4 bytes from 3 before, with 2 of 6"),
        (b"\6\4ab\x0e\0\0", "at 4 it has a copy of 4 bytes from 0 before"),
        (b"\5\4ab\x0e\2\0", "at 4 it has a copy of 4 bytes from 2 before, with 2 of 5"),
        (b"\6\4ab\x0e\2", "at 4 it has a copy of 4 bytes from 2 before"),
        (b"\5\4ab", "at 4 it has the end, with 2 of 5 bytes"),
    ],
)
def test_damaged_blocks_are_refused(data: bytes, message: str) -> None:
    """A block must give exactly the bytes that it declares."""
    with pytest.raises(ModelError, match=f"the block is no Snappy block: {message}"):
        decompress_block(data)


def test_a_large_size_is_refused_before_it_is_taken() -> None:
    """The declared size is taken from the budget before decompression."""
    with pytest.raises(ModelError, match="the block, decompressed, needs 4,294,967,295 bytes"):
        decompress_block(b"\xff\xff\xff\xff\x0f")


def test_any_bytes_give_their_size_or_an_error() -> None:
    """Random blocks give bytes of the declared size or an error."""
    rng = np.random.default_rng(0)
    for _ in range(300):
        size = int(rng.integers(1, 60))
        data = bytes([size]) + rng.integers(0, 256, 40, dtype=np.uint8).tobytes()
        try:
            assert len(decompress_block(data)) == size
        except ModelError:
            continue
