"""Arrays that are on the device already: inputs read, and outputs written, without a transfer."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np
from attrs import field, frozen

from passkit.errors import FeedError
from passkit.runtime.native.feeds import FeedChecker, InputSpec


@frozen(eq=False)
class ExternalArray:
    """An array on the device that belongs to ``owner``, usually another library's array.

    Attributes:
        owner: The object that a caller passed; it is returned as the output.
        address: The address of its first element on the device.
        dtype: The type of an element.
        shape: The extents in elements.
        contiguous: Whether it is C-contiguous.
        writeable: Whether it may be an output.
        stream: The handle of the stream in which its library works; None where that is unknown,
            or that of the device's queue.
        keep_alive: An object that keeps the memory valid where the owner alone does not.
        is_own: Whether it is an array of passkit's, whose work is in the device's queue.
        nbytes: The size of its elements in bytes.
    """

    owner: Any = field(repr=False)
    address: int
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    contiguous: bool
    writeable: bool
    stream: int | None = None
    keep_alive: Any = field(default=None, repr=False)
    is_own: bool = False
    nbytes: int = field(init=False)

    @nbytes.default
    def _nbytes(self) -> int:
        """Return the size of the elements in bytes."""
        return prod(self.shape) * self.dtype.itemsize

    def overlaps(self, other: ExternalArray) -> bool:
        """Return whether the address ranges of the arrays overlap."""
        return (
            self.address < other.address + other.nbytes
            and other.address < self.address + self.nbytes
        )

    def __str__(self) -> str:
        """Return the array as a phrase for messages: its layout, dtype and shape."""
        strided = "" if self.contiguous else "strided "
        return f"a {strided}{self.dtype}[{', '.join(map(str, self.shape))}] on the device"


ArrayFinder = Callable[[Any], ExternalArray | None]
"""Returns where a value is on the device, None for a value that is not there."""


ArrayAllocator = Callable[[np.dtype[Any], tuple[int, ...]], Any]
"""Creates an array on the device, of a dtype and a shape."""


class DeviceFeeds(FeedChecker):
    """The inputs of a program on a device. ``find_array`` is its `ArrayFinder`."""

    find_array: ArrayFinder

    def array(self, spec: InputSpec, value: Any) -> Any:
        """Return an input's value as an array that fits the input's dtype and rank.

        ``spec`` describes the input. A value on the device stays there, as an `ExternalArray`; any
        other one becomes a NumPy array as in `FeedChecker.array`.

        Raises:
            FeedError: where dtype, rank or layout do not fit, or an array cannot be read.
            ArgumentError: for a masked array.
            DeviceError, MissingDependencyError: where the device cannot be opened to import it.
        """
        external = self.find_array(value)
        if external is None:
            return super().array(spec, value)
        same_rank = len(external.shape) == len(spec.shape)
        if external.dtype == spec.dtype and same_rank and external.contiguous:
            return external
        raise FeedError(
            f"input {spec.name!r} needs {spec}, got {external}; pass a C-contiguous array of "
            "that type and rank"
        )


def check_out(
    out: ExternalArray,
    index: int,
    dtype: np.dtype[Any],
    shape: tuple[int, ...],
    others: list[Any],
) -> None:
    """Check that an output can be written to an array on the device.

    Args:
        out: The array that the caller passed.
        index: Its position in ``out``.
        dtype: The dtype of the output.
        shape: The shape of the output.
        others: The inputs and the outputs before it, which it must not overlap.

    Raises:
        FeedError: where dtype or shape differ, or the array is strided, read-only or overlaps one
            of ``others``.
    """
    fits = out.dtype == dtype and out.shape == shape and out.contiguous and out.writeable
    if not fits or any(isinstance(x, ExternalArray) and out.overlaps(x) for x in others):
        flaw = " that is read-only, or has bytes of an input or another result" * fits
        read_only = "" if out.writeable or fits else ", read-only"
        raise FeedError(
            f"out[{index}] needs a contiguous {dtype}[{', '.join(map(str, shape))}] of its own, "
            f"got {out}{read_only}{flaw}; pass a new one"
        )
