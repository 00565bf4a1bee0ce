"""From a graph to what it becomes: its `Executable`, the reasons of its plan, its templates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from passkit.graph.graph import Graph, graph_of_argument
from passkit.graph.node import Entry
from passkit.program.executable import Executable
from passkit.values import arguments

# What makes plans is imported where it is used: a warm start finds its plan on disk.
if TYPE_CHECKING:
    from passkit.reasons.explanation import Explanation
    from passkit.reasons.ranking import Ranking
    from passkit.runtime.state import State


def compile(
    graph: Graph | Entry | Sequence[Entry], *, state: State | None = None, **options: Any
) -> Executable:
    """An `Executable` of a graph: what of the pipeline is still missing is run.

    ``state`` holds the variables, which executables that are given the same one share; by default
    each has its own. ``options`` are those of `PassContext`: target="cpu", fusion="stitch",
    numerics="strict", …. ``passes`` says which passes run: the whole pipeline as a list, or those
    that join the default one, ``{"after Simplify": ["Mine"], "before Fusion": [other]}``; names are
    checked before anything runs. Plans made by other passes than the default ones, or by a fusion
    strategy of one's own, are not kept on disk. Without a C++ compiler, and with no kernel of the
    graph in the cache, the executable interprets, after one warning that says what to install.
    """
    graph = graph_of_argument("compile: graph", graph)
    return Executable(graph, options, state)


def explain(graph: Graph, name: str | None = None, **options: Any) -> Explanation:
    """Each edge between two operators: fused, or why not, with data and a way out, as a table.

    A graph without a fusion plan is planned first, under ``options`` as in `compile`. ``name``
    keeps the edges at one node.
    """
    from passkit.program.planning import planned
    from passkit.reasons.explanation import explain as explained

    graph = graph_of_argument("explain: graph", graph)
    if name is not None:
        arguments.text("explain: name", name)
    return explained(graph, name, lambda g: planned(g, "Fusion", **options))


def templates(graph: Graph, name: str | None = None, **options: Any) -> Ranking:
    """Each group's template, why it has that, and the others that it could have, by the model.

    A graph without schedules is planned first, under ``options`` as in `compile`. ``name`` keeps
    the group that is called so, or has such an operator.
    """
    from passkit.program.planning import planned
    from passkit.reasons.ranking import rank

    graph = graph_of_argument("templates: graph", graph)
    if name is not None:
        arguments.text("templates: name", name)
    return rank(graph, name, lambda g: planned(g, "SchedulePlan", **options))
