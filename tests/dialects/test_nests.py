"""Kernels of single loop nests on GPUs: results, and bits that depend on nothing but a row."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from attrs import evolve

import passkit as pk
from passkit.dialects import CUDA
from passkit.dialects.c_printer import print_ir
from passkit.errors import CodeGenError
from passkit.ir.loop import Bind, For, KernelIR, LaunchShape, PrepareDivisor, ReduceStmt
from tests.emulator import EmulatedDevice, LaunchOptions
from tests.emulator.programs import emulated
from tests.planned import agrees, plan

o = pk.ops
LENGTHS = (1, 5, 8, 10, 32, 40, 64, 100, 130, 768, 1024, 1028, 3000, 5000)


def softmax(rows: int, length: int) -> pk.Graph:
    """Return softmaxes of rows."""
    return pk.Graph([o.softmax(pk.var("x", (rows, length)))])


def elementwise(*shape: int, dtype: str = "float32") -> pk.Graph:
    """Return a chain of elementwise operators with a row and a column that broadcast."""
    x, row = pk.var("x", shape, dtype), pk.var("row", shape[-1:], dtype)
    column = pk.var("column", (*shape[:-1], 1), dtype)
    return pk.Graph([(x + row) * column, o.abs(x)])


def columns(shape: tuple[int, ...], axis: int) -> pk.Graph:
    """Return sums and maxima over an axis that is not the last one."""
    x, y = pk.var("x", shape), pk.var("y", shape)
    return pk.Graph([o.reduce_sum(x * y, axis=axis), o.reduce_max(x, axis=axis)])


def joined() -> pk.Graph:
    """Return a softmax of two arrays side by side, each of which is read only where it is."""
    return pk.Graph([o.softmax(o.concat(pk.var("x", (6, 8)), pk.var("y", (6, 16)), axis=1))])


def padded() -> list[pk.Graph]:
    """Return graphs that read behind an array's last element only where a condition holds.

    Elements, short rows, rows in registers, columns and chunks of a long sum.
    """
    flat, longer = pk.var("x", (252,)), pk.var("y", (1300,))
    short, wide = pk.var("x", (3, 40)), pk.var("x", (2, 1024))
    values = [
        o.pad(flat, ((0, 778),)) * 2.0,
        o.concat(flat, longer, axis=0) + 1.0,
        o.softmax(o.pad(short, ((0, 61), (0, 0)))),
        o.softmax(o.concat(wide, pk.var("y", (5, 1024)), axis=0)),
        o.reduce_sum(o.pad(wide, ((0, 100), (0, 0))), axis=0),
        o.reduce_sum(o.pad(flat, ((0, 200_000),))),
    ]
    return [pk.Graph([value]) for value in values]


def side_by_side(*lengths: int, dtype: str = "float32") -> pk.Graph:
    """Return elements of arrays of some lengths side by side, in a pad of 4 and of 8."""
    arrays = [pk.var(f"x{k}", (9, n), dtype) for k, n in enumerate(lengths)]
    return pk.Graph([o.abs(o.pad(o.concat(*arrays, axis=1), ((0, 0), (4, 8))))])


def apart(axes: tuple[int, ...]) -> pk.Graph:
    """Return what is left of elements less their mean over axes with others between."""
    x = pk.var("x", (2, 3, 5, 6))
    return pk.Graph([x - o.reduce_mean(x, axis=axes, keepdims=True)])


def layer_norm(length: int) -> pk.Graph:
    """Return layer norms with scale and shift."""
    scale, shift = pk.var("scale", (length,)), pk.var("shift", (length,))
    return pk.Graph([o.layer_norm(pk.var("x", (3, length)), scale, shift)])


GRAPHS = [
    *(softmax(3, n) for n in LENGTHS),
    *(layer_norm(n) for n in (40, 96, 768, 4096)),
    *(elementwise(*s) for s in ((7,), (3, 1000), (33, 40), (6, 94, 3), (2, 1024))),
    *(elementwise(5, 24, dtype=d) for d in ("float16", "float64", "int8", "int64")),
    *(columns(s, a) for s, a in (((5, 7), 0), ((33, 1024), 0), ((3, 50, 64), 1), ((700, 24), 0))),
    *(apart(a) for a in ((2, 3), (1, 3), (0, 3))),
    joined(),
    *padded(),
    *(side_by_side(*n) for n in ((40, 24, 4), (40, 5), (3, 37), (1028,))),
    *(side_by_side(24, 12, dtype=d) for d in ("float16", "float64", "int8")),
    pk.Graph([o.reduce_sum(pk.var("x", (2, 60_001)), axis=1)]),
    pk.Graph([o.reduce_sum(pk.var("x", (200_000,)))]),
]


def feeds_of(graph: pk.Graph, rng: np.random.Generator) -> dict[str, Any]:
    """Return arrays for the inputs of a graph, of their shapes and dtypes."""
    feeds = {}
    for node in graph.inputs:
        entry = node.entries[0]
        assert entry.shape is not None and entry.dtype is not None
        values = rng.standard_normal([int(n) for n in entry.shape]) * 3  # type: ignore[call-overload]
        feeds[node.name] = values.astype(entry.dtype.numpy)
    return feeds


def test_results(rng: Any) -> None:
    """Rows of every kind of length, elements, columns and long sums equal NumPy's."""
    with emulated(EmulatedDevice(rng=rng)) as device:
        executables = [pk.compile(graph, target="cuda") for graph in GRAPHS]
        device.prepare(k for exe in executables for k in exe.kernels)
        for graph, exe in zip(GRAPHS, executables, strict=True):
            assert all(isinstance(k.ast, KernelIR) for k in exe.kernels), graph
            feeds = feeds_of(graph, rng)
            agrees(graph, feeds, exe(feeds), rtol=2e-3)


