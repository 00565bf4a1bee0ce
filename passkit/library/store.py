"""The files of the performance library: one for each device, in the cache folder.

``tuned/DEVICE.jsonl`` has one record per line. Writers append under a lock, each batch by one write
that begins a new line, so that concurrent writers lose nothing, and a writer that is killed loses
at most its last batch. Lines that are damaged, of another device or stale are skipped, and dropped
when a file that has grown too large is rewritten: under a temporary name, and renamed.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from hashlib import sha256
from typing import TYPE_CHECKING, NamedTuple

from passkit.errors import CacheError
from passkit.library.device import device_key
from passkit.runtime.native.cache import cache_folder_name, put_file, read_private, trusted_folder
from passkit.runtime.native.compiler import find_compiler
from passkit.values.memo import UncachedArgument

if TYPE_CHECKING:
    from passkit.library.evaluator import Evaluator, Record

FOLDER = "tuned"
"""The folder of the library inside the cache folder."""
_WRITING = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK
"""Links are not followed, and a FIFO without a reader is an error instead of an endless wait."""
MAX_FILE_BYTES = 8 << 20
"""The size at which a file is rewritten: some ten thousand records."""


class Snapshot(NamedTuple):
    """The library of this device at one moment: its bytes and their digest, "" if it is empty."""

    digest: str
    data: bytes

    @property
    def evaluator(self) -> Evaluator:
        """The evaluator of these records; equal snapshots share one."""
        return _evaluator(self.digest, device_key(), _compiler(), UncachedArgument(self.data))

    def records(self) -> list[Record]:
        """Return the records that hold for this device and compiler; invalid lines are skipped."""
        return _records(self.data)


EMPTY = Snapshot("", b"")


def snapshot() -> Snapshot:
    """Return the library as it is now, `EMPTY` if there is no file; an unchanged one is not reread.

    Raises: CacheError if there is a file and other users may write to the cache folder.
    """
    folder = cache_folder_name()
    try:
        facts = os.stat(_path(folder))
    except OSError:
        return EMPTY
    trusted_folder(folder)
    return _snapshot(_path(folder), facts.st_ino, facts.st_size, facts.st_mtime_ns)


@lru_cache(maxsize=4)
def _snapshot(path: str, *facts: int) -> Snapshot:
    """Return the snapshot of the file ``path``; ``facts`` identify its contents.

    It is `EMPTY` if the file is empty or cannot be read.
    """
    try:
        data = read_private(path, 2 * MAX_FILE_BYTES)
    except OSError:
        return EMPTY
    return Snapshot(sha256(data).hexdigest(), data) if data else EMPTY


@lru_cache(maxsize=4)
def _evaluator(
    digest: str, device: str, compiler: str | None, held: UncachedArgument[bytes]
) -> Evaluator:
    """Return the evaluator of the library's records, cached by the digest of its bytes.

    Device and compiler (None without one) are part of the cache's key and have no other effect; the
    bytes, in ``held``, are not.
    """
    from passkit.library.evaluator import Evaluator  # a warm start does not evaluate plans

    return Evaluator(_records(held.value), digest)


def _records(data: bytes) -> list[Record]:
    """Return the records in the library's bytes that hold for this device and compiler."""
    from passkit.library.record_lines import read_records  # a warm start reads none

    return read_records(data.split(b"\n"), device_key(), _compiler())


def _compiler() -> str | None:
    """Return the fingerprint of the C++ compiler, None without a compiler."""
    compiler = find_compiler()
    return compiler.fingerprint if compiler else None


def add(records: Sequence[Record]) -> None:
    """Append records to the library, in one write, under a lock.

    Without records nothing happens. A file that then has more than `MAX_FILE_BYTES` is rewritten,
    with the newest records only.

    Raises: CacheError if other users may write to the cache folder, or it cannot be written.
    """
    from passkit.library.record_lines import record_line

    if not records:
        return
    device, compiler = device_key(), _compiler() or ""
    text = "".join(f"\n{record_line(r, device, compiler)}\n" for r in records)
    with lock_folder() as folder:
        path = _path(folder)
        handle = os.open(path, _WRITING | os.O_APPEND, 0o600)
        try:
            _write_all(handle, text.encode())
            size = os.fstat(handle).st_size
        finally:
            os.close(handle)
        if size > MAX_FILE_BYTES:
            _shrink(path)


def _write_all(handle: int, data: bytes) -> None:
    """Write all bytes of ``data`` to the file descriptor ``handle``; one call usually does.

    Raises: OSError where they cannot be written.
    """
    while data:
        data = data[os.write(handle, data) :]


def _shrink(path: str) -> None:
    """Rewrite the file ``path`` with the valid records of this device and compiler, merged.

    It gets at most half of `MAX_FILE_BYTES`; the oldest records are dropped. Raises: OSError where
    it cannot be read or rewritten.
    """
    from passkit.library.evaluator import merged
    from passkit.library.record_lines import read_records, record_line

    lines = read_private(path).split(b"\n")
    device, compiler = device_key(), _compiler() or ""
    newest: list[str] = []
    size = 0
    for record in reversed(merged(read_records(lines, device, _compiler())).values()):
        line = record_line(record, device, compiler)
        size += len(line) + 1
        if size > MAX_FILE_BYTES // 2:
            break
        newest.append(line)
    put_file(path, "".join(f"{line}\n" for line in reversed(newest)).encode())


@contextmanager
def lock_folder() -> Iterator[str]:
    """Lock this device's measurements for writing, and yield the path of the cache folder.

    The folder is created if it is missing. The system releases the lock of a process that ends.

    Raises: CacheError if other users may write to the folder, or for an OSError, also one inside
    the `with` block.
    """
    import fcntl  # only systems that run kernels have it

    folder = cache_folder_name()
    try:
        trusted_folder(folder)
        path = _path(folder)
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        lock = os.open(f"{path}.lock", _WRITING, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield folder
        finally:
            os.close(lock)
    except CacheError:
        raise
    except OSError as error:
        raise CacheError(
            f"cannot write what was measured to {folder} ({error}); set PASSKIT_CACHE_DIR to a "
            f"folder of your own"
        ) from None


def _path(folder: str) -> str:
    """Return the path of this device's file in a cache folder, `FOLDER`/DEVICE.jsonl."""
    return os.path.join(folder, FOLDER, f"{device_key()}.jsonl")


class LibraryContent(NamedTuple):
    """The number of records for this device, and the bytes of all devices' files."""

    records: int
    nbytes: int


def content() -> LibraryContent:
    """Return how much the library holds: this device's records, and the bytes of all devices.

    Raises: CacheError if there is a file of this device and other users may write to the cache
    folder.
    """
    current = snapshot()
    records = len(current.evaluator) if current.data else 0
    return LibraryContent(records, sum(size for _, size in _files()))


def clear() -> int:
    """Remove the measurements of all devices, profiles included; return the number of bytes freed.

    Files that cannot be removed stay and do not count.
    """
    freed = 0
    for path, size in [*_files()]:
        try:
            os.unlink(path)
        except OSError:
            continue
        freed += size
    return freed


def _files() -> Iterable[tuple[str, int]]:
    """Yield path and size of each file of measurements, of any device; locks do not count."""
    try:
        items = [*os.scandir(os.path.join(cache_folder_name(), FOLDER))]
    except OSError:
        return
    for item in items:
        if item.name.endswith((".jsonl", ".json")) and item.is_file(follow_symlinks=False):
            yield item.path, item.stat(follow_symlinks=False).st_size
