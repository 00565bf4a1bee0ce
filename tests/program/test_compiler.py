"""Executables: calls, sizes, threads, and errors."""

from __future__ import annotations

import platform
import shutil
import warnings
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import passkit as pk
from passkit.errors import FeedError, PassError
from passkit.program.counts import ProgramCounts
from passkit.values.size import Size
from tests.kernel_cache import build_into, forget_loaded_kernels, number_of_kernels
from tests.planned import agrees, feeds_of, target, with_known_shapes
from tests.row_programs import SOFTMAX

TEXT = "x: f32[n, 4]; y: f32[n, 4]; e = exp(sub(x, y)); return e, reduce_sum(mul(e, y), axis=1)"


def exe(text: str = TEXT, **options: Any) -> pk.Executable:
    """The executable of a graph in text."""
    return pk.compile(pk.parse(text), **options)


def pair(rng: Any, n: int) -> dict[str, Any]:
    """Feeds of `TEXT`."""
    return {k: rng.normal(size=(n, 4)).astype(np.float32) for k in "xy"}


def test_calls_by_name_dict_and_out(rng: Any) -> None:
    """Feeds by name, as a dict and with ``out`` give the same bits; ``out`` is returned."""
    run, feeds = exe(), pair(rng, 9)
    expected = [a.tobytes() for a in run(feeds)]
    out = [np.empty((9, 4), np.float32), np.empty(9, np.float32)]

    assert [a.tobytes() for a in run(**feeds)] == expected
    assert [a.tobytes() for a in run({"x": feeds["x"]}, y=feeds["y"])] == expected
    result = run(feeds, out=out)
    assert result[0] is out[0] and [a.tobytes() for a in out] == expected
    with pytest.raises(
        FeedError, match=r"out\[1\] needs a contiguous float32\[9\], got float32\[8\]"
    ):
        run(feeds, out=[out[0], np.empty(8, np.float32)])


def test_signatures_counts_and_text() -> None:
    """An executable has names, shapes and dtypes of inputs and outputs, counts, and its text."""
    run = exe()

    assert [(s.name, [str(n) for n in s.shape], s.dtype.name) for s in run.inputs] == [
        ("x", ["n", "4"], "float32"),
        ("y", ["n", "4"], "float32"),
    ]
    assert [s.name for s in run.outputs] == ["e", "reduce_sum"]
    assert run.source == run.kernels[0].source == str(run.kernels[0])
    assert repr(run) == "Executable(1 kernels on cpu)"
    assert run.stats["bytes_read"] == 0
    run(x=np.ones((8, 4), np.float32), y=np.ones((8, 4), np.float32))
    assert (run.stats["bytes_read"], run.stats["bytes_written"]) == (256, 160)
    assert run.stats["bytes_unfused"] > 2 * (256 + 160)


def test_sizes_that_divide_by_zero_count_no_bytes() -> None:
    """Arrays of such a size count 0, as those of unknown sizes do; others have their bytes."""
    size = Size.symbol("n") * Size.symbol("k") // Size.symbol("m")
    x, y = pk.var("x", ("n", "k")), pk.var("y", ("m",))
    rows = pk.ops.reduce_sum(pk.ops.reshape(x, shape=(size, Size.symbol("m"))), axis=1)
    run = pk.compile(pk.Graph([rows, pk.ops.exp(y)]))
    partial, zero, full = (
        ProgramCounts(run.graph, run.kernels, run.steps, sizes).bytes()
        for sizes in ({"n": 2}, {"n": 2, "k": 3, "m": 0}, {"n": 2, "k": 3, "m": 2})
    )

    assert partial["bytes_unfused"] == 0
    assert (zero["bytes_read"], zero["bytes_written"]) == (2 * 3 * 4, 0)
    assert full["bytes_written"] > 0 and full["bytes_unfused"] > zero["bytes_unfused"]


