"""Nests: the loops that templates speak of, one nest for each array and each result."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable

from attrs import evolve, frozen

from passkit.analysis.domain import num_chunks
from passkit.analysis.group import Group
from passkit.ast.folds import Contract
from passkit.graph.attribute_calls import contraction_of, reduce_of, scan_of
from passkit.graph.node import Node, known_shape
from passkit.values.size import Shape


@frozen
class Nest:
    """The loops that compute one value: of a fold those over its input, of a dot batch, M, N, K.

    ``folded`` dimensions are not in the result, or have extent 1 there with ``keepdims``;
    ``scanned`` ones are, though each element needs those before it; ``passed`` ones are folded by
    others in the same loops. ``shared`` tells that other nests read the value, ``root`` that it
    leaves the group.
    """

    name: str
    shape: Shape
    folded: tuple[int, ...] = ()
    scanned: tuple[int, ...] = ()
    passed: tuple[int, ...] = ()
    keepdims: bool = False
    shared: bool = False
    root: bool = False

    @property
    def dims(self) -> Shape:
        """The extents of the loops; a scalar has one loop of one step."""
        return self.shape or (1,)

    @property
    def kept(self) -> tuple[int, ...]:
        """The loops along which the result lies."""
        return tuple(d for d in range(len(self.dims)) if d not in self.folded)

    @property
    def whole(self) -> tuple[int, ...]:
        """The loops that the value itself needs all of."""
        return self.folded + self.scanned

    @property
    def axes(self) -> tuple[int, ...]:
        """For each dimension of the result the loop that it has, or is what is left of."""
        return tuple(range(len(self.dims))) if self.keepdims else self.kept

    @property
    def result(self) -> Shape:
        """The shape of the result; a scalar counts as one element of rank 1."""
        return tuple(1 if d in self.folded else self.dims[d] for d in self.axes) or (1,)


def value_names(group: Group) -> dict[Node, str]:
    """What templates call the values of a group: the operator, and which one of its kind it is.

    They depend on structure alone, so that equal groups have equal templates.
    """
    return operator_names(group.ops)


def operator_names(nodes: Iterable[Node]) -> dict[Node, str]:
    """Return the name of each operator among nodes, constants excepted, in order."""
    count: Counter[str] = Counter()
    names = {}
    for node in nodes:
        if node.op is None or node.op.name == "constant":
            continue
        name = re.sub(r"[^A-Za-z0-9_.]", "_", node.op.name)
        count[name] += 1
        names[node] = f"{name}_{count[name]}"
    return names


def nests_of(group: Group, shared: Collection[Node]) -> tuple[Nest, ...]:
    """The nests of a group of which ``shared`` values have arrays, in the order of computing."""
    names = value_names(group)
    roots = {e.node for e in group.graph.outputs}
    return tuple(
        _nest(node, name, node in shared, node in roots)
        for node, name in names.items()
        if node in shared or node in roots
    )


def _nest(node: Node, name: str, shared: bool, root: bool) -> Nest:
    assert node.op is not None
    nest = Nest(name, known_shape(node.entries[0]), shared=shared, root=root)
    dot = contraction_of(node)
    if isinstance(dot, Contract):
        dims = (*dot.batch, dot.m, dot.n, dot.k)
        return evolve(nest, shape=dims, folded=(len(dims) - 1,))
    fold, scan = reduce_of(node), scan_of(node)
    if fold is not None:
        dims, axes = known_shape(node.inputs[0]), fold.axes
        if fold.chunks is not None:
            cut, length = fold.chunks.axis, fold.chunks.length
            dims = (num_chunks(dims, fold.chunks), *dims[:cut], length, *dims[cut + 1 :])
            axes = tuple(d + 1 for d in axes)
        return evolve(nest, shape=dims, folded=axes, keepdims=fold.keepdims)
    return nest if scan is None else evolve(nest, scanned=(scan.axis,))
