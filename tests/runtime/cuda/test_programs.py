"""Programs on a CUDA device: results, the order of driver calls, and memory."""

from __future__ import annotations

import gc
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import passkit as pk
from passkit.errors import DeviceError, FeedError
from tests.cuda import on_cuda
from tests.planned import agrees
from tests.runtime.cuda.small_programs import (
    device,
    device_pool,
    fill_pool,
    import_capsule,
    normal,
    size_class,
)

o = pk.ops
pytestmark = pytest.mark.usefixtures("machine")


def gelu() -> pk.Graph:
    """Return a graph of one kernel with rows of 512 elements."""
    x = pk.var("x", (None, 512))
    return pk.Graph([x * (o.erf(x / 2**0.5) + 1) / 2])


def chain() -> pk.Graph:
    """Return a graph of three kernels, if none is fused."""
    x = pk.var("x", ("n",))
    return pk.Graph([o.exp(o.sin(o.tanh(x)))])


def test_one_kernel_serves_every_size(rng: Any) -> None:
    """A kernel with rows of an unknown number, and what its compiler reports."""
    graph = gelu()
    exe = on_cuda(graph)

    for n in (1, 30, 0, 7):
        feeds = {"x": normal(rng, n, 512)}
        agrees(graph, feeds, exe(feeds), rtol=2e-6)
    (rtc,) = exe.graph.attrs["rtc"].values()
    assert rtc.registers == rtc.entry.registers > 0 and rtc.spills is not None
    assert (exe.stats["target"], exe.stats["device"]) == ("cuda", str(device()))
    assert exe.kernels[0].block == rtc.entry.threads


def test_order_of_calls(machine: Any, rng: Any) -> None:
    """Constants are uploaded once, inputs in each call; then kernels, downloads and one wait.

    Nothing is transferred between kernels.
    """
    weights = normal(rng, 64)
    x = pk.var("x", (32, 64))
    graph = pk.Graph([o.exp(x) * weights, o.reduce_sum(x * weights, axis=1)])
    exe = on_cuda(graph, fusion="none")
    feeds = {"x": normal(rng, 32, 64)}
    machine.log.clear()
    agrees(graph, feeds, exe(feeds), rtol=1e-5)

    asked = [name for name, _ in machine.log if name != "allocate"]
    assert asked.count("launch") == len(exe.kernels) == 4
    assert [c for c in asked if c != "launch"] == ["upload"] * 2 + ["download"] * 2 + ["finish"]
    assert asked[-3:] == ["download", "download", "finish"]
    moved = [(exe.stats["bytes_uploaded"], exe.stats["bytes_downloaded"])]
    exe(feeds)
    moved.append((exe.stats["bytes_uploaded"], exe.stats["bytes_downloaded"]))
    assert moved == [(4 * (32 * 64 + 64), 4 * (32 * 64 + 32)), (4 * 32 * 64, 4 * (32 * 64 + 32))]


def test_one_graph_serves_many_calls(machine: Any, rng: Any) -> None:
    """The third call builds it; later calls replay it while addresses stay the same."""
    fill_pool()
    graph = chain()
    exe = on_cuda(graph, fusion="none")
    machine.log.clear()
    for _ in range(100):
        feeds = {"x": normal(rng, 50)}
        agrees(graph, feeds, exe(feeds), rtol=1e-5)

    # Without the launcher in C, it is the second call.
    assert machine.calls("graph") == [3] and len(machine.calls("replay")) in (98, 99)
    assert len(machine.calls("launch")) == 3 * (100 - len(machine.calls("replay")))
    assert exe.stats["graphs_made"] == 1
    assert exe.stats["graph_replays"] == len(machine.calls("replay"))


def test_packed_parts_read_one_structure_of_arguments(machine: Any, rng: Any) -> None:
    """Launched one by one and in a graph, the parts of kernels find their arrays and sizes."""
    sizes = (5, 1500, 70, 1024)
    chains = [[pk.var(f"x{k}", (n,))] for k, n in enumerate(sizes)]
    for f in (o.tanh, o.sin, o.exp):
        for own in chains:
            own.append(f(own[-1]))
    graph = pk.Graph([own[-1] for own in chains])
    exe = on_cuda(graph, keep_apart=[[graph.names[e.node] for e in own[1:]] for own in chains])
    assert [k.source.count("part_of<4>") for k in exe.kernels] == [1, 1, 1]
    machine.log.clear()
    for _ in range(5):
        feeds = {f"x{k}": normal(rng, n) for k, n in enumerate(sizes)}
        agrees(graph, feeds, exe(feeds), rtol=1e-5)

    assert machine.calls("graph") == [3] and machine.calls("replay")


