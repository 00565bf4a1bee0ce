"""Packs of loop nests on a GPU, for tests: graphs that are one kernel of several parts."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from attrs import frozen

import passkit as pk
from passkit.graph.kernel import Kernel
from passkit.ir.pack import PackIR
from passkit.planner.packs import packed_nests
from passkit.schedule.loop_nest import LoopNest
from passkit.schedule.schedule import Schedule
from tests.planned import plan

o = pk.ops
ODD = (1, 3, 1023, 1024, 1025, 2500, 4096, 5)
"""Sizes around a block of 1024 points."""


@frozen(eq=False)
class PackProgram:
    """A graph that is one kernel of several loop nests.

    Attributes:
        graph: the results of the kernel, in its order.
        inputs: the names of its inputs, in its order.
        kernel: its kernel.
        schedule: its schedule.
        nests: the loop nest of each part.
    """

    graph: pk.Graph
    inputs: tuple[str, ...]
    kernel: Kernel
    schedule: Schedule
    nests: tuple[LoopNest, ...]

    @property
    def ir(self) -> PackIR:
        """Return the kernel in final form."""
        assert isinstance(self.kernel.ast, PackIR)
        return self.kernel.ast


def chain(k: int, *shape: Any, dtype: str = "float32") -> pk.Entry:
    """Return a chain of elementwise operators of two arrays."""
    x, y = pk.var(f"x{k}", shape, dtype), pk.var(f"y{k}", shape, dtype)
    return (x + y) * x - y


def chains(sizes: Sequence[int], dtype: str = "float32") -> list[Any]:
    """Return chains of arrays of these sizes."""
    return [chain(k, n, dtype=dtype) for k, n in enumerate(sizes)]


def softmaxes(rows: Sequence[int], length: int) -> list[Any]:
    """Return softmaxes of arrays of so many rows."""
    return [o.softmax(pk.var(f"s{length}_{k}", (n, length))) for k, n in enumerate(rows)]


def sums(rows: Sequence[Any], length: int) -> list[Any]:
    """Return sums over rows of arrays of so many."""
    return [o.reduce_sum(pk.var(f"r{k}", (n, length)), axis=1) for k, n in enumerate(rows)]


def scaled(sizes: Sequence[int]) -> list[Any]:
    """Return arrays times one number, which all parts read: their arguments are no even steps."""
    factor = pk.var("factor", ())
    return [pk.var(f"z{k}", (n,)) * factor + pk.var(f"w{k}", (n,)) for k, n in enumerate(sizes)]


def mixed() -> list[Any]:
    """Return chains, short rows, rows of a warp, halves of a block, and columns."""
    column_sum = o.reduce_sum(pk.var("c", (200, 96)) * 2.0, axis=0)
    return [
        *chains((10, 1500, 300)),
        *softmaxes((77, 3, 1), 40),
        *softmaxes((5, 130), 256),
        o.exp(pk.var("e", (5000,))),
        column_sum,
    ]


GRAPHS: dict[str, Any] = {
    "odd sizes": lambda: chains(ODD),
    "two parts": lambda: chains((700, 2)),
    "float16": lambda: chains((7, 2049, 64), "float16"),
    "float64": lambda: chains((7, 2049, 64), "float64"),
    "int8": lambda: chains((7, 20000, 64), "int8"),
    "a number for all": lambda: scaled((5, 5000, 64, 1025)),
    "short rows": lambda: softmaxes((1, 77, 64, 130), 40),
    "rows": lambda: softmaxes((1, 7, 64, 3), 256),
    "mixed": mixed,
    "long rows": lambda: [*softmaxes((3, 7), 2000), *softmaxes((2,), 9000), *chains((5, 2000))],
    "unknown sizes": lambda: [chain(0, "n"), chain(1, "m"), chain(2, 300), chain(3, "n")],
}
"""Outputs of graphs by name."""


def program_of(outputs: Sequence[Any], **options: Any) -> PackProgram:
    """Return the program of a graph whose outputs are one kernel of several loop nests.

    Those of unknown sizes are named to be kept together.
    """
    graph = pk.Graph(list(outputs))
    names = [graph.names[e.node] for e in graph.outputs]
    is_known = all(isinstance(n, int) for e in graph.outputs for n in e.shape)
    together = {} if is_known else {"keep_together": [names]}
    planned = plan(graph, target="cuda", **together, **options)
    ((node, kernel),) = planned.attrs["kernel"].items()
    group, schedule = planned.attrs["subgraph"][node], planned.attrs["schedule"][node]
    assert schedule.pack is not None, schedule.no_nest
    return PackProgram(
        pk.Graph(list(node.entries)),
        tuple(planned.names[e.node] for e in node.inputs),
        kernel,
        schedule,
        tuple(packed_nests(group, schedule)),
    )


@cache
def program(name: str) -> PackProgram:
    """Return the program of this name."""
    return program_of(GRAPHS[name]())


def random_outputs(rng: Any) -> list[Any]:
    """Return outputs of a random graph of 2 to 12 parts: chains, rows, columns and sums.

    Some read one number; some have equal shapes, so that one loop may compute several of them.
    """
    factor = pk.var("factor", ())
    sizes = [int(n) for n in rng.choice([1, 3, 7, 64, 1023, 1024, 1500, 4099], 3)]
    lengths = [int(n) for n in rng.choice([8, 10, 40, 64, 96, 130, 256, 768, 1024, 1300], 2)]
    outputs: list[Any] = []
    for k in range(int(rng.integers(2, 13))):
        dtype = str(rng.choice(["float32", "float32", "float32", "float16", "float64", "int32"]))
        shape = (int(rng.choice([1, 2, 5, 33])), int(rng.choice(lengths)))
        x, matrix = pk.var(f"x{k}", (int(rng.choice(sizes)),), dtype), pk.var(f"m{k}", shape)
        kinds = [
            lambda x=x: x * x + x,
            lambda x=x, k=k: x - pk.var(f"b{k}", x.shape, str(x.dtype)) * x,
            lambda k=k: pk.var(f"f{k}", (int(rng.choice(sizes)),)) * factor,
            lambda m=matrix: o.softmax(m),
            lambda m=matrix: o.reduce_sum(m * 0.5, axis=1),
            lambda m=matrix, k=k: o.tanh(m + pk.var(f"r{k}", (m.shape[1],))),
            lambda k=k: o.reduce_max(pk.var(f"c{k}", (100, int(rng.choice([7, 64, 300])))), axis=0),
        ]
        outputs.append(kinds[int(rng.choice(len(kinds), p=PROBABILITIES))]())
    return outputs


PROBABILITIES = (0.25, 0.2, 0.15, 0.1, 0.1, 0.1, 0.1)
"""Of the kinds of parts of random graphs."""
