"""Groups at typical sizes, by which groups of unknown sizes are compared.

Only decisions of fusion depend on these sizes. The schedules of such groups hold for all sizes.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from passkit.analysis.group import Group
from passkit.errors import PasskitError
from passkit.graph.node import Entry, Node, known_shape
from passkit.schedule.nest_info import USUAL
from passkit.values.memo import UncachedArgument
from passkit.values.size import Size, has_size, substitute


def typical(group: Group) -> Group | None:
    """Return a group with `USUAL` in place of every unknown size; itself if all sizes are known.

    Returns: None if the operators of the group cannot have this size.
    """
    if not any(has_size(e.shape) for n in group.graph.nodes for e in n.entries):
        return group
    return _typical(group.key, UncachedArgument(group))


@lru_cache(maxsize=4096)
def _typical(key: str, held: UncachedArgument[Group]) -> Group | None:
    """Return the group ``held.value``, which ``key`` identifies, at typical sizes."""
    group = held.value

    def at_typical_sizes(node: Node, inputs: tuple[Entry, ...]) -> Sequence[Entry] | None:
        """Return the results of a copy of a node with other inputs and known sizes."""
        params = {k: _with_numbers(v) for k, v in node.params.items()}
        if node.is_variable:
            shape = _with_numbers(known_shape(node.entries[0]))
            return Node(None, (), {**params, "shape": shape}, node.name).entries
        return Node(node.op, inputs, params, node.name).entries

    try:
        graph, new = group.graph.rebuilt(at_typical_sizes)
        if any(has_size(entry.shape) for node in graph.nodes for entry in node.entries):
            return None
    except (PasskitError, ArithmeticError, ValueError):
        return None
    origin = {
        new[n.entries[0]].node: name for n, name in group.origin.items() if n.entries[0] in new
    }
    return Group(graph, group.kind, origin)


def _with_numbers(value: Any) -> Any:
    """Return a parameter or shape with `USUAL` in place of each unknown size."""
    if isinstance(value, Size):
        return substitute(value, dict.fromkeys(value.symbols, USUAL))
    if isinstance(value, tuple):
        return tuple(map(_with_numbers, value))
    return value
