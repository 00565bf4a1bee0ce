"""``passkit passes``: the passes, and what each of them reads and writes."""

from __future__ import annotations

import argparse
from typing import Any

from passkit.cli.answer import Answer
from passkit.passes.base import Pass, find_pass, list_passes
from passkit.values.plugins import load_plugins
from passkit.values.units import table


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Which passes."""
    parser.add_argument("names", nargs="*", metavar="NAME", help="passes; default: all")


def run(options: argparse.Namespace) -> Answer:
    """List the passes by name."""
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
    return Answer(data, table(("pass", "reads", "writes", "new graph", "what it does"), rows))


def describe(found: Pass) -> dict[str, Any]:
    """A pass as JSON can hold it."""
    return {
        "name": found.name,
        "depends": list(found.depends),
        "depends_op": list(found.depends_op),
        "provides": list(found.provides),
        "changes_graph": found.changes_graph,
        "target_dependent": found.target_dependent,
        "implied": found.implied,
        "doc": found.doc,
        "place": found.place,
    }
