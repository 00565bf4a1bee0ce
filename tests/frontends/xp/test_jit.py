"""`jit` of functions of arrays: traced once for each form of the arguments, then one operation."""

from __future__ import annotations

import gc
import weakref
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import passkit as pk
from passkit import xp
from passkit.errors import ConcretizationError, GraphError, SettingError

X = np.array([1.0, 2.0, 3.0])


def test_a_function_is_traced_once_for_each_form() -> None:
    """Structure, shapes, dtypes, and values that are no arrays decide; elements do not."""
    traced: list[Any] = []

    @pk.jit
    def f(tree: Any, factor: float = 2.0, *, mode: str = "sum") -> Any:
        """Doc."""
        traced.append(mode)
        total = xp.sum(tree["a"] * factor) + tree["b"][0]
        return {"total": total, "mode": mode, "n": tree["a"].shape[0], "none": None}

    for k in range(3):
        out = f({"a": xp.asarray(X + k), "b": [xp.asarray(1.0)]})
        assert float(out["total"]) == 13 + 6 * k
    assert (out["mode"], out["n"], out["none"], f.__name__) == ("sum", 3, None, "f")
    assert len(traced) == 1
    assert float(f({"a": X, "b": [xp.asarray(1.0)]}, 3.0)["total"]) == 19
    assert f({"a": xp.asarray(X), "b": [xp.asarray(1.0)]}, mode="mean")["mode"] == "mean"
    f({"a": xp.asarray(X[:2]), "b": [xp.asarray(1.0)]})
    f({"a": xp.asarray(X, dtype=xp.float32), "b": [xp.asarray(1.0)]})
    f({"a": xp.asarray(X), "b": (xp.asarray(1.0),)})
    assert len(traced) == 6


@pytest.mark.usefixtures("xp_queue", "quick_kernels")
def test_numbers_and_sizes_share_a_plan() -> None:
    """Another number or size calls the function again, and compiles nothing."""
    f = pk.jit(lambda x, rate: xp.exp(-x) * rate + rate**2 * xp.sum(x))
    explorations = []
    for k in range(6):
        x = np.arange(20.0 + k)
        result = f(xp.asarray(x), 0.5 + k)
        assert "pending" in repr(result)
        np.testing.assert_allclose(result, np.exp(-x) * (0.5 + k) + (0.5 + k) ** 2 * x.sum())
        explorations.append(xp.stats()["explorations"])

    assert explorations[1:] == explorations[:-1]


@pytest.mark.usefixtures("xp_queue", "quick_kernels")
def test_a_jitted_function_fuses_with_its_neighbours() -> None:
    """Operations around a call run in the same kernel; a large function begins a new plan."""
    f = pk.jit(lambda x: xp.tanh(x) * 2)
    with xp.inspect() as runs:
        x = xp.asarray(np.ones(1000)) + 1
        y = xp.sum(f(x) + f(x * 3))
        assert abs(float(y) - 4000) < 200
    assert len(runs) == 1 and len(runs[0].kernels) <= 2

    def many(x: Any) -> Any:
        for k in range(30):
            x = x + k
        return x

    g = pk.jit(many)
    with xp.inspect() as runs:
        for _ in range(4):
            x = g(x)
        np.testing.assert_allclose(x, 2 + 4 * 435)
    assert len(runs) == 4
    assert runs[0].reason == "the next iteration begins"


def test_arrays_from_outside_are_those_of_the_first_call() -> None:
    """They are kept, and in-place operations on them do not reach the function."""
    scale = xp.asarray(X)
    pending = xp.arange(1000.0) * 2
    f = pk.jit(lambda x: (x * scale, xp.sum(x) * pending[:3], scale))
    f(xp.asarray(X))
    scale *= 10
    scale[0] = 0.0
    pending += 1
    xp.eval(scale, pending)

    a, b, c = f(xp.asarray(X * 2))
    assert a.tolist() == [2.0, 8.0, 18.0] and b.tolist() == [0.0, 24.0, 48.0]
    assert c.tolist() == [1.0, 2.0, 3.0]


def test_transformations_nest() -> None:
    """Gradients of jitted functions, jitted gradients, and vectorized ones."""
    x = xp.asarray(X)
    cube = pk.jit(lambda x: xp.sum(x**3))

    assert pk.grad(cube)(x).tolist() == [3.0, 12.0, 27.0]
    assert pk.jit(pk.grad(cube))(x).tolist() == [3.0, 12.0, 27.0]
    assert pk.jit(pk.vmap(pk.grad(lambda a: a**3)))(x).tolist() == [3.0, 12.0, 27.0]
    assert pk.vmap(pk.jit(pk.grad(lambda a: a**3)))(x).tolist() == [3.0, 12.0, 27.0]

    def loss(x: Any) -> Any:
        inner = pk.jit(lambda y: xp.sum(x * y))  # uses an array that is traced
        return inner(x) + inner(x * 2)

    assert pk.grad(loss)(x).tolist() == [6.0, 12.0, 18.0]
    kept: list[Any] = []

    def outer(x: Any) -> Any:
        if not kept:
            kept.append(pk.jit(lambda y: y * x))
        return xp.sum(kept[0](x))

    pk.grad(outer)(x)
    with pytest.raises(ConcretizationError, match="grad of outer, which has ended"):
        kept[0](x)


