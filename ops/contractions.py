"""Contractions: einsum, tensordot, dot and their relatives, and products of several matrices.

They expand to transposes and reshapes around ``matmul``. Where no axis is summed they expand to an
elementwise product, which fuses.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from itertools import islice
from typing import NamedTuple

from passkit.errors import GraphError, ShapeError
from passkit.graph.infer import agree, show_shape
from passkit.graph.node import Entry, Node, known_dtype, known_shape
from passkit.graph.op import REQUIRED
from passkit.ops.composites import composite
from passkit.ops.helpers import common_dtype, int_param, make, normalize_axes, normalize_axis
from passkit.values.size import Extent, Size, numel

NUMBERS = common_dtype("iuf")
"""The FInferType of contractions: integers or floats, all of one dtype."""

ASSUMED_EXTENT = 64
"""The extent that cost estimates assume where the size is unknown."""

ELLIPSIS_LABELS = "".join(chr(c) for c in range(0x100, 0x180))
"""Labels for the axes that an ellipsis stands for."""


# Einsum equations.


class Subscripts(NamedTuple):
    """A parsed einsum equation, with one label for each axis.

    Axes with a label in ``broadcast`` may have length 1 beside another length.
    """

    inputs: tuple[str, ...]
    output: str
    broadcast: str


def parse_equation(node: Node, equation: object, ranks: Sequence[int]) -> Subscripts:
    """Parse an einsum equation such as ``"ij,jk->ik"`` or ``"...ij,...j"``.

    Without '->' the output has the axes of the ellipsis, then in alphabetical order the labels that
    occur once. Spaces are ignored. A label is any letter, of Unicode too.

    Args:
        node: The node to name in errors.
        equation: The parameter of einsum.
        ranks: The rank of each operand.

    Returns:
        The labels of each operand and of the output, with those of an ellipsis spelt out, and the
        labels of the ellipsis.

    Raises:
        GraphError: If the equation is no text, malformed, or does not fit the number or ranks of
            operands; if its result repeats a label, has one of no operand, or lacks the ellipsis.
    """

    def error(reason: str) -> GraphError:
        """Return the error for this equation, with a reason that the message ends with."""
        return GraphError(f"{node.where} cannot read the equation {equation!r}: {reason}")

    if not isinstance(equation, str):
        raise GraphError(
            f"{node.where} needs a text such as 'ij,jk->ik' as equation, got {equation!r}"
        )
    left, arrow, right = equation.replace(" ", "").partition("->")
    terms = left.split(",")
    if len(terms) != len(ranks):
        raise error(f"it has {len(terms)} operands, and {len(ranks)} are given")
    ellipsis_ranks = [
        rank - _label_count(term) for term, rank in zip(terms, ranks, strict=True) if "..." in term
    ]
    ellipsis_rank = max([*ellipsis_ranks, 0])
    inputs = []
    for term, rank in zip(terms, ranks, strict=True):
        unlabelled = rank - _label_count(term)
        if unlabelled < 0 or (unlabelled and "..." not in term):
            raise error(f"{term!r} names {_label_count(term)} axes of an operand that has {rank}")
        labels = ELLIPSIS_LABELS[ellipsis_rank - unlabelled : ellipsis_rank]
        inputs.append(term.replace("...", labels, 1))
    if not arrow:
        letters = "".join(t.replace("...", "") for t in terms)
        once = sorted(c for c in set(letters) if letters.count(c) == 1)
        right = ("..." if "..." in left else "") + "".join(once)
    output = right.replace("...", ELLIPSIS_LABELS[:ellipsis_rank], 1)
    for text in (*inputs, output):
        invalid = next((c for c in text if not c.isalpha()), None)
        if invalid is not None:
            raise error(f"{invalid!r} is no letter")
    for c in output:
        if output.count(c) > 1:
            raise error(f"{c!r} stands twice in the result")
        if not any(c in term for term in inputs):
            raise error(f"{c!r} of the result is in no operand")
    if ellipsis_rank and "..." not in right:
        raise error("the result lacks the ellipsis of the operands")
    return Subscripts(tuple(inputs), output, ELLIPSIS_LABELS[:ellipsis_rank])


def _label_count(term: str) -> int:
    """Return the number of labels of an operand, without the ellipsis."""
    return len(term.replace("...", "", 1))


def _check_extents(node: Node, subscripts: Subscripts, entries: Sequence[Entry]) -> None:
    """Check that axes with one label of an einsum equation have one extent.

    Axes of an ellipsis may have length 1 instead. Extents that differ symbolically are recorded as
    guards.

    Args:
        node: The node to name in errors.
        subscripts: The equation.
        entries: The operands.

    Raises:
        ShapeError: If two known extents of a label differ; it is named. Also for an unknown rank.
    """
    extents: dict[str, Extent] = {}
    for labels, entry in zip(subscripts.inputs, entries, strict=True):
        for c, n in zip(labels, known_shape(entry), strict=True):
            if n == 1 and c in subscripts.broadcast:
                continue
            extents[c] = agree(node, extents[c], n, f"label {c!r}") if c in extents else n


# Einsum as products of pairs of operands.


class LabelledOperand:
    """An operand of einsum: an entry and a label for each of its axes."""

    def __init__(self, entry: Entry, labels: str) -> None:
        """Store an operand.

        Args:
            entry: The entry.
            labels: A letter for each of its axes.
        """
        self.entry = entry
        self.labels = labels

    def extent(self, label: str) -> Extent:
        """Return the extent of the axis with ``label``, which must be one of this operand's.

        Raises: ShapeError if a rank is unknown.
        """
        return known_shape(self.entry)[self.labels.index(label)]

    def transposed(self, labels: str) -> Entry:
        """Return the entry with its axes in the order of ``labels``, a permutation of its own.

        It is the entry itself if that is their order.
        """
        if labels == self.labels:
            return self.entry
        return make("transpose", self.entry, axes=tuple(self.labels.index(c) for c in labels))

    def aligned(self, labels: str) -> Entry:
        """Return the entry with an axis for each of ``labels``, of length 1 where it has none.

        ``labels`` includes all labels of the entry.

        Raises: ShapeError if the rank of the entry is unknown.
        """
        own_labels = "".join(c for c in labels if c in self.labels)
        extents = [self.extent(c) if c in own_labels else 1 for c in labels]
        return make("reshape", self.transposed(own_labels), shape=tuple(extents))

    def as_matrices(self, batch: str, rows: str, columns: str) -> tuple[Entry, bool]:
        """Return the operand with the shape (*batch, rows, columns), or with the last two swapped.

        They are swapped if they are in memory: a matrix product reads them transposed, without a
        copy.

        Args:
            batch: The labels of the batch axes.
            rows: The labels of the axes that are joined to rows.
            columns: The labels of the axes that are joined to columns.

        Returns:
            The entry, and whether its last two axes are swapped.

        Raises: ShapeError if a rank is unknown.
        """
        flip = self.labels == batch + columns + rows and self.labels != batch + rows + columns
        first, second = (columns, rows) if flip else (rows, columns)
        entry = self.transposed(batch + first + second)
        shape = known_shape(entry)
        end = len(batch) + len(first)
        matrix_shape = (*shape[: len(batch)], numel(shape[len(batch) : end]), numel(shape[end:]))
        return make("reshape", entry, shape=matrix_shape), flip


def _merge_repeated_labels(operand: LabelledOperand) -> LabelledOperand:
    """Return the operand with one axis in place of those with the same label: the diagonal.

    That axis is the last. Without a label that is repeated, nothing changes.

    Raises:
        ShapeError: If the extent of such an axis is symbolic, or the rank unknown.
    """
    entry, labels = operand.entry, operand.labels
    while len(set(labels)) < len(labels):
        label = next(c for c in labels if labels.count(c) > 1)
        first, second = labels.index(label), labels.rindex(label)
        rest = [k for k in range(len(labels)) if k not in (first, second)]
        moved = make("transpose", entry, axes=(*rest, first, second))
        shape = known_shape(moved)
        n = shape[-1]
        if not isinstance(n, int):
            raise ShapeError(
                f"einsum needs to know the extent of {label!r}, which stands twice in {labels!r}, "
                f"got {n}"
            )
        flat = make("reshape", moved, shape=(*shape[:-2], n * n))
        ones = (1,) * (len(shape) - 2)
        begin = (0,) * (len(shape) - 1)
        entry = make("slice", flat, begin=begin, size=(*shape[:-2], n), step=(*ones, n + 1))
        labels = "".join(labels[k] for k in rest) + label
    return LabelledOperand(entry, labels)


def _sum_unused_labels(operand: LabelledOperand, used: str) -> LabelledOperand:
    """Return the operand summed over the axes whose label is not in ``used``.

    It is the operand itself if there are none.
    """
    summed_axes = tuple(k for k, c in enumerate(operand.labels) if c not in used)
    if not summed_axes:
        return operand
    labels = "".join(c for c in operand.labels if c in used)
    return LabelledOperand(make("reduce_sum", operand.entry, axis=summed_axes), labels)


def _contract_pair(a: LabelledOperand, b: LabelledOperand, used: str) -> LabelledOperand:
    """Multiply two operands of einsum, and sum over the shared labels that are not in ``used``.

    Args:
        a: The first operand.
        b: The second operand.
        used: The labels that are still needed, by other operands or the output.

    Returns:
        The product as an operand, for a later step. Its labels are the shared ones in ``used``,
        then those of a alone, then those of b alone.

    Raises: ShapeError if a rank is unknown, or extents of a shared label do not fit.
    """
    inner = "".join(c for c in a.labels if c in b.labels and c not in used)
    batch = "".join(c for c in a.labels if c in b.labels and c in used)
    rows = "".join(c for c in a.labels if c not in b.labels)
    columns = "".join(c for c in b.labels if c not in a.labels)
    labels = batch + rows + columns
    if not inner:
        return LabelledOperand(a.aligned(labels) * b.aligned(labels), labels)
    left, flip_a = a.as_matrices(batch, rows, inner)
    right, flip_b = b.as_matrices(batch, inner, columns)
    out = make("matmul", left, right, transpose_a=flip_a, transpose_b=flip_b)
    batch_shape = known_shape(out)[: len(batch)]
    shape = (*batch_shape, *(a.extent(c) for c in rows), *(b.extent(c) for c in columns))
    return LabelledOperand(make("reshape", out, shape=shape), labels)


def _cheapest_pair(operands: Sequence[LabelledOperand], output: str) -> tuple[int, int]:
    """Return the indices i < j of the two operands whose product has the fewest elements.

    A symbolic extent counts as `ASSUMED_EXTENT`; of equal pairs the first wins.

    Args:
        operands: Two or more operands; the chosen pair is contracted next.
        output: The labels of the result of the einsum.

    Raises: ShapeError if a rank is unknown.
    """
    smallest, pair = None, (0, 1)
    for j in range(len(operands)):
        for i in range(j):
            used = _used_labels(operands, (i, j), output)
            labels = {*operands[i].labels, *operands[j].labels} & set(used)
            size = 1
            for c in labels:
                owner = operands[i] if c in operands[i].labels else operands[j]
                n = owner.extent(c)
                size *= ASSUMED_EXTENT if isinstance(n, Size) else n
            if smallest is None or size < smallest:
                smallest, pair = size, (i, j)
    return pair


def _used_labels(operands: Sequence[LabelledOperand], pair: tuple[int, int], output: str) -> str:
    """Return the labels, as one string, of the output and of the operands outside ``pair``.

    A label may occur several times in it. ``pair`` holds two indices of ``operands``, which may be
    equal.
    """
    others = [o.labels for k, o in enumerate(operands) if k not in pair]
    return output + "".join(others)


def _einsum(node: Node, *entries: Entry) -> Entry:
    """Expand einsum: contract pairs of operands, the pair with the smallest product first.

    ``node`` has the parameter ``equation``. An equation that changes nothing gives the operand
    itself. Source: numpy.einsum.

    Raises:
        GraphError: If the equation is malformed or does not fit the operands.
        ShapeError: If extents of one label differ, a label twice in one operand has a symbolic
            extent, or a rank is unknown.
    """
    ranks = [len(known_shape(e)) for e in entries]
    subscripts = parse_equation(node, node.params["equation"], ranks)
    _check_extents(node, subscripts, entries)
    operands = [
        _merge_repeated_labels(LabelledOperand(entry, labels))
        for entry, labels in zip(entries, subscripts.inputs, strict=True)
    ]
    output = subscripts.output
    for k, operand in enumerate(operands):
        operands[k] = _sum_unused_labels(operand, _used_labels(operands, (k, k), output))
    while len(operands) > 1:
        i, j = _cheapest_pair(operands, output)
        product = _contract_pair(operands[i], operands[j], _used_labels(operands, (i, j), output))
        operands = [o for k, o in enumerate(operands) if k not in (i, j)] + [product]
    return operands[0].transposed(output)


composite(
    "einsum",
    inputs=-1,
    expand=_einsum,
    doc="the sums of products that an equation such as 'ij,jk->ik' describes",
    params={"equation": REQUIRED},
    types=NUMBERS,
)


# Products of two arrays over given axes.


def _labels(count: int) -> list[str]:
    """Return ``count`` different labels for an einsum equation: letters from "a" on in Unicode."""
    letters = (chr(c) for c in range(ord("a"), sys.maxunicode) if chr(c).isalpha())
    return list(islice((c for c in letters if c not in ELLIPSIS_LABELS), count))


def _tensordot(node: Node, a: Entry, b: Entry) -> Entry:
    """Expand tensordot to an einsum. Source: numpy.tensordot.

    The parameter ``axes`` of ``node`` is a number of axes, last of a and first of b, or a pair of
    ints or tuples.

    Raises:
        ShapeError: If the number of axes is negative or above the rank of an operand, an axis is
            out of range, no int or listed twice, extents differ, or a rank is unknown.
        GraphError: If ``axes`` is neither an int nor as many axes of a as of b.
        DTypeError: If the dtypes differ.
    """
    rank_a, rank_b = len(known_shape(a)), len(known_shape(b))
    axes = node.params["axes"]
    if type(axes) is int:
        if not 0 <= axes <= min(rank_a, rank_b):
            raise ShapeError(
                f"{node.where} needs at most {min(rank_a, rank_b)} axes to sum, got {axes}"
            )
        left, right = tuple(range(rank_a - axes, rank_a)), tuple(range(axes))
    else:
        pair = axes if isinstance(axes, tuple) and len(axes) == 2 else None
        sides = [s if isinstance(s, tuple) else (s,) for s in pair or ()]
        if pair is None or len(sides[0]) != len(sides[1]):
            raise GraphError(
                f"{node.where} needs a number, or the axes of a and as many of b, as axes, got "
                f"{axes!r}"
            )
        left = tuple(normalize_axis(node, rank_a, k, "axes") for k in sides[0])
        right = tuple(normalize_axis(node, rank_b, k, "axes") for k in sides[1])
        normalize_axes(node, rank_a, left, "axes")
        normalize_axes(node, rank_b, right, "axes")
    labels = _labels(rank_a + rank_b)
    labels_a, labels_b = labels[:rank_a], labels[rank_a:]
    for i, j in zip(left, right, strict=True):
        labels_b[j] = labels_a[i]
    out = [c for c in (*labels_a, *labels_b) if (c in labels_a) != (c in labels_b)]
    equation = f"{''.join(labels_a)},{''.join(labels_b)}->{''.join(out)}"
    return make("einsum", a, b, equation=equation)


def _vecdot(node: Node, a: Entry, b: Entry) -> Entry:
    """Expand vecdot: the sums of products along the parameter ``axis`` of ``node``.

    It counts from the end, as both operands broadcast; the axis itself does not.

    Raises: ShapeError if ``axis`` is no negative int within both ranks, the lengths summed differ,
    1 and another too, other axes do not broadcast, or a rank is unknown.
    """
    rank = min(len(known_shape(a)), len(known_shape(b)))
    axis = node.params["axis"]
    if type(axis) is not int or not -rank <= axis < 0:
        raise ShapeError(f"{node.where} needs an axis from {-rank} to -1, got {axis!r}")
    agree(node, known_shape(a)[axis], known_shape(b)[axis], "the axis that is summed")
    return make("reduce_sum", a * b, axis=axis)


def _inner(node: Node, a: Entry, b: Entry) -> Entry:
    """Expand inner: sum over the last axes of a and b. Source: numpy.inner.

    If either is a scalar, the result is their product. ``node`` is not used.

    Raises: ShapeError if the last axes differ, a scalar aside, or a rank is unknown; DTypeError if
    the dtypes of others than scalars differ.
    """
    rank_a, rank_b = len(known_shape(a)), len(known_shape(b))
    if not rank_a or not rank_b:
        return a * b
    return make("tensordot", a, b, axes=((rank_a - 1,), (rank_b - 1,)))


def _dot(node: Node, a: Entry, b: Entry) -> Entry:
    """Expand dot: sum over the last axis of a and the last but one of b, or the only one.

    If either is a scalar, the result is their product. ``node`` is not used. Source: numpy.dot.

    Raises: ShapeError if these axes differ, or a rank is unknown.
    """
    rank_a, rank_b = len(known_shape(a)), len(known_shape(b))
    if not rank_a or not rank_b:
        return a * b
    return make("tensordot", a, b, axes=((rank_a - 1,), (max(rank_b - 2, 0),)))


def _bilinear(node: Node, a: Entry, b: Entry, weight: Entry) -> Entry:
    """Expand bilinear: for each k the sum over i and j of a[i] weight[k, i, j] b[j].

    ``node`` is not used.

    Raises: GraphError if the weight has not rank 3 or another operand is a scalar, ShapeError if
    extents differ.
    """
    return make("einsum", a, weight, b, equation="...i,kij,...j->...k")


def _cross(node: Node, a: Entry, b: Entry) -> Entry:
    """Expand cross: the cross product of vectors of a and b along the parameter ``axis``.

    They have three elements; other axes broadcast. ``node`` has the parameter.

    Raises: ShapeError if the axis has another length in an operand, is no int or out of range,
    other axes do not broadcast, or a rank is unknown.
    """
    axis = node.params["axis"]
    components = []
    for x in (a, b):
        shape = known_shape(x)
        k = normalize_axis(node, len(shape), axis)
        agree(node, shape[k], 3, "the axis of vectors in space")
        components.append(_vector_components(x, k))
    (a0, a1, a2), (b0, b1, b2) = components
    return make("concat", a1 * b2 - a2 * b1, a2 * b0 - a0 * b2, a0 * b1 - a1 * b0, axis=axis)


def _vector_components(x: Entry, axis: int) -> list[Entry]:
    """Return the three slices of ``x`` of length 1 along ``axis``, an int >= 0 of length 3.

    Raises: ShapeError if a rank is unknown.
    """
    shape = known_shape(x)
    size = tuple(1 if k == axis else n for k, n in enumerate(shape))
    begins = [tuple(i if k == axis else 0 for k in range(len(shape))) for i in range(3)]
    return [make("slice", x, begin=begin, size=size) for begin in begins]


composite(
    "tensordot",
    inputs=2,
    expand=_tensordot,
    doc="the sums of products over axes last axes of a and first axes of b, or over the axes "
    "listed for each; the other axes of a, then those of b remain",
    params={"axes": 2},
    types=NUMBERS,
)
composite(
    "vecdot",
    inputs=2,
    expand=_vecdot,
    doc="the sums of products along axis, which is counted from the end; other axes broadcast",
    params={"axis": -1},
    types=NUMBERS,
)
composite(
    "inner",
    inputs=2,
    expand=_inner,
    doc="the sums of products over the last axes of a and b: (…, k), (…, k) -> the other axes of "
    "a, then those of b",
    types=NUMBERS,
)
composite(
    "dot",
    inputs=2,
    expand=_dot,
    doc="the sums of products over the last axis of a and the last but one of b, as numpy.dot",
    types=NUMBERS,
)
composite(
    "matvec",
    inputs=2,
    expand=lambda node, a, v: make("einsum", a, v, equation="...ij,...j->...i"),
    doc="the products of matrices and vectors: (…, m, k), (…, k) -> (…, m)",
    types=NUMBERS,
)
composite(
    "vecmat",
    inputs=2,
    expand=lambda node, v, a: make("einsum", v, a, equation="...i,...ij->...j"),
    doc="the products of vectors and matrices: (…, k), (…, k, n) -> (…, n)",
    types=NUMBERS,
)
composite(
    "bilinear",
    inputs=["a", "b", "weight"],
    expand=_bilinear,
    doc="for each k the sum over i and j of a[i] * weight[k, i, j] * b[j]: (…, i), (…, j), (k, i, "
    "j) -> (…, k)",
)
composite(
    "cross",
    inputs=2,
    expand=_cross,
    doc="the cross product of vectors of three elements along axis",
    params={"axis": -1},
    types=common_dtype("if"),
)


# Products of several matrices.


def _matrix_power(node: Node, x: Entry) -> Entry:
    """Expand matrix_power by repeated squaring; a negative power inverts first, 0 gives identities.

    ``x`` has floats; the power 1 gives ``x`` itself.

    Raises: GraphError if the parameter ``n`` of ``node`` is no int, ShapeError if the rank is below
    2 or unknown, or the matrices are not square, DTypeError if ``n`` is 0 and the dtype of ``x``
    unknown.
    """
    n, shape = int_param(node, "n", GraphError), known_shape(x)
    if len(shape) < 2:
        raise ShapeError(f"{node.where} needs square matrices, got {show_shape(shape)}")
    agree(node, shape[-1], shape[-2], "rows and columns")
    if n < 0:
        x, n = make("inv", x), -n
    if n == 0:
        identity = make("eye", n_rows=shape[-1], dtype=known_dtype(x).name)
        return make("broadcast_to", identity, shape=shape)
    out: Entry | None = None
    for bit in reversed(bin(n)[2:]):
        if bit == "1":
            out = x if out is None else make("matmul", out, x)
        x = make("matmul", x, x)
    assert out is not None
    return out


def _multi_dot(node: Node, *matrices: Entry) -> Entry:
    """Expand multi_dot; the first and last operands may be vectors, a row and a column.

    Their axes of length 1 are removed from the result. Errors name ``node``.

    Source: Cormen et al., Introduction to Algorithms, section 14.2.

    Raises:
        GraphError: If there are fewer than two operands.
        ShapeError: If another operand than the first and last is no matrix, one of these is neither
            a matrix nor a vector, the shapes do not fit, or a rank is unknown.
        DTypeError: If the dtypes differ.
    """
    if len(matrices) < 2:
        raise GraphError(f"{node.where} needs at least two inputs, got {len(matrices)}")
    ranks = [len(known_shape(e)) for e in matrices]
    if any(r != 2 for r in ranks[1:-1]) or not {ranks[0], ranks[-1]} <= {1, 2}:
        raise ShapeError(
            f"{node.where} needs matrices, with vectors at the ends only, got ranks {ranks}"
        )
    chain = list(matrices)
    if ranks[0] == 1:
        chain[0] = make("expand_dims", chain[0], axis=0)
    if ranks[-1] == 1:
        chain[-1] = make("expand_dims", chain[-1], axis=1)
    out = _multiply_chain(chain)
    vector_axes = (0,) * (ranks[0] == 1) + (1,) * (ranks[-1] == 1)
    return make("squeeze", out, axis=vector_axes) if vector_axes else out


def _multiply_chain(chain: list[Entry]) -> Entry:
    """Return the product of matrices in the order with the fewest scalar multiplications.

    ``chain`` has one or more entries of rank 2; a single one is returned itself. A symbolic extent
    counts as `ASSUMED_EXTENT`.

    Raises: ShapeError if neighbours do not fit, DTypeError if their dtypes differ.
    """
    extents = [known_shape(chain[0])[0], *(known_shape(e)[1] for e in chain)]
    split = _best_splits([ASSUMED_EXTENT if isinstance(n, Size) else n for n in extents])
    last = len(chain) - 1
    products: dict[tuple[int, int], Entry] = {(i, i): e for i, e in enumerate(chain)}
    pending = [(0, last)]
    while pending:
        i, j = pending[-1]
        if (i, j) in products:
            pending.pop()
            continue
        operands = (i, split[i, j]), (split[i, j] + 1, j)
        missing = [p for p in operands if p not in products]
        if missing:
            pending += missing
        else:
            products[i, j] = make("matmul", products[operands[0]], products[operands[1]])
    return products[0, last]


def _best_splits(sizes: list[int]) -> dict[tuple[int, int], int]:
    """Return where to split each part of a chain of matrices with the fewest multiplications.

    Args:
        sizes: Matrix k has ``sizes[k]`` rows and ``sizes[k + 1]`` columns.

    Returns:
        For each pair (i, j) with i < j, the part of matrices i to j: the last matrix of the left
        factor.
    """
    count = len(sizes) - 1
    cost = {(i, i): 0 for i in range(count)}
    split: dict[tuple[int, int], int] = {}
    for length in range(2, count + 1):
        for i in range(count - length + 1):
            j = i + length - 1
            options = [
                (cost[i, k] + cost[k + 1, j] + sizes[i] * sizes[k + 1] * sizes[j + 1], k)
                for k in range(i, j)
            ]
            cost[i, j], split[i, j] = min(options)
    return split


composite(
    "matrix_power",
    inputs=1,
    expand=_matrix_power,
    doc="the product of n copies of square matrices x; for negative n of their inverses",
    params={"n": REQUIRED},
)
composite(
    "multi_dot",
    inputs=-1,
    expand=_multi_dot,
    doc="the product of all inputs, matrices, in the order of the fewest multiplications; the "
    "first and last may be vectors",
    types=NUMBERS,
)
