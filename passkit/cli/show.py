"""``passkit show``: the fused graph as text, its kernels, or a picture of its plan."""

from __future__ import annotations

import argparse
from pathlib import Path

from passkit import json, viz
from passkit.cli.answer import Answer
from passkit.cli.model import add_model_arguments, load
from passkit.graph import Graph
from passkit.planning import planned
from passkit.render import rendered
from passkit.text import to_text


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Which model, and how to see it."""
    add_model_arguments(parser)
    parser.add_argument("-o", "--output", type=Path, metavar="FILE",
                        help="draw the plan: .svg, .png, .pdf or .dot")  # fmt: skip
    parser.add_argument("--kernels", action="store_true",
                        help="print the kernels; no device of the target is needed")  # fmt: skip
    parser.add_argument("--unfused", action="store_true", help="the model as it was read")


def run(options: argparse.Namespace) -> Answer:
    """Read, plan as far as is asked for, and print."""
    graph = load(options)
    if not options.unfused:
        last = "Fusion" if options.output is None else "SharedMemPlan"
        last = "CodeGen" if options.kernels else last
        graph = planned(graph, last, target=options.target, fusion=options.fusion)
    data: dict[str, object] = {"graph": json.to_json(graph.without_attrs())}
    text = []
    if options.kernels and not options.unfused:
        kernels = sources(graph)
        data["kernels"] = kernels
        text.append("\n\n".join(kernels.values()))
    elif options.output is None:
        text.append(to_text(graph))
    if options.output is not None:
        drawn, why = rendered(viz.plan(graph), options.output)
        data["drawing"] = str(drawn)
        text.append(f"plan drawn to {drawn}" + (f", laid out simply: {why}" if why else ""))
    return Answer(data, "\n".join(text))


def sources(graph: Graph) -> dict[str, str]:
    """The kernels of a graph by name, each text once, in the order of their launches."""
    kernels = (graph.attrs["kernel"][n] for n in graph.nodes if n in graph.attrs["kernel"])
    return {k.name: k.source for k in kernels}
