"""Statistics of a fusion plan: counts, sizes and kinds of kernels, modelled times, scratch.

Source: FusionStitching (2019), Tables 2 to 4 and Figures 6 to 8.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from attrs import frozen

from passkit.analysis.group import FUSED
from passkit.analysis.nests import contract_of
from passkit.fusion.contract import group_of
from passkit.fusion.score import modelled
from passkit.graph.graph import Graph
from passkit.graph.node import Node, is_leaf
from passkit.graph.storage import identities
from passkit.program.planning import planned
from passkit.target import Target
from passkit.values.size import symbols_of
from passkit.values.units import bytes_text, percent_text, seconds_text, table

LAST_PASS = "CodeGen"
"""The pass up to which a graph is planned for its statistics."""
BASELINES = ("none", "xla")
"""The fusion strategies that "stitch" is compared with."""
SIZE_CLASSES = ((1, 1), (2, 4), (5, 16), (17, 64), (65, 0))
"""The classes of kernels by their number of operators, from and to; the last has no end."""


UNKNOWN = "unknown, because it depends on unknown sizes; --shape gives them"
"""The text instead of numbers that depend on unknown sizes."""


@frozen
class Statistics:
    """A plan in numbers. Numbers that depend on unknown sizes are 0.

    Attributes:
        operators: The number of operators of each kernel.
        libraries: The number of library calls.
        kernels: The number of kernels and library calls, by fusion strategy.
        kinds: The number of kernels by the kind of their main operator.
        seconds: The seconds of all kernels and of all library calls, by the cost model.
        scratch: For each kernel with scratch, the bytes requested and allocated per tile, and the
            kernel's seconds.
        unsized: The number of kernels with unknown sizes.
        between: The peak bytes of values between kernels, by the selection of kernels; 0 where
            nothing was selected.
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
        """Return the numbers by name, as JSON can hold them; ratios by 0 are 0."""
        stitched = self.kernels["stitch"]
        own, library = self.seconds
        requested = sum(nbytes for nbytes, _, _ in self.scratch)
        allocated = sum(nbytes for _, nbytes, _ in self.scratch)
        scratch_seconds = sum(seconds for _, _, seconds in self.scratch)
        return {
            "operators": sum(self.operators) + self.libraries,
            "library_calls": self.libraries,
            "kernels": dict(self.kernels),
            "compression": {b: _ratio(self.kernels[b], stitched) for b in BASELINES},
            "operators_of_kernels": {
                _class_name(low, high): sum(
                    low <= n and (not high or n <= high) for n in self.operators
                )
                for low, high in SIZE_CLASSES
            },
            "operators_at_most": max(self.operators, default=0),
            "kinds": dict(self.kinds),
            "unsized": self.unsized,
            "seconds": own + library,
            "memory_bound": _ratio(own, own + library),
            "scratch_kernels": _ratio(len(self.scratch), len(self.operators)),
            "scratch_seconds": _ratio(scratch_seconds, own),
            "scratch_bytes": _ratio(allocated, len(self.scratch)),
            "scratch_most": max((b for _, b, _ in self.scratch), default=0),
            "between_nbytes": self.between,
            "scratch_shared": _ratio(allocated, requested),
        }

    def __str__(self) -> str:
        """Return the numbers as a table of two columns."""
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
        rows = [
            ("operators", f"{r['operators']}, {r['library_calls']} of them by libraries"),
            ("kernels, library calls", counts),
            ("compression", ratios),
            ("operators of a kernel", f"{sizes}; {r['operators_at_most']} at most"),
            ("kinds of kernels", ", ".join(f"{n} {kind}" for kind, n in r["kinds"].items())),
        ]
        return table(("", ""), [*rows, *sized])


def statistics(graph: Graph, **options: Any) -> Statistics:
    """Return the statistics of a graph planned with the strategy "stitch".

    Args:
        graph: The graph; it is planned with the baselines, too.
        **options: Options of `PassContext`; "fusion" is replaced.

    Raises: SettingError for a wrong option; other PasskitErrors where planning fails.
    """
    plan = planned(graph, LAST_PASS, **{**options, "fusion": "stitch"})
    target: Target = plan.attrs["options"]["target"]
    groups = dict(plan.attrs["subgraph"].items())
    times = {n: modelled(g, target) for n, g in groups.items()}
    products = [n for n in plan.nodes if n not in groups and contract_of(n) is not None]
    kernels = {
        strategy: _num_launches(planned(graph, "Fusion", **{**options, "fusion": strategy}))
        for strategy in BASELINES
    }
    scratch = []
    for node, kernel in plan.attrs["kernel"].items():
        requested, allocated = (0, 0) if symbols_of(kernel.sizes) else kernel.scratch_bytes({})
        if requested:
            scratch.append((requested, allocated, times[node]))
    launches = _num_launches(plan)
    library_seconds = sum(modelled(group_of(plan, [n]), target) for n in products)
    selection = plan.attrs["selection"]
    return Statistics(
        operators=tuple(len(g.ops) for g in groups.values()),
        libraries=launches - len(groups),
        kernels={**kernels, "stitch": launches},
        kinds=dict(sorted(Counter(g.kind.value for g in groups.values()).items())),
        seconds=(sum(times.values()), library_seconds),
        scratch=tuple(scratch),
        between=0 if selection is None else selection.peaks[1],
        unsized=sum(bool(symbols_of(k.sizes)) for k in plan.attrs["kernel"].values()),
    )


def _num_launches(graph: Graph) -> int:
    """Return the number of kernels and library calls of a fused graph.

    Nodes that need no kernel, such as variables, constants and views, do not count.

    Raises: RuleError if FInplaceOption or FInplaceIdentity returns something else than it must.
    """
    return sum(not is_leaf(n) and (n.op is FUSED or not _is_view(n)) for n in graph.nodes)


def _is_view(node: Node) -> bool:
    """Return whether an output of a node, which is no variable, is an input in the same memory.

    Raises: RuleError if FInplaceOption or FInplaceIdentity returns something else than it must.
    """
    return bool(identities(node))


def _class_name(low: int, high: int) -> str:
    """Return the name of the class of sizes from ``low`` to ``high``, such as "2-4".

    For two equal numbers it is that number, such as "1". A ``high`` of 0 is no limit: the name is
    then such as "over 64", with ``low - 1``.
    """
    if not high:
        return f"over {low - 1}"
    return f"{low}" if low == high else f"{low}-{high}"


def _ratio(part: float, whole: float) -> float:
    """Return ``part / whole``, 0 if ``whole`` is 0."""
    return part / whole if whole else 0.0
