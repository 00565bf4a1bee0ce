"""The messages are TensorFlow's, and reading them takes no more memory than is allowed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from google.protobuf import text_format

from passkit.errors import ModelError
from passkit.frontends.tf_graphdef import proto
from tests.frontends.tf_graphdef.models import DIGITS, ROOT, const, model, node, placeholder

PROTO = ROOT / "frontends" / "tf_graphdef" / "graph.proto"


def budget(num_bytes: int = 0, max_nbytes: int | None = None) -> proto.Budget:
    """What a file of this size may take."""
    return proto.budget_for(num_bytes, max_nbytes)


def test_bytes_go_through_unchanged() -> None:
    """What TensorFlow wrote is read and written again, byte for byte."""
    data = DIGITS.read_bytes()

    graph = proto.parse(data, "digits", budget(len(data)))

    assert graph.SerializeToString(deterministic=True) == data
    assert len(graph.node) > 40


def test_text_and_bytes_hold_the_same_graph() -> None:
    """The text format reads back to an equal message."""
    graph = model(placeholder("x", None, 3), const("c", [1.5, -0.0]), node("Relu", "y", "x"))

    text = text_format.MessageToString(graph).encode()

    assert proto.parse_text(text, "text", budget()) == graph


def test_a_field_from_a_newer_tensorflow_is_skipped() -> None:
    """Neither bytes nor text fail on fields that this reader does not know."""
    graph = model(node("Relu", "y"))

    newer = graph.SerializeToString() + bytes([(99 << 3) & 127 | 128, (99 << 3) >> 7, 5])

    assert proto.parse(newer, "newer", budget()).node[0].op == "Relu"
    assert proto.parse_text(b'node { op: "Relu" newer: 5 }', "t", budget()).node[0].op == "Relu"


def fields_of_text(text: str) -> set[tuple[str, str, int]]:
    """(message or enum, name, number) of everything a .proto file declares."""
    found, scope = set(), []
    for line in re.sub(r"//.*", "", text).splitlines():
        if opened := re.match(r"\s*(?:message|enum|oneof) (\w+) \{", line):
            scope.append(opened[1])
        elif "}" in line:
            scope.pop()
        elif field := re.match(r"\s*(?:.*\s)?(\w+) = (\d+);", line):
            owner = [s for s in scope if s not in ("value", "has_length")][-1]  # not of a oneof
            found.add((owner, field[1], int(field[2])))
    return found


def fields_of_set() -> set[tuple[str, str, int]]:
    """The same, of the compiled descriptors."""
    found: set[tuple[str, str, int]] = set()
    pending = [kind for file in proto._FILES.file for kind in file.message_type]
    while pending:
        kind = pending.pop()
        pending += [n for n in kind.nested_type if not n.options.map_entry]
        found |= {(kind.name, f.name, f.number) for f in kind.field}
    for file in proto._FILES.file:
        for enum in file.enum_type:
            found |= {(enum.name, v.name, v.number) for v in enum.value}
    return found


def test_the_compiled_descriptors_are_those_of_the_proto_file() -> None:
    """graph.binpb was compiled after the last change of graph.proto."""
    assert fields_of_text(PROTO.read_text()) == fields_of_set()


def test_damaged_bytes_say_how_long_they_are() -> None:
    """A file that ends too early is no GraphDef."""
    data = DIGITS.read_bytes()[:-100]

    said = f"'a.pb' is no GraphDef, or was .* its {len(data):,} bytes.* export"
    with pytest.raises(ModelError, match=said):
        proto.parse(data, "'a.pb'", budget(len(data)))


@pytest.mark.parametrize("text", [b"node { op: 5 }", b"node {", b"\xff\xfe", b"hello world"])
def test_damaged_text_says_what_is_wrong(text: bytes) -> None:
    """The text parser's complaint, with its line, comes along."""
    with pytest.raises(ModelError, match=r"'a.pbtxt' is not a GraphDef in text format: .+"):
        proto.parse_text(text, "'a.pbtxt'", budget())


