"""Kinds of elementwise operators: by arity, with scalars, with selects."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import passkit as pk
from passkit.errors import DTypeError
from passkit.graph.node import Entry, var
from passkit.graph.op import get_op, op_group
from passkit.values.dtype import DType, bool_
from tests.random_graphs.kinds import is_real, kind
from tests.random_graphs.registry import callable_plainly, standard_ops

if TYPE_CHECKING:
    from tests.random_graphs.growth import Growth


def is_elementwise(name: str) -> bool:
    """Whether an operator takes any entries that broadcast, and nothing else."""
    op = get_op(name)
    return op in op_group("elementwise").members and callable_plainly(op) and name != "where"


@cache
def _elementwise(arity: int) -> tuple[str, ...]:
    names = [n for n in standard_ops() if is_elementwise(n)]
    return tuple(n for n in names if get_op(n).num_inputs == arity)


def accepts(op: pk.Op, dtype: DType) -> bool:
    """Whether an operator takes entries of a dtype."""
    key = op.name, dtype.name
    if key not in _accepted:
        x = var("x", (), dtype)
        try:
            op(*[x] * op.num_inputs)
            _accepted[key] = True
        except DTypeError:
            _accepted[key] = False
    return _accepted[key]


_accepted: dict[tuple[str, str], bool] = {}


def operate(g: Growth, op: pk.Op) -> Entry | None:
    """An elementwise operator on entries of one dtype."""
    x = g.pick(lambda e: e.dtype is not None and accepts(op, e.dtype))
    if x is None:
        return None
    assert x.dtype is not None
    rest = [g.mate(x, x.dtype) for _ in range(op.num_inputs - 1)]
    if any(r is None for r in rest):
        return None
    sides = [x, *rest]
    if g.chance(0.4):
        g.rng.shuffle(sides)
    return op(*sides, **g.control())  # type: ignore[no-any-return]


@kind(5)
def _unary(g: Growth) -> Entry | None:
    return operate(g, g.op(_elementwise(1)))


@kind(7)
def _binary(g: Growth) -> Entry | None:
    return operate(g, g.op(_elementwise(2)))


@kind(4)
def _arithmetic(g: Growth) -> Entry | None:
    return operate(g, get_op(g.rng.choice(("add", "sub", "mul", "maximum"))))


@kind(1.2)
def _ternary(g: Growth) -> Entry | None:
    return operate(g, g.op(_elementwise(3)))


@kind(1.5)
def _where(g: Growth) -> Entry | None:
    x = g.pick()
    if x is None:
        return None
    assert x.dtype is not None
    condition, y = g.mate(x, bool_), g.mate(x, x.dtype)
    if condition is None or y is None:
        return None
    return get_op("where")(condition, x, y, **g.control())  # type: ignore[no-any-return]


@kind(1.5)
def _scalar(g: Growth) -> Entry | None:
    """A Python scalar, which is weak."""
    x = g.pick(lambda e: e.dtype is not bool_)
    if x is None:
        return None
    value = g.rng.choice((2, 3, 1, 0, -1, 0.5, -2.0, 1.0, 10))
    if not is_real(x):
        value = int(value)
    return g.rng.choice(
        (
            lambda: x + value,
            lambda: value - x,
            lambda: x * value,
            lambda: x / (value or 3),
            lambda: x > value,
            lambda: x // value if not is_real(x) else x - value,
            lambda: x % value if not is_real(x) else -x,
            lambda: x**2,
        )
    )()


@kind(1.5)
def _cast(g: Growth) -> Entry | None:
    x = g.pick()
    return None if x is None else get_op("cast")(x, dtype=g.dtype(), **g.control())


@kind(1.2)
def _diamond(g: Growth) -> Entry | None:
    """Two functions of one value, joined again."""
    x = g.pick(is_real)
    if x is None:
        return None
    ops = ("neg", "abs", "square", "relu", "tanh", "sigmoid", "floor", "sin", "identity")
    sides = [get_op(g.rng.choice(ops))(x) for _ in range(2)]
    return get_op(g.rng.choice(("add", "mul", "sub", "minimum")))(*sides)
