"""Blocks of checkpoints that Snappy compressed are read, and damage is detected."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from passkit.errors import ModelError
from tests.frontends.tf_graphdef.checkpoints import checked, entry, header, table, table_of_block
from tests.frontends.tf_graphdef.internals import open_checkpoint

SNAPPY = b"\1"
"""The byte after a block that Snappy compressed."""
LITERAL_NBYTES = 60
"""The most bytes of a literal whose length is in its tag."""


def keys_of(folder: Path, index: bytes) -> list[str]:
    """Write an index of a checkpoint, and return the names of its tensors."""
    (folder / "v.index").write_bytes(index)
    (folder / "v.data-00000-of-00001").write_bytes(np.float32(1).tobytes())
    return list(open_checkpoint(folder / "v", 1 << 20).keys)


def decompressed_size(n: int) -> bytes:
    """Return a size as Snappy writes it: in groups of seven bits, the lowest first."""
    return bytes([n & 127 | 128]) + decompressed_size(n >> 7) if n > 127 else bytes([n])


def literals(data: bytes) -> bytes:
    """Return bytes as Snappy literals, each with its length in one byte."""
    chunks = [data[k : k + LITERAL_NBYTES] for k in range(0, len(data), LITERAL_NBYTES)]
    return b"".join(bytes([len(chunk) - 1 << 2]) + chunk for chunk in chunks)


@pytest.mark.parametrize(
    ("elements", "text"),
    [
        (b"\10abc", b"abc"),
        (b"\4ab\x0e\2\0", b"ababab"),  # a copy of 4, from 2 before, that overlaps itself
        (b"\4ab\x11\2", b"ab" * 5),  # the short form of a copy, of 4 to 11
        (b"\4ab\x0f\2\0\0\0", b"ababab"),  # an offset of four bytes
        (b"\xf0\x43" + b"z" * 68 + b"\6\1\0", b"z" * 70),  # a length of one byte
        (b"\xf4\x2b\1" + bytes(300), bytes(300)),  # a length of two bytes
    ],
)
def test_literals_and_copies_are_decompressed(elements: bytes, text: bytes, tmp_path: Path) -> None:
    """Each form of literal and copy gives its bytes, here those of a tensor's name."""

    def compress(block: bytes) -> bytes:
        before, after = block.split(text)
        return decompressed_size(len(block)) + literals(before) + elements + literals(after)

    pairs = [header(), (text, entry(np.ones((), np.float32)))]
    assert keys_of(tmp_path, table(pairs, 1, compress)) == [text.decode()]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"\5\10ab", "5 bytes, found a literal of 3 bytes at offset 1, after 0"),
        (b"\2\10abc", "2 bytes, found a literal of 3 bytes at offset 1, after 0"),
        (
            b"\6\4ab\x0e\3\0",
            "6 bytes, found a copy of 4 bytes from 3 bytes before at offset 4, after 2",
        ),
        (b"\6\4ab\x0e\0\0", "6 bytes, found a copy of 4 bytes from 0 bytes before at offset 4"),
        (
            b"\5\4ab\x0e\2\0",
            "5 bytes, found a copy of 4 bytes from 2 bytes before at offset 4, after 2",
        ),
        (b"\6\4ab\x0e\2", "6 bytes, found a copy of 4 bytes from 2 bytes before at offset 4"),
        (b"\5\4ab", "5 bytes, found the end at offset 4, after 2"),
    ],
)
def test_damaged_blocks_are_refused(data: bytes, message: str, tmp_path: Path) -> None:
    """A block must give exactly the bytes that it declares."""
    with pytest.raises(
        ModelError, match=f"the block at 0 of .*: expected a Snappy block of {message}"
    ):
        keys_of(tmp_path, table_of_block(checked(data + SNAPPY)))


def test_a_large_size_is_refused_before_it_is_taken(tmp_path: Path) -> None:
    """The declared size is taken from the budget before decompression."""
    with pytest.raises(ModelError, match="the block .*, decompressed, needs 4,294,967,295 bytes"):
        keys_of(tmp_path, table_of_block(checked(b"\xff\xff\xff\xff\x0f" + SNAPPY)))


def test_any_bytes_are_refused_or_read(tmp_path: Path) -> None:
    """Random blocks raise no other error than ModelError, most of them that of Snappy."""
    rng = np.random.default_rng(0)
    messages = []
    for _ in range(300):
        size = int(rng.integers(1, 60))
        data = bytes([size]) + rng.integers(0, 256, 40, dtype=np.uint8).tobytes()
        try:
            keys_of(tmp_path, table_of_block(checked(data + SNAPPY)))
        except ModelError as error:
            messages.append(str(error))
    assert sum("expected a Snappy block" in message for message in messages) > 200
