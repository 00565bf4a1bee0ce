"""The values of a group that templates name, and the loops that compute each of them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum, auto

from attrs import evolve, frozen

from passkit.analysis.domain import ValueKind, num_chunks
from passkit.analysis.domain_info import DomainInfo
from passkit.analysis.group import Group
from passkit.analysis.nest_partitions import nest_partitions
from passkit.ast.folds import Contract
from passkit.graph.attribute_calls import contraction_of, reduce_of, scan_of
from passkit.graph.node import Node, known_shape
from passkit.graph.quotient import live_ins
from passkit.schedule.stages import split_stages
from passkit.schedule.tiling import second_tiled_axis
from passkit.target import Target
from passkit.values.size import Extent, Shape, numel


class LoopKind(Enum):
    """The role of a loop of a single-nest kernel.

    Attributes:
        ROWS: the axes of rows, as one loop.
        TILED: the axis beside the last of which BLOCK and NARROW tiles have a chunk.
        REDUCED: a reduced axis that is not the last one.
        LAST: the last axis.
    """

    ROWS = auto()
    TILED = auto()
    REDUCED = auto()
    LAST = auto()


@frozen
class ValueLoops:
    """The loops that compute one value.

    In a single-nest kernel these are loops of the kernel, in which the axes of rows are one loop.
    In a multi-nest kernel they are the dimensions of the value, those of the input of a reduction,
    or batch, M, N and K of a matrix product. Loops are given by their numbers, outermost first.

    Attributes:
        name: the name in templates.
        shape: the extents of the loops; empty for a scalar.
        reduced: the loops over which the value is reduced.
        scanned: the loops over which the value is scanned.
        reduced_by_others: the loops over which other values of the same kernel are reduced.
        keepdims: whether reduced dimensions stay in the result, with extent 1.
        shared: whether other nests or stages read the value, so that templates mark it with S.
        is_output: whether the value is an output of the group.
        kinds: the roles of the loops in a single-nest kernel.
        row_points: the points of a row of a single-nest kernel, to which ``GRID_~N`` refers.
    """

    name: str
    shape: Shape
    reduced: tuple[int, ...] = ()
    scanned: tuple[int, ...] = ()
    reduced_by_others: tuple[int, ...] = ()
    keepdims: bool = False
    shared: bool = False
    is_output: bool = False
    kinds: tuple[LoopKind, ...] = ()
    row_points: Extent = 1

    @property
    def extents(self) -> Shape:
        """The extents of the loops; a scalar has one loop of extent 1."""
        return self.shape or (1,)

    @property
    def unreduced(self) -> tuple[int, ...]:
        """The loops over which the value is not reduced."""
        return tuple(d for d in range(len(self.extents)) if d not in self.reduced)

    @property
    def carried(self) -> tuple[int, ...]:
        """The loops with iterations of the value that depend on each other."""
        return self.reduced + self.scanned

    @property
    def result_loops(self) -> tuple[int, ...]:
        """The loop of each dimension of the result."""
        return tuple(range(len(self.extents))) if self.keepdims else self.unreduced

    @property
    def result_shape(self) -> Shape:
        """The shape of the result; a scalar counts as one element of rank 1."""
        dims = (1 if d in self.reduced else self.extents[d] for d in self.result_loops)
        return tuple(dims) or (1,)


def value_names(group: Group) -> dict[Node, str]:
    """Return the names of the values of a group in templates.

    They depend on the structure of the group alone, so equal groups have equal templates.
    """
    return operator_names(group.ops)


def operator_names(nodes: Iterable[Node]) -> dict[Node, str]:
    """Return the name of each operator that is no constant, such as ``reduce_max_2``.

    The number counts the operators of one kind in the order of ``nodes``.
    """
    count: Counter[str] = Counter()
    names = {}
    for node in nodes:
        if node.op is None or node.op.name == "constant":
            continue
        name = re.sub(r"[^A-Za-z0-9_.]", "_", node.op.name)
        count[name] += 1
        names[node] = f"{name}_{count[name]}"
    return names


def single_nest_values(
    info: DomainInfo, outputs: Sequence[Node], names: Mapping[Node, str], target: Target
) -> dict[Node, ValueLoops]:
    """Return the values that templates of a single-nest group name, with their loops.

    These are reductions, scans, values that are staged, and outputs.

    Args:
        info: the iteration domain of the group, the graph of which may have expanded outputs.
        outputs: the nodes of the outputs in the group's graph.
        names: the names of the nodes in templates.
        target: the machine.
    """
    graph, loops = info.graph, kernel_loops(info, target)
    row_points = numel(n for kind, n, _ in loops if kind in (LoopKind.REDUCED, LoopKind.LAST))
    output_of = {e.node: n for e, n in zip(graph.outputs, outputs, strict=True)}
    _, staged_values = split_stages(info, None)
    staged = {graph.nodes[k.value] for k in staged_values}
    read = {e.node for n in graph.nodes for e in n.inputs}
    values: dict[Node, ValueLoops] = {}
    for node in graph.nodes:
        is_reduction, is_scan = reduce_of(node) is not None, scan_of(node) is not None
        is_stored = is_reduction or is_scan or node in staged
        if not is_stored and node not in output_of:
            continue
        has_all_loops = is_reduction or ValueKind.POINT in info.kinds[node]
        own_loops = [x for x in loops if has_all_loops or not x[2]]
        over = tuple(d for d, (_, _, is_reduced) in enumerate(own_loops) if is_reduced)
        named = output_of.get(node, node)
        values[named] = ValueLoops(
            names[named],
            tuple(extent for _, extent, _ in own_loops),
            reduced=over if is_reduction else (),
            scanned=over if is_scan else (),
            reduced_by_others=() if is_reduction or is_scan else over,
            shared=node in read and is_stored,
            is_output=node in output_of,
            kinds=tuple(kind for kind, _, _ in own_loops),
            row_points=row_points,
        )
    return values


def kernel_loops(info: DomainInfo, target: Target) -> list[tuple[LoopKind, Extent, bool]]:
    """Return the loops of a single-nest kernel, outermost first.

    Returns: for each loop the kind, the extent, and whether values are reduced over it.
    """
    domain, last = info.domain, info.domain.axes[-1]
    tiled = second_tiled_axis(info, target)
    loops: list[tuple[LoopKind, Extent, bool]] = []
    rows = [a for a in domain.kept if a is not last and a is not tiled]
    if rows:
        loops.append((LoopKind.ROWS, numel(a.extent for a in rows), False))
    if tiled is not None:
        loops.append((LoopKind.TILED, tiled.extent, False))
    loops += [(LoopKind.REDUCED, a.length, True) for a in domain.reduced if a is not last]
    return [*loops, (LoopKind.LAST, last.length, last.reduced)]


def multi_nest_values(group: Group, names: Mapping[Node, str]) -> dict[Node, ValueLoops]:
    """Return the values that templates of a multi-nest group can name, with their loops.

    These are the values that one nest computes for another, and the outputs. ``names`` are the
    names of the nodes in templates.
    """
    graph = group.graph
    nests = nest_partitions(graph)[0]
    read = {e.node for nest in nests for e in live_ins(graph, nest.nodes)}
    shared = {n for nest in nests for n in nest.nodes if n in nest.owns and n in read}
    outputs = {e.node for e in graph.outputs}
    return {
        node: value_loops(node, names[node], node in shared, node in outputs)
        for node in value_names(group)
        if node in shared or node in outputs
    }


def value_loops(node: Node, name: str, shared: bool, is_output: bool) -> ValueLoops:
    """Return the loops of a value of a multi-nest kernel.

    Args:
        node: the operator that computes the value.
        name: the name in templates.
        shared: whether other nests read the value.
        is_output: whether the value is an output of the group.
    """
    value = ValueLoops(name, known_shape(node.entries[0]), shared=shared, is_output=is_output)
    contract = contraction_of(node)
    if isinstance(contract, Contract):
        extents = (*contract.batch, contract.m, contract.n, contract.k)
        return evolve(value, shape=extents, reduced=(len(extents) - 1,))
    reduction, scan = reduce_of(node), scan_of(node)
    if reduction is not None:
        extents, axes = known_shape(node.inputs[0]), reduction.axes
        if reduction.chunks is not None:
            axis, length = reduction.chunks.axis, reduction.chunks.length
            chunks = num_chunks(extents, reduction.chunks)
            extents = (chunks, *extents[:axis], length, *extents[axis + 1 :])
            axes = tuple(d + 1 for d in axes)
        return evolve(value, shape=extents, reduced=axes, keepdims=reduction.keepdims)
    return value if scan is None else evolve(value, scanned=(scan.axis,))
