"""Creation functions and conversions to arrays."""

from __future__ import annotations

import array
from typing import Any

import numpy as np
import pytest

from passkit import xp
from passkit.errors import ArgumentError, CapacityError, DTypeError, FeedError, ShapeError


def created() -> list[tuple[Any, Any]]:
    """Return arrays of xp with NumPy's."""
    return [
        (xp.zeros((3, 4)), np.zeros((3, 4))),
        (xp.zeros(5, dtype=xp.int8), np.zeros(5, np.int8)),
        (xp.zeros(5, xp.int8), np.zeros(5, np.int8)),
        (xp.full(3, 1, xp.float32), np.full(3, 1, np.float32)),
        (xp.ones((2, 0)), np.ones((2, 0))),
        (xp.ones((), dtype=xp.bool), np.ones((), bool)),
        (xp.empty((2, 2), dtype=xp.float32), np.zeros((2, 2), np.float32)),
        (xp.full((30, 2), 2.5), np.full((30, 2), 2.5)),
        (xp.full(3, -7, dtype=xp.int16), np.full(3, -7, np.int16)),
        (xp.full(3, 2**63, dtype=xp.uint64), np.full(3, 2**63, np.uint64)),
        (xp.full((2, 2), xp.asarray(3)), np.full((2, 2), 3)),
        (xp.full((2, 2), True), np.full((2, 2), True)),
        (xp.full(2, 1j), np.full(2, 1j)),
        (xp.zeros_like(xp.ones((2, 3), dtype=xp.int32)), np.zeros((2, 3), np.int32)),
        (xp.ones_like(xp.ones(3), dtype=xp.uint8), np.ones(3, np.uint8)),
        (xp.empty_like(xp.ones(2, dtype=xp.complex64)), np.zeros(2, np.complex64)),
        (xp.full_like(xp.ones(3, dtype=xp.float32), 4), np.full(3, 4, np.float32)),
        (xp.eye(3), np.eye(3)),
        (xp.eye(3, 5, k=2, dtype=xp.int64), np.eye(3, 5, 2, np.int64)),
        (xp.eye(4, 2, k=-9), np.zeros((4, 2))),
        (xp.arange(300), np.arange(300)),
        (xp.arange(10, -10, -3), np.arange(10, -10, -3)),
        (xp.arange(5, 2), np.arange(5, 2)),
        (xp.arange(0.5, 4), np.arange(0.5, 4)),
        (xp.arange(4, dtype=xp.float32), np.arange(4, dtype=np.float32)),
        (xp.arange(2**63, 2**63 + 3, dtype=xp.uint64), np.arange(3, dtype=np.uint64) + 2**63),
        (xp.arange(3, dtype=xp.complex64), np.arange(3, dtype=np.complex64)),
        (xp.linspace(0, 1, 11), np.linspace(0, 1, 11)),
        (xp.linspace(5, -5, 300, endpoint=False), np.linspace(5, -5, 300, endpoint=False)),
        (xp.linspace(2, 3, 1), np.linspace(2, 3, 1)),
        (xp.linspace(2, 3, 0), np.linspace(2, 3, 0)),
        (xp.linspace(0, 1j, 3), np.linspace(0, 1j, 3)),
        (xp.logspace(0, 3, 4), np.logspace(0, 3, 4)),
        (xp.logspace(-1, 1, 5, base=2, dtype="float32"), np.logspace(-1, 1, 5, True, 2, "f4")),
        (xp.linspace(0, 1, 4, dtype=xp.float32), np.linspace(0, 1, 4, dtype=np.float32)),
        (xp.diag(xp.arange(3)), np.diag(np.arange(3))),
        (xp.diag(xp.asarray([1.0, np.nan]), 2), np.diag([1.0, np.nan], 2)),
        (xp.diag(xp.arange(3), k=-1), np.diag(np.arange(3), -1)),
        (xp.diag(xp.reshape(xp.arange(6), (2, 3)), k=1), np.diag(np.arange(6).reshape(2, 3), 1)),
        (xp.tril(xp.ones((2, 4, 3)), k=1), np.tril(np.ones((2, 4, 3)), 1)),
        (xp.triu(xp.ones((4, 5)), k=-1), np.triu(np.ones((4, 5)), -1)),
        *zip(
            xp.meshgrid(xp.arange(3), xp.asarray([1.0, 2.0])),
            np.meshgrid(np.arange(3), np.asarray([1.0, 2.0])),
            strict=True,
        ),
        *zip(
            xp.meshgrid(xp.arange(3), xp.arange(2), xp.arange(4), indexing="ij"),
            np.meshgrid(np.arange(3), np.arange(2), np.arange(4), indexing="ij"),
            strict=True,
        ),
    ]


