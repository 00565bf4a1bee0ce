"""The command ``passkit``: one module for each subcommand, text or JSON out, no tracebacks."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from importlib import import_module

from passkit.errors import PasskitError

COMMANDS = {
    "run": "run a model: accuracy, kernels, bytes, time before and after fusion, the plan drawn",
    "show": "print the fused graph or its kernels, or draw the plan",
    "explain": "say for each edge whether it was fused, or why not",
    "tune": "measure the kernels of a model on this machine, so that later runs know the best",
    "bisect": "find the first decision of the passes that makes results wrong, and its kernel",
    "ops": "list the operators and what each of them can do",
    "passes": "list the passes and what each of them reads and writes",
    "cache": "tell the size of the kernel cache, or empty it",
    "doctor": "tell what works on this machine, and what to install for the rest",
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command line; 0 when all went well, 1 when it did not, 2 for wrong usage."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    parser = _parser(next((a for a in arguments if a in COMMANDS), None))
    options = parser.parse_args(arguments)
    if options.command is None:
        parser.print_help()
        return 0
    try:
        answer = options.function(options)
        text = json.dumps(answer.data, indent=2) if options.json else answer.text
        print(text, flush=True)
    except PasskitError as error:
        _complain(error, options.json)
        return 1
    except BrokenPipeError:  # the reader, such as `head`, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    return answer.code  # type: ignore[no-any-return]


def _parser(wanted: str | None) -> argparse.ArgumentParser:
    """The parser; only the module of the wanted command is imported."""
    parser = argparse.ArgumentParser(
        prog="passkit", description="Fuse tensor graphs into a few fast native kernels."
    )
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    for name, summary in COMMANDS.items():
        sub = commands.add_parser(name, help=summary, description=summary[0].upper() + summary[1:])
        sub.add_argument("--json", action="store_true", help="print JSON")
        if name == wanted:
            module = import_module(f"passkit.cli.{name}")
            module.add_arguments(sub)
            sub.set_defaults(function=module.run)
    return parser


def _complain(error: PasskitError, as_json: bool) -> None:
    notes = getattr(error, "__notes__", [])
    if as_json:
        print(json.dumps({"error": str(error), "kind": type(error).__name__, "notes": notes}))
    else:
        print("\n  ".join([f"passkit: {error}", *notes]), file=sys.stderr)
