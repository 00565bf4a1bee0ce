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


def read_variables(
    model: Model,
    body: GraphBody,
    prefix: str | PathLike[str],
    variables: Iterable[str] | Mapping[str, str] | None,
    max_nbytes: int | None,
) -> list[tuple[Entry, NDArray[Any]]]:
    """Read the values of variables from a checkpoint.

    Args:
        model: The model whose variables are restored.
        body: The nodes of its graph.
        prefix: Path of the checkpoint, as Saver.save returned it.
        variables: Names of the variables to read, or a map from names in the checkpoint to these;
            None for all.
        max_nbytes: Bound of the memory that reading takes, in bytes; None derives it from the
            size of the files.

    Returns:
        A pair for each variable: its state entry, and the array read.

    Raises:
        ModelError: If a variable does not exist or none is selected, if the checkpoint lacks values
            or has them in another shape or dtype (at most eight are named), or if files are missing
            or damaged.
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
            mismatches.append(f"{short(name)} is missing ({suggestion})")
            continue
        entry, array = states.value(variable).entry, weights.array(key)
        shape = entry.shape
        if array.dtype != variable.dtype.numpy or array.shape != shape:
            mismatches.append(
                f"{short(name)} needs {variable.dtype}{show_shape(shape)}, got "
                f"{array.dtype}{show_shape(array.shape)}"
            )
        values.append((entry, array))
    if mismatches:
        more = (
            f"; and {len(mismatches) - _MOST_SHOWN} more" if len(mismatches) > _MOST_SHOWN else ""
        )
        raise ModelError(
            f"the checkpoint {short(str(path))} does not fit {len(mismatches)} of the "
            f"{len(selected)} variables to restore: {'; '.join(mismatches[:_MOST_SHOWN])}{more}; "
            f"restore(prefix, variables=[...]) restores a part of the variables, and a dict maps "
            f"names in the checkpoint to names of variables"
        )
    return values


def _open_checkpoint(path: Path, max_nbytes: int | None) -> CheckpointWeights:
    """Open the checkpoint with this path prefix.

    Its memory budget is ``max_nbytes``, by default derived from the size of its files.

    The index is read on first use.

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
    """Return whether a file called ``name`` is part of the checkpoint called ``prefix``.

    Both are without folders.
    """
    return name == f"{prefix}.index" or name.startswith(f"{prefix}.data-")


def _declared_variables(model: Model, body: GraphBody) -> dict[str, ModelVariable]:
    """Return the variables that nodes of the model's graph declare, by name, without functions'.

    ``body`` has the nodes; of several with one name, the first counts.

    Raises:
        ModelError: If a declaration is malformed, or of a dtype that passkit does not have.
    """
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
    """Return pairs of a variable's name in the checkpoint and the variable.

    Args:
        model: The model, for errors.
        declared: Its variables by name.
        variables: Names of variables, or one name, or a map from names in the checkpoint to names
            of variables; None for all.

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
        if not isinstance(name, str) or name not in declared:
            shown = nearest(str(name)[:200], [n[:200] for n in declared])
            raise ModelError(f"{model.where} has no variable {short(str(name))}; {shown}")
    if not names:
        raise ModelError(
            f"restore needs at least one variable of {model.where}, got none; it has "
            f"{len(declared)} variables"
        )
    return [(str(key), declared[name]) for key, name in names]
