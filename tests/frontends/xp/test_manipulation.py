"""Manipulation functions, and the methods of arrays for them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from passkit import xp
from passkit.errors import ArgumentError, DTypeError, ShapeError

RNG = np.random.default_rng(0)


def manipulated(x: Any, n: Any) -> list[tuple[Any, Any]]:
    """Return results of xp for an array of shape (4, 1, 6) with NumPy's for the same."""
    return [
        (xp.broadcast_to(x, (2, 4, 5, 6)), np.broadcast_to(n, (2, 4, 5, 6))),
        (xp.broadcast_arrays(x, xp.ones(6))[1], np.broadcast_to(np.ones(6), (4, 1, 6))),
        (xp.concat((x, x + 1), axis=1), np.concatenate((n, n + 1), 1)),
        (xp.concat((x, x), axis=None), np.concatenate((n, n), None)),
        (
            xp.concat([x.astype(xp.float32), xp.ones((1, 1, 6))]),
            np.concatenate([n.astype("f4"), n[:1] ** 0]),
        ),
        (xp.expand_dims(x, axis=(0, -1)), np.expand_dims(n, (0, -1))),
        (xp.flip(x), np.flip(n)),
        (xp.flip(x, axis=-1), np.flip(n, -1)),
        (xp.moveaxis(x, (0, 1), (2, 0)), np.moveaxis(n, (0, 1), (2, 0))),
        (xp.permute_dims(x, (2, 0, 1)), np.transpose(n, (2, 0, 1))),
        (xp.matrix_transpose(x), np.swapaxes(n, -1, -2)),
        (xp.repeat(x, 3, axis=2), np.repeat(n, 3, 2)),
        (xp.repeat(x, 2), np.repeat(n, 2)),
        (xp.repeat(x, xp.asarray([1, 0, 2, 3]), axis=0), np.repeat(n, [1, 0, 2, 3], 0)),
        (xp.reshape(x, (3, -1)), n.reshape(3, -1)),
        (xp.reshape(x, (2, 2, 3, 2)), n.reshape(2, 2, 3, 2)),
        (xp.reshape(x, (8, 3)), n.reshape(8, 3)),
        (xp.roll(x, 3), np.roll(n, 3)),
        (xp.roll(x, (1, -2), axis=(0, 2)), np.roll(n, (1, -2), (0, 2))),
        (xp.roll(x, (1, 2), axis=(2, 2)), np.roll(n, (1, 2), (2, 2))),
        (xp.squeeze(x, 1), n.squeeze(1)),
        (xp.stack((x, x * 2), axis=-1), np.stack((n, n * 2), -1)),
        (xp.tile(x, (2, 1, 2)), np.tile(n, (2, 1, 2))),
        (xp.tile(x, (2, 1, 1, 1)), np.tile(n, (2, 1, 1, 1))),
        (xp.unstack(x, axis=2)[4], n[..., 4]),
        (x.T, n.T),
        (x.mT, np.swapaxes(n, -1, -2)),
        (x.reshape(6, 4), n.reshape(6, 4)),
        (x.reshape((6, -1)), n.reshape(6, 4)),
        (x.transpose(), n.T),
        (x.transpose(1, 0, 2), n.transpose(1, 0, 2)),
        (x.flatten(), n.flatten()),
        (x.ravel(), n.ravel()),
        (x.squeeze(), n.squeeze()),
        (x.copy(), n),
    ]


def check(pairs: list[tuple[Any, Any]]) -> None:
    """Compare arrays with NumPy's."""
    xp.eval(*[result for result, _ in pairs])
    for result, expected in pairs:
        assert result.shape == expected.shape
        np.testing.assert_array_equal(np.asarray(result), expected, strict=True)


def test_small_arrays_are_manipulated_at_once() -> None:
    """Functions and methods of computed arrays equal NumPy's; complex numbers are no exception."""
    data = RNG.random((4, 1, 6))
    check(manipulated(xp.asarray(data), data))
    x = xp.asarray(data * 1j)
    check([(xp.flip(x), np.flip(data * 1j)), (xp.roll(x, 1, axis=0), np.roll(data * 1j, 1, 0))])


def test_pending_arrays_are_manipulated_in_kernels(xp_queue: None) -> None:
    """Functions and methods of pending arrays stay pending, and equal NumPy's."""
    data = RNG.random((4, 1, 6))
    pairs = manipulated(xp.asarray(data) * 2, data * 2)
    assert all("pending" in repr(result) for result, _ in pairs if "ones" not in repr(result))
    check(pairs)


