"""Graphs are rewritten by patterns: matches, values that are kept, and invalid replacements."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import passkit as pk

ops = pk.ops
silu = (lambda x: x * ops.sigmoid(x), ops.silu)


def times(factor: complex) -> Callable[[pk.Entry], pk.Entry]:
    """Return a pattern that multiplies its argument by ``factor``."""
    return lambda x: ops.mul(x, pk.constant(factor))


def rewritten(text: str, pattern: Any, replacement: Any, where: Any = None) -> str:
    """Return the text of a graph after rewriting, without its inputs."""
    graph = pk.parse(text).rewrite(pattern, replacement, where)
    return "; ".join(s for s in pk.to_text(graph).splitlines() if "=" in s or "return" in s)


def test_a_match_is_replaced() -> None:
    """The matched nodes are removed, and the replacement gets the name of the last one."""
    text = "x: f32[2]; s = sigmoid(x); y = mul(x, s); return y"

    assert rewritten(text, *silu) == "y = silu(x); return y"


def test_a_repeated_argument_must_be_one_entry() -> None:
    """x * sigmoid(z) is no match, nor is sigmoid(x) * x: patterns do not commute."""
    for text in (
        "x: f32[2]; z: f32[2]; s = sigmoid(z); y = mul(x, s); return y",
        "x: f32[2]; s = sigmoid(x); y = mul(s, x); return y",
    ):
        assert "silu" not in rewritten(text, *silu)


def test_inner_values_with_other_users_stay() -> None:
    """A matched value that another node or an output reads is kept."""
    text = "x: f32[2]; s = sigmoid(x); y = mul(x, s); return y, s"

    assert rewritten(text, *silu) == "y = silu(x); s = sigmoid(x); return y, s"


def test_a_replacement_may_be_an_argument_of_the_next_match() -> None:
    """Two chained matches are both replaced."""
    text = "x: f32[2]; s = sigmoid(x); y = mul(x, s); t = sigmoid(y); z = mul(y, t); return z"

    assert rewritten(text, *silu) == "y = silu(x); z = silu(y); return z"


def test_each_node_is_matched_once() -> None:
    """Nodes of a replacement are not matched again; of overlapping matches the first wins."""
    text = "x: f32[2]; a = neg(x); b = neg(a); c = neg(b); return c"
    result = rewritten(text, lambda x: ops.neg(ops.neg(x)), lambda x: ops.neg(ops.abs(x)))

    assert result == "abs = abs(x); b = neg(abs); c = neg(b); return c"
    assert rewritten(text, lambda x: ops.neg(x), lambda x: ops.neg(ops.neg(x))).count("neg(") == 6


def test_where_may_refuse() -> None:
    """``where`` is called with the matched entries, and False keeps them."""
    text = "x: f32[2]; z: f64[2]; s = exp(x); t = exp(z); return s, t"
    result = rewritten(text, ops.exp, ops.tanh, lambda x: x.dtype.name == "float64")

    assert result == "s = exp(x); t = tanh(z); return s, t"


def test_constants_match_by_value() -> None:
    """A number in a pattern has no dtype of its own; -0.0 is not 0.0; shapes are broadcast."""
    half = (lambda x: x * 0.1, ops.exp)
    text = "x: {0}[2]; c: {0}{1}; y = mul(x, c); return y"

    for dtype, value in (("f32", "[] = 0.1"), ("f64", "[] = 0.1"), ("f32", "[2] = [0.1, 0.1]")):
        assert "exp" in rewritten(text.format(dtype, value), *half)
    for dtype, value in (("f32", "[] = 0.2"), ("f32", "[2] = [0.1, 0.2]")):
        assert "exp" not in rewritten(text.format(dtype, value), *half)
    zero = "x: f32[2]; y = add(x, {}); return y"
    assert "exp" in rewritten(zero.format("-0.0"), lambda x: x + -0.0, ops.exp)
    assert "exp" not in rewritten(zero.format("0.0"), lambda x: x + -0.0, ops.exp)
    assert "exp" not in rewritten("x: f32[2]; y = add(x, x); return y", lambda x: x + 0.5, ops.exp)


def test_a_number_does_not_match_an_integer_that_it_is_rounded_to() -> None:
    """0.5 is not 0, 256 is not 0 in 8 bits, and 1 is 1 in any dtype."""
    text = "x: {0}[2]; c: {0}[] = {1}; y = mul(x, c); return y"

    for dtype, value, factor in (("i32", "0", 0.5), ("u8", "0", 256), ("f32", "1", 1 + 2j)):
        assert "exp" not in rewritten(text.format(dtype, value), times(factor), ops.exp)
    assert "neg" in rewritten(text.format("i32", "1"), times(1.0), ops.neg)


def test_arrays_match_by_value() -> None:
    """An array in a pattern has its shape."""
    text = "x: f32[2]; c: f32[2] = [1, 2]; y = mul(x, c); return y"

    assert "exp" in rewritten(text, lambda x: x * np.array([1, 2]), ops.exp)
    assert "exp" not in rewritten(text, lambda x: x * np.array([[1, 2]]), ops.exp)


def test_parameters_must_agree() -> None:
    """The parameters of operators are a part of the pattern."""
    text = "x: f32[2, 2]; y = softmax(x, axis=0); return y"

    assert "exp" in rewritten(text, lambda x: ops.softmax(x, axis=0), ops.exp)
    assert "exp" not in rewritten(text, lambda x: ops.softmax(x), ops.exp)


def test_patterns_may_use_python_operators() -> None:
    """Python's operators, the matrix product too, work on arguments of unknown rank."""
    text = "x: f32[2, 3]; w: f32[3, 4]; b: f32[4]; m = matmul(x, w); y = add(m, b); return y"
    result = rewritten(
        text, lambda x, w, b: x @ w + b, lambda x, w, b: ops.linear(x, ops.transpose(w), b)
    )

    assert "y = linear(x, transpose, b)" in result


