"""Arrays of `passkit.xp` on OpenCL and CUDA devices; CUDA runs on an emulated driver."""

from __future__ import annotations

import pickle
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import passkit as pk
from passkit import xp
from passkit.errors import DeviceError, FeedError, SettingError
from tests.emulator.fake_driver import fake_cuda
from tests.opencl import require_pyopencl, with_limits

OPENCL = "opencl:0"


@pytest.fixture
def opencl() -> Iterator[str]:
    """The name of an OpenCL device; the test is skipped where pyopencl is not installed."""
    require_pyopencl()
    xp.eval()
    yield OPENCL
    xp.eval()


@pytest.fixture(params=[pytest.param("opencl:0", marks=pytest.mark.opencl), "cuda:0"])
def device(request: pytest.FixtureRequest) -> Iterator[str]:
    """The name of a device: OpenCL, or CUDA on the emulated driver."""
    xp.eval()
    if request.param == OPENCL:
        require_pyopencl()
        yield request.param
    else:
        with fake_cuda():
            yield request.param
    xp.eval()


def matrix(rng: Any, rows: int = 30, columns: int = 40) -> Any:
    """Return a matrix of float32."""
    return rng.standard_normal((rows, columns)).astype(np.float32)


def changes(before: dict[str, int]) -> dict[str, int]:
    """Return the counters that have changed since ``before``, by how much."""
    return {k: v - before[k] for k, v in xp.stats().items() if v != before[k]}


def test_a_sequence_is_one_kernel_of_the_device(device: str, rng: Any) -> None:
    """Operations on arrays of a device wait in its queue, fuse, and leave their result there."""
    a, b = matrix(rng), matrix(rng)
    x, y = xp.asarray(a, device=device), xp.asarray(b, device=device)
    before = xp.stats()
    with xp.inspect() as runs:
        z = (x * 2 + y) * 0.5
        assert "pending" in repr(z) and z.device == device
        xp.eval(z)

    assert (len(runs), runs[0].launches, runs[0].path) == (1, 1, "explored")
    assert runs[0].executable is not None and runs[0].executable.target.device in device
    assert "multiply_0" in str(runs[0].explain()) and device not in str(runs[0])
    assert "unfused_runs" not in changes(before)
    np.testing.assert_allclose(z.numpy(), (a * 2 + b) * 0.5, rtol=1e-6)


def test_numbers_are_inputs_of_plans(device: str, rng: Any) -> None:
    """Other numbers, and other sizes, run the plan that is there."""
    a = matrix(rng)
    for k, rows in enumerate((30, 30, 50)):
        a = matrix(rng, rows)
        before = xp.stats()
        z = xp.asarray(a, device=device) * (k + 0.5) + k
        np.testing.assert_allclose(z.numpy(), a * (k + 0.5) + k, rtol=1e-6)
        assert changes(before).get("explorations", 0) == (k == 0)
    assert xp.stats()["cache_hits"] >= 2


def test_results_are_stored_over_arrays_that_nothing_refers_to(device: str, rng: Any) -> None:
    """A loop that replaces an array takes no new memory; other names keep their values."""
    a = matrix(rng)
    x = xp.asarray(a, device=device)
    kept = x
    x = x * 0.5 + 1
    xp.eval(x)
    before = xp.stats()
    for _ in range(3):
        x = x * 0.5 + 1
        xp.eval(x)
    difference = changes(before)

    assert (difference["aliases"], difference.get("bytes_allocated", 0)) == (3, 0)
    np.testing.assert_array_equal(kept.numpy(), a)
    np.testing.assert_allclose(x.numpy(), a / 16 + 1.875, rtol=1e-6)


def test_arrays_of_two_devices_do_not_mix(device: str, rng: Any) -> None:
    """The error has both devices and the way out; numbers and 0-d arrays of the CPU fit."""
    a = matrix(rng)
    x, y = xp.asarray(a, device=device), xp.asarray(a)
    message = rf"add needs arrays on one device, got float32\[30, 40\] on {device}, .* on cpu; "

    with pytest.raises(DeviceError, match=message + rf"x.to_device\('{device}'\) copies an array"):
        x + y
    with pytest.raises(DeviceError, match=r"stack needs arrays on one device, got .* on cpu, .*"):
        xp.stack([y, x])
    with pytest.raises(DeviceError, match=rf"multiply needs arrays on one device.* on {device}"):
        x *= a
    with pytest.raises(DeviceError, match=rf"add in place needs a result on cpu, got .* {device};"):
        number = xp.asarray(1.0)
        number += xp.asarray(2.0, device=device)
    pending_number = xp.sum(y * 2)
    for other in (2, 2.5, np.float32(3), xp.asarray(4.0, dtype=xp.float32), pending_number):
        np.testing.assert_allclose((x + other).numpy(), a + np.float32(float(other)), rtol=1e-5)
        assert (other + x).device == device
    np.testing.assert_allclose((x + y.to_device(device)).numpy(), a + a)


