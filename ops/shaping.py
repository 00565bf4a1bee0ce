"""Composites of movement: axes in another order, more of the same, several arrays as one.

They expand to `transpose`, `reshape`, `broadcast_to`, `concat` and `slice`, so that they fuse, and
their gradients follow.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from passkit.errors import ShapeError
from passkit.graph.infer import broadcast_shapes, same_dtype_rule, show_shape
from passkit.graph.node import Entry, Node, as_entry, known_shape
from passkit.graph.op import REQUIRED, Op
from passkit.ops.composites import composite, expanded_shape
from passkit.ops.helpers import int_param, make, normalize_axes, normalize_axis, parse_extents
from passkit.values.size import Extent, Shape, Size, numel


def move(
    name: str,
    inputs: int | Sequence[str],
    expand: Callable[..., Any],
    doc: str,
    params: dict[str, Any] | None = None,
    **more: Any,
) -> Op:
    """Register a composite that moves elements of any dtype, and is cheap."""
    more.setdefault("types", same_dtype_rule)
    return composite(name, inputs, expand, doc, params, TOpCost="light", **more)


def each_axis(node: Node, rank: int, given: Any, what: str) -> tuple[int, ...]:
    """Axes below ``rank`` in the order given, each once."""
    axes = given if isinstance(given, tuple) else (given,)
    normalize_axes(node, rank, axes, what)
    return tuple(normalize_axis(node, rank, a, what) for a in axes)


# The order of axes.


def _moveaxis(node: Node, x: Entry) -> Entry:
    rank = x.ndim
    source = each_axis(node, rank, node.params["source"], "source")
    target = each_axis(node, rank, node.params["destination"], "destination")
    if len(source) != len(target):
        raise ShapeError(
            f"{node.where} needs as many axes in source as in destination, got {source} and "
            f"{target}"
        )
    order = [k for k in range(rank) if k not in source]
    for place, axis in sorted(zip(target, source, strict=True)):
        order.insert(place, axis)
    return make("transpose", x, axes=tuple(order))


def _swapaxes(node: Node, x: Entry) -> Entry:
    order = list(range(x.ndim))
    a, b = (normalize_axis(node, x.ndim, node.params[k], k) for k in ("axis1", "axis2"))
    order[a], order[b] = order[b], order[a]
    return make("transpose", x, axes=tuple(order))


def _matrix_transpose(node: Node, x: Entry) -> Entry:
    if x.ndim < 2:
        raise ShapeError(
            f"{node.where} needs matrices in the last two axes, got {show_shape(known_shape(x))}"
        )
    return make("transpose", x, axes=(*range(x.ndim - 2), x.ndim - 1, x.ndim - 2))


def _rot90(node: Node, x: Entry) -> Entry:
    """Source: NumPy's rot90: two flips, or a flip and a transpose."""
    axes = each_axis(node, x.ndim, node.params["axes"], "axes")
    if len(axes) != 2:
        raise ShapeError(f"{node.where} needs two axes to turn, got {node.params['axes']}")
    turns = int_param(node, "k")
    first, last = axes
    if turns % 4 == 0:
        return make("identity", x)
    if turns % 4 == 2:
        return make("flip", x, axis=axes)
    if turns % 4 == 1:
        return make("swapaxes", make("flip", x, axis=last), axis1=first, axis2=last)
    return make("flip", make("swapaxes", x, axis1=first, axis2=last), axis=last)


def _flip(node: Node, x: Entry) -> Entry:
    shape = known_shape(x)
    axes = normalize_axes(node, len(shape), node.params["axis"])
    begin = [n - 1 if k in axes and n != 0 else 0 for k, n in enumerate(shape)]
    step = [-1 if k in axes else 1 for k in range(len(shape))]
    return make("slice", x, begin=tuple(begin), size=shape, step=tuple(step))


move("moveaxis", ("x",), _moveaxis, "x with the axes source at the places destination",
     {"source": REQUIRED, "destination": REQUIRED})
