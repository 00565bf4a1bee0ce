"""Write the type stubs of `passkit`, `passkit.ast` and `passkit.ops`: ``python docs/stubs.py``.

These packages import their names when they are used, which type checkers cannot follow. The stubs
list the names: public ones from the table ``_MODULES`` of the package, operators with signature and
documentation from the registry.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from textwrap import indent

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))  # a checkout that is not installed

import passkit as pk  # noqa: E402  (after the path)
import passkit.ast  # noqa: E402
import passkit.ops  # noqa: E402
from passkit.cli.operator_page import operators_by_module  # noqa: E402
from passkit.graph import describe  # noqa: E402
from passkit.graph.op import REQUIRED, Op, get_op, list_ops  # noqa: E402

HEADER = '"""{title} Written by docs/stubs.py."""\n'
OPS_IMPORTS = """\
import builtins
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from passkit.graph.argtypes import DTypeLike, Numbers, OperandLike, Padding, ShapeLike
from passkit.graph.node import Entry, Node
from passkit.values.size import Size
"""


def package_stub() -> str:
    """Return the stub of `passkit`: each public name from the module that defines it."""
    parts = [HEADER.format(title="The public names of passkit."), *name_imports(pk._MODULES)]
    parts += [f"from passkit import {name} as {name}" for name in sorted(pk._SUBMODULES)]
    parts += ["\n__version__: str", export_list(pk.__all__)]
    return "\n".join(parts) + "\n"


def ast_stub() -> str:
    """Return the stub of `passkit.ast`: each public name from the module that defines it."""
    parts = [HEADER.format(title="The public names of passkit.ast.")]
    parts += name_imports(passkit.ast._MODULES)
    parts += ["from passkit.values import dtype as dt\n", export_list(passkit.ast.__all__)]
    return "\n".join(parts) + "\n"


def name_imports(modules: Mapping[str, str]) -> Iterator[str]:
    """Yield an import of each module's names, given as ``{module: "name name"}``."""
    for module, names in modules.items():
        listed = "".join(f"    {name} as {name},\n" for name in names.split())
        yield f"from {module} import (\n{listed})"


def export_list(names: Sequence[str]) -> str:
    """Return the definition of ``__all__``, a name a line."""
    listed = "".join(f'    "{name}",\n' for name in names)
    return f"__all__ = [\n{listed}]"


def ops_stub() -> str:
    """Return the stub of `passkit.ops`: a function for each standard operator and its aliases."""
    standard = {op for operators in operators_by_module().values() for op in operators}
    parts = [HEADER.format(title="The standard operators."), OPS_IMPORTS]
    by_module: dict[str, list[str]] = {}
    for name, module in passkit.ops.FUNCTIONS.items():
        by_module.setdefault(module, []).append(name)
    by_module["slicing"] = ["split"]
    for module, names in sorted(by_module.items()):
        parts += [f"from passkit.ops.{module} import {name} as {name}" for name in names]
    parts.append("")
    for name in list_ops(aliases=True):
        op = get_op(name)
        if op in standard:
            parts.append("\n".join(function(name, op)))
    return "\n".join(parts) + "\n"


def function(name: str, op: Op) -> Iterator[str]:
    """Yield the lines of the function that an operator is to type checkers."""
    shown = describe.signature(op)
    yield f"def {name}("
    slash = False
    star = False
    for parameter in shown.parameters.values():
        if slash and parameter.kind is not parameter.POSITIONAL_ONLY:
            yield "    /,"
            slash = False
        if parameter.kind is parameter.KEYWORD_ONLY and not star:
            yield "    *,"
            star = True
        slash = slash or parameter.kind is parameter.POSITIONAL_ONLY
        star = star or parameter.kind is parameter.VAR_POSITIONAL
        yield f"    {argument(parameter)},"
    yield f") -> {shown.return_annotation}:"
    yield indent(f'r"""{documentation(name, op)}"""', "    ")
    yield ""


def argument(parameter: inspect.Parameter) -> str:
    """Return a parameter of a stub; defaults that are no literals are written as ``...``."""
    star = "*" if parameter.kind is parameter.VAR_POSITIONAL else ""
    # An operator is called `complex`, too.
    annotation = re.sub(r"\bcomplex\b", "builtins.complex", str(parameter.annotation))
    text = f"{star}{parameter.name}: {annotation}"
    if parameter.default is parameter.empty:
        return text
    literal = isinstance(parameter.default, (bool, int, float, str)) or parameter.default is None
    plain = literal and type(parameter.default) in (bool, int, float, str, type(None))
    finite = parameter.default == parameter.default and abs_is_finite(parameter.default)
    return f"{text} = {parameter.default!r}" if plain and finite else f"{text} = ..."


def abs_is_finite(value: object) -> bool:
    """Return whether a value can be written as a literal: all but infinities."""
    return value not in (float("inf"), float("-inf"))


def documentation(name: str, op: Op) -> str:
    """Return the docstring of an operator: what it computes, and the meaning of parameters."""
    parts = [op.doc.strip()]
    if name != op.name:
        parts[0] = f"{parts[0]} (another name of {op.name})"
    lines = [
        f"    {key}: {describe.parameter_meaning(op, key)}"
        + (" (required)" if default is REQUIRED else "")
        for key, default in op.params.items()
    ]
    if lines:
        parts.append("\n".join(["Args:", *lines, ""]))
    return "\n\n".join(parts).replace('"""', "'''")


STUBS = {
    "passkit/__init__.pyi": package_stub,
    "passkit/ast/__init__.pyi": ast_stub,
    "ops/__init__.pyi": ops_stub,
}
"""File of the checkout: what makes its text."""


def main() -> None:
    """Write all stubs."""
    for name, make in STUBS.items():
        (ROOT / name).write_text(make(), encoding="utf-8")
        print(name)


if __name__ == "__main__":
    main()
