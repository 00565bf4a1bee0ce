"""CRC-32C checksums equal those in checkpoints, for data of any length."""

from __future__ import annotations

import sys
from types import ModuleType

import numpy as np
import pytest

from passkit.frontends.tf_graphdef import crc32c as module
from passkit.frontends.tf_graphdef.crc32c import crc32c, masked
from tests.frontends.tf_graphdef.checkpoints import bitwise_crc32c, masked_crc32c


@pytest.mark.parametrize("length", [0, 1, 7, 8, 9, 63, 64, 65, 127, 129, 1000, 4097])
def test_sums_of_every_length_equal_the_definition(length: int) -> None:
    """The checksum equals the definition's, computed at once or continued."""
    data = np.random.default_rng(length).integers(0, 256, length, np.uint8).tobytes()

    assert crc32c(data) == bitwise_crc32c(data)
    assert crc32c(data[length // 3 :], crc32c(data[: length // 3])) == bitwise_crc32c(data)


@pytest.fixture(params=["library", "numpy"])
def with_or_without_library(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Run a test with Google's library (or a stand-in for it) and without."""
    asked = str(request.param)
    stand_in = ModuleType("google_crc32c")
    stand_in.__dict__.update(implementation="c", extend=lambda before, data: before + 7 * len(data))
    monkeypatch.setitem(sys.modules, "google_crc32c", stand_in if asked == "library" else None)
    module.library_crc32c.cache_clear()
    request.addfinalizer(module.library_crc32c.cache_clear)
    return asked


def test_the_library_is_used_where_installed(with_or_without_library: str) -> None:
    """The library continues a checksum of any buffer; without it the result is the same."""
    for data in (b"123456789", np.frombuffer(b"123456789", np.uint8), bytearray(b"123456789")):
        results = [crc32c(data), crc32c(data, 5)]
        assert results == (
            [63, 68] if with_or_without_library == "library" else [0xE3069283, results[1]]
        )


def test_the_librarys_own_fallback_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """The library's Python fallback is not used, since NumPy is faster."""
    stand_in = ModuleType("google_crc32c")
    stand_in.__dict__.update(implementation="python", extend=lambda before, data: 0)
    monkeypatch.setitem(sys.modules, "google_crc32c", stand_in)
    module.library_crc32c.cache_clear()
    assert crc32c(b"123456789") == 0xE3069283
    module.library_crc32c.cache_clear()


def test_the_real_library_agrees() -> None:
    """The library and NumPy agree, for read-only and writable buffers."""
    library = pytest.importorskip("google_crc32c")
    for length in (0, 1, 9, 4097):
        data = np.random.default_rng(length).integers(0, 256, length, np.uint8)
        assert library.value(data.tobytes()) == module.numpy_crc32c(data, 0) == crc32c(data)


def test_sums_of_published_examples() -> None:
    """Checksums equal RFC 3720's examples, masked ones LevelDB's."""
    assert crc32c(bytes(32)) == 0x8A9136AA
    assert crc32c(b"\xff" * 32) == 0x62A8AB43
    assert crc32c(bytes(range(32))) == 0x46DD794E
    assert masked(crc32c(b"foo")) != crc32c(b"foo")
    assert masked(0) == 0xA282EAD8
    assert masked(crc32c(b"foo")) == masked_crc32c(b"foo")


def test_long_data_equals_the_sum_of_its_parts() -> None:
    """A million bytes in parallel chunks give the same checksum as sequential parts."""
    data = np.random.default_rng(0).integers(0, 256, 1_000_003, np.uint8)
    parts = 0
    for begin in range(0, len(data), 333_333):
        parts = crc32c(data[begin : begin + 333_333], parts)

    assert crc32c(data) == parts
