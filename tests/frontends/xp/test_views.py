"""Triangular views: the rules, zeros outside of them, and kernels that do not read there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from attrs import frozen

import passkit as pk
from passkit import xp

RNG = np.random.default_rng(0)
ROWS, COLUMNS = 5, 7
A = RNG.uniform(0.1, 0.9, (ROWS, COLUMNS))
B = RNG.uniform(0.1, 0.9, (ROWS, COLUMNS))
LOWER, UPPER, DIAGONAL, ENTIRE = (-4, 0), (0, 6), (0, 0), (-4, 6)
Pair = tuple[int, int]


def diagonals(x: xp.Array) -> Pair:
    """Return the diagonals of an array's view."""
    view = xp.view_of(x)
    return view.bottom, view.top


@frozen
class Operands:
    """Arrays of each kind of view.

    Attributes:
        lower, upper, diagonal, entire: of this kind.
        below: what is below the main diagonal.
        above: what is above the diagonal beside the main one.
        condition: a lower triangle of booleans.
        integers: an upper triangle.
    """

    lower: xp.Array
    upper: xp.Array
    diagonal: xp.Array
    entire: xp.Array
    below: xp.Array
    above: xp.Array
    condition: xp.Array
    integers: xp.Array


def operands() -> Operands:
    """Return new arrays of each kind of view."""
    a, b = xp.asarray(A), xp.asarray(B)
    return Operands(
        lower=xp.tril(a),
        upper=xp.triu(b),
        diagonal=xp.as_diagonal(a),
        entire=b,
        below=xp.tril(b, k=-1),
        above=xp.triu(a, k=2),
        condition=xp.tril(a) > xp.tril(b),
        integers=xp.triu(xp.astype(a * 10, xp.int64)),
    )


RULES: list[tuple[str, Callable[[Operands], xp.Array], Pair]] = [
    # load: by the view; the diagonal is never 0
    ("tril", lambda v: v.lower, LOWER),
    ("triu", lambda v: v.upper, UPPER),
    ("diagonal", lambda v: v.diagonal, DIAGONAL),
    ("entire", lambda v: v.entire, ENTIRE),
    ("strictly lower", lambda v: v.below, (-4, -1)),
    # default: union
    ("add", lambda v: v.lower + v.upper, ENTIRE),
    ("add of lower", lambda v: v.lower + v.below, LOWER),
    ("subtract", lambda v: v.upper - v.diagonal, UPPER),
    ("less", lambda v: v.below < v.diagonal, LOWER),
    ("greater", lambda v: v.above > v.upper, UPPER),
    ("not_equal", lambda v: v.lower != v.diagonal, LOWER),
    ("logical_or", lambda v: xp.logical_or(v.lower, v.diagonal), LOWER),
    ("negative", lambda v: -v.above, (2, 6)),
    ("add of a scalar", lambda v: v.lower + 1, ENTIRE),
    # intersection
    ("multiply", lambda v: v.lower * v.upper, DIAGONAL),
    ("multiply by entire", lambda v: v.entire * v.below, (-4, -1)),
    ("multiply by a scalar", lambda v: 2 * v.lower, LOWER),
    ("multiply by a row", lambda v: v.above * v.entire[0], (2, 6)),
    ("multiply by a column", lambda v: v.lower * v.entire[:, :1], LOWER),
    ("logical_and", lambda v: xp.logical_and(v.condition, v.upper), DIAGONAL),
    ("bitwise_and", lambda v: v.integers & xp.astype(v.lower, xp.int64), DIAGONAL),
    # entire
    ("divide", lambda v: v.lower / v.entire, ENTIRE),
    ("remainder", lambda v: v.lower % v.entire, ENTIRE),
    ("less_equal", lambda v: v.lower <= v.lower, ENTIRE),
    ("greater_equal", lambda v: v.lower >= v.lower, ENTIRE),
    ("equal", lambda v: v.lower == v.lower, ENTIRE),
    ("logical_not", lambda v: ~v.condition, ENTIRE),
    ("exp", lambda v: xp.exp(v.diagonal), ENTIRE),
    ("cos", lambda v: xp.cos(v.diagonal), ENTIRE),
    ("isfinite", lambda v: xp.isfinite(v.diagonal), ENTIRE),
    ("hypot", lambda v: xp.hypot(v.lower, v.lower), ENTIRE),
    ("pow", lambda v: v.lower**v.lower, ENTIRE),
    ("pow 0", lambda v: v.lower**0, ENTIRE),
    ("maximum", lambda v: xp.maximum(v.lower, v.lower), ENTIRE),
    # select
    ("select", lambda v: xp.where(v.condition, v.upper, v.below), LOWER),
    ("select of entire", lambda v: xp.where(v.condition, v.entire, v.below), LOWER),
    ("select by entire", lambda v: xp.where(v.entire > 0.5, v.lower, v.below), LOWER),
    # transposition, blocks, joins
    ("transpose", lambda v: v.above.T, (-6, -2)),
    ("matrix_transpose", lambda v: xp.matrix_transpose(v.lower), (0, 4)),
    ("block", lambda v: v.upper[1:4, 0:5], (1, 4)),
    ("block below", lambda v: v.upper[2:, 3:], (-1, 3)),
    ("strided block", lambda v: v.lower[::2], (-2, 6)),
    ("append_row", lambda v: xp.concat([v.diagonal, v.below], axis=0), (-9, 0)),
    ("append_col", lambda v: xp.concat([v.lower, v.diagonal], axis=1), (-4, 7)),
    ("stack of matrices", lambda v: xp.expand_dims(v.lower, axis=0), LOWER),
    # broadcasts: rows have no lowest diagonal, columns no highest
    ("colwise", lambda v: xp.broadcast_to(v.lower[:1], (5, 7)), (-4, 0)),
    ("rowwise", lambda v: xp.broadcast_to(v.diagonal[:, :1], (5, 7)), (0, 6)),
    # the rest
    ("indexing", lambda v: v.diagonal[xp.asarray([0, 1, 2])], (-2, 6)),
    ("reshape", lambda v: xp.reshape(v.diagonal, (7, 5)), (-6, 4)),
    ("flip", lambda v: xp.flip(v.diagonal), ENTIRE),
    ("roll", lambda v: xp.roll(v.diagonal, 1), ENTIRE),
    ("reduction", lambda v: xp.sum(v.diagonal, axis=0, keepdims=True), (0, 6)),
    ("astype", lambda v: xp.astype(v.below, xp.float32), (-4, -1)),
    ("copy", lambda v: v.below.copy(), (-4, -1)),
    ("matmul", lambda v: v.lower[:, :5] @ v.below, (-4, -1)),
    ("matmul with entire", lambda v: v.lower[:, :5] @ v.entire, ENTIRE),
    ("eye", lambda v: xp.eye(5, 7, k=2), (2, 2)),
]
ZERO_PRESERVING = (
    "sqrt",
    "expm1",
    "log1p",
    "sin",
    "sinh",
    "tan",
    "tanh",
    "asin",
    "asinh",
    "atan",
    "atanh",
    "floor",
    "round",
    "ceil",
    "abs",
    "trunc",
    "isinf",
    "isnan",
    "special.cbrt",
    "special.erf",
    "square",
    "sign",
    "positive",
)