def check(pairs: list[tuple[Any, Any]]) -> None:
    """Compare arrays with NumPy's: values to the last bits, dtypes and shapes."""
    xp.eval(*[result for result, _ in pairs])
    for result, expected in pairs:
        assert result.dtype == expected.dtype
        np.testing.assert_allclose(np.asarray(result), expected, rtol=1e-15, atol=1e-15)
        assert result.shape == expected.shape


def test_small_arrays_are_created_at_once() -> None:
    """Small constants and ranges are computed, and equal NumPy's."""
    assert "pending" not in repr(xp.zeros(3))
    check(created())


def test_large_arrays_are_queued(xp_queue: None) -> None:
    """Queued constants and ranges equal NumPy's."""
    assert "pending" in repr(xp.zeros(3))
    check(created())


def test_creations_fuse_into_their_readers(xp_queue: None) -> None:
    """A sum of constants and ranges is one kernel, which serves all extents and numbers."""
    with xp.inspect() as log:
        for n, start, value in ((300, 0, 2.5), (500, 7, 1.5), (700, -3, 0.5)):
            result = xp.arange(start, start + n) + xp.zeros(n) + xp.full(n, value) * xp.ones(n)
            expected = np.arange(start, start + n) + value
            np.testing.assert_array_equal(np.asarray(result), expected)

    assert [len(run.kernels) for run in log] == [1, 1, 1]
    assert [run.path for run in log[1:]] == ["cached", "cached"]


def test_asarray_takes_numbers_and_lists() -> None:
    """Numbers, and nested sequences of them, have NumPy's dtypes."""
    for obj in (True, 3, 2.5, 1j, [1, 2], [[1, 2.0]], ((True,), (False,)), [], range(3), 2**63):
        result = xp.asarray(obj)
        expected = np.asarray(obj)
        np.testing.assert_array_equal(np.asarray(result), expected)
        assert result.dtype == expected.dtype
    assert xp.asarray([1, 2], dtype=xp.float32).dtype == xp.float32
    assert xp.asarray(np.float32(2)).dtype == xp.float32
    assert xp.asarray([1.5], dtype=xp.bfloat16).dtype == xp.bfloat16


def test_asarray_joins_pending_arrays() -> None:
    """Arrays in a list are stacked, and stay pending."""
    x = xp.asarray(np.arange(1000.0))
    result = xp.asarray([[x + 1, x], [x * 2, x]], dtype=xp.float32)
    assert "pending" in repr(result)
    data = np.arange(1000.0)
    np.testing.assert_array_equal(
        np.asarray(result), np.asarray([[data + 1, data], [data * 2, data]], np.float32)
    )


def test_asarray_copies_unless_it_must_not() -> None:
    """Writes to a NumPy array reach only arrays that share its memory."""
    source = np.zeros(3)
    copied, shared = xp.asarray(source), xp.asarray(source, copy=False)
    source[0] = 5

    assert (copied.tolist(), shared.tolist()) == ([0, 0, 0], [5, 0, 0])
    assert xp.asarray(copied) is copied
    assert xp.asarray(copied, copy=True) is not copied
    assert xp.asarray(copied, copy=False) is copied
    assert xp.asarray(copied, dtype=xp.int8).dtype == xp.int8


