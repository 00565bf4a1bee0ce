"""TensorProtos become arrays: every dtype and storage form, within the memory budget."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import passkit as pk
from passkit.errors import ModelError
from passkit.frontends import tf_graphdef
from tests.frontends.tf_graphdef.models import NUMBERS, message, model, node, placeholder, tensor

TensorProto, TensorShapeProto = message("TensorProto"), message("TensorShapeProto")
dtype_of = pk.ast.dt.dtype_of

FIELDS = {
    "float32": "float_val",
    "float64": "double_val",
    "int32": "int_val",
    "uint8": "int_val",
    "int16": "int_val",
    "int8": "int_val",
    "int64": "int64_val",
    "bool": "bool_val",
    "uint16": "int_val",
    "uint32": "uint32_val",
    "uint64": "uint64_val",
}


def values_of(name: str) -> np.ndarray[Any, Any]:
    """Return six values of a dtype, among them its limits."""
    numpy = dtype_of(name).numpy
    if name == "bool":
        return np.array([True, False, False, True, True, False])
    if dtype_of(name).is_integer:
        limits = np.iinfo(numpy)
        return np.array([limits.min, limits.max, 0, 1, 7, 100], numpy)
    return np.array([0.5, -0.0, np.inf, -1.25, np.nan, 3], numpy)


def equal_bits(a: np.ndarray[Any, Any], b: np.ndarray[Any, Any]) -> bool:
    """Return whether two arrays are equal bit for bit."""
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


def constant(message: Any, name: str = "c") -> Any:
    """Return a Const whose value is a TensorProto."""
    return node("Const", name, dtype={"type": message.dtype}, value={"tensor": message})


def decode(message: Any) -> np.ndarray[Any, Any]:
    """Return the array that a constant with a TensorProto is imported as."""
    (entry,) = tf_graphdef.load(model(constant(message)), "c").outputs
    array: np.ndarray[Any, Any] = entry.node.params["value"]
    return array


def imported_shape(message: Any) -> Any:
    """Return the shape that a placeholder with a TensorShapeProto is imported with."""
    x = node("Placeholder", "x", dtype=np.dtype("float32"), shape={"shape": message})
    return tf_graphdef.load(model(x), "x").outputs[0].shape


@pytest.mark.parametrize("name", NUMBERS)
def test_bytes_of_every_dtype(name: str) -> None:
    """tensor_content holds the elements as bytes."""
    values = values_of(name).reshape(2, 3)

    results = decode(tensor(values))

    assert equal_bits(results, values)
    assert not results.flags.writeable


@pytest.mark.parametrize("name", FIELDS)
def test_elements_of_every_dtype(name: str) -> None:
    """Each dtype has a field that holds elements one by one."""
    values = values_of(name)
    message = TensorProto(dtype=NUMBERS[name])
    message.tensor_shape.dim.add(size=6)
    getattr(message, FIELDS[name]).extend(values.tolist())

    assert equal_bits(decode(message), values)


@pytest.mark.parametrize("name", ["float16", "bfloat16"])
def test_halves_are_stored_as_integers(name: str) -> None:
    """half_val holds the bits of 16-bit floats."""
    values = values_of(name)
    message = TensorProto(dtype=NUMBERS[name], half_val=values.view(np.uint16).tolist())
    message.tensor_shape.dim.add(size=6)

    assert equal_bits(decode(message), values)


@pytest.mark.parametrize(("name", "field"), [("complex64", "scomplex"), ("complex128", "dcomplex")])
def test_complex_numbers_are_pairs(name: str, field: str) -> None:
    """Real and imaginary parts alternate; an odd count is refused."""
    message = TensorProto(dtype=NUMBERS[name], **{f"{field}_val": [1.0, 2.0, 3.0, -4.0]})
    message.tensor_shape.dim.add(size=2)

    assert equal_bits(decode(message), np.array([1 + 2j, 3 - 4j], name))
    getattr(message, f"{field}_val").append(5.0)
    with pytest.raises(ModelError, match=f"in {field}_val, got 5 numbers"):
        decode(message)


def test_the_last_element_fills_the_rest() -> None:
    """Missing elements repeat the last one, or are zero if there is none."""
    message = TensorProto(dtype=1, float_val=[1.0, 2.5])
    message.tensor_shape.dim.add(size=5)

    assert decode(message).tolist() == [1.0, 2.5, 2.5, 2.5, 2.5]
    del message.float_val[:]
    assert equal_bits(decode(message), np.zeros(5, np.float32))


def test_scalars_and_empty_tensors() -> None:
    """Rank 0 has one element, a dimension of 0 none."""
    assert equal_bits(decode(TensorProto(dtype=3, int_val=[7])), np.array(7, np.int32))
    empty = TensorProto(dtype=1)
    for size in (3, 0, 2):
        empty.tensor_shape.dim.add(size=size)
    assert decode(empty).shape == (3, 0, 2)


def test_bools_are_0_or_1() -> None:
    """Nonzero bytes become True."""
    message = TensorProto(dtype=10, tensor_content=b"\x02\x00\xff")
    message.tensor_shape.dim.add(size=3)

    assert decode(message).view(np.uint8).tolist() == [1, 0, 1]


@pytest.mark.parametrize(("content", "length"), [(b"1234567", 7), (b"123456789", 9)])
def test_content_of_another_length_is_an_error(content: bytes, length: int) -> None:
    """Content that does not fit the shape is refused."""
    message = TensorProto(dtype=1, tensor_content=content)
    message.tensor_shape.dim.add(size=2)

    with pytest.raises(ModelError, match=rf"\(2,\) needs 8 bytes of float32, got {length}"):
        decode(message)


def test_too_many_elements_are_an_error() -> None:
    """More elements than the shape has are refused."""
    with pytest.raises(ModelError, match="needs 1 elements, got 3 in float_val"):
        decode(TensorProto(dtype=1, float_val=[1.0, 2.0, 3.0]))


@pytest.mark.parametrize(
    ("name", "field", "value"),
    [("uint8", "int_val", 256), ("int8", "int_val", -129), ("float16", "half_val", 65536)],
)
def test_elements_out_of_range_are_an_error(name: str, field: str, value: int) -> None:
    """Elements that do not fit a narrow dtype are refused."""
    with pytest.raises(ModelError, match=rf"needs values of {name} in {field}, got {value}"):
        decode(TensorProto(dtype=NUMBERS[name], **{field: [value]}))


@pytest.mark.parametrize(("number", "name"), [(7, "DT_STRING"), (20, "DT_RESOURCE"), (999, "999")])
def test_dtypes_without_arithmetic_are_an_error(number: int, name: str) -> None:
    """Strings and resources are refused."""
    cast = node("Cast", "c", "x", DstT={"type": number})
    with pytest.raises(
        ModelError, match=rf"'c' has the element type (DataType )?{name}, .* float32"
    ):
        tf_graphdef.load(model(placeholder("x", 2), cast))


def shape(*sizes: int) -> Any:
    """Return a TensorShapeProto."""
    return TensorShapeProto(dim=[{"size": s} for s in sizes])


def test_shapes_are_parsed() -> None:
    """-1 is an unknown dimension, and the rank can be unknown."""
    assert imported_shape(shape(-1, 8, 0)) == (pk.Size.symbol("x.0"), 8, 0)
    assert imported_shape(TensorShapeProto(unknown_rank=True)) is None


@pytest.mark.parametrize("size", [-2, 1 << 48, -(1 << 63), (1 << 63) - 1])
def test_impossible_dimensions_are_an_error(size: int) -> None:
    """Negative and giant dimensions are refused."""
    with pytest.raises(ModelError, match=rf"Placeholder 'x' needs dim.* got \(2, {size}\)"):
        imported_shape(shape(2, size))


def test_ranks_are_at_most_numpys() -> None:
    """A rank above NumPy's limit is refused."""
    with pytest.raises(ModelError, match="at most 64, got 1000"):
        imported_shape(shape(*[1] * 1000))


