"""Targets whose vectors have another width: entries of tables, and no other code.

A dialect of the C++ printer with 32 or 64 elements in a vector, and a target that names it: kernels
are planned, lowered, compiled by the C++ compiler and run as those of the target "cpu" are.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from attrs import evolve

import passkit as pk
from passkit.dialects import CXX
from passkit.target import target_of
from tests.planned import feeds_of, plan, prebuild

o = pk.ops
WIDTHS = (32, 64)


def wide_target(width: int) -> str:
    """Register a dialect and a target with vectors of ``width`` elements; return its name."""
    assert CXX.vectors is not None
    vectors = evolve(CXX.vectors, width=width, pack=4 * width)
    pk.register_dialect(evolve(CXX, name=f"test_cxx_{width}", vectors=vectors))
    cpu = target_of("cpu")
    name = f"test_cpu_{width}"
    pk.register_target(evolve(cpu, name=name, dialect=f"test_cxx_{width}", lanes=width))
    return name


def elementwise() -> pk.Graph:
    """Long formulas, comparisons, two dtypes; rows of 101 elements end in a masked tail."""
    x, y = pk.var("x", (37, 101)), pk.var("y", (37, 101), "float64")
    chosen = o.where(x > 0.5, o.tanh(x) * o.exp(-x), o.sqrt(o.abs(x)) / 1.7)
    return pk.Graph([chosen, o.cast(x, "float64") * y, o.cast(x * 100.0, "int32") // 7])


def masked_tail() -> pk.Graph:
    """One row that is a little longer than a vector, and one that is shorter."""
    return pk.Graph([o.exp(pk.var("x", (67,))), o.sigmoid(pk.var("y", (5,)))])


def layer_norm() -> pk.Graph:
    """Means and variances of rows, and values of rows."""
    x, scale, shift = pk.var("x", (37, 770)), pk.var("scale", (770,)), pk.var("shift", (770,))
    return pk.Graph([o.layer_norm(x, scale, shift)])


def softmax(*shape: int, axis: int = -1) -> pk.Graph:
    """Maxima, sums and divisions by them."""
    return pk.Graph([o.softmax(pk.var("x", shape), axis=axis)])


def scans() -> pk.Graph:
    """A scan in each direction along rows that are no whole vectors."""
    x = pk.var("x", (7, 150), "float64")
    return pk.Graph([o.cumsum(x, axis=1), o.cumsum(x, axis=1, reverse=True)])


def transposes() -> pk.Graph:
    """Blocks that are transposed, narrow and wide ones, and rows of three elements."""
    x, y, z = pk.var("x", (90, 203)), pk.var("y", (203, 90)), pk.var("z", (40, 50, 3))
    return pk.Graph([o.transpose(x) + y, o.transpose(z, axes=(2, 0, 1)) * 2.0])


def narrow_types() -> pk.Graph:
    """Floats and integers of 16 and 8 bits, and bools."""
    h, b = pk.var("h", (9, 75), "float16"), pk.var("b", (9, 75), "bfloat16")
    small = o.cast(h * 10.0, "int8")
    return pk.Graph([o.exp(h), o.reduce_max(b, axis=1), small + small, h > 0.0])


def gathers() -> pk.Graph:
    """Elements at loaded indices, at every second one, and in reversed order."""
    x, at = pk.var("x", (203, 40)), pk.var("at", (77,), "int64")
    return pk.Graph([o.take(x, at, axis=0) * 2.0, x[:, ::2] + 1.0, x[:, ::-1] - 1.0])


def own_kernels() -> pk.Graph:
    """Operators that bring their own kernels: a concatenation of many inputs, rows that are set."""
    inputs = [pk.var(f"c{k}", (3, 5)) for k in range(80)]
    x, updates = pk.var("x", (2, 3, 203, 20)), pk.var("u", (2, 3, 77, 20))
    at = pk.var("at", (2, 77), "int64")
    return pk.Graph([o.concat(*inputs, axis=1), o.scatter_rows(x, at, updates)])


GRAPHS = {
    "elementwise": elementwise,
    "masked tail": masked_tail,
    "layer norm": layer_norm,
    "softmax": lambda: softmax(300, 1003),
    "softmax of short rows": lambda: softmax(300, 40),
    "softmax of rows of seven": lambda: softmax(300, 7),
    "softmax of columns": lambda: softmax(40, 203, axis=0),
    "column sums": lambda: pk.Graph([o.reduce_sum(pk.var("x", (500, 77)), axis=0)]),
    "products": lambda: pk.Graph([o.relu(o.matmul(pk.var("x", (9, 40)), pk.var("y", (40, 33))))]),
    "scans": scans,
    "transposes": transposes,
    "narrow types": narrow_types,
    "gathers": gathers,
    "own kernels": own_kernels,
}


NUM_KERNELS = {"elementwise": 2, "transposes": 2, "gathers": 2, "own kernels": 2}
"""The kernels of graphs that have several."""


@pytest.fixture(scope="module", params=WIDTHS)
def wide(request: pytest.FixtureRequest) -> str:
    """The name of a target with wider vectors, for which all kernels are compiled."""
    name = wide_target(request.param)
    prebuild([graph() for graph in GRAPHS.values()], target=name)
    return name


def inputs(graph: pk.Graph, rng: Any) -> dict[str, Any]:
    """Return normally distributed inputs; integers are indices."""
    feeds = feeds_of(graph, rng)
    return feeds | {"at": rng.integers(0, 203, feeds["at"].shape)} if "at" in feeds else feeds


@pytest.mark.parametrize("name", GRAPHS)
def test_results(wide: str, name: str, rng: Any) -> None:
    """Kernels of wider vectors compute what the interpreter does; no step runs without one."""
    graph = GRAPHS[name]()
    feeds = inputs(graph, rng)
    executable = pk.compile(graph, target=wide)
    results = executable(feeds)
    expected = pk.compile(graph, target="interpret")(feeds)

    assert len(executable.kernels) == NUM_KERNELS.get(name, 1)
    for result, value in zip(results, expected, strict=True):
        assert result.dtype == value.dtype
        if value.dtype.kind in "bi":
            np.testing.assert_array_equal(result, value)
        else:
            tolerance = 1e-12 if value.dtype == np.float64 else 2e-5
            tolerance = 2e-2 if value.dtype.itemsize == 2 else tolerance
            np.testing.assert_allclose(
                result.astype(np.float64), value.astype(np.float64), rtol=tolerance, atol=tolerance
            )


@pytest.mark.parametrize("name", ["elementwise", "scans", "transposes"])
def test_elements_have_the_same_bits(wide: str, name: str, rng: Any) -> None:
    """Elementwise results do not depend on the width of vectors."""
    graph = GRAPHS[name]()
    feeds = inputs(graph, rng)
    if name == "scans":  # the order of a scan's sums follows from the width: of integers, no bit
        feeds = {k: np.rint(10 * v) for k, v in feeds.items()}

    results = pk.compile(graph, target=wide)(feeds)
    usual = pk.compile(graph, target="cpu")(feeds)

    for result, value in zip(results, usual, strict=True):
        assert result.tobytes() == value.tobytes()


@pytest.mark.parametrize("width", WIDTHS)
def test_lowering_reads_the_width(width: int) -> None:
    """Loops, packs and arrays of the kernels have the widths of the table."""
    name = wide_target(width)
    graph = softmax(300, 1003)
    (kernel,) = plan(graph, target=name).attrs["kernel"].values()
    (usual,) = plan(graph).attrs["kernel"].values()

    def widths(text: object) -> set[int]:
        return {int(n) for n in re.findall(r"<(?:float, )?(\d+)>\(", str(text))}

    assert widths(usual) == {16, 64}
    assert widths(kernel) == {width, 4 * width}


@pytest.mark.parametrize(
    "width, pack, message",
    [
        (24, 96, "vectors of 24 elements"),
        (8, 64, "vectors of 8 elements"),
        (32, 48, "packs of 48 elements"),
    ],
)
def test_impossible_widths(width: int, pack: int, message: str) -> None:
    """A width is a power of two from 16 on, a pack several vectors."""
    assert CXX.vectors is not None
    with pytest.raises(pk.RegistryError, match=message):
        evolve(CXX.vectors, width=width, pack=pack)
