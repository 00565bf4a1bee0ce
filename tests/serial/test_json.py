"""JSON in NNVM's layout: round trips give the same bytes, and invalid files are refused."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import passkit as pk
from passkit.errors import ParseError
from tests.command import passkit


def sample() -> pk.Graph:
    """Return a graph of input, state variable, parameters, constant and control dependency."""
    return pk.parse(
        """x: f32[?, 4]; state w: f32[4] = [1, 2, 3, 4]
        a = assign(w, c); c: f32[4] = [0, -0.0, inf, nan]
        s = softmax(x, axis=0) after(a); y = add(s, w); return y, a""".replace(
            "a = assign(w, c); c: f32[4] = [0, -0.0, inf, nan]",
            "c: f32[4] = [0, -0.0, inf, nan]; a = assign(w, c)",
        )
    )


def round_trip(graph: pk.Graph) -> dict[str, Any]:
    """Return the JSON of a graph as data, after checking that it reads back to the same bytes."""
    text = pk.to_json(graph)
    again = pk.from_json(text)
    assert pk.to_json(again) == text
    assert again.key == graph.key
    return dict(json.loads(text))


def test_the_layout_is_nnvms() -> None:
    """Nodes are in post-order, variables have op null, and entries and heads have versions."""
    data = round_trip(sample())

    assert [n["op"] for n in data["nodes"]] == [
        "null",
        "null",
        "constant",
        "assign",
        "softmax",
        "add",
    ]
    assert data["arg_nodes"] == [0, 1]
    assert data["node_row_ptr"] == [0, 1, 2, 3, 4, 5, 6]
    assert data["heads"] == [[5, 0, 0], [3, 0, 0]]
    assert data["nodes"][4]["control_deps"] == [3]
    assert data["nodes"][5]["inputs"] == [[4, 0, 0], [1, 0, 1]]
    assert data["nodes"][4]["attrs"] == {"axis": 0}


def test_names_of_nodes_are_written_and_read() -> None:
    """Names with quotes or line breaks, and missing names, round-trip."""
    x = pk.var('a"\n;', (2,))
    again = pk.from_json(pk.to_json(pk.Graph([pk.ops.exp(x)])))

    assert [n.name for n in again.nodes] == ['a"\n;', ""]


def test_arg_nodes_gives_the_order_of_inputs() -> None:
    """Inputs have the order of "arg_nodes" if it lists all; an index of no node is refused."""
    x, y = pk.var("x", (2,)), pk.var("y", (2,))
    graph = pk.Graph([y - x]).with_inputs([x.node, y.node])
    data = round_trip(graph)

    assert data["arg_nodes"] == [1, 0]
    assert [n.name for n in pk.from_json(json.dumps(data)).inputs] == ["x", "y"]
    few = pk.from_json(json.dumps(data | {"arg_nodes": [1]}))
    assert few.inputs == pk.Graph(few.outputs).inputs
    with pytest.raises(ParseError, match=r"arg_nodes must be an int from 0 to 2, got 7"):
        pk.from_json(json.dumps(data | {"arg_nodes": [7]}))


def test_files_of_nnvm_are_read() -> None:
    """NNVM's ``attr`` and ``param``, entries of two numbers, and string parameters are read."""
    data = {
        "nodes": [
            {"op": "null", "name": "x", "inputs": []},
            {
                "op": "reduce_sum",
                "name": "s",
                "attr": {"axis": "(0, 1)", "keepdims": "True"},
                "inputs": [[0, 0]],
            },
            {"op": "softmax", "name": "t", "param": {"axis": "-1"}, "inputs": [[1, 0, 0]]},
            {
                "op": "reduce_max",
                "name": "m",
                "attrs": {"axis": "None"},
                "inputs": [[2, 0]],
                "control_deps": [1],
            },
        ],
        "arg_nodes": [0],
        "heads": [[3, 0]],
        "attrs": {"version": ["str", "0.1.0"]},
    }
    graph = pk.from_json(json.dumps(data))

    assert [dict(n.params) for n in graph.nodes[1:]] == [
        {"axis": (0, 1), "keepdims": True},
        {"axis": -1},
        {"axis": None, "keepdims": False},
    ]
    assert graph.nodes[3].control == (graph.nodes[1],)
    assert graph.inputs[0].params == {"shape": None, "dtype": None}
    assert graph.attrs == {"version": "0.1.0"}


