"""Gradients of linear algebra, as formulas of matrices.

Source: Giles 2008, Collected matrix derivative results; Townsend 2016, Differentiating the
singular value decomposition; Golub and Pereyra 1973 for the pseudo-inverse. They hold where the
factors are unique: for eigenvalues and singular values that differ, and for full column rank.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from passkit.errors import GraphError
from passkit.graph.node import Entry, Node, known_shape
from passkit.ops.helpers import make
from passkit.values.size import Size

Rule = Callable[..., Sequence[Entry | None]]


def _t(x: Entry) -> Entry:
    return make("matrix_transpose", x)


def _mm(*factors: Entry) -> Entry:
    out = factors[0]
    for x in factors[1:]:
        out = make("matmul", out, x)
    return out


def _column(x: Entry) -> Entry:
    return make("expand_dims", x, axis=-1)


def _row(x: Entry) -> Entry:
    return make("expand_dims", x, axis=-2)


def _eye(like: Entry) -> Entry:
    """The identity of the last axis of ``like``."""
    return make("eye", n_rows=known_shape(like)[-1], dtype=like.dtype)


def _or_zero(dy: Entry | None, result: Entry) -> Entry:
    return make("zeros_like", result) if dy is None else dy


def _results(node: Node) -> list[Entry]:
    return list(node.entries)


def _cholesky(node: Node, dy: Entry) -> list[Entry]:
    lower = _t(node.entries[0]) if node.params["upper"] else node.entries[0]
    dy = _t(dy) if node.params["upper"] else dy
    inner = make("tril", _mm(_t(lower), dy))
    half = inner * (1.0 - _eye(lower) * 0.5)
    left = make("matrix_triangular_solve", lower, half, adjoint=True)
    full = _t(make("matrix_triangular_solve", lower, _t(left), adjoint=True))
    return [(full + _t(full)) * 0.5]


def _det(node: Node, dy: Entry) -> list[Entry]:
    factor = _column(_column(dy * node.entries[0]))
    return [factor * _t(make("inv", node.inputs[0]))]


def _slogdet(node: Node, dsign: Entry | None, dlog: Entry | None) -> list[Entry | None]:
    if dlog is None:
        return [None]
    return [_column(_column(dlog)) * _t(make("inv", node.inputs[0]))]


def _inv(node: Node, dy: Entry) -> list[Entry]:
    y = _t(node.entries[0])
    return [-_mm(y, dy, y)]


def _pinv(node: Node, dy: Entry) -> list[Entry]:
    a, p = node.inputs[0], node.entries[0]
    rows = _eye(_mm(a, p)) - _mm(a, p)
    columns = _eye(_mm(p, a)) - _mm(p, a)
    first = -_mm(_t(p), dy, _t(p))
    return [first + _mm(rows, _t(dy), p, _t(p)) + _mm(_t(p), p, _t(dy), columns)]


def _solve(node: Node, dy: Entry) -> list[Entry]:
    a, x = node.inputs[0], node.entries[0]
    flip = node.params["adjoint"]
    db = make("matrix_solve", a, dy, adjoint=not flip)
    return [-_mm(x, _t(db)) if flip else -_mm(db, _t(x)), db]


def _triangular(node: Node, dy: Entry) -> list[Entry]:
    a, x = node.inputs[0], node.entries[0]
    lower, flip = node.params["lower"], node.params["adjoint"]
    db = make("matrix_triangular_solve", a, dy, lower=lower, adjoint=not flip)
    da = -_mm(x, _t(db)) if flip else -_mm(db, _t(x))
    return [make("tril" if lower else "triu", da), db]


def _gaps(values: Entry) -> Entry:
    """1 / (v_j - v_i), and 0 where i = j."""
    one = _eye(values)
    return (1.0 - one) / (_row(values) - _column(values) + one)


def _eigh(node: Node, dw: Entry | None, dv: Entry | None) -> list[Entry]:
    values, vectors = _results(node)
    inner = make("diag_embed", _or_zero(dw, values))
    if dv is not None:
        inner = inner + _gaps(values) * _mm(_t(vectors), dv)
    full = _mm(vectors, inner, _t(vectors))
    return [(full + _t(full)) * 0.5]


def _qr(node: Node, dq: Entry | None, dr: Entry | None) -> list[Entry]:
    q, r = _results(node)
    rows, columns = known_shape(node.inputs[0])[-2:]
    wide = isinstance(rows, int) and isinstance(columns, int) and rows < columns
    if isinstance(rows, Size) or isinstance(columns, Size) or wide or (
        node.params["mode"] == "complete" and rows != columns
    ):
        raise GraphError(
            f"{node.where} has a gradient for at least as many rows as columns, both known, and "
            f"mode 'reduced'; got {rows} rows, {columns} columns and mode {node.params['mode']!r}"
        )
    dq, dr = _or_zero(dq, q), _or_zero(dr, r)
    m = _mm(r, _t(dr)) - _mm(_t(dq), q)
    below = make("tril", m, k=-1)
    both = below + _t(below) + m * _eye(m)
    right = _t(dq + _mm(q, both))
    return [_t(make("matrix_triangular_solve", r, right, lower=False))]


def _svd(node: Node, du: Entry | None, ds: Entry | None, dvh: Entry | None) -> list[Entry]:
    u, s, vh = _results(node)
    if node.params["full_matrices"]:
        rows, columns = known_shape(node.inputs[0])[-2:]
        if rows != columns:
            raise GraphError(
                f"{node.where} has a gradient for full_matrices=False, got {rows} rows and "
                f"{columns} columns"
            )
    v = _t(vh)
    inner = make("diag_embed", _or_zero(ds, s))
    if du is None and dvh is None:
        return [_mm(u, inner, vh)]
    du, dv = _or_zero(du, u), _t(_or_zero(dvh, vh))
    f = _gaps(s * s)
    j, k = f * _mm(_t(u), du), f * _mm(_t(v), dv)
    inner = inner + (j + _t(j)) * _row(s) + _column(s) * (k + _t(k))
    out = _mm(u, inner, vh)
    scaled_u, scaled_v = du / _row(s), dv / _row(s)
    out = out + _mm(scaled_u - _mm(u, _t(u), scaled_u), vh)
    return [out + _mm(u, _t(scaled_v - _mm(v, _t(v), scaled_v)))]


def _svdvals(node: Node, dy: Entry) -> list[Entry]:
    u, _, vh = make("svd", node.inputs[0])
    return [_mm(u * _row(dy), vh)]


def _expm(node: Node, dy: Entry) -> list[Entry]:
    """Source: Mathias 1996: the exponential of a block triangle holds the derivative."""
    x = _t(node.inputs[0])
    n = known_shape(x)[-1]
    top = make("concat", x, dy, axis=-1)
    bottom = make("concat", make("zeros_like", x), x, axis=-1)
    block = make("expm", make("concat", top, bottom, axis=-2))
    rank = len(known_shape(x))
    begin = (*(0,) * (rank - 1), n)
    return [make("slice", block, begin=begin, size=known_shape(x))]


RULES: dict[str, Rule] = {
    **{"cholesky": _cholesky, "det": _det, "slogdet": _slogdet, "inv": _inv, "pinv": _pinv},
    **{"matrix_solve": _solve, "matrix_triangular_solve": _triangular, "eigh": _eigh},
    **{"qr": _qr, "svd": _svd, "svdvals": _svdvals, "expm": _expm},
    "matrix_rank": lambda node, dy: [None],
}
