"""Loops: gone round when the model is loaded, if it is known how often, else when it runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from passkit.errors import ModelError
from passkit.frontends.tf_graphdef.control_flow.branches import known_truth
from passkit.frontends.tf_graphdef.opaque import Anything, Missing, Opaque
from passkit.frontends.tf_graphdef.proto import short
from passkit.frontends.tf_graphdef.running_loops import Loop, run_later
from passkit.frontends.tf_graphdef.scope import (
    MOST_UNROLLED,
    Every,
    Site,
    restore_values,
    structure,
    variable_values,
)


@structure("While", "StatelessWhile")
def _while(site: Site, inputs: Sequence[Anything]) -> Sequence[Anything]:
    condition, body = site.call.attr("cond", "func"), site.call.attr("body", "func")

    def goes_on(values: Sequence[Anything], k: int) -> Anything:
        return _one(site, condition, values, f"{site.call.name}/{k}/cond")

    def next_round(values: Sequence[Anything], k: int) -> Sequence[Anything]:
        return _called(site, body, values, f"{site.call.name}/{k}")

    return around(site, Loop(goes_on, next_round, _kept(site, body.name)), inputs)


def _kept(site: Site, name: str) -> frozenset[int]:
    """The arguments that a function returns unchanged, at their own positions."""
    body = site.program.library.body(name)
    found = set()
    for k, (number, _) in enumerate(body.results):
        seen = set()
        while body.nodes[number].op == "Identity" and body.inputs[number] and number not in seen:
            seen.add(number)
            number = body.inputs[number][0][0]
        if number == k < body.num_arguments:
            found.add(k)
    return frozenset(found)


def _called(site: Site, function: Any, values: Sequence[Anything], prefix: str) -> list[Anything]:
    return site.function(function.name, function.attr, values, prefix, named=False)


def _one(site: Site, function: Any, values: Sequence[Anything], prefix: str) -> Anything:
    found = _called(site, function, values, prefix)
    if len(found) != 1:
        raise ModelError(
            f"{site.where} needs one result of its condition {short(function.name)}, got "
            f"{len(found)}"
        )
    return found[0]


def around(site: Site, loop: Loop, inputs: Sequence[Anything]) -> Sequence[Anything]:
    """The values after a loop's last round.

    It is unrolled while its condition is known, and it has neither too many rounds nor too many
    nodes; else it goes round when the graph runs.
    """
    before, begun = variable_values(site.program), site.program.work.left
    values: Sequence[Anything] = list(inputs)
    for k in range(site.program.work.rounds + 1):
        condition = loop.goes_on(values, k)
        if isinstance(condition, Opaque):
            if isinstance(condition, Missing):
                loop.next_round(values, k)  # what else is not supported is found there
                return Every(Missing(site.call.name))
            raise ModelError(
                f"{site.where} needs an array as its condition, and {short(condition.name)} is "
                f"{condition.what}"
            )
        truth = known_truth(site, condition)
        if truth is False:
            return values
        made = begun - site.program.work.left
        if truth is None or k == site.program.work.rounds or made > MOST_UNROLLED:
            break
        found = loop.next_round(values, k)
        if len(found) != len(values):
            raise ModelError(
                f"{site.where} has {len(values)} values, and its body gives {len(found)}"
            )
        values = found
    restore_values(before)
    return run_later(site, loop, inputs)