def test_one_plan_serves_all_extents_and_shifts(xp_queue: None) -> None:
    """Reshapes, broadcasts and rolls are compiled once for other extents and shifts."""
    with xp.inspect() as log:
        for n, m, shift in ((40, 30, 2), (50, 60, -7), (77, 41, 20)):
            data = RNG.random((n, m))
            x = xp.asarray(data)
            joined = xp.reshape(x + 1, (-1,)) * 2
            split = (
                xp.reshape(xp.roll(x, shift, axis=0), (n, m, 1)) + xp.broadcast_to(x[0], (3, m)).T
            )
            xp.eval(joined, split)
            np.testing.assert_array_equal(joined, (data + 1).ravel() * 2)
            expected = np.roll(data, shift, 0)[:, :, None] + np.broadcast_to(data[0], (3, m)).T
            np.testing.assert_array_equal(split, expected)

    assert [run.path for run in log[1:]] == ["cached", "cached"]


def test_results_do_not_share_memory_that_is_written() -> None:
    """A computed array and its reshape, copy or transposed form change independently."""
    x = xp.asarray(np.arange(1000.0))
    others = [x.reshape(10, 100), x.copy(), x.T, xp.asarray(x, copy=True), xp.reshape(x, (1000,))]
    x[0] = 5
    x += 1
    others[1][1] = 7

    assert x[0] == 6
    assert [float(o.ravel()[0]) for o in others] == [0, 0, 0, 0, 0]
    assert [float(o.ravel()[1]) for o in others] == [1, 7, 1, 1, 1]


def test_empty_arrays_are_manipulated() -> None:
    """Arrays without elements keep their extents."""
    x = xp.zeros((0, 3))

    assert x.reshape(3, 0).shape == (3, 0)
    assert x.flatten().shape == (0,)
    assert xp.roll(x, 1).shape == (0, 3)
    assert xp.concat([x, x], axis=1).shape == (0, 6)
    assert xp.repeat(x, 2, axis=0).shape == (0, 3)


def test_wrong_shapes_and_axes_are_refused() -> None:
    """Errors come where an operation is called, and say what was given."""
    x = xp.ones((2, 3))
    with pytest.raises(ShapeError, match=r"shapes \(2, 3\), \(4,\) cannot be broadcast together"):
        xp.broadcast_arrays(x, xp.ones(4))
    with pytest.raises(ShapeError, match=r"shape \(2, 3\) does not broadcast to \(3, 2\)"):
        xp.broadcast_to(x, (3, 2))
    with pytest.raises(ValueError, match=r"shape \(2, 3\) cannot be reshaped to \(4, -1\)"):
        xp.reshape(x, (4, -1))
    with pytest.raises(ShapeError, match=r"reshape: a shape of 65 axes was given; .* at most 64"):
        xp.reshape(xp.ones(1), [1] * 65)
    with pytest.raises(ShapeError, match=r"broadcast_to: a shape of 66 axes was given"):
        xp.broadcast_to(x, (*[1] * 64, 2, 3))
    with pytest.raises(ShapeError, match=r"shape \(0,\) cannot be reshaped to \(0, 11529215046068"):
        xp.reshape(xp.ones(0), (0, 2**60))
    with pytest.raises(IndexError, match=r"expand_dims: axis 4 is out of range for .* 3 axes"):
        xp.expand_dims(x, axis=4)
    with pytest.raises(ShapeError, match=r"flip: axes must differ, got \(0, -2\)"):
        xp.flip(x, axis=(0, -2))
    with pytest.raises(ArgumentError, match=r"flip: axis must be an int, got 1.5"):
        xp.flip(x, axis=1.5)  # type: ignore[arg-type]
    with pytest.raises(ShapeError, match=r"squeeze: axis 1 of shape \(2, 3\) has length 3, not 1"):
        xp.squeeze(x, 1)
    with pytest.raises(ShapeError, match=r"permute_dims needs 2 axes, got \(0,\)"):
        xp.permute_dims(x, (0,))
    with pytest.raises(ShapeError, match=r"needs at least two axes, got shape \(3,\)"):
        xp.matrix_transpose(xp.ones(3))
    with pytest.raises(ShapeError, match=r"permute_dims needs 2 axes, got \(\)"):
        xp.ones((2, 3)).transpose(())
    with pytest.raises(ArgumentError, match=r"axis must be an int, got an array int64\[2\]"):
        xp.ones((2, 3)).transpose(np.asarray([1, 0]))
    with pytest.raises(ShapeError, match=r"as many sources as destinations, got 1 and 2"):
        xp.moveaxis(x, 0, (0, 1))


