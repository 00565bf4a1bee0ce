"""Convolutions and pools absorb padding in front of them, and results keep their bits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import passkit as pk
from passkit.frontends import tf_graphdef
from tests.frontends.tf_graphdef.models import const, model, node, placeholder

pytestmark = pytest.mark.usefixtures("quick_kernels")

ops = pk.ops

TWO = "x: f32[2, 8, 9, 4]; f: f32[3, 3, 4, 6]; "
ONE = "x: f32[2, 8, 4]; f: f32[3, 4, 6]; "


def pad(*widths: tuple[Any, Any], source: str = "x", value: float = 0) -> str:
    """Return the text of a node ``p``: an array padded by widths of a value."""
    pairs = ", ".join(f"({a}, {b})" for a, b in widths)
    return f"p = pad_with({source}, pad_width=({pairs}), value={value}); "


def simplified(text: str) -> list[str]:
    """Return the nodes of a graph, given as text, after Simplify."""
    out = pk.to_text(pk.ApplyPasses(pk.parse(text), ["Expand", "Simplify"]))
    return [line for line in out.splitlines() if " = " in line]


ZERO = (0, 0)
BOTH = pad(ZERO, (0, 1), (1, 2), ZERO)

ABSORBED: dict[str, tuple[str, list[str]]] = {
    "windows without padding": (
        TWO + BOTH + "y = convolution(p, f, strides=2); return y",
        ["y = convolution(x, f, strides=2, padding=((0, 1), (1, 2)))"],
    ),
    "windows with explicit padding": (
        TWO + BOTH + "y = convolution(p, f, padding=((1, 0), 0)); return y",
        ["y = convolution(x, f, padding=((1, 1), (1, 2)))"],
    ),
    "SAME padding, which depends on the padded size": (
        TWO
        + pad(ZERO, (1, 1), (0, 1), ZERO)
        + 'y = convolution(p, f, padding="SAME", strides=2); return y',
        ["y = convolution(x, f, strides=2, padding=((1, 2), (0, 2)))"],
    ),
    "as wide as dilated windows allow": (
        ONE + pad(ZERO, (4, 0), ZERO) + "y = convolution(p, f, dilations=2); return y",
        ["y = convolution(x, f, padding=((4, 0),), dilations=2)"],
    ),
    "two nodes in a row": (
        ONE + pad(ZERO, (1, 0), ZERO) + "q = pad_with(p, pad_width=((0, 0), (1, 1), (0, 0))); "
        "y = convolution(q, f); return y",
        ["y = convolution(x, f, padding=((2, 1),))"],
    ),
    "padding with another user": (
        ONE + pad(ZERO, (1, 1), ZERO) + "y = convolution(p, f); e = exp(p); return y, e",
        [
            "y = convolution(x, f, padding=((1, 1),))",
            "p = pad_with(x, pad_width=((0, 0), (1, 1), (0, 0)))",
            "e = exp(p)",
        ],
    ),
    "in front of a transpose": (
        "x: f32[2, 4, 8]; f: f32[3, 4, 6]; "
        + pad(ZERO, ZERO, (1, 1))
        + "t = transpose(p, axes=(0, 2, 1)); y = convolution(t, f); return y",
        [
            "transpose = transpose(x, axes=(0, 2, 1))",
            "y = convolution(transpose, f, padding=((1, 1),))",
        ],
    ),
    "in front of a new axis": (
        "x: f32[2, 8]; f: f32[3, 1, 6]; "
        + pad(ZERO, (2, 0))
        + "t = expand_dims(p, axis=-1); y = convolution(t, f); return y",
        [
            "expand_dims = expand_dims(x, axis=-1)",
            "y = convolution(expand_dims, f, padding=((2, 0),))",
        ],
    ),
    "zeros around windows with zero padding": (
        ONE + pad(ZERO, (1, 1), ZERO) + "y = windows(p, window=3, padding=((0, 1),)); return y",
        ["y = windows(x, window=3, padding=((1, 2),))"],
    ),
    "a constant around windows of a max pool": (
        ONE
        + pad(ZERO, (1, 1), ZERO, value=0.5)
        + 'y = windows(p, window=3, fill="least"); return y',
        ["y = windows(x, window=3, padding=((1, 1),), fill=0.5)"],
    ),
    "image of a filter gradient": (
        "x: f32[2, 8, 4]; g: f32[2, 8, 6]; "
        + pad(ZERO, (1, 1), ZERO)
        + "y = window_products(p, g, window=3); return y",
        ["y = window_products(x, g, window=3, padding=((1, 1),))"],
    ),
}


@pytest.mark.parametrize("case", ABSORBED)
def test_windows_absorb_padding(case: str) -> None:
    """Padding is added to that of the windows, whose node keeps its name."""
    text, expected = ABSORBED[case]

    assert simplified(text) == expected


PARTLY_ABSORBED: dict[str, tuple[str, str, str]] = {
    "batch and channels": (
        "x: f32[1, 8, 2]; f: f32[3, 4, 6]; " + pad((1, 0), (1, 1), (2, 0)),
        "((1, 0), (0, 0), (2, 0))",
        "((1, 1),)",
    ),
    "an end so wide that a window would cover padding only": (
        ONE + pad(ZERO, (3, 2), ZERO),
        "((0, 0), (3, 0), (0, 0))",
        "((0, 2),)",
    ),
    "a negative width": (ONE + pad(ZERO, (-1, 2), ZERO), "((0, 0), (-1, 0), (0, 0))", "((0, 2),)"),
    "an unknown width": (
        "x: f32[2, n, 4]; f: f32[3, 4, 6]; " + pad(ZERO, ("n", 1), ZERO),
        "((0, 0), (n, 0), (0, 0))",
        "((0, 1),)",
    ),
}


@pytest.mark.parametrize("case", PARTLY_ABSORBED)
def test_widths_that_windows_cannot_absorb_stay_in_front(case: str) -> None:
    """The other end, or axis, is absorbed."""
    text, remaining, absorbed = PARTLY_ABSORBED[case]

    assert simplified(text + "y = convolution(p, f); return y") == [
        f"pad_with = pad_with(x, pad_width={remaining})",
        f"y = convolution(pad_with, f, padding={absorbed})",
    ]


@pytest.mark.parametrize(
    "text",
    [
        ONE + pad(ZERO, (1, 1), ZERO, value=1) + "y = convolution(p, f); return y",
        ONE + pad(ZERO, (1, 1), ZERO, value=-0.0) + "y = convolution(p, f); return y",
        "x: f64[2, 8, 4]; f: f64[3, 4, 6]; "
        + pad(ZERO, (1, 1), ZERO, value=1e-60)
        + "y = convolution(p, f); return y",
        ONE
        + pad(ZERO, (1, 1), ZERO)
        + 'y = windows(p, window=3, padding=1, fill="least"); return y',
        ONE + pad(ZERO, (1, 1), ZERO, value=-0.0) + "y = windows(p, window=3, padding=1); return y",
        ONE.replace("3, 4", "1, 4") + pad(ZERO, (1, 1), ZERO) + "y = convolution(p, f); return y",
        ONE.replace("3, 4", "0, 4") + pad(ZERO, (1, 1), ZERO) + "y = convolution(p, f); return y",
        "f: f32[3, 4, 6]; x: f32[1, 8, 4]; "
        + pad((1, 1), ZERO, ZERO, source="f")
        + "y = convolution(x, p); return y",
    ],
)
def test_padding_by_other_values_is_not_absorbed(text: str) -> None:
    """A pad_with stays in front of windows that pad by another value, or of a single element."""
    before = [line for line in pk.to_text(pk.parse(text)).splitlines() if " = " in line]

    assert simplified(text) == before


def convolved(rng: np.random.Generator) -> tuple[list[pk.Entry], dict[str, Any]]:
    """Return padded convolutions and pools of one to three axes, and feeds."""
    shapes = {"a": (2, 9, 6), "b": (1, 7, 8, 4), "c": (1, 4, 5, 6, 2), "e": (2, 0, 6)}
    feeds = {k: rng.normal(size=s).astype(np.float32) for k, s in shapes.items()}
    a, b, c, e = (pk.var(k, s) for k, s in shapes.items())

    def f(*shape: int) -> Any:
        return rng.normal(size=shape).astype(np.float32)

    sides = (ZERO, (0, 1), (2, 1), ZERO)
    around = ops.pad(ops.relu6(b), sides)
    planes = ops.pad(ops.transpose(b, axes=(0, 3, 1, 2)), (ZERO, ZERO, (0, 1), (2, 1)))
    row = ops.expand_dims(ops.pad(a, (ZERO, (2, 0), ZERO)), axis=1)
    return [
        ops.conv1d(ops.pad(a, (ZERO, (4, 0), ZERO)), f(3, 6, 5), dilations=2),
        ops.conv1d(ops.pad(e, (ZERO, (2, 2), ZERO)), f(3, 6, 5)),
        ops.conv2d(around, f(3, 3, 4, 6), strides=2, padding="VALID"),
        ops.conv2d(around, f(3, 4, 2, 6), groups=2, padding="SAME"),
        ops.conv2d(row, f(1, 3, 6, 2)),
        ops.depthwise_conv2d(around, f(3, 3, 4, 1), strides=2),
        ops.depthwise_conv2d(around, f(3, 3, 4, 2), strides=2),
        ops.conv2d(planes, f(3, 3, 4, 6), strides=2, data_format="NCHW"),
        ops.conv3d(ops.pad(c, ((1, 0), (1, 1), (0, 2), (5, 1), ZERO)), f(3, 3, 2, 2, 3)),
        ops.max_pool2d(ops.pad(b, sides, constant_values=0.25), window=3, strides=2),
        ops.max_pool2d(ops.pad(b, sides, constant_values=np.nan), window=3, padding="SAME"),
        ops.max_pool2d(planes, window=3, strides=1, data_format="NCHW"),
        ops.avg_pool2d(ops.pad(b, sides, constant_values=-0.0), window=(1, 3)),
        ops.avg_pool2d(around, window=3, padding="SAME"),
        ops.avg_pool2d(around, window=3, padding=1, count_include_pad=True),
    ], feeds


def test_absorbing_padding_keeps_results(rng: np.random.Generator) -> None:
    """Simplified graphs have the same bits; compiled ones differ by the order of sums only."""
    outputs, feeds = convolved(rng)
    graph = pk.Graph(outputs)
    simple = pk.ApplyPasses(graph, ["Expand", "Simplify"])
    expected = pk.interpret(graph, feeds)

    remaining = [n for n in simple.nodes if n.op is not None and n.op.name == "pad_with"]
    assert len(remaining) == 5
    for k, (result, array) in enumerate(zip(pk.interpret(simple, feeds), expected, strict=True)):
        assert result.tobytes() == array.tobytes(), k
    for k, (result, array) in enumerate(zip(pk.compile(graph)(feeds), expected, strict=True)):
        np.testing.assert_allclose(result, array, rtol=2e-5, atol=2e-5, err_msg=str(k))


def test_gradients_of_padded_convolutions_and_pools(rng: np.random.Generator) -> None:
    """Gradients by image and filter keep their values, for known and unknown sizes."""
    feeds = {
        "x": rng.normal(size=(2, 7, 8, 4)).astype(np.float32),
        "f": rng.normal(size=(3, 3, 4, 6)).astype(np.float32),
    }
    for shape in ((2, 7, 8, 4), ("n", "h", "w", 4)):
        x, f = pk.var("x", shape), pk.var("f", (3, 3, 4, 6))
        around = ops.pad(ops.tanh(x), (ZERO, (0, 1), (1, 1), ZERO))
        y = ops.conv2d(around, f, strides=2)
        top = ops.max_pool2d(around, window=3, strides=2)
        graph = pk.Graph(pk.gradients([ops.sum(y * y) + ops.sum(top)], [x, f]))
        simple = pk.ApplyPasses(graph, ["Expand", "Simplify", "MatchLibrary"])

        expected = pk.interpret(graph, feeds)
        for result, array in zip(pk.interpret(simple, feeds), expected, strict=True):
            np.testing.assert_allclose(result, array, rtol=1e-5, atol=1e-5)


def test_a_padded_convolution_of_a_model_is_two_steps() -> None:
    """Pad between an activation and DepthwiseConv2dNative, as in MobileNetV2, has no step."""
    widths = const("widths", np.int32([[0, 0], [0, 1], [0, 1], [0, 0]]))
    filters = const("f", np.random.default_rng(0).normal(size=(3, 3, 8, 1)).astype(np.float32))
    data = model(
        placeholder("x", 1, 8, 8, 8),
        node("Relu6", "r", "x"),
        widths,
        filters,
        node("Pad", "p", "r", "widths"),
        node("DepthwiseConv2dNative", "y", "p", "f", strides=[1, 2, 2, 1], padding="VALID"),
    )
    graph = tf_graphdef.load(data, outputs=["y"])
    exe = pk.compile(graph)

    assert [type(s).__name__ for s in exe.steps] == ["LaunchStep", "LibraryCall"]
    assert exe.steps[0].kernel.ops == ("relu", "minimum")
