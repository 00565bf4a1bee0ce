"""The standard operators: ``pk.ops.NAME`` is any registered operator, yours too."""

from __future__ import annotations

from typing import Any

from passkit.errors import RegistryError
from passkit.op import get_op, list_ops

# Importing a module registers its operators.
from passkit.ops import elementwise, linalg, movement, nn, reduce, slicing, state
from passkit.ops.slicing import split

__all__ = ["elementwise", "linalg", "movement", "nn", "reduce", "slicing", "split", "state"]


def __getattr__(name: str) -> Any:
    try:
        return get_op(name)
    except RegistryError as error:
        raise AttributeError(str(error)) from None


def __dir__() -> list[str]:
    return [*list_ops(aliases=True), "split"]
