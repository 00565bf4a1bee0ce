"""The local variables of one stage: each value is bound once, at the current point or inlined."""

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
from passkit.graph.node import Entry, Node, is_leaf
from passkit.graph.op import FElement
from passkit.ir.signs import Signs
from passkit.transforms.common_subexpressions import common_subexpressions
from passkit.transforms.guarded_loads import bind_guarded_loads

if TYPE_CHECKING:
    from passkit.transforms.build_stages import StageBuilder


class ValueBuilder:
    """Binds the values of a stage to local variables.

    Attributes:
        stages: the builder of all stages of the kernel.
        is_row_stage: whether the stage computes row values.
        lets: the local variables and scans of the stage, in order.
        is_reversed: whether a scan runs from the last point to the first.
        bound: the values that have a local variable, by entry and index.
        row_loads: the row values that were loaded from scratch.
        row_maxima: the entries whose maximum over a row a local variable is.
    """

    def __init__(self, stages: StageBuilder, is_row_stage: bool = False) -> None:
        self.stages, self.is_row_stage = stages, is_row_stage
        self.domain = stages.domain
        self.lets: list[Let | Running] = []
        self.is_reversed = False
        self.bound: dict[tuple[Entry, Index], Expr] = {}
        self.row_loads: dict[Load, Expr] = {}
        self.row_maxima: dict[Expr, Entry] = {}
        self._settle = by_extents(self.domain.extents)
        self._signs = Signs(self._is_at_most)

    def compute(self, roots: Iterable[Node]) -> None:
        """Bind the values at the current point that ``roots`` depend on, in the group's order."""
        required: set[Node] = set()
        todo = list(roots)
        while todo:
            node = todo.pop()
            if is_leaf(node) or node in required or reduce_of(node) is not None:
                continue
            if ValueKind.POINT not in self.stages.info.kinds.get(node, ValueKind.INLINE):
                continue
            required.add(node)
            if node not in self.stages.stored:
                todo += [e.node for e in node.inputs]
        for node in self.stages.nodes:
            if node in required:
                self.full(node.entries[0])

    def full(self, entry: Entry, reader: Node | None = None) -> Expr:
        """Return the value of ``entry`` at the current point; ``reader`` is as in its index."""
        index = self.stages.info.index(entry, ValueKind.POINT, reader)
        key = (entry, index)
        if key not in self.bound:
            self.bound[key] = self._full(entry, index)
        return self.bound[key]

    def _full(self, entry: Entry, index: Index) -> Expr:
        """Return a value at the current point that is not bound yet."""
        node = entry.node
        if is_leaf(node):
            return self._leaf(entry, index, is_guarded=False)
        if node in self.stages.stored:
            buffer, at = self.stages.staged_element(node)
            assert entry.dtype is not None
            return self.let(self.stages.names[node], Load(buffer, at, entry.dtype))
        scan = scan_of(node)
        value = self.at(node, index) if scan is None else self._scan(node, scan)
        return self.let(self.stages.names[node], value)

    def _scan(self, node: Node, scan: Scan) -> Expr:
        """Add a scan statement for a node, and return its value."""
        value = self.full(node.inputs[0])
        if scan.prepare is not None:
            value = scan.prepare(value)
        var = Var(self.stages.new_local(f"{self.stages.names[node]}_total"), scan.identity.dtype)
        at = self.stages.accumulator(node)
        self.lets.append(Running(var, value, scan.identity, scan.combine, scan.exclusive, *at))
        self.is_reversed |= scan.reverse
        total: Expr = var if scan.finish is None else scan.finish(var)
        return cast(total, node.entries[0].dtype)

    def at(self, node: Node, index: Index, is_guarded: bool = False) -> Expr:
        """Return the expression of a node's value at an index.

        Args:
            node: the node.
            index: the index of the element.
            is_guarded: whether ``index`` is valid only in the branch of a select that reads it.
                Loads at it must then stay inside the expression.

        Raises: CodeGenError if the node has several results, or cannot be computed at an index.
        """
        assert node.op is not None
        guarded: frozenset[int] = frozenset()
        if not is_guarded and FElement.get(node.op.name) is not None:
            guarded = guarded_accesses(node, index)
        number = itertools.count()

        def reader(entry: Entry) -> Reader:
            def read(*at: Expr) -> Expr:
                return self._read(entry, at, next(number) in guarded or is_guarded)

            return read

        values = element_expr(node, index, [reader(e) for e in node.inputs])
        if len(values) != 1:
            raise CodeGenError(f"{node.where} has several results in one kernel")
        (out,) = values
        if FElement.get(node.op.name) is not None:
            out = shortened(settled(out, self._settle), self.domain.extents)
        dtype = node.entries[0].dtype
        if out.dtype is not dtype:
            raise CodeGenError(
                f"{node.where}: its code gives {out.dtype}, its type rule {dtype}; make "
                f"FCodeGen and FInferType agree"
            )
        return out

    def _read(self, entry: Entry, at: Index, is_guarded: bool) -> Expr:
        """Return the value of an operand at an index, bound to a local variable unless guarded."""
        extents = self.domain.extents
        index = tuple(expression(normal(i, extents)) for i in at)
        if is_leaf(entry.node):
            return self._leaf(entry, index, is_guarded)
        kind = self.stages.info.kind_at(entry, index)
        if kind is ValueKind.REDUCED and entry in self.stages.row_values:
            return self.row(entry)
        if kind is ValueKind.POINT and not self.is_row_stage:
            return self.full(entry)
        key = (entry, index)
        if is_guarded and key not in self.bound:
            return self.at(entry.node, index, is_guarded)
        if key not in self.bound:
            self.bound[key] = self.let(self.stages.names[entry.node], self.at(entry.node, index))
        return self.bound[key]

    def row(self, entry: Entry) -> Expr:
        """Return a row value, which is loaded once if it is in scratch memory."""
        stored = self.stages.row_values[entry]
        value = self._row_load(stored) if isinstance(stored, Load) else stored
        if stored in self.stages.row_maxima:
            self.row_maxima[value] = self.stages.row_maxima[stored]
        return value

    def _is_at_most(self, a: Expr, b: Expr) -> bool:
        """Return whether ``b`` is the maximum of a row, and ``a`` a value of that row."""
        entry = self.row_maxima.get(b)
        if entry is None or self.is_row_stage:
            return False
        return self.bound.get((entry, self.stages.info.index(entry, ValueKind.POINT))) == a

    def _row_load(self, stored: Load) -> Expr:
        """Return a local variable for the load of a row value."""
        if stored not in self.row_loads:
            name = f"{self.stages.array_values[stored.buffer]}_row"
            self.row_loads[stored] = self.let(name, stored)
        return self.row_loads[stored]

    def _leaf(self, entry: Entry, index: Index, is_guarded: bool) -> Expr:
        """Return a literal, or the load of an input, bound to a local variable unless guarded."""
        node = entry.node
        assert entry.dtype is not None
        if node.op is not None:
            return const(node.params["value"].reshape(-1)[0], entry.dtype)
        key = (entry, index)
        if key in self.bound:
            return self.bound[key]
        buffer, at = self.stages.buffer_map.input(node, index)
        load = Load(buffer, expression(at), entry.dtype)
        if is_guarded:
            return load
        self.bound[key] = self.let(f"{buffer}_{len(self.lets)}", load)
        return self.bound[key]

    def let(self, name: str, value: Expr) -> Var:
        """Return a local variable for ``value``, and bind its common subexpressions, too."""
        if isinstance(value, Var):
            return value
        value = bind_guarded_loads(value, lambda part: self.let(f"{name}_arm", part))
        variables: dict[Expr, Expr] = {}

        def replaced(x: Expr) -> Expr:
            if isinstance(x, Load):
                return x  # an index stays an expression of scalars
            return variables[x] if x in variables else replace_children(x, replaced)

        if parts(value) > LONGEST:
            for part in common_subexpressions(value):
                variables[part] = self._bind(f"{name}_part", replaced(part))
            value = replaced(value)
        return self._bind(name, value)

    def _bind(self, name: str, value: Expr) -> Var:
        """Add a local variable and record the sign of its value."""
        value = self._signs.with_variants(value)
        var = Var(self.stages.new_local(name), value.dtype)
        self.lets.append(Let(var, value))
        self._signs.bind(var, value)
        return var