@pytest.mark.parametrize("shape", [(3, 0), (0, 4), (0,), (2, 0, 5)], ids=str)
def test_reductions_of_no_elements_are_their_identity(shape: tuple[int, ...]) -> None:
    """Reductions over an axis without elements give True, False, 0 or 1."""
    x, b = pk.var("x", shape), pk.var("b", shape, "bool")
    axis = shape.index(0)
    values = [
        o.reduce_all(b, axis=axis),
        o.reduce_any(b, axis=axis),
        o.reduce_sum(x, axis=axis),
        o.reduce_prod(x * 2.0, axis=axis),
        o.reduce_all(b),
        o.reduce_sum(x),
    ]
    feeds = {"x": np.zeros(shape, np.float32), "b": np.zeros(shape, bool)}
    with emulated():
        for value in values:
            graph = pk.Graph([value])
            own = {n.name: feeds[n.name] for n in graph.inputs}
            (expected,) = pk.interpret(graph, own)
            (actual,) = pk.compile(graph, target="cuda")(own)
            np.testing.assert_array_equal(actual, expected)


@pytest.mark.parametrize(("length", "most"), [(10, 65_536), (40, 70), (768, 70), (5000, 70)])
def test_a_row_has_the_same_bits_in_any_batch(length: int, most: int, rng: Any) -> None:
    """A row of a softmax has equal bits among 1, 7 and ``most`` rows."""
    rows = rng.standard_normal((most, length)).astype(np.float32)
    results = []
    with emulated() as device:
        executables = [(n, pk.compile(softmax(n, length), target="cuda")) for n in (1, 7, most)]
        device.prepare(k for _, exe in executables for k in exe.kernels)
        results = [np.asarray(exe(x=rows[:n])[0])[0] for n, exe in executables]

    assert len({r.tobytes() for r in results}) == 1


def at(array: Any, offset: int) -> Any:
    """Return a copy of an array at so many bytes behind a multiple of 16."""
    raw = np.zeros(array.nbytes + 32, np.uint8)
    start = -raw.ctypes.data % 16 + offset
    copy = raw[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


@pytest.mark.parametrize("graph", [softmax(9, 40), softmax(3, 1024), columns((9, 64), 0)])
def test_bits_do_not_depend_on_addresses(graph: pk.Graph, rng: Any) -> None:
    """Arrays that are not aligned to vectors give the bits of those that are."""
    (kernel,) = plan(graph, target="cuda").attrs["kernel"].values()
    inputs = list(feeds_of(graph, rng).values())
    shapes = [tuple(map(int, e.shape or ())) for e in graph.outputs]  # type: ignore[call-overload]
    device = EmulatedDevice(LaunchOptions())
    results = []
    for offset in (0, 4):
        out = [at(np.full(s, 7, np.float32), offset) for s in shapes]
        device.launch(kernel, {}, [at(x, offset) for x in inputs], out)
        results.append([r.tobytes() for r in out])

    assert results[0] == results[1]


def kernel_ir(*body: Any) -> KernelIR:
    """Return a kernel of these statements without parameters."""
    return KernelIR((), (), (), body, LaunchShape(1, 32, 1))


def test_arrays_side_by_side_are_read_by_vectors() -> None:
    """Where they begin and end at multiples of a vector, a vector is of one of them."""
    (kernel,) = plan(side_by_side(40, 24), target="cuda").attrs["kernel"].values()
    assert kernel.source.count("load_stream<4>(selected") == 2
    (kernel,) = plan(side_by_side(41, 24), target="cuda").attrs["kernel"].values()
    assert "load_stream<4>(selected" not in kernel.source


def test_only_the_final_form_is_printed() -> None:
    """A reduction, a loop over threads, or a divisor of a dialect without one is refused."""
    zero = pk.ast.const(0, pk.ast.dt.int64)
    var = pk.ast.Var("i", pk.ast.dt.int64)
    total = pk.ast.Var("t", pk.ast.dt.float32)
    one = pk.ast.const(1, pk.ast.dt.float32)
    with pytest.raises(CodeGenError, match="the final form of loop IR has no Reduce"):
        print_ir(kernel_ir(ReduceStmt(total, one, one, one, 32)), "k", CUDA)
    with pytest.raises(CodeGenError, match="the final form of loop IR has no loop over thread_x"):
        print_ir(kernel_ir(For(var, zero, zero, Bind.THREAD_X, ())), "k", CUDA)
    plain = evolve(CUDA, name="plain", quotients=None)
    with pytest.raises(CodeGenError, match="dialect plain has no templates of quotients"):
        print_ir(kernel_ir(PrepareDivisor("by_t", total)), "k", plain)
