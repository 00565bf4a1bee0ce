"""Products of matrices, and decompositions."""

from __future__ import annotations

from typing import Any

import numpy as np

from passkit.frontends.tf_graphdef.export.kernels import computed_as
from passkit.frontends.tf_graphdef.export.table import Call, Result, row
from passkit.frontends.tf_graphdef.export.writer import INT32, Tensor
from passkit.graph.op import get_op
from passkit.ops.helpers import make
from passkit.ops.linalg import sum_of_matmuls


@row("matmul")
def _matmul(call: Call, a: Tensor, b: Tensor) -> Result:
    """Of 16-bit floats in float32, as passkit does. Vectors become matrices for the product."""
    left, right = call.shape(0), call.shape(1)
    if len(left) < 2 or len(right) < 2:
        return _with_vectors(call, a, b)
    flags = [bool(call.params[k]) for k in ("transpose_a", "transpose_b")]
    if len(left) == len(right) == 2:
        return call.result("MatMul", a, b, transpose_a=flags[0], transpose_b=flags[1])
    return call.result("BatchMatMulV2", a, b, adj_x=flags[0], adj_y=flags[1])


@row("matmul_sum")
def _matmul_sum(call: Call, *operands: Tensor) -> Result:
    return call.expanded(lambda *x: sum_of_matmuls(call.node, *x), *operands)


def _with_vectors(call: Call, a: Tensor, b: Tensor) -> Result:
    left, right = call.shape(0), call.shape(1)
    if len(left) < 2:
        left, a = (1, *left), call.op("ExpandDims", a, call.const(0), Tdim=INT32)
    if len(right) < 2:
        right, b = (*right, 1), call.op("ExpandDims", b, call.const(-1), Tdim=INT32)
    flags = {
        "adj_x": bool(call.params["transpose_a"]) and len(call.shape(0)) > 1,
        "adj_y": bool(call.params["transpose_b"]) and len(call.shape(1)) > 1,
    }
    made = call.op("BatchMatMulV2", a, b, **flags)
    return call.reshaped(made, call.out, last=True)


@row("cholesky")
def _cholesky(call: Call, x: Tensor) -> Result:
    if call.params["upper"]:
        return call.expanded(lambda x: make("matrix_transpose", make("cholesky", x)), x)
    return call.result("Cholesky", x)


@row("inv")
def _inverse(call: Call, x: Tensor) -> Result:
    return call.result("MatrixInverse", x, adjoint=False)


@row("det")
def _determinant(call: Call, x: Tensor) -> Result:
    return call.result("MatrixDeterminant", x)


@row("matrix_solve")
def _solve(call: Call, a: Tensor, b: Tensor) -> Result:
    if call.shape(0)[:-2] != call.shape(1)[:-2]:
        return None
    return call.result("MatrixSolve", a, b, adjoint=bool(call.params["adjoint"]))


@row("matrix_triangular_solve")
def _triangular_solve(call: Call, a: Tensor, b: Tensor) -> Result:
    flags = {k: bool(call.params[k]) for k in ("lower", "adjoint")}
    return call.result("MatrixTriangularSolve", a, b, **flags)


def _several(call: Call, op: str, x: Tensor, count: int, **flags: bool) -> tuple[Tensor, ...]:
    """The results of a decomposition; narrow floats are taken apart in a wider type."""
    wide = computed_as(op, x.dtype) or x.dtype
    given = call.scope.cast(x, wide)
    made = call.scope.nodes(op, [given], [wide] * count, wide is x.dtype, T=wide, **flags)
    return tuple(call.scope.cast(t, x.dtype) for t in made)


@row("slogdet")
def _log_determinant(call: Call, x: Tensor) -> Result:
    return _several(call, "LogMatrixDeterminant", x, 2)


@row("svdvals")
def _singular_values(call: Call, x: Tensor) -> Result:
    return _several(call, "Svd", x, 3, compute_uv=False, full_matrices=False)[0]


@row("svd")
def _svd(call: Call, x: Tensor) -> Result:
    """TensorFlow gives V, of which passkit gives the transpose. Vectors are so up to their sign."""
    whole = bool(call.params["full_matrices"])
    s, u, v = _several(call, "Svd", x, 3, compute_uv=True, full_matrices=whole)
    rank = len(call.shape())
    order = [*range(rank - 2), rank - 1, rank - 2]
    return u, s, call.op("Transpose", v, call.const(order), Tperm=INT32)


@row("eigh")
def _eigh(call: Call, x: Tensor) -> Result:
    """Eigenvectors are so up to their sign."""
    return _several(call, "SelfAdjointEigV2", x, 2, compute_v=True)


@row("qr")
def _qr(call: Call, x: Tensor) -> Result:
    """Columns of Q, and rows of R, are so up to their sign."""
    if call.params["mode"] not in ("reduced", "complete"):
        return None
    return _several(call, "Qr", x, 2, full_matrices=call.params["mode"] == "complete")


def _least(call: Call, x: Any) -> float:
    """What counts as zero beside the largest singular value."""
    most = max(n for n in call.shape()[-2:] if isinstance(n, int))  # the decomposition saw to it
    given = call.params["rtol"]
    return float(most * np.finfo(x.dtype.numpy).eps if given is None else given)


@row("pinv")
def _pseudo_inverse(call: Call, x: Tensor) -> Result:
    """From the singular values: V / s @ U.T, in which those that count as zero have no part."""
    if x.dtype.nbytes == 2 or 0 in call.shape()[-2:]:
        return None

    def inverse(x: Any) -> Any:
        u, s, v = get_op("svd")(x)
        most = make("reduce_max", s, axis=-1, keepdims=True)
        kept = make("greater", s, most * _least(call, x))
        part = make("where", kept, 1.0 / make("where", kept, s, 1.0), 0.0)
        scaled = make("matrix_transpose", v) * make("expand_dims", part, axis=-2)
        return make("matmul", scaled, u, transpose_b=True)

    return call.expanded(inverse, x)


@row("matrix_rank")
def _matrix_rank(call: Call, x: Tensor) -> Result:
    if x.dtype.nbytes == 2 or 0 in call.shape()[-2:]:
        return None

    def rank(x: Any) -> Any:
        s = make("svdvals", x)
        most = make("reduce_max", s, axis=-1, keepdims=True)
        counted = make("cast", make("greater", s, most * _least(call, x)), dtype="int64")
        return make("reduce_sum", counted, axis=-1)

    return call.expanded(rank, x)