def test_asarray_takes_other_arrays() -> None:
    """Objects with the buffer protocol, __array__ or DLPack become arrays; order is row-major."""

    class Exporter:
        """An array that has DLPack only."""

        def __init__(self) -> None:
            self.data = np.arange(3.0)

        def __dlpack__(self, **options: Any) -> Any:
            return self.data.__dlpack__(**options)

        def __dlpack_device__(self) -> Any:
            return self.data.__dlpack_device__()

    for obj in (
        array.array("d", [1, 2]),
        memoryview(b"abc"),
        bytearray(b"abc"),
        np.arange(6).reshape(2, 3).T,
        np.array([1.0], ">f8"),
    ):
        result = np.asarray(xp.asarray(obj))
        np.testing.assert_array_equal(result, np.asarray(obj))
        assert result.flags.c_contiguous
        assert result.dtype.isnative
    assert xp.asarray(Exporter()).tolist() == [0, 1, 2]
    assert xp.from_dlpack(Exporter(), copy=True).tolist() == [0, 1, 2]


def test_wrong_arguments_of_creations_are_refused() -> None:
    """Errors say what was given, and belong to the built-in kinds that callers catch."""
    with pytest.raises(ShapeError, match=r"ones: an array has at most 576460752303423488 elem"):
        xp.ones((2**40, 0, 2**40))
    with pytest.raises(ShapeError, match=r"zeros needs extents >= 0, got shape \(2, -1\)"):
        xp.zeros((2, -1))
    with pytest.raises(ArgumentError, match=r"ones: shape must be an int or a tuple of ints, got"):
        xp.ones("3")  # type: ignore[arg-type]
    with pytest.raises(DTypeError, match=r"full: dtype|asarray: .*'float99'"):
        xp.full(3, 1, dtype="float99")
    with pytest.raises(ShapeError, match=r"fill_value must be 0-dimensional, got shape \(1,\)"):
        xp.full(3, xp.ones(1))
    with pytest.raises(ArgumentError, match=r"full: fill_value must be a number .*, got 'a'"):
        xp.full(3, "a")
    with pytest.raises(ArgumentError, match=r"arange: step must not be 0, got 0"):
        xp.arange(3, 4, 0)
    with pytest.raises(ArgumentError, match=r"arange needs finite numbers, got nan"):
        xp.arange(0, 1, float("nan"))
    with pytest.raises(ShapeError, match=r"arange has at most 576460752303423488 .*, got 11805916"):
        xp.arange(2**70)
    with pytest.raises(ShapeError, match=r"arange has at most 576460752303423488 numbers, got inf"):
        xp.arange(-1e308, 1e308, 1e308)
    with pytest.raises(ShapeError, match=r"at most 57646075230342\d+ numbers, got 461168"):
        xp.arange(2**62, dtype=complex)
    with pytest.raises(DTypeError, match=r"integers of at most 64 bits, got 118059"):
        xp.arange(2**70, 2**70 + 2, dtype=xp.int64)
    with pytest.raises(DTypeError, match=r"no integer dtype holds -1 and 9223372036854775808"):
        xp.arange(-1, 2**63 + 1, 2**63 + 1)
    with pytest.raises(DTypeError, match=r"asarray: nan cannot become int64"):
        xp.full(3, float("nan"), dtype=int)
    with pytest.raises(ArgumentError, match=r"linspace: stop must be within the limits of floats"):
        xp.linspace(0, 10**400, 3)
    with pytest.raises(ArgumentError, match=r"linspace: num must be an integer, got \(2, 3\)"):
        xp.linspace(0, 1, (2, 3))  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match=r"linspace: start must be a real number, got 'a'"):
        xp.linspace("a", 1, 3, dtype=complex)
    with pytest.raises(ArgumentError, match=r"must be an Array, .* got 'a'"):
        xp.logspace(0, 1, 3, base="a")
    with pytest.raises(ArgumentError, match=r"eye: k must be an integer, got 1\.5"):
        xp.eye(2, k=1.5)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match=r"tril: k must be an integer, got 'a'"):
        xp.tril(xp.ones((2, 2)), k="a")  # type: ignore[arg-type]
    for function in (xp.zeros_like, xp.ones_like, xp.empty_like, xp.meshgrid):
        with pytest.raises(ArgumentError, match=r"must be an Array, .* got \[1\]"):
            function([1])  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match=r"must be an Array, .* got \[1\]"):
        xp.full_like([1], 2)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match=r"arange: stop must be a real number, got 1j"):
        xp.arange(0, 1j)
    with pytest.raises(DTypeError, match=r"needs a complex dtype, got float32"):
        xp.linspace(0, 1j, 3, dtype=xp.float32)
    with pytest.raises(ArgumentError, match=r"indexing must be 'xy' or 'ij', got 'yx'"):
        xp.meshgrid(xp.arange(2), indexing="yx")
    with pytest.raises(ShapeError, match=r"meshgrid needs vectors, got an array of shape \(2, 2\)"):
        xp.meshgrid(xp.ones((2, 2)))
    with pytest.raises(ShapeError, match=r"tril needs matrices .*, got shape \(3,\)"):
        xp.tril(xp.ones(3))


