"""C extensions of the package: compiled at first use, and then imported from the cache."""

from __future__ import annotations

import os
import sys
import sysconfig
import threading
from contextlib import suppress
from hashlib import sha256
from importlib.machinery import ExtensionFileLoader, ModuleSpec
from importlib.util import module_from_spec
from typing import TYPE_CHECKING

import numpy as np

from passkit.errors import CompilerError
from passkit.runtime.native.cache import FORMAT, open_cache
from passkit.runtime.native.compiler import INSTALL_HINT, Compiler, find_compiler

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path
    from types import ModuleType

    from passkit.runtime.native.cache import KernelCache
    from passkit.runtime.native.compilation import Compilation
    from passkit.runtime.native.work_folders import WorkFolder


class Extension:
    """A C extension whose sources are in the package.

    Args:
        name: the name of the module, which its init function has too.
        folder: the folder of its sources.
        sources: the names of its sources; the first one is compiled and includes the others.
        flags: what the compiler is called with.
        subject: the words for it in errors, such as "the launcher".
        prepare: called with the module before it is used; None for nothing.
    """

    def __init__(
        self,
        name: str,
        folder: str,
        sources: Sequence[str],
        flags: Sequence[str],
        subject: str,
        prepare: Callable[[ModuleType], None] | None = None,
    ) -> None:
        self._name, self._folder, self._sources = name, folder, tuple(sources)
        self._flags, self._subject, self._prepare = tuple(flags), subject, prepare
        self._lock = threading.RLock()
        self._module: ModuleType | None = None
        self._pending: tuple[WorkFolder, Compilation] | None = None

    def module(self) -> ModuleType:
        """Return the module; the first call imports it from the cache, or compiles it.

        Raises: CompilerError if it is not in the cache and cannot be compiled, or what was compiled
        cannot be imported; CacheError where others can write to the cache folder; what ``prepare``
        raises.
        """
        if self._module is None:
            with self._lock:
                if self._module is None:
                    module = self._load(open_cache())
                    if self._prepare is not None:
                        self._prepare(module)
                    self._module = module
        return self._module

    def prefetch(self, compiler: Compiler | None = None) -> bool:
        """Start to compile the extension if it is not in the cache; do not wait for it.

        The compiler is ``compiler``, or else the one that `find_compiler` finds. Compiler errors
        are ignored here; `module` raises them. Returns: whether a compiler was started and nobody
        has waited for it. Raises: CacheError where others can write to the cache folder.
        """
        with self._lock:
            if self._module is None and self._pending is None:
                compiler, cache = compiler or find_compiler(), open_cache()
                if compiler and cache.find(self.cache_key(), None) is None:
                    with suppress(CompilerError):
                        self._pending = self._start(compiler, cache)
            return self._pending is not None

    def cache_key(self) -> str:
        """Return the key in the cache.

        It depends on the sources, Python's ABI and NumPy's major version, not on the compiler.
        """
        abi = sysconfig.get_config_var("SOABI")
        parts = [str(FORMAT), abi, np.__version__.split(".")[0], *self._flags]
        text = "\0".join([*parts, *(self._text(name) for name in self._sources)])
        return sha256(text.encode()).hexdigest()

    def _text(self, name: str) -> str:
        """Return the text of a source file."""
        with open(os.path.join(self._folder, name), encoding="utf-8") as file:
            return file.read()

    def _load(self, cache: KernelCache) -> ModuleType:
        """Import the extension from the cache, or compile it, keep it in the cache and import it.

        Raises: CompilerError where it cannot be compiled, or what was compiled cannot be imported;
        CacheError where others can write to the cache folder.
        """
        key = self.cache_key()
        entry = cache.find(key, None)
        if entry is not None:
            try:
                return self._import(entry.path)
            except ImportError:
                pass  # compiled for another system: it is compiled again
        (folder, compilation), self._pending = (
            self._pending or self._start(find_compiler(), cache),
            None,
        )
        with folder:
            library = compilation.finish()
            symbols = {key: f"PyInit_{self._name}"}
            kept = cache.keep(library, symbols, compilation.compiler.fingerprint)
            try:
                return self._import(kept)
            except ImportError as error:
                raise CompilerError(f"cannot import {self._subject}, compiled: {error}") from None

    def _start(
        self, compiler: Compiler | None, cache: KernelCache
    ) -> tuple[WorkFolder, Compilation]:
        """Start to compile the extension; return the folder of its files and the compiler's run.

        The folder is in TMPDIR, or in that of ``cache`` where TMPDIR cannot be used.

        Raises:
            CompilerError: ``compiler`` is None, Python's headers are missing, no folder can be
                used, or the files cannot be written.
        """
        subject = self._subject
        if compiler is None:
            raise CompilerError(
                f"{subject} is not in the cache {cache.folder}, and there is no C++ compiler to "
                f"compile it; {INSTALL_HINT}"
            )
        include = sysconfig.get_path("include")
        if not os.path.exists(os.path.join(include, "Python.h")):
            raise CompilerError(
                f"{subject} needs Python's headers, and {include} has no Python.h; install them "
                "(python3-dev or python3-devel), or use target='interpret'"
            )
        from pathlib import Path

        # A warm start needs neither folders nor processes.
        from passkit.runtime.native.compilation import start_compilation
        from passkit.runtime.native.work_folders import work_folder

        folder = work_folder(cache.name)
        source = os.path.join(self._folder, self._sources[0])
        arguments = [*self._flags, f"-I{include}", f"-I{np.get_include()}", source]
        if compiler.kind == "gcc":  # without the C++ library, which would slow the linker down
            arguments += ["-nodefaultlibs", "-lc", "-lgcc"]
        output = Path(folder.name, f"{self._name}.so")
        try:
            return folder, start_compilation(compiler, arguments, output, subject)
        except OSError as error:
            raise CompilerError(
                f"cannot write the files of {subject} to {folder.name} ({error}); set TMPDIR to a "
                "folder with free space, or raise the limit of file sizes (ulimit -f)"
            ) from error

    def _import(self, library: str | Path) -> ModuleType:
        """Import the compiled extension from a path, and register it in ``sys.modules``.

        Raises: ImportError where the file is not an extension for this Python.
        """
        loader = ExtensionFileLoader(self._name, str(library))
        spec = ModuleSpec(self._name, loader, origin=str(library))
        module = module_from_spec(spec)
        loader.exec_module(module)
        sys.modules[self._name] = module
        return module