def test_parameters_of_every_kind_are_written_and_read() -> None:
    """Sizes, arrays, floats that JSON lacks, dicts, and None keep value and type."""
    op = pk.register_op("test_json_params", num_inputs=0, params=dict.fromkeys("abcdefg"))
    op.set_attr("FInferShape", lambda node: ())
    n = pk.Size.symbol("n")
    x = op(
        a=(n + 1) // 2 * 3 - n,
        b=np.arange(3.0),
        c=float("-inf"),
        d={1: "a", "k": ()},
        e=("x", 1.0, 1, True),
        f=pk.ast.dt.float16,
    )
    round_trip(pk.Graph([x]))
    params = pk.from_json(pk.to_json(pk.Graph([x]))).nodes[0].params

    assert params["a"] == (n + 1) // 2 * 3 - n
    assert params["d"] == {1: "a", "k": ()}
    assert [type(v) for v in params["e"]] == [str, float, int, bool]


def test_numbers_of_numpy_inside_dicts_are_written_as_pythons() -> None:
    """A dict may hold float64 scalars, infinite ones too; they are read as Python's floats."""
    op = pk.register_op("test_json_float64", num_inputs=0, params={"a": None})
    op.set_attr("FInferShape", lambda node: ())
    graph = pk.Graph([op(a={"low": np.float64("-inf"), "high": np.float64(1.5)})])
    again = pk.from_json(pk.to_json(graph)).nodes[0].params["a"]

    assert again == {"low": float("-inf"), "high": 1.5}
    assert {type(v) for v in again.values()} == {float}


def test_fused_nodes_and_updates_are_written_and_read() -> None:
    """Groups are stored as graphs inside the parameter, and updates beside the heads."""
    state = pk.state("w", np.zeros(4))
    body = 'group(kind="reduction", origin=((1, "e"),)) { v: f32[4]; y = exp(v); return y }'
    (fused,) = pk.parse(f"x: f32[4]; f = fused(x, body={body}); return f").outputs
    other = pk.ops.cast(fused, "float64")
    data = round_trip(pk.Graph([fused], [(state.node, other)]))

    assert data["updates"] == [[3, [2, 0, 0]]]
    assert data["nodes"][1]["attrs"]["body"]["with"]["dict"][0] == ["kind", "reduction"]


def test_plain_annotations_are_written_and_read() -> None:
    """Numbers, strings and lists of them are kept; all other annotations are left out."""
    graph = sample().with_attrs(a=1, b="two", c=(1, 2), d=["x"], e=object(), f=float("nan"), g=True)
    again = pk.from_json(pk.to_json(graph))

    assert again.attrs == {"a": 1, "b": "two", "c": (1, 2), "d": ("x",), "g": True}


def test_parameters_without_a_json_form_are_refused() -> None:
    """A parameter that cannot be stored is named."""
    op = pk.register_op("test_json_opaque", num_inputs=0, params={"f": None})
    op.set_attr("FInferShape", lambda node: ())

    with pytest.raises(pk.GraphError, match="test_json_opaque 'n': f is a builtin_function_or_met"):
        pk.to_json(pk.Graph([op(f=len, name="n")]))


def broken(change: Callable[[Any], Any]) -> str:
    """Return the JSON of the sample after a change of its data."""
    data = json.loads(pk.to_json(sample()))
    return json.dumps(change(data) or data)


def put(*path: Any) -> Callable[[Any], Any]:
    """A change that sets the value at a path: keys, then the value."""

    def change(data: Any) -> None:
        *keys, last, value = path
        for key in keys:
            data = data[key]
        data[last] = value

    return change


