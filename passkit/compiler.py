"""The ladder: from a graph to an `Executable`."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

from attrs import frozen

from passkit.dtype import DType
from passkit.errors import CompilerError
from passkit.graph import Graph
from passkit.kernel import Kernel
from passkit.node import Entry, Node
from passkit.passes.apply import ApplyPasses
from passkit.passes.context import PassContext, current
from passkit.runtime.assemble import assemble
from passkit.runtime.interpret import interpret
from passkit.runtime.native.build import stats as build_stats
from passkit.runtime.native.compiler import INSTALL_HINT
from passkit.runtime.native.feeds import InputSpec, make_program
from passkit.runtime.program import Library, Program, Python, Step
from passkit.runtime.state import State
from passkit.size import Shape, Size, evaluate, numel
from passkit.target import Target

LADDER = (
    "Functionalize",
    "Expand",
    "Simplify",
    "Fusion",
    "SchedulePlan",
    "SharedMemPlan",
    "CodeGen",
    "RTCGen",
    "PlanMemory",
)
"""The passes of a compilation, in order; analyses are run in between where they are needed."""

PROVIDES = {
    "Fusion": "subgraph",
    "SchedulePlan": "schedule",
    "SharedMemPlan": "shared",
    "CodeGen": "kernel",
    "RTCGen": "rtc",
    "PlanMemory": "storage",
}


@frozen
class Signature:
    """An input or output: its name, shape (unknown sizes as expressions) and dtype."""

    name: str
    shape: Shape
    dtype: DType


def compile(graph: Graph | Entry | Sequence[Entry], **options: Any) -> Executable:  # noqa: A001
    """An `Executable` of a graph: what of the ladder is still missing is run.

    ``options`` are those of `PassContext`: target="cpu", fusion="stitch", numerics="strict", ….
    Without a C++ compiler, and with no kernel of the graph in the cache, the executable
    interprets, after one warning that says what to install.
    """
    if not isinstance(graph, Graph):
        graph = Graph(graph)
    return Executable(graph, (current() or PassContext()).with_options(**options))


def ladder(graph: Graph, context: PassContext) -> Graph:
    """The graph with every annotation that a program is assembled from."""
    done = [p for p, what in PROVIDES.items() if what in graph.attrs]
    start = LADDER.index(done[-1]) + 1 if done else 0
    skipped = set(context.disabled)
    passes = [p for p in LADDER[start:] if p not in skipped or p in PROVIDES]
    return ApplyPasses(graph, passes, **_options(context))


def _options(context: PassContext) -> dict[str, Any]:
    return {"target": context.target, "fusion": context.fusion, "numerics": context.numerics}


class Executable:
    """A compiled graph: call it with arrays, by name or as a dict; it returns a list of arrays.

    May be called from several threads. Results are the caller's to keep.
    """

    def __init__(self, graph: Graph, context: PassContext) -> None:
        self.source_graph = graph
        self.context = context
        self.target: Target = context.target
        self._variants: dict[tuple[tuple[int, ...], ...], Program] = {}
        with context:
            self.state = State.of(graph)
            self._start(graph, context)

    def _start(self, graph: Graph, context: PassContext) -> None:
        before = build_stats.compiled
        if context.target.name != "interpret":
            try:
                self._compiled(graph, context)
            except CompilerError as error:
                if "no C++ compiler" not in str(error):
                    raise
                warnings.warn(
                    f"passkit interprets, because no C++ compiler was found; {INSTALL_HINT}",
                    stacklevel=4,
                )
                self._interpreted(graph)
        else:
            self._interpreted(graph)
        self._newly_compiled = build_stats.compiled - before

    def _compiled(self, graph: Graph, context: PassContext) -> None:
        self.graph = ladder(graph, context)
        self._program = assemble(self.graph, self.state, context.target)
        names = _outputs(graph)
        self.inputs = tuple(Signature(n, s, d) for n, d, s in self._program.inputs)
        self.outputs = tuple(
            Signature(n, s, d) for n, (d, s) in zip(names, self._program.outputs, strict=True)
        )
        specs = [InputSpec(s.name, s.dtype.numpy, tuple(map(_dim, s.shape))) for s in self.inputs]
        lock = self.state.lock if self.state.arrays else None
        self._run = make_program(specs, len(self.outputs), self._bind, lock)
        self.run_positional = self._run.run_positional

    def _interpreted(self, graph: Graph) -> None:
        self.graph = ApplyPasses(graph, ["InferShape", "InferType"], target="interpret")
        g = self.graph
        self._program = None
        self.inputs = tuple(
            Signature(g.names[n], g.shape(n.entries[0]), g.dtype(n.entries[0])) for n in g.inputs
        )
        self.outputs = tuple(
            Signature(n, g.shape(e), g.dtype(e))
            for n, e in zip(_outputs(graph), g.outputs, strict=True)
        )
        self._run = _Interpreted(graph, self.state)

    def __call__(self, *feeds: Any, **named: Any) -> list[Any]:
        """Run on arrays: ``exe(x=array)`` or ``exe({"x": array}, out=None)``.

        ``out`` may list arrays of the results' shapes and dtypes, to be written and returned.

        Raises: FeedError for feeds that do not fit.
        """
        return self._run(*feeds, **named)  # type: ignore[no-any-return]

    def _bind(self, shapes: tuple[tuple[int, ...], ...]) -> Any:
        """The launcher asks for shapes it has not seen: numbers for every size."""
        program = self._program
        assert program is not None
        sizes = program.sizes(shapes)
        if program.broken(sizes) is not None:
            program = self._variants.get(shapes) or self._variant(shapes)
            sizes = {}
        self._sizes = sizes
        return program.bind(shapes, sizes)

    def _variant(self, shapes: tuple[tuple[int, ...], ...]) -> Program:
        """A program for shapes whose sizes are not related as planned: planned anew for them."""
        names = [s.name for s in self.inputs]
        graph = with_shapes(self.source_graph, dict(zip(names, shapes, strict=True)))
        with self.context:
            planned = ladder(graph, self.context)
        made = self._variants[shapes] = assemble(planned, self.state, self.target)
        return made

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        """The kernels, one for each launch, in order."""
        found = self.graph.attrs.get("kernel", {})
        return tuple(found[n] for n in self.graph.nodes if n in found)

    @property
    def steps(self) -> tuple[Step, ...]:
        """The steps of a run."""
        return () if self._program is None else self._program.steps

    @property
    def source(self) -> str:
        """The text of all kernels, each once."""
        return "\n".join({k.key: k.source for k in self.kernels}.values())

    @property
    def stats(self) -> dict[str, Any]:
        """Counts: native calls, kernels, compilations, input copies, steps by kind, and bytes.

        Bytes are those that one run reads and writes, at the sizes last bound; ``bytes_unfused`` is
        what the operators would move one by one. They are 0 until sizes are known.
        """
        steps = self.steps
        read, written = self._moved()
        return {
            "target": self.target.name if self._program is not None else "interpret",
            "native_calls": getattr(self._run, "native_calls", 0),
            "launches": len(self.kernels) + sum(isinstance(s, Library) for s in steps),
            "kernels": len(self.kernels),
            "distinct_kernels": len({k.key for k in self.kernels}),
            "compiled": self._newly_compiled,
            "library_calls": sum(isinstance(s, Library) for s in steps),
            "python_calls": sum(isinstance(s, Python) for s in steps),
            "copies": getattr(self._run, "copies", 0),
            "bytes_read": read,
            "bytes_written": written,
            "bytes_unfused": self._unfused(),
        }

    def _number(self, size: Any) -> int:
        sizes = getattr(self, "_sizes", {})
        if isinstance(size, Size):
            return evaluate(size, sizes) if size.symbols <= set(sizes) else 0
        return int(size)

    def _moved(self) -> tuple[int, int]:
        read = written = 0
        for step in self.steps:
            match step:
                case Python(_, _, inputs, outputs):
                    read += sum(self._number(r.nbytes) for r in inputs)
                    written += sum(self._number(r.nbytes) for r in outputs)
                case Library(refs=refs):
                    read += sum(self._number(r.nbytes) for r in refs[:-1])
                    written += self._number(refs[-1].nbytes)
                case _ if hasattr(step, "kernel"):
                    for ref, buffer in zip(step.refs, step.kernel.ast.params, strict=True):
                        nbytes = self._number(ref.nbytes)
                        written += nbytes if buffer.written else 0
                        read += 0 if buffer.written else nbytes
        return read, written

    def _unfused(self) -> int:
        """Bytes that the operators of the groups would move, each reading and writing memory."""
        total = 0
        for group in self.graph.attrs.get("subgraph", {}).values():
            for node in group.ops:
                for e in (*node.inputs, *node.entries):
                    total += self._number(numel(e.shape)) * e.dtype.nbytes
        for step in self.steps:
            if isinstance(step, Library):
                total += sum(self._number(r.nbytes) for r in step.refs)
        return total

    def __repr__(self) -> str:
        return f"Executable({len(self.kernels)} kernels on {self.target.name})"


class _Interpreted:
    """What runs an executable without native code."""

    def __init__(self, graph: Graph, state: State) -> None:
        self.graph, self.state = graph, state
        self.native_calls = self.copies = 0

    def __call__(
        self, feeds: Mapping[str, Any] | None = None, /, *, out: Any = None, **named: Any
    ) -> list[Any]:
        with self.state.lock:
            results = interpret(self.graph, {**(feeds or {}), **named}, self.state.arrays)
        if out is not None:
            for target, result in zip(out, results, strict=True):
                target[...] = result
            return list(out)
        return results


def _dim(size: Any) -> int | str | None:
    if isinstance(size, int):
        return size
    text = str(size)
    return text if text.isidentifier() else None


def _outputs(graph: Graph) -> list[str]:
    names = graph.names
    return [
        names[e.node] if len(e.node.entries) == 1 else f"{names[e.node]}:{e.index}"
        for e in graph.outputs
    ]


def with_shapes(graph: Graph, shapes: Mapping[str, Shape]) -> Graph:
    """The graph with other shapes for some of its inputs; everything else is inferred anew."""

    def change(node: Node, inputs: tuple[Entry, ...]) -> tuple[Entry, ...] | None:
        if not node.is_variable or node.params.get("state") or graph.names[node] not in shapes:
            return None
        params = {**node.params, "shape": tuple(shapes[graph.names[node]])}
        return Node(None, (), params, graph.names[node]).entries

    return graph.rebuild(change)
