"""The locals of one stage: each value bound once, at the current point or wherever it is read."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import TYPE_CHECKING

from passkit.analysis.accesses import Index, Reader, element_expr, guarded_accesses
from passkit.analysis.domain import ValueKind
from passkit.ast import Expr, Load, Scan, Var, cast, const
from passkit.ast.choice import by_extents, settled, shortened
from passkit.ast.index import expression, normal
from passkit.ast.stage import Let, Running
from passkit.ast.tidy import LONGEST, parts, replace_children
from passkit.errors import CodeGenError
from passkit.graph.attribute_calls import reduce_of, scan_of
from passkit.graph.node import Entry, Node
from passkit.graph.node import is_leaf as is_free
from passkit.graph.op import FElement
from passkit.ir.signs import Signs
from passkit.transforms.common_subexpressions import common_subexpressions
from passkit.transforms.guarded_loads import bind_guarded_loads

if TYPE_CHECKING:
    from passkit.transforms.build_stages import StageBuilder


class ValueBuilder:
    """Binds what a stage computes to locals, in ``lets``; ``rows`` for a stage of row values.

    ``down`` says that a scan among them runs from the last point to the first.
    """

    def __init__(self, lowering: StageBuilder, rows: bool = False) -> None:
        self.of, self.rows = lowering, rows
        self.domain = lowering.domain
        self.lets: list[Let | Running] = []
        self.down = False
        self.settles = by_extents(self.domain.extents)
        self.bound: dict[tuple[Entry, Index], Expr] = {}
        self.fetched: dict[Load, Expr] = {}
        self.greatest: dict[Expr, Entry] = {}  # a row value -> that whose greatest it is
        self.signs = Signs(self._at_most)

    def compute(self, roots: Iterable[Node]) -> None:
        """Bind every FULL value that ``roots`` need, in the group's order."""
        needed: set[Node] = set()
        todo = list(roots)
        while todo:
            node = todo.pop()
            if is_free(node) or node in needed or reduce_of(node) is not None:
                continue
            if ValueKind.FULL not in self.of.info.roles.get(node, ValueKind.INLINE):
                continue
            needed.add(node)
            if node not in self.of.written:
                todo += [e.node for e in node.inputs]
        for node in self.of.nodes:
            if node in needed:
                self.full(node.entries[0])

    def full(self, entry: Entry) -> Expr:
        """The value of ``entry`` at the current point."""
        index = self.of.info.index(entry, ValueKind.FULL)
        key = (entry, index)
        if key not in self.bound:
            self.bound[key] = self._full(entry, index)
        return self.bound[key]

    def _full(self, entry: Entry, index: Index) -> Expr:
        node = entry.node
        if is_free(node):
            return self._leaf(entry, index, guarded=False)
        if node in self.of.written:
            buffer, at = self.of.kept_at(node)
            assert entry.dtype is not None
            return self.let(self.of.names[node], Load(buffer, at, entry.dtype))
        scan = scan_of(node)
        value = self.at(node, index) if scan is None else self._running(node, scan)
        return self.let(self.of.names[node], value)

    def _running(self, node: Node, scan: Scan) -> Expr:
        """The value of a scan: it is bound where it stands, once for each step."""
        value = self.full(node.inputs[0])
        if scan.prepare is not None:
            value = scan.prepare(value)
        var = Var(self.of.local(f"{self.of.names[node]}_total"), scan.identity.dtype)
        at = self.of.total_at(node)
        self.lets.append(Running(var, value, scan.identity, scan.combine, scan.exclusive, *at))
        self.down |= scan.reverse
        total: Expr = var if scan.finish is None else scan.finish(var)
        wanted = node.entries[0].dtype
        return cast(total, wanted)

    def at(self, node: Node, index: Index, guarded: bool = False) -> Expr:
        """Return the expression of a node's value at an index.

        Args:
            node: the node.
            index: the index of the element.
            guarded: whether ``index`` is valid only in the branch of a select that reads it. Loads
                at it must then stay inside the expression.

        Raises: CodeGenError if the node has several results, or cannot be computed at an index.
        """
        assert node.op is not None
        inside: frozenset[int] = frozenset()
        if not guarded and FElement.get(node.op.name) is not None:
            inside = guarded_accesses(node, index)
        number = itertools.count()

        def reader(entry: Entry) -> Reader:
            def read(*at: Expr) -> Expr:
                return self._read(entry, at, next(number) in inside or guarded)

            return read

        values = element_expr(node, index, [reader(e) for e in node.inputs])
        if len(values) != 1:
            raise CodeGenError(f"{node.where} has several results in one kernel")
        (out,) = values
        if FElement.get(node.op.name) is not None:
            out = shortened(settled(out, self.settles), self.domain.extents)
        wanted = node.entries[0].dtype
        if out.dtype is not wanted:
            raise CodeGenError(
                f"{node.where}: its code gives {out.dtype}, its type rule {wanted}; make "
                f"FCodeGen and FInferType agree"
            )
        return out

    def _read(self, entry: Entry, at: Index, guarded: bool) -> Expr:
        extents = self.domain.extents
        index = tuple(expression(normal(i, extents)) for i in at)
        if is_free(entry.node):
            return self._leaf(entry, index, guarded)
        role = self.of.info.role_at(entry, index)
        if role is ValueKind.ROW and entry in self.of.row_values:
            return self.row(entry)
        if role is ValueKind.FULL and not self.rows:
            return self.full(entry)
        key = (entry, index)
        if guarded and key not in self.bound:
            return self.at(entry.node, index, guarded)
        if key not in self.bound:
            self.bound[key] = self.let(self.of.names[entry.node], self.at(entry.node, index))
        return self.bound[key]

    def row(self, entry: Entry) -> Expr:
        """A row value; one that lies in scratch is fetched once."""
        kept = self.of.row_values[entry]
        value = self._fetched(kept) if isinstance(kept, Load) else kept
        if kept in self.of.greatest:
            self.greatest[value] = self.of.greatest[kept]
        return value

    def _at_most(self, a: Expr, b: Expr) -> bool:
        """Whether ``b`` is the greatest value of a row, and ``a`` one of those."""
        entry = self.greatest.get(b)
        if entry is None or self.rows:
            return False
        return self.bound.get((entry, self.of.info.index(entry, ValueKind.FULL))) == a

    def _fetched(self, kept: Load) -> Expr:
        if kept not in self.fetched:
            self.fetched[kept] = self.let(f"{self.of.holder[kept.buffer]}_row", kept)
        return self.fetched[kept]

    def _leaf(self, entry: Entry, index: Index, guarded: bool) -> Expr:
        """A load or a literal."""
        node = entry.node
        assert entry.dtype is not None
        if node.op is not None:
            return const(node.params["value"].reshape(-1)[0], entry.dtype)
        key = (entry, index)
        if key in self.bound:
            return self.bound[key]
        buffer, where = self.of.homes.input(node, index)
        load = Load(buffer, expression(where), entry.dtype)
        if guarded:
            return load
        self.bound[key] = self.let(f"{buffer}_{len(self.lets)}", load)
        return self.bound[key]

    def let(self, name: str, value: Expr) -> Var:
        """A local for ``value``, unless it is one; and for what it would compute twice."""
        if isinstance(value, Var):
            return value
        value = bind_guarded_loads(value, lambda part: self.let(f"{name}_arm", part))
        known: dict[Expr, Expr] = {}

        def change(x: Expr) -> Expr:
            if isinstance(x, Load):
                return x  # an index stays one number for all lanes
            return known[x] if x in known else replace_children(x, change)

        if parts(value) > LONGEST:
            for part in common_subexpressions(value):
                known[part] = self._bind(f"{name}_part", change(part))
            value = change(value)
        return self._bind(name, value)

    def _bind(self, name: str, value: Expr) -> Var:
        value = self.signs.with_variants(value)
        var = Var(self.of.local(name), value.dtype)
        self.lets.append(Let(var, value))
        self.signs.bind(var, value)
        return var
