"""Compiled graphs as functions of PyTorch's tensors, which share memory with passkit's arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch

from passkit.frontends.torch.dtypes import array_of, owning_tensor, tensor_of
from passkit.frontends.torch.importer import (
    ImportedGraph,
    InputTensor,
    OutputLayout,
    input_name,
    size_input_name,
)
from passkit.program.executable import Executable
from passkit.values.size import Extent, Size, evaluate

_NO_BYTE = np.zeros((), bool)
"""The element of inputs of which only the length counts."""


class Program:
    """A compiled graph as a function of a list of tensors and numbers, which it empties.

    Args:
        imported: the graph.
        options: options of `passkit.compile`.

    Raises: when created, what `passkit.compile` raises; when called, what an `Executable` raises.
    """

    def __init__(self, imported: ImportedGraph, options: Mapping[str, Any]) -> None:
        self.imported = imported
        self.executable: Executable | None = None
        self._feeds: tuple[int | str, ...] = ()
        if imported.graph is not None:
            self.executable = Executable(imported.graph, options, reads_plans=True)
            sources: dict[str, int | str] = {input_name(k): k for k in imported.feeds}
            sources.update({size_input_name(name): name for name in imported.sized_by})
            self._feeds = tuple(sources[x.name] for x in self.executable.inputs)
        self._needs_sizes = bool(imported.sized_by) or any(
            isinstance(x.value, Size) or any(isinstance(n, Size) for n in _evaluated_extents(x))
            for x in imported.outputs
        )
        self._makers = [_maker(x) for x in imported.outputs]
        outputs = enumerate(imported.outputs)
        self._repeats = [(k, x.repeats) for k, x in outputs if x.repeats >= 0]

    def __call__(self, args: list[Any]) -> list[Any]:
        """Return the results for a list of arguments; the list is empty afterwards."""
        given = list(args)
        args.clear()
        sizes = self._values_of_symbols(given) if self._needs_sizes else {}
        arrays = self.feeds_of(given, sizes)
        results = [] if self.executable is None else self.executable(arrays)
        tensors = [make(results, given, sizes) for make in self._makers]
        for position, first in self._repeats:
            tensors[position] = tensors[first]
        return tensors

    def feeds_of(
        self, args: Sequence[Any], sizes: Mapping[str, int] | None = None
    ) -> list[np.ndarray[Any, Any]]:
        """Return the arrays that the executable is called with, for the arguments of a call.

        ``sizes`` are the values of the symbols of the call, if they are known already.
        """
        if sizes is None:
            sizes = self._values_of_symbols(args) if self._needs_sizes else {}
        return [
            array_of(args[k]) if isinstance(k, int) else np.broadcast_to(_NO_BYTE, sizes[k])
            for k in self._feeds
        ]

    def _values_of_symbols(self, args: Sequence[Any]) -> dict[str, int]:
        """Return the values of the symbols of a call, by name."""
        values = {str(n): int(args[k]) for k, n in self.imported.sizes}
        for k, shape in zip(self.imported.feeds, self.imported.shapes, strict=True):
            for extent, n in zip(shape, args[k].shape, strict=True):
                if isinstance(extent, Size):
                    values.setdefault(str(extent), n)
        return values


ResultMaker = Callable[[Sequence[Any], Sequence[Any], Mapping[str, int]], Any]
"""``(results, arguments, sizes)`` to one result of a program."""


def _evaluated_extents(layout: OutputLayout) -> Sequence[Any]:
    """Return the extents that the maker of a result needs; none where the result is the array."""
    if layout.is_dense and layout.order == tuple(range(len(layout.order))):
        return ()
    return (*layout.shape, *layout.strides, layout.offset)


def _maker(layout: OutputLayout) -> ResultMaker:
    """Return the function that makes a result of a layout."""
    value, position = layout.value, layout.position
    if layout.is_view:
        return _view_maker(layout)
    if position < 0:
        if isinstance(value, InputTensor):
            return lambda results, args, sizes: args[value.position]
        if isinstance(value, Size):
            return lambda results, args, sizes: int(evaluate(value, sizes))
        return lambda results, args, sizes: value
    if not layout.is_gapless:
        strides = _evaluator(layout.strides)
        return lambda results, args, sizes: _with_strides(
            tensor_of(results[position]), strides(sizes)
        )
    if layout.is_dense and layout.order == tuple(range(len(layout.order))):
        return lambda results, args, sizes: tensor_of(results[position])
    return _owning_maker(layout)


def _owning_maker(layout: OutputLayout) -> ResultMaker:
    """Return the function that makes a result that has all memory of an array, by strides."""
    shape, strides = _evaluator(layout.shape), _evaluator(layout.strides)

    def owning(results: Sequence[Any], args: Sequence[Any], sizes: Mapping[str, int]) -> Any:
        """Return the tensor."""
        packed = tensor_of(results[layout.position])
        return owning_tensor(packed, packed.dtype, shape(sizes), strides(sizes))

    return owning


def _view_maker(layout: OutputLayout) -> ResultMaker:
    """Return the function that makes a result in the memory of an input or computed array."""
    source, position = layout.value, layout.position
    shape, strides = _evaluator(layout.shape), _evaluator(layout.strides)
    offset = _evaluator([layout.offset])
    dtype = layout.dtype
    assert dtype is not None

    def view(results: Sequence[Any], args: Sequence[Any], sizes: Mapping[str, int]) -> Any:
        """Return the tensor; an input may begin anywhere in its storage."""
        is_input = isinstance(source, InputTensor)
        base = args[source.position] if is_input else tensor_of(results[position])
        begin = base.storage_offset() * base.itemsize // dtype.itemsize + offset(sizes)[0]
        if base.dtype is dtype:
            return base.as_strided(shape(sizes), strides(sizes), begin)
        return owning_tensor(base, dtype, shape(sizes), strides(sizes), begin)

    return view


def _evaluator(extents: Sequence[Extent]) -> Callable[[Mapping[str, int]], tuple[int, ...]]:
    """Return the function of the values of symbols that gives the values of extents."""
    if not any(isinstance(n, Size) for n in extents):
        numbers = tuple(map(int, extents))
        return lambda sizes: numbers
    return lambda sizes: tuple(int(evaluate(n, sizes)) for n in extents)


def _with_strides(tensor: torch.Tensor, strides: Sequence[int]) -> torch.Tensor:
    """Return a copy of a tensor with these strides, which may be 0."""
    copy = torch.empty_strided(tensor.shape, strides, dtype=tensor.dtype)
    if 0 not in strides:
        return copy.copy_(tensor)
    part = tuple(slice(0, 1) if n == 0 else slice(None) for n in strides)
    copy[part].copy_(tensor[part])
    return copy
