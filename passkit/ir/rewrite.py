"""Rewriting loop IR: expressions of statements, substitution of variables, and dead code."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from attrs import evolve

from passkit.ast.expr import Expr, Load, Var
from passkit.ast.folds import left, right
from passkit.ast.tidy import replace_children
from passkit.ast.walk import children
from passkit.ir.loop import (
    Assign,
    Declare,
    For,
    If,
    LastBlock,
    LetStmt,
    ReduceStmt,
    Stmt,
    StoreStmt,
    VectorLoad,
    VectorStore,
    expressions_of,
    walk_statements,
)

Change = Callable[[Expr], Expr]


def map_children(x: Expr, change: Change) -> Expr:
    """Return ``x`` with ``change`` applied to its direct operands."""
    return replace_children(x, change)


def operands(x: Expr) -> tuple[Expr, ...]:
    """Return the direct operands of an expression of loop IR."""
    return children(x)


def substitute(x: Expr, values: Mapping[str, Expr]) -> Expr:
    """Return ``x`` with expressions in place of the variables of these names."""
    if isinstance(x, Var):
        return values.get(x.name, x)
    return map_children(x, lambda child: substitute(child, values))


def combined(combine: Expr, a: Expr, b: Expr) -> Expr:
    """Return ``combine``, of `passkit.ast.left` and `passkit.ast.right`, for two values."""
    return substitute(combine, {left(a.dtype).name: a, right(b.dtype).name: b})


def variable_names(x: Expr) -> set[str]:
    """Return the names of the variables in an expression."""
    names: set[str] = set()
    todo = [x]
    while todo:
        x = todo.pop()
        if isinstance(x, Var):
            names.add(x.name)
        todo += operands(x)
    return names


def loads_in(x: Expr) -> list[Load]:
    """Return the loads in an expression, in pre-order."""
    loads: list[Load] = []
    todo = [x]
    while todo:
        x = todo.pop()
        if isinstance(x, Load):
            loads.append(x)
        todo += reversed(operands(x))
    return loads


def map_expressions(statement: Stmt, change: Change) -> Stmt:
    """Return a statement with ``change`` applied to its own expressions, not to nested ones'."""
    match statement:
        case LetStmt() | Declare() | Assign() | ReduceStmt():
            return evolve(statement, value=change(statement.value))
        case StoreStmt():
            index, value = change(statement.index), change(statement.value)
            return evolve(statement, index=index, value=value)
        case VectorLoad() | VectorStore():
            return evolve(statement, at=change(statement.at), index=change(statement.index))
        case For():
            return evolve(statement, start=change(statement.start), stop=change(statement.stop))
        case If():
            return evolve(statement, condition=change(statement.condition))
        case LastBlock():
            return evolve(statement, counter=change(statement.counter))
    return statement


def map_bodies(
    statement: Stmt, change: Callable[[tuple[Stmt, ...]], tuple[Stmt, ...]]
) -> Stmt:
    """Return a statement with ``change`` applied to the bodies inside it."""
    match statement:
        case For():
            return evolve(statement, body=change(statement.body))
        case If():
            body, otherwise = change(statement.body), change(statement.otherwise)
            return evolve(statement, body=body, otherwise=otherwise)
    return statement


def map_all_expressions(body: tuple[Stmt, ...], change: Change) -> tuple[Stmt, ...]:
    """Return a body with ``change`` applied to all expressions, also of nested statements."""

    def statements(inner: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        return tuple(map_bodies(map_expressions(s, change), statements) for s in inner)

    return statements(body)


def used_names(body: tuple[Stmt, ...]) -> set[str]:
    """Return the names of all variables that a body reads."""
    names: set[str] = set()
    for statement in walk_statements(body):
        for x in expressions_of(statement):
            names |= variable_names(x)
    return names


def without_unused(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    """Return a body without definitions (`LetStmt`) of variables that nothing reads."""
    while True:
        used = used_names(body)

        def statements(inner: tuple[Stmt, ...], used: set[str] = used) -> tuple[Stmt, ...]:
            kept = [s for s in inner if not isinstance(s, LetStmt) or s.var.name in used]
            return tuple(map_bodies(s, statements) for s in kept)

        smaller = statements(body)
        if smaller == body:
            return body
        body = smaller
