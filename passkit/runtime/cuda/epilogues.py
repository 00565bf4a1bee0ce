"""Epilogues: what a kernel behind a product does, done by the library that multiplies.

Only where results are the same: to products of float32 or float64, which are in that type before
they are stored, a vector is added as a kernel would. A relu of the library says nothing of NaN, its
gelu is an approximation, and products of 16 bits would be rounded once less: those stay kernels.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING

from attrs import evolve

from passkit.runtime.cuda.library import on_device
from passkit.runtime.cuda.shared import MissingError
from passkit.runtime.program import Launch, Library, Product, Program, Ref

if TYPE_CHECKING:
    from passkit.runtime.cuda.run import Bound

EXACT = ("float32", "float64")


def join_biases(bound: Bound) -> int:
    """Let products add what the kernels behind them do; how many do so."""
    found = 0
    for k, (product, kernel, bias) in _pairs(bound.program):
        if bound.actions[k] is None or bound.actions[k + 1] is None or k in bound.hosted:
            continue
        if not isinstance(product.contract, Product) or not bound.number(product.contract.k):
            continue  # a sum of nothing
        step = evolve(product, refs=(*product.reads, kernel.writes[0]))
        try:
            made = on_device(step, bound, bias)
        except MissingError:
            continue
        bound.actions[k : k + 2] = [None, made]
        found += 1
    return found


def _pairs(program: Program) -> Iterator[tuple[int, tuple[Library, Launch, Ref]]]:
    """Products with the kernels behind them that add a vector to their rows, and do no more."""
    for k, (one, other) in enumerate(pairwise(program.steps)):
        if not isinstance(one, Library) or not isinstance(one.contract, Product):
            continue
        if not isinstance(other, Launch) or other.kernel.ops != ("add",):
            continue
        (result,) = one.writes
        rest = [r for r in other.reads if r.place != result.place]
        if len(other.reads) != 2 or len(rest) != 1 or len(other.writes) != 1:
            continue
        (bias,), (target,) = rest, other.writes
        vector = bias.shape == (one.contract.n,) and target.shape == result.shape
        apart = target.place not in {r.place for r in (*one.reads, bias)}
        if vector and apart and result.dtype.name in EXACT and not _is_read(program, k, result):
            yield k, (one, other, bias)


def _is_read(program: Program, k: int, product: Ref) -> bool:
    """Whether anything but the next step reads what step ``k`` stores."""
    if product.kind != "arena":
        return True
    for step in program.steps[k + 2 :]:
        if any(r.place == product.place for r in step.reads):
            return True
        if any(r.place == product.place for r in step.writes):
            return False
    return False
