"""TensorFlow's checkpoints, read without TensorFlow: an index of tensors and shards of their bytes.

The index is a table as LevelDB writes it: blocks of sorted keys, each with what it shares with the
one before taken away. Offsets, sizes and counts are checked before they are used, and checksums
before bytes are believed.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from math import prod
from pathlib import Path
from stat import S_ISREG
from typing import Any

import numpy as np

from passkit.errors import ModelError
from passkit.frontends.tf_graphdef.crc32c import crc32c, masked
from passkit.frontends.tf_graphdef.foreign import refuse_foreign
from passkit.frontends.tf_graphdef.proto import Budget, dtype_name, parse, short, varint
from passkit.frontends.tf_graphdef.snappy import decompressed
from passkit.frontends.tf_graphdef.tensor import dtype_from, shape_from

Array = np.ndarray[Any, Any]

_MAGIC = 0xDB4775248B80FB57
_FOOTER = 48
_PLAIN, _SNAPPY = 0, 1
_TRAILER = 5
"""Behind each block: how it is compressed, and a checksum."""
_LOOKED_AT = 4096
_KEY_NBYTES = 400
"""About what one more tensor of the index takes."""
_MOST_SHARDS = 100_000
_STRING = 7  # DT_STRING
OBJECT_GRAPH = "_CHECKPOINTABLE_OBJECT_GRAPH"


class Bundle:
    """A checkpoint: the tensors called by ``keys``; bytes are read when they are asked for."""

    def __init__(self, prefix: Path, budget: Budget) -> None:
        self.prefix, self.budget = prefix, budget
        self.where = short(f"{prefix}.index")
        data = _bytes_of(Path(f"{prefix}.index"), self.where, budget)
        entries = dict(table_pairs(data, self.where, budget))
        if b"" not in entries:
            raise ModelError(f"{self.where} has {len(entries)} entries and no header among them")
        header = parse(entries.pop(b""), self.where, budget, "BundleHeaderProto")
        self.num_shards, self.swapped = header.num_shards, header.endianness == 1
        if not 0 < self.num_shards <= _MOST_SHARDS:
            raise ModelError(f"{self.where} says that it has {self.num_shards} shards")
        self._entries = {key.decode("utf-8", "replace"): value for key, value in entries.items()}
        self._shards: dict[int, Any] = {}

    @property
    def keys(self) -> Mapping[str, bytes]:
        """The tensors there are, and what the index says of each."""
        return self._entries

    def _entry(self, key: str) -> Any:
        found = self._entries.get(key)
        if found is None:
            raise ModelError(f"{self.where} has no tensor {short(key)}")
        return parse(found, f"{short(key)} in {self.where}", self.budget, "BundleEntryProto")

    def array(self, key: str) -> Array:
        """A tensor, in memory that its file backs. Raises: ModelError where it is damaged."""
        entry, where = self._entry(key), f"{short(key)} in {self.where}"
        dtype = dtype_from(entry.dtype, where)
        shape = shape_from(entry.shape, where)
        if len(entry.slices):
            raise ModelError(
                f"{where} is stored in {len(entry.slices)} slices, which are not put together "
                f"here; save the model without partitioned variables"
            )
        sizes = tuple(n for n in shape or () if n is not None)
        if shape is None or len(sizes) != len(shape) or prod(sizes) * dtype.nbytes != entry.size:
            raise ModelError(
                f"{where} of {dtype}{'(?)' if shape is None else shape} cannot have "
                f"{entry.size:,} bytes"
            )
        data = self._bytes(entry, where)
        if masked(crc32c(data)) != entry.crc32c:
            raise _damaged(f"the bytes of {where}", crc32c(data), entry.crc32c)
        if dtype.kind == "b":
            data = data != 0  # a bool is 0 or 1
        array = np.frombuffer(data, dtype.numpy).reshape(sizes)
        if self.swapped != (sys.byteorder == "big"):
            array = array.byteswap()
        array.flags.writeable = False
        return array

    def string(self, key: str) -> bytes:
        """A tensor that is one string, such as the graph of a model's objects."""
        entry, where = self._entry(key), f"{short(key)} in {self.where}"
        if entry.dtype != _STRING or len(entry.shape.dim):
            raise ModelError(f"{where} is {dtype_name(entry.dtype)}, and one string is needed")
        data = self._bytes(entry, where).tobytes()
        length, at = varint(data, 0, len(data))
        content = data[at + 4 :]
        if length != len(content):
            raise ModelError(f"{where} says {length:,} bytes of string, and has {len(content):,}")
        checksum = crc32c(content, crc32c(data[at : at + 4], crc32c(length.to_bytes(4, "little"))))
        if masked(checksum) != entry.crc32c:
            raise _damaged(f"the string {where}", checksum, entry.crc32c)
        return content

    def _bytes(self, entry: Any, where: str) -> Array:
        """What an entry says its bytes are; they are in memory when they are looked at."""
        if not 0 <= entry.shard_id < self.num_shards:
            raise ModelError(f"{where} is in shard {entry.shard_id} of {self.num_shards}")
        shard = self._shard(entry.shard_id)
        if not (entry.offset >= 0 and 0 <= entry.size <= len(shard) - entry.offset):
            name = f"shard {entry.shard_id}, which holds {where},"
            refuse_foreign(shard[:_LOOKED_AT].tobytes(), name, "part of a checkpoint")
            raise ModelError(
                f"{where} lies at {entry.offset:,} and takes {entry.size:,} bytes, and shard "
                f"{entry.shard_id} has {len(shard):,}; copy the checkpoint again, whole"
            )
        self.budget.take(entry.size, where)
        found: Array = shard[entry.offset : entry.offset + entry.size]
        return found

    def _shard(self, number: int) -> Any:
        if number not in self._shards:
            path = Path(f"{self.prefix}.data-{number:05d}-of-{self.num_shards:05d}")
            try:
                empty = path.stat().st_size == 0
                self._shards[number] = (
                    np.empty(0, np.uint8) if empty else np.memmap(path, np.uint8, "r")
                )
            except OSError as error:
                raise ModelError(
                    f"{short(str(path))} cannot be read: {error.strerror}; it holds weights of "
                    f"this model"
                ) from None
        return self._shards[number]


