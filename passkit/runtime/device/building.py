"""Machine code of a device's kernels: kept in the cache's folder, and refused with its text."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path

from passkit.errors import CacheError, CompilerError, KernelRefusedError
from passkit.plan.kernel import Kernel
from passkit.runtime.native.cache import open_cache, warn_unwritable
from passkit.runtime.native.process import excerpt
from passkit.runtime.native.scratch import work_folder


class Images:
    """Machine code on disk, by the name of what it was made from.

    ``made_by`` is what only one compiler and device can have made, ``kind`` ends the names of files
    while they are written.
    """

    def __init__(self, made_by: str, kind: str) -> None:
        self.cache, self.kind = open_cache(), kind
        self.fingerprint = sha256(made_by.encode()).hexdigest()[:16]

    def find(self, name: str) -> bytes | None:
        """What is kept under a name; None where there is nothing whole."""
        entry = self.cache.find(name, self.fingerprint)
        try:
            return None if entry is None else entry.library.read_bytes()
        except OSError:
            return None

    def keep(self, image: bytes, symbols: Mapping[str, str]) -> None:
        """Keep machine code under the names of its kernels, each with its function.

        Where there is no room, nothing is kept, and the log says so: the program has its code.
        """
        try:
            with work_folder(self.cache.name) as folder:
                file = Path(folder, f"image{self.kind}")
                file.write_bytes(image)
                self.cache.keep(file, symbols, self.fingerprint)
        except CacheError:
            raise
        except (OSError, CompilerError) as error:
            warn_unwritable(self.cache.name, error)


def refusal(compiler: str, kernel: Kernel, said: str, text: str) -> KernelRefusedError:
    """The error for a kernel that a compiler does not take: its words, and the numbered text."""
    return KernelRefusedError(
        f"{compiler} refused {kernel.name}, of {', '.join(kernel.ops)}:\n{said.strip()}\n\n"
        f"{excerpt(text, said)}\n",
        kernel.key,
    )
