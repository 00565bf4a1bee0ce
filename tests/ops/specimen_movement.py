"""Specimens of movement operators, whose results have the elements of their inputs."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.ops.specimens import Call, call, calls

Array = Any
ALL = "biuf"


def moves(name: str, reference: Any, listed: list[Call], kinds: str = ALL) -> None:
    """Register specimens of an operator that moves elements and keeps their bits."""
    calls(name, reference, listed, kinds=kinds)


# Primitives.

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

# Permutations of axes, repetitions, stacks.

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
        call((4, 5, 17), shift=(-3, 12), axis=(0, 1)),
        call((0,), shift=3),
    ],
)
moves(
    "rotate",
    np.roll,
    [
        call((5, 33), shift=2, axis=0),
        call((2, 7, 3), shift=-9, axis=1),
        call((5, 3), shift=10, axis=-1),
        call((2, 0, 3), shift=1, axis=1),
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
