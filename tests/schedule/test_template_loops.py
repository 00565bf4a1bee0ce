"""Nests: what templates call the values of a group, and the loops that those have."""

from __future__ import annotations

from attrs import evolve

import passkit as pk
from passkit.analysis.group import Group, Kind
from passkit.analysis.partial import split
from passkit.ast.folds import Chunks
from passkit.schedule.template_loops import Nest, nests_of, value_names
from passkit.values.size import Size

n = Size.symbol("n")


def group_of(text: str) -> Group:
    """The group of a whole graph."""
    return Group(pk.ApplyPasses(pk.parse(text), ["InferShape", "InferType"]), Kind.REDUCTION)


def test_names_count_each_operator_by_itself() -> None:
    """The second maximum is reduce_max_2, whatever the graph called it."""
    group = group_of(
        "x: f32[4, 5]; left = reduce_max(x, axis=1); right = reduce_max(x, axis=0); "
        "return add(left, 1.0), exp(add(right, 2.0))"
    )

    assert sorted(value_names(group).values()) == [
        "add_1",
        "add_2",
        "exp_1",
        "reduce_max_1",
        "reduce_max_2",
    ]
    assert [name for node, name in value_names(group).items() if node.name == "right"] == [
        "reduce_max_2"
    ]


def test_the_loops_of_a_softmax() -> None:
    """A fold has the loops of its input; what no other nest reads and stays inside has none."""
    group = group_of(
        "x: f32[n, 17]; top = reduce_max(x, axis=1, keepdims=true); e = exp(sub(x, top)); "
        "total = reduce_sum(e, axis=1, keepdims=true); return div(e, total)"
    )
    kept = [node for node in group.ops if node.name in ("top", "e", "total")]
    found = nests_of(group, kept)

    assert found == (
        Nest("reduce_max_1", (n, 17), (1,), keepdims=True, shared=True),
        Nest("exp_1", (n, 17), shared=True),
        Nest("reduce_sum_1", (n, 17), (1,), keepdims=True, shared=True),
        Nest(found[3].name, (n, 17), root=True),
    )
    assert [nest.result for nest in found] == [(n, 1), (n, 17), (n, 1), (n, 17)]


def test_the_loops_of_dots_scans_and_scalars() -> None:
    """A dot has batch, M, N and K; a scan may not be cut along its steps; a scalar has one loop."""
    dot, scan, scalar = nests_of(
        group_of(
            "x: f32[2, 3, 4]; y: f32[2, 4, 5]; z: f32[6, 7]; s: f32[]; "
            "return matmul(x, y), cumsum(z, axis=1), exp(s)"
        ),
        (),
    )

    assert dot == Nest("matmul_1", (2, 3, 5, 4), (3,), root=True)
    assert (scan.dims, scan.whole, scan.result) == ((6, 7), (1,), (6, 7))
    assert (scalar.shape, scalar.dims, scalar.result) == ((), (1,), (1,))


def test_the_loops_of_chunks() -> None:
    """A fold in chunks has a loop that counts them, before the others."""
    graph = group_of("x: f32[100, 6]; return reduce_sum(x, axis=0)").graph
    half = split(graph.outputs[0].node, Chunks(0, 32)).inputs[0]
    graph = pk.ApplyPasses(pk.Graph([half]), ["InferShape", "InferType"])
    (nest,) = nests_of(Group(graph, Kind.REDUCTION), ())

    assert evolve(nest, name="") == Nest("", (4, 32, 6), (1,), root=True)
    assert nest.result == (4, 6)
