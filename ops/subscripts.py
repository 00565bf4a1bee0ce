"""The equations of einsum: labels for the axes of each operand and of the result."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from passkit.errors import GraphError
from passkit.graph.node import Node

SPARE = "".join(chr(c) for c in range(0x100, 0x180))
"""Labels for the axes that an ellipsis stands for."""


class Subscripts(NamedTuple):
    """One label for each axis; those in ``broadcast`` may have length 1 beside another length."""

    inputs: tuple[str, ...]
    output: str
    broadcast: str


def parsed(node: Node, equation: object, ranks: Sequence[int]) -> Subscripts:
    """An equation for operands of these ranks.

    Without '->' the result has, in alphabetical order, the labels that stand once, behind the
    ellipsis.

    Raises: GraphError saying what is wrong with it.
    """

    def wrong(what: str) -> GraphError:
        return GraphError(f"{node.where} cannot read the equation {equation!r}: {what}")

    if not isinstance(equation, str):
        raise GraphError(
            f"{node.where} needs a text such as 'ij,jk->ik' as equation, got {equation!r}"
        )
    left, arrow, right = equation.replace(" ", "").partition("->")
    terms = left.split(",")
    if len(terms) != len(ranks):
        raise wrong(f"it has {len(terms)} operands, and {len(ranks)} are given")
    most = max([r - _named(t) for t, r in zip(terms, ranks, strict=True) if "..." in t] + [0])
    inputs = []
    for term, rank in zip(terms, ranks, strict=True):
        rest = rank - _named(term)
        if rest < 0 or (rest and "..." not in term):
            raise wrong(f"{term!r} names {_named(term)} axes of an operand that has {rank}")
        inputs.append(term.replace("...", SPARE[most - rest : most], 1))
    if not arrow:
        letters = "".join(t.replace("...", "") for t in terms)
        once = sorted(c for c in set(letters) if letters.count(c) == 1)
        right = ("..." if "..." in left else "") + "".join(once)
    output = right.replace("...", SPARE[:most], 1)
    for text in (*inputs, output):
        bad = next((c for c in text if not c.isalpha()), None)
        if bad is not None:
            raise wrong(f"{bad!r} is no letter")
    for c in output:
        if output.count(c) > 1:
            raise wrong(f"{c!r} stands twice in the result")
        if not any(c in term for term in inputs):
            raise wrong(f"{c!r} of the result is in no operand")
    if most and "..." not in right:
        raise wrong("the result lacks the ellipsis of the operands")
    return Subscripts(tuple(inputs), output, SPARE[:most])


def _named(term: str) -> int:
    return len(term.replace("...", "", 1))
