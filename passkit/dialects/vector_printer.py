"""The printer of vector loops: a template for each statement of `passkit.ir.vector`.

It takes no decisions: the text follows from the statements alone.
"""

from __future__ import annotations

from collections.abc import Iterable

from attrs import field, frozen

from passkit.ast import Binary, Call, Cast, Expr, Select, Unary, Var
from passkit.ast.stage import Let, Level, Loop, Store
from passkit.ast.walk import children
from passkit.dialects.body import Body
from passkit.dialects.expressions import (
    ATOM,
    TERNARY,
    UNARY,
    Scalars,
    converted,
    literal,
    operator,
)
from passkit.dialects.templates import VectorTemplates
from passkit.errors import CodeGenError
from passkit.ir.loop import LetStmt, StoreStmt
from passkit.ir.vector import (
    MASK,
    MAX_BLOCK_ROWS,
    VECTORS,
    Accumulator,
    BeginRow,
    BlockFor,
    Column,
    EndRow,
    Finish,
    Gather,
    GuardedLoad,
    Lane,
    LoadColumns,
    LoadRowValues,
    Masked,
    PrefetchRows,
    PrefetchStmt,
    Prepared,
    PrepareReciprocal,
    PutRow,
    RowGroup,
    RowReciprocal,
    RowReciprocals,
    RowRegister,
    RowResults,
    RowsFor,
    RowStatement,
    RowValues,
    Scan,
    ScanVector,
    Scope,
    SerialFor,
    SetRowRegister,
    Splat,
    StoreRowResults,
    Stride,
    Take,
    TransposedLoad,
    TransposedRow,
    TransposedStore,
    VectorAssign,
    VectorDeclare,
    VectorFor,
    VectorLet,
    VectorStmt,
    When,
    WideLoad,
    WideStore,
    WideTransposedLoad,
)

NUMBERED = f"{MASK.name}, k"
"""The mask, and the number of the vector in its row, in an unrolled loop."""


@frozen
class VectorExpressions(Scalars):
    """Expressions in vector loops.

    Attributes:
        vectors: the templates of the language.
        names: the variables so far that are vectors.
    """

    vectors: VectorTemplates = field(kw_only=True)
    names: set[str] = field(factory=set, kw_only=True, eq=False)

    def is_vector(self, x: Expr) -> bool:
        """Return whether an expression is a vector: a part of it is one."""
        if isinstance(x, Var):
            return x.name in self.names
        return isinstance(x, VECTORS) or any(map(self.is_vector, children(x)))

    def stride(self, stride: Stride) -> str:
        """Return the text of a stride."""
        return self.expr(stride, UNARY) if isinstance(stride, Expr) else str(stride)

    def leveled(self, x: Expr) -> tuple[str, int]:
        """Return the text of an expression and its precedence."""
        v = self.vectors
        match x:
            case Lane(var):
                return v.element_number.format(var=var.name), ATOM
            case Masked(mask, condition, is_negated):
                template = v.mask_and_not if is_negated else v.mask_and
                text = template.format(mask=self.expr(mask), condition=self.expr(condition))
                return text, 0
            case Splat(value, like, dtype):
                kind = self.dialect.type_of(dtype)
                texts = {"type": kind, "value": self.expr(value), "like": self.expr(like)}
                return v.splat.format(**texts), ATOM
            case WideLoad():
                return self._wide_load(x), ATOM
            case Gather(buffer, index, mask, None):
                at, where = self.expr(index), self.expr(mask)
                return v.gather_at.format(buffer=buffer, index=at, mask=where), ATOM
            case Gather(buffer, index, mask, Var(var)):
                kind = self.dialect.type_of(x.dtype)
                at, where = self.expr(index), self.expr(mask)
                texts = {"type": kind, "var": var, "buffer": buffer, "index": at, "mask": where}
                return v.gather.format(**texts), ATOM
            case RowRegister(name):
                return f"{name}[k]", ATOM
            case Column(name, number):
                return v.column.format(name=name, k=number), ATOM
            case GuardedLoad(buffer, index, mask):
                at = self.address(buffer, index)
                return v.load_one.format(at=at, mask=self.expr(mask)), ATOM
            case Prepared(name, is_among):
                text = v.masked_divisor.format(name=name, mask=NUMBERED) if is_among else name
                return text, ATOM
        return self._operation(x) if self.is_vector(x) else super().leveled(x)

    def _operation(self, x: Expr) -> tuple[str, int]:
        """Return the text and the precedence of an operation with a vector as operand.

        Raises: CodeGenError for an expression that vector loops do not have.
        """
        match x:
            case Var(name):
                return name, ATOM
            case Unary(op, a):
                return op + self.expr(a, UNARY + 1), UNARY
            case Binary(_, a, b):
                op, level, right = operator(x)
                return f"{self.expr(a, level)} {op} {self.expr(b, right)}", level
            case Call(name, args):
                texts = ", ".join(map(self.expr, args))
                return f"{self.dialect.call_of(name, x.dtype)}({texts})", ATOM
            case Cast():
                return converted(x, self.expr, self.dialect), UNARY
            case Select(condition, a, b) if self.is_vector(condition):
                texts_by_name = {"a": self.expr(a), "b": self.expr(b)}
                condition_text = self.expr(condition)
                return self.vectors.select.format(condition=condition_text, **texts_by_name), ATOM
            case Select(condition, a, b):
                texts_by_name = {"a": self.expr(a), "b": self.expr(b)}
                condition_text = self.expr(condition, TERNARY + 1)
                return self.vectors.branch.format(condition=condition_text, **texts_by_name), ATOM
        raise CodeGenError(f"vector loops have no {type(x).__name__}")

    def _wide_load(self, x: WideLoad) -> str:
        """Return the text of a load at even distances."""
        v = self.vectors
        at, mask = self.address(x.buffer, x.index), self.expr(x.mask)
        if x.row_distance is not None:
            return v.row_groups.load.format(at=at, mask=mask, stride=self.stride(x.row_distance))
        templates = {1: v.load, 2: v.load_second, -1: v.load_back}
        template = templates.get(x.stride) if isinstance(x.stride, int) else None
        if template is not None:
            return template.format(at=at, mask=mask)
        return v.load_strided.format(at=at, stride=self.stride(x.stride), mask=mask)


