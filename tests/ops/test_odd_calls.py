"""Operators called with what they cannot take: a result or an error of passkit's, no other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
import pytest

import passkit as pk
from passkit.errors import FeedError, PassError, PasskitError
from passkit.graph.op import REQUIRED, FExample, Op
from passkit.values.dtype import dtype_of
from tests.random_graphs.registry import standard_ops

Inputs = list[tuple[tuple[Any, ...], str]]
"""Shape and dtype of each input."""

SHAPES = [(), (None, 3), (0, 2, 3, 4)]
VALUES = [0, -1, 2, (), (0,), (1, -1), None, "x", 1.5, -9, ((1, 2),), {}, float("nan"), [[0, 1]]]
ARRAYS = [np.array([1, 0]), np.float32(2)]


def odd_parameters(op: Op, given: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Each of `VALUES` for each parameter, the others as given."""
    yield given
    for key in op.params:
        for value in [*VALUES, *ARRAYS]:
            yield {**given, key: value}
    for value in VALUES:
        yield dict.fromkeys(given, value)


def odd_inputs(inputs: Inputs) -> Iterator[Inputs]:
    """One input after another with an axis more or less, or with one that is empty or unknown."""
    for k, (shape, dtype) in enumerate(inputs):
        odd: list[tuple[Any, ...]] = [(), shape[1:], (2, *shape), (None,) * len(shape)]
        odd += [(*shape[:a], n, *shape[a + 1 :]) for a in range(len(shape)) for n in (0, 9)]
        for each in odd:
            yield [*inputs[:k], (each, dtype), *inputs[k + 1 :]]
    yield [((0, *shape[1:]), dtype) for shape, dtype in inputs]
    yield inputs[:-1]


def calls(op: Op) -> Iterator[tuple[Inputs, dict[str, Any]]]:
    """Calls of plain variables, and calls that are nearly the operator's example."""
    given = {k: 1 for k, default in op.params.items() if default is REQUIRED}
    counts = [op.num_inputs or 0] if op.num_inputs != -1 else [0, 2]
    for count in counts:
        for dtype in ("float32", "int32"):
            for shape in SHAPES:
                yield [(shape, dtype)] * count, given
    maker = FExample.get(op.name)
    if maker is None:
        for dtype in ("float32", "int32"):
            for params in odd_parameters(op, given):
                yield [(SHAPES[-1], dtype)] * counts[-1], params
        return
    made, given = maker(dtype_of("float32"))
    inputs = [(tuple(x.shape), x.dtype.name) for x in made]
    for params in odd_parameters(op, given):
        yield inputs, params
    for odd in odd_inputs(inputs):
        yield odd, given


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # of NumPy: overflow, division by zero
@pytest.mark.parametrize("name", standard_ops())
def test_a_call_ends_in_a_result_or_an_error_of_passkit(name: str) -> None:
    """What is refused is refused by the call, before it runs; else it has the shape it says.

    A run may still refuse what is in an array, and a variable that stands for a missing input.
    """
    op = pk.get_op(name)
    for inputs, params in calls(op):
        xs = [pk.var(f"a{k}", shape, dtype) for k, (shape, dtype) in enumerate(inputs)]
        try:
            made = op(*xs, **params)
        except PasskitError as error:
            assert str(error)
            continue
        results = list(made) if isinstance(made, (tuple, list)) else [made]
        with suppress(FeedError, PassError):
            run(results, inputs)
        with suppress(PasskitError):
            differentiate(results, xs)


def run(results: Sequence[pk.Entry], inputs: Inputs) -> None:
    """Interpret what a call made, of ones where its inputs have known shapes."""
    if any(None in shape for shape, _ in inputs):
        return
    graph = pk.Graph(results)
    ones = {f"a{k}": np.ones(shape, dtype) for k, (shape, dtype) in enumerate(inputs)}
    got = pk.interpret(graph, {x.name: ones[x.name] for x in graph.inputs if x.name in ones})
    for array, result in zip(got, results, strict=True):
        assert array.dtype == result.dtype.numpy, result
        assert array.shape == result.shape, result


def differentiate(results: Sequence[pk.Entry], inputs: Sequence[pk.Entry]) -> None:
    """A gradient has the shape of its input, where it is known."""
    ys, xs = (
        [e for e in side if e.dtype is not None and e.dtype.is_float] for side in (results, inputs)
    )
    for dx, x in zip(pk.gradients(ys, xs) if ys and xs else (), xs, strict=False):
        assert dx.shape in (x.shape, None), (dx, x)