move("swapaxes", ("x",), _swapaxes, "x with two axes swapped",
     {"axis1": REQUIRED, "axis2": REQUIRED})
move("matrix_transpose", ("x",), _matrix_transpose, "x with its last two axes swapped")
move("rot90", ("x",), _rot90, "x turned k times by 90 degrees, from the first axis to the second",
     {"k": 1, "axes": (0, 1)})
move("flip", ("x",), _flip, "x with the elements along axis, or all axes, in reverse order",
     {"axis": None}, aliases="reverse")


# Rolled, repeated.


def _roll(node: Node, x: Entry) -> Entry:
    """What leaves at one end enters at the other."""
    shape, axis = known_shape(x), node.params["axis"]
    if axis is None:
        if isinstance(node.params["shift"], tuple):
            raise ShapeError(
                f"{node.where} without an axis needs one shift, got {node.params['shift']}"
            )
        flat = make("reshape", x, shape=(-1,) if numel(shape) != 0 else (0,))
        return make("reshape", _rolled(node, flat, node.params["shift"], 0), shape=shape)
    axes = axis if isinstance(axis, tuple) else (axis,)
    given = node.params["shift"]
    shifts = given if isinstance(given, tuple) else (given,) * len(axes)
    if len(shifts) != len(axes):
        raise ShapeError(f"{node.where} needs a shift for each axis of {axes}, got {shifts}")
    for a, s in zip(axes, shifts, strict=True):
        x = _rolled(node, x, s, normalize_axis(node, len(shape), a))
    return x


def _rolled(node: Node, x: Entry, shift: Any, axis: int) -> Entry:
    shape = known_shape(x)
    n = shape[axis]
    if isinstance(shift, bool) or not isinstance(shift, int):
        raise ShapeError(f"{node.where} needs ints as shift, got {shift!r}")
    at: Extent = -shift if shift <= 0 else n - shift  # a size that the call brings has room for it
    if isinstance(n, int):
        at = -shift % n if n else 0
    if at == 0 or (isinstance(n, Size) and shift == 0):
        return make("identity", x)
    return make("concat", part(x, axis, at, n - at), part(x, axis, 0, at), axis=axis)


def part(x: Entry, axis: int, begin: Extent, size: Extent) -> Entry:
    """``size`` elements of an axis from ``begin`` on."""
    shape = known_shape(x)
    first = tuple(begin if k == axis else 0 for k in range(len(shape)))
    return make("slice", x, begin=first, size=(*shape[:axis], size, *shape[axis + 1 :]))


def _tile(node: Node, x: Entry) -> Entry:
    """Each axis becomes two: how often, and the axis; then they are joined."""
    repeats = parse_extents(node, node.params["repetitions"], "repetitions")
    if any(isinstance(r, int) and r < 0 for r in repeats):
        raise ShapeError(f"{node.where} needs repetitions >= 0, got {show_shape(repeats)}")
    shape = known_shape(x)
    rank = max(len(shape), len(repeats))
    shape = (*(1,) * (rank - len(shape)), *shape)
    repeats = (*(1,) * (rank - len(repeats)), *repeats)
    pairs = tuple((1, n) if r != 1 else (n,) for r, n in zip(repeats, shape, strict=True))
    wide = tuple((r, n) if r != 1 else (n,) for r, n in zip(repeats, shape, strict=True))
    return _spread(x, pairs, wide, tuple(r * n for r, n in zip(repeats, shape, strict=True)))


def _spread(
    x: Entry, pairs: tuple[Shape, ...], wide: tuple[Shape, ...], out: Shape
) -> Entry:
    """``x`` with axes put in, stretched, and joined to ``out``."""
    apart = make("reshape", x, shape=sum(pairs, ()))
    return make("reshape", make("broadcast_to", apart, shape=sum(wide, ())), shape=out)


