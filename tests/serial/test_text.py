"""The text form of graphs: its layout, round trips, and positions of errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import passkit as pk

TEXT = """\
a: f32[?, 4]
b: f32[n, 2*n + 1]
rank: f64[...]
"weird name!": ?[]
state w: f32[2] = [0.5, -0.0]
state u: i32[]
c: f32[3] = [1.5, nan, inf]
many: u8[2, 2] = [1, 2, 3, 255]
m = mul(a, 0.1) after(c)
s = reduce_sum(m, axis=(0, 1), keepdims=true)
k = concat(a, a, axis=1)
r = reshape(a, shape=(4, a.0))
v = where(g, s, -1e-08)
g: bool[]
return m, s, k, r, v
"""


def round_trip(graph: pk.Graph) -> str:
    """Return the text of a graph, after checking that it reads back to the same text and key."""
    text = pk.to_text(graph)
    again = pk.parse(text)
    assert pk.to_text(again) == text
    assert again.key == graph.key
    return text


def test_every_kind_of_statement_is_written_and_read() -> None:
    """Inputs, state, constants, operators, control dependencies and outputs round-trip."""
    lines = TEXT.splitlines()
    lines.insert(12, lines.pop(13))  # g before it is used
    graph = pk.parse("\n".join(lines))
    outputs = [*graph.outputs, *(n.entries[0] for n in graph.nodes if n.is_variable)]
    text = round_trip(pk.Graph(outputs))

    assert "m = mul(a, 0.1) after(c)" in text
    assert "s = reduce_sum(m, axis=(0, 1), keepdims=true)" in text
    assert "r = reshape(a, shape=(4, a.0))" in text
    assert "v = where(g, s, -1e-08)" in text
    assert "c: f32[3] = [1.5, nan, inf]" in text


def test_statements_are_separated_by_semicolons_or_lines() -> None:
    """Comments end with the line; a statement continues on the next line inside brackets."""
    graph = pk.parse("a: f32[4]; e = exp(a); y = add(e,\n  a)  # sum\nreturn y")

    assert pk.to_text(graph) == "a: f32[4]\ne = exp(a)\ny = add(e, a)\nreturn y"


def test_variables_of_every_kind_are_written_and_read() -> None:
    """Unknown sizes, ranks and dtypes, state with and without a value, and quoted names."""
    lines = TEXT.splitlines()[:6]
    graph = pk.parse("\n".join(lines) + '\nreturn a, b, rank, "weird name!", w, u')
    text = round_trip(graph)

    assert text.splitlines()[:6] == [*lines[:1], "b: f32[n, 1 + 2*n]", *lines[2:]]
    assert graph.outputs[0].shape == (pk.Size.symbol("a.0"), 4)


def test_inputs_have_the_order_of_the_text() -> None:
    """Inputs are ordered as a text declares them, in calls and when the graph is written."""
    text = "x: f32[2]\nstate s: f32[2]\ny: f32[2]\nunread: f32[2]\nz = sub(y, x)\nreturn z, s"
    graph = pk.parse(text)

    assert [n.name for n in graph.inputs] == ["x", "y"]
    again = pk.parse(pk.to_text(graph))
    assert again.key == graph.key and again.inputs != pk.Graph(graph.outputs).inputs
    one, two = np.ones(2, np.float32), np.full(2, 2, np.float32)
    assert pk.compile(pk.parse("x: f32[2]; y: f32[2]; return sub(y, x)"))([one, two])[0][0] == 1


def test_an_input_with_a_control_dependency_follows_it() -> None:
    """A text declares it below that node, so that the order of inputs may change."""
    x = pk.var("x", (2,))
    first = pk.ops.exp(x)
    y = pk.Node(None, (), {"shape": (2,), "dtype": x.dtype}, "y", (first.node,)).entries[0]
    graph = pk.Graph([first, y]).with_inputs([y.node, x.node])

    assert [n.name for n in pk.parse(pk.to_text(graph)).inputs] == ["x", "y"]


def test_numbers_keep_their_bits() -> None:
    """Constants of all dtypes keep their bits; large ones and NaN payloads are in base64."""
    odd = np.array([0x7FC00001], np.uint32).view(np.float32)
    values: list[Any] = [
        np.array([1e-8, 1e-7, 1e20, 0.1, -0.0, np.inf, np.nan], np.float32),
        np.array([0.1, 5e-324, 1 / 3]),
        np.array([0.1, 65504], np.float16),
        odd,
        np.array([2**63 - 1, -(2**63)]),
        np.array(2**64 - 1, np.uint64),
        np.array([True, False]),
        np.arange(65),
        np.zeros((0, 3), np.float32),
        np.array([1 + 2j], np.complex64),
        np.array([0.1, 3], pk.ast.dt.dtype_of("bfloat16").numpy),
    ]
    graph = pk.Graph([pk.constant(v) for v in values])
    text = round_trip(graph)

    for entry, value in zip(pk.parse(text).outputs, values, strict=True):
        assert entry.node.params["value"].tobytes() == value.tobytes()
    assert text.count("base64") == 3


def test_scalars_are_written_as_numbers() -> None:
    """An unnamed constant of one use is a number, unless that would change its dtype."""
    x = pk.var("x", (2,))
    wide = pk.ops.cast(x, "float64") + pk.constant(np.float64(0.5))
    shared = pk.constant(np.float32(2))
    text = round_trip(pk.Graph([x * 0.5, x * shared + shared, wide]))

    assert "mul = mul(x, 0.5)" in text
    assert "constant_1: f32[] = 2.0" in text
    assert "add_1 = add(cast, 0.5)" in text


def test_parameters_of_every_kind_are_written_and_read() -> None:
    """Strings, floats, tuples, dicts, arrays, dtypes, sizes and None keep value and type."""
    op = pk.register_op("test_text_params", num_inputs=1, params=dict.fromkeys("abcdefgh"))
    op.set_attr("FInferShape", lambda node, s: s)
    n = pk.Size.symbol("n")
    x = op(
        pk.var("x", ()),
        a='q"uo\\te',
        b=1e-5,
        c=((1,), (), (2, 3)),
        d={"k": (1, None), 2: True},
        e=np.array([1, 2]),
        f=n * 2 - 1,
        g=(n // 4) * 3,
        h=float("inf"),
    )
    text = round_trip(pk.Graph([x]))
    node = pk.parse(text).outputs[0].node

    assert node.params["d"] == {"k": (1, None), 2: True}
    assert node.params["g"] == (n // 4) * 3
    assert 'a="q\\"uo\\\\te", b=1e-05, c=((1,), (), (2, 3)), d={"k": (1, none), 2: true}' in text
    assert "e=array(i64[2], [1, 2]), f=-1 + 2*n, g=3*((n)//(4)), h=inf" in text


def test_numbers_of_numpy_inside_dicts_are_written_as_pythons() -> None:
    """A dict may hold float64 scalars, infinite ones too; they are read as Python's floats."""
    op = pk.register_op("test_text_float64", num_inputs=1, params={"a": None})
    op.set_attr("FInferShape", lambda node, s: s)
    values = {"low": np.float64("-inf"), "high": np.float64(1.5)}
    text = pk.to_text(pk.Graph([op(pk.var("x", ()), a=values)]))

    assert 'a={"low": -inf, "high": 1.5}' in text
    assert pk.parse(text).outputs[0].node.params["a"] == values


