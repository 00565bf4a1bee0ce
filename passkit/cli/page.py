"""The reference page of the standard operators, made of their exhibits."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib import import_module
from pathlib import Path

import passkit.ops
from passkit.graph.op import Op, get_op, list_ops
from passkit.reporting.exhibit import Exhibit, Way, exhibit

MARKS = {Way.FUSED: "F", Way.KERNEL: "K", Way.LIBRARY: "L", Way.NUMPY: "N"}


def library() -> dict[str, list[Op]]:
    """The operators of passkit.ops by the module that they are registered in."""
    folder = str(Path(passkit.ops.__file__).parent)
    found: dict[str, list[Op]] = {}
    for name in list_ops():
        op = get_op(name)
        file = op.place.rpartition(":")[0]
        if file.startswith(folder):
            found.setdefault(Path(file).stem, []).append(op)
    return dict(sorted(found.items()))


def page(show: Callable[[Op], Exhibit] = exhibit) -> str:
    """The reference of all operators, as Markdown."""
    parts = [HEAD, *(_section(module, map(show, ops)) for module, ops in library().items())]
    return "\n\n".join(parts) + "\n"


HEAD = """\
# Operators

Written by `passkit ops --page`; `passkit ops NAME` tells more of one, and prints its kernel.

How an operator runs on the CPU, in each dtype that it takes or gives: **F** is one kernel with what
reads it, **K** has kernels of its own, **L** is run by a library (with kernels around it), **N** by
NumPy; found by planning a call. A gradient comes from a *rule*, or is *derived* from the kernel
expression or from what a composite consists of; it is *0* where an operator is constant in
pieces."""

COLUMNS = {
    "b": ("bool",),
    "i": ("int8", "int16", "int32", "int64"),
    "u": ("uint8", "uint16", "uint32", "uint64"),
    "f16": ("float16",),
    "bf16": ("bfloat16",),
    "f32": ("float32",),
    "f64": ("float64",),
    "c": ("complex64", "complex128"),
}
"""Dtypes that stand in one column; where they differ, each has its letter."""


def _section(module: str, shown: Iterable[Exhibit]) -> str:
    about = (import_module(f"passkit.ops.{module}").__doc__ or "").strip().partition("\n")[0]
    lines = [
        f"## {module}\n\n{about}\n",
        f"| call | meaning | {' | '.join(COLUMNS)} | gradient |",
        "|---|---|" + "---|" * (len(COLUMNS) + 1),
    ]
    return "\n".join([*lines, *map(_row, shown)])


def _row(shown: Exhibit) -> str:
    meaning = " ".join(shown.op.doc.split()).replace("|", "\\|")
    cells = [f"`{shown.call}`", meaning, *marks(shown.ways), shown.gradient]
    return f"| {' | '.join(cells)} |"


def marks(ways: Mapping[str, Way]) -> Iterator[str]:
    """A cell for each column: one letter where its dtypes agree."""
    for dtypes in COLUMNS.values():
        found = [MARKS[ways[d]] if d in ways else "-" for d in dtypes]
        yield ("" if set(found) == {"-"} else found[0]) if len(set(found)) == 1 else "".join(found)
