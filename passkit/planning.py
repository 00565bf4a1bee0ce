"""Planning without running: a graph taken up the ladder as far as asked, and no further."""

from __future__ import annotations

from typing import Any

from passkit.compiler import LADDER, PROVIDES
from passkit.errors import PassError, nearest
from passkit.graph import Graph
from passkit.passes.apply import ApplyPasses


def planned(graph: Graph, last: str, **options: Any) -> Graph:
    """The graph after the passes of the ladder up to ``last``.

    Those that it has been through are not repeated. Before RTCGen nothing is compiled, so no device
    of the target is needed. ``options`` are those of `PassContext`.

    Raises: PassError when ``last`` is not a pass of the ladder.
    """
    if last not in LADDER:
        raise PassError(f"{last!r} is not a pass of the ladder; {nearest(last, LADDER)}")
    done = [LADDER.index(p) for p, what in PROVIDES.items() if what in graph.attrs]
    return ApplyPasses(graph, LADDER[max(done, default=-1) + 1 : LADDER.index(last) + 1], **options)
