"""Steps of a compiled program that NumPy evaluates, and the warning that gives the reasons."""

from __future__ import annotations

from passkit.diagnostics import Diagnostic
from passkit.errors import InterpretedWarning
from passkit.fusion.fusible import why_opaque
from passkit.graph.graph import Graph
from passkit.graph.node import Node
from passkit.runtime.program import PythonCall, PythonCallKind, RuntimeProgram
from passkit.target import Target
from passkit.values.warning import warn_user

MAX_SHOWN = 4
"""The most operators and reasons that a warning lists; it counts the others."""


def interpreted_nodes(graph: Graph, program: RuntimeProgram) -> list[Node]:
    """Return the nodes of a planned graph that NumPy evaluates because they have no kernel.

    ``program`` is its program; the nodes are in the order of steps.
    """
    by_name = {name: node for node, name in graph.names.items()}
    steps = zip(program.steps, program.names, strict=False)
    return [
        by_name[name]
        for step, name in steps
        if isinstance(step, PythonCall) and step.kind is PythonCallKind.INTERPRETED
    ]


def warn_of_interpreted(graph: Graph, program: RuntimeProgram, target: Target) -> None:
    """Issue one warning of all steps that run in NumPy: which operators, why, and the way out.

    Loops, and library routines called from Python, run in Python by design and are left out;
    without other such steps there is no warning.

    Args:
        graph: The planned graph.
        program: Its program.
        target: The target, for the message and the reasons.
    """
    nodes = interpreted_nodes(graph, program)
    if not nodes:
        return
    names_by_reason: dict[str, list[str]] = {}
    for node in nodes:
        opaque = why_opaque(graph, node, target)
        why = Diagnostic("op.unplanned") if opaque is None else opaque
        way_out = f"; {why.way_out}" if why.way_out else ""
        names_by_reason.setdefault(f"{why}{way_out}", []).append(graph.names[node])
    lines = []
    for reason, names in list(names_by_reason.items())[:MAX_SHOWN]:
        shown = ", ".join(map(repr, names[:MAX_SHOWN]))
        more = ", …" if len(names) > MAX_SHOWN else ""
        lines.append(f"{shown}{more}: {reason}")
    if len(names_by_reason) > MAX_SHOWN:
        lines.append(f"and {len(names_by_reason) - MAX_SHOWN} more reason(s)")
    count = f"{len(nodes)} step{'s' * (len(nodes) > 1)} of {len(program.steps)}"
    listed = "\n  ".join(lines)
    warn_user(
        f"compiled for target '{target.name}', {count} run{'s' * (len(nodes) == 1)} in NumPy, "
        f"operator by operator:\n  {listed}",
        InterpretedWarning,
    )
