"""Store plans in the plan cache, which `passkit.program.plan_cache` reads."""

from __future__ import annotations

import json
import os
from base64 import b64encode
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any

import numpy as np

from passkit.errors import CacheError, DTypeError, GraphError
from passkit.graph.graph import Graph
from passkit.graph.node import CONSTANT, Entry, Node, var
from passkit.passes.constant_folding import origin_of, origins
from passkit.passes.rtcgen import FLAGS, kernel_text
from passkit.program.plan_cache import FORMAT, constant_arrays, encode_value, plan_path
from passkit.runtime.native import convolution_unit
from passkit.runtime.native.build import kernel_digest
from passkit.runtime.native.cache import open_cache, put_file, trusted_folder
from passkit.runtime.native.convolution_unit import ConvolutionUnit
from passkit.runtime.program import (
    ProgramStep,
    PythonCall,
    PythonCallKind,
    RuntimeProgram,
)
from passkit.runtime.table_binder import TableEntry
from passkit.serial.json import to_json
from passkit.values.dtype import dtype_of

MAX_CONSTANT_BYTES = 1 << 16
"""The most bytes of constants that a plan file holds. It refers to constants of the source graph,
such as weights, by number, and stores large folded ones as the expressions that compute them."""
MAX_FOLDED_BYTES = 4 << 10
"""The largest folded constant that a plan file holds; it has the expressions of larger ones."""


def store_plan(key: str, source: Graph, planned: Graph, program: RuntimeProgram) -> None:
    """Write the plan of a program into the cache; do nothing if a part of it cannot be written.

    That is a step in Python that is no call of a library, or constants of more than
    `MAX_CONSTANT_BYTES`. A failure to write is ignored. Raises: CacheError if the cache folder is a
    file, or others may write to it.

    Args:
        key: The result of `passkit.program.plan_cache.plan_key`.
        source: The graph before planning.
        planned: The planned graph, which has the annotation "kernel".
        program: The program of the planned graph.
    """
    table = program.table
    states = [n.name for n in planned.states]
    encoded = encode_constants(table.constants[: len(table.constants) - len(states)], source)
    if encoded is None:
        return
    constants, recipe = encoded
    kernels = planned.attrs.get("kernel", {})
    digests = {
        kernels[n].key: kernel_digest(kernel_text(kernels[n]), FLAGS)
        for n in planned.nodes
        if n in kernels
    }
    libraries: set[str] = set()
    rows: list[Any] = []
    for step, row in zip(program.steps, table.entries, strict=True):
        if row is not None and row[0] == "python":
            text = _library_call(step, planned)
            if text is None:
                return
            row = ("python", text, *row[2:])
        elif row is not None and row[0] == "launch":
            row = ("launch", digests[step.kernel.key], *row[2:])  # type: ignore[union-attr]
        elif row is not None:
            row = _without_address(row, libraries)
        rows.append(encode_value(row))
    plan = {
        "format": FORMAT,
        "rows": rows,
        "kernels": sorted({*digests.values(), *libraries}),
        "states": states,
        "inputs": [(name, dtype.name, encode_value(s)) for name, dtype, s in table.inputs],
        "outputs": [(dtype.name, encode_value(s)) for dtype, s in table.outputs],
        "guards": encode_value(table.guards),
        "slots": encode_value(table.slots),
        "donors": table.donors,
        "parallel": table.parallel,
        "chains": encode_value(table.chains),
        "constants": constants,
        "recipe": recipe,
    }
    _write(key, json.dumps(plan).encode())


def _library_call(step: ProgramStep, planned: Graph) -> str | None:
    """Return the node that a step evaluates by a library called from Python, as a graph in JSON.

    Its inputs are variables, in order. ``planned`` is the planned graph. Returns: None for another
    step, and for a node with a parameter that JSON cannot hold.
    """
    if not isinstance(step, PythonCall) or step.kind is not PythonCallKind.LIBRARY:
        return None
    node = step.node
    if node is None:
        return None
    inputs = [var(f"a{k}", planned.shape(e), planned.dtype(e)) for k, e in enumerate(node.inputs)]
    alone = node.replaced(inputs, ())
    try:
        return to_json(Graph(list(alone.entries)))
    except (GraphError, DTypeError):
        return None


