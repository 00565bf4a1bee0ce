"""Compiled graphs as functions of PyTorch's tensors, which share memory with passkit's arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
import torch

from passkit.frontends.torch import devices
from passkit.frontends.torch.dtypes import array_of, owning_tensor, tensor_of
from passkit.frontends.torch.importer import (
    Argument,
    ImportedGraph,
    OutputLayout,
    input_name,
    number_input_name,
    size_input_name,
)
from passkit.frontends.torch.symbols import values_of_parts
from passkit.program.executable import Executable
from passkit.runtime.native.tensors import (
    API_ATTRIBUTE,
    ArgumentResult,
    ComputedResult,
    MappedResult,
    TensorLibrary,
    TensorResult,
    ValueResult,
    tensor_program,
)
from passkit.values.size import Extent, Size, evaluate


@cache
def tensor_library() -> TensorLibrary | None:
    """Return how the launcher reads tensors; None for a PyTorch without DLPack's exchange API."""
    api = getattr(torch.Tensor, API_ATTRIBUTE, None)
    if api is None:
        return None
    checks = (torch.Tensor.is_neg, torch.Tensor.is_conj)
    return TensorLibrary(api, (torch.Tensor, torch.nn.Parameter), checks)


class Program:
    """A compiled graph as a function of a list of tensors and numbers, which it empties.

    Args:
        imported: the graph.
        options: options of `passkit.compile`.
        is_on_device: whether tensors are on the device of the target, not on the CPU.

    Raises: when created, what `passkit.compile` raises; when called, what an `Executable` raises.

    Attributes:
        run: the fastest function of the same arguments and results as a call.
    """

    _boxed_call = True  # what AOTAutograd calls functions of a list that they empty

    def __init__(
        self, imported: ImportedGraph, options: Mapping[str, Any], is_on_device: bool = False
    ) -> None:
        self.imported = imported
        self.is_on_device = is_on_device
        self.executable: Executable | None = None
        self._feeds: tuple[int | Size | str, ...] = ()
        if imported.graph is not None:
            self.executable = Executable(imported.graph, options, reads_plans=True)
            sources: dict[str, int | Size | str] = {input_name(k): k for k in imported.feeds}
            sources.update({size_input_name(name): name for name in imported.sized_by})
            sources.update({number_input_name(k): n for k, n in enumerate(imported.numbers)})
            self._feeds = tuple(sources[x.name] for x in self.executable.inputs)
        self._needs_feeds = bool(imported.sized_by or imported.numbers)
        self._needs_sizes = self._needs_feeds or any(
            isinstance(x.value, Size) or any(isinstance(n, Size) for n in _evaluated_extents(x))
            for x in imported.outputs
        )
        self._makers = [_maker(x) for x in imported.outputs]
        outputs = enumerate(imported.outputs)
        self._repeats = [(k, x.repeats) for k, x in outputs if x.repeats >= 0]
        self._tensors: Callable[[list[Any]], list[Any]] = self._tensors_in_arrays
        self.run: Callable[[list[Any]], list[Any]] = self
        self._use_tensors()

    def _use_tensors(self) -> None:
        """Let the launcher read and make tensors, where all inputs of the graph are tensors."""
        library = tensor_library()
        executable = self.executable
        if library is None or executable is None or executable.native_program is None:
            return
        positions = [k for k in self._feeds if isinstance(k, int)]
        if len(positions) != len(self._feeds):
            return
        inputs = [(k, x.dtype) for k, x in zip(positions, executable.inputs, strict=True)]
        outputs = [x.dtype for x in executable.outputs]

        def tensors_function(
            results: Sequence[TensorResult], fallback: Callable[[list[Any]], list[Any]]
        ) -> Callable[[list[Any]], list[Any]]:
            program = executable.native_program
            return tensor_program(program, library, inputs, outputs, results, fallback)

        in_order = [ComputedResult(k) for k in range(len(outputs))]
        self._tensors = tensors_function(in_order, self._tensors_in_arrays)
        layouts = self.imported.outputs
        results = [
            _native_result(x if x.repeats < 0 else layouts[x.repeats], layouts) for x in layouts
        ]
        native = [x for x in results if x is not None]
        computed = {x.output for x in native if isinstance(x, ComputedResult)}
        if len(native) == len(results) and len(computed) == len(outputs):
            self.run = tensors_function(native, self)

    def __call__(self, args: list[Any]) -> list[Any]:
        """Return the results for a list of arguments; the list is empty afterwards."""
        given = list(args)
        sizes = self._values_of_symbols(given) if self._needs_sizes else {}
        tensors = self._tensors(args)
        results = [make(tensors, given, sizes) for make in self._makers]
        for position, first in self._repeats:
            results[position] = results[first]
        return results

    def _tensors_in_arrays(self, args: list[Any]) -> list[torch.Tensor]:
        """Return what the graph computes for a list of arguments, by arrays; empty the list."""
        arrays = self.feeds_of(args)
        args.clear()
        if self.executable is None:
            return []
        if self.is_on_device:
            return list(map(devices.device_tensor_of, self.executable(arrays, out=devices.DEVICE)))
        return list(map(tensor_of, self.executable(arrays)))

    def feeds_of(self, args: Sequence[Any]) -> list[Any]:
        """Return the arrays that the executable is called with, for the arguments of a call."""
        sizes = self._values_of_symbols(args) if self._needs_feeds else {}
        convert = devices.device_array_of if self.is_on_device else array_of
        return [
            convert(args[k]) if isinstance(k, int) else _array_of_size(k, sizes)
            for k in self._feeds
        ]

    def _values_of_symbols(self, args: Sequence[Any]) -> dict[str, int]:
        """Return the values of the symbols of a call, by name."""
        given = [(name, args[k]) for k, name in self.imported.sizes]
        # The length of a ragged axis of a nested tensor has no value; only PyTorch compares it.
        values = {name: int(n) for name, n in given if not isinstance(n, torch.SymInt)}
        for k, shape in zip(self.imported.feeds, self.imported.shapes, strict=True):
            for extent, n in zip(shape, args[k].shape, strict=True):
                if isinstance(extent, Size):
                    values.setdefault(str(extent), n)
        for name in self.imported.signed:
            values.update(values_of_parts(name, values[name]))
        for size in self.imported.computed:
            values[size.name] = size.value(values)
        return values


