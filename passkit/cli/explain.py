"""``passkit explain``: print for each edge of a model whether it is fused, and the reason."""

from __future__ import annotations

import argparse

from passkit.cli.command_result import CommandResult
from passkit.cli.model import add_model_arguments, load, plan_options
from passkit.program.inspection import explain
from passkit.reporting.statistics import statistics


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``passkit explain``: the model and the choice of edges."""
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
    which.add_argument(
        "--statistics", action="store_true", help="print statistics of the plan instead"
    )
    parser.add_argument("--apart", action="store_true", help="only edges that are not fused")


def run(options: argparse.Namespace) -> CommandResult:
    """Plan the model and return the decisions about its edges, or statistics of the plan.

    Statistics are those of the strategy "stitch" and the default passes, whatever the options say.

    Raises: ModelError, ParseError, SettingError or OSError, as `load`; GraphError where a node that
    ``--why`` or ``--node`` names is unknown; other PasskitErrors where planning fails.
    """
    if options.statistics:
        numbers = statistics(load(options), target=options.target)
        return CommandResult(numbers.rows(), str(numbers))
    explanation = explain(load(options), **plan_options(options))
    if options.why:
        explanation = explanation.why(*options.why)
    elif options.node:
        explanation = explanation.filter(options.node)
    if options.apart:
        explanation = explanation.apart
    num_fused = sum(d.fused for d in explanation)
    selection = f"{explanation.selection}\n" if explanation.selection else ""
    text = f"{explanation}\n\n{selection}{num_fused} of {len(explanation)} edges are fused"
    return CommandResult(explanation.rows(), text)
