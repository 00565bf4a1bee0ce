"""Graph capture: what drivers capture, and what happens where a capture fails."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import passkit as pk
from passkit.errors import DeviceError
from tests.cuda import on_cuda
from tests.emulator.fake_driver import FakeDriver, fake_cuda
from tests.emulator.fake_libraries import FakeLt
from tests.planned import agrees
from tests.runtime.cuda.small_programs import (
    DriverError,
    SegmentWorkspace,
    device,
    device_pool,
    fill_pool,
    hold_memory,
    layer,
    normal,
)

o = pk.ops
SLOW = r"3 steps on Fake .* are enqueued one by one, .* driver cannot build a graph of them: "


def run_with_planted_failure(fake: FakeDriver, rng: Any, plant: Callable[[], None]) -> pk.Graph:
    """Run a program once, plant a failure, and check that it runs one by one from then on."""
    fill_pool()
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


@pytest.mark.parametrize(
    "call, message",
    [
        ("capture", "operation not supported"),
        ("cublasLtMatmul", "status 14"),
        ("launch", "too many resources requested for launch"),
    ],
)
def test_a_failed_capture_warns_once(call: str, message: str, fake: FakeDriver, rng: Any) -> None:
    """One warning, and steps one by one from then on; other programs are captured."""
    with pytest.warns(UserWarning, match=f"{SLOW}.*{call}: {message}"):
        run_with_planted_failure(fake, rng, lambda: fake.fail(call, message))

    other = on_cuda(layer(24), host=("library",))
    for _ in range(3):
        other(x=normal(rng, 30, 16))
    assert other.stats["graph_replays"] == 2 and gc.isenabled()


@pytest.mark.parametrize("tells", [True, False])
def test_a_library_that_allocates_ends_the_capture(
    tells: bool, fake: FakeDriver, rng: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An unsafe call ends the capture, also where the library hides the failure."""
    multiply = FakeLt.cublasLtMatmul

    def greedy(self: FakeLt, *arguments: Any) -> int:
        try:
            self.driver.free(self.driver.allocate(512))
        except DriverError:
            if tells:
                return 14
        return multiply(self, *arguments)

    message = (
        "cublasLtMatmul: status 14" if tells else "end: operation failed due to a previous error"
    )
    with pytest.warns(UserWarning, match=SLOW + message):
        run_with_planted_failure(
            fake, rng, lambda: monkeypatch.setattr(FakeLt, "cublasLtMatmul", greedy)
        )


@pytest.mark.parametrize("call", ["capture", "replay"])
def test_a_lost_device_raises(call: str, rng: Any) -> None:
    """A device that is lost during capture or replay raises."""
    with fake_cuda(absent=()) as driver:
        fill_pool()
        exe = on_cuda(layer(), host=("library",))
        feeds = {"x": normal(rng, 30, 16)}
        exe(feeds)
        driver.fail(call, "unspecified launch failure")
        with pytest.raises(DeviceError, match=rf"is lost to this process: .* {call}: unspecified"):
            exe(feeds)


def test_a_graph_launch_is_retried_after_freeing(fake: FakeDriver, rng: Any) -> None:
    """When memory is exhausted, idle memory is freed and the graph launched again."""
    fill_pool()
    graph = layer()
    exe = on_cuda(graph, host=("library",))
    feeds = {"x": normal(rng, 30, 16)}
    for k in range(4):
        if k == 2:
            del hold_memory(1, 1 << 20)[:]
            fake.fail("replay", "out of memory")
        agrees(graph, feeds, exe(feeds), rtol=1e-4)
    assert fake.counts["free"] and exe.stats["graph_replays"] == 3


def test_a_driver_without_graphs_enqueues_each_step(fake: FakeDriver, rng: Any) -> None:
    """Each step is enqueued by itself."""
    fake.supports_graphs = False
    exe = on_cuda(layer(), host=("library",))
    for _ in range(3):
        exe(x=normal(rng, 30, 16))
    assert not fake.calls("capture", "replay") and len(fake.calls("launch")) == 6


def test_steps_share_one_workspace(machine: Any) -> None:
    """A step's arrays lie one after the other, where the last step's were."""
    own = device()
    with own.active("a test"):
        pool = device_pool()
        sizes = (1, 600, 512)
        scratch = SegmentWorkspace(pool)
        for _ in range(2):
            scratch.begin_step()
            assert len({scratch.take(n).address for n in (1, 2, 3)}) == 1, "the pool's, given back"
            scratch.begin_step()
            assert all(scratch.take(n).address for n in sizes)
        assert scratch.needed == 512 + 1024 + 512
        whole = SegmentWorkspace(pool, 4096, scratch.needed)
        for _ in range(2):
            whole.begin_step()
            assert [whole.take(n).address - 4096 for n in sizes] == [0, 512, 1536]
    assert whole.needed == scratch.needed


def test_a_capture_runs_at_replay(machine: Any) -> None:
    """Captured work runs at each replay, and not before; a failed capture has no effect."""
    own = device()
    driver = own.driver
    with own.active("a test"):
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
        result = np.zeros(1024, np.uint8)
        seen = []
        for _ in range(3):
            driver.download(result, where, own.queue.stream)
            driver.finish(own.queue.stream)
            seen.append((int(result[0]), int(result[512]), int(result[1000])))
            driver.replay(graph, own.queue.stream)
        driver.finish(own.queue.stream)
        driver.drop(graph)
        driver.free(where)
    assert seen == [(1, 1, 1), (9, 1, 1), (9, 9, 1)]
