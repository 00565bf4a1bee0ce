"""Shared objects that are loaded, and unloaded when nothing refers to their functions any more."""

from __future__ import annotations

import gc
from collections import OrderedDict
from typing import Any
from weakref import WeakValueDictionary

from passkit.runtime.native import launcher

KEPT = 64
"""Shared objects that stay loaded although no program uses them: graphs are compiled again soon."""


class SharedObject:
    """A loaded shared object. It is unloaded when neither it nor an `Address` in it is held.

    The launcher's handle unloads it when it is deallocated, so that finalizers in the same cycle
    of garbage can still run programs. ``symbols`` are the names of the functions of its kernels,
    by the kernels' digests.
    """

    __slots__ = ("__weakref__", "_handle", "path", "symbols")

    def __init__(self, path: str, name: str | None = None) -> None:
        """Load the file ``path``. ``name`` is where it lies afterwards, if ``path`` is temporary.

        Raises: OSError when it cannot be loaded.
        """
        self.path = name or path
        self.symbols: dict[str, str] = {}
        self._handle = launcher.open_library(path)

    def address(self, symbol: str) -> Address:
        """The address of a function.

        Raises: LookupError when there is no function of that name.
        """
        return Address(launcher.find_symbol(self._handle, symbol), self)


class Address(int):
    """The address of a function. It keeps the function's shared object loaded."""

    shared_object: SharedObject

    def __new__(cls, number: int, shared_object: SharedObject) -> Address:
        """An address in a shared object."""
        address = super().__new__(cls, number)
        address.shared_object = shared_object
        return address

    def __deepcopy__(self, memo: dict[int, Any]) -> Address:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        raise TypeError("the address of a function means nothing in another process")


class LoadedKernels:
    """Kernels that are loaded in this process, by digest. Callers take turns by a lock.

    The `KEPT` shared objects that were used last stay loaded. Others are unloaded when the last
    program with a kernel of theirs is gone.
    """

    def __init__(self) -> None:
        self._by_digest: WeakValueDictionary[str, SharedObject] = WeakValueDictionary()
        self._by_path: WeakValueDictionary[str, SharedObject] = WeakValueDictionary()
        self._recent: OrderedDict[SharedObject, None] = OrderedDict()
        self._survivors = 0

    def collect_garbage(self) -> None:
        """Collect garbage once the number of shared objects has doubled since the last time.

        Programs are in cycles of references, and Python's collector, which counts objects, does
        not know how much machine code a few of them keep loaded. Callers do not hold the lock:
        finalizers may compile.
        """
        if len(self._by_path) >= 2 * max(KEPT, self._survivors) and gc.isenabled():
            gc.collect()
            self._survivors = len(self._by_path)

    def find(self, digest: str) -> Address | None:
        """The address of a kernel, if it is loaded."""
        shared_object = self._by_digest.get(digest)
        if shared_object is None:
            return None
        self._use(shared_object)
        return shared_object.address(shared_object.symbols[digest])

    def opened(self, path: str) -> SharedObject | None:
        """The shared object that was loaded from a file, if it is still loaded."""
        return self._by_path.get(path)

    def add(self, digest: str, symbol: str, shared_object: SharedObject) -> Address:
        """Enter a kernel, and return its address.

        Raises: LookupError when the shared object has no function of that name.
        """
        address = shared_object.address(symbol)
        shared_object.symbols[digest] = symbol
        self._by_digest[digest] = self._by_path[shared_object.path] = shared_object
        self._use(shared_object)
        return address

    def _use(self, shared_object: SharedObject) -> None:
        self._recent[shared_object] = None
        self._recent.move_to_end(shared_object)
        if len(self._recent) > KEPT:
            self._recent.popitem(last=False)

    def home(self, digest: str) -> str | None:
        """The path of the shared object that holds a kernel, if it is loaded."""
        shared_object = self._by_digest.get(digest)
        return None if shared_object is None else shared_object.path

    def clear(self) -> None:
        """Forget all kernels; those in use stay loaded for the programs that use them."""
        self._by_digest.clear()
        self._by_path.clear()
        self._recent.clear()
