"""Writes at indices that are data: updates into an array.

They expand to `scatter_rows`, a kernel, and to where the indices point, which fuses. Updates that
meet at one element are taken in their order, so results repeat; "update" keeps the
last. Sums of 16-bit floats are made in float32. An index below 0 counts from the end; what is out
of range then is dropped, or goes to the nearest element in mode "clip".
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from passkit.errors import ShapeError
from passkit.graph.call import convert
from passkit.graph.infer import agree, broadcast_shapes, show_shape
from passkit.graph.node import Entry, Node, known_shape
from passkit.graph.op import REQUIRED, Op, OpPattern, register_op
from passkit.ops.composites import composite
from passkit.ops.gathering import point_axes
from passkit.ops.helpers import add_aliases, check_kinds, make, normalize_axis, parse_extents
from passkit.ops.indices import check_indices, indexed_type, mode_of, positions, zeros_of
from passkit.ops.scattered_rows import FOLDS
from passkit.values.dtype import DType, dtype_of, float32, is_narrow
from passkit.values.size import Shape, numel

Array = Any

SUMS = ("add", "sub", "mul")
"""What of 16-bit floats is made in float32."""

GATHERS = {
    "index": "gather",
    "along_axis": "take_along_axis",
    "nd": "gather_nd",
}
"""What reads the elements that a kind of scatter writes."""


def _written(node: Node, kind: str, x: Array, at: tuple[Array, ...], updates: Array) -> Array:
    """``x`` with updates at advanced index ``at``."""
    narrow = dtype_of(x.dtype).is_float and x.dtype.itemsize < 4
    out = x.astype(np.float32) if narrow and kind in SUMS else np.array(x)
    if kind == "update":
        out[at] = updates
    else:
        FOLDS[kind].at(out, at, updates.astype(out.dtype))
    return out.astype(x.dtype)


def _kept(node: Node, there: Array, at: tuple[Array, ...], updates: Array) -> tuple[Any, Array]:
    """Index and updates without those that are dropped."""
    if mode_of(node) == "clip" or there.all():
        return at, updates
    return tuple(np.broadcast_to(a, there.shape)[there] for a in at), updates[there]


# Three ways to say where: along an axis whole slices, along an axis single elements, points.


def _index_at(node: Node, x: Array, indices: Array, updates: Array) -> Any:
    """Slices along axis; the first batch_dims axes go together."""
    axis, batch = normalize_axis(node, x.ndim, node.params["axis"]), node.params["batch_dims"]
    place, there = positions(indices, x.shape[axis])
    inner = x.shape[batch:axis]
    wide = (*place.shape[:batch], *(1,) * len(inner), *place.shape[batch:])
    shape = (*place.shape[:batch], *inner, *place.shape[batch:])
    place, there = (np.broadcast_to(a.reshape(wide), shape) for a in (place, there))
    grid = [np.arange(n).reshape(-1, *(1,) * (place.ndim - k - 1)) for k, n in enumerate(shape)]
    return _kept(node, there, (*grid[:axis], place), updates)


def _along_axis_at(node: Node, x: Array, indices: Array, updates: Array) -> Any:
    """Single elements along axis; where x has length 1 beside it, updates meet."""
    axis = normalize_axis(node, x.ndim, node.params["axis"])
    place, there = positions(indices, x.shape[axis])
    shape = updates.shape
    place, there = (np.broadcast_to(a, shape) for a in (place, there))
    grid = [
        np.arange(n if m != 1 else 1).reshape(-1, *(1,) * (x.ndim - k - 1))
        for k, (n, m) in enumerate(zip(shape, x.shape, strict=True))
    ]
    grid[axis] = place
    return _kept(node, there, tuple(grid), updates)


def _nd_at(node: Node, x: Array, indices: Array, updates: Array) -> Any:
    """Points, or slices, by coordinates in the last axis of indices."""
    batch, count = point_axes(node, x.shape, indices.shape)
    lead = indices.shape[:-1]
    there = np.ones(lead, bool)
    grid = [
        np.arange(n).reshape(-1, *(1,) * (len(lead) - k - 1)) for k, n in enumerate(lead[:batch])
    ]
    for k in range(count):
        place, here = positions(indices[..., k], x.shape[batch + k])
        grid.append(place)
        there = there & here
    if not grid:  # no coordinates: each update is for all of x
        return _kept(node, there[..., None], (np.zeros((*lead, 1), np.int64),), updates[..., None])
    return _kept(node, there, tuple(grid), updates)


def _index_shape(node: Node, x: Shape, indices: Shape) -> Shape:
    axis, batch = normalize_axis(node, len(x), node.params["axis"]), node.params["batch_dims"]
    if not isinstance(batch, int) or not 0 <= batch <= min(axis, len(indices)):
        raise ShapeError(
            f"{node.where} needs batch_dims from 0 to {min(axis, len(indices))}, got {batch!r}"
        )
    return (*x[:axis], *indices[batch:], *x[axis + 1 :])


def _along_axis_shape(node: Node, x: Shape, indices: Shape) -> Shape:
    axis = normalize_axis(node, len(x), node.params["axis"])
    if len(indices) != len(x):
        raise ShapeError(
            f"{node.where} needs indices of rank {len(x)}, as x has, got {show_shape(indices)}"
        )
    rest = [(*s[:axis], 1, *s[axis + 1 :]) for s in (x, indices)]
    out = broadcast_shapes(node, rest)
    return (*out[:axis], indices[axis], *out[axis + 1 :])


def _nd_shape(node: Node, x: Shape, indices: Shape) -> Shape:
    batch, count = point_axes(node, x, indices)
    return (*indices[:-1], *x[batch + count :])


# The same as rows of (a, b, n, c).


def _index_rows(node: Node, x: Entry, indices: Entry, updates: Entry) -> tuple[Shape, Entry]:
    shape, given = known_shape(x), known_shape(indices)
    axis, batch = normalize_axis(node, len(shape), node.params["axis"]), node.params["batch_dims"]
    parts = (shape[:batch], shape[batch:axis], shape[axis : axis + 1], shape[axis + 1 :])
    rows = make("rows_of_points", make("expand_dims", indices, axis=-1), shape=(shape[axis],),
                mode=mode_of(node))  # fmt: skip
    count = numel(given[batch:])
    wide = tuple(map(numel, parts))
    return wide, make("reshape", rows, shape=(wide[0], count))


def _along_axis_rows(node: Node, x: Entry, indices: Entry, updates: Entry) -> tuple[Shape, Entry]:
    shape, wanted = known_shape(x), known_shape(updates)
    rows = make("rows_along_axis", indices, shape=shape, updates=wanted,
                axis=node.params["axis"], mode=mode_of(node))  # fmt: skip
    return (1, 1, numel(shape), 1), make("reshape", rows, shape=(1, numel(wanted)))


def _nd_rows(node: Node, x: Entry, indices: Entry, updates: Entry) -> tuple[Shape, Entry]:
    shape, given = known_shape(x), known_shape(indices)
    batch, count = point_axes(node, shape, given)
    points = shape[batch : batch + count]
    rows = make("rows_of_points", indices, shape=points, mode=mode_of(node))
    wide = (numel(shape[:batch]), 1, numel(points), numel(shape[batch + count :]))
    return wide, make("reshape", rows, shape=(wide[0], numel(given[batch:-1])))


ROWS: dict[str, Callable[..., tuple[Shape, Entry]]] = {
    "index": _index_rows,
    "along_axis": _along_axis_rows,
    "nd": _nd_rows,
}
"""For each way: x as (a, b, n, c), and the row of each update."""

TRUTH = {"add": "max", "mul": "min"}
"""What sums and products of bools are."""


def _by_rows(way: str, kind: str) -> Callable[..., Entry]:
    def expand(node: Node, x: Entry, indices: Entry, updates: Entry) -> Entry:
        assert x.dtype is not None
        wide, rows = ROWS[way](node, x, indices, updates)
        named = TRUTH.get(kind, kind) if x.dtype.kind == "b" else kind
        narrow = is_narrow(x.dtype) and kind != "update"
        old, new = (convert(e, float32) if narrow else e for e in (x, updates))
        out = make(
            "scatter_rows", make("reshape", old, shape=wide), rows,
            make("reshape", new, shape=(*wide[:2], known_shape(rows)[1], wide[3])), kind=named,
        )  # fmt: skip
        return make("reshape", convert(out, x.dtype) if narrow else out, shape=known_shape(x))

    return expand


def _joined_type(kind: str) -> Callable[..., DType]:
    """Bools have no differences."""

    def infer_type(node: Node, x: DType, indices: DType, updates: DType) -> DType:
        if kind == "sub":
            check_kinds(node, "iufc", x)
        return indexed_type(node, x, indices, updates)

    return infer_type


WAYS: dict[str, tuple[Callable[..., Any], Callable[..., Shape], dict[str, Any]]] = {
    "index": (_index_at, _index_shape, {"axis": 0, "batch_dims": 0, "mode": "zero"}),
    "along_axis": (_along_axis_at, _along_axis_shape, {"axis": -1, "mode": "zero"}),
    "nd": (_nd_at, _nd_shape, {"batch_dims": 0, "mode": "zero"}),
}
"""For each way: where in NumPy, the shape of updates, parameters."""


def scatter(name: str, way: str, kind: str, doc: str, aliases: str = "") -> Op:
    """Register an operator that joins updates to x where indices say."""
    place, needs, params = WAYS[way]

    def shape(node: Node, x: Shape, indices: Shape, updates: Shape) -> Shape:
        """The input's shape. Raises: ShapeError when there is not one update for each index."""
        mode_of(node)
        wanted = needs(node, x, indices)
        if len(wanted) != len(updates):
            raise ShapeError(
                f"{node.where} needs updates of shape {show_shape(wanted)}, got "
                f"{show_shape(updates)}"
            )
        for k, (n, m) in enumerate(zip(wanted, updates, strict=True)):
            agree(node, n, m, f"dimension {k} of the updates")
        return x

    def compute(node: Node, x: Array, indices: Array, updates: Array) -> Array:
        if not x.size or not updates.size:
            return np.array(x)
        flat = way == "nd" and point_axes(node, x.shape, indices.shape) == (0, 0)
        at, rest = place(node, x, indices, updates)
        if flat:
            return _written(node, kind, x[None], at, rest.reshape(at[0].shape + x.shape))[0]
        return _written(node, kind, x, at, rest)

    op = register_op(name, num_inputs=3, params=params, doc=doc)
    op.set_attr("FListInputNames", lambda params: ["x", "indices", "updates"])
    op.set_attr("FInferShape", shape)
    op.set_attr("FInferType", _joined_type(kind))
    op.set_attr("FCompute", compute)
    op.set_attr("FExpand", _by_rows(way, kind))
    op.set_attr("FGradient", GRADIENTS[kind](way))
    op.set_attr("TOpPattern", OpPattern.OPAQUE)
    add_aliases(op, aliases)
    return op


