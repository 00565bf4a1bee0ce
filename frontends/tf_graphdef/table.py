"""The table: what each TensorFlow operator is in passkit; its rows stand in `rows/`.

A row is a function of the call and its input values; how many inputs it takes is how many it
names. What is known when the model is loaded, sizes of unknown dimensions included, is computed
by `shape_arithmetic` instead.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from attrs import frozen

from passkit import ops
from passkit.errors import ModelError
from passkit.frontends.tf_graphdef.known import settled
from passkit.frontends.tf_graphdef.shape_arithmetic import fold
from passkit.frontends.tf_graphdef.value import Call, Value, value_of
from passkit.graph.narrow import widened
from passkit.graph.node import Entry
from passkit.graph.rounding import Rounding, is_narrow_entry, worst_rounding
from passkit.values.dtype import float32, is_narrow

Result: TypeAlias = Any
"""A Value, the Entry that an operator of passkit returned, or a tuple of them."""


@frozen
class Row:
    """How one TensorFlow operator is built, from ``low`` to ``high`` inputs; None is any number."""

    build: Callable[..., Result]
    low: int
    high: int | None


TABLE: dict[str, Row] = {}
NODE_NBYTES = 600
"""About what one more node takes, for operators that become as many as a model says."""


def build(call: Call, inputs: Sequence[Value]) -> tuple[Value, ...]:
    """The results of one node. Raises: ModelError when it has another number of inputs."""
    row = TABLE[call.node.op]
    if len(inputs) < row.low or (row.high is not None and len(inputs) > row.high):
        wanted = str(row.low) if row.high == row.low else f"at least {row.low}"
        raise ModelError(f"{call.where} needs {wanted} input(s), got {len(inputs)}")
    folded = fold(call, inputs)
    if folded is not None:
        return folded
    return tuple(settled(call, inputs, _rounded_once(call, row, inputs)))


NARROW = frozenset({"ArgMax", "ArgMin", "FloorDiv"})
"""Operators that are built on 16-bit inputs, as TensorFlow computes them: FloorDiv rounds before
its last step, and ArgMax starts from the smallest finite number of its type."""


def _rounded_once(call: Call, row: Row, inputs: Sequence[Value]) -> tuple[Value, ...]:
    """The results of a row, whose floats of 16 bits are computed in float32 and rounded once.

    A row that rounds once at most is built once; others are built again on widened inputs.
    """
    results = _built(call, row, inputs)
    given = {v.made: Rounding.NEVER for v in inputs if v.made is not None}
    if call.node.op in NARROW or not any(map(is_narrow_entry, given)):
        return results
    if worst_rounding([v.made for v in results], given) <= Rounding.ONCE:
        return results
    wide = [
        Value(v.name, float32, made=widened(v.entry)) if is_narrow(v.dtype) else v for v in inputs
    ]
    return tuple(
        value_of(ops.cast(new.entry, dtype=old.dtype.name, name=call.name))
        if is_narrow(old.dtype) and new.dtype is not old.dtype
        else new
        for old, new in zip(results, _built(call, row, wide), strict=True)
    )


def _built(call: Call, row: Row, inputs: Sequence[Value]) -> tuple[Value, ...]:
    """Call a row of the table and return its results as values."""
    with np.errstate(over="ignore"):  # of constants that are too large for 16 bits
        made = row.build(call, *inputs)
    found = made if isinstance(made, tuple) else (made,)
    return tuple(m if isinstance(m, Value) else value_of(m) for m in found)


def row(*names: str) -> Callable[[Callable[..., Result]], Callable[..., Result]]:
    """Enter a function into the table, for one or more TensorFlow operators."""

    def enter(function: Callable[..., Result]) -> Callable[..., Result]:
        code = function.__code__
        low = code.co_argcount - 1
        many = bool(code.co_flags & 0x04)  # has *inputs
        for name in names:
            TABLE[name] = Row(function, low + many, None if many else low)
        return function

    return enter


def same_inputs(count: int, names: Mapping[str, str]) -> None:
    """Enter TensorFlow operators of ``count`` inputs that passkit has under another name."""
    for theirs, ours in names.items():

        def make(call: Call, *values: Value, op: str = ours) -> Entry:
            made: Entry = getattr(ops, op)(*(v.entry for v in values), name=call.name)
            return made

        TABLE[theirs] = Row(make, count, count)
