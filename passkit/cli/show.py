"""``passkit show``: print the fused graph, its kernels or its templates, or draw the plan."""

from __future__ import annotations

import argparse
from pathlib import Path

from passkit import viz
from passkit.cli.command_result import CommandResult
from passkit.cli.model import (
    add_model_arguments,
    add_template_argument,
    load,
    plan_options,
    read_templates,
)
from passkit.graph.graph import Graph
from passkit.program.inspection import templates
from passkit.program.planning import planned
from passkit.serial import json
from passkit.serial.text import to_text
from passkit.viz.renderers import render_with_note


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``passkit show``: the model and the choice of views."""
    add_model_arguments(parser)
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        metavar="FILE",
        help="draw the plan: .svg, .png, .pdf or .dot",
    )
    parser.add_argument(
        "--kernels",
        action="store_true",
        help="print the kernels; no device of the target is needed",
    )
    parser.add_argument(
        "--schedule",
        action="store_true",
        help="print the template of each group, how its loops are scheduled, and why; for CUDA "
        "also the schedule of its loop nest, the rule that made it and the resources that it takes",
    )
    add_template_argument(parser)
    parser.add_argument(
        "--unfused", action="store_true", help="print the model as it was read, without passes"
    )
    parser.add_argument(
        "--constants",
        action="store_true",
        help="print all elements of constants; by default only the size of constants of more than "
        "64 elements",
    )


def run(options: argparse.Namespace) -> CommandResult:
    """Plan the model as far as the options need, and return the views that they choose.

    These are the graph, the kernels, the templates of groups, or a picture of the plan, which is
    written to ``options.output``.

    Raises: ModelError, ParseError or SettingError for wrong input; other PasskitErrors where
    planning or drawing fails; OSError where the model cannot be read, or the picture written.
    """
    graph = load(options)
    if not options.unfused:
        last = "SharedMemPlan" if options.schedule or options.output is not None else "Fusion"
        last = "CodeGen" if options.kernels else last
        fixed_templates = read_templates(options.template) or None
        graph = planned(graph, last, **plan_options(options), templates=fixed_templates)
    data: dict[str, object] = {"graph": json.to_json(graph.without_attrs())}
    texts = []
    if options.kernels and not options.unfused:
        kernels = sources(graph)
        data["kernels"] = kernels
        texts.append("\n\n".join(kernels.values()))
    if options.schedule and not options.unfused:
        ranking = templates(graph)
        data["schedule"] = ranking.rows()
        texts.append(str(ranking))
    if not texts and options.output is None:
        texts.append(to_text(graph, elide=not options.constants))
    if options.output is not None:
        path, note = render_with_note(viz.plan(graph), options.output)
        data["drawing"] = str(path)
        texts.append(f"plan drawn to {path}" + (f", laid out simply: {note}" if note else ""))
    language = "c++" if options.kernels and not options.schedule and len(texts) == 1 else ""
    return CommandResult(data, "\n".join(texts), language=language)


def sources(graph: Graph) -> dict[str, str]:
    """Return the sources of a graph's kernels by name, in the order of their first launches.

    Raises: KeyError for a graph without the annotation "kernel".
    """
    kernels = (graph.attrs["kernel"][n] for n in graph.nodes if n in graph.attrs["kernel"])
    return {k.name: k.source for k in kernels}