def _without_address(row: TableEntry, libraries: set[str]) -> TableEntry:
    """Return a row without the address of a library.

    A matrix product has None in its place. A convolution has the keys of the units that it
    needs, which are added to ``libraries``, as the plan needs them in the kernel cache. Other rows
    are returned as they are.
    """
    if row[0] in ("gemm", "gemm_sum"):
        return (*row[:2], None, *row[3:])
    if row[0] in ("convolution", "window_products"):
        units = [
            convolution_unit.digest(unit) if address else None
            for unit, address in zip(ConvolutionUnit, row[1], strict=True)
        ]
        libraries.update(filter(None, units))
        return (row[0], units, *row[2:])
    return row


def _write(key: str, body: bytes) -> None:
    """Write the plan ``body`` to the cache's file for ``key``, with its digest in front.

    A failure is ignored, because the kernel cache has reported its own. Raises: CacheError if the
    cache folder is a file, or others may write to it.
    """
    cache = open_cache()
    try:
        path = plan_path(cache, key)
        trusted_folder(cache.name)
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        put_file(path, sha256(body).hexdigest().encode() + b"\n" + body)
    except (CacheError, OSError):
        pass


def encode_constants(
    constants: Sequence[Any], source: Graph
) -> tuple[list[Any], str | None] | None:
    """Return the entries of a plan file for constants, and the recipe of those that were folded.

    An entry is the dtype, the shape, and the origin: the number of a constant of ``source``, the
    bytes as text, or ``[k]`` for output k of the recipe. The recipe is a graph as JSON, whose
    variable ``c7`` stands for constant 7 of ``source``.

    Returns: A pair of the entries, in the order of ``constants``, and the recipe, None if it is not
    needed. None in place of the pair if the constants to be written as bytes, here or in the
    recipe, are larger than `MAX_CONSTANT_BYTES` together.
    """
    numbers = {_content_key(a): k for k, a in enumerate(constant_arrays(source))}
    entries: list[Any] = []
    derived: list[Entry] = []
    bytes_left = MAX_CONSTANT_BYTES
    for array in constants:
        origin: int | str | list[int] | None = numbers.get(_content_key(array))
        if origin is None and array.nbytes > MAX_FOLDED_BYTES:
            expression = _folded_expression(array)
            if expression is not None:
                origin = [len(derived)]
                derived.append(expression)
        if origin is None:
            bytes_left -= array.nbytes
            if bytes_left < 0:
                return None
            origin = b64encode(array.tobytes()).decode()
        entries.append((dtype_of(array.dtype).name, array.shape, origin))
    if not derived:
        return entries, None
    recipe = _recipe(derived, numbers)
    return None if recipe is None else (entries, recipe)


def _folded_expression(array: Any) -> Entry | None:
    """Return the entry that constant folding replaced by an array of these bytes, of any shape.

    Returns: None if constant folding created no array of these bytes and this dtype.
    """
    candidates = [
        (folded, entry)
        for folded, entry in origins()
        if folded.nbytes == array.nbytes and folded.dtype == array.dtype
    ]
    key = _content_key(array) if candidates else None
    return next((entry for folded, entry in candidates if _content_key(folded) == key), None)


def _recipe(derived: Sequence[Entry], numbers: Mapping[tuple[str, bytes], int]) -> str | None:
    """Return the graph that computes entries from constants of the source, as JSON.

    ``derived`` are the entries, its outputs; ``numbers`` has the number of each constant of the
    source by `_content_key`, which names its variable.

    None if it needs other constants, neither in the source nor folded, of more than
    `MAX_CONSTANT_BYTES` together.
    """
    bytes_left = MAX_CONSTANT_BYTES
    variables: dict[int, Entry] = {}

    def replace_constant(node: Node) -> Sequence[Entry] | None:
        """Return the variable or folded expression that replaces a constant, None for other nodes.

        The bytes of a constant that stays are subtracted from ``bytes_left``.
        """
        nonlocal bytes_left
        if node.op is not CONSTANT:
            return None
        array = node.params["value"]
        number = numbers.get(_content_key(array))
        if number is not None:
            if number not in variables:
                variables[number] = var(f"c{number}", array.shape, dtype_of(array.dtype))
            return [variables[number]]
        origin = origin_of(array)
        if origin is not None:
            return [origin]
        bytes_left -= array.nbytes
        return None

    graph = Graph(list(derived))
    while True:
        rebuilt = graph.transform(replace_constant)
        if bytes_left < 0:
            return None
        if rebuilt.heads == graph.heads:
            return to_json(graph)
        graph, bytes_left = rebuilt, MAX_CONSTANT_BYTES


def _content_key(array: Any) -> tuple[str, bytes]:
    """Return the dtype's name and a SHA-256 digest of the elements of an array.

    Its shape does not count.
    """
    return str(array.dtype), sha256(np.ascontiguousarray(array).tobytes()).digest()
