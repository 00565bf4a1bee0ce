"""Functions and branches: the graphs they become, and what is refused."""

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
    node,
    placeholder,
    with_functions,
)

X = placeholder("x", None, 3)
P = placeholder("p", dtype="bool")
N = placeholder("n", dtype="int32")
FEED = np.array([[1, 2, 3], [4, 5, 6]], np.float32)
TRUE, FALSE = const("t", True), const("f", False)
FLOAT, INT = np.dtype("float32"), np.dtype("int32")

DOUBLE = function("double", "a", {"r": "m:z:0"}, node("Add", "m", "a", "a"))
NEGATE = function("negate", "a", {"r": "m:y:0"}, node("Neg", "m", "a"))


def call(name: str, function_name: str, *inputs: str) -> Any:
    """Return a node that calls a function."""
    return node("PartitionedCall", name, *inputs, f=calls(function_name))


def run(source: Any, outputs: Any = None, **feeds: Any) -> list[Any]:
    """Return the results of a model."""
    graph = tf_graphdef.load(source, outputs)
    inputs = {"x": FEED, **feeds}
    return pk.interpret(graph, {n.name: inputs[n.name] for n in graph.inputs})


def operators_of(source: Any) -> list[str]:
    """Return the operators of a model's graph."""
    return [n.op.name for n in tf_graphdef.load(source).nodes if n.op]


# functions


def test_a_call_becomes_the_nodes_of_its_function() -> None:
    """Nodes of a function are named after the caller, or after the output they compute."""
    graph = tf_graphdef.load(
        with_functions([X, call("a", "double", "x"), node("Exp", "y", "a")], DOUBLE)
    )

    assert [n.name for n in graph.nodes] == ["x", "a/m", "y"]
    named = tf_graphdef.load(with_functions([X, call("y", "double", "x")], DOUBLE))
    assert [n.name for n in named.nodes] == ["x", "y"]


def test_functions_call_functions_with_attributes() -> None:
    """Functions call others, also by an operator of the function's name, and pass attributes on."""
    cast = node("Cast", "c", "a", DstT={"placeholder": "T"})
    change = function("change", "a", {"r": "c:y:0"}, cast)
    outer = function(
        "outer", "a", {"r": "h:output:0"}, node("double", "d", "a"), call("h", "change", "d:r:0")
    )
    outer.node_def[1].attr["f"].func.attr["T"].CopyFrom(attr(np.dtype("float64")))

    (results,) = run(with_functions([X, call("y", "outer", "x")], DOUBLE, change, outer))

    assert results.dtype == np.float64
    np.testing.assert_array_equal(results, 2 * FEED)


def test_results_are_referred_to_by_name() -> None:
    """Results of an operator with several named results are referred to by name."""
    switch = node("Switch", "s", "a", "t")
    body = function("f", "a", {"r": "s:output_true:0"}, TRUE, switch)
    body.node_def[1].input[1] = "t:output:0"

    np.testing.assert_array_equal(run(with_functions([X, call("y", "f", "x")], body))[0], FEED)
    body.ret["r"] = "s:output_maybe:0"
    with pytest.raises(ModelError, match="reads 's:output_maybe:0', and Switch 's' has the result"):
        run(with_functions([X, call("y", "f", "x")], body))


def test_signature_loads_a_function_of_a_graphdef() -> None:
    """``signature=`` loads a single function of a GraphDef."""
    source = with_functions([X, call("y", "double", "x")], DOUBLE)
    graph = tf_graphdef.load(source, signature="double", shapes={"a": (2,)})

    assert [n.name for n in graph.inputs] == ["a"]
    assert [(e.name, e.shape) for e in graph.outputs] == [("r", (2,))]
    with pytest.raises(ModelError, match="with 1 functions, and none is called 'doubel'"):
        tf_graphdef.load(source, signature="doubel")


def calling_function(name: str, inner: str) -> Any:
    """Return a function that calls another one."""
    return function(name, "a", {"r": "c:output:0"}, call("c", inner, "a"))


