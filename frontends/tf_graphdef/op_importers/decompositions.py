"""Importers of matrix factorizations, inverses, determinants and linear solvers.

Of symmetric matrices TensorFlow reads the lower triangle.
"""

from __future__ import annotations

from passkit.frontends.tf_graphdef.imported_value import ImportCall, ImportedValue
from passkit.frontends.tf_graphdef.operators import ops
from passkit.frontends.tf_graphdef.registry import ImportResult, op_importer, register_renamed
from passkit.graph.node import Entry

register_renamed(1, {"MatrixDeterminant": "det", "LogMatrixDeterminant": "slogdet"})


def _symmetric(x: Entry) -> Entry:
    """Return symmetric matrices with the lower triangles of ``x``, whose upper ones are ignored.

    Raises:
        ShapeError: If ``x`` has fewer than two axes, or the matrices are not square.
        DTypeError: If ``x`` is of bools.
    """
    return ops.tril(x) + ops.matrix_transpose(ops.tril(x, k=-1))  # type: ignore[no-any-return]


@op_importer("Cholesky")
def _cholesky(call: ImportCall, x: ImportedValue) -> ImportResult:
    """Import Cholesky: the lower triangular factor of matrices whose lower triangle is read.

    ``call`` is the node.

    Raises:
        ShapeError: If ``x`` has fewer than two axes, or the matrices are not square.
        DTypeError: If it is not of floats.
    """
    return ops.cholesky(_symmetric(x.entry), name=call.name)


@op_importer("SelfAdjointEigV2")
def _eigh(call: ImportCall, x: ImportedValue) -> ImportResult:
    """Import SelfAdjointEigV2: eigenvalues and eigenvectors of symmetric matrices.

    With the attribute ``compute_v`` False, the second result is empty, of shape (0,). ``call`` is
    the node.

    Raises:
        ModelError: If an attribute is of another kind.
        ShapeError: If ``x`` has fewer than two axes, or the matrices are not square.
        DTypeError: If it is not of floats.
    """
    values, vectors = ops.eigh(_symmetric(x.entry))
    has_vectors = call.attr("compute_v", "b", True)
    return values, vectors if has_vectors else ops.zeros((0,), dtype=x.dtype.name)


@op_importer("MatrixInverse")
def _inverse(call: ImportCall, x: ImportedValue) -> ImportResult:
    """Import MatrixInverse; with the attribute ``adjoint``, the inverse is transposed.

    ``adjoint`` is False by default. ``call`` is the node.

    Raises:
        ModelError: If an attribute is of another kind.
        ShapeError: If ``x`` has fewer than two axes, or the matrices are not square.
        DTypeError: If it is not of floats.
    """
    inverse = ops.inv(x.entry)
    return ops.matrix_transpose(inverse) if call.attr("adjoint", "b", False) else inverse


@op_importer("MatrixSolve")
def _solve(call: ImportCall, a: ImportedValue, b: ImportedValue) -> ImportResult:
    """Import MatrixSolve: solve ``a @ y = b``; the attribute ``adjoint`` transposes ``a``.

    ``adjoint`` is False by default. ``call`` is the node.

    Raises:
        ModelError: If an attribute is of another kind.
        ShapeError: If an input has fewer than two axes, ``a`` is not square, or ``b`` has other
            rows or batch axes.
        DTypeError: If the dtypes differ or are not floats.
    """
    adjoint = call.attr("adjoint", "b", False)
    return ops.matrix_solve(a.entry, b.entry, adjoint=adjoint, name=call.name)


@op_importer("MatrixTriangularSolve")
def _triangular_solve(call: ImportCall, a: ImportedValue, b: ImportedValue) -> ImportResult:
    """Import MatrixTriangularSolve: solve ``a @ y = b``, where one triangle of ``a`` is read.

    The attribute ``lower`` (default True) selects the triangle; ``adjoint`` (default False)
    transposes ``a``.
    ``call`` is the node.

    Raises:
        ModelError: If an attribute is of another kind.
        ShapeError: If an input has fewer than two axes, ``a`` is not square, or ``b`` has other
            rows or batch axes.
        DTypeError: If the dtypes differ or are not floats.
    """
    return ops.matrix_triangular_solve(
        a.entry,
        b.entry,
        lower=call.attr("lower", "b", True),
        adjoint=call.attr("adjoint", "b", False),
        name=call.name,
    )


@op_importer("Qr")
def _qr(call: ImportCall, x: ImportedValue) -> ImportResult:
    """Import Qr: return Q and R, complete if the attribute ``full_matrices`` is set, else reduced.

    ``call`` is the node.

    Raises:
        ModelError: If an attribute is of another kind.
        ShapeError: If ``x`` has fewer than two axes, or it is unknown which of rows and columns are
            fewer.
        DTypeError: If it is not of floats.
    """
    mode = "complete" if call.attr("full_matrices", "b", False) else "reduced"
    return tuple(ops.qr(x.entry, mode=mode))


@op_importer("Svd")
def _svd(call: ImportCall, x: ImportedValue) -> ImportResult:
    """Import Svd: singular values, left vectors, and right vectors as columns, in this order.

    With the attribute ``compute_uv`` False, both arrays of vectors are empty, of shape (0,). The
    attribute ``full_matrices`` is False by default. ``call`` is the node.

    Raises:
        ModelError: If an attribute is of another kind.
        ShapeError: If ``x`` has fewer than two axes, or it is unknown which of rows and columns are
            fewer.
        DTypeError: If it is not of floats.
    """
    if not call.attr("compute_uv", "b", True):
        empty = ops.zeros((0,), dtype=x.dtype.name)
        return ops.svdvals(x.entry), empty, empty
    u, s, vh = ops.svd(x.entry, full_matrices=call.attr("full_matrices", "b", False))
    return s, u, ops.matrix_transpose(vh)