@pytest.mark.parametrize("small", [0, 128])
def test_arrays_are_created_with_at_most_64_axes(small: int) -> None:
    """64 axes are created and broadcast like fewer, for any extents; more are refused."""
    with xp.config(small=small, compile_at=0):
        for n in (0, 1, 2, 3):
            shape = (n, *[1] * 62, 2)
            total = xp.ones(shape) + xp.full(shape, xp.asarray(2.0)) + xp.broadcast_to(1.0, shape)
            np.testing.assert_array_equal(np.asarray(total), np.full(shape, 4.0))
        for name in ("zeros", "ones", "empty"):
            with pytest.raises(ShapeError, match=f"{name}: a shape of 65 axes .* at most 64"):
                getattr(xp, name)([1] * 65)
        with pytest.raises(ShapeError, match="full: a shape of 70 axes was given"):
            xp.full([1] * 70, xp.asarray(2.0))
        with pytest.raises(ShapeError, match="normal: a shape of 66 axes was given"):
            xp.random.normal(xp.random.key(0), [1] * 66)
        with pytest.raises(ShapeError, match="reshape: a shape of 65 axes was given"):
            xp.meshgrid(*[xp.ones(1)] * 65)


def test_complex_arrays_that_memory_does_not_hold_are_refused() -> None:
    """Complex ranges are computed at once; errors name the function and the shape."""
    size = 2**50
    with pytest.raises(CapacityError, match=rf"linspace has no memory .* shape \({size},\)"):
        xp.linspace(0, 1j, size)
    with pytest.raises(CapacityError, match=rf"linspace has no memory .* shape \({size},\)"):
        xp.logspace(0, 1j, size)
    with pytest.raises(CapacityError, match=r"linspace has no memory .*: array is too big"):
        xp.linspace(0, 1j, 2**59)
    with pytest.raises(CapacityError, match=rf"arange has no memory .* shape \({size},\)"):
        xp.arange(size, dtype=xp.complex64)
    with pytest.raises(CapacityError, match=rf"constant has no memory .* shape \({size},\)"):
        xp.zeros(size, xp.complex128)


def test_complex_ranges_take_integers_of_any_size() -> None:
    """Integers are floats in complex ranges, also those that int64 does not hold."""
    numbers = xp.arange(2**70, 2**70 + 2**60, 2**59, dtype=xp.complex128)
    assert numbers.tolist() == [2.0**70, 2.0**70 + 2.0**59]
    assert xp.arange(1, 4, 2, dtype=xp.complex64).tolist() == [1, 3]


@pytest.mark.parametrize("small", [0, 128])
def test_diagonals_far_outside_of_a_matrix_are_zeros(small: int) -> None:
    """A number of a diagonal may have more bits than an int64."""
    with xp.config(small=small):
        for k in (2**70, -(2**70)):
            assert not np.asarray(xp.eye(2, k=k)).any()
            assert np.asarray(xp.tril(xp.ones((2, 2)), k=k)).all() == (k > 0)
            assert np.asarray(xp.triu(xp.ones((2, 2)), k=k)).all() == (k < 0)


