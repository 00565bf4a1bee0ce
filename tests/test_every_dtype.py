"""Every dtype in compiled kernels: all numbers of 16 bits, all casts and reductions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from ml_dtypes import bfloat16

import passkit as pk
from passkit import ops

INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
NARROW = ["float16", "bfloat16"]
REAL = ["bool", *INTEGERS, *NARROW, "float32", "float64"]
EVERY = np.arange(65536, dtype=np.uint16)
EXACT_UNARY = [
    "neg",
    "abs",
    "sqrt",
    "floor",
    "rint",
    "sign",
    "relu",
    "reciprocal",
    "isnan",
    "square",
    "trunc",
    "ceil",
]

pytestmark = [
    pytest.mark.filterwarnings("ignore::RuntimeWarning"),
    pytest.mark.usefixtures("quick_kernels"),
]


def array_of(dtype: str) -> Any:
    """NumPy's type of a name."""
    return pk.var("x", (), dtype).dtype.numpy


def drawn(rng: Any, dtype: str, shape: tuple[int, ...]) -> Any:
    """Any bits of integers; of floats numbers of many sizes, NaN, infinities and -0."""
    kind = array_of(dtype)
    if dtype == "bool":
        return rng.random(shape) < 0.5
    if dtype in INTEGERS:
        info = np.iinfo(kind)
        x = rng.integers(info.min, info.max, shape, kind, endpoint=True)
        return np.where(rng.random(shape) < 0.1, kind.type(0), x)
    x = rng.standard_normal(shape) * np.exp2(rng.integers(-30, 34, shape))
    odd = rng.choice([np.nan, np.inf, -np.inf, -0.0, 0.5, 2.0**31, -(2.0**63), 65520.0], shape)
    return np.where(rng.random(shape) < 0.15, odd, x).astype(kind)


def same(result: Any, expected: Any) -> bool:
    """Whether dtypes, shapes and bits agree; one NaN is as good as another."""
    if result.dtype != expected.dtype or result.shape != expected.shape:
        return False
    nan = (result != result) & (expected != expected)
    bits = f"u{result.dtype.itemsize}"
    return bool((nan | (result.view(bits) == expected.view(bits))).all())


def check(outputs: dict[str, Any], feeds: dict[str, Any], fusion: str = "stitch") -> None:
    """Check that kernels give the interpreter's bits, and that no step runs in NumPy."""
    graph = pk.Graph(list(outputs.values()))
    exe = pk.compile(graph, fusion=fusion)
    result, expected = exe(feeds), pk.interpret(graph, feeds)

    assert {type(s).__name__ for s in exe.steps} <= {"LaunchStep", "CopyStep"}
    assert [k for k, a, b in zip(outputs, result, expected, strict=True) if not same(a, b)] == []


@pytest.mark.parametrize("dtype", NARROW)
def test_exact_operators_on_all_numbers_of_16_bits(dtype: str, rng: Any) -> None:
    """Exact operators on all 65,536, beside all in another order: denormals, NaN, -0, limits."""
    x, y = pk.var("x", ("n",), dtype), pk.var("y", ("n",), dtype)
    outputs = {
        "add 0": x + 0.0,
        "mul 1": x * 1.0000001,
        "add": x + y,
        "sub": x - y,
        "mul": x * y,
        "div": x / y,
        "div 3": x / 3.0,
        "less": x < y,
        "where": ops.where(ops.equal(x, y), x, -y),
        "chain": (x * y - x) * 0.5 + y / (x - 1.0),
    }
    outputs |= {name: getattr(ops, name)(x) for name in EXACT_UNARY}
    outputs |= {name: getattr(ops, name)(x, y) for name in ("maximum", "nextafter", "copysign")}
    outputs |= {f"cast {d}": ops.cast(x, d) for d in REAL}
    raw = array_of(dtype)
    feeds = {"x": EVERY.view(raw), "y": rng.permutation(EVERY).view(raw)}

    check(outputs, feeds)
    check({"chain": outputs["chain"]}, {k: v[:100] for k, v in feeds.items()}, fusion="none")


