"""The command ``passkit``: one module for each subcommand, which prints text or JSON.

Errors are one line on standard error, or JSON, without a traceback.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from typing import TextIO

from passkit.errors import PasskitError
from passkit.values.highlight import TERMINAL, highlighted
from passkit.values.json_values import json_text
from passkit.values.plugins import import_plugin
from passkit.values.terminal import is_terminal
from passkit.values.version import version

INTERRUPTED = 130
"""The exit code after Ctrl-C, as in shells: 128 plus the number of SIGINT."""

COMMANDS = {
    "run": "run a model, and print accuracy, kernels, bytes and time with and without fusion",
    "show": "print the fused graph or its kernels, or draw the plan",
    "explain": "print for each edge whether it is fused, and the reason",
    "tune": "measure kernels of a model on this machine, so that later runs use the fastest",
    "bisect": "find the first decision of the passes that makes results wrong, and its kernel",
    "streams": "run a program that uses passkit.xp, and print what ran when, and why",
    "ops": "list the operators with their inputs, patterns and parameters",
    "passes": "list the passes with the annotations that they read and write",
    "cache": "print the size of the kernel cache, or empty it",
    "completion": "print a script that completes passkit's command line in a shell",
    "doctor": "check this machine: what works, and what to install for the rest",
}
"""The subcommands with their summaries; ``passkit.cli.NAME`` implements each."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command line.

    Args:
        argv: The arguments; by default those of the process.

    Returns:
        The exit code. 0: success, also if the reader of the output has closed it. 1: a PasskitError
        or OSError, which is printed, or a check that failed. 130: interrupted by Ctrl-C.

    Raises:
        SystemExit: With code 2 for wrong usage, and 0 after ``--help`` and ``--version``, as
            argparse does.
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    as_json = "--json" in arguments
    try:
        return _run(arguments)
    except PasskitError as error:
        notes = getattr(error, "__notes__", [])
        _print_error(str(error), type(error).__name__, as_json, notes)
        return 1
    except BrokenPipeError:  # the reader, such as `head`, has closed the pipe
        _discard_output()
        return 0
    except OSError as error:
        _discard_output()
        _print_error(_system_error(error), type(error).__name__, as_json)
        return 1
    except KeyboardInterrupt:
        _print_error("interrupted", "KeyboardInterrupt", as_json)
        return INTERRUPTED


def _run(arguments: Sequence[str]) -> int:
    """Parse the arguments, import plug-ins, run the command and print its result.

    Return the exit code. Without a command, the help is printed and the code is 0.

    Raises:
        SystemExit: With code 2 for wrong usage, including errors of plug-ins and of options; with 0
            after ``--help`` and ``--version``.
        PasskitError: If the command fails.
        OSError: If the output or a file cannot be written.
    """
    parser = _parser(next((a for a in arguments if a in COMMANDS), None))
    options = parser.parse_args(arguments)
    if options.command is None:
        parser.print_help()
        return 0
    options.parser = parser
    try:
        for module in options.plugin:
            import_plugin(module)
        if "check" in options:
            options.check(options)
    except PasskitError as error:
        parser.error(str(error))
    result = options.function(options)
    if options.json:
        _print(json_text(result.data))
    elif result.language and is_terminal(sys.stdout) and "NO_COLOR" not in os.environ:
        _print(highlighted(result.text, result.language, TERMINAL))
    else:
        _print(result.text)
    return int(result.code)


def _parser(command: str | None) -> argparse.ArgumentParser:
    """Return the parser of the command line, with all subcommands.

    Only the module of the subcommand ``command`` is imported and adds its arguments; for
    "completion" all do, and for None none does.
    """
    parser = argparse.ArgumentParser(
        prog="passkit", description="Fuse tensor graphs into a few fast native kernels."
    )
    parser.add_argument("--version", action="version", version=f"passkit {version()}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    for name, summary in COMMANDS.items():
        sub = commands.add_parser(name, help=summary, description=summary[0].upper() + summary[1:])
        sub.add_argument("--json", action="store_true", help="print JSON")
        sub.add_argument(
            "--plugin",
            metavar="MODULE",
            action="append",
            default=[],
            help="import a module or FILE.py first, which registers operators, passes, dialects, "
            "targets or fusion strategies; can be repeated",
        )
        if command in (name, "completion"):
            module = import_module(f"passkit.cli.{name}")
            module.add_arguments(sub)
            sub.set_defaults(function=module.run)
    return parser


def _print(text: str, stream: TextIO | None = None) -> None:
    """Print a text and flush the stream, standard output by default.

    Streams that replace standard output, such as those of loggers, may have no ``flush``.
    """
    stream = sys.stdout if stream is None else stream
    print(text, file=stream)
    if hasattr(stream, "flush"):
        stream.flush()


def _print_error(message: str, kind: str, as_json: bool, notes: Sequence[str] = ()) -> None:
    """Print an error to standard error, or as JSON to standard output.

    Where the output cannot be written, nothing is raised.

    Args:
        message: The text of the error.
        kind: The name of its class, for JSON.
        as_json: Whether to print JSON.
        notes: Further lines.
    """
    try:
        if as_json:
            _print(json.dumps({"error": message, "kind": kind, "notes": list(notes)}))
        else:
            _print("\n  ".join([f"passkit: {message}", *notes]), sys.stderr)
    except OSError:
        _discard_output()  # the disk of the output is full; the exit code reports the error


def _system_error(error: OSError) -> str:
    """Return the message for an error of the operating system: file, reason and way out."""
    reason = error.strerror or str(error)
    if error.filename is None:
        return f"the output cannot be written: {reason}; check whether its disk is full"
    advice = {
        FileNotFoundError: "create its folder, or give a path that exists",
        FileExistsError: "give another name, or remove the existing file",
        IsADirectoryError: "give the name of a file",
        NotADirectoryError: "a part of the path is a file; give a path of folders",
        PermissionError: "choose a folder that you may write to",
    }
    return f"'{error.filename}': {reason}; {advice.get(type(error), 'choose another path')}"


def _discard_output() -> None:
    """Redirect standard output to the null device, so that flushing its buffer cannot fail."""
    with suppress(OSError, ValueError, AttributeError):  # standard output may not be a file
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
