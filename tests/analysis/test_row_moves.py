"""Rows that are reduced and then moved are one kernel, in the order of the results."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import passkit as pk
from passkit.analysis.domain_info import DomainInfo, analyze_domain
from tests.planned import plan
from tests.together import prebuilt


def norm(x: str, result: str) -> str:
    """Return the text of a layer norm of rows without weights."""
    r = result
    return f"""{r}m = reduce_mean({x}, axis=-1, keepdims=true)
{r}d = sub({x}, {r}m)
{r}v = reduce_mean(mul({r}d, {r}d), axis=-1, keepdims=true)
{r} = mul({r}d, rsqrt(add({r}v, 0.00001)))
"""


def windows(x: str) -> str:
    """Return the text of windows ``w`` of 2 x 2 pixels of rolled images."""
    return f"""r1 = rotate({x}, shift=-1, axis=1)
r2 = rotate(r1, shift=-1, axis=2)
w1 = reshape(r2, shape=(2, 3, 2, 3, 2, LENGTH))
w2 = transpose(w1, axes=(0, 1, 3, 2, 4, 5))
w = reshape(w2, shape=(18, 4, LENGTH))
"""


def images(x: str) -> str:
    """Return the text of images ``b`` that windows are put together to, and rolled back."""
    return f"""b1 = reshape({x}, shape=(2, 3, 3, 2, 2, LENGTH))
