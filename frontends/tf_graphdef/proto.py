"""TensorFlow's protobuf messages, without TensorFlow, with a bound on the memory of parsing.

The messages live in a separate descriptor pool, so that TensorFlow in the same process is not
affected. ``graph.proto`` defines them and says how ``graph.binpb`` is generated.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib.resources import files
from typing import Any

import numpy as np
from attrs import define, frozen
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, text_format
from google.protobuf.message import DecodeError

from passkit.errors import ModelError

_PACKAGE = "passkit.tf"
_FILES = descriptor_pb2.FileDescriptorSet.FromString(
    files(__package__).joinpath("graph.binpb").read_bytes()
)
_POOL = descriptor_pool.DescriptorPool()
for _file in _FILES.file:
    _POOL.AddSerializedFile(_file.SerializeToString())


def message(name: str) -> Any:
    """Return the class of a message by name, such as ``NodeDef``.

    Raises:
        KeyError: If there is no message of this name.
    """
    return message_factory.GetMessageClass(_POOL.FindMessageTypeByName(f"{_PACKAGE}.{name}"))


AttrValue = message("AttrValue")
FunctionDef = message("FunctionDef")
GraphDef = message("GraphDef")
NodeDef = message("NodeDef")
TensorProto = message("TensorProto")
TensorShapeProto = message("TensorShapeProto")
DataType = _POOL.FindEnumTypeByName(f"{_PACKAGE}.DataType")


def dtype_name(number: int) -> str:
    """Return TensorFlow's name of a DataType number, such as ``DT_FLOAT`` for 1.

    An unknown number gives "DataType" and the number.
    """
    descriptor = DataType.values_by_number.get(number)
    return descriptor.name if descriptor else f"DataType {number}"


def short(name: str) -> str:
    """Quote a name or path for an error message, shortened in the middle to 80 characters.

    The result has the quotes, and escapes, of Python's repr.
    """
    return repr(name if len(name) <= 80 else f"{name[:37]}…{name[-42:]}")


def node_label(node: Any) -> str:
    """Return the operator and the quoted name of a NodeDef for error messages, both shortened."""
    return f"{short(node.op)[1:-1]} {short(node.name)}"


@define
class Budget:
    """The memory that reading one model may still take, in bytes."""

    left: int
    limit: int

    def take(self, nbytes: int, where: str) -> None:
        """Subtract ``nbytes`` from ``left``, in place, before they are allocated.

        Args:
            nbytes: Number of bytes.
            where: Subject of the error message, which names the part of the model.

        Raises:
            ModelError: If the limit is exceeded.
        """
        self.left -= nbytes
        if self.left < 0:
            raise ModelError(
                f"{where} needs {nbytes:,} bytes, and reading this model may take "
                f"{self.limit:,} bytes in total, by default 4 times the file size plus 64 MiB; if "
                f"you trust the file, give load a higher max_nbytes"
            )


def budget_for(num_bytes: int, max_nbytes: int | None) -> Budget:
    """Return a budget of ``max_nbytes``, by default 4 times ``num_bytes`` plus 64 MiB.

    The budget is in bytes, and nothing is taken from it yet.
    """
    limit = 4 * num_bytes + (64 << 20) if max_nbytes is None else max_nbytes
    return Budget(limit, limit)


def parse(data: bytes, where: str, budget: Budget, kind: str = "GraphDef") -> Any:
    """Parse a binary message.

    Args:
        data: Its bytes.
        where: Name of the source in errors.
        budget: Memory budget, from which the length of ``data`` and the estimated size of the
            message are taken.
        kind: Name of the message type.

    Raises:
        ModelError: If the data is damaged, exceeds the budget, or has 2 GiB or more.
    """
    if len(data) >= 1 << 31:
        raise ModelError(f"{where} needs to be smaller than 2 GiB, got {len(data):,} bytes")
    budget.take(len(data), where)
    budget.take(parsed_nbytes(data, budget.left, kind), f"the {kind} in {where}")
    try:
        return message(kind).FromString(data)
    except DecodeError as error:
        raise ModelError(
            f"{where}: expected a {kind}, found {len(data):,} bytes that cannot be read as one "
            f"({_plain(error)}); if the file was damaged, copy it again or export the model again"
        ) from None


def parse_text(data: bytes, where: str, budget: Budget, kind: str = "GraphDef") -> Any:
    """Parse a message in text format; unknown fields are ignored.

    Args:
        data: Its bytes, UTF-8.
        where: Name of the source in errors.
        budget: Memory budget, from which twice the length of ``data`` and the estimated size of
            the message are taken.
        kind: Name of the message type.

    Raises:
        ModelError: If the text is damaged or no UTF-8, nested too deeply, or exceeds the budget.
    """
    budget.take(2 * len(data), where)
    messages = data.count(b"{") + data.count(b"<")
    budget.take(280 * messages + 16 * data.count(b","), f"the {kind} in {where}")
    parsed = message(kind)()
    try:
        text_format.ParseLines(_lines(data.decode()), parsed, allow_unknown_field=True)
    except (text_format.ParseError, UnicodeDecodeError) as error:
        raise ModelError(
            f"{where}: expected a {kind} in text format, found text that cannot be read as one: "
            f"{_plain(error)}"
        ) from None
    except RecursionError:
        raise ModelError(
            f"{where}: expected a {kind} in text format, found messages that are nested too deeply"
        ) from None
    return parsed


def _plain(error: Exception) -> str:
    """Return the text of ``error`` on one line and shortened, since it may quote the file.

    A text that is long or not printable is quoted, too.
    """
    text = " ".join(str(error).split())
    return text if len(text) <= 200 and text.isprintable() else short(text)


def _lines(text: str) -> Iterator[str]:
    r"""Yield the lines of a text without their "\n", so that no list of them takes memory."""
    begin = 0
    while begin < len(text):
        end = text.find("\n", begin)
        end = len(text) if end < 0 else end
        yield text[begin:end]
        begin = end + 1


MESSAGE_NBYTES = {"NodeDef": 280, "TensorProto": 140, "TensorShapeProto": 40, "Dim": 40}
"""Approximate bytes of parsed messages beyond their strings and lists.

