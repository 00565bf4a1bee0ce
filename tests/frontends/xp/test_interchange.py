"""DLPack, the buffer protocol, pickles, copies, texts and NumPy's functions."""

from __future__ import annotations

import copy
import pickle
import sys
from typing import Any

import numpy as np
import pytest

from passkit import xp
from passkit.errors import DTypeError, FeedError, SettingError, ShapeError


def pending(n: int = 1000) -> Any:
    """Return a pending array, twice 0, 1, …."""
    return xp.asarray(np.arange(float(n))) * 2


def test_dlpack_shares_memory_that_consumers_must_not_write() -> None:
    """NumPy gets a read-only view, xp the same memory again, and x changes independently."""
    x = pending()
    view = np.from_dlpack(x)
    again = xp.from_dlpack(x)
    exported = xp.from_dlpack(view)
    x[0] = 5

    assert not view.flags.writeable
    assert (view[0], float(again[0]), float(exported[0]), float(x[0])) == (0, 0, 0, 5)
    assert x.__dlpack_device__() == (1, 0)
    assert np.shares_memory(np.asarray(exported), view)


def test_capsules_of_dlpack() -> None:
    """Consumers of version 1 share memory; older ones, and those that ask for it, get a copy."""
    x = pending()

    assert "dltensor_versioned" in repr(x.__dlpack__(max_version=(1, 1)))
    assert "dltensor_versioned" in repr(x.__dlpack__(max_version=(1, 0), copy=True))
    assert "dltensor_versioned" not in repr(x.__dlpack__())
    copied = np.from_dlpack(x, copy=True)
    copied[0] = 9
    assert float(x[0]) == 0
    assert "dltensor_versioned" not in repr(x.__dlpack__(copy=False))
    frozen = np.arange(3.0)
    frozen.flags.writeable = False
    with pytest.raises(BufferError, match=r"before version 1 cannot export read-only memory; pass"):
        xp.asarray(frozen, copy=False).__dlpack__(copy=False)
    with pytest.raises(BufferError, match=r"cannot be exported to the device \(2, 0\)"):
        x.__dlpack__(dl_device=(2, 0))


def test_numpy_arrays_of_arrays() -> None:
    """`np.asarray` shares memory, `numpy` is a copy; dtypes are converted."""
    x = pending()

    assert np.shares_memory(np.asarray(x), np.asarray(x))
    assert np.array(x).flags.writeable
    assert x.numpy().flags.writeable
    assert np.asarray(x, np.float32).dtype == np.float32
    assert x[:3].tolist() == [0, 2, 4]
    with pytest.raises(FeedError, match=r"float64 becomes int8 by a copy only, got copy=False"):
        np.asarray(x, np.int8, copy=False)


@pytest.mark.skipif(sys.version_info < (3, 12), reason="Python calls __buffer__ from 3.12 on")
def test_the_buffer_protocol_shares_memory() -> None:
    """A memoryview reads the elements and must not write them."""
    view = memoryview(pending(10))  # type: ignore[arg-type]

    assert view.readonly
    assert view.tolist() == [2.0 * k for k in range(10)]


def test_buffers_must_not_be_written() -> None:
    """A consumer that wants to write is refused; one that reads gets a view."""
    x = pending(10)

    assert x.__buffer__(0).readonly
    with pytest.raises(BufferError, match=r"must not be written; x.numpy\(\) is a copy"):
        x.__buffer__(1)


def test_pickles_and_copies_are_independent() -> None:
    """They have the value, and change independently."""
    for x in (pending(), pending(5), xp.asarray([1.5], dtype=xp.bfloat16)):
        copies = [pickle.loads(pickle.dumps(x)), copy.copy(x), copy.deepcopy([x])[0]]
        expected = x.tolist()
        x[0] = 7.0
        for c in copies:
            assert type(c) is xp.Array
            assert (c.tolist(), c.dtype) == (expected, x.dtype)


def test_devices_of_arrays() -> None:
    """An array is on the CPU, and can be moved there only."""
    x = pending()

    assert x.to_device(x.device) is x
    with pytest.raises(SettingError, match=r"to_device: there is no device 'tpu'; devices: cpu"):
        x.to_device("tpu")
    with pytest.raises(SettingError, match=r"stream must be None, as each device has .* got 3"):
        x.to_device("cpu", stream=3)


def test_repr_executes_nothing() -> None:
    """The repr of a pending array names its operations; print and format execute them."""
    x = pending(300) + 1
    y = xp.exp(-x) if hasattr(xp, "exp") else -x
    assert repr(x) == "Array(pending: add, multiply; float64[300])"
    assert "negative" in repr(y)
    assert "pending" in repr(x)
    assert str(x).startswith("[  1.   3.")
    assert repr(x).startswith("Array([  1.,   3.")
    z = pending(300)
    for _ in range(9):
        z = z + 1
    assert repr(z) == f"Array(pending: {', '.join(8 * ['add'])} and 2 more; float64[300])"
    assert f"{x[1]:.2f}" == "3.00"
    assert f"{pending(2)}" == "[0. 2.]"