@pytest.mark.parametrize("n", [0, 1, 2, 15, 16, 17, 63, 64, 65, 1000])
def test_one_executable_serves_all_sizes(n: int, rng: Any) -> None:
    """One executable serves all sizes, zero included, without compiling."""
    exe()
    run, feeds = exe(), pair(rng, n)

    agrees(pk.parse(TEXT), feeds, run(feeds))
    assert run.stats["compiled"] == 0


@pytest.mark.parametrize(
    "feeds, message",
    [
        (
            {"x": np.ones((3, 4)), "y": np.ones((3, 4), np.float32)},
            r"input 'x' needs float32\[n, 4\], got float64\[3, 4\]; x.astype\('float32'\)",
        ),
        (
            {"x": np.ones((3, 5), np.float32), "y": np.ones((3, 4), np.float32)},
            r"input 'x' needs float32\[n, 4\], got float32\[3, 5\]; axis 1 must be 4",
        ),
        (
            {"x": np.ones((3, 4), np.float32), "y": np.ones((2, 4), np.float32)},
            r"input 'y' needs float32\[n, 4\], got float32\[2, 4\]; n is 3 in 'x'",
        ),
        (
            {"x": np.ones(4, np.float32), "y": np.ones((2, 4), np.float32)},
            "reshape it to 2 dimensions",
        ),
        ({"x": np.ones((3, 4), np.float32)}, "input 'y' is missing"),
        ({"x": 1, "y": 2, "z": 3}, "there is no input 'z'"),
    ],
)
def test_feeds_that_do_not_fit_are_errors(feeds: dict[str, Any], message: str) -> None:
    """Wrong dtypes, sizes, ranks and names are errors with a way out."""
    with pytest.raises(FeedError, match=message):
        exe()(feeds)


def test_strided_feeds_are_copied_and_counted(rng: Any) -> None:
    """Any strides are taken: transposed, reversed, every second, broadcast."""
    run, wide = exe(), rng.normal(size=(4, 18)).astype(np.float32)
    thin = np.broadcast_to(wide[:1].T, (18, 4))
    for x in (wide.T, wide.T[::-1], np.repeat(wide.T, 2, 0)[::2], thin):
        before = run.stats["copies"]
        feeds = {"x": x, "y": np.ascontiguousarray(wide.T)}
        agrees(pk.parse(TEXT), feeds, run(feeds))
        assert run.stats["copies"] == before + 1


def test_results_are_the_callers_to_keep(rng: Any) -> None:
    """A kept result, or a view of one, never changes; freed memory is used again."""
    run = exe("x: f32[n]; return mul(x, 2.0)")
    kept = []
    for k in range(12):
        x = np.full(300_000, k, np.float32)
        (y,) = run(x=x)
        kept.append(y[::1000] if k % 2 else y)
    for k, y in enumerate(kept):
        assert (y == 2 * k).all()


def test_two_threads_one_executable(rng: Any) -> None:
    """Calls at the same time, at sizes that change from call to call, do not disturb each other."""
    run, graph = exe(), pk.parse(TEXT)

    def work(seed: int) -> None:
        local = np.random.default_rng(seed)
        for n in local.integers(1, 3000, 40):
            feeds = pair(local, int(n))
            agrees(graph, feeds, run(feeds))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))


def test_calls_that_write_state_run_one_at_a_time() -> None:
    """Concurrent calls that update a state all take effect."""
    run = exe("state w: f32[3] = [0, 0, 0]; s = assign(w, add(w, 1)); return s")
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: run(), range(400)))

    assert run.state["w"].tolist() == [400] * 3


def test_state_stays_in_place() -> None:
    """The array of a state stays; the next call reads what the last one wrote."""
    run = exe("state w: f32[3] = [1, 2, 3]; x: f32[3]; s = assign(w, mul(w, x)); return s")
    array = run.state.arrays["w"]
    (first,), (second,) = (run(x=np.full(3, 2, np.float32)) for _ in range(2))

    assert run.state.arrays["w"] is array
    assert first.tolist() == [2, 4, 6] and second.tolist() == array.tolist() == [4, 8, 12]


