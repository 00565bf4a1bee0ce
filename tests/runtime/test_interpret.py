"""The interpreter: results, state, sizes, fused nodes, operators by attributes, and errors."""

from __future__ import annotations

import gc
import time
import warnings
import weakref
from typing import Any

import numpy as np
import pytest

import passkit as pk
from passkit.errors import FeedError, ShapeError

f32 = np.float32


def run(text: str, **feeds: Any) -> list[Any]:
    """The outputs of a graph given as text."""
    return pk.interpret(pk.parse(text), feeds)


def custom(name: str, **attrs: Any) -> pk.Op:
    """An operator of one input with some attributes."""
    op = pk.register_op(name, num_inputs=1)
    for key, value in attrs.items():
        op.set_attr(key, value)
    return op


def test_outputs_are_new_arrays() -> None:
    """An output that is an input, a constant or another output is a new array."""
    x = np.ones(2, f32)
    a, b, c = run("x: f32[2]; c: f32[2] = [1, 2]; return x, x, c", x=x)
    a[0] = c[0] = 9

    assert x[0] == b[0] == 1
    assert run("c: f32[2] = [1, 2]; return c")[0][0] == 1


def test_outputs_beyond_memory_are_capacity_errors() -> None:
    """A broadcast view needs no memory, its copy does: the error names the output."""
    text = "x: f32[n, 1]; return broadcast_to(x, shape=(n, 268435456))"
    with pytest.raises(pk.CapacityError, match=r"broadcast_to has no memory for its result: .*"):
        run(text, x=np.broadcast_to(np.ones(1, f32), (1 << 29, 1)))


def test_floating_point_errors_give_no_warnings() -> None:
    """Divisions by zero, NaN and overflow are values, not warnings."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        out = run(
            "x: f32[2]; y = div(x, 0.0); z = log(y); e = exp(1e9); return z, y, e",
            x=np.array([-1, 0], f32),
        )

    np.testing.assert_array_equal(out[1], [-np.inf, np.nan])


def test_each_operation_rounds() -> None:
    """float16 arithmetic rounds after every operation, not at the end."""
    text = "x: f16[]; a = add(x, 1.0); b = sub(a, x); return b"

    assert run(text, x=np.float16(2048))[0] == np.float16(np.float16(2048 + 1) - np.float16(2048))


def test_a_read_sees_the_last_assign_before_it() -> None:
    """Reads and writes are ordered by post-order: a read before the assign has the old value."""
    text = """state a: f32[1] = [1]; c: f32[1] = [0]
              e = exp(a); w = assign(a, c); y = add(e, 1.0) after(w); z = exp(a) after(w)
              return y, z, a"""
    state: dict[str, Any] = {}
    y, z, a = pk.interpret(pk.parse(text), {}, state)

    np.testing.assert_allclose([y[0], z[0], a[0]], [np.e + 1, 1, 0], rtol=1e-6)
    assert state["a"][0] == 0


def test_outputs_that_are_variables_are_read_in_order() -> None:
    """An output variable before the write that changes it has the old value."""
    text = "state a: f32[] = 1; w = assign(a, {}); return {}"

    assert [float(v) for v in run(text.format(2.0, "a, w, a"))] == [1, 2, 2]


def test_state_is_kept_between_calls() -> None:
    """The caller's mapping keeps the state; without one, each call starts from initial values."""
    graph = pk.parse("state n: i64[] = 0; m = add(n, 1); w = assign(n, m); return w")
    state: dict[str, Any] = {}

    assert [int(pk.interpret(graph, {}, state)[0]) for _ in range(3)] == [1, 2, 3]
    assert [int(pk.interpret(graph)[0]) for _ in range(2)] == [1, 1]


def test_updates_are_written_after_all_reads() -> None:
    """After Functionalize: a swap of two variables reads both before it writes."""
    state = {"a": np.array(1, f32), "b": np.array(2, f32)}
    pk.interpret(
        pk.parse("state a: f32[]; state b: f32[]; update a = b; update b = a; return"), {}, state
    )

    assert (float(state["a"]), float(state["b"])) == (2, 1)


def test_reading_an_unset_variable_raises() -> None:
    """A read before the first write raises an error that names the variable."""
    with pytest.raises(pk.FeedError, match="state variable 'w' is read before it has a value"):
        run("state w: f32[2]; y = exp(w); return y")