def test_a_graph_at_other_addresses(machine: Any, rng: Any) -> None:
    """Where others hold the memory of the last call, another graph is built; both are kept."""
    fill_pool()
    graph = chain()
    exe = on_cuda(graph, fusion="none")
    held: list[Any] = []
    for k in range(8):
        feeds = {"x": normal(rng, 50)}
        agrees(graph, feeds, exe(feeds), rtol=1e-5)
        if k == 3:
            with device().active("a test"):
                held += [device_pool().take(200) for _ in range(4)]
        if k == 5:
            held.clear()

    assert machine.calls("graph") == [3, 3] and exe.stats["graph_replays"] in (5, 6)
    exe(x=normal(rng, 51))
    assert machine.calls("graph") == [3, 3], "another size has graphs of its own"


def test_memory_is_reused_and_freed(machine: Any, rng: Any) -> None:
    """A second call allocates nothing; without the executable all memory can be freed."""
    exe = on_cuda(pk.Graph([o.exp(pk.var("x", ("n", 64))) * normal(rng, 64)]), fusion="none")
    pool = device_pool()
    exe(x=normal(rng, 30, 64))
    before = len(machine.calls("allocate"))
    for n in (30, 29, 30):
        exe(x=normal(rng, n, 64))
    assert len(machine.calls("allocate")) == before

    assert pool.active_nbytes == size_class(64 * 4)  # the constant
    del exe
    gc.collect()
    assert pool.active_nbytes == 0
    with device().active("a test"):
        pool.allocator.free_idle()
    assert len(machine.calls("free")) == len(machine.calls("allocate"))
    assert sorted(machine.calls("free")) == sorted(set(machine.calls("free")))


def test_no_memory_left_raises() -> None:
    """Idle memory is freed before the error is raised."""
    pool = device_pool()
    with device().active("a test"), device().active("another one inside"):
        held = [pool.take(1 << 20), pool.take(1 << 20)]
        held.pop()
        with pytest.raises(
            DeviceError, match=r"needs .*iB more, and .* no memory left: 1 MiB of its .*iB are in"
        ):
            pool.take(device().limits.global_nbytes)
    assert not pool.allocator.idle_nbytes


def test_host_steps_between_kernels(rng: Any) -> None:
    """Products and sorts are steps; what lies between them stays on the device."""
    x, w = pk.var("x", ("n", 16)), normal(rng, 16, 8)
    graph = pk.Graph([o.relu(o.matmul(o.exp(x), w)) + 1.0, o.sort(x * 2.0, axis=1)])
    exe = on_cuda(graph, host=("library", "python"))

    for n in (5, 40):
        feeds = {"x": normal(rng, n, 16)}
        agrees(graph, feeds, exe(feeds), rtol=1e-4)
    assert (exe.stats["library_calls"], exe.stats["python_calls"]) == (1, 1)
    assert exe.stats["host_steps"] == 2 - exe.stats["device_library_steps"]
    moved = 40 * 8 + 40 * 16 + 40 * 16 * (exe.stats["host_steps"] == 2)
    assert exe.stats["bytes_downloaded"] == 4 * moved, "a result, what is sorted, or multiplied"


def test_variables_and_copied_outputs(rng: Any) -> None:
    """Variables are written; outputs that are inputs, constants and each other are copied."""
    total = pk.state("total", np.zeros((3, 50), np.float32))
    x = pk.var("x", (3, 50))
    y = o.exp(total)
    graph = pk.Graph(
        [o.assign(total, total * 0.5 + x), y, x, o.reshape(y, (-1,)), pk.constant(np.arange(3.0))]
    )
    exe, other = on_cuda(graph), pk.compile(graph)

    for _ in range(3):
        feed = normal(rng, 3, 50)
        for result, expected in zip(exe(x=feed), other(x=feed), strict=True):
            np.testing.assert_allclose(result, expected, rtol=1e-5)
        np.testing.assert_array_equal(exe.state["total"], other.state["total"])