def test_nodes_with_control_dependencies_are_not_matched() -> None:
    """A node that must run after another is not matched; others may depend on a match."""
    text = "x: f32[2]; s = sigmoid(x){}; y = mul(x, s); z = exp(y){}; return z"

    assert "silu" not in rewritten(text.format(" after(x)", ""), *silu)
    assert "z = exp(y) after(y)" in rewritten(text.format("", " after(y)"), *silu)


def test_reads_of_state_do_not_move_past_writes() -> None:
    """A pattern whose replacement would read a variable after a write does not match."""
    text = "state a: f32[]; s = sigmoid(a); w = assign(a, {}); y = mul(a, s) after(w); return y"
    moved = "state a: f32[]; s = sigmoid(a); w = assign(a, s); y = mul(a, s); return y, w"

    assert "silu" not in rewritten(text.format("s"), *silu)
    assert "silu" not in rewritten(moved, *silu)


def test_long_graphs_are_rewritten_without_recursion() -> None:
    """A chain of 30,000 nodes is matched and replaced."""
    op = pk.get_op("neg")
    y = pk.var("x", ())
    for _ in range(30_000):
        y = op(y)
    graph = pk.Graph([y]).rewrite(lambda x: ops.neg(x), ops.abs)

    assert {n.op.name for n in graph.nodes if n.op} == {"abs"}


def test_rewritten_graphs_give_equal_results() -> None:
    """Interpreted before and after rewriting, a graph has the same bits."""
    graph = pk.parse("x: f32[3]; s = sigmoid(x); y = mul(x, s); z = add(y, s); return z")
    x = np.array([-1, 0, 2], np.float32)
    before, after = (pk.interpret(g, {"x": x})[0] for g in (graph, graph.rewrite(*silu)))

    np.testing.assert_array_equal(before, after)


BAD: list[tuple[Callable[..., Any], Callable[..., Any], type[Exception], str]] = [
    (lambda *xs: xs[0], ops.exp, pk.GraphError, r"one for each matched value, got '\*xs'"),
    (lambda x: x, ops.exp, pk.GraphError, r"the result of an operator, got Entry\(x: None"),
    (lambda x: 3, ops.exp, pk.GraphError, "returns the result of an operator, got 3"),
    (lambda x, y: ops.exp(x), ops.exp, pk.GraphError, "the pattern does not use its argument 'y'"),
    (ops.exp, lambda x: 3, pk.GraphError, "replacement of exp 'y' must be one Entry, got int"),
    (
        ops.exp,
        lambda x: ops.cast(x, "float64"),
        pk.DTypeError,
        r"replacement of exp 'y' must be float32, .*, got float64; insert pk.ops.cast\(x, 'f",
    ),
    (
        max,
        ops.exp,
        pk.GraphError,
        "<built-in function max> does not tell its own; wrap it into a lambda",
    ),
    (
        ops.exp,
        lambda x: ops.expand_dims(x + pk.var("z", ("n", 2)), axis=0),
        pk.ShapeError,
        r"replacement of exp 'y' must have its shape \(2,\), got \(1, n, 2\); insert",
    ),
    (
        ops.exp,
        lambda x: ops.reduce_sum(x),
        pk.ShapeError,
        r"replacement of exp 'y' must have its shape \(2,\), got \(\); insert",
    ),
]


def test_patterns_that_end_in_several_results_are_refused() -> None:
    """The last operator of a pattern has one result."""
    op = pk.register_op("test_pattern_two", num_inputs=1, num_outputs=2)
    op.set_attr("FInferShape", lambda node, s: (s, s))

    with pytest.raises(pk.GraphError, match="with one result, got test_pattern_two with 2"):
        pk.parse("x: f32[]; return x").rewrite(lambda x: op(x)[0], ops.exp)


@pytest.mark.parametrize("pattern, replacement, error, message", BAD)
def test_invalid_patterns_and_replacements_are_refused(
    pattern: Any, replacement: Any, error: type[Exception], message: str
) -> None:
    """Patterns without an operator, and replacements of another dtype or shape, are refused."""
    with pytest.raises(error, match=message):
        pk.parse("x: f32[2]; y = exp(x); return y").rewrite(pattern, replacement)
