"""Storage: which bytes each value of a graph lives in, for sizes that only a call knows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum

from attrs import frozen

from passkit.graph.attribute_calls import call_attribute, refuse_result
from passkit.graph.graph import Annotation, Graph
from passkit.graph.node import CONSTANT, Entry, Node
from passkit.graph.op import FInplaceIdentity, FInplaceOption, FInplaceRows, OpPattern
from passkit.graph.registry import Table
from passkit.values.size import ALIGN, Extent, arena_layout

__all__ = ["ALIGN", "Copy", "Home", "Storage", "StoragePlan", "identities", "leaves", "sharing"]


class Home(Enum):
    """Whose memory a value lives in."""

    INPUT = "input"
    CONSTANT = "constant"
    STATE = "state"
    OUTPUT = "output"
    ARENA = "arena"


@frozen
class Storage:
    """One buffer. ``index`` counts `Graph.inputs`, constants, `Graph.states`, outputs or slots."""

    home: Home
    index: int

    def __str__(self) -> str:
        return f"{self.home.value} {self.index}"


def leaves(graph: Graph) -> dict[Node, Storage]:
    """The buffers of what is not computed: inputs, state variables and constants."""
    constants = [n for n in graph.nodes if n.op is CONSTANT]
    homes = {Home.INPUT: graph.inputs, Home.STATE: graph.states, Home.CONSTANT: constants}
    return {n: Storage(home, k) for home, nodes in homes.items() for k, n in enumerate(nodes)}


@frozen
class Copy:
    """Bytes to be copied when all nodes have run: an entry's value to where it is wanted."""

    entry: Entry
    source: Storage
    target: Storage
    nbytes: Extent


@frozen(eq=False)
class StoragePlan:
    """Where every entry lives, as slots of one arena and the caller's buffers.

    ``slots`` hold for each slot the sizes in bytes of what lives there at one time or another.
    ``inplace`` maps a result to the input whose bytes it takes, ``aliases`` a result to the input
    that it is, byte for byte, so that nothing is to be run. ``copies`` are done last, in order.
    ``donors`` has, for each output, the number of the input over whose bytes it may be stored, if
    the caller gives that input's memory up; -1 for none. No input donates to two outputs.
    """

    places: Annotation
    slots: tuple[tuple[Extent, ...], ...]
    copies: tuple[Copy, ...]
    inplace: Mapping[Entry, Entry]
    aliases: Mapping[Entry, Entry]
    donors: tuple[int, ...] = ()

    def __getitem__(self, entry: Entry) -> Storage:
        return self.places[entry]  # type: ignore[no-any-return]

    def bind(self, sizes: Mapping[str, int]) -> tuple[tuple[int, ...], int]:
        """The offset of each slot and the bytes of the whole arena, for these sizes."""
        return arena_layout(self.slots, sizes)

    def __repr__(self) -> str:
        return (
            f"StoragePlan({len(self.slots)} slots, {len(self.inplace)} in place, "
            f"{len(self.aliases)} aliases, {len(self.copies)} copies)"
        )


def sharing(graph: Graph, node: Node) -> Sequence[tuple[int, int]]:
    """The pairs (input, output) of a node that may share bytes, for the target of its graph.

    FInplaceOption says so; by default an elementwise operator reads each element before it writes
    the one in its place. FInplaceRows adds pairs on the CPU, where one thread makes a row: on
    others all threads of a block may read what one of them then writes.
    """
    by_rows = node.op is not None and FInplaceRows.get(node.op.name) is not None and _alone(graph)
    return [*_everywhere(node), *(_pairs(FInplaceRows, node) if by_rows else ())]


def _alone(graph: Graph) -> bool:
    """Whether kernels are C++, in which one thread makes a row."""
    target = graph.attrs.get("options", {}).get("target")
    return target is not None and target.name == "cpu"


def _everywhere(node: Node) -> Sequence[tuple[int, int]]:
    assert node.op is not None
    if FInplaceOption.get(node.op.name) is not None:
        return _pairs(FInplaceOption, node)
    if node.op.pattern > OpPattern.BROADCAST:
        return ()
    return [(i, o) for i in range(len(node.inputs)) for o in range(len(node.entries))]


def identities(node: Node) -> Sequence[tuple[int, int]]:
    """The pairs (input, output) of a node where the output's bytes are the input's.

    The node is no variable.

    Raises: RuleError if FInplaceOption or FInplaceIdentity returns something else than it must.
    """
    assert node.op is not None
    if FInplaceIdentity.get(node.op.name) is None:
        return ()
    pairs, same = _everywhere(node), call_attribute(FInplaceIdentity, node, node)
    if not isinstance(same, (tuple, list)) or len(same) != len(pairs):
        need = f"a sequence of {len(pairs)}, True or False for each pair of FInplaceOption"
        refuse_result(FInplaceIdentity, node, need, same)
    return [pair for pair, is_same in zip(pairs, same, strict=True) if is_same]


def _is_pair(pair: object, node: Node) -> bool:
    """Return whether a value is an input and an output of a node, by their numbers."""
    if not isinstance(pair, tuple) or len(pair) != 2:
        return False
    return pair[0] in range(len(node.inputs)) and pair[1] in range(len(node.entries))


def _pairs(column: Table, node: Node) -> Sequence[tuple[int, int]]:
    """The pairs (input, output) that a rule gives.

    Raises: RuleError where it gives something else.
    """
    pairs = call_attribute(column, node, node)
    need = (
        f"a sequence of pairs (input, output) with inputs below {len(node.inputs)} and outputs "
        f"below {len(node.entries)}"
    )
    if not isinstance(pairs, (tuple, list)):
        refuse_result(column, node, need, pairs)
    for pair in pairs:
        if not _is_pair(pair, node):
            refuse_result(column, node, need, pairs, f"{pair!r} is none")
    return pairs
