"""Messages equal TensorFlow's, and parsing takes no more memory than allowed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from google.protobuf import text_format

from passkit.errors import ModelError
from passkit.frontends.tf_graphdef import proto
from tests.frontends.tf_graphdef.checkpoints import varint
from tests.frontends.tf_graphdef.models import DIGITS, ROOT, const, model, node, placeholder

PROTO = ROOT / "frontends" / "tf_graphdef" / "graph.proto"


def budget(num_bytes: int = 0, max_nbytes: int | None = None) -> proto.Budget:
    """Return the budget of a file of this size."""
    return proto.budget_for(num_bytes, max_nbytes)


def test_parsed_models_serialize_to_the_same_bytes() -> None:
    """A parsed model serializes to the bytes that TensorFlow wrote."""
    data = DIGITS.read_bytes()

    graph = proto.parse(data, "digits", budget(len(data)))

    assert graph.SerializeToString(deterministic=True) == data
    assert len(graph.node) > 40


def test_text_and_bytes_hold_the_same_graph() -> None:
    """Text format and bytes parse to equal messages."""
    graph = model(placeholder("x", None, 3), const("c", [1.5, -0.0]), node("Relu", "y", "x"))

    text = text_format.MessageToString(graph).encode()

    assert proto.parse_text(text, "text", budget()) == graph


def test_a_field_from_a_newer_tensorflow_is_skipped() -> None:
    """Unknown fields are skipped in bytes and text."""
    graph = model(node("Relu", "y"))

    newer = graph.SerializeToString() + bytes([(99 << 3) & 127 | 128, (99 << 3) >> 7, 5])

    assert proto.parse(newer, "newer", budget()).node[0].op == "Relu"
    assert proto.parse_text(b'node { op: "Relu" newer: 5 }', "t", budget()).node[0].op == "Relu"


def fields_of_text(text: str) -> set[tuple[str, str, int]]:
    """Return (message or enum, name, number) of everything that a .proto file declares."""
    results, scope = set(), []
    for line in re.sub(r"//.*", "", text).splitlines():
        if opened := re.match(r"\s*(?:message|enum|oneof) (\w+) \{", line):
            scope.append(opened[1])
        elif "}" in line:
            scope.pop()
        elif field := re.match(r"\s*(?:.*\s)?(\w+) = (\d+);", line):
            owner = [s for s in scope if s not in ("value", "has_length")][-1]  # not of a oneof
            results.add((owner, field[1], int(field[2])))
    return results


def fields_of_set() -> set[tuple[str, str, int]]:
    """Return the same of the compiled descriptors."""
    results: set[tuple[str, str, int]] = set()
    pending = [kind for file in proto._FILES.file for kind in file.message_type]
    while pending:
        kind = pending.pop()
        pending += [n for n in kind.nested_type if not n.options.map_entry]
        results |= {(kind.name, f.name, f.number) for f in kind.field}
    for file in proto._FILES.file:
        for enum in file.enum_type:
            results |= {(enum.name, v.name, v.number) for v in enum.value}
    return results


def test_the_compiled_descriptors_are_those_of_the_proto_file() -> None:
    """graph.binpb is compiled from the current graph.proto."""
    assert fields_of_text(PROTO.read_text()) == fields_of_set()


def test_truncated_files_are_refused_with_their_length() -> None:
    """A truncated file is refused as no GraphDef."""
    data = DIGITS.read_bytes()[:-100]

    message_text = f"'a.pb': expected a GraphDef, found {len(data):,} bytes .* export"
    with pytest.raises(ModelError, match=message_text):
        proto.parse(data, "'a.pb'", budget(len(data)))


@pytest.mark.parametrize("text", [b"node { op: 5 }", b"node {", b"\xff\xfe", b"hello world"])
def test_text_errors_include_the_line(text: bytes) -> None:
    """The text parser's message and line are part of the error."""
    with pytest.raises(ModelError, match="'a.pbtxt': expected a GraphDef in text format, .*: .+"):
        proto.parse_text(text, "'a.pbtxt'", budget())


def test_deeply_nested_text_is_refused() -> None:
    """Very deeply nested messages are refused."""
    deep = b"node { attr { value { list { func { attr { value { " * 3000

    with pytest.raises(ModelError, match="'deep.pbtxt': expected a GraphDef in text format"):
        proto.parse_text(deep, "'deep.pbtxt'", budget(max_nbytes=1 << 30))


