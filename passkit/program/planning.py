"""A graph taken through the pipeline of a compilation, as far as asked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from passkit.errors import PassError, SettingError, nearest
from passkit.graph.graph import Graph
from passkit.graph.node import Entry, Node
from passkit.passes.apply import ApplyPasses
from passkit.passes.base import Pass
from passkit.passes.context import PassContext, current
from passkit.passes.pipeline import DEFAULT_PIPELINE, STAGES, Pipeline, needed

__all__ = ["DEFAULT_PIPELINE", "planned", "prepared", "with_shapes"]


def planned(graph: Graph, last: str = DEFAULT_PIPELINE[-1], **options: Any) -> Graph:
    """The graph after the passes of the pipeline up to ``last``, a pass of the default one.

    Those that it has been through are not repeated, those that the context disables are skipped.
    Before RTCGen nothing is compiled, so no device of the target is needed. ``options`` are those
    of `PassContext`; its ``passes`` say which passes the pipeline has.

    Raises: PassError when ``last`` is not a pass of the default pipeline, and when passes of a
    user's would join before what the graph has been through; SettingError when the pipeline lacks
    a pass that is needed.
    """
    if last not in DEFAULT_PIPELINE:
        raise PassError(
            f"{last!r} is not a pass of the default pipeline; {nearest(last, DEFAULT_PIPELINE)}"
        )
    context = (current() or PassContext()).with_options(**options)
    pipeline = context.passes
    for stage in needed(pipeline, last):
        raise SettingError(
            f"passes: none of {', '.join(pipeline.names())} provides '{STAGES[stage]}'; "
            f"add {stage}"
        )
    done = [pipeline.position(stage) for stage, what in STAGES.items() if what in graph.attrs]
    start = max((k for k in done if k is not None), default=-1) + 1
    _check_joined(graph, pipeline, start)
    return _run(graph, context, pipeline.passes[start : _end(pipeline, last)])


def prepared(graph: Graph, **options: Any) -> Graph:
    """The graph after the passes of the pipeline that come before Fusion.

    `finished` goes on from there; ``options`` are those of `PassContext`.
    """
    context = (current() or PassContext()).with_options(**options)
    return _run(graph, context, context.passes.passes[: _fusion(context.passes)])


def finished(graph: Graph, last: str = DEFAULT_PIPELINE[-1]) -> Graph:
    """Run the rest of the pipeline up to ``last`` on a graph that `prepared` returned."""
    context = current() or PassContext()
    pipeline = context.passes
    return _run(graph, context, pipeline.passes[_fusion(pipeline) : _end(pipeline, last)])


def _run(graph: Graph, context: PassContext, passes: tuple[str | Pass, ...]) -> Graph:
    """The graph after passes, those of them that are optional stages left out if disabled."""
    skipped = set(context.disabled) - set(STAGES)
    names = [p if isinstance(p, str) else p.name for p in passes]
    kept = [p for p, name in zip(passes, names, strict=True) if name not in skipped]
    with context:
        return ApplyPasses(graph, kept)


def _check_joined(graph: Graph, pipeline: Pipeline, start: int) -> None:
    """Check that no pass of a user's is among those that a planned graph has been through.

    Raises: PassError naming it.
    """
    for name in pipeline.names()[:start]:
        if name not in DEFAULT_PIPELINE:
            raise PassError(
                f"passes: {name} is to run before {pipeline.names()[start - 1]}, which {graph!r} "
                f"has been through; give the graph as it was before"
            )


def _fusion(pipeline: Pipeline) -> int:
    """The position of the pass that fuses; behind all others where there is none."""
    found = pipeline.position("Fusion")
    return len(pipeline.passes) if found is None else found


def _end(pipeline: Pipeline, last: str) -> int:
    """The position behind the pass that stands for ``last``, and what joins right after it."""
    found = pipeline.position(last)
    if found is None:  # a list of the user's has nothing like it: what comes before its Fusion
        return _fusion(pipeline)
    end = found + 1
    while end < len(pipeline.passes) and pipeline.passes[end] not in DEFAULT_PIPELINE:
        end += 1
    return end


def with_shapes(graph: Graph, shapes: Mapping[str, tuple[int, ...]]) -> Graph:
    """The graph with other shapes for some of its inputs; everything else is inferred anew."""
    from passkit.runtime.feeds import bind_sizes
    from passkit.runtime.interpret import numbers

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
