"""Steps of a compiled program that NumPy evaluates, and the warning that says why."""

from __future__ import annotations

from passkit.errors import InterpretedWarning
from passkit.graph.graph import Graph
from passkit.graph.node import Node
from passkit.passes.fusion.partition import Opaque, why_opaque
from passkit.plan.target import Target
from passkit.runtime.program import Program, Python, Role
from passkit.values.warning import warn_user

SHOWN = 4
"""Operators that a warning explains; it counts the others."""
UNKNOWN = Opaque("no kernel was made for it")


def interpreted(graph: Graph, program: Program) -> list[Node]:
    """The nodes of a planned graph that ``program`` evaluates in NumPy for want of a kernel."""
    by_name = {name: node for node, name in graph.names.items()}
    steps = zip(program.steps, program.names, strict=False)
    return [by_name[n] for s, n in steps if isinstance(s, Python) and s.role is Role.INTERPRETED]


def warn_of_interpreted(graph: Graph, program: Program, target: Target) -> None:
    """Warn once of all steps that run in NumPy: which, why, and what to do about it.

    Loops and routines of libraries that are called from Python run so by design, and are left out.
    """
    nodes = interpreted(graph, program)
    if not nodes:
        return
    reasons: dict[Opaque, list[str]] = {}
    for node in nodes:
        why = why_opaque(graph, node, target) or UNKNOWN
        reasons.setdefault(why, []).append(graph.names[node])
    told = [
        f"{', '.join(map(repr, names[:SHOWN]))}{', …' if len(names) > SHOWN else ''}: {why.reason}"
        + (f"; {why.way_out}" if why.way_out else "")
        for why, names in list(reasons.items())[:SHOWN]
    ]
    if len(reasons) > SHOWN:
        told.append(f"and {len(reasons) - SHOWN} more reason(s)")
    count = f"{len(nodes)} step{'s' * (len(nodes) > 1)} of {len(program.steps)}"
    listed = "\n  ".join(told)
    warn_user(
        f"compiled for target '{target.name}', {count} run{'s' * (len(nodes) == 1)} in NumPy, "
        f"operator by operator:\n  {listed}",
        InterpretedWarning,
    )
