"""Names of `passkit.target`, for modules outside of passkit that import them from here."""

from __future__ import annotations

from passkit.target import Target, list_targets, register_target, target_of

__all__ = ["Target", "list_targets", "register_target", "target_of"]