@pytest.mark.parametrize("message", [shape(2, -1), TensorShapeProto(unknown_rank=True)])
def test_a_constant_has_a_known_shape(message: Any) -> None:
    """A constant with unknown dimensions is refused."""
    with pytest.raises(ModelError, match=r"known shape, got (\(2, \?\)|an unknown rank)"):
        decode(TensorProto(dtype=1, tensor_shape=message))


def test_sizes_are_checked_before_memory_is_taken() -> None:
    """A few bytes that declare a gigabyte are refused before allocation."""
    with pytest.raises(ModelError, match=r"\(1073741824,\) needs 4,294,967,296 bytes"):
        decode(TensorProto(dtype=1, float_val=[0.0], tensor_shape=shape(1 << 30)))
    with pytest.raises(
        ModelError, match=r"2\*\*59 elements, got \(1099511627776, 1099511627776, 0\)"
    ):
        decode(TensorProto(dtype=1, tensor_shape=shape(1 << 40, 1 << 40, 0)))


def test_the_budget_is_for_all_tensors_together() -> None:
    """Tensors share one budget."""
    value = tensor(np.zeros(1000, np.float32))
    constants = [constant(value, name) for name in "abc"]

    def load(count: int) -> pk.Graph:
        nodes = constants[:count]
        return tf_graphdef.load(model(*nodes), [n.name for n in nodes], max_nbytes=12_000)

    assert len(load(2).outputs) == 2
    with pytest.raises(ModelError, match="needs 4,000 bytes, .* may take 12,000 bytes"):
        load(3)
