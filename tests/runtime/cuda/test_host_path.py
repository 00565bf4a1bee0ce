"""Calls on arrays of the device: they enqueue and return, and only readers wait."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import passkit as pk
from passkit.errors import DeviceError, FeedError, SettingError
from passkit.runtime.cuda.arrays import new_array
from passkit.runtime.device import launcher
from passkit.runtime.device.dlpack import import_capsule
from passkit.runtime.opencl.device import LAUNCHER_FUNCTIONS
from tests.cuda import on_cuda
from tests.emulator.fake_driver import FakeDriver, Fault
from tests.runtime.cuda.small_programs import MAX_GRAPHS, device, fill_pool, on_device

o = pk.ops
ROOT = Path(__file__).resolve().parents[3]
ONES = np.ones((8, 40), np.float32)


def tanh() -> Any:
    """Return an executable of one kernel."""
    return on_cuda(pk.Graph([o.tanh(pk.var("x", ("n", 40)))]))


def chain() -> Any:
    """Return an executable of three kernels."""
    x = pk.var("x", ("n",))
    return on_cuda(pk.Graph([o.exp(o.sin(o.tanh(x)))]), fusion="none")


def calls_of(fake: FakeDriver, function: Callable[[], Any]) -> dict[str, int]:
    """Return how often ``function()`` calls each function of the driver."""
    fake.log.clear()
    function()
    return dict(Counter(name for name, _ in fake.log))


def test_a_chain_of_calls_only_launches(fake: FakeDriver) -> None:
    """Each of a hundred calls is one launch; the first read waits once, and finds the result."""
    exe = tanh()
    (first,) = exe({"x": ONES}, out="device")
    array = exe({"x": first}, out="device")[0]
    fill_pool()

    def calls() -> None:
        nonlocal array
        for _ in range(100):
            (array,) = exe({"x": array}, out="device")

    assert calls_of(fake, calls) == {"launch": 100}
    assert exe.stats["bytes_uploaded"] == exe.stats["bytes_downloaded"] == 0
    assert calls_of(fake, lambda: array.numpy()) == {"download": 1, "finish": 1}
    expected = ONES
    for _ in range(102):
        expected = np.tanh(expected)
    np.testing.assert_allclose(array.numpy(), expected, rtol=1e-4)


@pytest.mark.parametrize("form", ["named", "dict", "list", "into"])
def test_feeds_in_every_form_are_repeated(form: str, fake: FakeDriver) -> None:
    """Feeds by name, in a dict, in order, and results in arrays of the caller only launch."""
    x, y = pk.var("x", (8, 40)), pk.var("y", (8, 40))
    exe = on_cuda(pk.Graph([o.tanh(x) - y]))
    a, b = on_device(ONES), on_device(3 * ONES)
    room = new_array(a.dtype, a.shape)
    forms: dict[str, Callable[[], Any]] = {
        "named": lambda: exe(y=b, x=a, out="device"),
        "dict": lambda: exe({"x": a}, y=b, out="device"),
        "list": lambda: exe([a, b], out="device"),
        "into": lambda: exe({"y": b, "x": a}, out=[room]),
    }
    call = forms[form]
    for _ in range(2):
        call()
    fill_pool()
    results: list[Any] = []
    assert calls_of(fake, lambda: results.extend(call())) == {"launch": 1}
    assert (results[0] is room) == (form == "into")
    np.testing.assert_allclose(results[0].numpy(), np.tanh(ONES) - 3, rtol=1e-6)


def test_feeds_that_do_not_fit_raise_as_ever(fake: FakeDriver) -> None:
    """After calls that were repeated, wrong feeds and results are refused by name."""
    exe = tanh()
    array = on_device(ONES)
    for _ in range(3):
        (result,) = exe({"x": array}, out="device")
    for feeds, message in (
        ({"x": on_device(ONES[0].copy())}, r"'x' needs float32\[n, 40\], got a float32\[40\]"),
        ({"x": on_device(ONES.astype("f8"))}, r"'x' needs float32\[n, 40\], got a float64\[8, 40"),
        ({"x": on_device(ONES[:, :39].copy())}, "'x' needs .*, got float32.8, 39."),
        ({"z": array}, "no input 'z'|input 'x'"),
        ({"x": array, "z": array}, "no input 'z'|'z'"),
    ):
        with pytest.raises(FeedError, match=message):
            exe(feeds, out="device")
    with pytest.raises(FeedError, match=r"out\[0\] needs .* has bytes of an input or another"):
        exe({"x": array}, out=[array])
    with pytest.raises(FeedError, match=r"out\[0\] needs a contiguous float32\[8, 40\] of its own"):
        exe({"x": array}, out=[on_device(ONES[:4].copy())])
    with pytest.raises(FeedError, match="out must be a list of 1 arrays"):
        exe({"x": array}, out=[result, result])
    (other,) = exe({"x": on_device(ONES[:3].copy())}, out="device")
    assert other.shape == (3, 40)


def test_every_door_waits_and_only_these(fake: FakeDriver) -> None:
    """A stream that imports an array waits for it, the host does only where it reads."""
    exe = tanh()
    (array,) = exe({"x": on_device(ONES)}, out="device")
    own = device().stream
    with fake.current():
        other = fake.stream()
    expected = np.tanh(ONES)

    def through_dlpack(stream: int | None) -> Callable[[], Any]:
        return lambda: array.__dlpack__(stream=stream)

    assert calls_of(fake, through_dlpack(own)) == {}
    assert calls_of(fake, through_dlpack(-1)) == {}
    assert calls_of(fake, lambda: array.__cuda_array_interface__) == {}
    assert array.__cuda_array_interface__["stream"] == own
    assert calls_of(fake, through_dlpack(None)) == {"wait_for": 1}
    assert fake.calls("wait_for") == [(1, own)], "the legacy default stream"
    assert calls_of(fake, through_dlpack(other)) == {"wait_for": 1}
    assert fake.calls("wait_for") == [(other, own)]
    read = np.zeros_like(ONES)
    with fake.current():
        fake.download(read.reshape(-1).view(np.uint8), array.address, other)
        assert not read.any(), "nothing has run"
        fake.finish(other)
    np.testing.assert_allclose(read, expected, rtol=1e-6)


def test_numpy_results_are_waited_for_once(fake: FakeDriver) -> None:
    """A call with arrays of the host waits once, whatever else it has."""
    exe = tanh()
    array = on_device(ONES)
    exe(x=array)
    fill_pool()
    results: list[Any] = []
    counts = calls_of(fake, lambda: results.extend(exe(x=array)))
    assert counts == {"launch": 1, "download": 1, "finish": 1}
    assert (exe.stats["bytes_uploaded"], exe.stats["bytes_downloaded"]) == (0, ONES.nbytes)
    np.testing.assert_allclose(results[0], np.tanh(ONES), rtol=1e-6)
    for feed in (ONES, 2 * ONES):
        counts = calls_of(fake, lambda feed=feed: results.extend(exe(x=feed)))  # type: ignore[misc]
        assert counts == {"upload": 1, "launch": 1, "download": 1, "finish": 1}
        np.testing.assert_allclose(results[-1], np.tanh(feed), rtol=1e-6)
    assert exe.stats["bytes_uploaded"] == exe.stats["bytes_downloaded"] == ONES.nbytes
    np.testing.assert_allclose(exe(x=ONES[::2])[0], np.tanh(ONES[::2]), rtol=1e-6)
    (same,) = exe.run_positional(ONES)
    np.testing.assert_allclose(same, np.tanh(ONES), rtol=1e-6)
    assert exe.run_positional(ONES.astype("f8")) is NotImplemented
    fill_pool()
    counts = calls_of(fake, lambda: exe({"x": ONES}, out="device"))
    assert counts == {"upload": 1, "launch": 1, "finish": 1}, "the feed may be changed at once"


class ForeignArray:
    """An array of another library, which works in a stream of its own."""

    def __init__(self, array: Any, stream: int | None, version: int = 3) -> None:
        self.driver = device().driver
        with self.driver.current():
            self.address = self.driver.allocate(array.nbytes)
            self.own_stream = self.driver.stream()
            flat = array.reshape(-1).view(np.uint8)
            self.driver.upload(self.address, flat, self.own_stream)
            if stream is None:
                self.driver.finish(self.own_stream)
        self.interface: dict[str, Any] = {
            "shape": array.shape,
            "typestr": array.dtype.str,
            "data": (self.address, False),
            "version": version,
        }
        if version > 2:
            self.interface["stream"] = None if stream is None else self.own_stream

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return self.interface


def test_streams_of_other_libraries_wait_for_calls(fake: FakeDriver) -> None:
    """A call waits for the streams of its arrays, and they for the call; nobody else does."""
    exe = tanh()
    feed, room = ForeignArray(ONES, 0), ForeignArray(0 * ONES, 0)
    exe({"x": feed}, out=[room])
    counts = calls_of(fake, lambda: exe({"x": feed}, out=[room]))
    assert counts == {"wait_for": 4, "launch": 1}
    own = device().stream
    waits = {(own, feed.own_stream), (own, room.own_stream)}
    assert set(fake.calls("wait_for")) == waits | {(b, a) for a, b in waits}
    read = np.zeros_like(ONES)
    with fake.current():
        fake.download(read.reshape(-1).view(np.uint8), room.address, room.own_stream)
        fake.finish(room.own_stream)
    np.testing.assert_allclose(read, np.tanh(ONES), rtol=1e-6)


@pytest.mark.parametrize("version", [2, 3])
def test_arrays_without_a_stream_are_waited_for(version: int, fake: FakeDriver) -> None:
    """A library that names no stream may use its array at once, so that the call waits."""
    exe = tanh()
    feed = ForeignArray(ONES, None, version)
    exe({"x": feed}, out="device")
    fill_pool()
    assert calls_of(fake, lambda: exe({"x": feed}, out="device")) == {"launch": 1, "finish": 1}


def test_memory_of_consumers_is_waited_for_before_it_is_used_again(fake: FakeDriver) -> None:
    """Memory that a consumer's stream may still read is written after that stream has passed."""
    exe = tanh()
    array = on_device(ONES)
    (result,) = exe({"x": array}, out="device")
    with fake.current():
        other = fake.stream()
    taken = import_capsule(result.__dlpack__(stream=other))
    address, read = result.address, np.zeros_like(ONES)
    with fake.current():
        fake.download(read.reshape(-1).view(np.uint8), address, other)
    del taken, result
    gc.collect()
    results: list[Any] = []

    def again() -> None:
        while not results or results[-1].address != address:
            results.extend(exe({"x": array}, out="device"))

    calls_of(fake, again)
    assert fake.calls("wait_for") == [(device().stream, other)]
    results[-1].numpy()
    np.testing.assert_allclose(read, np.tanh(ONES), rtol=1e-6)


