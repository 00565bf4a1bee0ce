"""Exporters of matrix products and decompositions.

An operator of TensorFlow that has no kernel for 16-bit floats is written for float32, between casts
(`ExportCall.result`).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from passkit.errors import ModelError
from passkit.frontends.tf_graphdef.export.graphdef_writer import INT32, NodeOutput
from passkit.frontends.tf_graphdef.export.kernel_types import kernel_dtype
from passkit.frontends.tf_graphdef.export.registry import ExportCall, ExportResult, op_exporter
from passkit.graph.infer import show_shape
from passkit.graph.op import get_op
from passkit.ops.helpers import make
from passkit.ops.linalg import sum_of_matmuls


@op_exporter("matmul")
def _matmul(call: ExportCall, a: NodeOutput, b: NodeOutput) -> ExportResult:
    """Write `matmul` as MatMul, or as BatchMatMulV2 for stacks of matrices; see `_with_vectors`.

    ``call`` is the node to write, and ``a`` and ``b`` are the tensors of its inputs.

    Raises:
        ShapeError: If the rank of an input is unknown.
    """
    left, right = call.shape(0), call.shape(1)
    if len(left) < 2 or len(right) < 2:
        return _with_vectors(call, a, b)
    flags = [bool(call.params[k]) for k in ("transpose_a", "transpose_b")]
    if len(left) == len(right) == 2:
        return call.result("MatMul", a, b, transpose_a=flags[0], transpose_b=flags[1])
    return call.result("BatchMatMulV2", a, b, adj_x=flags[0], adj_y=flags[1])


@op_exporter("matmul_sum")
def _matmul_sum(call: ExportCall, *operands: NodeOutput) -> ExportResult:
    """Write `matmul_sum` as the sum of its matrix products.

    ``call`` is the node to write, and ``operands`` are the tensors of its inputs, left and right
    matrices in turn.

    Raises:
        ShapeError: If the rank of an input is unknown.
    """
    return call.expanded(lambda *x: sum_of_matmuls(call.node, *x), *operands)


def _with_vectors(call: ExportCall, a: NodeOutput, b: NodeOutput) -> ExportResult:
    """Write a product with one or two vectors, which become matrices of one row or column.

    The result is reshaped to that of the node. Flags that transpose are ignored for vectors.
    ``call`` is the node to write, and ``a`` and ``b`` are the tensors of its inputs.

    Raises:
        ModelError: If a symbolic extent of the result, beside another or an extent of 0, has a
            symbol without a source.
        ShapeError: If the rank of an input is unknown.
    """
    left, right = call.shape(0), call.shape(1)
    if len(left) < 2:
        left, a = (1, *left), call.op("ExpandDims", a, call.const(0), Tdim=INT32)
    if len(right) < 2:
        right, b = (*right, 1), call.op("ExpandDims", b, call.const(-1), Tdim=INT32)
    flags = {
        "adj_x": bool(call.params["transpose_a"]) and len(call.shape(0)) > 1,
        "adj_y": bool(call.params["transpose_b"]) and len(call.shape(1)) > 1,
    }
    product = call.op("BatchMatMulV2", a, b, **flags)
    return call.reshaped(product, call.out, is_result=True)


@op_exporter("cholesky")
def _cholesky(call: ExportCall, x: NodeOutput) -> ExportResult:
    """Write `cholesky` as Cholesky, transposed for ``upper=True``.

    ``call`` is the node to write, ``x`` the tensor of its input.

    Raises:
        ShapeError: If the result is transposed, and the rank of the input is unknown.
    """
    if call.params["upper"]:
        return call.expanded(lambda x: make("matrix_transpose", make("cholesky", x)), x)
    return call.result("Cholesky", x)


@op_exporter("inv")
def _inverse(call: ExportCall, x: NodeOutput) -> ExportResult:
    """Write `inv` as MatrixInverse, of 16-bit floats between casts to float32 and back.

    ``call`` is the node to write, ``x`` the tensor of its input.
    """
    return call.result("MatrixInverse", x, adjoint=False)


@op_exporter("det")
def _determinant(call: ExportCall, x: NodeOutput) -> ExportResult:
    """Write `det` as MatrixDeterminant, of 16-bit floats between casts to float32 and back.

    ``call`` is the node to write, ``x`` the tensor of its input.
    """
    return call.result("MatrixDeterminant", x)


@op_exporter("matrix_solve")
def _solve(call: ExportCall, a: NodeOutput, b: NodeOutput) -> ExportResult:
    """Write `matrix_solve` as MatrixSolve; None if the batch axes differ.

    ``call`` is the node to write, and ``a`` and ``b`` are the tensors of its inputs.

    Raises:
        ShapeError: If the rank of an input is unknown.
    """
    if call.shape(0)[:-2] != call.shape(1)[:-2]:
        return None
    return call.result("MatrixSolve", a, b, adjoint=bool(call.params["adjoint"]))


@op_exporter("matrix_triangular_solve")
def _triangular_solve(call: ExportCall, a: NodeOutput, b: NodeOutput) -> ExportResult:
    """Write `matrix_triangular_solve` as MatrixTriangularSolve.

    ``a`` has the triangle that the parameter ``lower`` selects, ``b`` the right-hand sides;
    ``adjoint`` transposes ``a``. ``call`` is the node to write.
    """
    flags = {k: bool(call.params[k]) for k in ("lower", "adjoint")}
    return call.result("MatrixTriangularSolve", a, b, **flags)


def _decompose(
    call: ExportCall, op: str, x: NodeOutput, count: int, **flags: bool
) -> tuple[NodeOutput, ...]:
    """Write a decomposition of several results, and return these in the dtype of ``x``.

    The node has the operator's name if the dtype has a kernel.

    Args:
        call: The node.
        op: TensorFlow operator; types without a kernel are computed in a wider one.
        x: Matrices of floats or complex numbers.
        count: Number of results.
        flags: Bool attributes of the operator.
    """
    work_dtype = kernel_dtype(op, x.dtype) or x.dtype
    operand = call.scope.cast(x, work_dtype)
    results = call.scope.nodes(
        op, [operand], [work_dtype] * count, work_dtype is x.dtype, T=work_dtype, **flags
    )
    return tuple(call.scope.cast(t, x.dtype) for t in results)


@op_exporter("slogdet")
def _log_determinant(call: ExportCall, x: NodeOutput) -> ExportResult:
    """Write `slogdet` as LogMatrixDeterminant: sign and logarithm.

    ``call`` is the node to write, ``x`` the tensor of its input.
    """
    return _decompose(call, "LogMatrixDeterminant", x, 2)


@op_exporter("svdvals")
def _singular_values(call: ExportCall, x: NodeOutput) -> ExportResult:
    """Write `svdvals` as Svd without vectors; return the singular values.

    ``call`` is the node to write, ``x`` the tensor of its input.
    """
    return _decompose(call, "Svd", x, 3, compute_uv=False, full_matrices=False)[0]


@op_exporter("svd")
def _svd(call: ExportCall, x: NodeOutput) -> ExportResult:
    """Write `svd` as Svd; return U, s and the transpose of TensorFlow's V.

    Vectors are unique up to their sign. ``call`` is the node to write, ``x`` the tensor of its
    input.

    Raises:
        ShapeError: If the rank of the input is unknown.
    """
    full_matrices = bool(call.params["full_matrices"])
    s, u, v = _decompose(call, "Svd", x, 3, compute_uv=True, full_matrices=full_matrices)
    rank = len(call.shape())
    order = [*range(rank - 2), rank - 1, rank - 2]
    return u, s, call.op("Transpose", v, call.const(order), Tperm=INT32)


@op_exporter("eigh")
def _eigh(call: ExportCall, x: NodeOutput) -> ExportResult:
    """Write `eigh` as SelfAdjointEigV2; return eigenvalues and vectors, unique up to their sign.

    ``call`` is the node to write, ``x`` the tensor of its input.
    """
    return _decompose(call, "SelfAdjointEigV2", x, 2, compute_v=True)


@op_exporter("qr")
def _qr(call: ExportCall, x: NodeOutput) -> ExportResult:
    """Write `qr` as Qr; return Q and R. None for modes other than reduced and complete.

    Columns of Q and rows of R are unique up to their sign. ``call`` is the node to write, ``x`` the
    tensor of its input.
    """
    if call.params["mode"] not in ("reduced", "complete"):
        return None
    return _decompose(call, "Qr", x, 2, full_matrices=call.params["mode"] == "complete")


def _relative_tolerance(call: ExportCall, x: Any) -> float:
    """Return the factor of the largest singular value below which others count as zero.

    It is the parameter ``rtol``; if that is None, the longer side of the matrix times the epsilon
    of the dtype of ``x``, an entry of floats. ``call`` is the node to write.

    Raises:
        ModelError: If ``rtol`` is None and a side of the matrix is symbolic.
        ShapeError: If the rank of the node's input is unknown.
    """
    rtol, sides = call.params["rtol"], call.shape()[-2:]
    if rtol is not None:
        return float(rtol)
    lengths = [n for n in sides if isinstance(n, int)]
    if len(lengths) < len(sides):
        raise ModelError(
            f"{call.node.where} needs known numbers of rows and columns for its tolerance, got "
            f"{show_shape(sides)}; give the sizes, or rtol"
        )
    return float(max(lengths) * np.finfo(x.dtype.numpy).eps)


@op_exporter("pinv")
def _pseudo_inverse(call: ExportCall, x: NodeOutput) -> ExportResult:
    """Write `pinv` from the SVD: V / s @ U.T without the singular values that count as zero.

    None for 16-bit floats and empty matrices. ``call`` is the node to write, ``x`` the tensor of
    its input.

    Raises:
        ModelError: If ``rtol`` is None and a side of the matrix is symbolic.
        ShapeError: If it cannot be known which side is shorter, or the rank is unknown.
    """
    if x.dtype.nbytes == 2 or 0 in call.shape()[-2:]:
        return None

    def inverse(x: Any) -> Any:
        u, s, v = get_op("svd")(x)
        largest = make("reduce_max", s, axis=-1, keepdims=True)
        is_significant = make("greater", s, largest * _relative_tolerance(call, x))
        reciprocals = make(
            "where", is_significant, 1.0 / make("where", is_significant, s, 1.0), 0.0
        )
        scaled = make("matrix_transpose", v) * make("expand_dims", reciprocals, axis=-2)
        return make("matmul", scaled, u, transpose_b=True)

    return call.expanded(inverse, x)


@op_exporter("matrix_rank")
def _matrix_rank(call: ExportCall, x: NodeOutput) -> ExportResult:
    """Write `matrix_rank`: the number, int64, of singular values that do not count as zero.

    None for 16-bit floats and empty matrices. ``call`` is the node to write, ``x`` the tensor of
    its input.

    Raises:
        ModelError: If ``rtol`` is None and a side of the matrix is symbolic.
        ShapeError: If it cannot be known which side is shorter, or the rank is unknown.
    """
    if x.dtype.nbytes == 2 or 0 in call.shape()[-2:]:
        return None

    def rank(x: Any) -> Any:
        s = make("svdvals", x)
        largest = make("reduce_max", s, axis=-1, keepdims=True)
        is_significant = make(
            "cast", make("greater", s, largest * _relative_tolerance(call, x)), dtype="int64"
        )
        return make("reduce_sum", is_significant, axis=-1)

    return call.expanded(rank, x)