def test_names_that_are_no_identifiers_are_quoted() -> None:
    """Names with quotes, keywords and line breaks are quoted, for nodes and sizes."""
    names = ['a"b', "return", "x\ny", "", "ünï", "a; b", "inf"]
    entries = [pk.var(name, (None,)) for name in names]
    text = round_trip(pk.Graph([pk.ops.exp(e) for e in entries]))

    assert [n.name for n in pk.parse(text).inputs][:3] == names[:3]
    assert text.splitlines()[0] == '"a\\"b": f32[?]'


def test_updates_of_state_are_written_and_read() -> None:
    """Updates of a functional graph are statements of their own."""
    text = round_trip(pk.parse("state w: f32[2]; x: f32[2]; update w = x; return"))

    assert text == "state w: f32[2]\nx: f32[2]\nupdate w = x\nreturn".replace(
        "state w: f32[2]\nx: f32[2]", "x: f32[2]\nstate w: f32[2]"
    )


def test_fused_nodes_are_written_and_read() -> None:
    """A group is written inside its node, with its kind and the names of its operators."""
    graph = pk.parse(
        """x: f32[4]
        f = fused(x, body=group(kind="elementwise", origin=((1, "e7"),)) {
            v: f32[4]; add = add(exp(v), 1.0); return add, v
        })
        return f:1, f:0"""
    )
    text = round_trip(graph)
    body = pk.parse(text).outputs[0].node.params["body"]

    assert 'f = fused(x, body=group(kind="elementwise", origin=((1, "e7"),)) {' in text
    assert "    add = add(exp, 1.0)\n    return add, v" in text
    assert text.endswith("return f:1, f:0")
    assert isinstance(body, pk.Group) and body.kind.value == "elementwise"
    assert [(node.op.name, name) for node, name in body.origin.items()] == [("exp", "e7")]