def check_zeros(x: xp.Array) -> None:
    """Check that an array is 0 outside of its view."""
    array, view = np.asarray(x), xp.view_of(x)
    inside = np.triu(np.tril(np.ones(array.shape, bool), view.top), view.bottom)
    np.testing.assert_array_equal(array[~inside], 0)


def check_rules() -> None:
    """Check the table of rules, and that results have no other elements than the rules say."""
    for name, function, expected in RULES:
        result = function(operands())
        assert diagonals(result) == expected, name
        check_zeros(result)
    v = operands()
    for name in ZERO_PRESERVING:
        function = xp.special.__dict__[name[8:]] if "." in name else getattr(xp, name)
        results = [function(x) for x in (v.below, v.above, v.entire)]
        assert [diagonals(r) for r in results] == [(-4, -1), (2, 6), ENTIRE], name
        check_zeros(results[0])


def test_operations_propagate_views() -> None:
    """Each rule of Stan's table gives the diagonals of its result, for small arrays."""
    check_rules()


@pytest.mark.usefixtures("xp_queue")
def test_queued_operations_propagate_views() -> None:
    """Views are known while operations are pending; nothing is executed for them."""
    with xp.config(max_ops=10_000), xp.inspect() as runs:
        views = [diagonals(function(operands())) for _, function, _ in RULES]
    assert views == [expected for _, _, expected in RULES]
    assert runs == []


def test_views_have_kinds() -> None:
    """A view is lower, upper, diagonal or entire, by the diagonals beside the main one."""
    v = operands()
    arrays = (v.lower, v.upper, v.diagonal, v.entire, v.below)
    kinds = [xp.view_of(x).kind for x in arrays]
    assert kinds == ["lower", "upper", "diagonal", "entire", "lower"]
    assert xp.view_of(v.below * v.upper) == xp.View("diagonal", 0, -1)
    assert xp.view_of(xp.linalg.cholesky(xp.eye(3))).kind == "lower"
    assert xp.view_of(xp.linalg.cholesky(xp.eye(3), upper=True)).kind == "upper"
    assert xp.view_of(xp.linalg.qr(xp.ones((3, 3))).R).kind == "upper"


