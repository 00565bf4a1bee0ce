"""The names of values in templates, and the loops that compute these values."""

from __future__ import annotations

import passkit as pk
from passkit.analysis.group import Group, Kind
from passkit.analysis.partial import ReductionSplit, split_reduction
from passkit.ast.folds import Chunks
from passkit.schedule.template_loops import ValueLoops, multi_nest_values, value_loops, value_names
from passkit.values.size import Size

n = Size.symbol("n")


def group_of(text: str) -> Group:
    """Return the group of a whole graph."""
    return Group(pk.ApplyPasses(pk.parse(text), ["InferShape", "InferType"]), Kind.REDUCTION)


def test_names_count_each_operator_by_itself() -> None:
    """Names count the operators of each kind; they do not depend on the names of the graph."""
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


def loops_of(group: Group) -> tuple[ValueLoops, ...]:
    """Return the values that templates of a multi-nest group can name."""
    return tuple(multi_nest_values(group, value_names(group)).values())


def test_the_loops_of_a_softmax() -> None:
    """A reduction has the loops of its input."""
    group = group_of(
        "x: f32[n, 17]; top = reduce_max(x, axis=1, keepdims=true); e = exp(sub(x, top)); "
        "total = reduce_sum(e, axis=1, keepdims=true); return div(e, total)"
    )
    names = value_names(group)
    values = [
        value_loops(node, names[node], is_read, not is_read)
        for node in group.ops
        if (is_read := node.name in ("top", "e", "total")) or node is group.ops[-1]
    ]

    assert values == [
        ValueLoops("reduce_max_1", (n, 17), (1,), keepdims=True, shared=True),
        ValueLoops("exp_1", (n, 17), shared=True),
        ValueLoops("reduce_sum_1", (n, 17), (1,), keepdims=True, shared=True),
        ValueLoops(values[3].name, (n, 17), is_output=True),
    ]
    assert [value.result_shape for value in values] == [(n, 1), (n, 17), (n, 1), (n, 17)]


def test_values_between_nests_and_outputs_have_loops() -> None:
    """A value that no other nest reads and that is no output has no loops of its own."""
    group = group_of(
        "x: f32[4, 5]; y: f32[5, 6]; z: f32[6, 7]; return matmul(exp(neg(matmul(x, y))), z)"
    )

    assert [(v.name, v.shared, v.is_output) for v in loops_of(group)] == [
        ("matmul_1", True, False),
        ("exp_1", True, False),
        ("matmul_2", False, True),
    ]


def test_the_loops_of_products_scans_and_scalars() -> None:
    """A product has batch, M, N and K; iterations of a scan depend on each other."""
    product, scan, scalar = loops_of(
        group_of(
            "x: f32[2, 3, 4]; y: f32[2, 4, 5]; z: f32[6, 7]; s: f32[]; "
            "return matmul(x, y), cumsum(z, axis=1), exp(s)"
        )
    )

    assert product == ValueLoops("matmul_1", (2, 3, 5, 4), (3,), is_output=True)
    assert (scan.extents, scan.carried, scan.result_shape) == ((6, 7), (1,), (6, 7))
    assert (scalar.shape, scalar.extents, scalar.result_shape) == ((), (1,), (1,))


def test_the_loops_of_chunks() -> None:
    """A reduction in chunks has a loop that counts them, before the others."""
    graph = group_of("x: f32[100, 6]; return reduce_sum(x, axis=0)").graph
    split = ReductionSplit((100, 6), Chunks(0, 32))
    half = split_reduction(graph.outputs[0].node, split).inputs[0]
    value = value_loops(half.node, "", False, True)

    assert value == ValueLoops("", (4, 32, 6), (1,), is_output=True)
    assert value.result_shape == (4, 6)
