"""Compiled kernels on disk, one entry a kernel, safe for many processes.

``kernels/KEY.json`` names a function in ``libraries/SHA256.so``; several kernels may share a
library. Files are written under a temporary name and renamed. What is torn, foreign or stale is
not there: it is compiled again and replaced.
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
_KEPT = 7 / 8
"""How full a folder may be after it was full, so that it is not looked through again at once."""
_SHARE = 8
"""A process takes this part of the room that it saw before it looks again: others write too."""
_TOUCH_SECONDS = 3600.0
AnyFolder = TypeVar("AnyFolder", str, "Path")
_SUBFOLDERS = ("kernels", "libraries", "plans", "tuned")
_DIGEST = re.compile(r"[0-9a-f]{64}")
_room: dict[str, int] = {}
"""The bytes that this process may yet write to a folder before it looks through it again."""


class CacheInfo(NamedTuple):
    """What is in a cache folder."""

    folder: Path
    kernels: int
    libraries: int
    nbytes: int


class Entry(NamedTuple):
    """Where a kernel is: a symbol in a library of the cache."""

    path: str
    symbol: str

    @property
    def library(self) -> Path:
        """The shared object."""
        return _path(self.path)


def cache_folder(environ: Mapping[str, str] = os.environ) -> Path:
    """PASSKIT_CACHE_DIR, else this user's cache folder; nothing is created."""
    return _path(cache_folder_name(environ))


def cache_folder_name(environ: Mapping[str, str] = os.environ) -> str:
    """The path of `cache_folder` as text: a warm start does without pathlib."""
    if named := environ.get("PASSKIT_CACHE_DIR"):
        return named
    if platform.system() == "Linux":  # platformdirs' rule; its import is a fifth of a warm start
        base = environ.get("XDG_CACHE_HOME", "").strip() or "~/.cache"
        return os.path.expanduser(os.path.join(base, "passkit"))
    import platformdirs

    return platformdirs.user_cache_dir("passkit", appauthor=False)


def _path(name: str) -> Path:
    from pathlib import Path  # costs a warm start a tenth, and it needs none

    return Path(name)


def trusted_folder(folder: AnyFolder) -> AnyFolder:
    """Return the cache folder after checking it and its subfolders; create it if it is missing.

    Raises:
        CacheError: The folder is a file, it or a subfolder belongs to another user or is writable
            by others, or a subfolder is a symbolic link.
    """
    try:
        if not os.path.isdir(folder):
            _path(str(folder)).mkdir(mode=0o700, parents=True, exist_ok=True)
    except FileExistsError:
        raise CacheError(
            f"cache folder {folder} is a file; remove it, or set PASSKIT_CACHE_DIR"
        ) from None
    _check_folder(folder, os.stat(folder))
    for name in _SUBFOLDERS:
        path = os.path.join(folder, name)
        try:
            facts = os.lstat(path)
        except OSError:
            continue
        if stat.S_ISDIR(facts.st_mode) or stat.S_ISLNK(facts.st_mode):
            _check_folder(path, facts)  # what is neither holds no files
    return folder


