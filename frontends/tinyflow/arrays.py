"""Tensors moved about: reshaped, taken apart, put together, gathered, padded."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Any

import numpy as np

from passkit.errors import SettingError, ShapeError
from passkit.frontends.tinyflow.deferring import (
    awaits_numbers,
    call_later,
    free_size,
    is_unranked,
    tensors_of,
)
from passkit.frontends.tinyflow.numbers import length, real, rows, wholes
from passkit.frontends.tinyflow.ranks import known_shape
from passkit.frontends.tinyflow.reductions import axes_of
from passkit.frontends.tinyflow.refusals import either, refuses
from passkit.frontends.tinyflow.shapes import extents_of, one_extent, shown
from passkit.frontends.tinyflow.tensors import (
    Tensor,
    convert_to_tensor,
    known_tensor,
    made,
    named,
    operand,
    read,
    wrapped,
)
from passkit.frontends.tinyflow.types import as_dtype
from passkit.graph.node import Entry
from passkit.graph.op import get_op
from passkit.values.size import divide_exactly


def reshape(tensor: Any, shape: Any, name: str | None = None) -> Tensor:
    """The elements in another shape, of which one dimension may be -1."""
    x = convert_to_tensor(tensor)
    if awaits_numbers(shape):
        given = {"tensor": x, "shape": shape}
        return call_later(reshape, given, [(None, x.dtype)], named(name, "Reshape"))[0]
    wanted = extents_of(shape, "reshape")
    if is_unranked(x) and wanted.count(-1) == 1:
        full = named(name, "Reshape")
        sizes: Any = tuple(free_size(full, k) if n == -1 else n for k, n in enumerate(wanted))
        return call_later(reshape, {"tensor": x, "shape": wanted}, [(sizes, x.dtype)], full)[0]
    return made("reshape", "Reshape", name, x.entry, shape=wanted)


@refuses("numbers are real", "conjugate")
def transpose(a: Any, perm: Any = None, name: str = "transpose", conjugate: bool = False) -> Tensor:
    """The axes in the order ``perm``, or reversed."""
    return made("transpose", "transpose", name, read(a), axes=axes_of(perm))


def _entries(values: Any) -> list[Entry]:
    """Tensors and arrays as entries; arrays take the dtype of a tensor among them."""
    given = list(values) if isinstance(values, (list, tuple)) else [values]
    like = next((v.dtype for v in given if isinstance(v, Tensor)), None)
    out = [v if isinstance(v, Entry) else operand(v, like) for v in given]
    return [o if isinstance(o, Entry) else read(o, like) for o in out]


def concat(values: Any, axis: Any, name: str = "concat") -> Tensor:
    """Tensors one after the other along ``axis``."""
    return made("concat", "concat", name, *_entries(values), axis=axes_of(axis))


def stack(values: Any, axis: int = 0, name: str = "stack") -> Tensor:
    """Tensors side by side along a new axis."""
    if axis == 0 and awaits_numbers(values):
        full, kind = named(name, "stack"), next(tensors_of(values)).dtype
        sizes = None if any(map(is_unranked, values)) and not kind.is_integer else (len(values),)
        return call_later(stack, {"values": list(values)}, [(sizes, kind)], full)[0]
    known = [getattr(v, "known", None) if isinstance(v, Tensor) else v for v in values]
    whole = all(isinstance(k, int) or (isinstance(k, np.ndarray) and k.ndim == 0) for k in known)
    if axis == 0 and whole:
        numbers = np.array([*(k[()] if isinstance(k, np.ndarray) else k for k in known), None],
                           dtype=object)[:-1]
        return known_tensor(numbers, as_dtype("int32"), name, "stack")
    return made("stack", "stack", name, *_entries(values), axis=axis)


def unstack(
    value: Any, num: int | None = None, axis: int = 0, name: str = "unstack"
) -> list[Tensor]:
    """The slices of ``value`` along ``axis``, which goes.

    Raises: ShapeError when there are not ``num``, or their number is not known.
    """
    if is_unranked(value) and num is not None:
        later = {"value": value, "num": num, "axis": axis}
        return call_later(unstack, later, [(None, value.dtype)] * num, named(name, "unstack"))
    entry = read(value)
    count = length("unstack", known_shape(entry, "unstack"), axis)
    if not isinstance(count, int) or num not in (None, count):
        raise ShapeError(
            f"unstack along axis {axis} of {shown(known_shape(entry))} needs a known length"
            f"{'' if num is None else f', as num={num}'}, got {count}"
        )
    full = named(name, "unstack")
    from passkit import ops

    return [wrapped(e, full, index=k) for k, e in enumerate(ops.unstack(entry, axis))]


def split(
    value: Any, num_or_size_splits: Any, axis: Any = 0, num: int | None = None, name: str = "split"
) -> list[Tensor]:
    """``value`` cut along ``axis`` into so many equal parts, or parts of these sizes."""
    known = getattr(num_or_size_splits, "known", None)
    given = known.tolist() if known is not None else num_or_size_splits
    whole = isinstance(given, (int, np.integer))
    if is_unranked(value) and (whole or isinstance(given, (list, tuple))):
        outputs = [(None, value.dtype)] * (int(given) if whole else len(given))
        later = {"value": value, "num_or_size_splits": given, "axis": axis, "num": num}
        return call_later(split, later, outputs, named(name, "split"))
    entry, where = read(value), axes_of(axis)
    sizes = known_shape(entry, "split")
    count = length("split", sizes, where)
    if whole:
        each = divide_exactly(count, int(given)) if given > 0 else None
        if each is None:
            raise ShapeError(
                f"split needs a length that {given} divides, got {count} along axis {axis} of "
                f"{shown(sizes)}"
            )
        parts: list[Any] = [each] * int(given)
    else:
        parts = list(wholes("split", "num_or_size_splits", given))
    if -1 in parts and isinstance(count, int):
        parts[parts.index(-1)] = count - sum(parts) - 1
    total = sum(parts)
    if num not in (None, len(parts)) or (isinstance(count, int) and total != count):
        raise ShapeError(
            f"split needs sizes that add up to {count}{'' if num is None else f', as num={num}'}"
            f", got {parts}"
        )
    full = named(name, "split")
    out = []
    for k, (first, n) in enumerate(zip(accumulate([0, *parts]), parts, strict=False)):
        begin = [first if a == where % len(sizes) else 0 for a in range(len(sizes))]
        size = [n if a == where % len(sizes) else m for a, m in enumerate(sizes)]
        part = get_op("slice")(entry, begin=tuple(begin), size=tuple(size))
        out.append(wrapped(part, full, index=k))
    return out


def slice_(input_: Any, begin: Any, size: Any, name: str | None = None) -> Tensor:
    """The part from ``begin`` of this ``size``; -1 is all that is left."""
    params = {"begin": extents_of(begin, "slice"), "size": extents_of(size, "slice")}
    return made("slice", "Slice", name, read(input_), **params)


@refuses("indices outside are taken as the nearest inside", "validate_indices")
def gather(
    params: Any,
    indices: Any,
    validate_indices: bool | None = None,
    name: str | None = None,
    axis: Any = None,
    batch_dims: int = 0,
) -> Tensor:
    """The slices of ``params`` along ``axis`` that ``indices`` name."""
    where = batch_dims if axis is None else axes_of(axis)
    entries = read(params), read(indices)
    return made("gather", "Gather", name, *entries, axis=where, batch_dims=batch_dims)


def expand_dims(
    input: Any, axis: Any = None, name: str | None = None, dim: Any = None
) -> Tensor:
    """``input`` with an axis of length 1 put in. Raises: SettingError without an axis."""
    where = either("expand_dims", "axis", axis, "dim", dim)
    if where is None:
        raise SettingError("expand_dims needs an axis, got None; 0 is the first, -1 the last")
    return made("expand_dims", "ExpandDims", name, read(input), axis=axes_of(where))


def squeeze(
    input: Any, axis: Any = None, name: str | None = None, squeeze_dims: Any = None
) -> Tensor:
    """``input`` without its axes of length 1, or without those given."""
    where = either("squeeze", "axis", axis, "squeeze_dims", squeeze_dims)
    return made("squeeze", "Squeeze", name, read(input), axis=axes_of(where))


def one_hot(
    indices: Any,
    depth: Any,
    on_value: Any = None,
    off_value: Any = None,
    axis: int | None = None,
    dtype: Any = None,
    name: str | None = None,
) -> Tensor:
    """``on_value`` where the new axis has the place of an index, else ``off_value``."""
    kind = "float32" if dtype is None else as_dtype(dtype).name
    params = {
        "depth": one_extent(depth, "one_hot", "depth"),
        "on_value": 1 if on_value is None else on_value,
        "off_value": 0 if off_value is None else off_value,
        "axis": -1 if axis is None else axis,
        "dtype": kind,
    }
    return made("one_hot", "one_hot", name, read(indices), **params)


PADDING = {"CONSTANT": "constant", "REFLECT": "reflect", "SYMMETRIC": "symmetric"}


def pad(
    tensor: Any,
    paddings: Any,
    mode: str = "CONSTANT",
    name: str | None = None,
    constant_values: Any = 0,
) -> Tensor:
    """``tensor`` with (before, after) elements put around each axis."""
    if not isinstance(mode, str) or mode.upper() not in PADDING:
        raise SettingError(f"pad needs {', '.join(PADDING)} as mode, got {mode!r}")
    width = rows("pad", "paddings", getattr(paddings, "known", paddings))
    params = {"mode": PADDING[mode.upper()], "constant_values": constant_values}
    return made("pad", "Pad", name, read(tensor), pad_width=width, **params)


def tile(input: Any, multiples: Any, name: str | None = None) -> Tensor:
    """``input`` repeated along each axis."""
    return made("tile", "Tile", name, read(input), repetitions=extents_of(multiples, "tile"))


def reverse(tensor: Any, axis: Any, name: str | None = None) -> Tensor:
    """``tensor`` with the elements along these axes in reverse order."""
    return made("flip", "ReverseV2", name, read(tensor), axis=axes_of(axis))


def sequence_mask(
    lengths: Any, maxlen: Any = None, dtype: Any = "bool", name: str | None = None
) -> Tensor:
    """For each length so many ones, then zeros up to ``maxlen``, which must be known."""
    if maxlen is None:
        raise ShapeError("sequence_mask needs maxlen, got None: no shape may hang on the lengths")
    full = named(name, "SequenceMask")
    most = one_extent(maxlen, "sequence_mask", "maxlen")
    mask = get_op("sequence_mask")(read(lengths), maxlen=most)
    wanted = as_dtype(dtype)
    return wrapped(mask if wanted.name == "bool" else get_op("cast")(mask, dtype=wanted.name), full)


@refuses("a product of real matrices", "adjoint_a", "adjoint_b", "a_is_sparse", "b_is_sparse")
@refuses("a product has the dtype of its factors", "output_type", "grad_a", "grad_b")
def matmul(
    a: Any,
    b: Any,
    transpose_a: bool = False,
    transpose_b: bool = False,
    adjoint_a: bool = False,
    adjoint_b: bool = False,
    a_is_sparse: bool = False,
    b_is_sparse: bool = False,
    output_type: Any = None,
    grad_a: bool = False,
    grad_b: bool = False,
    name: str | None = None,
) -> Tensor:
    """The product of matrices, or of batches of them."""
    sides = [convert_to_tensor(v) for v in (a, b)]
    params = {"transpose_a": transpose_a, "transpose_b": transpose_b}
    ranks = [None if is_unranked(s) else len(known_shape(s.entry)) for s in sides]
    if None in ranks and 2 in ranks:  # beside a matrix, TensorFlow takes the other for one, too
        full = named(name, "MatMul")
        turned = (transpose_a, transpose_b)
        sizes = [
            free_size(full, k) if ranks[k] is None else known_shape(s.entry)[k ^ turned[k]]
            for k, s in enumerate(sides)
        ]
        given = {"a": sides[0], "b": sides[1], **params}
        return call_later(matmul, given, [(tuple(sizes), sides[0].dtype)], full)[0]
    return made("matmul", "MatMul", name, *(s.entry for s in sides), **params)


def tensordot(a: Any, b: Any, axes: Any, name: str | None = None) -> Tensor:
    """Sums of products over the last axes of ``a`` and the first of ``b``, or over those given."""
    given = axes if isinstance(axes, int) else tuple(
        (n,) if isinstance(n, int) else tuple(n) for n in axes
    )
    return made("tensordot", "Tensordot", name, read(a), read(b), axes=given)


def einsum(equation: str, *inputs: Any, **kwargs: Any) -> Tensor:
    """Sums of products by an equation, as in np.einsum; name= is the only keyword."""
    unknown = [k for k in kwargs if k != "name"]
    if unknown:
        raise SettingError(f"einsum takes the keyword name, got {unknown[0]!r}")
    name = kwargs.get("name")
    return made("einsum", "einsum", name, *map(read, inputs), equation=equation)


def clip_by_value(
    t: Any, clip_value_min: Any, clip_value_max: Any, name: str | None = None
) -> Tensor:
    """``t`` kept between two values."""
    entry = read(t)
    low, high = (operand(v, entry.dtype) for v in (clip_value_min, clip_value_max))
    return made("clip", "clip_by_value", name, entry, low, high)


def clip_by_norm(t: Any, clip_norm: Any, axes: Any = None, name: str | None = None) -> Tensor:
    """``t``, shortened where it is longer than ``clip_norm`` along ``axes``."""
    params = {"clip_norm": real("clip_by_norm", "clip_norm", clip_norm), "axis": axes_of(axes)}
    return made("clip_by_norm", "clip_by_norm", name, read(t), **params)


def global_norm(t_list: Sequence[Any], name: str | None = None) -> Tensor:
    """The length of all tensors together; None counts for nothing."""
    entries = [read(t) for t in t_list if t is not None]
    return made("global_norm", "global_norm", name, *entries)


def clip_by_global_norm(
    t_list: Sequence[Any], clip_norm: Any, use_norm: Any = None, name: str | None = None
) -> tuple[list[Tensor | None], Tensor]:
    """Tensors, shortened together to a length of at most ``clip_norm``; and their length before."""
    most = real("clip_by_global_norm", "clip_norm", clip_norm)
    norm = global_norm(t_list) if use_norm is None else convert_to_tensor(use_norm)
    full = named(name, "clip_by_global_norm")
    clipped = [
        None if t is None else wrapped(
            get_op("scale_by_global_norm")(norm.entry, read(t), clip_norm=most),
            full, index=k,
        )
        for k, t in enumerate(t_list)
    ]
    return clipped, norm
