"""Importers of Fourier transforms, which NumPy computes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from passkit.frontends.torch.op_importers.host_calls import Array, host_call, host_function
from passkit.frontends.torch.op_importers.registry import AtenCall, aten, imports, plain_extents
from passkit.graph.node import Entry

Norm = Literal["backward", "ortho", "forward"]
NORMALIZATIONS = ("none", "ortho", "scaled")
"""PyTorch's normalizations by number: none, by the root of the size, and by the size."""


def _norm(normalization: str, is_forward: bool) -> Norm:
    """Return NumPy's name of a normalization; "forward" scales the forward transform."""
    if normalization == "ortho":
        return "ortho"
    is_scaled = normalization == "scaled"
    return "forward" if is_scaled is is_forward else "backward"


@host_function
def complex_transform(x: Array, axes: Sequence[int], normalization: str, forward: bool) -> Array:
    """Return the transform of complex numbers along axes."""
    function = np.fft.fftn if forward else np.fft.ifftn
    if not axes:
        return x
    result: Array = function(x, axes=tuple(axes), norm=_norm(normalization, forward))
    return result


@host_function
def transform_of_reals(x: Array, axes: Sequence[int], normalization: str, onesided: bool) -> Array:
    """Return the transform of real numbers along axes, of the last one only half if onesided."""
    function = np.fft.rfftn if onesided else np.fft.fftn
    result: Array = function(x, axes=tuple(axes), norm=_norm(normalization, True))
    return result


@host_function
def transform_to_reals(x: Array, axes: Sequence[int], normalization: str, size: int) -> Array:
    """Return the inverse transform to real numbers; the last axis gets this size."""
    norm = _norm(normalization, False)
    if len(axes) > 1:
        x = np.fft.ifftn(x, axes=tuple(axes[:-1]), norm=norm)
    result: Array = np.fft.irfft(x, n=size, axis=axes[-1], norm=norm)
    return result


@imports(aten._fft_c2c.default)
def _complex_transform(
    call: AtenCall, x: Entry, axes: Sequence[int], normalization: int, forward: bool
) -> Entry:
    """Import the transform of complex numbers."""
    options: dict[str, Any] = {
        "axes": tuple(axes),
        "normalization": NORMALIZATIONS[normalization],
        "forward": forward,
    }
    return host_call(call, "complex_transform", [x], options)[0]


@imports(aten._fft_r2c.default)
def _transform_of_reals(
    call: AtenCall, x: Entry, axes: Sequence[int], normalization: int, onesided: bool
) -> Entry:
    """Import the transform of real numbers."""
    options: dict[str, Any] = {
        "axes": tuple(axes),
        "normalization": NORMALIZATIONS[normalization],
        "onesided": onesided,
    }
    return host_call(call, "transform_of_reals", [x], options)[0]


@imports(aten._fft_c2r.default)
def _transform_to_reals(
    call: AtenCall, x: Entry, axes: Sequence[int], normalization: int, size: Any
) -> Entry:
    """Import the inverse transform to real numbers."""
    (plain,) = plain_extents([size])
    options: dict[str, Any] = {
        "axes": tuple(axes),
        "normalization": NORMALIZATIONS[normalization],
        "size": plain,
    }
    return host_call(call, "transform_to_reals", [x], options)[0]
