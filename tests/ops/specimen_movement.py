"""Specimens of movement: the same elements at other places, and arrays made from nothing."""

from __future__ import annotations

from typing import Any

import numpy as np

from passkit.values.dtype import dtype_of
from tests.ops.specimens import Call, call, calls

Array = Any
ALL = "biuf"


def moves(name: str, reference: Any, listed: list[Call], kinds: str = ALL) -> None:
    """An operator that only moves elements: bits stay."""
    calls(name, reference, listed, kinds=kinds)


# The operators that others are made of.

moves(
    "reshape",
    lambda x, shape: x.reshape(shape),
    [
        call((4, 6), shape=(6, 4)),
        call((2, 3, 4), shape=(-1, 4)),
        call((), shape=(1, 1)),
        call((0, 3), shape=(5, 0)),
    ],
)
moves(
    "expand_dims",
    lambda x, axis=0: np.expand_dims(x, axis),
    [call((2, 3), axis=(0, -1)), call((5,))],
)
moves(
    "squeeze",
    lambda x, axis=None: np.squeeze(x, axis),
    [call((1, 3, 1, 2)), call((1, 3, 1), axis=-1)],
)
moves(
    "transpose",
    lambda x, axes=None: np.transpose(x, axes),
    [
        call((5, 37)),
        call((70, 40)),
        call((2, 3, 4), axes=(2, 0, 1)),
        call((2, 35, 17), axes=(0, 2, 1)),
        call(()),
        call((0, 4)),
    ],
)
moves(
    "broadcast_to",
    lambda x, shape: np.broadcast_to(x, shape),
    [call((2, 1), shape=(3, 2, 40)), call((), shape=(3,)), call((1, 3), shape=(0, 3))],
)
moves(
    "concat",
    lambda *x, axis=0: np.concatenate(x, axis),
    [call((2, 3), (1, 3)), call((2, 30), (2, 0), (2, 41), axis=-1), call((5, 2), (5, 7), axis=1)],
)
moves(
    "slice",
    lambda x, begin, size, step=None: x[
        tuple(
            slice(b, None if (e := b + n * s) < 0 else e, s)
            for b, n, s in zip(begin, size, step or (1,) * x.ndim, strict=True)
        )
    ],
    [
        call((4, 50), begin=(1, 2), size=(2, 47)),
        call((9, 80), begin=(8, 1), size=(3, 39), step=(-3, 2)),
        call((4, 40), begin=(0, 39), size=(4, 40), step=(1, -1)),
        call((4, 90), begin=(0, 0), size=(4, 30), step=(1, 3)),
    ],
)

# The order of axes, repetition, several as one.

moves(
    "moveaxis",
    np.moveaxis,
    [call((2, 3, 4), source=0, destination=-1), call((2, 3, 4), source=(0, 1), destination=(2, 0))],
)
moves("swapaxes", np.swapaxes, [call((2, 3, 4), axis1=0, axis2=-1), call((5, 3), axis1=0, axis2=0)])
moves("matrix_transpose", lambda x: np.swapaxes(x, -1, -2), [call((2, 3, 4)), call((5, 1))])
moves(
    "rot90",
    np.rot90,
    [call((3, 4), k=k) for k in (0, 1, 2, 3)] + [call((2, 3, 4), k=-1, axes=(1, 2))],
)
moves(
    "flip",
    np.flip,
    [call((3, 40)), call((3, 4), axis=0), call((2, 3, 21), axis=(0, -1)), call((0, 3))],
)
moves(
    "roll",
    np.roll,
    [
        call((5, 33), shift=2, axis=1),
        call((3, 4), shift=-5),
        call((3, 4), shift=(1, -1), axis=(0, 1)),
        call((0,), shift=3),
    ],
)
moves(
    "tile",
    lambda x, repetitions: np.tile(x, repetitions),
    [
        call((2, 3), repetitions=(2, 2)),
        call((5,), repetitions=(3, 1)),
        call((2, 3), repetitions=20),
        call((2, 3), repetitions=(0, 1)),
    ],
)
moves(
    "repeat",
    np.repeat,
    [
        call((2, 3), repeats=2),
        call((2, 3), repeats=3, axis=0),
        call((2, 3), repeats=(2, 0, 1), axis=-1),
        call((4,), repeats=0),
    ],
)
moves(
    "stack",
    lambda *x, axis=0: np.stack(x, axis),
    [call((2, 3), (2, 3)), call((2, 30), (2, 30), axis=-1), call((3,), axis=1)],
)
moves("flatten", lambda x: x.reshape(-1), [call((2, 3, 4)), call(()), call((0, 3))])
for _rank, _at_least in enumerate((np.atleast_1d, np.atleast_2d, np.atleast_3d), 1):
    moves(f"atleast_{_rank}d", _at_least, [call(()), call((3,)), call((2, 3)), call((2, 3, 4))])
