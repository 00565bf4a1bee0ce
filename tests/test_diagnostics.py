"""Diagnostics: each text has the values that the code gives it, and each code is used."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from string import Formatter

import pytest

from passkit.diagnostics import TEXTS, Diagnostic
from tests.raised import ROOT, source_files

Use = tuple[str, str, frozenset[str] | None]


def uses(source: str, where: str) -> Iterator[Use]:
    """Yield place, code and names of values of each diagnostic that a file makes.

    The values are a dict display, or a variable that the same function assigns one; else None.
    """
    for function in ast.walk(ast.parse(source)):
        if not isinstance(function, (ast.FunctionDef, ast.Module)):
            continue
        dicts: dict[str, list[tuple[int, frozenset[str]]]] = {}
        calls = []
        for node in _own_nodes(function):
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Dict):
                for name in node.targets:
                    if isinstance(name, ast.Name):
                        dicts.setdefault(name.id, []).append((node.lineno, _keys(node.value)))
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Diagnostic":
                calls.append(node)
        for call in calls:
            code, *values = call.args
            if not isinstance(code, ast.Constant):
                continue
            yield f"{where}:{call.lineno}", str(code.value), _names(call, values, dicts)


def _own_nodes(function: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes of a function or module, without those of functions in it."""
    for child in ast.iter_child_nodes(function):
        if not isinstance(child, ast.FunctionDef):
            yield child
            yield from _own_nodes(child)


def _keys(value: ast.Dict) -> frozenset[str]:
    """Return the keys of a dict display."""
    return frozenset(str(k.value) for k in value.keys if isinstance(k, ast.Constant))


def _names(
    call: ast.Call, values: list[ast.expr], dicts: dict[str, list[tuple[int, frozenset[str]]]]
) -> frozenset[str] | None:
    """Return the names of the values of a call, None if they are not written in the function."""
    if not values:
        return frozenset()
    if isinstance(values[0], ast.Dict):
        return _keys(values[0])
    assigned = dicts.get(getattr(values[0], "id", ""), [])
    before = [names for line, names in assigned if line < call.lineno]
    return before[-1] if before else None


def fields(text: str) -> frozenset[str]:
    """Return the names in braces of a text."""
    return frozenset(name for _, name, _, _ in Formatter().parse(text) if name)


def all_uses() -> list[Use]:
    """Return the diagnostics that passkit makes."""
    paths = [p for p in source_files() if "Diagnostic(" in p.read_text()]
    return [use for p in paths for use in uses(p.read_text(), str(p.relative_to(ROOT)))]


def wrong_uses(diagnostic_uses: list[Use]) -> list[str]:
    """Return the uses with an unknown code, or with other values than its text has."""
    wrong = []
    for where, code, names in diagnostic_uses:
        if code not in TEXTS:
            wrong.append(f"{where}: no code {code}")
        elif names is None or names != fields(TEXTS[code]):
            wrong.append(f"{where}: {code} has {names and sorted(names)}, {TEXTS[code]!r}")
    return wrong


def test_each_text_has_the_values_that_it_is_given() -> None:
    """No diagnostic has a value that its text does not show, or lacks one."""
    assert wrong_uses(all_uses()) == []


def test_each_code_is_used() -> None:
    """Each code stands in the source of passkit outside the table."""
    sources = "".join(
        p.read_text() for p in source_files() if p.name != "diagnostics.py" or "cli" in str(p)
    )

    assert [code for code in TEXTS if f'"{code}"' not in sources] == []
    assert list(TEXTS) == sorted(TEXTS)


@pytest.mark.parametrize("code", TEXTS)
def test_a_text_is_formatted(code: str) -> None:
    """Each value appears in the text, which is one clause without a full stop."""
    data = {name: f"<{name}>" for name in fields(TEXTS[code])}
    text = str(Diagnostic(code, data))

    assert all(value in text for value in data.values())
    assert "{" not in text and not text.endswith(".")


def test_a_wrong_use_is_found(tmp_path: Path) -> None:
    """Missing values, values too many and unknown codes are wrong."""
    file = tmp_path / "module.py"
    file.write_text(
        "def f(x):\n"
        "    data = {'axis': x}\n"
        "    yield Diagnostic('tile.reduced', data)\n"
        "    yield Diagnostic('tile.reduced')\n"
        "    yield Diagnostic('tile.composition', {'axis': x})\n"
        "    yield Diagnostic('tile.other')\n"
    )

    wrong = wrong_uses(list(uses(file.read_text(), "module.py")))
    assert [text.split(":")[1] for text in wrong] == ["4", "5", "6"]
