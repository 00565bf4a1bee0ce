"""The protocol buffer messages of TensorBoard's event files, defined without TensorFlow.

Source: tensorflow/core/util/event.proto and framework/summary.proto, of which these are the fields
that tinyflow writes.
"""

from __future__ import annotations

from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

_TYPES = {"double": 1, "float": 2, "int64": 3, "string": 9, "bytes": 12}
_MESSAGES = {
    "Histogram": "min=1 double, max=2 double, num=3 double, sum=4 double, sum_squares=5 double, "
    "bucket_limit=6 double*, bucket=7 double*",
    "Value": "tag=1 string, simple_value=2 float?, histo=5 Histogram?",
    "Summary": "value=1 Value*",
    "Event": "wall_time=1 double, step=2 int64, file_version=3 string?, graph_def=4 bytes?, "
    "summary=5 Summary?",
}
"""The fields of each message: name, number and type. ``*`` marks repeated fields, ``?`` a oneof."""


def _event_file_descriptor() -> Any:
    """Return the FileDescriptorProto of the messages."""
    file = descriptor_pb2.FileDescriptorProto(
        name="passkit_events.proto", package="passkit.events", syntax="proto3"
    )
    for name, fields in _MESSAGES.items():
        message = file.message_type.add(name=name)
        for text in fields.split(", "):
            left, kind = text.split(" ")
            label, number = left.split("=")
            base = kind.rstrip("*?")
            field = message.field.add(name=label, number=int(number), label=3 if "*" in kind else 1)
            if base in _TYPES:
                field.type = _TYPES[base]
            else:
                field.type, field.type_name = 11, f".passkit.events.{base}"
            if "?" in kind:
                if not message.oneof_decl:
                    message.oneof_decl.add(name="what")
                field.oneof_index = 0
    return file


_POOL = descriptor_pool.DescriptorPool()
_POOL.AddSerializedFile(_event_file_descriptor().SerializeToString())


def _message_class(name: str) -> Any:
    """Return the Python class of the message ``name`` of `_MESSAGES`."""
    return message_factory.GetMessageClass(_POOL.FindMessageTypeByName(f"passkit.events.{name}"))


Event, Summary = _message_class("Event"), _message_class("Summary")