# Gradients: the matching gather reads what each update has become.


def _read(node: Node, way: str, x: Entry) -> Entry:
    """What updates read of ``x``: zeros of nothing, where all of them were dropped."""
    if numel(known_shape(x)) == 0:
        assert x.dtype is not None
        return make("cast", zeros_of(node.inputs[2]), dtype=x.dtype.name)
    return make(GATHERS[way], x, node.inputs[1], **node.params)


def _again(node: Node, way: str, kind: str, x: Entry, updates: Entry) -> Entry:
    name = f"tensor_scatter_nd_{kind}" if way == "nd" else f"{way}_{kind}"
    name = {"along_axis_add": "add_along_axis", "along_axis_update": "put_along_axis"}.get(
        name, name
    )
    return make(name, x, node.inputs[1], updates, **node.params)


def _of_sum(sign: int) -> Callable[[str], Callable[..., list[Entry | None]]]:
    def of(way: str) -> Callable[..., list[Entry | None]]:
        def gradient(node: Node, dy: Entry) -> list[Entry | None]:
            mine = _read(node, way, dy)
            return [dy, None, mine if sign > 0 else make("neg", mine)]

        return gradient

    return of


def _of_update(way: str) -> Callable[..., list[Entry | None]]:
    """What stays takes dy; of updates that meet the last does."""

    def gradient(node: Node, dy: Entry) -> list[Entry | None]:
        x, _, updates = node.inputs
        rest = _again(node, way, "update", dy, zeros_of(updates))
        shape = known_shape(updates)
        flat = make("arange", numel(shape), None, dtype="int64")
        number = make("reshape", flat, shape=shape)
        last = _again(node, way, "update", make("cast", zeros_of(x), dtype="int64"), number)
        mine = make("equal", _read(node, way, last), number)
        seen = _read(node, way, dy)
        return [rest, None, make("where", mine, seen, zeros_of(seen))]

    return gradient


