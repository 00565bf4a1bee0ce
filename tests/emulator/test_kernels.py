"""CUDA kernels compute what their graphs mean, and every barrier and bound is necessary."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import product
from typing import Any

import numpy as np
import pytest
from attrs import evolve, frozen

import passkit as pk
from tests.dialects.test_printer import GOLDENS, PARTS
from tests.emulator.device import EmulatedDevice, EmulatedError, LaunchOptions, ThreadOrder
from tests.emulator.graph_checks import case_of, compiled, failure_of
from tests.emulator.mutants import mutants
from tests.fusion.test_pack import adam
from tests.planned import plan, target
from tests.planner.test_multi_nest import PROGRAMS, together
from tests.random_phases import UNKNOWN, random_phases
from tests.random_stitches import random_stitch
from tests.test_random_phases import SMALL

EXTENTS = (1, 17, 131)


def keep_golden_together(text: str) -> dict[str, Any]:
    """Return the options that make a golden one kernel."""
    return {"keep_together": [[name for name in PARTS if f"{name} = " in text]]}


def failures_of(
    jobs: list[tuple[str, pk.Graph, dict[str, Any], tuple[dict[str, int], ...]]],
) -> Any:
    """Return how graphs fail under their options, at each of their sizes."""
    executables = compiled([g for _, g, _, _ in jobs], [o for _, _, o, _ in jobs], EmulatedDevice())
    results = {
        name: failure_of(exe, case_of(graph, *sizes))
        for (name, graph, _, sizes), exe in zip(jobs, executables, strict=True)
    }
    return {name: what for name, what in results.items() if what is not None}


def test_goldens_agree_with_interpret() -> None:
    """At one element, at prime sizes, and at more than a tile."""
    sizes = tuple({"n": n, "m": n} for n in (1, 37, 311))

    assert not failures_of(
        [(k, pk.parse(t), keep_golden_together(t), sizes) for k, t in GOLDENS.items()]
    )


def test_stitched_programs_agree_with_interpret() -> None:
    """Softmax, norms, attention, figure 1, an LSTM cell and others, each as one kernel."""
    jobs = []
    for program in PROGRAMS:
        for n in EXTENTS:
            graph, names = together(program(n))
            jobs.append((f"{program.__name__} {n}", graph, {"keep_together": names}, ({},)))

    assert not failures_of(jobs)


def test_random_groups_agree_with_interpret() -> None:
    """Stitched groups, and groups whose small scratch makes several phases."""
    jobs, small = [], target("cuda", **SMALL)
    for seed in range(7):
        graph, names = random_stitch(seed)
        jobs.append((f"stitch {seed}", graph, {"keep_together": names}, ({},)))
        graph, names = random_phases(seed)
        options = {"keep_together": names, "target": small}
        jobs.append((f"phases {seed}", graph, options, ({UNKNOWN: 131}, {UNKNOWN: 1})))

    assert not failures_of(jobs)


@pytest.mark.parametrize("dtype", ["f16", "bf16"])
def test_indices_are_computed_from_floats_of_16_bits(dtype: str) -> None:
    """Indices of loads and stores are computed in float32, as all other values are."""
    texts = {
        "search": f"x: {dtype}[4, 3]; b: {dtype}[5]; i: i64[4, 3];return concat(digitize(x, b), i)",
        "gather": f"x: {dtype}[4, 3]; y: f32[9]; w: f32[4, 3];"
        'z = take(y, cast(floor(x), dtype="int64"), axis=0); return concat(mul(z, 2), w)',
        "narrow": f"x: {dtype}[40]; y: {dtype}[9];"
        'return exp(take(y, cast(floor(mul(x, x)), dtype="int32"), axis=0))',
    }

    assert not failures_of([(name, pk.parse(t), {}, ({},)) for name, t in texts.items()])


GATHERED_COLUMNS = (
    "x: f64[3, 80]; i: i64[5]; j: i64[5]; w: f64[5, 1]; y: f64[5, 20];"
    "g = slice(x, begin=(0, 0), size=(3, 20)); a = gather(g, i, axis=0); b = gather(g, j, axis=0);"
    "r = add(a, mul(sub(b, a), w)); return reduce_mean(r, axis=0), r, mul(r, y)"
)
"""Columns of rows that an index names: a vector access of a row lies where the index says."""


def test_accesses_of_gathered_rows_follow_their_indices() -> None:
    """Variables in the index of a vector access are defined in front of it."""
    assert not failures_of([("columns", pk.parse(GATHERED_COLUMNS), {}, ({},))])


SEVERAL_PASSES = (
    "x: f32[{n}, {m}]; return softmax(x, axis=0)",
    "x: f64[{n}, {m}]; return softmax(x, axis=0)",
    "x: f16[{n}, {m}]; return softmax(x, axis=0)",
    "x: f32[{n}, 3, {m}]; return softmax(x, axis=0)",
    "x: f32[2, {n}, {m}]; return log_softmax(x, axis=1)",
    "x: f32[2, 3, 3, {n}, 2, {m}]; return softmax(x, axis=3)",
    (
        "x: f32[{n}, {m}]; w: f32[{m}]; b: f32[{m}]; c = sub(x, reduce_mean(x, axis=0));"
        "v = reduce_mean(mul(c, c), axis=0); s = mul(rsqrt(add(v, 0.001)), exp(w));"
        "return add(mul(c, s), b), v, s"
    ),
    "x: f32[{n}, {m}]; w: f32[{m}]; e = exp(w); s = reduce_sum(mul(x, e), axis=0); return s, e",
    "x: f32[{n}, {m}]; return reduce_sum(exp(x), axis=0), tanh(x)",
    "x: f32[5, {n}, {m}]; return reduce_max(x, axis=0), tanh(x)",
)
"""Reductions along another axis than the last one, with points that are read again or stored."""


def test_columns_are_read_in_several_passes() -> None:
    """The rows of a block's columns are read once per stage, by the same threads each time."""
    jobs = []
    for n, m in ((1, 1), (5, 3), (70, 1), (130, 20), (257, 64), (700, 7)):
        for k, text in enumerate(SEVERAL_PASSES):
            jobs.append((f"{n} {m} {k}", pk.parse(text.format(n=n, m=m)), {}, ({},)))

    assert not failures_of(jobs)


