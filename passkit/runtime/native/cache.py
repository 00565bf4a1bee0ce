"""The kernel cache: compiled kernels on disk, shared by all processes of a user.

``kernels/KEY.json`` names a function in ``libraries/SHA256.so``; several kernels may share a
library. Files are written under a temporary name and renamed. Damaged, foreign and stale files are
treated as missing: the kernel is compiled again and the file replaced.
"""

from __future__ import annotations

import json
import os
import platform
import re
import stat
import time
from collections.abc import Iterable, Iterator, Mapping
from hashlib import sha256
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from passkit.errors import CacheError
from passkit.runtime.native.compiler import instruction_set

if TYPE_CHECKING:
    from pathlib import Path

FORMAT = 1
DEFAULT_LIMIT = 1 << 29
_FILL_AFTER_EVICTION = 7 / 8
"""The part of the limit that eviction leaves, so that the next write does not evict again."""
_ALLOWANCE_DIVISOR = 8
"""A process writes this fraction of the free bytes before it scans again: others write, too."""
_TOUCH_SECONDS = 3600.0
AnyFolder = TypeVar("AnyFolder", str, "Path")
_SUBFOLDERS = ("kernels", "libraries", "plans", "streams", "tuned")
_DIGEST = re.compile(r"[0-9a-f]{64}")
_allowance: dict[str, int] = {}
"""For each folder the bytes that this process may write before it scans the folder again."""


class CacheInfo(NamedTuple):
    """The contents of a cache folder.

    Attributes:
        folder: the folder.
        kernels: the number of kernels.
        libraries: the number of shared objects.
        nbytes: the size of all its files in bytes, plans included.
    """

    folder: Path
    kernels: int
    libraries: int
    nbytes: int


class CachedKernel(NamedTuple):
    """An entry of the cache: the path of a library, and the symbol of a kernel in it."""

    path: str
    symbol: str

    @property
    def library(self) -> Path:
        """Return the path of the shared object."""
        return _path(self.path)


def cache_folder(environ: Mapping[str, str] = os.environ) -> Path:
    """Return PASSKIT_CACHE_DIR, else this user's cache folder, without creating it.

    ``environ`` are the environment variables.
    """
    return _path(cache_folder_name(environ))


def cache_folder_name(environ: Mapping[str, str] = os.environ) -> str:
    """Return the path of `cache_folder` as text: a warm start does not import pathlib.

    It is PASSKIT_CACHE_DIR in ``environ``, the environment variables, if that is not empty; on
    Linux else XDG_CACHE_HOME/passkit or ~/.cache/passkit, elsewhere the folder that platformdirs
    says.
    """
    if named := environ.get("PASSKIT_CACHE_DIR"):
        return named
    if (
        platform.system() == "Linux"
    ):  # as platformdirs does, whose import takes a fifth of a warm start
        base = environ.get("XDG_CACHE_HOME", "").strip() or "~/.cache"
        return os.path.expanduser(os.path.join(base, "passkit"))
    import platformdirs

    return platformdirs.user_cache_dir("passkit", appauthor=False)


def _path(name: str) -> Path:
    """Return a path, importing pathlib only when it is needed."""
    from pathlib import Path  # the import takes a tenth of a warm start, which needs no Path

    return Path(name)


def trusted_folder(folder: AnyFolder) -> AnyFolder:
    """Return ``folder`` itself after checking it and its subfolders; create it if it is missing.

    Subfolders are not created. The folder, but none of them, may be a symbolic link.

    Raises:
        CacheError: The folder is a file, it or a subfolder belongs to another user than this one
            and root or is writable by others, or a subfolder is a symbolic link.
        OSError: The folder is missing and cannot be created.
    """
    try:
        if not os.path.isdir(folder):
            _path(str(folder)).mkdir(mode=0o700, parents=True, exist_ok=True)
    except FileExistsError:
        raise CacheError(
            f"cache folder {folder} is a file; remove it, or set PASSKIT_CACHE_DIR to a folder"
        ) from None
    _check_folder(folder, os.stat(folder))
    for name in _SUBFOLDERS:
        path = os.path.join(folder, name)
        try:
            facts = os.lstat(path)
        except OSError:
            continue
        if stat.S_ISDIR(facts.st_mode) or stat.S_ISLNK(facts.st_mode):
            _check_folder(path, facts)  # other files contain no kernels
    return folder


