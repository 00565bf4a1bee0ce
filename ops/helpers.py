"""Helpers that operator definitions share: dtype checks, parameters, axes, exact rewrites.

Functions that check a parameter raise an error that names the node, says what is needed and what
the parameter is instead.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from passkit.errors import DTypeError, GraphError, PasskitError, ShapeError
from passkit.graph.infer import agree, same_dtype_rule, show_shape
from passkit.graph.node import CONSTANT, Entry, Node, constant
from passkit.graph.op import REQUIRED, Op, get_op
from passkit.values.dtype import DType, dtype_of
from passkit.values.size import Extent, Shape, Size


def make(name: str, *inputs: Any, **params: Any) -> Entry:
    """Apply an operator and return its output, a tuple of entries if it has several.

    Args:
        name: The operator's name or alias.
        *inputs: Entries, arrays and numbers.
        **params: The operator's parameters; others have their defaults.

    Raises:
        RegistryError: If there is no such operator.
        GraphError: If a parameter is unknown, missing or of another type, the number of inputs is
            wrong, or an input is a tuple of entries.
        ArgumentError: If an input is neither an entry, an array nor a number.
        ShapeError: If the shapes, or a parameter, do not fit the operator.
        DTypeError: If the dtypes, or a parameter, do not, or a Python int does not fit the integers
            beside it.
    """
    return get_op(name)(*inputs, **params)  # type: ignore[no-any-return]


def add_aliases(op: Op, names: str) -> None:
    """Register further names of ``op``, separated by spaces, in place.

    Raises: RegistryError for the name of another operator, ArgumentError for a name that is no
    identifier; names in front of it are registered.
    """
    for name in names.split():
        op.add_alias(name)


# Dtypes.

KIND_NAMES = {
    "b": "bools",
    "i": "signed integers",
    "u": "unsigned integers",
    "f": "floats",
    "c": "complex numbers",
}
"""The letters that operator definitions write for kinds of dtypes, as error messages name them."""

SUGGESTED_DTYPES = {
    "b": "bool",
    "i": "int32",
    "u": "uint32",
    "f": "float32",
    "c": "complex64",
}
"""For each kind the dtype that error messages suggest to cast to."""


def check_kinds(node: Node, kinds: str, *dtypes: DType) -> None:
    """Check that every dtype is of an accepted kind.

    Args:
        node: The node to name in errors.
        kinds: The letters of the accepted kinds, such as "iuf"; see `KIND_NAMES`.
        *dtypes: The dtypes of the inputs, in order.

    Raises:
        DTypeError: If a dtype is of another kind.
    """
    for k, dtype in enumerate(dtypes):
        if dtype.kind not in kinds:
            accepted = " or ".join(KIND_NAMES[kind] for kind in kinds)
            suggestion = SUGGESTED_DTYPES["f" if "f" in kinds else kinds[0]]
            position = f" as input {k}" if len(dtypes) > 1 else ""
            raise DTypeError(
                f"{node.where} needs {accepted}, got {dtype}{position}; "
                f"pk.ops.cast(x, '{suggestion}')"
            )


def common_dtype(kinds: str, result: DType | None = None) -> Callable[..., Any]:
    """Return the FInferType of an operator whose inputs all have one dtype.

    Args:
        kinds: The kinds of dtype that the inputs may have, such as "iuf".
        result: Dtype of the output; None: that of the inputs.

    Returns:
        A function of a node and dtypes, which raises DTypeError for different dtypes or one of
        another kind, and GraphError for none.
    """

    def infer_type(node: Node, *dtypes: DType) -> Any:
        """Return the dtype of the output, ``result`` or the one that all inputs have.

        ``dtypes`` are those of the inputs, ``node`` is named in errors.

        Raises: DTypeError for different dtypes, or one of another kind than ``kinds``; GraphError
        without inputs.
        """
        check_kinds(node, kinds, same_dtype_rule(node, *dtypes))
        return result or dtypes[0]

    return infer_type


def real_dtype(dtype: DType) -> DType:
    """Return the dtype of the parts of complex numbers; any other dtype is returned unchanged.

    It is float32 for complex64, float64 for complex128.
    """
    return dtype_of(f"float{4 * dtype.nbytes}") if dtype.kind == "c" else dtype


# Axes and shapes.


def normalize_axes(node: Node, rank: int, axes: Any, name: str = "axis") -> tuple[int, ...]:
    """Return ``axes`` as sorted ints from 0 to below ``rank``.

    Args:
        node: The node to name in errors.
        rank: Number of axes of the input.
        axes: One int, a tuple of ints, which may be empty, or None for all axes. Negative ones are
            counted from the end.
        name: The parameter to name in errors.

    Raises:
        ShapeError: If an axis is no int (a bool, a NumPy integer or a list of ints is none), out of
            range, or listed twice.
    """
    if axes is None:
        return tuple(range(rank))
    listed = axes if isinstance(axes, tuple) else (axes,)
    positions = [normalize_axis(node, rank, axis, name) for axis in listed]
    for axis, position in zip(listed, positions, strict=True):
        if positions.count(position) > 1:
            raise ShapeError(f"{node.where}: {name}={axes} has axis {axis} twice; name each once")
    return tuple(sorted(positions))


def normalize_axis(node: Node, rank: int, axis: Any, name: str = "axis") -> int:
    """Return ``axis``, which may be negative, as an int from 0 to below ``rank``.

    Args:
        node: The node, for messages.
        rank: The number of axes.
        axis: The axis.
        name: The parameter's name, for messages.

    Raises:
        ShapeError: If ``axis`` is no int (a bool, None or a NumPy integer is none), or out of
            range.
    """
    if isinstance(axis, bool) or not isinstance(axis, int):
        raise ShapeError(f"{node.where} needs an int as {name}, got {axis!r}")
    if not -rank <= axis < rank:
        span = f"{-rank} to {rank - 1}" if rank else "none: the input is a scalar"
        raise ShapeError(f"{node.where}: {name} {axis} is out of range; there are axes {span}")
    return axis % rank


def first_shape(node: Node, *shapes: Shape) -> Shape:
    """Return the shape of the first input: FInferShape of an operator of any number of inputs.

    Raises: GraphError, which names ``node``, if there are no inputs.
    """
    if not shapes:
        raise GraphError(f"{node.where} needs at least one input, got none")
    return shapes[0]


def check_broadcast(node: Node, shape: Shape, target: Shape, name: str = "") -> None:
    """Check that ``shape`` broadcasts to ``target`` and to no larger shape.

    Where extents differ and one is symbolic, a guard that they are equal is recorded, which a call
    checks; an extent of ``shape`` that is known to be 1 needs none.

    Args:
        node: The node to name in errors.
        shape: The shape to check.
        target: The shape to broadcast to.
        name: The operand to name in errors, such as "the weights".

    Raises:
        ShapeError: If ``shape`` has more axes, or a known extent that is neither 1 nor the known
            one of ``target``.
    """
    new_axes = len(target) - len(shape)
    prefix = f"{name} " if name else ""
    pairs: list[tuple[Extent, Extent]] = []
    if new_axes >= 0:
        pairs = [(n, target[k]) for k, n in enumerate(shape, new_axes) if n != 1]
    differ = any(isinstance(n, int) and isinstance(m, int) and n != m for n, m in pairs)
    if new_axes < 0 or differ:
        raise ShapeError(
            f"{node.where} cannot stretch {prefix}{show_shape(shape)} to {show_shape(target)}; "
            f"only lengths of 1 stretch, aligned at the end"
        )
    for n, m in pairs:
        agree(node, n, m, f"a dimension {'of ' if prefix else ''}{prefix}that is not stretched")


def show_shapes(shapes: Sequence[Shape | None]) -> str:
    """Return shapes as error messages show them, joined by "and"; None, an unknown rank, as (?)."""
    return " and ".join(show_shape(s) for s in shapes)


# Parameters.


def parse_extents(node: Node, value: Any, name: str) -> Shape:
    """Return a parameter as a tuple of extents: ints, negative too, or sizes as ``x.shape[0]``.

    Args:
        node: The node to name in errors.
        value: The parameter: one extent, which gives a tuple of one, or a tuple of them, which may
            be empty.
        name: The parameter to name in errors.

    Raises:
        ShapeError: If an extent is neither an int nor a Size; bools, None and lists are refused.
    """
    extents: list[Extent] = []
    for extent in value if isinstance(value, tuple) else (value,):
        if not isinstance(extent, (int, Size)) or isinstance(extent, bool):
            raise ShapeError(f"{node.where} needs ints or sizes as {name}, got {value!r}")
        extents.append(extent)
    return tuple(extents)


def extent_param(node: Node, name: str) -> Extent:
    """Return the parameter ``name`` of ``node``, one extent: an int, a negative one too, or a Size.

    Raises:
        ShapeError: If it is anything else, such as a bool, None or a tuple of one.
    """
    value = node.params[name]
    if isinstance(value, tuple):
        raise ShapeError(f"{node.where} needs one int or size as {name}, got {value!r}")
    return parse_extents(node, value, name)[0]


def count_param(node: Node, name: str) -> Extent:
    """Return the parameter ``name`` of ``node``, a number of elements: an int >= 0 or a Size.

    Raises:
        ShapeError: If it is anything else, such as a bool, None or a tuple of one.
    """
    count = extent_param(node, name)
    if isinstance(count, int) and count < 0:
        raise ShapeError(f"{node.where} needs {name} >= 0, got {count}")
    return count


def int_param(node: Node, name: str, error: type[PasskitError] = ShapeError) -> int:
    """Return a parameter of a node, which is an int.

    Args:
        node: The node.
        name: The parameter's name.
        error: The class of the error.

    Raises:
        PasskitError: If the parameter is anything else, bools included; it is an ``error``.
    """
    value = node.params[name]
    if isinstance(value, bool) or not isinstance(value, int):
        raise error(f"{node.where} needs an int as {name}, got {value!r}")
    return value


def number_param(node: Node, name: str) -> float:
    """Return the parameter ``name`` of ``node``, which is an int or a float; never None.

    Where the parameter's default is None, the caller must handle None before it calls this.

    Raises: GraphError if it is anything else, None and bools included.
    """
    value = node.params[name]
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        default = node.op.params[name] if node.op is not None else REQUIRED
        or_none = ", or None" if default is None else ""
        raise GraphError(f"{node.where} needs a number as {name}{or_none}, got {value!r}")
    return value


# Rewrites and constants.


def as_replacement(node: Node, x: Entry) -> Entry | None:
    """Return ``x`` if it has the shape and dtype of the node's first output, else None.

    None also where a shape or dtype is unknown. For FSimplify: only then ``x`` may replace the
    output.
    """
    output = node.entries[0]
    same_shape = output.shape is not None and x.shape == output.shape
    return x if same_shape and x.dtype is not None and x.dtype is output.dtype else None


def scalar_constant(x: Entry) -> Any:
    """Return the value of a constant of one element, a real number or bool, else None.

    The constant may have axes of length 1, and ``broadcast_to`` may be applied to it. One of
    several equal elements gives None, and so does a complex one: even 1 times an infinite complex
    number changes it, since the product of infinity and the imaginary part 0 is NaN.

    Returns:
        A NumPy scalar of the constant's dtype, or None.
    """
    while x.node.op is not None and x.node.op.name == "broadcast_to":
        x = x.node.inputs[0]
    if x.node.op is not CONSTANT:
        return None
    value = x.node.params["value"]
    return value.reshape(-1)[0] if value.size == 1 and value.dtype.kind != "c" else None


def is_constant(x: Entry, value: float) -> bool:
    """Return whether ``x`` is a constant of one element, ``value``, perhaps under broadcast_to.

    0.0 is not -0.0. False for other constants, even of equal elements, for complex ones and for
    NaN. The dtype is not compared: a bool True is 1.0.
    """
    constant_value = scalar_constant(x)
    if constant_value is None:
        return False
    same_sign = np.signbit(constant_value) == np.signbit(value)
    return bool(constant_value == value and same_sign)


def size_as_entry(size: Extent) -> Entry:
    """Return an extent, an int or a Size, as an int64 scalar in the graph.

    An int becomes a constant. The value of a symbol is computed as a sum of ones along an axis of
    that length, a quotient in a size by floor division.

    Raises: ArgumentError for an int that int64 cannot hold.
    """
    if not isinstance(size, Size):
        return constant(size, "int64")
    total = constant(0, "int64")
    for monomial, coefficient in size.terms:
        term = constant(coefficient, "int64")
        for atom in monomial:
            if isinstance(atom, str):
                ones = make("full", shape=(Size.symbol(atom),), fill_value=1, dtype="int64")
                factor = make("reduce_sum", ones)
            else:
                factor = size_as_entry(atom.numerator) // size_as_entry(atom.denominator)
            term = term * factor
        total = total + term
    return total