CREATED = {
    "asarray": lambda d: xp.asarray([[1, 2], [3, 4]], device=d),
    "asarray a number": lambda d: xp.asarray(1.5, device=d),
    "zeros": lambda d: xp.zeros((2, 3), device=d),
    "ones": lambda d: xp.ones(400, xp.int32, device=d),
    "empty": lambda d: xp.empty((2, 0), device=d),
    "full": lambda d: xp.full((3, 5), 7, device=d),
    "full of an array": lambda d: xp.full((3, 5), xp.asarray(2.5), device=d),
    "eye": lambda d: xp.eye(3, 4, k=1, device=d),
    "arange": lambda d: xp.arange(2, 20, 3, device=d),
    "arange of complex": lambda d: xp.arange(3, dtype=xp.complex64, device=d),
    "linspace": lambda d: xp.linspace(0, 1, 7, device=d),
    "linspace of complex": lambda d: xp.linspace(0, 1j, 7, device=d),
    "logspace": lambda d: xp.logspace(0, 2, 3, device=d),
    "zeros_like": lambda d: xp.zeros_like(xp.arange(3), device=d),
    "ones_like": lambda d: xp.ones_like(xp.arange(3), device=d),
    "empty_like": lambda d: xp.empty_like(xp.arange(3), device=d),
    "full_like": lambda d: xp.full_like(xp.arange(3), 4, device=d),
    "astype": lambda d: xp.astype(xp.arange(3), xp.float32, device=d),
    "fftfreq": lambda d: xp.fft.fftfreq(5, device=d),
    "rfftfreq": lambda d: xp.fft.rfftfreq(5, device=d),
    "from_dlpack": lambda d: xp.from_dlpack(np.arange(4.0), device=d),
    "from_dlpack of an array": lambda d: xp.from_dlpack(xp.arange(4.0), device=d),
    "to_device": lambda d: (xp.arange(4.0) + 1).to_device(d),
}


def test_creation_functions_take_a_device(opencl: str) -> None:
    """All create on the device what they create on the CPU, also as the default device."""
    for name, create in CREATED.items():
        x, expected = create(opencl), create("cpu")
        assert (x.device, expected.device) == (opencl, "cpu"), name
        assert (x.dtype, x.shape) == (expected.dtype, expected.shape), name
        np.testing.assert_allclose(np.asarray(x), np.asarray(expected), err_msg=name)
    with xp.config(device=opencl):
        assert xp.__array_namespace_info__().default_device() == opencl
        for name, create in CREATED.items():
            if "_" not in name and name != "astype":
                assert create(None).device == opencl, name
        assert xp.random.normal(xp.random.key(0), (300,)).device == opencl
    assert xp.zeros_like(create(opencl)).device == opencl


def test_devices_have_names(opencl: str) -> None:
    """A device has a number, or those of platform and device; unknown ones are refused."""
    info = xp.__array_namespace_info__()

    assert info.devices()[:2] == ["cpu", opencl] and info.default_device() == "cpu"
    for name in ("opencl", "opencl:0", "opencl:0:0"):
        assert xp.zeros(3, device=name).device == opencl
    assert xp.zeros(3, device="cpu:0").device == "cpu"
    for name in ("opencl:99", "opencl:9:9", "opencl:x", "gpu", "cuda:1", 7):
        with pytest.raises(SettingError, match=rf"zeros: there is no device .*{name}.*opencl:0"):
            xp.zeros(3, device=name)
    with pytest.raises(SettingError, match=r"config: there is no device 'tpu'; devices: cpu"):
        xp.config(device="tpu")
    with pytest.raises(SettingError, match=r"to_device: stream must be None, .* got 3"):
        xp.zeros(3).to_device(opencl, stream=3)