def test_lists_and_other_shapes_than_ints_are_refused() -> None:
    """Functions that move elements name a list that is no array, and a shape that has no ints."""
    x = xp.zeros((2, 3))
    calls: list[Any] = [
        lambda a: xp.reshape(a, (1,)),
        lambda a: xp.broadcast_to(a, (1,)),
        lambda a: xp.broadcast_arrays(a, a),
        lambda a: xp.expand_dims(a),
        lambda a: xp.squeeze(a, 0),
        lambda a: xp.permute_dims(a, (0,)),
        xp.matrix_transpose,
        lambda a: xp.moveaxis(a, 0, 0),
        xp.flip,
        lambda a: xp.roll(a, 1),
        xp.unstack,
        lambda a: xp.tile(a, (2,)),
        lambda a: xp.repeat(a, 2),
    ]
    for call in calls:
        with pytest.raises(ArgumentError, match=r"must be an Array, .* got \[1\]"):
            call([1])
    with pytest.raises(ArgumentError, match=r"reshape: shape must be .* got 1\.5"):
        xp.reshape(x, 1.5)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match=r"broadcast_to: shape must be .* got \(2\.0, 3\)"):
        xp.broadcast_to(x, (2.0, 3))  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match=r"broadcast_shapes: shapes must be .* got \('a',\)"):
        xp.broadcast_shapes("a")  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match=r"roll: shift must be an integer, got 1\.5"):
        xp.roll(x, 1.5)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match=r"tile: repetitions must be an integer, got 0\.5"):
        xp.tile(x, (0.5,))  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match=r"concat: arrays must be a sequence of .* got 3"):
        xp.concat(3)  # type: ignore[arg-type]
    with pytest.raises(ShapeError, match=r"permute_dims needs 2 axes, got 1"):
        xp.permute_dims(x, 1)  # type: ignore[arg-type]


def test_wrong_joins_and_repetitions_are_refused() -> None:
    """Errors come where an operation is called, and say what was given."""
    x = xp.ones((2, 3))
    with pytest.raises(ArgumentError, match=r"concat needs at least one array, got none"):
        xp.concat([])
    with pytest.raises(ShapeError, match=r"along axis 0 needs .*, got \(2, 3\) and \(2, 4\)"):
        xp.concat([x, xp.ones((2, 4))])
    with pytest.raises(ShapeError, match=r"stack needs arrays of one shape, got \(2, 3\) and \(3,"):
        xp.stack([x, xp.ones(3)])
    with pytest.raises(ShapeError, match=r"roll needs a shift for each of 1 axes, got 2"):
        xp.roll(x, (1, 2), axis=0)
    with pytest.raises(ShapeError, match=r"several shifts need several axes, got \(1, 2\) alone"):
        xp.roll(x, (1, 2))
    with pytest.raises(ShapeError, match=r"tile needs repetitions >= 0, got \(-1,\)"):
        xp.tile(x, (-1,))
    with pytest.raises(DTypeError, match=r"repeat needs integers as repeats, got float64"):
        xp.repeat(x, 1.5)  # type: ignore[arg-type]
    with pytest.raises(ShapeError, match=r"one for each of 3 elements, got shape \(2,\)"):
        xp.repeat(x, xp.asarray([1, 2]), axis=1)
    with pytest.raises(ShapeError, match=r"repeat needs repeats >= 0, got -1"):
        xp.repeat(x, -1)
    with pytest.raises(ArgumentError, match=r"repeat: repeats must be .*, got \[\[1\], \[2, 3\]\]"):
        xp.repeat(x, [[1], [2, 3]])  # type: ignore[arg-type]
    with pytest.raises(ShapeError, match=r"shape \(\) does not broadcast to \(1000"):
        xp.broadcast_to(xp.asarray(1.0), (10**400,))
    with pytest.raises(ArgumentError, match=r"roll: shift must be an integer, got 'a'"):
        xp.roll(xp.ones((0, 3)), "a")  # type: ignore[arg-type]
    assert xp.repeat(xp.ones((0, 3)), xp.asarray([], dtype=xp.float64), axis=0).shape == (0, 3)
