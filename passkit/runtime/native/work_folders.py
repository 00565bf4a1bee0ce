"""Temporary folders of compilations; those of killed processes are removed by the next process.

``TMPDIR/passkit-UID`` has a folder for each compilation, whose file ``lock`` its process keeps
locked. The operating system releases the locks of a process when it ends for any reason.
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

MIN_FREE_NBYTES = 1 << 20
"""The least free space in bytes of a folder in which a compiler is started."""


class WorkFolder:
    """A folder of one compilation, removed by `cleanup` or at the end of a `with` block or process.

    Args:
        name: its path.
        lock: the descriptor of its locked file.
    """

    def __init__(self, name: str, lock: int) -> None:
        self.name = name
        self._cleanup = weakref.finalize(self, _remove, name, lock, os.getpid())

    def __enter__(self) -> str:
        """Return the folder's path."""
        return self.name

    def __exit__(self, *unused: object) -> None:
        """Remove the folder."""
        self.cleanup()

    def cleanup(self) -> None:
        """Remove the folder with its contents; a second call does nothing."""
        self._cleanup()


def _remove(name: str, lock: int, process: int) -> None:
    """Remove a folder in the process that created it; a forked process only closes the lock.

    Args:
        name: the folder.
        lock: the descriptor of its lock file, which is closed.
        process: the id of the process that created it.
    """
    if os.getpid() == process:
        shutil.rmtree(name, ignore_errors=True)
    os.close(lock)


def work_folder(spare: str | None = None) -> WorkFolder:
    """Create a folder for a compilation, in TMPDIR or the system's temporary folder.

    Args:
        spare: a folder that is used where TMPDIR cannot be written or has too little space; None
            for none.

    Raises:
        CompilerError: Neither folder can be written, belongs to this user alone, and has
            `MIN_FREE_NBYTES` of space.
    """
    failures: list[str] = []
    for folder in (os.environ.get("TMPDIR", ""), *([spare] if spare else [])):
        try:
            return _folder_in(os.path.join(folder or tempfile.gettempdir(), _name()))
        except OSError as error:
            failures.append(str(error))
    raise CompilerError(
        f"the compiler's files need a folder with at least {MIN_FREE_NBYTES} free bytes, and none "
        f"can be used: {'; '.join(failures)}; set TMPDIR to a folder with free space, or raise the "
        "limit of file sizes (ulimit -f)"
    )


def _name() -> str:
    """Return the name of the user's folder within the temporary folder, "passkit-UID"."""
    return f"passkit-{os.geteuid()}"


def _folder_in(base: str) -> WorkFolder:
    """Create a locked folder in ``base``, and remove those of processes that ended.

    ``base`` is created if it is missing, its parent is not.

    Raises:
        OSError: It cannot be created, or has less than `MIN_FREE_NBYTES` of space.
        PermissionError: ``base`` is no folder, belongs to another user, or others may write to it.
    """
    with suppress(FileExistsError):
        os.mkdir(base, 0o700)
    facts = os.lstat(base)
    if not stat.S_ISDIR(facts.st_mode) or facts.st_uid != os.geteuid() or facts.st_mode & 0o022:
        raise PermissionError(
            f"{base} is not a folder that belongs to this user and only this user can write to"
        )
    guard = os.open(base, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(
            guard, fcntl.LOCK_EX
        )  # so that no process removes a folder that is not yet locked
        _remove_abandoned(base)
        name = tempfile.mkdtemp(prefix="run-", dir=base)
        lock = os.open(os.path.join(name, "lock"), os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        fcntl.flock(lock, fcntl.LOCK_EX)
    finally:
        os.close(guard)
    folder = WorkFolder(name, lock)
    try:
        os.posix_fallocate(lock, 0, MIN_FREE_NBYTES)
        os.ftruncate(lock, 0)
    except OSError as error:
        folder.cleanup()
        raise OSError(error.errno, error.strerror, base) from None
    return folder


def _remove_abandoned(base: str) -> None:
    """Remove the folders in ``base`` whose locks no process holds."""
    for item in os.scandir(base):
        if not item.name.startswith("run-") or not item.is_dir(follow_symlinks=False):
            continue
        try:
            lock = os.open(os.path.join(item.path, "lock"), os.O_RDWR | os.O_NOFOLLOW)
        except OSError:
            shutil.rmtree(
                item.path, ignore_errors=True
            )  # its process ended before it locked the folder
            continue
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            continue  # its process is running
        else:
            shutil.rmtree(item.path, ignore_errors=True)
        finally:
            os.close(lock)
