"""The files of the performance library: one for each device, in the cache folder.

``tuned/DEVICE.jsonl`` has a record a line. Writers append under a lock, each batch by one write
that begins a line of its own, so that none loses what another one wrote, and one that is killed
loses nothing that it had finished. What is torn, foreign or stale is read past, and left out when
a file that has grown too large is written anew: under a temporary name, and renamed.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from hashlib import sha256
from typing import TYPE_CHECKING, NamedTuple

from passkit.errors import CacheError
from passkit.library.device import device
from passkit.runtime.native.cache import cache_folder_name, put_file, read_private, trusted_folder
from passkit.runtime.native.compiler import find_compiler
from passkit.values.memo import Held

if TYPE_CHECKING:
    from passkit.plan.evaluator import Evaluator, Record

FOLDER = "tuned"
_WRITING = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK
"""Links are not followed, and a FIFO without a reader is an error instead of an endless wait."""
LIMIT = 8 << 20
"""Bytes that a file may have: some ten thousand records."""


class Snapshot(NamedTuple):
    """What the library had at one moment. ``digest`` is that of its bytes, "" of none."""

    digest: str
    data: bytes

    @property
    def evaluator(self) -> Evaluator:
        """What answers from it; equal snapshots share one."""
        return _evaluator(self.digest, device(), _compiler(), Held(self.data))

    def records(self) -> list[Record]:
        """Its records that hold for this device and compiler."""
        return _records(self.data)


NOTHING = Snapshot("", b"")


def snapshot() -> Snapshot:
    """The library as it is now; an unchanged file is not read again.

    Raises: CacheError when others may write to the cache folder.
    """
    folder = cache_folder_name()
    try:
        facts = os.stat(_path(folder))
    except OSError:
        return NOTHING
    trusted_folder(folder)
    return _snapshot(_path(folder), facts.st_ino, facts.st_size, facts.st_mtime_ns)


@lru_cache(maxsize=4)
def _snapshot(path: str, *facts: int) -> Snapshot:
    try:
        data = read_private(path, 2 * LIMIT)
    except OSError:
        return NOTHING
    return Snapshot(sha256(data).hexdigest(), data) if data else NOTHING


@lru_cache(maxsize=4)
def _evaluator(digest: str, device: str, compiler: str | None, held: Held[bytes]) -> Evaluator:
    from passkit.plan.evaluator import Evaluator  # a warm start finds its plan, and asks nobody

    return Evaluator(_records(held.value), digest)


def _records(data: bytes) -> list[Record]:
    from passkit.library.lines import read

    return read(data.split(b"\n"), device(), _compiler())


def _compiler() -> str | None:
    found = find_compiler()
    return found.fingerprint if found else None


def add(records: Sequence[Record]) -> None:
    """Write records behind those that are there, all of them or, where it fails, none.

    Raises: CacheError when the cache folder is not to be trusted, or cannot be written.
    """
    from passkit.library.lines import written

    if not records:
        return
    here, compiler = device(), _compiler() or ""
    text = "".join(f"\n{written(r, here, compiler)}\n" for r in records)
    with writing() as folder:
        path = _path(folder)
        handle = os.open(path, _WRITING | os.O_APPEND, 0o600)
        try:
            _write(handle, text.encode())
            size = os.fstat(handle).st_size
        finally:
            os.close(handle)
        if size > LIMIT:
            _shrink(path)


def _write(handle: int, data: bytes) -> None:
    """All of it; one call writes it as a rule."""
    while data:
        data = data[os.write(handle, data) :]


def _shrink(path: str) -> None:
    """Write the file anew with one line for each template, the newest, to half the limit."""
    from passkit.library.lines import read, written
    from passkit.plan.evaluator import merged

    lines = read_private(path).split(b"\n")
    here, compiler = device(), _compiler() or ""
    kept: list[str] = []
    size = 0
    for one in reversed(merged(read(lines, here, _compiler())).values()):
        line = written(one, here, compiler)
        size += len(line) + 1
        if size > LIMIT // 2:
            break
        kept.append(line)
    put_file(path, "".join(f"{line}\n" for line in reversed(kept)).encode())


@contextmanager
def writing() -> Iterator[str]:
    """The cache folder, and nobody else writes there what was measured on this device meanwhile.

    The system ends the lock of the dead.

    Raises: CacheError when the folder is not to be trusted, or cannot be written.
    """
    import fcntl  # of systems that run kernels

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
    return os.path.join(folder, FOLDER, f"{device()}.jsonl")


class Content(NamedTuple):
    """What the library's folder has: records for this device, and bytes for all."""

    records: int
    nbytes: int


def content() -> Content:
    """How much there is."""
    found = snapshot()
    records = len(found.evaluator) if found.data else 0
    return Content(records, sum(size for _, size in _files()))


def clear() -> int:
    """Remove what was measured, for every device; the number of bytes that were freed."""
    freed = 0
    for path, size in [*_files()]:
        try:
            os.unlink(path)
        except OSError:
            continue
        freed += size
    return freed


def _files() -> Iterable[tuple[str, int]]:
    """The files that hold something, whichever device wrote them; locks stay where they are."""
    try:
        found = [*os.scandir(os.path.join(cache_folder_name(), FOLDER))]
    except OSError:
        return
    for item in found:
        if item.name.endswith((".jsonl", ".json")) and item.is_file(follow_symlinks=False):
            yield item.path, item.stat(follow_symlinks=False).st_size
