"""Reading and writing elements by subscripts, `take` and `take_along_axis`."""

from __future__ import annotations

import sys
import tracemalloc
from types import FrameType, FunctionType
from typing import Any

import numpy as np
import pytest

from passkit import xp
from passkit.errors import DTypeError, ShapeError, SubscriptError

SHAPES = ((4, 5, 6), (7,), (3, 4), (2, 3, 4, 5))
STEPS = (None, 1, 2, -1, -2, 3)


def random_key(rng: np.random.Generator, shape: tuple[int, ...]) -> tuple[Any, ...]:
    """Return a random subscript of an array of this shape."""
    key: list[Any] = []
    axis = 0
    while axis < len(shape):
        n = shape[axis]
        kind = rng.integers(8)
        if kind == 0:
            key.append(int(rng.integers(-n, n)))
        elif kind <= 3:
            start, stop = (
                None if rng.random() < 0.5 else int(rng.integers(-n - 1, n + 2)) for _ in "ab"
            )
            key.append(slice(start, stop, STEPS[rng.integers(len(STEPS))]))
        elif kind == 4:
            key.append(None)
            continue
        elif kind == 5 and Ellipsis not in [k for k in key if not isinstance(k, np.ndarray)]:
            key.append(Ellipsis)
            axis += int(rng.integers(len(shape) - axis + 1))
            continue
        elif kind == 6:
            key.append(rng.integers(-n, n, size=((2, 3), (3,), (2, 1), ())[rng.integers(4)]))
        elif kind == 7 and rng.random() < 0.4:
            count = int(rng.integers(1, len(shape) - axis + 1))
            key.append(rng.random(shape[axis : axis + count]) < 0.5)
            axis += count
            continue
        axis += 1
    return tuple(key)


def reads_and_writes(seed: int, count: int) -> list[tuple[Any, Any, Any]]:
    """Return arrays after random reads and writes, with NumPy's and the keys."""
    rng = np.random.default_rng(seed)
    results: list[tuple[Any, Any, Any]] = []
    while len(results) < 3 * count:
        data = rng.random(SHAPES[rng.integers(len(SHAPES))])
        key = random_key(rng, data.shape)
        try:
            expected = data[key]
        except IndexError:  # index arrays that do not fit together
            continue
        x = xp.asarray(data) + 0
        xp_key = tuple(
            xp.asarray(k) if isinstance(k, np.ndarray) and rng.random() < 0.5 else k for k in key
        )
        results.append((x[xp_key], expected, key))
        value = rng.random(expected.shape[rng.integers(2) :]) if rng.random() < 0.7 else 7.5
        written, target = data.copy(), x.copy()
        written[key] = value
        target[xp_key] = value if isinstance(value, float) else xp.asarray(value)
        results += [(target, written, key), (x, data, key)]
    return results


def check(results: list[tuple[Any, Any, Any]]) -> None:
    """Compare arrays with NumPy's."""
    xp.eval(*[result for result, _, _ in results])
    for result, expected, key in results:
        assert result.shape == expected.shape, key
        np.testing.assert_array_equal(np.asarray(result), expected, str(key), strict=True)


def test_random_subscripts_of_small_arrays() -> None:
    """Reads and writes by 400 random subscripts equal NumPy's."""
    check(reads_and_writes(0, 400))


def test_random_subscripts_of_queued_arrays() -> None:
    """Reads and writes by 300 random subscripts equal NumPy's when they are queued first."""
    with xp.config(small=0, compile_at=1 << 60):
        check(reads_and_writes(1, 300))


def test_random_subscripts_in_kernels(xp_queue: None) -> None:
    """Reads and writes by random subscripts equal NumPy's in compiled kernels."""
    check(reads_and_writes(2, 16))


@pytest.mark.parametrize("small", [0, 8, 256])
def test_repeated_subscripts_equal_those_that_are_new(small: int) -> None:
    """A subscript gives NumPy's elements each time, of computed, pending and other arrays."""
    keys: list[Any] = [
        1,
        -1,
        None,
        ...,
        slice(1, None),
        (slice(None), None, slice(None, -1, 2)),
        (..., 2),
        (0, slice(3, 0, -1), 1),
        (slice(2, 2), 0),
        (None, 1, ..., None),
    ]
    data = np.random.default_rng(3).random((4, 5, 6))
    for dtype in ("float64", "int32", "complex64"):
        for array in ((data * 10).astype(dtype), (data[:3] * 7).astype(dtype)):
            with xp.config(small=small, compile_at=1 << 60):
                for repetition in range(3):
                    for key in keys:
                        for x in (xp.asarray(array), xp.asarray(array) + repetition):
                            expected = np.array(x)
                            part = x[key]
                            np.testing.assert_array_equal(part, expected[key], strict=True)
                            for value in (3, expected[key] * 2, expected[key].sum()):
                                y = x + 0
                                y[key] = value if type(value) is int else xp.asarray(value)
                                expected[key] = value
                                np.testing.assert_array_equal(y, expected, strict=True)


