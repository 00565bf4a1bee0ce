"""Rewriting loop IR: expressions of statements, substitution of variables, and dead code."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import is_
from typing import TypeVar

from attrs import evolve

from passkit.ast.expr import Expr, Var
from passkit.ast.folds import left, right
from passkit.ast.tidy import replace_children
from passkit.ast.walk import variables
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
T = TypeVar("T")


def substitute(x: Expr, values: Mapping[str, Expr]) -> Expr:
    """Return ``x`` with expressions in place of the variables of these names."""
    if isinstance(x, Var):
        return values.get(x.name, x)
    return replace_children(x, lambda child: substitute(child, values))


def combined(combine: Expr, a: Expr, b: Expr) -> Expr:
    """Return ``combine``, of `passkit.ast.left` and `passkit.ast.right`, for two values."""
    return substitute(combine, {left(a.dtype).name: a, right(b.dtype).name: b})


def variable_names(x: Expr) -> set[str]:
    """Return the names of the variables in an expression."""
    return {var.name for var in variables(x)}


def map_expressions(statement: Stmt, change: Change) -> Stmt:
    """Return a statement with ``change`` applied to its own expressions, not to nested ones'.

    It is the statement itself where none changes.
    """
    match statement:
        case LetStmt() | Declare() | Assign() | ReduceStmt():
            return _with(statement, value=change(statement.value))
        case StoreStmt():
            return _with(statement, index=change(statement.index), value=change(statement.value))
        case VectorLoad() | VectorStore():
            return _with(statement, at=change(statement.at), index=change(statement.index))
        case For():
            return _with(statement, start=change(statement.start), stop=change(statement.stop))
        case If():
            return _with(statement, condition=change(statement.condition))
        case LastBlock():
            return _with(statement, counter=change(statement.counter))
    return statement


def map_bodies(statement: Stmt, change: Callable[[tuple[Stmt, ...]], tuple[Stmt, ...]]) -> Stmt:
    """Return a statement with ``change`` applied to the bodies inside it."""
    match statement:
        case For():
            return _with(statement, body=_unless_same(statement.body, change))
        case If():
            body = _unless_same(statement.body, change)
            return _with(statement, body=body, otherwise=_unless_same(statement.otherwise, change))
    return statement


def _unless_same(
    body: tuple[Stmt, ...], change: Callable[[tuple[Stmt, ...]], tuple[Stmt, ...]]
) -> tuple[Stmt, ...]:
    """Return a changed body; it is ``body`` itself where all statements are the same objects."""
    changed = change(body)
    return body if len(changed) == len(body) and all(map(is_, changed, body)) else changed


def _with(statement: T, **fields: object) -> T:
    """Return a statement with other fields; it is the statement itself where all are the same."""
    if all(getattr(statement, name) is value for name, value in fields.items()):
        return statement
    return evolve(statement, **fields)  # type: ignore[misc]


def map_all_expressions(body: tuple[Stmt, ...], change: Change) -> tuple[Stmt, ...]:
    """Return a body with ``change`` applied to all expressions, also of nested statements."""

    def statements(inner: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        return tuple(map_bodies(map_expressions(s, change), statements) for s in inner)

    return statements(body)


def without_unused(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    """Return a body without definitions (`LetStmt`) of variables that nothing reads.

    What only such definitions read is not read either.
    """
    read_by: dict[str, set[str]] = {}
    todo: list[str] = []
    for statement in walk_statements(body):
        names = [var.name for x in expressions_of(statement) for var in variables(x)]
        if isinstance(statement, LetStmt):
            read_by.setdefault(statement.var.name, set()).update(names)
        else:
            todo += names
    used: set[str] = set()
    while todo:
        name = todo.pop()
        if name not in used:
            used.add(name)
            todo += read_by.get(name, ())

    def statements(inner: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        return tuple(
            map_bodies(s, statements)
            for s in inner
            if not isinstance(s, LetStmt) or s.var.name in used
        )

    return statements(body) if read_by.keys() - used else body
