"""`jit`: functions of arrays, traced once for each structure of their arguments, and compiled.

The first trace has the sizes it sees. When one of them changes, that dimension becomes unknown, the
function is traced once more, and further sizes of it reuse the plan.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import update_wrapper
from inspect import signature
from typing import TYPE_CHECKING, Any

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

    from passkit.passes.keywords import Options

Sizes = tuple[tuple[int | None, ...], ...]


def jit(function: Callable[..., Any] | None = None, **options: Unpack[Options]) -> Any:
    """Make ``function``, which computes with entries, a function of arrays.

    It may return an entry, or a tuple, list or dict of them; calls return arrays in the same form.
    Arguments that are no arrays are constants of the trace. ``options`` are those of `compile`.

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
    return Jit(function, options)


class Jit:
    """A traced function; ``executables`` are those it was compiled to."""

    def __init__(self, function: Callable[..., Any], options: Mapping[str, Any]) -> None:
        self.function, self.options = function, options
        self.executables: dict[Any, tuple[Sizes, Executable, Callable[[list[Any]], Any]]] = {}
        self._last: Callable[..., Any] | None = None
        self._pack: Callable[[list[Any]], Any] = list
        self._one = False
        update_wrapper(self, function)

    def __call__(self, *args: Any, **named: Any) -> Any:
        """The function's value for these arrays."""
        if self._last is not None and not named:
            try:
                out = self._last(*args)
            except FeedError:  # other sizes than those of the trace
                out = NotImplemented
            if out is not NotImplemented:
                return out[0] if self._one else self._pack(out)
        return self._general(args, named)

    def _general(self, args: tuple[Any, ...], named: dict[str, Any]) -> Any:
        """Find or make the executable for the structure of the arguments, and run it."""
        bound = signature(self.function).bind(*args, **named)
        bound.apply_defaults()
        arrays = {k: v for k, v in _leaves(bound.arguments) if _is_array(v)}
        constants = {k: v for k, v in _leaves(bound.arguments) if not _is_array(v)}
        key = (
            tuple((k, a.dtype.str, tuple(n == 1 for n in a.shape)) for k, a in arrays.items()),
            tuple((k, _constant_key(k, v)) for k, v in constants.items()),
        )
        shapes = tuple(a.shape for a in arrays.values())
        known = self.executables.get(key)
        if known is None or not _covers(known[0], shapes):
            sizes = shapes if known is None else _widened(known[0], shapes)
            known = self.executables[key] = self._trace(bound, arrays, sizes)
        _, executable, pack = known
        if len(arrays) == len(args) and not named and hasattr(executable, "run_positional"):
            self._last, self._pack = executable.run_positional, pack
            self._one = pack is _single
        return pack(executable(arrays))

    def _trace(
        self, bound: Any, arrays: dict[str, Any], sizes: Sizes
    ) -> tuple[Sizes, Executable, Callable[[list[Any]], Any]]:
        inputs = {
            name: var(name, shape, dtype_of(array.dtype))
            for (name, array), shape in zip(arrays.items(), sizes, strict=True)
        }
        arguments = dict(bound.arguments)
        for name in arguments:
            if name in inputs:
                arguments[name] = inputs[name]
            elif isinstance(arguments[name], tuple):
                arguments[name] = tuple(
                    inputs.get(f"{name}_{k}", v) for k, v in enumerate(arguments[name])
                )
        bound.arguments.update(arguments)
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
        if unused:
            graph = Graph([*entries, *(inputs[n] for n in sorted(unused))])
            inner, count = pack, len(entries)
            pack = lambda out: inner(out[:count])  # noqa: E731
        return sizes, compile(_ordered(graph, list(inputs)), **self.options), pack


def _ordered(graph: Graph, names: list[str]) -> Graph:
    """The graph with its inputs in the order of the arguments."""
    position = {name: k for k, name in enumerate(names)}
    return graph.with_inputs(sorted(graph.inputs, key=lambda n: position[n.name]))


def _leaves(arguments: dict[str, Any]) -> list[tuple[str, Any]]:
    found = []
    for name, value in arguments.items():
        if isinstance(value, tuple):
            found += [(f"{name}_{k}", v) for k, v in enumerate(value)]
        else:
            found.append((name, value))
    return found


def _is_array(value: Any) -> bool:
    return isinstance(value, np.ndarray)


def _constant_key(name: str, value: Any) -> Any:
    try:
        hash(value)
    except TypeError:
        raise GraphError(
            f"argument '{name}' of a jitted function must be an array or hashable, got "
            f"{type(value).__name__}; pass arrays, or a tuple"
        ) from None
    return type(value).__name__, value


def _covers(sizes: Sizes, shapes: tuple[tuple[int, ...], ...]) -> bool:
    return all(
        s is None or s == n
        for known, shape in zip(sizes, shapes, strict=True)
        for s, n in zip(known, shape, strict=True)
    )


def _widened(sizes: Sizes, shapes: tuple[tuple[int, ...], ...]) -> Sizes:
    """The sizes with those that changed made unknown."""
    return tuple(
        tuple(s if s == n else None for s, n in zip(known, shape, strict=True))
        for known, shape in zip(sizes, shapes, strict=True)
    )


def _single(out: list[Any]) -> Any:
    return out[0]


def _unpacked(
    result: Any, function: Callable[..., Any]
) -> tuple[list[Entry], Callable[[list[Any]], Any]]:
    """The entries of a result, and how arrays are put in their place."""
    if isinstance(result, Entry):
        return [result], _single
    if isinstance(result, dict):
        names = list(result)
        return [as_entry(result[n]) for n in names], lambda out: dict(zip(names, out, strict=True))
    if isinstance(result, (tuple, list)):
        return [as_entry(e) for e in result], type(result)
    raise GraphError(
        f"{function.__name__} must return an Entry, or a tuple, list or dict of them, got "
        f"{type(result).__name__}"
    )
