"""Cases of matrix products, factorizations, inverses and linear systems."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from tests.frontends.tf_graphdef.reference.case import Array, Case
from tests.frontends.tf_graphdef.reference.drawing import FLOATS, draw, sweep

EQUATIONS: dict[str, tuple[tuple[int, ...], ...]] = {
    "ij,jk->ik": ((3, 4), (4, 5)),
    "ij,kj->ik": ((3, 4), (5, 4)),
    "ij->ji": ((3, 4),),
    "ij->": ((3, 4),),
    "ij->j": ((3, 4),),
    "ii->i": ((4, 4),),
    "ii->": ((4, 4),),
    "bij,bjk->bik": ((2, 3, 4), (2, 4, 5)),
    "bhqd,bhkd->bhqk": ((2, 2, 3, 4), (2, 2, 5, 4)),
    "bhqk,bkhd->bqhd": ((2, 2, 3, 5), (2, 5, 2, 4)),
    "abc,cde->abde": ((2, 3, 4), (4, 2, 3)),
    "BFNH,NHD->BFD": ((2, 3, 2, 4), (2, 4, 5)),
    "i,j->ij": ((3,), (4,)),
    "i,i->": ((4,), (4,)),
    "ij,ij->ij": ((3, 4), (3, 4)),
    "...ij,...jk->...ik": ((2, 3, 4), (2, 4, 5)),
    "...ij,jk->...ik": ((2, 2, 3, 4), (4, 5)),
    "...i->...": ((2, 3, 4),),
    "i...->...i": ((2, 3, 4),),
    "ij,jk": ((3, 4), (4, 5)),
    "ij,jk,kl->il": ((3, 4), (4, 5), (5, 2)),
    "b...i,bi->b...": ((2, 3, 4), (2, 4)),
}


def cases(tf: Any) -> Iterator[Case]:
    """Yield all cases, products first."""
    raw = tf.raw_ops
    for a, b in ((False, False), (True, False), (False, True), (True, True)):
        mark = "transpose_a " * a + "transpose_b" * b
        x, y = ((4, 3) if a else (3, 4)), ((5, 4) if b else (4, 5))
        types = (*FLOATS, "int32", "int64") if not a and not b else ("float32",)
        yield from sweep(
            tf,
            "MatMul",
            mark.strip(),
            lambda x, y, a=a, b=b: raw.MatMul(a=x, b=y, transpose_a=a, transpose_b=b),
            lambda d, x=x, y=y: {"x": draw(1, x, d), "y": draw(2, y, d)},
            types,
        )
        for op in ("BatchMatMul", "BatchMatMulV2"):
            yield from sweep(
                tf,
                op,
                mark.strip().replace("transpose_a", "adj_x").replace("transpose_b", "adj_y"),
                lambda x, y, op=op, a=a, b=b: getattr(raw, op)(x=x, y=y, adj_x=a, adj_y=b),
                lambda d, x=x, y=y: {"x": draw(1, (2, *x), d), "y": draw(2, (2, *y), d)},
                ("float32", "float64", "float16", "int32") if not a and not b else ("float32",),
            )
    for name, x, y in (
        ("broadcast", (2, 1, 3, 4), (3, 4, 5)),
        ("rank 2 and 3", (3, 4), (2, 4, 5)),
        ("empty", (2, 3, 0), (2, 0, 5)),
    ):
        yield Case(
            "BatchMatMulV2",
            name,
            lambda x, y: raw.BatchMatMulV2(x=x, y=y),
            {"x": draw(1, x), "y": draw(2, y)},
            free=False,
        )
    for arguments, to in (("int8", "int32"), ("float32", "float32"), ("bfloat16", "float32")):
        yield from sweep(
            tf,
            "BatchMatMulV3",
            f"Tout={to}",
            lambda x, y, t=to: raw.BatchMatMulV3(x=x, y=y, Tout=t),
            lambda d: {"x": draw(1, (2, 3, 4), d), "y": draw(2, (2, 4, 5), d)},
            (arguments,),
        )
    yield from _spelled(tf)
    for equation, shapes in EQUATIONS.items():
        inputs = {f"x{k}": draw(k, shape) for k, shape in enumerate(shapes)}
        yield Case(
            "Einsum", equation.replace(" ", ""), lambda *x, e=equation: tf.einsum(e, *x), inputs
        )
    for dtype in ("float64", "float16", "bfloat16", "int32"):
        yield from sweep(
            tf,
            "Einsum",
            "ij,jk->ik",
            lambda x, y: raw.Einsum(inputs=[x, y], equation="ij,jk->ik"),
            lambda d: {"x": draw(1, (3, 4), d), "y": draw(2, (4, 5), d)},
            (dtype,),
        )
    yield from _factors(tf)


def _spelled(tf: Any) -> Iterator[Case]:
    x, y = draw(1, (2, 3, 4)), draw(2, (4, 5))
    inputs: dict[str, Array] = {"x": x, "y": y}
    for op, name, function in (
        ("MatMul", "tensordot axes=1", lambda x, y: tf.tensordot(x, y, 1)),
        ("MatMul", "tensordot of named axes", lambda x, y: tf.tensordot(x, y, [[2], [0]])),
        (
            "MatMul",
            "Keras Dense of rank 3",
            lambda x, y: tf.reshape(tf.matmul(tf.reshape(x, [-1, 4]), y), [-1, tf.shape(x)[1], 5]),
        ),
        ("BatchMatMulV2", "tf.matmul", lambda x, y: x @ y),
        ("BatchMatMulV2", "matvec", lambda x, y: tf.linalg.matvec(x, y[:, 0])),
        ("Cross", "", lambda x, y: tf.linalg.cross(x[..., :3], x[..., 1:])),
        ("Sum", "trace", lambda x, y: tf.linalg.trace(x)),
        ("Transpose", "adjoint", lambda x, y: tf.linalg.adjoint(x)),
        ("Transpose", "matrix_transpose", lambda x, y: tf.linalg.matrix_transpose(x)),
        ("MatrixDiagV3", "eye of a batch", lambda x, y: x[..., :3] + tf.eye(3)),
    ):
        yield Case(op, name, lambda x, y, f=function: f(x, y) + 0 * y[0, 0], inputs, free=False)
    yield Case("MatMul", "tensordot of an unknown batch", lambda x: tf.tensordot(x, y, 1), {"x": x})


def _factors(tf: Any) -> Iterator[Case]:
    raw = tf.raw_ops
    x = draw(5, (2, 4, 4)) + 3 * np.eye(4, dtype="f")
    wide, rows = draw(6, (2, 3, 5)), draw(7, (2, 4, 2))
    for dtype in ("float32", "float64"):
        m, b = x.astype(dtype), rows.astype(dtype)
        positive = m @ np.swapaxes(m, -1, -2)
        yield Case("Cholesky", "", lambda x: raw.Cholesky(input=x), {"x": positive})
        yield Case(
            "Cholesky",
            "reads the lower triangle",
            lambda x: raw.Cholesky(input=x),
            {"x": np.tril(positive) + np.triu(np.ones_like(positive), 1)},
        )
        yield Case("MatrixDeterminant", "", lambda x: raw.MatrixDeterminant(input=x), {"x": m})
        yield Case(
            "LogMatrixDeterminant", "", lambda x: list(raw.LogMatrixDeterminant(input=x)), {"x": m}
        )
        for adjoint in (False, True):
            mark = "adjoint" if adjoint else ""
            yield Case(
                "MatrixInverse",
                mark,
                lambda x, a=adjoint: raw.MatrixInverse(input=x, adjoint=a),
                {"x": m},
            )
            yield Case(
                "MatrixSolve",
                mark,
                lambda x, y, a=adjoint: raw.MatrixSolve(matrix=x, rhs=y, adjoint=a),
                {"x": m, "y": b},
            )
            for lower in (False, True):
                yield Case(
                    "MatrixTriangularSolve",
                    f"{'lower' if lower else 'upper'} {mark}".strip(),
                    lambda x, y, a=adjoint, w=lower: raw.MatrixTriangularSolve(
                        matrix=x, rhs=y, lower=w, adjoint=a
                    ),
                    {"x": m, "y": b},
                )
        yield Case("SelfAdjointEigV2", "values", lambda x: tf.linalg.eigvalsh(x), {"x": positive})
        yield Case("SelfAdjointEigV2", "put together again", _eigen(tf), {"x": positive})
        for full in (False, True):
            mark = "full_matrices " if full else ""
            yield Case("Qr", f"{mark}put together again", _qr(tf, full), {"x": wide.astype(dtype)})
            yield Case(
                "Svd",
                f"{mark}put together again",
                _svd(tf, full),
                {"x": wide.astype(dtype)},
                free=False,
            )
        yield Case(
            "Svd", "values", lambda x: tf.linalg.svd(x, compute_uv=False), {"x": wide.astype(dtype)}
        )
    for op, name, function in (
        (
            "Cholesky",
            "cholesky_solve",
            lambda x: tf.linalg.cholesky_solve(
                tf.linalg.cholesky(x @ tf.linalg.matrix_transpose(x)), x
            ),
        ),
        ("Cholesky", "logdet", lambda x: tf.linalg.logdet(x @ tf.linalg.matrix_transpose(x))),
        ("MatrixSolve", "tf.linalg.solve", lambda x: tf.linalg.solve(x, x[..., :1])),
        ("Cholesky", "lstsq", lambda x: tf.linalg.lstsq(x, x[..., :2], fast=True)),
        ("Svd", "pinv", lambda x: tf.linalg.pinv(x)),
        ("LogMatrixDeterminant", "slogdet", lambda x: list(tf.linalg.slogdet(x))),
    ):
        yield Case(op, name, function, {"x": x}, free=False)


def _eigen(tf: Any) -> Any:
    def function(x: Any) -> Any:
        e, v = tf.linalg.eigh(x)
        return tf.matmul(v * e[..., None, :], v, transpose_b=True)

    return function


def _qr(tf: Any, full: bool) -> Any:
    def function(x: Any) -> Any:
        q, r = tf.linalg.qr(tf.linalg.matrix_transpose(x), full_matrices=full)
        return q @ r, tf.abs(r)

    return function


def _svd(tf: Any, full: bool) -> Any:
    def function(x: Any) -> Any:
        s, u, v = tf.linalg.svd(x, full_matrices=full)
        if full:
            return s, tf.abs(u), tf.linalg.matmul(v, v, transpose_a=True)
        return s, tf.matmul(u * s[..., None, :], v, transpose_b=True)

    return function