def _bytes_of(path: Path, where: str, budget: Budget) -> bytes:
    try:
        found = path.stat()
        if not S_ISREG(found.st_mode):
            raise ModelError(f"{where} must be a regular file, got one of mode {found.st_mode:o}")
        budget.take(found.st_size, where)
        with path.open("rb") as stream:
            return stream.read(found.st_size)
    except OSError as error:
        raise ModelError(
            f"{where} cannot be read: {error.strerror}; it says where this model's weights are"
        ) from None


def _damaged(what: str, found: int, said: int) -> ModelError:
    return ModelError(
        f"{what} were changed after they were written: their checksum is {masked(found):#010x}, "
        f"and {said:#010x} is stored; copy the checkpoint again"
    )


def table_pairs(data: bytes, where: str, budget: Budget) -> Iterator[tuple[bytes, bytes]]:
    """Keys and values of a LevelDB table, in order."""
    magic = int.from_bytes(data[-8:], "little")
    if magic != _MAGIC:
        refuse_foreign(data, where, "index of a checkpoint")
    if len(data) < _FOOTER or magic != _MAGIC:
        raise ModelError(
            f"{where} of {len(data):,} bytes is no index of a checkpoint: it ends in {magic:#x}"
        )
    at = end = len(data) - _FOOTER
    for _ in range(3):  # the handle of a block that is not needed, then where the index is
        offset, at = varint(data, at, len(data))
    for _, handle in _block(data, offset, varint(data, at, len(data))[0], where, end, budget):
        begin, at = varint(handle, 0, len(handle))
        size, at = varint(handle, at, len(handle))
        yield from _block(data, begin, size, where, end, budget)


def _block(
    data: bytes, begin: int, size: int, where: str, end: int, budget: Budget
) -> Iterator[tuple[bytes, bytes]]:
    """Keys and values of one block. Raises: ModelError where it is damaged."""
    stop = begin + size
    if size < 4 or stop + _TRAILER > end:
        raise ModelError(f"{where} has a block at {begin:,} of {size:,} bytes, and {end:,} in all")
    said = int.from_bytes(data[stop + 1 : stop + _TRAILER], "little")
    found = crc32c(data[begin : stop + 1])
    if masked(found) != said:
        raise _damaged(f"the bytes {begin:,} to {stop:,} of {where}", found, said)
    kind = data[stop]
    if kind not in (_PLAIN, _SNAPPY):
        raise ModelError(
            f"{where} has a block at {begin:,} that is compressed in the way {kind}, and only "
            f"Snappy ({_SNAPPY}) and none ({_PLAIN}) are known; save the checkpoint again"
        )
    at = begin
    if kind == _SNAPPY:
        data = decompressed(data[begin:stop], f"the block at {begin:,} of {where}", budget)
        at, stop = 0, len(data)
    restarts = int.from_bytes(data[max(stop - 4, 0) : stop], "little")
    last = stop - 4 - 4 * restarts
    key = b""
    while at < last:
        shared, at = varint(data, at, last)
        fresh, at = varint(data, at, last)
        length, at = varint(data, at, last)
        if shared > len(key) or at + fresh + length > last:
            raise ModelError(
                f"{where} has a key of {shared} + {fresh} bytes and a value of {length} at {at:,}, "
                f"where its block ends at {last:,}"
            )
        budget.take(_KEY_NBYTES + shared + fresh + length, f"the index {where}")
        key = key[:shared] + data[at : at + fresh]
        at += fresh
        yield key, data[at : at + length]
        at += length