def test_recursion_errors_of_the_text_parser_are_model_errors(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A RecursionError of the parser becomes a ModelError."""

    def run_out(*args: object, **kwargs: object) -> None:
        raise RecursionError

    monkeypatch.setattr(text_format, "ParseLines", run_out)
    with pytest.raises(ModelError, match="'deep.pbtxt': .* found messages that are nested too"):
        proto.parse_text(b"node {}", "'deep.pbtxt'", budget())


class Long(bytes):
    """Bytes with a length beyond protobuf's limit."""

    def __len__(self) -> int:
        return 1 << 31


def test_files_of_two_gibibytes_are_refused() -> None:
    """Protobuf's size limit is checked first."""
    with pytest.raises(ModelError, match=r"smaller than 2 GiB, got 2,147,483,648"):
        proto.parse(Long(), "the GraphDef", budget())


def field(number: int, content: bytes) -> bytes:
    """Return a field of bytes or of a message."""
    return varint(number << 3 | 2) + varint(len(content)) + content


def in_attr(value: bytes) -> bytes:
    """Return a graph of one node with one attribute."""
    return field(1, field(5, field(1, b"a") + field(2, value)))


MANY = 2_000_000
SWOLLEN = {
    "nodes": field(1, b"") * MANY,
    "attributes": field(1, field(5, b"") * MANY),
    "dimensions": in_attr(field(7, field(2, b"") * MANY)),
    "tensors": in_attr(field(1, field(8, b"") * MANY)),
    "strings": field(1, field(3, b"") * 2 * MANY),
    "functions": field(2, field(1, field(1, b"")) * MANY),
    "varints": in_attr(field(8, field(10, bytes(5 * MANY)))),
}


@pytest.mark.parametrize("kind", SWOLLEN)
def test_memory_of_many_small_messages_is_estimated_first(kind: str) -> None:
    """A file of empty messages is refused before protobuf parses it."""
    data = SWOLLEN[kind]

    message_text = r"the GraphDef in 'a\.pb' needs [\d,]+ bytes, and .* max_nb"
    with pytest.raises(ModelError, match=message_text):
        proto.parse(data, "'a.pb'", budget(len(data)))


def test_memory_of_text_messages_is_estimated_first() -> None:
    """A text of empty messages is refused before it is parsed."""
    with pytest.raises(ModelError, match="may take 68,108,864 bytes"):
        proto.parse_text(b"node{}" * 1_000_000, "text", budget(250_000))


def test_large_tensors_are_counted_once() -> None:
    """The estimate for a large tensor is about its size, whichever field holds it."""
    content = in_attr(field(8, field(4, bytes(1 << 20))))
    floats = in_attr(field(8, field(5, bytes(1 << 20))))

    assert proto.parsed_nbytes(content, 1 << 30) < (1 << 20) + 1000
    assert proto.parsed_nbytes(floats, 1 << 30) < (1 << 20) + 1000


@pytest.mark.parametrize("data", [b"\x0a", b"\x0a\x7f", b"\xff" * 20, b"\x0f\x01", b"\x0b\x0c"])
def test_the_estimate_of_damaged_bytes_ends(data: bytes) -> None:
    """The estimate ends at damage, which protobuf then reports."""
    assert proto.parsed_nbytes(data, 1 << 20) < 1000


def test_the_estimate_follows_nesting_like_protobuf() -> None:
    """Nesting is followed to protobuf's limit."""
    data = b""
    for _ in range(500):
        data = field(5, field(1, b"a") + field(2, field(10, field(2, data))))

    assert proto.parsed_nbytes(field(1, data), 1 << 20) < 100_000


def test_quoted_names_are_short_and_on_one_line() -> None:
    """Names in errors are quoted, shortened and on one line."""
    assert proto.short('a"\nb') == "'a\"\\nb'"
    assert len(proto.short("x" * 10**6)) < 100
    assert proto.dtype_name(7) == "DT_STRING"
    assert proto.dtype_name(4000) == "DataType 4000"


def test_the_descriptors_are_packaged() -> None:
    """The compiled descriptors are shipped with the package."""
    assert (Path(proto.__file__).parent / "graph.binpb").stat().st_size < 20_000