def test_columns_of_narrow_elements_have_a_schedule() -> None:
    """Rows of an odd number of 16-bit floats have no vectors: a block has fewer rows at a time."""
    graph = pk.parse("x: f16[300, 33]; return softmax(x, axis=0)")

    assert not failures_of([("odd", graph, {}, ({},))])
    (group,) = pk.templates(graph, target="cuda")
    assert group.nest.rule == "columns_in_passes"


def test_chosen_elements_of_64_bits_are_loaded_in_vectors_that_fit() -> None:
    """A row of a concatenation has no input of its own points, whose width vectors would have."""
    side_by_side = "a: i64[8]; b: i64[8]; c = concat(a, b, a, axis=0)"
    jobs = [
        ("reduced", pk.parse(f"{side_by_side}; return reduce_max(c, axis=0)"), {}, ({},)),
        ("compared", pk.parse(f"{side_by_side}; return less(c, 3)"), {}, ({},)),
        ("narrowed", pk.parse(f'{side_by_side}; return cast(c, dtype="int16")'), {}, ({},)),
    ]

    assert not failures_of(jobs)


def test_many_sums_of_columns_fit_in_shared_memory() -> None:
    """Fewer threads share a column where the sums of all of them would exceed shared memory."""
    sums = "; ".join(f"s{k} = reduce_sum(mul(x, {k + 1}.0), axis=0)" for k in range(20))
    names = ", ".join(f"s{k}" for k in range(20))
    graph = pk.parse(f"x: f32[300, 512]; {sums}; return {names}")

    assert not failures_of([("sums", graph, {}, ({},))])
    (group,) = pk.templates(graph, target="cuda")
    assert group.nest.rule == "columns"


