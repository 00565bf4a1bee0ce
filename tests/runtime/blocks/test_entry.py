"""Target "blocks": every composition, step and dtype through `pk.compile`, against `interpret`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from attrs import evolve

import passkit as pk
from passkit.errors import BlocksError, PasskitError
from tests.dialects.test_printer import GOLDENS, PARTS
from tests.planned import agrees, feeds_of, plan, target
from tests.row_programs import SOFTMAX
from tests.runtime.blocks.by_hand import Level, Place, entry_of
from tests.runtime.blocks.mutants import mutants

BLOCKS = target("blocks")
SMALL = evolve(BLOCKS, tile=64, short_tile=64)
"""Tiles so small that small arrays have several."""
ALONE = sorted(GOLDENS.keys() - {"packed", "phased"})


def compiled(text: str, target: pk.Target | str = SMALL, **options: Any) -> Any:
    """The executable of a graph in text."""
    return pk.compile(pk.parse(text), target=target, **options)


def stages(exe: Any) -> list[Any]:
    """All stages of all kernels."""
    return [s for k in exe.kernels for p in k.ast.phases for s in p.stages]


@pytest.mark.parametrize(
    "text, composition",
    [
        ("x: f32[1000]; return add(exp(x), x)", "THREAD"),
        ("x: f32[7, 30]; y: f32[7, 1]; return mul(x, y)", "THREAD"),
        ("x: f32[40, 50]; return transpose(neg(x))", "BLOCK"),
        ("x: f32[300, 3]; y: f32[3, 300]; return add(x, transpose(y))", "NARROW"),
        (SOFTMAX.format("9, 300", 1), "ROW"),
        (SOFTMAX.format("90, 30", 1), "SHORT"),
        (SOFTMAX.format("30, 90", 0), "COLUMN"),
        ("x: f32[4, 8, 9]; return cumsum(x, axis=1)", "COLUMN"),
        ("x: f32[9, 300]; return cumsum(x, axis=1, reverse=true)", "ROW"),
        ("x: f32[90, 30]; return cumsum(x, axis=1, exclusive=true)", "SHORT"),
    ],
)
@pytest.mark.parametrize("lanes", [16, 1])
def test_every_composition_agrees_with_the_interpreter(
    text: str, composition: str, lanes: int, rng: Any
) -> None:
    """Each composition maps points to threads in its own way, with many lanes and with one."""
    exe = compiled(text, evolve(SMALL, lanes=lanes))
    feeds = feeds_of(exe.source_graph, rng)

    if lanes > 1:
        (actual,) = exe.graph.attrs["schedule"].values()
        assert actual.composition.name == composition
    else:
        assert exe.kernels or "cumsum" in text
    agrees(exe.source_graph, feeds, exe(feeds))


@pytest.mark.parametrize("name", ALONE)
def test_golden_kernels_agree_with_their_graphs(name: str, rng: Any) -> None:
    """The golden kernels compute what their graphs do, for any number of rows."""
    exe = compiled(GOLDENS[name])
    for n in (1, 33):
        feeds = feeds_of(exe.source_graph, rng, n=n)
        feeds = {k: abs(v).astype(v.dtype) for k, v in feeds.items()}
        exact = exe.outputs[0].dtype.nbytes == 2
        agrees(exe.source_graph, feeds, exe(feeds), 0 if exact else 2e-6)


@pytest.mark.parametrize("lanes", [16, 1])
def test_a_packed_kernel_agrees_with_its_graph(lanes: int, rng: Any) -> None:
    """Each part has tiles of its own, counted from 0."""
    graph = pk.parse(GOLDENS["packed"])
    target = evolve(SMALL, lanes=lanes)
    exe = pk.compile(graph, target=target, keep_together=[PARTS])
    (kernel,) = exe.kernels

    assert len(kernel.ast.phases[0].parts) == 5
    for n, m in ((1, 1), (33, 7)):
        feeds = feeds_of(graph, rng, n=n, m=m)
        agrees(exe.source_graph, feeds, exe(feeds), 2e-6)


@pytest.mark.parametrize("lanes", [16, 1])
def test_a_kernel_of_phases_agrees_with_its_graph(lanes: int, rng: Any) -> None:
    """The second phase sees the stores of all tiles of the first, whatever their number."""
    graph = pk.parse(GOLDENS["phased"])
    exe = pk.compile(graph, target=evolve(SMALL, lanes=lanes), keep_together=[PARTS[:4]])
    (kernel,) = exe.kernels

    assert len(kernel.ast.phases) == len(kernel.phases) > 1
    for n in (1, 33, 0):
        feeds = feeds_of(graph, rng, n=n)
        agrees(exe.source_graph, feeds, exe(feeds), 2e-6)


@pytest.mark.parametrize("lanes", [16, 1])
@pytest.mark.parametrize("name", ALONE)
def test_every_mutation_is_detected(name: str, lanes: int, rng: Any) -> None:
    """A kernel that is off by one or incomplete raises, or has other results."""
    exe = compiled(GOLDENS[name], evolve(SMALL, lanes=lanes))
    (kernel,) = exe.kernels
    feeds = feeds_of(exe.source_graph, rng, n=13)
    feeds = {k: (1 + 9 * abs(v)).astype(v.dtype) for k, v in feeds.items()}
    if feeds["x"].ndim == 2:  # rows and columns are largest at an end, which a fold must not miss
        for ends in (feeds["x"], feeds["x"].T):
            ends[::2, 0] = ends[1::2, -1] = 50
    (expected,) = exe(feeds)
    unseen, named = [], 0
    for what, ast in mutants(kernel.ast):
        y = np.zeros_like(expected)
        entry = entry_of(evolve(kernel, ast=ast))
        try:
            entry({"n": 13}, list(feeds.values()), [y])
        except BlocksError:
            named += 1
        except PasskitError:  # a local that nothing defines
            continue
        else:
            if y.tobytes() == expected.tobytes():
                unseen.append(what)

    assert unseen == []
    assert named > 3


def test_every_kind_of_stage_agrees_with_the_interpreter(rng: Any) -> None:
    """Gathered streams, prefetches, registers, descending loops, chunked reductions."""
    texts = {
        "streams": "x: f32[90, 9]; return sub(x, reduce_max(x, axis=1, keepdims=true))",
        "registers": SOFTMAX.format("5, 7, 30", 2)
        .replace("x:", "y:")
        .replace("; e", "; b: f32[7, 1]; x = add(y, b); e"),
        "chunks": "x: f32[300000]; return reduce_sum(x), reduce_max(x)",
        "down": "x: f32[9, 300]; return cumsum(x, axis=1, reverse=true)",
    }
    built = {k: compiled(t, evolve(BLOCKS, stream_bytes=0)) for k, t in texts.items()}
    for exe in built.values():
        feeds = feeds_of(exe.source_graph, rng)
        agrees(exe.source_graph, feeds, exe(feeds), 1e-5)

    assert any(s.name.startswith("stream") for s in stages(built["streams"]))
    scratch = [b for k in built["registers"].kernels for b in k.ast.scratch]
    assert Place.LANES in [b.place for b in scratch]
    assert len(built["chunks"].kernels) > 1
    assert any(x.down for s in stages(built["down"]) for x in s.loops)
    assert any(x.level is Level.WARP for s in stages(built["streams"]) for x in s.loops)


def test_other_steps_run_as_on_the_cpu(rng: Any) -> None:
    """Libraries, Python, hand-written kernels, loops, state, copies and in-place results."""
    text = (
        "x: f32[8, 6]; w: f32[6, 5]; p: i64[3]; u: f32[3, 5]; a = exp(matmul(x, w));"
        "return scatter_add(a, p, u), sort(a, axis=0), x"
    )
    exe = compiled(text)
    feeds = {**feeds_of(exe.source_graph, rng), "p": np.array([0, 7, 0])}
    own = [k for k in exe.kernels if not k.ast.phases]

    agrees(exe.source_graph, feeds, exe(feeds), 1e-5)
    assert [k.ops for k in own] == [("scatter_rows",)]
    kinds = {str(s).split()[0] for s in exe.steps}
    assert {"launch", "python"} <= kinds
    assert exe.stats["target"] == "blocks" and exe.stats["library_calls"] == 1

    s = pk.state("s", np.ones(100, np.float32))
    x = pk.var("x", (100,))
    step = pk.compile(pk.Graph([pk.ops.assign(s, s * 2 + x)]), target="blocks")
    step(x=np.ones(100, np.float32))
    assert step(x=np.ones(100, np.float32))[0].tolist() == [7] * 100 == step.state["s"].tolist()


@pytest.mark.parametrize("dtype", ["f16", "bf16", "f32", "f64", "i8", "u16", "i64", "bool"])
def test_every_dtype_has_the_interpreters_bits(dtype: str, rng: Any) -> None:
    """Each dtype rounds, wraps and saturates as in the interpreter."""
    texts = {
        "bool": "return logical_and(x, y), reduce_any(x, axis=1), cast(x, dtype=dtype(f16))",
        "i": "return mul(add(x, y), x), reduce_sum(x, axis=1), floor_div(x, y), cast(x, dtype="
        "dtype(bf16))",
        "f": "return div(mul(x, y), sub(x, y)), nextafter(x, y), reduce_max(x, axis=0), cast(x, "
        "dtype=dtype(i8))",
    }
    body = texts[dtype if dtype == "bool" else "i" if dtype[0] in "iu" else "f"]
    exe = compiled(f"x: {dtype}[20, 9]; y: {dtype}[20, 9]; {body}")
    kind = exe.inputs[0].dtype.numpy
    feeds = {k: (rng.normal(size=(20, 9)) * 100).astype(np.int64).astype(kind) for k in "xy"}
    for actual, expected in zip(exe(feeds), pk.interpret(exe.source_graph, feeds), strict=True):
        assert actual.tobytes() == expected.tobytes()


def test_a_saved_executable_keeps_its_target(tmp_path: Path) -> None:
    """A saved executable keeps the target "blocks"."""
    exe = compiled("x: f32[n, 9]; return softmax(x)", "blocks")
    exe.save(tmp_path / "saved")
    x = np.ones((5, 9), np.float32)
    again = pk.load(tmp_path / "saved")

    assert again.stats["target"] == "blocks"
    assert again(x=x)[0].tobytes() == exe(x=x)[0].tobytes()


def test_rtcgen_gives_kernels_a_callable(rng: Any) -> None:
    """RTCGen gives each kernel a function; the target selects it."""
    graph = pk.ApplyPasses(
        pk.parse("x: f32[n]; return exp(x)"),
        ["InferShape", "Fusion", "CodeGen", "RTCGen"],
        target="blocks",
    )
    (rtc,) = graph.attrs["rtc"].values()
    x, y = np.ones(5, np.float32), np.zeros(5, np.float32)
    rtc.entry({"n": 5}, [x], [y])

    assert y.tolist() == pk.interpret(graph, {"x": x})[0].tolist()
    assert pk.compile(graph)(x=x)[0].tolist() == y.tolist()


def test_kernels_have_times_in_a_profile(rng: Any) -> None:
    """Kernels are steps with a time."""
    exe = compiled("x: f32[90]; return exp(x)")
    profile = exe.profile({"x": np.ones(90, np.float32)}, runs=2, copies=False)

    assert profile.rows[0].step.startswith("launch exp_") and profile.seconds > 0


def test_a_wrong_kernel_raises() -> None:
    """A call of a wrong kernel names kernel, stage, buffer and index."""
    graph = plan("x: f32[90]; return exp(x)", target="blocks")
    (node,), (kernel,) = graph.attrs["kernel"], graph.attrs["kernel"].values()
    (phase,) = kernel.ast.phases
    (part,) = phase.parts
    (stage,) = part.stages
    longer = evolve(stage.loops[0], stop=stage.loops[0].stop + 1)
    parts = (evolve(part, stages=(evolve(stage, loops=(longer,)),)),)
    ast = evolve(kernel.ast, phases=(evolve(phase, parts=parts),))
    wrong = graph.with_attrs(kernel=pk.Annotation("kernel", {node: evolve(kernel, ast=ast)}))

    with pytest.raises(
        BlocksError,
        match=rf"kernel {kernel.name}, stage stage0 of tile 0 loads x0"
        r"\[90\], and the buffer has 90 elements; target='interpret' avoids",
    ):
        pk.compile(wrong, target="blocks")(x=np.ones(90, np.float32))


def test_an_empty_reduction_loads_nothing() -> None:
    """A load hoisted out of a loop without iterations must not access an empty array."""
    exe = compiled("x: bool[4, 0]; return reduce_all(x, axis=1)")
    assert exe(x=np.ones((4, 0), bool))[0].tolist() == [True] * 4


def test_a_kernel_without_tiles_does_not_run() -> None:
    """Its sizes are not evaluated, which might divide by zero; its results must be empty."""
    graph = plan("x: f32[n]; return exp(x)", target="blocks")
    (kernel,) = graph.attrs["kernel"].values()
    n = pk.Size.symbol("n")
    odd = evolve(kernel, sizes=((n * n - 2 * n + 1) // (n - 1),), grid=n - 1)
    none, some = np.zeros(0, np.float32), np.zeros(3, np.float32)

    entry_of(odd)({"n": 1}, [none], [none])
    with pytest.raises(
        BlocksError,
        match=rf"kernel {kernel.name} has no tile, and does not store the 3 "
        "elements of its output y0",
    ):
        entry_of(odd)({"n": 1}, [some], [some])
