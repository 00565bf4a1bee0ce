"""From a graph to an `Executable`: what `pk.compile` makes."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from attrs import frozen

from passkit.dtype import DType
from passkit.errors import CompilerError, PassError
from passkit.explanation import Explanation
from passkit.explanation import explain as explained
from passkit.graph import Graph
from passkit.kernel import Kernel
from passkit.node import Entry, Node
from passkit.passes.apply import ApplyPasses
from passkit.passes.context import PassContext, current
from passkit.planning import planned
from passkit.runtime.assemble import Input, assemble
from passkit.runtime.feeds import bind_sizes
from passkit.runtime.interpret import interpret, numbers
from passkit.runtime.native.build import stats as build_stats
from passkit.runtime.native.compiler import INSTALL_HINT
from passkit.runtime.native.feeds import InputSpec, make_program
from passkit.runtime.profile import Profile, profile_program, random_feeds
from passkit.runtime.program import Library, Program, Python, Step
from passkit.runtime.state import State
from passkit.size import Shape, Size, evaluate, numel, symbols_of
from passkit.target import Target


@frozen
class Signature:
    """An input or output: its name, shape (unknown sizes as expressions) and dtype."""

    name: str
    shape: Shape
    dtype: DType


def compile(graph: Graph | Entry | Sequence[Entry], **options: Any) -> Executable:
    """An `Executable` of a graph: what of the ladder is still missing is run.

    ``options`` are those of `PassContext`: target="cpu", fusion="stitch", numerics="strict", ….
    Without a C++ compiler, and with no kernel of the graph in the cache, the executable
    interprets, after one warning that says what to install.
    """
    if not isinstance(graph, Graph):
        graph = Graph(graph)
    return Executable(graph, (current() or PassContext()).with_options(**options))


def explain(graph: Graph, name: str | None = None, **options: Any) -> Explanation:
    """Each edge between two operators: fused, or why not, with data and a way out, as a table.

    A graph without a fusion plan is planned first, under ``options`` as in `compile`. ``name``
    keeps the edges at one node.
    """
    return explained(graph, name, lambda g: planned(g, "Fusion", **options))


class Executable:
    """A compiled graph: call it with arrays, by name or as a dict; it returns a list of arrays.

    ``exe(x=array)`` or ``exe({"x": array}, out=None)``; ``out`` may list arrays of the results'
    shapes and dtypes, to be written and returned. May be called from several threads. Results are
    the caller's to keep. Raises: FeedError for feeds that do not fit.
    """

    # The launcher's callable itself sits in the slot, so that a call runs no Python code: 0.3 us.
    __slots__ = ("__call__", "__dict__", "__weakref__")

    if TYPE_CHECKING:

        def __call__(self, *feeds: Any, **named: Any) -> list[Any]:
            """Run on arrays."""
            ...

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

    _program: Program | None

    def _compiled(self, graph: Graph, context: PassContext) -> None:
        self.graph = planned(graph)
        fed = signature(graph, self.graph)
        self._program = assemble(self.graph, self.state, context.target, fed)
        names = _outputs(graph)
        self.inputs = tuple(Signature(n, s, d) for n, d, s in self._program.inputs)
        self.outputs = tuple(
            Signature(n, s, d) for n, (d, s) in zip(names, self._program.outputs, strict=True)
        )
        specs = [InputSpec(s.name, s.dtype.numpy, tuple(map(_dim, s.shape))) for s in self.inputs]
        lock = self.state.lock if self.state.arrays else None
        self._run = make_program(specs, len(self.outputs), self._bind, lock)
        self.run_positional = self._run.run_positional
        self.__call__ = self._run  # type: ignore[method-assign]

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
        self.__call__ = self._run  # type: ignore[method-assign]

    def _bind(self, shapes: tuple[tuple[int, ...], ...]) -> Any:
        """The launcher asks for shapes it has not seen: numbers for every size."""
        program, sizes = self._fitting(shapes)
        self._shapes, self._sizes = shapes, sizes
        return program.bind(shapes, sizes)

    def _fitting(self, shapes: tuple[tuple[int, ...], ...]) -> tuple[Program, dict[str, int]]:
        """The program that serves these shapes, and the number of every size in it."""
        program = self._program
        assert program is not None
        sizes = program.sizes(shapes)
        if program.broken(sizes) is None:
            return program, sizes
        return self._variants.get(shapes) or self._variant(shapes), {}

    def _variant(self, shapes: tuple[tuple[int, ...], ...]) -> Program:
        """A program for shapes whose sizes are not related as planned: planned anew for them."""
        names = [s.name for s in self.inputs]
        graph = with_shapes(self.source_graph, dict(zip(names, shapes, strict=True)))
        with self.context:
            plan = planned(graph)
        made = assemble(plan, self.state, self.target, signature(graph, plan))
        self._variants[shapes] = made
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
            "bytes_read": sum(self._number(r.nbytes) for s in steps for r in s.reads),
            "bytes_written": sum(self._number(r.nbytes) for s in steps for r in s.writes),
            "bytes_unfused": self._unfused(),
        }

    def _number(self, size: Any) -> int:
        sizes = getattr(self, "_sizes", {})
        if isinstance(size, Size):
            return evaluate(size, sizes) if size.symbols <= set(sizes) else 0
        return int(size)

    def _unfused(self) -> int:
        """Bytes that the operators of the groups would move, each reading and writing memory."""
        total = 0
        for group in self.graph.attrs.get("subgraph", {}).values():
            for node in group.ops:
                for e in (*node.inputs, *node.entries):
                    total += self._number(numel(e.shape)) * e.dtype.nbytes
        for step in self.steps:
            if isinstance(step, Library):
                total += sum(self._number(r.nbytes) for r in (*step.reads, *step.writes))
        return total

    def profile(self, feeds: Mapping[str, Any] | None = None, runs: int = 20) -> Profile:
        """The seconds of each step: medians over ``runs`` calls, steps timed one by one.

        Without ``feeds``, random arrays of the shapes last called with; an unknown size is 64.

        Raises: PassError on an executable that interprets.
        """
        if self._program is None:
            raise PassError(
                f"{self!r} interprets operator by operator; compile for target 'cpu' to profile it"
            )
        if feeds is None:
            shapes = getattr(self, "_shapes", None) or tuple(
                tuple(evaluate(n, dict.fromkeys(symbols_of([n]), 64)) for n in s.shape)
                for s in self.inputs
            )
            feeds = random_feeds([(s.name, s.dtype) for s in self.inputs], shapes)
        arrays = [np.asarray(feeds[s.name]) for s in self.inputs]
        shapes = tuple(a.shape for a in arrays)
        program, sizes = self._fitting(shapes)
        return profile_program(program, sizes, arrays, runs)

    def save(self, folder: str | Path) -> None:
        """Write graph, options, state and compiled kernels into a folder, for `pk.load`."""
        from passkit.saved import save  # it loads, so it stands above this

        save(self, folder)

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


def signature(graph: Graph, plan: Graph) -> tuple[Input, ...]:
    """What every input of ``graph`` must be, as declared and as plan.

    The planned graph may lack some of them, and knows more of the shapes of the others.
    """
    names = [graph.names[n] for n in graph.inputs]
    if names != [plan.names[n] for n in plan.inputs]:
        plan = ApplyPasses(graph, "Complete")
    entries = {plan.names[n]: n.entries[0] for n in plan.inputs}
    found = []
    for node, name in zip(graph.inputs, names, strict=True):
        shape, declared = plan.shape(entries[name]), node.entries[0].shape
        found.append(Input(name, plan.dtype(entries[name]), declared or shape, shape))
    return tuple(found)


def with_shapes(graph: Graph, shapes: Mapping[str, tuple[int, ...]]) -> Graph:
    """The graph with other shapes for some of its inputs; everything else is inferred anew."""
    declared = [(graph.names[n], n.entries[0].shape) for n in graph.inputs]
    sizes = bind_sizes((name, s, shapes[name]) for name, s in declared if name in shapes)

    def change(node: Node, inputs: tuple[Entry, ...]) -> tuple[Entry, ...] | None:
        if not node.is_variable:
            params = {k: numbers(v, sizes) for k, v in node.params.items()}
            if params == dict(node.params):
                return None
            return Node(node.op, inputs, params, node.name, node.control).entries
        if node.params.get("state") or graph.names[node] not in shapes:
            return None
        params = {**node.params, "shape": tuple(shapes[graph.names[node]])}
        return Node(None, (), params, graph.names[node]).entries

    return graph.rebuild(change)
