"""Convolutions directly, by oneDNN, by windows: equal sums, filters that change, epilogues."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from attrs import evolve

import passkit as pk
from passkit.plan.target import cpu
from passkit.program.executable import Executable
from passkit.runtime import assemble
from passkit.runtime.native import convolution, filters, onednn
from passkit.runtime.native.onednn import Geometry
from tests.ops import windowed
from tests.teams import team_of

WAYS = ["few", "windows", "direct"] + ["library"] * (onednn.library() is not None)


def choose(monkeypatch: pytest.MonkeyPatch, way: str) -> None:
    """Let one of the ways compute all convolutions that are no products of one channel each."""
    if way == "few":
        monkeypatch.setattr(convolution, "call_seconds", lambda c: 1.0)
        return
    monkeypatch.setattr(convolution, "few", lambda c, itemsize: None)
    if way == "direct":
        monkeypatch.setattr(convolution, "suits_library", lambda c: False)
    else:
        monkeypatch.setattr(convolution, "panel_filters", lambda: 0)
    if way == "windows":
        monkeypatch.setattr(convolution, "primitives", lambda c: None)


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Each of the ways to compute convolutions; the library's where that is installed."""
    if request.param == "direct" and not convolution.panel_filters():
        pytest.skip("the direct kernel needs AVX2")
    choose(monkeypatch, request.param)
    return str(request.param)


def drawn(*shape: int) -> Any:
    """Values of both signs."""
    return np.random.default_rng(sum(shape)).normal(size=shape).astype(np.float32)


def compiled(x: Any, f: Any = None, **params: Any) -> Executable:
    """A convolution of variables, or of a variable with a constant filter."""
    filters = pk.var("f", (3, 3, 16, 24)) if f is None else f
    return pk.compile(pk.ops.convolution(pk.var("x", x.shape), filters, **params))


def near(found: Any, wanted: Any) -> bool:
    """Equal but for the order of sums."""
    return bool(np.abs(found - wanted).max() <= 3e-6 * np.abs(wanted).max() * 3)


def test_a_filter_may_change_and_a_constant_one_is_laid_out_once(way: str) -> None:
    """Each call sees the filter it is given; a constant one is kept for all batches."""
    x, f = drawn(2, 9, 10, 16), drawn(3, 3, 16, 24)
    exe = compiled(x, padding="SAME")
    for factor in (1, -2):
        (found,) = exe(x=x, f=f * np.float32(factor))
        assert near(found, factor * windowed.convolution(x, f, padding="SAME"))

    fixed = pk.compile(pk.ops.convolution(pk.var("x", (None, 9, 10, 16)), f, padding="SAME"))
    for rows in (1, 2):
        (found,) = fixed(x=x[:rows])
        assert near(found, windowed.convolution(x[:rows], f, padding="SAME"))
    assert len(fixed._table.kept) == (way in ("library", "direct"))


NOTHING = [
    ((2, 7, 7, 0), (3, 3, 0, 4)),
    ((2, 7, 7, 3), (3, 0, 3, 40)),
    ((2, 7, 7, 3), (0, 3, 1, 3)),
]


@pytest.mark.parametrize("shape, filters", NOTHING)
def test_sums_of_nothing_are_zeros(
    way: str, shape: tuple[int, ...], filters: tuple[int, ...]
) -> None:
    """Of no channels, and under windows of no elements: a library would divide by them."""
    groups = shape[-1] // filters[-2] if filters[-2] else 1
    exe = compiled(np.empty(shape), pk.var("f", filters), groups=groups)
    out = np.full(exe.outputs[0].shape, 7, np.float32)
    exe({"x": np.ones(shape, np.float32), "f": np.ones(filters, np.float32)}, out=[out])

    assert out.size > 0 and not out.any()


def test_bits_do_not_depend_on_threads(way: str) -> None:
    """Parts are cut by shape; of small convolutions an image is one."""
    x, f = drawn(1, 64, 60, 16), drawn(3, 3, 16, 64)
    deep = drawn(3, 3, 1, 16)
    several = [compiled(x, f, padding="SAME"), compiled(x, deep, padding="SAME", groups=16)]
    images = drawn(200, 9, 10, 16)
    small = compiled(images, drawn(3, 3, 16, 24), padding="SAME")
    bits = []
    for count in (1, 2, 4):
        with team_of(count):
            bits.append([exe(x=x)[0].tobytes() for exe in several])
            bits[-1].append(small(x=images)[0].tobytes())

    assert bits[0] == bits[1] == bits[2]