def test_without_a_driver_there_are_no_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    """The CPU is always there; other devices name the package that is missing."""
    monkeypatch.setitem(sys.modules, "pyopencl", None)

    assert xp.__array_namespace_info__().devices()[0] == "cpu"
    with pytest.raises(ImportError, match=r"import of pyopencl.*pip install 'passkit\[opencl\]'"):
        xp.zeros(3, device="opencl:0")


def test_arrays_move_between_devices(opencl: str, rng: Any) -> None:
    """`to_device` copies, or returns the array itself; NumPy gets copies, and never shares."""
    a = matrix(rng)
    x = xp.asarray(a, device=opencl)
    back = x.to_device("cpu")
    copied = np.asarray(x)
    copied[:] = 0

    assert x.to_device(opencl) is x and x.to_device(None) is x
    assert back.device == "cpu" and np.array_equal(back.numpy(), a)
    assert np.array_equal(np.asarray(x, dtype=np.float64), a)
    assert xp.asarray(back, device=opencl).device == opencl
    assert xp.asarray(x).device == opencl
    assert "device='opencl:0'" in repr(x) and "device" not in str(x)
    assert xp.view_of(xp.tril(xp.asarray(a[:30, :30])).to_device(opencl)).kind == "lower"
    with pytest.raises(FeedError, match=r"an array on opencl:0 gets to NumPy by a copy only, got"):
        np.asarray(x, copy=False)
    with pytest.raises(FeedError, match=r"an array on opencl:0 gets to cpu by a copy only, got"):
        xp.asarray(x, device="cpu", copy=False)
    with pytest.raises(FeedError, match=r"asarray: .* is not on opencl:0, got copy=False; leave"):
        xp.asarray(a, device=opencl, copy=False)


def test_elements_are_read_and_written_on_the_device(opencl: str, rng: Any) -> None:
    """Subscripts run as kernels; index arrays and NumPy values of the CPU are copied there."""
    a = matrix(rng)
    x = xp.asarray(a, device=opencl)
    rows = np.array([3, -1, 0])

    assert float(x[3, 4]) == a[3, 4]
    for key in (2, slice(1, 20, 3), (slice(None), 5), (None, 4, ...), rows, (rows, rows), a > 0):
        part = x[xp.asarray(key) if isinstance(key, np.ndarray) and key.dtype == bool else key]
        assert part.device == opencl
        np.testing.assert_array_equal(part.numpy(), a[key])
    np.testing.assert_array_equal(xp.take(x, xp.asarray(rows), axis=0).numpy(), a[rows])
    y = x.copy()
    changed = a.copy()
    for target in (y, changed):
        target[2] = 5
        target[3:6, ::2] = a[0:3, ::2]
        target[rows] = [1.0] * 40
        target[[4, 5]] = 7
    z = y.copy()
    z[xp.asarray(changed > 1)] = 0
    np.testing.assert_array_equal(y.numpy(), changed)
    np.testing.assert_array_equal(z.numpy(), np.where(changed > 1, 0, changed))
    np.testing.assert_array_equal(x.numpy(), a)
    with pytest.raises(IndexError, match=r"index 99 is out of range for axis 0 of length 30"):
        x[[0, 99]]
    with pytest.raises(DeviceError, match=r"arrays on one device, got .* on cpu"):
        z[:, [0, 1]] = xp.ones((30, 2))
    np.testing.assert_array_equal(xp.reshape(x, (40, 30)).numpy(), x.numpy().reshape(40, 30))
    np.testing.assert_array_equal(xp.repeat(x, np.arange(30), axis=0)[-1].numpy(), x.numpy()[-1])


def test_sequences_of_arrays_get_to_the_device_that_is_named(opencl: str) -> None:
    """Without a name the result is where the arrays are, also those in nested lists."""
    x = xp.asarray([1.0, 2.0], device=opencl)
    assert xp.asarray([x, x]).device == opencl
    assert xp.asarray([[x, x], [x, x]]).device == opencl
    moved = xp.asarray([[x, x], [x, x]], device="cpu")
    assert moved.device == "cpu"
    assert moved.tolist() == [[[1, 2], [1, 2]], [[1, 2], [1, 2]]]
    assert xp.asarray([xp.ones(2), xp.ones(2)], device=opencl).device == opencl


