"""TensorFlow's model messages without TensorFlow, and a bound on the memory that reading takes.

The messages live in a descriptor pool of their own, so a TensorFlow in the same process does not
notice them. ``graph.proto`` says what is in them and how ``graph.binpb`` is made.
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
    """The class of one message, such as ``NodeDef``."""
    return message_factory.GetMessageClass(_POOL.FindMessageTypeByName(f"{_PACKAGE}.{name}"))


AttrValue = message("AttrValue")
FunctionDef = message("FunctionDef")
GraphDef = message("GraphDef")
NodeDef = message("NodeDef")
TensorProto = message("TensorProto")
TensorShapeProto = message("TensorShapeProto")
DataType = _POOL.FindEnumTypeByName(f"{_PACKAGE}.DataType")


def dtype_name(number: int) -> str:
    """What TensorFlow calls an element type: ``DT_FLOAT`` for 1."""
    found = DataType.values_by_number.get(number)
    return found.name if found else f"DataType {number}"


def short(name: str) -> str:
    """Return a name or path as messages show it: quoted, and without its middle if it is long."""
    return repr(name if len(name) <= 80 else f"{name[:37]}…{name[-42:]}")


def called(node: Any) -> str:
    """How messages call a node: its operator and name."""
    return f"{short(node.op)[1:-1]} {short(node.name)}"


@define
class Budget:
    """The memory that reading one model may still take, in bytes."""

    left: int
    limit: int

    def take(self, nbytes: int, where: str) -> None:
        """Account for ``nbytes`` before they are allocated. Raises: ModelError past the limit."""
        self.left -= nbytes
        if self.left < 0:
            raise ModelError(
                f"{where} needs {nbytes:,} bytes, and reading this model may take "
                f"{self.limit:,} bytes in all, by default 4 times the file and 64 MiB; "
                f"if you trust the file, give load a higher max_nbytes"
            )


def budget_for(num_bytes: int, max_nbytes: int | None) -> Budget:
    """The budget of a model of ``num_bytes``; by default 4 times as much and 64 MiB."""
    limit = 4 * num_bytes + (64 << 20) if max_nbytes is None else max_nbytes
    return Budget(limit, limit)


def parse(data: bytes, where: str, budget: Budget, kind: str = "GraphDef") -> Any:
    """The message that ``data`` holds. Raises: ModelError when it is damaged or too large."""
    if len(data) >= 1 << 31:
        raise ModelError(f"{where} must be smaller than 2 GiB, got {len(data):,} bytes")
    budget.take(len(data), where)
    budget.take(parsed_nbytes(data, budget.left, kind), f"the {kind} in {where}")
    try:
        return message(kind).FromString(data)
    except DecodeError as error:
        raise ModelError(
            f"{where} is no {kind}, or was damaged after it was written: its {len(data):,} bytes "
            f"cannot be read ({_plain(error)}); copy it again from where it came from, or export "
            f"the model again"
        ) from None


def parse_text(data: bytes, where: str, budget: Budget, kind: str = "GraphDef") -> Any:
    """The message that text-format ``data`` holds. Raises: ModelError when it is damaged."""
    budget.take(2 * len(data), where)
    messages = data.count(b"{") + data.count(b"<")
    budget.take(280 * messages + 16 * data.count(b","), f"the {kind} in {where}")
    found = message(kind)()
    try:
        text_format.ParseLines(_lines(data.decode()), found, allow_unknown_field=True)
    except (text_format.ParseError, UnicodeDecodeError) as error:
        raise ModelError(f"{where} is not a {kind} in text format: {_plain(error)}") from None
    except RecursionError:
        raise ModelError(f"{where} nests messages too deeply for a {kind}") from None
    return found


def _plain(error: Exception) -> str:
    """What a library says, on one line and not too long; it may quote the file."""
    text = " ".join(str(error).split())
    return text if len(text) <= 200 and text.isprintable() else short(text)


def _lines(text: str) -> Iterator[str]:
    """The lines of a text, one at a time: a list of short ones would be larger than the text."""
    begin = 0
    while begin < len(text):
        end = text.find("\n", begin)
        end = len(text) if end < 0 else end
        yield text[begin:end]
        begin = end + 1


MESSAGE_NBYTES = {"NodeDef": 280, "TensorProto": 140, "TensorShapeProto": 40, "Dim": 40}
"""About what parsed messages take beyond their strings and lists; 100 is the most of any other."""

STRING_NBYTES = 24
"""About what one more string takes beyond its bytes."""

_NESTING = 100  # protobuf's own limit


@frozen
class _Field:
    """What one field takes: ``nbytes`` for a message or element; nothing beyond its bytes if 0."""

    nbytes: int = 0
    message: str = ""
    is_varint: bool = False


def _layouts() -> dict[str, dict[int, _Field]]:
    field = descriptor_pb2.FieldDescriptorProto
    sizes = {field.TYPE_BOOL: 1, field.TYPE_INT64: 8, field.TYPE_UINT64: 8}
    fixed = (field.TYPE_FLOAT, field.TYPE_DOUBLE)
    layouts: dict[str, dict[int, _Field]] = {}

    def visit(prefix: str, kind: Any) -> None:
        name = f"{prefix}.{kind.name}"
        layouts[name] = found = {}
        for f in kind.field:
            if f.type == field.TYPE_MESSAGE:
                cost = MESSAGE_NBYTES.get(f.type_name.split(".")[-1], 100)
                found[f.number] = _Field(cost, message=f.type_name)
            elif f.type in (field.TYPE_STRING, field.TYPE_BYTES, *fixed):
                found[f.number] = _Field()  # as long as in the file
            else:
                found[f.number] = _Field(sizes.get(f.type, 4), is_varint=True)
        for nested in kind.nested_type:
            visit(name, nested)

    for file in _FILES.file:
        for kind in file.message_type:
            visit(f".{file.package}", kind)
    return layouts


_LAYOUTS = _layouts()


def parsed_nbytes(data: bytes, limit: int, kind: str = "GraphDef") -> int:
    """About the memory that a parsed message takes; the walk ends where it passes ``limit``.

    Two bytes of a file can become a message of 140, so each field is looked at before protobuf
    may read any. A damaged file is walked as far as protobuf would read it.
    """
    total = 0
    open_: list[tuple[int, int, dict[int, _Field]]] = []
    at, end, layout = 0, len(data), _LAYOUTS[f".{_PACKAGE}.{kind}"]
    while total <= limit:
        if at >= end:
            if not open_:
                break
            at, end, layout = open_.pop()
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
                open_.append((at + length, end, layout))
                if len(open_) > _NESTING:
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
    """The number at ``at`` and where it ends; past ``end`` when it does not."""
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
