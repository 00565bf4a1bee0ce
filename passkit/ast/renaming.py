"""Renaming of buffers and size arguments in parts of a kernel AST."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeVar, cast

from attrs import evolve, fields, has

from passkit.ast import Expr, Load, Var
from passkit.ast.tidy import replace_children
from passkit.ast.walk import walk

T = TypeVar("T")


def renamed(x: T, names: Mapping[str, str]) -> T:
    """Return ``x``, a part of an AST or a tuple of parts, with its buffers and variables renamed.

    ``names`` maps old names to new ones; variables that are not in it keep theirs. Buffers are
    renamed where statements and expressions access them, not in their declarations.

    Raises: KeyError for a buffer that is not in ``names``.
    """

    def expr(e: Expr) -> Expr:
        """Return an expression with its buffers and variables renamed."""
        if isinstance(e, Var):
            return Var(names[e.name], e.dtype) if e.name in names else e
        inner = replace_children(e, expr)
        return evolve(inner, buffer=names[inner.buffer]) if isinstance(inner, Load) else inner

    def anything(value: Any) -> Any:
        """Return an expression, tuple or part of an AST renamed; other values as they are."""
        if isinstance(value, Expr):
            return expr(value)
        if isinstance(value, tuple):
            return tuple(map(anything, value))
        if not has(type(value)):
            return value
        changed = {f.name: anything(getattr(value, f.name)) for f in fields(type(value))}
        if changed.get("buffer") is not None:
            changed["buffer"] = names[changed["buffer"]]
        return type(value)(**changed)

    return cast(T, anything(x))


def names_in(x: Any) -> Iterator[str]:
    """Yield the name of each buffer and variable in a part of an AST, once per occurrence.

    Buffers count where statements and expressions access them, not in their declarations. Other
    values than parts of an AST and tuples yield nothing.
    """
    if isinstance(x, Expr):
        for e in walk(x):
            if isinstance(e, Load):
                yield e.buffer
            elif isinstance(e, Var):
                yield e.name
    elif isinstance(x, tuple):
        for each in x:
            yield from names_in(each)
    elif has(type(x)):
        if getattr(x, "buffer", None) is not None:
            yield x.buffer
        for f in fields(type(x)):
            yield from names_in(getattr(x, f.name))
