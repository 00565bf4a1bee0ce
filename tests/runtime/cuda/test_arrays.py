"""Arrays shared without copies: by DLPack and the CUDA array interface, in both directions."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import passkit as pk
from passkit.errors import FeedError
from passkit.runtime.cuda.arrays import DeviceArray, find_array, new_array
from passkit.runtime.cuda.device import device, pool_of
from passkit.runtime.device import dlpack
from passkit.runtime.device.dlpack import CPU, CUDA, export_capsule, import_capsule
from passkit.values.dtype import dtype_of
from tests.cuda import on_cuda
from tests.emulator.fake_driver import FakeDriver, fake_cuda
from tests.planned import agrees

o = pk.ops


@pytest.fixture
def machine() -> Iterator[FakeDriver]:
    """The fake driver."""
    with fake_cuda() as driver:
        yield driver


class DlpackTensor:
    """An array on the device that only has DLPack, filled in its own stream."""

    def __init__(self, array: Any, where: tuple[int, int] = (CUDA, 0)) -> None:
        self.driver, self.where, self.streams = device().driver, where, list[Any]()
        self.like = array
        with self.driver.current():
            self.address = self.driver.allocate(array.nbytes)
            self.stream = self.driver.stream()
            self.driver.upload(self.address, array.reshape(-1).view(np.uint8), self.stream)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.where

    def __dlpack__(self, *, stream: int | None = None) -> Any:
        self.streams.append(stream)
        if stream is not None:
            self.driver.wait_for(stream, self.stream)
        return export_capsule(self.address, self.like.dtype, self.like.shape, self.where, self)


def normal(rng: Any, *shape: int) -> Any:
    """Return normally distributed float32 numbers."""
    return rng.standard_normal(shape).astype(np.float32)


def test_inputs_by_dlpack_are_read_in_place(machine: FakeDriver, rng: Any) -> None:
    """Inputs are read in place after their library's stream has filled them, and then released."""
    graph = pk.Graph([o.exp(pk.var("x", ("n", 40)))])
    exe = on_cuda(graph)
    for _ in range(3):
        feed = normal(rng, 9, 40)
        tensor = DlpackTensor(feed)
        agrees(graph, {"x": feed}, exe(x=tensor), rtol=1e-5)
        assert tensor.streams == [device().queue.stream] and exe.stats["bytes_uploaded"] == 0
    gc.collect()
    assert not dlpack.exported
    with pytest.raises(FeedError, match=r"'x' needs float32\[n, 40\], got a float64\[9, 40\]"):
        exe(x=DlpackTensor(normal(rng, 9, 40).astype(np.float64)))


def test_outputs_stay_on_the_device(machine: FakeDriver, rng: Any) -> None:
    """Outputs on the device are inputs of the next call, and are exported by both interfaces."""
    x = pk.var("x", ("n", 8))
    first = pk.Graph([o.exp(x), o.cast(x, "bfloat16")])
    second = pk.Graph([pk.var("y", ("n", 8)) * 2.0])
    feed = normal(rng, 5, 8)
    one, other = on_cuda(first), on_cuda(second)
    made, half = one({"x": feed}, out="device")
    assert one.stats["bytes_downloaded"] == 0 and isinstance(made, DeviceArray)
    (result,) = other(y=made)
    agrees(second, {"y": np.exp(feed)}, [result], rtol=1e-5)
    assert other.stats["bytes_uploaded"] == 0

    interface = made.__cuda_array_interface__
    assert (
        interface["shape"] == (5, 8)
        and interface["typestr"] == "<f4"
        and interface["stream"] is None
    )
    assert str(made).startswith("float32[5, 8] on Fake") and made.__dlpack_device__() == (CUDA, 0)
    assert np.array_equal(np.asarray(made), made.numpy())
    assert np.asarray(made, np.float64).dtype == np.float64
    with pytest.raises(AttributeError, match="no bfloat16; use __dlpack__"):
        half.__cuda_array_interface__  # noqa: B018
    resident = find_array(half)
    assert resident is not None and resident.dtype == dtype_of("bfloat16").numpy
    assert resident.address == half.buffer.address and resident.contiguous
    given = import_capsule(
        made.__dlpack__(stream=2, max_version=(1, 0), dl_device=(CUDA, 0), copy=False)
    )
    assert (given.address, given.shape, given.strides) == (interface["data"][0], (5, 8), (8, 1))
    address, busy = made.buffer.address, pool_of(device()).allocator.active
    del made, interface, result
    gc.collect()
    assert address in busy, "who took the capsule has it still"
    del given
    gc.collect()
    assert address not in busy