def test_ufuncs_of_numpy_stay_lazy() -> None:
    """Ufuncs that xp has are queued, also with a NumPy array on the left; others run in NumPy."""
    x = pending()
    data = np.arange(1000.0) * 2
    lazy = [
        (np.exp(-x), np.exp(-data)),
        (np.add(data, x), data + data),
        (data * x, data * data),
        (np.float64(3) - x, 3 - data),
        (np.maximum(x, 5), np.maximum(data, 5)),
        (np.arctan2(x, 2.0), np.arctan2(data, 2.0)),
    ]
    for result, _ in lazy:
        assert "pending" in repr(result)
    xp.eval(*[result for result, _ in lazy])
    for result, expected in lazy:
        np.testing.assert_allclose(np.asarray(result), expected, rtol=1e-14)
    at_once = np.cbrt(x)
    assert type(at_once) is xp.Array
    np.testing.assert_array_equal(np.asarray(at_once), np.cbrt(data))
    np.testing.assert_array_equal(np.asarray(np.add.accumulate(x)), np.add.accumulate(data))


def test_ufuncs_of_numpy_store_results() -> None:
    """An Array as ``out`` gets the result as its value, a NumPy array is filled."""
    x, out, filled = pending(), xp.zeros(1000), np.zeros(1000)
    assert np.add(x, 1, out=out) is out
    assert "pending" in repr(out)
    assert np.add(x, 1, out=filled) is filled
    filled -= np.asarray(x)
    filled += x  # type: ignore[arg-type]
    np.testing.assert_array_equal(np.asarray(out), filled)


def test_functions_of_numpy_stay_lazy() -> None:
    """Functions that xp has are queued; others run in NumPy and return arrays."""
    x = pending()
    data = np.arange(1000.0) * 2
    lazy = [
        (np.concatenate([x, x]), np.concatenate([data, data])),
        (np.reshape(x, (10, 100)), data.reshape(10, 100)),
        (np.transpose(np.reshape(x, (10, 100))), data.reshape(10, 100).T),
        (np.roll(x, 2), np.roll(data, 2)),
        (np.stack((x, x), axis=1), np.stack((data, data), axis=1)),
        (np.flip(x), np.flip(data)),
        (np.expand_dims(x, 0), data[None]),
        (np.tile(x, 2), np.tile(data, 2)),
        (np.broadcast_to(x, (2, 1000)), np.broadcast_to(data, (2, 1000))),
    ]
    for result, _ in lazy:
        assert "pending" in repr(result)
    at_once = [
        (np.interp(x, [0, 2000], [0, 1]), np.interp(data, [0, 2000], [0, 1])),
        (np.split(x, 2)[1], np.split(data, 2)[1]),
        (np.concatenate([x, x], dtype=np.float32), np.concatenate([data, data], dtype="f4")),
        (np.ones_like(x, order="F"), np.ones(1000)),
    ]
    xp.eval(*[result for result, _ in lazy])
    for result, expected in lazy + at_once:
        assert type(result) is xp.Array
        np.testing.assert_allclose(np.asarray(result), expected, rtol=1e-14)
    assert np.shape(x) == (1000,)
    assert np.allclose(x, data) is True


def test_numpy_transposes_in_reverse_order() -> None:
    """Without axes, or with None, `numpy.transpose` and the method reverse their order."""
    x = xp.ones((2, 3))
    for result in (
        np.transpose(x),  # type: ignore[call-overload]
        np.transpose(x, None),  # type: ignore[call-overload]
        np.transpose(a=x),  # type: ignore[call-overload]
        np.transpose(x, axes=None),  # type: ignore[call-overload]
        x.transpose(None),
    ):
        assert isinstance(result, xp.Array)
        assert result.shape == (3, 2)


def test_ufuncs_of_numpy_arrays_store_into_an_array() -> None:
    """An `Array` that is only the output of a ufunc gets its result."""
    x = xp.zeros(2)
    np.add(np.ones(2), 1, out=x)  # type: ignore[call-overload]
    assert x.tolist() == [2, 2]


