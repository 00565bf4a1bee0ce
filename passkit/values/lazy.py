"""Deferred imports of modules, so that a warm start imports only what it uses."""

from __future__ import annotations

from importlib import import_module
from typing import Any


class Lazy:
    """A stand-in for a module, which is imported when one of its names is first used.

    Args:
        name: the full name of the module.
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        """Return ``name`` of the module, imported for it, and store it here as an attribute.

        Raises: AttributeError if the module lacks it, ImportError if there is no such module.
        """
        value = getattr(import_module(self._name), name)
        setattr(self, name, value)  # later look-ups do not come here
        return value
