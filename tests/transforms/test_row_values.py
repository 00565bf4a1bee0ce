"""Row values that equal other row values: operators whose result is one of their operands."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import passkit as pk

o = pk.ops


@pytest.mark.parametrize("columns", [4, 300], ids=["short rows", "long rows"])
@pytest.mark.parametrize(
    "function",
    [
        lambda a, b: o.slice_assign(a, b, begin=[0], size=(8,)),
        lambda a, b: o.slice_assign(a, b * 2, begin=[0], size=(8,)),
        lambda a, b: o.reshape(o.slice_assign(a, b, begin=[0], size=(8,)), (2, 4)),
        lambda a, b: o.slice_assign(a * 1.5, b, begin=[0], size=(8,)),
        lambda a, b: o.sized_by(b, a),
        lambda a, b: o.concat(o.slice(a, begin=[0], size=(0,)), b, axis=0),
    ],
    ids=["assigned", "scaled", "reshaped", "over another", "sized by", "joined to nothing"],
)
def test_the_operand_that_is_the_result(
    function: Callable[[pk.Entry, pk.Entry], pk.Entry], columns: int
) -> None:
    """If the result of an operator is its second operand, kernels store that operand."""
    x = pk.var("x", (8, columns))
    graph = pk.Graph([function(o.reduce_max(x, axis=1), o.reduce_sum(x, axis=1))])
    array = np.random.default_rng(0).standard_normal((8, columns)).astype("float32")
    (expected,) = pk.interpret(graph, {"x": array})
    (actual,) = pk.compile(graph)(x=array)
    np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-5)
