"""Types of the options that `compile`, `jit`, `explain`, `tune` and `ApplyPasses` take by keyword.

Names of strategies and targets are literals, so that type checkers reject misspelt ones. One of
your own is given as the object that `register_fusion` returns, or as a `Target`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Literal, TypedDict

from passkit.fusion.strategy import Strategy
from passkit.graph.node import Entry, Node
from passkit.passes.base import Pass
from passkit.schedule.template import ScheduleText, Template
from passkit.target import Target

TargetName = Literal["cpu", "opencl", "cuda", "interpret", "blocks"]
FusionName = Literal["none", "nnvm", "xla", "deep", "stitch"]
NodeReference = str | Node | Entry
"""A node, by its name, itself or one of its outputs."""


class PlanOptions(TypedDict, total=False):
    """The options of `passkit.compile`, which documents them, except ``passes``."""

    target: TargetName | Target | None
    fusion: FusionName | Strategy | None
    numerics: Literal["strict", "fast"] | None
    disabled: Iterable[str] | None
    dump: str | Path | None
    timing: bool | None
    fuel: int | None
    keep_together: Iterable[Iterable[NodeReference]] | None
    keep_apart: Iterable[Iterable[NodeReference]] | None
    no_fuse: Iterable[NodeReference] | None
    templates: Mapping[Any, str | Template | ScheduleText] | None
    evaluator: Any


class CompileOptions(PlanOptions, total=False):
    """The options of `passkit.compile`, which documents them."""

    passes: Iterable[str | Pass] | Mapping[str, Iterable[str | Pass] | str | Pass] | None
