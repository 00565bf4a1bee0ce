"""Variables: their handles, reading and assigning them, and what restores them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from attrs import evolve

from passkit.errors import ModelError
from passkit.frontends.tf_graphdef.control_flow.calls import unreachable
from passkit.frontends.tf_graphdef.opaque import (
    Anything,
    Handle,
    Missing,
    Opaque,
    Saved,
    Strings,
    Variable,
)
from passkit.frontends.tf_graphdef.proto import NodeDef, short
from passkit.frontends.tf_graphdef.scope import Every, Site, read, structure
from passkit.frontends.tf_graphdef.table import build
from passkit.frontends.tf_graphdef.tensor import shape_from
from passkit.frontends.tf_graphdef.value import Call, Value, value_of
from passkit.graph.infer import show_shape
from passkit.ops.helpers import make
from passkit.values.dtype import dtype_of

VARIABLES = ("VarHandleOp", "VariableV2", "Variable")


@structure(*VARIABLES)
def _variable(site: Site, inputs: Sequence[Anything]) -> Sequence[Anything]:
    """The handle of a variable; nodes that share a name share it."""
    made = declared(site.call)
    variable = site.program.variables.setdefault(made.name, made)
    by_reference = site.call.node.op != "VarHandleOp"
    return (Handle(site.call.name, variable=variable, by_reference=by_reference),)


def declared(call: Call) -> Variable:
    """The variable that a node stands for."""
    name = call.attr("shared_name", "s", b"").decode("utf-8", "replace") or call.node.name
    shape = shape_from(call.attr("shape", "shape"), call.where)
    return Variable(name, call.dtype("dtype"), _known(shape))


def _known(shape: tuple[int | None, ...] | None) -> tuple[int, ...] | None:
    """A shape without unknown dimensions, or nothing."""
    if shape is None or None in shape:
        return None
    return tuple(n for n in shape if n is not None)


def variable_of(site: Site, given: Anything) -> Variable:
    """The variable that an input leads to. Raises: ModelError for what is no handle."""
    if not isinstance(given, Handle):
        kind = given.what if isinstance(given, Opaque) else "an array"
        raise ModelError(
            f"{site.where} needs the handle of a variable, and {short(given.name)} is {kind}"
        )
    return given.variable


@structure("ReadVariableOp")
def _read(site: Site, inputs: Sequence[Anything]) -> Sequence[Anything]:
    site.needs(inputs, 1)
    return unreachable(site, inputs) or (read(site.program, variable_of(site, inputs[0])),)


@structure("ResourceGather", "ResourceGatherNd")
def _gather(site: Site, inputs: Sequence[Anything]) -> Sequence[Anything]:
    """Rows of a variable: what gathers from an array, of what it holds.

    Leading axes that it shares with the indices are `GatherV2`'s.
    """
    site.needs(inputs, 2)
    if (found := unreachable(site, inputs)) is not None:
        return found
    values = [read(site.program, variable_of(site, inputs[0])), site.value(inputs[1])]
    op = "GatherNd"
    if site.call.node.op == "ResourceGather":
        shared = site.call.attr("batch_dims", "i", 0)
        values.append(Value(f"{site.call.name}/axis", dtype_of("int64"), known=np.array(shared)))
        op = "GatherV2"
    node = NodeDef(op=op, name=site.call.node.name, attr=site.call.node.attr)
    return build(evolve(site.call, node=node), values)


@structure("VariableShape")
def _shape(site: Site, inputs: Sequence[Anything]) -> Sequence[Anything]:
    site.needs(inputs, 1)
    if (found := unreachable(site, inputs)) is not None:
        return found
    value = read(site.program, variable_of(site, inputs[0]))
    return (site.call.known(site.call.index_type("out_type"), list(site.call.shape(value))),)


@structure("VarIsInitializedOp", "IsVariableInitialized")
def _is_initialized(site: Site, inputs: Sequence[Anything]) -> Sequence[Anything]:
    """A model that is loaded has its variables; in a session each run finds out."""
    if site.program.is_set is not None and inputs and isinstance(inputs[0], Handle):
        variable = inputs[0].variable
        if variable.value is None:
            return (site.program.is_set(variable),)
    return (Value(site.call.name, dtype_of("bool"), known=np.array(True)),)


@structure("AssignVariableOp", "Assign")
def _assign(site: Site, inputs: Sequence[Anything]) -> Sequence[Anything]:
    site.needs(inputs, 2)
    if isinstance(inputs[0], Handle) and isinstance(inputs[1], Saved):
        if site.program.run_number is not None:
            raise ModelError(
                f"{site.where} restores the variable {short(inputs[0].variable.name)} from a "
                f"checkpoint; session.restore of its path does that here"
            )
        inputs[0].variable.key = inputs[1].key
        return (inputs[0],)
    if (found := unreachable(site, inputs)) is not None:
        return found
    variable = variable_of(site, inputs[0])
    variable.value = fitting(site, variable, site.value(inputs[1]))
    return (inputs[0],)


@structure("AssignAddVariableOp", "AssignSubVariableOp", "AssignAdd", "AssignSub")
def _assign_by(site: Site, inputs: Sequence[Anything]) -> Sequence[Anything]:
    site.needs(inputs, 2)
    if (found := unreachable(site, inputs)) is not None:
        return found
    variable = variable_of(site, inputs[0])
    op = "add" if "Add" in site.call.node.op else "sub"
    old, change = read(site.program, variable), site.value(inputs[1])
    new = value_of(make(op, old.entry, change.entry))
    variable.value = fitting(site, variable, new)
    return (inputs[0],)


def fitting(site: Site, variable: Variable, value: Value) -> Value:
    """A value for a variable. Raises: ModelError for one of another type or shape."""
    wanted, found = variable.shape, value.shape
    fits = wanted is None or found is None or len(wanted) == len(found)
    for n, m in zip(wanted or (), found or (), strict=False):
        fits = fits and (n == m or not isinstance(m, int))
    if value.dtype != variable.dtype or not fits:
        raise ModelError(
            f"{site.where} assigns {value.dtype}{show_shape(value.shape)} to the variable "
            f"{short(variable.name)}, which is {variable.dtype}{show_shape(wanted)}"
        )
    return value


@structure("RestoreV2")
def _restore(site: Site, inputs: Sequence[Anything]) -> Sequence[Anything]:
    """Tensors of a checkpoint, by their names; the values come when a variable is read."""
    site.needs(inputs, 3)
    names = inputs[1]
    if not isinstance(names, Strings):
        return Every(Missing(site.call.name))
    return [Saved(site.call.name, key=text.decode("utf-8", "replace")) for text in names.texts]
