"""``passkit completion``: a script by which a shell completes commands, options and files."""

from __future__ import annotations

import argparse

from passkit.cli.answer import Answer
from passkit.errors import MissingDependencyError

SHELLS = ("bash", "zsh", "tcsh")
USE = {
    "bash": 'eval "$(passkit completion bash)"',
    "zsh": "passkit completion zsh > ~/.zfunc/_passkit",
    "tcsh": "passkit completion tcsh > ~/.passkit.tcsh && source ~/.passkit.tcsh",
}
"""How each shell reads the script."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the shell."""
    parser.add_argument("shell", choices=SHELLS, help="the shell to complete in")
    parser.epilog = "\n".join(["To use it:", *(f"  {line}" for line in USE.values())])
    parser.formatter_class = argparse.RawDescriptionHelpFormatter


def run(options: argparse.Namespace) -> Answer:
    """Return the script for a shell. Raises: MissingDependencyError without the package shtab."""
    try:
        import shtab
    except ImportError as error:
        raise MissingDependencyError(
            "shell completion needs the package shtab, which is not installed; pip install shtab"
        ) from error
    script = shtab.complete(options.parser, options.shell)
    return Answer({"shell": options.shell, "script": script}, script)
