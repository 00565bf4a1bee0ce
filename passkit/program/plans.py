"""Plans on disk: what a compiled graph runs, so that a new process need not plan it again.

A plan is a `Table` as JSON behind its own digest, with kernels by their names in the kernel cache.
It is found by the graph, the options, what was measured, and the files passkit consists of. A
process that has planned anything plans on. A graph with an operator of the user's own is planned in
each process, and so is one with a pass or a fusion strategy of the user's: what their functions do
cannot be read off a file.
"""

from __future__ import annotations

import json
import os
import sys
from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence
from functools import lru_cache
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import numpy as np

from passkit.errors import CacheError
from passkit.graph import registry
from passkit.graph.graph import Graph, digest
from passkit.graph.node import CONSTANT, Entry, Node, var
from passkit.library import profile
from passkit.library.store import Snapshot, snapshot
from passkit.plan.strategy import BUILT_IN
from passkit.runtime.native import build, launcher
from passkit.runtime.native.cache import (
    KernelCache,
    open_cache,
    put_file,
    read_private,
    trusted_folder,
)
from passkit.runtime.native.compiler import instruction_set
from passkit.runtime.table import Table
from passkit.values.dtype import dtype_of
from passkit.values.size import Quotient, Size

if TYPE_CHECKING:
    from passkit.runtime.program import Program

FORMAT = 5
PLANNER = "passkit.passes"
"""What a process has imported that planned something, or made a `PassContext`."""
MOST_CONSTANT_BYTES = 1 << 16
"""Bytes of constants that a plan file holds. It refers to those of the source graph, such as
weights, by number, and has the expressions of larger ones that were folded from them."""
FOLDED_BYTES = 4 << 10
"""A plan file holds folded constants up to this size, and the expressions of larger ones."""
_TELLING = frozenset({"target", "fusion", "numerics"})
_HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_INSIDE = os.path.join(_HERE, "ops")
_OPS = _INSIDE if os.path.isdir(_INSIDE) else os.path.join(os.path.dirname(_HERE), "ops")


def plan_key(
    graph: Graph, options: Mapping[str, Any], library: Snapshot | None = None
) -> str | None:
    """What a plan of this graph is called; None where plans of it are not kept.

    ``library`` is what the planner knows of measurements, by default what there is.
    """
    wanted = {k: v for k, v in options.items() if v is not None}
    if any(not isinstance(v, str) for v in wanted.values()):
        return None
    if graph.attrs or not _TELLING.issuperset(wanted) or wanted.get("target", "cpu") != "cpu":
        return None
    if wanted.get("fusion", "stitch") not in BUILT_IN or not _standard(graph):
        return None
    names = [graph.names[n] for n in graph.inputs], [n.name for n in graph.states]
    measured = (snapshot() if library is None else library).digest, profile.digest()
    facts = (FORMAT, digest(graph), names, sorted(wanted.items()), _code(), instruction_set(),
             measured)  # fmt: skip
    return sha256(repr(facts).encode()).hexdigest()


def _standard(graph: Graph) -> bool:
    """Whether its operators mean what passkit's own files say, and nobody changed those."""
    ours: set[str] = set()
    others: set[str] = set()
    for table in registry.tables():
        for name, row in table.rows.items():
            (ours if row.place.startswith((_HERE, _OPS)) else others).add(name)
    return not others & (ours | {n.op.name for n in graph.nodes if n.op is not None})


@lru_cache(maxsize=1)
def _code() -> list[tuple[str, int, int]]:
    """The files that passkit consists of, as their names, sizes and times tell.

    Read once: a file that changes later is not the code that this process runs.
    """
    found = []
    folders = [_HERE, _OPS]
    while folders:
        for item in os.scandir(folders.pop()):
            if item.name.endswith((".py", ".h", ".c", ".cpp")):
                facts = item.stat()
                found.append((item.name, facts.st_size, facts.st_mtime_ns))
            elif "." not in item.name and item.name != "__pycache__" and item.is_dir():
                folders.append(item.path)
    return sorted(found)


def _held(graph: Graph) -> list[Any]:
    """The arrays of a graph's constants, in its order, which the key pins."""
    return [n.params["value"] for n in graph.nodes if n.op is CONSTANT]


