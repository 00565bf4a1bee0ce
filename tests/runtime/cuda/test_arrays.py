"""Arrays shared without copies, in both directions, also with PyTorch, JAX and CuPy."""

from __future__ import annotations

import gc
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
import pytest

import passkit as pk
from passkit.errors import FeedError
from passkit.runtime.cuda.arrays import DeviceArray, find_array, new_array
from passkit.runtime.cuda.device import device, pool_of
from passkit.runtime.device import dlpack
from passkit.runtime.device.dlpack import CPU, CUDA, export_capsule, import_capsule
from passkit.tuning.gpu_calibration import calibrate_gpu
from tests.cuda import LIBRARIES, machine_of, on_cuda
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


class Tensor:
    """An array on the device that its library does not share."""

    @property
    def __cuda_array_interface__(self) -> Any:
        raise RuntimeError("it requires a gradient")


def test_arrays_that_cannot_be_shared_raise(machine: FakeDriver, rng: Any) -> None:
    """Elements that NumPy lacks, and refusals by an array's library, are named."""
    exe = on_cuda(pk.Graph([o.exp(pk.var("x", ("n", 40)))]))
    tensor = DlpackTensor(normal(rng, 9, 40).astype(ml_dtypes.float8_e4m3fn))
    for value, message in (
        (tensor, "DlpackTensor .* cannot be shared: NumPy has no dtype .* type code 4, 8 bits"),
        (Tensor(), "a Tensor on the device cannot be shared: it requires a gradient"),
    ):
        with pytest.raises(FeedError, match=message):
            exe(x=value)


def test_outputs_stay_on_the_device(machine: FakeDriver, rng: Any) -> None:
    """Outputs on the device are inputs of the next call, and are exported by both interfaces."""
    x = pk.var("x", ("n", 8))
    first = pk.Graph([o.exp(x), o.cast(x, "bfloat16")])
    second = pk.Graph([pk.var("y", ("n", 8)) * 2.0])
    feed = normal(rng, 5, 8)
    one, other = on_cuda(first), on_cuda(second)
    exported, half = one({"x": feed}, out="device")
    assert one.stats["bytes_downloaded"] == 0 and isinstance(exported, DeviceArray)
    (result,) = other(y=exported)
    agrees(second, {"y": np.exp(feed)}, [result], rtol=1e-5)
    assert other.stats["bytes_uploaded"] == 0

    interface = exported.__cuda_array_interface__
    assert (
        interface["shape"] == (5, 8)
        and interface["typestr"] == "<f4"
        and interface["stream"] == device().stream
    )
    assert str(exported).startswith("float32[5, 8] on Fake") and exported.__dlpack_device__() == (
        CUDA,
        0,
    )
    assert np.array_equal(np.asarray(exported), exported.numpy())
    assert np.asarray(exported, np.float64).dtype == np.float64
    with pytest.raises(AttributeError, match="no dtype bfloat16, which .*; use __dlpack__"):
        half.__cuda_array_interface__  # noqa: B018
    resident = find_array(half)
    assert resident is not None and resident.dtype == ml_dtypes.bfloat16
    assert resident.address == half.buffer.address and resident.contiguous
    given = import_capsule(
        exported.__dlpack__(stream=2, max_version=(1, 0), dl_device=(CUDA, 0), copy=False)
    )
    assert (given.address, given.shape, given.strides) == (interface["data"][0], (5, 8), (8, 1))
    address, pool = exported.address, pool_of(device()).allocator
    del exported, interface, result
    gc.collect()
    assert address in pool.active, "who took the capsule has it still"
    del given
    gc.collect()
    assert address not in pool.active


def test_invalid_exchanges_raise(machine: FakeDriver) -> None:
    """Stream 0, a copy, another device, a consumed capsule and an unknown type raise."""
    empty = new_array(np.dtype("f4"), (0, 3))
    assert empty.numpy().shape == (0, 3) and empty.__cuda_array_interface__["data"] == (0, False)
    with pytest.raises(FeedError, match=r"__dlpack__ of float32\[0, 3\] on .* got stream=0, which"):
        empty.__dlpack__(stream=0)
    for wrong in ({"copy": True}, {"dl_device": (CPU, 0)}):
        with pytest.raises(
            BufferError, match=r"\[0, 3\] on .* passes its memory without a copy, got dl_device="
        ):
            empty.__dlpack__(**wrong)  # type: ignore[arg-type]
    capsule = empty.__dlpack__()
    import_capsule(capsule)
    with pytest.raises(ValueError, match="PyCapsule_GetPointer called with incorrect name"):
        import_capsule(capsule)
    kind = dlpack.DLDataType(2, 32, 4)
    with pytest.raises(ValueError, match="DLPack's type code 2, 32 bits and 4 vector lanes"):
        dlpack.numpy_dtype(kind)
    exe = on_cuda(pk.Graph([pk.var("x", (3,)) + 1.0]))
    with pytest.raises(FeedError, match="out must be a list of 1 arrays or None, got a str"):
        exe({"x": np.ones(3, np.float32)}, out="devise")