def test_failures_are_told_at_the_next_call_or_read(fake: FakeDriver) -> None:
    """The error of a kernel that runs after its call returned names an earlier call, perhaps."""
    exe = tanh()
    array = on_device(ONES)
    (result,) = exe({"x": array}, out="device")
    lost = "an illegal memory access was encountered"
    message = r"lost to this process: {} failed with {}: an illegal memory .* of an earlier call"
    fake.fail("finish", lost, times=2)
    with pytest.raises(DeviceError, match=message.format("reading an array", "finish")):
        result.numpy()
    fake.fail("launch", lost, times=2)
    with pytest.raises(DeviceError, match=message.format("a call", "launch")):
        exe({"x": array}, out="device")


def test_a_refused_launch_is_tried_again(fake: FakeDriver) -> None:
    """Where the first launch of a call is refused, idle memory is freed and it is done again."""
    exe = tanh()
    array = on_device(ONES)
    exe({"x": array}, out="device")
    fill_pool()
    fake.fail("launch", "out of memory", times=2)
    (result,) = exe({"x": array}, out="device")
    np.testing.assert_allclose(result.numpy(), np.tanh(ONES), rtol=1e-6)
    assert fake.counts["free"]
    fill_pool()
    before = fake.counts["free"]
    fake.fail("launch", "out of memory", times=2)
    np.testing.assert_allclose(exe(x=ONES)[0], np.tanh(ONES), rtol=1e-6)
    assert fake.counts["free"] > before


