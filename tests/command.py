"""The command line of passkit, run in the process of the test."""

from __future__ import annotations

import json
import sys
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from typing import Any

from passkit.cli import main


def passkit(*arguments: object) -> int:
    """Run ``passkit ARGUMENTS`` and return its exit code; output goes to the usual streams."""
    return main([str(argument) for argument in arguments])


def text_of(*arguments: object, code: int = 0) -> str:
    """Run a command that exits with ``code``, and return what it prints on standard output."""
    with redirect_stdout(StringIO()) as output:
        assert passkit(*arguments) == code
    return output.getvalue()


def json_of(*arguments: object, code: int = 0) -> Any:
    """Run a command with ``--json`` that exits with ``code``, and return what it prints, parsed."""
    return json.loads(text_of(*arguments, "--json", code=code))


def raise_error_of(*arguments: object) -> None:
    """Run a command that fails, and raise the error that it is about to print.

    The error keeps its class, message and traceback, so that `pytest.raises` can match it.
    """
    with redirect_stderr(_RaisingStream()):
        passkit(*arguments)


class _RaisingStream(StringIO):
    """Standard error that raises the exception being handled, as soon as its message is written."""

    def write(self, text: str) -> int:
        """Raise the exception that is being handled; without one, keep the text."""
        if sys.exc_info()[1] is not None:
            raise
        return super().write(text)
