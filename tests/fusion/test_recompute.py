"""Large values of small operands are computed again by each kernel that reads them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from attrs import evolve

import passkit as pk
from tests.planned import plan, target
from tests.together import compiled

o = pk.ops
Entries = list[Any]


def pairwise(m: int, n: int) -> tuple[Any, Any, Any]:
    """Return x of m elements, y of n, and all m * n differences."""
    x, y = pk.var("x", (m,)), pk.var("y", (n,))
    return x, y, o.reshape(x, (m, 1)) - o.reshape(y, (1, n))


def rows_and_columns(m: int, n: int) -> Entries:
    """The sums of rows and of columns."""
    _, _, d = pairwise(m, n)
    f = o.exp(-(d * d))
    return [o.sum(f, axis=1), o.sum(f, axis=0)]


def three_readers(m: int, n: int) -> Entries:
    """Rows are summed, columns are summed, and their largest elements found."""
    _, _, d = pairwise(m, n)
    return [o.sum(d * d, axis=1), o.sum(d * d, axis=0), o.reduce_max(d * d, axis=0), o.mean(d * d)]


def sum_and_logsumexp(m: int, n: int) -> Entries:
    """The total, and the logsumexp of columns."""
    _, _, d = pairwise(m, n)
    f = -(d * d)
    return [o.sum(f), o.logsumexp(f, axis=1), o.logsumexp(f, axis=0)]


def gradient(m: int, n: int) -> Entries:
    """The sum over all pairs and its gradient."""
    x, y, d = pairwise(m, n)
    total = o.sum(o.exp(-(d * d)))
    return [total, *pk.gradients(total, [x, y])]


def gradient_of_logsumexp(m: int, n: int) -> Entries:
    """A gradient whose second half needs the maximum and the sum of each row from the first."""
    x, y, d = pairwise(m, n)
    total = o.sum(o.logsumexp(-(d * d), axis=1))
    return [total, *pk.gradients(total, [x, y])]


CASES = [
    rows_and_columns,
    three_readers,
    sum_and_logsumexp,
    gradient,
    gradient_of_logsumexp,
]
SMALL = target(machine=evolve(target().machine, llc_bytes=32 << 10), parallel=1.0)
"""A machine whose caches hold 32 KiB."""


def arena(graph: pk.Graph) -> int:
    """Return the bytes of all values between kernels."""
    return int(pk.ApplyPasses(graph, "PlanMemory").attrs["storage"].bind({})[1])


@pytest.mark.parametrize("case", CASES)
def test_no_kernel_stores_the_matrix_of_pairs(case: Callable[[int, int], Entries]) -> None:
    """No kernel stores the matrix of 4,000 by 4,000 elements, and no memory is reserved for it."""
    fused = plan(pk.Graph(case(4000, 4000)), "Fusion")

    for group in fused.attrs["subgraph"].values():
        for e in (*(n.entries[0] for n in group.graph.inputs), *group.graph.outputs):
            assert np.prod(e.shape) < 4000 * 40, group.graph
    assert arena(fused) < 2 << 20
    selection = fused.attrs["selection"]
    assert selection is None or selection.peaks[1] < 2 << 20


def test_recomputed_values_are_right(rng: Any) -> None:
    """Results agree with the interpreter, and do not depend on the rest of the graph."""
    cases = rows_and_columns, gradient, gradient_of_logsumexp
    graphs = [pk.Graph(case(150, 130)) for case in cases]
    alone = [pk.Graph([e]) for e in rows_and_columns(150, 130)]
    exes = compiled([*graphs, *alone], target=SMALL)
    feeds = {"x": rng.standard_normal(150, "f4"), "y": rng.standard_normal(130, "f4")}
    results = [exe(feeds) for exe in exes]

    for graph, exe, result in zip(graphs, exes, results, strict=False):
        assert max(k.ast.params[-1].extent for k in exe.kernels) < 150 * 130
        for a, b in zip(result, pk.interpret(graph, feeds), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4)
        for a, b in zip(result, exe(feeds), strict=True):
            assert a.tobytes() == b.tobytes()
    for one, (single,) in zip(results[0], results[len(cases) :], strict=True):
        assert one.tobytes() == single.tobytes()


def stored(entries: Entries, **options: Any) -> int:
    """Return how many values of 4,000 by 4,000 elements kernels write, results of the graph too."""
    fused = plan(pk.Graph(entries), "Fusion", **options)
    results = [e for g in fused.attrs["subgraph"].values() for e in g.graph.outputs]
    return sum(e.shape == (4000, 4000) for e in results)


def test_values_that_are_not_recomputed() -> None:
    """Outputs, values with large operands or in hints, and all without a cost model, are stored."""
    x, _, d = pairwise(4000, 4000)
    f = o.exp(-(d * d))
    both = [o.sum(f, axis=1), o.sum(f, axis=0)]
    large = o.exp(pk.var("z", (4000, 4000)) + o.reshape(x, (4000, 1)))
    names = [["exp", "reduce_sum"]]

    assert stored(both) == 0
    assert stored([*both, f]) == 1
    assert stored([o.sum(large, axis=1), o.sum(large, axis=0)]) == 1
    assert stored(both, keep_together=names) == 1
    assert stored(both, target="opencl") == 1
    assert stored(both, no_fuse=["exp"]) == 2


def test_recomputation_takes_fuel() -> None:
    """A value that is computed again takes fuel."""
    with pk.PassContext(fuel=100) as context:
        stored(rows_and_columns(4000, 4000))
    used = context.fuel.spent.index("recompute exp")

    assert stored(rows_and_columns(4000, 4000), fuel=used) == 1
    assert stored(rows_and_columns(4000, 4000), fuel=used + 1) == 0


def test_memory_and_time_decide() -> None:
    """Sines of sines cost more than storing them, unless a byte of peak memory counts for more."""
    _, _, d = pairwise(4000, 4000)
    f = d
    for _ in range(8):
        f = o.sin(f)
    both = [o.sum(f, axis=1), o.sum(f, axis=0)]
    scarce = target(machine=evolve(target().machine, peak_byte_weight=100.0))

    assert stored(both) == 1
    assert stored(both, target=scarce) == 0


def test_recomputation_is_explained() -> None:
    """Edges to copies are fused, with the bytes saved; the edges that they replace are not."""
    fused = plan(pk.Graph(rows_and_columns(4000, 4000)), "Fusion")
    (edge,) = pk.explain(fused).why("exp", "partial_reduce")

    assert edge.fused and edge.data["nbytes"] == 64_000_000
    assert edge.reason == "computed again where it is read, for 61 MiB less to store"
    selection = fused.attrs["selection"]
    assert selection.peaks[1] < 1 << 20 < selection.peaks[0]

    _, _, d = pairwise(4000, 4000)
    probabilities = o.exp(d - o.logsumexp(d, axis=1, keepdims=True))
    fused = plan(pk.Graph([o.sum(probabilities, axis=0)]), "Fusion")
    (edge,) = [row for row in pk.explain(fused) if row.code == "recompute.readers"]
    assert not edge.fused and edge.consumer.startswith("sub")
    assert edge.reason == "the kernels that read exp_1 compute it again"


def test_state_is_updated_after_copies_have_read_it(rng: Any) -> None:
    """Copies read x and y as they were before a step of gradient descent changes both."""
    start = {"x": rng.standard_normal(150, "f4"), "y": rng.standard_normal(130, "f4")}
    x, y = (pk.state(name, value) for name, value in start.items())
    d = o.reshape(x, (150, 1)) - o.reshape(y, (1, 130))
    total = o.sum(o.exp(-(d * d)))
    towards_x, towards_y = pk.gradients(total, [x, y])
    steps = [(x.node, x - 0.1 * towards_x), (y.node, y - 0.1 * towards_y)]
    exe = pk.compile(pk.Graph([total], steps), target=SMALL)
    plain = pk.compile(pk.Graph([total], steps), target="interpret")

    for _ in range(3):
        np.testing.assert_allclose(exe()[0], plain()[0], rtol=1e-4)
    for name in start:
        np.testing.assert_allclose(exe.state[name], plain.state[name], rtol=1e-4, atol=1e-4)
    assert max(k.ast.params[-1].extent for k in exe.kernels) < 150 * 130