def test_functions_without_array_results() -> None:
    """A function may return what is no array; it is remembered too."""
    calls: list[int] = []

    @pk.jit
    def f(x: Any) -> Any:
        calls.append(1)
        return {"shape": x.shape}

    assert f(xp.asarray(X)) == f(xp.asarray(X)) == {"shape": (3,)}
    assert len(calls) == 1


def test_the_number_of_traces_is_limited() -> None:
    """A function that is called with ever new numbers forgets the first ones."""
    f = pk.jit(lambda x, k: x + k)
    x = xp.asarray(X)
    for k in range(300):
        f(x, k)

    assert len(f._of_arrays.traces) == 256
    assert f(x, 0).tolist() == X.tolist()


def test_refusals() -> None:
    """Arguments that are neither arrays nor hashable, and options, are refused."""
    x = xp.asarray(X)
    with pytest.raises(
        GraphError, match=r"jit of <lambda>: argument args\[1\] must be .* got \{1\}"
    ):
        pk.jit(lambda x, y: x)(x, {1})
    with pytest.raises(SettingError, match="option 'target' is for functions of entries"):
        pk.jit(lambda x: x, target="interpret")(x)
    with pytest.raises(ConcretizationError, match=r"test_jit.py:\d+: bool .* jit of <lambda>"):
        pk.jit(lambda x: x if x[0] else -x)(x)
    assert pk.jit(lambda x: x * 2)(X.astype(np.float32)).tolist() == [2.0, 4.0, 6.0]


def test_constants_of_repeated_calls_are_compared() -> None:
    """A call with another number, text or type of number is traced; an equal one is not."""
    traced: list[Any] = []

    @pk.jit
    def scaled(p: Any, factor: Any, *, kind: str = "a") -> Any:
        traced.append((factor, kind))
        return {"x": p["x"] * factor, "kind": kind, "none": None}

    p = {"x": xp.asarray([1.0, 2.0])}
    constants = [(2, "a"), (2, "a"), (2.0, "a"), (True, "a"), (2.5, "a"), (2.5, "b"), (2.5, "b")]
    for factor, kind in constants * 2:
        result = scaled(p, factor, kind=kind)
        assert result["kind"] == kind and result["none"] is None
        np.testing.assert_allclose(result["x"].numpy(), np.asarray([1.0, 2.0]) * factor)
    assert traced == [(2, "a"), (2.0, "a"), (True, "a"), (2.5, "a"), (2.5, "b")]
    assert [type(factor) for factor, _ in traced] == [int, float, bool, float, float]


def test_repeated_calls_notice_other_forms() -> None:
    """Types, shapes, keys and their order, and NumPy arrays in place of arrays, are noticed."""
    traced = []

    @pk.jit
    def total(p: Any) -> Any:
        traced.append(p)
        return sum((xp.sum(x) * k for k, x in enumerate(p.values(), 1)), start=xp.zeros(()))

    a, b = np.arange(4.0), np.arange(6.0)
    for _ in range(3):
        for first, second in ((a, b), (b, a), (a.astype(np.float32), b)):
            for names in ("xy", "yx"):
                arrays = dict(zip(names, map(xp.asarray, (first, second)), strict=True))
                for _ in range(3):
                    assert float(total(arrays)) == np.sum(first) + 2 * np.sum(second)
                mixed = {names[0]: arrays[names[0]], names[1]: second}
                assert float(total(mixed)) == np.sum(first) + 2 * np.sum(second)
    assert len(traced) == 6


def test_arguments_of_the_first_call_are_freed() -> None:
    """A trace keeps the arrays that the function uses, and none of its arguments."""
    used = xp.asarray(np.ones(500))
    compiled = pk.jit(lambda x: x * used + 1)
    x = xp.asarray(np.arange(500.0))
    buffers = [weakref.ref(np.asarray(x))]
    assert float(xp.sum(compiled(x))) == 499 * 250 + 500
    with xp.stream():
        x = xp.asarray(np.zeros(500))
        assert float(xp.sum(compiled(x))) == 500
    gc.collect()
    assert all(reference() is None for reference in buffers)


def test_threads_call_one_compiled_function() -> None:
    """Each records the program in its own stream."""
    compiled = pk.jit(lambda p, number: {"y": p["x"] * number + 1.0})

    def work(number: int) -> None:
        for k in range(60):
            x = np.full(300 + number, float(k))
            y = compiled({"x": xp.asarray(x)}, float(number))["y"]
            np.testing.assert_allclose(y.numpy(), x * number + 1)

    with ThreadPoolExecutor(4) as pool:
        for future in [pool.submit(work, number) for number in range(4)]:
            future.result()
