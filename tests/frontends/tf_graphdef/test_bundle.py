"""Checkpoints: tensors are read correctly, and damage is detected."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from passkit.errors import ModelError
from tests.frontends.tf_graphdef.checkpoints import (
    checked,
    entry,
    header,
    masked_crc32c,
    table,
    table_of_block,
    varint,
)
from tests.frontends.tf_graphdef.internals import open_checkpoint
from tests.frontends.tf_graphdef.models import message
from tests.frontends.tf_graphdef.test_saved_model import SAVED

WEIGHTS = np.arange(6, dtype=np.float32).reshape(2, 3)


@pytest.fixture
def put(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Write a checkpoint called 'v' and open it."""
    monkeypatch.chdir(tmp_path)

    def write(index: bytes, *shards: bytes) -> Any:
        Path("v.index").write_bytes(index)
        for k, shard in enumerate(shards):
            Path(f"v.data-{k:05d}-of-{len(shards):05d}").write_bytes(shard)
        return open_checkpoint("v", len(index) + 1000)

    return write


def test_tensors_are_read_from_several_shards(put: Any) -> None:
    """A tensor of any dtype is read at its offset from the shard that the index names."""
    flags = np.array([True, False])
    half = np.array([1.5, -2], np.float16)
    pairs = [
        header(num_shards=2),
        (b"layer/bias", entry(half, 24, shard_id=1)),
        (b"layer/flags", entry(flags)),
        (b"layer/kernel", entry(WEIGHTS, shard_id=1)),
    ]
    bundle = put(table(pairs), flags.tobytes(), WEIGHTS.tobytes() + half.tobytes())

    assert set(bundle.keys) == {"layer/bias", "layer/flags", "layer/kernel"}
    for key, expected in (("kernel", WEIGHTS), ("bias", half), ("flags", flags)):
        results = bundle.array(f"layer/{key}")
        assert results.dtype == expected.dtype
        np.testing.assert_array_equal(results, expected)
        assert not results.flags.writeable


def test_big_endian_checkpoints_are_byte_swapped(put: Any) -> None:
    """A checkpoint of a big-endian machine is byte-swapped."""
    turned = WEIGHTS.astype(">f4")
    message_text = {"crc32c": masked_crc32c(turned.tobytes())}
    index = table([header(endianness=1), (b"w", entry(WEIGHTS, **message_text))])

    np.testing.assert_array_equal(put(index, turned.tobytes()).array("w"), WEIGHTS)


def test_a_shard_of_zero_bytes_holds_empty_tensors(put: Any) -> None:
    """A shard of zero bytes holds a tensor without elements."""
    none = np.zeros((0, 3), np.float32)

    assert put(table([header(), (b"w", entry(none))]), b"").array("w").shape == (0, 3)


def test_the_object_graph_is_read_as_a_string() -> None:
    """A string tensor is read by its length and verified by its checksum."""
    bundle = open_checkpoint(SAVED / "functions" / "variables" / "variables")

    objects = message("TrackableObjectGraph").FromString(
        bundle.string("_CHECKPOINTABLE_OBJECT_GRAPH")
    )
    assert any(a.full_name == "w" for n in objects.nodes for a in n.attributes)


DATA = WEIGHTS.tobytes()
GOOD = table([header(), (b"w", entry(WEIGHTS))])


@pytest.mark.parametrize(
    ("index", "message"),
    [
        (b"", "'v.index' is no index of a checkpoint but empty: it has 0 bytes; .*fetch"),
        (b"abc", "'v.index' of 3 bytes is no index of a checkpoint: it ends in 0x636261"),
        (GOOD[:-8] + bytes(8), f"of {len(GOOD)} bytes is no index .* it ends in 0x0"),
        (GOOD[:5] + b"?" + GOOD[6:], r"bytes 0 to \d+ of 'v.index' were changed .* 0x"),
        (table([header()], kind=2), r"block at 0 that is compressed in the way 2, .*Snappy \(1\)"),
        (table([header()], kind=1), "the block at 0 of 'v.index' is no Snappy block: at 1 it has "),
        (table([(b"w", b"")]), "'v.index' has 1 entries and no header"),
        (table([header(num_shards=0)]), "says that it has 0 shards"),
        (table([header(num_shards=1 << 30)]), "says that it has 1073741824 shards"),
        (GOOD[:-48] + b"\xff" * 40 + GOOD[-8:], "has a block at 0 of 0 bytes"),
    ],
)
def test_damaged_indices_are_refused(put: Any, index: bytes, message: str) -> None:
    """An index whose checksums or bounds do not hold is refused."""
    with pytest.raises(ModelError, match=message):
        put(index, DATA)


