"""Exhibits: an operator's call, and how it runs on the CPU in each dtype, found by planning a call.

The call is that of `FExample`, by default of variables of one dtype; a negation follows it, so
that it shows whether the operator fuses with what reads it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from importlib import import_module
from pathlib import Path
from typing import Any

from attrs import frozen

from passkit.dtype import DType, dtype_of
from passkit.errors import DTypeError, PasskitError, RegistryError
from passkit.graph import Annotation, Graph
from passkit.kernel import RTC
from passkit.node import Entry, var
from passkit.op import (
    REQUIRED,
    FCodeGen,
    FExample,
    FExpand,
    FGradient,
    FListInputNames,
    Op,
    get_op,
    list_ops,
)
from passkit.planning import planned
from passkit.runtime.assemble import Input, assemble
from passkit.runtime.program import Launch, Library, Python
from passkit.runtime.state import State
from passkit.target import target_of

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


MARKS = {Way.FUSED: "F", Way.KERNEL: "K", Way.LIBRARY: "L", Way.NUMPY: "N"}


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


def kernels(op: Op) -> list[str]:
    """The texts of the example's kernels, in float32 or else the first dtype that it takes."""
    order = sorted(DTYPES, key=lambda d: d != "float32")
    for dtype in order:
        results = example(op, dtype_of(dtype))
        if results is not None and _has(results, dtype):
            graph = planned(Graph(results), "CodeGen", target="cpu")
            found = graph.attrs["kernel"]
            return list({k.name: k.source for n in graph.nodes if (k := found.get(n))}.values())
    return []


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
    """Where the gradient comes from: a rule of the operator's own, or what it consists of."""
    floats = [
        e for d, results in made.items() if dtype_of(d).is_float for e in results[0].node.inputs
    ]
    if not any(e.dtype is not None and e.dtype.is_float for e in floats):
        return ""
    if FGradient.get(op.name) is not None:
        return "rule"
    derived = FCodeGen.get(op.name) is not None or FExpand.get(op.name) is not None
    return "derived" if derived else "none"


# the page


def library() -> dict[str, list[Op]]:
    """The operators of passkit.ops by the module that they are registered in."""
    import passkit.ops

    folder = str(Path(passkit.ops.__file__).parent)
    found: dict[str, list[Op]] = {}
    for name in list_ops():
        op = get_op(name)
        file = op.place.rpartition(":")[0]
        if file.startswith(folder):
            found.setdefault(Path(file).stem, []).append(op)
    return dict(sorted(found.items()))


def page(show: Callable[[Op], Exhibit] = exhibit) -> str:
    """The reference of all operators, as Markdown."""
    parts = [HEAD, *(_section(module, map(show, ops)) for module, ops in library().items())]
    return "\n\n".join(parts) + "\n"


HEAD = """\
# Operators

Written by `passkit ops --page`; `passkit ops NAME` tells more of one, and prints its kernel.

How an operator runs on the CPU, in each dtype that it takes or gives: **F** is one kernel with what
reads it, **K** has kernels of its own, **L** is run by a library (with kernels around it), **N** by
NumPy; found by planning a call. A gradient comes from a *rule*, or is *derived* from the kernel
expression or from what a composite consists of."""

COLUMNS = {
    "b": ("bool",),
    "i": ("int8", "int16", "int32", "int64"),
    "u": ("uint8", "uint16", "uint32", "uint64"),
    "f16": ("float16",),
    "bf16": ("bfloat16",),
    "f32": ("float32",),
    "f64": ("float64",),
    "c": ("complex64", "complex128"),
}
"""Dtypes that stand in one column; where they differ, each has its letter."""


def _section(module: str, shown: Iterable[Exhibit]) -> str:
    about = (import_module(f"passkit.ops.{module}").__doc__ or "").strip().partition("\n")[0]
    lines = [
        f"## {module}\n\n{about}\n",
        f"| call | meaning | {' | '.join(COLUMNS)} | gradient |",
        "|---|---|" + "---|" * (len(COLUMNS) + 1),
    ]
    return "\n".join([*lines, *map(_row, shown)])


def _row(shown: Exhibit) -> str:
    meaning = " ".join(shown.op.doc.split()).replace("|", "\\|")
    cells = [f"`{shown.call}`", meaning, *marks(shown.ways), shown.gradient]
    return f"| {' | '.join(cells)} |"


def marks(ways: Mapping[str, Way]) -> Iterator[str]:
    """A cell for each column: one letter where its dtypes agree."""
    for dtypes in COLUMNS.values():
        found = [MARKS[ways[d]] if d in ways else "-" for d in dtypes]
        yield ("" if set(found) == {"-"} else found[0]) if len(set(found)) == 1 else "".join(found)