def test_feeds_and_outputs_of_a_call(rng: Any) -> None:
    """Strided feeds are copied and counted, outputs written in place, wrong feeds refused."""
    exe = on_cuda(gelu())
    feed = normal(rng, 6, 512)
    (plain,) = exe(x=feed)
    out = np.empty((6, 512), np.float32)

    assert exe({"x": feed}, out=[out])[0] is out
    for same in (feed[::-1][::-1], np.asfortranarray(feed), feed.astype(">f4"), feed.tolist()):
        assert exe(x=same)[0].tobytes() == plain.tobytes() == out.tobytes()
    assert exe.stats["copies"] == 2
    assert exe.run_positional(feed)[0].tobytes() == plain.tobytes()
    with pytest.raises(FeedError, match=r"input 'x' needs float32\[.*, got float64\[6, 512\]"):
        exe(x=feed.astype(np.float64))


def test_concurrent_calls(rng: Any) -> None:
    """Concurrent calls of executables that share kernels do not interfere."""
    exes = [on_cuda(chain(), fusion="none") for _ in range(2)]
    feeds = [normal(rng, n) for n in (1, 33, 70, 9)]
    expected = [exes[0](x=feed)[0].tobytes() for feed in feeds]

    with ThreadPoolExecutor(4) as pool:
        calls = [pool.submit(exes[k % 2], {"x": feeds[k % 4]}) for k in range(32)]
        assert [c.result()[0].tobytes() for c in calls] == expected * 8


def test_phases_wait_for_each_other(machine: Any, rng: Any) -> None:
    """A kernel of two phases is one launch, with as many blocks as run at a time."""
    x = pk.var("x", ("n",))
    graph = pk.Graph([x / o.reduce_sum(x)])
    exe = on_cuda(graph, keep_together=[["reduce_sum", "div"]])
    feeds = {"x": np.abs(normal(rng, 30_000)) + 1}
    machine.log.clear()
    agrees(graph, feeds, exe(feeds), rtol=1e-4)

    (task,) = machine.calls("launch")
    assert len(exe.kernels) == 1 and task.cooperative
    assert 1 < task.grid <= 2 * device().limits.units * 16

    more = pk.Graph([o.tanh(o.exp(graph.outputs[0]))])
    exe = on_cuda(more, keep_together=[["reduce_sum", "div"]], no_fuse=["exp", "tanh"])
    fill_pool()
    for _ in range(4):
        feeds = {"x": np.abs(normal(rng, 2_000)) + 1}
        agrees(more, feeds, exe(feeds), rtol=1e-4)
    assert machine.calls("graph") == [3] and exe.stats["graph_replays"] in (2, 3)


class ForeignArray:
    """An array of another library on the device, with its own stream."""

    def __init__(self, shape: tuple[int, ...], dtype: str = "float32", **more: Any) -> None:
        self.array = np.zeros(shape, dtype)
        self.told, self.driver = more, device().driver
        with self.driver.current():
            self.stream = self.driver.stream()
            self.buffer = device_pool().take(self.array.nbytes)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        interface = {
            "shape": self.array.shape,
            "typestr": self.array.dtype.str,
            "version": 3,
            "data": (self.buffer.address, False),
            "stream": self.driver.handle(self.stream),
        }
        return {**interface, **self.told}

    def put(self, array: Any) -> None:
        """Enqueue an upload."""
        with self.driver.current():
            bytes_of = array.reshape(-1).view(np.uint8)
            self.driver.upload(self.buffer.address, bytes_of, self.stream)

    def get(self) -> Any:
        """Return its content."""
        with self.driver.current():
            bytes_of = self.array.reshape(-1).view(np.uint8)
            self.driver.download(bytes_of, self.buffer.address, self.stream)
            self.driver.finish(self.stream)
        return self.array


