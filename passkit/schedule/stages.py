"""The stages of a single-nest kernel, and the storage of values between them."""

from __future__ import annotations

from collections.abc import Collection

from attrs import evolve

from passkit.analysis.accesses import accesses_of
from passkit.analysis.domain import ValueKind
from passkit.analysis.domain_info import DomainInfo
from passkit.analysis.recompute import RECOMPUTE, is_expensive
from passkit.ast.stage import Place
from passkit.graph.attribute_calls import reduce_of
from passkit.graph.graph import Graph
from passkit.graph.node import Node, is_leaf, known_shape
from passkit.schedule.schedule import Schedule, StagedValue, StagePlan
from passkit.schedule.tiling import Composition
from passkit.target import Target
from passkit.values.size import numel


def _reduction_depths(graph: Graph) -> dict[Node, int]:
    """Return for each node the number of reductions on the longest path that ends in it."""
    depths: dict[Node, int] = {}
    for node in graph.nodes:
        if is_leaf(node):
            depths[node] = 0
        else:
            before = max((depths[e.node] for e in node.inputs), default=0)
            depths[node] = before + (reduce_of(node) is not None)
    return depths


def split_stages(
    info: DomainInfo, place: Place | None, recomputed: Collection[Node] = ()
) -> tuple[tuple[StagePlan, ...], tuple[StagedValue, ...]]:
    """Return the stages of a single-nest kernel, and the storage of values between stages.

    Stage k computes the values behind k reductions. A value of an earlier stage is stored if it is
    expensive to compute again.

    Args:
        info: the iteration domain of the group.
        place: the storage of all staged values; None chooses outputs where they fit, else SHARED.
        recomputed: values that are computed again where they are read, in any case.
    """
    graph, nodes, depths = info.graph, info.graph.nodes, _reduction_depths(info.graph)
    number = {n: k for k, n in enumerate(nodes)}
    reductions = [n for n in nodes if reduce_of(n) is not None]
    full = {n for n, r in info.kinds.items() if ValueKind.POINT in r} - {*reductions}
    outputs = list(enumerate(graph.outputs))
    last_stage = max(
        [depths[n.inputs[0].node] for n in reductions]
        + [depths[e.node] for _, e in outputs if ValueKind.POINT in info.kinds[e.node]]
        + [0]
    )
    last_reader: dict[Node, int] = {}
    cheap = 0 if place is Place.LANES else RECOMPUTE  # registers are read at no cost
    for s in range(last_stage + 1):
        roots = [n.inputs[0].node for n in reductions if depths[n.inputs[0].node] == s]
        roots += [e.node for _, e in outputs if e.node in full and depths[e.node] == s]
        decided = {**last_reader, **dict.fromkeys(recomputed, -1)}
        for value in _values_to_stage(info, depths, roots, s, decided, cheap):
            last_reader[value] = s

    def row_values(depth: int) -> tuple[int, ...]:
        """Return the values per row behind so many reductions."""
        return tuple(
            number[n]
            for n in nodes
            if ValueKind.REDUCED in info.kinds.get(n, ValueKind.INLINE)
            and n not in full
            and depths[n] == depth
        )

    stages = [
        StagePlan(
            reduces=tuple(number[n] for n in reductions if depths[n.inputs[0].node] == s),
            staged=tuple(sorted(number[n] for n in last_reader if depths[n] == s)),
            stores=tuple(k for k, e in outputs if e.node in full and depths[e.node] == s),
            row_values=row_values(s + 1),
        )
        for s in range(last_stage + 1)
    ]
    before = row_values(0)
    if before:
        stages.insert(0, StagePlan(row_values=before))
    if place is not None:
        return tuple(stages), tuple(StagedValue(number[n], place) for n in last_reader)
    return tuple(stages), _storage_of(info, depths, last_reader, number)


def _values_to_stage(
    info: DomainInfo,
    depths: dict[Node, int],
    roots: list[Node],
    stage: int,
    last_reader: dict[Node, int],
    cheap: int,
) -> list[Node]:
    """Return the values of earlier stages that ``stage`` loads instead of computing them again.

    Args:
        info: the iteration domain of the group.
        depths: the stage of each value.
        roots: the values that ``stage`` reduces or stores.
        stage: the number of the stage.
        last_reader: the last stage that loads a value that is staged already; -1 for a value that
            must not be staged.
        cheap: the number of light operations up to which a value is computed again.
    """
    loaded: list[Node] = []
    seen: set[Node] = set()
    stack = list(roots)
    while stack:
        node = stack.pop()
        if is_leaf(node) or node in seen or reduce_of(node) is not None:
            continue
        seen.add(node)
        if ValueKind.POINT not in info.kinds.get(node, ValueKind.INLINE):
            continue
        reader = last_reader.get(node)
        is_staged = recompute_cost(node, cheap) > cheap if reader is None else reader >= 0
        if cheap == 0 and not _reads_inputs(node):
            is_staged = False  # a constant, or a function of the indices
        elif cheap and is_staged and _is_input_at_point(info, node):
            is_staged = False
        if depths[node] < stage and is_staged:
            loaded.append(node)
            continue
        stack += [e.node for e in node.inputs]
    return loaded


