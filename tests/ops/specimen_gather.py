"""Specimens of operators whose indices are data: gathers, scatters, segment reductions."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.ops.specimens import call, calls

Array = Any
ALL = "biuf"


def indices(*shape: int, low: int = -6, high: int = 6, dtype: str = "int64") -> Any:
    """Return a function that draws indices, some of them out of range."""
    return lambda rng, _: rng.integers(low, high, shape).astype(dtype)


def clipped(i: Array, n: int) -> tuple[Array, Array]:
    """Return the clipped position of each index, and whether the index is in range."""
    front = np.where(i < 0, i.astype(np.int64) + n, i)
    return np.clip(front, 0, n - 1).astype(np.int64), (front >= 0) & (front < n)


def _take(x: Array, i: Array, axis: int | None = None, mode: str = "clip") -> Array:
    n = x.size if axis is None else x.shape[axis]
    at, there = clipped(i, n)
    out = np.take(x, at, axis)
    if mode == "clip":
        return out
    if axis is None:
        return np.where(there, out, x.dtype.type(0))
    after = out.ndim - (axis % x.ndim) - i.ndim
    return np.where(there.reshape(there.shape + (1,) * after), out, x.dtype.type(0))


def _gather(x: Array, i: Array, axis: int = 0, batch_dims: int = 0, mode: str = "clip") -> Array:
    if batch_dims:
        pairs = zip(x, i, strict=True)
        axis = axis % x.ndim
        return np.stack([_gather(a, b, axis - 1, batch_dims - 1, mode) for a, b in pairs])
    return _take(x, i, axis, mode)


def _along(x: Array, i: Array, axis: int = -1, mode: str = "clip") -> Array:
    at, there = clipped(i, x.shape[axis])
    out = np.take_along_axis(x, at, axis)
    return out if mode == "clip" else np.where(there, out, x.dtype.type(0))


def _points(x: Array, i: Array, batch_dims: int = 0, mode: str = "clip") -> Array:
    if batch_dims:
        return np.stack([_points(a, b, batch_dims - 1, mode) for a, b in zip(x, i, strict=True)])
    if not i.shape[-1]:
        return np.broadcast_to(x, (*i.shape[:-1], *x.shape))
    positions = [clipped(i[..., k], x.shape[k]) for k in range(i.shape[-1])]
    out = x[tuple(at for at, _ in positions)]
    if mode == "clip":
        return out
    there = np.all([t for _, t in positions], axis=0)
    wide = there.reshape(there.shape + (1,) * (out.ndim - there.ndim))
    return np.where(wide, out, x.dtype.type(0))


calls(
    "gather",
    _gather,
    [
        call((5,), indices(7)),
        call((5, 3), indices(4, 2, dtype="int32")),
        call((2, 40, 17), indices(3), axis=1),
        call((3, 5), indices(37, dtype="uint8", low=0, high=9), axis=-1, mode="zero"),
        call((3, 5), np.int64(-1), axis=1),
        call((2, 5, 4), indices(2, 3), axis=1, batch_dims=1),
        call((2, 3, 5), indices(2, 3, 4), axis=-1, batch_dims=2, mode="zero"),
        call((5, 3), np.zeros((0,), np.int32)),
        call((5, 0), indices(2)),
    ],
    kinds=ALL,
)
calls(
    "take",
    _take,
    [
        call((5, 3), indices(2, 4)),
        call((5, 3), indices(4), axis=-1),
        call((4,), indices(3, dtype="int8"), mode="zero"),
    ],
    kinds=ALL,
)
calls(
    "take_along_axis",
    _along,
    [
        call((5, 3), indices(5, 3)),
        call((5, 33), indices(7, 33, dtype="int32"), axis=0),
        call((5, 1), indices(5, 4), axis=0, mode="zero"),
        call((4,), indices(40)),
    ],
    kinds=ALL,
)
calls(
    "gather_nd",
    _points,
    [
        call((5, 3), indices(4, 2)),
        call((5, 3, 4), indices(2, 3, 2), mode="zero"),
        call((5, 3, 4), indices(6, 1, dtype="int32")),
        call((2, 5, 3), indices(2, 4, 1), batch_dims=1),
        call((2, 3), np.zeros((4, 0), np.int64)),
    ],
    kinds=ALL,
)


def _reverse(x: Array, lengths: Array, axis: int = 1, batch_axis: int = 0) -> Array:
    out, wide = x.copy(), np.moveaxis(x, (batch_axis, axis), (0, 1))
    view = np.moveaxis(out, (batch_axis, axis), (0, 1))
    for b, n in enumerate(np.minimum(lengths, wide.shape[1])):
        if n > 0:
            view[b, :n] = wide[b, :n][::-1]
    return out


calls(
    "reverse_sequence",
    _reverse,
    [
        call((4, 7), np.array([0, 3, 7, 99])),
        call((7, 3, 2), np.array([2, -4], np.int32), axis=0, batch_axis=2),
    ],
    kinds=ALL,
)
calls(
    "sequence_mask",
    lambda x, maxlen: np.arange(maxlen) < x[..., None],
    [call((4,), maxlen=7), call((2, 3), maxlen=0)],
    kinds="iu",
)
calls("invert_permutation", np.argsort, [call(np.array([2, 0, 3, 1]))], kinds="i")


# Scatters: one update after the other.


def _combine(kind: str, old: Array, new: Array) -> Array:
    """Return an element after an update; sums of 16-bit floats are computed in float64 anyway."""
    return {
        "update": lambda: new,
        "add": lambda: old + new,
        "sub": lambda: old - new,
        "mul": lambda: old * new,
        "min": lambda: np.minimum(old, new),
        "max": lambda: np.maximum(old, new),
    }[kind]()


def _index(kind: str) -> Any:
    def run(
        x: Array, i: Array, u: Array, axis: int = 0, batch_dims: int = 0, mode: str = "zero"
    ) -> Array:
        if batch_dims:
            triples = zip(x, i, u, strict=True)
            return np.stack([run(a, b, c, axis - 1, batch_dims - 1, mode) for a, b, c in triples])
        out = np.moveaxis(x, axis, 0).copy()
        axes = tuple(range(axis, axis + i.ndim))
        rows = np.moveaxis(u, axes, range(i.ndim)).reshape(-1, *out.shape[1:])
        at, there = clipped(i.reshape(-1), x.shape[axis])
        for a, t, row in zip(at, there, rows, strict=True):
            if t or mode == "clip":
                out[a] = _combine(kind, out[a], row)
        return np.moveaxis(out, 0, axis)

    return run


def _nd(kind: str) -> Any:
    def run(x: Array, i: Array, u: Array, batch_dims: int = 0, mode: str = "zero") -> Array:
        if batch_dims:
            triples = zip(x, i, u, strict=True)
            return np.stack([run(a, b, c, batch_dims - 1, mode) for a, b, c in triples])
        out, k = x.copy(), i.shape[-1]
        points = i.reshape(int(np.prod(i.shape[:-1])), k)
        rows = u.reshape(len(points), *x.shape[k:])
        for point, row in zip(points, rows, strict=True):
            positions = [clipped(p, n) for p, n in zip(point, x.shape, strict=False)]
            if mode == "clip" or all(t for _, t in positions):
                at = tuple(int(p) for p, _ in positions)
                out[at] = _combine(kind, out[at], row)
        return out

    return run


def _at_axis(kind: str) -> Any:
    def run(x: Array, i: Array, u: Array, axis: int = -1, mode: str = "zero") -> Array:
        out = np.moveaxis(x, axis, -1).copy()
        index, new = (np.moveaxis(a, axis, -1) for a in (np.broadcast_to(i, u.shape), u))
        at, there = clipped(index, out.shape[-1])
        for k in np.ndindex(index.shape):
            if there[k] or mode == "clip":
                point = (*k[:-1], at[k])
                out[point] = _combine(kind, out[point], new[k])
        return np.moveaxis(out, -1, axis)

    return run


for _kind in ("update", "add", "sub", "mul", "min", "max"):
    calls(
        f"index_{_kind}",
        _index(_kind),
        [
            call((5, 3), indices(7), (7, 3)),
            call((5,), indices(2, 3), (2, 3), mode="clip"),
            call((2, 4, 3), indices(2, 5), (2, 5, 3), axis=1, batch_dims=1),
            call((3, 4, 2), indices(3), (3, 3, 2), axis=1),
            call((40, 1030), indices(9, low=-40, high=40), (9, 1030)),
            call((40, 37), indices(900, low=-50, high=40), (900, 37)),
            call((3, 2), np.zeros((0,), np.int32), (0, 2)),
        ],
        kinds="iuf" if _kind == "sub" else "biuf",
        slack=8,
    )
    calls(
        f"tensor_scatter_nd_{_kind}",
        _nd(_kind),
        [
            call((5, 3), indices(6, 2), (6,)),
            call((5, 3), indices(2, 3, 1), (2, 3, 3), mode="clip"),
            call((2, 4, 3), indices(2, 5, 1), (2, 5, 3), batch_dims=1),
            call((3,), np.zeros((2, 0), np.int64), (2, 3)),
        ],
        kinds="iuf" if _kind == "sub" else "biuf",
        slack=4,
    )
for _name, _kind in (("put_along_axis", "update"), ("add_along_axis", "add")):
    calls(
        _name,
        _at_axis(_kind),
        [
            call((5, 4), indices(5, 3), (5, 3)),
            call((4, 3), indices(6, 3), (6, 3), axis=0, mode="clip"),
        ],
        kinds="iuf",
        slack=4,
    )


def _scatter_nd(i: Array, u: Array, shape: tuple[int, ...]) -> Array:
    return _nd("add")(np.zeros(shape, u.dtype), i, u)


calls("scatter_nd", _scatter_nd, [call(indices(6, 1), (6, 3), shape=(5, 3))], kinds="iuf", slack=4)


def _segments(reduction: Any, empty: Any) -> Any:
    def run(x: Array, ids: Array, num_segments: int) -> Array:
        rows = x.reshape(ids.size, *x.shape[ids.ndim :])
        out = []
        for k in range(num_segments):
            members = rows[ids.reshape(-1) == k]
            initial = np.full(rows.shape[1:], empty(x.dtype), x.dtype)
            out.append(reduction(members, axis=0).astype(x.dtype) if len(members) else initial)
        return np.stack(out)

    return run


def _least(d: Any) -> Any:
    return -np.inf if d.kind == "f" else np.iinfo(d).min


def _most(d: Any) -> Any:
    return np.inf if d.kind == "f" else np.iinfo(d).max


def _over_root(rows: Array, axis: int) -> Array:
    return np.sum(rows, axis) / np.sqrt(rows.shape[axis])


_IDS = indices(8, low=-2, high=5)
for _name, _reduction, _empty in (
    ("segment_sum", np.sum, lambda d: 0),
    ("segment_max", np.max, _least),
    ("segment_min", np.min, _most),
    ("segment_prod", np.prod, lambda d: 1),
    ("segment_mean", np.mean, lambda d: 0),
    ("segment_sqrt_n", _over_root, lambda d: 0),
):
    calls(
        _name,
        _segments(_reduction, _empty),
        [
            call((8, 3), _IDS, num_segments=4),
            call((2, 4, 3), indices(2, 4, low=0, high=3, dtype="int32"), num_segments=5),
        ],
        kinds="f" if _name in ("segment_mean", "segment_sqrt_n") else "iuf",
        slack=8,
    )


# The operators that scatters expand to.


def _rows(x: Array, rows: Array, updates: Array, kind: str = "add") -> Array:
    out = x.copy()
    for a, k in np.ndindex(rows.shape):
        if 0 <= rows[a, k] < x.shape[2]:
            row = out[a, :, rows[a, k]]
            out[a, :, rows[a, k]] = _combine(kind, row, updates[a, :, k])
    return out


for _kind in ("update", "add", "sub", "mul", "min", "max"):
    calls(
        "scatter_rows",
        _rows,
        [call((2, 3, 5, 4), indices(2, 7), (2, 3, 7, 4), kind=_kind)],
        kinds="iuw",
        slack=4,
    )


def _numbers(i: Array, shape: tuple[int, ...], mode: str = "zero") -> Array:
    positions = [clipped(i[..., k], n) for k, n in enumerate(shape)]
    at = np.ravel_multi_index([p for p, _ in positions], shape)
    there = np.all([t for _, t in positions], axis=0)
    return np.where(there | (mode == "clip"), at, -1)


calls(
    "rows_of_points",
    _numbers,
    [call(indices(7, 2), shape=(5, 3)), call(indices(2, 3, 1), shape=(4,), mode="clip")],
    kinds="i",
)


def _places(
    i: Array, shape: tuple[int, ...], updates: tuple[int, ...], axis: int = -1, mode: str = "zero"
) -> Array:
    grid = list(np.meshgrid(*map(np.arange, updates), indexing="ij"))
    grid = [g * (n > 1) for g, n in zip(grid, shape, strict=True)]
    grid[axis] = np.broadcast_to(i, updates)
    at, there = clipped(grid[axis], shape[axis])
    grid[axis] = at
    return np.where(there | (mode == "clip"), np.ravel_multi_index(grid, shape), -1)


calls(
    "rows_along_axis",
    _places,
    [
        call(indices(5, 3), shape=(5, 4), updates=(5, 3)),
        call(indices(6, 1), shape=(4, 3), updates=(6, 3), axis=0, mode="clip"),
    ],
    kinds="i",
)
