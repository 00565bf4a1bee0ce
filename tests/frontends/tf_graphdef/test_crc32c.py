"""Checksums are those that checkpoints carry, whatever the length."""

from __future__ import annotations

import numpy as np
import pytest

from passkit.frontends.tf_graphdef.crc32c import crc32c, masked


def slow(data: bytes) -> int:
    """The definition, bit by bit."""
    total = 0xFFFFFFFF
    for byte in data:
        total ^= byte
        for _ in range(8):
            total = total >> 1 ^ (0x82F63B78 if total & 1 else 0)
    return total ^ 0xFFFFFFFF


@pytest.mark.parametrize("length", [0, 1, 7, 8, 9, 63, 64, 65, 127, 129, 1000, 4097])
def test_every_length(length: int) -> None:
    """The definition's sum, in one piece or continued."""
    data = np.random.default_rng(length).integers(0, 256, length, np.uint8).tobytes()

    assert crc32c(data) == slow(data)
    assert crc32c(data[length // 3 :], crc32c(data[: length // 3])) == slow(data)


def test_known_sums() -> None:
    """RFC 3720's examples, and the mask of LevelDB."""
    assert crc32c(bytes(32)) == 0x8A9136AA
    assert crc32c(b"\xff" * 32) == 0x62A8AB43
    assert crc32c(bytes(range(32))) == 0x46DD794E
    assert masked(crc32c(b"foo")) != crc32c(b"foo")
    assert masked(0) == 0xA282EAD8


def test_a_million_bytes() -> None:
    """Lanes side by side give what one after the other does."""
    data = np.random.default_rng(0).integers(0, 256, 1_000_003, np.uint8)
    parts = 0
    for begin in range(0, len(data), 333_333):
        parts = crc32c(data[begin : begin + 333_333], parts)

    assert crc32c(data) == parts
