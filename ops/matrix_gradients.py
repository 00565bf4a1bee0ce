"""Gradients of the matrix operators in `decompositions` (FGradient), as formulas of matrices.

Sources: Giles 2008, Collected matrix derivative results; Townsend 2016, Differentiating the
singular value decomposition; Golub and Pereyra 1973 for the pseudo-inverse. They hold where the
factors are unique: for eigenvalues and singular values that differ, and for full column rank.

Each function gets the node and the gradient of each of its outputs, None where that is 0, and
returns the gradient of each input.
"""

from __future__ import annotations

from passkit.errors import GraphError
from passkit.graph.node import Entry, Node, known_dtype, known_shape
from passkit.ops.helpers import make
from passkit.values.size import Size

# Matrices and vectors in the last axes.


def _transpose(x: Entry) -> Entry:
    """Return matrices transposed in the last two axes. Raises: ShapeError for a rank below 2."""
    return make("matrix_transpose", x)


def _matmul(*factors: Entry) -> Entry:
    """Return the matrix product of all ``factors``, one or more, from left to right.

    Raises: ShapeError if they do not fit.
    """
    product = factors[0]
    for factor in factors[1:]:
        product = make("matmul", product, factor)
    return product


def _as_column(x: Entry) -> Entry:
    """Return ``x`` with an axis of length 1 at the end."""
    return make("expand_dims", x, axis=-1)


def _as_row(x: Entry) -> Entry:
    """Return ``x`` with an axis of length 1 before the last."""
    return make("expand_dims", x, axis=-2)


def _identity_like(x: Entry) -> Entry:
    """Return the identity matrix of the size of the last axis of ``x``, without batch axes.

    Raises: ShapeError if the rank of ``x`` is unknown, DTypeError if its dtype is.
    """
    return make("eye", n_rows=known_shape(x)[-1], dtype=known_dtype(x).name)


def _or_zero(dy: Entry | None, output: Entry) -> Entry:
    """Return ``dy``, or zeros of the shape and dtype of ``output`` where it is None."""
    return make("zeros_like", output) if dy is None else dy


def _inverse_gaps(values: Entry) -> Entry:
    """Return the matrix of 1 / (v_j - v_i) of vectors v = ``values``, and 0 where i = j.

    Row i, column j. It is infinite where two values are equal.

    Raises: ShapeError if a rank is unknown, DTypeError if the dtype is.
    """
    identity = _identity_like(values)
    return (1.0 - identity) / (_as_row(values) - _as_column(values) + identity)


# Determinants, inverses and linear equations.


def cholesky_gradient(node: Node, dy: Entry) -> list[Entry]:
    """Return the gradient of `cholesky` by its matrix, which is symmetric.

    ``dy`` is the gradient of the factor that ``node`` computes, upper or lower.

    Raises: ShapeError if a rank is unknown, DTypeError if the dtype is.
    """
    lower = _transpose(node.entries[0]) if node.params["upper"] else node.entries[0]
    dy = _transpose(dy) if node.params["upper"] else dy
    inner = make("tril", _matmul(_transpose(lower), dy))
    inner = inner * (1.0 - _identity_like(lower) * 0.5)
    left = make("matrix_triangular_solve", lower, inner, adjoint=True)
    full = _transpose(make("matrix_triangular_solve", lower, _transpose(left), adjoint=True))
    return [(full + _transpose(full)) * 0.5]


def det_gradient(node: Node, dy: Entry) -> list[Entry]:
    """Return the gradient of `det` by its matrix A: dy det(A) inv(A).T.

    ``dy`` is that of the determinants. Where A is singular, computing ``inv`` raises FeedError.
    ``node`` is the forward node.
    """
    factor = _as_column(_as_column(dy * node.entries[0]))
    return [factor * _transpose(make("inv", node.inputs[0]))]


