"""Tensors on a CUDA device, on the fake driver: PyTorch's part is played by tensors of the CPU.

PyTorch's own conversions need a device: `torch.from_dlpack` and the handle of its current stream.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

torch: Any = pytest.importorskip("torch")

from torch._subclasses.fake_tensor import FakeTensorMode  # noqa: E402
from torch.fx.experimental.proxy_tensor import make_fx  # noqa: E402

from passkit.errors import SettingError  # noqa: E402
from passkit.frontends.torch import devices  # noqa: E402
from passkit.frontends.torch.backend import compile_functional  # noqa: E402
from passkit.frontends.torch.compiled import CompiledGraph, GraphOfPyTorch  # noqa: E402
from passkit.runtime.cuda.device import device  # noqa: E402
from tests.emulator.fake_driver import FakeDriver, fake_cuda  # noqa: E402


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeDriver]:
    """The fake driver, whose memory tensors of the CPU read; PyTorch is in a stream of its own."""
    with fake_cuda() as fake:
        with fake.current():
            stream = fake.stream()
        monkeypatch.setattr(devices, "current_stream", lambda device: stream)
        monkeypatch.setattr(
            devices, "device_tensor_of", lambda array: torch.from_numpy(array.numpy())
        )
        yield fake


def on_device(driver: FakeDriver, *extents: int) -> Any:
    """Return a tensor of random numbers in the memory of the fake driver."""
    values = torch.randn(extents)
    with driver.current():
        memory = driver.memory[driver.allocate(values.nbytes)]
    tensor = torch.from_numpy(memory.view(np.float32)).view(extents)
    return tensor.copy_(values)


def traced(function: Callable[..., Any], *places: str) -> Any:
    """Trace a function of 3x4 tensors on some devices, which need not exist."""
    with FakeTensorMode(allow_non_fake_inputs=True):
        args = [torch.empty(3, 4, device=place) for place in places]
        return make_fx(function)(*args)


def test_tensors_on_cuda_run_on_the_target_cuda(driver: FakeDriver) -> None:
    """The target follows from the tensors; their stream and passkit's wait for each other."""
    module = traced(lambda x, y: (torch.tanh(x) + y, (x * 2).t()), "cuda:0", "cuda:0")
    run = compile_functional(module, "error", {})
    assert isinstance(run, CompiledGraph) and run.options["target"] == "cuda"
    x, y = on_device(driver, 3, 4), on_device(driver, 3, 4)
    stream = devices.current_stream(x.device)
    driver.log.clear()
    first, second = run([x, y])
    torch.testing.assert_close(first, torch.tanh(x) + y)
    torch.testing.assert_close(second, (x * 2).t())
    assert second.stride() == (1, 4)
    own = device().stream
    waits = [what for name, what in driver.log if name == "wait_for"]
    assert (own, stream) in waits and (stream, own) in waits
    assert not driver.calls("upload")


def test_arrays_name_the_current_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    """Addresses are those of the tensors; the default stream has its own handle."""
    for stream, named in ((5, 5), (0, devices.LEGACY_STREAM)):
        monkeypatch.setattr(devices, "current_stream", lambda device, stream=stream: stream)
        x = torch.randn(2, 3)
        array = devices.device_array_of(x).__cuda_array_interface__
        assert array["data"] == (x.data_ptr(), False) and array["stream"] == named
        assert (array["shape"], array["typestr"], array["version"]) == ((2, 3), "<f4", 3)
        strided = devices.device_array_of(x.t()).tensor
        assert strided.is_contiguous() and torch.equal(strided, x.t())
    assert devices.device_array_of(x.bfloat16()).dtype is torch.bfloat16


@pytest.mark.parametrize(
    ("function", "places", "reason"),
    [
        (
            lambda x, y: (x + 1, y + 1),
            ("cuda:0", "cuda:1"),
            "tensors are on cuda:0, cuda:1, and passkit needs all on the CPU or on cuda:0",
        ),
        (lambda x: x + 1, ("meta",), "tensors are on meta, and"),
        (
            lambda x: torch.poisson(x) + 1,
            ("cuda:0",),
            "on CUDA PyTorch runs all of a graph with aten::poisson, .* of PyTorch's generator",
        ),
    ],
    ids=["two devices", "another device", "a call of PyTorch"],
)
def test_graphs_that_stay_in_pytorch(
    function: Callable[..., Any], places: tuple[str, ...], reason: str
) -> None:
    """Tensors on several devices, and operators that passkit lacks, are left to PyTorch."""
    module = traced(function, *places)
    run = compile_functional(module, "extern", {})
    assert isinstance(run, GraphOfPyTorch)
    with pytest.raises(SettingError, match=reason):
        compile_functional(module, "error", {})


def test_another_target_is_refused() -> None:
    """A target that is not that of the tensors is named."""
    module = traced(lambda x: x + 1, "cuda:0")
    with pytest.raises(SettingError, match=r"tensors are on cuda:0, and target is 'cpu'"):
        compile_functional(module, "extern", {"target": "cpu"})
