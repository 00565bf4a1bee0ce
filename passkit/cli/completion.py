"""``passkit completion``: print a script that completes commands, options and files in a shell."""

from __future__ import annotations

import argparse

from passkit.cli.command_result import CommandResult
from passkit.errors import MissingDependencyError

SHELLS = ("bash", "zsh", "tcsh")
USE = {
    "bash": 'eval "$(passkit completion bash)"',
    "zsh": "passkit completion zsh > ~/.zfunc/_passkit",
    "tcsh": "passkit completion tcsh > ~/.passkit.tcsh && source ~/.passkit.tcsh",
}
"""The command that loads the script, by shell."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the argument of ``passkit completion``: the name of the shell."""
    parser.add_argument("shell", choices=SHELLS, help="the shell to complete in")
    parser.epilog = "\n".join(["To use it:", *(f"  {line}" for line in USE.values())])
    parser.formatter_class = argparse.RawDescriptionHelpFormatter


def run(options: argparse.Namespace) -> CommandResult:
    """Return the completion script for a shell.

    Raises:
        MissingDependencyError: If the package shtab is not installed.
    """
    try:
        import shtab
    except ImportError as error:
        raise MissingDependencyError(
            "shell completion needs the package shtab, which is not installed; pip install shtab"
        ) from error
    script = shtab.complete(options.parser, options.shell)
    return CommandResult({"shell": options.shell, "script": script}, script)
