"""Compiling many graphs at once: their kernels share compiler processes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import passkit as pk
from passkit.errors import PasskitError
from passkit.graph.graph import Graph
from passkit.graph.kernel import Kernel
from passkit.passes.rtcgen import build_kernels
from passkit.program.executable import Executable
from passkit.program.planning import planned
from passkit.target import Target


def compiled(graphs: Sequence[Graph], **options: Any) -> list[Executable]:
    """An executable for each graph."""
    return [pk.compile(g, **options) for g in prebuilt(graphs, [options] * len(graphs))]


def prebuilt(graphs: Sequence[Graph], options: Sequence[Mapping[str, Any]]) -> list[Graph]:
    """The graphs, planned on under their options; their kernels are in the cache.

    One bad kernel spoils what it is compiled with, so its graph then says so by itself.
    """
    ready = [planned(g, "CodeGen", **own) for g, own in zip(graphs, options, strict=True)]
    together(ready)
    return ready


def together(graphs: Iterable[Graph]) -> None:
    """Compile the kernels of planned graphs in one go: for a device, those of equal work-groups.

    Of targets that differ otherwise compilers know nothing.
    """
    alike: dict[tuple[str, int], tuple[Target, list[Kernel]]] = {}
    for graph in graphs:
        target = graph.attrs["options"]["target"]
        _, kernels = alike.setdefault((target.name, target.block), (target, []))
        kernels.extend(graph.attrs["kernel"].values())
    for target, kernels in alike.values():
        if target.name == "blocks":
            continue
        with suppress(PasskitError):
            build_kernels(kernels, target)
