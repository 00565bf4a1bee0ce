"""The kernel cache: trusted folders and intact entries only, bounded, shared by processes."""

from __future__ import annotations

import json
import os
import platform
import time
from collections.abc import Callable
from pathlib import Path

import platformdirs
import pytest

from passkit.errors import CacheError
from passkit.library import store
from passkit.library.cpu_profile import read_cpu_profile
from passkit.library.device import device_key
from passkit.runtime.native import cache as module
from passkit.runtime.native.cache import KernelCache, cache_folder, open_cache, trusted_folder

KEY = "k" * 64
OTHER = "o" * 64


@pytest.fixture
def library(tmp_path: Path) -> Path:
    """A file that plays a shared object."""
    path = tmp_path / "made.so"
    path.write_bytes(b"machine code" * 100)
    return path


def entry_path(cache: KernelCache, key: str = KEY) -> Path:
    """Where an entry is."""
    return cache.kernels / f"{key}.json"


def test_the_folder_is_that_of_the_setting_or_the_user(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """PASSKIT_CACHE_DIR names it; else it is the platform's cache folder."""
    assert cache_folder({"PASSKIT_CACHE_DIR": "/somewhere"}) == Path("/somewhere")
    monkeypatch.delenv("PASSKIT_CACHE_DIR")
    for home in (str(tmp_path), "", "  "):
        monkeypatch.setenv("XDG_CACHE_HOME", home)
        expected = Path(platformdirs.user_cache_dir("passkit", appauthor=False))
        assert cache_folder() == expected
    monkeypatch.setattr(platform, "system", lambda: "Darwin")
    assert cache_folder({}) == expected, "elsewhere platformdirs is asked"


def test_a_new_folder_is_private(tmp_path: Path) -> None:
    """A new folder is accessible to its user only, whatever the umask."""
    before = os.umask(0)
    try:
        folder = trusted_folder(tmp_path / "a" / "b")
    finally:
        os.umask(before)

    assert folder.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("mode", [0o770, 0o702, 0o777])
def test_a_folder_that_others_can_write_raises(
    mode: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Others could place code there that would run; the message says how to change it."""
    folder = tmp_path / "open"
    folder.mkdir()
    folder.chmod(mode)
    monkeypatch.setenv("PASSKIT_CACHE_DIR", str(folder))

    with pytest.raises(CacheError, match=rf"{folder} has mode {mode:04o}: .*chmod 700 {folder}"):
        trusted_folder(folder)
    with pytest.raises(CacheError, match=f"{mode:04o}"):
        open_cache()


def test_a_folder_of_another_user_raises(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only folders of this user and of root are trusted."""
    tmp_path.chmod(0o755)
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    real = os.stat(tmp_path)
    if real.st_uid == 0:
        assert trusted_folder(tmp_path) == tmp_path
        os.chown(tmp_path, 4321, -1)

    with pytest.raises(CacheError, match=r"belongs to user \d+, not to 12345"):
        trusted_folder(tmp_path)


def test_a_file_in_place_of_the_folder_raises(tmp_path: Path) -> None:
    """A file in place of the folder raises an error that names it."""
    path = tmp_path / "file"
    path.touch()

    with pytest.raises(CacheError, match=f"cache folder {path} is a file"):
        trusted_folder(path)


def test_stored_kernels_are_found(tmp_path: Path, library: Path) -> None:
    """Each kernel of a library is found by its compiler's fingerprint, or by any."""
    cache = KernelCache(tmp_path / "c")

    kept = cache.store(library, {KEY: "f", OTHER: "g"}, "gcc")
    actual = cache.find(KEY, "gcc")

    assert actual is not None and (actual.library, actual.symbol) == (kept, "f")
    assert cache.find(OTHER, None) is not None
    assert cache.find(KEY, "another compiler") is None
    assert cache.find("never stored", None) is None
    assert kept.stat().st_mode & 0o077 == 0
    assert list(cache.kernels.glob(".new-*")) == list(cache.libraries.glob(".new-*")) == []


@pytest.mark.parametrize(
    "text",
    [b"", b"{", b"[]", b"3", b'"x"', b"\xff\xfe", b"{}", b"[" * 100_000, b"null"],
)
def test_damaged_entries_are_misses(text: bytes, tmp_path: Path, library: Path) -> None:
    """Damaged and foreign files are misses, and storing replaces them."""
    cache = KernelCache(tmp_path)
    cache.store(library, {KEY: "f"}, "gcc")
    entry_path(cache).write_bytes(text)

    assert cache.find(KEY, "gcc") is None
    cache.store(library, {KEY: "f"}, "gcc")
    assert cache.find(KEY, "gcc") is not None


@pytest.mark.parametrize(
    "change",
    [
        {"format": 0},
        {"key": OTHER},
        {"isa": "other"},
        {"symbol": 3},
        {"library": "../../evil"},
        {"library": None},
        {"library": "0" * 64},
        {"compiler": "other"},
    ],
)
def test_stale_entries_are_misses(change: dict[str, object], tmp_path: Path, library: Path) -> None:
    """Another format, machine, kernel or compiler, and a library elsewhere, are misses."""
    cache = KernelCache(tmp_path)
    cache.store(library, {KEY: "f"}, "gcc")
    path = entry_path(cache)
    path.write_text(json.dumps(json.loads(path.read_text()) | change))

    assert cache.find(KEY, "gcc") is None


def test_a_damaged_library_is_a_miss(tmp_path: Path, library: Path) -> None:
    """A library must have the digest of its name."""
    cache = KernelCache(tmp_path)
    kept = cache.store(library, {KEY: "f"}, "gcc")
    kept.write_bytes(kept.read_bytes()[:-1])

    assert KernelCache(tmp_path).find(KEY, "gcc") is None
    kept.unlink()
    assert KernelCache(tmp_path).find(KEY, "gcc") is None


def test_a_folder_in_place_of_an_entry_is_a_miss(tmp_path: Path, library: Path) -> None:
    """An unreadable entry is a miss; if it cannot be replaced, the library stays where it is."""
    cache = KernelCache(tmp_path)
    entry_path(cache).mkdir(parents=True)

    assert cache.find(KEY, "gcc") is None
    assert cache.keep(library, {KEY: "f"}, "gcc") == library
    assert list(cache.kernels.glob(".new-*")) == []


def test_info_and_clear(tmp_path: Path, library: Path) -> None:
    """info counts kernels, libraries and bytes; clear removes them and nothing else."""
    cache = KernelCache(tmp_path / "c")
    assert (cache.info().kernels, cache.info().nbytes, cache.clear()) == (0, 0, 0)
    cache.store(library, {KEY: "f", OTHER: "g"}, "gcc")
    (cache.folder / "plans").mkdir()
    (cache.folder / "plans" / "mine").write_text("kept")

    info = cache.info()

    assert (info.kernels, info.libraries, info.folder) == (2, 1, cache.folder)
    assert info.nbytes > 1200 and cache.clear() == info.nbytes
    assert cache.info().kernels == 0 and cache.find(KEY, None) is None
    assert (cache.folder / "plans" / "mine").exists()


def test_the_least_recently_used_kernels_are_evicted(tmp_path: Path) -> None:
    """Beyond the limit the kernels used longest ago are removed, with their library."""
    cache = KernelCache(tmp_path / "c", limit=10_000)
    now = time.time()
    for k in range(6):
        path = tmp_path / f"{k}.so"
        path.write_bytes(bytes([k]) * 1500)
        kept = cache.store(path, {f"{k}": "f"}, "gcc")
        for file in (kept, entry_path(cache, f"{k}")):
            os.utime(file, (now - 100_000 + k, now - 100_000 + k))
    assert cache.find("0", "gcc") is not None  # used again: now the newest

    path.write_bytes(b"x" * 1500)
    cache.store(path, {"x": "f"}, "gcc")

    left = [k for k in "012345x" if cache.find(k, "gcc") is not None]
    assert left == ["0", "3", "4", "5", "x"] or left == ["0", "2", "3", "4", "5", "x"]
    assert cache.info().nbytes <= 10_000
    assert cache.info().kernels == cache.info().libraries == len(left)


def test_a_folder_is_not_scanned_after_each_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Written bytes are counted; the folder is scanned again before it can exceed its limit."""
    looks: list[int] = []
    shrink = KernelCache.shrink
    monkeypatch.setattr(KernelCache, "shrink", lambda self: looks.append(1) or shrink(self))

    for k in range(40):
        path = tmp_path / "next.so"
        path.write_bytes(bytes([k]) * 1500)
        cache = KernelCache(tmp_path / "c", limit=50_000)
        cache.store(path, {f"{k}": "f"}, "gcc")
        assert cache.info().nbytes <= 50_000

    assert cache.find("39", "gcc") and cache.find("0", "gcc") is None
    assert 5 < len(looks) < 30


def test_files_that_other_processes_remove_are_skipped(
    tmp_path: Path, library: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process may remove a file during a scan."""
    cache = KernelCache(tmp_path)
    kept = cache.store(library, {KEY: "f"}, "gcc")
    monkeypatch.setattr(Path, "unlink", lambda self, **_: (_ for _ in ()).throw(FileNotFoundError))

    assert cache.clear() == 0 and kept.exists()
    assert module._library_of(tmp_path / "gone") == ""


def test_an_unwritable_folder_is_logged(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, library: Path
) -> None:
    """A read-only folder raises no error: nothing is found or stored."""
    monkeypatch.setenv("PASSKIT_CACHE_DIR", "/sys/kernel/passkit")

    cache = open_cache()

    assert cache.find(KEY, None) is None
    assert cache.keep(library, {KEY: "f"}, "gcc") == library
    assert "cannot write to cache folder /sys/kernel/passkit" in caplog.text


@pytest.mark.parametrize("name", ["kernels", "libraries", "plans", "tuned"])
def test_subfolders_that_others_can_write_raise(name: str, tmp_path: Path) -> None:
    """Subfolders are checked like the folder, and must not be links."""
    folder = trusted_folder(tmp_path / "c")
    inner = folder / name
    inner.mkdir(mode=0o700)
    assert trusted_folder(folder) == folder
    inner.chmod(0o770)
    with pytest.raises(CacheError, match=rf"{inner} has mode 0770: .*chmod 700 {inner}"):
        trusted_folder(folder)
    inner.rmdir()
    inner.symlink_to(tmp_path)
    with pytest.raises(CacheError, match=f"{inner} is a symbolic link"):
        trusted_folder(folder)


def of_another_user(path: Path) -> None:
    """Change the owner of a file, which only root can do."""
    if os.geteuid() != 0:
        pytest.skip("only root can give files away")
    os.chown(path, 4321, -1)


def exchanged_for(kind: str) -> Callable[[Path], None]:
    """A function that changes a file's mode or owner, or exchanges it for a link or a FIFO."""

    def change(path: Path) -> None:
        if kind == "mode":
            path.chmod(0o660)
        elif kind == "owner":
            of_another_user(path)
        else:
            moved = path.rename(path.parents[2] / path.name)
            path.symlink_to(moved) if kind == "link" else os.mkfifo(path)

    return change


@pytest.mark.parametrize("kind", ["mode", "owner", "link", "fifo"])
@pytest.mark.parametrize("which", ["kernels", "libraries"])
def test_files_that_others_can_write_are_misses(
    kind: str, which: str, tmp_path: Path, library: Path
) -> None:
    """Files of others, links and FIFOs are misses at once, and storing replaces them."""
    folder = trusted_folder(tmp_path / "c")
    kept = KernelCache(folder).store(library, {KEY: "f"}, "gcc")
    assert KernelCache(folder).find(KEY, None) is not None
    exchanged_for(kind)(entry_path(KernelCache(folder)) if which == "kernels" else kept)

    cache = KernelCache(folder)

    assert cache.find(KEY, None) is None
    cache.shrink()
    cache.store(library, {KEY: "f"}, "gcc")
    assert KernelCache(folder).find(KEY, None) is not None


def test_a_fifo_in_the_place_of_a_lock_is_an_error(
    fresh_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Writing measurements does not block on a FIFO in place of a lock."""
    (trusted_folder(fresh_cache) / "tuned").mkdir(mode=0o700)
    os.mkfifo(fresh_cache / "tuned" / f"{device_key()}.jsonl.lock")

    expected = pytest.raises(CacheError, match=f"cannot write what was measured to {fresh_cache}")
    with expected, store.lock_folder():
        pass


@pytest.mark.parametrize("kind", ["fifo", "link"])
def test_measurements_and_profiles_are_read_from_files_only(kind: str, fresh_cache: Path) -> None:
    """Links and FIFOs in place of records and CPU profiles are ignored."""
    folder = trusted_folder(fresh_cache) / "tuned"
    folder.mkdir(mode=0o700)
    for name in (f"{device_key()}.jsonl", f"{device_key()}.json"):
        path = folder / name
        os.mkfifo(path) if kind == "fifo" else path.symlink_to("/dev/zero")

    assert store.snapshot() == store.EMPTY
    assert read_cpu_profile() is None
