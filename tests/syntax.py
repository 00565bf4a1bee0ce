"""Walks over syntax trees of sources, several times as fast as those of the module ast."""

from __future__ import annotations

import ast
from collections.abc import Iterator

BLOCKS = ("body", "orelse", "finalbody", "handlers", "cases")
"""The fields of a statement that hold other statements, handlers of exceptions, or cases."""
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def nodes(tree: ast.AST) -> list[ast.AST]:
    """Return a tree and all nodes below, as `ast.walk` does, without contexts such as Load."""
    below: list[ast.AST] = [tree]
    for node in below:
        for name, value in vars(node).items():
            if isinstance(value, list):
                below += [item for item in value if isinstance(item, ast.AST)]
            elif isinstance(value, ast.AST) and name != "ctx":
                below.append(value)
    return below


def children(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the statements directly inside a module or a statement, handlers and cases among them.

    Expressions have none.
    """
    for name in BLOCKS:
        yield from getattr(node, name, ())


def statements(tree: ast.AST) -> list[ast.AST]:
    """Return a module or a statement, and all statements in it, the outer ones first.

    Handlers of exceptions and cases are among them.
    """
    inner: list[ast.AST] = [tree]
    for node in inner:
        inner += children(node)
    return inner
