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
from passkit.program.executable import Executable
from passkit.runtime import assemble
from passkit.runtime.native import convolution, filter_gradients, onednn
from passkit.runtime.native.blas import NO_BLAS
from passkit.runtime.native.build import forget
from passkit.runtime.native.onednn import Geometry
from passkit.target import cpu
from tests.ops import windowed
from tests.teams import team_of

WAYS = ["small_images", "im2col", "direct"] + ["onednn"] * (onednn.load_library() is not None)


def choose(monkeypatch: pytest.MonkeyPatch, way: str) -> None:
    """Let one of the ways compute all convolutions that are no products of one channel each."""
    if way == "small_images":
        monkeypatch.setattr(convolution, "onednn_seconds", lambda c: 1.0)
        return
    monkeypatch.setattr(convolution, "small_images_cost", lambda c, itemsize: None)
    if way == "direct":
        monkeypatch.setattr(convolution, "prefers_onednn", lambda c: False)
    else:
        monkeypatch.setattr(convolution, "panel_width", lambda: 0)
    if way == "im2col":
        monkeypatch.setattr(convolution, "convolution_primitives", lambda c: None)


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Each of the ways to compute convolutions; the library's where that is installed."""
    if request.param == "direct" and not convolution.panel_width():
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


def near(actual: Any, expected: Any) -> bool:
    """Equal but for the order of sums."""
    return bool(np.abs(actual - expected).max() <= 3e-6 * np.abs(expected).max() * 3)


