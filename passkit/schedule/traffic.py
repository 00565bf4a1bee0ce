"""The memory accesses of a loop nest, as far as its schedule depends on them."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import frozen

from passkit.analysis.domain import Domain
from passkit.analysis.domain_info import DomainInfo
from passkit.ast.expr import Var
from passkit.ast.index import Sum
from passkit.graph.node import known_shape
from passkit.schedule.schedule import StagedValue, StagePlan
from passkit.values.size import Extent, at_least, numel


@frozen
class TransposedRead:
    """A read of an input whose consecutive elements lie along another axis than the last one.

    Attributes:
        input: the position of the input.
        axis: the number of the axis along which its elements are consecutive.
        nbytes: the bytes of an element.
        steps: the elements from one point to the next along each axis of the nest.
        index: the index of the element.
    """

    input: int
    axis: int
    nbytes: int
    steps: tuple[Extent, ...]
    index: Sum


@frozen
class NestTraffic:
    """The memory accesses of a nest, as far as schedules depend on them.

    Attributes:
        nbytes: the bytes of the widest element among all arrays that are accessed at the own point.
        streams: the inputs, by position, that are read at the own point of the domain and have an
            element at each point, so that a read that is not needed is in bounds.
        stream_nbytes: the bytes of an element of each of these.
        staged: the values, by position in the body, that a later stage reads.
        staged_nbytes: the bytes of each of these in registers.
        output_nbytes: the bytes of an element of each output that is stored at the own point.
        transposed: the reads along other axes than the last one, of nests without reductions.
    """

    nbytes: int
    streams: tuple[int, ...]
    stream_nbytes: tuple[int, ...]
    staged: tuple[int, ...] = ()
    staged_nbytes: tuple[int, ...] = ()
    output_nbytes: tuple[int, ...] = ()
    transposed: tuple[TransposedRead, ...] = ()


def traffic_of(
    info: DomainInfo, stages: Sequence[StagePlan], staged_values: Sequence[StagedValue]
) -> NestTraffic:
    """Return the memory accesses of a group of one nest.

    Args:
        info: its iteration domain.
        stages: its stages.
        staged_values: the values that one stage stores for another.
    """
    graph, full = info.graph, info.domain.point_index
    streams = tuple(
        k
        for k, node in enumerate(graph.inputs)
        if full in info.input_accesses.get(node, ())
        # Inputs of pads and concatenations may be smaller: they are read where a condition holds.
        and at_least(numel(known_shape(node.entries[0])), info.domain.size)
    )
    stream_nbytes = tuple(graph.dtype(graph.inputs[k].entries[0]).nbytes for k in streams)
    staged = tuple(k.value for k in staged_values)
    staged_nbytes = tuple(max(4, graph.dtype(graph.nodes[k].entries[0]).nbytes) for k in staged)
    stored = [graph.outputs[k] for stage in stages for k in stage.stores]
    output_nbytes = tuple(graph.dtype(e).nbytes for e in stored)
    widest = max((*stream_nbytes, *output_nbytes), default=4)
    return NestTraffic(
        widest,
        streams,
        stream_nbytes,
        staged,
        staged_nbytes,
        output_nbytes,
        () if info.domain.reduced else transposed_reads(info),
    )


def transposed_reads(info: DomainInfo) -> tuple[TransposedRead, ...]:
    """Return the reads of a nest whose consecutive elements lie along another axis than the last.

    Each is a sum of axes times positive numbers, which is within the input at every point.
    """
    graph, domain = info.graph, info.domain
    reads = []
    for number, node in enumerate(graph.inputs):
        entry = node.entries[0]
        for index in dict.fromkeys(info.input_accesses.get(node, ())):
            axis = _consecutive_axis(index, domain, numel(graph.shape(entry)))
            if axis is not None:
                steps = tuple(index.coefficient(a.var) for a in domain.axes)
                nbytes = graph.dtype(entry).nbytes
                reads.append(TransposedRead(number, axis, nbytes, steps, index))
    return tuple(reads)


def _consecutive_axis(index: Sum, domain: Domain, size: Extent) -> int | None:
    """Return the number of the axis along which an index counts elements one by one.

    None if that is the last axis, or none is, or the index may not be within ``size`` elements.
    """
    axes = {a.var: k for k, a in enumerate(domain.axes)}
    if not all(isinstance(atom, Var) and atom in axes for atom, _ in index.terms):
        return None
    if not at_least(index.constant, 0) or not all(at_least(c, 1) for _, c in index.terms):
        return None
    last = index.constant
    for axis in domain.axes:
        last = last + index.coefficient(axis.var) * (axis.extent - 1)
    if not at_least(size, last + 1):
        return None
    one_by_one = [axes[atom] for atom, c in index.terms if c == 1 and isinstance(atom, Var)]
    last_axis = len(domain.axes) - 1
    if len(one_by_one) != 1 or one_by_one[0] == last_axis:
        return None
    return None if index.coefficient(domain.axes[-1].var) == 0 else one_by_one[0]