def _of_product(way: str) -> Callable[..., list[Entry | None]]:
    """dy times all other factors of an element; zeros among them are counted, not divided by."""

    def gradient(node: Node, dy: Entry) -> list[Entry | None]:
        x, _, updates = node.inputs
        assert x.dtype is not None
        one, kind = [make("full_like", e, fill_value=1) for e in (x, updates)], x.dtype.name
        none = [make("equal", e, zeros_of(e)) for e in (x, updates)]
        some = [make("where", n, o, e) for n, o, e in zip(none, one, (x, updates), strict=True)]
        rest = _again(node, way, "mul", *some)
        zeros = _again(node, way, "add", *(make("cast", n, dtype=kind) for n in none))

        def others(is_zero: Entry, factor: Entry, rest: Entry, zeros: Entry) -> Entry:
            single = make("where", make("equal", zeros, make("ones_like", zeros)), rest,
                          zeros_of(rest))  # fmt: skip
            whole = make("where", make("equal", zeros, zeros_of(zeros)), make("div", rest, factor),
                         zeros_of(rest))  # fmt: skip
            return make("where", is_zero, single, whole)

        seen = [_read(node, way, e) for e in (rest, zeros, dy)]
        return [
            make("mul", dy, others(none[0], some[0], rest, zeros)),
            None,
            make("mul", seen[2], others(none[1], some[1], seen[0], seen[1])),
        ]

    return gradient


