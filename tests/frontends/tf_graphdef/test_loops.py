"""Loops, tensor lists and TensorFlow 1's control flow: unrolled if countable, else run.

And errors.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import passkit as pk
from passkit.errors import ModelError
from passkit.frontends import tf_graphdef
from tests.frontends.tf_graphdef.models import (
    attr,
    calls,
    const,
    function,
    model,
    node,
    placeholder,
    with_functions,
)
from tests.frontends.tf_graphdef.test_functions import FALSE, FEED, TRUE, X, operators_of, run

FLOAT, INT = np.dtype("float32"), np.dtype("int32")
ZERO = const("zero", 0)
TWO = const("two", 2)
N = placeholder("n", dtype="int32")
P = placeholder("p", dtype="bool")
UNTIL = function("until", "i n v", {"r": "l:z:0"}, node("Less", "l", "i", "n"))
ADD = [const("one", 1), node("AddV2", "j", "i", "one:output:0")]
TWICE = function(
    "twice", "i n v", {"i": "j:z:0", "n": "n", "v": "w:z:0"}, *ADD, node("Add", "w", "v", "v")
)


def loop(condition: str = "until", body: str = "twice", *inputs: str) -> Any:
    """Return a loop over a counter, its limit and a value."""
    arguments = inputs or ("zero", "n", "x")
    return node("While", "y", *arguments, cond=calls(condition), body=calls(body))


def model_with_loop(*nodes: Any, bodies: Any = (UNTIL, TWICE)) -> Any:
    """Return a model with a loop."""
    return with_functions([X, ZERO, *nodes], *bodies)


def test_a_loop_of_known_iterations_is_unrolled() -> None:
    """Each iteration is in the graph under its number, and the counter is folded."""
    source = model_with_loop(const("n", 3), loop())

    np.testing.assert_array_equal(run(source, "y:2")[0], 8 * FEED)
    graph = tf_graphdef.load(source, "y:2")
    assert [n.name for n in graph.nodes] == ["x", "y/0/w", "y/1/w", "y/2/w", "y"]


def test_a_loop_of_zero_iterations_returns_its_inputs() -> None:
    """A loop without iterations returns its initial values."""
    np.testing.assert_array_equal(run(model_with_loop(const("n", 0), loop()), "y:2")[0], FEED)


@pytest.mark.parametrize("iterations", [0, 1, 5])
def test_a_loop_of_unknown_iterations_is_one_node(iterations: int) -> None:
    """The loop is one node, which iterates as often as the call requires."""
    source = model_with_loop(N, loop())

    for target in ("interpret", "cpu"):
        exe = pk.compile(tf_graphdef.load(source, ["y:0", "y:2"]), target=target)
        count, results = exe(x=FEED, n=np.int32(iterations))
        assert count == iterations
        np.testing.assert_array_equal(results, 2**iterations * FEED)


def test_long_loops_are_not_unrolled() -> None:
    """Loops with too many iterations or nodes run at run time."""
    source = model_with_loop(const("n", 5000), loop())
    assert operators_of_output(source).count("while_loop") == 1
    wide = function(
        "twice",
        "i n v",
        {"i": "j:z:0", "n": "n", "v": "w99:z:0"},
        *ADD,
        *(node("Add", f"w{k}", f"w{k - 1}:z:0" if k else "v", "v") for k in range(100)),
    )
    source = model_with_loop(const("n", 200), loop(), bodies=(UNTIL, wide))
    assert "while_loop" in operators_of_output(source)
    graph = tf_graphdef.load(model_with_loop(const("n", 20), loop()), "y:0", max_rounds=10)
    assert int(pk.interpret(graph, {"x": FEED} if graph.inputs else {})[0]) == 20


def operators_of_output(source: Any) -> list[str]:
    """Return the operators behind the value of a loop."""
    return [n.op.name for n in tf_graphdef.load(source, "y:2").nodes if n.op]


def test_unsupported_operators_in_a_loop_are_reported() -> None:
    """Unsupported operators in body and condition are reported with all others."""
    bad = function(
        "twice", "i n v", {"i": "j:z:0", "n": "n", "v": "w:z:0"}, *ADD, node("Odd", "w", "v")
    )
    rare = function("until", "i n v", {"r": "l:z:0"}, node("Rare", "l", "i"))
    for nodes, bodies, message in (
        ([const("n", 3)], (UNTIL, bad), r"1 node.* Odd × 1 \('y/0/w'\)"),
        ([const("n", 3)], (rare, bad), r"2 node.* Odd × 1 .*; Rare × 1"),
        ([N], (UNTIL, bad), r"1 node.* Odd × 1"),
    ):
        with pytest.raises(ModelError, match=message):
            tf_graphdef.load(model_with_loop(*nodes, loop(), bodies=bodies), "y:2")


GROWS = function(
    "twice",
    "i n v",
    {"i": "j:z:0", "n": "n", "v": "w:o:0"},
    *ADD,
    const("z", 0),
    node("ConcatV2", "w", "v", "v", "z:output:0"),
)
TURNS = function(
    "twice",
    "i n v",
    {"i": "j:z:0", "n": "n", "v": "l:h:0"},
    *ADD,
    node("EmptyTensorList", "l", "i", "i", element_dtype=FLOAT),
)
FEWER = function("twice", "i n v", {"i": "j:z:0"}, *ADD)
MORE = function("until", "i n v", {"r": "l:z:0", "s": "i"}, node("Less", "l", "i", "n"))
LISTED = function(
    "until", "i n v", {"r": "l:h:0"}, node("EmptyTensorList", "l", "i", "i", element_dtype=FLOAT)
)
ASSIGNS = function(
    "twice",
    "i n v",
    {"i": "j:z:0", "n": "n", "v": "v"},
    *ADD,
    node("VarHandleOp", "h", dtype=FLOAT, shape=(), shared_name="var"),
    const("c", 1.0),
    node("AssignVariableOp", "a", "h:r:0", "c:output:0"),
)
ASSIGNS.control_ret["a"] = "a"


@pytest.mark.parametrize(
    ("nodes", "bodies", "message"),
    [
        ([N], (UNTIL, GROWS), r"variable 2 changes from float32\(x.0, 3\) to float32\(2\*x.0, 3\)"),
        ([N], (UNTIL, TURNS), "array as its value 2, got a list of tensors"),
        ([N], (UNTIL, FEWER), "While 'y' needs 3.*loop variable, got 1"),
        ([const("n", 2)], (UNTIL, FEWER), "While 'y' needs 3.*loop variable, got 1"),
        ([N], (MORE, TWICE), "from its condition function 'until', got 2"),
        ([const("n", 2)], (LISTED, TWICE), "an array as its condition, got .*, a list of tensors"),
        (
            [N, node("VarHandleOp", "h", dtype=FLOAT, shape=(), shared_name="var")],
            (UNTIL, ASSIGNS),
            "assigns to the variable 'var', which is not supported",
        ),
    ],
)
def test_loops_that_change_shapes_or_dtypes_are_refused(
    nodes: list[Any], bodies: Any, message: str
) -> None:
    """A loop must keep the number, shapes and dtypes of its values."""
    with pytest.raises(ModelError, match=message):
        tf_graphdef.load(model_with_loop(*nodes, loop(), bodies=bodies), "y:2")


# lists


def reserve(count: str = "two", **attrs: Any) -> Any:
    """Return a list of a length."""
    return node("TensorListReserve", "l", "any", count, element_dtype=FLOAT, **attrs)


ANY = const("any", -1)
ITEM = const("item", [1.0, 2.0])


@pytest.mark.parametrize(
    ("nodes", "expected"),
    [
        (
            [
                node("TensorListSetItem", "m", "l", "zero", "item"),
                node("TensorListStack", "y", "m", "any"),
            ],
            [[1, 2], [0, 0]],
        ),
        ([node("TensorListPushBack", "m", "l", "item"), node("TensorListLength", "y", "m")], 3),
        (
            [
                node("TensorListPushBack", "m", "l", "item"),
                node("TensorListPopBack", "p", "m", "any"),
                node("Neg", "y", "p:1"),
            ],
            [-1, -2],
        ),
        (
            [
                node("TensorListFromTensor", "m", "item", "any"),
                node("TensorListGetItem", "y", "m", "one", "any"),
            ],
            2,
        ),
        (
            [
                node("TensorListFromTensor", "m", "item", "any"),
                const("at", [1, 0, 1]),
                node("TensorListGather", "y", "m", "at", "any"),
            ],
            [2, 1, 2],
        ),
        (
            [
                const("at", [2, 0]),
                node("TensorListScatter", "m", "item", "at", "any"),
                node("TensorListStack", "y", "m", "any"),
            ],
            [2, 0, 1],
        ),
        (
            [
                const("at", [2, 0]),
                const("n4", 4),
                node("TensorListScatterV2", "m", "item", "at", "any", "n4"),
                node("TensorListStack", "y", "m", "any"),
            ],
            [2, 0, 1, 0],
        ),
        (
            [
                node("TensorListPushBack", "m", "e", "item"),
                node("TensorListPushBack", "k", "m", "item"),
                node("TensorListConcatV2", "y", "k", "any", "any"),
            ],
            [1, 2, 1, 2],
        ),
        (
            [
                const("ls", [1, 1]),
                node("TensorListSplit", "m", "item", "any", "ls"),
                node("TensorListGetItem", "y", "m", "one", "any"),
            ],
            [2],
        ),
        (
            [
                node("TensorListFromTensor", "m", "item", "any"),
                node("TensorListResize", "k", "m", "one"),
                node("TensorListStack", "y", "k", "any"),
            ],
            [1],
        ),
        (
            [
                node("TensorListConcatLists", "m", "l", "l", element_dtype=FLOAT),
                node("TensorListLength", "y", "m"),
            ],
            4,
        ),
        ([const("sh", [3]), node("TensorListStack", "y", "e", "sh")], np.zeros((0, 3))),
        (
            [
                node("TensorListPushBack", "m", "e", "item"),
                node("TensorListElementShape", "y", "m", shape_type=INT),
            ],
            -1,
        ),
    ],
)
def test_list_operators_equal_tensorflows(nodes: list[Any], expected: Any) -> None:
    """Each list operator gives TensorFlow's result."""
    empty = node("EmptyTensorList", "e", "any", "two", element_dtype=FLOAT)
    source = model(ANY, ITEM, ZERO, TWO, const("one", 1), reserve(), empty, *nodes)

    results = pk.interpret(tf_graphdef.load(source, "y"))[0]
    np.testing.assert_array_equal(results, expected)


