"""Initializers: objects that create initial values for a shape and a dtype."""

from __future__ import annotations

from math import prod, sqrt
from typing import Any

from attrs import define

from passkit.errors import DTypeError, SettingError, ShapeError
from passkit.frontends.tinyflow import creation, random_ops
from passkit.frontends.tinyflow.argument_checks import require_float
from passkit.frontends.tinyflow.dtypes import as_dtype
from passkit.frontends.tinyflow.shapes import format_shape, parse_shape
from passkit.frontends.tinyflow.tensors import Tensor
from passkit.values import arguments


@define
class zeros_initializer:  # noqa: N801 – TensorFlow's name
    """An initializer that creates zeros.

    Args:
        dtype: The dtype of tensors where none is requested; float32 by default.
    """

    dtype: Any = "float32"

    def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None) -> Tensor:
        """Create a tensor of zeros.

        Args:
            shape: The shape of the result, a list of ints.
            dtype: The dtype of the result; by default that of the initializer.
            partition_info: Ignored; TensorFlow passes it.

        Returns:
            A tensor of this shape and dtype.

        Raises:
            ShapeError: If an extent is negative, None, no int, or a tensor that only a run
                computes.
            DTypeError: If ``dtype`` is no element type.
        """
        return creation.zeros(shape, self.dtype if dtype is None else dtype)


@define
class ones_initializer:  # noqa: N801 – TensorFlow's name
    """An initializer that creates ones.

    Args:
        dtype: The dtype of tensors where none is requested; float32 by default.
    """

    dtype: Any = "float32"

    def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None) -> Tensor:
        """Create a tensor of ones.

        Args:
            shape: The shape of the result, a list of ints.
            dtype: The dtype of the result; by default that of the initializer.
            partition_info: Ignored; TensorFlow passes it.

        Returns:
            A tensor of this shape and dtype.

        Raises:
            ShapeError: If an extent is negative, None, no int, or a tensor that only a run
                computes.
            DTypeError: If ``dtype`` is no element type.
        """
        return creation.ones(shape, self.dtype if dtype is None else dtype)


@define
class constant_initializer:  # noqa: N801 – TensorFlow's name
    """An initializer that creates tensors of the same numbers for every shape.

    Args:
        value: A number, or nested lists of numbers in row-major order whose last one is repeated to
            fill the shape; 0 by default.
        dtype: The dtype of tensors where none is requested; float32 by default.
        verify_shape: Whether the numbers must have the requested shape already; False by default.
    """

    value: Any = 0
    dtype: Any = "float32"
    verify_shape: bool = False

    def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None) -> Tensor:
        """Create a constant tensor.

        Args:
            shape: The shape of the result, a list of ints.
            dtype: The dtype of the result; by default that of the initializer.
            partition_info: Ignored; TensorFlow passes it.

        Returns:
            A tensor of this shape and dtype.

        Raises:
            ShapeError: If the numbers do not fit the shape, or an extent is no int of at least 0.
            DTypeError: If ``dtype`` is no element type.
            ArgumentError: If the initializer's value holds anything but numbers; for a real dtype
                but bool, if it is complex; for an integer dtype, if it holds an int beyond its
                limits, NaN, or too large a float.
        """
        arguments.numbers("constant_initializer: value", self.value)
        kind = self.dtype if dtype is None else dtype
        return creation.constant(self.value, kind, shape, verify_shape=self.verify_shape)


@define
class random_normal_initializer:  # noqa: N801 – TensorFlow's name
    """An initializer that draws numbers from a normal distribution.

    Args:
        mean: The mean; 0 by default.
        stddev: The standard deviation; 1 by default.
        seed: An int makes the draws the same in every process, as `tf.set_random_seed` does; None
            by default.
        dtype: The dtype of tensors where none is requested; float32 by default.
    """

    mean: float = 0.0
    stddev: float = 1.0
    seed: int | None = None
    dtype: Any = "float32"

    def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None) -> Tensor:
        """Create a tensor of random numbers.

        Args:
            shape: The shape of the result, a list of ints.
            dtype: The dtype of the result; by default that of the initializer.
            partition_info: Ignored; TensorFlow passes it.

        Returns:
            A tensor of this shape and dtype, drawn anew in each run that initializes a variable
            with it.

        Raises:
            ShapeError: If an extent is negative, None, too large, no int, or a tensor that only a
                run computes, or an array or tensor as the initializer's mean or deviation does not
                broadcast.
            DTypeError: If ``dtype`` is no float, or the mean or deviation is complex.
            SettingError: If the initializer's mean or deviation is neither a number, an array nor a
                tensor, or its seed is no int.
        """
        return random_ops.random_normal(
            shape, self.mean, self.stddev, self.dtype if dtype is None else dtype, self.seed
        )