def test_capsules_may_outlive_everything_else() -> None:
    """A capsule that only the end of Python releases, one in a cycle and one not, ends it well."""
    code = """
import builtins, gc
import numpy as np
from passkit.runtime.device.dlpack import CPU, export_capsule

class Keeper:
    pass

def capsule():
    return export_capsule(0, np.dtype("f4"), (), (CPU, 0), None)

gc.disable()
keeper = Keeper()
keeper.itself, keeper.capsule = keeper, capsule()
del keeper
builtins.kept = capsule()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)

    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


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
        r"NumPy cannot read by DLPack: it is on DLPack's device \(2, 0\)",
    ):
        exe(x=OnlyDlpack(feed, CUDA))
    with pytest.raises(FeedError, match=r"is on DLPack's device \(2, 0\)"):
        exe(x=OnlyDlpack(feed, CUDA))


@pytest.fixture(params=LIBRARIES)
def real_machine(request: pytest.FixtureRequest) -> Iterator[Any]:
    """This machine's device, through a library."""
    with machine_of(request.param) as driver:
        yield driver


class ForeignLibrary(NamedTuple):
    """A library's functions: upload an array, import DLPack, download an array."""

    put: Callable[[Any], Any]
    take: Callable[[Any], Any]
    get: Callable[[Any], Any]
    writes: bool
    """Whether its arrays can be written."""


def torch() -> ForeignLibrary:
    """Return PyTorch's functions."""
    t = import_module("torch")
    return ForeignLibrary(
        lambda a: t.from_numpy(a).cuda(), t.from_dlpack, lambda x: x.cpu().numpy(), True
    )


def jax() -> ForeignLibrary:
    """Return JAX's functions."""
    j = import_module("jax")
    gpu = j.devices("cuda")[0]
    return ForeignLibrary(lambda a: j.device_put(a, gpu), j.dlpack.from_dlpack, np.asarray, False)


def cupy() -> ForeignLibrary:
    """Return CuPy's functions."""
    c = import_module("cupy")
    return ForeignLibrary(c.asarray, c.from_dlpack, c.asnumpy, True)


OTHERS = (torch, jax, cupy)


@pytest.mark.cuda
@pytest.mark.parametrize("other", OTHERS, ids=lambda f: f.__name__)
def test_arrays_are_shared_in_both_directions(
    other: Callable[[], ForeignLibrary], real_machine: Any, rng: Any
) -> None:
    """Inputs are read in place after what fills them; outputs are imported without a copy."""
    try:
        library = other()
    except (ImportError, RuntimeError) as error:
        pytest.skip(f"no {other.__name__} with a device: {error}")
    graph = pk.Graph([o.exp(pk.var("x", ("n", 40))) + 1.0])
    exe = on_cuda(graph)
    for n in (9, 50_000, 1):
        feed = rng.standard_normal((n, 40)).astype(np.float32)
        expected = np.exp(feed * 2 + 1) + 1
        given = library.put(feed) * 2 + 1  # may still be computed as it is handed over
        (result,) = exe(x=given)
        np.testing.assert_allclose(result, expected, rtol=1e-5)
        assert exe.stats["bytes_uploaded"] == 0
        (retained,) = exe({"x": given}, out="device")
        taken = library.take(retained)
        np.testing.assert_allclose(library.get(taken + 1), expected + 1, rtol=1e-5)
        assert exe.stats["bytes_downloaded"] == 0
        if library.writes:
            room = library.put(np.zeros_like(feed))
            assert exe({"x": given}, out=[room])[0] is room
            np.testing.assert_allclose(library.get(room), expected, rtol=1e-5)
    (again,) = exe({"x": taken}, out="device")
    agrees(graph, {"x": library.get(taken)}, [again.numpy()], rtol=1e-5)


@pytest.mark.cuda
def test_calibration_gives_plausible_speeds(real_machine: Any) -> None:
    """Copies and launches, timed by events, have speeds of a GPU."""
    result = calibrate_gpu(device())

    assert 1e-7 < result.launch < 1e-4
    speeds = [speed for _, speed in result.curve]
    assert all(2e10 < speed < 2e13 for speed in speeds), speeds