def test_snappy_compressed_blocks_are_read() -> None:
    """Indices that TensorFlow compressed with Snappy are read."""
    bundle = open_checkpoint(SAVED / "served" / "variables" / "variables", 1000)

    assert list(bundle.keys) == ["a", "b", "n"]
    assert [float(bundle.array(key)) for key in "abn"] == [0.5, 2.0, 0.0]


def test_keys_longer_than_their_block_are_refused(put: Any) -> None:
    """A key or value longer than the rest of its block is refused despite a valid checksum."""
    content = varint(0) + varint(1) + varint(99) + b"w" + bytes(4) + (1).to_bytes(4, "little")

    with pytest.raises(ModelError, match="has a key of 0 . 1 bytes and a value of 99 at 3"):
        put(table_of_block(checked(content + b"\0")))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"shard_id": 3}, "'w' in 'v.index' is in shard 3 of 1"),
        ({"shard_id": -1}, "is in shard -1 of 1"),
        ({"offset": 1}, "lies at 1 and takes 24 bytes, and shard 0 has 24"),
        ({"offset": -8}, "lies at -8 and takes"),
        ({"offset": 1 << 60}, "lies at 1,152,921,504,606,846,976"),
        ({"size": 20}, r"of float32\(2, 3\) cannot have 20 bytes"),
        ({"shape": {"dim": [{"size": 1 << 40}] * 2}}, r"cannot have 24 bytes"),
        ({"shape": {"unknown_rank": True}}, r"of float32\(\?\) cannot have 24 bytes"),
        ({"crc32c": 5}, "the bytes of 'w' in 'v.index' were changed .* 0x00000005 is stored"),
        ({"slices": [{}, {}]}, "'w' in 'v.index' is stored in 2 slices"),
        ({"dtype": 7}, "'w' in 'v.index' has element type DT_STRING"),
    ],
)
def test_damaged_entries_are_refused(put: Any, changes: dict[str, Any], message: str) -> None:
    """Fields of an index entry are checked before data is read."""
    bundle = put(table([header(), (b"w", entry(WEIGHTS, **changes))]), DATA)

    with pytest.raises(ModelError, match=message):
        bundle.array("w")


def test_one_changed_bit_of_a_weight_is_detected(put: Any) -> None:
    """A checksum detects a single changed bit."""
    bundle = put(GOOD, DATA[:9] + bytes([DATA[9] ^ 1]) + DATA[10:])

    with pytest.raises(ModelError, match="the bytes of 'w' in 'v.index' were changed"):
        bundle.array("w")


def test_missing_tensors_shards_and_indices_are_named(put: Any) -> None:
    """A missing tensor, shard or index is named in the error."""
    bundle = put(GOOD)
    with pytest.raises(ModelError, match="'v.index' has no tensor 'b'"):
        bundle.array("b")
    with pytest.raises(ModelError, match="'v.data-00000-of-00001' cannot be read: No such file"):
        bundle.array("w")
    with pytest.raises(ModelError, match="'x.index' cannot be read: No such file"):
        open_checkpoint("x", 0)


def test_damaged_strings_are_refused(put: Any) -> None:
    """A string of another length, kind or checksum is refused."""
    text = {"dtype": 7, "shape": {}}
    with pytest.raises(ModelError, match="'s' in 'v.index' is DT_FLOAT, and one string"):
        put(table([header(), (b"s", entry(WEIGHTS))]), DATA).string("s")
    short = np.frombuffer(b"\x09abcdxyz", np.uint8)
    with pytest.raises(ModelError, match="says 9 bytes of string, and has 3"):
        put(table([header(), (b"s", entry(short, **text))]), short.tobytes()).string("s")
    whole = np.frombuffer(b"\x03abcdxyz", np.uint8)
    with pytest.raises(ModelError, match="the string 's' in 'v.index' were changed"):
        put(table([header(), (b"s", entry(whole, **text))]), whole.tobytes()).string("s")


def test_an_index_that_is_no_regular_file_is_refused(tmp_path: Path) -> None:
    """A link to an endless device is refused before it is read."""
    (tmp_path / "x.index").symlink_to("/dev/zero")

    with pytest.raises(ModelError, match="must be a regular file, got one of mode 20"):
        open_checkpoint(tmp_path / "x", 1000)
