"""API cases of tf.image."""

from __future__ import annotations

import numpy as np

import passkit as pk
from passkit.frontends import tinyflow as tf
from tests.frontends.tinyflow.math_cases import X, Y
from tests.frontends.tinyflow.nn_cases import IMAGE, SECOND
from tests.frontends.tinyflow.surface import CallCase, values

PICTURE, SECOND_PICTURE = abs(IMAGE[0]), abs(SECOND[0])


def _observe_conversion(f, **k):
    """Return images, and the number of their nodes: a cast does not change numbers within range."""
    out = f(**k)
    return [values(out), len(pk.Graph([out.entry]).nodes)]


IMAGE_AND_SIZE = {"images": IMAGE, "size": [3, 7]}
SIZED = CallCase(
    IMAGE_AND_SIZE,
    {"images": SECOND, "size": [2, 2], "align_corners": True, "half_pixel_centers": True},
)
BOX = {"offset_height": 1, "offset_width": 1, "target_height": 2, "target_width": 2}
OTHER_BOX = {"offset_height": 0, "offset_width": 0, "target_height": 3, "target_width": 3}
PADDED = {"offset_height": 1, "offset_width": 1, "target_height": 8, "target_width": 8}
OTHER_PADDED = {"offset_height": 0, "offset_width": 0, "target_height": 9, "target_width": 9}
FLIPPED = CallCase({"image": PICTURE}, {"image": SECOND_PICTURE})
CASES = {
    **{
        f"image.{n}": FLIPPED
        for n in ("flip_left_right", "flip_up_down", "transpose_image", "per_image_standardization")
    },
    "image.random_flip_left_right": CallCase(
        {"image": np.concatenate([IMAGE] * 8)}, {"image": np.concatenate([SECOND] * 8), "seed": 3}
    ),
    "image.rgb_to_grayscale": CallCase({"images": abs(X[None])}, {"images": abs(Y[None])}),
    "image.grayscale_to_rgb": CallCase(
        {"images": PICTURE[..., :1]}, {"images": SECOND_PICTURE[..., :1]}
    ),
    "image.convert_image_dtype": CallCase(
        {"image": 2 * PICTURE, "dtype": tf.uint8},
        {"image": SECOND_PICTURE, "dtype": tf.float64, "saturate": True},
        _observe_conversion,
    ),
    "image.adjust_brightness": CallCase(
        {"image": PICTURE, "delta": 0.1}, {"image": SECOND_PICTURE, "delta": 0.2}
    ),
    "image.adjust_contrast": CallCase(
        {"images": PICTURE, "contrast_factor": 2.0},
        {"images": SECOND_PICTURE, "contrast_factor": 0.5},
    ),
    "image.central_crop": CallCase(
        {"image": PICTURE, "central_fraction": 0.5},
        {"image": SECOND_PICTURE, "central_fraction": 1.0},
    ),
    "image.crop_to_bounding_box": CallCase(
        {"image": PICTURE, **BOX}, {"image": SECOND_PICTURE, **OTHER_BOX}
    ),
    "image.pad_to_bounding_box": CallCase(
        {"image": PICTURE, **PADDED}, {"image": SECOND_PICTURE, **OTHER_PADDED}
    ),
    "image.resize_image_with_crop_or_pad": CallCase(
        {"image": PICTURE, "target_height": 3, "target_width": 9},
        {"image": SECOND_PICTURE, "target_height": 2, "target_width": 4},
    ),
    "image.resize_bilinear": SIZED,
    "image.resize_nearest_neighbor": SIZED,
    "image.resize_images": CallCase(
        IMAGE_AND_SIZE,
        {
            "images": SECOND,
            "size": [2, 2],
            "method": 1,
            "align_corners": True,
            "preserve_aspect_ratio": True,
        },
    ),
}