@pytest.mark.skipif(
    isinstance(xp.Array.__getitem__, FunctionType), reason="subscripts are recorded in Python"
)
def test_subscripts_met_before_call_no_python() -> None:
    """The interpreter leaves them to the recorder however often the same code has run."""
    x = xp.asarray(np.ones((300, 40))) + 1

    def total() -> Any:
        y = x * 1
        for _ in range(50):
            y[1:] = y[:-1]
            y[:, 3] = y[:][0, 0]
        return y[::-1]

    assert float(xp.sum(total())) == 24000
    functions: list[str] = []

    def note(frame: FrameType, event: str, argument: Any) -> None:
        if event == "call":
            functions.append(frame.f_code.co_name)

    sys.setprofile(note)
    try:
        y = total()
    finally:
        sys.setprofile(None)
    assert functions == ["total"]
    assert float(xp.sum(y)) == 24000


def test_repeated_subscripts_are_refused_each_time() -> None:
    """A subscript of one array does not fit a smaller one, nor does a value of another shape."""
    x, y = (xp.asarray(np.zeros((n, 40))) + 0 for n in (30, 20))
    for _ in range(3):
        assert x[25].shape == (40,)
        with pytest.raises(SubscriptError, match="index 25 is out of range for axis 0"):
            y[25]
        x[25] = xp.ones(40)
        with pytest.raises(ShapeError, match=r"shape \(2, 40\) does not fit"):
            x[25] = xp.ones((2, 40)) * 1
        with pytest.raises(DTypeError, match="complex numbers cannot be stored"):
            x[25] = 1j
    assert float(xp.sum(x)) == 40


def test_elements_of_short_rows_are_assigned_in_one_kernel(xp_queue: None) -> None:
    """All elements of matrices of 2 x 2 are written by one kernel, the positions are constants."""
    rng = np.random.default_rng(0)
    expected, values = rng.random((5, 17, 2, 2)), rng.random((2, 2, 4, 17))
    x, y = xp.asarray(expected), xp.asarray(values)
    with xp.inspect() as log:
        for i, j in ((0, 1), (1, 0), (1, 1), (0, 0)):
            x[1:, :, i, j - 2] = y[i, j] * 2
            expected[1:, :, i, j] = values[i, j] * 2
        np.testing.assert_array_equal(x, expected)

    assert [len(run.kernels) for run in log] == [1]


def test_reading_elements_in_a_loop_uses_one_plan(xp_queue: None) -> None:
    """Positions of elements, rows and slices of pending arrays are no part of plans."""
    data = np.random.default_rng(0).random((300, 400))
    x = xp.asarray(data)
    with xp.inspect() as log:
        for i in (2, 0, 1, 17, 299, -1):
            assert float((x * 2)[i, i]) == data[i, i] * 2
        for i in (2, 1, 40, 250):
            np.testing.assert_array_equal((x * 2)[i : i + 30, i], data[i : i + 30, i] * 2)

    paths = [run.path for run in log]
    assert paths[1:6] + paths[7:] == 8 * ["cached"]


def test_reading_a_part_computes_that_part_only(xp_queue: None) -> None:
    """The kernel for an element of a pending array has that one result, and no loop over others."""
    x = xp.asarray(np.arange(1e6).reshape(1000, 1000))
    y = xp.asarray(np.arange(1000.0))
    with xp.inspect() as log:
        assert float((x * 2 + y)[3, 7]) == (3007 * 2) + 7
        np.testing.assert_array_equal((x * 2 + y)[5:7, :3], x.numpy()[5:7, :3] * 2 + np.arange(3))

    assert [run.bytes_written for run in log] == [8, 48]
    assert [len(run.kernels) for run in log] == [1, 1]


def test_reading_a_computed_array_compiles_nothing() -> None:
    """Few elements of a computed array are read at once."""
    x = xp.asarray(np.arange(1e6))
    xp.reset_stats()
    assert [float(x[k]) for k in (0, 5, -1)] == [0, 5, 999999]
    assert xp.take(x, xp.asarray([3, 4])).tolist() == [3, 4]
    assert xp.stats()["recorded"] == 0