def recall(key: str, graph: Graph, state: Mapping[str, Any]) -> Table | None:
    """The table of a plan on disk whose kernels are in the cache; None where there is none.

    Constants that a plan only names are those of the graph, which is the one that it was made of.
    """
    cache = open_cache()
    try:
        check, _, body = read_private(_path(cache, key)).partition(b"\n")
        if sha256(body).hexdigest().encode() != check:
            return None
        plan = json.loads(body)
    except (OSError, ValueError, RecursionError):
        return None
    if plan["format"] != FORMAT:
        return None
    entries = build.recall(plan["kernels"])
    if entries is None:
        return None
    constants = _read_constants(plan, graph)
    return Table(
        tuple((name, dtype_of(d), _read(s)) for name, d, s in plan["inputs"]),
        tuple((dtype_of(d), _read(s)) for d, s in plan["outputs"]),
        tuple(None if row is None else _linked(_read(row), entries) for row in plan["rows"]),
        _read(plan["guards"]),
        _read(plan["slots"]),
        (*constants, *(state[n] for n in plan["states"])),
        plan["parallel"],
    )


def keep(
    key: str, source: Graph, graph: Graph, program: Program, digests: Mapping[str, str]
) -> None:
    """Write the plan of a program, where all of it can be written.

    ``source`` is the graph as it was before planning, ``digests`` are the names of the kernels in
    the cache, by their keys.
    """
    table, names = program.table, [n.name for n in graph.states]
    written = _written(table.constants[: len(table.constants) - len(names)], source)
    if written is None:
        return
    constants, recipe = written
    rows: list[Any] = []
    units: dict[str, str] = {}
    for step, row in zip(program.steps, table.rows, strict=True):
        if row is not None and row[0] == "python":
            return
        if row is not None and row[0] == "launch":
            row = ("launch", digests[step.kernel.key], *row[2:])  # type: ignore[union-attr]
        elif row is not None and row[0] in ("gemm", "gemm_sum"):
            row = (*row[:2], None, *row[3:])
        elif row is not None and row[0] in ("convolution", "window_products"):
            row = (row[0], units.setdefault("convolution", _unit()), *row[2:])
        rows.append(_plain(row))
    plan = {
        "format": FORMAT, "rows": rows,
        "kernels": sorted({*digests.values(), *units.values()}), "states": names,
        "inputs": [(n, d.name, _plain(s)) for n, d, s in table.inputs],
        "outputs": [(d.name, _plain(s)) for d, s in table.outputs],
        "guards": _plain(table.guards), "slots": _plain(table.slots), "parallel": table.parallel,
        "constants": constants, "recipe": recipe,
    }  # fmt: skip
    body = json.dumps(plan).encode()
    cache = open_cache()
    try:
        path = _path(cache, key)
        trusted_folder(cache.name)
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        put_file(path, sha256(body).hexdigest().encode() + b"\n" + body)
    except (CacheError, OSError):
        pass  # the kernel cache has said so already


def _written(constants: Sequence[Any], source: Graph) -> tuple[list[Any], str | None] | None:
    """Return how a plan file holds constants, and the recipe of those that were folded.

    A constant is its dtype, its shape, and either the number of a constant of ``source``, its
    bytes as text, or ``[k]``: result k of the recipe. The recipe is a graph as JSON; its variable
    ``c7`` is constant 7 of ``source``. None where constants that were not folded are too large.
    """
    numbers = {_bytes_of(a): k for k, a in enumerate(_held(source))}
    rows: list[Any] = []
    derived: list[Entry] = []
    left = MOST_CONSTANT_BYTES
    for array in constants:
        place: int | str | list[int] | None = numbers.get(_bytes_of(array))
        if place is None and array.nbytes > FOLDED_BYTES:
            origin = _origin(array)
            if origin is not None:
                place = [len(derived)]
                derived.append(origin)
        if place is None:
            left -= array.nbytes
            if left < 0:
                return None
            place = b64encode(array.tobytes()).decode()
        rows.append((dtype_of(array.dtype).name, array.shape, place))
    if not derived:
        return rows, None
    recipe = _recipe(derived, numbers)
    return None if recipe is None else (rows, recipe)


