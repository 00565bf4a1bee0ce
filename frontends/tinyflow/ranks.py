"""The shapes of tensors, and which placeholder is to blame where even the rank is unknown."""

from __future__ import annotations

from passkit.errors import ShapeError
from passkit.graph.graph import post_order
from passkit.graph.node import Entry
from passkit.values.size import Shape


def known_shape(entry: Entry, where: str = "") -> Shape:
    """The shape of an entry.

    Args:
        entry: A value of the graph.
        where: The function that needs to know the shape, for the message.

    Raises: ShapeError naming the placeholders without a shape that it is computed from.
    """
    if entry.shape is not None:
        return entry.shape
    names = [f"placeholder '{n}'" for n in origins(entry)]
    without = f"{' and '.join(names)} {'have' if len(names) > 1 else 'has'} no shape"
    raise ShapeError(
        f"{where or 'this function'} needs an input of known rank, and that of '{entry.name}' is "
        f"unknown, as {without}; tf.placeholder(dtype, shape) gives a placeholder its shape"
    )


def origins(entry: Entry) -> list[str]:
    """The names of the placeholders without a shape that an entry is computed from."""
    nodes = post_order([entry.node])
    return [n.name for n in nodes if n.op is None and n.entries[0].shape is None]
