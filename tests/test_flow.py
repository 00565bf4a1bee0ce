"""Flows: what the values of real groups cost, where they read, and the arrays that they get."""

from __future__ import annotations

import pytest

import passkit as pk
from passkit.flow import Flow, flow_of, same_element, work_of
from passkit.group import Group, Kind
from passkit.node import Node, known_shape
from passkit.sharing import Sharing, Work
from passkit.size import numel


def typed(text: str) -> pk.Graph:
    """A graph with shapes and types."""
    return pk.ApplyPasses(pk.parse(text), ["InferShape", "InferType"])


SOFTMAX_DOT = """
x: f32[8704, 17]; v: f32[64, 8, 17, 128]
top = reduce_max(x, axis=1, keepdims=true)
e = exp(sub(x, top))
total = reduce_sum(e, axis=1, keepdims=true)
p = reshape(div(e, total), shape=(64, 8, 17, 17))
return matmul(p, v)
"""


def softmax_dot() -> Flow:
    """A softmax before a batched dot; a block has one of 512 matrices."""
    def nbytes(node: Node) -> int:
        size = numel(known_shape(node.entries[0]))
        assert isinstance(size, int)
        return size // 512 * 4

    return flow_of(Group(typed(SOFTMAX_DOT), Kind.REDUCTION), nbytes)


def test_arrays_of_a_softmax_before_a_dot() -> None:
    """306 of 612 elements; the sum lies where the maximum was, the quotient on the exp."""
    flow = softmax_dot()
    found = flow.share(1 << 16)
    assert isinstance(found, Sharing)
    called = [[flow.nodes[v].op.name for v in s.values] for s in found.slots]  # type: ignore[union-attr]

    assert called == [["reduce_max", "reduce_sum"], ["exp", "div"]]
    assert (found.allocated, found.requested) == (4 * 306, 4 * 612)
    assert [v.span for v in flow.values] == [6, 5, 4, 3, 2, 1, 0]


@pytest.mark.parametrize("call, work", [
    ("exp(x)", Work.EXPENSIVE), ("div(x, x)", Work.EXPENSIVE), ("neg(x)", Work.LIGHT),
    ("add(x, x)", Work.LIGHT), ("transpose(x)", Work.FREE), ("reshape(x, shape=(9,))", Work.FREE),
    ("broadcast_to(x, shape=(2, 3, 3))", Work.FREE), ("reduce_sum(x, axis=0)", Work.REDUCE),
    ("cumsum(x, axis=0)", Work.REDUCE), ("matmul(x, x)", Work.DOT),
    ("concat(x, x, axis=0)", Work.LIGHT), ("cast(x, dtype=\"float16\")", Work.LIGHT),
])
def test_what_an_element_costs(call: str, work: Work) -> None:
    """Index maps cost nothing; folds, scans and dots are their own kind."""
    assert work_of(typed(f"x: f32[3, 3]; return {call}").outputs[0].node) is work


@pytest.mark.parametrize("call, same", [
    ("exp(y)", True), ("mul(y, y)", True), ("reshape(y, shape=(6, 4))", True),
    ("transpose(y)", False), ("pad(y, pad_width=((1, 0), (0, 0)))", False),
    ("broadcast_to(y, shape=(2, 4, 6))", False), ("slice(y, begin=(0, 0), size=(2, 6))", False),
    ("reverse(y, axis=0)", False), ("reduce_max(y, axis=0)", False), ("cumsum(y, axis=1)", False),
    ("matmul(y, y, transpose_b=true)", False), ("add(y, z)", False), ("add(y, s)", True),
    ("cast(y, dtype=\"float16\")", True),
])
def test_who_reads_where_he_writes(call: str, same: bool) -> None:
    """Elementwise operators and reshapes do, if nothing is broadcast; movement and folds do not.

    Of a value of another size an element of the same number lies in another block.
    """
    graph = typed(f"x: f32[4, 6]; z: f32[2, 4, 6]; s: f32[6]; y = neg(x); return {call}, y")

    assert same_element(graph.outputs[0].node, graph.outputs[1].node) is same


def test_a_turned_square_is_not_overwritten() -> None:
    """The transpose of a square has all bytes of the square, but not in their places."""
    graph = typed(
        "x: f32[16, 16]; y = exp(x); t = transpose(y); z = mul(t, 2.0); w = exp(add(y, z)); "
        "u = add(w, 1.0); return matmul(mul(u, u), w)"
    )
    flow = flow_of(Group(graph, Kind.REDUCTION), lambda node: 1024)
    found = flow.share(1 << 16)
    assert isinstance(found, Sharing)
    kept = {flow.nodes[v].op.name for s in found.slots for v in s.values}  # type: ignore[union-attr]

    assert "exp" in kept and len(found.slots) == 2