def _repeat(node: Node, x: Entry) -> Entry:
    """One number for all elements: an axis put in. One for each: a gather of those wanted."""
    axis, counts = node.params["axis"], node.params["repeats"]
    if axis is None:
        x = make("reshape", x, shape=(-1,) if numel(known_shape(x)) != 0 else (0,))
        axis = 0
    shape = known_shape(x)
    axis = normalize_axis(node, len(shape), axis)
    n = shape[axis]
    given = counts if isinstance(counts, tuple) else (counts,)
    if any(isinstance(c, bool) or not isinstance(c, int) or c < 0 for c in given):
        raise ShapeError(f"{node.where} needs ints >= 0 as repeats, got {counts!r}")
    if len(given) == 1:
        pairs = tuple((m, 1) if k == axis else (m,) for k, m in enumerate(shape))
        wide = tuple((m, given[0]) if k == axis else (m,) for k, m in enumerate(shape))
        out = tuple(m * given[0] if k == axis else m for k, m in enumerate(shape))
        return _spread(x, pairs, wide, out)
    if n != len(given):
        raise ShapeError(
            f"{node.where} needs one number, or one for each of the {n} elements of axis {axis}, "
            f"got {len(given)}"
        )
    import numpy as np

    chosen = np.repeat(np.arange(len(given), dtype=np.int64), given)
    return make("gather", x, as_entry(chosen), axis=axis)


move("roll", ("x",), _roll, "x shifted along axis, or in its row-major order, around the end",
     {"shift": REQUIRED, "axis": None})
move("tile", ("x",), _tile, "x repeated as a whole along each axis, aligned at the last",
     {"repetitions": REQUIRED})
move("repeat", ("x",), _repeat,
     "each element along axis, or of x in order, repeats times: an int, or one for each",
     {"repeats": REQUIRED, "axis": None})


# Several arrays as one; ranks.


def _stack_shape(node: Node, *shapes: Shape) -> Any:
    """The shape with a new axis. Raises: ShapeError when there is nothing to stack."""
    if not shapes:
        raise ShapeError(f"{node.where} needs at least one input, got {len(shapes)}")
    return expanded_shape(node, *shapes)


def _stack(node: Node, *xs: Entry) -> Entry:
    axis = normalize_axis(node, xs[0].ndim + 1, node.params["axis"])
    for x in xs:
        if x.ndim != xs[0].ndim:
            raise ShapeError(
                f"{node.where} needs inputs of one shape, got "
                f"{show_shape(known_shape(xs[0]))} and {show_shape(known_shape(x))}"
            )
    return make("concat", *(make("expand_dims", x, axis=axis) for x in xs), axis=axis)


def _at_least(rank: int) -> Callable[..., Entry]:
    """NumPy's rule: a third axis goes behind, others in front."""

    def expand(node: Node, x: Entry) -> Entry:
        lack = rank - x.ndim
        if lack <= 0:
            return make("identity", x)
        if rank < 3 or x.ndim == 0:
            return make("expand_dims", x, axis=tuple(range(lack)))
        return make("expand_dims", x, axis=(2,) if x.ndim == 2 else (0, 2))

    return expand


def _outer(node: Node, x: Entry, y: Entry) -> Entry:
    left, right = (make("reshape", e, shape=s) for e, s in ((x, (-1, 1)), (y, (1, -1))))
    return make("mul", left, right)


def _kron(node: Node, x: Entry, y: Entry) -> Entry:
    """Every element of x times the whole of y, aligned at the last axis."""
    rank = max(x.ndim, y.ndim)
    a, b = ((*(1,) * (rank - e.ndim), *known_shape(e)) for e in (x, y))
    left = make("reshape", x, shape=tuple(m for n in a for m in (n, 1)))
    right = make("reshape", y, shape=tuple(m for n in b for m in (1, n)))
    out = tuple(n * m for n, m in zip(a, b, strict=True))
    return make("reshape", make("mul", left, right), shape=out)


move("stack", -1, _stack, "the inputs side by side along a new axis", {"axis": 0},
     shape=_stack_shape, aliases="pack")
move("flatten", ("x",), lambda node, x: make("reshape", x, shape=(numel(known_shape(x)),)),
     "the elements of x in row-major order", aliases="ravel")
