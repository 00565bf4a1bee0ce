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
from passkit.graph.graph import Annotation, Graph
from passkit.graph.node import Entry, var
from passkit.graph.op import (
    REQUIRED,
    FExample,
    FGradient,
    FListInputNames,
    Op,
)
from passkit.plan.kernel import RTC
from passkit.plan.target import target_of
from passkit.program.planning import planned
from passkit.runtime.assemble import Input, assemble
from passkit.runtime.program import Launch, Library, Python
from passkit.runtime.state import State
from passkit.serial.text import type_text
from passkit.values.dtype import DType, dtype_of

DTYPES = (
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float16", "bfloat16", "float32", "float64", "complex64", "complex128"),
)


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
    calls = {d: call for d in DTYPES if (call := example(op, dtype_of(d))) is not None}
    made = {d: call for d, call in calls.items() if _has(call, d)}
    if not made:
        raise RegistryError(
            f"no example of {op.name} fits any dtype; set FExample on it, or a row in "
            f"ops/examples.py"
        )
    ways = {d: way(entries) for d, entries in made.items()}
    return Exhibit(op, signature(op), ways, gradient(op, made))


def _has(results: Sequence[Entry], dtype: str) -> bool:
    """Whether a call takes or gives values of ``dtype``."""
    entries = (*results, *results[0].node.inputs)
    return any(e.dtype is not None and e.dtype.name == dtype for e in entries)


def example(op: Op, dtype: DType) -> tuple[Entry, ...] | None:
    """The results of the operator's example call; None where it does not take ``dtype``.

    Raises: RegistryError when the call fails for another reason.
    """
    maker = FExample.get(op.name)
    try:
        inputs, params = maker(dtype) if maker is not None else _plain_call(op, dtype)
        out = op(*inputs, **params)
    except DTypeError:
        return None
    except PasskitError as error:
        raise RegistryError(f"the example of {op.name} fails: {error}; see FExample") from None
    return tuple(out) if isinstance(out, (tuple, list)) else (out,)


def _plain_call(op: Op, dtype: DType) -> tuple[list[Entry], dict[str, Any]]:
    """Variables of one dtype and shape, and the parameters' defaults."""
    count = len(input_names(op))
    return [var(f"x{k}", (4, 6), dtype) for k in range(count)], {}


def input_names(op: Op) -> list[str]:
    """What the inputs are called; those of an operator of any number by a star."""
    lister = FListInputNames.get(op.name)
    if lister is not None:
        return list(lister(op.params))
    if op.num_inputs in (-1, None):
        return ["*x"]
    assert op.num_inputs is not None
    return list("xyzuvw"[: op.num_inputs])


def signature(op: Op) -> str:
    """A call as the documentation writes it: inputs, then parameters with their defaults."""
    params = [k if v is REQUIRED else f"{k}={v!r}" for k, v in op.params.items()]
    return f"{op.name}({', '.join([*input_names(op), *params])})"


def way(results: Sequence[Entry]) -> Way:
    """How the node that gives ``results`` runs, with a negation of the first as its reader."""
    reader = _read(results[0])
    graph = planned(Graph([reader, *results[1:]]), "CodeGen", target="cpu")
    steps = _steps(graph)
    if any(isinstance(s, Python) and s.name != reader.node.label for s in steps):
        return Way.NUMPY
    if any(isinstance(s, Library) for s in steps):
        return Way.LIBRARY
    launches = [s for s in steps if isinstance(s, Launch)]
    return Way.FUSED if len(launches) <= 1 else Way.KERNEL


def shown_example(op: Op) -> tuple[Entry, ...] | None:
    """Return the example call in float32, or else in the first dtype that the operator takes."""
    for dtype in sorted(DTYPES, key=lambda d: d != "float32"):
        results = example(op, dtype_of(dtype))
        if results is not None and _has(results, dtype):
            return results
    return None


def example_text(op: Op) -> str:
    """Return the call whose kernels are shown, with the type and shape of each input.

    For example ``softmax(x: f32[4, 6], axis=-1)``.
    """
    results = shown_example(op)
    if results is None:
        return op.name
    node = results[0].node
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
    results = shown_example(op)
    if results is None:
        return []
    graph = planned(Graph(results), "CodeGen", target="cpu")
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
        Input(graph.names[n], graph.dtype(e), graph.shape(e), graph.shape(e))
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