def test_a_launch_that_is_refused_in_the_middle_raises(fake: FakeDriver) -> None:
    """The call is not done again, as a part of it is enqueued."""
    exe = on_cuda(pk.Graph([o.exp(o.tanh(pk.var("x", ("n", 40))))]), fusion="none")
    array = on_device(ONES)
    for _ in range(2):
        exe({"x": array}, out="device")
    fake.faults["launch"] = Fault("unknown error", fake.counts["launch"] + 1)
    with pytest.raises(DeviceError, match="failed at launch 2 of a call: .* status 999, perhaps"):
        exe({"x": array}, out="device")
    exe(x=ONES)
    fake.faults["launch"] = Fault("unknown error", fake.counts["launch"] + 1)
    with pytest.raises(DeviceError, match="failed at launch 2 of a call: .* status 999, perhaps"):
        exe(x=ONES)
    fake.faults["finish"] = Fault("unspecified launch failure", fake.counts["finish"], 2)
    with pytest.raises(DeviceError, match=r"a call failed with finish: unspecified launch failure"):
        exe(x=ONES)
    fake.faults["finish"] = Fault("unknown error", fake.counts["finish"])
    with pytest.raises(DeviceError, match="failed at a call: .* status 999, perhaps because of an"):
        exe(x=ONES)


