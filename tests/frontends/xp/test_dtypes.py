"""Data types, constants and the description of the namespace."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import passkit
from passkit import xp
from passkit.errors import ArgumentError, DTypeError, SettingError

NAMES = (
    "bool",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "float32",
    "float64",
    "complex64",
    "complex128",
)


def test_dtypes_are_those_of_numpy() -> None:
    """Each dtype of the standard is NumPy's, and float16 and bfloat16 exist besides them."""
    assert [getattr(xp, name) for name in NAMES] == [np.dtype(name) for name in NAMES]
    assert xp.float16 == np.float16
    assert xp.bfloat16 == ml_dtypes.bfloat16


def test_constants() -> None:
    """The constants are Python numbers."""
    assert (xp.e, xp.pi, xp.inf) == (np.e, np.pi, np.inf)
    assert np.isnan(xp.nan)
    assert xp.newaxis is None


def test_can_cast_follows_numpy() -> None:
    """Every pair of dtypes can be cast as NumPy says; arrays stand for their dtypes."""
    for a in NAMES:
        for b in NAMES:
            assert xp.can_cast(getattr(xp, a), getattr(xp, b)) == np.can_cast(a, b)
    assert xp.can_cast(xp.asarray([1], dtype=xp.int8), xp.int16)
    assert xp.can_cast(xp.bfloat16, xp.float32)


def test_result_type_follows_numpy() -> None:
    """Dtypes are promoted as in NumPy 2, in which Python numbers are weak."""
    for a in NAMES:
        for b in NAMES:
            assert xp.result_type(getattr(xp, a), getattr(xp, b)) == np.result_type(a, b)
        x = xp.asarray([1], dtype=getattr(xp, a))
        for number in (True, 1, 1.0, 1j):
            assert xp.result_type(x, number) == np.result_type(np.dtype(a), number)
    assert xp.result_type(xp.bfloat16, xp.float32) == xp.float32
    assert xp.result_type(xp.bfloat16, 1.0) == xp.bfloat16
    assert xp.result_type(1, 2.0) == xp.float64


def test_finfo_has_the_limits_of_floats() -> None:
    """The limits are Python numbers; complex dtypes have those of their components."""
    for name in ("float16", "float32", "float64", "complex64"):
        info: Any = xp.finfo(getattr(xp, name))
        expected = np.finfo(name)
        assert (info.bits, info.eps, info.max) == (expected.bits, expected.eps, expected.max)
        assert (info.min, info.smallest_normal) == (expected.min, expected.smallest_normal)
        assert (info.dtype, type(info.eps)) == (expected.dtype, float)
    assert xp.finfo(xp.asarray([1.0])).bits == 64
    assert xp.finfo(xp.bfloat16).eps == 2.0**-7


def test_iinfo_has_the_limits_of_integers() -> None:
    """The limits are Python integers."""
    for name in ("int8", "int64", "uint8", "uint64"):
        info = xp.iinfo(getattr(xp, name))
        expected = np.iinfo(name)
        assert (info.bits, info.min, info.max) == (expected.bits, expected.min, expected.max)
        assert (info.dtype, type(info.max)) == (np.dtype(name), int)


def test_isdtype_knows_the_kinds() -> None:
    """A kind is a name, a dtype, or a tuple of them of which one must hold."""
    kinds = {
        "bool": ["bool"],
        "signed integer": ["int8", "int16", "int32", "int64"],
        "unsigned integer": ["uint8", "uint16", "uint32", "uint64"],
        "real floating": ["float32", "float64"],
        "complex floating": ["complex64", "complex128"],
    }
    for kind, names in kinds.items():
        assert [n for n in NAMES if xp.isdtype(getattr(xp, n), kind)] == names
    assert not xp.isdtype(xp.bool, "numeric")
    assert xp.isdtype(xp.bfloat16, "real floating")
    assert xp.isdtype(xp.int8, (xp.bool, "integral"))
    assert not xp.isdtype(xp.int8, xp.int16)


def test_the_namespace_describes_itself() -> None:
    """Capabilities, dtypes and devices are those that exist."""
    info = xp.__array_namespace_info__()

    assert info.capabilities()["data-dependent shapes"]
    assert info.devices()[0] == info.default_device() == "cpu"
    assert info.default_dtypes()["real floating"] == xp.ones(1).dtype
    assert list(info.dtypes()) == list(NAMES)
    assert list(info.dtypes(kind=("bool", "complex floating"))) == [
        "bool",
        "complex64",
        "complex128",
    ]


@pytest.mark.parametrize("version", [None, "2022.12", "2023.12", "2024.12", "2025.12"])
def test_an_array_has_its_namespace(version: str | None) -> None:
    """Each version of the standard that callers ask for gives the namespace."""
    x = xp.asarray([1.0])

    assert x.__array_namespace__(api_version=version).asarray is passkit.xp.asarray


def test_astype_converts_small_and_queued_arrays(xp_queue: None) -> None:
    """Pending arrays stay pending; conversion goes by NumPy's rules."""
    x = xp.asarray(np.linspace(-3, 3, 300))
    results = {name: xp.astype(x + 1, getattr(xp, name)) for name in ("int8", "float32", "bool")}
    narrow = (x + 1).astype(xp.bfloat16)

    assert "pending" in repr(narrow)
    xp.eval(*results.values(), narrow)
    for name, result in results.items():
        np.testing.assert_array_equal(result, (np.asarray(x) + 1).astype(name), strict=True)
    np.testing.assert_array_equal(narrow, (np.asarray(x) + 1).astype(ml_dtypes.bfloat16))
    np.testing.assert_array_equal(x.astype(xp.complex64), np.asarray(x).astype("complex64"))
    assert xp.astype(x, xp.float64, copy=False) is x
    assert xp.astype(x, xp.float64) is not x


def test_wrong_dtypes_and_devices_are_refused() -> None:
    """Errors say what was given, and belong to the built-in kinds that callers catch."""
    x = xp.asarray([1j])
    with pytest.raises(DTypeError, match=r"can_cast: to: 'float99' is not an element type"):
        xp.can_cast(xp.int8, "float99")
    with pytest.raises(TypeError, match=r"finfo needs a floating-point dtype, got int8"):
        xp.finfo(xp.int8)
    with pytest.raises(TypeError, match=r"iinfo needs an integer dtype, got float64"):
        xp.iinfo(xp.float64)
    with pytest.raises(ValueError, match=r"isdtype has no kind 'number'; kinds: bool, signed"):
        xp.isdtype(xp.int8, "number")
    with pytest.raises(ArgumentError, match=r"needs at least one array or dtype, got none"):
        xp.result_type()
    with pytest.raises(DTypeError, match=r"result_type: 1000.* fits no integer dtype"):
        xp.result_type(1, 10**400)
    with pytest.raises(SettingError, match=r"dtypes: there is no kind \['bool'\]"):
        xp.__array_namespace_info__().dtypes(kind=["bool"])
    with pytest.raises(DTypeError, match=r"astype of complex128 to float32 loses imaginary"):
        xp.astype(x, xp.float32)
    with pytest.raises(SettingError, match=r"zeros: there is no device 'tpu'; devices: cpu"):
        xp.zeros(3, device="tpu")
    with pytest.raises(SettingError, match=r"dtypes: there is no kind 'text'; kinds: bool"):
        xp.__array_namespace_info__().dtypes(kind="text")
    with pytest.raises(ValueError, match=r"no api_version '1999.12'; versions: 2021.12"):
        x.__array_namespace__(api_version="1999.12")