def test_deep_text_ends_in_an_error() -> None:
    """Messages within messages without end are refused, not followed."""
    deep = b"node { attr { value { list { func { attr { value { " * 3000

    with pytest.raises(ModelError, match="'deep.pbtxt' (nests|is not)"):
        proto.parse_text(deep, "'deep.pbtxt'", budget(max_nbytes=1 << 30))


def test_text_that_nests_too_deeply_for_python_is_an_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A parser that runs out of stack is no reason to crash."""

    def run_out(*args: object, **kwargs: object) -> None:
        raise RecursionError

    monkeypatch.setattr(text_format, "ParseLines", run_out)
    with pytest.raises(ModelError, match=r"'deep\.pbtxt' nests messages"):
        proto.parse_text(b"node {}", "'deep.pbtxt'", budget())


class Long(bytes):
    """Bytes that say they are as long as protobuf can no longer read."""

    def __len__(self) -> int:
        return 1 << 31


def test_files_are_below_two_gibibytes() -> None:
    """Protobuf's limit is ours, and is checked first."""
    with pytest.raises(ModelError, match=r"smaller than 2 GiB, got 2,147,483,648"):
        proto.parse(Long(), "the GraphDef", budget())


def varint(number: int) -> bytes:
    """A number as protobuf writes it."""
    out = b""
    while number > 127:
        out += bytes([number & 127 | 128])
        number >>= 7
    return out + bytes([number])


def field(number: int, content: bytes) -> bytes:
    """A field of bytes or of a message."""
    return varint(number << 3 | 2) + varint(len(content)) + content


def in_attr(value: bytes) -> bytes:
    """A graph of one node with one attribute."""
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
def test_two_bytes_that_become_a_hundred_are_counted_first(kind: str) -> None:
    """A file of nothing but empty messages is refused before protobuf makes them."""
    data = SWOLLEN[kind]

    said = r"the GraphDef in 'a\.pb' needs [\d,]+ bytes, and .* max_nb"
    with pytest.raises(ModelError, match=said):
        proto.parse(data, "'a.pb'", budget(len(data)))


def test_swollen_text_is_counted_first() -> None:
    """So is text."""
    with pytest.raises(ModelError, match="may take 68,108,864 bytes"):
        proto.parse_text(b"node{}" * 1_000_000, "text", budget(250_000))


def test_weights_are_counted_as_long_as_they_are() -> None:
    """A large tensor takes its bytes once in the message, whichever field holds it."""
    content = in_attr(field(8, field(4, bytes(1 << 20))))
    floats = in_attr(field(8, field(5, bytes(1 << 20))))

    assert proto.parsed_nbytes(content, 1 << 30) < (1 << 20) + 1000
    assert proto.parsed_nbytes(floats, 1 << 30) < (1 << 20) + 1000


@pytest.mark.parametrize("data", [b"\x0a", b"\x0a\x7f", b"\xff" * 20, b"\x0f\x01", b"\x0b\x0c"])
def test_counting_ends_where_damage_begins(data: bytes) -> None:
    """The walk over damaged bytes ends, and leaves the error to protobuf."""
    assert proto.parsed_nbytes(data, 1 << 20) < 1000


def test_nesting_is_bounded() -> None:
    """Messages are followed as deep as protobuf follows them, and no deeper."""
    data = b""
    for _ in range(500):
        data = field(5, field(1, b"a") + field(2, field(10, field(2, data))))

    assert proto.parsed_nbytes(field(1, data), 1 << 20) < 100_000


def test_names_are_short_and_on_one_line() -> None:
    """Messages quote names, so that they cannot pass for something else."""
    assert proto.short('a"\nb') == "'a\"\\nb'"
    assert len(proto.short("x" * 10**6)) < 100
    assert proto.dtype_name(7) == "DT_STRING"
    assert proto.dtype_name(4000) == "DataType 4000"


def test_the_reader_comes_with_its_descriptors() -> None:
    """The compiled descriptors stand beside the code that loads them."""
    assert (Path(proto.__file__).parent / "graph.binpb").stat().st_size < 20_000
