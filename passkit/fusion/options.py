"""The options that fusion obeys."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from passkit.target import Target


class FusionOptions(Protocol):
    """The options of a `PassContext` that fusion reads, with nodes by name in hints."""

    @property
    def target(self) -> Target:
        """The target."""

    @property
    def keep_together(self) -> Sequence[Sequence[Any]]:
        """Lists of nodes that are to be in one group."""

    @property
    def keep_apart(self) -> Sequence[Sequence[Any]]:
        """Lists of nodes of which no two may be in one group."""

    @property
    def no_fuse(self) -> Sequence[Any]:
        """Nodes that are groups of their own."""

    @property
    def evaluator(self) -> Any:
        """Estimates the seconds of groups; None for the measurements of this machine."""

    def spend(self, decision: str) -> bool:
        """Use up one unit of fuel for a decision; return whether it may be taken."""