@pytest.mark.parametrize(
    ("nodes", "message"),
    [
        ([node("TensorListStack", "y", "item", "any")], "got 'item', an array"),
        (
            [node("TensorListStack", "y", "h", "any")],
            "needs a list, got 'h', a handle of a variable",
        ),
        ([node("TensorListStack", "y", "l", "any")], "the shape of item 0, which was not set"),
        (
            [node("TensorListStack", "y", "e", "any")],
            "TensorListStack 'y' needs the shape of the items of 'e'",
        ),
        ([node("TensorListGetItem", "y", "l", "two", "any")], "into a list of 2 items, got 2"),
        ([node("TensorListGetItem", "y", "l", "any", "any")], "into a list of 2 items, got -1"),
        ([node("TensorListSetItem", "y", "l", "zero", "two")], "an item of float32, got int32"),
        (
            [
                node("EmptyTensorList", "n", "any", "two", element_dtype=INT),
                node("TensorListConcatLists", "y", "l", "n", element_dtype=FLOAT),
            ],
            "TensorListConcatLists 'y' needs an item of float32, got int32",
        ),
        ([node("TensorListPopBack", "y", "e", "any")], "remove, got the empty 'e'"),
        ([const("at", [7]), node("TensorListGather", "y", "l", "at", "any")], "2 items, got 7"),
        ([const("at", [7]), node("TensorListScatter", "y", "item", "at", "any")], "rows, got 1"),
        (
            [const("at", [7, 0]), node("TensorListScatterV2", "y", "item", "at", "any", "two")],
            "indices into a list of 2 items, got 7",
        ),
        ([node("TensorListGather", "y", "l", "item", "any")], r"indices, .* got float32\(2,\) fr"),
        ([node("TensorListConcat", "y", "e", "any")], "concatenate, got the empty 'e'"),
        (
            [const("ls", [5, 1]), node("TensorListSplit", "y", "item", "any", "ls")],
            r"the first axis of 'item' of shape \(2,\), got \(5, 1\)",
        ),
        (
            [node("TensorListFromTensor", "y", "zero", "any")],
            r"a known length, got 'zero' of shape \(\)",
        ),
        ([node("TensorListReserve", "y", "any", "any", element_dtype=FLOAT)], "at least 0, got -1"),
        ([node("TensorListLength", "y")], "TensorListLength 'y' needs 1 input.s., got 0"),
        ([node("Neg", "y", "l")], "Neg 'y' needs an array, got 'l', a list of tensors"),
        ([node("Identity", "y", "l")], "arrays as outputs, and 'y' is a list of tensors"),
    ],
)
def test_invalid_list_operations_are_refused(nodes: list[Any], message: str) -> None:
    """Items of another dtype and indices out of range are refused."""
    empty = node("EmptyTensorList", "e", "any", "two", element_dtype=FLOAT)
    handle = node("VarHandleOp", "h", dtype=FLOAT, shape=())
    source = model(ANY, ITEM, ZERO, TWO, reserve(), empty, handle, *nodes)

    with pytest.raises(ModelError, match=message):
        tf_graphdef.load(source, "y")


