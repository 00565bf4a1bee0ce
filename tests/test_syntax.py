"""Walks over syntax trees reach what those of the module ast reach."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests import syntax

STATEMENTS = (ast.stmt, ast.ExceptHandler, ast.match_case, ast.Module)
SOURCE = """
@decorated(lambda x: [*x])
class C(Base, key=value):
    async def f(self, a, *, b: int = 1, **c):
        async with x as y: pass
        async for z in y:
            await z
        else:
            return {**a, 1: [i for i in a if i]}
        try:
            while a: break
            else: del a
        except* Error as error:
            raise New from error
        finally:
            match a:
                case {"k": [1, *rest]} if rest: import m
                case _: from m import n
    x = y = (yield)
if a: b += f"{c!r:>{d}}"
elif e: global g
else: (h := 1)
"""


@pytest.mark.parametrize(
    "source", [SOURCE, "", "x", Path(syntax.__file__).with_name("conftest.py").read_text()]
)
def test_every_statement_and_expression_is_reached(source: str) -> None:
    """Nodes come in the order of `ast.walk`; all kinds of statements have their inner ones."""
    tree = ast.parse(source)
    reached = [n for n in ast.walk(tree) if not isinstance(n, ast.expr_context)]

    assert syntax.nodes(tree) == reached
    assert {*syntax.statements(tree)} == {n for n in reached if isinstance(n, STATEMENTS)}
