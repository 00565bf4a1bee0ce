"""Graphs whose compiled results were once wrong equal their interpretation."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import passkit as pk
from passkit.errors import FeedError, PasskitError, ShapeError

pytestmark = pytest.mark.usefixtures("quick_kernels")
Sizes = dict[str, int]


def arrays(graph: pk.Graph, **sizes: int) -> dict[str, Any]:
    """Whole numbers for every input, unknown extents from ``sizes``: sums of them are exact."""
    rng = np.random.default_rng(0)
    feeds = {}
    for node in graph.inputs:
        entry = node.entries[0]
        shape = tuple(n if isinstance(n, int) else sizes[str(n)] for n in entry.shape)
        feeds[node.name] = rng.integers(-4, 5, shape).astype(entry.dtype.numpy)
    return feeds


def agree(text: str, *runs: Sizes, rtol: float = 0, **options: Any) -> None:
    """Assert that a graph as text compiles to what it means, at each of some sizes."""
    graph = pk.parse(text)
    exe = pk.compile(graph, **options)
    for sizes in runs or ({},):
        feeds = arrays(graph, **sizes)
        for result, expected in zip(exe(feeds), pk.interpret(graph, feeds), strict=True):
            np.testing.assert_allclose(result, expected, rtol=rtol, strict=True)


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_reductions_over_an_axis_of_one_element(axis: int) -> None:
    """A row of one point has a row value all the same, and may be read back and reduced again."""
    shape = ["n", "3", "5"]
    shape[axis] = "1"
    agree(
        f"""x: f32[{", ".join(shape)}]
        m = reduce_max(x, axis={axis}, keepdims=true)
        d = sub(x, m)
        s = reduce_sum(d, axis={axis})
        return m, d, s""",
        {"n": 4},
        {"n": 1},
    )


def test_reductions_over_the_first_of_four_axes_with_one_in_between() -> None:
    """Kept axes that are joined are separated again, however many ones stand between them."""
    agree(
        "x: f32[n, 1, 65, 8]; y = reduce_max(x, axis=0, keepdims=true); return y",
        {"n": 1},
        {"n": 3},
    )


def test_softmax_over_a_leading_one_of_an_unknown_shape() -> None:
    """An index into (1, m, 105) is found again behind the leading 1."""
    agree("x: f32[1, m, 7]; y = softmax(x, axis=0); return y", {"m": 5}, rtol=1e-6)


@pytest.mark.parametrize("shape", ["", "1", "1, 1", "17, 1, 1", "1, 16, 1"])
def test_results_of_few_elements(shape: str) -> None:
    """A store steps along the lanes even where there is only one."""
    agree(f"x: f32[{shape}]; y = add(x, x); z = reshape(y, shape=(-1, 1)); return y, z")
    agree(f"x: f32[{shape}]; y = reduce_max(x, axis=()); z = mul(x, x); return y, z")


def test_a_column_of_one_element() -> None:
    """One lane of a column reduction is stored and read back at its own place."""
    agree(
        """x: f32[40, 1]
        e = exp(x)
        s = reduce_sum(e, axis=0, keepdims=true)
        y = div(e, s)
        return y, s""",
        rtol=1e-6,
    )


def test_locals_that_two_stages_move_to_their_front() -> None:
    """A value that is equal for all lanes is a local of each stage that needs it."""
    agree(
        """x: i64[m, 1]
        z = zeros_like(x)
        c = cast(z)
        m = reduce_max(c, axis=0, keepdims=true)
        y = sub(c, m)
        return y""",
        {"m": 33},
    )


def test_two_stages_that_divide_by_the_same() -> None:
    """Each stage has its own divisor."""
    agree(
        """x: f32[4, 1, 100]
        a = reduce_mean(x, axis=0)
        r = reshape(a, shape=(1, 1, 100))
        b = broadcast_to(r, shape=(4, 1, 100))
        c = reduce_mean(b, axis=0)
        e = expand_dims(c)
        y = mul(b, e)
        return y""",
        rtol=1e-6,
    )


def test_literals_of_wide_integers_in_scalars() -> None:
    """A literal has its own type where the language would take it for an int."""
    agree(
        """x: i64[m, 1]
        z = zeros_like(x)
        s = square(z)
        y = clip(s, z, s)
        return y""",
        {"m": 20},
    )


@pytest.mark.parametrize("op", ["less", "less_equal", "greater", "greater_equal", "equal"])
def test_comparisons_of_bools(op: str) -> None:
    """False is less than true, lane by lane and against one value for all lanes."""
    agree(f"x: bool[20]; y: bool[1]; z: bool[20]; a = {op}(x, z); b = {op}(y, x); return a, b")


def test_rows_whose_length_is_zero_at_the_call() -> None:
    """Tiles are counted without dividing by the length of a row."""
    agree(
        "x: f32[n, m]; y = transpose(x); z = exp(y); s = reduce_sum(x, axis=1); return z, s",
        {"n": 4, "m": 3},
        {"n": 4, "m": 0},
        {"n": 0, "m": 3},
        rtol=1e-6,
    )


def test_shapes_without_elements() -> None:
    """Arrays without elements are planned and do nothing; an empty sum is 0."""
    agree("x: f32[1, 0, 99]; y = broadcast_to(x, shape=(100, 0, 99)); return y")
    agree(
        """x: f32[0, 3, 1, 8]; a: f32[0, 3, 1]
        v = reduce_variance(x, axis=-1)
        y = clip(v, a, a)
        s = reduce_sum(x, axis=(0, 3))
        t = add(s, 1.0)
        return y, s, t"""
    )


def test_inputs_that_no_operator_is_left_to_read() -> None:
    """A call still feeds them, in their order, and they are still checked."""
    exe = pk.compile(pk.parse("c: bool[3]; x: f32[3]; y = where(c, x, x); z = neg(y); return z"))
    x = np.arange(3, dtype=np.float32)

    assert [i.name for i in exe.inputs] == ["c", "x"]
    assert exe(c=x > 1, x=x)[0].tolist() == [0, -1, -2]
    with pytest.raises(FeedError, match="'c' is missing"):
        exe(x=x)
    with pytest.raises(FeedError, match=r"'c' needs bool\[3\]"):
        exe(c=x, x=x)


def test_unknown_sizes_that_turn_out_to_broadcast() -> None:
    """Sizes that an operator joins are taken to be equal; a call in which one is 1 is no error."""
    graph = pk.parse("x: f32[n, ?]; y: f32[?, ?]; z = maximum(x, y); return z")
    exe = pk.compile(graph)
    rng = np.random.default_rng(0)
    for a, b in [((3, 5), (3, 5)), ((3, 5), (1, 5)), ((1, 1), (4, 2)), ((3, 1), (3, 7))]:
        feeds = {"x": rng.random(a, np.float32), "y": rng.random(b, np.float32)}
        np.testing.assert_array_equal(exe(feeds)[0], np.maximum(*feeds.values()))

    with pytest.raises(ShapeError, match=r"\(3, 5\) and \(4, 5\)"):
        exe(x=np.zeros((3, 5), np.float32), y=np.zeros((4, 5), np.float32))


def test_a_plan_for_other_sizes_knows_those_in_parameters() -> None:
    """A shape or slice that mentions an unknown size has its number in a plan made anew."""
    x, y = pk.var("x", ("n", None)), pk.var("y", (None, 6))
    z = pk.ops.broadcast_to(x * y, shape=(2, x.shape[0], 6))
    graph = pk.Graph([z])
    feeds = {"x": np.ones((4, 1), np.float32), "y": np.full((4, 6), 2, np.float32)}

    assert pk.compile(graph)(feeds)[0].shape == pk.interpret(graph, feeds)[0].shape == (2, 4, 6)


def test_sizes_that_follow_from_others() -> None:
    """A declared size such as n - 1 is checked where n is known, and settles n where it is not."""
    x = pk.var("x", ("n", 4))
    y = pk.var("y", (x.shape[0] - 1, 4))
    exe = pk.compile([pk.ops.exp(y), x[1:] + y])
    alone = pk.compile([pk.ops.neg(y)])
    x5, y4 = np.ones((5, 4), np.float32), np.ones((4, 4), np.float32)

    assert exe(x=x5, y=y4)[1].shape == (4, 4)
    assert alone(y=y4)[0].shape == (4, 4)
    with pytest.raises(FeedError, match="needs extent 4 at axis 0, got .*: size -1 [+] n has"):
        exe(x=x5, y=x5)


def test_two_kept_rows_of_unknown_length() -> None:
    """The second scratch array begins where the first, of a length that the call says, ends."""
    agree(
        """x: f32[n]
        e = exp(x)
        s = reduce_sum(e, axis=0, keepdims=true)
        d = div(e, s)
        m = reduce_mean(d, axis=0, keepdims=true)
        c = add(d, m)
        t = tanh(c)
        k = reduce_mean(t, axis=0, keepdims=true)
        y = mul(t, k)
        return y""",
        {"n": 16},
        {"n": 1000},
        rtol=1e-4,
    )


def test_indices_with_an_offset_are_put_together_again() -> None:
    """A quotient and a remainder of i - 17 are i - 17 again."""
    agree(
        """x: f32[3, 3, 17]; z: f32[3, 3, 17]
        m = reduce_sum(x, axis=(0, 1))
        r = reshape(z, shape=(153,))
        y = concat(m, m, r)
        return y"""
    )


def test_squeeze_of_unknown_axes_must_name_them() -> None:
    """Which axes go is known when the graph is made, not when it runs."""
    with pytest.raises(ShapeError, match=r"squeeze .*got \(m, 62, 1, 5\); name them in axis"):
        pk.parse("x: f32[m, 62, 1, 5]; y = squeeze(x); return y")

    agree("x: f32[m, 62, 1, 5]; y = squeeze(x, axis=2); return y", {"m": 1}, {"m": 3})


def test_state_and_refusals_leave_an_executable_usable() -> None:
    """After a call that is refused the next one is right."""
    text = "x: f32[n, 3]; y: f32[n]; s = reduce_sum(x, axis=1); z = add(s, y); return z"
    exe = pk.compile(pk.parse(text))
    x = np.ones((2, 3), np.float32)
    with pytest.raises(PasskitError):
        exe(x=x, y=np.zeros(5, np.float32))

    assert exe(x=x, y=np.ones(2, np.float32))[0].tolist() == [4, 4]


def test_numpy_steps_know_the_sizes_of_a_call() -> None:
    """An operator that no kernel computes has parameters of unknown size like any other."""
    agree(
        """x: f16[?, 1, n]
        y = broadcast_to(x, shape=(x.0, 3, n))
        z = slice(y, begin=(1, 0, 0), size=(x.0 - 1, 2, n))
        return y, z""".replace("x.0 - 1", "-1"),
        {"x.0": 4, "n": 7},
    )


@pytest.mark.parametrize("dtype", ["i8", "u8", "i16", "u16", "u32", "u64", "i32", "i64"])
def test_scalars_of_every_integer_type(dtype: str) -> None:
    """A value that is equal for all lanes is computed by a scalar function, in every dtype."""
    agree(
        f"""x: {dtype}[1]; y: {dtype}[40]
        a = abs(x)
        m = maximum(a, x)
        k = mul(m, 100)
        s = mul(k, k)
        l = less(s, y)
        z = add(m, y)
        return a, z, l"""
    )


def test_loads_that_an_arm_repeats_stay_in_the_arm() -> None:
    """A load in an arm of concat stays in that arm, and the text grows linearly."""
    lines, last = ["x: f32[3, 7]"], "x"
    for k in range(8):
        lines.append(f"s{k} = sign({last}); c{k} = concat(s{k}, x, axis=0)")
        lines.append(f"{'abcdefgh'[k]} = slice(c{k}, begin=(2, 0), size=(3, 7))")
        last = "abcdefgh"[k]
    text = "\n".join([*lines, f"return {last}"])

    agree(text)
    agree(text, fusion="nnvm")
    assert max(len(k.source) for k in pk.compile(pk.parse(text)).kernels) < 10_000


def test_a_row_value_that_is_a_literal() -> None:
    """A literal that later stages read stays a local of its own."""
    agree("x: i64[5]; y: i64[]; z = mul(reduce_prod(x, axis=0), zeros_like(y)); return z")


@pytest.mark.parametrize(
    "text, sizes",
    [
        (
            """x: f32[17, m]; s = slice(x, begin=(0, 0), size=(9, -1))
            return reshape(s, shape=(9*m, -1))""",
            {"m": 0},
        ),
        ("x: bool[n, m, k]; return reshape(x, shape=(n, -1, k))", {"n": 5, "m": 0, "k": 0}),
    ],
)
def test_an_inferred_extent_beside_a_zero_is_refused(text: str, sizes: Sizes) -> None:
    """-1 beside an extent that turns out to be 0 could be anything: both ways refuse."""
    graph = pk.parse(text)
    feeds = arrays(graph, **sizes)

    with pytest.raises(ShapeError, match="takes a multiple of 0"):
        pk.interpret(graph, feeds)
    with pytest.raises(ShapeError, match="takes a multiple of 0"):
        pk.compile(graph)(feeds)


def test_an_index_that_a_condition_has_too() -> None:
    """A common subexpression of a value does not replace an equal index."""
    agree("x: f32[1, 65]; c = concat(x, x, x, axis=-1); y = reshape(c, shape=(1, 3, 65)); return y")


@pytest.mark.parametrize("axis", [0, 1])
def test_operators_that_read_their_inputs_many_times(axis: int) -> None:
    """Row values and broadcast ones are bound once, however often their readers mention them."""
    text = f"""x: i32[40, 6]; y: i32[{"6" if axis == 0 else "40, 1"}]
    r = reduce_max(abs(x), axis={axis}, keepdims=true)
    a = add(r, 3); b = floor_div(a, 2); c = floor_div(sub(a, b), maximum(b, 1))
    d = floor_div(add(c, a), maximum(abs(c), 1)); e = mod(d, maximum(abs(c), 2))
    p = floor_div(y, 2); q = mod(p, maximum(abs(y), 1)); u = floor_div(q, maximum(abs(p), 1))
    z = add(add(x, e), u)
    return z"""
    agree(text)
    assert max(len(k.source) for k in pk.compile(pk.parse(text)).kernels) < 6_000


@pytest.mark.parametrize("producer", ["neg(x)", "reduce_sum(x, axis=0)"])
def test_a_value_of_which_only_the_shape_is_read(producer: str) -> None:
    """A value read only for its shape is not computed, in kernels of one stage or several."""
    ramp = pk.register_op("test_ramp_of_shape", num_inputs=1)
    ramp.set_attr("FInferShape", lambda node, shape: shape)
    ramp.set_attr("FElement", lambda node, index, x: pk.ast.cast(index[-1], "float32"))

    agree(
        f"""x: f32[n, 8, 4]; y = {producer}; r = test_ramp_of_shape(y)
        s = reduce_sum(r, axis=-1, keepdims=true); z = sub(r, s); return z, r""",
        {"n": 3},
    )


def test_a_row_value_that_is_part_of_what_is_folded() -> None:
    """A slice of the folded value by way of a flat view: computed for itself, and kept."""
    agree(
        """x: f32[3, 4]
        part = slice(reshape(x, shape=(-1,)), begin=(0,), size=(4,))
        s = reduce_sum(sub(square(part), mul(x, part)), axis=0)
        return mul(s, part)"""
    )


@pytest.mark.parametrize("dtype", ["f16", "bf16"])
def test_floats_of_16_bits_turned_and_thinned(dtype: str) -> None:
    """Blocks are turned, every second element and those backwards are loaded, as they are."""
    agree(
        f"""x: {dtype}[70, 90]
        turned = transpose(x, axes=(1, 0))
        thin = slice(x, begin=(0, 1), size=(70, 40), step=(1, 2))
        back = slice(x, begin=(3, 89), size=(60, 90), step=(1, -1))
        return turned, thin, neg(back)"""
    )


def test_rows_of_four_coordinates_in_scratch() -> None:
    """A row of a tile is found again from all its coordinates, however many rows a tile has."""
    graph = pk.parse(
        """x: f16[2, 3, 3, 3, 2, 2]; y: f16[1, 1, 1, 1, 2, 5]
        w = windows_back(x, size=(6, 5), strides=2, padding="SAME")
        return matmul(w, y, transpose_a=true)"""
    )
    rng = np.random.default_rng(0)
    feeds = {
        n.name: rng.standard_normal([int(s) for s in n.entries[0].shape]).astype(np.float16)  # type: ignore[union-attr]
        for n in graph.inputs
    }

    (result,) = pk.compile(graph, fusion="deep")(feeds)

    np.testing.assert_allclose(result, pk.interpret(graph, feeds)[0], rtol=2e-3, atol=2e-3)