def test_control_dependences_run_first() -> None:
    """A node named in after(…) runs even if no node reads its result."""
    state: dict[str, Any] = {}
    text = "state a: f32[]; x: f32[]; w = assign(a, x); y = exp(x) after(w); return y"
    pk.interpret(pk.parse(text), {"x": f32(3)}, state)

    assert state["a"] == 3


def test_an_operator_with_fcodegen_is_evaluated() -> None:
    """FCodeGen and a pattern determine shape, dtype and values, also of several results."""
    op = pk.register_op("test_interpret_sincos", num_inputs=1, num_outputs=2)
    op.set_attr("FCodeGen", lambda node, x: (pk.ast.sin(x), pk.ast.cos(x)))
    op.set_attr("TOpPattern", pk.OpPattern.ELEMWISE)
    s, c = op(pk.var("x", (2,), "float64"))
    actual = pk.interpret(pk.Graph([s, c]), {"x": np.array([0.0, 1.0])})

    np.testing.assert_array_equal(actual, [np.sin([0.0, 1]), np.cos([0.0, 1])])


def test_an_operator_with_felement_is_evaluated() -> None:
    """FElement is evaluated at all indices; operands of a Select load where they are selected."""

    def shifted(node: pk.Node, index: Any, read: Any) -> Any:
        (i,) = index
        return pk.ast.where(i < 1, pk.ast.const(-1, pk.ast.dt.float32), read(i - 1))

    op = custom("test_interpret_shift", FElement=shifted, FInferShape=lambda node, s: s)
    x = pk.var("x", (4,))

    assert pk.interpret(pk.Graph([op(x)]), {"x": np.arange(4, dtype=f32)})[0].tolist() == [
        -1,
        0,
        1,
        2,
    ]
    empty = pk.Graph([op(pk.var("x", (0,)))])
    assert pk.interpret(empty, {"x": np.zeros(0, f32)})[0].shape == (0,)


def test_fcompute_takes_precedence() -> None:
    """FCompute takes precedence over all other attributes."""
    op = custom(
        "test_interpret_computed",
        FCompute=lambda node, x: x * 2,
        FCodeGen=lambda node, x: x,
        TOpPattern=pk.OpPattern.ELEMWISE,
    )

    assert pk.interpret(pk.Graph([op(pk.var("x", ()))]), {"x": f32(3)})[0] == 6


def test_an_operator_with_fexpand_is_evaluated() -> None:
    """A composite operator of two results is evaluated by its expansion."""
    op = pk.register_op("test_interpret_pair", num_inputs=1, num_outputs=2)
    op.set_attr("FExpand", lambda node, x: (x + 1, x * 2))
    op.set_attr("FInferShape", lambda node, s: (s, s))
    actual = pk.interpret(pk.Graph(op(pk.var("x", (1,)))), {"x": np.array([3], f32)})

    assert [v.tolist() for v in actual] == [[4], [6]]


def test_an_expansion_serves_later_calls_of_the_same_node() -> None:
    """FExpand is called once for a node, again for other sizes, and when it was replaced."""
    called = []

    def expand(node: Any, x: pk.Entry) -> pk.Entry:
        called.append(x.shape)
        return x + 1

    op = custom("test_interpret_kept", FExpand=expand, FInferShape=lambda node, s: s)
    fixed = pk.Graph([op(pk.var("x", (2,)))])
    unknown = pk.Graph([op(pk.var("x", ("n",)))])
    ones = np.ones(2, f32)
    for _ in range(2):
        assert pk.interpret(fixed, {"x": ones})[0].tolist() == [2, 2]
    assert called == [(2,)]

    for size in (2, 3):
        assert pk.interpret(unknown, {"x": np.ones(size, f32)})[0].tolist() == [2] * size
    assert called[1:] == [(2,), (3,)]

    op.set_attr("FExpand", lambda node, x: x * 5, plevel=11)
    assert pk.interpret(fixed, {"x": ones})[0].tolist() == [5, 5]


def test_a_kept_expansion_keeps_no_graph() -> None:
    """A node whose expansion is kept is freed with its graph."""
    graph = pk.parse("x: f32[2]; return softmax(x)")
    node = weakref.ref(graph.outputs[0].node)
    pk.interpret(graph, {"x": np.ones(2, f32)})
    del graph
    gc.collect()

    assert node() is None


