"""Variables on a device: they stay there until the host reads them, and are never stale."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import passkit as pk
from passkit.errors import FeedError
from tests.emulator.fake_driver import fake_cuda

o = pk.ops
N = 1000
TARGETS = ("cuda", pytest.param("opencl", marks=pytest.mark.opencl))


@pytest.fixture(params=TARGETS)
def target(request: pytest.FixtureRequest) -> Iterator[str]:
    """A target whose arrays are elsewhere: the fake driver's, or PoCL's."""
    if request.param == "opencl":
        pytest.importorskip("pyopencl", reason="the extra `opencl` is not installed")
        yield "opencl"
    else:
        with fake_cuda():
            yield "cuda"


def adding(state: pk.State | None = None, target: str = "cpu") -> Any:
    """A program that adds to a variable, in its place."""
    total = pk.state("total", np.zeros(N, np.float32))
    x = pk.var("x", (N,))
    return pk.compile(pk.Graph([], [(total.node, total + x)]), state=state, target=target)


def doubled(state: pk.State, target: str) -> Any:
    """A program that reads the same variable."""
    total = pk.state("total", np.zeros(N, np.float32))
    return pk.compile(pk.Graph([total * 2]), state=state, target=target)


def moved(exe: Any) -> tuple[int, int]:
    """The bytes that a call took to the device and back."""
    return exe.stats["bytes_uploaded"], exe.stats["bytes_downloaded"]


def test_a_call_copies_only_feeds_to_the_device(target: str) -> None:
    """The first call copies a variable to the device, later calls find it there."""
    exe, x = adding(target=target), np.ones(N, np.float32)

    exe(x=x)
    assert moved(exe) == (8 * N, 0)
    for n in (2, 3):
        exe(x=x)
        assert moved(exe) == (4 * N, 0)
        assert set(exe.state["total"]) == {n}
    exe.state["total"] = np.full(N, 10, np.float32)
    exe(x=x)
    assert moved(exe) == (8 * N, 0) and set(exe.state["total"]) == {11}


def test_programs_of_a_device_share_variables(target: str) -> None:
    """A program reads on the device what another one wrote there."""
    shared = pk.State()
    exe, other = adding(shared, target), doubled(shared, target)
    exe(x=np.ones(N, np.float32))

    assert set(other()[0]) == {2}
    assert moved(other) == (0, 4 * N)


def test_host_arrays_are_up_to_date_when_read(target: str, tmp_path: Any) -> None:
    """Reading the arrays or saving them gives the values that the device wrote."""
    exe, x = adding(target=target), np.ones(N, np.float32)
    own = exe.state.arrays["total"]
    exe(x=x)

    assert exe.state.arrays["total"] is own and set(own) == {1}
    own[...] = 5
    exe(x=x)
    exe.state.save(tmp_path / "s.npz")
    assert set(own) == {6} == set(np.load(tmp_path / "s.npz")["total"])
    exe(x=x)
    exe.state.load(tmp_path / "s.npz")
    exe(x=x)
    assert set(exe.state["total"]) == {7}


@pytest.mark.parametrize("host", ["cpu", "interpret"])
def test_host_and_device_programs_share_variables(target: str, host: str) -> None:
    """Programs of the host and the device alternate, whichever was compiled first."""
    x, shared = np.ones(N, np.float32), pk.State()
    exe = adding(shared, target)
    exe(x=x)
    native = adding(shared, host)
    reading = doubled(shared, host)

    for n in (2, 4, 6):
        native(x=x)
        assert set(reading()[0]) == {2 * n}
        exe(x=x)
        assert set(reading()[0]) == {2 * n + 2}
        assert moved(exe) == (8 * N, 4 * N if host == "cpu" else 0)


@pytest.mark.opencl
def test_two_devices_share_variables() -> None:
    """Each device gets the values that the other wrote."""
    pytest.importorskip("pyopencl", reason="the extra `opencl` is not installed")
    shared, x = pk.State(), np.ones(N, np.float32)
    with fake_cuda():
        exes = [adding(shared, t) for t in ("cuda", "opencl")]
        for n in range(6):
            exes[n % 2](x=x)
        assert set(shared["total"]) == {6}


def test_values_on_the_device_are_copied_there(target: str) -> None:
    """A variable's new value that is on the device is copied there."""
    a = pk.state("a", np.zeros((3, 4), np.float32))
    b = pk.state("b", np.ones((3, 4), np.float32))
    x = pk.var("x", (3, 4))
    exe = pk.compile(pk.Graph([a + b], [(a.node, b), (b.node, x)]), target=target)
    feeds = [np.full((3, 4), n, np.float32) for n in range(2, 6)]

    actual = [exe(x=f)[0][0, 0] for f in feeds]
    assert actual == [1, 3, 5, 7]
    assert exe.state["a"][0, 0] == 4 and exe.state["b"][0, 0] == 5


@pytest.mark.parametrize("reads_new_value", [False, True])
def test_a_failed_call_keeps_the_host_values(target: str, reads_new_value: bool) -> None:
    """A call that fails after an update, even in a reader of it, leaves the host's values."""
    fails: list[bool] = []
    op = pk.register_op(f"test_variables_checked_{target}_{reads_new_value}", num_inputs=1)
    op.set_attr("FInferShape", lambda node, shape: shape)
    op.set_attr("FCompute", lambda node, x: x * (1 // int(not (fails and fails.pop()))))
    total = pk.state("total", np.zeros(N, np.float32))
    new = total + pk.var("x", (N,))
    checked = new if reads_new_value else pk.ops.exp(new)
    exe = pk.compile(pk.Graph([op(checked)], [(total.node, new)]), target=target)
    assert [str(step).split()[0] for step in exe.steps] == ["launch", "python"]
    x = np.ones(N, np.float32)
    fails.append(True)
    with pytest.raises(ZeroDivisionError):
        exe(x=x)
    assert set(exe.state["total"]) == {0}
    exe(x=x)
    assert set(exe.state["total"]) == {1}
    with pytest.raises(FeedError, match="there is no variable 'sum'"):
        exe.state["sum"]