Any other takes at most 100.
"""

STRING_NBYTES = 24
"""Approximate bytes of one more string beyond its characters."""

_NESTING = 100  # protobuf's own limit


@frozen
class _Field:
    """Memory of a field: ``nbytes`` per message or element; 0 for its encoded bytes only."""

    nbytes: int = 0
    message: str = ""
    is_varint: bool = False


def _layouts() -> dict[str, dict[int, _Field]]:
    """Return the memory of the fields of each message type, by type name, then by field number."""
    field = descriptor_pb2.FieldDescriptorProto
    sizes = {field.TYPE_BOOL: 1, field.TYPE_INT64: 8, field.TYPE_UINT64: 8}
    fixed = (field.TYPE_FLOAT, field.TYPE_DOUBLE)
    layouts: dict[str, dict[int, _Field]] = {}

    def visit(prefix: str, kind: Any) -> None:
        name = f"{prefix}.{kind.name}"
        layouts[name] = fields = {}
        for f in kind.field:
            if f.type == field.TYPE_MESSAGE:
                cost = MESSAGE_NBYTES.get(f.type_name.split(".")[-1], 100)
                fields[f.number] = _Field(cost, message=f.type_name)
            elif f.type in (field.TYPE_STRING, field.TYPE_BYTES, *fixed):
                fields[f.number] = _Field()  # as long as in the file
            else:
                fields[f.number] = _Field(sizes.get(f.type, 4), is_varint=True)
        for nested in kind.nested_type:
            visit(name, nested)

    for file in _FILES.file:
        for kind in file.message_type:
            visit(f".{file.package}", kind)
    return layouts


_LAYOUTS = _layouts()


def parsed_nbytes(data: bytes, limit: int, kind: str = "GraphDef") -> int:
    """Return an estimate of the memory of a parsed message of type ``kind``, in bytes.

    ``data`` is the encoded message. The estimate stops once it exceeds ``limit``.

    Two bytes of a file can become a message of 140 bytes, so all fields are visited before protobuf
    parses any. A damaged file is visited as far as protobuf would read it.
    """
    total = 0
    enclosing: list[tuple[int, int, dict[int, _Field]]] = []
    at, end, layout = 0, len(data), _LAYOUTS[f".{_PACKAGE}.{kind}"]
    while total <= limit:
        if at >= end:
            if not enclosing:
                break
            at, end, layout = enclosing.pop()
            continue
        tag, at = varint(data, at, end)
        wire = tag & 7
        if wire == 0:
            _, at = varint(data, at, end)
            total += 16
        elif wire in (1, 5):
            at += 8 if wire == 1 else 4
            total += 16
        elif wire == 2:
            length, at = varint(data, at, end)
            if at + length > end:
                break
            field = layout.get(tag >> 3)
            if field is not None and field.message:
                total += field.nbytes
                enclosing.append((at + length, end, layout))
                if len(enclosing) > _NESTING:
                    break
                end, layout = at + length, _LAYOUTS[field.message]
                continue
            if field is not None and field.is_varint:
                ends = np.frombuffer(data, np.uint8, length, at) < 128
                total += 2 * field.nbytes * int(np.count_nonzero(ends))  # it grows by doubling
            else:
                total += length + STRING_NBYTES
            at += length
    return total


def varint(data: bytes, at: int, end: int) -> tuple[int, int]:
    """Decode a varint at position ``at``.

    Args:
        data: The bytes.
        at: Position of its first byte.
        end: Position behind the last byte that it may use.

    Returns:
        The number and the position behind it; (0, ``end``) if the varint is cut off or has more
        than ten bytes.
    """
    value = shift = 0
    while at < end:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
        shift += 7
        if shift > 63:
            break
    return 0, end
