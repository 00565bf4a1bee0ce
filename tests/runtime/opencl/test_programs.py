"""Programs on an OpenCL device: results, transfers, statistics."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import passkit as pk
from passkit.errors import DeviceError, FeedError
from tests.command import json_of
from tests.opencl import opencl_device, require_pyopencl, step_kinds, with_limits
from tests.planned import agrees

require_pyopencl()
pytestmark = pytest.mark.opencl
o = pk.ops


def normal(rng: Any, *shape: int) -> Any:
    """Return normally distributed float32 numbers."""
    return rng.standard_normal(shape).astype(np.float32)


def gelu() -> pk.Graph:
    """Return a graph of one kernel with rows of 512 elements."""
    x = pk.var("x", (None, 512))
    return pk.Graph([x * (o.erf(x / 2**0.5) + 1) / 2])


def test_one_kernel_serves_every_size(rng: Any) -> None:
    """A kernel with rows of an unknown number, and the functions that may be less accurate."""
    graph = gelu()
    exe = pk.compile(graph, target="opencl")

    for n in (1, 300, 0, 7):
        feeds = {"x": normal(rng, n, 512)}
        agrees(graph, feeds, exe(feeds), rtol=2e-6)
    assert step_kinds(exe) == ["LaunchStep"]
    assert (exe.stats["target"], exe.stats["compiled"]) == ("opencl", 1)
    assert exe.stats["device"] == str(opencl_device())
    assert exe.stats["relaxed"] == ("erf (16 ulp)",)


def test_compile_continues_after_passes(rng: Any) -> None:
    """ApplyPasses runs up to RTCGen, and compile continues from there."""
    names = ["Expand", "Fusion", "SchedulePlan", "SharedMemPlan", "CodeGen", "RTCGen"]
    graph = pk.ApplyPasses(gelu(), names, target="opencl")
    (rtc,) = graph.attrs["rtc"].values()
    feeds = {"x": normal(rng, 5, 512)}

    assert rtc.entry.kernel is rtc.kernel and len(rtc.entry.functions) == 1
    agrees(gelu(), feeds, pk.compile(graph)(feeds), rtol=2e-6)


def test_only_inputs_and_outputs_are_transferred(rng: Any) -> None:
    """Constants are uploaded once, and nothing is transferred between kernels."""
    weights = normal(rng, 64)
    x = pk.var("x", (32, 64))
    graph = pk.Graph([o.exp(x) * weights, o.reduce_sum(x * weights, axis=1)])
    exe = pk.compile(graph, target="opencl", fusion="none")
    feeds = {"x": normal(rng, 32, 64)}
    moved = []
    for _ in range(2):
        agrees(graph, feeds, exe(feeds), rtol=1e-5)
        moved.append((exe.stats["bytes_uploaded"], exe.stats["bytes_downloaded"]))

    assert exe.stats["kernels"] == 4
    assert moved == [(4 * (32 * 64 + 64), 4 * (32 * 64 + 32)), (4 * 32 * 64, 4 * (32 * 64 + 32))]


def test_host_steps_between_kernels(rng: Any) -> None:
    """Products, convolutions and sorts are steps; what lies between them stays on the device.

    A value that both sides have is not transferred again.
    """
    x, w = pk.var("x", ("n", 16)), normal(rng, 16, 8)
    image = pk.var("image", (2, 9, 9, 3))
    filters = normal(rng, 3, 3, 3, 4)
    graph = pk.Graph(
        [
            o.relu(o.matmul(o.exp(x), w)) + 1.0,
            o.sort(x * 2.0, axis=1),
            o.relu(o.conv2d(image, filters)),
        ]
    )
    exe = pk.compile(graph, target="opencl", fusion="nnvm")

    for n in (5, 40):
        feeds = {"x": normal(rng, n, 16), "image": normal(rng, 2, 9, 9, 3)}
        agrees(graph, feeds, exe(feeds), rtol=1e-4)
    steps = [str(s) for s in exe.steps]
    assert (exe.stats["library_calls"], exe.stats["python_calls"]) == (2, 1)
    assert any(s.startswith("python sort") for s in steps)
    assert exe.stats["bytes_downloaded"] > sum(a.nbytes for a in exe(feeds))


def test_variables_are_written(rng: Any) -> None:
    """A variable's new value is complete when the call returns, and read by the next call."""
    total = pk.state("total", np.zeros((3, 50), np.float32))
    x = pk.var("x", (3, 50))
    graph = pk.Graph([o.assign(total, total * 0.5 + x), o.exp(total)])
    exe, other = (pk.compile(graph, target=t) for t in ("opencl", "cpu"))

    for _ in range(3):
        feed = normal(rng, 3, 50)
        for result, expected in zip(exe(x=feed), other(x=feed), strict=True):
            np.testing.assert_allclose(result, expected, rtol=1e-5)
        np.testing.assert_array_equal(exe.state["total"], other.state["total"])
    exe.state["total"] = np.ones((3, 50), np.float32)
    np.testing.assert_allclose(exe(x=feed)[0], 0.5 + feed, rtol=1e-6)


def test_outputs_that_are_inputs_constants_and_each_other(rng: Any) -> None:
    """They are copied; a view of another shape costs nothing."""
    x = pk.var("x", ("n", 4))
    y = o.exp(x)
    graph = pk.Graph(
        [x, y, o.reshape(y, (-1,)), y, pk.constant(np.arange(3.0)), o.reshape(x, (-1,))]
    )
    exe = pk.compile(graph, target="opencl")

    for n in (3, 0):
        feeds = {"x": normal(rng, n, 4)}
        result = exe(feeds)
        agrees(graph, feeds, result, rtol=1e-5)
        assert not np.shares_memory(result[0], feeds["x"])