def test_functions_as_parameters_cannot_be_read() -> None:
    """A function as a parameter is written as opaque, which is refused when read."""
    op = pk.register_op("test_text_opaque", num_inputs=1, params={"f": None})
    op.set_attr("FInferShape", lambda node, s: s)
    text = pk.to_text(pk.Graph([op(pk.var("x", ()), f=len)]))

    assert 'f=opaque("len")' in text
    with pytest.raises(pk.ParseError, match="line 2, column 42: 'opaque' is no value"):
        pk.parse(text)


def test_sizes_are_written_as_formulas() -> None:
    """Quotients are in brackets, so that a factor stays outside; names may be quoted."""
    n, m = pk.Size.symbol("n"), pk.Size.symbol("odd name")
    op = pk.register_op("test_text_size", num_inputs=0, params={"size": None})
    op.set_attr("FInferShape", lambda node: ())
    texts = {
        (n + 1) // 2 * 3 - n: "3*((1 + n)//(2)) - n",
        m * m: '$"odd name"*$"odd name"',
        n * -1: "-n",
    }
    for size, text in texts.items():
        assert f"test_text_size(size={text})" in round_trip(pk.Graph([op(size=size)]))


BAD = [
    ("x: f32[2]; y = sofmax(x); return y", "line 1, column 16: operator 'sofmax' .*'softmax'"),
    ("x: f32[2]\ny = exp(z)\nreturn y", "line 2, column 9: there is no 'z' above; known: x"),
    ("return z", "line 1, column 8: there is no 'z' above; nothing is named yet"),
    ("x: f33[2]; return x", "line 1, column 4: 'f33' is not an element type"),
    ("x: f32[2]", "line 1, column 10: expected a statement or 'return', got the end"),
    ("x: f32[2]; x: f32[3]; return x", "line 1, column 12: the name 'x' is defined twice"),
    ("x: f32[-1]; return x", "an extent is an int >= 0, a size or '[?]', got -1"),
    ("x: f32[2; return x", "expected ',', got ';'"),
    ("x = ; return x", "line 1, column 5: expected a name, got ';'"),
    ("x 3; return x", "line 1, column 3: expected ':' and a type, or '=' and an operator, got '3'"),
    ("x: f32[2]; return x:1", r"line 1, column 19: x has 1 result\(s\), so no number 1"),
    ("x: f32[2]; return x:y", "expected a whole number, got 'y'"),
    ("x: f32[2]; return x x", "expected the end of the statement, got 'x'"),
    ("x: f32[2]; return x; y: f32[2]", "expected the end of the text, got 'y'"),
    ("x: f32[2] = [1]; return x", r"line 1, column 4: f32\[2\] has 2 elements, got 1"),
    ("x: i32[2] = [1, 2.5]; return x", "line 1, column 4: not all of these numbers are int32"),
    ("x: i8[] = 300; return x", "not all of these numbers are int8"),
    ("x: f32[n] = [1]; return x", "an array needs a dtype and a known shape"),
    ('x: f32[2] = base64("AAAA"); return x', r"f32\[2\] has 8 bytes, got 3"),
    ('x: f32[2] = base64("A!"); return x', "line 1, column 20: this is not base64"),
    ("x: f32[2] = base64(3); return x", "line 1, column 20: expected a string, got '3'"),
    ("x: f32[] = y; return x", "expected a number, got 'y'"),
    ("x: i64[] = " + "9" * 500 + "; return x", "a number has 500 digits; the most is 400"),
    ("state x: f32[?]; return x", "state variable 'x' needs a dtype and a known shape"),
    ("x: f32[]; y: f32[]; update x = y; return", "'x' is no state variable, so it has no update"),
    ("x: f32[]; y = exp(x, axis=1, axis=2); return y", "parameter 'axis' is given twice"),
    ("x: f32[]; y = add(k=1, x); return y", "expected a parameter, got 'x'; inputs come first"),
    ("x: f32[]; y = softmax(x, axis=1 + 2.5); return y", "only sizes are added and multiplied, go"),
    ("x: f32[]; y = softmax(x, axis=n//0); return y", "n is divided by zero"),
    ("x: f32[]; y = softmax(x, axis=]); return y", "expected a value, got ']'"),
    ("x: f32[]; y = softmax(x, axis=(1 2)); return y", "expected ',' or '[)]' in a tuple, got '2'"),
    ("x: f32[]; y = softmax(x, axis={(): 1, {}: 2}); return y", "{} cannot be the key of a dict"),
    ("x: f32[]; y = softmax(x, axis=dtype(f33)); return y", "'f33' is not an element type"),
    ("x: f32[]; y = softmax(x, axis=" + "(" * 200 + "); return y", "nested more than 128 deep"),
    ("x: f32[]; return " + "exp(" * 200 + "x" + ")" * 200, "operators are nested more than 128"),
    ("x: f32[] ! ; return x", "line 1, column 10: unexpected character '!'"),
    ('"\\q": f32[]; return x', r"line 1, column 1: \"\\q\" is no JSON string"),
    ('x: f32[]; y = fused(x, body=group(kind="odd") { return }); return y', "no kind 'odd'"),
    (
        'x: f32[]; y = fused(x, body=group(kind="gemm", origin=((9, "a"),)) { return }); return y',
        r"an origin in a group is \(node, name\), got \(9, 'a'\)",
    ),
]


