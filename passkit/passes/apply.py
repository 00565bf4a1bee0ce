"""Running passes, and enforcing what they declare.

Source: NNVM's ApplyPasses, with its contract enforced: names resolve before anything runs, implied
passes whose annotations are missing are run, attributes of operators are checked, what was promised
is verified, and what a change of the graph made stale is dropped.
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
from passkit.passes import hints
from passkit.passes.base import Pass, find_pass, provider
from passkit.passes.context import PassContext, current
from passkit.values import arguments
from passkit.values.gc_control import seldom

if TYPE_CHECKING:
    from typing import Unpack

    from passkit.passes.keywords import PlanOptions

MOST_REPEATS = 8
"""How often one implied pass may run for one other pass, before both are said to disagree."""

OWN = ("options", "timing", "shape_guards", hints.HINTED, UNREAD)
"""Annotations that speak of no node or entry, and so outlive any change of the graph."""


def ApplyPasses(  # noqa: N802  (NNVM's name, which users know)
    graph: Graph, passes: str | Pass | Iterable[str | Pass], **options: Unpack[PlanOptions]
) -> Graph:
    """The graph that ``passes``, given by name or as passes, make of ``graph`` one after another.

    ``options`` are those of `PassContext`; what they leave open is taken from the context in force,
    then from what the graph was planned with. The graph given is not changed. Implied passes
    (InferShape, Expand, …) are run on the way, where what they provide is needed and missing.

    Raises: RegistryError on an unknown pass, before any ran; SettingError on an unknown option;
    PassError when an annotation is missing that a transformation must provide, when a pass breaks
    its contract, and when the graph was planned for another target.
    """
    if not isinstance(graph, Graph):
        raise PassError(f"passes work on a Graph, got {type(graph).__name__}; pk.Graph([y])")
    given: Sequence[str | Pass] = [passes] if isinstance(passes, (str, Pass)) else ()
    if not given:
        need = "the name of a pass, a Pass, or a sequence of them"
        given = arguments.sequence("ApplyPasses: passes", passes, object, need)
    context = (current() or PassContext()).with_options(**options)
    resolved = [_resolve(p) for p in given]
    graph, context = hints.pinned(graph, context)
    run = _Run(context, resolved)
    with context, seldom():
        graph = run.all(graph)
    if context.times is not None:
        graph = graph.with_attrs(timing=context.times)
    return graph


def _resolve(what: str | Pass) -> Pass:
    if isinstance(what, Pass):
        return what
    if not isinstance(what, str):
        raise PassError(
            f"a pass is given by name or as a Pass, got {type(what).__name__}; "
            f"register_pass makes one of a function"
        )
    return find_pass(what)


class _Run:
    """One walk through a list of passes: what ran, what was dropped, what it is bound to."""

    def __init__(self, context: PassContext, passes: Sequence[Pass]) -> None:
        self.context = context
        self.passes = passes
        self.done: list[str] = []
        self.dropped: dict[str, str] = {}
        self.inherited: tuple[object, PassContext] = None, context

    def all(self, graph: Graph) -> Graph:
        """The graph after all passes; those that are disabled are skipped."""
        for each in self.passes:
            if each.name in self.context.disabled:
                continue
            graph = self.ready(graph, each)
            graph = self.one(graph, each)
            self.dump(graph, each)
        return graph

    def ready(self, graph: Graph, wanting: Pass) -> Graph:
        """The graph with every annotation that a pass depends on; implied passes are run."""
        stack = [wanting]
        runs: Counter[str] = Counter()
        while stack:
            top = stack[-1]
            missing = next((a for a in top.depends if a not in graph.attrs), None)
            if missing is None:
                stack.pop()
                if stack:
                    graph = self.one(graph, top)
                    runs[top.name] += 1
                continue
            source = provider(missing, top.name)
            if source.name in self.context.disabled or not source.implied:
                raise PassError(self.way_out(top, missing, source))
            if runs[source.name] == MOST_REPEATS:
                raise PassError(
                    f"{source.name} ran {MOST_REPEATS} times for {wanting.name}, and "
                    f"{self.dropped.get(missing, 'another pass')} dropped '{missing}' each time; "
                    f"let it preserve '{missing}'"
                )
            if source in stack:
                cycle = ", ".join(p.name for p in stack[stack.index(source) :])
                raise PassError(f"passes depend on each other in a circle: {cycle}")
            stack.append(source)
        return graph

    def way_out(self, wanting: Pass, missing: str, source: Pass) -> str:
        """The message for an annotation that the user must have provided."""
        lacks = f"{wanting.name} depends on graph attribute '{missing}', which is not set"
        if source.name in self.context.disabled:
            return f"{lacks}: its provider {source.name} is disabled; enable {source.name}"
        if missing in self.dropped:
            by = self.dropped[missing]
            return f"{lacks}: {by} changed the graph and dropped it; run {source.name} after {by}"
        return f"{lacks}; run {source.name} first"

    def one(self, graph: Graph, each: Pass) -> Graph:
        """The graph after one pass whose dependences are met, its promises verified."""
        check_op_attributes(graph, each)
        context = self.bound(graph, each)
        try:
            with context, context.timed(each.name):
                out = each.body(graph, context) if each.takes_context else each.body(graph)
        except Exception as error:
            after = f", after {', '.join(self.done)}" if self.done else ""
            error.add_note(f"in pass {each.name}{after}")
            raise
        self.done.append(each.name)
        verify(graph, each, out)
        return self.cleaned(graph, each, out, context)

    def bound(self, graph: Graph, each: Pass) -> PassContext:
        """The context for one pass: a planned graph keeps its target, and what nobody gave."""
        recorded: Any = graph.attrs.get("options")
        if recorded is None:
            return self.context
        if self.inherited[0] is not recorded:
            self.inherited = recorded, self.context.inheriting(recorded)
        context = self.inherited[1]
        if each.target_dependent and context.target != recorded["target"]:
            raise PassError(
                f"{each.name} is to plan for target '{context.target.name}', and the graph is "
                f"planned for '{recorded['target'].name}' by {recorded['by']}; start from the "
                f"graph as it was before {recorded['by']}"
            )
        return context

    def cleaned(self, before: Graph, each: Pass, out: Graph, context: PassContext) -> Graph:
        """What a pass returned, without what its change made stale, with the options it used."""
        attrs = dict(out.attrs)
        same = out.outputs == before.outputs and out.updates == before.updates
        kept = [n for n in each.preserves if not isinstance(before.attrs.get(n), Annotation)]
        if each.changes_graph and not (each.implied and same):
            keep = {*each.provides, *each.preserves, *OWN}
            for name in [*attrs, *before.attrs]:
                if name not in keep:
                    self.dropped[name] = each.name
            attrs = {k: v for k, v in attrs.items() if k in keep}
        for name in (*OWN, *kept):
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
            if attrs.get("options") != options:  # the same object tells that nothing changed
                attrs["options"] = MappingProxyType(options)
        for name in attrs:
            self.dropped.pop(name, None)
        if attrs != dict(out.attrs):
            out = out.without_attrs().with_attrs(**attrs)
        return out.fed_as(before)

    def dump(self, graph: Graph, each: Pass) -> None:
        """Write the graph after a pass as numbered text and picture, if the context asks for it."""
        if self.context.dump is None:
            return
        from passkit.serial.text import to_text  # dumping is rare, and drawing needs graphviz
        from passkit.viz import plan, render

        path = self.context.dump.path(each.name)
        path.with_suffix(".txt").write_text(to_text(graph), encoding="utf-8")
        render(plan(graph), path.with_suffix(".svg"))


def check_op_attributes(graph: Graph, each: Pass) -> None:
    """Check that every operator has the attributes that a pass needs; constants are exempt.

    Raises: PassError listing the operators that lack one.
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


def verify(before: Graph, each: Pass, out: Graph) -> None:
    """Check what a pass returned against what it declares.

    Raises: PassError when it returned no graph, lacks what it provides, changed the graph without
    saying so, or has annotations of another graph.
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
    same = out.outputs == before.outputs and out.updates == before.updates
    if not same and not each.changes_graph:
        raise PassError(
            f"{each.name} changed the graph without declaring it; register it with "
            f"changes_graph=True"
        )
    for name in {*each.provides, *each.preserves}:
        found = out.attrs.get(name)
        if isinstance(found, Annotation) and not (same and found is before.attrs.get(name)):
            check_annotation(out, each, found)


def _as_graph(value: object) -> str:
    """How a pass makes a graph of what it returned instead."""
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
    """Check that an annotation speaks of this graph's nodes and entries only.

    Raises: PassError naming a foreign one.
    """
    here = set(graph.nodes)
    for key in annotation:
        node = key.node if isinstance(key, Entry) else key
        if isinstance(node, Node) and node not in here:
            raise PassError(
                f"{each.name} left '{annotation.name}' with {node.where}, which is not in the "
                f"graph it returned; remap the annotation, or do not preserve it"
            )