REGROUPED = (
    (
        "x: {d}[34, 40]; w: {d}[40]; m = sub(x, reduce_max(x, axis=1, keepdims=true));"
        "r = reshape(mul(m, w), (136, 10)); return sub(r, reduce_sum(r, axis=1, keepdims=true))"
    ),
    (
        "x: {d}[5, 6, 8]; m = sub(x, reduce_max(x, axis=2, keepdims=true));"
        "r = reshape(m, (15, 16)); return reduce_min(r, axis=1), abs(m)"
    ),
    (
        "x: {d}[7, 96]; m = sub(x, reduce_min(x, axis=1, keepdims=true));"
        "r = reshape(equal(m, 0), (21, 32)); return reduce_any(r, axis=1)"
    ),
    "x: {d}[3, 17, 5]; m = reduce_max(x, axis=(0, 2)); return sub(m, reduce_min(m, axis=0)), m",
    "x: {d}[7, 3, 4, 9]; m = reduce_max(x, axis=(1, 3)); return reduce_min(m, axis=1)",
    (
        "x: {d}[2, 6, 5]; y: {d}[4, 6, 5];"
        "return sub(reduce_max(x, axis=(0, 2)), reduce_max(y, axis=(0, 2)))"
    ),
)
"""Rows that are reduced, and then reduced again as rows of another length."""


ALONG_COLUMNS = (
    (
        "x: {d}[131, 3]; d = sub(expand_dims(x, axis=1), expand_dims(x, axis=0));"
        "r = add(reduce_sum(mul(d, d), axis=2, keepdims=true), 0.5);"
        "return reduce_sum(mul(d, mul(rsqrt(r), r)), axis=1)"
    ),
    "x: {d}[4, 9, 6]; return reduce_sum(sub(x, reduce_max(x, axis=2, keepdims=true)), axis=1)",
    "x: {d}[40, 24]; return transpose(softmax(x), axes=(1, 0))",
    "x: {d}[5, 8, 6]; s = softmax(x); return softmax(s, axis=1)",
)
"""Rows that are reduced, and then read along their columns."""


@pytest.mark.parametrize(
    "texts, dtypes",
    [
        (REGROUPED, ("f32", "f64", "f16", "bf16", "i32", "i64", "u8")),
        (ALONG_COLUMNS[:3], ("f32", "f64", "f16", "bf16")),
        (ALONG_COLUMNS[3:], ("f32", "f64", "f16", "bf16")),
    ],
    ids=["rows", "columns", "both"],
)
def test_parts_meet_in_shared_memory(texts: tuple[str, ...], dtypes: tuple[str, ...]) -> None:
    """A value of any dtype lies in shared memory, where parts read elements of any row."""
    jobs = []
    for dtype in dtypes:
        for k, text in enumerate(texts):
            graph = pk.parse(text.format(d=dtype))
            names = [[graph.names[n] for n in graph.nodes if n.op is not None]]
            jobs.append((f"{dtype} {k}", graph, {"keep_together": names}, ({},)))

    assert not failures_of(jobs)
    for _, graph, options, _ in jobs:
        planned = plan(graph, target="cuda", **options)
        (schedule,) = planned.attrs["schedule"].values()
        assert schedule.block is not None, schedule.no_nest


OF_OTHER_ROWS = (
    (
        "x: i64[131, 2, 20]; n = neg(abs(x));"
        "t = transpose(reshape(n, (131, 8, 5)), axes=(0, 2, 1));"
        "return t, concat(n, neg(n), axis=1)"
    ),
    (
        "x: f32[131, 3, 20]; n = tanh(x); t = transpose(reshape(n, (131, 12, 5)), axes=(0, 2, 1));"
        "return t, pad(n, pad_width=((0, 0), (1, 2), (0, 0)))"
    ),
    (
        "x: i32[2, 16, 6]; r = reshape(x, (2, 2, 48));"
        "s = sub(r, reduce_sum(r, axis=1, keepdims=true)); n = neg(r);"
        "return s, sub(n, reduce_max(n, axis=2, keepdims=true))"
    ),
    (
        "x: f32[2, 32, 6]; r = reshape(softmax(x), (2, 3, 64));"
        "m = reduce_min(r, axis=1, keepdims=true);"
        'return sub(r, m), cast(neg(cast(mul(r, 300), dtype="bfloat16")), dtype="int32")'
    ),
)
"""Rows under conditions, loops of several parts over axes of one name, and casts to 16 bits."""


