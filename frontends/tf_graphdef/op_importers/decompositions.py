"""Factors, inverses, determinants and equations of matrices.

Of symmetric matrices TensorFlow reads the lower triangle.
"""

from __future__ import annotations

from passkit.frontends.tf_graphdef.operators import ops
from passkit.frontends.tf_graphdef.table import Result, row, same_inputs
from passkit.frontends.tf_graphdef.value import Call, Value
from passkit.graph.node import Entry

same_inputs(1, {"MatrixDeterminant": "det", "LogMatrixDeterminant": "slogdet"})


def _symmetric(x: Entry) -> Entry:
    """The matrices that have the lower triangle of ``x`` on both sides."""
    return ops.tril(x) + ops.matrix_transpose(ops.tril(x, k=-1))  # type: ignore[no-any-return]


@row("Cholesky")
def _cholesky(call: Call, x: Value) -> Result:
    return ops.cholesky(_symmetric(x.entry), name=call.name)


@row("SelfAdjointEigV2")
def _eigh(call: Call, x: Value) -> Result:
    """Without vectors there are none in the second result."""
    values, vectors = ops.eigh(_symmetric(x.entry))
    has_vectors = call.attr("compute_v", "b", True)
    return values, vectors if has_vectors else ops.zeros((0,), dtype=x.dtype.name)


@row("MatrixInverse")
def _inverse(call: Call, x: Value) -> Result:
    found = ops.inv(x.entry)
    return ops.matrix_transpose(found) if call.attr("adjoint", "b", False) else found


@row("MatrixSolve")
def _solve(call: Call, a: Value, b: Value) -> Result:
    adjoint = call.attr("adjoint", "b", False)
    return ops.matrix_solve(a.entry, b.entry, adjoint=adjoint, name=call.name)


@row("MatrixTriangularSolve")
def _triangular_solve(call: Call, a: Value, b: Value) -> Result:
    return ops.matrix_triangular_solve(
        a.entry,
        b.entry,
        lower=call.attr("lower", "b", True),
        adjoint=call.attr("adjoint", "b", False),
        name=call.name,
    )


@row("Qr")
def _qr(call: Call, x: Value) -> Result:
    mode = "complete" if call.attr("full_matrices", "b", False) else "reduced"
    return tuple(ops.qr(x.entry, mode=mode))


@row("Svd")
def _svd(call: Call, x: Value) -> Result:
    """Singular values first, and the right vectors as columns."""
    if not call.attr("compute_uv", "b", True):
        none = ops.zeros((0,), dtype=x.dtype.name)
        return ops.svdvals(x.entry), none, none
    u, s, vh = ops.svd(x.entry, full_matrices=call.attr("full_matrices", "b", False))
    return s, u, ops.matrix_transpose(vh)
