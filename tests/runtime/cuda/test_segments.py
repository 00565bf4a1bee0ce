"""Graphs of kernels, products, convolutions and copies: what is recorded, and when it serves."""

from __future__ import annotations

import gc
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import passkit as pk
from passkit.errors import DeviceError
from passkit.runtime.cuda.array import new_array
from passkit.runtime.cuda.device import device
from passkit.runtime.cuda.driver import DriverError
from passkit.runtime.cuda.pool import pool_of, size_class
from passkit.runtime.cuda.segments import MOST_GRAPHS
from tests.cuda import on_cuda
from tests.emulator.fake import FakeDriver, faked
from tests.emulator.libraries import FakeLt
from tests.planned import agrees

o = pk.ops


def normal(rng: Any, *shape: int) -> Any:
    """Numbers of both signs."""
    return rng.standard_normal(shape).astype(np.float32)


def layer(width: int = 8) -> pk.Graph:
    """A kernel, a product, a kernel."""
    weights = normal(np.random.default_rng(7), 16, width)
    return pk.Graph([o.tanh(o.matmul(o.exp(pk.var("x", ("n", 16))), weights))])


def there(array: Any) -> Any:
    """A copy of an array on the device."""
    made, own = new_array(array.dtype, array.shape), device()
    with own.used("a test"):
        own.queue.upload(made.buffer, array.reshape(-1).view(np.uint8)).wait()
    return made


def held(count: int = 1, nbytes: int = 200) -> list[Any]:
    """Memory that a call had, and cannot have again."""
    with device().used("a test"):
        return [pool_of(device()).take(nbytes) for _ in range(count)]


def settled() -> None:
    """Memory is there for what follows: the first call has the addresses of all others."""
    sizes = {size_class(n) for n in range(1, 20_000, 100)}
    del [x for n in sizes for x in held(8, n)][:]


def test_a_product_between_kernels(equipped: Any, rng: Any) -> None:
    """The second call records all three, later ones are one call of the driver."""
    settled()
    graph = layer()
    exe = on_cuda(graph, host=("library",))
    for _ in range(20):
        feeds = {"x": normal(rng, 30, 16)}
        agrees(graph, feeds, exe(feeds), rtol=1e-4)

    assert (exe.stats["graphs_made"], exe.stats["graph_replays"]) == (1, 19)
    assert len(equipped.calls("capture")) == 1 and not equipped.calls("graph", "change")
    assert len(equipped.calls("launch")) == 2 * 2, "one by one, and recorded"
    with device().used("a test"):
        assert device().driver.graphs


def test_feeds_in_turn(equipped: Any, rng: Any) -> None:
    """Each set of addresses has a graph; those that were not used for longest are dropped."""
    settled()
    graph = layer()
    exe: Any = on_cuda(graph, host=("library",))
    arrays = [normal(rng, 30, 16) for _ in range(MOST_GRAPHS + 1)]
    feeds = [there(a) for a in arrays]
    wanted = [pk.interpret(graph, {"x": a})[0] for a in arrays]

    def call(*which: int) -> tuple[int, int]:
        for k in which:
            (found,) = exe(x=feeds[k])
            np.testing.assert_allclose(found, wanted[k], rtol=1e-4)
        return exe.stats["graphs_made"], exe.stats["graph_replays"]

    assert call(0, 1) == (0, 0)
    assert call(0, 1, 0, 1, 0, 1) == (2, 6)
    assert call(*range(2, MOST_GRAPHS)) == (2, 6) and not equipped.calls("drop")
    assert call(MOST_GRAPHS) == (2, 6) and len(equipped.calls("drop")) == 1
    assert call(0) == (2, 6), "it is the one that was dropped"
    assert call(MOST_GRAPHS, 0) == (4, 8)
    exe = None
    gc.collect()
    assert len(equipped.calls("drop")) == len(equipped.calls("capture"))


