"""Branches: the one that is taken where that is known, else both and a choice of each result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from passkit.errors import ModelError
from passkit.frontends.tf_graphdef.opaque import (
    Anything,
    Dead,
    Handle,
    Items,
    Missing,
    Opaque,
    Variable,
)
from passkit.frontends.tf_graphdef.proto import short
from passkit.frontends.tf_graphdef.scope import (
    Every,
    Site,
    original,
    restore_values,
    structure,
    variable_values,
)
from passkit.frontends.tf_graphdef.value import Value, value_of
from passkit.graph.infer import show_shape
from passkit.graph.node import Entry
from passkit.ops.helpers import make


@structure("If", "StatelessIf")
def _if(site: Site, inputs: Sequence[Anything]) -> Sequence[Anything]:
    """The first of two branches where the condition holds."""
    site.needs(inputs, 1, None)
    branches = [site.call.attr(f"{which}_branch", "func") for which in ("then", "else")]
    condition = inputs[0]
    if isinstance(condition, Opaque):
        return _unknown(site, condition, branches, inputs[1:])
    truth = known_truth(site, condition)
    if truth is not None:
        return _taken(site, branches[0 if truth else 1], inputs[1:])
    chosen = truth_of(condition)
    return _either(site, branches, [chosen], inputs[1:])


@structure("Case", "StatelessCase")
def _case(site: Site, inputs: Sequence[Anything]) -> Sequence[Anything]:
    """The branch of a number; the last one for a number out of range."""
    site.needs(inputs, 1, None)
    branches = list(site.call.attr("branches", "list").func)
    if not branches:
        raise ModelError(f"{site.where} needs at least one branch, and has none")
    index = inputs[0]
    if isinstance(index, Opaque):
        return _unknown(site, index, branches, inputs[1:])
    if index.known is not None and index.known.dtype != object:
        at = site.call.integer(index, "branch index")
        return _taken(site, branches[at if 0 <= at < len(branches) else -1], inputs[1:])
    site.program.budget.take(1000 * len(branches), site.where)
    chosen = [make("equal", index.entry, _like(index.entry, k)) for k in range(len(branches) - 1)]
    return _either(site, branches, chosen, inputs[1:])


def _like(entry: Entry, number: int) -> Any:
    assert entry.dtype is not None
    return entry.dtype.numpy.type(number)


def known_truth(site: Site, condition: Value) -> bool | None:
    """What a condition is, where that is known when the model is loaded.

    Raises: ModelError for what is no single value.
    """
    shape = condition.shape
    if shape is not None and shape != () and condition.dtype.kind == "b":
        raise ModelError(
            f"{site.where} needs one value as its condition, got {condition.dtype}"
            f"{show_shape(shape)} from {short(condition.name)}"
        )
    if condition.known is None or condition.known.dtype == object:
        return None
    known = condition.known
    return bool(known.size) if known.ndim else bool(known)


def truth_of(condition: Value) -> Entry:
    """A condition as a boolean; a number holds where it is not zero."""
    entry = condition.entry
    if condition.dtype.kind == "b":
        return entry
    made: Entry = make("not_equal", entry, _like(entry, 0))
    return made


def _taken(site: Site, branch: Any, inputs: Sequence[Anything]) -> Sequence[Anything]:
    return site.function(branch.name, branch.attr, inputs, site.call.name)


def _unknown(
    site: Site, condition: Opaque, branches: Sequence[Any], inputs: Sequence[Anything]
) -> Sequence[Anything]:
    """No result; what else is not supported in the branches is found all the same."""
    if isinstance(condition, Missing):
        for branch in branches:
            _taken(site, branch, inputs)
        return Every(Missing(site.call.name))
    if isinstance(condition, Dead):
        return Every(Dead(site.call.name))
    raise ModelError(
        f"{site.where} needs an array as its condition, and {short(condition.name)} is "
        f"{condition.what}"
    )


def _either(
    site: Site, branches: Sequence[Any], chosen: Sequence[Entry], inputs: Sequence[Anything]
) -> Sequence[Anything]:
    """Each result of the branches, chosen when the graph runs: all but the last by a condition."""
    before = variable_values(site.program)
    found, after = [], []
    for k, branch in enumerate(branches):
        restore_values(before)
        prefix = f"{site.call.name}/{k}"
        found.append(site.function(branch.name, branch.attr, inputs, prefix, named=False))
        after.append(variable_values(site.program))
    results, values = found[-1], after[-1]
    for condition, branch_results, branch_values in zip(
        reversed(chosen), reversed(found[:-1]), reversed(after[:-1]), strict=True
    ):
        if len(branch_results) != len(results):
            raise ModelError(
                f"{site.where} has branches with {len(branch_results)} and {len(results)} results"
            )
        results = [
            select(site, condition, a, b) for a, b in zip(branch_results, results, strict=True)
        ]
        values = _joined(site, condition, branch_values, values)
    restore_values(values)
    return results


def _joined(
    site: Site,
    condition: Entry,
    a: Mapping[Variable, Value | None],
    b: Mapping[Variable, Value | None],
) -> dict[Variable, Value | None]:
    """Variables after two branches: those that one of them changed are chosen as results are."""
    joined: dict[Variable, Value | None] = {}
    for variable in {**a, **b}:
        first, second = a.get(variable), b.get(variable)
        if first is second:
            joined[variable] = first
        else:
            one, other = (x or original(site.program, variable) for x in (first, second))
            chosen = select(site, condition, one, other)
            joined[variable] = chosen if isinstance(chosen, Value) else None
    return joined


def select(site: Site, condition: Entry, a: Anything, b: Anything) -> Anything:
    """One of two results, chosen when the graph runs. Raises: ModelError when they do not fit."""
    if isinstance(a, Missing) or isinstance(b, Missing):
        return Missing(site.call.name)
    if isinstance(a, Items) and isinstance(b, Items) and len(a.items) == len(b.items):
        pairs = zip(a.items, b.items, strict=True)
        if all((x is None) == (y is None) for x, y in pairs):
            items = [
                None if x is None or y is None else select(site, condition, x, y)
                for x, y in zip(a.items, b.items, strict=True)
            ]
            return Items(
                a.name, tuple(i for i in items if not isinstance(i, Opaque)), a.dtype, a.shape
            )
    if isinstance(a, Handle) and isinstance(b, Handle) and a.variable is b.variable:
        return a
    if isinstance(a, Opaque) or isinstance(b, Opaque):
        kinds = " and ".join(x.what if isinstance(x, Opaque) else "an array" for x in (a, b))
        raise ModelError(
            f"{site.where} chooses when the graph runs, and its branches give {kinds}; give load "
            f"what decides as a constant"
        )
    if a is b:
        return a
    x, y = a.entry, b.entry
    if x.dtype != y.dtype or (x.shape is not None and y.shape is not None and x.shape != y.shape):
        raise ModelError(
            f"{site.where} chooses when the graph runs, and its branches give "
            f"{x.dtype}{show_shape(x.shape)} and {y.dtype}{show_shape(y.shape)}; only results of "
            f"one shape can be chosen from"
        )
    made: Entry = make("where", condition, x, y)
    return value_of(made)
