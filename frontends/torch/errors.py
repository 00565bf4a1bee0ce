"""The error of nodes that have no equivalent in passkit."""

from __future__ import annotations


class UnsupportedNodeError(Exception):
    """Why a node of a PyTorch graph has no equivalent in passkit; it is called in PyTorch then."""
