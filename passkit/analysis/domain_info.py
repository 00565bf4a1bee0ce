"""Layouts: the iteration space of a group, and where each of its values lives in it.

A value is FULL (one for each point), ROW (one for each point of the kept axes: what a reduction
leaves) or INLINE (computed where it is read, at any index).
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
    """Axes of ``shape``, cut finer where other shapes of the group have dimensions of their own."""
    finer = common_refinement([shape, *shapes])
    if finer is None or not finer:
        return axes_of(shape, reduced)
    parts = list(finer)
    flags: list[int] = []
    for k in range(len(shape) - 1, -1, -1):
        product: Extent = 1
        while product != shape[k]:
            product = parts.pop() * product
            if reduced is not None and k in reduced:
                flags.append(len(parts))
    return axes_of(finer, None if reduced is None else tuple(flags))


class DomainInfo:
    """A group's space and the kind of every node in it.

    ``cut`` is the shape that all its reductions fold in the same ``chunks``, if they do;
    ``reverse`` says which way its scans run, if it has any. ``orders`` has the nodes whose rows are
    those of the space in another order.
    """

    def __init__(
        self,
        graph: Graph,
        domain: Domain,
        cut: Shape | None = None,
        chunks: Chunks | None = None,
        orders: Mapping[Node, RowOrder] | None = None,
    ) -> None:
        self.graph, self.domain = graph, domain
        self.cut, self.chunks = cut, chunks
        self.orders = orders or {}
        self.reverse: bool | None = None
        self.kinds: dict[Node, ValueKind] = {}
        self.uses: dict[Node, dict[Index, ValueKind]] = {}
        self.accesses: list[Sum] = []
        self.input_accesses: dict[Node, list[Sum]] = {}
        self.pinned: set[Var] = set()
        self.numbers: list[Sum] = []
        self._linear: dict[tuple[Index, Shape], Sum] = {}
        self._indices: dict[tuple[Entry, ValueKind], Index] = {}

    def index(self, entry: Entry, kind: ValueKind) -> Index:
        """The index of a FULL or ROW value at the current point."""
        shape, order = known_shape(entry), self.orders.get(entry.node)
        if order is None:
            return self.domain.index(kind, shape)
        if (entry, kind) not in self._indices:
            *rows, last = self.domain.index(ValueKind.POINT, order.shape)
            own = order.rows_at(tuple(rows), shape, self.domain.extents)
            point: Expr = last if kind is ValueKind.POINT else size_of(0)
            self._indices[entry, kind] = (*own, point)
        return self._indices[entry, kind]

    def linear(self, index: Index, shape: Shape) -> Sum:
        """The row-major linear index, found once: chains of elementwise values share theirs."""
        found = self._linear.get((index, shape))
        if found is None:
            found = self._linear[index, shape] = ravel(index, shape, self.domain.extents)
        return found

    def reads(self, node: Node, index: Index) -> list[tuple[Entry, Index]]:
        """The entries that ``node`` reads for its element at ``index``, and where."""
        found = reduce_of(node)
        if found is not None:
            entry = node.inputs[0]
            return [(entry, self.index(entry, ValueKind.POINT))]
        if scan_of(node) is not None:
            return [(node.inputs[0], index)]
        found_at = accesses_of(node, index, self.domain.extents)
        self.pinned |= found_at.pinned
        self.numbers += [normal(x, self.domain.extents) for x in found_at.numbers]
        return [(node.inputs[k], i) for k, i in found_at.at]

    def kind_at(self, entry: Entry, index: Index) -> ValueKind:
        """Return whether an access reads a value at the current point, in the row, or elsewhere.

        The result of a reduction is a value of the row even where every row has one point.
        """
        shape = known_shape(entry)
        if entry.node in self.orders:
            kind = ValueKind.REDUCED if shape[-1] == 1 else ValueKind.POINT
            return kind if index == self.index(entry, kind) else ValueKind.INLINE
        total = numel(shape)
        linear = self.linear(index, shape)
        full = total == self.domain.size and linear == self.domain.full
        if full and reduce_of(entry.node) is None:
            return ValueKind.POINT
        if self.domain.reduced and total == self.domain.rows and linear == self.domain.row:
            return ValueKind.REDUCED
        return ValueKind.INLINE


@lru_cache(maxsize=256)
def analyze_domain(graph: Graph) -> DomainInfo | Diagnostic:
    """Return where every value of a group lives, or why the group has no common space.

    Where rows are moved after they were reduced, the space has the order of what is moved. Kept for
    the passes that ask again about the same graph; not to be changed.
    """
    plain = analyze_domain_in_order(graph)
    if isinstance(plain, Diagnostic) and row_orders(graph):
        moved = _analyze(graph, None, is_moved=True)
        return plain if isinstance(moved, Diagnostic) else moved
    return plain


def analyze_domain_in_order(graph: Graph) -> DomainInfo | Diagnostic:
    """Return the layout in which each value has its elements in the order of the space.

    Short reductions are written out where nothing but what they leave is wanted, so that the space
    has no axis of theirs: the layout is then of a graph without these reductions.
    """
    plain = _analyze(graph, None)
    for unrolled in unrolled_graphs(graph):
        info = _analyze(unrolled, None)
        if not isinstance(info, Diagnostic) and _is_unrolling_better(info, plain):
            return info
    return plain


Boundary = Callable[[Domain], list[Sum]]
"""More accesses, which keep axes apart that the group alone would join."""


def analyze_bounded_domain(graph: Graph, apart: Boundary) -> DomainInfo | Diagnostic:
    """The same for a part of a stitched kernel, with axes that a boundary goes through apart."""
    return _analyze(graph, apart)


def _is_unrolling_better(info: DomainInfo, other: DomainInfo | Diagnostic) -> bool:
    """Return whether a layout computes short reductions once, and reads no worse across lanes."""
    for node, at in info.uses.items():
        if node.op is UNROLLED_REDUCE and any(kind is not ValueKind.POINT for kind in at.values()):
            return False
    if isinstance(other, Diagnostic):
        needs_near = bool(info.domain.reduced)  # parts of a stitched kernel may read in order
    else:
        needs_near = other.domain.axes[-1].reduced
    return not needs_near or all(_is_contiguous(info.domain, a) for a in info.accesses)


def _is_contiguous(domain: Domain, access: Sum) -> bool:
    """Whether lanes read whole cache lines, or rows of a few elements that are read repeatedly.

    They are read repeatedly where the index does not depend on some axis of the space.
    """
    lane = domain.axes[-1].var
    step = access.coefficient(lane)
    if not all(isinstance(x, Var) or lane not in set(variables(x)) for x, _ in access.terms):
        return False
    named = {v for x, _ in access.terms for v in variables(x)}
    again = any(a.var not in named for a in domain.axes)
    return step in (0, 1, 2, -1) or (again and isinstance(step, int) and 0 < step <= MAX_STRIDE)


def _analyze(
    graph: Graph, apart: Boundary | None, is_moved: bool = False
) -> DomainInfo | Diagnostic:
    """Return the layout of a group in its own order, or in that in which its rows are moved."""
    if apart is None and all(reduced_axes_of(n) is None for n in graph.nodes):
        anchor = largest_output(graph.outputs)
        if _has_one_axis(graph, anchor):
            return _one_axis_domain_info(graph, anchor)
    spread = _analyze_unmerged(graph, is_moved)
    if isinstance(spread, Diagnostic):
        return spread
    info, accesses, pinned = spread
    more = accesses if apart is None else [*accesses, *apart(info.domain)]
    merged = merge_axes(info.domain, more, pinned)
    if len(merged.axes) == len(info.domain.axes):
        return info
    return _analyze_merged(graph, merged.axes, is_moved)


@lru_cache(maxsize=256)
def _analyze_unmerged(
    graph: Graph, is_moved: bool
) -> tuple[DomainInfo, list[Sum], frozenset[Var]] | Diagnostic:
    """Return the layout with all axes apart, its accesses to inputs, and the axes that must stay.

    Integers that values are made of count as accesses.
    """
    reductions = [(n, f) for n in graph.nodes if (f := reduced_axes_of(n)) is not None]
    orders = row_orders(graph) if is_moved else {}
    if reductions:
        first, reduction = reductions[0]
        anchor = known_shape(first.inputs[0])
        if first in orders:
            anchor = orders[first].shape
            reduction = ReducedAxes((len(anchor) - 1,))
        info = unmerged_domain_info(anchor, reduction, graph)
        info.orders = orders
    else:
        info = unmerged_domain_info(largest_output(graph.outputs), None, graph)
    problem = _propagate_uses(info)
    stepped = [*info.accesses, *info.numbers]
    info.pinned |= _divided_variables(info.accesses)
    return problem or (info, stepped, frozenset(_divided_variables(info.accesses)))


def unmerged_domain_info(anchor: Shape, folding: ReducedAxes | None, graph: Graph) -> DomainInfo:
    """The layout of a group, still empty, over one shape with all axes apart."""
    nodes = (n for n in graph.nodes if not is_leaf(n))
    domain = domain_over(anchor, folding, shapes_of_others(anchor, nodes))
    chunks = None if folding is None else folding.chunks
    return DomainInfo(graph, domain, anchor if chunks else None, chunks)


def shapes_of_others(anchor: Shape, nodes: Iterable[Node]) -> list[Shape]:
    """The other shapes that values of as many elements have, each once."""
    total = numel(anchor)
    return list(
        dict.fromkeys(
            s
            for n in nodes
            for e in n.entries
            if (s := known_shape(e)) != anchor and numel(s) == total
        )
    )


def domain_over(anchor: Shape, folding: ReducedAxes | None, others: list[Shape]) -> Domain:
    """The space of a shape with all axes apart, cut finer where ``others`` need it."""
    reduced = None if folding is None else folding.axes
    if folding is not None and folding.chunks is not None:
        return Domain(axes_of(anchor, reduced, folding.chunks))
    return Domain(_refined_axes(anchor, reduced, others))


@lru_cache(maxsize=1024)
def _analyze_merged(
    graph: Graph, axes: tuple[Axis, ...], is_moved: bool = False
) -> DomainInfo | Diagnostic:
    """Return the layout with these axes, some of which are joined."""
    spread = _analyze_unmerged(graph, is_moved)
    assert not isinstance(spread, Diagnostic)
    info = DomainInfo(graph, Domain(axes), spread[0].cut, spread[0].chunks, spread[0].orders)
    return _propagate_uses(info) or info


def _has_one_axis(graph: Graph, shape: Shape) -> bool:
    """Whether every value has one shape, or one element, so that one axis serves all."""
    return all(
        (s := known_shape(e)) == shape or (is_leaf(n) and numel(s) == 1)
        for n in graph.nodes
        for e in n.entries
    ) and not any(n.op is not None and n.op.has_attr("FElement") for n in graph.nodes)


def _one_axis_domain_info(graph: Graph, shape: Shape) -> DomainInfo:
    info = DomainInfo(graph, Domain((Axis(Var("i0", dt.int64), numel(shape)),)))
    index = info.domain.index(ValueKind.POINT, shape)
    for node in graph.nodes:
        if not is_leaf(node):
            info.kinds[node] = ValueKind.POINT
            info.uses[node] = {index: ValueKind.POINT}
        elif node.is_variable:
            same = known_shape(node.entries[0]) == shape
            info.input_accesses[node] = [info.domain.full if same else Sum(())]
    return info


def largest_output(outputs: Iterable[Entry]) -> Shape:
    """The shape of the largest output, the first of several; a size not known is large."""
    shapes = [known_shape(e) for e in outputs]
    known = [(numel(s), s) for s in shapes]
    return max(known, key=lambda t: t[0] if isinstance(t[0], int) else 1 << 62)[1]


def _propagate_uses(info: DomainInfo) -> Diagnostic | None:
    """Walk from what must be stored or folded to what that reads, users before producers."""
    domain, graph = info.domain, info.graph
    wanted = info.uses
    for entry in graph.outputs:
        if is_leaf(entry.node):
            return Diagnostic("graph.output_is_input", at=(entry.node.label,))
        kind = output_kind(info, entry)
        if kind is None:
            return Diagnostic(
                "domain.output",
                {
                    "value": entry.name,
                    "count": numel(known_shape(entry)),
                    "domain": domain.size,
                },
                (entry.node.label,),
            )
        wanted.setdefault(entry.node, {})[domain.index(kind, known_shape(entry))] = kind
    for node in reversed(graph.nodes):
        if is_leaf(node):
            continue
        at = wanted.get(node, {})
        folding = reduced_axes_of(node)
        if folding is not None:
            problem = check_reduction(info, node, folding, at)
            if problem is not None:
                return problem
        for index, kind in at.items():
            info.kinds[node] = info.kinds.get(node, kind) | kind
            for entry, where in info.reads(node, index):
                if is_leaf(entry.node):
                    if entry.node.is_variable:
                        shape = known_shape(entry)
                        access = info.linear(where, shape)
                        info.accesses.append(access)
                        info.input_accesses.setdefault(entry.node, []).append(access)
                else:
                    met = info.kind_at(entry, where)
                    if folding is not None and met is not ValueKind.POINT:
                        return Diagnostic(
                            "domain.value_reduced", {"value": node.label}, (node.label,)
                        )
                    wanted.setdefault(entry.node, {})[where] = met
    return None


def output_kind(info: DomainInfo, entry: Entry) -> ValueKind | None:
    """How an output lies in the space; None where it does not."""
    total = numel(known_shape(entry))
    if reduce_of(entry.node) is not None or total != info.domain.size:
        return ValueKind.REDUCED if info.domain.reduced and total == info.domain.rows else None
    return ValueKind.POINT


def check_reduction(
    info: DomainInfo, node: Node, found: ReducedAxes, at: dict[Index, ValueKind]
) -> Diagnostic | None:
    """Why a fold that is read ``at`` some indices does not fit the space, if so."""
    domain, scan = info.domain, scan_of(node)
    named = (node.label,)
    value = {"value": node.label}
    own = ValueKind.REDUCED if scan is None else ValueKind.POINT
    if any(kind is not own for kind in at.values()):
        code = "domain.value_row" if scan is None else "domain.value_point"
        return Diagnostic(code, value, named)
    if scan is not None:
        if info.reverse not in (None, scan.reverse):
            return Diagnostic("domain.value_scan", value, named)
        info.reverse = scan.reverse
    shape = known_shape(node.inputs[0])
    order = info.orders.get(node)
    if order is not None and order.count * shape[-1] == domain.size:
        index = info.index(node.inputs[0], ValueKind.POINT)
        is_whole = domain.reduces_dims(index, found.axes) and order.count == domain.rows
        return None if is_whole else Diagnostic("domain.value_axes", value, named)
    if order is not None or numel(shape) != domain.size:
        return Diagnostic("domain.value_shape", {"value": node.label, "shape": shape}, named)
    if found.chunks != info.chunks or (info.cut is not None and shape != info.cut):
        return Diagnostic("domain.value_chunks", value, named)
    if not domain.reduces_dims(domain.index(ValueKind.POINT, shape), found.axes):
        return Diagnostic("domain.value_axes", value, named)
    return None


def _divided_variables(accesses: list[Sum]) -> set[Var]:
    """The variables that accesses divide, or step through otherwise than evenly."""
    atoms = (atom for access in accesses for atom, _ in access.terms if not isinstance(atom, Var))
    return {v for atom in atoms for v in variables(atom)}


def merge_axes(domain: Domain, accesses: list[Sum], pinned: Set[Var]) -> Domain:
    """The space with neighbouring axes joined where every access steps through both as one.

    ``pinned`` axes are divided, or say where data is looked up; they stay.
    """
    pinned = pinned | _divided_variables(accesses)
    groups: list[list[Axis]] = []
    for axis in domain.axes:
        last = groups[-1][-1] if groups else None
        if (
            last is not None
            and last.reduced == axis.reduced
            and axis.chunk is None
            and not last.is_chunk_axis
            and axis.var not in pinned
            and last.var not in pinned
            and all(
                a.coefficient(last.var) == a.coefficient(axis.var) * axis.extent for a in accesses
            )
        ):
            groups[-1].append(axis)
        else:
            groups.append([axis])
    return Domain(
        tuple(
            Axis(
                Var(f"i{k}", dt.int64),
                numel(a.extent for a in g),
                g[0].reduced,
                None if g[0].chunk is None else numel(a.length for a in g),
                g[0].is_chunk_axis,
            )
            for k, g in enumerate(groups)
        )
    )