@pytest.mark.parametrize("dtype", NARROW)
def test_functions_of_16_bits_are_within_one_step(dtype: str) -> None:
    """Of all 65,536: the nearest, but where the true value is next to the middle of two."""
    names = ("exp", "expm1", "log", "log1p", "tanh", "sigmoid", "erf", "sin", "cos", "rsqrt")
    x = pk.var("x", ("n",), dtype)
    graph = pk.Graph([getattr(ops, name)(x) for name in names])
    feeds = {"x": EVERY.view(array_of(dtype))}

    for name, result, expected in zip(
        names, pk.compile(graph)(feeds), pk.interpret(graph, feeds), strict=True
    ):
        steps = result.view(np.int16).astype(int) - expected.view(np.int16)
        nan = (result != result) & (expected != expected)
        assert np.abs(np.where(nan, 0, steps)).max() <= 1, name
        assert np.mean(~nan & (steps != 0)) < 1e-3, name


def test_casts_between_all_dtypes_wrap_or_saturate(rng: Any) -> None:
    """Between all pairs: integers wrap, floats out of range saturate, NaN is 0, 0.3 is true.

    An integer that becomes a float and an integer again is rounded and saturates.
    """
    inputs = {d: pk.var(f"x_{d}", ("n",), d) for d in REAL}
    outputs = {f"{a} {b}": ops.cast(x, b) for a, x in inputs.items() for b in REAL if a != b}
    for a, b in [("int64", "float64"), ("uint64", "float64"), ("int32", "float32")]:
        outputs[f"{a} {b} {a}"] = ops.cast(ops.cast(inputs[a], b), a)
    outputs["int8 float32 uint8"] = ops.cast(ops.cast(inputs["int8"], "float32"), "uint8")

    check(outputs, {f"x_{d}": drawn(rng, d, (1500,)) for d in REAL})


def test_zeros_of_both_signs() -> None:
    """Of 0.0 and -0.0 extremes give the second, in float16 the first, as NumPy; relu gives 0.0."""
    outputs, feeds, expected = {}, {}, {}
    signs = np.tile([[0.0, -0.0, 0.0, -0.0], [-0.0, 0.0, 0.0, -0.0]], 10)
    for d in (*NARROW, "float32", "float64"):
        x, y = pk.var(f"x_{d}", (40,), d), pk.var(f"y_{d}", (40,), d)
        a, b = signs.astype(array_of(d))
        feeds |= {f"x_{d}": a, f"y_{d}": b}
        for name in ("maximum", "minimum", "fmax", "fmin"):
            outputs[f"{name} {d}"] = getattr(ops, name)(x, y)
            expected[f"{name} {d}"] = a if d == "float16" else b
        outputs[f"relu {d}"], expected[f"relu {d}"] = ops.relu(x), np.abs(a)
        outputs[f"cummax {d}"] = ops.cummax(x)
        expected[f"cummax {d}"] = a[:1].repeat(40) if d == "float16" else a
        outputs[f"sort {d}"], expected[f"sort {d}"] = ops.sort(x), a
    graph = pk.Graph(list(outputs.values()))
    compiled = [pk.compile(graph, target=t)(feeds) for t in ("cpu", "blocks")]
    for result in (*compiled, pk.interpret(graph, feeds)):
        assert [k for k, v in zip(outputs, result, strict=True) if not same(v, expected[k])] == []


