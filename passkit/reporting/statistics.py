"""Statistics of a fusion plan, as papers print them: counts, sizes, kinds, times and scratch.

Source: FusionStitching (2019), Tables 2 to 4 and Figures 6 to 8.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from attrs import frozen

from passkit.graph.graph import Graph
from passkit.graph.node import Node
from passkit.passes.fusion.contract import group_of
from passkit.passes.fusion.scores import modelled
from passkit.plan.group import FUSED
from passkit.plan.storage import identities
from passkit.plan.target import Target
from passkit.program.planning import planned
from passkit.space.space import is_free
from passkit.stitching.cutting import contract_of
from passkit.values.size import symbols_of
from passkit.values.units import bytes_text, percent_text, seconds_text, table

UNTIL, BASELINES = "CodeGen", ("none", "xla")
SIZES = ((1, 1), (2, 4), (5, 16), (17, 64), (65, 0))
"""Classes of kernels by their operators, from and to; the last has no end."""


UNKNOWN = "unknown, as some sizes are; give them by --shape"
"""What stands for numbers that hang on sizes."""


@frozen
class Statistics:
    """A plan in numbers: ``kernels`` by strategy, where calls of libraries count as well.

    ``operators`` are those of each kernel, ``kinds`` count kernels by what dominates them;
    ``seconds`` are the model's of kernels and of libraries, ``scratch`` has for each kernel that
    needs some the bytes of a tile: requested, allocated, and the kernel's seconds. What depends on
    unknown sizes counts as 0; so many kernels are ``unsized``. ``between`` are the bytes at most
    that kernels leave for each other, by the selection; 0 where nothing was to be selected.
    """

    operators: tuple[int, ...]
    libraries: int
    kernels: Mapping[str, int]
    kinds: Mapping[str, int]
    seconds: tuple[float, float]
    scratch: tuple[tuple[int, int, float], ...]
    unsized: int = 0
    between: int = 0

    def rows(self) -> dict[str, Any]:
        """The numbers by name, as JSON can hold them."""
        stitched = self.kernels["stitch"]
        own, library = self.seconds
        asked, given, taken = (sum(x) for x in zip((0, 0, 0.0), *self.scratch, strict=True))
        return {
            "operators": sum(self.operators) + self.libraries,
            "library_calls": self.libraries,
            "kernels": dict(self.kernels),
            "compression": {b: _over(self.kernels[b], stitched) for b in BASELINES},
            "operators_of_kernels": {
                f"{low}" if low == high else f"{low}-{high}" if high else f"over {low - 1}": sum(
                    low <= n and (not high or n <= high) for n in self.operators
                )
                for low, high in SIZES
            },
            "operators_at_most": max(self.operators, default=0),
            "kinds": dict(self.kinds),
            "unsized": self.unsized,
            "seconds": own + library,
            "memory_bound": _over(own, own + library),
            "scratch_kernels": _over(len(self.scratch), len(self.operators)),
            "scratch_seconds": _over(taken, own),
            "scratch_bytes": _over(given, len(self.scratch)),
            "scratch_most": max((b for _, b, _ in self.scratch), default=0),
            "between_nbytes": self.between,
            "scratch_shared": _over(given, asked),
        }

    def __str__(self) -> str:
        r = self.rows()
        counts = ", ".join(f"{n} with {name}" for name, n in r["kernels"].items())
        ratios = ", ".join(f"{x:.2f} of {b}" for b, x in r["compression"].items())
        sizes = ", ".join(f"{n} of {name}" for name, n in r["operators_of_kernels"].items() if n)
        shared = (
            f"{percent_text(r['scratch_kernels'])} of kernels, "
            f"{percent_text(r['scratch_seconds'])} of their time; {bytes_text(r['scratch_bytes'])} "
            f"a tile, {bytes_text(r['scratch_most'])} at most; "
            f"{r['scratch_shared']:.2f} allocated of what is requested"
        )
        sized = [
            ("time by the model", seconds_text(r["seconds"])),
            ("outside of libraries", percent_text(r["memory_bound"])),
            ("scratch", shared if self.scratch else "none"),
        ]
        if self.between:
            sized.append(("memory between kernels", f"{bytes_text(self.between)} at most"))
        if self.unsized:
            sized = [(name, UNKNOWN) for name, _ in sized]
        return table(("", ""), [
            ("operators", f"{r['operators']}, {r['library_calls']} of them by libraries"),
            ("kernels, library calls", counts),
            ("compression", ratios),
            ("operators of a kernel", f"{sizes}; {r['operators_at_most']} at most"),
            ("kinds of kernels", ", ".join(f"{n} {kind}" for kind, n in r["kinds"].items())),
            *sized,
        ])  # fmt: skip


def statistics(graph: Graph, **options: Any) -> Statistics:
    """The statistics of what "stitch" makes of a graph; ``options`` are those of `PassContext`."""
    found = planned(graph, UNTIL, **{**options, "fusion": "stitch"})
    target: Target = found.attrs["options"]["target"]
    groups = {n: g for n, g in found.attrs["subgraph"].items()}
    times = {n: modelled(g, target) for n, g in groups.items()}
    products = [n for n in found.nodes if n not in groups and contract_of(n) is not None]
    kernels = {b: _launches(planned(graph, "Fusion", **{**options, "fusion": b}))
               for b in BASELINES}  # fmt: skip
    scratch = []
    for node, kernel in found.attrs["kernel"].items():
        asked, given = (0, 0) if symbols_of(kernel.sizes) else kernel.scratch_bytes({})
        if asked:
            scratch.append((asked, given, times[node]))
    launches = _launches(found)
    calls = sum(modelled(group_of(found, [n]), target) for n in products)
    return Statistics(
        operators=tuple(len(g.ops) for g in groups.values()),
        libraries=launches - len(groups),
        kernels={**kernels, "stitch": launches},
        kinds=dict(sorted(Counter(g.kind.value for g in groups.values()).items())),
        seconds=(sum(times.values()), calls),
        scratch=tuple(scratch),
        between=chosen.peaks[1] if (chosen := found.attrs["selection"]) is not None else 0,
        unsized=sum(bool(symbols_of(k.sizes)) for k in found.attrs["kernel"].values()),
    )


def _launches(graph: Graph) -> int:
    """The kernels and the calls of libraries of a fused graph; what only sees memory is none."""
    return sum(not is_free(n) and (n.op is FUSED or not _is_view(n)) for n in graph.nodes)


def _is_view(node: Node) -> bool:
    return bool(identities(node))


def _over(part: float, whole: float) -> float:
    return part / whole if whole else 0.0
