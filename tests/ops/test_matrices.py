"""Contractions and decompositions: errors, and how products are computed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import passkit as pk
from passkit.errors import FeedError, GraphError, ShapeError

ops = pk.ops
A, B = pk.var("a", (2, 3, 4)), pk.var("b", (2, 4, 3))
SQUARE, OPEN = pk.var("s", (3, 3)), pk.var("o", (None, 3))


def einsum(equation: Any) -> Any:
    """Return a function that calls einsum on A and B."""
    return lambda: ops.einsum(A, B, equation=equation)


@pytest.mark.parametrize(
    ("build", "error", "message"),
    [
        (lambda: ops.einsum("i,i"), GraphError, "einsum needs at least one input, got none"),
        (lambda: ops.multi_dot(), GraphError, "multi_dot needs at least one input, got none"),
        (einsum(3), GraphError, r"such as 'ij,jk->ik' as equation, got 3"),
        (einsum("abc"), GraphError, r"'abc': it has 1 operands, and 2 are given"),
        (einsum("ab,bcd"), GraphError, r"'ab' names 2 axes of an operand that has 3"),
        (einsum("abc,acd->ae"), GraphError, r"'e' of the result is in no operand"),
        (einsum("abc,acd->aa"), GraphError, r"'a' stands twice in the result"),
        (einsum("ab1,acd->a"), GraphError, r"'1' is no letter"),
        (einsum("...c,...d->cd"), GraphError, r"the result lacks the ellipsis"),
        (einsum("abc,abc->a"), ShapeError, r"label 'b'.*3.*4|label 'b'.*4.*3"),
        (
            lambda: ops.einsum(pk.var("n", (None, None)), equation="ii->i"),
            ShapeError,
            r"extent of 'i', which stands twice in 'ii', got",
        ),
        (lambda: ops.tensordot(A, B, axes=4), ShapeError, r"at most 3 axes to sum, got 4"),
        (
            lambda: ops.tensordot(A, B, axes=((0, 1), (0,))),
            GraphError,
            r"as axes, got \(\(0, 1\), \(0,\)\)",
        ),
        (lambda: ops.vecdot(A, A, axis=0), ShapeError, r"an axis from -3 to -1, got 0"),
        (lambda: ops.matrix_power(SQUARE, n=0.5), GraphError, r"an int as n, got 0.5"),
        (
            lambda: ops.matrix_power(pk.var("v", (3,)), n=2),
            ShapeError,
            r"square matrices, got \(3,\)",
        ),
        (lambda: ops.multi_dot(SQUARE), GraphError, r"at least two inputs, got 1"),
        (lambda: ops.multi_dot(SQUARE, A), ShapeError, r"ranks \[2, 3\]"),
        (lambda: ops.inv(pk.var("v", (3,))), ShapeError, r"last two axes, got \(3,\)"),
        (lambda: ops.inv(A), ShapeError, r"square matrices, got \(2, 3, 4\)"),
        (lambda: ops.svdvals(OPEN), ShapeError, r"which of o.0 rows and 3 columns are fewer"),
        (lambda: ops.qr(A, mode="raw"), GraphError, r"'reduced' or 'complete' as mode, got 'raw'"),
        (
            lambda: ops.matrix_solve(SQUARE, pk.var("c", (2, 3, 1))),
            ShapeError,
            r"equal batches, got \(3, 3\) and \(2, 3, 1\)",
        ),
        (lambda: ops.matrix_norm(A, ord=3), GraphError, r"inf and -inf as ord, got 3"),
        (
            lambda: pk.gradients([ops.qr(A)[0]], [A]),
            GraphError,
            r"got 3 rows, 4 columns and mode 'reduced'",
        ),
        (
            lambda: pk.gradients([ops.svd(A, full_matrices=True)[0]], [A]),
            GraphError,
            r"full_matrices=False, got 3 rows and 4 columns",
        ),
    ],
)
def test_invalid_calls_raise(build: Any, error: Any, message: str) -> None:
    """An invalid equation, shape or parameter raises an error that shows it."""
    with pytest.raises(error, match=message):
        build()


def test_a_singular_matrix_raises_a_feed_error() -> None:
    """The error for the inverse of a singular matrix gives NumPy's reason."""
    graph = pk.Graph([ops.inv(SQUARE)])

    with pytest.raises(FeedError, match="that it was given: Singular matrix"):
        pk.interpret(graph, {"s": np.ones((3, 3), np.float32)})


@pytest.mark.parametrize("name", ["svd", "svdvals", "pinv", "matrix_rank"])
@pytest.mark.parametrize("wrong", [-np.inf, np.nan])
def test_singular_values_of_nan_and_infinity_raise(name: str, wrong: float) -> None:
    """A matrix with NaN or infinity raises an error; LAPACK does not terminate for this one."""
    x = np.array([[wrong, -0.867, 0.945], [-0.186, 1.109, -1.75], [-1.98, 0.36, -0.81]], np.float32)
    result = getattr(ops, name)(SQUARE)
    graph = pk.Graph([result] if isinstance(result, pk.Entry) else list(result))

    with pytest.raises(FeedError, match=f"it was given: it holds {wrong}, and has no singular"):
        pk.interpret(graph, {"s": x})


def test_transposed_operands_are_not_copied() -> None:
    """An einsum of transposed operands is one library call, which reads them transposed."""
    exe = pk.compile(ops.einsum(A, B, equation="bij,bki->bjk"))

    assert [type(s).__name__ for s in exe.steps] == ["LibraryCall"]


def test_the_equation_is_the_first_argument_or_a_parameter() -> None:
    """Einsum takes the equation first or by name, and operands as arguments or a sequence."""
    named = ops.einsum(A, B, equation="bij,bki->bjk").node
    for node in (ops.einsum("bij,bki->bjk", A, B).node, ops.einsum("bij,bki->bjk", [A, B]).node):
        assert [node.params, node.inputs] == [named.params, named.inputs]
    with pytest.raises(GraphError, match="einsum: parameter 'equation' is given twice"):
        ops.einsum("ij,jk", A, B, equation="ij,jk")


def test_the_smallest_product_is_computed_first() -> None:
    """A chain of matrices is multiplied from the end where that costs less."""
    chain = [pk.var(c, s) for c, s in zip("abc", [(50, 60), (60, 70), (70, 1)], strict=True)]
    for entry in (ops.multi_dot(*chain), ops.einsum(*chain, equation="ij,jk,kl->il")):
        texts = [str(s) for s in pk.compile(entry).steps if "library" in str(s)]
        assert ["x (70, 1)" in texts[0], len(texts)] == [True, 2]
