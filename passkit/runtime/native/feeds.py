"""Feeds of native programs: conversion and messages, where the launcher's fast checks fail."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, NoReturn

import numpy as np

from passkit.errors import FeedError, nearest
from passkit.runtime.native.launcher import launcher
from passkit.values import arguments

HostArray = np.ndarray[Any, np.dtype[Any]]
SpecDims = tuple[int | str | None, ...]
_KINDS = "biufc"
_PYTHON = (bool, int, float, complex, list, tuple)


class InputSpec(NamedTuple):
    """An input of a native program.

    Attributes:
        name: the name under which a call feeds it.
        dtype: the element type.
        shape: the sizes: a number, None for any size, or a name; sizes of the same name must be
            equal.

    >>> str(InputSpec("x", np.dtype("float32"), (None, 784)))
    'float32[?, 784]'
    """

    name: str
    dtype: np.dtype[Any]
    shape: SpecDims

    def __str__(self) -> str:
        return type_text(self.dtype, self.shape)


def make_program(
    inputs: Sequence[InputSpec],
    num_outputs: int,
    bind: Callable[[tuple[tuple[int, ...], ...]], Any],
    lock: Any = None,
    unread: tuple[str, ...] = (),
) -> Any:
    """Create a `Program` of the launcher: a callable of feeds that returns a list of arrays.

    Its calls raise a FeedError for feeds or arrays of ``out`` that do not match, an ArgumentError
    for a masked array, a CapacityError without memory for the results, and what ``bind`` raises.

    Args:
        inputs: the name, dtype and shape that each input needs; `FeedChecker` converts or rejects
            other feeds.
        num_outputs: the number of results.
        bind: returns a `Bound` of the launcher for shapes that match the inputs.
        lock: held during a run; None for no lock.
        unread: names that a call may feed as well; their values are ignored.

    Raises: CompilerError, CacheError or SettingError where the launcher cannot be compiled or
    loaded.
    """
    feeds = FeedChecker(tuple(inputs), unread)

    def bind_checked(shapes: tuple[tuple[int, ...], ...]) -> Any:
        feeds.check_shapes(shapes)
        return bind(shapes)

    table = [(spec.name, spec.dtype.num, len(spec.shape)) for spec in inputs]
    return launcher().Program(table, num_outputs, bind_checked, feeds.repair, refuse_out, lock)


class FeedChecker(NamedTuple):
    """Converts feeds to the arrays that the inputs of a program need.

    Attributes:
        inputs: the name, dtype and shape that each input needs.
        unread: names that a call may feed as well; their values are ignored.
    """

    inputs: tuple[InputSpec, ...]
    unread: tuple[str, ...] = ()

    def repair(self, feeds: Any, named: Mapping[str, Any]) -> tuple[HostArray, ...]:
        """Return the feeds of a call as arrays of the inputs' dtypes and ranks, in their order.

        Args:
            feeds: a dict of values by name, a list or tuple of all of them, or None.
            named: values by name.

        Raises:
            FeedError: A feed is missing, unknown, passed twice or cannot be converted.
            ArgumentError: A feed is a masked array.
        """
        names = [spec.name for spec in self.inputs]
        values = by_name(names, feeds, named)
        if unknown := [
            str(name) for name in values if name not in names and name not in self.unread
        ]:
            raise FeedError(f"there is no input {unknown[0]!r}; {nearest(unknown[0], names)}")
        for spec in self.inputs:
            if spec.name not in values:
                hint = arguments.repeated_name_hint(spec.name, names)
                raise FeedError(f"input {spec.name!r} is missing; it needs {spec}{hint}")
        return tuple(self.array(spec, values[spec.name]) for spec in self.inputs)

    def array(self, spec: InputSpec, value: Any) -> HostArray:
        """Return ``value`` as an array that the input ``spec`` takes; see `spec_array`.

        Raises: FeedError, naming the input, where it does not match; ArgumentError for a masked
        array.
        """
        return spec_array(spec, value)

    def check_shapes(self, shapes: tuple[tuple[int, ...], ...]) -> None:
        """Check that the shapes of arrays, which have the right ranks, match the inputs.

        ``shapes`` has one for each input, in order.

        Raises:
            FeedError: A size differs from its input's number, or from a size of the same name.
        """
        sizes: dict[str, tuple[int, str]] = {}
        for spec, shape in zip(self.inputs, shapes, strict=True):
            for axis, (need, size) in enumerate(zip(spec.shape, shape, strict=True)):
                if isinstance(need, int) and need != size:
                    raise FeedError(
                        f"input {spec.name!r} needs {spec}, got {type_text(spec.dtype, shape)}; "
                        f"axis {axis} must be {need} long"
                    )
                if isinstance(need, str):
                    first, where = sizes.setdefault(need, (size, spec.name))
                    if first != size:
                        raise FeedError(
                            f"input {spec.name!r} needs {spec}, got "
                            f"{type_text(spec.dtype, shape)}; {need} is {first} in {where!r}"
                        )


def by_name(names: Sequence[str], feeds: Any, named: Mapping[str, Any]) -> dict[str, Any]:
    """Return the feeds of a call by the names of its inputs, as a new dict.

    Neither the names in ``feeds`` and ``named`` nor the values are checked.

    Args:
        names: the names of the inputs, in order.
        feeds: a dict of values by name, a list or tuple of one value for each input, or None.
        named: values by name.

    Raises:
        FeedError: A value is passed twice, a list has the wrong length, or ``feeds`` is of another
            type.
    """
    values = dict(named)
    if isinstance(feeds, Mapping):
        if twice := values.keys() & feeds.keys():
            raise FeedError(
                f"input {min(twice)!r} is passed twice, in the dict and by name; pass it once"
            )
        values.update(feeds)
    elif isinstance(feeds, (tuple, list)):
        if values or len(feeds) != len(names):
            raise FeedError(
                f"the program needs {len(names)} feeds ({', '.join(names)}), got {len(feeds)} "
                f"in a {type(feeds).__name__} and {len(values)} by name; pass all in one of them"
            )
        values = dict(zip(names, feeds, strict=True))
    elif feeds is not None:
        raise FeedError(
            f"feeds must be a dict, list or tuple of arrays, got {_description(feeds)}; pass it "
            f"by name, as in {names[0] if names else 'x'}=…"
        )
    return values


def spec_array(spec: InputSpec, value: Any) -> HostArray:
    """Return a value as an array of the dtype, in any byte order, and rank of the input ``spec``.

    Python numbers and lists are converted, and rounded to floats, as `_from_python` says. A NumPy
    array that matches is returned itself; arrays of other libraries are shared, not copied.

    Raises:
        FeedError: Python numbers are of a higher kind than the dtype or out of its range, the value
            is no array, or an array of another dtype or rank.
        ArgumentError: The value is a masked array.
    """
    if isinstance(value, _PYTHON) and not isinstance(value, np.generic):
        return _from_python(spec, value)
    arguments.unmasked(f"input {spec.name!r}", value)
    array = _from_dlpack(spec, value) if _needs_dlpack(value) else _from_object(spec, value)
    dtype = spec.dtype.newbyteorder(array.dtype.byteorder)
    if array.dtype != dtype or array.ndim != len(spec.shape):
        refuse(spec, value, array)
    return array


def _from_object(spec: InputSpec, value: Any) -> HostArray:
    """Return ``value``, an array of NumPy or of another library, as a NumPy array.

    A NumPy array is returned itself; an object that is no array becomes one of objects. ``spec`` is
    the input, for messages.

    Raises:
        FeedError: The object cannot be converted, such as a tensor on another device.
    """
    try:
        return np.asarray(value)
    except (ValueError, TypeError, RuntimeError) as error:
        raise FeedError(
            f"input {spec.name!r} needs {spec}, got {_description(value)} that NumPy cannot read: "
            f"{error}; pass an array of numbers on the host"
        ) from error


HOST_DEVICES = (1, 3)
"""DLPack's device types in host memory: the CPU, and memory that CUDA pins."""