@pytest.mark.parametrize("text, message", BAD)
def test_errors_have_line_and_column(text: str, message: str) -> None:
    """A malformed text is refused, at its line and column."""
    with pytest.raises(pk.ParseError, match=message):
        pk.parse(text)


def test_operators_may_be_nested() -> None:
    """An operator may be an input of another; it is written as a statement with a name."""
    nested = pk.parse("x: f32[2]; y = add(exp(x), mul(2.0, neg(x))); return y, abs(y)")
    flat = pk.parse(
        "x: f32[2]; a = exp(x); b = neg(x); c = mul(2.0, b); y = add(a, c);d = abs(y); return y, d"
    )

    assert nested.key == flat.key
    round_trip(nested)


def test_several_results_are_read_by_number() -> None:
    """A result of an operator with several is ``name:number``."""
    op = pk.register_op("test_text_two", num_inputs=1, num_outputs=2)
    op.set_attr("FInferShape", lambda node, s: (s, s))
    round_trip(pk.parse("x: f32[]; t = test_text_two(x); y = add(t:0, t:1); return y"))

    with pytest.raises(pk.ParseError, match="column 40: t has 2 results; write t:0"):
        pk.parse("x: f32[]; t = test_text_two(x); return t")
    with pytest.raises(pk.ParseError, match="test_text_two has 2 results; give it a name"):
        pk.parse("x: f32[]; return exp(test_text_two(x))")


def test_nesting_of_groups_is_limited() -> None:
    """Groups nested more than 32 deep are refused."""
    deep = 'y = fused(body=group(kind="gemm") { ' * 40

    with pytest.raises(pk.ParseError, match="graphs are nested more than 32 deep"):
        pk.parse(deep)


def test_errors_of_operators_have_a_note_with_the_line() -> None:
    """An error of an operator keeps its type and gets the position in the text as a note."""
    with pytest.raises(pk.ShapeError, match="softmax 'y': axis 3 is out of range") as caught:
        pk.parse("x: f32[2]\ny = softmax(x, axis=3)\nreturn y")

    assert caught.value.__notes__ == ["at line 2, column 5 of the text"]


def test_long_texts_are_read_without_recursion() -> None:
    """20,000 statements are written and read without recursion."""
    text = (
        "x: f32[]\n"
        + "\n".join(f"y{k} = neg({f'y{k - 1}' if k else 'x'})" for k in range(20_000))
        + "\nreturn y19999"
    )

    assert pk.to_text(pk.parse(text)) == text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "x: f32[2]; y = fused(x, body=0); return y",
            "line 1, column 16: operator fused fails for",
        ),
        ("x: f32[2]; y = add(x,", "line 1, column 22: expected a number, got the end"),
        ("x: f32[2]; return x,", "line 1, column 21: expected a name, got the end"),
    ],
)
def test_unfinished_calls_and_invalid_parameters_are_refused(text: str, message: str) -> None:
    """A text that ends within a call, and what an operator's rule cannot read, is refused."""
    with pytest.raises(pk.ParseError, match=message):
        pk.parse(text)


@pytest.mark.parametrize("word", ["True", "False", "None"])
def test_words_of_python_are_refused_as_values(word: str) -> None:
    """The error says how a text spells the word; a variable of that name is quoted."""
    with pytest.raises(pk.ParseError, match=f"'{word}' is no value; write {word.lower()}"):
        pk.parse(f"x: f32[3, 4]; y = matmul(x, x, transpose_a={word})")
    graph = pk.Graph([pk.ops.exp(pk.var(word, (word,)))])
    assert pk.to_text(pk.parse(pk.to_text(graph))) == pk.to_text(graph)
