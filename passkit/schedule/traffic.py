"""The memory accesses of a loop nest, as far as its schedule depends on them."""

from __future__ import annotations

from attrs import frozen

from passkit.graph.node import known_shape
from passkit.plan.schedule import Schedule
from passkit.space.layout import Layout
from passkit.values.size import at_least, numel


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
    """

    nbytes: int
    streams: tuple[int, ...]
    stream_nbytes: tuple[int, ...]
    staged: tuple[int, ...] = ()
    staged_nbytes: tuple[int, ...] = ()
    output_nbytes: tuple[int, ...] = ()


def traffic_of(layout: Layout, schedule: Schedule) -> NestTraffic:
    """Return the memory accesses of a group of one nest.

    Args:
        layout: its iteration domain.
        schedule: its stages.
    """
    graph, full = layout.graph, layout.space.full
    streams = tuple(
        k
        for k, node in enumerate(graph.inputs)
        if full in layout.input_reads.get(node, ())
        # Inputs of pads and concatenations may be smaller: they are read where a condition holds.
        and at_least(numel(known_shape(node.entries[0])), layout.space.size)
    )
    stream_nbytes = tuple(graph.dtype(graph.inputs[k].entries[0]).nbytes for k in streams)
    staged = tuple(k.value for k in schedule.kept)
    staged_nbytes = tuple(max(4, graph.dtype(graph.nodes[k].entries[0]).nbytes) for k in staged)
    stored = [graph.outputs[k] for stage in schedule.stages for k in stage.stores]
    output_nbytes = tuple(graph.dtype(e).nbytes for e in stored)
    widest = max((*stream_nbytes, *output_nbytes), default=4)
    return NestTraffic(widest, streams, stream_nbytes, staged, staged_nbytes, output_nbytes)
