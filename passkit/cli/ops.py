"""``passkit ops``: the operators, and what each of them can do."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import passkit.ops  # noqa: F401  (registers the standard operators)
from passkit.cli import page
from passkit.cli.answer import Answer
from passkit.graph import registry
from passkit.graph.op import REQUIRED, Op, get_op, list_ops
from passkit.reporting import exhibit
from passkit.values.plugins import load_plugins
from passkit.values.units import table

PAGE = Path("docs/operators.md")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Which operators."""
    parser.add_argument("names", nargs="*", metavar="NAME", help="operators; default: all")
    parser.add_argument("--page", nargs="?", type=Path, const=PAGE, metavar="FILE",
                        help=f"write the reference of all operators; default: {PAGE}")  # fmt: skip


def run(options: argparse.Namespace) -> Answer:
    """List all operators, tell all about some with a kernel of each, or write the reference."""
    if options.page is not None:
        options.page.write_text(page.page(), encoding="utf-8")
        return Answer({"page": str(options.page)}, f"operators written to {options.page}")
    load_plugins()
    aliases: dict[str, list[str]] = {}
    for name in list_ops(aliases=True):
        aliases.setdefault(get_op(name).name, []).append(name)
    ops = [get_op(n) for n in options.names] or [get_op(n) for n in list_ops()]
    data = [describe(op, [a for a in aliases[op.name] if a != op.name]) for op in ops]
    rows = [
        (d["name"], d["inputs"], d["pattern"], ", ".join(d["parameters"]), d["doc"]) for d in data
    ]
    text = table(("operator", "inputs", "pattern", "parameters", "what it is"), rows)
    if options.names:
        for op, d in zip(ops, data, strict=True):
            d.update(told(op))
            text += f"\n\n{d['call']}, registered at {d['place']}"
            text += f"\n  also called {', '.join(d['aliases'])}" if d["aliases"] else ""
            text += "".join(f"\n  {key}: {value}" for key, value in d["attributes"].items())
            text += f"\n  runs: {runs(d['runs'])}\n  gradient: {d['gradient']}\n"
            if d["kernels"]:
                text += f"\nThe kernel of {d['example']}:\n"
            text += "".join(f"\n{source}" for source in d["kernels"])
    return Answer(data, text)


def told(op: Op) -> dict[str, Any]:
    """The call, how it runs in each dtype, its gradient, and the kernels of its example."""
    shown = exhibit.exhibit(op)
    return {
        "call": shown.call,
        "runs": {dtype: str(way) for dtype, way in shown.ways.items()},
        "gradient": shown.gradient or "no float input",
        "example": exhibit.shown_text(op),
        "kernels": exhibit.kernels(op),
    }


def runs(ways: Mapping[str, str]) -> str:
    """Ways to run, each with its dtypes."""
    found: dict[str, list[str]] = {}
    for dtype, way in ways.items():
        found.setdefault(way, []).append(dtype)
    return "; ".join(f"{way} in {', '.join(dtypes)}" for way, dtypes in found.items())


def describe(op: Op, aliases: list[str]) -> dict[str, Any]:
    """An operator as JSON can hold it; functions by the place that registered them."""
    attributes = {}
    for column in registry.tables():
        if op.name in column.rows:
            row = column.rows[op.name]
            attributes[column.key] = row.place if callable(row.value) else str(row.value)
    return {
        "name": op.name,
        "inputs": "any" if op.num_inputs in (-1, None) else op.num_inputs,
        "outputs": "any" if op.num_outputs == -1 else op.num_outputs,
        "pattern": op.pattern.name.lower(),
        "parameters": [k if v is REQUIRED else f"{k}={v}" for k, v in op.params.items()],
        "doc": op.doc.strip().partition("\n")[0],
        "aliases": aliases,
        "place": op.place,
        "attributes": attributes,
    }
