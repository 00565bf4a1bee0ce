"""The standard operators: ``pk.ops.NAME`` is any registered operator, yours too."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules
from typing import Any

from passkit.errors import RegistryError
from passkit.graph.op import get_op, list_ops, register_later

# Importing a module registers its operators; the others are imported when a name asks for them.
from passkit.ops import elementwise, linalg, movement, nn, reduce, slicing, state
from passkit.ops.slicing import split

# By the name that they are registered under, also where a checkout's root finds `ops` by itself.
HOME = "passkit.ops"
MODULES = [m.name for m in iter_modules(__path__)]
LAST = ("parameters",)
"""Modules that say something of all operators, so that those must be registered before."""
register_later(*(f"{HOME}.{m}" for m in (*(m for m in MODULES if m not in LAST), *LAST)))

FUNCTIONS = {
    "array_split": "movement_composites",
    "assign_index": "assigning",
    "broadcast_arrays": "movement_composites",
    "meshgrid": "movement_composites",
    "unstack": "movement_composites",
}
"""Functions beside the operators, which have as many results as a call says; and their files."""

__all__ = ["elementwise", "linalg", "movement", "nn", "reduce", "slicing", "split", "state"]


def __getattr__(name: str) -> Any:
    if name in FUNCTIONS:
        return getattr(import_module(f"{HOME}.{FUNCTIONS[name]}"), name)
    if name.startswith("__"):  # asked by Python's tools, and no reason to load plug-ins
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return get_op(name)
    except RegistryError as error:
        raise AttributeError(str(error)) from None


def __dir__() -> list[str]:
    return [*list_ops(aliases=True), *FUNCTIONS, "split"]
