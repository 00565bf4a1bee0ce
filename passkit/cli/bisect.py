"""``passkit bisect``: the first decision of the passes that makes results wrong, and its kernel."""

from __future__ import annotations

import argparse
from pathlib import Path

from passkit.cli.command_result import CommandResult
from passkit.cli.model import (
    add_feed_argument,
    add_model_arguments,
    load,
    model_feeds,
    plan_options,
)
from passkit.reporting.bisection import Bisection, Culprit, bisect


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``passkit bisect``: the model, its inputs, and the output folder."""
    add_model_arguments(parser)
    add_feed_argument(parser)
    help_text = "where to write the files that reproduce the error; default: MODEL.culprit here"
    parser.add_argument("--save", type=Path, metavar="DIR", help=help_text)


def run(options: argparse.Namespace) -> CommandResult:
    """Find the first decision that makes results wrong, and write its isolated kernel to a folder.

    The folder is ``options.save``, by default MODEL.culprit; nothing is written if no step is wrong
    by itself. The result's exit code is 1 if results differ from the interpreter's, else 0.

    Raises: PasskitError, such as ModelError and FeedError, where the model cannot be read, planned
    or run; OSError where the model cannot be read, or the folder cannot be written.
    """
    graph = load(options)
    feeds, _, _ = model_feeds(options, graph)
    bisection = bisect(graph, feeds, **plan_options(options))
    if bisection is None:
        text = f"the results of {options.model} are those of the interpreter; nothing to bisect"
        return CommandResult({"model": str(options.model), "found": False}, text)
    name = options.model.name.removesuffix(options.model.suffix)
    folder = options.save or Path(f"{name}.culprit")
    saved = bisection.culprit.save(folder) if bisection.culprit else None
    data: dict[str, object] = {
        "model": str(options.model),
        "found": True,
        "fuel": bisection.fuel,
        "decisions": bisection.decisions,
        "decision": bisection.decision,
        "error": bisection.error,
    }
    if bisection.culprit is not None:
        data["culprit"] = as_dict(bisection.culprit) | {"saved": str(saved)}
    return CommandResult(data, describe(bisection, saved), 1)


def as_dict(culprit: Culprit) -> dict[str, object]:
    """Return the fields of a culprit, the isolated wrong step, for JSON output.

    "kernel" is None for a step without a kernel.
    """
    kernel = culprit.kernel
    return {
        "name": culprit.name,
        "operators": list(culprit.operators),
        "error": culprit.error,
        "kernel": kernel and {"name": kernel.name, "source": kernel.source},
    }


def describe(bisection: Bisection, saved: Path | None) -> str:
    """Return the result as text: the decision, the kernel, a workaround and what to report.

    Args:
        bisection: The result.
        saved: The folder that the culprit was written to; None if no step is wrong by itself.
    """
    if bisection.decision:
        head = (
            f"decision {bisection.fuel} of {bisection.decisions}, {bisection.decision!r}, is the "
            f"first that makes results wrong: {bisection.error}"
        )
        workaround = f"Until it is fixed, PassContext(fuel={bisection.fuel - 1}) avoids it."
    else:
        head = f"results are wrong before any optional decision: {bisection.error}"
        workaround = "Until it is fixed, target='interpret' avoids it."
    culprit = bisection.culprit
    if culprit is None:
        return (
            f"{head}\n\nNo step is wrong by itself: the error is in the decision, or in the memory "
            f"that steps share. {workaround}\nReport it with the model, its inputs and this text."
        )
    operators = ", ".join(culprit.operators)
    wrong = f"step {culprit.name!r} is wrong by itself, for correct inputs: {culprit.error}"
    parts = [head, f"{wrong}\nit computes {operators}"]
    if culprit.kernel is not None:
        parts.append(f"its kernel, {culprit.kernel.name}:\n\n{culprit.kernel.source}")
    parts.append(
        f"{workaround}\nReport it with the folder {saved}: culprit.json is the isolated step, "
        f"culprit.npz its inputs and correct results.\n"
        f"'passkit run {saved}/culprit.json --compare' shows the error."
    )
    return "\n\n".join(parts)