def test_masks_are_computed_but_not_what_they_mask(xp_queue: None) -> None:
    """Reading by a mask executes the mask; the elements stay pending and so do assignments."""
    data = np.random.default_rng(0).random((20, 30))
    x = xp.asarray(data) * 2
    y = x.copy()
    y[y > 1] = 0.0
    y[data[:, 0] > 0.5, :] = -1.0
    selected = x[x > 1] + 1
    assert "pending" in repr(x)
    assert "mask_assign" in repr(y)
    assert "gather" in repr(selected)

    expected = data * 2
    np.testing.assert_array_equal(selected, expected[expected > 1] + 1)
    expected[expected > 1] = 0
    expected[data[:, 0] > 0.5] = -1
    np.testing.assert_array_equal(y, expected)


def test_assignments_change_no_other_array() -> None:
    """In small and large, computed and pending arrays, only the assigned array changes."""
    for n in (10, 1000):
        for make in (lambda a: a, lambda a: a + 0):
            x = make(xp.asarray(np.arange(float(n))))
            copied, shifted, view = x.copy(), x + 1, x[:]
            x[3] = 100.0
            x[4:6] += 10
            x[xp.asarray([7, 8])] *= 2
            expected = np.arange(float(n))
            expected[3] = 100
            expected[4:6] += 10
            expected[[7, 8]] *= 2
            np.testing.assert_array_equal(x, expected)
            for other in (copied, view, shifted - 1):
                np.testing.assert_array_equal(other, np.arange(float(n)))


def test_arrays_of_other_owners_are_not_written() -> None:
    """Memory that NumPy or another library sees stays as it is."""
    source = np.arange(1000.0)
    x = xp.asarray(source, copy=False)
    exported = np.asarray(y := xp.asarray(source))
    x[0] = 5
    y[0] = 6

    assert (source[0], exported[0], float(x[0]), float(y[0])) == (0, 0, 5, 6)


def test_assigning_elements_in_a_loop_is_done_in_place() -> None:
    """A value that nothing else refers to is written, without a copy for each element."""
    x = xp.zeros(100_000)
    x[0] = 1.0
    xp.eval(x)
    xp.reset_stats()
    tracemalloc.start()
    for k in range(100):
        x[k] = float(k)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert peak < x.nbytes / 4
    assert xp.stats()["recorded"] == 0
    assert float(x[98] + x[99]) == 197


@pytest.mark.parametrize("n", [5, 40])
def test_assignments_to_what_they_read(n: int) -> None:
    """Overlapping and transposed assignments read all elements before one is written."""
    data = np.random.default_rng(0).random((n, n))
    x, expected = xp.asarray(data), data.copy()
    x[...] = x.T
    expected[...] = expected.T.copy()
    np.testing.assert_array_equal(x, expected)
    x[1:, :] = x[:-1, :]
    expected[1:, :] = expected[:-1, :].copy()
    np.testing.assert_array_equal(x, expected)
    x[:, :-1] += x[:, 1:]
    expected[:, :-1] += expected[:, 1:].copy()
    np.testing.assert_array_equal(x, expected)
    x[::-1] = x
    expected[::-1] = expected.copy()
    np.testing.assert_array_equal(x, expected)


def test_assigned_values_are_converted() -> None:
    """An array keeps its dtype; leading axes of length 1 of a value do not matter."""
    x = xp.zeros((2, 3), dtype=xp.int32)
    x[0] = xp.asarray([[1.9, 2.9, -1.9]])
    x[1, 1:] = True
    x[True] += 1

    assert x.dtype == xp.int32
    assert x.tolist() == [[2, 3, 0], [1, 2, 2]]
    z = xp.zeros(3, dtype=xp.complex64)
    z[1:] = 1j
    assert z.tolist() == [0, 1j, 1j]


def test_pending_arrays_without_axes_are_assigned(xp_queue: None) -> None:
    """``x[...] = y`` changes a pending 0-dimensional array, in NumPy and in kernels."""
    for key, function in ((..., xp.prod), ((), xp.max)):
        with xp.config(compile_at=1 << 40), xp.inspect() as runs:
            x = function(xp.ones(3) + 3)
            x[key] = 5
            assert float(x) == 5
        assert runs[-1].path == "unfused"
        with xp.config(compile_at=0):
            x = function(xp.ones(3) * 3)
            x[key] = 5
            assert float(x) == 5


