"""The command line of passkit, run in the process of the test."""

from __future__ import annotations

from passkit.cli import main


def passkit(*arguments: object) -> int:
    """Run ``passkit ARGUMENTS`` and return its exit code; output goes to the usual streams."""
    return main([str(argument) for argument in arguments])