def test_parts_read_other_rows() -> None:
    """A value in shared memory is read where the condition of a select holds, in each tile."""
    jobs = []
    for k, text in enumerate(OF_OTHER_ROWS):
        graph = pk.parse(text)
        names = [[graph.names[n] for n in graph.nodes if n.op is not None]]
        jobs.append((str(k), graph, {"keep_together": names}, ({},)))

    assert not failures_of(jobs)
    for _, graph, options, _ in jobs:
        (schedule,) = plan(graph, target="cuda", **options).attrs["schedule"].values()
        assert schedule.block is not None


def products_of_ones() -> Iterator[str]:
    """Yield texts of products of matrices some of whose extents are 1, with operands on chip."""
    for m, n, k in product((1, 5), (1, 6), (1, 7)):
        for ta, tb in product((False, True), repeat=2):
            a, b = (f"3, {k}, {m}" if ta else f"3, {m}, {k}"), (f"{n}, {k}" if tb else f"{k}, {n}")
            flags = f"transpose_a={str(ta).lower()}, transpose_b={str(tb).lower()}"
            yield (
                f"a: f32[{a}, 9]; b: f32[3, {b}, 9]; c = reduce_max(a, axis=3); d = softmax(b);"
                f"p = matmul(c, reduce_sum(mul(d, b), axis=3), {flags}); return tanh(p), tanh(c)"
            )
            yield (
                f"a: f32[{a}]; b: f32[3, {b}]; c = softmax(a); p = matmul(c, b, {flags});"
                "q = softmax(p); return matmul(q, tanh(p), transpose_b=true), c"
            )


def test_products_of_rows_and_columns_of_one_element() -> None:
    """An operand of one row, column or step lies as the part that writes it has its rows."""
    jobs = []
    for text in products_of_ones():
        graph = pk.parse(text)
        names = [[graph.names[n] for n in graph.nodes if n.op is not None]]
        jobs.append((text, graph, {"keep_together": names}, ({},)))

    assert not failures_of(jobs)


CHUNKS = (
    "x: f32[4096, 9]; return softmax(x, axis=0)",
    "x: f32[2, 4096, 3]; return softmax(x, axis=1)",
    "x: f32[262144]; return softmax(x)",
    "x: f64[3, 66001]; return reduce_sum(exp(x), axis=1)",
    "x: f16[2, 66008]; return reduce_max(x, axis=1)",
)
"""Reductions that are split, of several rows, with points that are stored beside."""


def test_chunks_of_several_rows() -> None:
    """A block has a chunk of a row, or of columns, and stores what it computes of its points."""
    graphs = {text: pk.parse(text) for text in CHUNKS}

    assert not failures_of([(text, graph, {}, ({},)) for text, graph in graphs.items()])
    for graph in graphs.values():
        groups = pk.templates(graph, target="cuda")
        chunks = [group for group in groups if "partial_reduce" in group.operators]
        assert chunks and all(group.nest.rule for group in chunks), list(map(str, groups))


SEVERAL_AXES = {
    "x: f32[5, 300, 6]; b: f32[5, 1, 6]; return reduce_sum(mul(x, b), axis=(0, 1))": 12,
    "x: f32[4, 2000, 9]; return sub(x, reduce_mean(x, axis=(0, 1), keepdims=true))": 63,
    "x: f32[3, 70000]; b: f32[70000]; return reduce_max(add(x, b))": 26,
    "x: f32[2, 3, 50000]; return reduce_sum(tanh(x))": 37,
    "x: f32[3, 2, 40000, 2]; return reduce_sum(x, axis=(0, 2, 3))": 30,
}
"""Reductions of several axes, with their numbers of chunks."""
UNKNOWN_AXES = "x: f32[n, 200, 5]; return reduce_min(x, axis=(0, 1))"


