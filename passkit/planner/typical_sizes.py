"""Groups at typical sizes: by them groups are compared whose sizes only a call knows.

What is chosen by them holds for all sizes, as its plan is made without them; only whether it pays
depends on how large arrays are.
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
    """The group with `USUAL` for every unknown size, itself where all are known.

    None where that is no size that its operators can have.
    """
    if not any(has_size(e.shape) for n in group.graph.nodes for e in n.entries):
        return group
    return _typical(group.key, UncachedArgument(group))


@lru_cache(maxsize=4096)
def _typical(key: str, held: UncachedArgument[Group]) -> Group | None:
    group = held.value

    def change(node: Node, inputs: tuple[Entry, ...]) -> Sequence[Entry] | None:
        params = {k: _number(v) for k, v in node.params.items()}
        if node.is_variable:
            shape = _number(known_shape(node.entries[0]))
            return Node(None, (), {**params, "shape": shape}, node.name).entries
        return Node(node.op, inputs, params, node.name).entries

    try:
        graph, new = group.graph.rebuilt(change)
        for node in graph.nodes:
            for entry in node.entries:
                if has_size(entry.shape):
                    return None
    except (PasskitError, ArithmeticError, ValueError):
        return None
    origin = {
        new[n.entries[0]].node: name for n, name in group.origin.items() if n.entries[0] in new
    }
    return Group(graph, group.kind, origin)


def _number(value: Any) -> Any:
    """A parameter or shape with `USUAL` for each unknown size."""
    if isinstance(value, Size):
        return substitute(value, dict.fromkeys(value.symbols, USUAL))
    if isinstance(value, tuple):
        return tuple(map(_number, value))
    return value
