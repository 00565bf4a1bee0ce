"""Errors of convolutions, pools, norms, images and recurrent cells."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import passkit as pk
from passkit.frontends import tf_graphdef
from tests.frontends.tf_graphdef.models import const, model, node, placeholder

STEPS: dict[str, Any] = {"strides": [1, 1, 1, 1], "padding": "SAME"}
POOL: dict[str, Any] = {**STEPS, "ksize": [1, 2, 2, 1]}


def conv(x: str = "x", f: str = "f", **attrs: Any) -> Any:
    """Return a convolution with some attributes changed."""
    return node("Conv2D", "y", x, f, **{**STEPS, **attrs})


def fused(*names: str, **attrs: Any) -> Any:
    """Return a convolution fused with a vector and an activation."""
    inputs = {"list": {"s": [n.encode() for n in names]}}
    return node("_FusedConv2D", "y", "x", "f", "b", fused_ops=inputs, **{**STEPS, **attrs})


def pool(x: str = "x", op: str = "MaxPool", **attrs: Any) -> Any:
    """Return a pool with some attributes changed."""
    return node(op, "y", x, **{**POOL, **attrs})


def ones(name: str, *shape: int, dtype: str = "float32") -> Any:
    """Return a constant of ones."""
    return const(name, np.ones(shape, dtype))


def norm_gradient(dy: str, mean: str = "b") -> Any:
    """Return the gradient of a batch norm of the images, with a gradient and a mean."""
    return node("FusedBatchNormGrad", "y", dy, "x", "b", mean, "b")


CASES: dict[str, tuple[list[Any], str]] = {
    "format": ([conv(data_format="HWCN")], "data_format NHWC or NCHW, got 'HWCN'"),
    "rank": ([conv("v")], r"needs 'v' of rank 4, got \(v\.0, 3\)"),
    "number of strides": ([conv(strides=[1, 2])], r"needs 4 strides of at least 1, got \[1, 2\]"),
    "strides of 0": ([conv(strides=[1, 0, 1, 1])], r"at least 1, got \[1, 0, 1, 1\]"),
    "strides of images": (
        [conv(strides=[2, 1, 1, 1])],
        r"strides of 1 for images and channels, got \[2, 1, 1, 1\]",
    ),
    "padding": ([conv(padding="FULL")], "SAME, VALID or EXPLICIT, got b'FULL'"),
    "explicit padding": (
        [conv(padding="EXPLICIT", explicit_paddings=[0, 0, 1, 1, 1, 1, 0, 1])],
        r"pair of paddings for each axis, .*, got \[0, 0, 1, 1, 1, 1, 0, 1\]",
    ),
    "unknown size": (
        [ones("w", 3, 3, 4, 2), conv("u", "w", strides=[1, 4, 4, 1])],
        r"of a window over 3 elements at stride 4, got the unknown size u\.1",
    ),
    "integers": (
        [ones("w", 3, 3, 4, 2, dtype="int32"), conv(f="w")],
        "needs floats, got int32 from 'w'",
    ),
    "a filter's rank": ([ones("w", 3, 3, 2), conv(f="w")], r"shape and rank 4, got \(3, 3, 2\)"),
    "groups": ([ones("w", 3, 3, 3, 2), conv(f="w")], r"of g \* 3.*2 filters, got 4"),
    "input sizes": (
        [const("s", [1, 2, 3]), node("Conv2DBackpropInput", "y", "s", "f", "x", **STEPS)],
        r"needs 2 or 4 input_sizes, got \(1, 2, 3\)",
    ),
    "window over all": (
        [pool(ksize=[1, 2, 1, 2])],
        r"over channels, got ksize \[1, 2, 1, 2\]",
    ),
    "overlapping channels": (
        [pool(ksize=[1, 1, 1, 2])],
        r"strides equal to its ksize \[1, 1, 1, 2\] over channels, got \[1, 1, 1, 1\]",
    ),
    "channels of a pool": (
        [pool(ksize=[1, 1, 1, 3], strides=[1, 1, 1, 3])],
        "channels that is a multiple of 3, got 4",
    ),
    "ksize": ([pool(ksize=[2, 2, 2, 1])], r"ksize of 1 for images and channels, got \[2, 2, 2, 1"),
    "places of unknown size": (
        [pool("u", "MaxPoolWithArgmax", Targmax=np.dtype("int64"))],
        r"width and channels, got \(u\.0, u\.1, u\.2, 4\)",
    ),
    "a dilation's filter": (
        [node("Dilation2D", "y", "x", "f", rates=[1, 1, 1, 1], **STEPS)],
        r"images of rank 4.*shape and rank 3, got \(x\.0, 5, 6, 4\) and \(3, 3, 4, 2\)",
    ),
    "a dilation of integers": (
        [
            ones("w", 2, 2, 4, dtype="int32"),
            node("Cast", "i", "x", DstT=np.dtype("int32")),
            node("Dilation2D", "y", "i", "w", rates=[1, 1, 1, 1], **STEPS),
        ],
        "needs floats, got int32",
    ),
    "LRN": ([node("LRN", "y", "v")], r"needs 'v' of rank 4, got \(v\.0, 3\)"),
    "a norm's rank": (
        [node("FusedBatchNorm", "y", "v", "b", "b", "b", "b")],
        r"data of rank 4 or 5, got \(v\.0, 3\)",
    ),
    "a gradient of a norm with another shape": (
        [norm_gradient("v")],
        r"FusedBatchNormGrad 'y' needs 'v' of rank 4, got \(v\.0, 3\)",
    ),
    "a mean of other channels": (
        [const("m", np.ones(3, np.float32)), norm_gradient("x", "m")],
        r"needs 'm' of shape \(4,\), got \(3,\)",
    ),
    "a mean of integers": (
        [node("Cast", "i", "b", DstT=np.dtype("int32")), norm_gradient("x", "i")],
        "needs 'i' of float32, got int32",
    ),
    "a fused norm's inputs": ([node("_FusedBatchNormEx", "y", "x")], "at least 5 inputs, got 1"),
    "a fused norm's activation": (
        [
            node(
                "_FusedBatchNormEx",
                "y",
                "x",
                "b",
                "b",
                "b",
                "b",
                activation_mode="Tanh",
                is_training=False,
            )
        ],
        "Identity or Relu, got b'Tanh'",
    ),
    "a bias's gradient": (
        [node("BiasAddGrad", "y", "b")],
        r"'b' of rank 2 at least, got b'NHWC' and \(4\)|got b'NHWC' and \(4,\)",
    ),
    "a cell's rank": (
        [node("GRUBlockCell", "y", "x", "v", "v", "v", "b", "b")],
        r"needs 'x' of rank 2, got \(x\.0, 5, 6, 4\)",
    ),
    "a block's steps": (
        [const("n", 2), node("BlockLSTM", "y", "n", "t", *"vvv", *"bbbb")],
        r"needs 't' as \(steps, batch, inputs\) .*, got \(t\.0, t\.1, 3\)",
    ),
    "bits": (
        [node("FakeQuantWithMinMaxArgs", "y", "x", num_bits=17)],
        "num_bits from 2 to 16, got 17",
    ),
    "many bits": (
        [ones("one"), node("QuantizeAndDequantizeV2", "y", "x", "one", "one", num_bits=63)],
        "num_bits from 1 to 62, got 63",
    ),
    "range of doubles": (
        [
            ones("one", dtype="float16"),
            node("QuantizeAndDequantizeV2", "y", "x", "one", "one", range_given=True),
        ],
        "needs a range of float32, got float16 and float16",
    ),
    "complex maximum": (
        [ones("c", 1, 4, 4, 3, dtype="complex64"), pool("c")],
        "for a maximum, got complex64",
    ),
    "quantized integers": (
        [
            ones("i", 2, dtype="int32"),
            ones("one"),
            node("QuantizeAndDequantizeV4", "y", "i", "one", "one"),
        ],
        "QuantizeAndDequantizeV4 'y' needs floats, got int32",
    ),
    "a resize's old size": (
        [const("s", [2, 2, 2]), node("ResizeNearestNeighborGrad", "y", "x", "s")],
        r"needs two positive ints as its size, got \[2, 2, 2\]",
    ),
    "a translation's size": (
        [
            const("s", [2, -1]),
            const("k", [1.0, 1.0]),
            node("ScaleAndTranslate", "y", "x", "s", "k", "k"),
        ],
        r"needs two positive ints as its size, got \[2, -1\]",
    ),
    "a cell's bias": (
        [
            *(ones(name, 2, 2) for name in "mh"),
            ones("w", 4, 8),
            node("LSTMBlockCell", "y", *"mhhw", *"bbb", "m"),
        ],
        r"LSTMBlockCell 'y' needs 'm' of rank 1, got \(2, 2\)",
    ),
    "a unit's bias": (
        [
            *(ones(name, 2, 2) for name in "mh"),
            ones("w", 4, 4),
            ones("v2", 4, 2),
            node("GRUBlockCell", "y", *"mhw", "v2", "h", "b"),
        ],
        r"GRUBlockCell 'y' needs 'h' of rank 1, got \(2, 2\)",
    ),
    "rounding": (
        [
            ones("one"),
            node("QuantizeAndDequantizeV2", "y", "x", "one", "one", round_mode="DOWN"),
        ],
        "HALF_TO_EVEN or HALF_UP, got b'DOWN'",
    ),
    "images": (
        [const("s", [2, 2]), node("ResizeBilinear", "y", "u", "s")],
        r"images of rank 4 with known height and width, got 'u' of shape \(u\.0, u\.1, u\.2, 4\)",
    ),
    "boxes": (
        [
            const("s", [2, 2]),
            const("k", [0]),
            node("CropAndResize", "y", "x", "b", "k", "s"),
        ],
        r"needs boxes \(count, 4\), got \(4\)|got \(4,\)",
    ),
    "a crop's method": (
        [
            const("s", [2, 2]),
            const("k", [0]),
            ones("box", 1, 4),
            node("CropAndResize", "y", "x", "box", "k", "s", method="cubic"),
        ],
        "bilinear or nearest, got b'cubic'",
    ),
    "a crop's size": (
        [
            const("s", [2, 0]),
            const("k", [0]),
            ones("box", 1, 4),
            node("CropAndResize", "y", "x", "box", "k", "s"),
        ],
        r"needs two positive ints as its crop_size, got \[2, 0\]",
    ),
    "a kernel": (
        [
            const("s", [2, 2]),
            const("k", [1.0, 1.0]),
            node("ScaleAndTranslate", "y", "x", "s", "k", "k", kernel_type="sinc"),
        ],
        "of the kernel_types lanczos1.*keyscubic, mitchellcubic, got 'sinc'",
    ),
    "a scale of 0": (
        [
            const("s", [2, 2]),
            const("k", [1.0, 0.0]),
            node("ScaleAndTranslate", "y", "x", "s", "k", "k"),
        ],
        r"as its scale, got \[1\.0, 0\.0\]",
    ),
    "a scale of a call": (
        [
            const("s", [2, 2]),
            const("k", [1.0, 1.0]),
            const("axes", [0, 1, 3]),
            node("Sum", "input", "x", "axes"),
            node("ScaleAndTranslate", "y", "x", "s", "k", "input"),
        ],
        "'y' needs two known numbers as its translation, got numbers known only at run time",
    ),
    "a maximum over channels of bools": (
        [
            ones("w", 3, 5, 6, 4, dtype="bool"),
            pool("w", ksize=[1, 1, 1, 2], strides=[1, 1, 1, 2]),
        ],
        "needs real numbers for a maximum, got bool",
    ),
    "corners and half-pixel centers": (
        [
            const("s", [2, 2]),
            node("ResizeBilinear", "y", "x", "s", align_corners=True, half_pixel_centers=True),
        ],
        "cannot align corners and have half-pixel centers",
    ),
    "colours": ([node("RGBToHSV", "y", "x")], r"three channels in the last axis, got \(x\.0, 5"),
    "contrast": (
        [node("AdjustContrastv2", "y", "v", "b")],
        r"\(…, height, width, channels\), got \(v\.0, 3\)",
    ),
    "a filter's format": (
        [fused(filter_format="OIHW")],
        "filter_format HWIO, got b'OIHW'",
    ),
    "what is fused": (
        [fused("Softmax")],
        "fused_ops among BiasAdd, .*, got 'Softmax'",
    ),
    "what a fused operator reads": (
        [fused("FusedBatchNorm")],
        r"needs 4 more input\(s\) for its FusedBatchNorm",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_invalid_inputs_and_attributes_are_refused(case: str) -> None:
    """Errors say which input or attribute was found."""
    nodes, message = CASES[case]
    inputs = [
        placeholder("x", None, 5, 6, 4),
        placeholder("u", None, None, None, 4),
        placeholder("v", None, 3),
        placeholder("t", None, None, 3),
        ones("f", 3, 3, 4, 2),
        ones("b", 4),
    ]

    with pytest.raises(pk.ModelError, match=message):
        tf_graphdef.load(model(*inputs, *nodes), outputs="y")