def test_chunks_of_several_axes() -> None:
    """Chunks are as long as those of one axis, and those of adjacent axes are one behind another.

    Few long coordinates of the outermost axis would leave most multiprocessors without work.
    """
    graphs = {text: pk.parse(text) for text in (*SEVERAL_AXES, UNKNOWN_AXES)}
    sizes = {UNKNOWN_AXES: ({"n": 3}, {"n": 1}, {"n": 7})}

    assert not failures_of([(t, graph, {}, sizes.get(t, ({},))) for t, graph in graphs.items()])
    for text, number in SEVERAL_AXES.items():
        parts = [
            node.entries[0].shape
            for group in plan(graphs[text], target="cuda").attrs["subgraph"].values()
            for node in group.ops
            if node.op is not None and node.op.name == "partial_reduce"
        ]
        assert [shape and shape[0] for shape in parts] == [number]


@pytest.mark.parametrize("text", ["softmax(x)", "sub(x, reduce_mean(x, axis=1, keepdims=true))"])
def test_long_rows_are_read_in_several_passes(text: str) -> None:
    """A row that does not fit in the registers of a block is read once per stage."""
    graphs = {n: pk.parse(f"x: f32[2, {n}]; return {text}") for n in (33_000, 40_001)}

    assert not failures_of([(str(n), graph, {}, ({},)) for n, graph in graphs.items()])
    for graph in graphs.values():
        (group,) = pk.templates(graph, target="cuda")
        assert group.nest.rule == "rows"


def test_long_rows_of_two_inputs_are_read_in_several_passes() -> None:
    """The registers of a block hold a row of one input and not of two: cross entropy."""
    inputs = "x: f32[2, 32000]; y: f32[2, 32000]"
    graph = pk.parse(f"{inputs}; return reduce_sum(mul(log_softmax(x), y), axis=1)")
    (group,) = pk.templates(graph, target="cuda")
    (kernel,) = plan(graph, target="cuda").attrs["kernel"].values()

    assert group.nest.rule == "rows" and kernel.grid == 2
    assert kernel.source.count("load_stream<4>(") > 2, "each pass reads vectors"
    assert not failures_of([("cross entropy", graph, {}, ({},))])


def test_packed_updates_in_place() -> None:
    """Adam is one packed kernel whose outputs take the memory of its inputs."""
    _, graph = adam([10, 300, 700, 41])
    ((exe, case),) = [(e, case_of(graph)) for e in compiled([graph], [{}], EmulatedDevice())]

    assert failure_of(exe, case) is None
    assert isinstance(exe, pk.Executable)
    (kernel,) = exe.kernels
    assert len(exe.graph.attrs["storage"].inplace) == 12
    assert "__restrict__" not in kernel.source


# Planted faults.


@frozen
class KernelCase:
    """A kernel, its inputs, and its expected outputs."""

    kernel: pk.Kernel
    inputs: tuple[Any, ...]
    expected: tuple[Any, ...]
    sizes: dict[str, int]


def golden_cases() -> Iterator[tuple[str, KernelCase]]:
    """Yield the goldens of graphs."""
    for name, text in GOLDENS.items():
        planned_graph = plan(text, target="cuda", **keep_golden_together(text))
        ((node, kernel),) = planned_graph.attrs["kernel"].items()
        sizes = {"n": 37, "m": 45}
        (feeds,) = case_of(planned_graph, sizes).feeds
        expected = pk.interpret(pk.Graph(list(node.entries)), feeds)
        inputs = tuple(feeds[planned_graph.names[e.node]] for e in node.inputs)
        yield name, KernelCase(kernel, inputs, tuple(expected), sizes)