def _check_folder(folder: str | Path, facts: os.stat_result) -> None:
    """Check that only this user and root can write to a folder, whose status is ``facts``.

    Raises:
        CacheError: It belongs to a user other than this one and root, its group or others can write
            to it, or ``facts`` are those of a symbolic link.
    """
    if stat.S_ISLNK(facts.st_mode):
        raise CacheError(
            f"cache folder {folder} is a symbolic link, and kernels in it would be run; remove it, "
            "or set PASSKIT_CACHE_DIR to a folder of your own"
        )
    if facts.st_uid not in (os.geteuid(), 0):
        raise CacheError(
            f"cache folder {folder} belongs to user {facts.st_uid}, not to {os.geteuid()}, and "
            "kernels in it would be run; set PASSKIT_CACHE_DIR to a folder of your own"
        )
    if facts.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        mode = stat.S_IMODE(facts.st_mode)
        raise CacheError(
            f"cache folder {folder} has mode {mode:04o}: others may write kernels that would be "
            f"run; chmod 700 {folder}, or set PASSKIT_CACHE_DIR to a folder of your own"
        )


def read_private(path: str | Path, limit: int = -1) -> bytes:
    """Return the contents of a file that only this user or root can have written.

    Args:
        path: the file; opening it does not block, even if it is a FIFO.
        limit: the most bytes to read, -1 for all.

    Raises:
        OSError: The file cannot be read or is a symbolic link.
        PermissionError: It is not a regular file, belongs to another user than this one and root,
            or is writable by its group or others.
    """
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    with open(os.open(path, flags), "rb") as file:
        facts = os.fstat(file.fileno())
        if not stat.S_ISREG(facts.st_mode):
            raise PermissionError(f"{path} is not a regular file")
        if facts.st_uid not in (os.geteuid(), 0):
            raise PermissionError(f"{path} belongs to user {facts.st_uid}")
        if facts.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            raise PermissionError(f"{path} has mode {stat.S_IMODE(facts.st_mode):04o}")
        return file.read(limit)


def open_cache() -> KernelCache:
    """Return the kernel cache of this user; create its folder if it is missing.

    If it cannot be created, a warning is logged and the cache is empty.

    Raises:
        CacheError: The folder is a file, or others can write to it; see `trusted_folder`.
    """
    folder = cache_folder_name(os.environ)
    try:
        trusted_folder(folder)
    except CacheError:
        raise
    except OSError as error:
        warn_unwritable(folder, error)
    return KernelCache(folder)


def warn_unwritable(folder: str | Path, error: Exception) -> None:
    """Log a warning that the cache cannot be written, so that each process compiles its kernels.

    Args:
        folder: the cache's folder.
        error: the reason.
    """
    import logging  # only needed here

    logging.getLogger("passkit.cache").warning(
        "cannot write to cache folder %s (%s); set PASSKIT_CACHE_DIR", folder, error
    )


