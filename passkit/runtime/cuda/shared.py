"""NVIDIA's libraries: where they are installed, and what is said where they are not."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path
from typing import Any, NamedTuple

from passkit.runtime.cuda.driver import failed


class MissingError(Exception):
    """A library is not installed, or does what is asked in no way; the message says which."""


class Shared(NamedTuple):
    """A library: what it is called, its files by what they are linked as, and its wheels."""

    name: str
    files: tuple[str, ...]
    wheels: tuple[str, ...]


CUBLASLT = Shared(
    "cuBLASLt", ("libcublasLt.so.13", "libcublasLt.so.12"), ("nvidia-cublas", "nvidia-cublas-cu12")
)
CUDNN = Shared("cuDNN", ("libcudnn.so.9",), ("nvidia-cudnn-cu13", "nvidia-cudnn-cu12"))


def opened(library: Shared) -> Any:
    """The library, of a wheel or of the system. Raises: MissingError with what installs it."""
    said = "no file"
    for path in (*_of_wheels(library), *library.files):
        try:
            return ctypes.CDLL(str(path))
        except OSError as error:
            said = str(error)
    raise MissingError(f"no {library.name}, pip install {library.wheels[0]} ({said})")


def _of_wheels(library: Shared) -> Iterator[Path]:
    for wheel in library.wheels:
        try:
            listed = files(wheel) or []
        except PackageNotFoundError:
            continue
        for file in listed:
            if file.name in library.files:
                yield Path(str(file.locate())).resolve()


def asked(dll: Any, name: str, *arguments: Any) -> None:
    """Call a function of a library. Raises: DriverError where it answers with an error."""
    status = getattr(dll, name)(*arguments)
    if status:
        raise failed(name, f"status {int(status)}")
