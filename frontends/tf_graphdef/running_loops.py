"""Loops that go round when the graph runs: their condition and body as graphs of their own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from attrs import frozen

from passkit.errors import ModelError
from passkit.frontends.tf_graphdef.opaque import Anything
from passkit.frontends.tf_graphdef.scope import Site

Round: TypeAlias = Callable[[Sequence[Anything], int], Sequence[Anything]]


@frozen(eq=False)
class Loop:
    """A loop as two functions of its values and the number of a round."""

    goes_on: Callable[[Sequence[Anything], int], Anything]
    next_round: Round


def run_later(site: Site, loop: Loop, inputs: Sequence[Anything]) -> Sequence[Anything]:
    """The values after a loop that goes round in each run of the graph."""
    raise ModelError(f"{site.where} goes round as often as only a call knows")