def test_ranges_of_large_integers_are_unsigned() -> None:
    """Without a dtype, the integers of a range that int64 cannot hold are uint64."""
    numbers = xp.arange(2**63, 2**63 + 3)
    assert numbers.dtype == np.uint64
    assert numbers.tolist() == [2**63, 2**63 + 1, 2**63 + 2]
    assert xp.arange(2**63 - 2, 2**63).dtype == np.int64


@pytest.mark.parametrize("small", [0, 128])
def test_linspace_of_integers_rounds_down(small: int) -> None:
    """As NumPy's, also for negative numbers."""
    with xp.config(small=small, compile_at=0):
        numbers = xp.linspace(-2, 1, 6, dtype=xp.int32)
        np.testing.assert_array_equal(np.asarray(numbers), np.linspace(-2, 1, 6, dtype=np.int32))


def test_linspace_takes_complex_scalars() -> None:
    """Complex numbers may be NumPy's scalars, or in 0-dimensional arrays."""
    for end in (np.complex64(1j), np.asarray(1j), xp.asarray(1j)):
        numbers = xp.linspace(0, end, 3)
        assert numbers.dtype == np.complex128
        assert numbers.tolist() == [0, 0.5j, 1j]


def test_diagonals_need_vectors_or_matrices() -> None:
    """The message has the shape."""
    with pytest.raises(ShapeError, match=r"diag needs a vector or a matrix, got shape \(1, 2, 3\)"):
        xp.diag(xp.ones((1, 2, 3)))


def test_wrong_arguments_of_asarray_are_refused() -> None:
    """Errors say what was given, and belong to the built-in kinds that callers catch."""
    with pytest.raises(ArgumentError, match=r"asarray needs an array, numbers .*, got 'abc'"):
        xp.asarray("abc")
    with pytest.raises(ArgumentError, match=r"from_dlpack needs an object with __dlpack__, got 3"):
        xp.from_dlpack(3)
    with pytest.raises(ShapeError, match=r"\[\[1, 2\], \[3\]\] has no shape"):
        xp.asarray([[1, 2], [3]])
    with pytest.raises(ShapeError, match=r"arrays in a list need one shape, got \(2,\), \(3,\)"):
        xp.asarray([xp.ones(2), xp.ones(3)])
    with pytest.raises(DTypeError, match=r"\[300\] does not fit int8"):
        xp.asarray([300], dtype=xp.int8)
    with pytest.raises(DTypeError, match=r"\[nan\] cannot become int64"):
        xp.asarray([float("nan")], dtype=int)
    with pytest.raises(DTypeError, match=r"\['a'\] cannot become float64"):
        xp.asarray(["a"], dtype=float)
    with pytest.raises(DTypeError, match=r"\[1j\] cannot become float64"):
        xp.asarray([1j], dtype=xp.float64)
    with pytest.raises(DTypeError, match=r"asarray of complex128 as float64 loses imaginary parts"):
        xp.asarray(np.asarray([1j]), dtype=xp.float64)
    with pytest.raises(ArgumentError, match=r"must be an Array, .* got \[1\]"):
        xp.astype([1], xp.float64)  # type: ignore[arg-type]
    with pytest.raises(DTypeError, match=r"1180591620717411303424 fits no integer dtype"):
        xp.asarray(2**70)
    with pytest.raises(DTypeError, match=r"asarray: .*is not an element type of passkit"):
        xp.asarray(np.array(["a"]))
    with pytest.raises(FeedError, match=r"3 is no array, so copy=False cannot share it"):
        xp.asarray(3, copy=False)
    with pytest.raises(ValueError, match=r"a sequence is no array, so copy=False"):
        xp.asarray([3], copy=False)
    with pytest.raises(FeedError, match=r"float64 becomes int8 by a copy only, got copy=False"):
        xp.asarray(np.ones(3), dtype=xp.int8, copy=False)
    with pytest.raises(FeedError, match=r"float64 becomes int8 by a copy only, got copy=False"):
        xp.asarray(xp.ones(3), dtype=xp.int8, copy=False)