def test_other_addresses(equipped: Any, rng: Any) -> None:
    """Where others hold the memory of the last call, nothing is written there."""
    settled()
    graph = layer()
    exe = on_cuda(graph, host=("library",))
    taken: list[Any] = []
    for k in range(12):
        feeds = {"x": normal(rng, 30, 16)}
        agrees(graph, feeds, exe(feeds), rtol=1e-4)
        if k in (3, 7):
            sizes = (200, 1000, 2000, 4000, 8000)
            taken += [x for n in sizes for x in held(2, n)]
            kept = [there(np.full(n // 4, 7.0, np.float32)) for n in sizes]
    assert exe.stats["graphs_made"] == 3 and exe.stats["graph_replays"] == 12 - 3
    assert all((a.numpy() == 7).all() for a in kept)


def test_programs_in_turn(equipped: Any, rng: Any) -> None:
    """A graph writes to no memory that another program's results have."""
    graphs = [layer(8), layer(24), pk.Graph([o.exp(layer(8).outputs[0])])]
    exes = [on_cuda(g, host=("library",)) for g in graphs]
    kept: list[tuple[Any, Any]] = []
    for k in range(18):
        feeds = {"x": normal(rng, 30, 16)}
        (made,) = exes[k % 3](feeds, out="device")
        kept.append((made, pk.interpret(graphs[k % 3], feeds)[0]))
        kept = kept[-5:]
        for array, wanted in kept:
            np.testing.assert_allclose(array.numpy(), wanted, rtol=1e-4)
    assert sum(e.stats["graph_replays"] for e in exes) > 0


def test_convolutions(equipped: Any, rng: Any) -> None:
    """What they need besides their arrays is the call's; their filters stay where they are."""
    settled()
    x, w = pk.var("x", ("n", 6, 7, 2)), pk.var("w", (3, 2, 2, 5))
    fixed = normal(rng, 2, 2, 5, 3)
    y = o.conv2d(o.tanh(x), w, strides=(2, 2), padding="SAME")
    graph = pk.Graph([o.exp(o.conv2d(y, fixed, padding="VALID"))])
    exe = on_cuda(graph, host=("library",))
    for n in (3, 2, 3, 3, 2, 2, 3):
        feeds = {"x": normal(rng, n, 6, 7, 2), "w": normal(rng, 3, 2, 2, 5)}
        agrees(graph, feeds, exe(feeds), rtol=1e-3)

    assert exe.stats["host_steps"] == 0
    assert (exe.stats["graphs_made"], exe.stats["graph_replays"]) == (2, 5)


def test_variables(equipped: Any, rng: Any) -> None:
    """Their new values are copied in the graph; what the host writes to one is seen."""
    settled()
    weights = pk.state("w", normal(rng, 16, 16))
    x = pk.var("x", (16, 16))
    y = o.matmul(o.tanh(x), weights)
    graph = pk.Graph([o.assign(weights, o.matmul(o.exp(y * 0.01), weights) * 0.1), y])
    exe, other = on_cuda(graph, host=("library",)), pk.compile(graph)
    for k in range(8):
        if k == 5:
            for each in (exe, other):
                each.state["w"] = np.eye(16, dtype=np.float32)
        feed = normal(rng, 16, 16)
        for found, wanted in zip(exe(x=feed), other(x=feed), strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(exe.state["w"], other.state["w"], rtol=1e-3, atol=1e-4)
    assert exe.stats["graph_replays"] == 7 and exe.stats["graphs_made"] == 1


def test_steps_of_the_host_in_between(equipped: Any, rng: Any) -> None:
    """What both sides look at is where they look for it; each side of a sort is a graph."""
    settled()
    y = o.matmul(o.exp(pk.var("x", ("n", 16))), normal(rng, 16, 8))
    z = o.sort(o.tanh(y), axis=1)
    graph = pk.Graph([o.relu(o.matmul(o.sin(z + y), normal(rng, 8, 8)))])
    exe = on_cuda(graph, host=("library", "python"))
    for _ in range(6):
        feeds = {"x": 0.1 * normal(rng, 30, 16)}
        agrees(graph, feeds, exe(feeds), rtol=1e-3)
    assert exe.stats["host_steps"] == 1 and exe.stats["graphs_made"] == 2
    assert exe.stats["graph_replays"] == 10


def test_threads(equipped: Any, rng: Any) -> None:
    """Calls at the same time have memory of their own, and graphs of that."""
    exe = on_cuda(layer(), host=("library",))
    feeds = [normal(rng, 30, 16) for _ in range(4)]
    wanted = [exe(x=feed)[0].tobytes() for feed in feeds]

    with ThreadPoolExecutor(4) as pool:
        calls = [pool.submit(exe, {"x": feeds[k % 4]}) for k in range(40)]
        assert [c.result()[0].tobytes() for c in calls] == wanted * 10
    assert exe.stats["graph_replays"] > 0


def test_profile(equipped: Any, rng: Any) -> None:
    """Steps are timed one by one, whatever graph there is."""
    settled()
    exe = on_cuda(layer(), host=("library",))
    feeds = {"x": normal(rng, 30, 16)}
    before = [exe(feeds)[0].tobytes() for _ in range(3)]
    made = exe.stats["graphs_made"], exe.stats["graph_replays"]
    profile = exe.profile(feeds, runs=2, copies=False)

    assert len(profile.rows) == 4 and all(r.seconds > 0 for r in profile.rows)
    assert (exe.stats["graphs_made"], exe.stats["graph_replays"]) == made
    assert exe(feeds)[0].tobytes() == before[0] == before[2]


def test_memory_is_given_back(equipped: Any, rng: Any) -> None:
    """A graph has none between calls."""
    settled()
    exe = on_cuda(layer(), host=("library",))
    pool = pool_of(device())
    active = []
    for _ in range(4):
        exe(x=normal(rng, 30, 16))
        active.append(pool.active)
    before = len(equipped.calls("allocate"))
    for _ in range(4):
        exe(x=normal(rng, 30, 16))

    assert len(set(active)) == 1 and len(equipped.calls("allocate")) == before
    del exe
    gc.collect()
    assert pool.active == 0


def planted(fake: FakeDriver, rng: Any, plant: Callable[[], None]) -> pk.Graph:
    """A program that is called once before something is planted, and then for ever one by one."""
    settled()
    graph = layer()
    exe = on_cuda(graph, host=("library",))
    feeds = {"x": normal(rng, 30, 16)}
    agrees(graph, feeds, exe(feeds), rtol=1e-4)
    plant()
    agrees(graph, feeds, exe(feeds), rtol=1e-4)
    for _ in range(3):
        agrees(graph, feeds, exe(feeds), rtol=1e-4)
    assert fake.counts["capture"] == 1 and not exe.stats["graphs_made"]
    return graph


SLOW = r"3 steps on Fake .* are enqueued one by one, because it makes no graph of them: "


@pytest.mark.parametrize("call, said", [
    ("capture", "operation not supported"), ("cublasLtMatmul", "status 14"),
    ("launch", "too many resources requested for launch"),
])  # fmt: skip
def test_what_cannot_be_recorded(call: str, said: str, fake: FakeDriver, rng: Any) -> None:
    """One warning, and one by one from then on; other programs' graphs are recorded."""
    with pytest.warns(UserWarning, match=f"{SLOW}.*{call}: {said}"):
        planted(fake, rng, lambda: fake.fail(call, said))

    other = on_cuda(layer(24), host=("library",))
    for _ in range(3):
        other(x=normal(rng, 30, 16))
    assert other.stats["graph_replays"] == 2 and gc.isenabled()


@pytest.mark.parametrize("tells", [True, False])
def test_a_library_that_allocates(
    tells: bool, fake: FakeDriver, rng: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it must not do ends the recording, also where it says nothing of that."""
    multiply = FakeLt.cublasLtMatmul

    def greedy(self: FakeLt, *arguments: Any) -> int:
        try:
            self.driver.free(self.driver.allocate(512))
        except DriverError:
            if tells:
                return 14
        return multiply(self, *arguments)

    said = "cublasLtMatmul: status 14" if tells else "end: operation failed due to a previous error"
    with pytest.warns(UserWarning, match=SLOW + said):
        planted(fake, rng, lambda: monkeypatch.setattr(FakeLt, "cublasLtMatmul", greedy))


@pytest.mark.parametrize("call", ["capture", "replay"])
def test_a_lost_device(call: str, rng: Any) -> None:
    """It is an error there, too."""
    with faked(absent=()) as driver:
        settled()
        exe = on_cuda(layer(), host=("library",))
        feeds = {"x": normal(rng, 30, 16)}
        exe(feeds)
        driver.fail(call, "unspecified launch failure")
        with pytest.raises(DeviceError, match=rf"is lost to this process: .* {call}: unspecified"):
            exe(feeds)


def test_no_room_for_a_graph(fake: FakeDriver, rng: Any) -> None:
    """What nobody holds is freed, and it is launched once more."""
    settled()
    graph = layer()
    exe = on_cuda(graph, host=("library",))
    feeds = {"x": normal(rng, 30, 16)}
    for k in range(4):
        if k == 2:
            del held(1, 1 << 20)[:]
            fake.fail("replay", "out of memory")
        agrees(graph, feeds, exe(feeds), rtol=1e-4)
    assert fake.counts["free"] and exe.stats["graph_replays"] == 3


def test_a_driver_without_graphs(fake: FakeDriver, rng: Any) -> None:
    """Each step is enqueued by itself."""
    fake.graphs = False
    exe = on_cuda(layer(), host=("library",))
    for _ in range(3):
        exe(x=normal(rng, 30, 16))
    assert not fake.calls("capture", "replay") and len(fake.calls("launch")) == 6


def test_nodes_that_are_not_changed(fake: FakeDriver, rng: Any) -> None:
    """Where the driver changes one node and not the next, the next call changes what is left."""
    graph = pk.Graph([o.exp(o.sin(o.tanh(pk.var("x", ("n",)))))])
    exe = on_cuda(graph, fusion="none")
    feeds = {"x": normal(rng, 50)}
    for _ in range(2):
        exe(feeds)
    taken = held(4)
    fake.fail("change", "invalid argument")
    fake.faults["change"] = type(fake.faults["change"])("invalid argument", 1)
    with pytest.raises(DeviceError, match="change: invalid argument"):
        exe(feeds)
    del taken[:]
    for _ in range(2):
        agrees(graph, feeds, exe(feeds), rtol=1e-5)


def test_drivers_record(machine: Any) -> None:
    """What a function enqueues is done by each replay, and not before; a fault leaves no trace."""
    own = device()
    driver = own.driver
    with own.used("a test"):
        side = driver.stream()
        where = driver.allocate(1024)
        driver.fill(where, 1, 1024, own.queue.stream)

        def work() -> None:
            driver.copy(where + 512, where, 256, side)
            driver.fill(where, 9, 256, side)

        def fail() -> None:
            work()
            raise ValueError("in the middle")

        with pytest.raises(ValueError, match="in the middle"):
            driver.capture(fail, side)
        graph = driver.capture(work, side)
        found = np.zeros(1024, np.uint8)
        seen = []
        for _ in range(3):
            driver.download(found, where, own.queue.stream)
            driver.finish(own.queue.stream)
            seen.append((int(found[0]), int(found[512]), int(found[1000])))
            driver.replay(graph, own.queue.stream)
        driver.finish(own.queue.stream)
        driver.drop(graph)
        driver.free(where)
    assert seen == [(1, 1, 1), (9, 1, 1), (9, 9, 1)]
