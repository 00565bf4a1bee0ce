"""Summaries of operators: the call, and how it runs on the CPU in each dtype.

A summary is found by planning the operator's example (`FExample`, by default variables of one
dtype). A negation follows the operator, so that the plan shows whether it fuses with a consumer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any

from attrs import frozen

from passkit.analysis.group import FUSED
from passkit.errors import DTypeError, PasskitError, RegistryError
from passkit.graph.adjoint import gradients
from passkit.graph.describe import (
    DTYPES,
    ExampleCall,
    call_text,
    example,
    example_calls,
    input_names,
)
from passkit.graph.graph import Annotation, Graph
from passkit.graph.kernel import RTC
from passkit.graph.node import Entry
from passkit.graph.op import FGradient, Op
from passkit.passes.codegen import operator_kernel
from passkit.program.planning import planned
from passkit.runtime.assemble import ProgramInput, assemble
from passkit.runtime.program import LaunchStep, LibraryCall, PythonCall
from passkit.runtime.state import State
from passkit.serial.text import type_text
from passkit.target import target_of
from passkit.values.dtype import dtype_of


class ExecutionKind(StrEnum):
    """How an operator runs: fused with its consumer, in its own kernel, by a library or NumPy."""

    FUSED = "fused"
    KERNEL = "own kernel"
    LIBRARY = "library"
    NUMPY = "NumPy"


@frozen
class OperatorSummary:
    """The summary of an operator.

    Attributes:
        op: The operator.
        call: Its call with the names of inputs and parameters.
        execution: How it runs, by the name of each dtype that it accepts.
        gradient: The source of its gradient, as `gradient_source` returns it.
    """

    op: Op
    call: str
    execution: Mapping[str, ExecutionKind]
    gradient: str


def summarize(op: Op) -> OperatorSummary:
    """Return the summary of an operator.

    Raises: RegistryError if its example fits no dtype, or raises another PasskitError than a
    DTypeError; PasskitError where an example cannot be planned. Other errors of FExample propagate.
    """
    calls = {dtype: call.results for dtype, call in example_calls(op).items()}
    if not calls:
        raise RegistryError(
            f"the reference page cannot describe operator {op.name}, because its example call "
            f"fails in every dtype ({', '.join(DTYPES)}); set FExample on it to a function of a "
            f"dtype that returns inputs and parameters of a valid call, as ops/examples.py does"
        )
    execution = {dtype: execution_kind(results) for dtype, results in calls.items()}
    return OperatorSummary(op, call_text(op), execution, gradient_source(op, calls))


def execution_kind(outputs: Sequence[Entry]) -> ExecutionKind:
    """Return how the node with these outputs runs on the CPU if a negation reads the first one.

    Raises: PasskitError where it cannot be planned.
    """
    consumer = _negated(outputs[0])
    steps = _steps(planned(Graph([consumer, *outputs[1:]]), "Fusion", target="cpu"))
    launches = [s for s in steps if _is_launch(s)]
    others = [s for s in steps if isinstance(s, PythonCall) and not _is_launch(s)]
    if any(s.name != consumer.node.label for s in others):
        return ExecutionKind.NUMPY
    if any(isinstance(s, LibraryCall) for s in steps):
        return ExecutionKind.LIBRARY
    return ExecutionKind.FUSED if len(launches) <= 1 else ExecutionKind.KERNEL


def example_call(op: Op) -> ExampleCall | None:
    """Return the example call in float32, or else in the first dtype that the operator accepts.

    Returns: None if it accepts none of them.

    Raises: RegistryError if the call raises another PasskitError than a DTypeError. Other errors of
    FExample propagate.
    """
    for dtype in sorted(DTYPES, key=lambda d: d != "float32"):
        call = example(op, dtype_of(dtype))
        if call is not None and call.has(dtype):
            return call
    return None


def example_text(op: Op) -> str:
    """Return `example_call` as text, with the type and shape of each input.

    For example ``softmax(x: f32[4, 6], axis=-1)``; the name alone if there is no example.

    Raises: RegistryError if the call raises another PasskitError than a DTypeError. Other errors of
    FExample propagate.
    """
    call = example_call(op)
    if call is None:
        return op.name
    node = call.results[0].node
    names = input_names(op)
    if names == ["*x"]:
        names = [f"x{k}" for k in range(len(node.inputs))]
    inputs = [
        f"{name}: {type_text(entry.dtype, entry.shape)}"
        for name, entry in zip(names, node.inputs, strict=False)
    ]
    params = [f"{key}={value!r}" for key, value in node.params.items()]
    return f"{op.name}({', '.join([*inputs, *params])})"


def example_kernels(op: Op) -> list[str]:
    """Return the sources of the kernels of `example_call`, each once.

    Empty if there is no example, or it runs without a kernel.

    Raises: RegistryError if the call raises another PasskitError than a DTypeError; PasskitError
    where it cannot be planned. Other errors of FExample propagate.
    """
    call = example_call(op)
    if call is None:
        return []
    graph = planned(Graph(call.results), "CodeGen", target="cpu")
    by_node = graph.attrs["kernel"]
    return list({k.name: k.source for n in graph.nodes if (k := by_node.get(n))}.values())


def _negated(x: Entry) -> Entry:
    """Return the negation of a value, or the value itself if its dtype has no negation."""
    assert x.dtype is not None
    try:
        return ~x if x.dtype.kind == "b" else -x
    except DTypeError:
        return x


def _steps(graph: Graph) -> Sequence[Any]:
    """Return the steps of the program of a graph, with calls of its fused nodes for their kernels.

    The graph has been through Fusion, which decides what kernels there are. They are neither
    scheduled nor printed.

    Raises: PasskitError where the program cannot be planned.
    """
    dialect = target_of("cpu").dialect
    own = {n: RTC(k, 0) for n in graph.nodes if (k := operator_kernel(graph, n, dialect))}
    graph = planned(graph.with_attrs(rtc=Annotation("rtc", own)), "PlanMemory", target="cpu")
    inputs = [
        ProgramInput(graph.names[n], graph.dtype(e), graph.shape(e), graph.shape(e))
        for n in graph.inputs
        for e in n.entries
    ]
    return assemble(graph, State.of(graph), target_of("cpu"), inputs).steps


def _is_launch(step: Any) -> bool:
    """Return whether a step of `_steps` stands for the launch of a kernel."""
    if isinstance(step, PythonCall):
        return step.node is not None and step.node.op is FUSED
    return isinstance(step, LaunchStep)


def gradient_source(op: Op, calls: Mapping[str, Sequence[Entry]]) -> str:
    """Return where the gradient of an operator comes from.

    Args:
        op: The operator.
        calls: The outputs of example calls, by dtype. The first with a float input and a float
            output decides.

    Returns: "rule" if the operator has FGradient; "derived" if the gradient follows from its kernel
        expression or its composition; "0" if it is zero by all inputs, as of a piecewise constant
        operator; "none" if it cannot be computed; "" if no call has a float input and output.
    """
    for outputs in calls.values():
        xs = [e for e in outputs[0].node.inputs if _is_float(e)]
        ys = [e for e in outputs if _is_float(e)]
        if xs and ys:
            try:
                adjoints = gradients(ys, xs, unconnected="none")
            except PasskitError:
                return "none"
            if all(dx is None for dx in adjoints):
                return "0"
            return "derived" if FGradient.get(op.name) is None else "rule"
    return ""


def _is_float(x: Entry) -> bool:
    """Return whether a value has a real float dtype; False if its dtype is unknown."""
    return x.dtype is not None and x.dtype.is_float
