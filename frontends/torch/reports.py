"""Reports of the parts of a PyTorch model that passkit runs, and those that PyTorch runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from attrs import field, frozen

from passkit.frontends.torch.extern import TORCH_CALL
from passkit.frontends.torch.frozen import FrozenProgram
from passkit.frontends.torch.importer import ExternNode
from passkit.frontends.torch.program import Program
from passkit.values.units import table


@frozen(eq=False)
class GraphRecord:
    """A graph that was compiled.

    Attributes:
        nodes: the number of its operators.
        externs: those that PyTorch runs.
        whole: why PyTorch runs the whole graph; "" if it does not.
        program: the compiled graph; None where PyTorch runs the whole graph.
        calls: the arguments of its first call, while a report is made.
    """

    nodes: int
    externs: tuple[ExternNode, ...]
    whole: str = ""
    program: Program | FrozenProgram | None = None
    calls: list[list[Any]] = field(factory=list)


_records: list[list[GraphRecord]] = []
"""The lists that graphs are added to while `recording` is active."""


@contextmanager
def recording() -> Iterator[list[GraphRecord]]:
    """Collect the records of the graphs that are compiled inside the ``with`` block."""
    records: list[GraphRecord] = []
    _records.append(records)
    try:
        yield records
    finally:
        _records.remove(records)


def record(graph: GraphRecord) -> bool:
    """Add a graph to all records that are being collected; return whether there are any."""
    for records in _records:
        records.append(graph)
    return bool(_records)


@frozen
class ExternTotal:
    """An operator that PyTorch runs.

    Attributes:
        function: its name.
        count: the number of its calls in all graphs.
        reason: why passkit does not run it.
        line: the line of the user's program of the first of them, "" if it is not known.
    """

    function: str
    count: int
    reason: str
    line: str


@frozen(repr=False)
class Report:
    """Which parts of a model passkit ran; printed as a table of the operators that PyTorch ran.

    Attributes:
        graphs: the number of graphs that the model was divided into.
        nodes: the number of their operators.
        native: how many of these passkit ran.
        nbytes: the bytes that all steps read and wrote.
        native_nbytes: those of passkit's steps.
        seconds: the seconds of all steps, 0 if nothing was measured.
        native_seconds: those of passkit's steps.
        externs: the operators that PyTorch ran.
    """

    graphs: int
    nodes: int
    native: int
    nbytes: int
    native_nbytes: int
    seconds: float
    native_seconds: float
    externs: tuple[ExternTotal, ...]

    def __repr__(self) -> str:
        """Return the shares, and a line for each operator that PyTorch ran."""
        shares = (
            f"passkit ran {self.native} of {self.nodes} operators in {self.graphs} "
            f"graph{'s' * (self.graphs != 1)}, {_share(self.native_nbytes, self.nbytes)} of the "
            f"bytes and {_share(self.native_seconds, self.seconds)} of the time"
        )
        if not self.externs:
            return shares
        rows = [(x.function, x.count, x.reason, x.line) for x in self.externs]
        return f"{shares}\n{table(('PyTorch ran', 'calls', 'because', 'line'), rows)}"


def _share(part: float, whole: float) -> str:
    """Return a share as percent; of nothing it is 100 %."""
    return f"{part / whole:.0%}" if whole else "100%"


def report(function: Callable[..., Any], *inputs: Any, **named: Any) -> Report:
    """Compile a model or function anew, run it once, and report what passkit ran.

    Args:
        function: a module or a function of tensors, not compiled yet or compiled.
        *inputs: its arguments.
        **named: its keyword arguments.

    Raises: what compiling or calling it raises.
    """
    from passkit.frontends.torch.backend import passkit_backend

    plain = getattr(function, "_orig_mod", None) or getattr(
        function, "_torchdynamo_orig_callable", function
    )
    torch._dynamo.reset()
    with recording() as records:
        torch.compile(plain, backend=passkit_backend)(*inputs, **named)
    torch._dynamo.reset()
    return _summary(records)


def _summary(records: Sequence[GraphRecord]) -> Report:
    """Return the report of graphs, whose programs are measured on the arguments they got."""
    totals: dict[tuple[str, str], list[ExternNode]] = {}
    for graph in records:
        for node in graph.externs:
            totals.setdefault((node.function, node.reason), []).append(node)
        if graph.whole:
            whole = ExternNode("", "a whole graph", graph.whole)
            totals.setdefault((whole.function, whole.reason), []).append(whole)
    measured = [x for graph in records for x in _steps(graph)]
    nodes = sum(x.nodes for x in records)
    outside = sum(x.nodes if x.whole else len(x.externs) for x in records)
    return Report(
        graphs=len(records),
        nodes=nodes,
        native=nodes - outside,
        nbytes=sum(nbytes for _, nbytes, _ in measured),
        native_nbytes=sum(nbytes for is_native, nbytes, _ in measured if is_native),
        seconds=sum(seconds for _, _, seconds in measured),
        native_seconds=sum(seconds for is_native, _, seconds in measured if is_native),
        externs=tuple(
            ExternTotal(function, len(calls), reason, calls[0].line)
            for (function, reason), calls in sorted(totals.items())
        ),
    )


def _steps(graph: GraphRecord) -> Iterator[tuple[bool, int, float]]:
    """Yield of each step of a graph whether it is passkit's, its bytes and its seconds."""
    program = graph.program
    if program is None or program.executable is None or not graph.calls:
        return
    planned = program.executable.graph
    outside = {planned.names[n] for n in planned.nodes if n.op is TORCH_CALL}
    arrays = program.feeds_of(graph.calls[0])
    for row in program.executable.profile(arrays, runs=3, copies=False).rows:
        yield row.node not in outside, row.nbytes, row.seconds