@define
class truncated_normal_initializer:  # noqa: N801 – TensorFlow's name
    """An initializer that draws normal numbers within two standard deviations of the mean.

    Args:
        mean: The mean; 0 by default.
        stddev: The standard deviation; 1 by default.
        seed: An int makes the draws the same in every process, as `tf.set_random_seed` does; None
            by default.
        dtype: The dtype of tensors where none is requested; float32 by default.
    """

    mean: float = 0.0
    stddev: float = 1.0
    seed: int | None = None
    dtype: Any = "float32"

    def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None) -> Tensor:
        """Create a tensor of random numbers.

        Args:
            shape: The shape of the result, a list of ints.
            dtype: The dtype of the result; by default that of the initializer.
            partition_info: Ignored; TensorFlow passes it.

        Returns:
            A tensor of this shape and dtype, drawn anew in each run that initializes a variable
            with it.

        Raises:
            ShapeError: If an extent is negative, None, too large, no int, or a tensor that only a
                run computes, or an array or tensor as the initializer's mean or deviation does not
                broadcast.
            DTypeError: If ``dtype`` is no float, or the mean or deviation is complex.
            SettingError: If the initializer's mean or deviation is neither a number, an array nor a
                tensor, or its seed is no int.
        """
        return random_ops.truncated_normal(
            shape, self.mean, self.stddev, self.dtype if dtype is None else dtype, self.seed
        )


@define
class random_uniform_initializer:  # noqa: N801 – TensorFlow's name
    """An initializer that draws numbers from a uniform distribution.

    Args:
        minval: The smallest number; 0 by default.
        maxval: The limit, which is not drawn; 1 by default for floats, required for integers.
        seed: An int makes the draws the same in every process, as `tf.set_random_seed` does; None
            by default.
        dtype: The dtype of tensors where none is requested; float32 by default.
    """

    minval: Any = 0.0
    maxval: Any = None
    seed: int | None = None
    dtype: Any = "float32"

    def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None) -> Tensor:
        """Create a tensor of random numbers.

        Args:
            shape: The shape of the result, a list of ints.
            dtype: The dtype of the result; by default that of the initializer.
            partition_info: Ignored; TensorFlow passes it.

        Returns:
            A tensor of this shape and dtype, drawn anew in each run that initializes a variable
            with it.

        Raises:
            ShapeError: If an extent is negative, None, no int, or a tensor that only a run
                computes.
            SettingError: For integers without a ``maxval``, for bounds that are no numbers, or no
                ints for an integer dtype, and for a seed that is no int.
            GraphError: If ``minval`` is not below ``maxval``, or an integer dtype does not hold
                them.
            DTypeError: If ``dtype`` is neither a float nor an integer.
        """
        return random_ops.random_uniform(
            shape, self.minval, self.maxval, self.dtype if dtype is None else dtype, self.seed
        )


MODES = {"fan_in": (1, 0), "fan_out": (0, 1), "fan_avg": (0.5, 0.5)}
"""The weights of the numbers of inputs and outputs in the divisor of the variance."""
DISTRIBUTIONS = ("truncated_normal", "untruncated_normal", "uniform", "normal")


