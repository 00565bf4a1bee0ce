"""CRC-32C checksums of checkpoints are verified, for data of any length, by library or NumPy."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from passkit.errors import ModelError
from tests.frontends.tf_graphdef.checkpoints import bitwise_crc32c, entry, header, table
from tests.frontends.tf_graphdef.internals import open_checkpoint
from tests.raised import ROOT

LENGTHS = (0, 1, 7, 8, 9, 63, 64, 65, 127, 129, 1000, 4097, 200_003)
PUBLISHED = {
    b"123456789": 0xE3069283,
    bytes(32): 0x8A9136AA,
    b"\xff" * 32: 0x62A8AB43,
    bytes(range(32)): 0x46DD794E,
}
"""Data with their checksums. Source: RFC 3720, appendix B.4."""

READ = """
import sys
from tests.frontends.tf_graphdef.internals import open_checkpoint

bundle = open_checkpoint("v", 1 << 22)
for key in bundle.keys:
    bundle.array(key)
print(len(bundle.keys), getattr(sys.modules.get("google_crc32c"), "calls", None))
"""
"""A program that reads and verifies every tensor of a checkpoint in the current folder."""

LIBRARY = """
implementation, calls = {implementation!r}, 0
POLYNOMIAL = 0x82F63B78


def extend(before, data):
    global calls
    calls += 1
    total = before ^ 0xFFFFFFFF
    for byte in bytes(data):
        total ^= byte
        for _ in range(8):
            total = total >> 1 ^ (POLYNOMIAL if total & 1 else 0)
    return total ^ 0xFFFFFFFF
"""
"""A stand-in for Google's library, which counts its calls."""


def arrays() -> list[np.ndarray[tuple[int], np.dtype[np.uint8]]]:
    """Return the published data, and random bytes of each length."""
    published = [np.frombuffer(data, np.uint8) for data in PUBLISHED]
    random = [np.random.default_rng(n).integers(0, 256, n, np.uint8) for n in LENGTHS]
    return [*published, *random]


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    """Write a checkpoint of all arrays, with checksums by definition; return its path."""
    pairs, offset = [header()], 0
    for k, array in enumerate(arrays()):
        pairs.append((f"{k:02}".encode(), entry(array, offset)))
        offset += array.nbytes
    (tmp_path / "v.index").write_bytes(table(pairs))
    data = b"".join(array.tobytes() for array in arrays())
    (tmp_path / "v.data-00000-of-00001").write_bytes(data)
    return tmp_path / "v"


def test_the_definition_gives_published_checksums() -> None:
    """The bitwise definition that these tests compare with gives the examples of RFC 3720."""
    assert {data: bitwise_crc32c(data) for data in PUBLISHED} == PUBLISHED


def test_sums_of_every_length_equal_the_definition(checkpoint: Path) -> None:
    """Tensors of any length are read, and one changed bit is noticed in each."""
    bundle = open_checkpoint(checkpoint, 1 << 22)
    for key, array in zip(bundle.keys, arrays(), strict=True):
        np.testing.assert_array_equal(bundle.array(key), array)

    file = checkpoint.with_name("v.data-00000-of-00001")
    content, offset = file.read_bytes(), 0
    for key, array in zip(bundle.keys, arrays(), strict=True):
        if array.nbytes:
            changed = bytearray(content)
            changed[offset + array.nbytes // 2] ^= 1
            file.write_bytes(changed)
            with pytest.raises(ModelError, match=rf"'{key}'.* were changed .* 0x"):
                open_checkpoint(checkpoint, 1 << 22).array(key)
        offset += array.nbytes


def read_in_new_process(folder: Path) -> str:
    """Run READ with modules in ``folder`` before others, and return what it prints."""
    path = os.pathsep.join([str(folder), str(ROOT)])
    done = subprocess.run(
        [sys.executable, "-c", READ],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_numpy_computes_sums_without_the_library(checkpoint: Path) -> None:
    """Where Google's library is not installed, NumPy computes the same checksums."""
    (checkpoint.parent / "google_crc32c.py").write_text("raise ImportError('not installed')")

    assert read_in_new_process(checkpoint.parent) == f"{len(arrays())} None"


@pytest.mark.parametrize(("implementation", "is_used"), [("c", True), ("python", False)])
def test_the_library_is_used_unless_it_is_slower(
    implementation: str, is_used: bool, checkpoint: Path
) -> None:
    """Google's library computes checksums with CPU instructions, but its fallback is not used."""
    library = LIBRARY.format(implementation=implementation)
    (checkpoint.parent / "google_crc32c.py").write_text(library)
    count, calls = read_in_new_process(checkpoint.parent).split()

    assert int(count) == len(arrays())
    assert (int(calls) >= len(arrays())) is is_used
