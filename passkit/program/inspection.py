"""`passkit.explain` and `passkit.templates`: why a graph is compiled the way it is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from passkit.graph.graph import Graph, graph_of_argument
from passkit.program.planning import planned
from passkit.reasons import explanation, ranking
from passkit.values import arguments

if TYPE_CHECKING:
    from typing import Unpack

    from passkit.passes.option_types import CompileOptions


def explain(
    graph: Graph, name: str | None = None, **options: Unpack[CompileOptions]
) -> explanation.Explanation:
    """Return, for each edge between two operators, whether it is fused, and the reason.

    Args:
        graph: The graph, or an entry or entries as its outputs. If it has no fusion plan, it is
            planned first, under ``options``.
        name: The name of a node, to return only the edges at this node; None for all.
        **options: As for `passkit.compile`; ignored for a graph with a fusion plan.

    Returns: A sequence of decisions, each with its reason, figures and a way out; printed, a table.

    Raises: GraphError if no edge begins or ends at a node of this name, or an element of ``graph``
    is no entry; ArgumentError if ``graph`` is no graph or ``name`` no text; and, where it is
    planned, SettingError for a wrong option, CacheError if other users may write to the cache
    folder, and what the passes up to Fusion raise.
    """
    graph = graph_of_argument("explain: graph", graph)
    if name is not None:
        arguments.text("explain: name", name)
    return explanation.explain(graph, name, lambda g: planned(g, "Fusion", **options))


def templates(
    graph: Graph, name: str | None = None, **options: Unpack[CompileOptions]
) -> ranking.Ranking:
    """Return, for each group, its template, why it was chosen, and the possible others.

    Args:
        graph: The graph, or an entry or entries as its outputs. If it has no schedules, it is
            planned first, under ``options``.
        name: The name of a group, or of an operator in it, to return only the groups that have it;
            None for all.
        **options: As for `passkit.compile`; ignored for a graph with schedules.

    Returns: A sequence of groups with their templates, ranked by the cost model; printed, a text
    of several lines for each.

    Raises: GraphError if no group has this name, or an element of ``graph`` is no entry;
    ArgumentError if ``graph`` is no graph or ``name`` no text; and, where it is planned,
    SettingError for a wrong option, CacheError if other users may write to the cache folder, and
    what the passes up to SchedulePlan raise.
    """
    graph = graph_of_argument("templates: graph", graph)
    if name is not None:
        arguments.text("templates: name", name)
    return ranking.rank(graph, name, lambda g: planned(g, "SchedulePlan", **options))