def test_shapes_that_break_a_guard_are_planned_anew(rng: Any) -> None:
    """If the plan takes n and m to be equal, feeds of n=1 are planned anew, and broadcast."""
    text = "x: f32[n, 4]; y: f32[m, 4]; return add(x, exp(y))"
    run, graph = exe(text), pk.parse(text)
    for n, m in ((5, 5), (1, 5), (5, 1), (1, 1), (5, 5), (1, 7)):
        feeds = feeds_of(graph, rng, n=n, m=m)
        agrees(graph, feeds, run(feeds))
    with pytest.raises(pk.PasskitError, match=r"\(5, 4\) and \(3, 4\)"):
        run(feeds_of(graph, rng, n=5, m=3))


def test_shapes_are_inferred_anew_from_known_inputs() -> None:
    """Inputs with other shapes than declared change the shapes of all that depends on them."""
    graph = with_known_shapes(
        pk.parse("x: f32[n, m]; return reshape(x, shape=(m, n))"), {"x": (2, 3)}
    )

    assert pk.ApplyPasses(graph, "InferShape").shape(graph.outputs[0]) == (3, 2)


def test_a_program_has_steps_of_every_kind(rng: Any) -> None:
    """Kernels, library calls, NumPy and copies make one program."""
    op = pk.register_op("test_compiler_sorted", num_inputs=1)
    op.set_attr("FCompute", lambda node, x: np.sort(x, axis=-1))
    op.set_attr("FInferShape", lambda node, s: (s,))
    text = """x: f32[n, 8]; w: f32[8, 8]; a = matmul(exp(x), w); b = test_compiler_sorted(a)
    c = neg(b); return c, x, c"""
    graph = pk.parse(text)
    run, feeds = exe(text), feeds_of(graph, rng, n=5)
    agrees(graph, feeds, run(feeds), 1e-5)

    kinds = {type(s).__name__ for s in run.steps}
    assert {"LaunchStep", "LibraryCall", "PythonCall", "CopyStep"} <= kinds
    assert (run.stats["native_calls"], run.stats["python_calls"]) == (2, 1)
    assert all(str(s) for s in run.steps)


def test_an_entry_a_list_or_a_graph_can_be_compiled() -> None:
    """An entry, a list of entries or a graph can be compiled."""
    x = pk.var("x", (2,), "float32")
    for outputs in (x + 1, [x + 1], pk.Graph([x + 1])):
        assert pk.compile(outputs)(x=np.zeros(2, np.float32))[0].tolist() == [1, 1]


def test_the_interpreter_takes_the_same_calls(rng: Any) -> None:
    """The target ``interpret`` gives the same results for the same calls, and has no profile."""
    run, feeds = exe(target="interpret"), pair(rng, 3)
    out = [np.empty((3, 4), np.float32), np.empty(3, np.float32)]

    assert run(feeds, out=out)[0] is out[0]
    agrees(pk.parse(TEXT), feeds, out)
    assert (run.stats["target"], run.kernels, run.steps) == ("interpret", (), ())
    with pytest.raises(PassError, match="Executable.* on interpret.* interprets operator by op"):
        run.profile()


def test_without_a_compiler_the_graph_is_interpreted(
    fresh_cache: Any, monkeypatch: pytest.MonkeyPatch, rng: Any
) -> None:
    """Without a compiler, one warning says what to install, and the graph is interpreted."""
    monkeypatch.setenv("PASSKIT_CXX", "/nonexistent")
    text = TEXT.replace("exp(", "tanh(").replace("mul(e, y)", "mul(e, 0.40625)")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        run = exe(text)
        feeds = pair(rng, 5)
        agrees(pk.parse(text), feeds, run(feeds))

    assert [str(w.message) for w in caught] == [
        (
            "passkit interprets, because no C++ compiler was found; install g++ or clang++ (or "
            "`pip install ziglang`), or set PASSKIT_CXX to a compiler"
        )
    ]
    assert caught[0].filename == __file__
    assert run.stats["target"] == "interpret"


