"""Attribute functions that take or return something else than their attribute are refused."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from attrs import frozen

import passkit as pk
from passkit.schedule.actions import Tile
from tests.command import passkit
from tests.planned import plan

ops = pk.ops
X = pk.var("x", (2, 3))
ONES = np.ones((2, 3), np.float32)
float32 = pk.ast.dt.float32
ELEMENTWISE = {"TOpPattern": pk.OpPattern.ELEMWISE}
SAME = {"FInferShape": lambda node, s: s, "FInferType": lambda node, d: d}
CODE = {"FCodeGen": lambda node, x: x * x, **ELEMENTWISE}


@frozen
class Case:
    """An operator of one input, a use of it that fails, and parts of the message.

    Attributes:
        attributes: the attributes of the operator, by name.
        run: the function that is called with the operator and raises.
        parts: texts that the message contains.
        results: the number of results of the operator.
    """

    attributes: dict[str, Any]
    run: Callable[[pk.Op], Any]
    parts: tuple[str, ...]
    results: int = 1


def case(
    attributes: dict[str, Any], run: Callable[[pk.Op], Any], *parts: str, results: int = 1
) -> Case:
    """Return a Case whose parts are the remaining arguments."""
    return Case(attributes, run, parts, results)


def make(op: pk.Op) -> Any:
    """Apply the operator to X."""
    return op(X, name="y")


def interpret(op: pk.Op) -> Any:
    """Interpret a graph of the operator."""
    return pk.interpret(pk.Graph([make(op)]), {"x": ONES})


def compile_it(op: pk.Op) -> Any:
    """Compile a graph of the operator, and call it."""
    return pk.compile(pk.Graph([make(op)]))(x=ONES)


def compile_for_cuda(op: pk.Op) -> Any:
    """Plan and print the kernel of a graph of the operator for CUDA."""
    return plan(pk.Graph([make(op)]), target="cuda")


def gradient(op: pk.Op) -> Any:
    """Differentiate the operator."""
    return pk.gradients(make(op), [X])


def lengths(op: pk.Op) -> Any:
    """Infer the shape of the operator's input from that of its result."""
    y = op(pk.var("unknown", None, "float32"), name="y")
    return pk.ApplyPasses(pk.Graph([y]), "InferShape")


def only(op: pk.Op, pass_name: str) -> Any:
    """Run one pass on a graph of the operator."""
    return pk.ApplyPasses(pk.Graph([make(op)]), pass_name)


def plan_memory(op: pk.Op) -> Any:
    """Plan the memory of a graph in which the operator may overwrite its input."""
    return pk.ApplyPasses(pk.Graph([ops.neg(op(ops.exp(X), name="y"))]), "PlanMemory")


def fuse_above_softmax(op: pk.Op) -> Any:
    """Fuse the operator with producers and consumers, for which its input is split by blocks."""
    graph = pk.Graph([ops.softmax(op(ops.exp(X), name="y"))])
    return pk.ApplyPasses(graph, ["Expand", "Fusion"], fusion="deep")


