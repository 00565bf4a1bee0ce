"""`jit`: functions of arrays, traced once for each structure of their arguments, and compiled.

Functions of entries are called with NumPy arrays. A call with arrays of an array library goes to
what this library registered.

The first trace is made for the shapes of its arrays. When an extent differs in a later call, that
dimension becomes unknown, the function is traced once more, and any extent of it reuses the plan.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from functools import update_wrapper
from inspect import BoundArguments, signature
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from passkit.errors import FeedError, GraphError
from passkit.graph.graph import Graph
from passkit.graph.node import Entry, as_entry, var
from passkit.program.compiler import compile
from passkit.program.executable import Executable
from passkit.values import arguments
from passkit.values.dtype import dtype_of

if TYPE_CHECKING:
    from typing import Unpack

    from passkit.passes.option_types import CompileOptions

TraceShapes = tuple[tuple[int | None, ...], ...]
"""The shape of each array argument of a trace; None is an unknown extent."""
Pack = Callable[[list[Any]], Any]
"""Puts the results of an executable into the form that the traced function returns."""


_NUMPY_ARRAYS = {np.ndarray}
_array_library: tuple[Callable[..., Any], Callable[..., Any]] | None = None


def register_arrays(flatten_arrays: Callable[..., Any], make: Callable[..., Any]) -> None:
    """Set what compiles functions that are called with arrays of an array library.

    It replaces what was set before: there is one array library.

    Args:
        flatten_arrays: ``flatten_arrays(args, kwargs)`` returns the leaves and the structure of
            the arguments, as `passkit.values.trees.flatten` does, if a leaf is such an array; else
            None.
        make: ``make(function, options)`` returns the function for such calls, which takes what
            ``flatten_arrays`` returned. Its method ``repeated(args, kwargs)`` returns the same for
            arguments of the form of the last call, and NotImplemented for others.
    """
    global _array_library
    _array_library = flatten_arrays, make


class Trace(NamedTuple):
    """A compiled trace: the shapes that it serves, the executable, and the form of its results."""

    shapes: TraceShapes
    executable: Executable
    pack: Pack


def jit(function: Callable[..., Any] | None = None, **options: Unpack[CompileOptions]) -> Any:
    """Return a function of arrays for a ``function`` that computes with entries, or with arrays.

    Called with NumPy arrays, the result calls ``function`` with entries and returns NumPy arrays.
    Called with arrays of `passkit.xp`, it calls ``function`` with such arrays, and what it returns
    is pending: the function is one operation, which fuses with its neighbours. In both cases it
    calls ``function`` once for each structure of the arguments, and remembers what that did. So
    arrays that the function uses without being arguments are those of the first call.

    Args:
        function: Takes entries, and returns an entry, or a tuple, list or dict of entries and
            numbers; calls return arrays in the same form. Arguments may be arrays and tuples of
            them; others, such as numbers and NumPy's scalars, are constants of a trace, and must be
            hashable. Functions of arrays of `passkit.xp` take and return nested lists, tuples,
            dicts and data classes of them, too. Without a function, return a decorator.
        **options: As for `passkit.compile`, which checks them at the first call; not for functions
            of arrays of `passkit.xp`.

    Raises: ArgumentError if ``function`` is none. When called: GraphError if an argument is neither
    an array nor hashable, or if the function returns neither an entry nor a tuple, list or dict, or
    reads a variable that is not an argument; ArgumentError if an element of its result is neither
    an entry nor an array of numbers, or an argument is a masked array; TypeError for arguments that
    do not fit the signature of ``function``; DTypeError for an array of a dtype that passkit does
    not have; and what ``function`` and `passkit.compile` raise.

    >>> import passkit as pk
    >>> @pk.jit(target="interpret")
    ... def double(x):
    ...     return x * 2
    >>> double(np.arange(3))
    array([0, 2, 4])
    """
    if function is not None:
        arguments.function("jit: function", function)
    if function is None:
        return lambda f: jit(f, **options)
    return JitFunction(function, options)


class JitFunction:
    """A function of arrays that `jit` returned.

    ``executables`` holds its traces, by the structure of the arguments: dtypes, which extents are
    1, and constants.
    """

    def __init__(self, function: Callable[..., Any], options: Mapping[str, Any]) -> None:
        self.function = function
        self.options = options
        self.executables: dict[Any, Trace] = {}
        self._last: Callable[..., Any] | None = None
        self._pack: Pack = list
        self._is_single = False
        self._of_arrays: Any = None
        update_wrapper(self, function, updated=())  # its fields are not those of this object

    def __call__(self, *args: Any, **named: Any) -> Any:
        """Return the function's value for these arrays, in the form that the function returns.

        Raises: GraphError if an argument is neither an array nor hashable, or if a new trace is
        needed and the function cannot be traced; ArgumentError for a masked array, or an element of
        the function's result that is neither an entry nor an array of numbers; TypeError if the
        arguments do not fit its signature; DTypeError for an array of a dtype that passkit does not
        have; SettingError for arrays of `passkit.xp` together with an option of `passkit.compile`;
        and where a trace is new, what the function and `passkit.compile` raise.
        """
        of_arrays = self._of_arrays
        if of_arrays is not None:
            result = of_arrays.repeated(args, named)
            if result is not NotImplemented:
                return result
        if _array_library is not None and (named or not {*map(type, args)} <= _NUMPY_ARRAYS):
            flatten_arrays, make = _array_library
            flat = flatten_arrays(args, named)
            if flat is not None:
                if self._of_arrays is None:
                    self._of_arrays = make(self.function, self.options)
                return self._of_arrays(*flat)
        if self._last is not None and not named:
            try:
                out = self._last(*args)
            except FeedError:  # the shapes are not those of the last trace
                out = NotImplemented
            if out is not NotImplemented:
                return out[0] if self._is_single else self._pack(out)
        return self._call_traced(args, named)

    def _call_traced(self, args: tuple[Any, ...], named: dict[str, Any]) -> Any:
        """Find or compile the trace for the structure of the arguments, and return its results.

        The structure is the dtype of each array, which of its extents are 1, and the values of all
        other arguments. A trace serves more shapes each time one does not fit. The trace is stored
        in ``executables``, and its runner is kept for the next call.

        Raises: GraphError if a constant argument is not hashable, or the function's result is not
        made of entries or reads a variable that is no argument; ArgumentError for an element of the
        result that is neither an entry nor an array of numbers; TypeError if the arguments do not
        fit its signature; DTypeError for an array of a dtype that passkit does not have; and what
        the function and `passkit.compile` raise.
        """
        bound = signature(self.function).bind(*args, **named)
        bound.apply_defaults()
        leaves = _leaves(bound.arguments)
        arrays = {k: v for k, v in leaves if _is_array(v)}
        constants = {k: v for k, v in leaves if not _is_array(v)}
        key = (
            tuple((k, a.dtype.str, tuple(n == 1 for n in a.shape)) for k, a in arrays.items()),
            tuple((k, _constant_key(k, v)) for k, v in constants.items()),
        )
        shapes = tuple(a.shape for a in arrays.values())
        trace = self.executables.get(key)
        if trace is None or not _serves(trace.shapes, shapes):
            traced = shapes if trace is None else _widened(trace.shapes, shapes)
            trace = self.executables[key] = self._trace(bound, arrays, traced)
        if len(arrays) == len(args) and not named and hasattr(trace.executable, "run_positional"):
            self._last = trace.executable.run_positional
            self._pack = trace.pack
            self._is_single = trace.pack is _single
        return trace.pack(trace.executable(arrays))

    def _trace(self, bound: BoundArguments, arrays: dict[str, Any], shapes: TraceShapes) -> Trace:
        """Call the function with variables in place of arrays, and compile the result.

        Args:
            bound: the arguments of the call; arrays in it are replaced by variables, in place.
            arrays: the arrays by name, with items of tuples by `_item_name`.
            shapes: the shape of each variable, in the order of ``arrays``; None is unknown.

        Raises: GraphError or ArgumentError for a result that is not made of entries, and GraphError
        for a variable that is not an argument; DTypeError for an array of a dtype that passkit does
        not have; and what the function and `passkit.compile` raise.
        """
        inputs = {
            name: var(name, shape, dtype_of(array.dtype))
            for (name, array), shape in zip(arrays.items(), shapes, strict=True)
        }
        for name, value in list(bound.arguments.items()):
            if name in inputs:
                bound.arguments[name] = inputs[name]
            elif isinstance(value, tuple):
                names = [_item_name(name, k, bound.arguments) for k in range(len(value))]
                bound.arguments[name] = tuple(map(inputs.get, names, value))
        result = self.function(*bound.args, **bound.kwargs)
        entries, pack = _unpacked(result, self.function)
        graph = Graph(entries)
        foreign = [n.label for n in graph.inputs if n.entries[0] not in inputs.values()]
        if foreign:
            raise GraphError(
                f"{self.function.__name__} computes with the variable '{foreign[0]}', which is "
                f"none of its arguments; make it one, and call it with an array"
            )
        unused = set(inputs) - {n.name for n in graph.inputs}
        if unused:  # they become outputs, so that calls can feed them
            graph = Graph([*entries, *(inputs[n] for n in sorted(unused))])
            pack = _without_tail(pack, len(entries))
        ordered = _with_inputs_in_order(graph, list(inputs))
        return Trace(shapes, compile(ordered, **self.options), pack)


def _with_inputs_in_order(graph: Graph, names: list[str]) -> Graph:
    """Return the graph with its inputs in the order of ``names``, the names of all of them."""
    position = {name: k for k, name in enumerate(names)}
    return graph.with_inputs(sorted(graph.inputs, key=lambda n: position[n.name]))


def _leaves(bound_arguments: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """Return (name, value) of each argument, with the items of a tuple as arguments of their own.

    `_item_name` gives these names. Tuples in tuples, and lists, stay as they are.
    """
    leaves = []
    for name, value in bound_arguments.items():
        if isinstance(value, tuple):
            leaves += [(_item_name(name, k, bound_arguments), v) for k, v in enumerate(value)]
        else:
            leaves.append((name, value))
    return leaves


def _item_name(name: str, k: int, parameters: Container[str]) -> str:
    """Return a name for item ``k`` of the tuple that is the argument ``name``: ``name_k``.

    Underscores are appended while one of the function's ``parameters`` has that name.
    """
    item_name = f"{name}_{k}"
    while item_name in parameters:
        item_name += "_"
    return item_name


def _is_array(value: Any) -> bool:
    """Return whether an argument is a NumPy array; every other one is a constant of the trace."""
    return isinstance(value, np.ndarray)


def _constant_key(name: str, value: Any) -> Any:
    """Return the name of the type and the value of a constant argument, a pair, as part of a key.

    Raises: GraphError, naming the argument, if the value is not hashable.
    """
    try:
        hash(value)
    except TypeError:
        raise GraphError(
            f"argument '{name}' of a jitted function must be an array or hashable, got "
            f"{type(value).__name__}; pass arrays, or a tuple"
        ) from None
    return type(value).__name__, value


def _serves(traced: TraceShapes, shapes: tuple[tuple[int, ...], ...]) -> bool:
    """Return whether a trace serves arrays of ``shapes``: None in ``traced`` is any extent.

    Both have as many shapes, of the same ranks.
    """
    return all(
        extent is None or extent == n
        for traced_shape, shape in zip(traced, shapes, strict=True)
        for extent, n in zip(traced_shape, shape, strict=True)
    )


def _widened(traced: TraceShapes, shapes: tuple[tuple[int, ...], ...]) -> TraceShapes:
    """Return ``traced`` shapes in which extents that differ from ``shapes`` are unknown (None).

    Both have as many shapes, of the same ranks.
    """
    return tuple(
        tuple(
            extent if extent == n else None for extent, n in zip(traced_shape, shape, strict=True)
        )
        for traced_shape, shape in zip(traced, shapes, strict=True)
    )


def _single(out: list[Any]) -> Any:
    """Return the first of the results, for a function that returned one array."""
    return out[0]


def _without_tail(pack: Pack, count: int) -> Pack:
    """Return a function that calls ``pack`` with the first ``count`` results only."""
    return lambda out: pack(out[:count])


def _unpacked(result: Any, function: Callable[..., Any]) -> tuple[list[Entry], Pack]:
    """Return the entries of a traced function's result, and a function that packs arrays like it.

    The latter takes the list of arrays that stand for the entries. Numbers and arrays in a tuple,
    list or dict become constants. A named tuple stays one; other subclasses are called with the
    list.

    Raises: GraphError for a result that is neither an entry nor a tuple, list or dict, and for a
    tuple of entries in it; ArgumentError for another element that is neither an entry nor an array
    of numbers; DTypeError for an array of a dtype that passkit does not have.
    """
    if isinstance(result, Entry):
        return [result], _single
    if isinstance(result, dict):
        names = list(result)
        return [as_entry(result[n]) for n in names], lambda out: dict(zip(names, out, strict=True))
    if isinstance(result, (tuple, list)):
        return [as_entry(e) for e in result], getattr(result, "_make", type(result))
    raise GraphError(
        f"{function.__name__} must return an Entry, or a tuple, list or dict of them, got "
        f"{type(result).__name__}"
    )