def momentum() -> tuple[Any, Any, pk.State]:
    """Return a step with momentum on the device, the same on the CPU, and the former's state."""

    def step() -> tuple[pk.Graph, Any]:
        p, m = (pk.state(name, np.full(300, 0.5, np.float32)) for name in "pm")
        g = pk.var("g", (300,))
        new = m * 0.9 + g
        graph = pk.Graph([], [(m.node, new), (p.node, p - new * 0.1)])
        return graph, pk.Graph([o.reduce_sum(p * p)])

    (train, loss), (train_host, _) = step(), step()
    state = pk.State.of(train)
    exe = pk.compile(train, target="cuda", state=state)
    return exe, pk.compile(train_host), (state, pk.compile(loss, target="cuda", state=state))  # type: ignore[return-value]


def test_state_is_updated_in_place_without_python(fake: FakeDriver) -> None:
    """Steps only launch until the host reads or sets a variable; then it sees and gives values."""
    exe, other, (state, _) = momentum()  # type: ignore[misc]
    gradients = [on_device(np.linspace(k, 1, 300, dtype=np.float32)) for k in range(3)]

    def steps() -> None:
        for g in gradients:
            exe({"g": g}, out="device")
            other(g=g.numpy())

    steps()
    launches = len(exe.kernels)
    counts = calls_of(fake, lambda: [exe({"g": g}, out="device") for g in gradients])
    assert counts == {"launch": 3 * launches}
    for g in gradients:
        other(g=g.numpy())
    assert calls_of(fake, lambda: state["p"]) == {"download": 1, "finish": 1}
    for turn in range(3):
        for name in "pm":
            np.testing.assert_allclose(state[name], other.state[name], rtol=1e-5, atol=1e-6)
        if turn == 1:
            for each in (state, other.state):
                each["m"] = np.zeros(300, np.float32)
        steps()
    exe({"g": gradients[0]}, out="device")
    state.pin()
    exe({"g": gradients[0]}, out="device")
    for _ in range(2):
        other(g=gradients[0].numpy())
    np.testing.assert_allclose(state.memory["p"], other.state["p"], rtol=1e-5, atol=1e-6)


