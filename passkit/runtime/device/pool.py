"""The memory pool of a device: buffers are reused by later calls instead of being freed.

A `DevicePool` checks sizes, retries after freeing idle memory and reports what is in use. Memory
itself comes from the launcher's `Pool`, which has a free list for each size.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from passkit.errors import DeviceError
from passkit.runtime.device.launcher import Pool
from passkit.runtime.device.plain_launcher import BLOCK_NBYTES
from passkit.values.units import bytes_text

CallResult = TypeVar("CallResult")


class DevicePool:
    """The blocks of a device. Returned memory serves later calls, as the queue is in order.

    Args:
        device: The device; its ``limits`` say how much memory there is.
        allocator: What allocates blocks.
        refusals: The exceptions by which the allocator reports that memory is exhausted.
        device_setting: The environment variable that selects another device, for error messages.
    """

    def __init__(
        self,
        device: Any,
        allocator: Pool,
        refusals: tuple[type[Exception], ...],
        device_setting: str,
    ) -> None:
        self.device = device
        self.allocator = allocator
        self.refusals = refusals
        self.device_setting = device_setting

    @property
    def active_nbytes(self) -> int:
        """Bytes of the blocks in use."""
        return self.allocator.active_nbytes

    def take(self, nbytes: int) -> Any:
        """Return a block of at least ``nbytes`` bytes.

        When the device's memory is exhausted, idle memory is freed and the allocation retried.

        Raises:
            DeviceError: for a buffer larger than the device allows, and where the retry is refused.
        """
        limit = self.device.limits.largest_nbytes
        if nbytes > limit:
            raise DeviceError(
                f"a call needs a buffer of {bytes_text(nbytes)}, and {self.device} has buffers of "
                f"at most {bytes_text(limit)}; split the array, or choose another device by "
                f"{self.device_setting}"
            )
        try:
            return self.retry(lambda: self.allocator.allocate(nbytes), self.refusals)
        except self.refusals as error:
            raise DeviceError(
                f"a call needs {bytes_text(nbytes)} more, and {self.device} has no memory left: "
                f"{self.usage()}; call with smaller arrays, or delete other executables"
            ) from error

    def retry(
        self, call: Callable[[], CallResult], refusals: tuple[type[Exception], ...]
    ) -> CallResult:
        """Return ``call()``; after one of ``refusals`` free idle memory and call it once more.

        Raises: what the second call, or the first one other than ``refusals``, raises.
        """
        try:
            return call()
        except refusals:
            self.allocator.free_idle()
            return call()

    def free_idle(self) -> None:
        """Give memory that no block uses back to the device."""
        self.allocator.free_idle()

    def usage(self) -> str:
        """Return how much of the device's memory is in use, as a clause for error messages."""
        total = self.device.limits.global_nbytes
        used = bytes_text(self.active_nbytes)
        return f"{used} of its {bytes_text(total)} are in use by this process"


def align_block(nbytes: int) -> int:
    """Round bytes up to the next offset at which an array may begin inside a block.

    >>> align_block(0), align_block(1), align_block(512)
    (0, 512, 512)
    """
    return -(-nbytes // BLOCK_NBYTES) * BLOCK_NBYTES