NARROW = [("-mno-avx512f",), ("-mno-avx512f", "-mno-avx2", "-mno-avx", "-mno-fma")]
MANY = """x: f32[n, 37]; y: f64[n, 37]; k: i32[n, 37]; z: f32[n, 40]; c = less(x, 0.25)
e = exp(x); s = reduce_sum(e, axis=1, keepdims=true); a = div(e, s); b = where(c, tanh(x), erf(x))
d = reduce_max(y, axis=0); f = log(abs(y)); g = mul(k, k); h = reduce_sum(cast(c, dtype=dtype(i64)))
p = sub(z, reduce_max(z, axis=1, keepdims=true)); q = div(p, reduce_sum(p, axis=1, keepdims=true))
return a, b, d, f, g, h, q, cast(x, dtype=dtype(i32)), reduce_mean(y, axis=1), sigmoid(y)"""


@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="flags of x86-64")
@pytest.mark.skipif(shutil.which("g++") is None, reason="flags of g++")
@pytest.mark.parametrize("flags", NARROW, ids=["no-avx512", "no-avx2"])
def test_narrower_vectors_give_the_same_bits(
    flags: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, rng: Any
) -> None:
    """The same text on narrower vectors gives the same bits."""
    graph = pk.parse(MANY)
    feeds = {
        "x": rng.normal(size=(23, 37)).astype(np.float32),
        "y": rng.normal(size=(23, 37)),
        "k": rng.integers(-9, 9, (23, 37), np.int32),
        "z": rng.normal(size=(23, 40)).astype(np.float32),
    }
    wide = pk.compile(graph)(feeds)
    monkeypatch.setenv("PASSKIT_CXX", " ".join(["g++", *flags]))
    forget_loaded_kernels()
    run = pk.compile(graph)
    narrow = run(feeds)

    assert run.stats["compiled"] > 0
    assert [a.tobytes() for a in narrow] == [a.tobytes() for a in wide]


def test_threads_do_not_change_bits(rng: Any) -> None:
    """Tiles shared over threads, or in one: the same bits."""
    text, feeds = SOFTMAX.format("n, 3000", 1), {"x": rng.normal(size=(64, 3000)).astype("float32")}
    serial, shared = (exe(text, target=target(parallel=p, tile=3000)) for p in (1e9, 0.0))

    assert serial(feeds)[0].tobytes() == shared(feeds)[0].tobytes()


def test_an_unknown_option_offers_the_nearest() -> None:
    """An unknown option is an error with the nearest name."""
    with pytest.raises(pk.SettingError, match="no option 'fusoin'; did you mean 'fusion'"):
        exe(fusoin="nnvm")


def test_explain_plans_a_graph() -> None:
    """A graph without a plan is planned; a name selects edges."""
    result = pk.explain(pk.parse(TEXT), "mul")

    assert {(d.producer, d.consumer) for d in result} == {("e", "mul"), ("mul", "reduce_sum")}


def test_kernels_are_built_into_a_given_cache(tmp_path: Any) -> None:
    """A cache given to `build` receives the kernels."""
    kernels = exe("x: f32[9]; return sub(x, 0.71875)").kernels

    assert build_into(tmp_path, kernels, "-DOTHER") == {k.key for k in kernels}
    assert number_of_kernels(tmp_path) == 1


def test_an_input_that_a_pass_removed_is_not_fed() -> None:
    """Nobody feeds it, so what its sizes must equal is not asked."""
    x, y = pk.var("x", ("n",)), pk.var("y", ("m",))
    graph = pk.Graph([pk.ops.where(np.array(True), x, x + y)])
    run = pk.compile(pk.ApplyPasses(graph, ["Simplify"]))

    assert [i.name for i in run.inputs] == ["x"]
    np.testing.assert_array_equal(run(x=np.ones(3, "float32"))[0], np.ones(3))
