"""The table of importers: for each operator of PyTorch the function that builds it in passkit."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from attrs import frozen

import passkit.ops as ops
from passkit.frontends.torch.dtypes import passkit_dtype
from passkit.frontends.torch.errors import unsupported
from passkit.frontends.torch.symbols import extent_of
from passkit.graph.node import Entry, known_shape
from passkit.graph.op import get_op
from passkit.values.dtype import DType, dtype_of
from passkit.values.size import Extent, Shape, Size

Importer = Callable[..., Any]
"""``(call, *args, **kwargs) -> Entry or a sequence of entries``. Tensors are entries, symbolic
sizes are extents; other arguments are as in the graph."""

aten = torch.ops.aten
CONSTANT: Any = get_op("constant")
BOOL = dtype_of("bool")
INT64 = dtype_of("int64")
IMPORTERS: dict[Any, Importer] = {}
"""The importer of each operator overload, or by its name where PyTorch loads it on demand."""


@frozen(eq=False)
class AtenCall:
    """A call of an operator in a graph of PyTorch.

    Attributes:
        function: the operator overload.
        args: its positional arguments, with fake tensors and symbolic integers.
        kwargs: its keyword arguments, likewise.
        result: the fake tensor of its result, or a sequence of them.
        used: the positions of results that the program reads; None if it may read all.
    """

    function: Any
    args: Sequence[Any]
    kwargs: Mapping[str, Any]
    result: Any
    used: frozenset[int] | None = None

    def reads_only(self, positions: Sequence[int]) -> bool:
        """Return whether the program reads no results but those at these positions."""
        return self.used is not None and self.used <= set(positions)

    @property
    def results(self) -> list[torch.Tensor]:
        """Return the fake tensors of all results."""
        return [self.result] if isinstance(self.result, torch.Tensor) else list(self.result)

    @property
    def first(self) -> torch.Tensor:
        """Return the fake tensor of the first result."""
        return self.result if isinstance(self.result, torch.Tensor) else self.result[0]

    @property
    def shape(self) -> Shape:
        """Return the shape of the first result."""
        return tuple(map(extent_of, self.first.shape))

    @property
    def dtype(self) -> DType:
        """Return the dtype of the first result."""
        return passkit_dtype(self.first.dtype)


def importer_of(function: Any) -> Importer | None:
    """Return the importer of an operator overload; None if it has none."""
    importer = IMPORTERS.get(function)
    if importer is None and isinstance(function, torch._ops.OpOverload):
        return IMPORTERS.get(function.name())
    return importer


def imports(*overloads: Any) -> Callable[[Importer], Importer]:
    """Return a decorator that registers a function as the importer of overloads, or of names."""

    def register(importer: Importer) -> Importer:
        for overload in overloads:
            IMPORTERS[overload] = importer
        return importer

    return register


def accumulated(dtype: DType) -> DType:
    """Return the dtype that sums of elements of a dtype are computed in: at least float32."""
    return dtype_of("float32") if dtype.name in ("float16", "bfloat16") else dtype


def constant(value: Any, dtype: DType, name: str = "") -> Entry:
    """Return a number, or an array of numbers, as a constant of a dtype, under a name."""
    entry: Entry = CONSTANT(np.asarray(value).astype(dtype.numpy), name=name)
    return entry


def dtype_name(x: Entry) -> str:
    """Return the name of the dtype of an entry."""
    assert x.dtype is not None  # the inputs have dtypes, so that all entries do
    return x.dtype.name


def cast(x: Entry, dtype: DType) -> Entry:
    """Return an entry converted to a dtype, itself if it has that one.

    Conversion to bool tests for 0, as in PyTorch. Of complex numbers a real dtype keeps the real
    part; real numbers become complex ones with the imaginary part 0.
    """
    if x.dtype is dtype:
        return x
    is_complex = x.dtype is not None and x.dtype.kind == "c"
    if dtype.kind == "c":
        part = dtype_of("float32" if dtype.name == "complex64" else "float64")
        real = cast(x, part)
        return ops.complex(real, cast(ops.imag(x), part) if is_complex else ops.zeros_like(real))
    if is_complex and dtype.name != "bool":
        return cast(ops.real(x), dtype)
    return ops.not_equal(x, 0) if dtype.name == "bool" else ops.cast(x, dtype)


def axis_of(axis: int, x: Entry) -> int:
    """Return an axis of ``x`` from 0 on; a scalar counts as having one."""
    rank = max(1, len(known_shape(x)))
    return axis + rank if axis < 0 else axis


def axes_of(axes: Any, x: Entry) -> tuple[int, ...]:
    """Return axes of ``x`` from 0 on; None and an empty list are all axes."""
    rank = len(known_shape(x))
    if axes is None or (isinstance(axes, (list, tuple)) and not axes):
        return tuple(range(rank))
    if isinstance(axes, int):
        axes = [axes]
    return tuple(axis_of(k, x) for k in axes) if rank else ()


def plain_extents(shape: Sequence[Extent]) -> tuple[int, ...]:
    """Return a shape whose extents are all known.

    Raises: UnsupportedNodeError if one is symbolic.
    """
    if any(isinstance(n, Size) for n in shape):
        unsupported(f"the shape {tuple(shape)} has symbolic sizes")
    return tuple(int(n) for n in shape)