moves("outer", np.outer, [call((3,), (5,)), call((2, 2), (3,))], kinds="iuf")
moves("kron", np.kron, [call((2, 3), (4, 5)), call((2, 1, 2), (3,))], kinds="iuf")

# Padding, shifting, replacing.


def _pad(x: Array, pad_width: Any, mode: str = "constant", constant_values: Any = 0) -> Array:
    more = {"constant_values": constant_values} if mode == "constant" else {}
    return np.pad(x, pad_width, mode, **more)


def _cut(x: Array, pad_width: Any, value: Any = 0) -> Array:
    wide = [(max(a, 0), max(b, 0)) for a, b in pad_width]
    out = np.pad(x, wide, constant_values=value)
    return out[
        tuple(
            slice(max(-a, 0), n - max(-b, 0))
            for (a, b), n in zip(pad_width, out.shape, strict=True)
        )
    ]


moves(
    "pad",
    _pad,
    [
        call((3, 40), pad_width=((1, 2), (0, 3))),
        call((5,), pad_width=2, constant_values=1),
        *[
            call((4, 35), pad_width=((3, 2), (1, 0)), mode=m)
            for m in ("edge", "reflect", "symmetric", "wrap")
        ],
        call((3, 5), pad_width=0, mode="edge"),
        call((4,), pad_width=(1, 4), mode="symmetric"),
    ],
)
moves(
    "pad_with",
    _cut,
    [call((5, 6), pad_width=((-1, 2), (2, -3))), call((0, 2), pad_width=((1, 1), (0, 0)), value=1)],
)


def _shift(x: Array, shift: int, axis: int = -1, fill_value: Any = 0) -> Array:
    x = np.moveaxis(x, axis, 0)
    out = np.full_like(x, fill_value)
    n = len(x)
    if shift >= 0:
        out[min(shift, n) :] = x[: max(n - shift, 0)]
    else:
        out[: max(n + shift, 0)] = x[min(-shift, n) :]
    return np.moveaxis(out, 0, axis)


moves(
    "shift",
    _shift,
    [call((3, 20), shift=3), call((3, 4), shift=-1, axis=0, fill_value=1), call((3,), shift=9)],
)
moves(
    "crop",
    lambda x, offsets, size, channels_last=True: x[:, 1:3, 2:5],
    [call((2, 4, 6, 3), offsets=(1, 2), size=(2, 3))],
)


def _assigned(x: Array, value: Array, begin: Any, size: Any, step: Any = None) -> Array:
    out = x.copy()
    steps = step or (1,) * x.ndim
    out[
        tuple(
            slice(b, None if (e := b + n * s) < 0 else e, s)
            for b, n, s in zip(begin, size, steps, strict=True)
        )
    ] = value
    return out


moves(
    "slice_assign",
    _assigned,
    [
        call((5, 40), (2, 30), begin=(1, 3), size=(2, 30)),
        call((9, 7), (3, 7), begin=(8, 0), size=(3, 7), step=(-3, 1)),
        call((4, 50), (4, 17), begin=(0, 1), size=(4, 17), step=(1, 2)),
        call((3,), (3,), begin=(0,), size=(3,)),
        call((3,), (0,), begin=(0,), size=(0,)),
    ],
)
moves(
    "strided_slice",
    lambda x, **p: p["key"] if "key" in p else _KEYED[x.ndim](x),
    [
        call((5, 40), begin=(1, 0), end=(4, 30), strides=(2, 3), end_mask=2),
        call(
            (5, 4, 3),
            begin=(0, 0, -1),
            end=(0, 0, 0),
            ellipsis_mask=1,
            new_axis_mask=2,
            shrink_axis_mask=4,
        ),
        call((8,), begin=(-2,), end=(1,), strides=(-2,)),
    ],
)
_KEYED: dict[int, Any] = {
    2: lambda x: x[1:4:2, 0::3],
    3: lambda x: x[..., None, -1],
    1: lambda x: x[-2:1:-2],
}