def test_lists_with_runtime_indices_become_arrays() -> None:
    """A list that is indexed at run time becomes an array of its items."""
    nodes = [
        ANY,
        TWO,
        node("TensorListFromTensor", "l", "x", "any"),
        node("TensorListGetItem", "a", "l", "n", "any"),
        node("TensorListSetItem", "m", "l", "n", "a"),
        node("TensorListStack", "y", "m", "any"),
    ]
    for x in (X, placeholder("x", 2, 3)):
        a, y = run(model(x, N, *nodes), ["a", "y"], n=np.int32(1))
        np.testing.assert_array_equal(a, FEED[1])
        np.testing.assert_array_equal(y, FEED)


def test_runtime_indices_need_items_of_one_shape() -> None:
    """Items of different or unknown shapes cannot become an array."""
    nodes = [ANY, TWO, ITEM, N, const("more", [1.0, 2.0, 3.0])]
    put = [
        node("EmptyTensorList", "l", "any", "two", element_dtype=FLOAT),
        node("TensorListPushBack", "m", "l", "item"),
        node("TensorListPushBack", "k", "m", "more"),
        node("TensorListGetItem", "y", "k", "n", "any"),
    ]
    with pytest.raises(ModelError, match=r"'y' reads 'k' by .* items of one shape, got \(2"):
        tf_graphdef.load(model(*nodes, *put), "y")
    put[-1].input[0] = "l"
    with pytest.raises(ModelError, match="the shape of the items of '.*', a list of length 0"):
        tf_graphdef.load(model(*nodes, *put), "y")