def test_a_filter_may_change_and_a_constant_one_is_packed_once(
    way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each call uses its own filter; a constant one is packed once for all batches."""
    packed = []
    pack = convolution.packed_filter

    def pack_and_count(*arguments: Any) -> Any:
        packed.append(pack(*arguments))
        return packed[-1]

    monkeypatch.setattr(convolution, "packed_filter", pack_and_count)
    x, f = drawn(2, 9, 10, 16), drawn(3, 3, 16, 24)
    exe = compiled(x, padding="SAME")
    for factor in (1, -2):
        (actual,) = exe(x=x, f=f * np.float32(factor))
        assert near(actual, factor * windowed.convolution(x, f, padding="SAME"))

    fixed = pk.compile(pk.ops.convolution(pk.var("x", (None, 9, 10, 16)), f, padding="SAME"))
    for rows in (1, 2):
        (actual,) = fixed(x=x[:rows])
        assert near(actual, windowed.convolution(x[:rows], f, padding="SAME"))
    assert len(packed) == (way in ("onednn", "direct"))


NOTHING = [
    ((2, 7, 7, 0), (3, 3, 0, 4)),
    ((2, 7, 7, 3), (3, 0, 3, 40)),
    ((2, 7, 7, 3), (0, 3, 1, 3)),
]


@pytest.mark.parametrize("shape, filters", NOTHING)
def test_empty_sums_are_zeros(way: str, shape: tuple[int, ...], filters: tuple[int, ...]) -> None:
    """Without channels or window elements results are 0; libraries would divide by zero."""
    groups = shape[-1] // filters[-2] if filters[-2] else 1
    exe = compiled(np.empty(shape), pk.var("f", filters), groups=groups)
    out = np.full(exe.outputs[0].shape, 7, np.float32)
    exe({"x": np.ones(shape, np.float32), "f": np.ones(filters, np.float32)}, out=[out])

    assert out.size > 0 and not out.any()


def test_bits_do_not_depend_on_threads(way: str) -> None:
    """Tiles depend on the shape only, so that any number of threads gives the same bits."""
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
    """An image has the same result by itself and in a batch."""
    x, f = drawn(5, size, size, channels), drawn(taps, taps, channels, filters)
    v = pk.var("x", (None, size, size, channels))
    y = pk.ops.relu(pk.ops.convolution(v, f, padding="SAME") + 0.5)
    exe = pk.compile(pk.Graph([y]))
    (alone,) = exe(x=x[3:4])

    for first, last in ((0, 5), (2, 4)):
        (batch,) = exe(x=x[first:last])
        np.testing.assert_array_equal(batch[3 - first], alone[0])


def test_calls_from_several_threads(way: str) -> None:
    """Concurrent calls pack their own filters."""
    x = drawn(1, 20, 20, 16)
    exe = compiled(x, padding="SAME")
    filters = [drawn(3, 3, 16, 24) * np.float32(k + 1) for k in range(6)]
    expected = windowed.convolution(x, filters[0], padding="SAME")
    with ThreadPoolExecutor(4) as pool:
        actual = list(pool.map(lambda f: exe(x=x, f=f)[0], filters * 3))

    assert all(near(y, expected * (k % 6 + 1)) for k, y in enumerate(actual))


def geometry(**changed: Any) -> Geometry:
    """A small convolution over two axes."""
    plain: dict[str, Any] = {
        "batch": 1,
        "size": (1, 8, 8),
        "channels": 16,
        "filters": 16,
        "window": (1, 3, 3),
        "result": (1, 6, 6),
        "stride": (1, 1, 1),
        "before": (0, 0, 0),
        "dilation": (1, 1, 1),
        "groups": 1,
    }
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
def test_small_images_of_any_geometry(monkeypatch: pytest.MonkeyPatch, dtype: str) -> None:
    """Any window, stride, dilation, padding and number of filters up to four vectors."""
    used = []

    def few(c: Geometry, itemsize: int) -> Any:
        used.append(direct(c, itemsize))
        return used[-1]

    direct = convolution.small_images_cost
    monkeypatch.setattr(convolution, "small_images_cost", few)
    monkeypatch.setattr(convolution, "onednn_seconds", lambda c: 1.0)
    for size, window, params in SMALL:
        x, f = drawn(*size).astype(dtype), drawn(*window).astype(dtype)
        if dtype == "float64" and window[-1] > 32:
            continue  # more than four vectors
        (actual,) = pk.compile(pk.ops.convolution(pk.var("x", size, dtype), f, **params))(x=x)
        expected = windowed.convolution(x, f, **params)

        assert actual.dtype == dtype
        assert np.abs(actual - expected).max() <= 1e-5 * np.abs(expected).max(), (size, window)
    assert len(used) >= 5 and None not in used


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_im2col_tiles_may_end_within_a_row(monkeypatch: pytest.MonkeyPatch, dtype: str) -> None:
    """Tiles end within a row of results; taps are copied one by one, or in runs."""
    choose(monkeypatch, "im2col")
    monkeypatch.setattr(convolution, "PATCH_NBYTES", 2000)
    groups = ((2, 9, 8, 4), (3, 3, 2, 6), {"groups": 2, "strides": (1, 2), "padding": "SAME"})
    for size, window, params in (*SMALL, groups):
        x, f = drawn(*size).astype(dtype), drawn(*window).astype(dtype)
        (actual,) = pk.compile(pk.ops.convolution(pk.var("x", size, dtype), f, **params))(x=x)
        expected = windowed.convolution(x, f, **params)

        assert actual.dtype == dtype
        assert np.abs(actual - expected).max() <= 1e-5 * np.abs(expected).max(), (size, window)


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
def test_direct_convolutions_of_any_geometry(
    monkeypatch: pytest.MonkeyPatch,
    size: tuple[int, ...],
    window: tuple[int, ...],
    params: dict[str, Any],
) -> None:
    """Borders, strides, groups, few channels, many taps, partly filled panels."""
    if not convolution.panel_width():
        pytest.skip("the direct kernel needs AVX2")
    choose(monkeypatch, "direct")
    x, f = drawn(*size), drawn(*window)
    exe = pk.compile(pk.ops.convolution(pk.var("x", (None, *size[1:])), f, **params))
    (actual,) = exe(x=x)
    expected = windowed.convolution(x, f, **params)

    assert actual.shape == expected.shape
    assert np.abs(actual - expected).max() <= 1e-5 * np.abs(expected).max()


DEPTHWISE: list[tuple[int, int, int, str]] = [
    (taps, stride, width, padding)
    for taps in (1, 2, 3, 5, 7)
    for stride in (1, 2, 3)
    for width, padding in ((23, "SAME"), (11, "VALID"), (2, "SAME"))
    if padding == "SAME" or width >= taps
]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_depthwise_convolutions_of_any_geometry(dtype: str) -> None:
    """Common windows and others, full and partial vectors of channels, borders, narrow images."""
    rng = np.random.default_rng(1)
    results, expected, feeds = [], [], {}
    for k, (taps, stride, width, padding) in enumerate(DEPTHWISE):
        channels = (8, 16, 11, 35)[k % 4]
        x = rng.normal(size=(2, 9, width, channels)).astype(dtype)
        f = rng.normal(size=(3, taps, 1, channels)).astype(dtype)
        params: dict[str, Any] = {"groups": channels, "strides": (1, stride), "padding": padding}
        feeds[f"x{k}"] = x
        results.append(pk.ops.convolution(pk.var(f"x{k}", x.shape, dtype), f, **params))
        expected.append(windowed.convolution(x, f, **params))
    tolerance = 1e-5 if dtype == "float32" else 1e-13
    for actual, value in zip(pk.compile(pk.Graph(results))(feeds), expected, strict=True):
        assert np.abs(actual - value).max() <= tolerance * max(1.0, np.abs(value).max())


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
def test_epilogues_have_the_bits_of_separate_launches(
    monkeypatch: pytest.MonkeyPatch, way: str, filters: int
) -> None:
    """A norm, an activation and a residual have the same bits merged and launched separately."""
    graph, feeds = with_epilogues(way, filters)
    joined = pk.compile(graph)
    results = [r.tobytes() for r in joined(feeds)]
    assert joined.stats["epilogues"] == 4
    for count in (1, 3):
        with team_of(count):
            assert [r.tobytes() for r in joined(feeds)] == results

    monkeypatch.setattr(assemble, "row_epilogue", lambda launch, result: None)
    apart = pk.compile(graph)
    assert [r.tobytes() for r in apart(feeds)] == results
    assert apart.stats["epilogues"] == 0


def test_kernels_that_are_not_row_by_row_are_launched_separately() -> None:
    """Kernels that move elements, reduce over positions or depend on the row are no epilogues."""
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
        expected = pk.interpret(pk.Graph([result]), {"x": values})[0]
        (actual,) = exe(x=values)
        assert np.abs(actual - expected).max() <= 1e-5 * np.abs(expected).max(), name
        assert exe.stats["epilogues"] == 0, name


def test_a_profile_times_epilogues_separately() -> None:
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
def test_signal_filters_round_once(
    size: tuple[int, ...], window: tuple[int, ...], params: dict[str, Any]
) -> None:
    """Long windows over one channel whose sums cancel are exact to the last bit of the result."""
    x, f = 1 + drawn(*size) * np.float32(1e-4), drawn(*window)
    f -= f.mean(axis=tuple(range(f.ndim - 1)))
    exact = windowed.convolution(x.astype(np.float64), f.astype(np.float64), **params)
    variables = pk.var("x", size), pk.var("f", window)

    (actual,) = pk.compile(pk.ops.convolution(*variables, **params))(x=x, f=f)
    (fixed,) = pk.compile(pk.ops.convolution(variables[0], f, **params))(x=x)

    assert np.all(np.abs(actual - exact) <= np.spacing(np.abs(actual)))
    np.testing.assert_array_equal(fixed, actual)


def test_bits_of_signals_do_not_depend_on_threads() -> None:
    """Tiles of signal filters depend on the shape only."""
    x = drawn(1, 40000, 1)
    several = [compiled(x, drawn(128, 1, n), strides=2) for n in (1, 6)]
    bits = []
    for count in (1, 2, 4):
        with team_of(count):
            bits.append([exe(x=x)[0].tobytes() for exe in several])

    assert bits[0] == bits[1] == bits[2]


def test_long_windows_of_one_channel_are_signal_filters() -> None:
    """A long window along one axis of one channel, unless it costs too much per sample."""
    line: dict[str, Any] = {"size": (1, 1, 4000), "channels": 1, "filters": 36}
    line |= {"window": (1, 1, 256), "result": (1, 1, 469), "stride": (1, 1, 8)}

    assert convolution.is_signal_filter(geometry(**line))
    assert convolution.is_signal_filter(geometry(**line | {"window": (1, 1, 64)}))
    assert not convolution.is_signal_filter(geometry(**line | {"window": (1, 1, 63)}))
    assert not convolution.is_signal_filter(geometry(**line | {"window": (1, 8, 32)}))
    assert not convolution.is_signal_filter(geometry(**line | {"channels": 2}))
    assert not convolution.is_signal_filter(geometry(**line | {"filters": 300}))
    assert convolution.is_signal_filter(geometry(**line | {"filters": 300, "stride": (1, 1, 16)}))


def test_axes_of_length_1_come_first() -> None:
    """Axes without windows or padding move to the front, with all their parameters."""
    line: dict[str, Any] = {"size": (1, 40, 1), "window": (1, 5, 1), "result": (1, 12, 1)}
    line |= {"stride": (1, 3, 2), "before": (0, 1, 0), "dilation": (1, 2, 1)}

    actual = convolution.unit_axes_first(geometry(**line))

    assert (actual.size, actual.window, actual.result) == ((1, 1, 40), (1, 1, 5), (1, 1, 12))
    assert (actual.stride, actual.before, actual.dilation) == ((1, 2, 3), (0, 0, 1), (1, 1, 2))
    padded = geometry(**line | {"before": (0, 1, 1), "result": (1, 12, 2)})
    assert convolution.unit_axes_first(padded) == padded


def test_small_images_cost_is_none_for_large_work() -> None:
    """The kernel for small images has a cost for few filters and little work, else None."""
    small = convolution.small_images_cost(geometry(batch=3), 4)

    assert small is not None
    assert small[0] == 8 * (36 + 9) + 144 * 64 + 64 * 16 * 4
    assert small[1] == pytest.approx(3 * (36 * 144 * convolution.VECTOR_FMA_SECONDS + 4096 / 2e10))
    assert convolution.small_images_cost(geometry(filters=65), 4) is None
    assert convolution.small_images_cost(geometry(filters=33), 8) is None
    assert convolution.small_images_cost(geometry(groups=2), 4) is None
    large = geometry(size=(1, 66, 66), result=(1, 64, 64), channels=64, filters=64)
    assert convolution.small_images_cost(large, 4) is None
    work = geometry(size=(1, 16, 16), result=(1, 14, 14), channels=64, filters=64)
    assert convolution.small_images_cost(work, 4) is None


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("channels", [16, 64, 20, 3])
def test_streamed_results_have_the_same_bits(dtype: str, channels: int) -> None:
    """Streamed results have the same bits, for full and partial cache lines, also if read again."""
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


def test_the_number_of_parts_depends_on_the_work() -> None:
    """A small image is one part, a large one at most eight, many images fewer each."""
    large = {"size": (1, 130, 130), "result": (1, 128, 128), "channels": 256, "filters": 256}

    assert len(onednn.parts_of(geometry())) == 1
    assert len(onednn.parts_of(geometry(**large))) == 8
    assert len(onednn.parts_of(geometry(**large, batch=8))) == 2


@pytest.mark.skipif(onednn.load_library() is None, reason="onednn-cpu-gomp is not installed")
def test_a_failing_library_is_reported_once_and_replaced(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """After a failure of oneDNN results are correct, and one message is printed."""

    def broken(c: Geometry) -> Any:
        actual = onednn.convolution_primitives.__wrapped__(c)
        actual.table[onednn_part(actual.table)] = 0
        return actual

    def onednn_part(table: Any) -> int:
        return 9  # the first part's primitive

    choose(monkeypatch, "onednn")
    monkeypatch.setattr(convolution, "convolution_primitives", broken)
    x, f = drawn(1, 9, 10, 16), drawn(3, 3, 16, 24)
    exe = compiled(x, f)

    for _ in range(2):
        assert near(exe(x=x)[0], windowed.convolution(x, f))
    assert capfd.readouterr().err.count("oneDNN failed with status") == 1


def test_library_errors_and_reference_implementations_raise() -> None:
    """A function that fails and a reference implementation raise OneDnnError."""
    library = object.__new__(onednn.OneDnn)
    library.dll = SimpleNamespace(dnnl_broken=lambda *arguments: 3, dnnl_sound=lambda *arguments: 0)

    library("dnnl_sound", 1)
    onednn.require_optimized(b"jit:avx2")
    with pytest.raises(onednn.OneDnnError, match="dnnl_broken returned an error"):
        library("dnnl_broken", 1)
    with pytest.raises(onednn.OneDnnError, match="only ref:any, a slow reference implementation"):
        onednn.require_optimized(b"ref:any")


@pytest.mark.skipif(onednn.load_library() is None, reason="onednn-cpu-gomp is not installed")
@pytest.mark.parametrize("batch, size, channels", [(1, 28, 128), (8, 7, 512), (3, 56, 64)])
def test_parts_of_images_have_fast_primitives(batch: int, size: int, channels: int) -> None:
    """Each part of an image and of its gradient has a fast primitive."""
    lines = (1, size, size)
    c = Geometry(
        batch, lines, channels, channels, (1, 3, 3), lines, (1, 1, 1), (0, 1, 1), (1, 1, 1), 1
    )
    actual = onednn.convolution_primitives(c)

    assert actual is not None and actual.parts > 1
    assert filter_gradients._library_records(c, filter_gradients.parts_of(c)) is not None


def test_without_the_wheel_there_is_no_library(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the wheel, or if it does not load, there is no library."""
    monkeypatch.setattr(onednn, "find_library", lambda: None)

    assert onednn.load_library.__wrapped__() is None
    monkeypatch.setattr(onednn, "find_library", lambda: Path("/nonexistent/libdnnl.so.3"))
    assert onednn.load_library.__wrapped__() is None


def test_a_saved_executable_contains_the_unit(way: str, tmp_path: Path) -> None:
    """The compiled unit is saved with the executable."""
    x, f = drawn(1, 9, 10, 16), drawn(3, 3, 16, 24)
    exe = compiled(x, f)
    exe.save(tmp_path / "saved")

    np.testing.assert_array_equal(pk.load(tmp_path / "saved")(x=x)[0], exe(x=x)[0])
    assert (tmp_path / "saved" / "cache").is_dir()


def test_a_saved_filter_gradient_contains_the_unit(tmp_path: Path) -> None:
    """The compiled unit is saved with an executable without other kernels, and loaded from it."""
    forget()  # an earlier test may have loaded it from a folder that is gone
    x, y = drawn(2, 9, 10, 16), drawn(2, 7, 8, 24)
    inputs = [pk.var("x", x.shape), pk.var("y", y.shape)]
    exe = pk.compile(pk.ops.window_products(*inputs, window=(3, 3)))
    exe.save(tmp_path)

    assert exe.kernels == () and list((tmp_path / "cache" / "kernels").glob("*.json"))
    np.testing.assert_array_equal(pk.load(tmp_path)(x=x, y=y)[0], exe(x=x, y=y)[0])


def test_operators_between_convolutions_fuse_to_one_kernel() -> None:
    """Between two channels-first convolutions there is one kernel and no transpose."""
    x, f = pk.var("x", (1, 16, 9, 10)), drawn(3, 3, 16, 16)
    y = pk.ops.conv2d(x, f, padding="SAME", data_format="NCHW")
    y = pk.ops.relu(y + np.ones((16, 1, 1), np.float32))
    exe = pk.compile(pk.ops.conv2d(y, f, padding="SAME", data_format="NCHW"))

    kinds = [type(s).__name__ for s in exe.steps]
    assert kinds == ["LaunchStep", "LibraryCall", "LaunchStep", "LibraryCall", "LaunchStep"]
    assert "i3" not in exe.kernels[1].source  # one loop: nothing moves


GRADIENTS = [
    ((16, 12, 12, 20), (5, 5), 50, {}),
    ((1, 40, 34, 32), (3, 3), 64, {"padding": "SAME"}),
    ((3, 9, 10, 5), (3, 2), 7, {"padding": ((1, 0), (0, 2)), "strides": (2, 1), "dilations": 2}),
    ((2, 60, 16), (9,), 32, {"padding": "SAME"}),
    ((2, 6, 7, 8, 4), (3, 2, 3), 6, {"strides": 2}),
]


@pytest.mark.parametrize("ways", ["library", "windows", "loops"])
def test_filter_gradients_are_right_and_their_bits_do_not_depend_on_threads(
    ways: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Values are right with oneDNN, with windows in BLAS, and with loops."""
    if ways != "library":
        monkeypatch.setattr(filter_gradients, "load_library", lambda: None)
    if ways == "loops":
        monkeypatch.setattr(filter_gradients, "blas", lambda: NO_BLAS)
    filter_gradients._table.cache_clear()
    rng = np.random.default_rng(5)
    graphs, feeds = [], {}
    for k, (shape, window, count, params) in enumerate(GRADIENTS):
        x = pk.var(f"x{k}", shape)
        result = pk.ops.convolution(x, pk.var("f", (*window, shape[-1], count)), **params).shape
        y = pk.var(f"y{k}", result)
        graphs.append(pk.ops.window_products(x, y, window=window, **params))
        feeds |= {v.node.name: rng.normal(size=v.shape).astype("f4") for v in (x, y)}
    exe, visited = pk.compile(pk.Graph(graphs)), set()
    for threads in (1, 2):
        with team_of(threads):
            outcome = exe(feeds)
        visited.add(b"".join(a.tobytes() for a in outcome))
    for array, expected in zip(outcome, pk.interpret(pk.Graph(graphs), feeds), strict=True):
        assert np.abs(array - expected).max() <= 3e-6 * np.abs(expected).max()
    assert len(visited) == 1
    filter_gradients._table.cache_clear()


def test_a_filter_gradient_over_no_images_is_zero() -> None:
    """The result is zero, whatever was in its memory."""
    x, y = pk.var("x", (0, 9, 10, 16)), pk.var("y", (0, 7, 8, 24))
    exe = pk.compile(pk.Graph([pk.ops.window_products(x, y, window=(3, 3))]))
    feeds = {v.node.name: np.ones(v.shape, "f4") for v in (x, y)}
    out = np.full((3, 3, 16, 24), np.nan, "f4")

    exe(feeds, out=[out])

    assert not out.any()


def test_filter_gradients_are_divided_by_images_or_lines() -> None:
    """Images are divided among threads, few large ones by lines; small work is one part."""

    def parts(batch: int, side: int, channels: int) -> list[tuple[int, ...]]:
        plane = (1, side, side)
        c = Geometry(
            batch, plane, channels, channels, (1, 3, 3), plane, (1, 1, 1), (0, 1, 1), (1, 1, 1), 1
        )
        return [tuple(p) for p in filter_gradients.parts_of(c)]

    assert parts(1, 8, 16) == [(0, 1, 0, 8)]
    assert parts(1, 32, 64) == [(0, 1, 0, 16), (0, 1, 16, 32)]
    assert parts(3, 32, 32) == [(0, 1, 0, 32), (1, 1, 0, 32), (2, 1, 0, 32)]
    assert [p[1] for p in parts(20, 32, 64)] == [2, 3, 2, 3, 2, 3, 2, 3]


@pytest.mark.skipif(onednn.load_library() is None, reason="onednn-cpu-gomp is not installed")
def test_filter_gradients_do_without_a_library_that_fails(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """A failure is reported once, and the result is right."""
    created = filter_gradients._table.__wrapped__

    def broken(c: Geometry) -> Any:
        table, scratch = created(c)
        table[9] = 0  # the first part's primitive
        return table, scratch

    monkeypatch.setattr(filter_gradients, "_table", broken)
    x, y = (pk.var(n, s) for n, s in (("x", (4, 9, 8, 16)), ("y", (4, 7, 6, 16))))
    graph = pk.Graph([pk.ops.window_products(x, y, window=(3, 3))])
    rng = np.random.default_rng(6)
    feeds = {v.node.name: rng.normal(size=v.shape).astype("f4") for v in (x, y)}
    (outcome,), (expected,) = pk.compile(graph)(feeds), pk.interpret(graph, feeds)

    assert np.abs(outcome - expected).max() <= 3e-6 * np.abs(expected).max()
    assert capfd.readouterr().err.count("oneDNN failed with status") == 1