class KernelCache:
    """The kernels in one folder.

    Args:
        folder: the folder.
        limit: the size in bytes beyond which the least recently used kernels are evicted.
    """

    def __init__(self, folder: str | Path, limit: int = DEFAULT_LIMIT) -> None:
        self.name, self.limit = os.fspath(folder), limit
        self._verified: dict[str, bool] = {}

    @property
    def folder(self) -> Path:
        """Return the path of the cache's folder."""
        return _path(self.name)

    @property
    def kernels(self) -> Path:
        """Return the path of the folder of entries."""
        return self.folder / "kernels"

    @property
    def libraries(self) -> Path:
        """Return the path of the folder of shared objects."""
        return self.folder / "libraries"

    def find(self, key: str, fingerprint: str | None) -> CachedKernel | None:
        """Return the entry of a kernel, and mark it as used now, at most once an hour.

        Args:
            key: the digest of the kernel.
            fingerprint: that of the compiler that compiled it; None for any.

        Returns:
            None if there is no entry, if it is damaged or of another machine or compiler, or if
            its library is missing or damaged.
        """
        path = os.path.join(self.name, "kernels", f"{key}.json")
        try:
            entry = json.loads(read_private(path))
            library, symbol = entry["library"], entry["symbol"]
            is_valid = (
                entry["format"] == FORMAT
                and entry["key"] == key
                and entry["isa"] == instruction_set()
                and fingerprint in (None, entry["compiler"])
                and isinstance(symbol, str)
                and _DIGEST.fullmatch(library) is not None
            )
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            return None
        if not is_valid or not self._is_intact(library):
            return None
        self._touch(path)
        return CachedKernel(os.path.join(self.name, "libraries", f"{library}.so"), symbol)

    def _is_intact(self, digest: str) -> bool:
        """Return whether the library of a digest exists and its contents have that digest.

        An intact library is read once per process, a missing or damaged one at each call.
        """
        if not self._verified.get(digest):
            self._verified[digest] = self._machine_code(digest) is not None
        return self._verified[digest]

    def _machine_code(self, digest: str) -> bytes | None:
        """Return the contents of the shared object of a digest.

        Returns: None if there is none, or if its contents do not have that digest.
        """
        try:
            data = read_private(os.path.join(self.name, "libraries", f"{digest}.so"))
        except OSError:
            return None
        return data if sha256(data).hexdigest() == digest else None

    def machine_code(self, entry: CachedKernel) -> bytes | None:
        """Read and verify the library of an entry; return its bytes, None if they have changed."""
        return self._machine_code(os.path.basename(entry.path).removesuffix(".so"))

    def _touch(self, path: str) -> None:
        """Update the time of last use of an entry, at most once an hour.

        Nothing happens where the folder is read-only.
        """
        try:
            if time.time() - os.stat(path).st_mtime > _TOUCH_SECONDS:
                os.utime(path)
        except OSError:
            pass  # the folder is read-only

    def store(self, library: Path, symbols: Mapping[str, str], fingerprint: str) -> Path:
        """Add a compiled library, and evict kernels where the cache exceeds its limit.

        Args:
            library: its path; the file is copied.
            symbols: the name of each kernel's function, by the kernel's digest.
            fingerprint: that of the compiler.

        Returns:
            The path of the copy in the cache.

        Raises:
            CacheError: The folder is a file, or others can write to it.
            OSError: The folder cannot be written, or the library cannot be read.
        """
        trusted_folder(self.folder)
        for folder in (self.kernels, self.libraries):
            folder.mkdir(mode=0o700, exist_ok=True)
        data = library.read_bytes()
        digest = sha256(data).hexdigest()
        stored = self.libraries / f"{digest}.so"
        put_file(stored, data)
        self._verified[digest] = True
        written = len(data)
        for key, symbol in symbols.items():
            entry = {
                "format": FORMAT,
                "key": key,
                "isa": instruction_set(),
                "symbol": symbol,
                "compiler": fingerprint,
                "library": digest,
            }
            text = json.dumps(entry).encode()
            put_file(self.kernels / f"{key}.json", text)
            written += len(text)
        self._enforce_limit(written)
        return stored

    def keep(self, library: Path, symbols: Mapping[str, str], fingerprint: str) -> Path:
        """Add a library like `store`, or leave it where it is if the folder cannot be written.

        In the latter case a warning is logged.

        Args:
            library: the shared object's path.
            symbols: the name of each kernel's function, by the kernel's digest.
            fingerprint: that of the compiler.

        Returns: The path to load it from.

        Raises: CacheError where the cache is not private to the user.
        """
        try:
            return self.store(library, symbols, fingerprint)
        except CacheError:
            raise
        except OSError as error:
            warn_unwritable(self.folder, error)
            return library

    def copy_to(self, other: KernelCache, keys: Iterable[str] | None = None) -> int:
        """Copy kernels to another cache, except those that it has.

        Keys without an intact entry are skipped.

        Args:
            other: the other cache.
            keys: the keys of the kernels, by default all.

        Returns:
            The number of kernels that were copied, 0 where this cache has no folder of kernels.

        Raises:
            CacheError: Others can write to one of the folders.
        """
        if not self.kernels.is_dir():
            return 0
        trusted_folder(self.folder)
        names = [p.stem for p in self.kernels.glob("*.json")] if keys is None else keys
        copied = 0
        for key in names:
            entry = self.find(key, None)
            if entry is not None and other.find(key, None) is None:
                metadata = json.loads(read_private(self.kernels / f"{key}.json"))
                other.keep(entry.library, {key: entry.symbol}, metadata["compiler"])
                copied += 1
        return copied

    def info(self) -> CacheInfo:
        """Return the folder, its numbers of kernels and libraries, and the bytes of its files.

        Plans and streams count in the bytes; measurements do not.
        """
        files = list(self._files())
        libraries = sum(path.suffix == ".so" for path, _ in files)
        kernels = sum(path.suffix == ".json" for path, _ in files)
        nbytes = sum(facts.st_size for _, facts in files)
        return CacheInfo(self.folder, kernels, libraries, nbytes)

    def clear(self) -> int:
        """Remove every kernel, library, stream and plan, and return the number of bytes freed.

        Files that cannot be removed are skipped; measurements stay.
        """
        freed = 0
        for path, facts in self._files():
            freed += facts.st_size if _remove(path) else 0
        self._verified.clear()
        return freed

    def _enforce_limit(self, written: int) -> None:
        """Evict kernels if the folder exceeds its limit after ``written`` more bytes.

        The folder, which may have thousands of kernels, is not scanned after each write, but when
        this process has used up its allowance.
        """
        _allowance[self.name] = _allowance.get(self.name, 0) - written
        if _allowance[self.name] < 0:
            _allowance[self.name] = (self.limit - self.shrink()) // _ALLOWANCE_DIVISOR

    def shrink(self) -> int:
        """Evict the least recently used files beyond ``limit``; return the remaining bytes.

        A library goes with all its kernels; plans and streams are evicted, too. Up to the limit
        nothing is removed; above it, an eighth of the limit becomes free, if files can be removed.
        """
        files = list(self._files())
        total = sum(facts.st_size for _, facts in files)
        if total <= self.limit:
            return total
        excess = total - int(self.limit * _FILL_AFTER_EVICTION)
        users: dict[str, list[Path]] = {}
        used: dict[str, float] = {}
        for path, facts in files:
            digest = _library_of(path) if path.suffix == ".json" else path.stem
            users.setdefault(digest, []).append(path)
            used[digest] = max(used.get(digest, 0.0), facts.st_mtime)
        sizes = {path: facts.st_size for path, facts in files}
        for digest in sorted(used, key=used.__getitem__):
            if excess <= 0:
                break
            freed = sum(sizes[path] for path in users[digest] if _remove(path))
            excess, total = excess - freed, total - freed
            self._verified.pop(digest, None)
        return total

    def _files(self) -> Iterator[tuple[Path, os.stat_result]]:
        """Yield the path and status of each file of kernels, libraries, plans and streams.

        Symbolic links are skipped.
        """
        for folder in ("kernels", "libraries", "plans", "streams"):
            try:
                items = list(os.scandir(os.path.join(self.name, folder)))
            except OSError:
                continue
            for item in items:
                if folder == "plans" and not item.name.endswith(".plan"):
                    continue
                try:
                    if item.is_file(follow_symlinks=False):
                        yield _path(item.path), item.stat(follow_symlinks=False)
                except OSError:
                    continue  # another process removed it


def _library_of(entry: Path) -> str:
    """Return the digest of the library that an entry's file names, "" if it is damaged."""
    try:
        return str(json.loads(read_private(entry))["library"])
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return ""


def _remove(path: Path) -> bool:
    """Remove a file; return whether that was possible, False if there is none."""
    try:
        path.unlink()
    except OSError:
        return False
    return True


def put_file(path: str | Path, data: bytes) -> None:
    """Write ``data`` to the file ``path`` atomically: readers see the old or the new contents.

    The file gets mode 0600. Its folder must exist.

    Raises:
        OSError: The file cannot be written; a file that was there stays as it was.
    """
    import tempfile  # a warm start writes nothing

    handle, name = tempfile.mkstemp(prefix=".new-", dir=os.path.dirname(path))
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        os.replace(name, path)
    except BaseException:
        _remove(_path(name))
        raise