BAD: list[tuple[Callable[[Any], Any], str]] = [
    (lambda d: [1], r"the document must be an object, got \[1\]"),
    (
        lambda d: d.pop("nodes") and None,
        r"the document lacks the key 'nodes'; it has \['arg_nodes'",
    ),
    (put("nodes", {}), r"nodes must be a list, got {}"),
    (put("heads", [3]), r"heads\[0\] must be \[node, index, version\], got 3"),
    (put("heads", 0, 0, 99), r"heads\[0\] must be an int from 0 to 5, got 99"),
    (put("heads", 0, 0, -1), r"heads\[0\] must be an int from 0 to 5, got -1"),
    (put("heads", 0, 1, 1), r"the index in heads\[0\] must be an int from 0 to 0, got 1"),
    (put("heads", 0, 2, "v"), r"the version in heads\[0\] must be an int .* got 'v'"),
    (put("nodes", 0, "op", 3), r"nodes\[0\].op must be a str, got 3"),
    (put("nodes", 4, "op", "sofmax"), r"nodes\[4\] 's': operator 'sofmax' .* 'softmax'"),
    (
        put("nodes", 0, "inputs", [[0, 0, 0]]),
        r"nodes\[0\].inputs\[0\] refers to 0, but no node or result",
    ),
    (put("nodes", 4, "inputs", [[4, 0, 0]]), r"nodes\[4\].inputs\[0\] must be an int from 0 to 3"),
    (put("nodes", 4, "inputs", []), r"nodes\[4\] 's' has 0 inputs; softmax takes 1"),
    (put("nodes", 4, "control_deps", [True]), r"control_deps\[0\] must be an int .* got True"),
    (put("nodes", 4, "attrs", {"axes": 0}), r"nodes\[4\].attrs.axes is no parameter of softmax; d"),
    (put("nodes", 5, "attrs", {"k": 0}), r"nodes\[5\].attrs.k is no parameter of add; it takes no"),
    (put("nodes", 2, "attrs", {}), r"nodes\[2\].attrs lacks the parameter 'value' of constant"),
    (put("nodes", 2, "attrs", "value", 3), r"nodes\[2\].attrs.value must be an array, got 3"),
    (put("nodes", 2, "attrs", "value", "shape", [10**9]), "must have 4000000000 bytes for float32"),
    (put("nodes", 2, "attrs", "value", "shape", [-4]), r"shape must be ints >= 0 .*, got \(-4,"),
    (put("nodes", 2, "attrs", "value", "array", "!" * 24), r"value.array is not base64"),
    (put("nodes", 2, "attrs", "value", "array", "A" * 23 + "="), "value.array must have 16 bytes,"),
    (put("nodes", 0, "attrs", "shap", 1), r"attrs.shap is no attribute of a variable; did .*'shap"),
    (put("nodes", 0, "attrs", "shape", [-1]), r"attrs.shape must be extents >= 0, got \(-1,\)"),
    (put("nodes", 0, "attrs", "dtype", "f"), r"attrs.dtype must be a dtype, got 'f'"),
    (put("nodes", 1, "attrs", "state", "x"), r"attrs.state must be true, or left out .*, got 'x'"),
    (put("nodes", 0, "attrs", "state", False), r"attrs.state must be true, or .*, got False"),
    (put("nodes", 1, "attrs", "initial", 3), r"attrs.initial must be an array of the variable's s"),
    (put("nodes", 0, "attrs", "shape", {"size": 3.5}), r"shape.size must be \[\[int, \[symbol"),
    (put("nodes", 0, "attrs", "shape", {"size": [[1, [3]]]}), "has 3, which is no symbol or quoti"),
    (put("nodes", 0, "attrs", "shape", {"size": [[1, [[2, 0]]]]}), "shape.size divides 2 by zero"),
    (put("nodes", 0, "attrs", "shape", {"float": "1"}), "float must be inf, -inf or nan, got '1'"),
    (
        put("nodes", 0, "attrs", "shape", {"odd": 1}),
        r"shape must be an object with one of the keys float, .* got {'odd': 1}",
    ),
    (put("nodes", 0, "attrs", "shape", {"dict": [1]}), r"shape.dict must be pairs, got \[1\]"),
    (put("nodes", 0, "attrs", "shape", {"group": {}}), r"shape.group lacks the key 'nodes'"),
    (
        put("nodes", 0, "attrs", "shape", {"group": {"nodes": [], "heads": []}, "with": 1}),
        "shape.with must be a dict, got 1",
    ),
    (put("updates", [1]), r"updates\[0\] must be \[number of .*\], got 1"),
    (put("updates", [[0, [0, 0]]]), r"updates\[0\] must write a state variable, got variable 'x'"),
    (put("attrs", {"k": 1}), r"attrs.k must be \[type, value\], got 1"),
]


