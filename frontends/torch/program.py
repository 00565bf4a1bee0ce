"""Compiled graphs as functions of PyTorch's tensors, which share memory with passkit's arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch

from passkit.frontends.torch.dtypes import array_of, tensor_of
from passkit.frontends.torch.importer import (
    ImportedGraph,
    InputTensor,
    OutputLayout,
    input_name,
    size_input_name,
)
from passkit.program.executable import Executable
from passkit.values.size import Size, evaluate

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
            isinstance(x.value, Size) or any(isinstance(n, Size) for n in _copied_strides(x))
            for x in imported.outputs
        )
        self._makers = [_maker(x) for x in imported.outputs]

    def __call__(self, args: list[Any]) -> list[Any]:
        """Return the results for a list of arguments; the list is empty afterwards."""
        given = list(args)
        args.clear()
        sizes = self._values_of_symbols(given) if self._needs_sizes else {}
        arrays = self.feeds_of(given, sizes)
        results = [] if self.executable is None else self.executable(arrays)
        return [make(results, given, sizes) for make in self._makers]

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


def _copied_strides(layout: OutputLayout) -> Sequence[Any]:
    """Return the strides that a result is copied to; none where it is not copied."""
    return () if layout.is_dense else layout.strides


def _maker(layout: OutputLayout) -> ResultMaker:
    """Return the function that makes a result of a layout."""
    value, position = layout.value, layout.position
    if position < 0:
        if isinstance(value, InputTensor):
            return lambda results, args, sizes: args[value.position]
        if isinstance(value, Size):
            return lambda results, args, sizes: int(evaluate(value, sizes))
        return lambda results, args, sizes: value
    if not layout.is_dense:
        return lambda results, args, sizes: _with_strides(
            tensor_of(results[position]), [int(evaluate(n, sizes)) for n in layout.strides]
        )
    if layout.order == tuple(range(len(layout.order))):
        return lambda results, args, sizes: tensor_of(results[position])
    back = [layout.order.index(k) for k in range(len(layout.order))]
    return lambda results, args, sizes: tensor_of(results[position]).permute(back)


def _with_strides(tensor: torch.Tensor, strides: Sequence[int]) -> torch.Tensor:
    """Return a copy of a tensor with these strides, which may be 0."""
    copy = torch.empty_strided(tensor.shape, strides, dtype=tensor.dtype)
    if 0 not in strides:
        return copy.copy_(tensor)
    part = tuple(slice(0, 1) if n == 0 else slice(None) for n in strides)
    copy[part].copy_(tensor[part])
    return copy
