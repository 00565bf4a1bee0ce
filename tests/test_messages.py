"""Every error message is filled in, and a test has matched one of its values."""

from __future__ import annotations

import ast
import importlib.util
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import passkit as pk
from tests import raised, syntax

FORGOTTEN = re.compile(r"\{[A-Za-z_][\w.]*(\[[^\]{}]*\])?(![rsa])?(:[^{}]*)?\}")
"""Text that looks like a placeholder: ``{name}``, ``{a.b!r}``, ``{x[0]:.3f}``."""


def plain_texts(call: ast.Call) -> Iterator[str]:
    """The parts of an error's message that are taken letter by letter."""
    for argument in call.args:
        for node in ast.walk(argument):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield node.value


def forgotten_prefixes(source: str) -> list[tuple[int, str]]:
    """Lines and texts of messages in which a placeholder stands outside an f-string."""
    return [
        (node.lineno, text)
        for node in syntax.statements(ast.parse(source))
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call)
        for text in plain_texts(node.exc)
        if FORGOTTEN.search(text)
    ]


def _name(path: Path) -> str:
    return str(path.relative_to(raised.ROOT))


@pytest.mark.parametrize("path", raised.source_files(), ids=_name)
def test_messages_are_filled_in(path: Path) -> None:
    """No message shows the user a placeholder instead of its value."""
    assert forgotten_prefixes(path.read_text()) == []


def test_a_forgotten_f_string_prefix_is_found() -> None:
    """The check sees a lost ``f``, also where only one of several fragments lost it."""
    bad = 'raise ValueError(f"{a}" " needs {b.c!r}")\nraise KeyError("{x:.3f}")\n'

    assert forgotten_prefixes(bad) == [(1, " needs {b.c!r}"), (2, "{x:.3f}")]
    assert forgotten_prefixes('raise ValueError(f"{a} needs {{}} and {b!r}")') == []


def test_a_vague_match_does_not_count(tmp_path: Path) -> None:
    """A test that matches only the fixed words of a message has not read its values."""
    file = tmp_path / "a.py"
    file.write_text('raise ValueError(f"x needs {wanted}, got {found!r}; reshape it")\n')
    (statement,) = raised.raises_in(file, "a.py")
    message = "x needs 3, got (4, 5); reshape it"

    assert raised.reads_a_value(statement, message, r"needs 3, got")
    assert raised.reads_a_value(statement, message, r"got \(4, 5\)")
    assert not raised.reads_a_value(statement, message, "reshape it")
    assert not raised.reads_a_value(statement, message, "another message")


def test_the_raising_statement_is_found() -> None:
    """An error leads back to the statement that made it, however deep."""
    with pytest.raises(pk.ShapeError, match="the size n is not known") as caught:
        bool(pk.Size.symbol("n"))
    statement = raised.site(caught.value.__traceback__)

    assert statement is not None
    assert (statement.file, statement.line) in raised.MATCHED
    assert statement.text.startswith("ShapeError(f'the size {self} is not known")


OPTIONAL = {"frontends/torch/": "torch", "passkit/tuning/dask.py": "distributed"}
"""Files and folders by the package that their tests need."""


@pytest.mark.closing
def test_every_raise_is_tested(matched: set[tuple[str, int]]) -> None:
    """Each ``raise`` in the sources was caught by a test that matched a filled-in value.

    Runs after all other tests, when all of them were asked for. Those of files that need an
    optional package are tested where it is installed. Reasons for calls of PyTorch are no errors.
    """
    absent = tuple(
        path for path, package in OPTIONAL.items() if importlib.util.find_spec(package) is None
    )
    missing = [
        str(statement)
        for path in raised.source_files()
        for statement in raised.raises(str(path))
        if (statement.file, statement.line) not in matched
        and not statement.file.startswith(absent)
        and not statement.text.startswith("UnsupportedNodeError")
    ]

    assert not missing, f"{len(missing)} raise statements no test has read:\n" + "\n".join(missing)