# TensorFlow 1


def conditional(condition: Any, *more: Any) -> Any:
    """Return a value that is doubled or negated by Switch and Merge."""
    return model(
        X,
        condition,
        node("Switch", "s", "x", condition.name),
        node("Neg", "a", "s"),
        node("Add", "b", "s:1", "s:1"),
        node("Merge", "y", "a", "b"),
        *more,
    )


@pytest.mark.parametrize(("condition", "factor", "which"), [(TRUE, 2, 1), (FALSE, -1, 0)])
def test_switch_and_merge_on_a_known_condition(condition: Any, factor: int, which: int) -> None:
    """Nodes on the dead side are not in the graph."""
    results, index = run(conditional(condition), ["y", "y:1"])

    np.testing.assert_array_equal(results, factor * FEED)
    assert index == which
    assert [n for n in operators_of(conditional(condition)) if n != "identity"] in (
        ["add"],
        ["neg"],
    )


def test_merge_selects_on_a_runtime_condition() -> None:
    """A Merge selects by the condition of the Switch in front of it."""
    for value, factor, which in ((True, 2, 1), (False, -1, 0)):
        results, index = run(conditional(P), ["y", "y:1"], p=np.array(value))
        np.testing.assert_array_equal(results, factor * FEED)
        assert index == which


