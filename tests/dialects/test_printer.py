"""The printer: goldens in three languages, precedence, literals, and a custom dialect."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from attrs import evolve

import passkit as pk
from passkit import ast, dialects
from passkit.ast import Binary, Expr
from passkit.ast.stage import Buffer, Fold, KernelAST, Level, Loop, Part, Phase, Place, Stage, Store
from passkit.dialects import CXX, Dialect, dialect_of, register_dialect
from passkit.errors import CodeGenError, RegistryError
from passkit.graph.kernel import Kernel
from passkit.passes.rtcgen import FLAGS, sections_of
from passkit.runtime.evaluate import evaluate
from passkit.runtime.native.build import build
from passkit.runtime.native.units import KernelText
from passkit.target import Target, target_of
from passkit.transforms.printing import print_kernel
from passkit.values import dtype as dt
from passkit.values.size import evaluate as number
from tests.dialects.plain_c import PLAIN, call, compiled
from tests.planned import feeds_of, plan

GOLDEN = Path(__file__).parents[1] / "golden"
SUFFIX = {"cxx": "cpp", "opencl": "cl", "cuda": "cu"}


def softmax(shape: str, axis: int) -> str:
    """Return a softmax in primitive operators."""
    e = f"e = exp(sub(x, reduce_max(x, axis={axis}, keepdims=true)))"
    return f"x: f32[{shape}]; {e}; return div(e, reduce_sum(e, axis={axis}, keepdims=true))"


PROGRAMS = {
    "softmax_last": softmax("n, 300", 1),
    "softmax_first": softmax("300, n", 0),
    "layer_norm_last": "x: f32[n, 300]; g: f32[300]; b: f32[300]; return layer_norm(x, g, b)",
    "layer_norm_first": "x: f32[300, n]; g: f32[300]; b: f32[300];"
    "return layer_norm(x, g, b, axis=0)",
    "gelu": "x: f32[n]; return gelu(x)",
}
GOLDENS = PROGRAMS | {
    "center_f16": "x: f16[n, 304]; return sub(x, reduce_mean(x, axis=1, keepdims=true))",
    "scale_bf16": "x: bf16[n]; y: u8[n]; return add(mul(x, 3), cast(y, dtype=dtype(bf16)))",
    "packed": "x: f32[300]; y: f32[m, 300]; z: f64[150, n]; w: f32[200]; g: f32[100]; "
    "one = add(x, 1); two = reduce_sum(y, axis=1); three = reduce_sum(z, axis=0); "
    "four = add(w, 1); five = sub(g, exp(g)); return one, two, three, four, five",
    "phased": "x: f32[n, 300]; one = reduce_mean(x, axis=0); two = sub(x, one); "
    "three = reduce_max(abs(two), axis=1, keepdims=true); four = div(two, three); return four",
}
"""These, programs with types that not every language has, a pack, and one with phases."""
PARTS = ["one", "two", "three", "four", "five"]


def kernel_of(text: str, target: str | Target) -> Kernel:
    """Return the only kernel of a program."""
    parts = [name for name in PARTS if f"{name} = " in text]
    (kernel,) = plan(text, target=target, keep_together=[parts]).attrs["kernel"].values()
    return kernel  # type: ignore[no-any-return]


@pytest.mark.parametrize("target", ["cpu", "opencl", "cuda"])
@pytest.mark.parametrize("name", GOLDENS)
def test_goldens(name: str, target: str, golden: Callable[[Path, str], None]) -> None:
    """Each program is one kernel, in every language, as kept in tests/golden."""
    kernel = kernel_of(GOLDENS[name], target)
    text = kernel.source.replace(kernel.name, name)

    once = text.count(name) == 1 or name in ("packed", "phased")
    assert once and text.count("{") == text.count("}")
    golden(GOLDEN / f"{name}.{SUFFIX[kernel.dialect]}", text)


def test_tables_of_built_in_dialects_are_found_by_name() -> None:
    """They are imported when they are used; there are no others."""
    assert [getattr(dialects, n) for n in ("CUDA", "CXX", "OPENCL")] == [
        dialect_of(n) for n in ("cuda", "cxx", "opencl")
    ]
    with pytest.raises(AttributeError, match="'passkit.dialects' has no attribute 'METAL'"):
        dialects.METAL  # type: ignore[attr-defined]  # noqa: B018


OWN_CUDA = """
from attrs import evolve
from passkit.dialects import CXX, dialect_of, register_dialect
own = register_dialect(evolve(CXX, name="cuda"))
import passkit.dialects.cuda
print(dialect_of("cuda") is own)
"""


def test_a_built_in_dialect_does_not_replace_one_of_the_user() -> None:
    """A dialect that is registered by a built-in name stays when the built-in one is imported."""
    environ = {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[2])}
    command = [sys.executable, "-c", OWN_CUDA]
    done = subprocess.run(command, env=environ, capture_output=True, text=True, check=True)

    assert done.stdout == "True\n"


def test_a_dialect_of_twenty_lines(tmp_path: Path, rng: Any) -> None:
    """A dialect with few templates prints a softmax that compiles and runs."""
    register_dialect(
        Dialect(
            name="test_twenty",
            kernel="void {name}({params})",
            buffer="{const}{type} *{name}",
            size="int64_t {name}",
            scratch="static {type} {name}[1 << 20];",
            grid="for (int64_t {var} = {start}; {var} < {stop}; ++{var})",
            lane="for (int64_t {var} = {start}; {var} < {stop}; ++{var})",
            fold="{type} {name} = {acc};",
            calls={"maximum": "fmaxf", "exp": "expf"},
        )
    )
    target = evolve(target_of("opencl"), name="test_twenty", dialect="test_twenty")
    for shape, axis in (((7, 300), 1), ((300, 7), 0)):
        text = softmax(", ".join(map(str, shape)), axis)
        kernel, x = kernel_of(text, target), rng.normal(size=shape).astype(np.float32)
        y, sizes = np.empty_like(x), tuple(number(n, {}) for n in kernel.sizes)
        call(compiled(kernel.source, tmp_path), kernel.name, [x, y], sizes)
        np.testing.assert_allclose(y, pk.interpret(pk.parse(text), {"x": x})[0], rtol=2e-6)


def test_the_same_text_serves_all_rows(tmp_path: Path, rng: Any) -> None:
    """Programs that are printed as plain C agree with the interpreter, for several sizes."""
    target = evolve(target_of("opencl"), name="plain_c", dialect=PLAIN.name)
    kernels = {name: kernel_of(text, target) for name, text in PROGRAMS.items()}
    library = compiled("\n".join(k.source for k in kernels.values()), tmp_path)
    for name, kernel in kernels.items():
        graph = pk.parse(PROGRAMS[name])
        for n in (1, 13):
            feeds = feeds_of(graph, rng, n=n)
            sizes = tuple(number(s, {"n": n}) for s in kernel.sizes)
            (expected,) = pk.interpret(graph, feeds)
            y = np.empty_like(expected)
            call(library, kernel.name, [*feeds.values(), y], sizes)
            np.testing.assert_allclose(y, expected, rtol=2e-5, atol=2e-6)


# Precedence: expressions as trees, printed, compiled and compared with what the trees mean.

VALUES: dict[str, list[Any]] = {
    "int64": [0, 1, -1, 2, 3, -7, 1 << 40, np.iinfo(np.int64).min],
    "float64": [0.0, -0.0, 1.5, -2.0, 1e300, np.inf, 0.1],
    "bool": [False, True],
}
ARITHMETIC = {
    "int64": ["+", "-", "*", "//", "%", "&", "|", "^"],
    "float64": ["+", "-", "*", "/"],
    "bool": ["&", "|", "^"],
}
TYPES = {"int64": dt.int64, "float64": dt.float64, "bool": dt.bool_}


def tree(rng: random.Random, kind: str, depth: int) -> Expr:
    """Return a random expression of a dtype."""
    dtype = TYPES[kind]
    if depth == 0 or rng.random() < 0.1:
        k = rng.randrange(len(VALUES[kind]))
        if rng.random() < 0.4:
            return ast.const(VALUES[kind][k], dtype)
        return ast.Load(f"{dtype.short}s", ast.const(k, dt.int64), dtype)
    which = rng.random()
    if which < 0.15:
        return ast.Unary("~" if kind == "bool" else "-", tree(rng, kind, depth - 1), dtype)
    if which < 0.3:
        return ast.where(
            tree(rng, "bool", depth - 1), tree(rng, kind, depth - 1), tree(rng, kind, depth - 1)
        )
    if kind == "bool" and which < 0.7:
        other = rng.choice(["int64", "float64", "bool"])
        ops = ["==", "!="] if other == "bool" else ["<", "<=", ">", ">=", "==", "!="]
        return Binary(
            rng.choice(ops), tree(rng, other, depth - 1), tree(rng, other, depth - 1), dt.bool_
        )
    op = rng.choice(ARITHMETIC[kind])
    return Binary(op, tree(rng, kind, depth - 1), tree(rng, kind, depth - 1), dtype)


def whole(tile: Loop, stage: Stage) -> Phase:
    """Return a phase of one stage."""
    return Phase(tile, (Part((), None, (), (stage,)),))


def program(values: list[Expr]) -> KernelAST:
    """Return a kernel that stores each expression in the output of its dtype, at its position."""
    body = tuple(
        Store(f"{x.dtype.short}_out", ast.const(k, dt.int64), x) for k, x in enumerate(values)
    )
    tile = Loop(
        ast.Var("tile", dt.int64), ast.const(0, dt.int64), ast.const(1, dt.int64), Level.GRID
    )
    buffers = [Buffer(f"{t.short}s", t, Place.GLOBAL, 8) for t in TYPES.values()]
    buffers += [
        Buffer(f"{t.short}_out", t, Place.GLOBAL, len(values), True) for t in TYPES.values()
    ]
    return KernelAST(tuple(buffers), (), (), (whole(tile, Stage("s", (), body)),))


def run(values: list[Expr], folder: Path) -> list[Any]:
    """Return the values of printed expressions, compiled as C."""
    library = compiled(print_kernel(program(values), "f", PLAIN), folder)
    inputs = [np.array(VALUES[k], t.numpy) for k, t in TYPES.items()]
    outs = {t.short: np.zeros(len(values), t.numpy) for t in TYPES.values()}
    call(library, "f", [*inputs, *outs.values()])
    return [outs[x.dtype.short][k] for k, x in enumerate(values)]


def test_precedence(tmp_path: Path) -> None:
    """1,500 random expressions have equal values in C: no parenthesis is missing."""
    rng = random.Random(1)
    trees = [tree(rng, rng.choice(list(TYPES)), rng.randrange(2, 6)) for _ in range(1500)]
    inputs = {f"{t.short}s": np.array(VALUES[k], t.numpy) for k, t in TYPES.items()}

    for x, actual in zip(trees, run(trees, tmp_path), strict=True):
        with np.errstate(all="ignore"):
            expected = np.asarray(evaluate(x, {}, inputs))
        same = actual.tobytes() == expected.tobytes() or (actual != actual and expected != expected)
        assert same, (x, actual, expected)


def text_of(x: Expr) -> str:
    """Return an expression in plain C."""
    (line,) = [s for s in print_kernel(program([x]), "f", PLAIN).splitlines() if "_out[" in s]
    return line.split(" = ", 1)[1].rstrip(";")


def test_parentheses_are_minimal() -> None:
    """Sums of products have none; the order of float operations is kept."""
    a, b, c = (ast.Var(n, dt.float64) for n in "abc")
    i, j = ast.Var("i", dt.int64), ast.Var("j", dt.int64)

    assert text_of(a * b + c) == "a * b + c"
    assert text_of((a + b) * c) == "(a + b) * c"
    assert text_of(a + (b + c)) == "a + (b + c)"
    assert text_of(i + (j + i)) == "i + j + i"
    assert text_of(i * (j * i)) == "i * j * i"
    assert text_of(i * (j // 4)) == "i * (j / 4)"
    assert text_of(i * (j % 4)) == "i * (j % 4)"
    assert text_of(i + j // 4) == "i + j / 4"
    assert text_of(a - (b - c)) == "a - (b - c)"
    assert text_of(-(-a)) == "-(-a)"  # noqa: B002
    assert text_of(ast.where(a < b, a, b) + c) == "(a < b ? a : b) + c"


LITERALS = [1e-8, 1e-7, 1e20, 0.1, -0.0, 1 / 3, 5e-324, 1.7976931348623157e308, np.inf, -np.inf]


def test_literals(tmp_path: Path) -> None:
    """Numbers, infinities and NaNs with a payload keep their bits; so does the lowest integer."""
    nan = np.array([0x7FF8000000000123], np.uint64).view(np.float64)[0]
    whole = [np.iinfo(np.int64).min, np.iinfo(np.int64).max, -1, 1 << 31]
    values = [ast.const(v, dt.float64) for v in (*LITERALS, nan)]
    values += [ast.const(v, dt.int64) for v in whole]

    for x, actual in zip(values, run(values, tmp_path), strict=True):
        assert isinstance(x, ast.Const) and actual.tobytes() == x.bits


@pytest.mark.parametrize("bits", [0x7FC00001, 0xFFC00000, 0x80000000, 0x00000001, 0x7F800000])
def test_literals_of_float32(bits: int, rng: Any) -> None:
    """Vectors in C++ keep the bits of NaN with a payload, -0, denormals and infinity."""
    value = np.array([bits], np.uint32).view(np.float32)[0]
    op = pk.register_op(f"test_printer_{bits:x}", num_inputs=1)
    op.set_attr("FCodeGen", lambda node, x: ast.where(x < x, x, ast.const(value, dt.float32)))
    op.set_attr("TOpPattern", pk.OpPattern.ELEMWISE)
    (y,) = pk.compile(pk.Graph([op(pk.var("x", (5,), "float32"))]))(x=np.ones(5, np.float32))

    assert y.view(np.uint32).tolist() == [bits] * 5


@pytest.mark.parametrize("dtype", ["i8", "u8", "i32", "i64"])
def test_integer_division(dtype: str) -> None:
    """``//`` and ``%`` of kernels round toward zero; by zero they are 0, the lowest by -1 wraps."""
    for name, f in (("q", lambda node, a, b: a // b), ("r", lambda node, a, b: a % b)):
        op = pk.register_op(f"test_printer_{name}", num_inputs=2)
        if not op.has_attr("FCodeGen"):
            op.set_attr("FCodeGen", f).set_attr("TOpPattern", pk.OpPattern.BROADCAST)
    t = f"{dtype}[n]"
    graph = pk.parse(f"x: {t}; y: {t}; return test_printer_q(x, y), test_printer_r(x, y)")
    kind = graph.inputs[0].entries[0].dtype.numpy
    low = np.iinfo(kind).min
    x = np.array([7, 7, 9, 5, low, low] * 4).astype(kind)
    y = np.array([2, 100, 4, 0, 1, 2] * 2 + [-2, -3, -1, 0, -1, -2] * 2).astype(kind)

    for actual, expected in zip(
        pk.compile(graph)(x=x, y=y), pk.interpret(graph, {"x": x, "y": y}), strict=True
    ):
        assert actual.tolist() == expected.tolist()


def test_scalar_integer_division_by_zero() -> None:
    """A quotient of scalars by 0 does not abort the process, either."""
    exe = pk.compile(pk.parse("x: i64[]; y: i64[]; return floor_div(x, y), mod(x, y)"))

    assert [int(a) for a in exe(x=np.int64(7), y=np.int64(0))] == [0, 0]
    assert [int(a) for a in exe(x=np.int64(-7), y=np.int64(2))] == [-4, 1]


@pytest.mark.parametrize("dtype", ["i8", "i16", "u8", "u32", "i64"])
def test_single_numbers(dtype: str) -> None:
    """Scalars in functions have their own type, although C promotes them to int."""
    text = f"""x: {dtype}[]; y: {dtype}[]; a = floor_div(x, 0); b = mod(add(x, y), mul(y, 2))
    return a, b, maximum(where(less(x, y), y, 2), 3), minimum(add(x, x), mul(y, 2))"""
    graph = pk.parse(text)
    kind = graph.inputs[0].entries[0].dtype.numpy.type
    feeds = {"x": kind(7), "y": kind(3)}

    for actual, expected in zip(pk.compile(graph)(feeds), pk.interpret(graph, feeds), strict=True):
        assert (actual.dtype, actual) == (expected.dtype, expected)


def test_errors_of_dialects() -> None:
    """Unknown types, dialects and expressions are errors."""
    with pytest.raises(RegistryError, match="dialect cxx has no type for complex64; cast to"):
        CXX.type_of(dt.complex64)
    with pytest.raises(RegistryError, match="dialect 'cudo' is not registered; did you mean"):
        dialect_of("cudo")

    class Odd(Expr):
        """An expression that no printer knows."""

        dtype = dt.int64

    with pytest.raises(CodeGenError, match="the C printer does not know Odd"):
        print_kernel(program([Odd()]), "f", PLAIN)
    assert dialect_of(PLAIN) is PLAIN


def test_vector_loops_have_no_reads() -> None:
    """A read by axes cannot be printed: lowering has turned it into a load."""
    lane = ast.Var("i", dt.int64)
    loop = Loop(lane, ast.const(0, dt.int64), ast.const(32, dt.int64), Level.CTA)
    store = Store("f64_out", lane, ast.Read(0, (lane,), dt.float64))
    phase = whole(program([]).phases[0].tile, Stage("s", (loop,), (store,)))
    with pytest.raises(CodeGenError, match="vector loops have no Read"):
        print_kernel(evolve(program([]), phases=(phase,)), "f", CXX)


def test_registers_are_for_vectors() -> None:
    """A row in registers requires a dialect with vectors."""
    simple = program([])
    kept = evolve(simple, scratch=(Buffer("r0", dt.float32, Place.LANES, 16),))
    with pytest.raises(CodeGenError, match="dialect plain_c keeps no row in registers"):
        print_kernel(kept, "f", PLAIN)


def test_strided_stores() -> None:
    """A vector is stored to consecutive or evenly spaced elements."""
    lane = ast.Var("i", dt.int64)
    loop = Loop(lane, ast.const(0, dt.int64), ast.const(32, dt.int64), Level.CTA)
    store = Store("f64_out", lane * lane, ast.const(1.0, dt.float64))
    phase = program([]).phases[0]
    bad = evolve(program([]), phases=(whole(phase.tile, Stage("s", (loop,), (store,))),))
    with pytest.raises(CodeGenError, match="store to f64_out must step along the lanes, got .*'i'"):
        print_kernel(bad, "f", CXX)


def test_aliased_buffers_have_no_vectors() -> None:
    """A dialect with vectors has no template for buffers that share memory."""
    dialect = evolve(CXX, name="cxx_restrict", aliased="{const}{type} *{name}")
    with pytest.raises(CodeGenError, match="dialect cxx_restrict has both vectors and a spelling"):
        print_kernel(program([]), "f", dialect, frozenset(["f64_out"]))


def test_reductions_may_divide() -> None:
    """A division in a combine function is printed as it is: reciprocals are for loops only."""
    a, b = ast.left(dt.float64), ast.right(dt.float64)
    x, zero = ast.Load("f64s", ast.Var("i", dt.int64), dt.float64), ast.const(0.0, dt.float64)
    fold = Fold(ast.Var("s", dt.float64), x / 3.0, zero, (a + b) / 3.0)
    loop = Loop(ast.Var("i", dt.int64), ast.const(0, dt.int64), ast.const(99, dt.int64), Level.CTA)
    phase = whole(program([]).phases[0].tile, Stage("s", (loop,), (fold,)))
    lines = print_kernel(evolve(program([]), phases=(phase,)), "f", CXX).splitlines()

    (joined,) = [k for k, line in enumerate(lines) if "return (a + b) / 3.0;" in line]
    assert "known_divisor<double> by0(3.0, " in lines[joined + 1]
    assert lines[joined + 3].strip() == "s_lanes.take(load(f64s + i, m) / by0.among(m, k), m, k);"


@pytest.mark.parametrize(
    ("text", "packs"),
    [
        ("x: f32[n, 300]; return div(x, reduce_max(x, axis=1, keepdims=true))", True),
        ("x: f32[n, 300]; m = reduce_max(x, axis=1, keepdims=true); return exp(div(x, m))", False),
        ("x: f64[n, 300]; return div(x, reduce_max(x, axis=1, keepdims=true))", False),
        ("x: f32[n, 300]; return mul(x, reduce_max(x, axis=1, keepdims=true))", False),
        ("x: f32[n]; return div(x, 3)", False),
        ("x: f32[n]; y: f32[n]; return div(x, y)", False),
    ],
    ids=["divided", "slow as it is", "double", "multiplied", "known", "each by its own"],
)
def test_packs_are_divided_by_one_number(text: str, packs: bool) -> None:
    """Some vectors of an interleaved loop are divided, and the others multiplied meanwhile."""
    stages = kernel_of(text, "cpu").source.split("lanes")
    assert stages[-1].startswith("<64>(") == packs


def test_the_golden_compiles() -> None:
    """The golden C++ kernels compile."""
    texts = {p.stem: p.read_text() for p in GOLDEN.glob("*.cpp")}
    addresses = build(
        (
            KernelText(f"golden {n}", n, f"namespace pk {{\n{t}}}\n", sections_of(t))
            for n, t in texts.items()
        ),
        FLAGS,
    )

    assert len(addresses) == len(GOLDENS) and all(addresses.values())
