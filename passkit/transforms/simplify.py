"""simplify: index arithmetic in canonical form, with the parts that unrolling makes constant last.

An address ``x0 + (row * 1024 + lane * 4) + k * 128`` in a loop over k that is unrolled is one base
and a constant offset in each access. So an index is written as a sum of two parts: what does not
change in unrolled loops, and what does.
"""

from __future__ import annotations

from attrs import evolve

from passkit.ast import Binary, Const, Expr, Load, SizeOf, Var
from passkit.ast.index import Known, Sum, expression, normal
from passkit.ast.tidy import replace_children
from passkit.ast.walk import children, variables, walk
from passkit.ir.index import plus, with_literals
from passkit.ir.loop import (
    Bind,
    For,
    If,
    KernelIR,
    LetStmt,
    Stmt,
    StoreStmt,
    ThreadIndex,
    VectorLoad,
    VectorStore,
    index_let,
)
from passkit.ir.rewrite import map_expressions, substitute, without_unused
from passkit.values import dtype as dt
from passkit.values.size import Extent

_INDEX_NODES = (Const, Var, Binary, ThreadIndex, SizeOf)


def simplify(kernel: KernelIR) -> KernelIR:
    """Return the kernel with simplified indices and without unused definitions."""
    return evolve(kernel, body=without_unused(_IndexSimplifier().statements(kernel.body, {})))


class _IndexSimplifier:
    """The rewriting of one kernel.

    ``constants`` are the variables of unrolled loops around the current statement.
    """

    def __init__(self) -> None:
        self.constants: set[str] = set()
        self.extents = Known(())  # none is known; it caches sums

    def statements(self, body: tuple[Stmt, ...], outer: dict[str, Expr]) -> tuple[Stmt, ...]:
        """Return a body with simplified indices; ``outer`` has definitions that are inlined."""
        inlined = dict(outer)
        out: list[Stmt] = []
        for statement in body:
            if isinstance(statement, LetStmt) and statement.is_index:
                out += self._definition(statement, inlined)
            else:
                out.append(self._statement(statement, inlined))
        return tuple(out)

    def _definition(self, statement: LetStmt, inlined: dict[str, Expr]) -> list[Stmt]:
        """Return the definition of an index variable, or none if it is added to ``inlined``.

        A sum that varies in an unrolled loop is inlined, so that its parts join those of the
        indices that it is used in.
        """
        if not self._is_index(statement.value):
            return [self._statement(statement, inlined)]
        value = self._index(statement.value, inlined)
        is_simple = isinstance(value, Var) or self._varies(value)
        if is_simple and self._is_sum(statement.value):
            inlined[statement.var.name] = value
            return []
        return [index_let(statement.var, value)]

    def _statement(self, statement: Stmt, inlined: dict[str, Expr]) -> Stmt:
        """Return a statement, with those inside it, with simplified indices."""
        match statement:
            case VectorLoad() | VectorStore():
                return map_expressions(statement, lambda x: self._index(x, inlined))
            case For():
                is_constant = statement.bind in (Bind.UNROLL, Bind.VECTOR)
                added = {statement.var.name} if is_constant else set()
                self.constants |= added
                body = self.statements(statement.body, inlined)
                self.constants -= added
                start, stop = (self._value(x, inlined) for x in (statement.start, statement.stop))
                return For(statement.var, start, stop, statement.bind, body, statement.step)
            case If():
                condition = self._value(statement.condition, inlined)
                inner = self.statements(statement.body, inlined)
                otherwise = self.statements(statement.otherwise, inlined)
                return If(condition, inner, otherwise, statement.is_peeled)
            case StoreStmt():
                index, value = statement.index, statement.value
                index, value = self._index(index, inlined), self._value(value, inlined)
                return StoreStmt(statement.buffer, index, value, statement.stream)
        return map_expressions(statement, lambda x: self._value(x, inlined))

    def _value(self, x: Expr, inlined: dict[str, Expr]) -> Expr:
        """Return a value with the indices of its loads simplified."""
        if isinstance(x, Load):
            return Load(x.buffer, self._index(x.index, inlined), x.dtype)
        if isinstance(x, Var):
            return inlined.get(x.name, x)
        return replace_children(x, lambda child: self._value(child, inlined))

    def _is_sum(self, x: Expr) -> bool:
        """Return whether a definition is index arithmetic: a sum of products.

        It has quotients only where unrolling makes them constants.
        """
        if isinstance(x, Binary) and self._is_constant(x):
            return True
        is_quotient = isinstance(x, Binary) and x.op not in ("+", "-", "*")
        is_integer = x.dtype is dt.int64 and isinstance(x, _INDEX_NODES)
        return is_integer and not is_quotient and all(self._is_sum(y) for y in children(x))

    def _index(self, x: Expr, inlined: dict[str, Expr]) -> Expr:
        """Return an index as a sum of what unrolling does not change, and what it does."""
        x = substitute(x, inlined)
        if isinstance(x, (Var, Const)):
            return x
        if not self._is_index(x):
            return self._value(x, {})
        total = normal(x, self.extents)
        fixed: list[tuple[Expr, Extent]] = []
        varying: list[tuple[Expr, Extent]] = []
        for term in total.terms:
            (varying if self._is_constant(term[0]) else fixed).append(term)
        if not varying and total.constant == 0 and fixed:
            return _expression(total)
        second = _expression(Sum(tuple(varying), total.constant))
        return plus(_expression(Sum(tuple(fixed))), second) if fixed else second

    def _is_index(self, x: Expr) -> bool:
        """Return whether an expression is index arithmetic only, quotients included."""
        return all(y.dtype is dt.int64 and isinstance(y, _INDEX_NODES) for y in walk(x))

    def _varies(self, x: Expr) -> bool:
        """Return whether an index has a variable of an unrolled loop."""
        return any(v.name in self.constants for v in variables(x)) if self.constants else False

    def _is_constant(self, atom: Expr) -> bool:
        """Return whether unrolling makes an atom of a sum a constant."""
        if isinstance(atom, Var):
            return atom.name in self.constants
        if not self.constants:
            return False
        inner = children(atom)
        return bool(inner) and all(_is_number(y) or self._is_constant(y) for y in inner)


def _is_number(x: Expr) -> bool:
    """Return whether an expression is a literal, or a size that is known."""
    return isinstance(x, Const) or (isinstance(x, SizeOf) and isinstance(x.size, int))


def _expression(total: Sum) -> Expr:
    """Return a sum as an expression with literals."""
    return with_literals(expression(total))