def test_nested_and_chained_merges_use_their_own_conditions() -> None:
    """Each Merge is decided by its own Switch, also if conditions are shared or nested."""
    after = [
        node("Switch", "t", "y", "p"),
        node("Neg", "c", "t"),
        node("Merge", "z", "c", "t:1"),
    ]
    for value, factor in ((True, 2), (False, 1)):
        results = run(conditional(P, *after), "z", p=np.array(value))[0]
        np.testing.assert_array_equal(results, factor * FEED)
    q = placeholder("q", dtype="bool")
    inside = [
        node("Switch", "u", "b", "q"),
        node("Neg", "d", "u"),
        node("Merge", "e", "d", "u:1"),
        node("Merge", "z", "a", "e"),
    ]
    for outer, inner, factor in ((0, 0, -1), (0, 1, -1), (1, 0, -2), (1, 1, 2)):
        feeds = {"p": np.array(bool(outer)), "q": np.array(bool(inner))}
        results = run(conditional(P, q, *inside), "z", **feeds)[0]
        np.testing.assert_array_equal(results, factor * FEED)


def test_nesting_of_conditions_is_limited() -> None:
    """Conditions are followed to a maximal depth."""
    nodes = [placeholder(f"p{k}", dtype="bool") for k in range(80)]
    nodes += [node("Switch", f"s{k}", f"s{k - 1}" if k else "x", f"p{k}") for k in range(80)]
    nodes.append(node("Merge", "z", "s79", "s79:1"))

    with pytest.raises(ModelError, match="the GraphDef depends on 65"):
        tf_graphdef.load(model(X, *nodes), "z")


@pytest.mark.parametrize(
    ("nodes", "message"),
    [
        (
            [node("Merge", "z", "x", "y")],
            "Merge 'z' merges two values, .* needs one Switch",
        ),
        ([node("Merge", "z", "x", "x", "x")], "Merge 'z' merges 3 values .* at most two"),
        ([node("Exit", "z", "y")], "Exit 'z' leaves the loop '' of 0 Enter nodes"),
        ([node("Exit", "z")], "leaves the loop '' of 0 Enter nodes"),
        (
            [node("Switch", "t", "x", "x"), node("Neg", "z", "t")],
            "Switch 't' needs one value as its condition, got bool",
        ),
    ],
)
def test_invalid_switches_and_merges_are_refused(nodes: list[Any], message: str) -> None:
    """Control flow that TensorFlow does not build is refused."""
    if "t" in [n.name for n in nodes]:
        nodes = [const("c", [True]), node("Switch", "t", "x", "c"), *nodes[1:]]
    with pytest.raises(ModelError, match=message):
        tf_graphdef.load(conditional(P, *nodes), "z")


def tensorflow1_loop(*changed: Any) -> Any:
    """Return a TensorFlow 1 loop that doubles a value; given nodes replace those of their name."""
    nodes = [
        X,
        ZERO,
        const("n", 3),
        node("Enter", "ei", "zero", frame_name="f"),
        node("Enter", "ex", "x", frame_name="f"),
        node("Enter", "en", "n", frame_name="f", is_constant=True),
        node("Merge", "mi", "ei", "ni"),
        node("Merge", "mx", "ex", "nx"),
        node("Less", "less", "mi", "en"),
        node("LoopCond", "go", "less"),
        node("Switch", "si", "mi", "go"),
        node("Switch", "sx", "mx", "go"),
        const("one", 1),
        node("Add", "ai", "si:1", "one"),
        node("Add", "ax", "sx:1", "sx:1"),
        node("NextIteration", "ni", "ai"),
        node("NextIteration", "nx", "ax"),
        node("Exit", "y", "sx"),
        node("Neg", "inside", "ax"),
    ]
    new = {n.name: n for n in changed}
    return model(*(new.pop(n.name, n) for n in nodes), *new.values())


def test_tensorflow1_loops_are_unrolled_or_run() -> None:
    """A loop between Enter and Exit is unrolled, or runs at run time."""
    np.testing.assert_array_equal(run(tensorflow1_loop(), "y")[0], 8 * FEED)
    assert operators_of_exit(tensorflow1_loop()) == ["add"] * 3
    for count in (0, 4):
        results = run(tensorflow1_loop(N), "y", n=np.int32(count))[0]
        np.testing.assert_array_equal(results, 2**count * FEED)


def operators_of_exit(source: Any) -> list[str]:
    """Return the operators behind the exit of a loop, without identities."""
    names = [n.op.name for n in tf_graphdef.load(source, "y").nodes if n.op]
    return [n for n in names if n != "identity"]


