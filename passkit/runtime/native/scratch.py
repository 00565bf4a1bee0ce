"""Folders for compilers at work. Those of killed processes are removed by the next process.

``TMPDIR/passkit-UID`` holds a folder for each compilation, whose file ``lock`` its process keeps
locked. The system releases the locks of a process that ends, however it ends.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import stat
import tempfile
import weakref
from contextlib import suppress

from passkit.errors import CompilerError

ROOM = 1 << 20
"""Bytes that a place must take for a compiler to be started there."""


class WorkFolder:
    """A folder of one compilation, removed by `cleanup` or when its process lets go of it."""

    def __init__(self, name: str, lock: int) -> None:
        self.name = name
        self._cleanup = weakref.finalize(self, _remove, name, lock, os.getpid())

    def __enter__(self) -> str:
        return self.name

    def __exit__(self, *unused: object) -> None:
        self.cleanup()

    def cleanup(self) -> None:
        """Remove the folder and what is in it; a second call does nothing."""
        self._cleanup()


def _remove(name: str, lock: int, process: int) -> None:
    """Remove a folder in the process that made it; a forked one only closes its lock."""
    if os.getpid() == process:
        shutil.rmtree(name, ignore_errors=True)
    os.close(lock)


def work_folder(spare: str | None = None) -> WorkFolder:
    """Create a folder for a compiler in TMPDIR or, where that has no room, in the folder ``spare``.

    Raises: CompilerError when neither place can be written.
    """
    failures: list[str] = []
    for place in (os.environ.get("TMPDIR", ""), *([spare] if spare else [])):
        try:
            return _folder_in(os.path.join(place or tempfile.gettempdir(), _name()))
        except OSError as error:
            failures.append(str(error))
    raise CompilerError(
        f"there is no room for the compiler's files ({'; '.join(failures)}): it needs {ROOM} bytes "
        "at least; set TMPDIR to a folder with room, or raise the limit of file sizes (ulimit -f)"
    )


def _name() -> str:
    return f"passkit-{os.geteuid()}"


def _folder_in(base: str) -> WorkFolder:
    """Create a locked folder in ``base`` after removing those of processes that ended.

    Raises: OSError when it cannot be created, has no room, or others may write to ``base``.
    """
    with suppress(FileExistsError):
        os.mkdir(base, 0o700)
    facts = os.lstat(base)
    if not stat.S_ISDIR(facts.st_mode) or facts.st_uid != os.geteuid() or facts.st_mode & 0o022:
        raise PermissionError(f"{base} is not a folder of this user alone")
    guard = os.open(base, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(guard, fcntl.LOCK_EX)  # nobody sweeps a folder that is not yet locked
        _sweep(base)
        name = tempfile.mkdtemp(prefix="run-", dir=base)
        lock = os.open(os.path.join(name, "lock"), os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        fcntl.flock(lock, fcntl.LOCK_EX)
    finally:
        os.close(guard)
    folder = WorkFolder(name, lock)
    try:
        os.posix_fallocate(lock, 0, ROOM)
        os.ftruncate(lock, 0)
    except OSError as error:
        folder.cleanup()
        raise OSError(error.errno, error.strerror, base) from None
    return folder


def _sweep(base: str) -> None:
    """Remove the folders in ``base`` whose locks nobody holds."""
    for item in os.scandir(base):
        if not item.name.startswith("run-") or not item.is_dir(follow_symlinks=False):
            continue
        try:
            lock = os.open(os.path.join(item.path, "lock"), os.O_RDWR | os.O_NOFOLLOW)
        except OSError:
            shutil.rmtree(item.path, ignore_errors=True)  # its process ended before it was locked
            continue
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            continue  # its process is at work
        else:
            shutil.rmtree(item.path, ignore_errors=True)
        finally:
            os.close(lock)