def _needs_dlpack(value: Any) -> bool:
    """Return whether a value has ``__dlpack__``, but none of NumPy's own array protocols."""
    if isinstance(value, (np.ndarray, np.generic)) or not hasattr(value, "__dlpack__"):
        return False
    return not (hasattr(value, "__array__") or hasattr(value, "__array_interface__"))


def _from_dlpack(spec: InputSpec, value: Any) -> HostArray:
    """Return ``value``, an array of another library, as a NumPy array without copying it.

    ``spec`` is the input, for messages.

    Raises:
        FeedError: It is not in host memory, or NumPy cannot represent it; a BufferError and the
            like of its library become this error, too.
    """
    try:
        kind, number = value.__dlpack_device__()
        if kind not in HOST_DEVICES:
            raise BufferError(f"it is on DLPack's device ({kind}, {number})")
        return np.from_dlpack(value)
    except (BufferError, RuntimeError, ValueError, TypeError, AttributeError) as error:
        raise FeedError(
            f"input {spec.name!r} needs {spec}, got {_description(value)} that NumPy cannot read "
            f"by DLPack: {error}; copy it to the host"
        ) from error


def _from_python(spec: InputSpec, value: Any) -> HostArray:
    """Return ``value``, Python numbers, as an array of the dtype of the input ``spec``.

    Values of one kind become those of the same or a later one, in the order bool, integer, float,
    complex. Floats are rounded: 1e40 becomes infinity in float32. An empty list takes any dtype.

    Raises:
        FeedError: The numbers are of a later kind than the dtype (floats for integers, integers for
            booleans), an integer is out of the range of an integer dtype, the rank differs, or the
            value is a ragged list or has other objects.
    """
    need = f"input {spec.name!r} needs {spec}, got a {type(value).__name__}"
    try:
        array = np.asarray(value)
        if array.size == 0:
            array = array.astype(spec.dtype)
        weak = array.dtype.kind in _KINDS and _rank(array.dtype) <= _rank(spec.dtype)
        fits = weak and array.ndim == len(spec.shape)
        if fits:
            # A Python integer that is out of range raises here; one of a NumPy array wraps.
            is_integer = spec.dtype.kind in "iu"
            converted = np.array(value, spec.dtype) if is_integer else array.astype(spec.dtype)
    except (ValueError, TypeError, OverflowError) as error:
        raise FeedError(f"{need} that cannot be converted: {error}") from None
    if fits:
        if is_integer and (converted != array).any():
            raise FeedError(f"{need} with an integer out of bounds for {spec.dtype}")
        return converted
    return refuse(spec, value, array.astype(spec.dtype) if weak else array)


