"""Run passes, and enforce their declarations.

Source: NNVM's ApplyPasses, with its contract enforced. All names are resolved before anything runs.
Implied passes whose annotations are missing are run, operator attributes are checked, results are
compared with the declarations, and annotations that a change of the graph makes stale are dropped.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from passkit.errors import PassError, RegistryError
from passkit.graph import registry
from passkit.graph.graph import UNREAD, Annotation, Graph
from passkit.graph.node import CONSTANT, Entry, Node
from passkit.passes.base import Pass, find_pass, provider
from passkit.passes.context import PassContext, current
from passkit.passes.fusion_hints import HINTED, pin_hinted_names
from passkit.values import arguments
from passkit.values.gc_control import raised_gc_threshold

if TYPE_CHECKING:
    from typing import Unpack

    from passkit.passes.option_types import PlanOptions

MAX_REPEATS = 8
"""How often one implied pass may run for one other pass, before they are found to conflict."""

GRAPH_ANNOTATIONS = ("options", "timing", "shape_guards", HINTED, UNREAD)
"""Annotations that refer to no node or entry, and so outlive any change of the graph."""


def ApplyPasses(  # noqa: N802  (NNVM's name, which users know)
    graph: Graph, passes: str | Pass | Iterable[str | Pass], **options: Unpack[PlanOptions]
) -> Graph:
    """Return the graph after passes, applied one after another.

    Implied passes (InferShape, Expand, …) are run in between, where a pass depends on what they
    provide and it is missing. Disabled passes are skipped.

    Args:
        graph: The graph, which is not changed.
        passes: The name of a pass, a Pass, or a sequence of them. An empty sequence returns the
            graph itself.
        **options: Options of `PassContext`. Those not given, or None, are taken from the context in
            force, then from what the graph was planned with.

    Raises:
        RegistryError: A pass is not registered; before any pass runs.
        ArgumentError: ``passes`` is neither a pass nor a sequence, or an option has a wrong type.
        SettingError: An option is unknown or has a wrong value.
        ParseError: The text of a template cannot be read.
        CacheError: Other users may write to the cache folder, which has figures of the target.
        OSError: With ``dump``: the files cannot be written.
        PassError: ``graph`` is no Graph, an element of ``passes`` is neither a name nor a Pass, an
            annotation is missing that no implied and enabled pass provides, an operator lacks an
            attribute that a pass needs, a pass breaks its declaration, or the graph was planned for
            another target.
        Exception: What a pass raises, with a note of the passes that ran.
    """
    if not isinstance(graph, Graph):
        raise PassError(
            f"ApplyPasses: graph must be a Graph, got {type(graph).__name__}; pk.Graph([y]) makes "
            f"one of an entry"
        )
    sequence: Sequence[str | Pass] = [passes] if isinstance(passes, (str, Pass)) else ()
    if not sequence:
        need = "the name of a pass, a Pass, or a sequence of them"
        sequence = arguments.sequence("ApplyPasses: passes", passes, object, need)
    context = (current() or PassContext()).with_options(**options)
    resolved = [_resolve(p) for p in sequence]
    graph, context = pin_hinted_names(graph, context)
    runner = _PassRunner(context, resolved)
    with context, raised_gc_threshold():
        graph = runner.run_all(graph)
    if context.times is not None:
        graph = graph.with_attrs(timing=context.times)
    return graph


def _resolve(value: str | Pass) -> Pass:
    """Return a pass given by name or as a Pass.

    Raises: RegistryError for a name that is not registered, PassError for another type.
    """
    if isinstance(value, Pass):
        return value
    if not isinstance(value, str):
        raise PassError(
            f"ApplyPasses: a pass must be a name or a Pass, got {type(value).__name__}; "
            f"pk.register_pass makes a Pass of a function"
        )
    return find_pass(value)


class _PassRunner:
    """Runs a list of passes, and remembers which pass dropped which annotation."""

    def __init__(self, context: PassContext, passes: Sequence[Pass]) -> None:
        self.context = context
        self.passes = passes
        self.completed: list[str] = []
        self.dropped_by: dict[str, str] = {}
        """By annotation: the name of the pass that dropped it."""
        self.inherited: tuple[object, PassContext] = None, context
        """The options recorded in a planned graph, and the context that inherits from them."""

    def run_all(self, graph: Graph) -> Graph:
        """Return the graph after all passes; those that are disabled are skipped.

        With the option ``dump``, the graph is written to files after each.

        Raises: PassError if an annotation or an operator's attribute is missing or a pass breaks
        its declaration; what passes raise; OSError if a file of ``dump`` cannot be written.
        """
        for each in self.passes:
            if each.name in self.context.disabled:
                continue
            graph = self.with_dependencies(graph, each)
            graph = self.run(graph, each)
            self.dump(graph, each)
        return graph

    def with_dependencies(self, graph: Graph, dependent: Pass) -> Graph:
        """Return the graph with every annotation that a pass depends on, after implied passes.

        Raises: PassError if an annotation is missing that no implied and enabled pass provides,
        implied passes depend on each other in a circle, or one was run `MAX_REPEATS` times in vain;
        and what `run` raises.
        """
        stack = [dependent]
        runs: Counter[str] = Counter()
        while stack:
            top = stack[-1]
            missing = next((a for a in top.depends if a not in graph.attrs), None)
            if missing is None:
                stack.pop()
                if stack:
                    graph = self.run(graph, top)
                    runs[top.name] += 1
                continue
            source = provider(missing, top.name)
            if source.name in self.context.disabled or not source.implied:
                raise PassError(self.missing_message(top, missing, source))
            if runs[source.name] == MAX_REPEATS:
                raise PassError(
                    f"{source.name} ran {MAX_REPEATS} times for {dependent.name}, and "
                    f"{self.dropped_by.get(missing, 'another pass')} dropped '{missing}' each "
                    f"time; let it preserve '{missing}'"
                )
            if source in stack:
                cycle = ", ".join(p.name for p in stack[stack.index(source) :])
                raise PassError(f"passes depend on each other in a circle: {cycle}")
            stack.append(source)
        return graph

    def missing_message(self, dependent: Pass, missing: str, source: Pass) -> str:
        """Return the error's text for a missing annotation that only the user can provide.

        Args:
            dependent: the pass that needs it.
            missing: the annotation's name.
            source: the pass that provides it, which is disabled, ran before a pass that dropped it,
                or has not run.
        """
        lacks = f"{dependent.name} depends on graph attribute '{missing}', which is not set"
        if source.name in self.context.disabled:
            return f"{lacks}: its provider {source.name} is disabled; enable {source.name}"
        if missing in self.dropped_by:
            by = self.dropped_by[missing]
            return f"{lacks}: {by} changed the graph and dropped it; run {source.name} after {by}"
        return f"{lacks}; run {source.name} first"

    def run(self, graph: Graph, each: Pass) -> Graph:
        """Return the graph after the pass ``each``, and check the result against its declaration.

        The dependencies of the pass are met.

        Raises: Whatever the pass raises, with a note of its name and of the passes run before it;
        PassError where an operator lacks a needed attribute, or where the result breaks the pass's
        declaration.
        """
        check_op_attributes(graph, each)
        context = self.context_for(graph, each)
        try:
            with context, context.timed(each.name):
                out = each.body(graph, context) if each.takes_context else each.body(graph)
        except Exception as error:
            after = f", after {', '.join(self.completed)}" if self.completed else ""
            error.add_note(f"in pass {each.name}{after}")
            raise
        self.completed.append(each.name)
        check_result(graph, each, out)
        return self.with_valid_annotations(graph, each, out, context)

    def context_for(self, graph: Graph, each: Pass) -> PassContext:
        """Return the context of the pass ``each``; a planned graph adds options that nobody gave.

        Raises: PassError if the pass depends on the target and the graph is planned for another.
        """
        recorded: Any = graph.attrs.get("options")
        if recorded is None:
            return self.context
        if self.inherited[0] is not recorded:
            self.inherited = recorded, self.context.inheriting(recorded)
        context = self.inherited[1]
        if each.target_dependent and context.target != recorded["target"]:
            raise PassError(
                f"{each.name} would plan for target '{context.target.name}', but the graph was "
                f"planned for '{recorded['target'].name}' by {recorded['by']}; start from the "
                f"graph as it was before {recorded['by']}"
            )
        return context

    def with_valid_annotations(
        self, before: Graph, each: Pass, out: Graph, context: PassContext
    ) -> Graph:
        """Return the result of a pass without stale annotations, with the options it used.

        A pass that declares ``changes_graph`` and returns the same outputs and updates keeps all
        annotations. If it returns others, annotations are dropped, and recorded with the name of
        the pass for error messages. The options are annotated by passes that depend on the target;
        inputs keep their order.

        Args:
            before: the graph that the pass got.
            each: the pass, whose ``provides`` and ``preserves`` name what stays valid.
            out: the graph that it returned.
            context: the options it ran under.
        """
        attrs = dict(out.attrs)
        is_same = out.outputs == before.outputs and out.updates == before.updates
        facts = [n for n in each.preserves if not isinstance(before.attrs.get(n), Annotation)]
        if each.changes_graph and is_same:
            attrs = {**before.attrs, **attrs}
        elif each.changes_graph:
            valid = {*each.provides, *each.preserves, *GRAPH_ANNOTATIONS}
            for name in [*attrs, *before.attrs]:
                if name not in valid:
                    self.dropped_by[name] = each.name
            attrs = {k: v for k, v in attrs.items() if k in valid}
        for name in (*GRAPH_ANNOTATIONS, *facts):
            if name in before.attrs:
                attrs.setdefault(name, before.attrs[name])
        if each.target_dependent:
            by = attrs["options"]["by"] if "options" in attrs else each.name
            options: dict[str, object] = {
                "target": context.target,
                "fusion": context.fusion,
                "numerics": context.numerics,
                "by": by,
            }
            if attrs.get("options") != options:  # `context_for` compares by identity
                attrs["options"] = MappingProxyType(options)
        for name in attrs:
            self.dropped_by.pop(name, None)
        if attrs != dict(out.attrs):
            out = out.without_attrs().with_attrs(**attrs)
        return out.fed_as(before)

    def dump(self, graph: Graph, each: Pass) -> None:
        """Write the graph after the pass ``each`` as numbered text and SVG, if ``dump`` is set.

        Without a renderer the SVG has a simple layout. Raises: OSError if a file cannot be written.
        """
        if self.context.dump is None:
            return
        from passkit.serial.text import to_text  # dumping is rare, and drawing needs graphviz
        from passkit.viz import plan, render

        path = self.context.dump.path(each.name)
        path.with_suffix(".txt").write_text(to_text(graph), encoding="utf-8")
        render(plan(graph), path.with_suffix(".svg"))


def check_op_attributes(graph: Graph, each: Pass) -> None:
    """Check that every operator has the attributes that the pass ``each`` depends on.

    Constants and variables need none.

    Raises: PassError listing the operators that lack one, or for an attribute that is not declared.
    """
    for key in each.depends_op:
        try:
            column = registry.table(key)
        except RegistryError as error:
            raise PassError(f"{each.name} depends on operator attribute {key}: {error}") from None
        lacking = {
            n.op.name
            for n in graph.nodes
            if n.op is not None and n.op is not CONSTANT and n.op.name not in column.rows
        }
        if lacking:
            raise PassError(
                f"{each.name} needs attribute {key} of every operator, and these lack it: "
                f"{', '.join(sorted(lacking))}; set_attr({key!r}, …) gives it: {column.signature}"
            )


def check_result(before: Graph, each: Pass, out: Graph) -> None:
    """Check ``out``, the result of the pass ``each`` on ``before``, against its declaration.

    Raises: PassError if it is no graph, lacks a provided annotation, has other outputs or updates
    without declaring ``changes_graph``, or has a provided or preserved `Annotation` of nodes that
    are not in it.
    """
    if not isinstance(out, Graph):
        raise PassError(
            f"{each.name} must return a Graph, got {arguments.shown(out)}; {_as_graph(out)}"
        )
    missing = [a for a in each.provides if a not in out.attrs]
    if missing:
        raise PassError(
            f"{each.name} declares that it provides {', '.join(map(repr, missing))} and did not; "
            f"return graph.with_attrs({missing[0]}=…)"
        )
    is_same = out.outputs == before.outputs and out.updates == before.updates
    if not is_same and not each.changes_graph:
        raise PassError(
            f"{each.name} changed the graph without declaring it; register it with "
            f"changes_graph=True"
        )
    for name in {*each.provides, *each.preserves}:
        value = out.attrs.get(name)
        if isinstance(value, Annotation) and not (is_same and value is before.attrs.get(name)):
            check_annotation(out, each, value)


def _as_graph(value: object) -> str:
    """Return advice on how to make a graph from the value that a pass returned instead."""
    if value is None:
        return "end it with return graph, or return graph.with_attrs(…) to add annotations"
    values = value if isinstance(value, (list, tuple)) else [value]
    if values and all(isinstance(v, Entry) for v in values):
        return (
            "pk.Graph([y], graph.updates) makes one of entries; graph.rewrite and graph.rebuild "
            "replace some of its own"
        )
    if isinstance(value, Node):
        return "pk.Graph(node.entries, graph.updates) makes one of a node"
    if isinstance(value, dict):
        return "return graph.with_attrs(name=…) to add annotations"
    return "return graph.with_attrs(…) adds annotations"


def check_annotation(graph: Graph, each: Pass, annotation: Annotation) -> None:
    """Check that the nodes, and the entries' nodes, among an annotation's keys are in this graph.

    Other keys are ignored.

    Raises: PassError, naming the pass ``each`` and a node of another graph.
    """
    nodes = set(graph.nodes)
    for key in annotation:
        node = key.node if isinstance(key, Entry) else key
        if isinstance(node, Node) and node not in nodes:
            raise PassError(
                f"{each.name} left '{annotation.name}' with {node.where}, which is not in the "
                f"graph it returned; remap the annotation, or do not preserve it"
            )