def test_invalid_exchanges_raise(machine: FakeDriver) -> None:
    """Stream 0, a copy, another device, a consumed capsule and an unknown type raise."""
    made = new_array(np.dtype("f4"), (0, 3))
    assert made.numpy().shape == (0, 3) and made.__cuda_array_interface__["data"] == (0, False)
    with pytest.raises(FeedError, match=r"__dlpack__ of float32\[0, 3\] on .* got stream=0, which"):
        made.__dlpack__(stream=0)
    for wrong in ({"copy": True}, {"dl_device": (CPU, 0)}):
        with pytest.raises(BufferError, match=r"\[0, 3\] on .* is handed over where it is"):
            made.__dlpack__(**wrong)  # type: ignore[arg-type]
    capsule = made.__dlpack__()
    import_capsule(capsule)
    with pytest.raises(ValueError, match="PyCapsule_GetPointer called with incorrect name"):
        import_capsule(capsule)
    kind = dlpack.DLDataType(2, 32, 4)
    with pytest.raises(ValueError, match="DLPack's type 2 of 32 bits x 4"):
        dlpack.numpy_dtype(kind)
    exe = on_cuda(pk.Graph([pk.var("x", (3,)) + 1.0]))
    with pytest.raises(FeedError, match="out must be a list of 1 arrays or None, got a str"):
        exe({"x": np.ones(3, np.float32)}, out="devise")


def test_numpy_imports_our_capsules(rng: Any) -> None:
    """NumPy reads the exported arrays; a capsule that is never consumed is released."""
    for dtype in ("float32", "float16", "int64", "uint8", "bool", "complex64", "float64"):
        array = np.ascontiguousarray(rng.integers(0, 2, (2, 3, 4)).astype(dtype))

        class Ours:
            like = array

            def __dlpack_device__(self) -> tuple[int, int]:
                return CPU, 0

            def __dlpack__(self, **_: Any) -> Any:
                x = self.like
                return export_capsule(x.ctypes.data, x.dtype, x.shape, (CPU, 0), x)

        result = np.from_dlpack(Ours())
        assert np.array_equal(result, array) and np.shares_memory(result, array)
        given = import_capsule(array.__dlpack__())
        assert (given.dtype, given.shape, given.address) == (
            array.dtype,
            array.shape,
            array.ctypes.data,
        )
        Ours().__dlpack__()
        del result, given
    gc.collect()
    assert not dlpack.exported


class OnlyDlpack:
    """A host array that NumPy knows only by DLPack."""

    def __init__(self, array: Any, kind: int = CPU) -> None:
        self.held, self.kind = array, kind

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.kind, 0

    def __dlpack__(self, **_: Any) -> Any:
        return self.held.__dlpack__()


def test_host_programs_import_dlpack(rng: Any) -> None:
    """Programs of every target take host arrays by DLPack; outputs are exported as NumPy's are."""
    graph = pk.Graph([o.exp(pk.var("x", (4, 5)))])
    exe = pk.compile(graph)
    feed = normal(rng, 4, 5)
    (result,) = exe(x=OnlyDlpack(feed))

    agrees(graph, {"x": feed}, [np.from_dlpack(result)], rtol=1e-5)
    with pytest.raises(
        FeedError,
        match=r"input 'x' needs float32\[4, 5\], got a OnlyDlpack that "
        r"NumPy cannot take by DLPack: it lies on DLPack's device \(2, 0\)",
    ):
        exe(x=OnlyDlpack(feed, CUDA))
    with pytest.raises(FeedError, match=r"lies on DLPack's device \(2, 0\)"):
        exe(x=OnlyDlpack(feed, CUDA))