@pytest.mark.parametrize(
    "value, message",
    [
        ([1, 2], r"got \[1, 2\]; pass an array"),
        (np.ones(2), r"got an array float64\[2\]; pass an array of that dtype and shape"),
        (np.ones(3, f32), r"got an array float32\[3\]"),
    ],
)
def test_values_of_other_types_than_their_state_variables_raise(value: Any, message: str) -> None:
    """The variable is named, with the dtype and shape that it needs."""
    graph = pk.parse("state w: f32[2]; return neg(w)")

    with pytest.raises(FeedError, match=rf"state variable 'w' needs float32\[2\], {message}"):
        pk.interpret(graph, {}, {"w": value})


ZERO = pk.ast.const(0, pk.ast.dt.float32)
SUM = pk.ast.left(pk.ast.dt.float32) + pk.ast.right(pk.ast.dt.float32)
BROKEN: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({}, pk.CodeGenError, "test_broken_0 'y' cannot be evaluated: set FCompute, FElement"),
    (
        {"FCompute": lambda node, x: x.astype(np.float64)},
        pk.DTypeError,
        "test_broken_1 'y' has dtype float32 by FInferType, and its FCompute returned float64",
    ),
    (
        {"FCompute": lambda node, x: x[:1]},
        pk.ShapeError,
        r"test_broken_2 'y' has shape \(2,\) by FInferShape, and its FCompute returned \(1,\)",
    ),
    (
        {"FCompute": lambda node, x: (x, x)},
        pk.RuleError,
        "FCompute of test_broken_3 'y' must give an array, got .*; it gave 2",
    ),
    (
        {"FContract": lambda node: pk.ast.Contract((), 1, 1, 1)},
        pk.CodeGenError,
        "test_broken_4 'y' cannot be evaluated: its FContract is no product of two matrices",
    ),
    (
        {"FElement": lambda node, index, read: read()},
        pk.CodeGenError,
        "FElement reads input 0, which has 1 axes, at 0 indices",
    ),
    (
        {"FElement": lambda node, index, read: read(index[0] + 1)},
        pk.CodeGenError,
        "a load reads element 2 of buffer 'x0', which has 2 elements",
    ),
    (
        {"FInferShape": lambda node, s: (3,), "FCodeGen": lambda node, x: x + 1.0},
        pk.ShapeError,
        r"test_broken_7 'y' has shape \(3,\) by FInferShape, and its other attributes give \(2,\)",
    ),
    (
        {
            "FInferType": lambda node, dtype: dtype,
            "FCodeGen": lambda node, x: pk.ast.cast(x, "float64"),
        },
        pk.DTypeError,
        "test_broken_8 'y' has dtype float32 by FInferType, and its other attributes give float64",
    ),
    (
        {"FReduce": lambda node: pk.ast.Reduce((0, 1), False, ZERO, SUM)},
        pk.RuleError,
        r"FReduce of test_broken_9 'y' must give axes below 1, the .* input, got \(0, 1\)",
    ),
    (
        {"FScan": lambda node: pk.ast.Scan(3, ZERO, SUM)},
        pk.RuleError,
        "FScan of test_broken_10 'y' must give an axis below 1, the rank of its input, got 3",
    ),
]


@pytest.mark.parametrize("k", range(len(BROKEN)))
def test_operators_with_inconsistent_attributes_raise(k: int) -> None:
    """An operator whose attributes disagree is named, with what they returned."""
    attrs, error, message = BROKEN[k]
    same = {"FInferShape": lambda node, s: s}
    op = custom(f"test_broken_{k}", **{**same, **attrs})
    graph = pk.Graph([op(pk.var("x", (2,)), name="y")])

    with pytest.raises(error, match=message):
        pk.interpret(graph, {"x": np.zeros(2, f32)})


def test_shapes_are_checked_at_the_call() -> None:
    """Unknown sizes must match at the call; the operator that they do not fit is named."""
    text = "x: f32[?]; y: f32[?]; z = add(x, y); return z"

    with pytest.raises(pk.ShapeError, match=r"broadcast together, got \(2,\) and \(3,\)"):
        run(text, x=np.zeros(2, f32), y=np.zeros(3, f32))


