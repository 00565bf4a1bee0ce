"""Exhibits: an operator's call, and how it runs on the CPU in each dtype.

Found by planning a call: that of `FExample`, by default of variables of one dtype. A negation
follows it, so that it shows whether the operator fuses with what reads it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any

from attrs import frozen

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
from passkit.graph.node import Entry
from passkit.graph.op import FGradient, Op
from passkit.plan.kernel import RTC
from passkit.plan.target import target_of
from passkit.program.planning import planned
from passkit.runtime.assemble import ProgramInput, assemble
from passkit.runtime.program import LaunchStep, LibraryCall, PythonCall
from passkit.runtime.state import State
from passkit.serial.text import type_text
from passkit.values.dtype import dtype_of


class Way(StrEnum):
    """How an operator runs."""

    FUSED = "fused"
    KERNEL = "own kernel"
    LIBRARY = "library"
    NUMPY = "NumPy"


@frozen
class Exhibit:
    """What a reader wants to know of an operator. ``ways`` are by the names of dtypes it takes."""

    op: Op
    call: str
    ways: Mapping[str, Way]
    gradient: str


def exhibit(op: Op) -> Exhibit:
    """The exhibit of an operator.

    Raises: RegistryError when its example fits no dtype.
    """
    calls = {dtype: call.results for dtype, call in example_calls(op).items()}
    if not calls:
        raise RegistryError(
            f"no example of {op.name} fits any dtype; set FExample on it, or a row in "
            f"ops/examples.py"
        )
    ways = {dtype: way(results) for dtype, results in calls.items()}
    return Exhibit(op, call_text(op), ways, gradient(op, calls))


def way(results: Sequence[Entry]) -> Way:
    """How the node that gives ``results`` runs, with a negation of the first as its reader."""
    reader = _read(results[0])
    graph = planned(Graph([reader, *results[1:]]), "CodeGen", target="cpu")
    steps = _steps(graph)
    if any(isinstance(s, PythonCall) and s.name != reader.node.label for s in steps):
        return Way.NUMPY
    if any(isinstance(s, LibraryCall) for s in steps):
        return Way.LIBRARY
    launches = [s for s in steps if isinstance(s, LaunchStep)]
    return Way.FUSED if len(launches) <= 1 else Way.KERNEL


def shown_example(op: Op) -> ExampleCall | None:
    """Return the example call in float32, or else in the first dtype that the operator takes."""
    for dtype in sorted(DTYPES, key=lambda d: d != "float32"):
        call = example(op, dtype_of(dtype))
        if call is not None and call.has(dtype):
            return call
    return None


def shown_text(op: Op) -> str:
    """Return the call whose kernels are shown, with the type and shape of each input.

    For example ``softmax(x: f32[4, 6], axis=-1)``.
    """
    call = shown_example(op)
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


def kernels(op: Op) -> list[str]:
    """Return the texts of the kernels of `shown_example`, each once."""
    call = shown_example(op)
    if call is None:
        return []
    graph = planned(Graph(call.results), "CodeGen", target="cpu")
    by_node = graph.attrs["kernel"]
    return list({k.name: k.source for n in graph.nodes if (k := by_node.get(n))}.values())


def _read(x: Entry) -> Entry:
    """An elementwise reader of ``x``; itself where its dtype has none."""
    assert x.dtype is not None
    try:
        return ~x if x.dtype.kind == "b" else -x
    except DTypeError:
        return x


def _steps(graph: Graph) -> Sequence[Any]:
    """The steps of a program whose kernels are not compiled."""
    kernels = graph.attrs["kernel"]
    graph = graph.with_attrs(rtc=Annotation("rtc", {n: RTC(k, 0) for n, k in kernels.items()}))
    graph = planned(graph, "PlanMemory", target="cpu")
    inputs = [
        ProgramInput(graph.names[n], graph.dtype(e), graph.shape(e), graph.shape(e))
        for n in graph.inputs
        for e in n.entries
    ]
    return assemble(graph, State.of(graph), target_of("cpu"), inputs).steps


def gradient(op: Op, made: Mapping[str, Sequence[Entry]]) -> str:
    """Where the gradient comes from: a rule of the operator's own, or what it consists of.

    "0" where no gradient flows, as the operator is constant in pieces; "none" where there is none.
    """
    for results in made.values():
        xs = [e for e in results[0].node.inputs if _is_float(e)]
        ys = [e for e in results if _is_float(e)]
        if xs and ys:
            try:
                found = gradients(ys, xs, unconnected="none")
            except PasskitError:
                return "none"
            if all(dx is None for dx in found):
                return "0"
            return "derived" if FGradient.get(op.name) is None else "rule"
    return ""


def _is_float(x: Entry) -> bool:
    return x.dtype is not None and x.dtype.is_float
