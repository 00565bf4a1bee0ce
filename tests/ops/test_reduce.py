"""Reductions against NumPy: axes, shapes with zeros, NaN, limits of integers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import passkit as pk
from tests.ops.harness import TARGETS, Case, case, check

# name: the NumPy function, its relative error in sums of rounded values, the kinds of dtype
REDUCTIONS: dict[str, tuple[Any, float, str]] = {
    "reduce_sum": (lambda x, **k: np.sum(x, dtype=x.dtype, **k), 1e-6, "if"),
    "reduce_prod": (lambda x, **k: np.prod(x, dtype=x.dtype, **k), 1e-5, "if"),
    "reduce_mean": (np.mean, 1e-6, "f"),
    "reduce_max": (np.max, 0, "if"),
    "reduce_min": (np.min, 0, "if"),
    "reduce_any": (np.any, 0, "b"),
    "reduce_all": (np.all, 0, "b"),
}
DTYPES = {"b": [np.bool_], "i": [np.int32, np.int64], "f": [np.float32, np.float64]}
SHAPES: list[tuple[tuple[int, ...], list[Any]]] = [
    ((), [None, ()]),
    ((1,), [None, 0]),
    ((33,), [None, -1]),
    ((4, 5), [None, 0, 1, (0, 1), ()]),
    ((2, 3, 7), [0, 1, 2, (0, 2), (-1, 1)]),
    ((3, 1000), [0, 1]),
]
EMPTY: list[tuple[tuple[int, ...], Any]] = [((0,), 0), ((0, 3), 0), ((3, 0), 1)]


def values(dtype: Any, shape: tuple[int, ...]) -> Any:
    """Return normally distributed values; a third of the bools are True."""
    numbers = np.random.default_rng(5).normal(size=shape) * 2
    return np.asarray(numbers > 1 if np.dtype(dtype).kind == "b" else numbers.astype(dtype))


def reduce_cases(name: str) -> Iterator[Case]:
    """Yield all shapes and axes of one reduction, with and without keepdims."""
    reference, rtol, kinds = REDUCTIONS[name]
    op = pk.get_op(name)

    def one(array: Any, axis: Any, keepdims: bool) -> Case:
        return case(
            f"{name} axis={axis} keepdims={keepdims}",
            lambda x: op(x, axis=axis, keepdims=keepdims),
            lambda x: reference(x, axis=axis, keepdims=keepdims),
            array,
            rtol=rtol if array.dtype.kind == "f" else 0,
        )

    for dtype in (d for kind in kinds for d in DTYPES[kind]):
        for shape, axes in SHAPES:
            for axis in axes:
                yield one(values(dtype, shape), axis, len(shape) % 2 == 0)
        if name not in ("reduce_max", "reduce_min", "reduce_mean"):
            for shape, axis in EMPTY:
                yield one(np.zeros(shape, dtype), axis, False)
        yield one(np.zeros((3, 0), dtype), 0, True)
        if np.dtype(dtype).kind == "f":
            for special in ([1, np.nan, 2], [np.inf, 1], [-np.inf, np.nan], [-0.0, -0.0]):
                yield one(np.array([special * 9], dtype), 1, False)
        if np.dtype(dtype).kind == "i":
            limits = np.iinfo(dtype)
            yield one(np.array([limits.max, 1, limits.min, limits.max], dtype), 0, False)


@pytest.mark.parametrize("name", REDUCTIONS)
def test_interpreter_agrees_with_numpy(name: str) -> None:
    """A reduction has the results of NumPy, in the dtype of its input."""
    check("interpret", list(reduce_cases(name)))


@pytest.mark.parametrize("target", [t for t in TARGETS if t != "interpret"])
@pytest.mark.usefixtures("quick_kernels")
def test_kernels_agree_with_numpy(target: str) -> None:
    """Compiled reductions have the results of NumPy, all in one graph."""
    check(target, [c for name in REDUCTIONS for c in reduce_cases(name)])


def test_sixteen_bits_accumulate_in_32() -> None:
    """A sum of 16-bit floats is rounded once: the sum of 4096 ones is 4096, not 2048."""
    ones = np.ones(4096, np.float16)

    check("interpret", [case("sum", pk.ops.reduce_sum, lambda x: np.float16(4096), ones)])
    check("interpret", [case("mean", pk.ops.reduce_mean, lambda x: np.float16(1), ones)])


def test_a_sum_is_accumulated_in_double() -> None:
    """The interpreter's sum of float32 is the rounded float64 sum."""
    x = np.full(10_000_000 // 64, 0.1, np.float32)
    graph = pk.Graph([pk.ops.reduce_sum(pk.var("x", x.shape))])

    assert pk.interpret(graph, {"x": x})[0] == np.float32(np.sum(x, dtype=np.float64))


def test_user_defined_reduction() -> None:
    """A combination that NumPy does not have is applied pairwise, in order."""
    op = pk.register_op("test_reduce_last", num_inputs=1)
    op.set_attr("FInferShape", lambda node, shape: shape[:-1])
    op.set_attr(
        "FReduce",
        lambda node: pk.ast.Reduce(
            axes=(1,),
            keepdims=False,
            identity=pk.ast.const(0, pk.ast.dt.float32),
            combine=pk.ast.right(pk.ast.dt.float32) + 0.0 * pk.ast.left(pk.ast.dt.float32),
        ),
    )
    x = np.arange(15, dtype=np.float32).reshape(3, 5)

    check("interpret", [case("last", op, lambda a: a[:, -1], x)])


def test_user_defined_reduction_keeps_dimensions() -> None:
    """keepdims holds for a user-defined reduction, of no elements too."""
    op = pk.register_op("test_reduce_keep", num_inputs=1)
    f32 = pk.ast.dt.float32
    op.set_attr("FInferShape", lambda node, shape: (1, *shape[1:]))
    op.set_attr(
        "FReduce",
        lambda node: pk.ast.Reduce(
            axes=(0,),
            keepdims=True,
            identity=pk.ast.const(1, f32),
            combine=pk.ast.left(f32) * pk.ast.right(f32) + 0.0,
        ),
    )

    for n in (0, 3):
        x = np.full((n, 2), 2, np.float32)
        check("interpret", [case("keep", op, lambda a: np.prod(a, axis=0, keepdims=True), x)])


@pytest.mark.parametrize("name", ["reduce_max", "reduce_min", "reduce_sum", "reduce_prod"])
def test_interpreted_reductions_follow_freduce(name: str) -> None:
    """The interpreter computes an operator that has FReduce only as its combine step by step does.

    The single steps are computed by an operator whose FCodeGen is the expression of the step.
    """
    array = np.array([3, 9, 1, 4], np.float32)
    x = pk.var("x", (4,))
    reduction = pk.get_op(name).get_attr("FReduce")(getattr(pk.ops, name)(x).node)
    reduced = pk.register_op(f"test_reduce_by_{name}", num_inputs=1)
    reduced.set_attr("FInferShape", lambda node, shape: ())
    reduced.set_attr("FReduce", lambda node: reduction)
    step = pk.register_op(f"test_reduce_step_of_{name}", num_inputs=2)
    step.set_attr("TOpPattern", pk.OpPattern.ELEMWISE)
    step.set_attr("FCodeGen", lambda node, a, b: combined(reduction.combine, a, b))
    total = pk.constant(reduction.identity.value)
    for value in array:
        total = step(total, pk.constant(value))

    result, expected = pk.interpret(pk.Graph([reduced(x), total]), {"x": array})

    assert result == expected == getattr(np, name.removeprefix("reduce_"))(array)


def combined(combine: Any, a: Any, b: Any) -> Any:
    """Return the expression of a reduction's step for other operands than left and right."""
    if isinstance(combine, pk.ast.Call):
        return pk.ast.call(combine.name, a, b)
    assert combine in (
        pk.ast.left(combine.dtype) + pk.ast.right(combine.dtype),
        pk.ast.left(combine.dtype) * pk.ast.right(combine.dtype),
    )
    return pk.ast.binary(combine.op, a, b)


BAD = [
    (lambda x: pk.ops.reduce_sum(x, axis=2), r"axis 2 is out of range; there are axes -2 to 1"),
    (lambda x: pk.ops.reduce_sum(x, axis=(0, -2)), r"axis=\(0, -2\) has axis 0 twice"),
    (lambda x: pk.ops.reduce_sum(x, axis=0.5), "needs an int as axis, got 0.5"),
    (lambda x: pk.ops.reduce_sum(pk.var("s", ()), axis=0), "there are axes none: the input is a"),
    (
        lambda x: pk.ops.reduce_max(pk.var("e", (2, 0)), axis=1, name="m"),
        "reduce_max 'm': axis 1 must not be empty, as reduce_max has no identity, got 0",
    ),
]


@pytest.mark.parametrize("build, message", BAD)
def test_wrong_axes_are_refused(build: Any, message: str) -> None:
    """Invalid axes, and the maximum of no elements, are refused by name and value."""
    with pytest.raises(pk.ShapeError, match=message):
        build(pk.var("x", (2, 3)))


def test_maximum_of_no_elements_is_refused_at_a_call() -> None:
    """Where the extent is symbolic, the call is refused."""
    graph = pk.Graph([pk.ops.reduce_max(pk.var("x", (None,)), name="top")])

    with pytest.raises(pk.ShapeError, match="reduce_max 'top': axis 0 must not be empty"):
        pk.interpret(graph, {"x": np.zeros(0, np.float32)})


def test_keepdims_is_a_bool() -> None:
    """keepdims=1 is refused: a parameter has the type of its default."""
    with pytest.raises(pk.GraphError, match="reduce_sum needs a bool as keepdims, got 1"):
        pk.ops.reduce_sum(pk.var("x", (2,)), keepdims=1)


def test_reduction_over_no_axes_is_removed() -> None:
    """FSimplify replaces a reduction over no axes by its input."""
    x = pk.var("x", (2, 3))
    node = pk.ops.reduce_sum(x, axis=()).node

    assert node.op.get_attr("FSimplify")(node) is x
    assert node.op.get_attr("FSimplify")(pk.ops.reduce_sum(x, axis=0).node) is None
