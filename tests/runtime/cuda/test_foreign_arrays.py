"""Arrays of PyTorch, JAX and CuPy on a device: read, written and returned without copies."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
import pytest

import passkit as pk
from passkit.runtime.cuda.device import device
from passkit.tuning.gpu_calibration import calibrate_gpu
from tests.cuda import LIBRARIES, machine_of, on_cuda
from tests.planned import agrees

o = pk.ops
pytestmark = pytest.mark.cuda


@pytest.fixture(params=LIBRARIES)
def machine(request: pytest.FixtureRequest) -> Iterator[Any]:
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


@pytest.mark.parametrize("other", OTHERS, ids=lambda f: f.__name__)
def test_arrays_are_shared_in_both_directions(
    other: Callable[[], ForeignLibrary], machine: Any, rng: Any
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


def test_calibration_gives_plausible_speeds(machine: Any) -> None:
    """Copies and launches, timed by events, have speeds of a GPU."""
    result = calibrate_gpu(device())

    assert 1e-7 < result.launch < 1e-4
    speeds = [speed for _, speed in result.curve]
    assert all(2e10 < speed < 2e13 for speed in speeds), speeds
