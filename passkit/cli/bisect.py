"""``passkit bisect``: the first decision of the passes that makes results wrong, and its kernel."""

from __future__ import annotations

import argparse
from pathlib import Path

from passkit.cli.answer import Answer
from passkit.cli.model import (
    add_feed_argument,
    add_model_arguments,
    load,
    model_feeds,
    plan_options,
)
from passkit.reporting.bisection import Bisection, Culprit, bisect


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Which model, on what."""
    add_model_arguments(parser)
    add_feed_argument(parser)
    where = "where to write what shows the fault; default: MODEL.culprit here"
    parser.add_argument("--save", type=Path, metavar="DIR", help=where)


def run(options: argparse.Namespace) -> Answer:
    """Compile with less and less fuel; 1 when something is wrong."""
    graph = load(options)
    feeds, _, _ = model_feeds(options, graph)
    found = bisect(graph, feeds, **plan_options(options))
    if found is None:
        text = f"{options.model} gives what the interpreter gives; nothing to find"
        return Answer({"model": str(options.model), "found": False}, text)
    name = options.model.name.removesuffix(options.model.suffix)
    folder = options.save or Path(f"{name}.culprit")
    saved = found.culprit.save(folder) if found.culprit else None
    data: dict[str, object] = {
        "model": str(options.model),
        "found": True,
        "fuel": found.fuel,
        "decisions": found.decisions,
        "decision": found.decision,
        "error": found.error,
    }
    if found.culprit is not None:
        data["culprit"] = as_dict(found.culprit) | {"saved": str(saved)}
    return Answer(data, describe(found, saved), 1)


def as_dict(culprit: Culprit) -> dict[str, object]:
    """A culprit as JSON can hold it."""
    kernel = culprit.kernel
    return {
        "name": culprit.name,
        "operators": list(culprit.operators),
        "error": culprit.error,
        "kernel": kernel and {"name": kernel.name, "source": kernel.source},
    }


def describe(found: Bisection, saved: Path | None) -> str:
    """What was found as people read it: the decision, the kernel, and what to do with it."""
    if found.decision:
        head = (
            f"decision {found.fuel} of {found.decisions}, {found.decision!r}, is the first that "
            f"makes results wrong: {found.error}"
        )
        around = f"PassContext(fuel={found.fuel - 1}) goes round it until it is mended."
    else:
        head = f"results are wrong before any optional decision: {found.error}"
        around = "target='interpret' goes round it until it is mended."
    culprit = found.culprit
    if culprit is None:
        return (
            f"{head}\n\nNo step is wrong by itself: the decision is, or how steps share memory. "
            f"{around}\nReport it with the model, its inputs and this text."
        )
    operators = ", ".join(culprit.operators)
    wrong = f"step {culprit.name!r} is wrong by itself, on right inputs: {culprit.error}"
    parts = [head, f"{wrong}\nit computes {operators}"]
    if culprit.kernel is not None:
        parts.append(f"its kernel, {culprit.kernel.name}:\n\n{culprit.kernel.source}")
    parts.append(
        f"{around}\nReport it with the folder {saved}: culprit.json is the step alone, culprit.npz "
        f"its inputs and right results.\n"
        f"'passkit run {saved}/culprit.json --compare' shows the fault."
    )
    return "\n\n".join(parts)
