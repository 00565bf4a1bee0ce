"""Movement operators that expand to primitives: flips, repetitions, stacks and products.

They expand to `transpose`, `reshape`, `broadcast_to`, `concat` and `slice`, so that they fuse and
have gradients. ``unstack``, ``array_split``, ``broadcast_arrays`` and ``meshgrid`` are functions
instead of operators, as the number of their results depends on the call.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from passkit.errors import ShapeError
from passkit.graph.infer import broadcast_shapes, same_dtype_rule, show_shape
from passkit.graph.node import Entry, Node, as_entry, known_shape
from passkit.graph.op import REQUIRED, Op
from passkit.ops.composites import composite, expanded_shape
from passkit.ops.helpers import int_param, make, normalize_axes, normalize_axis, parse_extents
from passkit.values import arguments
from passkit.values.size import Extent, Shape, Size, numel


def movement_composite(
    name: str,
    inputs: int | Sequence[str],
    expand: Callable[..., Any],
    doc: str,
    params: dict[str, Any] | None = None,
    **attributes: Any,
) -> Op:
    """Register a composite that moves elements of any dtype, at low cost.

    Args:
        name: The operator's name.
        inputs: Number of inputs, -1 for any, or their names.
        expand: The operator's FExpand.
        doc: The operator's documentation.
        params: The parameters and their defaults.
        attributes: Further arguments of `composite`; by default all inputs have one dtype, which
            the output has, too.

    Returns:
        The registered operator.

    Raises:
        RegistryError: If an operator of that name has other numbers of inputs or outputs, an
            attribute of it was set elsewhere, or an alias names another.
        ArgumentError: If ``name`` or an alias is no identifier.
    """
    attributes.setdefault("types", same_dtype_rule)
    return composite(name, inputs, expand, doc, params, TOpCost="light", **attributes)


def distinct_axes(node: Node, rank: int, axes: Any, name: str) -> tuple[int, ...]:
    """Return axes as ints from 0 to below ``rank``, in the order in which they are listed.

    Args:
        node: The node to name in errors.
        rank: Number of axes.
        axes: One int or a tuple of ints; negative ones count from the end.
        name: The parameter to name in errors.

    Raises:
        ShapeError: If an axis is no int, out of range, or listed twice.
    """
    listed = axes if isinstance(axes, tuple) else (axes,)
    normalize_axes(node, rank, listed, name)
    return tuple(normalize_axis(node, rank, a, name) for a in listed)


def slice_axis(x: Entry, axis: int, begin: Extent, size: Extent) -> Entry:
    """Return ``size`` elements of ``x`` along ``axis``, from position ``begin`` on.

    ``axis`` is not negative.

    Raises: ShapeError if they lie outside of the axis, or the rank is unknown. Where extents are
    symbolic, a call checks it.
    """
    shape = known_shape(x)
    begins = tuple(begin if k == axis else 0 for k in range(len(shape)))
    return make("slice", x, begin=begins, size=(*shape[:axis], size, *shape[axis + 1 :]))


# Permutations and flips of axes.


def _moveaxis(node: Node, x: Entry) -> Entry:
    """Expand moveaxis to a transpose that moves axes ``source`` to positions ``destination``.

    ``node`` has the parameters ``destination`` and ``source``.

    Raises:
        ShapeError: If there are not as many axes in source as in destination, one is no int, out of
            range or listed twice, or the rank is unknown.
    """
    rank = x.ndim
    source = distinct_axes(node, rank, node.params["source"], "source")
    target = distinct_axes(node, rank, node.params["destination"], "destination")
    if len(source) != len(target):
        raise ShapeError(
            f"{node.where} needs as many axes in source as in destination, got {source} and "
            f"{target}"
        )
    order = [k for k in range(rank) if k not in source]
    for position, axis in sorted(zip(target, source, strict=True)):
        order.insert(position, axis)
    return make("transpose", x, axes=tuple(order))


def _swapaxes(node: Node, x: Entry) -> Entry:
    """Expand swapaxes to a transpose that exchanges the parameters ``axis1`` and ``axis2``.

    ``node`` has the parameters ``axis1`` and ``axis2``.

    Raises: ShapeError if one is no int or out of range, or the rank is unknown.
    """
    order = list(range(x.ndim))
    a, b = (normalize_axis(node, x.ndim, node.params[k], k) for k in ("axis1", "axis2"))
    order[a], order[b] = order[b], order[a]
    return make("transpose", x, axes=tuple(order))


def _matrix_transpose(node: Node, x: Entry) -> Entry:
    """Expand matrix_transpose to a transpose of the last two axes of ``x``.

    Raises: ShapeError, naming ``node``, for a rank below 2 or unknown.
    """
    if x.ndim < 2:
        raise ShapeError(
            f"{node.where} needs matrices in the last two axes, got {show_shape(known_shape(x))}"
        )
    return make("transpose", x, axes=(*range(x.ndim - 2), x.ndim - 1, x.ndim - 2))


def _rot90(node: Node, x: Entry) -> Entry:
    """Expand rot90 to two flips, or to a flip and a transpose. Source: numpy.rot90.

    The parameter ``axes`` of ``node`` is the plane, ``k`` the number of quarter turns, which may be
    negative.

    Raises: ShapeError if ``axes`` are not two different axes, ``k`` is no int, or the rank is
    unknown.
    """
    axes = distinct_axes(node, x.ndim, node.params["axes"], "axes")
    if len(axes) != 2:
        raise ShapeError(f"{node.where} needs two axes to turn, got {node.params['axes']}")
    quarter_turns = int_param(node, "k") % 4
    first, last = axes
    if quarter_turns == 0:
        return make("identity", x)
    if quarter_turns == 2:
        return make("flip", x, axis=axes)
    if quarter_turns == 1:
        return make("swapaxes", make("flip", x, axis=last), axis1=first, axis2=last)
    return make("flip", make("swapaxes", x, axis1=first, axis2=last), axis=last)


def _flip(node: Node, x: Entry) -> Entry:
    """Expand flip to a slice with steps of -1 along the parameter ``axis``, None for all axes.

    ``node`` has the parameter ``axis``, one or several axes.

    Raises: ShapeError if one is no int, out of range or listed twice, or the rank is unknown.
    """
    shape = known_shape(x)
    axes = normalize_axes(node, len(shape), node.params["axis"])
    begin = [n - 1 if k in axes and n != 0 else 0 for k, n in enumerate(shape)]
    step = [-1 if k in axes else 1 for k in range(len(shape))]
    return make("slice", x, begin=tuple(begin), size=shape, step=tuple(step))


movement_composite(
    "moveaxis",
    inputs=["x"],
    expand=_moveaxis,
    doc="x with the axes source moved to the positions destination",
    params={"source": REQUIRED, "destination": REQUIRED},
)
movement_composite(
    "swapaxes",
    inputs=["x"],
    expand=_swapaxes,
    doc="x with the axes axis1 and axis2 exchanged",
    params={"axis1": REQUIRED, "axis2": REQUIRED},
)
movement_composite(
    "matrix_transpose",
    inputs=["x"],
    expand=_matrix_transpose,
    doc="x with its last two axes exchanged",
)
movement_composite(
    "rot90",
    inputs=["x"],
    expand=_rot90,
    doc="x rotated k times by 90 degrees in the plane of two axes, from the first to the second",
    params={"k": 1, "axes": (0, 1)},
)
movement_composite(
    "flip",
    inputs=["x"],
    expand=_flip,
    doc="x with the elements along axis, by default along all axes, in reverse order",
    params={"axis": None},
    aliases="reverse",
)


# tile, repeat.


def _tile(node: Node, x: Entry) -> Entry:
    """Expand tile: give each axis a new one in front of it, broadcast that, and join the two.

    The parameter ``repetitions`` of ``node`` is aligned at the last axis; missing ones are 1.

    Raises:
        ShapeError: If a repetition is negative, or neither an int nor a Size, an array would have
            too many elements or axes, or the rank of ``x`` is unknown.
    """
    repeats = parse_extents(node, node.params["repetitions"], "repetitions")
    if any(isinstance(r, int) and r < 0 for r in repeats):
        raise ShapeError(f"{node.where} needs repetitions >= 0, got {show_shape(repeats)}")
    shape = known_shape(x)
    rank = max(len(shape), len(repeats))
    missing_axes: Shape = (1,) * (rank - len(shape))
    missing_repeats: Shape = (1,) * (rank - len(repeats))
    shape = (*missing_axes, *shape)
    repeats = (*missing_repeats, *repeats)
    split = [(1, n) if r != 1 else (n,) for r, n in zip(repeats, shape, strict=True)]
    broadcast = [(r, n) if r != 1 else (n,) for r, n in zip(repeats, shape, strict=True)]
    out = tuple(r * n for r, n in zip(repeats, shape, strict=True))
    return _broadcast_split_axes(x, split, broadcast, out)


def _broadcast_split_axes(
    x: Entry, split: Sequence[Shape], broadcast: Sequence[Shape], out: Shape
) -> Entry:
    """Return ``x`` reshaped, broadcast and reshaped again.

    Args:
        x: An entry.
        split: The axes that each axis of x is split into.
        broadcast: The extents that these are broadcast to.
        out: The shape of the result.

    Raises:
        ShapeError: If the extents do not fit, or are too many elements.
    """
    separate = make("reshape", x, shape=tuple(n for axes in split for n in axes))
    stretched = make("broadcast_to", separate, shape=tuple(n for axes in broadcast for n in axes))
    return make("reshape", stretched, shape=out)


def _repeat(node: Node, x: Entry) -> Entry:
    """Expand repeat: a broadcast for one number of repeats, a gather for one for each element.

    It repeats along the parameter ``axis`` of ``node``, for None in the flattened ``x``. The
    parameter ``repeats`` is one int or a tuple.

    Raises:
        ShapeError: If repeats are negative or no ints, a tuple has neither one number nor as many
            as the axis is known to have elements, or adds up to more than the memory holds,
            ``axis`` is no int or out of range, an array would have too many elements or axes, or
            the rank of ``x`` is unknown.
    """
    axis, repeats = node.params["axis"], node.params["repeats"]
    if axis is None:
        x = make("reshape", x, shape=(-1,) if numel(known_shape(x)) != 0 else (0,))
        axis = 0
    shape = known_shape(x)
    axis = normalize_axis(node, len(shape), axis)
    n = shape[axis]
    counts = repeats if isinstance(repeats, tuple) else (repeats,)
    if any(isinstance(c, bool) or not isinstance(c, int) or c < 0 for c in counts):
        raise ShapeError(f"{node.where} needs ints >= 0 as repeats, got {repeats!r}")
    if len(counts) == 1:
        split = [(m, 1) if k == axis else (m,) for k, m in enumerate(shape)]
        broadcast = [(m, counts[0]) if k == axis else (m,) for k, m in enumerate(shape)]
        out = tuple(m * counts[0] if k == axis else m for k, m in enumerate(shape))
        return _broadcast_split_axes(x, split, broadcast, out)
    if n != len(counts):
        raise ShapeError(
            f"{node.where} needs one number, or one for each of the {n} elements of axis {axis}, "
            f"got {len(counts)}"
        )
    try:
        indices = np.repeat(np.arange(len(counts), dtype=np.int64), counts)
    except (MemoryError, ValueError, OverflowError):  # NumPy's errors for sums beyond 64 bits
        raise ShapeError(f"{node.where} has no memory for {sum(counts)} repeats") from None
    return make("gather", x, as_entry(indices), axis=axis)


movement_composite(
    "tile",
    inputs=["x"],
    expand=_tile,
    doc="x repeated repetitions[k] times along axis k, aligned at the last axis",
    params={"repetitions": REQUIRED},
)
movement_composite(
    "repeat",
    inputs=["x"],
    expand=_repeat,
    doc="x with each element along axis repeated, by default each element of the flattened x; "
    "repeats is one number or one for each element",
    params={"repeats": REQUIRED, "axis": None},
)


# stack, flatten, atleast_1d to 3d, outer, kron.


def _stack_shape(node: Node, *shapes: Shape) -> Any:
    """Infer the shape: that of the inputs with a new axis of their number.

    Raises: ShapeError, naming ``node``, if there are no inputs, their shapes differ, or ``axis`` is
    no int or out of range; DTypeError if their dtypes differ.
    """
    if not shapes:
        raise ShapeError(f"{node.where} needs at least one input, got {len(shapes)}")
    return expanded_shape(node, *shapes)


def _stack(node: Node, *xs: Entry) -> Entry:
    """Expand stack to a concat of one or more inputs with a new axis at the parameter ``axis``.

    ``node`` has the parameter ``axis``.

    Raises: ShapeError if shapes differ, the axis is no int or out of range, or a rank is unknown;
    DTypeError if dtypes differ.
    """
    axis = normalize_axis(node, xs[0].ndim + 1, node.params["axis"])
    for x in xs:
        if x.ndim != xs[0].ndim:
            raise ShapeError(
                f"{node.where} needs inputs of one shape, got "
                f"{show_shape(known_shape(xs[0]))} and {show_shape(known_shape(x))}"
            )
    return make("concat", *(make("expand_dims", x, axis=axis) for x in xs), axis=axis)


def _expand_at_least(rank: int) -> Callable[..., Entry]:
    """Return the FExpand that adds axes up to a rank as NumPy does: a third one at the end."""

    def expand(node: Node, x: Entry) -> Entry:
        """Expand to ``x`` with axes of length 1 up to ``rank``; an identity if it has as many.

        The new axes are in front; a matrix gets a third axis at the end, a vector one on either
        side. ``node`` is not used.

        Raises: ShapeError if the rank of ``x`` is unknown.
        """
        missing = rank - x.ndim
        if missing <= 0:
            return make("identity", x)
        if rank < 3 or x.ndim == 0:
            return make("expand_dims", x, axis=tuple(range(missing)))
        return make("expand_dims", x, axis=(2,) if x.ndim == 2 else (0, 2))

    return expand


def _outer(node: Node, x: Entry, y: Entry) -> Entry:
    """Expand outer: the product of each element of ``x`` with each of ``y``, both flattened.

    It is a matrix with a row for each element of ``x``. ``node`` is not used.

    Raises: DTypeError for bools, complex numbers or two dtypes.
    """
    left, right = (make("reshape", e, shape=s) for e, s in ((x, (-1, 1)), (y, (1, -1))))
    return make("mul", left, right)


def _kron(node: Node, x: Entry, y: Entry) -> Entry:
    """Expand kron: axes of x and y alternate, are multiplied with broadcasting, and joined.

    The shape with fewer axes gets axes of length 1 in front. ``node`` is not used. Source:
    numpy.kron.

    Raises: ShapeError if a rank is unknown, DTypeError for bools, complex numbers or two dtypes.
    """
    rank = max(x.ndim, y.ndim)
    shapes = []
    for entry in (x, y):
        missing_axes: Shape = (1,) * (rank - entry.ndim)
        shapes.append((*missing_axes, *known_shape(entry)))
    a, b = shapes
    left = make("reshape", x, shape=tuple(m for n in a for m in (n, 1)))
    right = make("reshape", y, shape=tuple(m for n in b for m in (1, n)))
    out = tuple(n * m for n, m in zip(a, b, strict=True))
    return make("reshape", make("mul", left, right), shape=out)


movement_composite(
    "stack",
    inputs=-1,
    expand=_stack,
    doc="the inputs, of one shape, joined along a new axis",
    params={"axis": 0},
    shape=_stack_shape,
    aliases="pack",
)
movement_composite(
    "flatten",
    inputs=["x"],
    expand=lambda node, x: make("reshape", x, shape=(numel(known_shape(x)),)),
    doc="the elements of x in row-major order, a vector",
    aliases="ravel",
)
for _rank in (1, 2, 3):
    movement_composite(
        f"atleast_{_rank}d",
        inputs=["x"],
        expand=_expand_at_least(_rank),
        doc=f"x with new axes of length 1 up to rank {_rank}",
    )
movement_composite(
    "outer",
    inputs=["x", "y"],
    expand=_outer,
    doc="the products of each element of x and each element of y, both flattened, as a matrix",
)
movement_composite(
    "kron",
    inputs=["x", "y"],
    expand=_kron,
    doc="the Kronecker product of x and y: each element of x times all of y, of the product of "
    "their shapes",
)


# Functions whose number of results depends on the call.


def unstack(x: Any, axis: int = 0) -> tuple[Entry, ...]:
    """Return the slices of ``x`` along an axis, without that axis.

    Args:
        x: An entry or array of rank 1 or more.
        axis: The axis, whose length must be known; 0 by default.

    Returns:
        A tuple of entries, one for each index of the axis, in order.

    Raises:
        ShapeError: If the axis is no int or out of range, or its length or the rank of ``x`` is
            unknown.
        ArgumentError: If ``x`` is neither an entry nor an array of numbers; a GraphError for a
            tuple of entries, a DTypeError for an array of a dtype that passkit does not have.
    """
    entry = as_entry(x)
    shape = known_shape(entry)
    axis = _checked_axis("unstack", shape, axis)
    n = shape[axis]
    if isinstance(n, Size):
        raise ShapeError(f"unstack needs to know the length of axis {axis}, got {n}; use slice")
    return tuple(make("squeeze", slice_axis(entry, axis, k, 1), axis=axis) for k in range(n))


def array_split(x: Any, indices_or_sections: int | Sequence[int], axis: int = 0) -> Any:
    """Return parts of ``x`` along an axis, as numpy.array_split does.

    Args:
        x: An entry or array.
        indices_or_sections: The number of parts, a Python int, of which the first ones may be
            longer by one, or a sequence of the positions to cut at.
        axis: The axis, whose length must be known; 0 by default.

    Returns:
        A tuple of entries, the parts in order; parts between positions that descend are empty.

    Raises:
        ShapeError: If the axis is no int or out of range, its length or the rank unknown, or the
            number of parts below 1.
        ArgumentError: If ``indices_or_sections`` is neither an int nor a sequence of ints, or ``x``
            neither an entry nor an array of numbers; a GraphError for a tuple of entries, a
            DTypeError for an array of a dtype that passkit does not have.
    """
    entry = as_entry(x)
    shape = known_shape(entry)
    axis = _checked_axis("array_split", shape, axis)
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
        positions = arguments.sequence(
            "array_split: indices_or_sections",
            indices_or_sections,
            (int, np.integer),
            "a number of parts, or a sequence of positions to cut at",
        )
        cuts = [slice(None, c).indices(n)[1] for c in positions]
        starts, stops = [0, *cuts], [*cuts, n]
    return tuple(
        slice_axis(entry, axis, a, max(b - a, 0)) for a, b in zip(starts, stops, strict=True)
    )


def broadcast_arrays(*arrays: Any) -> tuple[Entry, ...]:
    """Return entries or arrays, broadcast to their common shape.

    Args:
        *arrays: Entries or arrays whose shapes broadcast together.

    Returns:
        A tuple of entries of the common shape, one for each argument; empty without arguments.

    Raises:
        ShapeError: If they do not broadcast together, or a rank is unknown.
        ArgumentError: If one is neither an entry nor an array of numbers; a GraphError for a tuple
            of entries, a DTypeError for an array of a dtype that passkit does not have.
    """
    entries = [as_entry(a) for a in arrays]
    if not entries:
        return ()
    shape = broadcast_shapes(entries[0].node, [known_shape(e) for e in entries])
    return tuple(make("broadcast_to", e, shape=shape) for e in entries)


def meshgrid(*arrays: Any, indexing: str = "xy") -> tuple[Entry, ...]:
    """Return the coordinates of a grid from vectors, as numpy.meshgrid does.

    Args:
        arrays: Vectors or scalars; a scalar is a vector of one element.
        indexing: "ij": vector k lies along axis k of the results; "xy" (default): the first two
            axes are swapped.

    Returns:
        A tuple of entries, one for each vector, of an axis for each vector; empty without vectors.

    Raises:
        ShapeError: If an array has a rank above 1 or an unknown one, or ``indexing`` is something
            else.
        ArgumentError: If one is neither an entry nor an array of numbers; a GraphError for a tuple
            of entries, a DTypeError for an array of a dtype that passkit does not have.
    """
    entries = [as_entry(a) for a in arrays]
    if indexing not in ("xy", "ij"):
        raise ShapeError(f"meshgrid needs 'xy' or 'ij' as indexing, got {indexing!r}")
    for e in entries:
        if e.ndim > 1:
            raise ShapeError(f"meshgrid needs vectors, got {show_shape(known_shape(e))}")
    rank = len(entries)
    axes = list(range(rank))
    if indexing == "xy" and rank > 1:
        axes[:2] = [1, 0]
    lengths: list[Extent] = [1] * rank
    for e, axis in zip(entries, axes, strict=True):
        lengths[axis] = numel(known_shape(e))
    grids = []
    for e, axis in zip(entries, axes, strict=True):
        aligned_shape = tuple(lengths[axis] if k == axis else 1 for k in range(rank))
        aligned = make("reshape", e, shape=aligned_shape)
        grids.append(make("broadcast_to", aligned, shape=tuple(lengths)))
    return tuple(grids)


def _checked_axis(function: str, shape: Shape, axis: Any) -> int:
    """Return ``axis`` as an int from 0 to below the rank of ``shape``.

    Raises: ShapeError, naming ``function``, if it is no int or out of range.
    """
    rank = len(shape)
    if isinstance(axis, bool) or not isinstance(axis, int) or not -rank <= axis < rank:
        raise ShapeError(f"{function}: axis {axis!r} is out of range for {show_shape(shape)}")
    return axis % rank
