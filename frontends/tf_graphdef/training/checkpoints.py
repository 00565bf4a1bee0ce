"""Restoring of TensorFlow's checkpoints into the variables of a model that is trained."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from os import PathLike, fspath
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from passkit.errors import ModelError, nearest
from passkit.frontends.tf_graphdef.function_library import FunctionLibrary
from passkit.frontends.tf_graphdef.graph_body import GraphBody
from passkit.frontends.tf_graphdef.imported_value import ImportCall
from passkit.frontends.tf_graphdef.model import Model
from passkit.frontends.tf_graphdef.non_arrays import ModelVariable
from passkit.frontends.tf_graphdef.proto import budget_for, short
from passkit.frontends.tf_graphdef.resources.variables import VARIABLE_OPS, declared_variable
from passkit.frontends.tf_graphdef.saved_model import CheckpointWeights
from passkit.frontends.tf_graphdef.training.variable_states import VariableStates
from passkit.frontends.tf_graphdef.variable_restorer import VariableRestorer
from passkit.graph.infer import show_shape
from passkit.graph.node import Entry

_MOST_SHOWN = 8


def restored(
    model: Model,
    body: GraphBody,
    prefix: str | PathLike[str],
    variables: Iterable[str] | Mapping[str, str] | None,
    max_nbytes: int | None,
) -> list[tuple[Entry, NDArray[Any]]]:
    """Read the values of variables from a checkpoint.

    Args:
        model: The model.
        body: Its nodes.
        prefix: Path of the checkpoint, as Saver.save returned it.
        variables: Names of the variables to read, or a map from names in the checkpoint to these;
            None for all.
        max_nbytes: Bound of the memory that reading takes.

    Returns:
        Each variable as a state entry, with its value.

    Raises:
        ModelError: If values are missing or do not fit (all are named), or files are damaged.
    """
    selected = _select_variables(model, _declared_variables(model, body), variables)
    path = Path(fspath(prefix).removesuffix(".index"))
    weights = _open_checkpoint(path, max_nbytes)
    states = VariableStates(
        model, VariableRestorer(model, body, FunctionLibrary((), model.where, model.budget))
    )
    values, mismatches = [], []
    for name, variable in selected:
        key = weights.find(ModelVariable(name, variable.dtype, variable.shape))
        if key is None:
            suggestion = nearest(name[:200], weights.names())
            mismatches.append(f"{short(name)} is not there ({suggestion})")
            continue
        entry, array = states.value(variable).entry, weights.array(key)
        shape = entry.shape
        if array.dtype != variable.dtype.numpy or array.shape != shape:
            mismatches.append(
                f"{short(name)} is {array.dtype}{show_shape(array.shape)}, and the graph's "
                f"variable is {variable.dtype}{show_shape(shape)}"
            )
        values.append((entry, array))
    if mismatches:
        more = (
            f"; and {len(mismatches) - _MOST_SHOWN} more" if len(mismatches) > _MOST_SHOWN else ""
        )
        raise ModelError(
            f"the checkpoint {short(str(path))} does not fit {len(mismatches)} of the "
            f"{len(selected)} "
            f"variables to restore: {'; '.join(mismatches[:_MOST_SHOWN])}{more}; restore(prefix, "
            f"variables=[...]) takes some, a dict says which name in the checkpoint is whose"
        )
    return values


def _open_checkpoint(path: Path, max_nbytes: int | None) -> CheckpointWeights:
    """Open the checkpoint of a path.

    Raises:
        ModelError: If its folder cannot be read.
    """
    try:
        size = sum(
            p.stat().st_size for p in path.parent.iterdir() if _belongs_to(p.name, path.name)
        )
    except OSError as error:
        raise ModelError(
            f"{short(str(path.parent))} cannot be read: {error.strerror}; restore needs the path "
            f"that Saver.save returned"
        ) from None
    return CheckpointWeights(path, budget_for(size, max_nbytes))


def _belongs_to(name: str, prefix: str) -> bool:
    """Return whether a file, by its name, is part of the checkpoint with this path prefix."""
    return name == f"{prefix}.index" or name.startswith(f"{prefix}.data-")


def _declared_variables(model: Model, body: GraphBody) -> dict[str, ModelVariable]:
    """Return the variables of the model's own graph by name."""
    variables: dict[str, ModelVariable] = {}
    for node in body.nodes:
        if node.op in VARIABLE_OPS:
            variable = declared_variable(ImportCall(node, node.name, model.budget))
            variables.setdefault(variable.name, variable)
    return variables


def _select_variables(
    model: Model,
    declared: Mapping[str, ModelVariable],
    variables: Iterable[str] | Mapping[str, str] | None,
) -> list[tuple[str, ModelVariable]]:
    """Return pairs of names in the checkpoint and variables of the graph.

    Raises:
        ModelError: If a variable does not exist, or none is selected.
    """
    if variables is None:
        names: list[tuple[str, Any]] = [(n, n) for n in declared]
    elif isinstance(variables, Mapping):
        names = list(variables.items())
    else:
        names = [(n, n) for n in ([variables] if isinstance(variables, str) else variables)]
    for _, name in names:
        if name not in declared:
            shown = nearest(str(name)[:200], [n[:200] for n in declared])
            raise ModelError(f"{model.where} has no variable {short(str(name))}; {shown}")
    if not names:
        raise ModelError(
            f"{model.where} has {len(declared)} variables, and none is to be restored; restore "
            f"needs "
            f"one at least"
        )
    return [(str(key), declared[name]) for key, name in names]