def slogdet_gradient(node: Node, dsign: Entry | None, dlog: Entry | None) -> list[Entry | None]:
    """Return the gradient of `slogdet` by its matrix A: dlog inv(A).T.

    ``dsign`` and ``dlog`` are the gradients of its results; if ``dlog`` is None, so is the
    gradient. The sign is constant in pieces, so that ``dsign`` counts for nothing. ``node`` is the
    forward node.
    """
    if dlog is None:
        return [None]
    return [_as_column(_as_column(dlog)) * _transpose(make("inv", node.inputs[0]))]


def inv_gradient(node: Node, dy: Entry) -> list[Entry]:
    """Return the gradient of `inv` by its matrix A: -inv(A).T dy inv(A).T.

    ``dy`` is the gradient of the inverse. ``node`` is the forward node.
    """
    y = _transpose(node.entries[0])
    return [-_matmul(y, dy, y)]


def pinv_gradient(node: Node, dy: Entry) -> list[Entry]:
    """Return the gradient of `pinv` by its matrix; ``dy`` is the gradient of the pseudo-inverse.

    ``node`` is the forward node.

    Source: Golub and Pereyra 1973.

    Raises: ShapeError if a rank is unknown, DTypeError if the dtype is.
    """
    a, p = node.inputs[0], node.entries[0]
    row_projection = _identity_like(_matmul(a, p)) - _matmul(a, p)
    column_projection = _identity_like(_matmul(p, a)) - _matmul(p, a)
    inverse_part = -_matmul(_transpose(p), dy, _transpose(p))
    row_part = _matmul(row_projection, _transpose(dy), p, _transpose(p))
    column_part = _matmul(_transpose(p), p, _transpose(dy), column_projection)
    return [inverse_part + row_part + column_part]


def solve_gradient(node: Node, dy: Entry) -> list[Entry]:
    """Return the gradients of `matrix_solve` by the matrix and by the right-hand side.

    ``dy`` is the gradient of the solution. ``node`` is the forward node, with the parameter
    ``adjoint``.
    """
    a, x = node.inputs[0], node.entries[0]
    adjoint = node.params["adjoint"]
    db = make("matrix_solve", a, dy, adjoint=not adjoint)
    da = -_matmul(x, _transpose(db)) if adjoint else -_matmul(db, _transpose(x))
    return [da, db]


def triangular_solve_gradient(node: Node, dy: Entry) -> list[Entry]:
    """Return the gradients of `matrix_triangular_solve` by the matrix and by the right-hand side.

    The former is 0 outside of the triangle that is read. ``dy`` is the gradient of the solution.
    ``node`` is the forward node, with the parameters ``adjoint`` and ``lower``.
    """
    a, x = node.inputs[0], node.entries[0]
    lower, adjoint = node.params["lower"], node.params["adjoint"]
    db = make("matrix_triangular_solve", a, dy, lower=lower, adjoint=not adjoint)
    da = -_matmul(x, _transpose(db)) if adjoint else -_matmul(db, _transpose(x))
    return [make("tril" if lower else "triu", da), db]


def expm_gradient(node: Node, dy: Entry) -> list[Entry]:
    """Return the gradient of `expm` by its matrix; ``dy`` is that of the exponential.

    It is a block of the exponential of a block triangular matrix. Source: Mathias 1996, A chain
    rule for matrix functions and applications. ``node`` is the forward node.

    Raises: ShapeError if a rank is unknown.
    """
    x = _transpose(node.inputs[0])
    shape = known_shape(x)
    top = make("concat", x, dy, axis=-1)
    bottom = make("concat", make("zeros_like", x), x, axis=-1)
    blocks = make("expm", make("concat", top, bottom, axis=-2))
    begin = (*(0,) * (len(shape) - 1), shape[-1])
    return [make("slice", blocks, begin=begin, size=shape)]


# Eigenvalues, orthogonal factors and singular values.