def _array_of_size(source: Size | str, values: Mapping[str, int]) -> np.ndarray[Any, Any]:
    """Return the array for a number, or for a symbol, whose length it is, without elements."""
    if isinstance(source, str):
        return np.empty((values[source], 0), bool)
    return np.asarray(evaluate(source, values), np.int64)


ResultMaker = Callable[[Sequence[torch.Tensor], Sequence[Any], Mapping[str, int]], Any]
"""``(computed tensors, arguments, sizes)`` to one result of a program."""


def _evaluated_extents(layout: OutputLayout) -> Sequence[Any]:
    """Return the extents that the maker of a result needs; none where the result is the array."""
    if layout.is_dense and layout.order == tuple(range(len(layout.order))):
        return ()
    return (*layout.shape, *layout.strides, layout.offset)


def _native_result(layout: OutputLayout, layouts: Sequence[OutputLayout]) -> TensorResult | None:
    """Return a result that the launcher makes itself; None for one that a maker makes.

    ``layouts`` are those of all results. A view of all of one, in its order, is that one again.
    """
    if layout.is_view:
        whole = [x for x in layouts if x.position == layout.position and not x.is_view]
        is_alias = layout.position >= 0 and any(_is_same(layout, x) for x in whole)
        return MappedResult(layout.position, torch.Tensor.detach) if is_alias else None
    if layout.position >= 0:
        axes = tuple(layout.order.index(k) for k in range(len(layout.order)))
        in_order = axes == tuple(range(len(axes)))
        computed = ComputedResult(layout.position, () if in_order else axes)
        return computed if layout.is_dense else None
    if isinstance(layout.value, Argument):
        return ArgumentResult(layout.value.position)
    return None if isinstance(layout.value, Size) else ValueResult(layout.value)


def _is_same(view: OutputLayout, whole: OutputLayout) -> bool:
    """Return whether a view has the elements of a whole dense array, in the same places."""
    places = [(x.shape, x.strides, x.dtype) for x in (view, whole)]
    return whole.is_dense and view.offset == 0 and places[0] == places[1]


def _maker(layout: OutputLayout) -> ResultMaker:
    """Return the function that makes a result of a layout."""
    value, position = layout.value, layout.position
    if layout.is_view:
        return _view_maker(layout)
    if position < 0:
        if isinstance(value, Argument):
            return lambda tensors, args, sizes: args[value.position]
        if isinstance(value, Size):
            return lambda tensors, args, sizes: int(evaluate(value, sizes))
        return lambda tensors, args, sizes: value
    if not layout.is_gapless:
        strides = _evaluator(layout.strides)
        return lambda tensors, args, sizes: _with_strides(tensors[position], strides(sizes))
    if layout.is_dense and layout.order == tuple(range(len(layout.order))):
        return lambda tensors, args, sizes: tensors[position]
    return _owning_maker(layout)


def _owning_maker(layout: OutputLayout) -> ResultMaker:
    """Return the function that makes a result that has all memory of an array, by strides."""
    shape, strides = _evaluator(layout.shape), _evaluator(layout.strides)

    def owning(
        tensors: Sequence[torch.Tensor], args: Sequence[Any], sizes: Mapping[str, int]
    ) -> Any:
        """Return the tensor."""
        packed = tensors[layout.position]
        return owning_tensor(packed, packed.dtype, shape(sizes), strides(sizes))

    return owning


def _view_maker(layout: OutputLayout) -> ResultMaker:
    """Return the function that makes a result in the memory of an input or computed array."""
    source, position = layout.value, layout.position
    shape, strides = _evaluator(layout.shape), _evaluator(layout.strides)
    offset = _evaluator([layout.offset])
    dtype = layout.dtype
    assert dtype is not None

    def view(tensors: Sequence[torch.Tensor], args: Sequence[Any], sizes: Mapping[str, int]) -> Any:
        """Return the tensor; an input may begin anywhere in its storage."""
        is_input = isinstance(source, Argument)
        base = args[source.position] if is_input else tensors[position]
        begin = base.storage_offset() * base.itemsize // dtype.itemsize + offset(sizes)[0]
        if is_input and base.dtype is dtype:
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
    copy = torch.empty_strided(tensor.shape, strides, dtype=tensor.dtype, device=tensor.device)
    if 0 not in strides:
        return copy.copy_(tensor)
    part = tuple(slice(0, 1) if n == 0 else slice(None) for n in strides)
    copy[part].copy_(tensor[part])
    return copy
