"""Reader of TensorFlow's checkpoints: an index file of tensors and shards of their bytes.

The index is a LevelDB table: blocks of sorted keys, in which each key stores only the suffix that
differs from the key before. Offsets, sizes and counts are checked before use, and checksums before
data is returned.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from math import prod
from pathlib import Path
from stat import S_ISREG
from typing import Any

import numpy as np
from numpy.typing import NDArray

from passkit.errors import ModelError
from passkit.frontends.tf_graphdef.crc32c import crc32c, masked
from passkit.frontends.tf_graphdef.file_formats import refuse_other_formats
from passkit.frontends.tf_graphdef.proto import Budget, dtype_name, parse, short, varint
from passkit.frontends.tf_graphdef.snappy import decompress
from passkit.frontends.tf_graphdef.tensor import parse_dtype, parse_shape

_MAGIC = 0xDB4775248B80FB57
_FOOTER = 48
_PLAIN, _SNAPPY = 0, 1
_TRAILER = 5
"""Bytes after each block: its compression type and a checksum."""
_LOOKED_AT = 4096
_KEY_NBYTES = 400
"""Approximate memory of one more tensor in the index."""
_MOST_SHARDS = 100_000
_STRING = 7  # DT_STRING
OBJECT_GRAPH = "_CHECKPOINTABLE_OBJECT_GRAPH"


class CheckpointBundle:
    """A checkpoint, opened by its prefix. The index is read at once, tensors on demand.

    Args:
        prefix: Path without ``.index``.
        budget: Memory that reading may take.

    Raises:
        ModelError: If the index is missing or damaged.
    """

    def __init__(self, prefix: Path, budget: Budget) -> None:
        """Open the checkpoint with this path prefix: read and check its index.

        Args:
            prefix: Path without ``.index``.
            budget: Memory that reading may take.

        Raises:
            ModelError: If the index is missing or damaged, has no header or an invalid number of
                shards, or exceeds the budget.
        """
        self.prefix, self.budget = prefix, budget
        self.where = short(f"{prefix}.index")
        data = _read_index(Path(f"{prefix}.index"), self.where, budget)
        entries = dict(leveldb_pairs(data, self.where, budget))
        if b"" not in entries:
            raise ModelError(
                f"{self.where} needs a header, and none of its {len(entries)} entries is one; save "
                f"the checkpoint again"
            )
        header = parse(entries.pop(b""), self.where, budget, "BundleHeaderProto")
        self.num_shards, self.swapped = header.num_shards, header.endianness == 1
        if not 0 < self.num_shards <= _MOST_SHARDS:
            raise ModelError(
                f"{self.where} needs 1 to {_MOST_SHARDS:,} shards, and its header says "
                f"{self.num_shards}; save the checkpoint again"
            )
        self._entries = {key.decode("utf-8", "replace"): value for key, value in entries.items()}
        self._shards: dict[int, Any] = {}

    @property
    def keys(self) -> Mapping[str, bytes]:
        """Map the name of each tensor to its serialized index entry (BundleEntryProto)."""
        return self._entries

    def _entry(self, key: str) -> Any:
        """Parse the index entry (BundleEntryProto) of the tensor called ``key``.

        Raises:
            ModelError: If the checkpoint has no tensor of this name, or its entry is damaged or
                exceeds the memory budget.
        """
        encoded = self._entries.get(key)
        if encoded is None:
            raise ModelError(f"{self.where} has no tensor {short(key)}")
        return parse(encoded, f"{short(key)} in {self.where}", self.budget, "BundleEntryProto")

    def array(self, key: str) -> NDArray[Any]:
        """Return the tensor called ``key`` as a read-only array, mapped from its file.

        Bools and tensors of the other byte order are copied.

        The array has the machine's byte order.

        Raises:
            ModelError: If the tensor is missing, damaged, of a dtype that passkit does not have, or
                stored in slices, its shard cannot be read, or the memory budget is exceeded.
        """
        entry, where = self._entry(key), f"{short(key)} in {self.where}"
        dtype = parse_dtype(entry.dtype, where)
        shape = parse_shape(entry.shape, where)
        if len(entry.slices):
            raise ModelError(
                f"{where} is stored in {len(entry.slices)} slices, which passkit does not read; "
                f"save the model without partitioned variables"
            )
        sizes = tuple(n for n in shape or () if n is not None)
        if shape is None or len(sizes) != len(shape) or prod(sizes) * dtype.nbytes != entry.size:
            raise ModelError(
                f"{where} is {dtype}{'(?)' if shape is None else shape}, which cannot take "
                f"{entry.size:,} bytes as the index says; copy the checkpoint again"
            )
        data = self._bytes(entry, where)
        if masked(crc32c(data)) != entry.crc32c:
            raise _checksum_error(f"the bytes of {where}", crc32c(data), entry.crc32c)
        if dtype.kind == "b":
            data = data != 0  # a bool is 0 or 1
        array = np.frombuffer(data, dtype.numpy).reshape(sizes)
        if self.swapped != (sys.byteorder == "big"):
            array = array.byteswap()
        array.flags.writeable = False
        return array

    def string(self, key: str) -> bytes:
        """Return the tensor called ``key``, which is one string, such as the object graph.

        Raises:
            ModelError: If it is missing, no single string, or damaged, its shard cannot be read, or
                the memory budget is exceeded.
        """
        entry, where = self._entry(key), f"{short(key)} in {self.where}"
        if entry.dtype != _STRING or len(entry.shape.dim):
            raise ModelError(
                f"{where} needs to be one string, got {dtype_name(entry.dtype)} of rank "
                f"{len(entry.shape.dim)}"
            )
        data = self._bytes(entry, where).tobytes()
        length, at = varint(data, 0, len(data))
        content = data[at + 4 :]
        if length != len(content):
            raise ModelError(
                f"{where} needs {length:,} bytes of string, and has {len(content):,}; copy the "
                f"checkpoint again"
            )
        checksum = crc32c(content, crc32c(data[at : at + 4], crc32c(length.to_bytes(4, "little"))))
        if masked(checksum) != entry.crc32c:
            raise _checksum_error(f"the string {where}", checksum, entry.crc32c)
        return content

    def _bytes(self, entry: Any, where: str) -> NDArray[Any]:
        """Return the bytes of an index entry, as a memory-mapped slice of its shard.

        Args:
            entry: BundleEntryProto with shard, offset and size.
            where: Name of the tensor in errors.

        Raises:
            ModelError: If the shard or the slice does not exist, the shard cannot be read, or the
                slice exceeds the memory budget.
        """
        if not 0 <= entry.shard_id < self.num_shards:
            raise ModelError(
                f"{where} is in shard {entry.shard_id}, and the checkpoint has {self.num_shards} "
                f"shards, counted from 0; copy the checkpoint again"
            )
        shard = self._shard(entry.shard_id)
        if not (entry.offset >= 0 and 0 <= entry.size <= len(shard) - entry.offset):
            name = f"shard {entry.shard_id}, which holds {where}"
            refuse_other_formats(shard[:_LOOKED_AT].tobytes(), name, "part of a checkpoint")
            raise ModelError(
                f"{where} needs {entry.size:,} bytes at offset {entry.offset:,}, and shard "
                f"{entry.shard_id} has {len(shard):,}; copy all files of the checkpoint again"
            )
        self.budget.take(entry.size, where)
        content: NDArray[Any] = shard[entry.offset : entry.offset + entry.size]
        return content

    def _shard(self, number: int) -> Any:
        """Return the data file with this ``number`` as a uint8 vector, mapped on first use.

        Raises:
            ModelError: If the file does not exist or cannot be read.
        """
        if number not in self._shards:
            path = Path(f"{self.prefix}.data-{number:05d}-of-{self.num_shards:05d}")
            try:
                empty = path.stat().st_size == 0
                self._shards[number] = (
                    np.empty(0, np.uint8) if empty else np.memmap(path, np.uint8, "r")
                )
            except OSError as error:
                raise ModelError(
                    f"{short(str(path))}, which holds weights of this model, cannot be read: "
                    f"{error.strerror}; copy all files of the checkpoint"
                ) from None
        return self._shards[number]


def _read_index(path: Path, where: str, budget: Budget) -> bytes:
    """Read an index file, after its size was taken from the budget.

    Args:
        path: The file.
        where: Its name in errors.
        budget: Memory budget.

    Raises:
        ModelError: If it is no regular file, cannot be read, or exceeds the budget.
    """
    try:
        status = path.stat()
        if not S_ISREG(status.st_mode):
            raise ModelError(
                f"{where} needs to be a regular file, got one of mode {status.st_mode:o}"
            )
        budget.take(status.st_size, where)
        with path.open("rb") as stream:
            return stream.read(status.st_size)
    except OSError as error:
        raise ModelError(
            f"{where}, which says where this model's weights are, cannot be read: "
            f"{error.strerror}; copy all files of the checkpoint"
        ) from None


def _checksum_error(content: str, computed: int, expected: int) -> ModelError:
    """Return the error for a checksum mismatch.

    The error is returned, not raised.

    Args:
        content: What was changed, as the subject of the message.
        computed: CRC-32C of the bytes, not masked.
        expected: Masked checksum that is stored.
    """
    return ModelError(
        f"{content} were changed after they were written: expected the checksum "
        f"{expected:#010x}, computed {masked(computed):#010x}; copy the checkpoint again"
    )


def leveldb_pairs(data: bytes, where: str, budget: Budget) -> Iterator[tuple[bytes, bytes]]:
    """Yield the keys and values of a LevelDB table in order.

    Args:
        data: Bytes of the file.
        where: Its name in errors.
        budget: Memory budget, from which keys and values are taken.

    Raises:
        ModelError: If the data is no LevelDB table or is damaged, compressed by an unsupported
            method, or exceeds the budget.
    """
    magic = int.from_bytes(data[-8:], "little")
    if magic != _MAGIC:
        refuse_other_formats(data, where, "the index of a checkpoint")
    if len(data) < _FOOTER or magic != _MAGIC:
        raise ModelError(
            f"{where}: expected the index of a checkpoint, which ends in {_MAGIC:#x}, found "
            f"{len(data):,} bytes that end in {magic:#x}; copy the checkpoint again"
        )
    at = end = len(data) - _FOOTER
    for _ in range(3):  # offset and size of the meta-index block, which is skipped, then the index
        offset, at = varint(data, at, len(data))
    for _, handle in _block(data, offset, varint(data, at, len(data))[0], where, end, budget):
        begin, at = varint(handle, 0, len(handle))
        size, at = varint(handle, at, len(handle))
        yield from _block(data, begin, size, where, end, budget)


def _block(
    data: bytes, begin: int, size: int, where: str, end: int, budget: Budget
) -> Iterator[tuple[bytes, bytes]]:
    """Yield the keys and values of one block of a LevelDB table.

    Args:
        data: Bytes of the file.
        begin: Offset of the block.
        size: Its size, without the trailer.
        where: Name of the file in errors.
        end: Offset behind the last block.
        budget: Memory budget, from which keys and values are taken.

    Raises:
        ModelError: If the block is damaged, compressed by an unsupported method, or exceeds the
            budget.
    """
    stop = begin + size
    if size < 4 or stop + _TRAILER > end:
        raise ModelError(
            f"{where} needs a block of {size:,} bytes at offset {begin:,}, and its blocks end at "
            f"{end:,}; copy the checkpoint again"
        )
    stored_checksum = int.from_bytes(data[stop + 1 : stop + _TRAILER], "little")
    computed_checksum = crc32c(data[begin : stop + 1])
    if masked(computed_checksum) != stored_checksum:
        raise _checksum_error(
            f"the bytes {begin:,} to {stop:,} of {where}", computed_checksum, stored_checksum
        )
    kind = data[stop]
    if kind not in (_PLAIN, _SNAPPY):
        raise ModelError(
            f"{where} has a block at offset {begin:,} of compression type {kind}; supported are "
            f"{_PLAIN} (none) and {_SNAPPY} (Snappy); save the checkpoint again"
        )
    at = begin
    if kind == _SNAPPY:
        data = decompress(data[begin:stop], f"the block at {begin:,} of {where}", budget)
        at, stop = 0, len(data)
    restarts = int.from_bytes(data[max(stop - 4, 0) : stop], "little")
    keys_end = stop - 4 - 4 * restarts
    key = b""
    while at < keys_end:
        shared, at = varint(data, at, keys_end)
        fresh, at = varint(data, at, keys_end)
        length, at = varint(data, at, keys_end)
        if shared > len(key) or at + fresh + length > keys_end:
            raise ModelError(
                f"{where} has a key of {shared} + {fresh} bytes and a value of {length} bytes at "
                f"offset {at:,}, and the entries of its block end at {keys_end:,}; copy the "
                f"checkpoint again"
            )
        budget.take(_KEY_NBYTES + shared + fresh + length, f"the index {where}")
        key = key[:shared] + data[at : at + fresh]
        at += fresh
        yield key, data[at : at + length]
        at += length
