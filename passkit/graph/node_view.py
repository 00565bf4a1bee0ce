"""Views of nodes: what attribute functions get in place of a node that has other inputs.

FGradient, for example, is called with a view whose inputs are the values that a state variable had
when it was read, or float32 copies of 16-bit inputs. A view has the fields of a node and belongs to
no graph: its entries are those of other nodes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from passkit.values import arguments

if TYPE_CHECKING:
    from passkit.graph.node import Entry, Node
    from passkit.graph.op import Op


class NodeLike:
    """The fields that a node and a view of it have in common; attribute functions get either.

    Attributes:
        op: the operator, or None for a variable.
        inputs: the entries that the operator is applied to.
        params: the operator's parameters, by name.
        name: the name that the user gave, or "".
        control: the nodes that must run before this one, beside those of the inputs.
        entries: the results.
    """

    __slots__ = ()

    op: Op | None
    inputs: tuple[Entry, ...]
    params: Mapping[str, Any]
    name: str
    control: tuple[Node, ...]
    entries: tuple[Entry, ...]

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a {type(self).__name__} is immutable; cannot set {name!r}")

    @property
    def label(self) -> str:
        """Return the node's name; if that is "", its operator's, or "variable" without operator."""
        return self.name or (self.op.name if self.op else "variable")

    @property
    def where(self) -> str:
        """Return operator and name, as error messages refer to this node: "exp 'y'", "exp".

        A variable is "variable 'x'". Names are cut to 80 characters.
        """
        if self.op is None:
            return f"variable '{arguments.shortened(self.name)}'"
        name = arguments.shortened(self.name)
        return f"{self.op.name} '{name}'" if name else self.op.name

    @property
    def is_variable(self) -> bool:
        """Return whether this node is a variable: an input or state, without an operator."""
        return self.op is None

    def view(self, inputs: Iterable[Entry], entries: Iterable[Entry] | None = None) -> NodeView:
        """Return a view of this node with other inputs, for attribute functions.

        Args:
            inputs: the inputs of the view, one for each input of this node; nothing is checked.
            entries: the results of the view; those of this node by default.
        """
        return NodeView(self, tuple(inputs), self.entries if entries is None else tuple(entries))


class NodeView(NodeLike):
    """A view of a node with other inputs or results; it is no node and belongs to no graph."""

    __slots__ = ("control", "entries", "inputs", "name", "op", "params")

    def __init__(
        self, node: NodeLike, inputs: tuple[Entry, ...], entries: tuple[Entry, ...]
    ) -> None:
        for field in ("op", "params", "name", "control"):
            object.__setattr__(self, field, getattr(node, field))
        object.__setattr__(self, "inputs", inputs)
        object.__setattr__(self, "entries", entries)

    def __repr__(self) -> str:
        return f"NodeView({self.where})"