def test_a_vector_of_one_number_is_assigned_to_an_element() -> None:
    """Leading axes of length 1 are dropped, for real and complex elements."""
    for dtype in ("float32", "complex64"):
        x = xp.asarray([1, 2, 3], dtype=dtype)
        x[1] = (-1,)
        assert x.tolist() == [1, -1, 3]


def test_real_arrays_are_assigned_to_complex_ones() -> None:
    """Their elements get imaginary parts of 0, also where the arrays are large."""
    numbers = np.arange(1000.0)
    for value in (numbers, xp.asarray(numbers), xp.asarray(numbers) + 0):
        x = xp.zeros(1000, dtype=xp.complex64)
        x[:] = value
        assert x.dtype == np.complex64
        np.testing.assert_array_equal(np.asarray(x), numbers)
    x = xp.zeros(1000, dtype=xp.complex128)
    np.add(xp.asarray(numbers), 1, out=x)  # type: ignore[call-overload]
    np.testing.assert_array_equal(np.asarray(x), numbers + 1)


def test_ranges_are_assigned() -> None:
    """A range is assigned like a list."""
    x = xp.zeros(3)
    x[:] = range(3)
    assert x.tolist() == [0, 1, 2]


def test_special_subscripts() -> None:
    """Lists, NumPy integers, bools, empty lists and masks without axes select as in NumPy."""
    data = np.arange(12).reshape(3, 4)
    x = xp.asarray(data)
    keys: list[Any] = [
        [0, 2],
        np.int64(1),
        True,
        False,
        [],
        (slice(None), [True, False, True, True]),
    ]
    keys += [(np.uint8(2), -1), (Ellipsis, None), ([[0], [1]], [1, 2]), np.array(1)]
    for key in keys:
        np.testing.assert_array_equal(np.asarray(x[key]), data[key], str(key))
    assert x[xp.asarray(2)].tolist() == data[2].tolist()
    assert [row.tolist() for row in x] == data.tolist()
    assert xp.asarray(5)[()] == 5
    assert 7 in x
    assert 12 not in x


@pytest.mark.parametrize("compile_at", [0, 1 << 40])
def test_pending_indices_out_of_range_write_nothing(compile_at: int) -> None:
    """Kernels and NumPy write nothing there, and read the nearest element."""
    reference = np.zeros((4, 3))
    reference[[1, 3]] = 2.0
    points = np.zeros((4, 3))
    points[1, 2] = 2.0
    with xp.config(small=0, compile_at=compile_at):
        rows = xp.asarray([1, 7, -1, -9]) + 0
        x = xp.zeros((4, 3)) + 0.0
        x[rows] = 2.0
        y = xp.zeros((3, 4)) + 0.0
        y[:, rows] = xp.ones((3, 4)) * 2.0
        z = xp.zeros((4, 3)) + 0.0
        z[xp.asarray([1, 1, 9]) + 0, xp.asarray([2, 5, 0]) + 0] = 2.0
        nearest = xp.take_along_axis(xp.asarray([[0.0, 1.0, 2.0]]), rows[None, :])
        xp.eval(x, y, z, nearest)
        np.testing.assert_array_equal(nearest.numpy(), [[1.0, 2.0, 2.0, 0.0]])
        np.testing.assert_array_equal(x.numpy(), reference)
        np.testing.assert_array_equal(y.numpy(), reference.T)
        np.testing.assert_array_equal(z.numpy(), points)


def test_axes_without_elements_have_no_indices(xp_queue: None) -> None:
    """An index of an axis of length 0 is refused at once, also a pending one."""
    x = xp.zeros((0, 3))
    pending = xp.asarray([0]) + 0
    for read in (
        lambda: x[pending],
        lambda: xp.take(x, pending, axis=0),
        lambda: xp.take_along_axis(x, xp.reshape(pending, (1, 1)), axis=0),
        lambda: x.__setitem__(pending, 1),
    ):
        with pytest.raises(SubscriptError, match=r"axis 0 of length 0 has no elements to index"):
            read()
    assert x[xp.zeros(0, dtype=xp.int64) + 0].shape == (0, 3)


def test_pending_indices_select_elements(xp_queue: None) -> None:
    """Indices that are pending are not executed on their own."""
    data = np.arange(40.0).reshape(5, 8)
    x, i = xp.asarray(data), xp.asarray([3, 1]) + 1
    result = x[i] + x[i - 1, 2:4][:, :1] + xp.take(x, i, axis=0) + x[:, i][0, 0]

    assert "pending" in repr(i)
    expected = data[[4, 2]] + data[[3, 1], 2:3] + data[[4, 2]] + data[0, 4]
    np.testing.assert_array_equal(result, expected)


