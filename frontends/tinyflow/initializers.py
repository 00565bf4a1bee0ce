"""Initial values: objects that are called with a shape and a dtype."""

from __future__ import annotations

from math import prod, sqrt
from typing import Any

from attrs import define

from passkit.errors import SettingError
from passkit.frontends.tinyflow import draws, sources
from passkit.frontends.tinyflow.shapes import extents_of
from passkit.frontends.tinyflow.tensors import Tensor


@define
class zeros_initializer:  # noqa: N801 – TensorFlow's name
    """Zeros."""

    dtype: Any = "float32"

    def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None) -> Tensor:
        """A tensor of this shape."""
        return sources.zeros(shape, dtype or self.dtype)


@define
class ones_initializer:  # noqa: N801 – TensorFlow's name
    """Ones."""

    dtype: Any = "float32"

    def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None) -> Tensor:
        """A tensor of this shape."""
        return sources.ones(shape, dtype or self.dtype)


@define
class constant_initializer:  # noqa: N801 – TensorFlow's name
    """One number, or a list of numbers whose last is repeated; not with ``verify_shape``."""

    value: Any = 0
    dtype: Any = "float32"
    verify_shape: bool = False

    def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None) -> Tensor:
        """A tensor of this shape."""
        return sources.constant(
            self.value, dtype or self.dtype, shape, verify_shape=self.verify_shape
        )


@define
class random_normal_initializer:  # noqa: N801 – TensorFlow's name
    """Normal draws."""

    mean: float = 0.0
    stddev: float = 1.0
    seed: int | None = None
    dtype: Any = "float32"

    def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None) -> Tensor:
        """A tensor of this shape."""
        return draws.random_normal(shape, self.mean, self.stddev, dtype or self.dtype, self.seed)


@define
class truncated_normal_initializer:  # noqa: N801 – TensorFlow's name
    """Normal draws, none more than two standard deviations from the mean."""

    mean: float = 0.0
    stddev: float = 1.0
    seed: int | None = None
    dtype: Any = "float32"

    def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None) -> Tensor:
        """A tensor of this shape."""
        return draws.truncated_normal(shape, self.mean, self.stddev, dtype or self.dtype, self.seed)


@define
class random_uniform_initializer:  # noqa: N801 – TensorFlow's name
    """Draws spread evenly from ``minval`` to below ``maxval``."""

    minval: Any = 0.0
    maxval: Any = None
    seed: int | None = None
    dtype: Any = "float32"

    def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None) -> Tensor:
        """A tensor of this shape."""
        return draws.random_uniform(
            shape, self.minval, self.maxval, dtype or self.dtype, self.seed
        )


MODES = {"fan_in": (1, 0), "fan_out": (0, 1), "fan_avg": (0.5, 0.5)}
DISTRIBUTIONS = ("truncated_normal", "untruncated_normal", "uniform", "normal")


@define
class variance_scaling_initializer:  # noqa: N801 – TensorFlow's name
    """Draws whose variance is ``scale`` over the number of a layer's inputs, outputs or their mean.

    Source: He and others, Delving Deep into Rectifiers; Glorot and Bengio, Understanding the
    difficulty of training deep feedforward neural networks.
    """

    scale: float = 1.0
    mode: str = "fan_in"
    distribution: str = "truncated_normal"
    seed: int | None = None
    dtype: Any = "float32"

    def __attrs_post_init__(self) -> None:
        for what, value, known in (
            ("mode", self.mode, tuple(MODES)),
            ("distribution", self.distribution, DISTRIBUTIONS),
        ):
            if value not in known:
                raise SettingError(
                    f"variance_scaling_initializer needs {', '.join(known)} as {what}, got "
                    f"{value!r}"
                )

    def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None) -> Tensor:
        """A tensor of this shape."""
        sizes = [int(n) for n in extents_of(shape, "an initializer") if n is not None]
        inside, outside = fans(sizes)
        a, b = MODES[self.mode]
        variance = self.scale / max(1.0, a * inside + b * outside)
        kind = dtype or self.dtype
        if self.distribution == "uniform":
            limit = sqrt(3 * variance)
            return draws.random_uniform(sizes, -limit, limit, kind, self.seed)
        if self.distribution == "untruncated_normal":
            return draws.random_normal(sizes, 0.0, sqrt(variance), kind, self.seed)
        # What is cut off lowers the deviation of a normal distribution to this part.
        return draws.truncated_normal(
            sizes, 0.0, sqrt(variance) / 0.87962566103423978, kind, self.seed
        )


def fans(shape: list[int]) -> tuple[float, float]:
    """The inputs and outputs of one unit of a layer with such a kernel."""
    if len(shape) < 2:
        return (float(shape[0]), float(shape[0])) if shape else (1.0, 1.0)
    field = prod(shape[:-2])
    return float(field * shape[-2]), float(field * shape[-1])


def glorot_uniform_initializer(seed: int | None = None, dtype: Any = "float32") -> Any:
    """Even draws by the mean of inputs and outputs: the default of get_variable."""
    return variance_scaling_initializer(1.0, "fan_avg", "uniform", seed, dtype)


def glorot_normal_initializer(seed: int | None = None, dtype: Any = "float32") -> Any:
    """Truncated normal draws by the mean of inputs and outputs."""
    return variance_scaling_initializer(1.0, "fan_avg", "truncated_normal", seed, dtype)
