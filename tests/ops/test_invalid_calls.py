"""Operators called with unusual arguments give a result or an error of passkit, no other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
import pytest

import passkit as pk
from passkit.errors import DTypeError, FeedError, PassError, PasskitError, ShapeError
from tests.random_graphs.registry import standard_ops

Inputs = list[tuple[tuple[Any, ...], str]]
"""The shape and dtype of each input."""

SHAPES = [(), (None, 3), (0, 2, 3, 4)]
VALUES = [0, -1, 2, (), (0,), (1, -1), None, "x", 1.5, -9, ((1, 2),), {}, float("nan"), [[0, 1]]]
ARRAYS = [np.array([1, 0]), np.float32(2)]


def odd_parameters(op: pk.Op, params: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield valid parameters with one replaced by an unusual value, or all by the same one."""
    yield params
    for key in op.params:
        for value in [*VALUES, *ARRAYS]:
            yield {**params, key: value}
    for value in VALUES:
        yield dict.fromkeys(params, value)


def odd_inputs(inputs: Inputs) -> Iterator[Inputs]:
    """Yield inputs of which one has an axis more or less, or an empty, long or unknown axis."""
    for k, (shape, dtype) in enumerate(inputs):
        shapes: list[tuple[Any, ...]] = [(), shape[1:], (2, *shape), (None,) * len(shape)]
        shapes += [(*shape[:a], n, *shape[a + 1 :]) for a in range(len(shape)) for n in (0, 9)]
        for changed in shapes:
            yield [*inputs[:k], (changed, dtype), *inputs[k + 1 :]]
    yield [((0, *shape[1:]), dtype) for shape, dtype in inputs]
    yield inputs[:-1]


def calls(op: pk.Op) -> Iterator[tuple[Inputs, dict[str, Any]]]:
    """Yield calls on plain variables, and calls that differ from the operator's example."""
    params = {k: 1 for k, default in op.params.items() if default is pk.REQUIRED}
    counts = [op.num_inputs or 0] if op.num_inputs != -1 else [0, 2]
    for count in counts:
        for dtype in ("float32", "int32"):
            for shape in SHAPES:
                yield [(shape, dtype)] * count, params
    if not op.has_attr("FExample"):
        for dtype in ("float32", "int32"):
            for changed in odd_parameters(op, params):
                yield [(SHAPES[-1], dtype)] * counts[-1], changed
        return
    arrays, params = op.get_attr("FExample")(pk.var("x", (), "float32").dtype)
    inputs = [(tuple(x.shape), x.dtype.name) for x in arrays]
    for changed in odd_parameters(op, params):
        yield inputs, changed
    for changed_inputs in odd_inputs(inputs):
        yield changed_inputs, params


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # of NumPy: overflow, division by zero
@pytest.mark.parametrize("name", standard_ops())
def test_a_call_ends_in_a_result_or_an_error_of_passkit(name: str) -> None:
    """A call raises an error of passkit, or gives a result of the inferred shape and dtype.

    A run may still raise one for the elements of an array, or for a missing input.
    """
    op = pk.get_op(name)
    for inputs, params in calls(op):
        xs = [pk.var(f"a{k}", shape, dtype) for k, (shape, dtype) in enumerate(inputs)]
        try:
            result = op(*xs, **params)
        except PasskitError as error:
            assert str(error)
            continue
        results = list(result) if isinstance(result, (tuple, list)) else [result]
        with suppress(FeedError, PassError):
            run(results, inputs)
        with suppress(PasskitError):
            differentiate(results, xs)


@pytest.mark.parametrize("name", [n for n in standard_ops() if pk.get_op(n).has_attr("FExample")])
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_inputs_of_unknown_rank_or_dtype_give_a_result_or_an_error_of_passkit(
    name: str, dtype: str
) -> None:
    """So do their gradients; one input is unknown, or the only known one, with a wrong rank."""
    op = pk.get_op(name)
    try:
        entries, params = op.get_attr("FExample")(pk.var("x", (), dtype).dtype)
    except PasskitError:
        return
    unknown = [pk.var(f"a{k}", None, e.dtype) for k, e in enumerate(entries)]
    for k, e in enumerate(entries):
        for x, others in (
            (pk.var("b", None, e.dtype), entries),
            (pk.var("b", e.shape, None), entries),
            (pk.var("b", (2, *e.shape), e.dtype), unknown),
            (pk.var("b", e.shape[1:], e.dtype), unknown),
        ):
            xs = [*others[:k], x, *others[k + 1 :]]
            with suppress(PasskitError):
                result = op(*xs, **params)
                differentiate(list(result) if isinstance(result, tuple) else [result], xs)


def test_gradients_need_the_dtypes_that_reductions_and_scans_read() -> None:
    """The message names the value, and says how to give it a dtype."""
    x, unknown = pk.var("x", (4, 6), "float16"), pk.var("u", (4, 6), None)
    loss = pk.ops.mean_squared_error(x, unknown)
    with pytest.raises(DTypeError, match=r"the dtype of square is not known here; give its var"):
        pk.gradients([loss], [x])


def test_recurrent_cells_need_a_state_of_rank_2() -> None:
    """Also where another input has an unknown rank, so that their shapes are not inferred."""
    x, h = pk.var("x", None), pk.var("h", (5,))
    kernel, recurrent, bias = pk.var("w", (4, 15)), pk.var("r", (5, 15)), pk.var("b", (15,))
    results = [
        pk.ops.gru_cell(x, h, kernel, recurrent, bias),
        pk.ops.lstm_block_cell(x, pk.var("c", (3, 5)), h, pk.var("w", None), pk.var("b", None))[0],
    ]
    for result in results:
        with pytest.raises(ShapeError, match=r"_cell.* needs a state of rank 2, got \(5,\)"):
            pk.gradients([result], [x])


def run(results: Sequence[pk.Entry], inputs: Inputs) -> None:
    """Interpret the results of a call on arrays of ones, if the shapes of inputs are known."""
    if any(None in shape for shape, _ in inputs):
        return
    graph = pk.Graph(results)
    ones = {f"a{k}": np.ones(shape, dtype) for k, (shape, dtype) in enumerate(inputs)}
    arrays = pk.interpret(graph, {x.name: ones[x.name] for x in graph.inputs if x.name in ones})
    for array, result in zip(arrays, results, strict=True):
        assert array.dtype == result.dtype.numpy, result
        assert array.shape == result.shape, result


def differentiate(results: Sequence[pk.Entry], inputs: Sequence[pk.Entry]) -> None:
    """Check that each gradient has the shape of its input, or an unknown one."""
    ys, xs = (
        [e for e in side if e.dtype is not None and e.dtype.is_float] for side in (results, inputs)
    )
    for dx, x in zip(pk.gradients(ys, xs) if ys and xs else (), xs, strict=False):
        assert dx.shape in (x.shape, None), (dx, x)
