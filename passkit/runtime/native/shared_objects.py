"""Loaded shared objects, which are unloaded when nothing refers to their functions any more."""

from __future__ import annotations

import gc
from collections import OrderedDict
from typing import Any
from weakref import WeakValueDictionary

from passkit.runtime.native import launcher

MAX_UNUSED = 64
"""Shared objects that stay loaded although no program uses them: many graphs are compiled again."""


class SharedObject:
    """A loaded shared object, unloaded when there is no reference to it or an `Address` in it.

    The launcher's handle unloads it when the handle is deallocated, so that finalizers in the same
    cycle of garbage can still run programs.

    Args:
        path: the file to load.
        name: the path that identifies it; by default ``path``, which may be temporary.

    Attributes:
        path: the path that identifies it.
        symbols: the names of the functions of its kernels, by the kernels' digests.

    Raises:
        OSError: The file cannot be loaded.
        CompilerError: The launcher, which loads it, cannot be compiled.
        CacheError: The launcher is not loaded yet, and others can write to the cache folder.
        SettingError: The launcher is not loaded yet, and PASSKIT_THREADS is no number of threads.
    """

    __slots__ = ("__weakref__", "_handle", "path", "symbols")

    def __init__(self, path: str, name: str | None = None) -> None:
        self.path = name or path
        self.symbols: dict[str, str] = {}
        self._handle = launcher.open_library(path)

    def address(self, symbol: str) -> Address:
        """Return the address of the function ``symbol``, which keeps the shared object loaded.

        Raises:
            LookupError: There is no function of that name.
        """
        return Address(launcher.find_symbol(self._handle, symbol), self)


class Address(int):
    """The address of a function; a reference to it keeps the shared object loaded."""

    shared_object: SharedObject

    def __new__(cls, number: int, shared_object: SharedObject) -> Address:
        """Create the address ``number`` in a shared object."""
        address = super().__new__(cls, number)
        address.shared_object = shared_object
        return address

    def __deepcopy__(self, memo: dict[int, Any]) -> Address:
        """Return this address itself."""
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        """Raise TypeError: the address of a function is not valid in another process."""
        raise TypeError(
            f"the address {int(self):#x} of a function in {self.shared_object.path} is not valid "
            "in another process; pickle the executable instead"
        )


class LoadedKernels:
    """The kernels that are loaded in this process, by digest. Callers hold a lock.

    The `MAX_UNUSED` most recently used shared objects stay loaded. Others are unloaded when the
    last program with one of their kernels is deallocated.
    """

    def __init__(self) -> None:
        self._by_digest: WeakValueDictionary[str, SharedObject] = WeakValueDictionary()
        self._by_path: WeakValueDictionary[str, SharedObject] = WeakValueDictionary()
        self._recent: OrderedDict[SharedObject, None] = OrderedDict()
        self._survivors = 0

    def collect_garbage(self) -> None:
        """Collect garbage if the number of shared objects has doubled since the last collection.

        That is never below twice `MAX_UNUSED`, nor while Python's collector is disabled. Programs
        are in reference cycles, and the collector, which counts objects, does not account for the
        machine code that they keep loaded. Callers must not hold the lock: finalizers may compile.
        """
        if len(self._by_path) >= 2 * max(MAX_UNUSED, self._survivors) and gc.isenabled():
            gc.collect()
            self._survivors = len(self._by_path)

    def find(self, digest: str) -> Address | None:
        """Return the address of a kernel, given by its digest, and mark it as used last.

        Returns None if it is not loaded.
        """
        shared_object = self._by_digest.get(digest)
        if shared_object is None:
            return None
        self._use(shared_object)
        return shared_object.address(shared_object.symbols[digest])

    def opened(self, path: str) -> SharedObject | None:
        """Return the shared object of a path, None if it is not loaded."""
        return self._by_path.get(path)

    def add(self, digest: str, symbol: str, shared_object: SharedObject) -> Address:
        """Register a kernel and return its address.

        Args:
            digest: the kernel's digest.
            symbol: the name of its function.
            shared_object: the loaded library.

        Raises:
            LookupError: The shared object has no function of that name.
        """
        address = shared_object.address(symbol)
        shared_object.symbols[digest] = symbol
        self._by_digest[digest] = self._by_path[shared_object.path] = shared_object
        self._use(shared_object)
        return address

    def _use(self, shared_object: SharedObject) -> None:
        """Mark a shared object as used last.

        Of those that no program refers to, only the last `MAX_UNUSED` stay loaded.
        """
        self._recent[shared_object] = None
        self._recent.move_to_end(shared_object)
        if len(self._recent) > MAX_UNUSED:
            self._recent.popitem(last=False)

    def path_of(self, digest: str) -> str | None:
        """Return the path of the shared object of a kernel, None if it is not loaded.

        ``digest`` is the kernel's digest.
        """
        shared_object = self._by_digest.get(digest)
        return None if shared_object is None else shared_object.path

    def clear(self) -> None:
        """Remove all kernels; those in use stay loaded for the programs that use them."""
        self._by_digest.clear()
        self._by_path.clear()
        self._recent.clear()