def test_views_need_matrices() -> None:
    """Vectors have no view."""
    for function in (xp.view_of, xp.as_lower, xp.as_upper, xp.as_diagonal):
        with pytest.raises(pk.ShapeError, match=rf"{function.__name__} needs matrices .* \(3,\)"):
            function(xp.ones(3))
    with pytest.raises(pk.ShapeError, match=r"tril needs matrices .* \(3,\)"):
        xp.tril(xp.ones(3))


@pytest.mark.usefixtures("xp_queue")
def test_masked_elements_never_leak() -> None:
    """Elements outside of a declared triangle, or infinite ones beside it, reach no result."""
    n = 33
    poisoned = RNG.standard_normal((n, n))
    lower = np.tril(poisoned)
    poisoned[np.triu_indices(n, 1)] = np.nan
    infinite = np.where(np.triu(np.ones((n, n)), 1) > 0, np.inf, 2.0)
    x, y = xp.as_lower(xp.asarray(poisoned)), xp.asarray(infinite)
    results: list[tuple[Any, Any]] = [
        (x * y, lower * 2),
        (y * x + x, lower * 3),
        (x * xp.inf, np.where(lower == 0, 0, np.copysign(np.inf, lower))),
        (xp.sum(x * x, axis=1), np.sum(lower * lower, axis=1)),
        (x @ x, lower @ lower),
        (x.T * x, np.diag(np.diag(lower) ** 2)),
        (xp.tanh(x), np.tanh(lower)),
        (xp.where(x > 0, x, 0), np.where(lower > 0, lower, 0)),
    ]
    xp.eval(*[r for r, _ in results])
    for result, expected in results:
        np.testing.assert_allclose(np.asarray(result), expected, rtol=1e-12, atol=1e-14)


@pytest.mark.usefixtures("xp_queue")
def test_triangles_are_masked_inside_the_kernel_that_reads_them() -> None:
    """A declared triangle is not copied: its consumer loads only what is inside."""
    x = xp.as_lower(xp.asarray(RNG.standard_normal((64, 64))))
    with xp.inspect() as runs:
        xp.eval(x * 2 + x)
    (run,) = runs
    assert (len(run.kernels), run.bytes_written) == (1, 64 * 64 * 8)
    assert "load(x0 + i1 + i0 * n0, m & (i1 + lane_index(m)) - i0 <= 0)" in str(run.kernels[0])


@pytest.mark.usefixtures("xp_queue")
def test_declared_triangles_are_never_copied() -> None:
    """Each run that reads a triangle masks it again; nothing is written for it but results."""
    n = 64
    numbers = RNG.standard_normal((n, n))
    x = xp.as_lower(xp.asarray(numbers))
    y = xp.asarray(numbers)
    with xp.inspect() as runs:
        for _ in range(7):
            y = x * 0.5 + y
            total = float(xp.sum(x * y))
    assert [run.bytes_written for run in runs[1:]] == [n * n * 8 + 8] * 6
    assert [run.path for run in runs[5:]] == ["cached"] * 2
    expected = numbers + 3.5 * np.tril(numbers)
    np.testing.assert_allclose(total, np.sum(np.tril(numbers) * expected))
    np.testing.assert_allclose(np.asarray(x + 1), np.tril(numbers) + 1)


def assigned(target: xp.Array, key: Any, value: Any) -> Pair:
    """Assign to a part of an array, check the result with NumPy, and return its diagonals."""
    expected = np.array(np.asarray(target))
    target = target.copy()
    target[key] = value
    expected[key] = np.asarray(value)
    np.testing.assert_array_equal(np.asarray(target), expected)
    check_zeros(target)
    return diagonals(target)


