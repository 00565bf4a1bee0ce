"""The iteration space of a group, and where each of its values lives in it.

A value is FULL (one for each point), ROW (one for each point of the kept axes: what a reduction
leaves) or INLINE (computed where it is read, at any index).
"""

from __future__ import annotations

from enum import Flag, auto
from functools import cached_property

from attrs import field, frozen

from passkit import dtype as dt
from passkit.ast import Chunks, Reduce, Scan, Var
from passkit.graph import Graph
from passkit.index import Extents, Sum, common_refinement, ravel, unravel
from passkit.node import Entry, Node, known_shape
from passkit.op import FReduce, FScan
from passkit.reads import Index, reads_of
from passkit.size import Extent, Shape, numel
from passkit.walk import variables


class Role(Flag):
    """How a value of a group lies in its space."""

    FULL = auto()
    ROW = auto()
    INLINE = auto()


@frozen
class Axis:
    """One dimension of the space; a reduced one is what the group's reductions and scans fold.

    Of an axis with a ``chunk`` so many steps at a time are folded. Another axis, first of all,
    is ``counting`` the chunks: what is folded lies along it, no point does.
    """

    var: Var
    extent: Extent
    reduced: bool = False
    chunk: Extent | None = None
    counting: bool = False

    @property
    def steps(self) -> Extent:
        """The steps along the axis that one row takes."""
        return self.extent if self.chunk is None else self.chunk


@frozen
class Infeasible:
    """Why a group cannot be one kernel; ``node`` is where it failed."""

    code: str
    reason: str
    node: Node | None = field(default=None, eq=False)


class Space:
    """Axes in row-major order."""

    def __init__(self, axes: tuple[Axis, ...]) -> None:
        self.axes = axes
        self._indices: dict[tuple[Role, Shape], Index] = {}  # a group asks for few, and often

    @cached_property
    def extents(self) -> Extents:
        """Extent of each axis variable."""
        return {a.var.name: a.extent for a in self.axes}

    @cached_property
    def kept(self) -> tuple[Axis, ...]:
        """The axes of a row value."""
        return tuple(a for a in self.axes if not a.reduced)

    @cached_property
    def reduced(self) -> tuple[Axis, ...]:
        """The axes that reductions fold."""
        return tuple(a for a in self.axes if a.reduced)

    @cached_property
    def points(self) -> tuple[Axis, ...]:
        """The axes of a FULL value."""
        return tuple(a for a in self.axes if not a.counting)

    @cached_property
    def full(self) -> Sum:
        """The linear index of a FULL value."""
        return self._linear(self.points)

    @cached_property
    def row(self) -> Sum:
        """The linear index of a ROW value."""
        return self._linear(self.kept)

    @cached_property
    def size(self) -> Extent:
        """The number of points."""
        return numel(a.extent for a in self.points)

    @cached_property
    def rows(self) -> Extent:
        """The number of points of the kept axes."""
        return numel(a.extent for a in self.kept)

    def _linear(self, axes: tuple[Axis, ...]) -> Sum:
        return ravel([a.var for a in axes], tuple(a.extent for a in axes), self.extents)

    def folds(self, index: Index, axes: tuple[int, ...]) -> bool:
        """Whether dimensions ``axes`` of ``index`` run over the reduced axes and no other does."""
        folded = {a.var for a in self.reduced}
        for k, i in enumerate(index):
            inside = set(variables(i))
            if not (inside <= folded if k in axes else inside.isdisjoint(folded)):
                return False
        return True

    def index(self, role: Role, shape: Shape) -> Index:
        """The index in ``shape`` of a FULL or ROW value at the current point."""
        key = role, shape
        if key not in self._indices:
            linear = self.full if role is Role.FULL else self.row
            self._indices[key] = unravel(linear, shape, self.extents)
        return self._indices[key]


def reduce_of(node: Node) -> Reduce | None:
    """What a reduction folds, or None for another operator."""
    rule = FReduce.get(node.op.name) if node.op is not None else None
    return None if rule is None else rule(node)


def scan_of(node: Node) -> Scan | None:
    """What a scan folds step by step, or None for another operator."""
    rule = FScan.get(node.op.name) if node.op is not None else None
    return None if rule is None else rule(node)


@frozen
class Folding:
    """The axes along which an operator folds its input, and in what chunks."""

    axes: tuple[int, ...]
    chunks: Chunks | None = None


def folding_of(node: Node) -> Folding | None:
    """How a reduction or a scan lies in its input; None for another operator."""
    found = reduce_of(node)
    if found is not None:
        return Folding(found.axes, found.chunks)
    scan = scan_of(node)
    return None if scan is None else Folding((scan.axis,))


