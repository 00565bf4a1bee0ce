"""The command ``passkit``: one module for each subcommand, text or JSON out, no tracebacks."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module

from passkit.errors import PasskitError
from passkit.values.lazy import Lazy
from passkit.values.plugins import import_plugin
from passkit.values.terminal import is_terminal

_root = Lazy("passkit")
"""The package's root, which knows the version."""
INTERRUPTED = 130
"""The exit code after Ctrl-C, which is the shells' 128 and SIGINT."""

COMMANDS = {
    "run": "run a model: accuracy, kernels, bytes, time before and after fusion",
    "show": "print the fused graph or its kernels, or draw the plan",
    "explain": "say for each edge whether it was fused, or why not",
    "tune": "measure the kernels of a model on this machine, so that later runs know the best",
    "bisect": "find the first decision of the passes that makes results wrong, and its kernel",
    "ops": "list the operators and what each of them can do",
    "passes": "list the passes and what each of them reads and writes",
    "cache": "tell the size of the kernel cache, or empty it",
    "completion": "print a script that completes passkit's command line in a shell",
    "doctor": "tell what works on this machine, and what to install for the rest",
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command line.

    Args:
        argv: The arguments; by default those of the process.

    Returns: The exit code. 0: all went well. 1: an error, or a check that failed. 130: interrupted
        by Ctrl-C. Wrong usage ends the process with code 2, as argparse does.
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    as_json = "--json" in arguments
    try:
        return _run(arguments)
    except PasskitError as error:
        notes = getattr(error, "__notes__", [])
        _complain(str(error), type(error).__name__, as_json, notes)
        return 1
    except BrokenPipeError:  # the reader, such as `head`, has seen enough
        _drop_output()
        return 0
    except OSError as error:
        _drop_output()
        _complain(_system_error(error), type(error).__name__, as_json)
        return 1
    except KeyboardInterrupt:
        _complain("interrupted", "KeyboardInterrupt", as_json)
        return INTERRUPTED


def _run(arguments: Sequence[str]) -> int:
    """Parse the arguments, run the command and print its answer; return the exit code."""
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
    answer = options.function(options)
    if options.json:
        print(json.dumps(answer.data, indent=2), flush=True)
    elif answer.language and is_terminal(sys.stdout) and "NO_COLOR" not in os.environ:
        from passkit.reporting.highlight import TERMINAL, highlighted  # few answers are source code

        print(highlighted(answer.text, answer.language, TERMINAL), flush=True)
    else:
        print(answer.text, flush=True)
    return int(answer.code)


def _parser(wanted: str | None) -> argparse.ArgumentParser:
    """The parser; only the module of the wanted command is imported."""
    parser = argparse.ArgumentParser(
        prog="passkit", description="Fuse tensor graphs into a few fast native kernels."
    )
    parser.add_argument("--version", action="version", version=f"passkit {_root.__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    for name, summary in COMMANDS.items():
        sub = commands.add_parser(name, help=summary, description=summary[0].upper() + summary[1:])
        sub.add_argument("--json", action="store_true", help="print JSON")
        sub.add_argument("--plugin", metavar="MODULE", action="append", default=[],
                         help="import a module or FILE.py first, which registers operators, "
                         "passes, dialects, targets or fusion strategies; may repeat")  # fmt: skip
        if wanted in (name, "completion"):
            module = import_module(f"passkit.cli.{name}")
            module.add_arguments(sub)
            sub.set_defaults(function=module.run)
    return parser


def _complain(message: str, kind: str, as_json: bool, notes: Sequence[str] = ()) -> None:
    """Print an error: to standard output as JSON, else to standard error."""
    try:
        if as_json:
            print(json.dumps({"error": message, "kind": kind, "notes": list(notes)}), flush=True)
        else:
            print("\n  ".join([f"passkit: {message}", *notes]), file=sys.stderr, flush=True)
    except OSError:
        _drop_output()  # the disk that the output goes to is full; the exit code says the rest


def _system_error(error: OSError) -> str:
    """Return what the operating system refused, at which file, and what a user can do."""
    reason = error.strerror or str(error)
    if error.filename is None:
        return f"the system refused: {reason}; see whether the disk of the output is full"
    ways_out = {
        FileNotFoundError: "the folder must exist",
        FileExistsError: "give another name, or remove what is there",
        IsADirectoryError: "give the name of a file",
        NotADirectoryError: "a part of the path is a file; give a path of folders",
        PermissionError: "choose a place that you may write to",
    }
    way_out = ways_out.get(type(error), "choose another place")
    return f"'{error.filename}': {reason}; {way_out}"


def _drop_output() -> None:
    """Send what is still buffered for standard output nowhere, so that exiting cannot fail."""
    with suppress(OSError, ValueError, AttributeError):  # standard output may be no file
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