def test_programs_that_share_a_state_take_turns_without_python(fake: FakeDriver) -> None:
    """A step and its loss only launch, one after the other, and see each other's values."""
    exe, _, (state, loss) = momentum()  # type: ignore[misc]
    g = on_device(np.ones(300, np.float32))
    for _ in range(2):
        exe({"g": g}, out="device")
        (value,) = loss(out="device")
    fill_pool()

    def turn() -> None:
        nonlocal value
        exe({"g": g}, out="device")
        (value,) = loss(out="device")

    assert set(calls_of(fake, turn)) == {"launch"}
    expected = np.sum(state["p"].astype(np.float64) ** 2)
    np.testing.assert_allclose(value.numpy(), expected, rtol=1e-5)


def test_graphs_of_launches_for_eight_sets_of_addresses(fake: FakeDriver) -> None:
    """Feeds that take turns have a graph each; the least recently used one is dropped."""
    exe = chain()
    arrays = [np.linspace(k, 1, 50, dtype=np.float32) for k in range(MAX_GRAPHS + 1)]
    feeds = [on_device(a) for a in arrays]
    rooms = [new_array(a.dtype, a.shape) for a in feeds]
    expected = [np.exp(np.sin(np.tanh(a))) for a in arrays]
    fill_pool()

    def turn(*which: int) -> None:
        for k in which:
            exe({"x": feeds[k]}, out=[rooms[k]])

    turn(0)
    eight = range(MAX_GRAPHS)
    assert calls_of(fake, lambda: turn(*eight)) == {"launch": 3 * MAX_GRAPHS}
    counts = calls_of(fake, lambda: turn(*eight))
    assert counts == {"graph": MAX_GRAPHS, "replay": MAX_GRAPHS}
    assert calls_of(fake, lambda: turn(*eight)) == {"replay": MAX_GRAPHS}
    assert exe.stats["graph_replays"] == 2 * MAX_GRAPHS
    assert exe.stats["graphs_made"] == MAX_GRAPHS
    turn(MAX_GRAPHS, MAX_GRAPHS)
    assert calls_of(fake, lambda: turn(0)) == {"drop": 1, "launch": 3}
    for room, right in zip(rooms, expected, strict=True):
        np.testing.assert_allclose(room.numpy(), right, rtol=1e-5)
    exe = None
    gc.collect()
    assert fake.counts["drop"] == fake.counts["graph"]


def test_a_driver_without_graphs_launches_one_by_one(fake: FakeDriver) -> None:
    """After one warning, kernels are launched one by one."""
    exe = chain()
    array = on_device(ONES.reshape(-1))
    room = new_array(array.dtype, array.shape)
    for _ in range(2):
        exe({"x": array}, out=[room])
    fake.fail("graph", "operation not supported")
    with pytest.warns(UserWarning, match="kernels on .* are launched one by one"):
        exe({"x": array}, out=[room])
    assert calls_of(fake, lambda: exe({"x": array}, out=[room])) == {"launch": 3}
    np.testing.assert_allclose(room.numpy(), np.exp(np.sin(np.tanh(ONES.reshape(-1)))), rtol=1e-5)


def test_threads_get_the_context_once(fake: FakeDriver) -> None:
    """Calls in a thread without a context make it current at the first one."""
    exe = tanh()
    array = on_device(ONES)
    exe({"x": array}, out="device")
    before = fake.native.switches

    def calls() -> Any:
        for _ in range(5):
            (result,) = exe({"x": array}, out="device")
        return result

    with ThreadPoolExecutor(1) as pool:
        result = pool.submit(calls).result()
    assert fake.native.switches - before <= 1
    np.testing.assert_allclose(result.numpy(), np.tanh(ONES), rtol=1e-6)


