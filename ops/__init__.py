"""The standard operators: ``pk.ops.NAME`` is any registered operator, those of users too.

Importing a module of this package registers its operators. Only the commonest modules are imported
at once; the others are imported when a name is looked up that is not registered yet.
"""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules
from typing import Any

from passkit.errors import RegistryError
from passkit.graph.op import get_op, list_ops, register_later
from passkit.ops import elementwise, linalg, movement, nn, reduce, slicing, state
from passkit.ops.slicing import split

PACKAGE = "passkit.ops"
"""The name of this package, also where `ops` is imported from the root of a checkout."""

LAST_MODULES = ("parameters",)
"""Modules that describe all operators, which must be registered before."""

_modules = [m.name for m in iter_modules(__path__) if m.name not in LAST_MODULES]
register_later(*(f"{PACKAGE}.{module}" for module in (*_modules, *LAST_MODULES)))

FUNCTIONS = {
    "array_split": "movement_composites",
    "assign_index": "assigning",
    "broadcast_arrays": "movement_composites",
    "meshgrid": "movement_composites",
    "unstack": "movement_composites",
}
"""The modules of functions that are no operators, as the number of outputs depends on the call."""

__all__ = ["elementwise", "linalg", "movement", "nn", "reduce", "slicing", "split", "state"]


def __getattr__(name: str) -> Any:
    """Return an operator, or a function of `FUNCTIONS`, by name (PEP 562: module attributes).

    An alias gives its operator. Imports the module of the function, or modules of operators until
    one registers the name, but none for a name that begins with two underscores.

    Raises: AttributeError if there is none; the message suggests the nearest name, unless the name
    begins with two underscores.
    """
    if name in FUNCTIONS:
        return getattr(import_module(f"{PACKAGE}.{FUNCTIONS[name]}"), name)
    if name.startswith("__"):  # looked up by Python's tools: no reason to load plug-ins
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return get_op(name)
    except RegistryError as error:
        raise AttributeError(str(error)) from None


def __dir__() -> list[str]:
    """Return the names of all operators, their aliases, and functions that are no operators.

    Imports all modules of operators.
    """
    return [*list_ops(aliases=True), *FUNCTIONS, "split"]
