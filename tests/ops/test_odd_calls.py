"""Operators called with what they cannot take: a result or an error of passkit's, no other."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import passkit as pk
from passkit.errors import PasskitError
from passkit.graph.op import REQUIRED, Op
from tests.random_graphs.registry import standard_ops

SHAPES = [(), (None, 3), (0, 2, 3, 4)]
VALUES = [0, -1, 2, (), (0,), (1, -1), None, "x", 1.5, -9, ((1, 2),), {}]


def odd_parameters(op: Op) -> Iterator[dict[str, Any]]:
    """Each of `VALUES` for each parameter, the others as they are by default, or 1."""
    given = {k: 1 for k, default in op.params.items() if default is REQUIRED}
    yield given
    for key in op.params:
        for value in VALUES:
            yield {**given, key: value}
    for value in VALUES:
        yield dict.fromkeys(given, value)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # of NumPy: overflow, division by zero
@pytest.mark.parametrize("name", standard_ops())
def test_a_call_ends_in_a_result_or_an_error_of_passkit(name: str) -> None:
    """Whatever the shape and the parameters: inference, which model files reach first, and runs.

    Operators that take no float32 are given int32.
    """
    op = pk.get_op(name)
    any(accepted(op, dtype) for dtype in ("float32", "int32"))


def accepted(op: Op, dtype: str) -> int:
    """How many of the calls of inputs of a dtype gave a result."""
    made = 0
    counts = [op.num_inputs] if (op.num_inputs or -1) >= 0 else [0, 2]
    for shape in SHAPES:
        for count in counts:
            for params in odd_parameters(op):
                inputs = [pk.var(f"a{k}", shape, dtype) for k in range(count or 0)]
                try:
                    result = op(*inputs, **params)
                    if None not in shape:
                        run(result, np.ones(shape, dtype))
                    made += 1
                except PasskitError as error:
                    assert str(error)
    return made


def run(made: Any, ones: np.ndarray) -> None:
    """Interpret what a call made, fed with an array for every input."""
    results = list(made) if isinstance(made, (tuple, list)) else [made]
    exe = pk.compile(pk.Graph(results), target="interpret")
    exe(**{signature.name: ones for signature in exe.inputs})
