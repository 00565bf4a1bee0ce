"""Kinds of operators that move elements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from passkit import ops
from passkit.graph.node import Entry, known_shape
from passkit.graph.op import get_op
from passkit.values.size import Size
from tests.random_graphs.kinds import kind

if TYPE_CHECKING:
    from tests.random_graphs.growth import Growth


@kind(2.5)
def _reshape(g: Growth) -> Entry | None:
    """Neighbouring axes joined, or an axis cut in two; or a shape of ones more or less."""
    x = g.pick()
    if x is None:
        return None
    shape = list(known_shape(x))
    for _ in range(g.rng.randint(1, 2)):
        k = g.rng.randrange(len(shape) + 1)
        n = shape[k] if k < len(shape) else 1
        if k + 1 < len(shape) and g.chance(0.5):
            shape[k : k + 2] = [n * shape[k + 1]]
        elif isinstance(n, int) and n > 1:
            factors = [f for f in range(1, n + 1) if n % f == 0]
            f = g.rng.choice(factors)
            shape[k : k + 1] = [f, n // f]
        else:
            shape.insert(k, 1)
    if len(shape) > 5:
        return None
    if g.chance(0.2) and shape and 0 not in shape:
        shape[g.rng.randrange(len(shape))] = -1
    return get_op("reshape")(x, shape=shape, **g.control())  # type: ignore[no-any-return]


@kind(0.8)
def _expand_dims(g: Growth) -> Entry | None:
    x = g.pick(lambda e: len(known_shape(e)) < 4)
    if x is None:
        return None
    rank = len(known_shape(x))
    axis: Any = g.rng.randint(-rank - 1, rank)
    if g.chance(0.2):
        axis = (0, rank + 1)
    return get_op("expand_dims")(x, axis=axis, **g.control())  # type: ignore[no-any-return]


@kind(0.8)
def _squeeze(g: Growth) -> Entry | None:
    x = g.pick(lambda e: 1 in known_shape(e))
    if x is None:
        return None
    ones = [k for k, n in enumerate(known_shape(x)) if n == 1]
    axis = None if g.chance(0.3) else g.rng.choice(ones)
    return get_op("squeeze")(x, axis=axis, **g.control())  # type: ignore[no-any-return]


@kind(1.6)
def _transpose(g: Growth) -> Entry | None:
    rank = 2 if g.chance(0.9) else 0
    x = g.pick(lambda e: len(known_shape(e)) >= rank)
    if x is None:
        return None
    axes = list(range(len(known_shape(x))))
    g.rng.shuffle(axes)
    given = None if g.chance(0.3) else axes
    return get_op("transpose")(x, axes=given, **g.control())  # type: ignore[no-any-return]


@kind(1.0)
def _broadcast_to(g: Growth) -> Entry | None:
    x = g.pick(lambda e: 1 in known_shape(e)) if g.chance(0.6) else g.pick()
    if x is None:
        return None
    other = g.pick()
    assert other is not None
    room = [n for n in known_shape(other) if n != 1] + [2, 3, 17]
    shape = [g.rng.choice(room) if n == 1 and g.chance(0.8) else n for n in known_shape(x)]
    if g.chance(0.4) and len(shape) < 4:
        shape.insert(0, g.rng.choice(room))
    return get_op("broadcast_to")(x, shape=shape, **g.control())  # type: ignore[no-any-return]


@kind(1.4)
def _concat(g: Growth) -> Entry | None:
    x = g.pick(lambda e: len(known_shape(e)) > 0)
    if x is None:
        return None
    assert x.dtype is not None
    shape = known_shape(x)
    axis = g.rng.randrange(len(shape))

    def fits(e: Entry) -> bool:
        other = known_shape(e)
        same = [m == n or k == axis for k, (m, n) in enumerate(zip(other, shape, strict=False))]
        return e.dtype is x.dtype and len(other) == len(shape) and all(same)

    parts = [x]
    for _ in range(g.rng.randint(0 if g.chance(0.1) else 1, 3)):
        part = g.pick(fits) if g.chance(0.7) else None
        if part is None:
            n = g.rng.choice((1, 2, 5, 16, shape[axis]))
            part = g.fresh((*shape[:axis], n, *shape[axis + 1 :]), x.dtype.name, exact_sizes=True)
        parts.append(part)
    g.rng.shuffle(parts)
    given = axis - len(shape) if g.chance(0.4) else axis
    return get_op("concat")(*parts, axis=given, **g.control())  # type: ignore[no-any-return]


@kind(1.6)
def _slice(g: Growth) -> Entry | None:
    x = g.pick(lambda e: len(known_shape(e)) > 0)
    if x is None:
        return None
    begin, size, step = [], [], []
    for n in known_shape(x):
        if not isinstance(n, int) or n == 0 or g.chance(0.4):
            b, k, s = 0, -1 if g.chance(0.5) or isinstance(n, Size) else n, 1
        else:
            k = g.rng.randint(1 if g.chance(0.95) else 0, n)
            s = g.rng.choice((1, 1, 1, 2, 3, -1, -2))
            k = min(k, (n - 1) // abs(s) + 1)
            b = g.rng.randint(0, n - 1 - (k - 1) * abs(s)) if k else 0
            b = b if s > 0 else n - 1 - b
        begin.append(b)
        size.append(k)
        step.append(s)
    given = None if all(s == 1 for s in step) else step
    sliced = get_op("slice")(x, begin=begin, size=size, step=given, **g.control())
    return sliced  # type: ignore[no-any-return]


@kind(1.0)
def _index(g: Growth) -> Entry | None:
    """Python's own indexing, with ends that depend on unknown sizes."""
    x = g.pick(lambda e: len(known_shape(e)) > 0)
    if x is None:
        return None
    menu = (slice(1, None), slice(None, -1), slice(None, None, 2), 0, -1, None, ..., slice(None))
    key = tuple(g.rng.choice(menu) for _ in known_shape(x))
    return None if key.count(...) > 1 else x[key]


@kind(0.5)
def _split(g: Growth) -> Sequence[Entry] | None:
    x = g.pick(lambda e: any(isinstance(n, int) and n > 1 for n in known_shape(e)))
    if x is None:
        return None
    shape = known_shape(x)
    axis = g.rng.choice([k for k, n in enumerate(shape) if isinstance(n, int) and n > 1])
    n = shape[axis]
    assert isinstance(n, int)
    cut = g.rng.randint(1, n - 1)
    return ops.split(x, [cut, n - cut], axis)  # type: ignore[no-any-return]
