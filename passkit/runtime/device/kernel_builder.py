"""Building a device's kernels: from this process, from the disk cache, or by the compiler.

`KernelBuilder` is what CUDA and OpenCL share: the kernels loaded in this process, the image cache
on disk, the counts, and the error for a kernel that a compiler refuses. A subclass says what a
kernel's machine code depends on, and compiles and loads it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from threading import RLock
from typing import Any

from passkit.errors import CacheError, CompilerError, KernelRefusedError
from passkit.graph.kernel import Kernel
from passkit.runtime.native.build import stats
from passkit.runtime.native.cache import open_cache, warn_unwritable
from passkit.runtime.native.compilation import excerpt
from passkit.runtime.native.work_folders import work_folder

loaded_kernels: dict[tuple[Any, str], Any] = {}
"""The entries of kernels that this process has loaded, by device and digest."""
_lock = RLock()


class ImageCache:
    """Machine code in the disk cache, by the digest of what it was compiled from.

    Args:
        producer: The compiler, device and options, which alone can use the files.
        suffix: The file name suffix of an image while it is written.

    Raises:
        CacheError: where other users may write to the cache folder, or it is a file.
    """

    def __init__(self, producer: str, suffix: str) -> None:
        self.cache = open_cache()
        self.suffix = suffix
        self.fingerprint = sha256(producer.encode()).hexdigest()[:16]

    def find(self, digest: str) -> bytes | None:
        """Return the machine code stored under a digest.

        Returns: None if it is missing, damaged, or of another producer.
        """
        entry = self.cache.find(digest, self.fingerprint)
        try:
            return None if entry is None else entry.library.read_bytes()
        except OSError:
            return None

    def keep(self, image: bytes, symbols: Mapping[str, str]) -> None:
        """Store an image under the digests of its kernels.

        Where the folder cannot be written, nothing is stored and a warning logged: the program has
        its code already.

        Args:
            image: The machine code.
            symbols: The function name of each kernel, by the kernel's digest.

        Raises:
            CacheError: where other users may write to the cache folder.
        """
        try:
            with work_folder(self.cache.name) as folder:
                file = Path(folder, f"image{self.suffix}")
                file.write_bytes(image)
                self.cache.keep(file, symbols, self.fingerprint)
        except CacheError:
            raise
        except (OSError, CompilerError) as error:
            warn_unwritable(self.cache.name, error)


class KernelBuilder(ABC):
    """Builds kernels for one device with one set of compiler options.

    Args:
        device: The device: a `CudaDevice` or an `OpenClDevice`.
        flags: The compiler's options.
    """

    def __init__(self, device: Any, flags: tuple[str, ...]) -> None:
        self.device = device
        self.flags = flags

    @abstractmethod
    def digest(self, kernel: Kernel) -> str:
        """Return the digest of text, compiler, device and options: the kernel's cache key."""

    @abstractmethod
    def open_images(self) -> ImageCache | None:
        """Open the image cache; None where the driver keeps what it compiles by itself.

        Raises: CacheError where other users may write to the cache folder.
        """

    @abstractmethod
    def load(self, kernel: Kernel, image: bytes) -> Any:
        """Load a kernel's cached machine code on the device.

        Returns:
            The entry to launch it, of a type that the subclass defines; None where the device does
            not accept the image any more.
        """

    @abstractmethod
    def compile(self, kernels: dict[str, Kernel]) -> None:
        """Compile kernels, given by digest, load them, `add` them and `keep` their images.

        Raises:
            KernelRefusedError: with the compiler's message; other kernels may have been added
                before.
        """

    def check(self, kernel: Kernel) -> None:  # noqa: B027
        """Check that the device supports the operations of a kernel, before anything is built.

        Raises:
            DeviceError: where it does not.
        """

    @cached_property
    def images(self) -> ImageCache | None:
        """The image cache, opened when it is first used; None where there is none.

        Raises: CacheError where other users may write to the cache folder.
        """
        return self.open_images()

    def build(self, kernels: Mapping[str, Kernel]) -> dict[str, Any]:
        """Return each kernel loaded on the device. No kernel is compiled twice on a machine.

        Counts reused, loaded and compiled kernels in the build statistics.

        Args:
            kernels: Kernels by their keys.

        Returns:
            The loaded entry of each key, as `load` returns it. Equal kernels share one.

        Raises:
            KernelRefusedError: with the compiler's message.
            DeviceError: where the device does not support an operation of a kernel.
            CacheError: where other users may write to the cache folder.
        """
        digests = {key: self.digest(kernel) for key, kernel in kernels.items()}
        with _lock:
            missing = {
                digests[key]: kernel
                for key, kernel in kernels.items()
                if (self.device, digests[key]) not in loaded_kernels
            }
            stats.reused += len(kernels) - len(missing)
            if missing:
                with self.device.active("loading kernels"):
                    self._build_missing(missing)
            return {key: loaded_kernels[self.device, name] for key, name in digests.items()}

    def _build_missing(self, missing: dict[str, Kernel]) -> None:
        """Load kernels, given by digest, from the disk cache, and compile those it lacks.

        Raises: DeviceError, before anything is built, where the device does not support an
        operation of a kernel; KernelRefusedError; CacheError.
        """
        for kernel in missing.values():
            self.check(kernel)
        uncached = {
            digest: kernel
            for digest, kernel in missing.items()
            if not self._load_cached(digest, kernel)
        }
        self.compile(uncached)

    def _load_cached(self, digest: str, kernel: Kernel) -> bool:
        """Load a kernel from the disk cache by its digest and `add` it; return whether that worked.

        It fails where there is no cache, no such image, or the device does not accept the image.

        Raises: CacheError where other users may write to the cache folder.
        """
        image = None if self.images is None else self.images.find(digest)
        entry = None if image is None else self.load(kernel, image)
        if entry is None:
            return False
        self.add(digest, entry)
        stats.loaded += 1
        return True

    def add(self, digest: str, entry: Any) -> None:
        """Record a loaded kernel's entry for this process, under the device and its digest."""
        loaded_kernels[self.device, digest] = entry

    def keep(self, image: bytes, kernels: Mapping[str, Kernel]) -> None:
        """Store an image that contains ``kernels``, given by digest, in the disk cache.

        Adds the kernels and one compiler run to the build statistics. Raises: CacheError where
        other users may write to the cache folder.
        """
        if self.images is not None:
            self.images.keep(image, {digest: kernel.name for digest, kernel in kernels.items()})
        stats.compiled += len(kernels)
        stats.processes += 1


def kernels_by_key(kernels: Iterable[Kernel]) -> dict[str, Kernel]:
    """Return kernels by their keys: equal ones are built once."""
    return {kernel.key: kernel for kernel in kernels}


def kernel_label(kernel: Kernel) -> str:
    """Return a kernel's name and its operators, for error messages."""
    return f"{kernel.name} ({', '.join(kernel.ops)})"


def refusal(compiler: str, kernel: Kernel, message: str, text: str) -> KernelRefusedError:
    """Return the error, to be raised by the caller, for a kernel that a compiler refuses.

    Args:
        compiler: The compiler, as the subject of the sentence.
        kernel: The kernel.
        message: What the compiler reports.
        text: The source, of which the lines that the message names are shown with their numbers.
    """
    return KernelRefusedError(
        f"{compiler} refused kernel {kernel_label(kernel)}:\n{message.strip()}\n\n"
        f"{excerpt(text, message)}\n",
        kernel.key,
    )
