"""Diagnostics: each text has the values that the code gives it, and each code is used."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from string import Formatter

import pytest

from passkit.diagnostics import FORMATS, TEXTS, WAYS_OUT, Diagnostic
from tests.raised import ROOT, source_files

SAMPLES = {
    "bytes": 4096,
    "grown": 4096,
    "measured": True,
    "reason": Diagnostic("fuel"),
    "seconds": 2e-6,
    "shape": (3, 4),
}
"""A value for each format, and for a reason in a text."""
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
    if not isinstance(values[0], ast.Dict):
        return _assigned(values[0], call.lineno, dicts)
    names = _keys(values[0])
    for key, value in zip(values[0].keys, values[0].values, strict=True):
        if key is None:  # "**other"
            names |= _assigned(value, call.lineno, dicts) or frozenset()
    return names


def _assigned(
    value: ast.expr, line: int, dicts: dict[str, list[tuple[int, frozenset[str]]]]
) -> frozenset[str] | None:
    """Return the keys of the dict that a variable was last assigned before a line, None if none."""
    before = [names for at, names in dicts.get(getattr(value, "id", ""), []) if at < line]
    return before[-1] if before else None


def fields(code: str) -> frozenset[str]:
    """Return the names in braces of the text of a code, and of its way out."""
    parsed = Formatter().parse(TEXTS[code] + WAYS_OUT.get(code, ""))
    return frozenset(name.partition(".")[0] for _, name, _, _ in parsed if name)


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
        elif names is None or names != fields(code):
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
    """Each value appears in the text or the way out, which are clauses without a full stop."""
    parsed = Formatter().parse(TEXTS[code] + WAYS_OUT.get(code, ""))
    formats = {name.partition(".")[0]: spec for _, name, spec, _ in parsed if name}
    data = {name: SAMPLES.get(spec or name, f"<{name}>") for name, spec in formats.items()}
    diagnostic = Diagnostic(code, data)
    text = f"{diagnostic} {diagnostic.way_out}"

    for name, value in data.items():
        shown = FORMATS[spec](value) if (spec := formats[name]) else str(value)
        assert shown and shown in text
    assert "{" not in text and not str(diagnostic).endswith(".")
    assert (code in WAYS_OUT) == bool(diagnostic.way_out) and set(WAYS_OUT) <= set(TEXTS)


def test_clauses_of_figures_that_are_not_there_are_empty() -> None:
    """A gain that was not measured, and takes no more memory, is stated alone."""
    gain = {"gain": 2e-6, "measured": False, "grown": 0}

    assert str(Diagnostic("fused.gain", gain)) == "one kernel saves 2 µs"
    measured = Diagnostic("fused.gain", {**gain, "measured": True, "grown": 3 << 20})
    assert str(measured) == (
        "one kernel saves 2 µs, as measured, with 3 MiB more memory at the peak"
    )


def test_a_reason_has_its_causes() -> None:
    """A reason that quotes another has its way out, and names both codes."""
    inner = Diagnostic("hint.no_fuse")
    outer = Diagnostic("hint.keep_together", {"reason": inner})

    assert str(outer) == "keep_together names both, but the option no_fuse names one of them"
    assert outer.way_out == "take it out of no_fuse" and outer.causes == (outer, inner)
    assert len({outer, inner, Diagnostic("fuel"), Diagnostic("fuel")}) == 3


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
