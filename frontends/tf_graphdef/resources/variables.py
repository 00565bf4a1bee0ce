"""Importers of variables: handles, reads, assignments, and restoring from a checkpoint."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from attrs import evolve

from passkit.errors import ModelError
from passkit.frontends.tf_graphdef.control_flow.calls import unavailable_results
from passkit.frontends.tf_graphdef.evaluation import NodeContext, UniformResults
from passkit.frontends.tf_graphdef.import_state import context_importer, current_value
from passkit.frontends.tf_graphdef.imported_value import ImportCall, ImportedValue, value_of
from passkit.frontends.tf_graphdef.non_arrays import (
    AnyValue,
    CheckpointTensor,
    ModelVariable,
    NonArray,
    StringConstant,
    UnsupportedResult,
    VariableHandle,
)
from passkit.frontends.tf_graphdef.proto import NodeDef, short
from passkit.frontends.tf_graphdef.registry import import_node
from passkit.frontends.tf_graphdef.tensor import parse_shape
from passkit.graph.infer import show_shape
from passkit.ops.helpers import make
from passkit.values.dtype import dtype_of

VARIABLE_OPS = ("VarHandleOp", "VariableV2", "Variable")


@context_importer(*VARIABLE_OPS)
def _variable(ctx: NodeContext, inputs: Sequence[AnyValue]) -> Sequence[AnyValue]:
    """Import a variable as a handle; nodes with the same shared name refer to the same variable.

    The variable is added to the import state, ``ctx.shared.variables``, when it is first met. The
    handle of VariableV2 and Variable is a reference, which other nodes read as an array. ``inputs``
    is not read.

    Raises:
        ModelError: If dtype or shape is missing or invalid.
    """
    declared = declared_variable(ctx.call)
    variable = ctx.shared.variables.setdefault(declared.name, declared)
    by_reference = ctx.call.node.op != "VarHandleOp"
    return (VariableHandle(ctx.call.name, variable=variable, by_reference=by_reference),)


def declared_variable(call: ImportCall) -> ModelVariable:
    """Return a new description of the variable that a node declares.

    The variable has no shape if a dimension or the rank is unknown.

    Args:
        call: Node with the attributes ``shape``, ``dtype`` and, optionally, ``shared_name``.

    Returns:
        A new `ModelVariable` named by ``shared_name``, or else by the node.

    Raises:
        ModelError: If dtype or shape is missing or invalid.
    """
    name = call.attr("shared_name", "s", b"").decode("utf-8", "replace") or call.node.name
    shape = parse_shape(call.attr("shape", "shape"), call.where)
    return ModelVariable(name, call.dtype("dtype"), _known(shape))


def _known(shape: tuple[int | None, ...] | None) -> tuple[int, ...] | None:
    """Return a shape unchanged if all its dimensions are known, else None."""
    if shape is None or None in shape:
        return None
    return tuple(n for n in shape if n is not None)


def variable_of(ctx: NodeContext, value: AnyValue) -> ModelVariable:
    """Return the variable that a handle refers to; ``ctx`` names the node in errors.

    Raises:
        ModelError: If ``value`` is not a handle.
    """
    if not isinstance(value, VariableHandle):
        kind = value.description if isinstance(value, NonArray) else "an array"
        raise ModelError(
            f"{ctx.where} needs the handle of a variable, got {short(value.name)}, {kind}"
        )
    return value.variable


@context_importer("ReadVariableOp")
def _read(ctx: NodeContext, inputs: Sequence[AnyValue]) -> Sequence[AnyValue]:
    """Import ReadVariableOp: the value that the variable has at this point of the program.

    The input is the handle; if it is unsupported or dead, so is the result. ``ctx`` is the node,
    and ``inputs`` are its inputs.

    Raises:
        ModelError: If there is not one input, it is no handle, or the variable has no value.
    """
    ctx.check_count(inputs, 1)
    return unavailable_results(ctx, inputs) or (
        current_value(ctx.shared, variable_of(ctx, inputs[0])),
    )


@context_importer("ResourceGather", "ResourceGatherNd")
def _gather(ctx: NodeContext, inputs: Sequence[AnyValue]) -> Sequence[AnyValue]:
    """Import ResourceGather and ResourceGatherNd as a gather from the variable's current value.

    The inputs are the handle and the indices; if one is unsupported or dead, so is the result.
    ResourceGather gathers rows, after as many leading axes as the attribute ``batch_dims``. ``ctx``
    is the node.

    Raises:
        ModelError: If there are not two inputs, the first is no handle or the second no array, or
            the variable has no value, or an attribute is of another kind.
        ShapeError: If the shapes do not fit.
        DTypeError: If the indices are not integers.
    """
    ctx.check_count(inputs, 2)
    if (unavailable := unavailable_results(ctx, inputs)) is not None:
        return unavailable
    values = [current_value(ctx.shared, variable_of(ctx, inputs[0])), ctx.value(inputs[1])]
    op = "GatherNd"
    if ctx.call.node.op == "ResourceGather":
        batch_dims = ctx.call.attr("batch_dims", "i", 0)
        values.append(
            ImportedValue(f"{ctx.call.name}/axis", dtype_of("int64"), array=np.array(batch_dims))
        )
        op = "GatherV2"
    node = NodeDef(op=op, name=ctx.call.node.name, attr=ctx.call.node.attr)
    return import_node(evolve(ctx.call, node=node), values)


@context_importer("VariableShape")
def _shape(ctx: NodeContext, inputs: Sequence[AnyValue]) -> Sequence[AnyValue]:
    """Import VariableShape: the shape of a variable's current value, as a known vector.

    Its dtype is the attribute ``out_type``, by default int32. The input is the handle; if it is
    unsupported or dead, so is the result. ``ctx`` is the node, and ``inputs`` are its inputs.

    Raises:
        ModelError: If there is not one input, it is no handle, the variable has no value or an
            unknown rank, or ``out_type`` is neither int32 nor int64, or an attribute is of another
            kind, or the memory budget of the import is exceeded.
    """
    ctx.check_count(inputs, 1)
    if (unavailable := unavailable_results(ctx, inputs)) is not None:
        return unavailable
    value = current_value(ctx.shared, variable_of(ctx, inputs[0]))
    return (ctx.call.known_value(ctx.call.index_type("out_type"), list(ctx.call.shape(value))),)


@context_importer("VarIsInitializedOp", "IsVariableInitialized")
def _is_initialized(ctx: NodeContext, inputs: Sequence[AnyValue]) -> Sequence[AnyValue]:
    """Import VarIsInitializedOp and IsVariableInitialized, a bool scalar.

    In a session it is an input of the run while the variable was not assigned; else, also if the
    input is no handle, it is the constant True. ``ctx`` is the node, and ``inputs`` are its inputs.
    """
    if ctx.shared.is_set is not None and inputs and isinstance(inputs[0], VariableHandle):
        variable = inputs[0].variable
        if variable.value is None:
            return (ctx.shared.is_set(variable),)
    return (ImportedValue(ctx.call.name, dtype_of("bool"), array=np.array(True)),)


@context_importer("AssignVariableOp", "Assign")
def _assign(ctx: NodeContext, inputs: Sequence[AnyValue]) -> Sequence[AnyValue]:
    """Import AssignVariableOp and Assign: the second input becomes the variable's value.

    A tensor of a checkpoint becomes the variable's key instead. Return the first input.

    If an input is unsupported or dead, so is the result, and nothing is assigned. ``ctx`` is the
    node.

    Raises:
        ModelError: If there are not two inputs, the first is no handle or the second no array, the
            value has another dtype or shape than the variable, or a model that is trained assigns a
            tensor of a checkpoint.
    """
    ctx.check_count(inputs, 2)
    if isinstance(inputs[0], VariableHandle) and isinstance(inputs[1], CheckpointTensor):
        if ctx.shared.run_number is not None:
            raise ModelError(
                f"{ctx.where} restores the variable {short(inputs[0].variable.name)} from a "
                f"checkpoint, which a run does not support; call session.restore(path)"
            )
        inputs[0].variable.key = inputs[1].key
        return (inputs[0],)
    if (unavailable := unavailable_results(ctx, inputs)) is not None:
        return unavailable
    variable = variable_of(ctx, inputs[0])
    variable.value = check_assignable(ctx, variable, ctx.value(inputs[1]))
    return (inputs[0],)


@context_importer("AssignAddVariableOp", "AssignSubVariableOp", "AssignAdd", "AssignSub")
def _assign_by(ctx: NodeContext, inputs: Sequence[AnyValue]) -> Sequence[AnyValue]:
    """Import AssignAddVariableOp, AssignAdd and their Sub variants: change a variable by an array.

    Return the first input, the handle.

    If an input is unsupported or dead, so is the result, and nothing is assigned. ``ctx`` is the
    node.

    Raises:
        ModelError: If there are not two inputs, the first is not a handle or the second no array,
            the variable has no value, or the new value has another shape.
        ShapeError: If the shapes do not broadcast.
        DTypeError: If the dtypes differ, or are bool.
    """
    ctx.check_count(inputs, 2)
    if (unavailable := unavailable_results(ctx, inputs)) is not None:
        return unavailable
    variable = variable_of(ctx, inputs[0])
    op = "add" if "Add" in ctx.call.node.op else "sub"
    old_value, change = current_value(ctx.shared, variable), ctx.value(inputs[1])
    new_value = value_of(make(op, old_value.entry, change.entry))
    variable.value = check_assignable(ctx, variable, new_value)
    return (inputs[0],)


def check_assignable(
    ctx: NodeContext, variable: ModelVariable, value: ImportedValue
) -> ImportedValue:
    """Return ``value`` unchanged if it can be assigned to the variable.

    An unknown rank or symbolic dimension fits any. ``ctx`` names the node in errors.

    Raises:
        ModelError: If its dtype or shape differs from the variable's.
    """
    declared_shape, value_shape = variable.shape, value.shape
    fits = declared_shape is None or value_shape is None or len(declared_shape) == len(value_shape)
    for n, m in zip(declared_shape or (), value_shape or (), strict=False):
        fits = fits and (n == m or not isinstance(m, int))
    if value.dtype != variable.dtype or not fits:
        raise ModelError(
            f"{ctx.where} needs {variable.dtype}{show_shape(declared_shape)} for the variable "
            f"{short(variable.name)}, got {value.dtype}{show_shape(value.shape)}"
        )
    return value


@context_importer("RestoreV2")
def _restore(ctx: NodeContext, inputs: Sequence[AnyValue]) -> Sequence[AnyValue]:
    """Import RestoreV2: a `CheckpointTensor` for each name in the second input.

    Their values are read when a variable to which they are assigned is read. If the names are not a
    constant, the results are unsupported. ``ctx`` is the node.

    Raises:
        ModelError: If there are not three inputs.
    """
    ctx.check_count(inputs, 3)
    names = inputs[1]
    if not isinstance(names, StringConstant):
        return UniformResults(UnsupportedResult(ctx.call.name))
    return [
        CheckpointTensor(ctx.call.name, key=text.decode("utf-8", "replace")) for text in names.texts
    ]
