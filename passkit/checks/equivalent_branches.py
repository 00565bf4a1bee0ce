"""Spans that are alike: where many small kernels are packed into one, two of a kind tell all.

Whatever two of them do to each other in memory, any other two of their kind do as well. So races
are looked for among a few, however many there are.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from itertools import groupby

from passkit.ast.stage import Buffer, Part

Fact = tuple[int, str, Hashable]
"""A part, a buffer that it touches, and all there is to say of that but these two."""
Spans = list[range]
"""Spans by the numbers of their parts."""


def equivalent_branches(
    parts: Sequence[Part], scratch: Mapping[str, Buffer], facts: Iterable[Fact]
) -> list[Spans]:
    """The spans of packed parts by kind: what their parts do is the same, in memory like theirs.

    All parts are one span where some belong to every tile, or where one that writes a buffer of its
    own has a neighbour that touches it too.
    """
    whole = [[range(len(parts))]]
    if any(p.span is None for p in parts):
        return whole
    runs = [[k for k, _ in run] for _, run in groupby(enumerate(parts), lambda x: x[1].span)]
    spans = [range(run[0], run[-1] + 1) for run in runs]
    if len({parts[s[0]].span for s in spans}) < len(spans):
        return whole
    of_part = [k for k, span in enumerate(spans) for _ in span]
    found: list[list[Hashable]] = [[len(s)] for s in spans]
    owner: dict[str, int] = {}
    number: list[dict[str, int]] = [{} for _ in spans]
    for part, buffer, fact in facts:
        k = of_part[part]
        memory: Hashable = None
        held = scratch.get(buffer)
        if held is not None and held.offset is not None:
            memory = held.offset, held.extent, held.dtype, held.of_row
        elif buffer:
            if owner.setdefault(buffer, k) != k:
                return whole
            of_row = held is not None and held.of_row
            memory = number[k].setdefault(buffer, len(number[k])), held is None, of_row
        found[k].append((part - spans[k][0], memory, fact))
    kinds: dict[Hashable, Spans] = {}
    for span, said in zip(spans, found, strict=True):
        kinds.setdefault(tuple(said), []).append(span)
    return list(kinds.values())


def two_of_each_kind(kinds: Iterable[Spans]) -> frozenset[int]:
    """The parts of the first two spans of each kind."""
    return frozenset(part for spans in kinds for span in spans[:2] for part in span)