@pytest.mark.parametrize(
    ("functions", "message"),
    [
        (
            [calling_function("f", "f")],
            "PartitionedCall 'c' is part of the function 'f'",
        ),
        (
            [calling_function("f", "g"), calling_function("g", "f")],
            "is part of the function 'f' and calls it; recursive functions",
        ),
        ([], "the GraphDef has no function 'f'; known: "),
        ([calling_function("ff", "f")], "the GraphDef has no function 'f'; did you mean 'ff'"),
        ([NEGATE, NEGATE], "the GraphDef has two functions called 'negate'"),
        (
            [function("f", "a b", {"r": "a"})],
            "'y' calls the function 'f', which needs 2 arguments, got 1",
        ),
        ([function("f", "a", {"r": "z:y:0"})], "the result 'r' of the function 'f' reads 'z:y:0'"),
        (
            [function("f", "a", {"r": "n:y:0"}, node("Neg", "n", "b"))],
            "Neg 'n' of the function 'f' reads 'b', and",
        ),
        (
            [function("f", "a", {"r": "c:y:0"}, node("Cast", "c", "a", DstT={"placeholder": "T"}))],
            "Cast 'c' of the function 'f' needs a value for the function's attribute 'T'",
        ),
        (
            [function("f", "a", {"r": "n:y:0"}, node("Placeholder", "n", dtype=FLOAT))],
            "Placeholder 'n' is in the function 'f', and only the model's",
        ),
        (
            [
                function(
                    "f", "a", {"r": "n:y:0"}, node("Neg", "m", "n:y:0"), node("Neg", "n", "m:y:0")
                )
            ],
            "the function 'f' .* acyclic, and its node '[mn]' reads '[mn]', which depends",
        ),
    ],
)
def test_invalid_calls_are_refused(functions: list[Any], message: str) -> None:
    """Calls of missing or recursive functions, or with a wrong number of arguments, are refused."""
    with pytest.raises(ModelError, match=message):
        run(with_functions([X, call("y", "f", "x")], *functions))


def test_depth_and_number_of_calls_are_limited() -> None:
    """Calls are followed to a maximal depth, and up to a maximal number of nodes."""
    chain = [calling_function(f"f{k}", f"f{k + 1}") for k in range(100)]
    with pytest.raises(ModelError, match="'c' calls 'f64' inside 64.*at most 64"):
        run(with_functions([X, call("y", "f0", "x")], *chain))
    tree = [
        function(
            f"f{k}",
            "a",
            {"r": "d:output:0"},
            call("c", f"f{k + 1}", "a"),
            call("d", f"f{k + 1}", "c"),
        )
        for k in range(60)
    ]
    for body in tree:
        body.node_def[1].input[0] = "c:output:0"
    tree.append(function("f60", "a", {"r": "a"}))
    with pytest.raises(
        ModelError, match="exceeds the limit of 30,002 nodes, .*; max_rounds= limits"
    ):
        run(with_functions([X, call("y", "f0", "x")], *tree))


# branches


def branches(condition: str, *others: Any, op: str = "If") -> Any:
    """Return a model that doubles or negates its input."""
    choice = node(op, "y", condition, "x", then_branch=calls("double"), else_branch=calls("negate"))
    return with_functions([X, *others, choice], DOUBLE, NEGATE)


@pytest.mark.parametrize(("given", "factor"), [(TRUE, 2), (FALSE, -1)])
def test_a_known_condition_keeps_only_the_taken_branch(given: Any, factor: int) -> None:
    """Only the branch that is taken is in the graph."""
    source = branches(given.name, given)

    np.testing.assert_array_equal(run(source)[0], factor * FEED)
    assert len(operators_of(source)) == 1