def test_numbers_and_arrays_of_every_dtype(rng: Any) -> None:
    """Weak Python numbers, constants, wrapping, total division, selects and gathers."""
    outputs, feeds = {}, {}
    for d in REAL:
        x, y = pk.var(f"x_{d}", (5, 70), d), pk.var(f"y_{d}", (70,), d)
        feeds |= {f"x_{d}": drawn(rng, d, (5, 70)), f"y_{d}": drawn(rng, d, (70,))}
        table = drawn(rng, d, (5, 1))
        outputs[f"{d} table"] = ops.where(ops.equal(x, y), x, pk.constant(table))
        outputs[f"{d} moved"] = ops.transpose(ops.concat(x, x[::-1, ::2], axis=1))
        if d == "bool":
            outputs[d] = (x & y) | ~x
            continue
        outputs[d] = ops.maximum(x * y + 3, x - y) - 1
        outputs[f"{d} ordered"] = ops.where((x < y) & (x >= 2), x, ops.minimum(x, y))
        if d in INTEGERS:
            outputs[f"{d} divided"] = (x // y) * 2 + x % y
            outputs[f"{d} bits"] = (x & y) ^ ~(x | 5)

    check(outputs, feeds)


def test_loads_of_every_kind_are_exact(rng: Any) -> None:
    """Backwards, every second, strided, turned in blocks, and at indices that are data."""
    outputs, feeds = {}, {"i": rng.integers(0, 70, 33)}
    i = pk.var("i", (33,), "int64")
    for d in (*NARROW, "uint8", "int16"):
        shapes = {f"x_{d}": (80, 70), f"y_{d}": (70, 80), f"z_{d}": (80, 24)}
        x, y, z = (pk.var(name, shape, d) for name, shape in shapes.items())
        feeds |= {name: drawn(rng, d, shape) for name, shape in shapes.items()}
        turned = ops.transpose(x)
        outputs[f"{d} turned"] = ops.where(ops.equal(turned, y), y, turned)
        outputs[f"{d} turned near"] = ops.transpose(z)
        outputs[f"{d} back"], outputs[f"{d} second"] = x[:, ::-1], x[:, ::2]
        outputs[f"{d} strided"], outputs[f"{d} taken"] = x[::-1, 1::3], ops.take(y, i, axis=1)

    source = pk.compile(pk.Graph(list(outputs.values()))).source
    for name in ("turn(", "turn_rows<", "load_back(", "load_second(", "load_strided("):
        assert name in source
    assert "gather_at(" in source
    check(outputs, feeds)


@pytest.mark.parametrize("dtype", REAL)
def test_reductions_of_every_dtype_are_exact(dtype: str, rng: Any) -> None:
    """Over short rows, long rows, columns and all, with what is done to each element after."""
    names = ["reduce_any", "reduce_all"] if dtype == "bool" else ["reduce_max", "reduce_min"]
    names += ["reduce_sum", "reduce_prod"] if dtype in INTEGERS else []
    outputs, feeds = {}, {}
    for k, shape in enumerate(((40, 20), (6, 300), (300, 6), (3, 5, 70))):
        x = pk.var(f"x{k}", shape, dtype)
        feeds[f"x{k}"] = drawn(rng, dtype, shape)
        for name, axis in [(n, a) for n in names for a in (0, len(shape) - 1, None)][k % 2 :: 2]:
            total = getattr(ops, name)(x, axis=axis, keepdims=True)
            outputs[f"{shape} {name} {axis}"] = total
            outputs[f"{shape} {name} {axis} after"] = ops.where(ops.equal(x, total), x, total)

    check(outputs, feeds)


@pytest.mark.parametrize("dtype", NARROW)
def test_sums_of_16_bits_are_float32(dtype: str) -> None:
    """4,096 ones are 4,096, though the dtype cannot count to it; over rows and over columns."""
    x = pk.var("x", ("n", "m"), dtype)
    exe = pk.compile(pk.Graph([ops.reduce_sum(x, axis=k) for k in (0, 1)]))
    ones = np.ones((4096, 4096), array_of(dtype))

    for result in exe(x=ones):
        assert result.dtype == ones.dtype and (result == 4096).all()


@pytest.mark.parametrize("dtype", NARROW)
def test_composites_round_once(dtype: str, rng: Any) -> None:
    """A softmax of 16 bits is that of float32, rounded; and so are others, of every rank."""
    x = pk.var("x", ("n", 300), dtype)
    wide = ops.cast(x, "float32")
    names = ("softmax", "log_softmax", "logsumexp", "gelu", "silu", "reduce_variance")
    outputs = [(getattr(ops, n)(x), getattr(ops, n)(wide)) for n in names]
    given = {"scale": False, "center": False}
    outputs.append((ops.layer_norm(x, **given), ops.layer_norm(wide, **given)))
    feeds = {"x": rng.standard_normal((7, 300)).astype(array_of(dtype))}

    for once, apart in outputs:
        result, expected = pk.interpret(pk.Graph([once, ops.cast(apart, dtype)]), feeds)
        assert same(result, expected), once


def test_values_in_scratch_and_registers_are_rounded_as_unfused(rng: Any) -> None:
    """Softmax and layer norm of 16 bits, over short, long and first axes: rounded as unfused.

    Sums are float32 in the order of their kernel, which shows in one element of thousands.
    """
    for dtype in NARROW:
        outputs, feeds = [], {}
        for k, (shape, axis) in enumerate((((50, 20), 1), ((4, 700), 1), ((70, 40), 0))):
            x = pk.var(f"x{k}", shape, dtype)
            feeds[f"x{k}"] = rng.standard_normal(shape).astype(array_of(dtype))
            outputs.append(ops.softmax(x, axis=axis))
            outputs.append(ops.layer_norm(x, axis=axis, scale=False, center=False))
        graph = pk.Graph(outputs)
        fused, apart = (pk.compile(graph, fusion=f)(feeds) for f in ("stitch", "none"))

        for a, b, c in zip(fused, apart, pk.interpret(graph, feeds), strict=True):
            assert np.mean(a != b) < 2e-3
            ulp = float(np.spacing(np.float16(1)) if dtype == "float16" else 2.0**-7)
            np.testing.assert_allclose(a.astype(float), c.astype(float), rtol=ulp, atol=ulp / 64)


@pytest.mark.parametrize("dtype", REAL)
def test_calls_of_every_dtype(dtype: str, tmp_path: Any) -> None:
    """Strides, results that are given, files, and what is no array of the dtype."""
    kind = array_of(dtype)
    given = np.array([[0, 1, 0], [1, 1, 0]]).astype(kind)
    x = pk.var("x", (None, 3), dtype)
    s = pk.state("s", given)
    graph = pk.Graph([ops.concat(x, given, axis=0), ops.where(ops.equal(s, s), s, s)])
    exe = pk.compile(graph)
    exe.save(tmp_path / "m")
    loaded = pk.load(tmp_path / "m")
    other = "float64" if dtype != "float64" else "bfloat16"

    for run in (exe, loaded):
        for feed in (given, given[::-1, ::-1], np.asfortranarray(given), given[:0]):
            joined, kept = run(x=feed)
            assert joined.dtype == kept.dtype == kind
            assert joined.tobytes() == np.concatenate([feed, given]).tobytes()
        out = [np.empty((4, 3), kind), np.empty((2, 3), kind)]
        assert run({"x": given}, out=out)[0] is out[0]
    with pytest.raises(pk.PasskitError, match=f"'x' needs {dtype}.*, got {other}.*astype"):
        exe(x=given.astype(array_of(other)))
    for again in (pk.from_json(pk.to_json(graph)), pk.parse(pk.to_text(graph))):
        assert again.key == graph.key
    assert np.asarray(pk.jit(lambda v: ops.concat(v, v, axis=0))(given)).dtype == kind


def test_results_in_bfloat16_have_the_dtype_of_ml_dtypes() -> None:
    """A call returns arrays of ml_dtypes' bfloat16."""
    x = pk.var("x", ("n",), "bf16")
    (result,) = pk.compile(pk.Graph([x * 2]))(x=np.array([1.5, -3], bfloat16))

    assert result.dtype == bfloat16 and result.tolist() == [3, -6]
