"""Bisection: the first optional decision of the passes that makes results wrong, and its kernel.

Passes take optional decisions (fusions, rewrites) while they have fuel, always in the same order.
So one amount of fuel is the last that gives right results; the decision after it is to blame.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from attrs import field, frozen

from passkit.errors import PasskitError, SettingError
from passkit.graph.graph import Graph
from passkit.graph.node import CONSTANT, Node, var
from passkit.passes.context import PassContext
from passkit.passes.fusion.flatten import flatten
from passkit.plan.group import FUSED, Group
from passkit.plan.single import single
from passkit.program.compiler import compile
from passkit.program.executable import Executable
from passkit.runtime.feeds import bind_sizes
from passkit.runtime.interpret import interpret
from passkit.runtime.state import State
from passkit.serial.json import to_json
from passkit.values.progress import progress
from passkit.values.size import evaluate
from passkit.values.tolerance import compare

if TYPE_CHECKING:
    from passkit.plan.kernel import Kernel

PLENTY = 1 << 30
"""More fuel than there are decisions in any graph."""


@frozen
class Culprit:
    """A node of the planned graph whose result is wrong by itself: on right inputs."""

    name: str
    operators: tuple[str, ...]
    graph: Graph
    """The node alone: its inputs are variables."""
    feeds: Mapping[str, Any] = field(repr=False)
    wanted: Mapping[str, Any] = field(repr=False)
    error: str
    kernel: Kernel | None

    def save(self, folder: str | Path) -> Path:
        """Write what shows the fault on another machine: graph, inputs, right results, kernel.

        ``passkit run culprit.json --compare`` in that folder runs it.
        """
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "culprit.json").write_text(to_json(self.graph), encoding="utf-8")
        np.savez(folder / "culprit.npz", **self.feeds, **self.wanted)
        if self.kernel is not None:
            (folder / "kernel.cpp").write_text(self.kernel.source, encoding="utf-8")
        return folder


@frozen
class Bisection:
    """What was found. ``fuel`` is the least that is wrong, ``decision`` what was taken with it.

    With no fuel at all, ``decision`` is "": a kernel of a single operator is wrong, or a call.
    """

    fuel: int
    decisions: int
    decision: str
    error: str
    culprit: Culprit | None


def bisect(graph: Graph, feeds: Mapping[str, Any], **options: Any) -> Bisection | None:
    """The first decision that makes results differ from the interpreter's; None if they agree.

    ``options`` are those of `PassContext`, without fuel. A compilation that fails counts as wrong.
    """
    trial = _Trial(graph, feeds, options)
    error, spent = trial.error(PLENTY)
    if error is None:
        return None
    low, high, errors = -1, len(spent), {len(spent): error}
    with progress("bisect", max(1, high).bit_length() + 1) as step:
        while high - low > 1:
            middle = (low + high) // 2 if low >= 0 else 0
            found, _ = trial.error(middle)
            step()
            if found is None:
                low = middle
            else:
                high, errors[middle] = middle, found
    decision = spent[high - 1] if high else ""
    return Bisection(high, len(spent), decision, errors[high], trial.culprit(low, high))


class _Trial:
    """One graph on one set of inputs, compiled with more or less fuel."""

    def __init__(self, graph: Graph, feeds: Mapping[str, Any], options: Mapping[str, Any]) -> None:
        if "fuel" in options:
            raise SettingError(
                f"bisect tries every fuel by itself; leave out fuel={options['fuel']}"
            )
        self.graph, self.feeds, self.options = graph, feeds, dict(options)
        self.meaning = compile(graph, target="interpret")(feeds)

    def compiled(self, fuel: int) -> Executable:
        """The graph compiled with so much fuel."""
        with PassContext(**self.options, fuel=fuel):
            return compile(self.graph)

    def error(self, fuel: int) -> tuple[str | None, list[str]]:
        """What is wrong with so much fuel, and the decisions that were taken."""
        context = PassContext(**self.options, fuel=fuel)
        try:
            with context:
                run = compile(self.graph)
            results = run(self.feeds)
        except PasskitError as error:
            return _said(error), context.fuel.spent
        names = [o.name for o in run.outputs]
        return _disagreement(names, results, self.meaning), context.fuel.spent

    def culprit(self, low: int, high: int) -> Culprit | None:
        """The first node that is new with the bad decision and wrong by itself."""
        try:
            graph = self.compiled(high).graph
        except PasskitError:
            return None  # nothing to run; the error says which kernel it was
        before: set[str] = set()
        if low >= 0:
            before = {b.key for b in self.compiled(low).graph.attrs["subgraph"].values()}
        nodes = [n for n in graph.nodes if n.op is not None and n.op is not CONSTANT]
        bodies = {n: n.params["body"].key for n in nodes if n.op is FUSED}
        if low >= 0:
            nodes = [n for n in nodes if bodies.get(n, "") not in before]
        with progress("try each step by itself", len(nodes)) as step:
            for node in nodes:
                found = self.alone(graph, node)
                step()
                if found is not None:
                    return found
        return None

    def alone(self, graph: Graph, node: Node) -> Culprit | None:
        """A node on right inputs: the culprit that it is, if it is one."""
        reads = list(dict.fromkeys(node.inputs))
        before = Graph(reads)
        known = {n.name for n in before.inputs}
        feeds = {k: v for k, v in self.feeds.items() if k in known}
        values = interpret(before, feeds, State.of(before).arrays) if reads else []
        entries = {e: var(f"x{k}", graph.shape(e), graph.dtype(e)) for k, e in enumerate(reads)}
        one = single(node, [entries[e] for e in node.inputs])
        feeds = {f"x{k}": v for k, v in enumerate(values)}
        feeds |= self.tellers(one, feeds)
        names = [f"y{k}" for k in range(len(node.entries))]
        wanted, kernel = interpret(one, feeds), None
        try:
            with PassContext(**self.options):
                run = compile(one)
            kernel = run.kernels[0] if run.kernels else None
            error = _disagreement(names, run(feeds), wanted)
        except PasskitError as found:
            error = _said(found)
        if error is None:
            return None
        body: Group | None = node.params.get("body")
        operators = (node.label,) if body is None else tuple(map(body.called, body.ops))
        named = _named(flatten(one))
        results = dict(zip(names, wanted, strict=True))
        return Culprit(graph.names[node], operators, named, feeds, results, error, kernel)

    def tellers(self, one: Graph, feeds: Mapping[str, Any]) -> dict[str, Any]:
        """What tells a node alone the sizes that its inputs do not: arrays without elements."""
        names = self.graph.names
        shapes = [(names[n], n.entries[0].shape) for n in self.graph.inputs]
        sizes = bind_sizes((name, shape, np.shape(self.feeds[name])) for name, shape in shapes)
        return {
            n.name: np.zeros([evaluate(d, sizes) for d in one.shape(n.entries[0])], bool)
            for n in one.inputs
            if n.name not in feeds
        }


def _named(graph: Graph) -> Graph:
    """The graph with results called y0, y1, …: names that a file of arrays can have."""
    names = {e.node: f"y{k}" for k, e in enumerate(graph.outputs)}
    return graph.rebuild(
        lambda node, inputs: (
            node.replaced(inputs, name=names[node]).entries if node in names else None
        )
    )


def _said(error: PasskitError) -> str:
    return f"{type(error).__name__}: {error}"


def _disagreement(
    names: Sequence[str], results: Sequence[Any], wanted: Sequence[Any]
) -> str | None:
    """The first result that is too far from what it should be, as text."""
    got, right = (dict(zip(names, x, strict=True)) for x in (results, wanted))
    deviations = compare(got, right, "the interpreter")
    return next((str(e) for e in deviations if not e.good), None)
