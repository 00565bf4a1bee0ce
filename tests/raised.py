"""Which raise statements the tests have met, and how closely they read the message.

`record` makes `pytest.raises(..., match=...)` note the statement that raised. A statement counts as
tested when the matched text touches a value that was filled into its message.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import ModuleType, TracebackType
from typing import Any

from attrs import field, frozen

from tests import syntax

ROOT = Path(__file__).resolve().parents[1]
SOURCES = ("passkit", "ops", "frontends")
MATCHED: set[tuple[str, int]] = set()
"""(file, first line) of each raise statement whose filled-in message a test has matched."""


@frozen
class Raise:
    """One ``raise Error(...)`` in the sources."""

    file: str
    line: int
    last: int
    text: str
    pattern: str | None = field(default=None)
    """A regular expression of the message, one group for each filled-in value."""

    @property
    def is_filled(self) -> bool:
        """Whether the message has values in it."""
        return self.pattern is not None and "(" in re.sub(r"\\.", "", self.pattern)

    def __str__(self) -> str:
        return f"{self.file}:{self.line}  {self.text}"


def source_files(root: Path = ROOT) -> list[Path]:
    """The Python files that the layers and the messages are asked about."""
    return sorted(p for top in SOURCES for p in (root / top).rglob("*.py"))


def raises_in(path: Path, name: str) -> Iterator[Raise]:
    """Every statement in a file that raises a new error."""
    for node in syntax.statements(ast.parse(path.read_text())):
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
            text = ast.unparse(node.exc)
            if not text.startswith(("SystemExit", "StopIteration")):
                message = node.exc.args[0] if node.exc.args else None
                pattern = message_pattern(message)
                yield Raise(name, node.lineno, node.end_lineno or node.lineno, text, pattern)


def message_pattern(message: ast.expr | None) -> str | None:
    """The regular expression that a message's expression stands for; None when it is not text."""
    match message:
        case ast.Constant(str(text)):
            return re.escape(text)
        case ast.JoinedStr(parts):
            return "".join(
                re.escape(str(p.value)) if isinstance(p, ast.Constant) else "(.*)" for p in parts
            )
        case ast.BinOp(left, ast.Add(), right):
            a, b = message_pattern(left), message_pattern(right)
            return None if a is None and b is None else (a or "(.*)") + (b or "(.*)")
    return None


@cache
def raises(file: str) -> tuple[Raise, ...]:
    """The raise statements of one source file, by its absolute name."""
    path = Path(file)
    if not path.is_relative_to(ROOT) or path.relative_to(ROOT).parts[0] not in SOURCES:
        return ()
    return tuple(raises_in(path, str(path.relative_to(ROOT))))


def site(traceback: TracebackType | None) -> Raise | None:
    """The raise statement where an exception began, if it stands in our sources."""
    while traceback is not None and traceback.tb_next is not None:
        traceback = traceback.tb_next
    if traceback is None:
        return None
    line = traceback.tb_lineno
    statements = raises(traceback.tb_frame.f_code.co_filename)
    return next((r for r in statements if r.line <= line <= r.last), None)


def reads_a_value(statement: Raise, message: str, match: str) -> bool:
    """Whether the text that ``match`` finds touches a filled-in value of the message."""
    hit = re.search(match, message)
    whole = statement.pattern and re.fullmatch(statement.pattern, message, re.DOTALL)
    if not hit or not whole or not statement.is_filled:
        return bool(hit)
    return any(
        max(hit.start(), whole.start(k)) < min(hit.end(), whole.end(k))
        for k in range(1, len(whole.groups()) + 1)
    )


def note(error: BaseException, match: str) -> None:
    """Count the statement that raised ``error`` as tested, if ``match`` reads a value of it.

    So is that of its cause, if ``match`` reads a value of that, too.
    """
    cause: BaseException | None = error
    while cause is not None:
        statement = site(cause.__traceback__)
        if statement is not None and reads_a_value(statement, str(cause), match):
            MATCHED.add((statement.file, statement.line))
        cause = cause.__cause__


def record(pytest: ModuleType) -> None:
    """Let ``pytest.raises`` note what it catches; the tests call it as always."""
    original = pytest.raises

    class Noted:
        """The context of ``pytest.raises``, which notes the error on its way out."""

        def __init__(self, context: Any, match: Any) -> None:
            self.context, self.match = context, match

        def __enter__(self) -> Any:
            return self.context.__enter__()

        def __exit__(self, kind: Any, error: Any, traceback: Any) -> Any:
            caught = self.context.__exit__(kind, error, traceback)
            if caught and self.match is not None:
                note(error, getattr(self.match, "pattern", self.match))
            return caught

    def raises(*args: Any, **kwargs: Any) -> Any:
        """As ``pytest.raises``; a matched error is noted."""
        raising_block = original(*args, **kwargs)
        return (
            Noted(raising_block, kwargs.get("match"))
            if hasattr(raising_block, "__enter__")
            else raising_block
        )

    pytest.raises = raises