def test_long_chains_need_no_recursion() -> None:
    """100,000 operators are interpreted without recursion, and values are freed on the way."""
    x: pk.Entry = pk.var("x", (1,))
    y = x
    op = pk.get_op("neg")
    for _ in range(100_000):
        y = op(y)
    start = time.perf_counter()
    actual = pk.interpret(pk.Graph([y]), {"x": np.ones(1, f32)})

    assert actual[0][0] == 1
    assert time.perf_counter() - start < 30


def test_a_size_that_no_input_has_raises() -> None:
    """The size, the operator and the shape are named."""
    x = pk.var("x", ("n", 3))
    twos = pk.ops.broadcast_to(np.float32(2), shape=x.shape)

    with pytest.raises(ShapeError, match=r"size 'n' of its result \(n, 3\), and no input"):
        pk.interpret(pk.Graph([twos]), {})


def test_interpreted_executables_take_feeds_like_native_ones() -> None:
    """Feeds are a dict, keywords, or a list in the order of the inputs."""
    run = pk.compile(pk.parse("x: f32[2]; y: f32[2]; return sub(y, x)"), target="interpret")
    x, y = np.ones(2, np.float32), np.full(2, 3, np.float32)

    named = run({"x": x, "y": y}), run(x=x, y=y), run({"x": x}, y=y)
    for actual in (*named, run([x, y]), run((x, y))):
        assert actual[0].tolist() == [2, 2]
    with pytest.raises(FeedError, match=r"needs 2 feeds \(x, y\), got 1 in a list and 1 by name"):
        run([x], y=y)
    with pytest.raises(
        FeedError, match="feeds must be a dict, list or tuple of arrays, got a str; .* as in x=…"
    ):
        run("x")
    with pytest.raises(FeedError, match="input 'x' is passed twice, .*; pass it once"):
        run({"x": x, "y": y}, x=x)


def test_interpreted_executables_write_to_out_like_native_ones() -> None:
    """Results go to ``out``; an array that does not fit raises before any is written."""
    run = pk.compile(pk.parse("x: f32[2]; return neg(x), exp(x)"), target="interpret")
    x, first = np.ones(2, np.float32), np.zeros(2, np.float32)

    actual = run(x=x, out=[first, None])
    assert actual[0] is first and first.tolist() == [-1, -1] and actual[1].shape == (2,)
    wrong = {
        r"out must be a list of 2 arrays or None, got a list .* of 1": [first],
        r"out\[1\] needs a contiguous float32\[2\], got float64\[2\]": [first, np.zeros(2)],
        r"out\[1\] needs a contiguous float32\[2\], got float32\[3\]": [None, np.zeros(3, "f4")],
        r"out\[1\] needs memory of its own, and its addresses overlap those of an input or anot": [
            first,
            first,
        ],
        r"out\[0\] needs memory of its own, and its addresses overlap": [x, None],
    }
    for message, out in wrong.items():
        first[:] = 7
        with pytest.raises(FeedError, match=message):
            run(x=x, out=out)
        assert first.tolist() == [7, 7]
    assert x.tolist() == [1, 1]


def test_an_array_between_the_rows_of_an_input_is_refused_as_out() -> None:
    """The message names the overlap of addresses, though the arrays share no element."""
    run = pk.compile(pk.parse("x: f32[3, 2]; return neg(x)"), target="interpret")
    rows = np.zeros((3, 8), f32)

    with pytest.raises(FeedError, match=r"out\[0\] needs memory of its own, and its addresses ov"):
        run(x=rows[:, :2], out=[rows[0, 2:].reshape(3, 2)])


def test_operators_of_every_kind_take_the_dtype_of_a_fed_array() -> None:
    """A variable of unknown dtype has that of its array in reductions, scans and gathers too."""
    x, rows = pk.var("x", (3, 2), None), pk.var("rows", (1, 1), "int64")
    results = [
        pk.ops.reduce_sum(x),
        pk.ops.cumsum(x, axis=0),
        pk.ops.gather_nd(x, rows),
        pk.ops.transpose(x),
    ]
    array = np.arange(6, dtype=f32).reshape(3, 2)

    actual = pk.interpret(pk.Graph(results), {"x": array, "rows": np.array([[2]])})
    assert {a.dtype for a in actual} == {np.dtype(f32)}
    assert actual[0] == 15
    assert actual[1].tolist() == [[0, 1], [2, 4], [6, 9]]
    assert actual[2].tolist() == [[4, 5]]
    assert actual[3].tolist() == [[0, 2, 4], [1, 3, 5]]