def test_a_loop_that_changes_nothing_returns_its_inputs() -> None:
    """A loop whose values are all invariant returns them, for any number of iterations."""
    same = function("twice", "i n v", {"i": "i", "n": "n", "v": "v"})

    np.testing.assert_array_equal(
        run(model_with_loop(N, loop(), bodies=(UNTIL, same)), "y:2")[0], FEED
    )


def test_nested_loops_have_a_maximal_depth() -> None:
    """Loops may be nested to a maximal depth, and not contain themselves."""
    nodes = [X, P, const("q", value=True)]
    for k in range(90):
        entered = f"s{k - 1}:1" if k else "x"
        back = f"e{k + 1}" if k < 89 else f"s{k}:1"
        nodes += [
            node("Enter", f"b{k}", entered, frame_name=f"f{k}"),
            node("Merge", f"m{k}", f"b{k}", f"n{k}"),
            node("LoopCond", f"c{k}", "q"),
            node("Switch", f"s{k}", f"m{k}", f"c{k}"),
            node("NextIteration", f"n{k}", back),
            node("Exit", f"e{k}", f"s{k}"),
        ]
    with pytest.raises(
        ModelError, match="'e6.' leaves the loop 'f6.', which is nested in more than 64"
    ):
        tf_graphdef.load(model(*nodes), "e0")
    itself = [node("NextIteration", "nx", "y2"), node("Exit", "y2", "sx")]
    with pytest.raises(ModelError, match="'y2' leaves the loop 'f', which is part of itself"):
        tf_graphdef.load(tensorflow1_loop(*itself), "y")


@pytest.mark.parametrize(
    ("changed", "output", "message"),
    [
        ([node("Identity", "go", "less")], "y", "Exit 'y' leaves the loop 'f' of 3 Enter nodes"),
        ([], "inside", "NextIteration 'nx' of the GraphDef is inside a loop"),
        (
            [
                node("Switch", "s2", "m2", "go"),
                node("Merge", "m2", "en", "en"),
                node("Exit", "z", "s2"),
            ],
            "z",
            "'z' leaves the loop 'f' and needs the Merge of a loop variable, got 'm2'",
        ),
        (
            [N, node("Add", "ax", "sx:1", "out"), node("Neg", "out", "x")],
            "y",
            "number of iterations known only at run time and reads 'x' from outside",
        ),
    ],
)
def test_invalid_tensorflow1_loops_are_refused(
    changed: list[Any], output: str, message: str
) -> None:
    """A loop needs a condition, and its inner values cannot be read outside."""
    with pytest.raises(ModelError, match=message):
        tf_graphdef.load(tensorflow1_loop(*changed), output)


def test_tensor_array_operators_equal_tensorflows() -> None:
    """TensorArray operators work on the list that the flow value carries."""
    nodes = [
        X,
        ZERO,
        TWO,
        const("one", 1),
        const("both", [0, 1]),
        const("ls", [1, 1]),
        const("rows", [[1.0, 2.0], [3.0, 4.0]]),
        node("TensorArrayV3", "t", "two", dtype=FLOAT),
        node("TensorArrayScatterV3", "s", "t", "both", "rows", "t:1"),
        node("TensorArrayReadV3", "r", "t", "one", "s"),
        node("TensorArrayWriteV3", "w", "t", "zero", "r", "s"),
        node("TensorArrayGatherV3", "g", "t", "both", "w"),
        node("TensorArraySizeV3", "n", "t", "w"),
        node("TensorArrayConcatV3", "c", "t", "w"),
        node("TensorArraySplitV3", "p", "t", "rows", "ls", "t:1"),
        node("TensorArrayReadV3", "q", "t", "one", "p"),
        node("TensorArrayCloseV3", "close", "t"),
        node("Neg", "y", "q", "^close"),
    ]

    g, n, c, y = run(model(*nodes), ["g", "n", "c", "y"])
    assert (g.tolist(), n, c.tolist(), y.tolist()) == (
        [[3, 4], [3, 4]],
        2,
        [3, 4, 3, 4],
        [[-3, -4]],
    )


# indices and sizes


