"""Packing: independent kernels become one kernel, whose results are equal bit for bit."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from attrs import evolve

import passkit as pk
from tests.planned import feeds_of, plan, target
from tests.teams import team_of
from tests.together import compiled

SIZES = [round(10 * 10 ** (4 * k / 29)) for k in range(30)]
APART = target(max_arguments=0)
"""The CPU of a target on which nothing is packed."""


def adam(sizes: list[int]) -> tuple[pk.Graph, pk.Graph]:
    """Return a step of Adam for tensors of these sizes, with inputs and with state in place."""
    rng, outputs, updates = np.random.default_rng(0), [], []
    for k, n in enumerate(sizes):
        start = [np.abs(rng.standard_normal(n, dtype=np.float32)) for _ in "pmv"]
        for kept in (True, False):
            old = [
                pk.state(f"{c}{k}", x) if kept else pk.var(f"{c}{k}", (n,), "float32")
                for c, x in zip("pmv", start, strict=True)
            ]
            p, m, v = old
            g = pk.var(f"g{k}", (n,), "float32")
            m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
            new = p - 0.001 * m / (pk.ops.sqrt(v) + 1e-8), m, v
            if kept:
                updates += [(o.node, e) for o, e in zip(old, new, strict=True)]
            else:
                outputs += new
    return pk.Graph(outputs), pk.Graph([], updates)


def packs(graph: Any, **options: Any) -> list[str]:
    """Return the operators of each packed kernel, as text."""
    groups = plan(graph, "Fusion", **options).attrs["subgraph"].values()
    return [" ".join(n.label for n in g.ops) for g in groups if g.kind.name == "PACKED"]


def log_of(text: str, **options: Any) -> list[str]:
    """Return the decisions of Fusion, as text."""
    return list(map(str, plan(text, "Fusion", **options).attrs["fusion_log"]))


def same(one: Any, another: Any) -> bool:
    """Return whether arrays are equal bit for bit."""
    return all(
        a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
        for a, b in zip(one, another, strict=True)
    )


def test_updates_of_many_tensors_are_one_kernel() -> None:
    """Thirty updates of Adam are one kernel with one body, for any number of threads, in place."""
    graph, in_place = adam(SIZES)
    exe, steps, apart = *compiled([graph, in_place]), pk.compile(graph, target=APART)
    (kernel,) = exe.kernels
    feeds = feeds_of(graph, np.random.default_rng(1))
    feeds = {k: np.abs(v) for k, v in feeds.items()}
    expected = apart(feeds)

    assert len(apart.kernels) == 30 and len(steps.kernels) == 1 and kernel.shared_nbytes == 0
    assert kernel.source.count("static void") == 1 and kernel.source.count("_part0(") == 31
    assert "packed" in pk.viz.plan(exe.graph).source and len(exe.profile(feeds).rows) == 1
    assert "packed into one kernel" in str(pk.explain(exe.graph))
    for count in (1, 2, 4):
        with team_of(count):
            assert same(exe(feeds), expected)
            for name in steps.state.arrays:
                steps.state[name] = feeds[name]
            steps({k: v for k, v in feeds.items() if k.startswith("g")})
            updated = [steps.state[f"{c}{k}"] for k in range(30) for c in "pmv"]
            assert same(updated, expected)
    storage = steps.graph.attrs["storage"]
    assert len(storage.inplace) == 90 and not storage.copies and not storage.slots


FAMILIES = (
    "exp({x})",
    "mul(add({x}, 1), {x})",
    "reduce_sum({x}, axis=1)",
    "reduce_max({x}, axis=0)",
    "div({x}, reduce_sum(abs({x}), axis=1, keepdims=true))",
    "transpose(neg({x}))",
    "cumsum({x}, axis=1)",
    "sub({x}, reduce_mean({x}, axis=0, keepdims=true))",
)
ROWS, COLUMNS, DTYPES = (3, 17, 200), (5, 40, 300), ("f32", "f32", "f64", "f16")


def random_packs(count: int) -> tuple[str, list[list[str]]]:
    """Return a graph of groups to be packed, and the names of the operators of each."""
    rng, inputs, lines, names = random.Random(3), [], [], list[list[str]]()
    for k in range(count):
        names.append([])
        for j in range(rng.randint(2, 4)):
            rows, columns = rng.choice(ROWS), rng.choice(COLUMNS)
            inputs.append(f"x{k}_{j}: {rng.choice(DTYPES)}[{rows}, {columns}]")
            lines.append(f"y{k}_{j} = {rng.choice(FAMILIES).format(x=f'x{k}_{j}')}")
            names[-1].append(f"y{k}_{j}")
    return "; ".join([*inputs, *lines, "return " + ", ".join(n for ns in names for n in ns)]), names


@pytest.mark.usefixtures("quick_kernels")
def test_random_packs_keep_their_bits() -> None:
    """Packs of rows, columns, scans and elements in several dtypes equal the kernels apart."""
    text, names = random_packs(12)
    small = target(tile=512, parallel=0.0, launch=-1.0)
    graph = pk.parse(text)
    exe = pk.compile(graph, target=small, keep_together=names)
    kinds = [g.kind.name for g in exe.graph.attrs["subgraph"].values()]
    feeds = feeds_of(graph, np.random.default_rng(2))
    expected = pk.compile(graph, target=evolve(small, max_arguments=0))(feeds)

    assert kinds.count("PACKED") > 9 and len(exe.kernels) < 1.5 * len(names)
    for count in (1, 2, 4):
        with team_of(count):
            assert same(exe(feeds), expected)


def test_parts_of_unknown_sizes_have_tiles_by_call() -> None:
    """The sizes of a call determine the number of tiles of each part."""
    text = (
        "x: f32[n]; y: f64[m, 33]; z: f32[m, k]; a = exp(x); b = reduce_sum(y, axis=1); "
        "c = reduce_max(z, axis=0, keepdims=true); d = sub(z, c); return a, b, d"
    )
    graph = pk.parse(text)
    exe = pk.compile(graph, keep_together=[["a", "b", "d"]])
    apart = pk.compile(graph, target=APART)

    assert len(exe.kernels) < len(apart.kernels)
    for n, m, k in ((5, 3, 70), (30000, 1, 1), (1, 99, 3), (0, 700, 20), (9000, 50, 0)):
        feeds = feeds_of(graph, np.random.default_rng(0), n=n, m=m, k=k)
        assert same(exe(feeds), apart(feeds))


@pytest.mark.parametrize("names", [["a", "b"], ["b", "a"]])
def test_kernels_are_packed_on_request(names: list[str]) -> None:
    """Kernels of any shapes in `keep_together` are packed, and the log has the reason."""
    text = "x: f32[8000]; y: f64[9000, 4]; a = exp(x); b = reduce_sum(y, axis=1); return a, b"
    one, another = names[:2]

    assert packs(text) == [] and len(packs(text, keep_together=[names])) == 1
    decision = f"{one} -> {another}: fused, packed into one kernel of 2 branches: neither depends"
    assert any(line.startswith(decision) for line in log_of(text, keep_together=[names]))


A_AND_B = "x: f32[8]; y: f32[9]; a = exp(x); b = neg(y); return a, b"


@pytest.mark.parametrize(
    "text, options, reason",
    [
        (
            A_AND_B,
            {"fuel": 0},
            "a -> b: apart, keep_together names both, but the limit on fusion decisions",
        ),
        (
            A_AND_B,
            {"keep_apart": [["a", "b"]]},
            "both, but the option keep_apart names both; take them out of",
        ),
        (
            A_AND_B,
            {"no_fuse": ["b"]},
            "both, but the option no_fuse names one of them; take it out of no_fuse",
        ),
        (
            A_AND_B,
            {"target": target(max_arguments=9)},
            "but a kernel has at most 9 arguments",
        ),
        (
            A_AND_B,
            {"target": target(max_ops=0)},
            "but a packed kernel has at most 0 operators",
        ),
        (
            "x: f32[4, 4]; a = exp(x); b = exp(sort(a)); return b",
            {},
            "but one depends on the other",
        ),
    ],
)
def test_kernels_that_cannot_be_packed_have_a_reason(text: str, options: Any, reason: str) -> None:
    """The log has the reason why kernels in `keep_together` are not packed."""
    assert any(reason in line for line in log_of(text, keep_together=[["a", "b"]], **options))
    assert packs(text, keep_together=[["a", "b"]], **options) == []


def test_stitched_kernels_are_not_packed() -> None:
    """A kernel of several loop nests is not packed; the other kernels in the list are."""
    text = (
        "x: f32[64, 30]; w: f32[30, 20]; y: f32[9]; z: f32[11]; h = matmul(x, w); e = exp(h); "
        "c = exp(y); d = neg(z); return e, c, d"
    )
    names = [["h", "e"], ["e", "c", "d"]]

    assert packs(text, keep_together=names) == ["exp neg"]
    assert any(
        "c -> e: apart, keep_together names both, but e has several loop nests" in line
        for line in log_of(text, keep_together=names)
    )


def test_packs_make_no_cycle() -> None:
    """If two packs would depend on each other, only the first one is formed."""
    text = (
        "x: f32[4, 4]; y: f32[5, 5]; a = exp(x); b = exp(y); c = neg(matmul(a, a)); "
        "d = neg(matmul(b, b)); return c, d"
    )

    log = log_of(text, keep_together=[["a", "d"], ["b", "c"]])
    assert any("a -> d: fused, packed" in line for line in log)
    assert any("b -> c: apart" in line and "one depends on the other" in line for line in log)


def small_kernels(count: int, size: int, dtype: str = "f32") -> str:
    """Return a graph of ``count`` independent kernels of about ``size`` elements."""
    inputs = "; ".join(f"x{k}: {dtype}[{size + k}]" for k in range(count))
    return f"{inputs}; return {', '.join(f'exp(x{k})' for k in range(count))}"


@pytest.mark.parametrize(
    "text, on, count",
    [
        (small_kernels(20, 3000), target(), 1),
        (small_kernels(20, 10), target(), 1),  # one thread runs them in one tile
        (small_kernels(2, 9000), target(), 0),
        (small_kernels(20, 20000), target(worth=1.0), 0),
        (small_kernels(40, 3000), target(max_arguments=160), 2),
        (small_kernels(3, 10), "cuda", 1),
        (small_kernels(100, 10), "opencl", 7),
    ],
)
def test_kernels_are_packed_where_that_gains_time(
    text: str, on: pk.Target | str, count: int
) -> None:
    """Small kernels are packed, and more of them where a launch costs more."""
    assert len(packs(text, target=on)) == count
    assert packs(text, target=on, fusion="nnvm") == packs(text, target=on, fusion="none")


def test_empty_unsized_and_excluded_kernels_are_not_packed() -> None:
    """Kernels without elements, of unknown size, or in `no_fuse` are not packed."""
    text = small_kernels(20, 3000).replace("f32[3000]", "f32[0]").replace("f32[3001]", "f32[n]")
    ((names),) = packs(text, no_fuse=["exp_5"])

    assert names.count("exp") == 17
    sums = text.replace("exp(x0)", "reduce_sum(x0)")
    assert "reduce_sum" not in packs(sums, keep_together=[["reduce_sum", "exp_1", "exp_3"]])[0]
    assert packs(text, fuel=0) == [] and packs(text, fuel=4)[0].count("exp") == 5


def test_gpu_kernels_of_one_tile_are_packed_whatever_their_size() -> None:
    """Sums of vectors of unknown length join their parts in one launch on a GPU, not on a CPU.

    Kernels of several rows, or of an unknown number of rows, are not packed.
    """
    text = "x: f32[n]; return " + ", ".join(f"reduce_{f}(x)" for f in ("sum", "max", "min"))

    assert packs(text, target="opencl") == ["combine_partials combine_partials combine_partials"]
    assert packs(text) == []
    rows = "x: f32[m, n]; y: f32[m, n]; return " + ", ".join(
        f"reduce_sum({name}, axis=1)" for name in "xy"
    )
    assert packs(rows, target="opencl") == []


def test_long_kernels_are_packed_if_they_only_read_inputs() -> None:
    """A kernel that takes longer than others is packed with them if it reads inputs only."""
    many = small_kernels(20, 3000)
    large = many.replace("x0: f32[3000]", "x0: f32[3000000]")
    free = many.replace("x0: f32[3000]", "x0: f32[300000]")
    bound = free.replace("exp(x0)", "exp(matmul(reshape(x0, shape=(100, 3000)), w))").replace(
        "x0:", "w: f32[3000, 3000]; x0:"
    )

    assert packs(free)[0].count("exp") == 20 and packs(large)[0].count("exp") == 19
    assert packs(bound)[0].count("exp") == 19


def test_operands_of_a_pack_fit_into_caches() -> None:
    """A pack is split where its operands, which wait for it, would exceed `packed_bytes`."""
    inputs = "; ".join(f"x{k}: f32[{n}, {n}]" for k in range(8) for n in [100 + k])
    results = ", ".join(f"exp(matmul(x{k}, x{k}))" for k in range(8))
    text = f"{inputs}; return {results}"

    assert [p.count("exp") for p in packs(text)] == [8]
    tight = target(packed_bytes=180_000)
    assert [p.count("exp") for p in packs(text, target=tight)] == [4, 4]


def test_parts_do_not_update_state_that_other_parts_read() -> None:
    """Packing causes no copies of state: no part updates a state that another part reads."""
    ring = "; ".join(f"state s{k}: f32[3000]" for k in range(20))
    ring += "".join(f"; w{k} = exp(add(s{k}, s{(k + 1) % 20}))" for k in range(20))
    graph = pk.parse(ring + "; return " + ", ".join(f"w{k}" for k in range(20)))
    states = {n.name: n for n in graph.states}
    graph = pk.Graph([], [(states[f"s{k}"], e) for k, e in enumerate(graph.outputs)])
    planned = plan(graph, "CodeGen")
    copies = [
        len(pk.ApplyPasses(plan(graph, "CodeGen", target=t), "PlanMemory").attrs["storage"].copies)
        for t in (target(), APART)
    ]

    assert copies[0] <= copies[1]
    for node in planned.attrs["subgraph"]:
        read = {e.node for e in node.inputs}
        written = {v for v, e in planned.updates if e.node is node}
        assert len(read & written) <= 1


def test_packed_groups_are_stored_in_json() -> None:
    """A packed group is equal after it is written as JSON and read."""
    graph = plan(small_kernels(20, 3000), "Fusion")
    again = pk.from_json(pk.to_json(graph))
    (node,) = [n for n in again.nodes if "body" in n.params]

    assert node.params["body"].kind.name == "PACKED"
    assert node.params["body"].key == next(iter(graph.attrs["subgraph"].values())).key