def test_foreign_arrays_are_used_in_place(machine: Any, rng: Any) -> None:
    """They are read and written in place after their own stream, also by host steps.

    What does not fit is refused.
    """
    x = pk.var("x", ("n", 40))
    graph = pk.Graph([o.exp(x), o.sort(x * 2.0, axis=1)])
    exe = on_cuda(graph, host=("python",))
    first, *outs = (ForeignArray((9, 40)) for _ in range(3))
    for _ in range(3):
        feed = normal(rng, 9, 40)
        first.put(feed)
        machine.log.clear()
        assert exe({"x": first}, out=outs)[0] is outs[0]
        assert len(machine.calls("wait_for")) == 3
        agrees(graph, {"x": feed}, [a.get() for a in outs], rtol=1e-5)
        assert exe.stats["bytes_uploaded"] == exe.stats["bytes_downloaded"] == feed.nbytes
    result = exe(x=first)
    agrees(graph, {"x": feed}, result, rtol=1e-5)
    assert isinstance(result[0], np.ndarray) and exe.stats["copies"] == 0

    for value in (
        ForeignArray((9, 40), "float64"),
        ForeignArray((40,)),
        ForeignArray((9, 40), strides=(4, 36)),
    ):
        with pytest.raises(
            FeedError,
            match=r"input 'x' needs float32\[n, 40\], got a .*float.* on"
            " the device; pass a C-contiguous",
        ):
            exe(x=value)
    mine = outs[0].buffer.address
    for k, wrong in enumerate(
        [
            ForeignArray((8, 40)),
            ForeignArray((9, 40), data=(mine, True)),
            ForeignArray((9, 40), data=(mine, False)),
            ForeignArray((9, 40), data=(first.buffer.address + 64, False)),
        ]
    ):
        with pytest.raises(
            FeedError,
            match=r"out\[1\] needs a contiguous float32\[9, 40\] of its own, "
            rf"got a float32\[{8 if k == 0 else 9}, 40\] on the device",
        ):
            exe({"x": first}, out=[outs[0], wrong])


def test_outputs_stay_on_the_device(rng: Any) -> None:
    """Outputs of a product are the next call's inputs, and are exported by DLPack."""
    x, w = pk.var("x", ("n", 16)), normal(rng, 16, 8)
    first, second = pk.Graph([o.matmul(o.exp(x), w)]), pk.Graph([o.tanh(pk.var("y", ("n", 8)))])
    exe, other = pk.compile(first, target="cuda"), on_cuda(second)
    feed = normal(rng, 30, 16)
    (result,) = exe({"x": feed}, out="device")
    (again,) = other({"y": result}, out="device")

    agrees(first, {"x": feed}, [result.numpy()], rtol=1e-4)
    agrees(second, {"y": result.numpy()}, other(y=result), rtol=1e-5)
    assert np.array_equal(again.numpy(), other(y=result)[0])
    capsule = result.__dlpack__(stream=1)
    assert import_capsule(capsule).address == result.buffer.address


def test_profiles_and_saved_programs(tmp_path: Path, rng: Any) -> None:
    """Events time each kernel; a loaded program is planned for the device."""
    x, w = pk.var("x", ("n", 64)), normal(rng, 64, 64)
    graph = pk.Graph([o.softmax(o.matmul(x, w))])
    exe = on_cuda(graph, host=("library",))
    feeds = {"x": normal(rng, 20, 64)}
    profile = exe.profile(feeds, runs=3, copies=False)
    kinds = [row.step.split()[0] for row in profile.rows]

    assert kinds[0] == "library" and set(kinds[1:-1]) == {"launch"} and kinds[-1] == "transfers"
    assert all(row.seconds > 0 for row in profile.rows) and len(profile.spans) == 3
    exe.save(tmp_path / "m")
    loaded = pk.load(tmp_path / "m")
    assert loaded.target == exe.target
    assert loaded(feeds)[0].tobytes() == exe(feeds)[0].tobytes()


def test_timing_excludes_the_host(machine: Any, rng: Any) -> None:
    """The device is busy until the events around a kernel, and the kernel, are enqueued."""
    exe = on_cuda(pk.parse("x: f32[500]; return exp(x)"))
    before = len(machine.log)
    exe.profile({"x": normal(rng, 500)}, runs=1, copies=False)
    done = [name for name, _ in machine.log[before:] if name in ("launch", "event", "finish")]

    assert " ".join(done).count("launch event launch event finish") == 2