def _of_extreme(way: str) -> Callable[..., list[Entry | None]]:
    """All that equal the result share dy alike."""

    def gradient(node: Node, dy: Entry) -> list[Entry | None]:
        x, _, updates = node.inputs
        out = node.entries[0]
        kind = dy.dtype.name if dy.dtype is not None else "float32"
        kept = make("cast", make("equal", x, out), dtype=kind)
        won = make("cast", make("equal", updates, _read(node, way, out)), dtype=kind)
        share = make("div", dy, _again(node, way, "add", kept, won))
        return [
            make("mul", share, kept),
            None,
            make("mul", _read(node, way, share), won),
        ]

    return gradient


GRADIENTS: dict[str, Callable[[str], Callable[..., list[Entry | None]]]] = {
    "add": _of_sum(1),
    "sub": _of_sum(-1),
    "mul": _of_product,
    "update": _of_update,
    "min": _of_extreme,
    "max": _of_extreme,
}

JOINED = {
    "update": "replaced by",
    "add": "plus",
    "sub": "minus",
    "mul": "times",
    "min": "at most",
    "max": "at least",
}
for _kind, _word in JOINED.items():
    scatter(
        f"index_{_kind}", "index", _kind,
        f"the slices of x along axis that indices name, {_word} updates", f"scatter_{_kind}",
    )
    scatter(
        f"tensor_scatter_nd_{_kind}", "nd", _kind,
        f"the elements, or slices, of x at the coordinates in indices, {_word} updates",
        f"tensor_scatter_{_kind}",
    )
scatter("put_along_axis", "along_axis", "update",
        "for each element of indices that of x at this position of the axis, replaced by updates")
scatter("add_along_axis", "along_axis", "add",
        "for each element of indices that of x at this position of the axis, plus updates")


# Into zeros.


def _updates_type(node: Node, indices: DType, updates: DType) -> DType:
    check_indices(node, indices)
    return updates


def _scatter_nd(node: Node, indices: Entry, updates: Entry) -> Entry:
    shape = parse_extents(node, node.params["shape"], "shape")
    return make("tensor_scatter_nd_add", filled(shape, 0, updates), indices, updates)


def filled(shape: Shape, value: Any, like: Entry) -> Entry:
    """An array of ``value`` in the dtype of ``like``."""
    assert like.dtype is not None
    return make("full", shape=shape, fill_value=value, dtype=like.dtype.name)


composite("scatter_nd", ("indices", "updates"), _scatter_nd,
          "zeros of a shape, plus updates at the coordinates in indices", {"shape": REQUIRED},
          types=_updates_type, TOpCost="light")