def test_threads_share_programs(fake: FakeDriver) -> None:
    """Calls of one executable from several threads have results of their own."""
    exe = chain()
    arrays = [np.linspace(k, 1, 50, dtype=np.float32) for k in range(8)]
    feeds = [on_device(a) for a in arrays]

    def call(k: int) -> Any:
        (result,) = exe({"x": feeds[k % 8]}, out="device")
        return result.numpy()

    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(call, range(64)))
    for k, result in enumerate(results):
        np.testing.assert_allclose(result, np.exp(np.sin(np.tanh(arrays[k % 8]))), rtol=1e-5)


def test_the_launcher_refuses_malformed_records() -> None:
    """Records, drivers and arrays with wrong parts raise with these."""
    if not launcher.IS_NATIVE:
        pytest.skip("the launcher in C is not used")
    with pytest.raises(LookupError, match="the driver has no function 'cuLaunchKernel'"):
        launcher.DriverCalls(True, {}, 0, 0, False)
    driver = launcher.DriverCalls(False, dict.fromkeys(LAUNCHER_FUNCTIONS, 8), 0, 0, False)
    pool = launcher.Pool(lambda n: n, lambda address: None, lambda readers: None)

    def record(
        kind: type = launcher.DeviceArrayBase,
        shapes: tuple[Any, ...] = ((2,),),
        words: tuple[Any, ...] = ((0, 0),),
    ) -> Any:
        launch = (1, 1, (1, 1, 1), (1, 1, 1), 0, False, words)
        return launcher.Record(driver, pool, kind, None, shapes, (), (), (launch,), None)

    assert record().expected == 0
    with pytest.raises(TypeError, match="a subclass of DeviceArrayBase, got <class 'int'>"):
        record(int)
    with pytest.raises(ValueError, match=r"at most 8 axes, got \(1, 1, 1, 1, 1, 1, 1, 1, 1\)"):
        record(shapes=((1,) * 9,))
    with pytest.raises(ValueError, match="a word needs a base from -1 to 0, got 1"):
        record(words=((1, 0),))


PROGRAM = """
import numpy as np, passkit as pk
from passkit.runtime.device import launcher
from tests.emulator.fake_driver import fake_cuda
with fake_cuda():
    p = pk.state("p", np.ones(50, np.float32))
    x = pk.var("x", (50,))
    graph = pk.Graph([pk.ops.exp(pk.ops.tanh(x))], [(p.node, p + x)])
    exe = pk.compile(graph, target="cuda", fusion="none")
    (y,) = exe({"x": np.ones(50, np.float32)}, out="device")
    for _ in range(3):
        (y,) = exe({"x": y}, out="device")
    print(launcher.IS_NATIVE, y.numpy()[0], exe.state["p"][0], y.nbytes, y)
"""


def test_without_the_launcher_in_c_results_are_the_same() -> None:
    """PASSKIT_DEVICE_LAUNCHER selects the implementation, and programs compute the same."""
    printed = []
    for choice in ("c", "python"):
        environ = {**os.environ, "PASSKIT_DEVICE_LAUNCHER": choice, "PYTHONPATH": str(ROOT)}
        command = (sys.executable, "-c", PROGRAM)
        done = subprocess.run(command, cwd=ROOT, env=environ, capture_output=True, text=True)
        assert not done.returncode, done.stderr
        printed.append(done.stdout.split(maxsplit=1))
    assert [native for native, _ in printed] == ["True", "False"]
    assert printed[0][1] == printed[1][1]


def test_another_launcher_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """PASSKIT_DEVICE_LAUNCHER has two values."""
    monkeypatch.setenv("PASSKIT_DEVICE_LAUNCHER", "rust")
    with pytest.raises(SettingError, match="PASSKIT_DEVICE_LAUNCHER must be .*, got 'rust'"):
        launcher.implementation()
