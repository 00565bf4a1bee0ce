"""Passes: functions from graph to graph, and the contract that the pass manager enforces."""

from passkit.passes.apply import ApplyPasses
from passkit.passes.base import Pass, find_pass, list_passes, register_pass
from passkit.passes.context import PassContext
from passkit.passes.timing import Timing

__all__ = [
    "ApplyPasses",
    "Pass",
    "PassContext",
    "Timing",
    "find_pass",
    "list_passes",
    "register_pass",
]