CASES = {
    "FCodeGen takes no node": case(
        {**CODE, "FCodeGen": lambda x: x * x},
        make,
        "called with 2 argument(s), (node, x), and its function takes (x); give it a parameter for",
        "set_attr('FCodeGen', lambda node, x: …)",
    ),
    "FCodeGen takes two inputs": case(
        {**CODE, "FCodeGen": lambda node, a, b: a * b},
        make,
        "its function takes (node, a, b)",
    ),
    "FCodeGen gives nothing": case(
        {**CODE, "FCodeGen": lambda node, x: None},
        make,
        "must give an expression (pk.ast), got None; does its function return what it computes?",
    ),
    "FCodeGen gives a number": case(
        {**CODE, "FCodeGen": lambda node, x: 1.5},
        make,
        "got 1.5; pk.ast.const(1.5, dtype) makes a number one",
    ),
    "FCodeGen gives an entry": case(
        {**CODE, "FCodeGen": lambda node, x: X},
        make,
        "it computes with pk.ast, on elements",
    ),
    "FCodeGen gives two results": case(
        {**CODE, "FCodeGen": lambda node, x: (x, x)},
        make,
        "it gave 2",
    ),
    "FCodeGen gives one of two results": case(
        {**CODE, "FCodeGen": lambda node, x: (x,)},
        make,
        "must give a tuple of 2, an expression (pk.ast) for each result, got",
        "it gave 1",
        results=2,
    ),
    "FElement takes no reader": case(
        {**SAME, "FElement": lambda node, index: pk.ast.const(1, float32)},
        interpret,
        "called with 3 argument(s), (node, index, read), and its function takes (node, index)",
    ),
    "FElement gives nothing": case(
        {**SAME, "FElement": lambda node, index, read: None},
        interpret,
        "must give an expression (pk.ast), got None",
    ),
    "FReduce gives an expression": case(
        {**SAME, "FReduce": lambda node: pk.ast.const(1, float32)},
        interpret,
        "must give a pk.ast.Reduce, got Const",
    ),
    "FReduce takes inputs": case(
        {**SAME, "FReduce": lambda node, x: None},
        interpret,
        "set_attr('FReduce', lambda node: …)",
    ),
    "FScan gives nothing": case(
        {**SAME, "FScan": lambda node: None},
        interpret,
        "must give a pk.ast.Scan, got None",
    ),
    "FContract gives a tuple": case(
        {**SAME, "FContract": lambda node: (1, 2, 3)},
        compile_it,
        "must give a pk.ast.Contract, got (1, 2, 3)",
    ),
    "FInferShape takes too few": case(
        {"FInferShape": lambda shape: shape},
        make,
        "(node, shapes), and its function takes (shape",
    ),
    "FInferShape gives a list": case(
        {"FInferShape": lambda node, s: [2, 3]},
        make,
        "must give a shape (a tuple of extents) or None, got [2, 3]; write it as a tuple",
    ),
    "FInferShape gives a number": case(
        {"FInferShape": lambda node, s: 6},
        make,
        "got 6; (6,) is the shape of one axis",
    ),
    "FInferShape gives text": case(
        {"FInferShape": lambda node, s: ("n", 3)},
        make,
        "must give a shape of extents (whole numbers from 0 on, or Size), got ('n', 3); 'n' is",
    ),
    "FInferShape gives a negative extent": case(
        {"FInferShape": lambda node, s: (-1, 3)},
        make,
        "got (-1, 3); -1 is none",
    ),
    "FInferShape of two results": case(
        {"FInferShape": lambda node, s: s, "FInferType": lambda node, d: d},
        make,
        "must give a tuple of 2, a shape or None for each result, got (2, 3); it gave 1",
        results=2,
    ),
    "FInferShapeBack gives too many": case(
        {"FInferShapeBack": lambda node, shapes, outs: [(2,), (2,)]},
        lengths,
        "must give a sequence of 1, a shape or None for each input, got [(2,), (2,)]",
    ),
    "FInferShapeBack gives one shape": case(
        {"FInferShapeBack": lambda node, shapes, outs: (2,)},
        lengths,
        "must give a shape (a tuple of extents) or None, got (2,); (2,) is the shape of one axis",
    ),
    "FInferShapeBack takes inputs apart": case(
        {"FInferShapeBack": lambda node, shape: [shape]},
        lengths,
        "called with 3 argument(s), (node, shapes, outs)",
    ),
    "FInferType gives a name": case(
        {"FInferType": lambda node, d: "float32"},
        make,
        "must give a DType, such as pk.ast.dt.float32, got 'float32'; pk.ast.dt.dtype_of(…) makes",
    ),
    "FInferType gives too many": case(
        {"FInferType": lambda node, d: (d, d)},
        make,
        "must give a DType, got",
        "it gave 2",
    ),
    "FInferType takes the node only": case(
        {"FInferType": lambda node: float32},
        make,
        "(node, dtypes), and its function takes (node)",
    ),
    "FExpand takes no inputs": case(
        {**SAME, "FExpand": lambda node: None},
        compile_it,
        "and its function takes (node)",
    ),
    "FExpand gives an expression": case(
        {**SAME, "FExpand": lambda node, x: pk.ast.const(1, float32)},
        compile_it,
        "must give an entry or None, got Const",
        "expressions (pk.ast) are FCodeGen's",
    ),
    "FExpand gives an array": case(
        {**SAME, "FExpand": lambda node, x: ONES},
        compile_it,
        "got an array float32[2, 3]; pk.constant(…) makes an entry of an array or number",
    ),
    "FExpand gives too many": case(
        {**SAME, "FExpand": lambda node, x: (x, x)},
        compile_it,
        "it gave 2",
    ),
    "FCompute gives nothing": case(
        {**SAME, "FCompute": lambda node, x: None},
        interpret,
        "must give an array, got None; does",
    ),
    "FCompute gives too many to a compiled program": case(
        {**SAME, "FCompute": lambda node, x: (x, x), "THostLibrary": "numpy"},
        compile_it,
        "must give an array, got",
        "it gave 2",
    ),
    "FCompute gives rows of different lengths": case(
        {**SAME, "FCompute": lambda node, x: ([[1.0, 2.0], [3.0]],)},
        interpret,
        "must give an array, got [[1.0, 2.0], [3.0]]",
    ),
    "FCompute takes no node": case(
        {**SAME, "FCompute": lambda: 3},
        interpret,
        "(node, arrays), and its function takes ()",
    ),
    "FGradient gives an entry": case(
        {**CODE, "FGradient": lambda node, dy: dy},
        gradient,
        "must give a sequence of 1, an entry or None for each input, got Entry",
        "list: [dx]",
    ),
    "FGradient gives a number": case(
        {**CODE, "FGradient": lambda node, dy: [0]},
        gradient,
        "got [0]; pk.constant(…) makes",
    ),
    "FGradient gives text": case(
        {**CODE, "FGradient": lambda node, dy: ["dx"]},
        gradient,
        "None is a gradient of 0",
    ),
    "FGradient gives nothing": case(
        {**CODE, "FGradient": lambda node, dy: None},
        gradient,
        "got None; does its function",
    ),
    "FGradient takes no gradient": case(
        {**CODE, "FGradient": lambda node: []},
        gradient,
        "set_attr('FGradient', lambda node, dy:",
    ),
    "FSimplify gives a tuple": case(
        {**CODE, "FSimplify": lambda node: node.inputs},
        lambda op: only(op, "Simplify"),
        "must give an entry or None, got (Entry",
    ),
    "FLibraryPattern gives text": case(
        {**CODE, "FLibraryPattern": lambda node: "y"},
        compile_it,
        "must give an entry or None, got 'y'",
    ),
    "FInplaceOption gives a pair": case(
        {**CODE, "FInplaceOption": lambda node: (0, 0)},
        plan_memory,
        "a sequence of pairs (input, output) with inputs below 1 and outputs below 1, got (0, 0)",
    ),
    "FInplaceOption gives nothing": case(
        {**CODE, "FInplaceOption": lambda node: None},
        plan_memory,
        "got None",
    ),
    "FInplaceOption gives another input": case(
        {**CODE, "FInplaceOption": lambda node: [(1, 0)]},
        plan_memory,
        "got [(1, 0)]; (1, 0) is none",
    ),
    "FInplaceIdentity gives too few": case(
        {**CODE, "FInplaceIdentity": lambda node: []},
        plan_memory,
        "a sequence of 1, True or False for each pair of FInplaceOption, got []",
    ),
    "FKernel gives text": case(
        {**CODE, "FKernel": lambda node, dialect: "void KERNEL() {}"},
        compile_it,
        "must give an OwnKernel (passkit.graph.kernel) or None, got 'void KERNEL() {}'",
    ),
    "FSchedule gives one": case(
        {**CODE, "FSchedule": lambda node, split, shapes: split},
        fuse_above_softmax,
        "must give a sequence of 1, a Split, WHOLE or a Reject for each operand, got Split",
    ),
    "FScheduleRule gives one action": case(
        {**CODE, "FScheduleRule": lambda node, nest, target: Tile("i0", 64)},
        compile_for_cuda,
        "must give a sequence of actions (passkit.schedule.actions), or None, got Tile(axis='i0'",
    ),
    "FScheduleRule gives texts": case(
        {**CODE, "FScheduleRule": lambda node, nest, target: ["tile i0 64"]},
        compile_for_cuda,
        "or None, got ['tile i0 64']",
    ),
    "FScheduleRule takes two": case(
        {**CODE, "FScheduleRule": lambda node, nest: []},
        compile_for_cuda,
        "(node, nest, target), and its function takes (node, nest)",
    ),
    "FListInputNames gives a name": case(
        {"FListInputNames": lambda params: "x"},
        lambda op: op(x=X),
        "FListInputNames of op",
        "must give a sequence of names, got 'x'",
    ),
    "FListInputNames takes nothing": case(
        {"FListInputNames": lambda: ["x"]},
        lambda op: op(x=X),
        "(params), and its function takes",
    ),
}


