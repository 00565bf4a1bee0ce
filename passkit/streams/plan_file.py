"""The plans of streams on disk: a second process explores and compiles nothing.

A file holds one line of JSON for each compiled variant of a plan: the operations in relative form,
the positions of the results that it writes, the extents if it serves only these, and which numbers
are equal. Lines are only appended, under a lock, and each begins with its digest, so that torn,
damaged and foreign lines are skipped. The executables themselves are in the plan cache and the
kernel cache.

The name of the file is a digest of all that decides about plans: the versions of NumPy and of the
file format, and passkit's own source files. Operations are found by their names when a line is
read; one that the program defines later is found then.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from hashlib import sha256
from typing import Any

import numpy as np
from attrs import frozen

from passkit.errors import CacheError, PasskitError
from passkit.program.plan_cache import source_files
from passkit.runtime.native.cache import cache_folder_name, read_private, trusted_folder
from passkit.streams.operation import Operation, OperationTable
from passkit.values.dtype import dtype_of

FORMAT = 2
FOLDER = "streams"
MAX_BYTES = 16 << 20
"""A larger file is not read, and begun anew."""


@frozen
class StoredVariant:
    """One line of the file.

    Attributes:
        keys: the operations in relative form.
        outputs: positions of the results that are written.
        dims: the extents by symbol, if the variant serves these only; else None.
        equal_inputs: pairs of inputs that are equal numbers, as in `Plan`.
    """

    keys: tuple[Any, ...]
    outputs: tuple[int, ...]
    dims: tuple[int, ...] | None
    equal_inputs: tuple[tuple[int, int], ...]


class PlanFile:
    """The file of the plans of one device.

    Args:
        operations: the operations that plans refer to by name.
        device: the device, with what compiled code depends on.

    Reading and writing never raise: a cache that cannot be used only costs time.
    """

    def __init__(self, operations: OperationTable, device: str) -> None:
        self.operations = operations
        facts = (FORMAT, device, np.__version__, source_files())
        self._name = f"{sha256(repr(facts).encode()).hexdigest()[:32]}.jsonl"

    @property
    def path(self) -> str:
        """The path of the file in the cache folder of the environment."""
        return os.path.join(cache_folder_name(os.environ), FOLDER, self._name)

    def lines(self) -> Iterator[bytes]:
        """Yield the undamaged lines of the file without their digests, for `decoded`.

        There are none if the file is missing or cannot be read safely. A file of more than
        `MAX_BYTES` is removed.
        """
        try:
            trusted_folder(cache_folder_name(os.environ))
            text = read_private(self.path, MAX_BYTES + 1)
        except (OSError, CacheError):
            return
        if len(text) > MAX_BYTES:
            with suppress(OSError):
                os.remove(self.path)
            return
        for line in text.splitlines():
            digest, _, body = line.partition(b" ")
            if sha256(body).hexdigest()[:16].encode() == digest:
                yield body

    def decoded(self, line: bytes) -> StoredVariant | None:
        """Return the variant of a line; None for one that this process does not understand.

        It may have operations that are not defined yet, or be of another version of the code.
        """
        try:
            keys, outputs, dims, equal_inputs = json.loads(line)
            return StoredVariant(
                tuple(self._decoded_key(key) for key in keys),
                tuple(map(int, outputs)),
                None if dims is None else tuple(map(int, dims)),
                tuple((int(later), int(earlier)) for later, earlier in equal_inputs),
            )
        except (PasskitError, ValueError, TypeError, KeyError, IndexError):
            return None

    def append(self, variant: StoredVariant) -> None:
        """Append the line of a variant to the file, which is created if it is missing.

        Do nothing if the file cannot be written safely, or JSON lacks a parameter of an operation.
        """
        body = encoded(variant)
        if body is None:
            return
        text = sha256(body).hexdigest()[:16].encode() + b" " + body + b"\n"
        try:
            folder = trusted_folder(cache_folder_name(os.environ))
            os.makedirs(os.path.join(folder, FOLDER), mode=0o700, exist_ok=True)
            flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
            descriptor = os.open(self.path, flags, 0o600)
        except (OSError, CacheError):
            return
        try:
            _append_locked(descriptor, text)
        except OSError:
            pass
        finally:
            os.close(descriptor)

    def _decoded_key(self, key: Sequence[Any]) -> tuple[Any, ...]:
        """Return a relative operation from the form of `_encoded_key`.

        Raises: KeyError for an unknown operation; PasskitError, ValueError, TypeError, KeyError or
            IndexError for another form.
        """
        name, params, extents, *operands = key
        return (
            self._operation(name, {k: _decoded_value(v) for k, v in params.items()}),
            None if extents is None else tuple(map(int, extents)),
            *(o if isinstance(o, int) else _decoded_input(o) for o in operands),
        )

    def _operation(self, name: str, params: dict[str, Any]) -> Operation:
        """Return the operation of this name with these parameters, a projection for "project".

        Raises: KeyError if there is none.
        """
        if name == "project":
            return self.operations.projection(params["index"])
        return self.operations.get(name, **params)


def encoded(variant: StoredVariant) -> bytes | None:
    """Return a variant as a line of JSON; None if JSON lacks a parameter of an operation."""
    keys = [_encoded_key(key) for key in variant.keys]
    line = [keys, variant.outputs, variant.dims, variant.equal_inputs]
    try:
        return json.dumps(line, separators=(",", ":")).encode()
    except (TypeError, ValueError):
        return None


def _append_locked(descriptor: int, text: bytes) -> None:
    """Write bytes to a file opened for appending, while no other process does.

    Without locks of POSIX, others may. Raises: OSError if it cannot be locked or written.
    """
    try:
        import fcntl  # POSIX only
    except ImportError:
        os.write(descriptor, text)
        return
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    try:
        os.write(descriptor, text)
    finally:
        fcntl.flock(descriptor, fcntl.LOCK_UN)


def _encoded_key(key: tuple[Any, ...]) -> list[Any]:
    """Return a relative operation for JSON: name, parameters, extents, and operands.

    An operand is a number, or a list of the name of a dtype and the dims.
    """
    operation, extents, *operands = key
    params = {name: _encoded_value(value) for name, value in operation.params.items()}
    inputs = [o if isinstance(o, int) else [dtype_of(o[0]).name, o[1]] for o in operands]
    return [operation.name, params, extents, *inputs]


def _decoded_input(item: Sequence[Any]) -> tuple[Any, tuple[int, ...]]:
    """Return the relative form of an input: a tuple of its NumPy dtype and its dims.

    Raises: PasskitError for an unknown dtype; ValueError or TypeError for another form.
    """
    dtype, dims = item
    return dtype_of(dtype).numpy, tuple(map(int, dims))


def _encoded_value(value: Any) -> Any:
    """Return a parameter for JSON: tuples, also nested ones, are objects; others stay."""
    if isinstance(value, tuple):
        return {"tuple": [_encoded_value(v) for v in value]}
    return value


def _decoded_value(value: Any) -> Any:
    """Return the parameter that `_encoded_value` encoded."""
    if isinstance(value, dict):
        return tuple(_decoded_value(v) for v in value["tuple"])
    return value
