"""Bugs planted into the lowering and printing of kernels, which random graphs must reveal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from attrs import evolve

from passkit.ast import Binary, Load, size_of
from passkit.passes import codegen
from passkit.schedule.tile_loops import TileLoops
from passkit.transforms import compose
from passkit.transforms.vector_values import VectorValues
from passkit.values.dtype import int64

Method = Callable[..., object]
PLANTS: dict[str, tuple[type, str, Method]] = {}
"""By name of the bug: a class, its method, and the wrong version, which is given the right one."""


def _plant(owner: type, name: str) -> Callable[[Method], Method]:
    def register(wrong: Method) -> Method:
        PLANTS[wrong.__name__.strip("_")] = owner, name, wrong
        return wrong

    return register


@_plant(TileLoops, "vector_loop")
def _one_lane_less(right: Method, self: object) -> object:
    loop = right(self)
    return evolve(loop, stop=Binary("-", loop.stop, size_of(1), int64))  # type: ignore


@_plant(TileLoops, "serial_loops")
def _serial_from_one(right: Method, self: object) -> object:
    return [evolve(x, start=size_of(1)) for x in right(self)]  # type: ignore


@_plant(VectorValues, "_load")
def _next_element(right: Method, self: object, x: Load) -> object:
    one = size_of(1)
    later = Binary("+", x.index, one, int64) if x.buffer.startswith("x") else x.index
    return right(self, evolve(x, index=later))


@contextmanager
def planted_bug(name: str) -> Iterator[None]:
    """Generate code with one of the bugs; every kernel is lowered and printed anew."""
    owner, method, wrong = PLANTS[name]
    right = getattr(owner, method)
    _forget_kernels()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(owner, method, lambda *args: wrong(right, *args))
        yield
    _forget_kernels()


def _forget_kernels() -> None:
    """Drop all lowered kernels, and all parts of packed ones."""
    codegen._kernel.cache_clear()
    compose._lowered.cache_clear()