def _origin(array: Any) -> Entry | None:
    """Return the entry that was folded into an array of these bytes, if one was."""
    from passkit.passes.fold import origins

    alike = [
        (folded, entry)
        for folded, entry in origins()
        if folded.nbytes == array.nbytes and folded.dtype == array.dtype
    ]
    digest = _bytes_of(array) if alike else None
    return next((entry for folded, entry in alike if _bytes_of(folded) == digest), None)


def _recipe(derived: Sequence[Entry], numbers: Mapping[tuple[str, bytes], int]) -> str | None:
    """Return the graph that computes entries from constants of the source, as JSON.

    None where it has other large constants, which nothing says how to make.
    """
    from passkit.passes.fold import origin_of
    from passkit.serial.json import to_json

    left = MOST_CONSTANT_BYTES
    variables: dict[int, Entry] = {}

    def change(node: Node) -> Sequence[Entry] | None:
        nonlocal left
        if node.op is not CONSTANT:
            return None
        array = node.params["value"]
        number = numbers.get(_bytes_of(array))
        if number is not None:
            if number not in variables:
                variables[number] = var(f"c{number}", array.shape, dtype_of(array.dtype))
            return [variables[number]]
        origin = origin_of(array)
        if origin is not None:
            return [origin]
        left -= array.nbytes
        return None

    graph = Graph(list(derived))
    while True:
        rebuilt = graph.transform(change)
        if left < 0:
            return None
        if rebuilt.heads == graph.heads:
            return to_json(graph)
        graph, left = rebuilt, MOST_CONSTANT_BYTES


def _read_constants(plan: Mapping[str, Any], graph: Graph) -> list[Any]:
    """Return the arrays of a plan's constants: read, taken from the graph, or computed from it."""
    held = _held(graph) if plan["constants"] else []
    computed: list[Any] = []
    if plan["recipe"] is not None:
        from passkit.runtime.interpret import interpret  # most plans have no folded constants
        from passkit.serial.json import from_json

        recipe = from_json(plan["recipe"])
        feeds = {n.name: held[int(n.name.removeprefix("c"))] for n in recipe.inputs}
        computed = interpret(recipe, feeds)
    arrays = []
    for dtype, shape, place in plan["constants"]:
        if isinstance(place, str):
            array = np.frombuffer(b64decode(place), dtype_of(dtype).numpy)
        else:
            array = computed[place[0]] if isinstance(place, list) else held[place]
            array = np.ascontiguousarray(array)
        arrays.append(array.reshape(shape))
    return arrays


def _bytes_of(array: Any) -> tuple[str, bytes]:
    """What tells arrays of other elements apart; the shape does not count."""
    return str(array.dtype), sha256(np.ascontiguousarray(array).tobytes()).digest()


def has_planned() -> bool:
    """Whether this process has the planner at hand."""
    return PLANNER in sys.modules


def _path(cache: KernelCache, key: str) -> str:
    return os.path.join(cache.name, "plans", f"{key}.plan")


def _linked(row: Any, entries: Mapping[str, int]) -> Any:
    """A row with addresses in the place of names."""
    if row[0] == "launch":
        return ("launch", entries[row[1]], *row[2:])
    if row[0] in ("gemm", "gemm_sum"):
        entry = launcher.builtin(row[1] if row[0] == "gemm" else f"{row[1]}_sum")
        return (*row[:2], entry, *row[3:])
    if row[0] in ("convolution", "window_products"):
        return (row[0], entries[row[1]], *row[2:])
    return row


def _unit() -> str:
    """The name of the unit that runs convolutions."""
    from passkit.runtime.native.convolution import digest

    return digest()


def _plain(value: Any) -> Any:
    """Tuples as lists and sizes as objects, which is all that JSON lacks."""
    if isinstance(value, Size):
        return {"size": [[[_plain(a) for a in m], c] for m, c in value.terms]}
    if isinstance(value, Quotient):
        return {"over": [_plain(value.numerator), _plain(value.denominator)]}
    if isinstance(value, (tuple, list)):
        return [_plain(v) for v in value]
    return value


def _read(value: Any) -> Any:
    """What `_plain` made plain."""
    if isinstance(value, list):
        return tuple(_read(v) for v in value)
    if isinstance(value, dict):
        if "over" in value:
            return Quotient(*(_read(v) for v in value["over"]))
        return Size({tuple(_read(a) for a in m): c for m, c in value["size"]})
    return value
