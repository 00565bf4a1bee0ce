"""Programs with parameters and buffers as constants: the option ``freezing``.

What is computed from constants alone, such as the filters of convolutions with the scales of batch
norms, is computed once, and filters are kept in the layout of the kernel.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from attrs import evolve, frozen
from torch._guards import TracingContext

from passkit.frontends.torch.dtypes import array_of, passkit_dtype
from passkit.frontends.torch.importer import ImportedGraph, input_name
from passkit.frontends.torch.op_importers.registry import constant
from passkit.frontends.torch.program import Program
from passkit.graph.node import Entry
from passkit.program.executable import Executable
from passkit.values.size import symbols_of


def fixed_arguments() -> tuple[int, ...]:
    """Return the positions of the parameters and buffers of the graph that is being compiled."""
    context = TracingContext.try_get()
    if context is None or context.fw_metadata is None:
        return ()
    return tuple(context.fw_metadata.static_input_indices)


@frozen(eq=False)
class _Frozen:
    """A tensor that is a constant of a program.

    Attributes:
        alias: a tensor of the same memory, so that no other one comes to lie there.
        version: the number of changes in place before it was read.
    """

    alias: torch.Tensor
    version: int

    def is_still(self, tensor: torch.Tensor) -> bool:
        """Return whether a tensor is this one, unchanged."""
        return bool(tensor._version == self.version and tensor.is_set_to(self.alias))


class FrozenProgram:
    """A graph as a function of a list of arguments, which it empties; some of them are constants.

    They are read at the first call, and again at a call with other tensors, or with tensors that
    were changed in place. Changes of memory that PyTorch does not count, by ``tensor.data`` or by
    NumPy arrays that share it, are not seen.

    Args:
        imported: the graph.
        options: options of `passkit.compile`.
        fixed: the positions of arguments that are constants, but for those of symbolic sizes.

    Raises: when called, what creating or calling a `Program` raises.
    """

    def __init__(
        self, imported: ImportedGraph, options: Mapping[str, Any], fixed: Sequence[int]
    ) -> None:
        self._imported = imported
        self._options = options
        shapes = dict(zip(imported.feeds, imported.shapes, strict=True))
        self._fixed = [k for k in fixed if k in shapes and not symbols_of(shapes[k])]
        self._constants: dict[int, _Frozen] = {}
        self._program: Program | None = None

    @property
    def executable(self) -> Executable | None:
        """The executable with the last constants; None before the first call."""
        return None if self._program is None else self._program.executable

    def feeds_of(self, args: Sequence[Any]) -> list[Any]:
        """Return the arrays that the executable is called with, for the arguments of a call."""
        assert self._program is not None
        return self._program.feeds_of(args)

    def run(self, args: list[Any]) -> list[Any]:
        """Return the results for a list of arguments; the list is empty afterwards."""
        if self._program is None or not all(
            x.is_still(args[k]) for k, x in self._constants.items()
        ):
            self._freeze(args)
        assert self._program is not None
        return self._program.run(args)

    def _freeze(self, args: Sequence[Any]) -> None:
        """Create the program with the present values of arguments.

        Tensors of inference mode stay inputs: PyTorch does not count their changes.

        Raises: what creating a `Program` raises.
        """
        imported = self._imported
        assert imported.graph is not None
        tensors = {k: args[k] for k in self._fixed if not args[k].is_inference()}
        self._constants = {k: _Frozen(x.detach(), x._version) for k, x in tensors.items()}
        positions = {input_name(k): k for k in tensors}
        values: dict[Entry, Entry] = {
            x.entries[0]: constant(array_of(tensors[k]), passkit_dtype(tensors[k].dtype), x.name)
            for x in imported.graph.inputs
            if (k := positions.get(x.name)) is not None
        }
        left = [k for k, n in enumerate(imported.feeds) if n not in tensors]
        frozen_graph = evolve(
            imported,
            graph=imported.graph.replace(values),
            feeds=tuple(imported.feeds[k] for k in left),
            shapes=tuple(imported.shapes[k] for k in left),
        )
        self._program = Program(frozen_graph, self._options)
