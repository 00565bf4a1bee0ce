"""Analysis of iteration domains: the domain of a group, and at which points values are computed.

The kinds of values are those of `ValueKind`. A group whose operators do not share a domain has a
diagnostic instead.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Set
from functools import lru_cache

from passkit.analysis.accesses import Index, accesses_of
from passkit.analysis.domain import (
    Axis,
    Domain,
    ReducedAxes,
    ValueKind,
    axes_of,
    reduced_axes_of,
)
from passkit.analysis.row_moves import RowOrder, row_orders
from passkit.analysis.unrolled import MAX_STRIDE, UNROLLED_REDUCE, unrolled_graphs
from passkit.ast import Chunks, Expr, Var, size_of
from passkit.ast.index import Sum, common_refinement, normal, ravel
from passkit.ast.walk import variables
from passkit.diagnostics import Diagnostic
from passkit.graph.attribute_calls import reduce_of, scan_of
from passkit.graph.graph import Graph
from passkit.graph.node import Entry, Node, is_leaf, known_shape
from passkit.values import dtype as dt
from passkit.values.size import Extent, Shape, numel


def _refined_axes(
    shape: Shape, reduced: tuple[int, ...] | None, shapes: list[Shape]
) -> tuple[Axis, ...]:
    """Return axes of a shape, divided so that dimensions of other shapes are products of them.

    Args:
        shape: the shape.
        reduced: its reduced dimensions; None without a reduction.
        shapes: the other shapes, with as many elements.

    Returns: the axes of the dimensions themselves if the shapes have no common refinement.
    """
    finer = common_refinement([shape, *shapes])
    if finer is None or not finer:
        return axes_of(shape, reduced)
    factors = list(finer)
    finer_reduced: list[int] = []
    for k in range(len(shape) - 1, -1, -1):
        product: Extent = 1
        while product != shape[k]:
            product = factors.pop() * product
            if reduced is not None and k in reduced:
                finer_reduced.append(len(factors))
    return axes_of(finer, None if reduced is None else tuple(finer_reduced))


class DomainInfo:
    """The iteration domain of a group, and the kind of each of its values.

    Attributes:
        graph: the group's graph.
        domain: the domain.
        chunked_shape: the shape of the operands of reductions in chunks; None without chunks.
        chunks: the chunks, which all reductions have.
        orders: the order of rows of nodes whose rows are those of the domain in another order.
        reverse: the direction of scans; None without any.
        kinds: the kinds of each node's value; several if it is read at several places.
        uses: the indices at which each node is read, with the kind of that read.
        accesses: the linear indices of reads of inputs.
        input_accesses: those of each input.
        pinned: the variables on which values themselves depend.
        integers: the integers, other than indices of reads, by which values depend on them.
    """

    def __init__(
        self,
        graph: Graph,
        domain: Domain,
        chunked_shape: Shape | None = None,
        chunks: Chunks | None = None,
        orders: Mapping[Node, RowOrder] | None = None,
    ) -> None:
        self.graph, self.domain = graph, domain
        self.chunked_shape, self.chunks = chunked_shape, chunks
        self.orders = orders or {}
        self.reverse: bool | None = None
        self.kinds: dict[Node, ValueKind] = {}
        self.uses: dict[Node, dict[Index, ValueKind]] = {}
        self.accesses: list[Sum] = []
        self.input_accesses: dict[Node, list[Sum]] = {}
        self.pinned: set[Var] = set()
        self.integers: list[Sum] = []
        self._linear: dict[tuple[Index, Shape], Sum] = {}
        self._indices: dict[tuple[Entry, ValueKind, Node], Index] = {}

    def index(self, entry: Entry, kind: ValueKind, reader: Node | None = None) -> Index:
        """Return the index at the current point of a value.

        Args:
            entry: the value.
            kind: its kind, which is not INLINE.
            reader: the reduction that reads it, in its own order of rows; None for the order of the
                value.
        """
        node = reader or entry.node
        shape, order = known_shape(entry), self.orders.get(node)
        if order is None:
            return self.domain.index(kind, shape)
        if (entry, kind, node) not in self._indices:
            *rows, last = self.domain.index(ValueKind.POINT, order.shape)
            row_index = order.rows_at(tuple(rows), shape, self.domain.extents)
            point: Expr = last if kind is ValueKind.POINT else size_of(0)
            self._indices[entry, kind, node] = (*row_index, point)
        return self._indices[entry, kind, node]

    def linear(self, index: Index, shape: Shape) -> Sum:
        """Return the row-major linear index of an element, which is computed once."""
        linear = self._linear.get((index, shape))
        if linear is None:
            linear = self._linear[index, shape] = ravel(index, shape, self.domain.extents)
        return linear

    def reads(self, node: Node, index: Index) -> list[tuple[Entry, Index]]:
        """Return the entries that a node reads for its element at an index, each with its index.

        The variables and integers on which the element itself depends are noted in ``pinned`` and
        ``integers``.
        """
        if reduce_of(node) is not None:
            entry = node.inputs[0]
            return [(entry, self.index(entry, ValueKind.POINT, node))]
        if scan_of(node) is not None:
            return [(node.inputs[0], index)]
        accesses = accesses_of(node, index, self.domain.extents)
        self.pinned |= accesses.pinned
        self.integers += [normal(x, self.domain.extents) for x in accesses.integers]
        return [(node.inputs[k], i) for k, i in accesses.at]

    def kind_at(self, entry: Entry, index: Index) -> ValueKind:
        """Return the kind of a read: at the current point (POINT), in its row, or elsewhere.

        The result of a reduction is REDUCED even where every row has one point.
        """
        shape = known_shape(entry)
        if entry.node in self.orders:
            kind = ValueKind.REDUCED if shape[-1] == 1 else ValueKind.POINT
            return kind if index == self.index(entry, kind) else ValueKind.INLINE
        total = numel(shape)
        linear = self.linear(index, shape)
        full = total == self.domain.size and linear == self.domain.point_index
        if full and reduce_of(entry.node) is None:
            return ValueKind.POINT
        if self.domain.reduced and total == self.domain.rows and linear == self.domain.row_index:
            return ValueKind.REDUCED
        return ValueKind.INLINE


@lru_cache(maxsize=256)
def analyze_domain(graph: Graph) -> DomainInfo | Diagnostic:
    """Return the domain of a group, or a diagnostic if its operators do not share one.

    If rows are moved after they were reduced, the domain may have the order of the moved rows. The
    result is cached and must not be changed.
    """
    in_order = analyze_domain_in_order(graph)
    if isinstance(in_order, Diagnostic) and row_orders(graph):
        return _analyze(graph, None, is_moved=True)
    return in_order


def analyze_domain_in_order(graph: Graph) -> DomainInfo | Diagnostic:
    """Return the domain in which each value has its elements in the order of the points.

    Short reductions are unrolled if only their results are needed, so that the domain has no axis
    for them. The result is then of a graph with unrolled reductions.
    """
    rolled = _analyze(graph, None)
    for unrolled in unrolled_graphs(graph):
        info = _analyze(unrolled, None)
        if not isinstance(info, Diagnostic) and _is_unrolling_better(info, rolled):
            return info
    return rolled


Boundary = Callable[[Domain], list[Sum]]
"""A function that returns further accesses of a domain, which may keep axes from being merged."""


def analyze_bounded_domain(graph: Graph, boundary: Boundary) -> DomainInfo | Diagnostic:
    """Return the domain of a nest of several, whose axes the accesses of a boundary keep apart."""
    return _analyze(graph, boundary)


def _is_unrolling_better(info: DomainInfo, rolled: DomainInfo | Diagnostic) -> bool:
    """Return whether unrolled reductions are computed once, and vectors read no worse than before.

    Args:
        info: the domain of the graph with unrolled reductions.
        rolled: that of the graph as it was.
    """
    for node, uses in info.uses.items():
        if node.op is UNROLLED_REDUCE and any(k is not ValueKind.POINT for k in uses.values()):
            return False
    if isinstance(rolled, Diagnostic):
        must_be_contiguous = bool(info.domain.reduced)  # otherwise nests may read in order
    else:
        must_be_contiguous = rolled.domain.axes[-1].reduced
    return not must_be_contiguous or all(_is_contiguous(info.domain, a) for a in info.accesses)


def _is_contiguous(domain: Domain, access: Sum) -> bool:
    """Return whether vectors read whole cache lines, or short rows that are read repeatedly.

    Rows are read repeatedly if the access does not depend on some axis of the domain.
    """
    last = domain.axes[-1].var
    stride = access.coefficient(last)
    if not all(isinstance(x, Var) or last not in set(variables(x)) for x, _ in access.terms):
        return False
    used = {v for x, _ in access.terms for v in variables(x)}
    is_repeated = any(a.var not in used for a in domain.axes)
    if stride in (0, 1, 2, -1):
        return True
    return is_repeated and isinstance(stride, int) and 0 < stride <= MAX_STRIDE


def _analyze(
    graph: Graph, boundary: Boundary | None, is_moved: bool = False
) -> DomainInfo | Diagnostic:
    """Return the domain of a group with as few axes as its accesses allow, or a diagnostic.

    Args:
        graph: the group's graph.
        boundary: further accesses of the domain; None without any.
        is_moved: whether points have the order in which rows are moved.
    """
    if boundary is None and all(reduced_axes_of(n) is None for n in graph.nodes):
        anchor = largest_output(graph.outputs)
        if _has_one_axis(graph, anchor):
            return _one_axis_domain_info(graph, anchor)
    unmerged = _analyze_unmerged(graph, is_moved)
    if isinstance(unmerged, Diagnostic):
        return unmerged
    info, accesses, pinned = unmerged
    all_accesses = accesses if boundary is None else [*accesses, *boundary(info.domain)]
    merged = merge_axes(info.domain, all_accesses, pinned)
    if len(merged.axes) == len(info.domain.axes):
        return info
    return _analyze_merged(graph, merged.axes, is_moved)


@lru_cache(maxsize=256)
def _analyze_unmerged(
    graph: Graph, is_moved: bool
) -> tuple[DomainInfo, list[Sum], frozenset[Var]] | Diagnostic:
    """Return the domain with all axes apart, or a diagnostic.

    Returns: the domain, the accesses to inputs with the integers of which values are made, and the
    axes that must not be merged.
    """
    reductions = [(n, axes) for n in graph.nodes if (axes := reduced_axes_of(n)) is not None]
    orders = row_orders(graph) if is_moved else {}
    if reductions:
        first, reduced = reductions[0]
        anchor = known_shape(first.inputs[0])
        if first in orders:
            anchor = orders[first].shape
            reduced = ReducedAxes((len(anchor) - 1,))
        info = _unmerged_domain_info(anchor, reduced, graph)
        info.orders = orders
    else:
        info = _unmerged_domain_info(largest_output(graph.outputs), None, graph)
    problem = _propagate_uses(info)
    divided = _divided_variables(info.accesses)
    info.pinned |= divided
    return problem or (info, [*info.accesses, *info.integers], frozenset(divided))


def _unmerged_domain_info(anchor: Shape, reduced: ReducedAxes | None, graph: Graph) -> DomainInfo:
    """Return a domain over a shape with all axes apart, without kinds of values yet."""
    nodes = (n for n in graph.nodes if not is_leaf(n))
    domain = domain_over(anchor, reduced, shapes_of_others(anchor, nodes))
    chunks = None if reduced is None else reduced.chunks
    return DomainInfo(graph, domain, anchor if chunks else None, chunks)


def shapes_of_others(anchor: Shape, nodes: Iterable[Node]) -> list[Shape]:
    """Return the shapes, each once, of values with as many elements as a shape but another one."""
    total = numel(anchor)
    shapes = (known_shape(e) for n in nodes for e in n.entries)
    return list(dict.fromkeys(s for s in shapes if s != anchor and numel(s) == total))


def domain_over(anchor: Shape, reduced: ReducedAxes | None, others: list[Shape]) -> Domain:
    """Return a domain with all axes apart.

    Args:
        anchor: the shape of values with an element for each point.
        reduced: the reduced dimensions; None without a reduction.
        others: the other shapes of such values. Axes are divided so that all shapes have dimensions
            of whole axes, except where there are chunks.
    """
    dims = None if reduced is None else reduced.axes
    if reduced is not None and reduced.chunks is not None:
        return Domain(axes_of(anchor, dims, reduced.chunks))
    return Domain(_refined_axes(anchor, dims, others))


@lru_cache(maxsize=1024)
def _analyze_merged(
    graph: Graph, axes: tuple[Axis, ...], is_moved: bool = False
) -> DomainInfo | Diagnostic:
    """Return the domain with some axes merged, or a diagnostic.

    Args:
        graph: the group's graph, which has a domain with all axes apart.
        axes: the axes with merged ones.
        is_moved: whether points have the order in which rows are moved.
    """
    unmerged = _analyze_unmerged(graph, is_moved)
    assert not isinstance(unmerged, Diagnostic)
    other = unmerged[0]
    info = DomainInfo(graph, Domain(axes), other.chunked_shape, other.chunks, other.orders)
    return _propagate_uses(info) or info


def _has_one_axis(graph: Graph, shape: Shape) -> bool:
    """Return whether all values have one shape, or are inputs of one element, and none is moved."""
    return all(
        (s := known_shape(e)) == shape or (is_leaf(n) and numel(s) == 1)
        for n in graph.nodes
        for e in n.entries
    ) and not any(n.op is not None and n.op.has_attr("FElement") for n in graph.nodes)


def _one_axis_domain_info(graph: Graph, shape: Shape) -> DomainInfo:
    """Return the domain with one axis of a group of elementwise operators of one shape."""
    info = DomainInfo(graph, Domain((Axis(Var("i0", dt.int64), numel(shape)),)))
    index = info.domain.index(ValueKind.POINT, shape)
    for node in graph.nodes:
        if not is_leaf(node):
            info.kinds[node] = ValueKind.POINT
            info.uses[node] = {index: ValueKind.POINT}
        elif node.is_variable:
            has_points = known_shape(node.entries[0]) == shape
            info.input_accesses[node] = [info.domain.point_index if has_points else Sum(())]
    return info


def largest_output(outputs: Iterable[Entry]) -> Shape:
    """Return the shape of the largest output, the first of several.

    An output of unknown size counts as larger than one of known size.
    """
    shapes = [known_shape(e) for e in outputs]
    sizes = [numel(s) for s in shapes]
    comparable = [n if isinstance(n, int) else 1 << 62 for n in sizes]
    return shapes[comparable.index(max(comparable))]


def _propagate_uses(info: DomainInfo) -> Diagnostic | None:
    """Record how all values are read, users before producers; return why one does not fit."""
    domain, graph, uses = info.domain, info.graph, info.uses
    for entry in graph.outputs:
        if is_leaf(entry.node):
            return Diagnostic("graph.output_is_input", at=(entry.node.label,))
        kind = output_kind(info, entry)
        if kind is None:
            count = numel(known_shape(entry))
            facts = {"value": entry.name, "count": count, "domain": domain.size}
            return Diagnostic("domain.output", facts, (entry.node.label,))
        uses.setdefault(entry.node, {})[domain.index(kind, known_shape(entry))] = kind
    for node in reversed(graph.nodes):
        if is_leaf(node):
            continue
        reduced = reduced_axes_of(node)
        node_uses = uses.get(node, {})
        if reduced is not None:
            problem = check_reduction(info, node, reduced, node_uses)
            if problem is not None:
                return problem
        for index, kind in node_uses.items():
            info.kinds[node] = info.kinds.get(node, kind) | kind
            problem = _propagate_reads(info, node, index, reduced is not None)
            if problem is not None:
                return problem
    return None


def _propagate_reads(
    info: DomainInfo, node: Node, index: Index, is_reduction: bool
) -> Diagnostic | None:
    """Record the reads of one element of a node; return why one does not fit.

    Args:
        info: the domain, which receives the reads.
        node: the node.
        index: the index of the element.
        is_reduction: whether the node is a reduction or a scan, whose operand must be POINT.
    """
    for entry, read_index in info.reads(node, index):
        if not is_leaf(entry.node):
            kind = info.kind_at(entry, read_index)
            if is_reduction and kind is not ValueKind.POINT:
                return Diagnostic("domain.value_reduced", {"value": node.label}, (node.label,))
            info.uses.setdefault(entry.node, {})[read_index] = kind
        elif entry.node.is_variable:
            access = info.linear(read_index, known_shape(entry))
            info.accesses.append(access)
            info.input_accesses.setdefault(entry.node, []).append(access)
    return None


def output_kind(info: DomainInfo, entry: Entry) -> ValueKind | None:
    """Return the kind of an output, POINT or REDUCED; None if it has another number of elements."""
    total = numel(known_shape(entry))
    if reduce_of(entry.node) is not None or total != info.domain.size:
        return ValueKind.REDUCED if info.domain.reduced and total == info.domain.rows else None
    return ValueKind.POINT


def check_reduction(
    info: DomainInfo, node: Node, reduced: ReducedAxes, uses: dict[Index, ValueKind]
) -> Diagnostic | None:
    """Return why a reduction or scan does not fit a domain; None if it does.

    Args:
        info: the domain, which receives the direction of a scan.
        node: the reduction or scan.
        reduced: its reduced axes.
        uses: the indices at which it is read, with their kinds.
    """
    domain, scan = info.domain, scan_of(node)
    at = (node.label,)
    value = {"value": node.label}
    result_kind = ValueKind.REDUCED if scan is None else ValueKind.POINT
    if any(kind is not result_kind for kind in uses.values()):
        code = "domain.value_row" if scan is None else "domain.value_point"
        return Diagnostic(code, value, at)
    if scan is not None:
        if info.reverse not in (None, scan.reverse):
            return Diagnostic("domain.value_scan", value, at)
        info.reverse = scan.reverse
    shape = known_shape(node.inputs[0])
    order = info.orders.get(node)
    if order is not None and order.count * shape[-1] == domain.size:
        index = info.index(node.inputs[0], ValueKind.POINT, node)
        is_whole = domain.reduces_dims(index, reduced.axes) and order.count == domain.rows
        return None if is_whole else Diagnostic("domain.value_axes", value, at)
    if order is not None or numel(shape) != domain.size:
        return Diagnostic("domain.value_shape", {"value": node.label, "shape": shape}, at)
    has_other_shape = info.chunked_shape is not None and shape != info.chunked_shape
    if reduced.chunks != info.chunks or has_other_shape:
        return Diagnostic("domain.value_chunks", value, at)
    if not domain.reduces_dims(domain.index(ValueKind.POINT, shape), reduced.axes):
        return Diagnostic("domain.value_axes", value, at)
    return None


def _divided_variables(accesses: list[Sum]) -> set[Var]:
    """Return the variables that accesses divide, or that they are not linear in otherwise."""
    atoms = (atom for access in accesses for atom, _ in access.terms if not isinstance(atom, Var))
    return {v for atom in atoms for v in variables(atom)}


def merge_axes(domain: Domain, accesses: list[Sum], pinned: Set[Var]) -> Domain:
    """Return a domain in which neighbouring axes are one if all accesses step through both as one.

    Args:
        domain: the domain.
        accesses: linear indices.
        pinned: further axes that stay, besides those that accesses divide.
    """
    unmergeable = pinned | _divided_variables(accesses)
    groups: list[list[Axis]] = []
    for axis in domain.axes:
        if groups and _can_merge(groups[-1][-1], axis, accesses, unmergeable):
            groups[-1].append(axis)
        else:
            groups.append([axis])
    return Domain(
        tuple(
            Axis(
                Var(f"i{k}", dt.int64),
                numel(a.extent for a in group),
                group[0].reduced,
                None if group[0].chunk is None else numel(a.length for a in group),
                group[0].is_chunk_axis,
            )
            for k, group in enumerate(groups)
        )
    )


def _can_merge(outer: Axis, inner: Axis, accesses: list[Sum], unmergeable: Set[Var]) -> bool:
    """Return whether two neighbouring axes may be one.

    Args:
        outer: the first axis.
        inner: the next one.
        accesses: linear indices.
        unmergeable: the axes that stay.
    """
    return (
        outer.reduced == inner.reduced
        and inner.chunk is None
        and not outer.is_chunk_axis
        and unmergeable.isdisjoint((outer.var, inner.var))
        and all(
            a.coefficient(outer.var) == a.coefficient(inner.var) * inner.extent for a in accesses
        )
    )
