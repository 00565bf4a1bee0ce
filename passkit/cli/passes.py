"""``passkit passes``: list the passes with the annotations that they read and write."""

from __future__ import annotations

import argparse
from typing import Any

from passkit.cli.command_result import CommandResult
from passkit.passes.base import Pass, find_pass, list_passes
from passkit.values.plugins import load_plugins
from passkit.values.units import table


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the argument of ``passkit passes``: names of passes."""
    parser.add_argument("names", nargs="*", metavar="NAME", help="passes; default: all")


def run(options: argparse.Namespace) -> CommandResult:
    """Return a table of the passes that the options name, by default of all.

    Raises: RegistryError for an unknown pass.
    """
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


def describe(graph_pass: Pass) -> dict[str, Any]:
    """Return the properties of a pass for JSON output."""
    return {
        "name": graph_pass.name,
        "depends": list(graph_pass.depends),
        "depends_op": list(graph_pass.depends_op),
        "provides": list(graph_pass.provides),
        "changes_graph": graph_pass.changes_graph,
        "target_dependent": graph_pass.target_dependent,
        "implied": graph_pass.implied,
        "doc": graph_pass.doc,
        "place": graph_pass.place,
    }