def test_operations_without_kernel_run_in_numpy(opencl: str, rng: Any) -> None:
    """They are counted, compute on a copy, and return an array of the device."""
    a = matrix(rng)
    x = xp.asarray(a, device=opencl)
    before = xp.stats()
    ordered = xp.sort(x * 2, axis=1)
    spectrum = xp.fft.rfft(x)
    signal = xp.fft.irfft(spectrum * 2)

    assert {ordered.device, spectrum.device, signal.device} == {opencl}
    assert changes(before)["host_operations"] == 3
    np.testing.assert_array_equal(ordered.numpy(), np.sort(a * 2, axis=1))
    np.testing.assert_allclose(signal.numpy(), a * 2, rtol=1e-4, atol=1e-5)
    assert xp.sum(x, dtype=xp.complex64).device == opencl
    assert np.nan_to_num(x).device == opencl


def test_a_sequence_that_does_not_compile_runs_in_numpy(opencl: str, rng: Any) -> None:
    """A device without float64 computes it on the host, after one warning."""
    x = xp.asarray(rng.standard_normal(777), device=opencl)
    with with_limits(double=False), pytest.warns(UserWarning, match="float64, which needs the ext"):
        y = xp.cos(x * 3) - 1
        np.testing.assert_allclose(y.numpy(), np.cos(x.numpy() * 3) - 1)
    assert y.device == opencl


def test_products_gradients_and_transformations(opencl: str, rng: Any) -> None:
    """Matrix products, densities, draws, `jit`, `grad` and `vmap` keep their device."""
    a, w = matrix(rng), rng.standard_normal(40).astype(np.float32)
    x, weights = xp.asarray(a, device=opencl), xp.asarray(w, device=opencl)

    def loss(weights: Any, x: Any) -> Any:
        return xp.mean((x @ weights - 1) ** 2)

    value, gradient = pk.value_and_grad(loss)(weights, x)
    residual = a @ w - 1
    assert (value.device, gradient.device) == (opencl, opencl)
    np.testing.assert_allclose(float(value), np.mean(residual**2), rtol=1e-4)
    np.testing.assert_allclose(gradient.numpy(), 2 * residual @ a / 30, rtol=1e-3, atol=1e-4)
    jitted = pk.jit(loss)
    for _ in range(2):
        assert jitted(weights, x).device == opencl
    np.testing.assert_allclose(float(jitted(weights, x)), float(value), rtol=1e-5)
    rows = pk.vmap(lambda row: xp.sum(row * weights))(x)
    np.testing.assert_allclose(rows.numpy(), a @ w, rtol=1e-3, atol=1e-4)
    density = xp.stats.normal_lpdf(x, 0.0, 2.0)
    assert density.device == opencl
    z = a.astype(np.float64) / 2
    expected = np.sum(-0.5 * z * z - np.log(2) - 0.5 * np.log(2 * np.pi))
    np.testing.assert_allclose(float(density), expected, rtol=1e-4)
    with pytest.raises(pk.errors.CheckError, match=r"normal_lpdf: Scale parameter = -1.0"):
        float(xp.stats.normal_lpdf(x, 0.0, -1.0))
    key = xp.random.key(3)
    drawn = xp.random.normal(key.to_device(opencl), (400,), loc=xp.zeros(400, device=opencl))
    np.testing.assert_allclose(drawn.numpy(), xp.random.normal(key, (400,)).numpy(), rtol=1e-5)


def test_arrays_that_functions_add_are_on_the_device(opencl: str) -> None:
    """Zeros, ones and numbers that functions add themselves are where their operands are."""
    x = xp.asarray([[1.0, 2.0], [3.0, 5.0]], device=opencl)
    indices = xp.asarray([[0, 1], [1, 0]], device=opencl)
    mean, var = xp.mean(x, axis=0), xp.var(x, axis=0)
    created = {
        "diag": (xp.diag(x[0], k=-1), [[0, 0, 0], [1, 0, 0], [0, 2, 0]]),
        "batch_norm": (xp.nn.batch_norm(x, mean, var, eps=0.0), [[-1, -1], [1, 1]]),
        "gather": (pk.vmap(lambda row, chosen: row[chosen])(x, indices), [[1, 2], [5, 3]]),
    }
    for name, (result, expected) in created.items():
        assert result.device == opencl, name
        np.testing.assert_allclose(result.numpy(), expected, rtol=1e-6, err_msg=name)