class VectorPrinter:
    """Adds statements in vector form to the body of a kernel."""

    def __init__(self, body: Body) -> None:
        vectors = body.dialect.vectors
        assert vectors is not None
        self.body, self.vectors = body, vectors
        self.exprs = self._expressions()

    def _expressions(self, *names: str) -> VectorExpressions:
        """Return the printer of expressions, of which some variables are vectors."""
        scalars = self.body.scalars
        return VectorExpressions(
            scalars.dialect,
            scalars.sizes,
            scalars.registers,
            scalars.scratch,
            positions=scalars.positions,
            extents=scalars.extents,
            vectors=self.vectors,
            names=set(names),
        )

    def print(self, statements: Iterable[VectorStmt]) -> None:
        """Add statements in order."""
        for s in statements:
            self._statement(s)

    def _statement(self, s: VectorStmt) -> None:
        """Add a statement."""
        body, v, x = self.body, self.vectors, self.exprs
        match s:
            case LetStmt(var, value):
                body.let(Let(var, value))
                x.names.discard(var.name)  # another scope may have had a vector of this name
            case StoreStmt(buffer, index, value):
                body.store_once(Store(buffer, index, value))
            case VectorLet(var, value):
                kind = body.dialect.type_of(var.dtype)
                body.line(v.let.format(type=kind, name=var.name, value=x.expr(value)))
                x.names.add(var.name)
            case WideStore():
                self._store(s)
            case PrefetchStmt(buffer, index):
                if body.dialect.prefetch:
                    at = body.scalars.address(buffer, index)
                    body.line(body.dialect.prefetch.format(at=at, mask=MASK.name))
            case LoadColumns(name, count, buffer, index):
                at = body.scalars.address(buffer, index)
                body.line(v.columns.format(name=name, count=count, at=at, mask=MASK.name))
            case TransposedLoad() | WideTransposedLoad() | PrefetchRows():
                self._transposed_load(s)
            case TransposedRow(var, name, place):
                text = x.expr(place, UNARY)
                texts = {"type": body.dialect.type_of(var.dtype), "name": name, "place": text}
                body.line(v.transposed_row.format(vector=v.width, **texts))
                x.names.add(var.name)
            case TransposedStore(buffer, dtype, count, index):
                template = v.transposed_block if index is None else v.transposed_store
                at = "" if index is None else body.scalars.address(buffer, index)
                texts = {"type": body.dialect.type_of(dtype), "name": buffer, "at": at}
                body.line(template.format(count=x.expr(count), vector=v.width, **texts))
            case PutRow(buffer, place, value):
                texts = {"name": buffer, "place": x.expr(place, UNARY), "value": x.expr(value)}
                body.line(v.put_row.format(vector=v.width, **texts))
            case PrepareReciprocal():
                self._prepare(s)
            case Accumulator():
                body.line(
                    v.declare_accumulator.format(name=s.name, accumulator=self._accumulator(s))
                )
            case RowsFor():
                self._rows(s)
            case (
                RowResults()
                | BeginRow()
                | EndRow()
                | StoreRowResults()
                | RowReciprocals()
                | RowReciprocal()
            ):
                body.line(self._of_row(s))
            case LoadRowValues(var, buffer, index):
                at = body.scalars.address(buffer, index)
                body.line(v.row_groups.values.format(name=var.name, at=at))
            case RowValues(var):
                body.line(v.row_groups.value.format(name=var.name))
                x.names.add(var.name)
            case SetRowRegister(name, value):
                body.line(f"{name}[k] = {x.expr(value)};")
            case Take(name, value, is_numbered):
                mask = NUMBERED if is_numbered else MASK.name
                body.line(v.accumulate.format(acc=name, value=x.expr(value), mask=mask))
            case Finish(var, accumulator):
                kind = body.dialect.type_of(var.dtype)
                body.line(v.finish.format(type=kind, name=var.name, acc=accumulator))
            case VectorFor():
                self._vector_loop(s)
            case SerialFor(var, start, stop, statements, is_reversed):
                template = body.dialect.thread_reversed if is_reversed else body.dialect.thread
                body.loop(template, Loop(var, start, stop, Level.THREAD))
                self.print(statements)
                body.close()
            case BlockFor():
                self._blocks(s)
            case VectorDeclare(var, value):
                body.line(v.declare.format(name=var.name, value=x.expr(value)))
                x.names.add(var.name)
            case VectorAssign(var, value):
                body.line(f"{var.name} = {x.expr(value)};")
            case Scan():
                body.line(self._scan(s))
            case ScanVector(var, scan, value):
                texts = {"name": var.name, "scan": scan, "value": x.expr(value)}
                body.line(v.scan_vector.format(mask=MASK.name, **texts))
                x.names.add(var.name)
            case Scope(statements):
                body.scope()
                self.print(statements)
                body.close()
            case When(condition, statements):
                body.open(f"if ({body.scalars.expr(condition)})")
                self.print(statements)
                body.close()

    def _transposed_load(self, s: TransposedLoad | WideTransposedLoad | PrefetchRows) -> None:
        """Add the load of a block across its rows, or the prefetch of rows."""
        body, v, x = self.body, self.vectors, self.exprs
        texts = {
            "at": body.scalars.address(s.buffer, s.index),
            "stride": x.stride(s.stride),
            "count": x.expr(s.count),
        }
        match s:
            case PrefetchRows():
                text = v.prefetch_rows.format(**texts)
            case TransposedLoad():
                kind = body.dialect.type_of(s.dtype)
                template = v.dense_transposed_load if s.is_dense else v.transposed_load
                block = MAX_BLOCK_ROWS * v.width
                text = template.format(type=kind, name=s.name, vector=v.width, block=block, **texts)
            case WideTransposedLoad():
                kind = body.dialect.type_of(s.dtype)
                sizes = {"max_count": s.max_count, "width": s.width, "points": x.expr(s.points)}
                text = v.wide_transposed_load.format(type=kind, name=s.name, **sizes, **texts)
        for line in text.splitlines():
            body.line(line)

    def _store(self, s: WideStore) -> None:
        """Add the store of a vector."""
        body, v = self.body, self.vectors
        at, value = body.scalars.address(s.buffer, s.index), self.exprs.expr(s.value)
        if s.row_distance is not None:
            distance = self.exprs.stride(s.row_distance)
            texts = {"at": at, "value": value, "stride": distance, "mask": MASK.name}
            body.line(v.row_groups.store.format(**texts))
        elif s.stride == 1:
            body.streams |= s.stream
            template = v.stream if s.stream else v.store
            body.line(template.format(at=at, value=value, mask=MASK.name))
        else:
            stride = self.exprs.stride(s.stride)
            texts = {"at": at, "value": value, "stride": stride, "mask": MASK.name}
            body.line(v.store_strided.format(**texts))

    def _prepare(self, s: PrepareReciprocal) -> None:
        """Add the preparation of a divisor."""
        body, v = self.body, self.vectors
        template, (high, low) = v.divisor, ("", "")
        if s.parts is not None:
            template = v.known_divisor
            high, low = (literal(x, body.dialect) for x in s.parts)
        kind, text = body.dialect.type_of(s.value.dtype), body.scalars.expr(s.value)
        body.line(template.format(type=kind, name=s.name, value=text, high=high, low=low))

    def _accumulator(self, s: Accumulator) -> str:
        """Return the beginning of a reduction."""
        body, v = self.body, self.vectors
        texts = {"type": body.dialect.type_of(s.dtype), "width": s.width}
        if s.extreme:
            form = v.extreme_accumulator.format(which=s.extreme, **texts)
        elif s.is_blocked_sum:
            form = v.sum_accumulator.format(**texts)
        else:
            identity = body.scalars.expr(s.identity)
            function = self._function(s.combine)
            form = v.accumulator.format(identity=identity, function=function, **texts)
        return form

    def _function(self, combine: Expr) -> str:
        """Return the function of two vectors a and b by which a reduction or a scan combines."""
        v, text = self.vectors, self._expressions("a", "b").expr(combine)
        return v.functions.get(text) or v.function.format(combine=text)

    def _scan(self, s: Scan) -> str:
        """Return the beginning of a scan."""
        body = self.body
        return self.vectors.scan.format(
            name=s.name,
            type=body.dialect.type_of(s.dtype),
            exclusive=str(s.is_exclusive).lower(),
            reversed=str(s.is_reversed).lower(),
            identity=body.scalars.expr(s.identity),
            function=self._function(s.combine),
        )

    def _of_row(self, s: RowStatement) -> str:
        """Return the text of a statement about the rows of a tile."""
        body, expr = self.body, self.body.scalars.expr
        t = self.vectors.row_groups.rows if s.is_grouped else self.vectors.rows
        match s:
            case RowResults(accumulator, name, max_rows):
                return t.row_results.format(
                    name=name, max_rows=max_rows, accumulator=self._accumulator(accumulator)
                )
            case BeginRow(name):
                return t.begin_row.format(name=name)
            case EndRow(name, row):
                return t.end_row.format(name=name, row=expr(row))
            case StoreRowResults(name, buffer, count):
                return t.store_results.format(name=name, to=buffer, count=expr(count))
            case RowReciprocals(name, dtype, max_rows, buffer, count):
                kind, rows = body.dialect.type_of(dtype), expr(count)
                texts = {"type": kind, "name": name, "buffer": buffer, "count": rows}
                return t.reciprocals.format(max_rows=max_rows, **texts)
            case RowReciprocal(name, row):
                return t.reciprocal.format(name=name, row=expr(row))

    def _rows(self, s: RowsFor) -> None:
        """Add a loop over rows."""
        body, groups = self.body, self.vectors.row_groups
        if s.group is RowGroup.ONE:
            body.loop(body.dialect.thread, Loop(s.var, s.start, s.stop, Level.WARP, s.limit))
        else:
            template = groups.any_loop if s.group is RowGroup.ANY else groups.pair_loop
            start, rows = body.scalars.expr(s.start), body.scalars.expr(s.count)
            even = groups.even if s.is_even else ""
            texts = {"var": s.var.name, "start": start, "rows": rows, "even": even}
            body.open(template.format(length=s.length, **texts))
        self.print(s.body)
        body.close("}" if s.group is RowGroup.ONE else groups.end)

    def _blocks(self, s: BlockFor) -> None:
        """Add a loop over blocks."""
        body, v, var = self.body, self.vectors, s.var.name
        start, stop, size = (body.scalars.expr(x) for x in (s.start, s.stop, s.size))
        body.open(v.block_loop.format(var=var, start=start, stop=stop, count=size))
        body.line(v.block_end.format(var=var, stop=stop, count=size))
        self.print(s.body)
        body.close()

    def _vector_loop(self, s: VectorFor) -> None:
        """Add a vector loop."""
        body, v = self.body, self.vectors
        if s.is_of_rows:
            template = v.row_groups.vector_loop
        elif s.is_paired:
            template = v.paired_loop
        elif s.is_unrolled:
            template = v.unrolled_loop
        elif s.is_reversed:
            template = v.reversed_loop
        elif s.aligned is not None:
            template = v.aligned_loop
        elif s.width == v.width:
            template = v.whole_loop if s.is_whole else v.loop
        else:
            template = v.interleaved_loop
        body.open_loop(
            template,
            var=s.var.name,
            start=body.scalars.expr(s.start),
            stop=body.scalars.expr(s.stop),
            width=s.width,
            at="" if s.aligned is None else body.scalars.address(*s.aligned),
        )
        self.print(s.body)
        body.close(v.loop_end)
