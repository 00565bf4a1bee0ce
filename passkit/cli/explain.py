"""``passkit explain``: each edge of a model's fusion plan, with the reason of its fate."""

from __future__ import annotations

import argparse

from passkit.cli.answer import Answer
from passkit.cli.model import add_model_arguments, load, plan_options
from passkit.program.inspection import explain
from passkit.reporting.statistics import statistics


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Which model, which edges."""
    add_model_arguments(parser)
    which = parser.add_mutually_exclusive_group()
    which.add_argument(
        "--why",
        nargs=2,
        metavar=("U", "V"),
        help="why two nodes share a kernel or not: the edge from U to V, or the edges of the path "
        "between them",
    )
    which.add_argument("--node", metavar="NAME", help="only the edges at one node")
    which.add_argument("--statistics", action="store_true", help="the plan in numbers, instead")
    parser.add_argument("--apart", action="store_true", help="only edges that are not fused")


def run(options: argparse.Namespace) -> Answer:
    """Plan the model and show what was decided."""
    if options.statistics:
        numbers = statistics(load(options), target=options.target)
        return Answer(numbers.rows(), str(numbers))
    found = explain(load(options), **plan_options(options))
    if options.why:
        found = found.why(*options.why)
    elif options.node:
        found = found.filter(options.node)
    if options.apart:
        found = found.apart
    fused = sum(d.fused for d in found)
    chosen = f"{found.selection}\n" if found.selection else ""
    text = f"{found}\n\n{chosen}{fused} of {len(found)} edges are fused"
    return Answer(found.rows(), text)
