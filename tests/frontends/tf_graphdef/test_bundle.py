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
        (b"", r"'v\.index': expected the index of a checkpoint, found an empty file of 0"),
        (b"abc", r"'v\.index'.*in 0xdb4775248b80fb57, found 3 bytes that end in 0x636261"),
        (GOOD[:-8] + bytes(8), f"found {len(GOOD)} bytes that end in 0x0"),
        (GOOD[:5] + b"?" + GOOD[6:], r"bytes 0 to \d+ of 'v.index' were changed .* 0x"),
        (table([header()], kind=2), r"block at offset 0 of compression type 2; .* 1 \(Snappy\)"),
        (
            table([header()], kind=1),
            "the block at 0 of 'v.index': .* Snappy block .* offset 1, after 0",
        ),
        (table([(b"w", b"")]), r"'v\.index' needs a header, and none of its 1"),
        (table([header(num_shards=0)]), "and its header says 0"),
        (table([header(num_shards=1 << 30)]), "and its header says 1073741824"),
        (GOOD[:-48] + b"\xff" * 40 + GOOD[-8:], "needs a block of 0 bytes at offset 0"),
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

    with pytest.raises(ModelError, match=r"key of 0 \+ 1.*value of 99 bytes at offset 3"):
        put(table_of_block(checked(content + b"\0")))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"shard_id": 3}, r"'w' in 'v\.index' is in shard 3, and the checkpoint has 1"),
        ({"shard_id": -1}, r"'v\.index' is in shard -1, and the checkpoint has 1"),
        ({"offset": 1}, r"'w' in 'v\.index' needs 24 bytes at offset 1, and shard 0 has 24"),
        ({"offset": -8}, "24 bytes at offset -8"),
        ({"offset": 1 << 60}, "24 bytes at offset 1,152,921,504,606,846,976"),
        ({"size": 20}, r"'w' in 'v\.index' is float32\(2, 3\), which cannot take 20"),
        ({"shape": {"dim": [{"size": 1 << 40}] * 2}}, r"1099511627776\), which cannot take 24"),
        ({"shape": {"unknown_rank": True}}, r"'v\.index' is float32\(\?\), which cannot take 24"),
        ({"crc32c": 5}, "the bytes of 'w' in 'v.index' were changed .* checksum 0x00000005"),
        ({"slices": [{}, {}]}, "'w' in 'v.index' is stored in 2 slices"),
        ({"dtype": 7}, "'w' in 'v.index' has the element type DT_STRING"),
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
    with pytest.raises(ModelError, match="'v.data-00000-of-00001', .*: No such file"):
        bundle.array("w")
    with pytest.raises(ModelError, match="'x.index', .* cannot be read: No such file"):
        open_checkpoint("x", 0)


def test_damaged_strings_are_refused(put: Any) -> None:
    """A string of another length, kind or checksum is refused."""
    text = {"dtype": 7, "shape": {}}
    with pytest.raises(ModelError, match="'s' in 'v.index' needs to be one string, got DT_FLOAT"):
        put(table([header(), (b"s", entry(WEIGHTS))]), DATA).string("s")
    short = np.frombuffer(b"\x09abcdxyz", np.uint8)
    with pytest.raises(ModelError, match="needs 9 bytes of string, and has 3"):
        put(table([header(), (b"s", entry(short, **text))]), short.tobytes()).string("s")
    whole = np.frombuffer(b"\x03abcdxyz", np.uint8)
    with pytest.raises(ModelError, match="the string 's' in 'v.index' were changed"):
        put(table([header(), (b"s", entry(whole, **text))]), whole.tobytes()).string("s")


def test_an_index_that_is_no_regular_file_is_refused(tmp_path: Path) -> None:
    """A link to an endless device is refused before it is read."""
    (tmp_path / "x.index").symlink_to("/dev/zero")

    with pytest.raises(ModelError, match="needs to be a regular file, got one of mode 20"):
        open_checkpoint(tmp_path / "x", 1000)
