"""The strategy "xla": one result a kernel, and nothing twice that costs anything."""

from __future__ import annotations

import numpy as np
import pytest
from attrs import evolve

import passkit as pk
from passkit.plan.target import cpu
from tests.passes.test_fusion import BEFORE, fused, groups
from tests.planned import agrees

GROUPS = [
    ("x: f32[4]; return exp(neg(add(x, 1)))", ["add neg exp"]),
    ("x: f32[4, 5]; return transpose(neg(x))", ["neg transpose"]),
    ("x: f32[4, 5]; return reduce_sum(exp(x), axis=1)", ["exp reduce_sum"]),
    # A reduction is no part of those who read it.
    ("x: f32[4, 5]; return neg(reduce_sum(x, axis=1))", ["reduce_sum", "neg"]),
    ("x: f32[6, 40]; return softmax(x, axis=1)", ["reduce_max", "sub exp", "reduce_sum", "div"]),
    # What is light is repeated in each kernel, what is expensive is one of its own.
    (
        "x: f32[4, 5]; a = neg(x); return exp(a), reduce_sum(a, axis=1)",
        ["neg exp", "neg reduce_sum"],
    ),
    (
        "x: f32[4, 5]; a = exp(x); return neg(a), reduce_sum(a, axis=1)",
        ["exp", "neg", "reduce_sum"],
    ),
    # What is a result, or is read by no kernel, is in memory anyway.
    ("x: f32[4]; a = neg(x); return a, exp(a)", ["neg", "exp"]),
    ("x: f32[4, 5]; w: f32[5, 6]; a = neg(x); return matmul(a, w), exp(a)", ["neg", "exp"]),
]


@pytest.mark.parametrize("text, wanted", GROUPS)
def test_groups(text: str, wanted: list[str]) -> None:
    """Each group, by the names of its operators."""
    assert groups(text, fusion="xla") == wanted


APART = [
    ("x: f32[4]; a = neg(x); return a, exp(a)", "result", "it is an output of the graph"),
    (
        "x: f32[4, 5]; return neg(reduce_sum(x, axis=1))",
        "reduction",
        "a reduction is the last operator of its kernel",
    ),
    (
        "x: f32[4, 5]; a = exp(x); return neg(a), reduce_sum(a, axis=1)",
        "expensive",
        "it is expensive, and each kernel that reads it would compute it",
    ),
    (
        "x: f32[4, 5]; w: f32[5, 6]; a = neg(x); y = matmul(a, w); return y, exp(a)",
        "opaque",
        "y reads it and runs outside of kernels",
    ),
    (
        "x: f32[4, 5]; return transpose(erf(x))",
        "index",
        "it reads erf at another index than that of the element it computes",
    ),
    (
        "x: f32[4]; b: f32[3, 4]; return add(b, exp(x))",
        "space",
        "its number of elements differs from the kernel's",
    ),
    ("x: f32[0, 4]; return exp(neg(x))", "empty", "it has no elements"),
]


@pytest.mark.parametrize("text, code, reason", APART)
def test_what_stays_apart(text: str, code: str, reason: str) -> None:
    """An edge between two kernels says why."""
    log = fused(text, fusion="xla").attrs["fusion_log"]

    assert reason in {d.code: d.reason for d in log if not d.fused}[code]


def test_limits_and_hints() -> None:
    """Targets have room for so many inputs, and what the caller wants apart is not repeated."""
    text = "x: f32[4]; y: f32[4]; a = neg(x); return sqrt(add(ceil(a), y)), exp(a)"
    few = evolve(cpu(), max_buffers=1)

    assert groups(text, fusion="xla") == ["neg ceil add sqrt", "neg exp"]
    assert groups(text, fusion="xla", target=few) == ["neg ceil", "add", "sqrt", "neg exp"]
    assert groups(text, fusion="xla", no_fuse=["a"]) == ["neg", "ceil add sqrt", "exp"]
    assert groups(text, fusion="xla", fuel=0) == groups(text, fusion="none")


def test_what_waits_stays_apart() -> None:
    """An operator that something waits for, or that waits, is a kernel of its own."""
    x = pk.var("x", (4,))
    a = pk.ops.neg(x, name="a")
    b = pk.ops.exp(a, name="b")
    late = pk.ops.floor(b, name="late", control=[a.node])
    found = pk.ApplyPasses(pk.Graph([late]), [*BEFORE, "Fusion"], fusion="xla")

    assert [d.code for d in found.attrs["fusion_log"]] == ["control", "control"]


def test_what_is_repeated_backwards() -> None:
    """Where rows are read backwards, a divided index counts from 0 up, as C divides."""
    graph = pk.parse("""x: f16[3, 4, 2]; v: f16[3, 1, 1]
    s = slice(reshape(fdim(x, v), shape=(-1,)), begin=(0,), size=(4,))
    return pad(s, pad_width=(1, 4), mode="symmetric")""")
    feeds = {
        "x": np.arange(24, dtype=np.float16).reshape(3, 4, 2),
        "v": np.array([1, -50, 90], np.float16).reshape(3, 1, 1),
    }

    agrees(graph, feeds, pk.compile(graph, fusion="xla")(feeds))