# Triangles and diagonals.

moves("tril", np.tril, [call((4, 40)), call((2, 3, 5), k=1), call((5, 3), k=-2)])
moves("triu", np.triu, [call((4, 40)), call((2, 3, 5), k=1), call((5, 3), k=-2)])


def _band(x: Array, num_lower: int = -1, num_upper: int = -1) -> Array:
    i, j = np.indices(x.shape[-2:])
    low = (num_lower < 0) | (i - j <= num_lower)
    return np.where(low & ((num_upper < 0) | (j - i <= num_upper)), x, x.dtype.type(0))


moves(
    "band_part",
    _band,
    [call((5, 20), num_lower=1, num_upper=2), call((2, 3, 3), num_upper=0), call((4, 3))],
)


def _diagonal(x: Array, offset: int = 0, axis1: int = -2, axis2: int = -1) -> Array:
    return np.diagonal(x, offset, axis1, axis2)


def _embed(x: Array, offset: int = 0) -> Array:
    side = x.shape[-1] + abs(offset)
    out = np.zeros((*x.shape[:-1], side, side), x.dtype)
    at = np.arange(x.shape[-1])
    out[..., at + max(-offset, 0), at + max(offset, 0)] = x
    return out


moves(
    "diagonal",
    _diagonal,
    [
        call((4, 6)),
        call((4, 6), offset=3),
        call((6, 4), offset=-1),
        call((3, 2, 4), axis1=0, axis2=2, offset=1),
        call((2, 3), offset=9),
    ],
)
moves("diag_embed", _embed, [call((2, 20)), call((5,), offset=-2), call((3, 4), offset=1)])
moves("diag", np.diag, [call((20,), k=1), call((4, 5)), call((4, 5), k=-2), call((0,))])
calls(
    "trace",
    lambda x, offset=0, axis1=-2, axis2=-1: np.trace(x, offset, axis1, axis2, dtype=x.dtype),
    [call((5, 7)), call((2, 3, 4), offset=1)],
    kinds="iuf",
    slack=8,
)

# Space and depth, space and batch.


def _s2d(x: Array, block_size: int, data_format: str = "NHWC") -> Array:
    x = x if data_format == "NHWC" else x.transpose(0, 2, 3, 1)
    s = block_size
    out = np.concatenate([x[:, a::s, b::s] for a in range(s) for b in range(s)], -1)
    return out if data_format == "NHWC" else out.transpose(0, 3, 1, 2)