def test_dlpack_of_devices(opencl: str, rng: Any) -> None:
    """A capsule has the device's memory, or a copy of the CPU where the consumer wants one."""
    a = matrix(rng)
    x = xp.asarray(a, device=opencl) + 0

    assert x.__dlpack_device__() == (4, 0)
    assert "dltensor" in repr(x.__dlpack__()) and "dltensor" in repr(x.__dlpack__(copy=True))
    np.testing.assert_array_equal(np.from_dlpack(x, device="cpu", copy=True), a)
    np.testing.assert_array_equal(xp.from_dlpack(x).numpy(), a)
    assert xp.from_dlpack(x, device="cpu").device == "cpu"
    with pytest.raises(BufferError, match=r"on opencl:0 gets to the CPU by a copy only, got copy"):
        x.__dlpack__(dl_device=(1, 0), copy=False)
    with pytest.raises(BufferError, match=r"cannot be exported to the device \(2, 0\)"):
        x.__dlpack__(dl_device=(2, 0))
    with pytest.raises(BufferError, match=r"an array on opencl:0 has no memory of the host; x\.nu"):
        x.__buffer__(0)


def test_compiled_graphs_take_arrays_of_a_device(device: str, rng: Any) -> None:
    """An executable of the same device reads the memory, and returns arrays there if asked to."""
    a = matrix(rng)
    x = xp.asarray(a, device=device) * 2
    v = pk.var("v", (None, 40))
    run = pk.compile(pk.Graph([v + 1]), target=device.split(":")[0])
    (y,) = run(v=x, out="device")

    assert run.stats["bytes_uploaded"] + run.stats["bytes_downloaded"] == 0
    np.testing.assert_array_equal(y.numpy(), a * 2 + 1)
    assert not hasattr(xp.asarray(a), "__cuda_array_interface__")
    with pytest.raises(AttributeError, match="an array on cpu has no memory of a device of opencl"):
        xp.asarray(a).__opencl_array__  # noqa: B018


def test_pickles_know_the_device(opencl: str, rng: Any) -> None:
    """An array is restored on its device, and refused where there is none of the name."""
    a = matrix(rng)
    restored = pickle.loads(pickle.dumps(xp.asarray(a, device=opencl) + 0))
    assert restored.device == opencl and np.array_equal(restored.numpy(), a)
    data = pickle.dumps(xp.asarray(a, device=opencl)).replace(b"opencl:0", b"opencl:9")
    with pytest.raises(SettingError, match=r"unpickling: there is no device 'opencl:9'; devices"):
        pickle.loads(data)


def test_no_memory_left_on_the_device(opencl: str, rng: Any) -> None:
    """The error says what was needed; the arrays and the stream stay usable."""
    a = matrix(rng, 100, 100)
    x = xp.asarray(a, device=opencl)
    y = x[:10] @ x
    with with_limits(largest_nbytes=1000):
        with pytest.raises(DeviceError, match=r"a call needs a buffer of 39.1 KiB, and .* has buf"):
            xp.asarray(a, device=opencl)
        with pytest.raises(DeviceError, match=r"a call needs a buffer of .* KiB, and .* has"):
            xp.eval(y)
    np.testing.assert_allclose(y.numpy(), a[:10] @ a, rtol=1e-3, atol=1e-4)


def test_streams_of_a_thread_are_apart(opencl: str, rng: Any) -> None:
    """Queues of CPU and device are executed apart; `xp.eval()` and `xp.stream()` mean both."""
    a = matrix(rng)
    x, y = xp.asarray(a, device=opencl), xp.asarray(a)
    u, v = x + 1, y + 1
    assert xp.pending_operations() == 2
    float(xp.sum(v))
    assert "pending" in repr(u)
    with xp.stream():
        w = u * 2
        assert xp.pending_operations() == 1 and "pending" not in repr(u)
    xp.eval(w, [xp.sum(u), v])
    s, t = u * 3, v * 3
    xp.eval()
    assert "pending" not in repr(s) + repr(t)
    np.testing.assert_allclose(w.numpy(), (a + 1) * 2, rtol=1e-6)
    with xp.eager():
        z = x * 2 + 1
    np.testing.assert_allclose(z.numpy(), a * 2 + 1, rtol=1e-6)