def test_runtime_indices_select_single_elements() -> None:
    """A runtime index selects one element of an axis, with the other axes in full."""
    nodes = [node("Pack", "b", "n"), node("StridedSlice", "y", "x", "b", "b", "b")]
    nodes[1].attr["shrink_axis_mask"].i = 1

    for k in (0, 1):
        np.testing.assert_array_equal(run(model(X, N, *nodes), "y", n=np.int32(k))[0], FEED[k])
    for mask, message in (
        ({"begin_mask": 1}, "begin_mask=1, end_mask=0"),
        ({"new_axis_mask": 1}, "_axis"),
    ):
        bad = node("StridedSlice", "y", "x", "b", "b", "b", **mask)
        with pytest.raises(ModelError, match=f"bounds known only at run time .*{message}"):
            tf_graphdef.load(model(X, N, nodes[0], bad), "y")
    with pytest.raises(ModelError, match=r"needs a list of indices, got one of shape \(\)"):
        tf_graphdef.load(model(X, N, node("StridedSlice", "y", "x", "n", "n", "n")), "y")


def test_ref_variables_are_read_where_used() -> None:
    """A ref variable is read where it is used, after the assignments that precede it."""
    nodes = [
        X,
        const("c", [1.0, 2.0, 3.0]),
        node("VariableV2", "v", dtype=FLOAT, shape=(3,)),
        node("Assign", "a", "v", "c"),
        node("AssignAdd", "b", "v", "c", "^a"),
        node("Identity", "r", "v", "^b"),
        node("Mul", "y", "x", "r"),
    ]

    np.testing.assert_array_equal(run(model(*nodes), "y")[0], FEED * [2, 4, 6])


@pytest.mark.parametrize(
    ("nodes", "message"),
    [
        (
            [node("ReadVariableOp", "y", "v", dtype=FLOAT)],
            "reads the variable 'v', and contains no",
        ),
        (
            [node("ReadVariableOp", "y", "c", dtype=FLOAT)],
            "the handle of a variable, got 'c', an array",
        ),
        ([node("Neg", "y", "v")], "Neg 'y' needs an array, got 'v', a handle of a variable"),
        (
            [node("AssignVariableOp", "a", "v", "i"), node("ReadVariableOp", "y", "v", "^a")],
            r"float32\(3,\) for the variable 'v', got int32\(\)",
        ),
    ],
)
def test_invalid_uses_of_variables_are_refused(nodes: list[Any], message: str) -> None:
    """A variable must be read through its handle, and needs a value."""
    handle = node("VarHandleOp", "v", dtype=FLOAT, shape=(3,))

    with pytest.raises(ModelError, match=message):
        tf_graphdef.load(model(handle, const("c", 1.0), const("i", 1), *nodes), "y")


def test_variables_are_initialized_and_have_a_shape() -> None:
    """Variables of a loaded model are initialized, and their shape can be read."""
    nodes = [
        node("VarHandleOp", "v", dtype=FLOAT, shape=(3,)),
        const("c", [1.0, 2.0, 3.0]),
        node("AssignVariableOp", "a", "v", "c"),
        node("VariableShape", "s", "v", "^a"),
        node("VarIsInitializedOp", "b", "v"),
        const("at", [0, 2]),
        node("AssignSubVariableOp", "d", "v", "c", "^s"),
        node("ReadVariableOp", "r", "v", "^d"),
    ]

    s, b, r = run(model(*nodes), ["s", "b", "r"])
    assert (s.tolist(), b, r.tolist()) == ([3], True, [0, 0, 0])
    assert attr(True).b


def test_a_list_of_symbolic_sizes_keeps_its_items() -> None:
    """An item of a list made from a shape is the size of that axis, also an unknown one."""
    nodes = [
        node("Shape", "s", "x"),
        const("k", 0),
        const("any", -1),
        node("TensorListFromTensor", "l", "s", "any", element_dtype=np.dtype("int32")),
        node("TensorListGetItem", "i", "l", "k", "any", element_dtype=np.dtype("int32")),
        node("Cast", "c", "i", SrcT=np.dtype("int32"), DstT=np.dtype("float32")),
        node("Mul", "y", "x", "c"),
    ]
    graph = tf_graphdef.load(model(placeholder("x", None, 3), *nodes), "y")

    np.testing.assert_array_equal(pk.interpret(graph, {"x": np.ones((5, 3), "f")})[0], 5)