for _rank in (1, 2, 3):
    move(f"atleast_{_rank}d", ("x",), _at_least(_rank), f"x with axes put in up to rank {_rank}")
composite("outer", ("x", "y"), _outer, "every element of x times every one of y",
          types=same_dtype_rule, TOpCost="light")
composite("kron", ("x", "y"), _kron, "the Kronecker product: every element of x times all of y",
          types=same_dtype_rule, TOpCost="light")


# Functions with as many results as a call says.


def unstack(x: Any, axis: int = 0) -> tuple[Entry, ...]:
    """The slices of ``x`` along an axis, which goes. Raises: ShapeError when it is not known."""
    entry = as_entry(x)
    shape = known_shape(entry)
    axis = _axis("unstack", shape, axis)
    n = shape[axis]
    if isinstance(n, Size):
        raise ShapeError(f"unstack needs to know the length of axis {axis}, got {n}; use slice")
    return tuple(make("squeeze", part(entry, axis, k, 1), axis=axis) for k in range(n))


def array_split(x: Any, indices_or_sections: int | Sequence[int], axis: int = 0) -> Any:
    """Parts of ``x``: as many as told, the first ones longer by one, or cut at indices.

    Raises: ShapeError when the axis is not known or the number is below 1.
    """
    entry = as_entry(x)
    shape = known_shape(entry)
    axis = _axis("array_split", shape, axis)
    n = shape[axis]
    if isinstance(n, Size):
        raise ShapeError(f"array_split needs to know the length of axis {axis}, got {n}; use slice")
    if isinstance(indices_or_sections, int):
        count = indices_or_sections
        if count < 1:
            raise ShapeError(f"array_split needs at least one part, got {count}")
        sizes = [n // count + (k < n % count) for k in range(count)]
        starts = [sum(sizes[:k]) for k in range(count)]
        stops = [a + b for a, b in zip(starts, sizes, strict=True)]
    else:
        cuts = [slice(None, c).indices(n)[1] for c in indices_or_sections]
        starts, stops = [0, *cuts], [*cuts, n]
    return tuple(
        part(entry, axis, a, max(b - a, 0)) for a, b in zip(starts, stops, strict=True)
    )


def broadcast_arrays(*arrays: Any) -> tuple[Entry, ...]:
    """The arrays, stretched to the shape that they have together."""
    entries = [as_entry(a) for a in arrays]
    if not entries:
        return ()
    shape = broadcast_shapes(entries[0].node, [known_shape(e) for e in entries])
    return tuple(make("broadcast_to", e, shape=shape) for e in entries)


def meshgrid(*arrays: Any, indexing: str = "xy") -> tuple[Entry, ...]:
    """Coordinates of a grid from vectors; "xy" has the second vector along the first axis.

    Raises: ShapeError for arrays of rank above 1 and an indexing that is neither "xy" nor "ij".
    """
    entries = [as_entry(a) for a in arrays]
    if indexing not in ("xy", "ij"):
        raise ShapeError(f"meshgrid needs 'xy' or 'ij' as indexing, got {indexing!r}")
    for e in entries:
        if e.ndim > 1:
            raise ShapeError(f"meshgrid needs vectors, got {show_shape(known_shape(e))}")
    rank = len(entries)
    places = list(range(rank))
    if indexing == "xy" and rank > 1:
        places[:2] = [1, 0]
    lengths: list[Extent] = [1] * rank
    for e, place in zip(entries, places, strict=True):
        lengths[place] = numel(known_shape(e))
    out = []
    for e, place in zip(entries, places, strict=True):
        line = tuple(lengths[place] if k == place else 1 for k in range(rank))
        out.append(make("broadcast_to", make("reshape", e, shape=line), shape=tuple(lengths)))
    return tuple(out)


def _axis(what: str, shape: Shape, axis: Any) -> int:
    rank = len(shape)
    if isinstance(axis, bool) or not isinstance(axis, int) or not -rank <= axis < rank:
        raise ShapeError(f"{what}: axis {axis!r} is out of range for {show_shape(shape)}")
    return axis % rank
