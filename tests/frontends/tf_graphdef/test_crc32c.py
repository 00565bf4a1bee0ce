"""Checksums are those that checkpoints carry, whatever the length."""

from __future__ import annotations

import sys
from types import ModuleType

import numpy as np
import pytest

from passkit.frontends.tf_graphdef import crc32c as module
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


@pytest.fixture(params=["library", "numpy"])
def either(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """With Google's library, or one that stands for it, and without."""
    asked = str(request.param)
    stand_in = ModuleType("google_crc32c")
    stand_in.__dict__.update(implementation="c", extend=lambda before, data: before + 7 * len(data))
    monkeypatch.setitem(sys.modules, "google_crc32c", stand_in if asked == "library" else None)
    module._library.cache_clear()
    request.addfinalizer(module._library.cache_clear)
    return asked


def test_the_library_is_used_where_it_is(either: str) -> None:
    """It continues the sum before, of any buffer; without it the sum is the same as ever."""
    for data in (b"123456789", np.frombuffer(b"123456789", np.uint8), bytearray(b"123456789")):
        found = [crc32c(data), crc32c(data, 5)]
        assert found == ([63, 68] if either == "library" else [0xE3069283, found[1]])


def test_the_librarys_own_fallback_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """In Python byte by byte it would be slower than NumPy."""
    stand_in = ModuleType("google_crc32c")
    stand_in.__dict__.update(implementation="python", extend=lambda before, data: 0)
    monkeypatch.setitem(sys.modules, "google_crc32c", stand_in)
    module._library.cache_clear()
    assert crc32c(b"123456789") == 0xE3069283
    module._library.cache_clear()


def test_the_real_library_agrees() -> None:
    """Its sums are NumPy's, of what is read-only and what is not."""
    library = pytest.importorskip("google_crc32c")
    for length in (0, 1, 9, 4097):
        data = np.random.default_rng(length).integers(0, 256, length, np.uint8)
        assert library.value(data.tobytes()) == module._by_numpy(data, 0) == crc32c(data)


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
