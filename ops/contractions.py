"""Contractions: sums of products over named axes, as transposes around products of matrices.

Where nothing is summed, an elementwise product does, which fuses.
"""

from __future__ import annotations

from collections.abc import Sequence

from passkit.errors import GraphError, ShapeError
from passkit.graph.infer import agree, show_shape
from passkit.graph.node import Entry, Node, known_shape
from passkit.graph.op import REQUIRED
from passkit.ops.composites import composite
from passkit.ops.helpers import common_dtype, int_param, make, normalize_axis
from passkit.ops.subscripts import Subscripts, parsed
from passkit.values.size import Extent, Size, numel

NUMBERS = common_dtype("iuf")


class _Operand:
    """An entry and the labels of its axes."""

    def __init__(self, entry: Entry, labels: str) -> None:
        self.entry, self.labels = entry, labels

    def extent(self, label: str) -> Extent:
        return known_shape(self.entry)[self.labels.index(label)]

    def ordered(self, labels: str) -> Entry:
        """The entry with its axes in this order."""
        if labels == self.labels:
            return self.entry
        return make("transpose", self.entry, axes=tuple(self.labels.index(c) for c in labels))


def _diagonal(operand: _Operand) -> _Operand:
    """Labels that stand twice become one: the elements where both indices are equal."""
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
        begin, size = (0,) * (len(shape) - 1), (*shape[:-2], n)
        step = (*(1,) * (len(shape) - 2), n + 1)
        entry = make("slice", flat, begin=begin, size=size, step=step)
        labels = "".join(labels[k] for k in rest) + label
    return _Operand(entry, labels)


def _summed(operand: _Operand, kept: str) -> _Operand:
    """Labels that nothing else asks for are summed."""
    gone = tuple(k for k, c in enumerate(operand.labels) if c not in kept)
    if not gone:
        return operand
    labels = "".join(c for c in operand.labels if c in kept)
    return _Operand(make("reduce_sum", operand.entry, axis=gone), labels)


def _joined(a: _Operand, b: _Operand, kept: str) -> _Operand:
    """The product of two operands, summed over labels that are not kept."""
    inner = "".join(c for c in a.labels if c in b.labels and c not in kept)
    batch = "".join(c for c in a.labels if c in b.labels and c in kept)
    rows = "".join(c for c in a.labels if c not in b.labels)
    columns = "".join(c for c in b.labels if c not in a.labels)
    if not inner:
        return _Operand(
            _spread(a, batch + rows + columns) * _spread(b, batch + rows + columns),
            batch + rows + columns,
        )
    left, flip_a = _matrix(a, batch, rows, inner)
    right, flip_b = _matrix(b, batch, inner, columns)
    out = make("matmul", left, right, transpose_a=flip_a, transpose_b=flip_b)
    lead = known_shape(out)[: len(batch)]
    shape = (*lead, *(a.extent(c) for c in rows), *(b.extent(c) for c in columns))
    return _Operand(make("reshape", out, shape=shape), batch + rows + columns)


def _spread(operand: _Operand, labels: str) -> Entry:
    """The operand with axes of length 1 where it has none of the labels."""
    own = "".join(c for c in labels if c in operand.labels)
    extents = [operand.extent(c) if c in own else 1 for c in labels]
    return make("reshape", operand.ordered(own), shape=tuple(extents))


def _matrix(operand: _Operand, batch: str, rows: str, columns: str) -> tuple[Entry, bool]:
    """The operand as (*batch, rows, columns), and whether it lies transposed: no copy is made."""
    flip = operand.labels == batch + columns + rows and operand.labels != batch + rows + columns
    first, second = (columns, rows) if flip else (rows, columns)
    entry = operand.ordered(batch + first + second)
    shape = known_shape(entry)
    cut = len(batch) + len(first)
    return make(
        "reshape", entry, shape=(*shape[: len(batch)], numel(shape[len(batch) : cut]),
                                 numel(shape[cut:])),
    ), flip  # fmt: skip


def _cheapest(operands: Sequence[_Operand], wanted: str) -> tuple[int, int]:
    """The pair whose product is smallest: joined first. Unknown extents count as 64."""
    best, pair = None, (0, 1)
    for j in range(len(operands)):
        for i in range(j):
            kept = _kept(operands, (i, j), wanted)
            labels = {*operands[i].labels, *operands[j].labels} & set(kept)
            size = 1
            for c in labels:
                owner = operands[i] if c in operands[i].labels else operands[j]
                n = owner.extent(c)
                size *= 64 if isinstance(n, Size) else n
            if best is None or size < best:
                best, pair = size, (i, j)
    return pair


