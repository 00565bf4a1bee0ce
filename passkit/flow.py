"""Flows: the values of a group as those see them who deal out arrays: `passkit.sharing`."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from attrs import frozen

from passkit import dtype as dt
from passkit.ast import Var
from passkit.dtype import DType
from passkit.folds import Contract
from passkit.group import Group
from passkit.index import ravel
from passkit.node import Node, known_shape
from passkit.op import FContract
from passkit.reads import Reads, reads_of
from passkit.schedule import is_expensive
from passkit.sharing import Mode, Sharing, Value, Work, share, with_uses
from passkit.size import Extent, numel
from passkit.space import Infeasible, folding_of


@frozen
class Flow:
    """The operators of a group in the order of computing, and each of their results as a value."""

    nodes: tuple[Node, ...]
    values: tuple[Value, ...]

    def same_place(self, user: int, value: int) -> bool:
        """Whether an element of ``user`` reads of ``value`` only that of the same number."""
        return same_element(self.nodes[user], self.nodes[value])

    def share(self, limit: int, mode: Mode = Mode.SMALLER) -> Sharing | Infeasible:
        """The arrays of a tile within ``limit`` bytes."""
        return share(self.values, self.same_place, limit, mode)


def flow_of(group: Group, nbytes: Callable[[Node], Extent]) -> Flow:
    """The values of a group; ``nbytes`` tells how much a tile of a node's result takes."""
    nodes = group.ops
    number = {node: k for k, node in enumerate(nodes)}
    roots = {e.node for e in group.graph.outputs}
    values = [
        Value(
            work_of(node),
            nbytes(node),
            _itemsize(node),
            tuple(dict.fromkeys(number[e.node] for e in node.inputs if e.node in number)),
            root=node in roots,
        )
        for node in nodes
    ]
    return Flow(nodes, with_uses(values))


def work_of(node: Node) -> Work:
    """What computing an element of a node costs; a scan is a fold, which cannot begin anywhere."""
    assert node.op is not None
    contract = FContract.get(node.op.name)
    if contract is not None and isinstance(contract(node), Contract):
        return Work.DOT
    if folding_of(node) is not None:
        return Work.REDUCE
    if is_expensive(node):
        return Work.EXPENSIVE
    return Work.FREE if _reads(node)[0].plain else Work.LIGHT


def same_element(user: Node, value: Node) -> bool:
    """Whether each element of ``user`` reads of ``value`` only that at its own linear index."""
    entry = user.entries[0]
    several = len(user.entries) > 1 or len(value.entries) > 1
    assert user.op is not None
    known = user.op.has_attr("FElement") or user.op.has_attr("FCodeGen")
    if several or not known or work_of(user) in (Work.REDUCE, Work.DOT):
        return False
    reads, index = _reads(user)
    extents = {v.name: n for v, n in zip(index, known_shape(entry), strict=True)}
    own = ravel(index, known_shape(entry), extents)
    if numel(known_shape(entry)) != numel(known_shape(value.entries[0])):
        return False
    return all(
        ravel(at, known_shape(user.inputs[k]), extents) == own
        for k, at in reads.at
        if user.inputs[k].node is value
    )


@cache
def _index(rank: int) -> tuple[Var, ...]:
    return tuple(Var(f"i{k}", dt.int64) for k in range(rank))


def _reads(node: Node) -> tuple[Reads, tuple[Var, ...]]:
    """What an element reads, and the index of the element."""
    shape = known_shape(node.entries[0])
    index = _index(len(shape))
    return reads_of(node, index, {v.name: n for v, n in zip(index, shape, strict=True)}), index


def _itemsize(node: Node) -> int:
    dtype = node.entries[0].dtype
    assert isinstance(dtype, DType)
    return dtype.nbytes