@pytest.mark.parametrize("label", CASES)
def test_invalid_attribute_functions_are_refused(label: str) -> None:
    """The message names attribute and operator, what it must return, and what it returned."""
    expected = CASES[label]
    key = label.partition(" ")[0]
    name = f"test_rule_{re.sub(r'[^a-z]+', '_', label.lower())}"
    op = pk.register_op(name, num_inputs=1, num_outputs=expected.results)
    for attribute, value in expected.attributes.items():
        op.set_attr(attribute, value)

    with pytest.raises(pk.PasskitError, match=f"{key} of (op )?{name}") as caught:
        expected.run(op)

    for part in expected.parts:
        assert part in str(caught.value)
    assert type(caught.value) is pk.RuleError


def test_an_invalid_example_is_reported_on_the_command_line(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """FExample that returns only inputs is refused where the operator is described."""
    pk.register_op("test_rule_example").set_attr("FExample", lambda dtype: [X])

    assert passkit("ops", "test_rule_example") == 1
    message = "must give (a list of inputs, a dict of parameters), got [Entry"
    assert f"FExample of op test_rule_example {message}" in capsys.readouterr().err


def test_errors_inside_an_attribute_function_propagate() -> None:
    """A TypeError that an attribute function raises itself is not replaced."""
    op = pk.register_op("test_rule_broken")
    op.set_attr("FInferShape", lambda node, shape: (len(3),))  # type: ignore[arg-type]

    with pytest.raises(TypeError, match="object of type 'int' has no len") as caught:
        make(op)
    assert not isinstance(caught.value, pk.PasskitError)


def test_builtins_without_a_signature_may_be_attribute_functions() -> None:
    """A function whose parameters are unknown is called, and its result is checked."""
    op = pk.register_op("test_rule_of_c")
    op.set_attr("FListInputNames", iter)

    with pytest.raises(pk.RuleError, match="FListInputNames of op test_rule_of_c .*, got <dict"):
        op(x=X)


def test_extents_may_be_numpy_integers() -> None:
    """FInferShape may return NumPy integers, which become ints."""
    op = pk.register_op("test_rule_numpy")
    op.set_attr("FInferShape", lambda node, shape: (np.prod(shape), np.int32(1)))

    y = make(op)
    assert y.shape == (6, 1)
    assert [type(n) for n in y.shape] == [int, int]


@pytest.mark.parametrize(
    ("key", "inputs", "outputs", "names"),
    [
        ("FGradient", 1, 2, "node, dy0, dy1"),
        ("FExpand", 1, 1, "node, x"),
        ("FExpand", 0, 1, "node"),
    ],
)
def test_messages_name_the_parameters_of_an_attribute(
    key: str, inputs: int, outputs: int, names: str
) -> None:
    """Parameters have the names of the attribute's signature, numbered where there are several."""
    op = pk.register_op(f"test_rule_names_{key}_{inputs}", inputs, outputs)
    op.set_attr("FInferShape", lambda node, *shapes: ((2, 3),) * 2 if outputs == 2 else (2, 3))
    op.set_attr("FInferType", lambda node, *dtypes: (float32,) * 2 if outputs == 2 else float32)
    op.set_attr(key, lambda: None)

    y = op(*[X] * inputs)
    with pytest.raises(pk.RuleError, match=rf"\({names}\), and its function takes \(\)"):
        if key == "FGradient":
            pk.gradients(list(y), [X])
        else:
            pk.interpret(pk.Graph([y]), {"x": ONES} if inputs else {})


def test_operators_and_kernel_functions_refuse_each_others_operands() -> None:
    """pk.ops refuses an expression and pk.ast an entry, and the message names the other."""
    mixed = pk.register_op("test_rule_mixed", num_inputs=1)
    mixed.set_attr("FCodeGen", lambda node, x: ops.exp(x))
    with pytest.raises(pk.DTypeError, match=r"got an expression \(Var of float32\); FCodeGen "):
        make(mixed)
    with pytest.raises(pk.DTypeError, match=r"'exp' needs an expression, got Entry\(x.*pk.ops.exp"):
        pk.ast.exp(X)  # type: ignore[arg-type]
    with pytest.raises(pk.ArgumentError, match=r"operand of '\*' .* pk.ops, in FExpand\), got E"):
        pk.ast.const(1, float32) * X


def test_any_number_of_results_have_one_dtype_or_one_each() -> None:
    """With any number of results, a single dtype or an unknown one applies to all of them."""
    op = pk.register_op("test_any_number", num_inputs=1, num_outputs=-1)
    op.set_attr("FInferShape", lambda node, shape: (shape, shape))
    op.set_attr("FInferType", lambda node, dtype: dtype)

    assert [e.dtype for e in op(X)] == [X.dtype] * 2
    assert [e.dtype for e in op(pk.var("y", (2,), None))] == [None, None]

    op.set_attr("FInferType", lambda node, dtype: (dtype,) * 3, plevel=11)
    assert [e.shape for e in op(pk.var("y", None))] == [None] * 3
    with pytest.raises(pk.RuleError, match="for each of the 2 results of FInferShape.* it gave 3"):
        op(X)