@pytest.mark.parametrize("is_queued", [False, True])
def test_assignments_update_views(is_queued: bool) -> None:
    """A block adds its diagonals; diagonals that it covers entirely do not count any more."""
    with xp.config(small=0 if is_queued else 256):
        v = operands()
        block = (slice(1, 3), slice(2, 5))
        assert assigned(v.entire, ..., v.lower) == LOWER
        assert assigned(v.lower, ..., v.above) == UPPER
        assert assigned(v.lower, block, 0.0) == (-4, 3)
        assert assigned(v.lower, block, v.upper[:2, :3]) == (-4, 3)
        assert assigned(v.upper, block, v.lower[:2, :3]) == UPPER
        assert assigned(v.diagonal, (0, 6), 1.5) == ENTIRE
        assert assigned(v.entire, (slice(1, None), slice(None)), v.upper[1:]) == UPPER
        assert assigned(v.entire, (slice(None), slice(1, None)), v.lower[:, 1:]) == LOWER
        stack = xp.stack([v.entire, v.entire])
        assert assigned(stack, 1, v.lower) == ENTIRE
        assert assigned(stack, ..., v.lower) == LOWER
        assert assigned(v.lower, xp.asarray([0]), 1.0) == ENTIRE


def test_writing_an_element_outside_of_a_view_widens_it() -> None:
    """Elements that are written one by one keep the promise that the rest is 0."""
    x = xp.tril(xp.asarray(A))
    y = x.copy()
    x[0, 3] = 5.0
    assert (diagonals(x), float(x[0, 3]), float(xp.sum(x * x) - xp.sum(y * y))) == (
        ENTIRE,
        5.0,
        pytest.approx(25.0),
    )
    assert diagonals(y) == LOWER


def test_numpy_cannot_write_outside_of_a_view() -> None:
    """Arrays with a view share read-only memory; a copy may be written."""
    x = xp.tril(xp.asarray(A))
    with pytest.raises(ValueError, match="read-only"):
        np.asarray(x)[0, 3] = 5.0
    copy = x.numpy()
    copy[0, 3] = 5.0
    assert (float(x[0, 3]), diagonals(x)) == (0.0, LOWER)


def test_programs_of_views_equal_numpy() -> None:
    """Random programs on triangles equal NumPy, and are 0 outside of the views they report."""
    unary = [
        (lambda x: -x, np.negative),
        (xp.tanh, np.tanh),
        (xp.square, np.square),
        (lambda x: x.T, np.transpose),
        (lambda x: x * 0.5, lambda x: x * 0.5),
        (lambda x: xp.tril(x, k=1), lambda x: np.tril(x, 1)),
        (lambda x: xp.triu(x, k=-1), lambda x: np.triu(x, -1)),
        (lambda x: x @ x, lambda x: x @ x),
    ]
    binary = [
        (lambda x, y: x + y, np.add),
        (lambda x, y: x * y, np.multiply),
        (lambda x, y: xp.where(x > 0, x, y), lambda x, y: np.where(x > 0, x, y)),
        (lambda x, y: xp.where(x < y, x, y), lambda x, y: np.where(x < y, x, y)),
    ]
    rng = np.random.default_rng(3)
    for _ in range(60):
        arrays = [rng.uniform(-1, 1, (6, 6)) for _ in range(3)]
        values = [xp.tril(xp.asarray(arrays[0])), xp.triu(xp.asarray(arrays[1])), xp.eye(6)]
        expected = [np.tril(arrays[0]), np.triu(arrays[1]), np.eye(6)]
        for _ in range(12):
            p, q = rng.integers(len(values), size=2)
            if rng.random() < 0.5:
                f, g = unary[rng.integers(len(unary))]
                values.append(f(values[p]))
                expected.append(g(expected[p]))
            else:
                f2, g2 = binary[rng.integers(len(binary))]
                values.append(f2(values[p], values[q]))
                expected.append(g2(expected[p], expected[q]))
        for value, array in zip(values, expected, strict=True):
            np.testing.assert_allclose(np.asarray(value), array, rtol=1e-9, atol=1e-12)
            check_zeros(value)


@pytest.mark.usefixtures("xp_queue")
def test_determinants_of_triangles_are_products_of_diagonals() -> None:
    """No decomposition runs for them; other matrices are decomposed."""
    x = xp.asarray(RNG.uniform(-2, 2, (3, 4, 4)))
    triangle = xp.tril(x)
    sign, logarithm = xp.linalg.slogdet(triangle)
    with xp.inspect() as runs:
        results = [np.asarray(r) for r in (xp.linalg.det(triangle), sign * xp.exp(logarithm))]
    for result in results:
        np.testing.assert_allclose(result, np.linalg.det(np.tril(np.asarray(x))), rtol=1e-12)
    assert not {"det", "slogdet"} & {name for run in runs for name in run.operations}
    expected = np.linalg.det(np.asarray(x))
    np.testing.assert_allclose(np.asarray(xp.linalg.det(x)), expected, rtol=1e-12)
    assert xp.linalg.det(xp.tril(xp.ones((3, 3), dtype=xp.int32))).dtype == xp.float64
