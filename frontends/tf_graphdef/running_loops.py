"""Loops that go round when the graph runs: their condition and body as graphs of their own.

The loop's functions are built once more, on variables that stand for its values. What the body
passes on unchanged is no state: what is known of it stays known inside, and the rest is read. A
list becomes an array, once an item that is put there has told its shape.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

from attrs import define, frozen

from passkit.errors import ModelError
from passkit.frontends.tf_graphdef.opaque import Anything, Items, Missing, Opaque, Stacked, Variable
from passkit.frontends.tf_graphdef.proto import short
from passkit.frontends.tf_graphdef.scope import Every, Site, variable_values
from passkit.frontends.tf_graphdef.stacks import as_stacked, unfilled
from passkit.frontends.tf_graphdef.value import Value, value_of
from passkit.graph.graph import Graph
from passkit.graph.infer import show_shape
from passkit.graph.node import Entry, Node
from passkit.values.lazy import Lazy

if TYPE_CHECKING:
    from passkit.runtime import loop as runtime
else:
    runtime = Lazy("passkit.runtime.loop")

Round: TypeAlias = Callable[[Sequence[Anything], int], Sequence[Anything]]


@frozen(eq=False)
class Loop:
    """A loop as two functions of its values and the number of a round.

    ``kept`` are the positions of values that each round passes on unchanged.
    """

    goes_on: Callable[[Sequence[Anything], int], Anything]
    next_round: Round
    kept: frozenset[int] = frozenset()


@define(eq=False)
class _Place:
    """One value of a loop: outside, and how the graphs see it."""

    outside: Anything
    kept: bool
    inside: Anything
    entry: Entry | None = None
    """What the loop begins with, where it is an array or a list of arrays."""


def run_later(site: Site, loop: Loop, inputs: Sequence[Anything]) -> Sequence[Anything]:
    """The values after a loop that goes round in each run of the graph.

    Raises: ModelError when a value does not keep its type and shape.
    """
    before = variable_values(site.program)
    places = [_place(site, x, k in loop.kept, None) for k, x in enumerate(inputs)]
    missing = _without_missing(site, loop, places)
    if missing is not None:
        return missing
    told = [p.inside.told for p in places if isinstance(p.inside, Stacked) and not p.kept]
    shapes = iter([t[-1] if t else None for t in told])
    places = [
        _place(
            site,
            x,
            k in loop.kept,
            next(shapes) if isinstance(p.inside, Stacked) and not p.kept else None,
        )
        for k, (x, p) in enumerate(zip(inputs, places, strict=True))
    ]
    order = [k for k, p in enumerate(places) if p.entry is not None and not p.kept]
    order += [k for k, p in enumerate(places) if p.entry is not None and p.kept]
    for position, k in enumerate(order):
        _enter(places[k], position)
    count = sum(not places[k].kept for k in order)
    begun = [p.inside for p in places]
    condition = _array(site, loop.goes_on(begun, 0), "its condition")
    found = loop.next_round(begun, 0)
    _check_count(site, inputs, found)
    if not count:
        return list(inputs)  # no round changes anything, so there is none, or no end of them
    heads = [_next(site, k, places[k], found[k]) for k in order[:count]]
    entries = [e for k in order if (e := places[k].entry) is not None]
    graphs = Graph([condition]), Graph(heads)
    _check_closed(site, graphs)
    _check_unchanged(site, before)
    made = runtime.while_loop(*graphs, entries[:count], entries[count:], site.call.name)
    results = list(inputs)
    for k, entry in zip(order[:count], made, strict=True):
        results[k] = _result(places[k], entry)
    return results


def _place(site: Site, value: Anything, kept: bool, shape: object) -> _Place:
    """A value outside and inside; a list that is filled becomes an array of rows."""
    if isinstance(value, Items) and value.dtype is not None:
        value = as_stacked(site, value)
    if isinstance(value, Stacked):
        if value.value is None and isinstance(shape, tuple) and value.dtype is not None:
            value = unfilled(site, value.length, value.dtype, shape)
        entry = None if value.value is None else value.value.entry
        inside = Stacked(value.name, value.value, value.length, value.dtype, value.shape)
        return _Place(value, kept, inside, entry)
    if isinstance(value, Opaque) or (kept and _is_known(value)):
        return _Place(value, kept, value)
    return _Place(value, kept, _variable(value.entry, "trial"), value.entry)


def _is_known(value: Value) -> bool:
    return value.known is not None and value.known.dtype != object


def _variable(entry: Entry, name: str) -> Value:
    params = {"shape": entry.shape, "dtype": entry.dtype}
    return value_of(Node(None, (), params, name).entries[0])


def _enter(place: _Place, position: int) -> None:
    """Let the graphs see a value as the variable of its position."""
    assert place.entry is not None
    seen = _variable(place.entry, f"{runtime.STATE}{position}")
    if isinstance(place.inside, Stacked):
        place.inside.value = seen
    else:
        place.inside = seen


def _without_missing(site: Site, loop: Loop, places: Sequence[_Place]) -> Sequence[Anything] | None:
    """A trial round, in which lists hear the shapes of their items.

    The results, where an operator in the loop is not supported; else None.
    """
    begun = [p.inside for p in places]
    condition = loop.goes_on(begun, 0)
    found = loop.next_round(begun, 0)
    if any(isinstance(x, Missing) for x in (condition, *found)):
        return Every(Missing(site.call.name))
    _check_count(site, places, found)
    return None


def _check_count(site: Site, values: Sequence[object], found: Sequence[Anything]) -> None:
    if len(found) != len(values):
        raise ModelError(f"{site.where} has {len(values)} values, and its body gives {len(found)}")


def _array(site: Site, value: Anything, what: str) -> Entry:
    if isinstance(value, Opaque):
        raise ModelError(f"{site.where} needs an array as {what}, and it is {value.what}")
    return value.entry


def _next(site: Site, k: int, place: _Place, found: Anything) -> Entry:
    """The next state. Raises: ModelError when it is of another type or shape than before."""
    if isinstance(found, Items) and isinstance(place.inside, Stacked):
        found = as_stacked(site, found)
    if isinstance(found, Stacked) and found.value is not None:
        found = found.value
    entry, before = _array(site, found, f"its value {k}"), place.entry
    assert before is not None
    if (entry.shape, entry.dtype) != (before.shape, before.dtype):
        raise ModelError(
            f"{site.where} goes round as often as only a call knows, and its value {k} changes "
            f"from {before.dtype}{show_shape(before.shape)} to "
            f"{entry.dtype}{show_shape(entry.shape)}; such a value must keep its shape"
        )
    return entry


def _result(place: _Place, entry: Entry) -> Anything:
    value, was = value_of(entry), place.outside
    if isinstance(was, Stacked):
        return Stacked(was.name, value, was.length, was.dtype, was.shape)
    if isinstance(was, Items):
        return Stacked(was.name, value, len(was.items), was.dtype, was.shape)
    return value


def _check_unchanged(site: Site, before: Mapping[Variable, Value | None]) -> None:
    for variable, value in variable_values(site.program).items():
        if value is not before.get(variable):
            raise ModelError(
                f"{site.where} goes round as often as only a call knows, and assigns to the "
                f"variable {short(variable.name)}; pass its value around the loop instead"
            )


def _check_closed(site: Site, graphs: Sequence[Graph]) -> None:
    """Make sure that the graphs read nothing but the loop's values."""
    for graph in graphs:
        for node in graph.inputs:
            if not node.name.startswith(runtime.STATE):
                raise ModelError(
                    f"{site.where} goes round as often as only a call knows, and reads "
                    f"{short(node.name)} from outside of it"
                )