STITCHED = {
    "attention": (
        "q: f32[2, 24, 40]; k: f32[2, 24, 40]; v: f32[2, 24, 36];"
        "s = mul(matmul(q, k, transpose_b=true), 0.125); return matmul(softmax(s), v)"
    ),
    "gated": (
        "x: f32[16, 64]; w: f32[64, 32]; u: f32[64, 32];"
        "return reduce_sum(mul(sigmoid(matmul(x, w)), matmul(x, u)), axis=1)"
    ),
    "columns": (
        "x: f32[2, 80, 12]; m = reduce_mean(x, axis=1, keepdims=true);"
        "return softmax(sub(x, m), axis=2)"
    ),
    "copied": "a: f32[2, 200]; b: f32[200, 300]; return softmax(matmul(a, b))",
    "doubles": (
        "x: f64[17, 61]; w: f64[31, 61]; u: f64[31, 18];"
        "return softmax(matmul(tanh(matmul(x, w, transpose_b=true)), u))"
    ),
    "total": "x: f32[300, 512]; t = tanh(x); return div(t, add(reduce_sum(abs(t)), 1.0))",
}
"""Graphs that are one kernel of several nests in a block, or in two phases."""


def stitched_cases() -> Iterator[tuple[str, KernelCase]]:
    """Yield the kernels of stitched graphs with their inputs and expected outputs."""
    for name, text in STITCHED.items():
        graph = pk.parse(text)
        names = [graph.names[n] for n in graph.nodes if n.op is not None]
        planned_graph = plan(graph, target="cuda", keep_together=[names])
        ((node, kernel),) = planned_graph.attrs["kernel"].items()
        (feeds,) = case_of(planned_graph, {}).feeds
        expected = pk.interpret(pk.Graph(list(node.entries)), feeds)
        inputs = tuple(feeds[planned_graph.names[e.node]] for e in node.inputs)
        yield name, KernelCase(kernel, inputs, tuple(expected), {})


@cache
def compiled_cases() -> tuple[EmulatedDevice, dict[str, tuple[KernelCase, dict[str, pk.Kernel]]]]:
    """Return an emulated device with all cases and their mutants, compiled together."""
    results: dict[str, tuple[KernelCase, dict[str, pk.Kernel]]] = {}
    for name, subject in (*golden_cases(), *stitched_cases()):
        k = subject.kernel
        mutants_by_fault = {
            what: evolve(
                k,
                name=f"{k.name}_{n}",
                key=f"{k.key}_{n}",
                source=text.replace(k.name, f"{k.name}_{n}"),
            )
            for n, (what, text) in enumerate(mutants(k.source))
        }
        results[name] = subject, mutants_by_fault
    driver = EmulatedDevice()
    driver.prepare(
        k
        for s, mutants_by_fault in results.values()
        for k in (s.kernel, *mutants_by_fault.values())
    )
    return driver, results


LAUNCHES = [
    LaunchOptions(1, 96, ThreadOrder.FORWARDS),
    LaunchOptions(2, 96, ThreadOrder.BACKWARDS),
    LaunchOptions(1, 96, 5),
]


def fault_of(kernel: pk.Kernel, subject: KernelCase, libraries: Any) -> str | None:
    """Return the fault of a kernel under some launch options, or None."""
    for options in LAUNCHES:
        outs = [np.full_like(w, 77) for w in subject.expected]
        driver = EmulatedDevice(options, libraries=libraries)
        try:
            driver.launch(kernel, subject.sizes, subject.inputs, outs)
        except EmulatedError as error:
            return str(error)
        for results, expected in zip(outs, subject.expected, strict=True):
            a, b = (np.asarray(v, np.float64) for v in (results, expected))
            near = 2e-2 if expected.dtype.itemsize == 2 else 1e-5
            if not np.allclose(a, b, rtol=0, atol=near * np.abs(b).max()):
                return "results differ"
    return None


NO_MEETING = ("gelu", "scale_bf16")
"""Kernels whose threads neither wait for each other nor exchange values."""


@pytest.mark.parametrize("name", [*GOLDENS, *STITCHED])
def test_planted_faults_are_detected(name: str) -> None:
    """Each barrier removed, and each shuffle without a lane, is detected."""
    driver, results = compiled_cases()
    subject, executables = results[name]
    faults = {what: fault_of(k, subject, driver.libraries) for what, k in executables.items()}
    missed = [what for what, message in faults.items() if message is None]
    print(name, faults)

    assert fault_of(subject.kernel, subject, driver.libraries) is None
    assert missed == [] and bool(faults) == (name not in NO_MEETING)
