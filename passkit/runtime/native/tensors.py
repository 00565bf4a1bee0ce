"""Calls of native programs with the tensors of a library that has DLPack's exchange API."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from passkit.runtime.device.dlpack import BFLOAT, TYPE_CODES
from passkit.runtime.native.launcher import launcher
from passkit.values.dtype import DType

API_ATTRIBUTE = "__dlpack_c_exchange_api__"
"""The attribute of a type of tensors that has the functions in C, as dlpack.h 1.3 says."""


class TensorLibrary(NamedTuple):
    """A library of tensors, such as PyTorch.

    Attributes:
        api: the capsule with its exchange API.
        types: the types of tensors that the API reads; others go to the fallback.
        checks: functions of a tensor of floats or complex numbers; where one is not False, the
            memory of the tensor has other numbers than the tensor.
    """

    api: Any
    types: tuple[type, ...]
    checks: tuple[Callable[[Any], bool], ...]


class ComputedResult(NamedTuple):
    """A result that is an output of the program.

    Attributes:
        output: the number of the output.
        axes: the axis of the output that each axis of the tensor is; none if they are in order.
    """

    output: int
    axes: tuple[int, ...] = ()


class MappedResult(NamedTuple):
    """A result that a function makes of the tensor of an output, such as a view of it."""

    output: int
    function: Callable[[Any], Any]


class ArgumentResult(NamedTuple):
    """A result that is an argument: its position."""

    position: int


class ValueResult(NamedTuple):
    """A result that is the same object in all calls."""

    value: Any


TensorResult = ComputedResult | MappedResult | ArgumentResult | ValueResult


def tensor_program(
    program: Any,
    library: TensorLibrary,
    inputs: Sequence[tuple[int, DType]],
    outputs: Sequence[DType],
    results: Sequence[TensorResult],
    fallback: Callable[[list[Any]], list[Any]],
) -> Callable[[list[Any]], list[Any]]:
    """Return a function of a list of arguments, tensors and others, which it empties.

    The tensors of results lie in the memory of the launcher's pool. Calls raise what calls of the
    program and functions of results raise.

    Args:
        program: a program of the launcher.
        library: the library of the tensors.
        inputs: for each input of the program, its position among the arguments and its dtype.
        outputs: the dtype of each output of the program.
        results: what the calls return; each output is among them.
        fallback: called with the arguments where one is no plain tensor of its input's dtype and
            rank on the CPU.

    Raises: ValueError for an exchange API of another major version, for a number of inputs or
    outputs that is not the program's, and for results without one of the outputs; TypeError where
    ``program`` is none of the launcher.
    """
    rows: list[tuple[Any, ...]] = []
    for x in results:
        match x:
            case ComputedResult(output, axes):
                rows.append(("computed", output, axes))
            case MappedResult(output, function):
                rows.append(("mapped", output, function))
            case ArgumentResult(position):
                rows.append(("argument", position))
            case ValueResult(value):
                rows.append(("value", value))
    return launcher().TensorProgram(  # type: ignore[no-any-return]
        program,
        library.api,
        library.types,
        tuple((k, *element_type(d), _checks(library, d)) for k, d in inputs),
        tuple(map(element_type, outputs)),
        tuple(rows),
        fallback,
    )


def element_type(dtype: DType) -> tuple[int, int]:
    """Return the DLPack type of an element: its code and its number of bits."""
    code = BFLOAT if dtype.name == "bfloat16" else TYPE_CODES[dtype.kind]
    return code, 8 * dtype.nbytes


def _checks(library: TensorLibrary, dtype: DType) -> tuple[Callable[[Any], bool], ...]:
    """Return the checks that tensors of a dtype need: none for integers and bools."""
    return () if dtype.kind in "iub" else library.checks
