"""Registry of op importers: how each stateless TensorFlow operator is built from passkit's.

An importer is a function of the call and its inputs; its parameters define the number of inputs.
The modules of `op_importers` register them with `@op_importer("Name")`. Shapes, including symbolic
ones, are folded by `shape_arithmetic` instead.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from attrs import frozen

from passkit import ops
from passkit.errors import ModelError
from passkit.frontends.tf_graphdef.constant_values import fold_constants
from passkit.frontends.tf_graphdef.imported_value import ImportCall, ImportedValue, value_of
from passkit.frontends.tf_graphdef.shape_arithmetic import fold_shapes
from passkit.graph.narrow import widen
from passkit.graph.node import Entry
from passkit.graph.rounding import Rounding, is_narrow_entry, worst_rounding
from passkit.values.dtype import float32, is_narrow

ImportResult: TypeAlias = Any
"""Result of an importer: an ImportedValue, an Entry, or a tuple of them."""


@frozen
class OpImporter:
    """Importer of one TensorFlow operator."""

    build: Callable[..., ImportResult]
    """Takes the call and its inputs."""
    min_inputs: int
    max_inputs: int | None
    """None for any number."""


OP_IMPORTERS: dict[str, OpImporter] = {}
NODE_NBYTES = 600
"""Approximate memory of one node, for operators that expand to a number given by the model."""


def import_node(call: ImportCall, inputs: Sequence[ImportedValue]) -> tuple[ImportedValue, ...]:
    """Import one node, and compute its results at once where they may decide shapes or branches.

    They are computed if all inputs are small known arrays; see `fold_shapes` and `fold_constants`.

    Args:
        call: The node.
        inputs: Its inputs.

    Returns:
        Its results.

    Raises:
        ModelError: If the number of inputs is wrong, or the importer rejects the node.
        KeyError: If the operator has no importer.
        GraphError: If the operator refuses an attribute, such as the equation of an Einsum.
        ShapeError: If shapes of the inputs do not fit the operator.
        DTypeError: If their dtypes do not.
    """
    importer = OP_IMPORTERS[call.node.op]
    if len(inputs) < importer.min_inputs or (
        importer.max_inputs is not None and len(inputs) > importer.max_inputs
    ):
        expected = (
            str(importer.min_inputs)
            if importer.max_inputs == importer.min_inputs
            else f"at least {importer.min_inputs}"
        )
        raise ModelError(f"{call.where} needs {expected} input(s), got {len(inputs)}")
    folded = fold_shapes(call, inputs)
    if folded is not None:
        return folded
    return tuple(fold_constants(call, inputs, _build_rounded_once(call, importer, inputs)))


NARROW = frozenset({"ArgMax", "ArgMin", "FloorDiv"})
"""Operators that compute in 16 bits, as in TensorFlow.

FloorDiv rounds before its last step, and ArgMax starts from the smallest finite number of its type.
"""


def _build_rounded_once(
    call: ImportCall, importer: OpImporter, inputs: Sequence[ImportedValue]
) -> tuple[ImportedValue, ...]:
    """Call an importer so that 16-bit floats are computed in float32 and rounded once.

    An importer whose results are rounded at most once is called once, as are ArgMax, ArgMin and
    FloorDiv, and all importers without 16-bit inputs. Others are called again on inputs widened to
    float32, and their results are cast back.

    Args:
        call: The node.
        importer: Its importer.
        inputs: Its inputs.

    Returns:
        The node's results, in the dtypes that the importer gives.

    Raises:
        ModelError: If the importer rejects the node.
        GraphError: If the operator refuses an attribute.
        ShapeError: If shapes of the inputs do not fit the operator.
        DTypeError: If their dtypes do not.
    """
    results = _build(call, importer, inputs)
    input_rounding = {v.built_entry: Rounding.NEVER for v in inputs if v.built_entry is not None}
    if call.node.op in NARROW or not any(map(is_narrow_entry, input_rounding)):
        return results
    if worst_rounding([v.built_entry for v in results], input_rounding) <= Rounding.ONCE:
        return results
    widened_inputs = [
        ImportedValue(v.name, float32, built_entry=widen(v.entry)) if is_narrow(v.dtype) else v
        for v in inputs
    ]
    return tuple(
        value_of(ops.cast(new.entry, dtype=old.dtype.name, name=call.name))
        if is_narrow(old.dtype) and new.dtype is not old.dtype
        else new
        for old, new in zip(results, _build(call, importer, widened_inputs), strict=True)
    )


def _build(
    call: ImportCall, importer: OpImporter, inputs: Sequence[ImportedValue]
) -> tuple[ImportedValue, ...]:
    """Call an importer with the node and its inputs; return its results as a tuple of values.

    A single result becomes a tuple of one; entries are wrapped as values, which get the names of
    their nodes. NumPy's warnings of overflow are off. Errors of the importer are passed on:
    ModelError, GraphError, ShapeError and DTypeError. ``call`` is the node.
    """
    with np.errstate(over="ignore"):  # of constants that are too large for 16 bits
        result = importer.build(call, *inputs)
    results = result if isinstance(result, tuple) else (result,)
    return tuple(m if isinstance(m, ImportedValue) else value_of(m) for m in results)


def op_importer(
    *names: str,
) -> Callable[[Callable[..., ImportResult]], Callable[..., ImportResult]]:
    """Return a decorator that registers an importer of TensorFlow operators.

    The importer takes the `ImportCall` and the node's inputs as positional parameters, whose number
    is checked for each node; ``*inputs`` accepts one or more.

    The function itself is returned unchanged; one registered before under a name is replaced.

    Args:
        names: Operator names in TensorFlow.
    """

    def register(function: Callable[..., ImportResult]) -> Callable[..., ImportResult]:
        code = function.__code__
        num_inputs = code.co_argcount - 1
        is_variadic = bool(code.co_flags & 0x04)  # has *inputs
        for name in names:
            OP_IMPORTERS[name] = OpImporter(
                build=function,
                min_inputs=num_inputs + is_variadic,
                max_inputs=None if is_variadic else num_inputs,
            )
        return function

    return register


def register_renamed(count: int, names: Mapping[str, str]) -> None:
    """Register operators of ``count`` inputs that passkit has under another name.

    The importers raise ShapeError and DTypeError as passkit's operators do. They are stored in
    `OP_IMPORTERS`, where they replace importers of the same name.

    Args:
        count: Number of inputs.
        names: passkit's name of each TensorFlow operator.
    """
    for theirs, ours in names.items():

        def make(call: ImportCall, *values: ImportedValue, op: str = ours) -> Entry:
            result: Entry = getattr(ops, op)(*(v.entry for v in values), name=call.name)
            return result

        OP_IMPORTERS[theirs] = OpImporter(build=make, min_inputs=count, max_inputs=count)