def test_views_reinterpret_bytes() -> None:
    """`Array.view` gives the bytes as another dtype, without sharing memory."""
    x = np.array([[1.0 + 2.0j, 3.0 - 4.0j]])
    a = xp.asarray(x)
    b = a.view("float64")
    assert np.array_equal(np.asarray(b), x.view("float64"))
    assert np.array_equal(np.asarray(b.view("complex128")), x)
    assert np.array_equal(np.asarray(b.view("int64")), x.view("int64"))
    c = b.view()
    c[0, 0] = 9.0
    assert np.array_equal(np.asarray(a), x)
    with pytest.raises(ShapeError, match="view: 3 elements of float32 are no entire number of flo"):
        xp.ones(3, "float32").view("float64")


def test_numpy_arrays_without_axes_are_copies() -> None:
    """As NumPy's scalars, a 0-dimensional result may be changed in place and leaves x as it is."""
    x = xp.asarray(2.0)
    y = np.asarray(x)
    y *= 3
    assert (float(y), float(x)) == (6.0, 2.0)


def test_numpy_writes_to_the_memory_of_one_array_alone() -> None:
    """An array that is an output of NumPy's changes; others are read-only, or have copies."""
    x = pending()
    np.add(np.asarray(x), 1.0, out=np.asarray(x))
    copies = [x.copy(), xp.reshape(x, (10, 100)), xp.asarray(x, copy=True)]
    np.asarray(x)[:2] = 7.0

    assert x[:3].tolist() == [7.0, 7.0, 5.0]
    assert all(np.asarray(c).ravel()[:2].tolist() == [1.0, 3.0] for c in copies)
    x[0] = -1.0
    assert x[:3].tolist() == [-1.0, 7.0, 5.0]


def test_memory_that_others_refer_to_is_read_only() -> None:
    """NumPy must not write to what pending operations read, or what two arrays share."""
    x = pending()
    xp.eval(x)
    later = x * 3
    shared = pending()
    xp.eval(shared)
    other = shared.copy()

    assert not np.asarray(x).flags.writeable
    assert not np.asarray(shared).flags.writeable
    assert (later[1].tolist(), other[1].tolist()) == (6.0, 2.0)
    assert isinstance(x, xp.ndarray)


def test_parts_of_memory_that_numpy_writes_to_are_read_alone() -> None:
    """Reading a row of an array with a NumPy array of its memory copies the row, not the array."""
    x = xp.asarray(np.zeros((40, 300)))
    numpy_array = np.asarray(x)
    xp.eval()
    xp.reset_stats()
    row, block = x[3], x[..., 1:3]
    numpy_array[3, 0] = 1.0
    assert float(row[0]) == 0.0 and x[3, 0].tolist() == 1.0
    assert np.asarray(block).shape == (40, 2)
    assert xp.stats()["recorded"] == 0


@pytest.mark.usefixtures("xp_queue")
def test_results_are_those_before_numpy_writes() -> None:
    """Pending operations read the elements of the moment when they were recorded."""
    x = xp.asarray(np.arange(40.0))
    numpy_array = np.asarray(x)
    part = numpy_array[1:3]
    before = x + 1
    numpy_array[0], part[0] = 100, 200
    after = x + 1
    assert (float(before[0]), float(before[1])) == (1, 2)
    assert (float(after[0]), float(after[1])) == (101, 201)

    del numpy_array
    before = x * 2
    part[1] = 300
    assert float(before[2]) == 4 and float(x[2]) == 300

    del part
    xp.eval(before)
    xp.reset_stats()
    xp.eval(x - 1)
    assert xp.stats()["bytes_read"] == x.nbytes
    assert not x._value.is_exposed, "nobody can write any more"


def test_ufuncs_of_products_and_hyperbolic_functions_are_queued() -> None:
    """numpy.tanh, expm1, matmul and vecdot stay pending, also beside NumPy's arrays."""
    a = np.random.default_rng(0).normal(size=(64, 64))
    x = xp.asarray(a)
    for ufunc, inputs in (
        (np.tanh, (x,)),
        (np.expm1, (x,)),
        (np.matmul, (x, a)),
        (np.matmul, (a, x)),
        (np.vecdot, (x, a)),
    ):
        result = ufunc(*inputs)
        assert "pending" in repr(result), ufunc
        expected = ufunc(*[a for _ in inputs])
        np.testing.assert_allclose(np.asarray(result), expected, rtol=1e-12, atol=1e-12)


def test_scalars_of_numpy_are_converted_as_its_arrays() -> None:
    """Imaginary parts are not lost, and copy=False refuses another dtype."""
    with pytest.raises(DTypeError, match="asarray of complex128 as float64 loses"):
        xp.asarray(np.complex128(1j), dtype=xp.float64)
    with pytest.raises(FeedError, match="float64 becomes float32 by a copy only"):
        xp.asarray(np.float64(1), dtype=xp.float32, copy=False)
    assert xp.asarray(np.float32(2)).dtype == np.float32
    assert float(xp.asarray(np.float64(1), copy=False)) == 1