def _is_input_at_point(info: DomainInfo, node: Node) -> bool:
    """Return whether a value is an element of an input at the point, after any index changes."""
    entry = node.entries[0]
    index = info.index(entry, ValueKind.POINT)
    while not is_leaf(entry.node):
        accesses = accesses_of(entry.node, index, info.domain.extents)
        if not accesses.plain or len(accesses.at) != 1:
            return False
        number, index = accesses.at[0]
        entry = entry.node.inputs[number]
    return info.linear(index, known_shape(entry)) == info.domain.point_index


def _reads_inputs(node: Node) -> bool:
    """Return whether a value is computed from elements of inputs, after the last reduction."""
    stack, seen = [node], set[Node]()
    while stack:
        n = stack.pop()
        if n.is_variable:
            return True
        if n not in seen and reduce_of(n) is None:
            seen.add(n)
            stack += [e.node for e in n.inputs]
    return False


def recompute_cost(node: Node, limit: int) -> int:
    """Return the number of light operations that compute a value again after the last reduction.

    An expensive operation counts ``limit`` + 1. Counting stops above ``limit``.
    """
    total, stack, seen = 0, [node], set[Node]()
    while stack and total <= limit:
        n = stack.pop()
        if is_leaf(n) or n in seen or reduce_of(n) is not None:
            continue
        seen.add(n)
        total += limit + 1 if is_expensive(n) else 1
        stack += [e.node for e in n.inputs]
    return total


def _storage_of(
    info: DomainInfo,
    depths: dict[Node, int],
    last_reader: dict[Node, int],
    number: dict[Node, int],
) -> tuple[StagedValue, ...]:
    """Return the storage of staged values.

    A value is stored in the buffer of an output that no stage before the last reader of the value
    stores, else in scratch memory. Each output is used once.

    Args:
        info: the iteration domain of the group.
        depths: the stage of each value.
        last_reader: the staged values, and for each the last stage that loads it.
        number: the position of each node.
    """
    used: set[int] = set()
    storage = []
    for node, last in last_reader.items():
        entry = node.entries[0]
        staged = StagedValue(number[node], Place.SHARED)
        for k, output in enumerate(info.graph.outputs):
            fits = output.node is node or (
                output.dtype is entry.dtype
                and ValueKind.POINT in info.kinds[output.node]
                and depths[output.node] >= last
                and numel(known_shape(output)) == info.domain.size
            )
            if k not in used and fits:
                used.add(k)
                staged = StagedValue(number[node], Place.GLOBAL, k)
                break
        storage.append(staged)
    return tuple(storage)


def stream_outputs(schedule: Schedule, outputs: tuple[int, ...], target: Target) -> Schedule:
    """Return a schedule that stores ``outputs`` past the caches.

    Values that were staged in these outputs move to scratch memory: a cache line that is written,
    loaded and then streamed would cross the memory bus three times. If scratch memory has no room
    for a row, outputs with staged values are not streamed.
    """
    row_nbytes = numel(a.extent for a in schedule.domain.reduced) * (schedule.width or 1) * 8
    fits = isinstance(row_nbytes, int) and row_nbytes <= target.scratch
    with_values = {k.output for k in schedule.staged if k.place is Place.GLOBAL}
    streamed = outputs if fits else tuple(k for k in outputs if k not in with_values)
    staged = tuple(
        StagedValue(k.value, Place.SHARED)
        if k.place is Place.GLOBAL and k.output in streamed
        else k
        for k in schedule.staged
    )
    return evolve(schedule, staged=staged, stream=streamed)


def stage_rows_in_shared(schedule: Schedule, graph: Graph, target: Target) -> Schedule:
    """Return a row schedule of a GPU that stages values in SHARED instead of other outputs.

    A value in an output's buffer goes to the second-level cache, SHARED stays in the
    multiprocessor. The schedule stays as it is if the rows of a block have no room there.
    """

    def is_in_other_output(k: StagedValue) -> bool:
        """Return whether a value lies in the buffer of an output that it is not."""
        is_global = k.place is Place.GLOBAL
        return is_global and graph.outputs[k.output].node is not graph.nodes[k.value]

    moved = [k for k in schedule.staged if is_in_other_output(k)]
    count = sum(k in moved or k.place is Place.SHARED for k in schedule.staged)
    row_nbytes = numel(a.extent for a in schedule.domain.reduced) * 8 * count
    rows = max(1, target.block // target.warp)
    if schedule.composition is not Composition.ROW or not isinstance(row_nbytes, int) or not moved:
        return schedule
    if row_nbytes * rows > target.tiling.near_bytes or row_nbytes > target.scratch:
        return schedule
    return evolve(
        schedule,
        staged=tuple(
            StagedValue(k.value, Place.SHARED) if k in moved else k for k in schedule.staged
        ),
    )