def _check_folder(folder: str | Path, facts: os.stat_result) -> None:
    """Check who may write to a folder.

    Raises: CacheError when it is a link, or anybody but this user and root may write to it.
    """
    if stat.S_ISLNK(facts.st_mode):
        raise CacheError(
            f"cache folder {folder} is a symbolic link, and kernels in it would be run; remove it, "
            "or set PASSKIT_CACHE_DIR"
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
    """Read a file that only this user or root can have written, at most ``limit`` bytes of it.

    Opening never waits, as it would for the writer of a FIFO.

    Raises:
        OSError: The file cannot be read, is a symbolic link or not a regular file, belongs to
            another user, or is writable by others.
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
    """The cache of this user; one that cannot be created finds and keeps nothing.

    Raises: CacheError when the folder is there and not to be trusted.
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
    """Say in the log that kernels are compiled anew in each process."""
    import logging  # not needed where all is well

    logging.getLogger("passkit.cache").warning(
        "cannot write to cache folder %s (%s); set PASSKIT_CACHE_DIR", folder, error
    )


class KernelCache:
    """The kernels in one folder; ``limit`` bounds its bytes, least recently used first out."""

    def __init__(self, folder: str | Path, limit: int = DEFAULT_LIMIT) -> None:
        self.name, self.limit = os.fspath(folder), limit
        self._verified: dict[str, bool] = {}

    @property
    def folder(self) -> Path:
        """The folder of it all."""
        return _path(self.name)

    @property
    def kernels(self) -> Path:
        """The folder of entries."""
        return self.folder / "kernels"

    @property
    def libraries(self) -> Path:
        """The folder of shared objects."""
        return self.folder / "libraries"

    def find(self, key: str, fingerprint: str | None) -> Entry | None:
        """The entry of a kernel made by the compiler of that fingerprint (None: by any)."""
        path = os.path.join(self.name, "kernels", f"{key}.json")
        try:
            found = json.loads(read_private(path))
            library, symbol = found["library"], found["symbol"]
            good = (
                found["format"] == FORMAT
                and found["key"] == key
                and found["isa"] == instruction_set()
                and fingerprint in (None, found["compiler"])
                and isinstance(symbol, str)
                and _DIGEST.fullmatch(library) is not None
            )
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            return None
        if not good or not self._is_whole(library):
            return None
        self._touch(path)
        return Entry(os.path.join(self.name, "libraries", f"{library}.so"), symbol)

    def _is_whole(self, digest: str) -> bool:
        """Whether the library of that name has the bytes its name promises; read once a process."""
        if not self._verified.get(digest):
            self._verified[digest] = self._machine_code(digest) is not None
        return self._verified[digest]

    def _machine_code(self, digest: str) -> bytes | None:
        try:
            data = read_private(os.path.join(self.name, "libraries", f"{digest}.so"))
        except OSError:
            return None
        return data if sha256(data).hexdigest() == digest else None

    def machine_code(self, entry: Entry) -> bytes | None:
        """The bytes of an entry's library, read and verified now; None where they changed."""
        return self._machine_code(os.path.basename(entry.path).removesuffix(".so"))

    def _touch(self, path: str) -> None:
        """Mark an entry and its library as used, at most once an hour."""
        try:
            if time.time() - os.stat(path).st_mtime > _TOUCH_SECONDS:
                os.utime(path)
        except OSError:
            pass  # a read-only folder keeps no times

    def store(self, library: Path, symbols: Mapping[str, str], fingerprint: str) -> Path:
        """Take a compiled library for kernels key -> symbol; the path it has in the cache.

        Raises: CacheError when the folder is not to be trusted; OSError when it cannot be written.
        """
        trusted_folder(self.folder)
        for folder in (self.kernels, self.libraries):
            folder.mkdir(mode=0o700, exist_ok=True)
        data = library.read_bytes()
        digest = sha256(data).hexdigest()
        kept = self.libraries / f"{digest}.so"
        put_file(kept, data)
        self._verified[digest] = True
        written = len(data)
        for key, symbol in symbols.items():
            entry = {"format": FORMAT, "key": key, "isa": instruction_set(), "symbol": symbol,
                     "compiler": fingerprint, "library": digest}  # fmt: skip
            text = json.dumps(entry).encode()
            put_file(self.kernels / f"{key}.json", text)
            written += len(text)
        self._hold(written)
        return kept

    def keep(self, library: Path, symbols: Mapping[str, str], fingerprint: str) -> Path:
        """As `store`, but where the folder cannot be written the library stays where it is."""
        try:
            return self.store(library, symbols, fingerprint)
        except CacheError:
            raise
        except OSError as error:
            warn_unwritable(self.folder, error)
            return library

    def copy_to(self, other: KernelCache, keys: Iterable[str] | None = None) -> int:
        """Put the kernels of ``keys``, or all, into another cache; how many it took.

        Raises: CacheError when either folder is not to be trusted.
        """
        if not self.kernels.is_dir():
            return 0
        trusted_folder(self.folder)
        names = [p.stem for p in self.kernels.glob("*.json")] if keys is None else keys
        taken = 0
        for key in names:
            entry = self.find(key, None)
            if entry is not None and other.find(key, None) is None:
                found = json.loads(read_private(self.kernels / f"{key}.json"))
                other.keep(entry.library, {key: entry.symbol}, found["compiler"])
                taken += 1
        return taken

    def info(self) -> CacheInfo:
        """How many kernels and bytes there are."""
        files = list(self._files())
        libraries = sum(path.suffix == ".so" for path, _ in files)
        kernels = sum(path.suffix == ".json" for path, _ in files)
        nbytes = sum(facts.st_size for _, facts in files)
        return CacheInfo(self.folder, kernels, libraries, nbytes)

    def clear(self) -> int:
        """Remove every kernel; the number of bytes that were freed."""
        freed = 0
        for path, facts in self._files():
            freed += facts.st_size if _remove(path) else 0
        self._verified.clear()
        return freed

    def _hold(self, written: int) -> None:
        """Keep to ``limit``; a folder of thousands of kernels is not looked through each time."""
        _room[self.name] = _room.get(self.name, 0) - written
        if _room[self.name] < 0:
            _room[self.name] = (self.limit - self.shrink()) // _SHARE

    def shrink(self) -> int:
        """Remove the kernels used longest ago where ``limit`` is passed; the bytes that stay."""
        files = list(self._files())
        total = sum(facts.st_size for _, facts in files)
        if total <= self.limit:
            return total
        excess = total - int(self.limit * _KEPT)
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
        for folder in ("kernels", "libraries", "plans"):
            try:
                found = list(os.scandir(os.path.join(self.name, folder)))
            except OSError:
                continue
            for item in found:
                if folder == "plans" and not item.name.endswith(".plan"):
                    continue
                try:
                    if item.is_file(follow_symlinks=False):
                        yield _path(item.path), item.stat(follow_symlinks=False)
                except OSError:
                    continue  # another process removed it


def _library_of(entry: Path) -> str:
    try:
        return str(json.loads(read_private(entry))["library"])
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return ""


def _remove(path: Path) -> bool:
    try:
        path.unlink()
    except OSError:
        return False
    return True


def put_file(path: str | Path, data: bytes) -> None:
    """Put a whole file in place at once."""
    import tempfile  # a warm start writes nothing

    handle, name = tempfile.mkstemp(prefix=".new-", dir=os.path.dirname(path))
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        os.replace(name, path)
    except BaseException:
        _remove(_path(name))
        raise
