"""A concat of many inputs runs a loop over a table of parts, whose text does not grow with them."""

from __future__ import annotations

from typing import Any

import pytest

import passkit as pk
from tests.emulator.fake_driver import fake_cuda
from tests.opencl import require_pyopencl

CASES = [
    ("float32", (3, 4), 1, 17),
    ("float32", (4, 3), 0, 40),
    ("bfloat16", (2, 3, 5), 1, 33),
    ("float64", ("n", 3), 0, 20),
    ("float16", ("n", 3), 1, 20),
    ("int8", (0, 3), 0, 17),
    ("bool", (7,), 0, 33),
    ("int64", (5, 1, 2), -1, 18),
]
"""Element type, shape of each input, axis, and number of inputs."""


def concat_of(dtype: str, shape: tuple[Any, ...], axis: int, count: int) -> pk.Graph:
    """Return a graph that joins variables x0, x1, … along an axis."""
    inputs = [pk.var(f"x{k}", shape, dtype) for k in range(count)]
    return pk.Graph([pk.ops.concat(*inputs, axis=axis)])


def feeds_of(graph: pk.Graph, rng: Any) -> dict[str, Any]:
    """Return random arrays for a graph's inputs; unknown sizes are 9."""
    feeds = {}
    for node in graph.inputs:
        shape = [n if isinstance(n, int) else 9 for n in node.entries[0].shape]
        feeds[node.name] = rng.integers(0, 2, shape).astype(node.entries[0].dtype.numpy)
    return feeds


@pytest.mark.parametrize(
    "target",
    ["cpu", "blocks", "cuda", pytest.param("opencl", marks=pytest.mark.opencl)],
)
def test_the_elements_are_those_of_the_inputs(target: str, rng: Any) -> None:
    """Every element type, axis and number of inputs gives the interpreter's bits."""
    if target == "opencl":
        require_pyopencl()
    for case in CASES:
        graph = concat_of(*case)
        feeds = feeds_of(graph, rng)
        with fake_cuda():
            run = pk.compile(graph, target=target)
            (result,) = run(feeds)
        (expected,) = pk.interpret(graph, feeds)

        assert result.dtype == expected.dtype
        assert result.tobytes() == expected.tobytes(), case


def test_the_text_does_not_grow_with_the_number_of_inputs() -> None:
    """One kernel serves 17 and 1,000 inputs, so the second needs no compilation."""
    (few,) = pk.compile(concat_of("float32", (2, 3), 1, 17)).kernels
    (many,) = pk.compile(concat_of("float32", (2, 3), 1, 1000)).kernels

    assert few.source == many.source
    assert len(few.source) < 300


def test_device_texts_grow_by_one_parameter_an_input() -> None:
    """CUDA C and OpenCL C texts are linear, up to the devices' limit of parameters."""
    for target, most in (("cuda", 238), ("opencl", 58)):
        lengths = []
        for count in (20, 40, most):
            graph = concat_of("float32", (2, 3), 1, count)
            done = pk.ApplyPasses(graph, ["Fusion", "CodeGen"], target=target)
            (kernel,) = done.attrs["kernel"].values()
            lengths.append(len(kernel.source) / count)

        assert lengths == sorted(lengths, reverse=True)


@pytest.mark.parametrize("count, fused", [(16, True), (17, False)])
def test_a_few_inputs_still_fuse(count: int, fused: bool) -> None:
    """A concat of 16 inputs fuses with its consumer; one of 17 is a kernel of its own."""
    inputs = [pk.var(f"x{k}", (2, 3)) for k in range(count)]
    graph = pk.ApplyPasses(pk.Graph([pk.ops.concat(*inputs, axis=1) * 2]), ["Fusion"])
    (edge,) = [row for row in pk.explain(graph) if row.producer == "concat"]
    own = f"concat of {count} inputs has a kernel of its own (FKernel)"

    assert edge.fused == fused
    assert (edge.reason == own) != fused
