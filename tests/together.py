"""Compiling many graphs at once: their kernels share compiler processes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import passkit as pk
from passkit.errors import PasskitError
from passkit.executable import Executable
from passkit.graph import Graph
from passkit.passes.rtcgen import sections_of
from passkit.planning import planned
from passkit.runtime.native.build import build


def compiled(graphs: Sequence[Graph], **options: Any) -> list[Executable]:
    """An executable for each graph."""
    return [pk.compile(g, **options) for g in prebuilt(graphs, [options] * len(graphs))]


def prebuilt(graphs: Sequence[Graph], options: Sequence[Mapping[str, Any]]) -> list[Graph]:
    """The graphs, planned on under their options; their kernels are in the cache.

    One bad kernel spoils what it is compiled with, so its graph then says so by itself.
    """
    kernels = {}
    ready = [planned(g, "CodeGen", **own) for g, own in zip(graphs, options, strict=True)]
    for graph in ready:
        kernels.update({k.key: k for k in graph.attrs["kernel"].values()})
    sources = [
        (k.key, k.name, f"namespace pk {{\n{k.source}}}\n", sections_of(k.source))
        for k in kernels.values()
    ]
    with suppress(PasskitError):
        build(sources, flags=("-fwrapv",))
    return ready