@pytest.mark.parametrize("op", ["If", "StatelessIf"])
def test_a_runtime_condition_selects_in_each_call(op: str) -> None:
    """Both branches are in the graph, and each call selects; nonzero numbers are true."""
    for value, factor in ((True, 2), (False, -1)):
        results = run(branches("p", P, op=op), p=np.array(value))[0]
        np.testing.assert_array_equal(results, factor * FEED)
    for number, factor in ((7, 2), (0, -1)):
        np.testing.assert_array_equal(run(branches("n", N), n=np.int32(number))[0], factor * FEED)


def test_unsupported_operators_in_a_branch_count_only_if_it_may_run() -> None:
    """An unsupported operator is an error only in a branch that may run."""
    rare = function("rare", "a", {"r": "m:y:0"}, node("Rare", "m", "a"))
    choice = node("If", "y", "f", "x", then_branch=calls("rare"), else_branch=calls("double"))

    assert operators_of(with_functions([X, FALSE, choice], DOUBLE, rare)) == ["add"]
    choice.input[0] = "t"
    with pytest.raises(ModelError, match=r"1 node.* not supported: Rare × 1 \('y/m'\)"):
        run(with_functions([X, TRUE, choice], DOUBLE, rare))
    choice.input[0] = "p"
    with pytest.raises(ModelError, match=r"not supported: Rare × 1"):
        run(with_functions([X, P, choice], DOUBLE, rare))
    choice.input[0] = "q"
    with pytest.raises(ModelError, match=r"2 node.* not supported: Odd × 1 .*; Rare × 1"):
        run(with_functions([X, node("Odd", "q"), choice], DOUBLE, rare))


LONGER = function(
    "longer", "a", {"r": "m:o:0"}, const("z", 0), node("ConcatV2", "m", "a", "a", "z")
)
LONGER.node_def[1].input[2] = "z:output:0"
LISTS = function(
    "lists", "a", {"r": "m:handle:0"}, const("z", 2), node("TensorListReserve", "m", "z", "z")
)
LISTS.node_def[1].attr["element_dtype"].CopyFrom(attr(FLOAT))
LISTS.node_def[1].input[:] = ["z:output:0", "z:output:0"]
WHOLE = function("whole", "a", {"r": "c:y:0"}, node("Cast", "c", "a", DstT=INT))


def choosing(condition: str, *names: str, op: str = "If") -> Any:
    """Return a selection between functions."""
    if op == "Case":
        branches = {"list": {"func": [{"name": n} for n in names]}}
        return node("Case", "y", condition, "x", branches=branches)
    return node(op, "y", condition, "x", then_branch=calls(names[0]), else_branch=calls(names[1]))


@pytest.mark.parametrize(
    ("nodes", "message"),
    [
        ([P, choosing("p", "double", "longer")], r"float32\(x\.0, 3\).*3\)"),
        ([P, choosing("p", "double", "whole")], r"got float32\(x\.0, 3\) and int32\(x\.0, 3\)"),
        ([P, choosing("p", "double", "lists")], "from both, got an array and a list of tensors"),
        ([P, choosing("p", "double", "none")], "number of results, got 1 and 0"),
        ([N, choosing("n", op="Case")], "Case 'y' needs at least one branch"),
        ([const("q", [True]), choosing("q", "double", "negate")], r"got bool\(1,\) from 'q'"),
        (
            [choosing("q", "double", "negate"), node("VarHandleOp", "q", dtype=FLOAT, shape=())],
            "an array as its condition, got 'q', a handle of a variable",
        ),
        ([P, node("If", "y", then_branch=calls("f"))], "If 'y' needs at least 1 input.* got 0"),
    ],
)
def test_branches_of_different_results_are_refused(nodes: list[Any], message: str) -> None:
    """Branches need results of equal shapes and dtypes, and a scalar condition."""
    none = function("none", "a", {})
    source = with_functions([X, *nodes], DOUBLE, NEGATE, LONGER, LISTS, WHOLE, none)

    with pytest.raises(ModelError, match=message):
        tf_graphdef.load(source, "y")
