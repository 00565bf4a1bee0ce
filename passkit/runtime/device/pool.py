"""Buffers of a device: taken from a pool, and given back when nobody holds them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, TypeVar

from passkit.errors import DeviceError
from passkit.values.units import bytes_text

Found = TypeVar("Found")
LEAST = 64
"""The bytes of the smallest buffer: a device has none of no bytes."""


class Pool(ABC):
    """Buffers of a device. What is given back serves the next call, as the queue is in order.

    ``other`` is what chooses another device, ``refusals`` what the driver raises for a buffer that
    it does not give.
    """

    other = ""
    refusals: tuple[type[Exception], ...] = ()

    def __init__(self, device: Any) -> None:
        self.device = device

    @abstractmethod
    def allocate(self, nbytes: int) -> Any:
        """A buffer of at least so many bytes, which goes back when nobody holds it."""

    @abstractmethod
    def free(self) -> None:
        """Give back to the device what nobody holds."""

    @property
    @abstractmethod
    def active(self) -> int:
        """The bytes that somebody holds."""

    def take(self, nbytes: int) -> Any:
        """A buffer of at least so many bytes.

        When the device has no room left, what the pool holds is freed and it is asked once more.

        Raises: DeviceError with the sizes when there is still no room.
        """
        limit = self.device.limits.largest_nbytes
        if nbytes > limit:
            raise DeviceError(
                f"a buffer of {bytes_text(nbytes)} is more than {self.device} gives at once, "
                f"{bytes_text(limit)}; split the array, or choose another device by {self.other}"
            )
        try:
            return self.again(lambda: self.allocate(max(LEAST, nbytes)), self.refusals)
        except self.refusals as error:
            raise DeviceError(self.full(nbytes)) from error

    def again(
        self, call: Callable[[], Found], refusals: tuple[type[Exception], ...]
    ) -> Found:
        """What a call gives, tried once more after what the pool holds has been freed."""
        try:
            return call()
        except refusals:
            self.free()
            return call()

    def full(self, nbytes: int) -> str:
        """What is said when there is no room."""
        return (
            f"{self.device} has no room for {bytes_text(nbytes)} more: {self.state()}; call with "
            "smaller arrays, or drop other executables"
        )

    def state(self) -> str:
        """How much memory is in use here."""
        whole = self.device.limits.global_nbytes
        return f"{bytes_text(self.active)} of its {bytes_text(whole)} are in use here"
