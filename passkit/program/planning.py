"""Run the pipeline of a compilation on a graph, entirely or in part."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from passkit.errors import PassError, SettingError, nearest
from passkit.graph.graph import Graph
from passkit.graph.node import Entry, Node
from passkit.passes.apply import ApplyPasses
from passkit.passes.base import Pass
from passkit.passes.context import PassContext, current
from passkit.passes.pipeline import DEFAULT_PIPELINE, STAGES, Pipeline, missing_stages
from passkit.runtime.feeds import bind_sizes
from passkit.runtime.interpret import numbers

__all__ = ["DEFAULT_PIPELINE", "planned", "run_from_fusion", "run_until_fusion", "with_shapes"]


def planned(graph: Graph, last: str = DEFAULT_PIPELINE[-1], **options: Any) -> Graph:
    """Return the graph after the passes of the pipeline up to and including ``last``.

    Passes that the graph has been through are not repeated, and disabled ones are skipped. Before
    RTCGen nothing is compiled, so the target's device need not be there.

    Args:
        graph: The graph, at any stage of the pipeline.
        last: The name of a pass of the default pipeline.
        **options: Options of `PassContext`; ``passes`` defines the pipeline.

    Raises:
        PassError: ``last`` is not a pass of the default pipeline, or a pass of the user's would run
            before passes that the graph has been through.
        SettingError: The pipeline lacks a required pass, or an option is unknown or has a wrong
            value.
        RegistryError, ParseError, ArgumentError: An option has a wrong value, see `PassContext`.
        CacheError: Other users may write to the cache folder.
        OSError: With ``dump``: the files cannot be written.
        Exception: What a pass raises.
    """
    if last not in DEFAULT_PIPELINE:
        raise PassError(
            f"{last!r} is not a pass of the default pipeline; {nearest(last, DEFAULT_PIPELINE)}"
        )
    context = (current() or PassContext()).with_options(**options)
    pipeline = context.passes
    for stage in missing_stages(pipeline, last):
        raise SettingError(
            f"passes: none of {', '.join(pipeline.names())} provides '{STAGES[stage]}'; add {stage}"
        )
    completed = [
        pipeline.position(stage)
        for stage, annotation in STAGES.items()
        if annotation in graph.attrs
    ]
    start = max((k for k in completed if k is not None), default=-1) + 1
    _check_user_passes(graph, pipeline, start)
    return _run(graph, context, pipeline.passes[start : _end(pipeline, last)])


def run_until_fusion(graph: Graph, **options: Any) -> Graph:
    """Return the graph after the passes of the pipeline that precede Fusion.

    `run_from_fusion` continues from there; ``options`` are those of `PassContext`.

    Raises: SettingError, RegistryError, ParseError or ArgumentError for a wrong option; CacheError
    where other users may write to the cache folder; and whatever a pass raises.
    """
    context = (current() or PassContext()).with_options(**options)
    return _run(graph, context, context.passes.passes[: _fusion_position(context.passes)])


def run_from_fusion(graph: Graph, last: str = DEFAULT_PIPELINE[-1]) -> Graph:
    """Return a graph from `run_until_fusion` after the pipeline from Fusion up to ``last``.

    The pipeline and its options are those of the context in force. ``last`` is the name of a stage.

    Raises: Whatever a pass raises, such as PassError and ScheduleError.
    """
    context = current() or PassContext()
    pipeline = context.passes
    passes = pipeline.passes[_fusion_position(pipeline) : _end(pipeline, last)]
    return _run(graph, context, passes)


def _run(graph: Graph, context: PassContext, passes: tuple[str | Pass, ...]) -> Graph:
    """Return the graph after ``passes`` under ``context``, without disabled ones.

    A stage of the pipeline is left to `ApplyPasses`, which skips it if it is disabled. Raises:
    PassError if a pass breaks its declaration or lacks an annotation, OSError where files of the
    option ``dump`` cannot be written, and whatever a pass raises.
    """
    skipped = set(context.disabled) - set(STAGES)
    names = [p if isinstance(p, str) else p.name for p in passes]
    enabled = [p for p, name in zip(passes, names, strict=True) if name not in skipped]
    with context:
        return ApplyPasses(graph, enabled)


def _check_user_passes(graph: Graph, pipeline: Pipeline, start: int) -> None:
    """Raise a PassError if the first ``start`` passes of ``pipeline`` have a user's among them.

    ``graph`` is already past these. The message names the pass.
    """
    for name in pipeline.names()[:start]:
        if name not in DEFAULT_PIPELINE:
            raise PassError(
                f"passes: {name} must run before {pipeline.names()[start - 1]}, but {graph!r} has "
                f"already been through {pipeline.names()[start - 1]}; pass the graph as it was "
                f"before"
            )


def _fusion_position(pipeline: Pipeline) -> int:
    """Return the index of the pass that fuses; the length of the pipeline if there is none.

    Raises: RegistryError if a pass given by name is not registered.
    """
    position = pipeline.position("Fusion")
    return len(pipeline.passes) if position is None else position


def _end(pipeline: Pipeline, last: str) -> int:
    """Return the position behind the pass that takes the role of ``last``.

    User passes that directly follow it are included. A pipeline without such a pass ends before
    Fusion. Raises: RegistryError if a pass given by name is not registered.
    """
    position = pipeline.position(last)
    if position is None:
        return _fusion_position(pipeline)
    end = position + 1
    while end < len(pipeline.passes) and pipeline.passes[end] not in DEFAULT_PIPELINE:
        end += 1
    return end


def with_shapes(graph: Graph, shapes: Mapping[str, tuple[int, ...]]) -> Graph:
    """Return the graph with known shapes for some inputs; all other shapes are inferred anew.

    Args:
        graph: The graph before planning.
        shapes: Shapes by the names of inputs; other names are ignored. Numbers in the declared
            shape of an input are replaced without a check.

    Raises: FeedError if two shapes need different values of a size, or an extent is not what its
    declaration, such as ``2*n``, gives; ShapeError if an operator does not take the shapes.
    """
    declared = [(graph.names[n], n.entries[0].shape) for n in graph.inputs]
    sizes = bind_sizes((name, s, shapes[name]) for name, s in declared if name in shapes)

    def set_sizes(node: Node, inputs: tuple[Entry, ...]) -> tuple[Entry, ...] | None:
        """Return the entries of a node with numbers in place of sizes, None if nothing changes.

        An input gets its shape. ``inputs`` are the node's inputs after rewriting.
        """
        if not node.is_variable:
            params = {k: numbers(v, sizes) for k, v in node.params.items()}
            if params == dict(node.params):
                return None
            return Node(node.op, inputs, params, node.name, node.control).entries
        if node.params.get("state") or graph.names[node] not in shapes:
            return None
        params = {**node.params, "shape": tuple(shapes[graph.names[node]])}
        return Node(None, (), params, graph.names[node]).entries

    return graph.rebuild(set_sizes)
