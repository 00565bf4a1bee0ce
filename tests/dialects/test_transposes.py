"""Kernels that read inputs along other axes than they write: results, accesses and banks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import passkit as pk
from passkit.ir.loop import Barrier, KernelIR, StorageScope, VectorLoad, walk_statements
from passkit.schedule.nest import NestSchedule
from passkit.schedule.tiles import TileThreads
from tests.emulator import EmulatedDevice, LaunchOptions
from tests.emulator.programs import emulated
from tests.planned import agrees, plan

o = pk.ops


def transposed(shape: tuple[Any, ...], order: tuple[int, ...], dtype: str = "float32") -> pk.Graph:
    """Return the sum of an array with permuted axes and another one."""
    x = pk.var("x", shape, dtype)
    return pk.Graph([o.transpose(x, order) + pk.var("y", [shape[k] for k in order], dtype)])


def several(a: int, b: int, c: int) -> pk.Graph:
    """Return an expression of three arrays whose consecutive elements lie along other axes."""
    x, y, z = pk.var("x", (c, b, a)), pk.var("y", (a, c, b)), pk.var("z", (a, b, c))
    return pk.Graph([o.transpose(x, (2, 1, 0)) * z + o.transpose(y, (0, 2, 1)), o.exp(z)])


def chain(n: int, m: int) -> pk.Graph:
    """Return what is computed of two arrays before they are transposed, and a bias."""
    x, y, b = pk.var("x", (m, n)), pk.var("y", (m, n)), pk.var("b", (m,))
    return pk.Graph([o.transpose(o.exp(x) - y, (1, 0)) + b])


def with_itself(n: int) -> pk.Graph:
    """Return the sum of a matrix and its transpose."""
    x = pk.var("x", (n, n))
    return pk.Graph([o.transpose(x, (1, 0)) + x])


def sliced() -> pk.Graph:
    """Return a part of a transposed matrix."""
    return pk.Graph([o.transpose(pk.var("x", (100, 200)), (1, 0))[8:136, 4:68] * 2.0])


GRAPHS = [
    *(transposed(s, (1, 0)) for s in ((64, 64), (100, 130), (94, 94), (3, 1000), (1000, 3))),
    *(transposed((96, 80), (1, 0), d) for d in ("float16", "float64", "int8")),
    *(transposed((97, 81), (1, 0), d) for d in ("float16", "float64", "int8")),
    transposed((192, 256), (1, 0), "uint8"),
    transposed((3, 70, 64), (0, 2, 1)),
    transposed((2, 16, 9, 11), (0, 2, 3, 1)),
    transposed((5, 6, 7, 40), (3, 1, 2, 0)),
    transposed((17, 33, 65), (2, 0, 1)),
    *(several(*s) for s in ((33, 20, 40), (64, 64, 64))),
    *(chain(*s) for s in ((96, 64), (35, 47))),
    *(with_itself(n) for n in (64, 72, 77)),
    sliced(),
]


def kernel_of(graph: pk.Graph) -> tuple[KernelIR, NestSchedule]:
    """Return the only kernel of a graph, and its schedule."""
    planned = plan(graph, target="cuda")
    (kernel,) = planned.attrs["kernel"].values()
    (schedule,) = planned.attrs["schedule"].values()
    assert isinstance(kernel.ast, KernelIR) and schedule.nest is not None
    return kernel.ast, schedule.nest


def feeds_of(graph: pk.Graph, rng: Any, **sizes: int) -> dict[str, Any]:
    """Return arrays for the inputs of a graph; ``sizes`` are its symbols."""
    feeds = {}
    for node in graph.inputs:
        entry = node.entries[0]
        shape = [sizes.get(str(n), n) for n in entry.shape or ()]
        values = rng.standard_normal(shape) * 3
        feeds[node.name] = values.astype(entry.dtype.numpy)  # type: ignore[union-attr]
    return feeds


def test_results(rng: Any) -> None:
    """Matrices, batches, several permutations and all element sizes agree with NumPy."""
    with emulated(EmulatedDevice(rng=rng)) as device:
        executables = [pk.compile(graph, target="cuda") for graph in GRAPHS]
        device.prepare(k for exe in executables for k in exe.kernels)
        for graph, exe in zip(GRAPHS, executables, strict=True):
            assert [s.transpose is not None for s in [kernel_of(graph)[1]]] == [True], graph
            feeds = feeds_of(graph, rng)
            agrees(graph, feeds, exe(feeds), rtol=2e-3)


@pytest.mark.parametrize("n", [0, 1, 5, 64, 131])
def test_an_unknown_first_axis(n: int, rng: Any) -> None:
    """One kernel serves any number of rows, and none."""
    graph = transposed((96, "n"), (1, 0))
    with emulated(EmulatedDevice(rng=rng)):
        exe = pk.compile(graph, target="cuda")
        feeds = feeds_of(graph, rng, n=n)
        agrees(graph, feeds, exe(feeds))

    assert kernel_of(graph)[1].transpose is not None


def at(array: Any, offset: int) -> Any:
    """Return a copy of an array at so many bytes behind a multiple of 16."""
    raw = np.zeros(array.nbytes + 32, np.uint8)
    start = -raw.ctypes.data % 16 + offset
    copy = raw[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


@pytest.mark.parametrize("graph", [transposed((64, 128), (1, 0)), several(64, 64, 64)])
def test_addresses_that_are_not_aligned(graph: pk.Graph, rng: Any) -> None:
    """Arrays that are not aligned to vectors give the bits of those that are."""
    (kernel,) = plan(graph, target="cuda").attrs["kernel"].values()
    inputs = list(feeds_of(graph, rng).values())
    shapes = [tuple(map(int, e.shape or ())) for e in graph.outputs]  # type: ignore[call-overload]
    results = []
    for offset in (0, 4):
        out = [at(np.full(s, 7, np.float32), offset) for s in shapes]
        device = EmulatedDevice(LaunchOptions(order=3))
        device.launch(kernel, {}, [at(x, offset) for x in inputs], out)
        results.append([r.tobytes() for r in out])

    assert results[0] == results[1]


def test_all_loads_stand_before_the_barrier() -> None:
    """Global memory is read by vectors of 16 bytes, all in front of the only barrier."""
    kernel, schedule = kernel_of(transposed((8192, 8192), (1, 0)))
    statements = list(walk_statements(kernel.body))
    barriers = [k for k, s in enumerate(statements) if isinstance(s, Barrier)]
    vectors = [k for k, s in enumerate(statements) if isinstance(s, VectorLoad) and s.width == 4]

    assert len(vectors) == 2 and max(vectors) < barriers[0]
    assert schedule.transpose is not None and schedule.transpose.sizes == (64, 64)
    shared = [b for b in kernel.arrays if b.scope is StorageScope.SHARED]
    assert [b.extent for b in shared] == [64 * 65]


@pytest.mark.parametrize(
    ("dtype", "most"), [("int8", 4), ("float16", 2), ("float32", 1), ("float64", 2)]
)
def test_conflicts_of_banks(dtype: str, most: int) -> None:
    """Tiles of floats have no conflicts of banks in either direction, others have few."""
    graph = transposed((4096, 4096), (1, 0), dtype)
    _, schedule = kernel_of(graph)
    tile = schedule.transpose
    assert tile is not None
    nbytes = np.dtype(dtype).itemsize
    threads = TileThreads(tile.sizes, schedule.vector, tile.lanes, schedule.launch.threads)
    turns = [threads.turns(axis, tile.pitch, nbytes) for axis in (0, 1)]

    assert max(turns) <= most
    unpadded = [threads.turns(axis, tile.sizes[1], nbytes) for axis in (0, 1)]
    assert max(unpadded) >= 2 * max(turns)


def test_other_reads_are_not_turned() -> None:
    """A diagonal, and arrays of which an element may not exist, are read where they are."""
    x = pk.var("x", (64, 96))
    joined = o.concat(o.transpose(x, (1, 0)), o.transpose(pk.var("y", (32, 96)), (1, 0)), axis=1)
    _, schedule = kernel_of(pk.Graph([joined]))

    assert schedule.transpose is None