def test_feeds_are_checked_as_on_the_cpu(rng: Any) -> None:
    """Feeds and outputs are accepted and refused with the messages of the CPU's programs."""
    graph = gelu()
    exes = [pk.compile(graph, target=t) for t in ("opencl", "cpu")]
    feed = normal(rng, 6, 512)
    wrong: list[tuple[Any, dict[str, Any]]] = [
        ({}, {}),
        ({"x": feed, "y": feed}, {}),
        ({"x": feed[:, :3]}, {}),
        ({"x": feed[0]}, {}),
        ({"x": feed.astype(np.float64)}, {}),
        ({"x": feed}, {"x": feed}),
        (feed, {}),
        ({"x": feed}, {"out": [np.empty((6, 511), np.float32)]}),
        ({"x": feed}, {"out": [feed]}),
        ({"x": feed}, {"out": []}),
        ({"x": feed}, {"out": [np.empty((512, 6), np.float32).T]}),
    ]

    for feeds, more in wrong:
        messages = []
        for exe in exes:
            with pytest.raises(FeedError) as error:
                exe(feeds, **more)
            messages.append(str(error.value))
        assert messages[0] == messages[1]


def test_strided_feeds_are_copied(rng: Any) -> None:
    """Strides and other byte orders are copied and counted; outputs are written in place."""
    exe = pk.compile(gelu(), target="opencl")
    feed = normal(rng, 6, 512)
    (plain,) = exe(x=feed)
    out = np.empty((6, 512), np.float32)

    assert exe({"x": feed}, out=[out])[0] is out
    for same in (feed[::-1][::-1], np.asfortranarray(feed), feed.astype(">f4"), feed.tolist()):
        (again,) = exe(x=same)
        np.testing.assert_array_equal(again, plain)
    assert exe.stats["copies"] == 2
    assert exe.run_positional(feed)[0].tobytes() == plain.tobytes() == out.tobytes()
    assert exe.run_positional(feed[0]) is NotImplemented


def test_broadcasts_of_unknown_sizes(rng: Any) -> None:
    """A broadcast that only a call shows is planned anew for its shapes."""
    graph = pk.Graph([pk.var("x", ("n", 3)) + pk.var("y", ("m", 3))])
    exe = pk.compile(graph, target="opencl")

    for n, m in ((4, 4), (1, 5), (4, 4)):
        feeds = {"x": normal(rng, n, 3), "y": normal(rng, m, 3)}
        agrees(graph, feeds, exe(feeds))


def test_concurrent_calls(rng: Any) -> None:
    """Concurrent calls of executables that share kernels do not interfere."""
    exes = [pk.compile(gelu(), target="opencl") for _ in range(2)]
    feeds = [normal(rng, n, 512) for n in (1, 33, 70, 9)]
    expected = [exes[0](x=feed)[0].tobytes() for feed in feeds]

    with ThreadPoolExecutor(4) as pool:
        for _ in range(5):
            calls = [pool.submit(exes[k % 2], {"x": feeds[k % 4]}) for k in range(16)]
            assert [c.result()[0].tobytes() for c in calls] == expected * 4


def test_profiles(rng: Any) -> None:
    """The device's clock times kernels, the host's library steps; transfers are a row."""
    x, w = pk.var("x", ("n", 64)), normal(rng, 64, 64)
    exe = pk.compile(pk.Graph([o.softmax(o.matmul(x, w))]), target="opencl", fusion="nnvm")
    profile = exe.profile({"x": normal(rng, 500, 64)}, runs=3, copies=False)
    kinds = [row.step.split()[0] for row in profile.rows]

    assert kinds[0] == "library" and set(kinds[1:-1]) == {"launch"} and kinds[-1] == "transfers"
    assert all(row.seconds > 0 for row in profile.rows)
    assert profile.rows[-1].nbytes == 2 * 500 * 64 * 4  # the product goes, the result comes
    assert len(profile.spans) == 3


def test_saved_programs(tmp_path: Path, rng: Any) -> None:
    """A loaded program is planned for the device."""
    exe = pk.compile(gelu(), target="opencl")
    exe.save(tmp_path / "m")
    loaded = pk.load(tmp_path / "m")
    feed = normal(rng, 3, 512)

    assert loaded.target == exe.target
    assert loaded(x=feed)[0].tobytes() == exe(x=feed)[0].tobytes()


def test_too_much_local_memory_raises(rng: Any) -> None:
    """A plan for another device raises before the launch."""
    exe = pk.compile(pk.Graph([o.softmax(pk.var("x", (40, 300)), axis=0)]), target="opencl")

    expected = r"\(reduce_max, .*\) needs [\d.]+ K?i?B of local memory .* has 100 B;.*less scratch"
    with with_limits(local_nbytes=100), pytest.raises(DeviceError, match=expected):
        exe(x=normal(rng, 40, 300))


def test_a_profile_becomes_a_trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The steps have events; the sum of the transfers, which has no time span, has none."""
    monkeypatch.setattr("passkit.cli.run.TIMING_SECONDS", 0.001)
    model, path = tmp_path / "model.txt", tmp_path / "trace.json"
    model.write_text("x: f32[n, 512]; return mul(x, add(erf(x), 1))")
    data = json_of("run", model, "--target", "opencl", "--trace", path)
    trace = json.loads(path.read_text())["traceEvents"]
    events = [e["cat"] for e in trace if e["ph"] == "X" and e["pid"] == 1]

    assert data["profile"]["steps"][-1]["step"] == "transfers"
    assert events and events == ["run", "kernel"] * (len(events) // 2)