def _d2s(x: Array, block_size: int, data_format: str = "NHWC") -> Array:
    x = x if data_format == "NHWC" else x.transpose(0, 2, 3, 1)
    s = block_size
    n, h, w, c = x.shape
    out = np.zeros((n, h * s, w * s, c // (s * s)), x.dtype)
    for k in range(s * s):
        out[:, k // s :: s, k % s :: s] = x[..., k * out.shape[3] : (k + 1) * out.shape[3]]
    return out if data_format == "NHWC" else out.transpose(0, 3, 1, 2)


moves(
    "space_to_depth",
    _s2d,
    [call((2, 4, 6, 5), block_size=2), call((1, 2, 6, 9), block_size=3, data_format="NCHW")],
)
moves(
    "depth_to_space",
    _d2s,
    [call((2, 3, 2, 12), block_size=2), call((1, 18, 2, 3), block_size=3, data_format="NCHW")],
)


def _s2b(x: Array, block_shape: Any, paddings: Any = 0) -> Array:
    wide = ((0, 0),) * (x.ndim - 1) if paddings == 0 else paddings
    m = len(block_shape)
    x = np.pad(x, ((0, 0), *wide[:m], *((0, 0),) * (x.ndim - 1 - m)))
    return np.concatenate(
        [
            x[(slice(None), *(slice(o, None, b) for o, b in zip(at, block_shape, strict=True)))]
            for at in np.ndindex(*block_shape)
        ]
    )


def _b2s(x: Array, block_shape: Any, crops: Any = 0) -> Array:
    count = int(np.prod(block_shape))
    m, n = len(block_shape), len(x) // count
    space = [d * b for d, b in zip(x.shape[1:], block_shape, strict=False)]
    out = np.zeros((n, *space, *x.shape[1 + m :]), x.dtype)
    for k, at in enumerate(np.ndindex(*block_shape)):
        out[(slice(None), *(slice(o, None, b) for o, b in zip(at, block_shape, strict=True)))] = x[
            k * n : (k + 1) * n
        ]
    if crops == 0:
        return out
    return out[(slice(None), *(slice(a, d - b) for (a, b), d in zip(crops, space, strict=True)))]


moves(
    "space_to_batch",
    _s2b,
    [call((1, 4, 6, 2), block_shape=(2, 3)), call((2, 3, 5), block_shape=(2,), paddings=((1, 2),))],
)
moves(
    "batch_to_space",
    _b2s,
    [call((6, 2, 3, 2), block_shape=(2, 3)), call((4, 3, 5), block_shape=(2,), crops=((1, 2),))],
)

# Images.


def _centers(old: int, new: int, align_corners: bool, half_pixel_centers: bool) -> Array:
    scale = np.float32((old - 1) / (new - 1) if align_corners and new > 1 else old / new)
    at = np.arange(new, dtype=np.float32)
    return (at + np.float32(0.5)) * scale if half_pixel_centers else at * scale


def _nearest(
    x: Array, size: Any, align_corners: bool = False, half_pixel_centers: bool = True
) -> Array:
    rows, columns = (
        np.minimum(
            np.floor(
                _centers(o, n, align_corners, half_pixel_centers) + np.float32(0.5 * align_corners)
            ),
            o - 1,
        ).astype(int)
        for o, n in zip(x.shape[1:3], size, strict=True)
    )
    return x[:, rows][:, :, columns]


def _bilinear(
    x: Array, size: Any, align_corners: bool = False, half_pixel_centers: bool = True
) -> Array:
    for axis, (o, n) in enumerate(zip(x.shape[1:3], size, strict=True), 1):
        at = _centers(o, n, align_corners, half_pixel_centers) - np.float32(
            0.5 * half_pixel_centers
        )
        low = np.floor(at)
        weight = (at - low).astype(np.float64).reshape(-1, *(1,) * (x.ndim - axis - 1))
        a = np.take(x, np.maximum(low, 0).astype(int), axis)
        b = np.take(x, np.minimum(np.ceil(at), o - 1).astype(int), axis)
        x = (a + (b - a) * weight).astype(x.dtype)
    return x


_SIZES = [
    call((2, 3, 4, 5), size=(6, 7)),
    call((1, 5, 6, 2), size=(2, 3)),
    call((1, 3, 4, 20), size=(5, 1), align_corners=True, half_pixel_centers=False),
    call((1, 4, 3, 2), size=(6, 6), half_pixel_centers=False),
]
moves("resize_nearest", _nearest, _SIZES)
calls("resize_bilinear", _bilinear, _SIZES, slack=8)


def _weighed(x: Array, size: Any, row_of: Any) -> Array:
    """``x`` times a matrix along each of the two axes, rounded after each to its dtype."""
    for axis, (o, n) in ((2, (x.shape[2], size[1])), (1, (x.shape[1], size[0]))):
        weights = np.array([row_of(k, o, n) for k in range(n)], np.float64).reshape(n, o)
        x = np.moveaxis(np.moveaxis(x, axis, -1) @ weights.T, -1, axis)
    return x


def _bicubic(
    x: Array, size: Any, align_corners: bool = False, half_pixel_centers: bool = True
) -> Array:
    a = -0.5 if half_pixel_centers else -0.75

    def kernel(d: float) -> float:
        if d < 1:
            return ((a + 2) * d - (a + 3)) * d * d + 1
        return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a if d < 2 else 0.0

    def row(k: int, old: int, new: int) -> Array:
        at = _centers(old, new, align_corners, half_pixel_centers)[k]
        at = np.float32(at - np.float32(0.5 * half_pixel_centers))
        low = int(np.floor(at))
        part = float(np.rint((at - low) * np.float32(1024))) / 1024
        out = np.zeros(old)
        for pixel in range(low - 1, low + 3):
            if half_pixel_centers and not 0 <= pixel < old:
                continue
            out[min(max(pixel, 0), old - 1)] += kernel(abs(low + part - pixel))
        return out / out.sum()

    return _weighed(x, size, row)


def _area(x: Array, size: Any, align_corners: bool = False) -> Array:
    def row(k: int, old: int, new: int) -> Array:
        wide = (old - 1) / (new - 1) if align_corners and new > 1 else old / new
        ends = np.clip([k * wide, (k + 1) * wide], 0, None)
        edges = np.arange(old + 1.0)
        edges[-1] = np.inf
        under = np.minimum(edges[1:], ends[1]) - np.maximum(edges[:-1], ends[0])
        return np.maximum(under, 0) / wide

    return _weighed(x, size, row)


calls("resize_bicubic", _bicubic, _SIZES, slack=40)
calls(
    "resize_area",
    _area,
    [
        call((2, 3, 4, 5), size=(6, 7)),
        call((1, 5, 6, 2), size=(2, 3)),
        call((1, 3, 4, 20), size=(5, 1), align_corners=True),
    ],
    slack=40,
)

# Made from nothing, and marks of positions.


def _of(make: Any) -> Any:
    """A source whose dtype is a parameter, by name."""
    return lambda *a, dtype="float32", **k: make(*a, **k).astype(dtype_of(dtype).numpy)


def _dtypes(**params: Any) -> list[Call]:
    return [call(**params, dtype=d) for d in ("float32", "int32", "bool", "float64")]


moves("full", _of(np.full), _dtypes(shape=(2, 30), fill_value=1), kinds="f")
moves("zeros", _of(np.zeros), _dtypes(shape=(2, 3)), kinds="f")
moves("ones", _of(np.ones), _dtypes(shape=()), kinds="f")
moves(
    "full_like",
    lambda x, fill_value: np.full_like(x, fill_value),
    [call((2, 30), fill_value=1), call((), fill_value=0)],
)


def _arange(start: Any, stop: Any = None, step: Any = 1, dtype: Any = None) -> Array:
    first, last = (0, start) if stop is None else (start, stop)
    whole = not any(isinstance(v, float) for v in (first, last, step))
    n = max(0, int(np.ceil((last - first) / step)))
    out = first + np.arange(n) * step
    return out.astype(dtype or ("int64" if whole else "float64"))


moves(
    "arange",
    _arange,
    [
        call(start=40),
        call(start=3, stop=30, step=2),
        call(start=5, stop=-3, step=-2, dtype="int32"),
        call(start=0.5, stop=3, step=0.25),
        call(start=7, dtype="float32"),
        call(start=5, stop=2),
    ],
    kinds="f",
)


def _linspace(
    start: Any, stop: Any, num: int = 50, endpoint: bool = True, dtype: str = "float32"
) -> Array:
    return np.linspace(start, stop, num, endpoint).astype(dtype)


calls(
    "linspace",
    _linspace,
    [
        call(start=0.0, stop=1.0),
        call(start=-2, stop=5, num=7, endpoint=False),
        call(start=1.0, stop=2.0, num=1, dtype="float64"),
        call(start=0.0, stop=1.0, num=0),
    ],
    kinds="f",
    ulps=4,
)


def _eye(n_rows: int, n_cols: int | None = None, k: int = 0, dtype: str = "float32") -> Array:
    return np.eye(n_rows, n_cols, k, dtype)


moves("eye", _eye, [call(n_rows=20), call(n_rows=3, n_cols=5, k=1, dtype="int32")], kinds="f")


def _hot(
    i: Array,
    depth: int,
    on_value: Any = 1,
    off_value: Any = 0,
    axis: int = -1,
    dtype: str = "float32",
) -> Array:
    hot = np.expand_dims(i.astype(np.int64), axis) == np.arange(depth).reshape(
        [-1 if k == (axis % (i.ndim + 1)) else 1 for k in range(i.ndim + 1)]
    )
    return np.where(hot, on_value, off_value).astype(dtype)


moves(
    "one_hot",
    _hot,
    [
        call((4, 3), depth=20),
        call((5,), depth=3, axis=0, dtype="int32"),
        call((2, 3), depth=4, axis=1, on_value=2.5, off_value=-1),
    ],
    kinds="iu",
)
