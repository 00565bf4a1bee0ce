"""``passkit passes``: list the passes with the annotations that they read and write."""

from __future__ import annotations

import argparse
from typing import Any

from passkit.cli.command_result import CommandResult
from passkit.passes.base import Pass, find_pass, list_passes
from passkit.values.plugins import load_plugins
from passkit.values.units import table


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the names of passes."""
    parser.add_argument("names", nargs="*", metavar="NAME", help="passes; default: all")


def run(options: argparse.Namespace) -> CommandResult:
    """List the passes that are named, or all."""
    load_plugins()
    data = [describe(find_pass(n)) for n in options.names or list_passes()]
    rows = [
        (
            d["name"],
            ", ".join(d["depends"]),
            ", ".join(d["provides"]),
            "yes" if d["changes_graph"] else "",
            d["doc"],
        )
        for d in data
    ]
    return CommandResult(data, table(("pass", "reads", "writes", "new graph", "description"), rows))


def describe(shown: Pass) -> dict[str, Any]:
    """Return a pass as JSON can hold it."""
    return {
        "name": shown.name,
        "depends": list(shown.depends),
        "depends_op": list(shown.depends_op),
        "provides": list(shown.provides),
        "changes_graph": shown.changes_graph,
        "target_dependent": shown.target_dependent,
        "implied": shown.implied,
        "doc": shown.doc,
        "place": shown.place,
    }
