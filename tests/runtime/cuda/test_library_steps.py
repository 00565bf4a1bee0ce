"""Products by cuBLASLt and convolutions by cuDNN, in the stream of the kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import passkit as pk
from passkit.runtime.cuda import cublaslt, cudnn
from passkit.runtime.cuda.cudnn import unpadded_geometry
from passkit.runtime.cuda.driver import DriverError
from passkit.runtime.cuda.libraries import (
    CUBLASLT,
    CUDNN,
    SharedLibrary,
    UnsupportedError,
    call_library,
    load_library,
)
from passkit.runtime.native.onednn import Geometry
from passkit.runtime.program import FilterGradient, LibraryCall
from passkit.values import dtype as dt
from tests.cuda import on_cuda
from tests.emulator.fake_driver import FakeDriver, fake_cuda

o = pk.ops


@pytest.fixture
def machine(equipped: Any) -> Any:
    """A driver with both libraries."""
    return equipped


def agrees(graph: pk.Graph, feeds: Any, result: Any, rtol: float) -> None:
    """Check outputs against `interpret`, relative to the largest element of each."""
    for a, b in zip(result, pk.interpret(graph, feeds), strict=True):
        assert a.shape == b.shape and a.dtype == b.dtype
        if a.size:
            a, b = np.asarray(a, np.float64), np.asarray(b, np.float64)
            assert np.abs(a - b).max() <= rtol * max(1.0, np.abs(b).max())


def normal(rng: Any, *shape: int, dtype: str = "float32") -> Any:
    """Return normally distributed numbers."""
    return rng.standard_normal(shape).astype(dt.dtype_of(dtype).numpy)


def test_products_of_all_layouts(machine: Any, rng: Any) -> None:
    """Transposes, batches, broadcasts, empty sums and empty arrays, in one program."""
    shapes = {
        "a": ("n", 16),
        "b": (16, 8),
        "c": (8, 16),
        "d": (16, "n"),
        "e": (3, 5, 16),
        "f": (3, 16, 4),
        "g": (2, 1, 4, 6),
        "h": (3, 6, 5),
        "i": (4, 0),
        "j": (0, 3),
        "v": (16,),
    }
    x = {k: pk.var(k, s) for k, s in shapes.items()}
    pairs = [
        o.matmul(x["a"], x["b"]),
        o.matmul(x["a"], o.matrix_transpose(x["c"])),
        o.matmul(o.matrix_transpose(x["d"]), x["b"]),
        o.matmul(x["e"], x["f"]),
        o.matmul(x["e"], x["b"]),
        o.matmul(x["g"], x["h"]),
        o.matmul(x["i"], x["j"]),
        o.matvec(x["a"], x["v"]),
    ]
    graph = pk.Graph(pairs)
    exe = pk.compile(graph, target="cuda")
    for n in (7, 0):
        feeds = {k: normal(rng, *(n if d == "n" else d for d in s)) for k, s in shapes.items()}
        agrees(graph, feeds, exe(feeds), rtol=1e-5)

    assert exe.stats["host_steps"] == 0 and "on_host_because" not in exe.stats
    assert exe.stats["device_library_steps"] == exe.stats["library_calls"] >= 7
    if isinstance(machine, FakeDriver):
        assert set(machine.calls("cublasLtMatmul")) == {machine.calls("finish")[-1]}
        assert machine.libraries.lt.counts["cublasLtMatmul"] >= 7 + 2


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("flips", [(False, False), (True, False), (False, True), (True, True)])
def test_sums_of_products_accumulate(
    flips: tuple[bool, bool], dtype: str, machine: Any, rng: Any
) -> None:
    """Products are accumulated in the result, also where some have empty sums."""

    def turned(shape: tuple[Any, ...], flip: bool) -> tuple[Any, ...]:
        return shape[::-1] if flip else shape

    steps = (16, "k", 5)
    shapes = {
        f"{side}{k}": turned((m, step) if side == "a" else (step, m), flip)
        for k, step in enumerate(steps)
        for side, m, flip in (("a", "n", flips[0]), ("b", 8, flips[1]))
    }
    inputs = [pk.var(name, shape, dtype) for name, shape in shapes.items()]
    graph = pk.Graph([o.matmul_sum(*inputs, transpose_a=flips[0], transpose_b=flips[1])])
    exe = on_cuda(graph, host=("library",))
    for n, k in ((7, 9), (40, 0), (0, 3), (1, 1)):
        sizes = {"n": n, "k": k}
        feeds = {
            name: normal(rng, *(sizes.get(d, d) for d in shape), dtype=dtype)
            for name, shape in shapes.items()
        }
        for _ in range(2):
            agrees(graph, feeds, exe(feeds), rtol=1e-5)
    assert exe.stats["host_steps"] == 0 and exe.stats["device_library_steps"] == 1


def test_products_of_no_rows_and_columns(machine: Any) -> None:
    """Sums over 3 and over 0 rows overwrite the old result."""
    graph = pk.Graph(
        [o.matmul_sum(*(pk.var(f"x{k}", ("n", "k")) for k in range(4)), transpose_a=True)]
    )
    exe = on_cuda(graph, host=("library",))
    for n in (3, 0):
        (result,) = exe({f"x{k}": np.ones((n, 6), np.float32) for k in range(4)})
        np.testing.assert_array_equal(result, np.full((6, 6), 2.0 * n))


@pytest.mark.parametrize("dtype", ["float64", "float16", "bfloat16"])
def test_products_of_all_dtypes(dtype: str, machine: Any, rng: Any) -> None:
    """16-bit floats are summed in float32 and rounded once."""
    graph = pk.Graph([o.matmul(pk.var("x", (9, 70), dtype), pk.var("w", (70, 5), dtype))])
    exe = on_cuda(graph, host=("library",))
    feeds = {"x": normal(rng, 9, 70, dtype=dtype), "w": normal(rng, 70, 5, dtype=dtype)}
    agrees(graph, feeds, exe(feeds), rtol={"float64": 1e-13}.get(dtype, 1e-2))

    assert exe.stats["host_steps"] == 0


def test_biases_become_epilogues(machine: Any, rng: Any) -> None:
    """A bias joins the product that nothing else needs; a relu stays a kernel."""
    x, w, b = pk.var("x", ("n", 16)), normal(rng, 16, 8), normal(rng, 8)
    half = o.cast(x, "float16")
    product = o.matmul(o.exp(x), w)
    cases = {
        1: [o.matmul(x, w) + b],
        2: [o.matmul(o.tanh(x), w) + b, o.matmul(o.expand_dims(x, 0), w) + b],
        0: [
            o.relu(o.matmul(x, w) + b),
            product + b,
            o.sort(product, axis=1),
            o.matmul(half, w.astype(np.float16)) + b.astype(np.float16),
            o.matmul(x, w) + normal(rng, 30, 8),
        ],
    }
    for expected, outputs in cases.items():
        graph = pk.Graph(outputs)
        exe = pk.compile(graph, target="cuda")
        feeds = {"x": normal(rng, 30, 16)}
        for _ in range(3):
            agrees(graph, feeds, exe(feeds), rtol=1e-2 if expected == 0 else 1e-5)
        assert exe.stats["epilogues"] == expected, outputs


def test_nothing_is_transferred_between_steps(machine: Any, rng: Any) -> None:
    """Kernels and products follow each other on the device, also in replayed graphs."""
    w, v = normal(rng, 16, 8), normal(rng, 8, 8)
    y = o.matmul(o.exp(pk.var("x", ("n", 16))), w)
    graph = pk.Graph([o.relu(o.matmul(o.tanh(y), v))])
    exe = on_cuda(graph, host=("library",))
    feeds = {"x": normal(rng, 30, 16)}
    agrees(graph, feeds, exe(feeds), rtol=1e-4)
    logs = []
    for _ in range(3):
        machine.log.clear()
        agrees(graph, feeds, exe(feeds), rtol=1e-4)
        logs.append([name for name, _ in machine.log if name not in ("allocate", "stream")])

    if isinstance(machine, FakeDriver):
        steps = ["launch", "cublasLtMatmul", "launch", "cublasLtMatmul", "launch"]
        assert ["upload", "capture", *steps, "replay", "download", "finish"] in logs
        assert logs[-1] == ["upload", "replay", "download", "finish"]
    moved = exe.stats["bytes_uploaded"], exe.stats["bytes_downloaded"]
    assert moved == (30 * 16 * 4, 30 * 8 * 4)


NOTHING = [((2, 5, 5, 0), (3, 3, 0, 4)), ((2, 5, 5, 3), (0, 3, 3, 4))]


@pytest.mark.parametrize("shape, filters", NOTHING)
def test_empty_convolutions_are_zeros(
    shape: tuple[int, ...], filters: tuple[int, ...], machine: Any
) -> None:
    """Without channels or window elements the result is zeros, whatever its memory held."""
    exe = on_cuda(pk.Graph([o.conv2d(pk.var("x", shape), pk.var("f", filters))]), host=("library",))
    feeds = {"x": np.ones(shape, np.float32), "f": np.ones(filters, np.float32)}
    (result,) = exe(feeds)

    assert result.size > 0 and not np.asarray(result).any()


def test_convolutions_of_all_shapes(machine: Any, rng: Any) -> None:
    """Strides, one and three axes; constant filters are laid out and uploaded once."""
    w = {
        k: normal(rng, *s)
        for k, s in {
            "plain": (3, 3, 4, 6),
            "grouped": (3, 2, 2, 6),
            "line": (3, 4, 5),
            "solid": (2, 2, 2, 4, 3),
        }.items()
    }
    x, line = pk.var("x", ("n", 9, 8, 4)), pk.var("l", (2, 11, 4))
    solid = pk.var("s", (1, 4, 5, 6, 4))
    graph = pk.Graph(
        [
            o.conv2d(x, w["plain"], padding="SAME"),
            o.conv2d(o.exp(x), w["plain"], strides=(2, 2), padding="VALID"),
            o.conv1d(line, w["line"], padding="VALID"),
            o.conv3d(solid, w["solid"], padding="VALID"),
        ]
    )
    exe = pk.compile(graph, target="cuda")
    feeds = {
        "x": normal(rng, 2, 9, 8, 4),
        "l": normal(rng, 2, 11, 4),
        "s": normal(rng, 1, 4, 5, 6, 4),
    }
    agrees(graph, feeds, exe(feeds), rtol=1e-4)
    first = exe.stats["bytes_uploaded"]
    agrees(graph, feeds, exe(feeds), rtol=1e-4)

    assert exe.stats["host_steps"] == 0 and exe.stats["device_library_steps"] == 4
    if isinstance(machine, FakeDriver):
        assert machine.libraries.dnn.counts["cudnnConvolutionForward"] == 8
    assert first - exe.stats["bytes_uploaded"] >= sum(w[k].nbytes for k in ("plain", "line"))


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
def test_filters_and_padding_are_laid_out_on_the_device(dtype: str, machine: Any, rng: Any) -> None:
    """Variable filters are transposed, and unequal padding is added, by kernels.

    16-bit floats are summed in float32 and rounded once.
    """
    x, line = pk.var("x", ("n", 6, 7, 2), dtype), pk.var("l", (2, 8, 4), dtype)
    w, v = pk.var("w", (3, 2, 2, 5), dtype), normal(rng, 3, 4, 5, dtype=dtype)
    graph = pk.Graph(
        [
            o.conv2d(x, w, padding="VALID"),
            o.conv2d(x, w, strides=(2, 2), padding="SAME"),
            o.conv1d(line, v, strides=(2,), padding="SAME"),
        ]
    )
    exe = pk.compile(graph, target="cuda")
    feeds = {"w": normal(rng, 3, 2, 2, 5, dtype=dtype), "l": normal(rng, 2, 8, 4, dtype=dtype)}
    tolerance = {"float32": 1e-5, "float64": 1e-13, "float16": 2e-3, "bfloat16": 1e-2}[dtype]
    for n in (3, 0, 1):
        feeds["x"] = normal(rng, n, 6, 7, 2, dtype=dtype)
        for _ in range(2):
            agrees(graph, feeds, exe(feeds), rtol=tolerance)

    assert "on_host_because" not in exe.stats and exe.stats["device_library_steps"] == 3
    assert exe.stats["host_steps"] == 0
    if isinstance(machine, FakeDriver):
        names = {f.name.rsplit("_", 1)[0] for f in machine.functions}
        assert names >= {"transposed", "padded"}
    nothing = unpadded_geometry(
        Geometry(1, (1, 6, 9), 2, 2, (1, 3, 3), (1, 2, 3), (1, 2, 2), (0, -1, 1), (1, 1, 2), 1)
    )
    assert (nothing.size, nothing.before) == ((1, 5, 9), (0, 0, 0))


@pytest.mark.parametrize("padding, strides", [("VALID", 1), ("SAME", 1), ("SAME", 2)])
def test_filter_gradients(padding: str, strides: int, machine: Any, rng: Any) -> None:
    """The library sums over all windows, and the result has our layout."""
    how: dict[str, Any] = {"strides": (strides, strides), "padding": padding}
    x, w = pk.var("x", (2, 8, 7, 3)), pk.var("w", (3, 2, 3, 5))
    y = o.conv2d(x, w, **how)
    graph = pk.Graph(pk.gradients([o.reduce_sum(o.square(y))], [w]))
    exe = pk.compile(graph, target="cuda")
    assert [
        s.operation
        for s in exe.steps
        if isinstance(s, LibraryCall) and isinstance(s.operation, FilterGradient)
    ]
    feeds = {"x": normal(rng, 2, 8, 7, 3), "w": normal(rng, 3, 2, 3, 5)}
    for _ in range(2):
        agrees(graph, feeds, exe(feeds), rtol=1e-4)
    assert exe.stats["host_steps"] == 0 and "on_host_because" not in exe.stats

    _, rows, columns, _ = y.shape
    images, given = pk.var("x", ("n", 8, 7, 3)), pk.var("g", ("n", rows, columns, 5))
    alone = pk.Graph([o.window_products(images, given, window=(3, 2), **how)])
    exe = on_cuda(alone, host=("library",))
    for n in (5, 0, 1):
        feeds = {"x": normal(rng, n, 8, 7, 3), "g": normal(rng, n, rows, columns, 5)}
        agrees(alone, feeds, exe(feeds), rtol=1e-5)
    assert exe.stats["host_steps"] == 0


def test_unsupported_steps_run_on_the_host(fake: FakeDriver, rng: Any) -> None:
    """Without an algorithm the step runs on the host, and the reason is reported."""
    fake.libraries.lt.counts["unable"] = fake.libraries.dnn.counts["unable"] = 1
    product = pk.Graph([o.matmul(pk.var("x", (3, 4)), pk.var("y", (4, 5)))])
    unable = pk.compile(product, target="cuda")
    feeds = {"x": normal(rng, 3, 4), "y": normal(rng, 4, 5)}
    agrees(product, feeds, unable(feeds), rtol=1e-5)
    assert "cuBLASLt has no product for MatmulShape" in unable.stats["on_host_because"][0]
    numbers = Geometry(1, (1, 6, 6), 2, 2, (1, 3, 3), (1, 4, 4), (1, 1, 1), (0, 0, 0), (1, 1, 1), 1)
    with pytest.raises(UnsupportedError, match=r"reproducible results for Geometry\(batch=1"):
        cudnn.Cudnn().convolution(numbers, dt.float32)
    padded = numbers._replace(result=(1, 6, 6))
    with pytest.raises(
        UnsupportedError, match=r"results of shape \(1, 4, 4\), and this .* needs \(1, 6, 6\)"
    ):
        cudnn.Cudnn().convolution(padded, dt.float32)
    with fake.current():
        library = cublaslt.CublasLt(9)
    plain = cublaslt.MatmulShape(dt.float32, 3, 5, 4, False, False)
    with pytest.raises(UnsupportedError, match=r"no product for MatmulShape\(dtype=float32, m=3"):
        library.matmul(plain, 16)
    fake.libraries.lt.counts["failing"] = fake.libraries.dnn.counts["failing"] = 1
    with pytest.raises(UnsupportedError, match="cublasLtMatmulAlgoGetHeuristic: status 7"):
        library.matmul(plain, 16)
    with pytest.raises(UnsupportedError, match="ForwardAlgorithm_v7: status 3000"):
        cudnn.Cudnn().convolution(numbers, dt.float32)
    with pytest.raises(UnsupportedError, match="float16, bfloat16, and this .* of int32"):
        cudnn.Cudnn().convolution(numbers, dt.int32)


@pytest.mark.parametrize("absent", [CUBLASLT, CUDNN])
def test_a_missing_library_is_reported(absent: SharedLibrary, rng: Any) -> None:
    """Its steps run on the host, and the statistics say what to install."""
    w, filters = normal(rng, 8, 5), normal(rng, 3, 3, 2, 2)
    x, image = pk.var("x", (4, 8)), pk.var("image", (1, 5, 5, 2))
    graph = pk.Graph([o.matmul(x, w), o.conv2d(image, filters, padding="VALID")])
    feeds = {"x": normal(rng, 4, 8), "image": normal(rng, 1, 5, 5, 2)}
    with fake_cuda(absent=(absent,)):
        exe = pk.compile(graph, target="cuda")
        agrees(graph, feeds, exe(feeds), rtol=1e-4)

        stats = exe.stats

    assert (stats["host_steps"], stats["device_library_steps"]) == (1, 1)
    assert stats["on_host_because"] == (
        f"{absent.name} cannot be loaded (absent); pip install {absent.wheels[0]}",
    )


def test_unaligned_operands(fake: FakeDriver, rng: Any) -> None:
    """Operands at any address use another algorithm; a bias is added."""
    with fake.current():
        library = cublaslt.CublasLt(9)
        where = fake.allocate(4096)
        stream = fake.stream()
        x, y, bias = normal(rng, 3, 4), normal(rng, 4, 5), normal(rng, 5)
        spots = [where + 4, where + 256, where + 512, where + 1024]
        for at, array in zip(spots, (x, y, bias), strict=False):
            fake.upload(at, array.reshape(-1).view(np.uint8), stream)
        numbers = cublaslt.MatmulShape(
            dt.float32, 3, 4 + 1, 4, False, False, epilogue=cublaslt.LtEpilogue.BIAS
        )
        product = library.matmul(numbers, 4)
        a, b, c = spots[0], spots[1], spots[3]
        product.enqueue(a, b, c, where + 2048, stream, bias=spots[2])
        result = np.empty(60, np.uint8)
        fake.download(result, c, stream)
        fake.finish(stream)
        np.testing.assert_allclose(result.view(np.float32).reshape(3, 5), x @ y + bias, rtol=1e-5)
        with pytest.raises(AssertionError, match="off their alignment"):
            library.matmul(numbers, 16).enqueue(a, b, c, where + 2048, stream, bias=spots[2])
        held = len(library.dll.held)
        del product
        assert len(library.dll.held) == held - 4


def test_a_failing_library_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """A status raises a DriverError; a library that does not start is not used."""

    class Broken:
        def cublasLtCreate(self, handle: Any) -> int:  # noqa: N802
            return 1

    with pytest.raises(DriverError, match="cublasLtCreate: status 1"):
        call_library(Broken(), "cublasLtCreate", None)
    with fake_cuda(absent=()):
        monkeypatch.setattr(cublaslt, "load_library", lambda library: Broken())
        x = pk.var("x", (3, 4))
        exe = pk.compile(pk.Graph([o.matmul(x, x, transpose_b=True)]), target="cuda")
        exe(x=np.ones((3, 4), np.float32))
        (reason,) = exe.stats["on_host_because"]
    assert "cannot be initialized: cublasLtCreate: status 1" in reason
    with pytest.raises(
        UnsupportedError,
        match=r"none cannot be loaded \(libnone.*; pip install nothing-at-all",
    ):
        load_library(SharedLibrary("none", ("libnone.so.77",), ("nothing-at-all",)))