IMAGES = [
    (64, 48, 64, 3),
    (30, 16, 24, 3),
    (14, 96, 40, 1),
    (56, 3, 20, 5),
    (7, 20, 9, 3),
]


@pytest.mark.parametrize("size, channels, filters, taps", IMAGES)
def test_an_image_has_the_same_bits_in_any_batch(
    size: int, channels: int, filters: int, taps: int
) -> None:
    """Whatever computes it, an image alone and in a batch is computed alike."""
    x, f = drawn(5, size, size, channels), drawn(taps, taps, channels, filters)
    v = pk.var("x", (None, size, size, channels))
    y = pk.ops.relu(pk.ops.convolution(v, f, padding="SAME") + 0.5)
    exe = pk.compile(pk.Graph([y]))
    (alone,) = exe(x=x[3:4])

    for first, last in ((0, 5), (2, 4)):
        (batch,) = exe(x=x[first:last])
        np.testing.assert_array_equal(batch[3 - first], alone[0])


def test_calls_from_several_threads(way: str) -> None:
    """Each call lays its own filter out."""
    x = drawn(1, 20, 20, 16)
    exe = compiled(x, padding="SAME")
    filters = [drawn(3, 3, 16, 24) * np.float32(k + 1) for k in range(6)]
    wanted = windowed.convolution(x, filters[0], padding="SAME")
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda f: exe(x=x, f=f)[0], filters * 3))

    assert all(near(y, wanted * (k % 6 + 1)) for k, y in enumerate(found))


def geometry(**changed: Any) -> Geometry:
    """A small convolution over two axes."""
    plain: dict[str, Any] = {
        "batch": 1, "size": (1, 8, 8), "channels": 16, "filters": 16, "window": (1, 3, 3),
        "result": (1, 6, 6), "stride": (1, 1, 1), "before": (0, 0, 0), "dilation": (1, 1, 1),
        "groups": 1,
    }  # fmt: skip
    return Geometry(**{**plain, **changed})