def _rank(dtype: np.dtype[Any]) -> int:
    """Return a number for a dtype's kind: 0 bool, 1 integer, 2 float, 3 complex, 4 others.

    Python numbers are converted to kinds of the same or a greater number. bfloat16 is a float, and
    so is every other dtype of kind V.
    """
    kind = "f" if dtype.kind == "V" else dtype.kind  # ml_dtypes' bfloat16 has kind V
    return {"b": 0, "i": 1, "u": 1, "f": 2, "c": 3}.get(kind, 4)


def refuse(spec: InputSpec, value: Any, array: HostArray) -> NoReturn:
    """Raise a FeedError: ``value`` does not match the input ``spec``.

    ``array`` is the value as an array; the message says how to convert it.
    """
    where = f"input {spec.name!r} needs {spec}, got {_description(value)}"
    name = spec.name if spec.name.isidentifier() else "array"
    if array.dtype.kind in "OSU":  # None, text and objects cannot be converted to numbers
        raise FeedError(f"{where}; pass an array of numbers")
    if array.dtype != spec.dtype:
        raise FeedError(f"{where}; {name}.astype({str(spec.dtype)!r})")
    raise FeedError(f"{where}; reshape it to {len(spec.shape)} dimensions")


def takes(
    array: Any, dtype: np.dtype[Any], shape: tuple[int, ...], others: Iterable[HostArray]
) -> bool:
    """Return whether a result of a dtype and shape can be written to an array.

    It must be a C-contiguous, aligned, writable NumPy array of that dtype and shape, whose range of
    addresses overlaps none of ``others``, which are arrays.
    """
    return (
        isinstance(array, np.ndarray)
        and array.dtype == dtype
        and array.shape == shape
        and array.flags.c_contiguous
        and array.flags.aligned
        and array.flags.writeable
        and not any(np.may_share_memory(array, other) for other in others)
    )


def refuse_out(
    out: Any,
    index: int,
    outputs: list[tuple[np.dtype[Any], tuple[int, ...]]],
    inputs: list[HostArray],
) -> NoReturn:
    """Raise FeedError for an array that cannot take a result.

    Args:
        out: the arrays that the caller passed for the results.
        index: the position of the one that does not fit; -1 if ``out`` itself is not a list of the
            right length.
        outputs: dtype and shape of each result.
        inputs: the input arrays.
    """
    if index < 0:
        raise FeedError(
            f"out must be a list of {len(outputs)} arrays or None, got {_description(out)}"
            + (f" of {len(out)}" if isinstance(out, (list, tuple)) else "")
        )
    dtype, shape = outputs[index]
    need, array = type_text(dtype, shape), out[index]
    matches = isinstance(array, np.ndarray) and array.dtype == dtype and array.shape == shape
    if matches and any(np.may_share_memory(array, other) for other in (*inputs, *out[:index])):
        raise FeedError(
            f"out[{index}] needs memory of its own, and its addresses overlap those of an input or "
            f"another result; pass np.empty({shape}, {str(dtype)!r})"
        )
    flaws = "" if not matches else " that is strided, read-only or unaligned"
    raise FeedError(
        f"out[{index}] needs a contiguous {need}, got {_description(array)}{flaws}; pass "
        f"np.empty({shape}, {str(dtype)!r})"
    )


def _description(value: Any) -> str:
    """Return the dtype and shape of an array of NumPy, and of a number or list with its type.

    The text has only the type for a ragged list and any other value.
    """
    if isinstance(value, (np.ndarray, np.generic)):
        return type_text(value.dtype, value.shape)
    if isinstance(value, _PYTHON):
        try:
            array = np.asarray(value)
        except ValueError:
            return f"a {type(value).__name__}"
        return f"a {type(value).__name__} ({type_text(array.dtype, array.shape)})"
    return f"a {type(value).__name__}"


def type_text(dtype: np.dtype[Any], shape: SpecDims) -> str:
    """Return dtype and shape as text, such as ``float32[?, 784]``; a size of None is ``?``."""
    return f"{dtype}[{', '.join('?' if size is None else str(size) for size in shape)}]"