@pytest.mark.parametrize("change, message", BAD)
def test_invalid_data_is_refused(change: Callable[[Any], Any], message: str) -> None:
    """A missing, malformed or out-of-range value is named by its key."""
    with pytest.raises(pk.ParseError, match=message):
        pk.from_json(broken(change))


@pytest.mark.parametrize(
    "text, message",
    [
        ("", "this is not JSON: Expecting value"),
        ("{", "this is not JSON: Expecting property name"),
        ("[" * 100_000, "this is not JSON: maximum recursion depth"),
        ('{"nodes": ' + "9" * 10_000 + "}", "this is not JSON: Exceeds the limit"),
    ],
)
def test_text_that_is_not_json_is_refused(text: str, message: str) -> None:
    """Malformed, deeply nested and numerically excessive text is refused."""
    with pytest.raises(pk.ParseError, match=message):
        pk.from_json(text)


def nest(depth: int, wrap: Callable[[Any], Any], inner: Any) -> Any:
    """Return a value wrapped ``depth`` times."""
    for _ in range(depth):
        inner = wrap(inner)
    return inner


def test_nesting_is_limited() -> None:
    """Values, sizes and graphs nested more than 32 deep are refused."""
    deep: list[tuple[Any, str]] = [
        (nest(40, lambda v: [v], 1), "nested more than 32 values deep"),
        ({"size": nest(40, lambda v: [[1, [[v, 2]]]], 1)}, "nested more than 32 sizes deep"),
        (
            nest(
                40,
                lambda v: {
                    "group": {
                        "heads": [],
                        "nodes": [{"op": "null", "name": "x", "attrs": {"shape": v}, "inputs": []}],
                    }
                },
                1,
            ),
            r"shape.group is nested more than 32 graphs deep",
        ),
    ]
    for value, message in deep:
        with pytest.raises(pk.ParseError, match=message):
            pk.from_json(broken(put("nodes", 0, "attrs", "shape", value)))


def test_errors_of_operators_have_a_note_with_the_key() -> None:
    """An error of an operator keeps its type and gets the position in the file as a note."""
    with pytest.raises(pk.ShapeError, match="axis 7 is out of range") as caught:
        pk.from_json(broken(put("nodes", 4, "attrs", {"axis": 7})))

    assert caught.value.__notes__ == ["in nodes[4]"]


def test_damaged_files_give_a_graph_or_an_error_of_passkit() -> None:
    """Two thousand random mutations raise nothing but PasskitError."""
    text = pk.to_json(sample())
    for seed in range(2000):
        rng = random.Random(seed)
        at, n = rng.randrange(len(text)), rng.choice([1, 1, 2, 8])
        piece = rng.choice(["", "0", "null", "[]", "{}", '"x"', "-1", "1e9", ",", text[:20]])
        with suppress(pk.PasskitError):
            pk.from_json(text[:at] + piece + text[at + n :])


def _array_of(shape: list[Any]) -> str:
    node = {"op": "constant", "attrs": {"value": {"array": "", "dtype": "int8", "shape": shape}}}
    return json.dumps({"nodes": [node], "heads": [[0, 0]]})


