"""Checkpoints that TensorFlow wrote, for the variables of a model that is trained."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from os import PathLike, fspath
from pathlib import Path
from typing import Any

from passkit.errors import ModelError, nearest
from passkit.frontends.tf_graphdef.body import Body
from passkit.frontends.tf_graphdef.library import Library
from passkit.frontends.tf_graphdef.model import Model
from passkit.frontends.tf_graphdef.opaque import Variable
from passkit.frontends.tf_graphdef.proto import budget_for, short
from passkit.frontends.tf_graphdef.resources.variables import VARIABLES, declared
from passkit.frontends.tf_graphdef.restoring import Restorer
from passkit.frontends.tf_graphdef.saved_model import Weights
from passkit.frontends.tf_graphdef.training.variables import States
from passkit.frontends.tf_graphdef.value import Array, Call
from passkit.graph.infer import show_shape
from passkit.graph.node import Entry

_MOST_SHOWN = 8


def restored(
    model: Model,
    body: Body,
    prefix: str | PathLike[str],
    variables: Iterable[str] | Mapping[str, str] | None,
    max_nbytes: int | None,
) -> list[tuple[Entry, Array]]:
    """Each variable as state of a graph, and its value.

    Raises: ModelError naming all that do not fit, and files that are missing or damaged.
    """
    chosen = _chosen(model, _declared(model, body), variables)
    path = Path(fspath(prefix).removesuffix(".index"))
    weights = _opened(path, max_nbytes)
    states = States(model, Restorer(model, body, Library((), model.where, model.budget)))
    found, wrong = [], []
    for name, variable in chosen:
        key = weights.find(Variable(name, variable.dtype, variable.shape))
        if key is None:
            known = nearest(name[:200], weights.names())
            wrong.append(f"{short(name)} is not there ({known})")
            continue
        entry, array = states.value(variable).entry, weights.array(key)
        wanted = entry.shape
        if array.dtype != variable.dtype.numpy or array.shape != wanted:
            wrong.append(
                f"{short(name)} is {array.dtype}{show_shape(array.shape)}, and the graph's "
                f"variable is {variable.dtype}{show_shape(wanted)}"
            )
        found.append((entry, array))
    if wrong:
        more = f"; and {len(wrong) - _MOST_SHOWN} more" if len(wrong) > _MOST_SHOWN else ""
        raise ModelError(
            f"the checkpoint {short(str(path))} does not fit {len(wrong)} of the {len(chosen)} "
            f"variables to restore: {'; '.join(wrong[:_MOST_SHOWN])}{more}; restore(prefix, "
            f"variables=[...]) takes some, a dict says which name in the checkpoint is whose"
        )
    return found


def _opened(path: Path, max_nbytes: int | None) -> Weights:
    """The checkpoint of a path. Raises: ModelError for a folder that cannot be looked into."""
    try:
        size = sum(p.stat().st_size for p in path.parent.iterdir() if _is_of(p.name, path.name))
    except OSError as error:
        raise ModelError(
            f"{short(str(path.parent))} cannot be read: {error.strerror}; restore needs the path "
            f"that Saver.save returned"
        ) from None
    return Weights(path, budget_for(size, max_nbytes))


def _is_of(name: str, prefix: str) -> bool:
    """Whether a file is one of a checkpoint's."""
    return name == f"{prefix}.index" or name.startswith(f"{prefix}.data-")


def _declared(model: Model, body: Body) -> dict[str, Variable]:
    """The variables of the model's own graph, by name."""
    found: dict[str, Variable] = {}
    for node in body.nodes:
        if node.op in VARIABLES:
            variable = declared(Call(node, node.name, model.budget))
            found.setdefault(variable.name, variable)
    return found


def _chosen(
    model: Model,
    there: Mapping[str, Variable],
    variables: Iterable[str] | Mapping[str, str] | None,
) -> list[tuple[str, Variable]]:
    """Names in the checkpoint, and the variables that they are of.

    Raises: ModelError for a variable that the graph does not have, and where there is none.
    """
    if variables is None:
        names: list[tuple[str, Any]] = [(n, n) for n in there]
    elif isinstance(variables, Mapping):
        names = list(variables.items())
    else:
        names = [(n, n) for n in ([variables] if isinstance(variables, str) else variables)]
    for _, name in names:
        if name not in there:
            shown = nearest(str(name)[:200], [n[:200] for n in there])
            raise ModelError(f"{model.where} has no variable {short(str(name))}; {shown}")
    if not names:
        raise ModelError(
            f"{model.where} has {len(there)} variables, and none is to be restored; restore needs "
            f"one at least"
        )
    return [(str(key), there[name]) for key, name in names]