b2 = transpose(b1, axes=(0, 1, 3, 2, 4, 5))
b3 = reshape(b2, shape=(2, 6, 6, LENGTH))
b4 = rotate(b3, shift=1, axis=1)
b = rotate(b4, shift=1, axis=2)
"""


X = "x: DTYPE[2, 6, 6, LENGTH]\n"
ROWS = "x: DTYPE[8, 5, LENGTH]\n"
WEIGHTS = "g: DTYPE[LENGTH]\nh: DTYPE[5, 1]\nk: DTYPE[8, 1, 1]\n"
ONE_KERNEL = {
    "shifted windows": X + windows("x") + norm("w", "n") + images("n") + "z = add(x, b)\nreturn z",
    "windows of rows": X + norm("x", "n") + windows("n") + "return w",
    "norm of windows of norms": X + norm("x", "n") + windows("n") + norm("w", "p") + "return p",
    "turned": ROWS + "s = softmax(x, axis=-1)\nz = transpose(s, axes=(1, 0, 2))\nreturn z",
    "some rows": ROWS
    + norm("x", "n")
    + "z = slice(n, begin=(1, 0, 0), size=(3, 3, LENGTH), step=(3, 2, 1))\nreturn z",
    "from behind": ROWS + norm("x", "n") + "z = reverse(n, axis=0)\nreturn z",
    "weights": ROWS
    + WEIGHTS
    + norm("x", "n")
    + "a = add(mul(n, g), mul(h, k))\nt = transpose(a, axes=(1, 0, 2))\nz = mul(t, 2)\nreturn z",
    "before and behind": ROWS + norm("x", "n") + "z = add(x, reverse(n, axis=0))\nreturn z",
    "functions before": ROWS
    + "e = gelu(mul(x, 3))\ns = softmax(e, axis=-1)\n"
    + "t = transpose(mul(s, e), axes=(1, 0, 2))\nz = exp(t)\nreturn z",
}
OTHERS = {
    "two orders": ROWS + norm("x", "n") + "t = reverse(n, axis=0)\nreturn add(n, t)",
    "repeated": ROWS + norm("x", "n") + "return tile(n, repetitions=(3, 1, 1))",
    "columns": ROWS + norm("x", "n") + "return transpose(n, axes=(0, 2, 1))",
    "inside rows": ROWS + norm("x", "n") + "return rotate(n, shift=1, axis=2)",
    "also a result": ROWS + norm("x", "n") + "t = transpose(n, axes=(1, 0, 2))\nreturn t, n",
    "scanned": ROWS
    + "s = cumsum(softmax(x, axis=-1), axis=2)\nreturn transpose(s, axes=(1, 0, 2))",
    "not kept": ROWS + "s = reduce_sum(x, axis=-1)\nreturn transpose(s, axes=(1, 0))",
    "other axis": ROWS
    + "s = softmax(x, axis=1)\nt = transpose(s, axes=(1, 0, 2))\nreturn mul(t, 2)",
}
CASES = [(name, dtype, c) for name in ONE_KERNEL for dtype, c in [("f32", 40), ("f64", 96)]]
CASES += [(name, "f32", 300) for name in ("shifted windows", "weights")]
CASES += [(name, "f32", 24) for name in OTHERS]


def graph_of(name: str, dtype: str = "f32", length: int = 40) -> pk.Graph:
    """Return a graph by its name, with rows of some length."""
    text = (ONE_KERNEL | OTHERS)[name]
    return pk.parse(text.replace("DTYPE", dtype).replace("LENGTH", str(length)))


def kept_together(graph: pk.Graph) -> list[list[str]]:
    """Return the names of all operators, in one list if they can be one kernel, else in none."""
    names = [n.name for n in graph.nodes if n.op is not None and n.name]
    return [names] if isinstance(analyze_domain(plan(graph, "Expand")), DomainInfo) else []


def compiled(graph: pk.Graph, **options: Any) -> pk.Executable:
    """Return a graph of one kernel, or of several where that cannot be."""
    return pk.compile(graph, keep_together=kept_together(graph), **options)


def feeds_of(graph: pk.Graph, rng: Any) -> dict[str, np.ndarray]:
    """Return random inputs of a graph."""
    specs = {n.name: n.entries[0] for n in graph.inputs}
    return {k: rng.standard_normal(e.shape).astype(e.dtype.numpy) for k, e in specs.items()}


@pytest.fixture(scope="module", autouse=True)
def _quick(quick_module: None) -> None:
    """Compile kernels without optimization."""


@pytest.fixture(scope="module")
def executables(_quick: None) -> dict[tuple[str, str, int], list[pk.Executable]]:
    """Return each case with the fewest kernels and without fusion, compiled by one process."""
    graphs = [graph_of(*case) for case in CASES]
    options: list[dict[str, Any]] = [{"keep_together": kept_together(g)} for g in graphs]
    options += [{"fusion": "none"}] * len(graphs)
    ready = prebuilt(graphs * 2, options)
    every = [pk.compile(g, **own) for g, own in zip(ready, options, strict=True)]
    pairs = zip(every[: len(graphs)], every[len(graphs) :], strict=True)
    return dict(zip(CASES, map(list, pairs), strict=True))


@pytest.mark.parametrize(("name", "dtype", "length"), CASES)
def test_results_are_right(
    name: str,
    dtype: str,
    length: int,
    executables: dict[tuple[str, str, int], list[pk.Executable]],
    rng: Any,
) -> None:
    """As the operators one by one have them, whatever kernels there are."""
    feeds = feeds_of(graph_of(name, dtype, length), rng)

    actual, expected = (run(feeds) for run in executables[name, dtype, length])

    tolerance = 3e-6 if dtype == "f32" else 1e-12
    for a, b in zip(actual, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("name", ONE_KERNEL)
def test_the_move_is_no_kernel(name: str) -> None:
    """Rows are moved where they are read, in the kernel that reduces them."""
    assert len(compiled(graph_of(name)).kernels) == 1


@pytest.mark.parametrize("name", OTHERS)
def test_other_moves_are_apart(name: str) -> None:
    """No order has all rows once, or each row whole: no domain has what comes before the move."""
    graph = plan(graph_of(name), "Expand")

    info = analyze_domain(graph)
    assert not isinstance(info, DomainInfo) or not info.orders


@pytest.mark.parametrize("name", ["shifted windows", "windows of rows", "weights"])
def test_every_block_is_sound(name: str, rng: Any) -> None:
    """No element is read where none was stored, or stored twice, in whatever order tiles run."""
    graph = graph_of(name)
    feeds = feeds_of(graph, rng)

    actual, expected = compiled(graph, target="blocks")(feeds), compiled(graph)(feeds)

    for a, b in zip(actual, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=3e-6, atol=3e-6)


def test_moves_that_undo_each_other_are_nothing() -> None:
    """Images cut into windows and put together again are read, and stored, row after row."""
    (kernel,) = compiled(graph_of("shifted windows")).kernels

    assert "%" not in kernel.source
    assert "/ 7" not in kernel.source


def test_rows_are_as_many_as_are_needed() -> None:
    """Where only some rows are moved, no other is reduced."""
    info = analyze_domain(plan(graph_of("some rows"), "Expand"))

    assert isinstance(info, DomainInfo)
    assert info.domain.rows == 9
    assert info.domain.size == 9 * 40


def test_a_moved_row_stays_in_registers() -> None:
    """Moves that are left in the index of an input do not make it another value of the row."""
    (kernel,) = compiled(graph_of("windows of rows", length=96)).kernels

    assert "vec<float> r" in kernel.source
    assert kernel.source.count("fixed_lanes<96>(") == 3
    assert "load(y0" not in kernel.source