@pytest.mark.parametrize(
    "shape, message",
    [
        ([0] * 65, "value.shape must have at most 64 axes, got 65"),
        ([0, 10**30], r"value.shape must be ints >= 0 and < 2\*\*59, got \(0, 1000000"),
    ],
)
def test_arrays_beyond_numpys_limits_are_refused(shape: list[Any], message: str) -> None:
    """Too many axes, and extents of more than 59 bits, are refused before NumPy sees them."""
    with pytest.raises(ParseError, match=message):
        pk.from_json(_array_of(shape))


def test_unhashable_keys_are_refused() -> None:
    """A dict whose key is a dict or an array is refused."""
    text = json.dumps({"nodes": [{"op": "exp", "attrs": {"a": {"dict": [[{"dict": []}, 1]]}}}]})

    with pytest.raises(ParseError, match=r"a.dict must have numbers, .* got \{'dict': \[\]\}"):
        pk.from_json(text)


@pytest.mark.parametrize("name", ["kernel", "schedule", "shape", "options", "expanded"])
def test_annotations_of_passes_are_neither_read_nor_written(name: str) -> None:
    """A file cannot contradict what passes compute."""
    data = round_trip(sample())
    data["attrs"] |= {name: ["str", "y"], "note": ["str", "y"]}
    graph = pk.from_json(json.dumps(data))

    assert dict(graph.attrs) == {"note": "y"}
    assert name not in round_trip(sample().with_attrs(**{name: "y"}))["attrs"]
    pk.ApplyPasses(graph, ["Fusion", "SchedulePlan"])


def test_annotations_of_every_pass_are_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    """No annotation that a pass of the library provides, or that planning adds, is written."""
    assert passkit("passes", "--json") == 0
    folder = str(Path(pk.__file__).parent)
    passes = [p for p in json.loads(capsys.readouterr().out) if p["place"].startswith(folder)]
    provided = {name for p in passes for name in p["provides"]}
    planned = pk.ApplyPasses(pk.parse("x: f32[4]; return exp(x)"), ["Fusion", "SchedulePlan"])
    names = provided | set(planned.attrs) | {"options", "timing", "shape_guards", "hinted"}

    assert {"subgraph", "kernel", "storage", "schedule"} <= provided
    assert (
        round_trip(sample().with_attrs(**dict.fromkeys(names, "y")))["attrs"]
        == (round_trip(sample())["attrs"])
    )


def test_long_names_are_shortened_in_messages() -> None:
    """A name of 700 kB is cut in the message."""
    long = "n" * 700_000
    for text in (
        json.dumps({"nodes": [{"op": long, "name": long}], "heads": []}),
        json.dumps({"nodes": [{"op": "exp", "name": long, "attrs": {long: 1}}], "heads": []}),
    ):
        with pytest.raises(ParseError, match=r"nnnn\.\.\.") as caught:
            pk.from_json(text)
        assert len(str(caught.value)) < 1000


def test_parameters_of_wrong_types_are_refused_by_position() -> None:
    """An error that an operator's functions raise for a parameter has the node's position."""
    node = {"op": "transpose", "inputs": [[0, 0]], "attrs": {"axes": {"dict": [[1, 2]]}}}
    data = round_trip(sample())
    data["nodes"] = [data["nodes"][0], node]
    data["heads"], data["arg_nodes"] = [[1, 0]], []

    with pytest.raises(pk.PasskitError, match=r"transpose|nodes\[1\]"):
        pk.from_json(json.dumps(data))


def test_operators_are_read_by_their_former_names() -> None:
    """A plan that was stored before reductions of chunks had their present names is read."""
    graph = pk.ApplyPasses(pk.parse("x: f32[100000]\ny = reduce_sum(x)\nreturn y\n"), "SplitReduce")
    text = pk.to_json(graph)
    former = text.replace('"partial_reduce"', '"partial"').replace('"combine_partials"', '"join"')
    assert former.count('"partial"') == former.count('"join"') == 1

    assert pk.to_json(pk.from_json(former)) == text