SMALL: list[tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = [
    ((3, 7, 6, 1), (5, 5, 1, 6), {"padding": "SAME"}),
    ((2, 7, 6, 3), (3, 2, 3, 1), {"strides": (2, 3), "padding": "SAME"}),
    ((2, 9, 8, 4), (3, 3, 4, 17), {"dilations": (2, 3), "padding": ((4, 0), (3, 5))}),
    ((2, 5, 9, 2), (2, 3, 2, 48), {"dilations": (1, 2)}),
    ((4, 3, 2, 5), (1, 1, 5, 33), {}),
    ((2, 1, 1, 8), (1, 1, 8, 64), {}),
    ((2, 11, 3), (4, 3, 7), {"padding": ((3, 0),)}),
    ((2, 4, 5, 6, 2), (2, 3, 2, 2, 5), {"strides": (1, 2, 1), "padding": "SAME"}),
]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_small_ones_are_computed_directly(
    monkeypatch: pytest.MonkeyPatch, dtype: str
) -> None:
    """Any window, stride, dilation, padding and number of filters up to four vectors."""
    used = []

    def few(c: Geometry, itemsize: int) -> Any:
        used.append(direct(c, itemsize))
        return used[-1]

    direct = convolution.few
    monkeypatch.setattr(convolution, "few", few)
    monkeypatch.setattr(convolution, "call_seconds", lambda c: 1.0)
    for size, window, params in SMALL:
        x, f = drawn(*size).astype(dtype), drawn(*window).astype(dtype)
        if dtype == "float64" and window[-1] > 32:
            continue  # more than four vectors
        (found,) = pk.compile(pk.ops.convolution(pk.var("x", size, dtype), f, **params))(x=x)
        wanted = windowed.convolution(x, f, **params)

        assert found.dtype == dtype
        assert np.abs(found - wanted).max() <= 1e-5 * np.abs(wanted).max(), (size, window)
    assert len(used) >= 5 and None not in used


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_windows_are_multiplied_in_tiles_of_results(
    monkeypatch: pytest.MonkeyPatch, dtype: str
) -> None:
    """Tiles end within a row of results; taps are gathered one by one, or in runs."""
    choose(monkeypatch, "windows")
    monkeypatch.setattr(convolution, "PATCH_NBYTES", 2000)
    groups = ((2, 9, 8, 4), (3, 3, 2, 6), {"groups": 2, "strides": (1, 2), "padding": "SAME"})
    for size, window, params in (*SMALL, groups):
        x, f = drawn(*size).astype(dtype), drawn(*window).astype(dtype)
        (found,) = pk.compile(pk.ops.convolution(pk.var("x", size, dtype), f, **params))(x=x)
        wanted = windowed.convolution(x, f, **params)

        assert found.dtype == dtype
        assert np.abs(found - wanted).max() <= 1e-5 * np.abs(wanted).max(), (size, window)


DIRECT: list[tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = [
    ((1, 14, 13, 16), (3, 3, 16, 40), {"padding": "SAME"}),
    ((2, 9, 20, 9), (3, 2, 9, 17), {"strides": (2, 3), "padding": ((4, 0), (3, 5))}),
    ((1, 12, 11, 24), (3, 3, 8, 12), {"groups": 3, "dilations": (2, 3), "padding": "SAME"}),
    ((3, 1, 1, 50), (1, 1, 50, 33), {}),
    ((1, 30, 30, 8), (1, 1, 8, 16), {"strides": 2}),
    ((1, 25, 3), (4, 3, 7), {"padding": ((3, 0),)}),
    ((1, 40, 12), (70, 12, 5), {"padding": "SAME"}),
    ((1, 5, 6, 7, 10), (3, 3, 2, 10, 18), {"strides": (1, 2, 1), "padding": "SAME"}),
    ((1, 4, 4, 700), (1, 1, 700, 8), {}),
    ((1, 40, 41, 3), (7, 7, 3, 20), {"strides": 2, "padding": "SAME"}),
]


@pytest.mark.parametrize("size, window, params", DIRECT)
def test_register_tiles(
    monkeypatch: pytest.MonkeyPatch,
    size: tuple[int, ...],
    window: tuple[int, ...],
    params: dict[str, Any],
) -> None:
    """Borders, strides, groups, few channels, many taps, filters that fill no panel."""
    if not convolution.panel_filters():
        pytest.skip("the direct kernel needs AVX2")
    choose(monkeypatch, "direct")
    x, f = drawn(*size), drawn(*window)
    exe = pk.compile(pk.ops.convolution(pk.var("x", (None, *size[1:])), f, **params))
    (found,) = exe(x=x)
    wanted = windowed.convolution(x, f, **params)

    assert found.shape == wanted.shape
    assert np.abs(found - wanted).max() <= 1e-5 * np.abs(wanted).max()


DEPTHWISE: list[tuple[int, int, int, str]] = [
    (taps, stride, width, padding)
    for taps in (1, 2, 3, 5, 7)
    for stride in (1, 2, 3)
    for width, padding in ((23, "SAME"), (11, "VALID"), (2, "SAME"))
    if padding == "SAME" or width >= taps
]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_filter_for_each_channel(dtype: str) -> None:
    """Common windows and others, whole vectors of channels and not, borders and narrow images."""
    rng = np.random.default_rng(1)
    results, wanted, feeds = [], [], {}
    for k, (taps, stride, width, padding) in enumerate(DEPTHWISE):
        channels = (8, 16, 11, 35)[k % 4]
        x = rng.normal(size=(2, 9, width, channels)).astype(dtype)
        f = rng.normal(size=(3, taps, 1, channels)).astype(dtype)
        params: dict[str, Any] = {"groups": channels, "strides": (1, stride), "padding": padding}
        feeds[f"x{k}"] = x
        results.append(pk.ops.convolution(pk.var(f"x{k}", x.shape, dtype), f, **params))
        wanted.append(windowed.convolution(x, f, **params))
    tolerance = 1e-5 if dtype == "float32" else 1e-13
    for found, value in zip(pk.compile(pk.Graph(results))(feeds), wanted, strict=True):
        assert np.abs(found - value).max() <= tolerance * max(1.0, np.abs(value).max())


def batch_norm(y: Any, channels: int, shift: float) -> Any:
    """A factor and a summand for each channel."""
    factor = np.linspace(0.5, 2.0, channels, dtype=np.float32)
    return y * pk.constant(factor) + pk.constant(factor - np.float32(shift))


def with_epilogues(way: str, filters: int) -> tuple[pk.Graph, dict[str, Any]]:
    """A convolution with a norm and an activation, and one that adds a residual."""
    channels = 16
    x = drawn(3, 30, 20, channels)
    f, g = drawn(3, 3, channels, filters), drawn(1, 1, filters, filters)
    v = pk.var("x", (None, 30, 20, channels))
    first = pk.ops.relu(batch_norm(pk.ops.convolution(v, f, padding="SAME"), filters, 1.0))
    second = pk.ops.sigmoid(batch_norm(pk.ops.convolution(first, g), filters, 0.5) + first)
    deep = drawn(3, 3, 1, filters)
    third = pk.ops.convolution(second, deep, padding="SAME", groups=filters)
    third = pk.ops.minimum(pk.ops.relu(batch_norm(third, filters, 0.25)), 6.0)
    last = pk.ops.relu(pk.ops.convolution(third, g) + third)  # one loop over all elements
    return pk.Graph([last, second]), {"x": x}


@pytest.mark.parametrize("filters", [24, 32])
def test_kernels_run_on_the_rows_that_a_convolution_has_stored(
    monkeypatch: pytest.MonkeyPatch, way: str, filters: int
) -> None:
    """A norm, an activation and a residual: the same bits as by themselves, on any team."""
    graph, feeds = with_epilogues(way, filters)
    joined = pk.compile(graph)
    results = [r.tobytes() for r in joined(feeds)]
    assert joined.stats["epilogues"] == 4
    for count in (1, 3):
        with team_of(count):
            assert [r.tobytes() for r in joined(feeds)] == results

    monkeypatch.setattr(assemble, "epilogue_of", lambda launch, result: None)
    apart = pk.compile(graph)
    assert [r.tobytes() for r in apart(feeds)] == results
    assert apart.stats["epilogues"] == 0


def test_what_is_no_epilogue() -> None:
    """Kernels that move elements, reduce over positions, or are read before: these run after it."""
    x, f = pk.var("x", (2, 30, 20, 16)), drawn(3, 3, 16, 16)
    y = pk.ops.convolution(x, f, padding="SAME")
    cases = {
        "moves": pk.ops.relu(pk.ops.transpose(y, (0, 2, 1, 3))),
        "reduces": pk.ops.reduce_mean(pk.ops.relu(y), axis=(1, 2)),
        "pads": pk.ops.pad(pk.ops.relu(y), ((0, 0), (1, 1), (0, 0), (0, 0))),
        "counts rows": y + pk.ops.cast(pk.ops.arange(20, dtype="int64"), "float32")[:, None],
        "repeats": y + pk.ops.broadcast_to(pk.constant(drawn(20, 1)), (2, 30, 20, 16)),
    }
    values = drawn(2, 30, 20, 16)
    for name, result in cases.items():
        exe = pk.compile(pk.Graph([result]))
        wanted = pk.interpret(pk.Graph([result]), {"x": values})[0]
        (found,) = exe(x=values)
        assert np.abs(found - wanted).max() <= 1e-5 * np.abs(wanted).max(), name
        assert exe.stats["epilogues"] == 0, name


def test_a_profile_times_epilogues_by_themselves() -> None:
    """A profile has a row for each step, and each takes time."""
    graph, feeds = with_epilogues("direct", 32)
    exe = pk.compile(graph)
    rows = exe.profile(feeds, runs=2).rows

    assert [r.step.split()[0] for r in rows] == ["library", "launch"] * 4
    assert all(r.seconds > 0 for r in rows)


SIGNALS: list[tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = [
    ((2, 300, 1), (67, 1, 5), {"strides": 8}),
    ((2, 300, 1), (70, 1, 1), {"padding": ((5, 69),)}),
    ((1, 1, 200, 1), (1, 64, 1, 3), {"strides": (1, 4), "padding": "SAME"}),
    ((3, 200, 3, 1), (64, 1, 1, 2), {"strides": (4, 2)}),
    ((1, 300, 1), (64, 1, 1), {"strides": 2, "dilations": 3}),
]


@pytest.mark.parametrize("size, window, params", SIGNALS)
def test_filters_of_signals_round_once(
    size: tuple[int, ...], window: tuple[int, ...], params: dict[str, Any]
) -> None:
    """Long windows over one channel whose sums cancel: the result is exact to its own last bit."""
    x, f = 1 + drawn(*size) * np.float32(1e-4), drawn(*window)
    f -= f.mean(axis=tuple(range(f.ndim - 1)))
    exact = windowed.convolution(x.astype(np.float64), f.astype(np.float64), **params)
    variables = pk.var("x", size), pk.var("f", window)

    (found,) = pk.compile(pk.ops.convolution(*variables, **params))(x=x, f=f)
    (fixed,) = pk.compile(pk.ops.convolution(variables[0], f, **params))(x=x)

    assert np.all(np.abs(found - exact) <= np.spacing(np.abs(found)))
    np.testing.assert_array_equal(fixed, found)


def test_bits_of_signals_do_not_depend_on_threads() -> None:
    """Tiles are cut by shape, for one filter and for several."""
    x = drawn(1, 40000, 1)
    several = [compiled(x, drawn(128, 1, n), strides=2) for n in (1, 6)]
    bits = []
    for count in (1, 2, 4):
        with team_of(count):
            bits.append([exe(x=x)[0].tobytes() for exe in several])

    assert bits[0] == bits[1] == bits[2]


def test_what_filters_a_signal() -> None:
    """A long window along one axis of one channel, unless it costs too much for each sample."""
    line: dict[str, Any] = {"size": (1, 1, 4000), "channels": 1, "filters": 36}
    line |= {"window": (1, 1, 256), "result": (1, 1, 469), "stride": (1, 1, 8)}

    assert convolution.filters_signals(geometry(**line))
    assert convolution.filters_signals(geometry(**line | {"window": (1, 1, 64)}))
    assert not convolution.filters_signals(geometry(**line | {"window": (1, 1, 63)}))
    assert not convolution.filters_signals(geometry(**line | {"window": (1, 8, 32)}))
    assert not convolution.filters_signals(geometry(**line | {"channels": 2}))
    assert not convolution.filters_signals(geometry(**line | {"filters": 300}))
    assert convolution.filters_signals(geometry(**line | {"filters": 300, "stride": (1, 1, 16)}))


def test_axes_of_length_1_come_first() -> None:
    """Axes without windows or padding move to the front, with all that belongs to them."""
    line: dict[str, Any] = {"size": (1, 40, 1), "window": (1, 5, 1), "result": (1, 12, 1)}
    line |= {"stride": (1, 3, 2), "before": (0, 1, 0), "dilation": (1, 2, 1)}

    found = convolution.lined_up(geometry(**line))

    assert (found.size, found.window, found.result) == ((1, 1, 40), (1, 1, 5), (1, 1, 12))
    assert (found.stride, found.before, found.dilation) == ((1, 2, 3), (0, 0, 1), (1, 1, 2))
    padded = geometry(**line | {"before": (0, 1, 1), "result": (1, 12, 2)})
    assert convolution.lined_up(padded) == padded


def test_what_is_small_enough() -> None:
    """Few filters and little work around which a library does too much; not the rest."""
    small = convolution.few(geometry(batch=3), 4)

    assert small is not None
    assert small[0] == 8 * (36 + 9) + 144 * 64 + 64 * 16 * 4
    assert small[1] == pytest.approx(3 * (36 * 144 * convolution.TERM + 4096 / 2e10))
    assert convolution.few(geometry(filters=65), 4) is None
    assert convolution.few(geometry(filters=33), 8) is None
    assert convolution.few(geometry(groups=2), 4) is None
    large = geometry(size=(1, 66, 66), result=(1, 64, 64), channels=64, filters=64)
    assert convolution.few(large, 4) is None
    work = geometry(size=(1, 16, 16), result=(1, 14, 14), channels=64, filters=64)
    assert convolution.few(work, 4) is None


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("channels", [16, 64, 20, 3])
def test_large_results_go_past_the_caches(dtype: str, channels: int) -> None:
    """With equal bits, whether lines of results are whole or not, and when a kernel reads them."""
    x = pk.var("x", ("n", 9, 11, channels), dtype)
    rng = np.random.default_rng(channels)
    w = pk.constant(rng.normal(size=(3, 3, channels, 1)).astype(dtype))
    y = pk.ops.depthwise_conv2d(x, w, strides=1, padding="SAME")
    for results in ([y], [y + 1.0], [y, y * 2.0]):
        past = pk.compile(pk.Graph(results), target=evolve(cpu(), stream_apart=0))
        plain = pk.compile(pk.Graph(results))
        for n in (0, 1, 3):
            values = rng.normal(size=(n, 9, 11, channels)).astype(dtype)
            for one, other in zip(past(x=values), plain(x=values), strict=True):
                np.testing.assert_array_equal(one, other)


def test_work_decides_into_how_many_parts_an_image_is_cut() -> None:
    """A small one is one part, a large one at most eight, many images fewer each."""
    large = {"size": (1, 130, 130), "result": (1, 128, 128), "channels": 256, "filters": 256}

    assert len(onednn.parts_of(geometry())) == 1
    assert len(onednn.parts_of(geometry(**large))) == 8
    assert len(onednn.parts_of(geometry(**large, batch=8))) == 2


@pytest.mark.skipif(onednn.library() is None, reason="onednn-cpu-gomp is not installed")
def test_what_the_library_refuses_is_computed_all_the_same(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """A failure is told once, and the result is right."""

    def broken(c: Geometry) -> Any:
        found = onednn.primitives.__wrapped__(c)
        found.table[onednn_part(found.table)] = 0
        return found

    def onednn_part(table: Any) -> int:
        return 9  # the first part's primitive

    choose(monkeypatch, "library")
    monkeypatch.setattr(convolution, "primitives", broken)
    x, f = drawn(1, 9, 10, 16), drawn(3, 3, 16, 24)
    exe = compiled(x, f)

    for _ in range(2):
        assert near(exe(x=x)[0], windowed.convolution(x, f))
    assert capfd.readouterr().err.count("oneDNN failed with status") == 1


def test_answers_of_the_library_are_checked() -> None:
    """A function that fails, and an implementation that only serves tests, are none."""
    library = object.__new__(onednn.Library)
    library.dll = SimpleNamespace(dnnl_broken=lambda *arguments: 3, dnnl_sound=lambda *arguments: 0)

    library("dnnl_sound", 1)
    onednn.demand_fast(b"jit:avx2")
    with pytest.raises(onednn.FailedError, match="dnnl_broken answers"):
        library("dnnl_broken", 1)
    with pytest.raises(onednn.FailedError, match="only ref:any, a reference"):
        onednn.demand_fast(b"ref:any")


@pytest.mark.skipif(onednn.library() is None, reason="onednn-cpu-gomp is not installed")
@pytest.mark.parametrize("batch, size, channels", [(1, 28, 128), (8, 7, 512), (3, 56, 64)])
def test_parts_of_images_have_fast_primitives(batch: int, size: int, channels: int) -> None:
    """Where an image is cut in lines, each part and each gradient's part has one of its own."""
    lines = (1, size, size)
    c = Geometry(batch, lines, channels, channels, (1, 3, 3), lines, (1, 1, 1), (0, 1, 1),
                 (1, 1, 1), 1)  # fmt: skip
    found = onednn.primitives(c)

    assert found is not None and found.parts > 1
    assert filters._made(c, filters.parts_of(c)) is not None


def test_without_the_wheel_there_is_no_library(monkeypatch: pytest.MonkeyPatch) -> None:
    """Windows are multiplied instead."""
    monkeypatch.setattr(onednn, "installed", lambda: None)

    assert onednn.library.__wrapped__() is None
    monkeypatch.setattr(onednn, "installed", lambda: Path("/nonexistent/libdnnl.so.3"))
    assert onednn.library.__wrapped__() is None


def test_saved_and_loaded(way: str, tmp_path: Path) -> None:
    """The unit goes with the executable."""
    x, f = drawn(1, 9, 10, 16), drawn(3, 3, 16, 24)
    exe = compiled(x, f)
    exe.save(tmp_path / "saved")

    np.testing.assert_array_equal(pk.load(tmp_path / "saved")(x=x)[0], exe(x=x)[0])
    assert (tmp_path / "saved" / "cache").is_dir()


def test_neighbours_fuse() -> None:
    """Between two convolutions with channels first is one kernel, and no transpose is left."""
    x, f = pk.var("x", (1, 16, 9, 10)), drawn(3, 3, 16, 16)
    y = pk.ops.conv2d(x, f, padding="SAME", data_format="NCHW")
    y = pk.ops.relu(y + np.ones((16, 1, 1), np.float32))
    exe = pk.compile(pk.ops.conv2d(y, f, padding="SAME", data_format="NCHW"))

    assert [type(s).__name__ for s in exe.steps] == ["Launch", "Library", "Launch", "Library",
                                                     "Launch"]  # fmt: skip
    assert "i3" not in exe.kernels[1].source  # one loop: nothing moves
