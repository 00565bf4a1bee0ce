"""Memory of an OpenCL device: reused, and the errors when it is exhausted."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import passkit as pk
from passkit.errors import DeviceError
from tests.opencl import (
    buffer_source,
    device_pool,
    new_device_pool,
    require_pyopencl,
    with_limits,
)

cl = require_pyopencl()
pytestmark = pytest.mark.opencl


class FailingSource:
    """Buffers of the device, of which the first ``times`` are refused."""

    def __init__(self, held: Any, times: int) -> None:
        self.held, self.times, self.freed = held, times, list[int]()

    def allocate(self, nbytes: int) -> Any:
        """Return a buffer with its handle, or raise."""
        if self.times:
            self.times -= 1
            raise cl.MemoryError("create_buffer", -4, "MEM_OBJECT_ALLOCATION_FAILURE")
        return self.held.allocate(nbytes)

    def free(self, handle: int) -> None:
        """Note the handle."""
        self.freed.append(handle)

    def wait(self, readers: Any) -> None:
        """Do nothing."""


def test_buffers_are_reused() -> None:
    """Buffers of one call serve the next one; none is in use in between."""
    pool = device_pool()
    exe = pk.compile(pk.parse("x: f32[500]; return exp(exp(x))"), target="opencl", fusion="none")
    feed = np.zeros(500, np.float32)
    exe(x=feed)
    before = pool.active_nbytes, pool.allocator.idle_nbytes
    exe(x=feed)

    assert (pool.active_nbytes, pool.allocator.idle_nbytes) == before
    assert device_pool() is pool


def test_idle_memory_is_freed_and_the_allocation_retried() -> None:
    """After the first refusal idle memory is freed, and the allocation succeeds."""
    source = FailingSource(buffer_source(), 0)
    pool = new_device_pool(source)
    address = pool.take(5000).address
    source.times = 1

    block = pool.take(0)
    assert block.size >= 1
    assert source.freed == [address] and not pool.allocator.idle_nbytes


def test_exhausted_memory_raises_with_the_sizes() -> None:
    """The second refusal raises with the sizes."""
    source = FailingSource(buffer_source(), 2)
    pool = new_device_pool(source)

    expected = r"needs 1.17 MiB more, and .* no memory left: 0 B of its .*iB are in use"
    with pytest.raises(DeviceError, match=expected):
        pool.take(1_228_800)
    assert not source.times


def test_a_too_large_buffer_raises() -> None:
    """A buffer beyond the device's limit raises at once."""
    with (
        with_limits(largest_nbytes=1000),
        pytest.raises(DeviceError, match=r"a buffer of 1.95 KiB, and .* at most 0.977 KiB; split"),
    ):
        pk.compile(pk.parse("x: f32[500]; return exp(x)"), target="opencl")(x=np.zeros(500, "f4"))


@pytest.mark.parametrize("kind, tries", [("MemoryError", 2), ("LogicError", 1)])
def test_a_kernel_that_does_not_start_raises(
    kind: str, tries: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error has the driver's message; without memory it is tried again first."""
    exe = pk.compile(pk.parse("x: f32[500]; return log1p(x)"), target="opencl")
    count = 0

    def refuse(*_: Any, **__: Any) -> None:
        nonlocal count
        count += 1
        raise getattr(cl, kind)("enqueue_nd_range_kernel", -5, "told so")

    monkeypatch.setattr(cl, "enqueue_nd_range_kernel", refuse)
    expected = r"launch kernel log1p_\w+ \(log1p\) of \d+ .*groups of \d+:"
    with pytest.raises(DeviceError, match=expected):
        exe(x=np.zeros(500, np.float32))
    assert count == tries
