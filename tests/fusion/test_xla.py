"""The strategy "xla": a kernel has one result, and only cheap operators are repeated."""

from __future__ import annotations

import numpy as np
import pytest

import passkit as pk
from tests.fusion.test_fusion import BEFORE, fused, groups
from tests.planned import agrees, target

GROUPS = [
    ("x: f32[4]; return exp(neg(add(x, 1)))", ["add neg exp"]),
    ("x: f32[4, 5]; return transpose(neg(x))", ["neg transpose"]),
    ("x: f32[4, 5]; return reduce_sum(exp(x), axis=1)", ["exp reduce_sum"]),
    # A reduction is the last operator of its kernel.
    ("x: f32[4, 5]; return neg(reduce_sum(x, axis=1))", ["reduce_sum", "neg"]),
    ("x: f32[6, 40]; return softmax(x, axis=1)", ["reduce_max", "sub exp", "reduce_sum", "div"]),
    # Cheap operators are repeated in each kernel; an expensive one is a kernel of its own.
    (
        "x: f32[4, 5]; a = neg(x); return exp(a), reduce_sum(a, axis=1)",
        ["neg exp", "neg reduce_sum"],
    ),
    (
        "x: f32[4, 5]; a = exp(x); return neg(a), reduce_sum(a, axis=1)",
        ["exp", "neg", "reduce_sum"],
    ),
    # Outputs of the graph, and operands of library calls, are in memory anyway.
    ("x: f32[4]; a = neg(x); return a, exp(a)", ["neg", "exp"]),
    ("x: f32[4, 5]; w: f32[5, 6]; a = neg(x); return matmul(a, w), exp(a)", ["neg", "exp"]),
]


@pytest.mark.parametrize("text, expected", GROUPS)
def test_groups_have_one_result(text: str, expected: list[str]) -> None:
    """Operators are grouped as expected, given by their names in each group."""
    assert groups(text, fusion="xla") == expected


APART = [
    ("x: f32[4]; a = neg(x); return a, exp(a)", "graph.output", "it is an output of the graph"),
    (
        "x: f32[4, 5]; return neg(reduce_sum(x, axis=1))",
        "op.reduction",
        "a reduction is the last operator of its kernel",
    ),
    (
        "x: f32[4, 5]; a = exp(x); return neg(a), reduce_sum(a, axis=1)",
        "op.expensive",
        "it is expensive, and each kernel that reads it would compute it",
    ),
    (
        "x: f32[4, 5]; w: f32[5, 6]; a = neg(x); y = matmul(a, w); return y, exp(a)",
        "op.host",
        "y reads it and runs outside of kernels",
    ),
    (
        "x: f32[4, 5]; return transpose(erf(x))",
        "domain.index",
        "it reads erf at another index than that of the element it computes",
    ),
    (
        "x: f32[4]; b: f32[3, 4]; return add(b, exp(x))",
        "domain.elements",
        "its number of elements differs from the kernel's",
    ),
    ("x: f32[0, 4]; return exp(neg(x))", "graph.empty", "it has no elements"),
]


@pytest.mark.parametrize("text, code, reason", APART)
def test_edges_between_kernels_have_a_reason(text: str, code: str, reason: str) -> None:
    """The fusion log has the reason for each edge that is not fused."""
    log = fused(text, fusion="xla").attrs["fusion_log"]

    assert reason in {d.code: d.reason for d in log if not d.fused}[code]


def test_groups_obey_limits_and_hints() -> None:
    """A target limits the inputs of a kernel; operators in `no_fuse` are not repeated."""
    text = "x: f32[4]; y: f32[4]; a = neg(x); return sqrt(add(ceil(a), y)), exp(a)"
    few = target(max_buffers=1)

    assert groups(text, fusion="xla") == ["neg ceil add sqrt", "neg exp"]
    assert groups(text, fusion="xla", target=few) == ["neg ceil", "add", "sqrt", "neg exp"]
    assert groups(text, fusion="xla", no_fuse=["a"]) == ["neg", "ceil add sqrt", "exp"]
    assert groups(text, fusion="xla", fuel=0) == groups(text, fusion="none")


def test_control_dependencies_are_not_fused() -> None:
    """Both ends of a control dependency are kernels of their own."""
    x = pk.var("x", (4,))
    a = pk.ops.neg(x, name="a")
    b = pk.ops.exp(a, name="b")
    late = pk.ops.floor(b, name="late", control=[a.node])
    planned = pk.ApplyPasses(pk.Graph([late]), [*BEFORE, "Fusion"], fusion="xla")

    assert [d.code for d in planned.attrs["fusion_log"]] == ["graph.control", "graph.control"]


def test_operators_repeated_in_reverse_order_are_right() -> None:
    """A kernel that reads rows in reverse divides indices of at least 0, as C division needs."""
    graph = pk.parse("""x: f16[3, 4, 2]; v: f16[3, 1, 1]
    s = slice(reshape(fdim(x, v), shape=(-1,)), begin=(0,), size=(4,))
    return pad(s, pad_width=(1, 4), mode="symmetric")""")
    feeds = {
        "x": np.arange(24, dtype=np.float16).reshape(3, 4, 2),
        "v": np.array([1, -50, 90], np.float16).reshape(3, 1, 1),
    }

    agrees(graph, feeds, pk.compile(graph, fusion="xla")(feeds))