def _kept(operands: Sequence[_Operand], pair: tuple[int, int], wanted: str) -> str:
    """The labels that the result or another operand asks for."""
    others = [o.labels for k, o in enumerate(operands) if k not in pair]
    return wanted + "".join(others)


def _checked(node: Node, found: Subscripts, entries: Sequence[Entry]) -> None:
    """Extents of a label agree. Raises: ShapeError naming it."""
    extents: dict[str, Extent] = {}
    for labels, entry in zip(found.inputs, entries, strict=True):
        for c, n in zip(labels, known_shape(entry), strict=True):
            if n == 1 and c in found.broadcast:
                continue
            extents[c] = agree(node, extents[c], n, f"label {c!r}") if c in extents else n


def _einsum(node: Node, *entries: Entry) -> Entry:
    """Source: numpy.einsum; operands are joined in pairs, that with the smallest product first."""
    shapes = [known_shape(e) for e in entries]
    found = parsed(node, node.params["equation"], [len(s) for s in shapes])
    _checked(node, found, entries)
    operands = [
        _diagonal(_Operand(e, labels)) for e, labels in zip(entries, found.inputs, strict=True)
    ]
    for k, operand in enumerate(operands):
        operands[k] = _summed(operand, _kept(operands, (k, k), found.output))
    while len(operands) > 1:
        i, j = _cheapest(operands, found.output)
        joined = _joined(operands[i], operands[j], _kept(operands, (i, j), found.output))
        operands = [o for k, o in enumerate(operands) if k not in (i, j)] + [joined]
    return operands[0].ordered(found.output)


composite(
    "einsum",
    -1,
    _einsum,
    "the sums of products that an equation such as 'ij,jk->ik' describes",
    {"equation": REQUIRED},
    types=NUMBERS,
)


def _tensordot(node: Node, a: Entry, b: Entry) -> Entry:
    """Source: numpy.tensordot."""
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
    letters = [chr(ord("a") + k) for k in range(rank_a + rank_b)]
    names_a, names_b = letters[:rank_a], letters[rank_a:]
    for i, j in zip(left, right, strict=True):
        names_b[j] = names_a[i]
    out = [c for c in (*names_a, *names_b) if (c in names_a) != (c in names_b)]
    equation = f"{''.join(names_a)},{''.join(names_b)}->{''.join(out)}"
    return make("einsum", a, b, equation=equation)


composite(
    "tensordot",
    2,
    _tensordot,
    "sums of products over the last axes of a and the first of b, or over the axes given for each",
    {"axes": 2},
    types=NUMBERS,
)


def _vecdot(node: Node, a: Entry, b: Entry) -> Entry:
    rank = min(len(known_shape(a)), len(known_shape(b)))
    axis = node.params["axis"]
    if type(axis) is not int or not -rank <= axis < 0:
        raise ShapeError(f"{node.where} needs an axis from {-rank} to -1, got {axis!r}")
    agree(node, known_shape(a)[axis], known_shape(b)[axis], "the axis that is summed")
    return make("reduce_sum", a * b, axis=axis)


composite(
    "vecdot", 2, _vecdot, "the sum of products along axis, counted from the end", {"axis": -1},
    types=NUMBERS,
)  # fmt: skip


def _inner(node: Node, a: Entry, b: Entry) -> Entry:
    rank_a, rank_b = len(known_shape(a)), len(known_shape(b))
    if not rank_a or not rank_b:
        return a * b
    return make("tensordot", a, b, axes=((rank_a - 1,), (rank_b - 1,)))


def _dot(node: Node, a: Entry, b: Entry) -> Entry:
    """Source: numpy.dot: the last axis of a, and the last but one of b."""
    rank_a, rank_b = len(known_shape(a)), len(known_shape(b))
    if not rank_a or not rank_b:
        return a * b
    return make("tensordot", a, b, axes=((rank_a - 1,), (max(rank_b - 2, 0),)))


