"""Work and span: cost classes of values, and their distance from the outputs."""

from __future__ import annotations

import pytest

import passkit as pk
from passkit.analysis.slots import Work
from passkit.schedule.work_span import spans, work_of


def typed(text: str) -> pk.Graph:
    """Return the graph of a text with shapes and types."""
    return pk.ApplyPasses(pk.parse(text), ["InferShape", "InferType"])


SOFTMAX_DOT = """
x: f32[8704, 17]; v: f32[64, 8, 17, 128]
top = reduce_max(x, axis=1, keepdims=true)
e = exp(sub(x, top))
total = reduce_sum(e, axis=1, keepdims=true)
p = reshape(div(e, total), shape=(64, 8, 17, 17))
return matmul(p, v)
"""


def test_spans_are_longest_paths() -> None:
    """The exponential is read by a reduction and by a reader of it; the longer path counts."""
    graph = typed(SOFTMAX_DOT)
    lengths = spans(graph)

    assert [lengths[n] for n in graph.nodes if n.op is not None] == [6, 5, 4, 3, 2, 1, 0]


@pytest.mark.parametrize(
    "call, work",
    [
        ("exp(x)", Work.EXPENSIVE),
        ("div(x, x)", Work.EXPENSIVE),
        ("neg(x)", Work.LIGHT),
        ("add(x, x)", Work.LIGHT),
        ("transpose(x)", Work.FREE),
        ("reshape(x, shape=(9,))", Work.FREE),
        ("broadcast_to(x, shape=(2, 3, 3))", Work.FREE),
        ("reduce_sum(x, axis=0)", Work.REDUCE),
        ("cumsum(x, axis=0)", Work.REDUCE),
        ("matmul(x, x)", Work.DOT),
        ("concat(x, x, axis=0)", Work.LIGHT),
        ('cast(x, dtype="float16")', Work.LIGHT),
    ],
)
def test_cost_classes(call: str, work: Work) -> None:
    """Index changes cost nothing; reductions, scans and products have classes of their own."""
    assert work_of(typed(f"x: f32[3, 3]; return {call}").outputs[0].node) is work