def axes_of(
    shape: Shape, reduced: tuple[int, ...] | None, chunks: Chunks | None = None
) -> tuple[Axis, ...]:
    """An axis for each dimension of ``shape`` that is not 1, and one that counts ``chunks``.

    Where something is folded (``reduced`` is not None) there is a folded axis in any case.
    """
    cut = -1 if chunks is None else chunks.axis
    kept = [k for k, n in enumerate(shape) if n != 1 or k == cut]
    parts = [(shape[k], k in (reduced or ()), _chunk(chunks, k), False) for k in kept]
    if reduced is not None and not any(r for _, r, _, _ in parts):
        parts.append((1, True, None, False))
    if chunks is not None:
        parts.insert(0, (num_chunks(shape, chunks), False, None, True))
    parts = parts or [(1, False, None, False)]
    return tuple(Axis(Var(f"i{k}", dt.int64), *p) for k, p in enumerate(parts))


def _chunk(chunks: Chunks | None, axis: int) -> Extent | None:
    return chunks.length if chunks is not None and chunks.axis == axis else None


def num_chunks(shape: Shape, chunks: Chunks) -> Extent:
    """How many chunks there are; the last may be shorter."""
    return (shape[chunks.axis] + (chunks.length - 1)) // chunks.length


def _refined(
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


class Layout:
    """A group's space and the role of every node in it.

    ``cut`` is the shape that all its reductions fold in the same ``chunks``, if they do;
    ``reverse`` says which way its scans run, if it has any.
    """

    def __init__(
        self, graph: Graph, space: Space, cut: Shape | None = None, chunks: Chunks | None = None
    ) -> None:
        self.graph, self.space = graph, space
        self.cut, self.chunks = cut, chunks
        self.reverse: bool | None = None
        self.roles: dict[Node, Role] = {}
        self.demands: dict[Node, dict[Index, Role]] = {}
        self.accesses: list[Sum] = []
        self.input_reads: dict[Node, list[Sum]] = {}
        self.pinned: set[Var] = set()

    def reads(self, node: Node, index: Index) -> list[tuple[Entry, Index]]:
        """The entries that ``node`` reads for its element at ``index``, and where."""
        found = reduce_of(node)
        if found is not None:
            entry = node.inputs[0]
            return [(entry, self.space.index(Role.FULL, known_shape(entry)))]
        if scan_of(node) is not None:
            return [(node.inputs[0], index)]
        found_at = reads_of(node, index, self.space.extents)
        self.pinned |= found_at.pinned
        return [(node.inputs[k], i) for k, i in found_at.at]

    def role_at(self, entry: Entry, index: Index) -> Role:
        """Whether this read meets the value at the current point, or row, or elsewhere.

        What a reduction leaves is a row even where every row has one point.
        """
        shape = known_shape(entry)
        total = numel(shape)
        linear = ravel(index, shape, self.space.extents)
        full = total == self.space.size and linear == self.space.full
        if full and reduce_of(entry.node) is None:
            return Role.FULL
        if self.space.reduced and total == self.space.rows and linear == self.space.row:
            return Role.ROW
        return Role.INLINE


def is_free(node: Node) -> bool:
    """Whether a node is no operator of the group: a variable or a constant."""
    return node.op is None or node.op.name == "constant"


def lay_out(graph: Graph) -> Layout | Infeasible:
    """Where every value of a group lives, or why the group has no common space."""
    folds = [(n, f) for n in graph.nodes if (f := folding_of(n)) is not None]
    reduced: tuple[int, ...] | None
    chunks = None
    if folds:
        first, found = folds[0]
        anchor = known_shape(first.inputs[0])
        reduced, chunks = found.axes, found.chunks
    else:
        anchor, reduced = _largest(graph), None
        if _is_flat(graph, anchor):
            return _flat(graph, anchor)
    total = numel(anchor)
    others = list(
        dict.fromkeys(
            s
            for n in graph.nodes
            if not is_free(n)
            for e in n.entries
            if (s := known_shape(e)) != anchor and numel(s) == total
        )
    )
    cut = axes_of(anchor, reduced, chunks) if chunks else _refined(anchor, reduced, others)
    space = Space(cut)
    layout = Layout(graph, space, anchor if chunks else None, chunks)
    problem = _demand(layout)
    if problem is not None:
        return problem
    merged = merge_axes(space, layout.accesses, layout.pinned)
    if len(merged.axes) == len(space.axes):
        return layout
    layout = Layout(graph, merged, layout.cut, chunks)
    return _demand(layout) or layout


def _is_flat(graph: Graph, shape: Shape) -> bool:
    """Whether every value has one shape, or one element, so that one axis serves all."""
    return all(
        (s := known_shape(e)) == shape or (is_free(n) and numel(s) == 1)
        for n in graph.nodes
        for e in n.entries
    ) and not any(n.op is not None and n.op.has_attr("FElement") for n in graph.nodes)


def _flat(graph: Graph, shape: Shape) -> Layout:
    layout = Layout(graph, Space((Axis(Var("i0", dt.int64), numel(shape)),)))
    index = layout.space.index(Role.FULL, shape)
    for node in graph.nodes:
        if not is_free(node):
            layout.roles[node] = Role.FULL
            layout.demands[node] = {index: Role.FULL}
        elif node.is_variable:
            same = known_shape(node.entries[0]) == shape
            layout.input_reads[node] = [layout.space.full if same else Sum(())]
    return layout


def _largest(graph: Graph) -> Shape:
    shapes = [known_shape(e) for e in graph.outputs]
    known = [(numel(s), s) for s in shapes]
    return max(known, key=lambda t: t[0] if isinstance(t[0], int) else 1 << 62)[1]


def _demand(layout: Layout) -> Infeasible | None:
    """Walk from what must be stored or folded to what that reads, users before producers."""
    space, graph = layout.space, layout.graph
    wanted = layout.demands
    for entry in graph.outputs:
        if is_free(entry.node):
            return Infeasible("pass_through", "an output that is an input", entry.node)
        role = _output_role(layout, entry)
        if role is None:
            return Infeasible(
                "shape",
                f"{entry.name} has {numel(known_shape(entry))} elements, the group's space "
                f"{space.size}",
                entry.node,
            )
        wanted.setdefault(entry.node, {})[space.index(role, known_shape(entry))] = role
    for node in reversed(graph.nodes):
        if is_free(node):
            continue
        at = wanted.get(node, {})
        folding = folding_of(node)
        if folding is not None:
            problem = _check_fold(layout, node, folding, at)
            if problem is not None:
                return problem
        for index, role in at.items():
            layout.roles[node] = layout.roles.get(node, role) | role
            for entry, where in layout.reads(node, index):
                if is_free(entry.node):
                    if entry.node.is_variable:
                        shape = known_shape(entry)
                        access = ravel(where, shape, space.extents)
                        layout.accesses.append(access)
                        layout.input_reads.setdefault(entry.node, []).append(access)
                else:
                    met = layout.role_at(entry, where)
                    wanted.setdefault(entry.node, {})[where] = met
    return None


def _output_role(layout: Layout, entry: Entry) -> Role | None:
    total = numel(known_shape(entry))
    if reduce_of(entry.node) is not None or total != layout.space.size:
        return Role.ROW if layout.space.reduced and total == layout.space.rows else None
    return Role.FULL


def _check_fold(
    layout: Layout, node: Node, found: Folding, at: dict[Index, Role]
) -> Infeasible | None:
    space, scan = layout.space, scan_of(node)
    own = Role.ROW if scan is None else Role.FULL
    if any(role is not own for role in at.values()):
        where = "row" if scan is None else "point"
        return Infeasible("index", f"{node.label} is read at another {where} than its own", node)
    if scan is not None:
        if layout.reverse not in (None, scan.reverse):
            return Infeasible("order", f"{node.label} runs against another scan", node)
        layout.reverse = scan.reverse
    shape = known_shape(node.inputs[0])
    if numel(shape) != space.size:
        return Infeasible("space", f"{node.label} reduces {shape}, not the group's space", node)
    if found.chunks != layout.chunks or (layout.cut is not None and shape != layout.cut):
        return Infeasible("axes", f"{node.label} folds other chunks than its group", node)
    if not space.folds(space.index(Role.FULL, shape), found.axes):
        return Infeasible("axes", f"{node.label} reduces other axes than its group", node)
    return None


def merge_axes(space: Space, accesses: list[Sum], pinned: set[Var]) -> Space:
    """The space with neighbouring axes joined where every access steps through both as one.

    ``pinned`` axes are used as values, are divided, or say where data is looked up; they stay.
    """
    for access in accesses:
        for atom, _ in access.terms:
            if not isinstance(atom, Var):
                pinned |= set(variables(atom))
    groups: list[list[Axis]] = []
    for axis in space.axes:
        last = groups[-1][-1] if groups else None
        if (
            last is not None
            and last.reduced == axis.reduced
            and axis.chunk is None
            and not last.counting
            and axis.var not in pinned
            and last.var not in pinned
            and all(
                a.coefficient(last.var) == a.coefficient(axis.var) * axis.extent for a in accesses
            )
        ):
            groups[-1].append(axis)
        else:
            groups.append([axis])
    return Space(
        tuple(
            Axis(
                Var(f"i{k}", dt.int64),
                numel(a.extent for a in g),
                g[0].reduced,
                None if g[0].chunk is None else numel(a.steps for a in g),
                g[0].counting,
            )
            for k, g in enumerate(groups)
        )
    )