composite("inner", 2, _inner, "sums of products over the last axes", types=NUMBERS)
composite(
    "dot", 2, _dot, "sums of products over the last axis of a and the last but one of b",
    types=NUMBERS,
)  # fmt: skip
composite(
    "matvec", 2, lambda node, a, v: make("einsum", a, v, equation="...ij,...j->...i"),
    "matrices times vectors", types=NUMBERS,
)  # fmt: skip
composite(
    "vecmat", 2, lambda node, v, a: make("einsum", v, a, equation="...i,...ij->...j"),
    "vectors times matrices", types=NUMBERS,
)  # fmt: skip


def _bilinear(node: Node, a: Entry, b: Entry, weight: Entry) -> Entry:
    return make("einsum", a, weight, b, equation="...i,kij,...j->...k")


composite(
    "bilinear", ["a", "b", "weight"], _bilinear,
    "(…, i), (…, j), (k, i, j) -> (…, k): a form of a and b for each k",
)  # fmt: skip


def _cross(node: Node, a: Entry, b: Entry) -> Entry:
    axis = node.params["axis"]
    parts = []
    for x in (a, b):
        shape = known_shape(x)
        k = normalize_axis(node, len(shape), axis)
        agree(node, shape[k], 3, "the axis of vectors in space")
        parts.append(_thirds(x, k))
    (a0, a1, a2), (b0, b1, b2) = parts
    return make("concat", a1 * b2 - a2 * b1, a2 * b0 - a0 * b2, a0 * b1 - a1 * b0, axis=axis)


def _thirds(x: Entry, axis: int) -> list[Entry]:
    shape = known_shape(x)
    size = tuple(1 if k == axis else n for k, n in enumerate(shape))
    return [
        make("slice", x, begin=tuple(i if k == axis else 0 for k in range(len(shape))), size=size)
        for i in range(3)
    ]


composite("cross", 2, _cross, "the vector at right angles to both", {"axis": -1},
          types=common_dtype("if"))  # fmt: skip


def _power(node: Node, x: Entry) -> Entry:
    n, shape = int_param(node, "n", GraphError), known_shape(x)
    if len(shape) < 2:
        raise ShapeError(f"{node.where} needs square matrices, got {show_shape(shape)}")
    agree(node, shape[-1], shape[-2], "rows and columns")
    if n < 0:
        x, n = make("inv", x), -n
    if n == 0:
        size = shape[-1]
        return make("broadcast_to", make("eye", n_rows=size, dtype=x.dtype), shape=shape)
    out: Entry | None = None
    for bit in reversed(bin(n)[2:]):
        if bit == "1":
            out = x if out is None else make("matmul", out, x)
        x = make("matmul", x, x)
    assert out is not None
    return out


composite("matrix_power", 1, _power, "x times itself, n times; its inverse where n < 0",
          {"n": REQUIRED})  # fmt: skip


def _chain(node: Node, *matrices: Entry) -> Entry:
    """Source: Cormen et al., Introduction to Algorithms, section 14.2; vectors at the ends."""
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
    out = _best(chain)
    gone = (0,) * (ranks[0] == 1) + (1,) * (ranks[-1] == 1)
    return make("squeeze", out, axis=gone) if gone else out


def _best(chain: list[Entry]) -> Entry:
    """The product in the order that multiplies least; unknown extents count as 64."""
    extents = [known_shape(chain[0])[0], *(known_shape(e)[1] for e in chain)]
    sizes = [64 if isinstance(n, Size) else n for n in extents]
    count = len(chain)
    cost = {(i, i): 0 for i in range(count)}
    cut: dict[tuple[int, int], int] = {}
    for length in range(2, count + 1):
        for i in range(count - length + 1):
            j = i + length - 1
            options = [
                (cost[i, k] + cost[k + 1, j] + sizes[i] * sizes[k + 1] * sizes[j + 1], k)
                for k in range(i, j)
            ]
            cost[i, j], cut[i, j] = min(options)
    made: dict[tuple[int, int], Entry] = {(i, i): e for i, e in enumerate(chain)}
    todo = [(0, count - 1)]
    while todo:
        i, j = todo[-1]
        if (i, j) in made:
            todo.pop()
            continue
        parts = (i, cut[i, j]), (cut[i, j] + 1, j)
        missing = [p for p in parts if p not in made]
        if missing:
            todo += missing
        else:
            made[i, j] = make("matmul", made[parts[0]], made[parts[1]])
    return made[0, count - 1]


composite("multi_dot", -1, _chain, "the product of all inputs, in the cheapest order",
          types=NUMBERS)  # fmt: skip