def test_take_and_take_along_axis() -> None:
    """They equal NumPy's functions for small and queued arrays."""
    data = np.random.default_rng(0).random((4, 5))
    order = np.argsort(data, 1)
    for small in (256, 0):
        with xp.config(small=small, compile_at=0):
            x, i = xp.asarray(data), xp.asarray([3, -1, 0])
            pairs = [
                (xp.take(x, i, axis=1), np.take(data, [3, -1, 0], 1)),
                (xp.take(x[0], i), np.take(data[0], [3, -1, 0])),
                (xp.take_along_axis(x, xp.asarray(order)), np.sort(data, 1)),
                (xp.take_along_axis(x, xp.asarray([[2]]), axis=0), data[2:3]),
            ]
            check([(result, expected, "take") for result, expected in pairs])


def test_wrong_subscripts_are_refused() -> None:
    """Errors come where the subscript is, are IndexErrors, and say what was given."""
    for x in (xp.ones((2, 3)), xp.ones((200, 3))[:2] + 0):
        with pytest.raises(
            SubscriptError, match=r"index 2 is out of range for axis 0 of shape \(2"
        ):
            x[2]
        with pytest.raises(SubscriptError, match=r"index -4 is out of range for axis 1 of shape"):
            x[0, -4]
        with pytest.raises(IndexError, match=r"shape \(2, 3\) takes 2 indices, got 3"):
            x[0, 0, 0]
        with pytest.raises(SubscriptError, match=r"63 new axes .* \(2, 3\) 65 axes; .* at most 64"):
            x[(None,) * 63]
    with pytest.raises(SubscriptError, match=r"at most one '...', got 2"):
        x[..., ...]
    with pytest.raises(SubscriptError, match=r"ints, slices, '...', None and arrays, got 'a'"):
        x["a"]
    with pytest.raises(SubscriptError, match=r"arrays of integers or bools .*, got float64"):
        x[[0.5]]
    with pytest.raises(SubscriptError, match=r"\[\[1\], \[1, 0\]\] is no array of indices"):
        x[[[1], [1, 0]]]
    with pytest.raises(SubscriptError, match=r"slice\(None, 1.5, None\) selects no elements"):
        x[:1.5]
    with pytest.raises(SubscriptError, match=r"index 5 is out of range for axis 1 of length 3"):
        x[:, [0, 5]]
    with pytest.raises(SubscriptError, match=r"axes from 0 on needs shape \(2,\), got \(3,\)"):
        x[[True, False, True]]
    with pytest.raises(SubscriptError, match=r"do not fit together: .* \(2,\), \(3,\)"):
        x[[0, 1], [0, 1, 2]]
    with pytest.raises(TypeError, match=r"0-dimensional array has no elements to iterate"):
        iter(xp.asarray(1))


def test_wrong_assignments_and_takes_are_refused() -> None:
    """Errors come where the assignment is, and say what was given; the array stays as it was."""
    x = xp.ones((2, 3))
    with pytest.raises(ShapeError, match=r"a value of shape \(2,\) does not fit .* \(3,\)"):
        x[0] = [1, 2]  # type: ignore[assignment]
    with pytest.raises(ShapeError, match=r"a value of shape \(2,\) does not fit .* \(3,\)"):
        x[0] = xp.ones(2)
    with pytest.raises(ShapeError, match=r"a value of shape \(4,\) does not fit .* \(2, 2\)"):
        x[:, [0, 1]] = xp.ones(4)
    with pytest.raises(DTypeError, match=r"complex numbers cannot be stored in .* float64"):
        x[0] = 1j
    with pytest.raises(DTypeError, match=r"'datetime64\[Y\]' is not an element type"):
        x[0] = np.datetime64("2020")
    with pytest.raises(ShapeError, match=r"take: indices \[\[1\], \[1, 0\]\] have no shape"):
        xp.take(x, [[1], [1, 0]])  # type: ignore[arg-type]
    with pytest.raises(DTypeError, match=r"take needs integers as indices, got float64"):
        xp.take(x, xp.ones(2), axis=0)
    with pytest.raises(ShapeError, match=r"needs indices of 2 axes, as the array has, got 1"):
        xp.take_along_axis(x, xp.asarray([0]))
    assert x.tolist() == [[1, 1, 1], [1, 1, 1]]
