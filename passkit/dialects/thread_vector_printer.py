"""The printer of loops whose threads compute with vectors, see `VectorThreadFor`."""

from __future__ import annotations

from attrs import field, frozen

from passkit.ast import Binary, Call, Cast, Expr, Load, Select, Unary, Var
from passkit.ast.stage import Fold, Let, Store
from passkit.ast.walk import variables
from passkit.dialects.body import Body
from passkit.dialects.expressions import (
    ATOM,
    PRECEDENCE,
    TERNARY,
    UNARY,
    enclosed,
    operator,
)
from passkit.dialects.templates import ThreadVectorTemplates
from passkit.ir.rewrite import substitute
from passkit.ir.threads import AccessArray, VectorThreadFor, first_of, term_of, total_of
from passkit.values import dtype as dt
from passkit.values.dtype import DType


@frozen
class ThreadVectorPrinter:
    """Adds a loop whose threads compute with vectors to the body of a kernel.

    Attributes:
        body: the body of the kernel.
        vectors: the loop.
        widths: the number of bytes of an element of each variable that is a mask.
    """

    body: Body = field(repr=False)
    vectors: VectorThreadFor
    widths: dict[str, int] = field(factory=dict, eq=False, repr=False)

    @property
    def templates(self) -> ThreadVectorTemplates:
        """The templates of the language."""
        accesses = self.body.dialect.accesses
        assert accesses is not None and accesses.vectors is not None
        return accesses.vectors

    def varies(self, x: Expr) -> bool:
        """Return whether a value differs from element to element."""
        return not self.vectors.varying.isdisjoint(variables(x))

    def print(self) -> None:
        """Add the loop, in a scope of its own, and the ends of its reductions."""
        body, loop, n = self.body, self.vectors.loop, self.vectors.count
        name = loop.var.name
        assert body.dialect.accesses is not None
        t = body.dialect.accesses
        body.scalars.positions.add(name)
        start, stop = (body.scalars.expr(x, ATOM) for x in (loop.start, loop.stop))
        reductions = [s for s in self.vectors.body if isinstance(s, Fold)]
        body.scope()
        length = stop if start == "0" else f"{stop} - {start}"
        body.line(t.whole.format(name=name, value=f"({length} + {n - 1}) / {n}"))
        for f in reductions:
            body.line(f"{self._kind(f.var.dtype)} {total_of(f).name} = {self._splat(f.identity)};")
        body.open_loop(body.dialect.lane, var=f"{name}_vector", start="0", stop=f"{name}_vectors")
        first = f"{name}_vector * {n}"
        body.line(t.first.format(name=name, at=first if start == "0" else f"{start} + {first}"))
        body.scalars.positions.add(f"{name}_first")
        self._local(f"{body.dialect.type_of(dt.int64)} {name}_left", f"{stop} - {name}_first")
        if self.vectors.reads_number:
            numbers = ", ".join(map(str, range(n)))
            text = self._formatted(
                self.templates.element_numbers, dt.int64, first=f"{name}_first", numbers=numbers
            )
            self._local(f"{self._kind(dt.int64)} {name}", text)
        for b in self.vectors.arrays:
            if b.is_loaded:
                self._local(f"{self._kind(b.dtype)} {b.name}", self._access(self.templates.load, b))
        for s in self.vectors.body:
            self._statement(s)
        body.close()
        for f, partial in zip(reductions, self.vectors.partials, strict=True):
            self._finish(f, partial)
        body.close()

    def _statement(self, s: Let | Store | Fold) -> None:
        """Add a statement."""
        match s:
            case Let(var, value) if not self.varies(value):
                self.body.let(s)
            case Let(var, value) if var.dtype is dt.bool_:
                width = self.widths[var.name] = self._width(value)
                kind = f"{self.templates.masks[width]}{self.vectors.count}"
                self._local(f"{kind} {var.name}", self.expr(value))
            case Let(var, value):
                self._local(f"{self._kind(var.dtype)} {var.name}", self.expr(value))
            case Store(buffer, index, value):
                array = self._array(buffer, index)
                text = self._number(value, value.dtype)
                self.body.line(self._access(self.templates.store, array, value=text) + ";")
            case Fold():
                self._reduction(s)

    def _local(self, head: str, value: str) -> None:
        """Add the declaration of a constant."""
        self.body.line(f"const {head} = {value};")

    def _reduction(self, f: Fold) -> None:
        """Add one step of a reduction, of the elements that exist."""
        term, total = term_of(f), total_of(f)
        self._local(f"{self._kind(term.dtype)} {term.name}", self._splat(f.value))
        new = self.expr(substitute(f.combine, {"a": total, "b": term}))
        remaining = f"{self.vectors.loop.var.name}_left"
        values = {"old": total.name, "new": new, "remaining": remaining}
        text = self._formatted(self.templates.masked_update, f.var.dtype, **values)
        self.body.line(f"{total.name} = {text};")

    def _finish(self, f: Fold, partial: Var) -> None:
        """Add a thread's own result: that of its vector's elements, one after the other."""
        combine = self.body.scalars.expr(substitute(f.combine, {"a": partial}))
        values = {"name": total_of(f).name, "acc": partial.name, "combine": combine}
        text = self._formatted(self.templates.reduce_elements, f.var.dtype, **values)
        for line in text.splitlines():
            self.body.line(line)

    def _access(self, template: str, b: AccessArray, **values: str) -> str:
        """Return the load or store of an array, or of the elements that exist."""
        var = self.vectors.loop.var.name
        index = substitute(b.index, {var: first_of(self.vectors.loop)})
        scalars = self.body.scalars
        space = self.templates.spaces[b.buffer in scalars.scratch]
        at = scalars.address(b.buffer, index)
        return self._formatted(
            template, b.dtype, at=at, remaining=f"{var}_left", space=space, **values
        )

    def _formatted(self, template: str, dtype: DType, **values: str) -> str:
        """Return a template for elements of a dtype, with the values of its placeholders."""
        kind = self.body.dialect.type_of(dtype)
        mask = self.templates.masks[dtype.nbytes]
        return template.format(type=kind, count=self.vectors.count, mask=mask, **values)

    def _kind(self, dtype: DType) -> str:
        """Return the type of a vector."""
        return self._formatted(self.templates.kind, dtype)

    def _array(self, buffer: str, index: Expr) -> AccessArray:
        """Return the array that an element of a buffer is in."""
        return next(a for a in self.vectors.arrays if (a.buffer, a.index) == (buffer, index))

    # Expressions.

    def expr(self, x: Expr, outer: int = 0) -> str:
        """Return the text of an expression inside one of precedence ``outer``."""
        return enclosed(*self._leveled(x), outer)

    def _leveled(self, x: Expr) -> tuple[str, int]:
        """Return the text of an expression and its precedence."""
        if not self.varies(x):
            return self.body.scalars.leveled(x)
        match x:
            case Load():
                name = self._array(x.buffer, x.index).name
                if x.dtype is not dt.bool_:
                    return name, ATOM
                zero = self._formatted(self.templates.splat, x.dtype, value="0")
                return f"{name} != {zero}", PRECEDENCE["!="]
            case Unary(op, a):
                return op + self.expr(a, UNARY + 1), UNARY
            case Binary():
                return self._binary(x)
            case Call(name, args):
                kind = self.body.dialect.type_of(x.dtype)
                call = self.templates.calls[name].format(type=kind, count=self.vectors.count)
                return f"{call}({', '.join(map(self._splat, args))})", ATOM
            case Cast(a):
                return self._number(a, x.dtype), ATOM
            case Select(condition, a, b):
                return self._select(condition, a, b), ATOM
        assert isinstance(x, Var)
        return x.name, ATOM

    def _binary(self, x: Binary) -> tuple[str, int]:
        """Return the text and the precedence of an operation on vectors."""
        op, level, right = operator(x)
        if x.a.dtype is dt.bool_:
            width = self._width(x)
            return f"{self._mask(x.a, width, level)} {op} {self._mask(x.b, width, right)}", level
        return f"{self._operand(x.a, level)} {op} {self._operand(x.b, right)}", level

    def _operand(self, x: Expr, level: int) -> str:
        """Return an operand of arithmetic as text; the language extends scalars that are floats.

        ``level`` is the precedence below which it is put into parentheses.
        """
        if x.dtype.is_float or self.varies(x):
            return self.expr(x, level)
        return self._splat(x)

    def _select(self, condition: Expr, a: Expr, b: Expr) -> str:
        """Return a choice by a scalar or by a mask."""
        chosen, other = self._splat(a), self._splat(b)
        if not self.varies(condition):
            return f"({self.expr(condition, TERNARY + 1)} ? {chosen} : {other})"
        mask = self._mask(condition, a.dtype.nbytes)
        return self._formatted(self.templates.select, a.dtype, a=chosen, b=other, condition=mask)

    def _splat(self, x: Expr) -> str:
        """Return an expression as a vector."""
        text = self.expr(x)
        if self.varies(x):
            return text
        return self._formatted(self.templates.splat, x.dtype, value=text)

    def _number(self, x: Expr, dtype: DType) -> str:
        """Return a vector converted to elements of a dtype; true is 1."""
        if not self.varies(x):
            text = self.body.scalars.expr(x if x.dtype is dtype else Cast(x, dtype))
            return self._formatted(self.templates.splat, dtype, value=text)
        if x.dtype is dt.bool_:
            return self._formatted(
                self.templates.convert, dtype, value=f"-{self.expr(x, UNARY + 1)}"
            )
        if x.dtype is dtype:
            return self.expr(x)
        return self._formatted(self.templates.convert, dtype, value=self.expr(x))

    def _width(self, x: Expr) -> int:
        """Return the number of bytes of an element of a mask."""
        match x:
            case Var(name) if name in self.widths:
                return self.widths[name]
            case Unary(_, a):
                return self._width(a)
            case Binary(_, a, b):
                if a.dtype is not dt.bool_:
                    return a.dtype.nbytes
                return self._width(a if self.varies(a) else b)
        return 1

    def _mask(self, x: Expr, width: int, outer: int = 0) -> str:
        """Return a mask with elements of ``width`` bytes, inside of precedence ``outer``."""
        kind = self.templates.masks[width]
        if not self.varies(x):
            value = f"{self.expr(x, TERNARY + 1)} ? -1 : 0"
            return self.templates.splat.format(type=kind, count=self.vectors.count, value=value)
        if self._width(x) == width:
            return self.expr(x, outer)
        return self.templates.convert.format(
            type=kind, count=self.vectors.count, value=self.expr(x)
        )
