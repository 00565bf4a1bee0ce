"""NVIDIA's libraries: how they are loaded and called, and the steps that use them.

Which library runs a step is decided in `passkit.runtime.cuda.program`.
"""

from __future__ import annotations

import ctypes
from abc import abstractmethod
from collections.abc import Callable, Iterator
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from passkit.runtime.cuda.driver import DriverError, driver_error
from passkit.runtime.cuda.launch import EnqueuedStep, WorkspaceAllocator
from passkit.runtime.device.call_memory import CallMemory
from passkit.runtime.program import ArrayRef, LibraryCall

if TYPE_CHECKING:
    from passkit.runtime.cuda.program import CudaBoundProgram

LoadedLibrary = TypeVar("LoadedLibrary")


class UnsupportedError(Exception):
    """A library is not installed, or does not support an operation; the message says which."""


class SharedLibrary(NamedTuple):
    """A library: its name, its file names for the loader, and the wheels that contain it.

    Earlier file names and wheels are preferred.
    """

    name: str
    files: tuple[str, ...]
    wheels: tuple[str, ...]


CUBLASLT = SharedLibrary(
    name="cuBLASLt",
    files=("libcublasLt.so.13", "libcublasLt.so.12"),
    wheels=("nvidia-cublas", "nvidia-cublas-cu12"),
)
CUDNN = SharedLibrary(
    name="cuDNN",
    files=("libcudnn.so.9",),
    wheels=("nvidia-cudnn-cu13", "nvidia-cudnn-cu12"),
)


def load_library(library: SharedLibrary) -> Any:
    """Load a library from a wheel or from the system; return it as a `ctypes.CDLL`.

    Raises:
        UnsupportedError: with the command that installs it.
    """
    reason = "no file is known"
    for path in (*_paths_in_wheels(library), *library.files):
        try:
            return ctypes.CDLL(str(path))
        except OSError as error:
            reason = str(error)
    raise UnsupportedError(
        f"{library.name} cannot be loaded ({reason}); pip install {library.wheels[0]}"
    )


def _paths_in_wheels(library: SharedLibrary) -> Iterator[Path]:
    """Yield the library's files in installed wheels. Wheels that are not installed are skipped."""
    for wheel in library.wheels:
        try:
            wheel_files = files(wheel) or []
        except PackageNotFoundError:
            continue
        for file in wheel_files:
            if file.name in library.files:
                yield Path(str(file.locate())).resolve()


def call_library(dll: Any, name: str, *arguments: Any) -> None:
    """Call the function ``name`` of a library. Raises: DriverError where its status is not 0."""
    status = getattr(dll, name)(*arguments)
    if status:
        raise driver_error(name, f"status {int(status)}")


def library_or_error(
    create: Callable[[], LoadedLibrary],
) -> LoadedLibrary | UnsupportedError:
    """Return ``create()``, which loads a library, or the error that says why it is not available.

    A DriverError becomes an UnsupportedError.
    """
    try:
        return create()
    except UnsupportedError as error:
        return error
    except DriverError as error:
        return UnsupportedError(f"a library of the device cannot be initialized: {error}")


OperandAddresses = tuple[list[int], int]
"""The addresses of the operands on the device, and of the result."""


class LibraryStep(EnqueuedStep):
    """A step that calls a library of the device.

    Args:
        step: The step.
        bound: The program.
        extra_operands: Operands besides the step's own, such as a bias.
    """

    def __init__(
        self, step: LibraryCall, bound: CudaBoundProgram, *extra_operands: ArrayRef
    ) -> None:
        super().__init__(bound)
        self.step = step
        self.dtype = step.writes[0].dtype
        self.operand_refs = (*step.reads, *extra_operands)
        self.reads = self.operand_refs
        self.writes = step.writes

    def operands(self, memory: CallMemory) -> OperandAddresses:
        """Return the device addresses of operands and result; upload host arrays where needed.

        They are a list of the operands' addresses, and the result's; the result is allocated and
        marked as written. Raises: DeviceError where the device has no memory left; DriverError
        where the driver refuses an upload.
        """
        addresses = [self.address(ref, memory) for ref in self.operand_refs]
        return addresses, memory.written(self.step.writes[0]).address

    def address(self, ref: ArrayRef, memory: CallMemory) -> int:
        """Return the address of the operand ``ref`` on the device, uploaded where needed.

        ``memory`` is the memory of the call. Raises: DeviceError where the device has no memory
        left; DriverError where the driver refuses the upload.
        """
        return int(memory.read(ref).address)

    @abstractmethod
    def enqueue(
        self, operands: OperandAddresses, workspaces: WorkspaceAllocator, stream: Any
    ) -> None:
        """Enqueue the library's work in a stream.

        Args:
            operands: the addresses of the operands, and that of the result.
            workspaces: allocates workspace.
            stream: the stream.

        Raises: DriverError where the library fails; DeviceError where the device has no memory
        left.
        """

    def workspace(self, nbytes: int, workspaces: WorkspaceAllocator) -> Any:
        """Return workspace of ``nbytes`` from ``workspaces``, or None where it is 0.

        Raises: DeviceError where the device has no memory left.
        """
        return workspaces.take(nbytes) if nbytes else None
