"""The cache of machine code: where it cannot be written, programs run on."""

from __future__ import annotations

import resource
from pathlib import Path

import pytest

from passkit.runtime.device.kernel_builder import ImageCache

IMAGE = bytes(range(256)) * 32
NAME = "0" * 32


@pytest.fixture
def images(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ImageCache:
    """An image cache in its own folder."""
    monkeypatch.setenv("PASSKIT_CACHE_DIR", str(tmp_path / "cache"))
    return ImageCache("a compiler", ".bin")


def test_a_full_temporary_folder_is_avoided(
    images: ImageCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The image is written in the cache folder instead, and found again."""
    monkeypatch.setenv("TMPDIR", "/sys/kernel")

    images.keep(IMAGE, {NAME: "kernel"})
    assert images.find(NAME) == IMAGE


def test_a_full_disk_warns(
    images: ImageCache, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is stored and nothing raised; the log says why."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, before[1]))
    try:
        images.keep(IMAGE, {NAME: "kernel"})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)

    assert images.find(NAME) is None
    assert "cannot write to cache folder" in caplog.text
