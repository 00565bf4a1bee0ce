"""Cases of image resizing, cropping and colors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from tests.frontends.tf_graphdef.reference.case import Array, Case
from tests.frontends.tf_graphdef.reference.families.convolutions import draw
from tests.frontends.tf_graphdef.reference.families.pools import integers

FLAGS = ((False, False), (True, False), (False, True))
"""align_corners and half_pixel_centers."""
SIZES = (((4, 5), (7, 3)), ((3, 4), (6, 9)), ((7, 6), (3, 2)), ((3, 5), (1, 1)), ((1, 2), (4, 4)))


def cases(tf: Any) -> Iterator[Case]:
    """Yield all cases."""
    yield from _resize(tf)
    yield from _resize_grad(tf)
    yield from _public(tf)
    yield from _crop(tf)
    yield from _projected(tf)
    yield from _colours(tf)
    yield from _refused(tf)


def _resize(tf: Any) -> Iterator[Case]:
    for op in ("ResizeNearestNeighbor", "ResizeBilinear", "ResizeBicubic", "ResizeArea"):
        raw = getattr(tf.raw_ops, op)
        for align, half in FLAGS if op != "ResizeArea" else FLAGS[:2]:
            flags = {"align_corners": align}
            if op != "ResizeArea":
                flags["half_pixel_centers"] = half
            for old, new in SIZES:
                yield Case(
                    op,
                    f"align_corners={align} half_pixel_centers={half} "
                    f"{old[0]}x{old[1]} to {new[0]}x{new[1]}",
                    lambda x, r=raw, n=new, f=flags: r(images=x, size=n, **f),
                    {"x": draw(2, *old, 2)},
                )
        for dtype in ("uint8", "int32", "int16", "float16", "float64"):
            x = integers(1, 3, 4, 2, dtype=dtype)
            yield Case(op, "4x3 to 5x7", lambda x, r=raw: r(images=x, size=(7, 5)), {"x": x})


def _resize_grad(tf: Any) -> Iterator[Case]:
    raw = tf.raw_ops
    for align, half in FLAGS:
        flags = {"align_corners": align, "half_pixel_centers": half}
        for old, new in SIZES[:3]:
            variant = f"align_corners={align} half_pixel_centers={half} "
            variant += f"{old[0]}x{old[1]} to {new[0]}x{new[1]}"
            dy = draw(2, *new, 2)
            yield Case(
                "ResizeNearestNeighborGrad",
                variant,
                lambda dy, o=old, f=flags: raw.ResizeNearestNeighborGrad(grads=dy, size=o, **f),
                {"dy": dy},
            )
            for op in ("ResizeBilinear", "ResizeBicubic"):
                yield Case(
                    f"{op}Grad",
                    variant,
                    lambda dy, x, o=op, f=flags: getattr(raw, f"{o}Grad")(
                        grads=dy, original_image=x, **f
                    ),
                    {"dy": dy, "x": draw(2, *old, 2, seed=1)},
                )


def _public(tf: Any) -> Iterator[Case]:
    ops = {
        "nearest": "ResizeNearestNeighbor",
        "bilinear": "ResizeBilinear",
        "bicubic": "ResizeBicubic",
        "area": "ResizeArea",
    }
    for method, op in ops.items():
        yield Case(
            op,
            "tf.image.resize",
            lambda x, m=method: tf.image.resize(x, (5, 7), m),
            {"x": draw(2, 4, 4, 3)},
        )
    for method in ("bilinear", "bicubic", "lanczos3", "lanczos5", "gaussian", "mitchellcubic"):
        for size in ((3, 2), (7, 9)):
            yield Case(
                "ScaleAndTranslate",
                f"tf.image.resize {method} antialias to {size[0]}x{size[1]}",
                lambda x, m=method, s=size: tf.image.resize(x, s, m, antialias=True),
                {"x": draw(1, 5, 6, 2)},
            )
    yield Case(
        "ResizeBilinear",
        "tf.image.resize_with_pad",
        lambda x: tf.image.resize_with_pad(x, 6, 6),
        {"x": draw(2, 4, 8, 1)},
    )
    yield Case(
        "ResizeBilinear",
        "tf.image.resize preserve_aspect_ratio",
        lambda x: tf.image.resize(x, (6, 6), preserve_aspect_ratio=True),
        {"x": draw(2, 4, 8, 1)},
    )
    yield Case(
        "ConcatV2",
        "keras UpSampling2D",
        lambda x: tf.keras.layers.UpSampling2D(2)(x),
        {"x": draw(2, 3, 4, 2)},
    )
    yield Case(
        "ResizeBilinear",
        "keras UpSampling2D",
        lambda x: tf.keras.layers.UpSampling2D(2, interpolation="bilinear")(x),
        {"x": draw(2, 3, 4, 2)},
    )
    yield Case(
        "ResizeBilinear",
        "size by arithmetic in floats",
        lambda x: tf.image.resize(
            x, tf.cast(tf.cast(tf.shape(x)[1:3], tf.float32) * [1.5, 0.6], tf.int32)
        ),
        {"x": draw(2, 4, 5, 2)},
    )
    yield Case(
        "ResizeBilinear",
        "unknown size to 4x4",
        lambda x: tf.image.resize(x, (4, 4)),
        {"x": draw(2, 3, 4, 2)},
        free_size=True,
    )
    for method in ("nearest", "bilinear"):
        for factors in ((2, 2), (3, 1)):
            yield Case(
                ops[method],
                f"unknown size times {factors[0]}x{factors[1]}",
                lambda x, m=method, f=factors: tf.image.resize(x, tf.shape(x)[1:3] * f, m),
                {"x": draw(2, 3, 4, 2)},
                free_size=True,
            )


BOXES = np.array(
    [[0.1, 0.2, 0.8, 0.9], [0, 0, 1, 1], [-0.3, 0.1, 0.5, 1.4], [0.9, 0.8, 0.2, 0.1]], "f"
)


def _crop(tf: Any) -> Iterator[Case]:
    x = draw(2, 5, 6, 3)
    for method in ("bilinear", "nearest"):
        for size in ((3, 4), (1, 1), (7, 2)):
            yield Case(
                "CropAndResize",
                f"method={method} crop_size={size[0]}x{size[1]}",
                lambda x, m=method, s=size: tf.image.crop_and_resize(
                    x, BOXES, [0, 1, 1, 0], s, m, extrapolation_value=2.5
                ),
                {"x": x},
            )
    yield Case(
        "CropAndResize",
        "boxes as inputs",
        lambda x, boxes, at: tf.image.crop_and_resize(x, boxes, at, (3, 3)),
        {"x": x, "boxes": BOXES, "at": np.array([1, 0, 1, 1], np.int32)},
    )
    yield Case(
        "CropAndResize",
        "crop_size=3x4",
        lambda x: tf.image.crop_and_resize(x, BOXES, [0, 0, 0, 0], (3, 4)),
        {"x": integers(1, 5, 6, 2, dtype="uint8")},
    )


def _shades(*shape: int, dtype: str = "float32") -> Array:
    """Return colors from 0 to 1, grays among them."""
    results = np.random.default_rng(3).random((*shape, 3))
    results[..., 0, :] = results[..., 0, :1]
    return results.astype(dtype)


TRANSFORMS = np.array(
    [
        [0.83, 0.31, -1.7, -0.27, 0.91, 2.3, 0.013, -0.021],
        [1.37, -0.2, 3.1, 0.4, 1.71, -4.3, 0.0, 0.0],
    ],
    np.float32,
)
"""Turned and seen from aside; larger and sheared, far over the edges."""


def _projected(tf: Any) -> Iterator[Case]:
    raw = tf.raw_ops.ImageProjectiveTransformV3

    def case(variant: str, x: Array, at: Array, size: tuple[int, int] = (7, 8), **how: Any) -> Case:
        def function(x: Any, at: Any) -> Any:
            return raw(images=x, transforms=at, output_shape=size, **{"fill_value": 1.5, **how})

        return Case("ImageProjectiveTransformV3", variant, function, {"x": x, "at": at}, free=False)

    for method in ("NEAREST", "BILINEAR"):
        for mode in ("CONSTANT", "REFLECT", "WRAP", "NEAREST"):
            how = {"interpolation": method, "fill_mode": mode}
            yield case(f"{method} {mode}", draw(2, 5, 6, 2), TRANSFORMS, **how)
            yield case(f"{method} {mode} one row", draw(2, 1, 6, 2), TRANSFORMS, **how)
            yield case(f"{method} {mode} far off", draw(2, 3, 4, 1), TRANSFORMS * 9, (11, 9), **how)
        for dtype in ("uint8", "int32", "int64", "float16", "float64"):
            x = integers(2, 5, 6, 2, dtype=dtype)
            yield case(f"{method} of a type", x, TRANSFORMS, interpolation=method)
        one = TRANSFORMS[:1]
        yield case(f"{method} one transform", draw(2, 5, 6, 2), one, interpolation=method)
        pole = np.array([[1, 0, 0.2, 0, 1, 0.3, -0.25, 0]], np.float32)
        yield case(f"{method} infinitely far", draw(2, 5, 6, 2), pole, interpolation=method)
    yield Case(
        "ImageProjectiveTransformV2",
        "BILINEAR",
        lambda x, at: tf.raw_ops.ImageProjectiveTransformV2(
            images=x, transforms=at, output_shape=(4, 9), interpolation="BILINEAR"
        ),
        {"x": draw(2, 5, 6, 2), "at": TRANSFORMS},
    )


def _colours(tf: Any) -> Iterator[Case]:
    for dtype in ("float32", "float64"):
        x = {"x": _shades(2, 3, 4, dtype=dtype)}
        yield Case("RGBToHSV", "", lambda x: tf.image.rgb_to_hsv(x), x)
        yield Case("HSVToRGB", "", lambda x: tf.image.hsv_to_rgb(x), x)
        if dtype == "float64":
            continue
        for amount in (0.3, -0.25, 0.9):
            yield Case(
                "AdjustHue",
                f"delta={amount}",
                lambda x, a=amount: tf.raw_ops.AdjustHue(images=x, delta=a),
                x,
            )
        for amount in (0.0, 0.4, 2.5):
            yield Case(
                "AdjustSaturation",
                f"scale={amount}",
                lambda x, a=amount: tf.raw_ops.AdjustSaturation(images=x, scale=a),
                x,
            )
            yield Case(
                "AdjustContrastv2",
                f"contrast_factor={amount}",
                lambda x, a=amount: tf.raw_ops.AdjustContrastv2(images=x, contrast_factor=a),
                x,
            )
    x = {"x": _shades(2, 3, 4)}
    yield Case("AdjustHue", "tf.image.adjust_hue", lambda x: tf.image.adjust_hue(x, 0.2), x)
    yield Case(
        "AdjustSaturation",
        "tf.image.adjust_saturation",
        lambda x: tf.image.adjust_saturation(x, 0.7),
        x,
    )
    yield Case(
        "AdjustContrastv2",
        "tf.image.adjust_contrast",
        lambda x: tf.image.adjust_contrast(x, 1.5),
        {"x": integers(1, 4, 3, 3, dtype="uint8")},
    )
    yield Case("Mul", "tf.image.rgb_to_yuv", lambda x: tf.image.rgb_to_yuv(x) * 2.0, x)
    yield Case(
        "Rsqrt",
        "tf.image.per_image_standardization",
        lambda x: tf.math.rsqrt(tf.abs(tf.image.per_image_standardization(x)) + 1),
        x,
    )


def _refused(tf: Any) -> Iterator[Case]:
    yield Case(
        "NonMaxSuppressionV3",
        "",
        lambda x: tf.image.non_max_suppression(x, [0.9, 0.1], 2),
        {"x": np.array([[0, 0, 1, 1], [0, 0, 0.9, 1]], "f")},
        free=False,
    )