def eigh_gradient(node: Node, dvalues: Entry | None, dvectors: Entry | None) -> list[Entry]:
    """Return the gradient of `eigh` by its symmetric matrix.

    ``dvalues`` and ``dvectors`` are the gradients of eigenvalues and eigenvectors; None is 0.
    ``node`` is the forward node.

    Raises: ShapeError if a rank is unknown; DTypeError if the dtype is, and ``dvectors`` is not
    None.
    """
    values, vectors = node.entries
    inner = make("diag_embed", _or_zero(dvalues, values))
    if dvectors is not None:
        inner = inner + _inverse_gaps(values) * _matmul(_transpose(vectors), dvectors)
    full = _matmul(vectors, inner, _transpose(vectors))
    return [(full + _transpose(full)) * 0.5]


def qr_gradient(node: Node, dq: Entry | None, dr: Entry | None) -> list[Entry]:
    """Return the gradient of `qr` by its matrix, from those of Q and R, ``dq`` and ``dr``.

    None counts as 0. ``node`` is the forward node, with the parameter ``mode``.

    Raises:
        GraphError: If there are fewer rows than columns, an extent is symbolic, or Q is complete
            and not the reduced one.
        ShapeError: If a rank is unknown.
        DTypeError: If the dtype is unknown.
    """
    q, r = node.entries
    rows, columns = known_shape(node.inputs[0])[-2:]
    symbolic = isinstance(rows, Size) or isinstance(columns, Size)
    wide = isinstance(rows, int) and isinstance(columns, int) and rows < columns
    if symbolic or wide or (node.params["mode"] == "complete" and rows != columns):
        raise GraphError(
            f"{node.where} has a gradient for at least as many rows as columns, both known, and "
            f"mode 'reduced'; got {rows} rows, {columns} columns and mode {node.params['mode']!r}"
        )
    dq, dr = _or_zero(dq, q), _or_zero(dr, r)
    m = _matmul(r, _transpose(dr)) - _matmul(_transpose(dq), q)
    below = make("tril", m, k=-1)
    symmetric = below + _transpose(below) + m * _identity_like(m)
    right = _transpose(dq + _matmul(q, symmetric))
    return [_transpose(make("matrix_triangular_solve", r, right, lower=False))]


def svd_gradient(node: Node, du: Entry | None, ds: Entry | None, dvh: Entry | None) -> list[Entry]:
    """Return the gradient of `svd` by its matrix, from those of U, S and Vh.

    ``du``, ``ds`` and ``dvh`` are these; None counts as 0. ``node`` is the forward node, with the
    parameter ``full_matrices``.

    Raises:
        GraphError: If ``full_matrices`` is True and the matrices are not known to be square.
        ShapeError: If a rank is unknown.
        DTypeError: If the dtype is unknown, and ``du`` and ``dvh`` are not both None.
    """
    u, s, vh = node.entries
    if node.params["full_matrices"]:
        rows, columns = known_shape(node.inputs[0])[-2:]
        if rows != columns:
            raise GraphError(
                f"{node.where} has a gradient for full_matrices=False, got {rows} rows and "
                f"{columns} columns"
            )
    v = _transpose(vh)
    inner = make("diag_embed", _or_zero(ds, s))
    if du is None and dvh is None:
        return [_matmul(u, inner, vh)]
    du, dv = _or_zero(du, u), _transpose(_or_zero(dvh, vh))
    gaps = _inverse_gaps(s * s)
    j, k = gaps * _matmul(_transpose(u), du), gaps * _matmul(_transpose(v), dv)
    inner = inner + (j + _transpose(j)) * _as_row(s) + _as_column(s) * (k + _transpose(k))
    out = _matmul(u, inner, vh)
    scaled_u, scaled_v = du / _as_row(s), dv / _as_row(s)
    out = out + _matmul(scaled_u - _matmul(u, _transpose(u), scaled_u), vh)
    orthogonal_v = _transpose(scaled_v - _matmul(v, _transpose(v), scaled_v))
    return [out + _matmul(u, orthogonal_v)]


def svdvals_gradient(node: Node, dy: Entry) -> list[Entry]:
    """Return the gradient of `svdvals` by its matrix: U diag(dy) Vh, for the svd of the matrix.

    ``node`` is the forward node; ``dy`` is the gradient of its output.
    """
    u, _, vh = make("svd", node.inputs[0])
    return [_matmul(u * _as_row(dy), vh)]
