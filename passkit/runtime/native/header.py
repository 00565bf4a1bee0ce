"""The precompiled header: sections that most kernels share, parsed once on a machine.

Compiling it takes a tenth of a second, beside the first kernels after the launcher. Each later
process of GCC saves 25 to 30 ms, a third of its time for a small kernel. Other compilers have no
such header.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

from passkit.errors import CompilerError
from passkit.runtime.native.cache import FORMAT, KernelCache
from passkit.runtime.native.compilation import Compilation, start_compilation
from passkit.runtime.native.compiler import Compiler, instruction_set, kernel_flags

NAME = "prelude.h"
_unusable: set[str] = set()
"""The keys of headers that this process could not compile, keep or use."""
_verified: dict[tuple[str, str], str] = {}
"""The paths of headers that this process has read or written, by cache folder and key."""


class Header:
    """A header that may be in the cache.

    Args:
        sections: the texts that it consists of, each after those that it needs.
        flags: the compiler's flags in addition to `kernel_flags`.
        compiler: the compiler, GCC.
        cache: the cache that keeps it.

    Attributes:
        sections: these texts.
        key: its key in the cache.
    """

    def __init__(
        self,
        sections: Sequence[str],
        flags: tuple[str, ...],
        compiler: Compiler,
        cache: KernelCache,
    ) -> None:
        self.sections = tuple(sections)
        self._compiler, self._cache = compiler, cache
        self._arguments = [*kernel_flags(), *compiler.parameters, *flags]
        self._pending: Compilation | None = None
        parts = [str(FORMAT), instruction_set(), NAME, *self._arguments, *self.sections]
        self.key = sha256("\0".join(parts).encode()).hexdigest()

    def link(self, folder: str) -> str | None:
        """Return the path by which to include the header, in a folder of temporary files.

        Returns: None if the cache does not have it.
        """
        path = self._path()
        if path is None:
            return None
        source = os.path.join(folder, NAME)
        try:
            os.symlink(path, f"{source}.gch")
        except OSError:  # a file system without links
            self.give_up()
            return None
        return source

    def start(self, folder: str) -> None:
        """Start to compile the header in a folder of temporary files.

        Nothing happens if the compiler cannot be run, or has failed before.
        """
        if self.key in _unusable:
            return
        source = Path(folder, f"new-{NAME}")
        arguments = [*self._arguments, "-x", "c++-header", str(source)]
        try:
            source.write_text("".join(self.sections))
            self._pending = start_compilation(
                self._compiler, arguments, Path(f"{source}.gch"), "the header of kernels"
            )
        except (CompilerError, OSError):
            self.give_up()

    def _path(self) -> str | None:
        """Return the path of the precompiled file in the cache, None if it does not have it.

        Its contents are verified once in a process.
        """
        if self.key in _unusable:
            return None
        path = _verified.get((self._cache.name, self.key))
        if path is not None and os.path.exists(path):
            return path
        entry = self._cache.find(self.key, self._compiler.fingerprint)
        if entry is None:
            return None
        _verified[self._cache.name, self.key] = entry.path
        return entry.path

    def finish(self) -> None:
        """Wait for the header that `start` compiles, if it does, and keep it.

        Raises: CacheError where others can write to the cache folder.
        """
        if self._pending is None:
            return
        pending, self._pending = self._pending, None
        try:
            path = pending.finish()
        except CompilerError:
            self.give_up()
        else:
            kept = self._cache.keep(path, {self.key: NAME}, self._compiler.fingerprint)
            if kept == path:  # the cache cannot be written
                self.give_up()
            else:
                _verified[self._cache.name, self.key] = str(kept)

    def stop(self) -> None:
        """Kill the compiler if it is running."""
        if self._pending is not None:
            self._pending.stop()

    def give_up(self) -> None:
        """Let this process neither compile nor use the header any more."""
        _unusable.add(self.key)
