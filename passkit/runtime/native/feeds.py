"""Programs, and what their feeds may be: the slow, friendly side of the launcher's checks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, NoReturn

import numpy as np

from passkit.errors import FeedError, nearest
from passkit.runtime.native.launcher import launcher
from passkit.values import arguments

Array = np.ndarray[Any, np.dtype[Any]]
Dims = tuple[int | str | None, ...]
_KINDS = "biufc"
_PYTHON = (bool, int, float, complex, list, tuple)


class InputSpec(NamedTuple):
    """An input: its name, element type, and sizes; a size is a number, a name or None.

    Sizes of one name must be equal; None is any size.

    >>> str(InputSpec("x", np.dtype("float32"), (None, 784)))
    'float32[?, 784]'
    """

    name: str
    dtype: np.dtype[Any]
    shape: Dims

    def __str__(self) -> str:
        return type_text(self.dtype, self.shape)


def make_program(
    inputs: Sequence[InputSpec],
    num_outputs: int,
    bind: Callable[[tuple[tuple[int, ...], ...]], Any],
    lock: Any = None,
    unread: tuple[str, ...] = (),
) -> Any:
    """A `Program` of the launcher, whose feeds are converted and refused as `Feeds` says.

    ``bind`` is asked for a `Bound` for shapes that fit the inputs; ``lock`` is held during a run.
    """
    feeds = Feeds(tuple(inputs), unread)

    def bind_checked(shapes: tuple[tuple[int, ...], ...]) -> Any:
        feeds.check_shapes(shapes)
        return bind(shapes)

    table = [(spec.name, spec.dtype.num, len(spec.shape)) for spec in inputs]
    return launcher().Program(table, num_outputs, bind_checked, feeds.repair, refuse_out, lock)


class Feeds(NamedTuple):
    """What the inputs of a program need."""

    inputs: tuple[InputSpec, ...]
    unread: tuple[str, ...] = ()
    """Names that a call may feed as well; what it feeds under them is not looked at."""

    def repair(self, feeds: Any, named: Mapping[str, Any]) -> tuple[Array, ...]:
        """Arrays in the order of the inputs, from what a caller gave.

        Raises: FeedError when a feed is missing, unknown, given twice or cannot be converted.
        """
        names = [spec.name for spec in self.inputs]
        given = by_name(names, feeds, named)
        if unknown := [
            str(name) for name in given if name not in names and name not in self.unread
        ]:
            raise FeedError(f"there is no input {unknown[0]!r}; {nearest(unknown[0], names)}")
        for spec in self.inputs:
            if spec.name not in given:
                hint = arguments.twin_hint(spec.name, names)
                raise FeedError(f"input {spec.name!r} is missing; it needs {spec}{hint}")
        return tuple(self.array(spec, given[spec.name]) for spec in self.inputs)

    def array(self, spec: InputSpec, value: Any) -> Array:
        """As `spec_array`."""
        return spec_array(spec, value)

    def check_shapes(self, shapes: tuple[tuple[int, ...], ...]) -> None:
        """Raises: FeedError when a size is not the one that its input needs."""
        known: dict[str, tuple[int, str]] = {}
        for spec, shape in zip(self.inputs, shapes, strict=True):
            for axis, (need, size) in enumerate(zip(spec.shape, shape, strict=True)):
                if isinstance(need, int) and need != size:
                    raise FeedError(
                        f"input {spec.name!r} needs {spec}, got {type_text(spec.dtype, shape)}; "
                        f"axis {axis} must be {need}"
                    )
                if isinstance(need, str):
                    first, where = known.setdefault(need, (size, spec.name))
                    if first != size:
                        raise FeedError(
                            f"input {spec.name!r} needs {spec}, got "
                            f"{type_text(spec.dtype, shape)}; {need} is {first} in {where!r}"
                        )


def by_name(names: Sequence[str], feeds: Any, named: Mapping[str, Any]) -> dict[str, Any]:
    """The feeds of a call by the names of its inputs: those of a dict, or a row of all of them.

    Raises: FeedError when one is given twice, when a row has more or fewer, or is none.
    """
    given = dict(named)
    if isinstance(feeds, Mapping):
        if twice := given.keys() & feeds.keys():
            raise FeedError(f"input {min(twice)!r} is given twice; name it once")
        given.update(feeds)
    elif isinstance(feeds, (tuple, list)):
        if given or len(feeds) != len(names):
            raise FeedError(
                f"the program needs {len(names)} feeds ({', '.join(names)}), got {len(feeds)} "
                f"in a {type(feeds).__name__} and {len(given)} by name"
            )
        given = dict(zip(names, feeds, strict=True))
    elif feeds is not None:
        raise FeedError(
            f"feeds must be a dict of arrays, got {_found(feeds)}; name it, as in "
            f"{names[0] if names else 'x'}=…"
        )
    return given


def spec_array(spec: InputSpec, value: Any) -> Array:
    """The value as an array of the input's type and rank; Python numbers and lists are converted.

    Raises: FeedError when that would lose something, or the value is an array of another type.
    """
    if isinstance(value, _PYTHON) and not isinstance(value, np.generic):
        return _from_python(spec, value)
    arguments.unmasked(f"input {spec.name!r}", value)
    array = _handed_over(spec, value) if _is_handed_over(value) else np.asarray(value)
    dtype = spec.dtype.newbyteorder(array.dtype.byteorder)
    if array.dtype != dtype or array.ndim != len(spec.shape):
        refuse(spec, value, array)
    return array


HOST = (1, 3)
"""DLPack's devices whose memory NumPy reads: the CPU's, also where a GPU reads it too."""


def _is_handed_over(value: Any) -> bool:
    """Whether only DLPack says where an array is."""
    if isinstance(value, (np.ndarray, np.generic)) or not hasattr(value, "__dlpack__"):
        return False
    return not (hasattr(value, "__array__") or hasattr(value, "__array_interface__"))


def _handed_over(spec: InputSpec, value: Any) -> Array:
    """An array of another library, where it is. Raises: FeedError where NumPy cannot have it."""
    try:
        kind, number = value.__dlpack_device__()
        if kind not in HOST:
            raise BufferError(f"it lies on DLPack's device ({kind}, {number})")
        return np.from_dlpack(value)
    except (BufferError, RuntimeError, ValueError, TypeError, AttributeError) as error:
        raise FeedError(
            f"input {spec.name!r} needs {spec}, got {_found(value)} that NumPy cannot take by "
            f"DLPack: {error}; copy it to the host"
        ) from error


def _from_python(spec: InputSpec, value: Any) -> Array:
    """Python numbers are weak, as in NumPy: an integer may become a float, not the reverse."""
    try:
        array = np.asarray(value)
        if array.size == 0:
            array = array.astype(spec.dtype)
        weak = array.dtype.kind in _KINDS and _rank(array.dtype) <= _rank(spec.dtype)
        if weak and array.ndim == len(spec.shape):
            if spec.dtype.kind in "iu":
                return np.array(value, spec.dtype)  # raises where an integer is out of range
            return array.astype(spec.dtype)
    except (ValueError, OverflowError) as error:
        raise FeedError(
            f"input {spec.name!r} needs {spec}, got a {type(value).__name__} that is none: {error}"
        ) from None
    return refuse(spec, value, array)


def _rank(dtype: np.dtype[Any]) -> int:
    """Booleans, then integers, then floats, then complex numbers."""
    kind = "f" if dtype.kind == "V" else dtype.kind  # ml_dtypes' bfloat16 has kind V
    return {"b": 0, "i": 1, "u": 1, "f": 2, "c": 3}.get(kind, 4)


def refuse(spec: InputSpec, value: Any, array: Array) -> NoReturn:
    """Raises: FeedError saying what the input needs, what it got, and the way out."""
    where = f"input {spec.name!r} needs {spec}, got {_found(value)}"
    name = spec.name if spec.name.isidentifier() else "array"
    if array.dtype.kind in "OSU":  # None, text, objects: no conversion makes numbers of them
        raise FeedError(f"{where}; pass an array of numbers")
    if array.dtype != spec.dtype:
        raise FeedError(f"{where}; {name}.astype({str(spec.dtype)!r})")
    raise FeedError(f"{where}; reshape it to {len(spec.shape)} dimensions")


def takes(
    array: Any, dtype: np.dtype[Any], shape: tuple[int, ...], others: Iterable[Array]
) -> bool:
    """Whether a result can be written to an array, which shares no memory with others."""
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
    out: Any, index: int, outputs: list[tuple[np.dtype[Any], tuple[int, ...]]], inputs: list[Array]
) -> NoReturn:
    """Raises: FeedError saying why a result cannot be written to ``out[index]``."""
    if index < 0:
        raise FeedError(
            f"out must be a list of {len(outputs)} arrays or None, got {_found(out)}"
            + (f" of {len(out)}" if isinstance(out, (list, tuple)) else "")
        )
    dtype, shape = outputs[index]
    need, found = type_text(dtype, shape), out[index]
    like = isinstance(found, np.ndarray) and found.dtype == dtype and found.shape == shape
    if like and any(np.shares_memory(found, other) for other in (*inputs, *out[:index])):
        raise FeedError(
            f"out[{index}] shares memory with an input or with another result; pass np.empty"
            f"({shape}, {str(dtype)!r})"
        )
    flaws = "" if not like else " that is strided, read-only or unaligned"
    raise FeedError(
        f"out[{index}] needs a plain {need}, got {_found(found)}{flaws}; pass np.empty"
        f"({shape}, {str(dtype)!r})"
    )


def _found(value: Any) -> str:
    """What a value is, as messages show it."""
    if isinstance(value, (np.ndarray, np.generic)):
        return type_text(value.dtype, value.shape)
    if isinstance(value, _PYTHON):
        try:
            array = np.asarray(value)
        except ValueError:
            return f"a {type(value).__name__}"
        return f"a {type(value).__name__} ({type_text(array.dtype, array.shape)})"
    return f"a {type(value).__name__}"


def type_text(dtype: np.dtype[Any], shape: Dims) -> str:
    """An array's type: float32[?, 784]."""
    return f"{dtype}[{', '.join('?' if size is None else str(size) for size in shape)}]"
