"""The error of nodes that have no equivalent in passkit."""

from __future__ import annotations

from typing import NoReturn


class UnsupportedNodeError(Exception):
    """The reason why a node of a graph has no equivalent in passkit, so that PyTorch runs it."""


def unsupported(reason: str) -> NoReturn:
    """Refuse a node of a graph, which PyTorch runs then; ``reason`` is for reports.

    Raises: UnsupportedNodeError always.
    """
    raise UnsupportedNodeError(reason)
