"""Targets: what a machine is called, what it can do, and the numbers that plans are made from."""

from __future__ import annotations

from passkit.target.cpu import cpu
from passkit.target.registry import list_targets, register_target, target_of
from passkit.target.target import DEVICES, KIB, MIB, Target

__all__ = [
    "DEVICES",
    "KIB",
    "MIB",
    "Target",
    "cpu",
    "list_targets",
    "register_target",
    "target_of",
]