@define
class variance_scaling_initializer:  # noqa: N801 – TensorFlow's name
    """An initializer of random numbers of the variance ``scale`` / (number of inputs or outputs).

    Source: He and others, Delving Deep into Rectifiers; Glorot and Bengio, Understanding the
    difficulty of training deep feedforward neural networks.

    Args:
        scale: The variance times the number of inputs or outputs; 1 by default.
        mode: "fan_in" (default) for the number of inputs of a unit, "fan_out" for that of outputs,
            "fan_avg" for their mean; see `fans`.
        distribution: "truncated_normal" (default) or "normal", both truncated at two standard
            deviations, "untruncated_normal" or "uniform".
        seed: An int makes the draws the same in every process, as `tf.set_random_seed` does; None
            by default.
        dtype: The dtype of tensors where none is requested; float32 by default.

    Raises:
        SettingError: For another mode or distribution, or a scale that is no number above 0.
    """

    scale: float = 1.0
    mode: str = "fan_in"
    distribution: str = "truncated_normal"
    seed: int | None = None
    dtype: Any = "float32"

    def __attrs_post_init__(self) -> None:
        """Raise SettingError for an unknown mode or distribution, or a scale not above 0."""
        if not require_float("variance_scaling_initializer", "scale", self.scale) > 0:
            raise SettingError(
                f"variance_scaling_initializer needs a scale above 0, got {self.scale!r}"
            )
        for setting, value, choices in (
            ("mode", self.mode, tuple(MODES)),
            ("distribution", self.distribution, DISTRIBUTIONS),
        ):
            if value not in choices:
                raise SettingError(
                    f"variance_scaling_initializer needs {', '.join(choices)} as {setting}, got "
                    f"{value!r}"
                )

    def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None) -> Tensor:
        """Create a tensor of random numbers; see `fans` for the numbers of inputs and outputs.

        Args:
            shape: The shape of the result, a list of ints.
            dtype: The dtype of the result; by default that of the initializer.
            partition_info: Ignored; TensorFlow passes it.

        Returns:
            A tensor of this shape and dtype, drawn anew in each run that initializes a variable
            with it.

        Raises:
            ShapeError: If an extent is negative, or no int, such as a size that a run determines.
            DTypeError: If ``dtype`` is no float.
            SettingError: If the initializer's seed is no int.
        """
        kind = as_dtype(self.dtype if dtype is None else dtype)
        if not kind.is_float:
            raise DTypeError(f"variance_scaling_initializer needs floats as dtype, got {kind}")
        sizes = require_known_extents(shape)
        inside, outside = fans(sizes)
        a, b = MODES[self.mode]
        variance = self.scale / max(1.0, a * inside + b * outside)
        if self.distribution == "uniform":
            limit = sqrt(3 * variance)
            return random_ops.random_uniform(sizes, -limit, limit, kind, self.seed)
        if self.distribution == "untruncated_normal":
            return random_ops.random_normal(sizes, 0.0, sqrt(variance), kind, self.seed)
        # Truncation lowers the deviation of a normal distribution by this factor.
        return random_ops.truncated_normal(
            sizes, 0.0, sqrt(variance) / 0.87962566103423978, kind, self.seed
        )


def require_known_extents(shape: Any) -> list[int]:
    """Convert the shape argument of an initializer to ints.

    Args:
        shape: A list of ints, or one int; see `parse_shape`.

    Raises:
        ShapeError: If an extent is negative, or no int, such as None or a symbolic size.
    """
    extents = parse_shape(shape, "an initializer")
    if not all(isinstance(n, int) and n >= 0 for n in extents):
        raise ShapeError(f"an initializer needs a known shape, got {format_shape(extents)}")
    return [int(n) for n in extents if n is not None]


def fans(shape: list[int]) -> tuple[float, float]:
    """Return the numbers of inputs and outputs of a unit whose kernel has this shape.

    The last two axes are inputs and outputs; the axes before are those of a convolution's window,
    whose number of elements both are multiplied by. Both numbers of a vector are its length, those
    of a scalar 1.

    >>> fans([3, 3, 16, 32])
    (144.0, 288.0)
    """
    if len(shape) < 2:
        return (float(shape[0]), float(shape[0])) if shape else (1.0, 1.0)
    field = prod(shape[:-2])
    return float(field * shape[-2]), float(field * shape[-1])


def glorot_uniform_initializer(seed: int | None = None, dtype: Any = "float32") -> Any:
    """Create an initializer of uniform draws by the mean of inputs and outputs.

    It is the default of `tf.get_variable` for floats.

    Args:
        seed: An int makes the draws the same in every process, as `tf.set_random_seed` does; None
            by default.
        dtype: The dtype of tensors where none is requested; float32 by default.

    Returns:
        A `variance_scaling_initializer` of scale 1, "fan_avg" and "uniform".
    """
    return variance_scaling_initializer(1.0, "fan_avg", "uniform", seed, dtype)


def glorot_normal_initializer(seed: int | None = None, dtype: Any = "float32") -> Any:
    """Create an initializer of truncated normal draws by the mean of inputs and outputs.

    Args:
        seed: An int makes the draws the same in every process, as `tf.set_random_seed` does; None
            by default.
        dtype: The dtype of tensors where none is requested; float32 by default.

    Returns:
        A `variance_scaling_initializer` of scale 1, "fan_avg" and "truncated_normal".
    """
    return variance_scaling_initializer(1.0, "fan_avg", "truncated_normal", seed, dtype)
