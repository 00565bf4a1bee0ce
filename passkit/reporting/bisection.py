"""Bisection: finds the first optional decision of the passes that makes results wrong.

Passes take optional decisions (fusions, rewrites) while they have fuel, always in the same order.
So one amount of fuel is the last with correct results, and the next decision causes the error.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from attrs import field, frozen

from passkit.analysis.group import FUSED, Group
from passkit.analysis.single import single_node_plan
from passkit.errors import PasskitError, SettingError
from passkit.fusion.contract import flatten
from passkit.graph.graph import Graph
from passkit.graph.node import CONSTANT, Node, var
from passkit.passes.context import PassContext
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
    from passkit.graph.kernel import Kernel

UNLIMITED_FUEL = 1 << 30
"""More fuel than any graph has decisions."""


@frozen
class Culprit:
    """A node of a planned graph whose outputs are wrong for correct inputs.

    Attributes:
        name: The name of the node.
        operators: The names of its operators.
        graph: The isolated node, with variables as inputs.
        feeds: Correct inputs, by the names of these variables.
        expected: The correct outputs, by name.
        error: How its outputs differ, or why it could not be compiled or run.
        kernel: Its kernel, if it has one.
    """

    name: str
    operators: tuple[str, ...]
    graph: Graph
    feeds: Mapping[str, Any] = field(repr=False)
    expected: Mapping[str, Any] = field(repr=False)
    error: str
    kernel: Kernel | None

    def save(self, folder: str | Path) -> Path:
        """Write files that reproduce the error: the graph, its inputs and outputs, the kernel.

        ``passkit run culprit.json --compare`` in that folder, which is created, shows the error.
        Without a kernel, kernel.cpp is left out.

        The files are culprit.json, culprit.npz and kernel.cpp.

        Returns: The folder, as a path. Raises: OSError where it cannot be written, GraphError where
        the graph has a parameter that JSON cannot hold, DTypeError where a parameter is an array of
        a dtype that passkit does not have.
        """
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "culprit.json").write_text(to_json(self.graph), encoding="utf-8")
        np.savez(folder / "culprit.npz", **self.feeds, **self.expected)
        if self.kernel is not None:
            (folder / "kernel.cpp").write_text(self.kernel.source, encoding="utf-8")
        return folder


@frozen
class Bisection:
    """The result of a bisection.

    Attributes:
        fuel: The least fuel with wrong results. 0 means that they are wrong without any optional
            decision: a kernel of a single operator is wrong, or a call.
        decisions: The number of optional decisions for the graph.
        decision: The decision that the last unit of fuel was spent on, "" without fuel.
        error: How results differ with that fuel, or why compilation failed.
        culprit: The node that is wrong by itself, if there is one.
    """

    fuel: int
    decisions: int
    decision: str
    error: str
    culprit: Culprit | None


def bisect(graph: Graph, feeds: Mapping[str, Any], **options: Any) -> Bisection | None:
    """Find the first decision that makes results differ from those of the interpreter.

    A compilation or run that fails with a PasskitError counts as a wrong result.

    Args:
        graph: The graph.
        feeds: Arrays for its inputs, by name.
        **options: Options of `PassContext`, except ``fuel``.

    Returns: The decision and the node that is wrong; None if results agree without a limit of fuel,
        where less fuel is not tried.

    Raises:
        SettingError: ``fuel`` is among the options, or another option is wrong; RegistryError,
            ParseError or ArgumentError for some, as of `PassContext`.
        PasskitError: The interpreter fails on the feeds, such as FeedError for a missing input.
    """
    trial = _BisectionTrial(graph, feeds, options)
    error, spent = trial.error(UNLIMITED_FUEL)
    if error is None:
        return None
    low, high, errors = -1, len(spent), {len(spent): error}
    with progress("bisect", max(1, high).bit_length() + 1) as step:
        while high - low > 1:
            middle = (low + high) // 2 if low >= 0 else 0
            error, _ = trial.error(middle)
            step()
            if error is None:
                low = middle
            else:
                high, errors[middle] = middle, error
    decision = spent[high - 1] if high else ""
    return Bisection(high, len(spent), decision, errors[high], trial.culprit(low, high))


class _BisectionTrial:
    """A graph with its inputs and the interpreter's outputs, to compile with different fuel."""

    def __init__(self, graph: Graph, feeds: Mapping[str, Any], options: Mapping[str, Any]) -> None:
        if "fuel" in options:
            raise SettingError(
                f"bisect tries different amounts of fuel itself; leave out fuel={options['fuel']}"
            )
        self.graph, self.feeds, self.options = graph, feeds, dict(options)
        self.expected = compile(graph, target="interpret")(feeds)

    def compiled(self, fuel: int) -> Executable:
        """Return the graph compiled with so much fuel.

        Raises: PasskitError where the compilation fails.
        """
        with PassContext(**self.options, fuel=fuel):
            return compile(self.graph)

    def error(self, fuel: int) -> tuple[str | None, list[str]]:
        """Compile and run with so much fuel.

        Returns: How results differ or why compiling failed, None if they are correct; and the
            decisions that were taken, in order.

        Raises: SettingError, RegistryError, ParseError or ArgumentError for a wrong option, and
        CacheError where other users may write to the cache folder, as `PassContext` raises them.
        """
        context = PassContext(**self.options, fuel=fuel)
        try:
            with context:
                run = compile(self.graph)
            outputs = run(self.feeds)
        except PasskitError as error:
            return _error_text(error), context.fuel.spent
        names = [o.name for o in run.outputs]
        return _first_difference(names, outputs, self.expected), context.fuel.spent

    def culprit(self, low: int, high: int) -> Culprit | None:
        """Return the first node of the plan with fuel ``high`` that is wrong by itself.

        Args:
            low: Fuel with correct results, or -1 if there is none. Groups of that plan are skipped.
            high: Fuel with wrong results.

        Returns: None if every node is right by itself, or if compiling with fuel ``high`` failed.

        Raises: PasskitError where the interpreter cannot compute a node's inputs or outputs.
        """
        try:
            graph = self.compiled(high).graph
        except PasskitError:
            return None  # nothing to run; the error names the kernel
        nodes = [n for n in graph.nodes if n.op is not None and n.op is not CONSTANT]
        if low >= 0:
            correct = {b.key for b in self.compiled(low).graph.attrs["subgraph"].values()}
            keys = {n: n.params["body"].key for n in nodes if n.op is FUSED}
            nodes = [n for n in nodes if keys.get(n, "") not in correct]
        with progress("try each step by itself", len(nodes)) as step:
            for node in nodes:
                culprit = self.check_node(graph, node)
                step()
                if culprit is not None:
                    return culprit
        return None

    def check_node(self, graph: Graph, node: Node) -> Culprit | None:
        """Run a node of ``graph`` on correct inputs; return it as the culprit if it is wrong.

        The inputs are computed by the interpreter, as are the outputs to compare with. A node that
        cannot be compiled or run counts as wrong.

        Returns: None if its outputs agree with the interpreter's.

        Raises: PasskitError where the interpreter cannot compute the inputs or outputs.
        """
        inputs = list(dict.fromkeys(node.inputs))
        upstream = Graph(inputs)
        input_names = {n.name for n in upstream.inputs}
        feeds = {k: v for k, v in self.feeds.items() if k in input_names}
        values = interpret(upstream, feeds, State.of(upstream).arrays) if inputs else []
        entries = {e: var(f"x{k}", graph.shape(e), graph.dtype(e)) for k, e in enumerate(inputs)}
        isolated = single_node_plan(node, [entries[e] for e in node.inputs])
        feeds = {f"x{k}": v for k, v in enumerate(values)}
        feeds |= self.size_feeds(isolated, feeds)
        names = [f"y{k}" for k in range(len(node.entries))]
        expected, kernel = interpret(isolated, feeds), None
        try:
            with PassContext(**self.options):
                run = compile(isolated)
            kernel = run.kernels[0] if run.kernels else None
            difference = _first_difference(names, run(feeds), expected)
        except PasskitError as error:
            difference = _error_text(error)
        if difference is None:
            return None
        body: Group | None = node.params.get("body")
        return Culprit(
            name=graph.names[node],
            operators=(node.label,) if body is None else tuple(map(body.called, body.ops)),
            graph=_with_output_names(flatten(isolated)),
            feeds=feeds,
            expected=dict(zip(names, expected, strict=True)),
            error=difference,
            kernel=kernel,
        )

    def size_feeds(self, isolated: Graph, feeds: Mapping[str, Any]) -> dict[str, Any]:
        """Return arrays for further inputs of an isolated node, which only provide sizes.

        ``feeds`` has the other inputs. The arrays are booleans, all False; their shapes follow from
        the inputs of the entire graph. Raises: FeedError where two inputs need different values of
        a size; ShapeError where a size has no value.
        """
        names = self.graph.names
        shapes = [(names[n], n.entries[0].shape) for n in self.graph.inputs]
        sizes = bind_sizes((name, shape, np.shape(self.feeds[name])) for name, shape in shapes)
        return {
            n.name: np.zeros([evaluate(d, sizes) for d in isolated.shape(n.entries[0])], bool)
            for n in isolated.inputs
            if n.name not in feeds
        }


def _with_output_names(graph: Graph) -> Graph:
    """Return the graph with outputs named y0, y1, …, which are names that an .npz file can have.

    A node that computes several outputs has the name of the last of them.
    """
    names = {e.node: f"y{k}" for k, e in enumerate(graph.outputs)}
    return graph.rebuild(
        lambda node, inputs: (
            node.replaced(inputs, name=names[node]).entries if node in names else None
        )
    )


def _error_text(error: PasskitError) -> str:
    """Return the name of an error's class and its message as text."""
    return f"{type(error).__name__}: {error}"


def _first_difference(
    names: Sequence[str], outputs: Sequence[Any], expected: Sequence[Any]
) -> str | None:
    """Return how the first output outside the tolerance differs, as text; None if all are within.

    ``names`` are the names of the outputs; ``outputs`` and ``expected`` have an array for each.
    """
    actual_by_name, expected_by_name = (
        dict(zip(names, arrays, strict=True)) for arrays in (outputs, expected)
    )
    deviations = compare(actual_by_name, expected_by_name, "the interpreter")
    return next((str(e) for e in deviations if not e.good), None)
