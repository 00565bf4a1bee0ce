"""``passkit ops``: list operators, describe some with their kernels, or write the reference."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import passkit.ops  # noqa: F401  (registers the standard operators)
from passkit.cli.command_result import CommandResult
from passkit.cli.operator_page import operator_page
from passkit.graph import registry
from passkit.graph.op import REQUIRED, Op, get_op, list_ops
from passkit.reporting.operator_summary import (
    example_kernels,
    example_text,
    summarize,
)
from passkit.values.plugins import load_plugins
from passkit.values.units import table

PAGE = Path("docs/operators.md")
"""The default path of the reference of all operators."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``passkit ops``: names of operators, and the path of the reference."""
    parser.add_argument("names", nargs="*", metavar="NAME", help="operators; default: all")
    parser.add_argument(
        "--page",
        nargs="?",
        type=Path,
        const=PAGE,
        metavar="FILE",
        help=f"write the reference of all operators; default: {PAGE}",
    )


def run(options: argparse.Namespace) -> CommandResult:
    """Return a list of all operators or a full description of some, or write the reference.

    With ``options.page`` the reference is written to that path, and nothing is listed.

    Raises: RegistryError for an unknown operator, or one whose example call fails; PasskitError for
    an operator whose example cannot be planned; OSError where the reference cannot be written.
    """
    if options.page is not None:
        options.page.write_text(operator_page(), encoding="utf-8")
        return CommandResult({"page": str(options.page)}, f"operators written to {options.page}")
    load_plugins()
    aliases: dict[str, list[str]] = {}
    for name in list_ops(aliases=True):
        aliases.setdefault(get_op(name).name, []).append(name)
    ops = [get_op(n) for n in options.names] or [get_op(n) for n in list_ops()]
    data = [describe(op, [a for a in aliases[op.name] if a != op.name]) for op in ops]
    rows = [
        (d["name"], d["inputs"], d["pattern"], ", ".join(d["parameters"]), d["doc"]) for d in data
    ]
    text = table(("operator", "inputs", "pattern", "parameters", "description"), rows)
    if options.names:
        for op, d in zip(ops, data, strict=True):
            d.update(describe_execution(op))
            text += f"\n\n{details_text(d)}"
    return CommandResult(data, text)


def details_text(d: Mapping[str, Any]) -> str:
    """Return the full description of an operator as text.

    Args:
        d: The values of `describe` and `describe_execution`.
    """
    text = f"{d['call']}, registered at {d['place']}"
    text += f"\n  also called {', '.join(d['aliases'])}" if d["aliases"] else ""
    text += "".join(f"\n  {key}: {value}" for key, value in d["attributes"].items())
    text += f"\n  runs: {execution_text(d['runs'])}\n  gradient: {d['gradient']}\n"
    if d["kernels"]:
        text += f"\nThe kernel of {d['example']}:\n"
    return text + "".join(f"\n{source}" for source in d["kernels"])


def describe_execution(op: Op) -> dict[str, Any]:
    """Return details of an operator for JSON output, which take planning and code generation.

    The keys are "call", "runs" (the kind of execution by dtype), "gradient", "example" (a call as
    text) and "kernels" (the sources of its kernels, empty if it runs without one).

    Raises: RegistryError where the example call raises a PasskitError in every dtype, or another
    one than a DTypeError; PasskitError where it cannot be planned. Other errors of FExample
    propagate.
    """
    summary = summarize(op)
    return {
        "call": summary.call,
        "runs": {dtype: str(kind) for dtype, kind in summary.execution.items()},
        "gradient": summary.gradient or "no float input",
        "example": example_text(op),
        "kernels": example_kernels(op),
    }


def execution_text(execution: Mapping[str, str]) -> str:
    """Return a text of the kinds of execution, each with its dtypes, from the kind by dtype.

    >>> execution_text({"float32": "fused", "int8": "NumPy", "int16": "NumPy"})
    'fused in float32; NumPy in int8, int16'
    """
    dtypes_of: dict[str, list[str]] = {}
    for dtype, kind in execution.items():
        dtypes_of.setdefault(kind, []).append(dtype)
    return "; ".join(f"{kind} in {', '.join(dtypes)}" for kind, dtypes in dtypes_of.items())


def describe(op: Op, aliases: list[str]) -> dict[str, Any]:
    """Return the properties of an operator for JSON output, such as "inputs" and "attributes".

    Functions are represented by the file and line that registered them.

    Args:
        op: The operator.
        aliases: Its other names.
    """
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
