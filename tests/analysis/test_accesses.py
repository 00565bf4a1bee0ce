"""Accesses: the elements that operators read for an element of their result."""

from __future__ import annotations

import pytest

import passkit as pk
from passkit.analysis.accesses import accesses_of, broadcast_index, element_expr
from passkit.ast import Var
from passkit.ast.index import expression, normal
from passkit.errors import CodeGenError
from passkit.values import dtype as dt

i, j = Var("i", dt.int64), Var("j", dt.int64)
EXTENTS = {"i": 6, "j": 8}


def reads(text: str) -> list[tuple[int, list[str]]]:
    """Return the input numbers and indices that the last operator of a graph reads at (i, j)."""
    node = pk.parse(text).outputs[0].node
    accesses = accesses_of(node, (i, j), EXTENTS)
    plain = {repr(i): "i", repr(j): "j"}
    return [
        (k, [plain.get(repr(expression(normal(x, EXTENTS))), "?") for x in at])
        for k, at in accesses.at
    ]


@pytest.mark.parametrize(
    "text, expected",
    [
        ("x: f32[6, 8]; y: f32[6, 8]; return add(x, y)", [(0, ["i", "j"]), (1, ["i", "j"])]),
        ("x: f32[6, 8]; y: f32[8]; return add(x, y)", [(0, ["i", "j"]), (1, ["j"])]),
        ("x: f32[8, 6]; return transpose(x)", [(0, ["j", "i"])]),
    ],
)
def test_indices(text: str, expected: list[tuple[int, list[str]]]) -> None:
    """Elementwise operators read broadcast indices, others the indices of their FElement."""
    assert reads(text) == expected


def test_alignment() -> None:
    """A dimension of extent 1 is read at 0, and missing dimensions have no coordinate."""
    first, second = broadcast_index((i, j), (6, 1))

    assert first is i and normal(second, {}).terms == ()
    assert broadcast_index((i, j), (8,)) == (j,) and broadcast_index((i, j), ()) == ()


def test_values_that_depend_on_the_position() -> None:
    """An index variable on which an element itself depends is pinned."""
    op = pk.register_op("test_reads_ramp", num_inputs=1)
    op.set_attr("FElement", lambda node, at, read: read(*at) + pk.ast.cast(at[1], "float32"))
    op.set_attr("FInferShape", lambda node, s: (s,))
    node = op(pk.var("x", (6, 8), "float32")).node

    assert accesses_of(node, (i, j), EXTENTS).pinned == {j}


def test_operators_without_code() -> None:
    """An operator without FElement and FCodeGen has no element expression."""
    op = pk.register_op("test_reads_none", num_inputs=1)
    op.set_attr("FInferShape", lambda node, s: (s,))
    with pytest.raises(CodeGenError, match="test_reads_none.* has no code: set FCodeGen or"):
        element_expr(op(pk.var("x", (6,), "float32")).node, (i,), [lambda *at: i])
