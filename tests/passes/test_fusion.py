"""Fusion: which operators meet in one group, which stay apart, and that each edge says why."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from attrs import evolve

import passkit as pk
from passkit.compiler import LADDER
from passkit.errors import SettingError
from passkit.group import FUSED
from passkit.target import cpu
from tests.planned import agrees, feeds_of
from tests.random_graphs import random_case

BEFORE = LADDER[: LADDER.index("Fusion")]


def fused(text: str, **options: Any) -> pk.Graph:
    """The graph in text after Fusion."""
    return pk.ApplyPasses(pk.parse(text), [*BEFORE, "Fusion"], **options)


def groups(text: str, **options: Any) -> list[str]:
    """The operators of each group."""
    found = fused(text, **options).attrs["subgraph"].values()
    return [" ".join(n.op.name for n in g.ops) for g in found]


TOGETHER = [
    ("x: f32[4]; e = exp(x); y = mul(add(e, 1), e); return y, e", "exp add mul"),
    ("x: f32[4, 5]; y = transpose(exp(x)); return sub(y, 1)", "exp transpose sub"),
    ("x: f32[4, 5]; y = reshape(exp(x), shape=(20,)); return neg(y)", "exp reshape neg"),
    ("x: f32[4, 5]; b: f32[5]; return exp(add(x, reshape(b, shape=(1, 5))))", "reshape add exp"),
    ("x: f32[4, 5]; s = reduce_sum(exp(x), axis=1); return log(s)", "exp reduce_sum log"),
    ("x: f32[4, 5]; a = reduce_sum(x, axis=1); b = reduce_max(x, axis=1); return sub(a, b)",
     "reduce_sum reduce_max sub"),
    ("x: f32[4, 5]; s = reduce_sum(x, axis=0, keepdims=true); return div(x, s)", "reduce_sum div"),
    ("x: f32[3]; y: f32[3]; return exp(concat(neg(x), neg(y), axis=0))", "neg neg concat exp"),
]


@pytest.mark.parametrize("text, ops", TOGETHER)
def test_what_meets(text: str, ops: str) -> None:
    """Elementwise, broadcast and movement operators and reductions of one space are one group."""
    (found,) = groups(text)

    assert sorted(found.split()) == sorted(ops.split())


APART = [
    ("x: f32[4, 5]; y: f32[5, 6]; return matmul(exp(x), y)", "opaque", "matmul has no FCodeGen"),
    ("x: f32[4, 5]; return transpose(erf(x))", "index", "reads erf at another index than its own"),
    ("x: f32[4, 5]; s = reduce_sum(x, axis=1); return reduce_sum(s, axis=0)", "twice",
     "it reduces what a reduction left"),
    ("x: f32[4, 5]; a = exp(x); s = reduce_sum(a, axis=1); return s, reduce_sum(a, axis=0)",
     "axes", "other axes than its group"),
    ("x: f32[0, 4]; return exp(neg(x))", "empty", "it has no elements"),
    ("x: f32[4]; return softmax(erf(reshape(x, shape=(4, 1))), axis=1)", "unit", "of extent 1"),
    ("x: f32[3]; y: f32[4]; return concat(exp(x), exp(y), axis=0)", "shape",
     r"its shape \(7\) does not lie in the space \(3\)"),
]


@pytest.mark.parametrize("text, code, reason", APART)
def test_what_stays_apart(text: str, code: str, reason: str) -> None:
    """An edge between two kernels says why."""
    with pytest.warns() if False else _quiet():
        found = [d for d in pk.explain(pk.parse(text)).apart if d.code == code]

    assert found, pk.explain(pk.parse(text))
    assert pk.explain(pk.parse(text)).apart
    import re

    assert any(re.search(reason, d.reason) for d in found)
