"""``passkit show``: the fused graph as text, its kernels, or a picture of its plan."""

from __future__ import annotations

import argparse
from pathlib import Path

from passkit import viz
from passkit.cli.answer import Answer
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
from passkit.viz.renderers import rendered


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Which model, and how to see it."""
    add_model_arguments(parser)
    parser.add_argument("-o", "--output", type=Path, metavar="FILE",
                        help="draw the plan: .svg, .png, .pdf or .dot")  # fmt: skip
    parser.add_argument("--kernels", action="store_true",
                        help="print the kernels; no device of the target is needed")  # fmt: skip
    parser.add_argument("--schedule", action="store_true",
                        help="how each group's loops are dealt out, and why so")  # fmt: skip
    add_template_argument(parser)
    parser.add_argument("--unfused", action="store_true", help="the model as it was read")
    parser.add_argument("--constants", action="store_true",
                        help="print all elements of constants; by default those of more than 64 "
                        "elements are shown by their size")  # fmt: skip


def run(options: argparse.Namespace) -> Answer:
    """Read, plan as far as is asked for, and print."""
    graph = load(options)
    if not options.unfused:
        last = "SharedMemPlan" if options.schedule or options.output is not None else "Fusion"
        last = "CodeGen" if options.kernels else last
        given = read_templates(options.template) or None
        wanted = {**plan_options(options), "templates": given}
        graph = planned(graph, last, **wanted)
    data: dict[str, object] = {"graph": json.to_json(graph.without_attrs())}
    text = []
    if options.kernels and not options.unfused:
        kernels = sources(graph)
        data["kernels"] = kernels
        text.append("\n\n".join(kernels.values()))
    if options.schedule and not options.unfused:
        found = templates(graph)
        data["schedule"] = found.rows()
        text.append(str(found))
    if not text and options.output is None:
        text.append(to_text(graph, elide=not options.constants))
    if options.output is not None:
        drawn, why = rendered(viz.plan(graph), options.output)
        data["drawing"] = str(drawn)
        text.append(f"plan drawn to {drawn}" + (f", laid out simply: {why}" if why else ""))
    language = "c++" if options.kernels and not options.schedule and len(text) == 1 else ""
    return Answer(data, "\n".join(text), language=language)


def sources(graph: Graph) -> dict[str, str]:
    """The kernels of a graph by name, each text once, in the order of their launches."""
    kernels = (graph.attrs["kernel"][n] for n in graph.nodes if n in graph.attrs["kernel"])
    return {k.name: k.source for k in kernels}
