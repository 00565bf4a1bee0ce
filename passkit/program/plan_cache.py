"""The plan cache: find the plan that an earlier process stored, without importing the planner.

A plan is a `ProgramTable` as JSON, preceded by its own digest, in which kernels are named by their
keys in the kernel cache. Its file is named by a key: the digest of the graph, the options, what was
measured on this machine, and passkit's own source files. `passkit.program.plan_writer` stores
plans. No plan is kept of a graph with an operator, a pass, a fusion strategy or a schedule rule of
the user's own, since no file tells what their functions do; such a graph is planned in each
process.
"""

from __future__ import annotations

import json
import os
import sys
from base64 import b64decode
from collections.abc import Mapping
from functools import lru_cache
from hashlib import sha256
from typing import Any

import numpy as np

from passkit.fusion.strategy import BUILT_IN
from passkit.graph import registry
from passkit.graph.graph import Graph, digest
from passkit.graph.node import CONSTANT
from passkit.library.cpu_profile import cpu_profile_digest
from passkit.library.store import Snapshot, snapshot
from passkit.runtime.native import build, launcher
from passkit.runtime.native.cache import KernelCache, open_cache, read_private
from passkit.runtime.native.compiler import instruction_set
from passkit.runtime.table import ProgramTable
from passkit.runtime.table_binder import RowChain, RowTiles
from passkit.values.dtype import dtype_of
from passkit.values.size import Quotient, Size

FORMAT = 9
"""The version of the plan file's format; other versions are planned again."""
PLANNER = "passkit.passes"
"""The package that is imported once a process has planned anything or created a `PassContext`."""
RULES = "passkit.schedule.rules"
"""The module of schedule rules."""
KEYED_OPTIONS = frozenset({"target", "fusion", "numerics"})
"""The options that a key may depend on; a graph compiled with any other option is not cached."""
_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_INSTALLED_OPS = os.path.join(_PACKAGE, "ops")
_OPS = (
    _INSTALLED_OPS
    if os.path.isdir(_INSTALLED_OPS)
    else os.path.join(os.path.dirname(_PACKAGE), "ops")
)
_FRONTENDS = os.path.join(os.path.dirname(_PACKAGE), "frontends", "")
"""The frontends of a checkout, beside the package; once installed they are inside of it."""
_BUNDLED = (_PACKAGE, _OPS, _FRONTENDS)


def planner_is_imported() -> bool:
    """Return whether this process has imported the planner, that is `PLANNER`.

    `Executable` then plans instead of reading files.
    """
    return PLANNER in sys.modules


def has_own_rules() -> bool:
    """Return whether the user registered a schedule rule, which imports the module of rules."""
    rules = sys.modules.get(RULES)
    return rules is not None and bool(rules.has_own_rules())


def plan_key(
    graph: Graph, options: Mapping[str, Any], library: Snapshot | None = None
) -> str | None:
    """Return the name under which the plan of a graph is stored.

    Args:
        graph: The graph as the user gave it.
        options: The options of `passkit.compile`; None means the default.
        library: The measurements that the planner reads, by default those on disk now.

    Returns: The key, or None if plans of this graph under these options are not stored: the graph
    has annotations or an operator that is not passkit's own; the user registered a schedule rule;
    or an option is no string, none of `KEYED_OPTIONS`, another target than "cpu", or a strategy of
    the user's.

    Raises: CacheError if other users may write to the folder of the measurements.
    """
    options = {name: value for name, value in options.items() if value is not None}
    if any(not isinstance(value, str) for value in options.values()):
        return None
    if graph.attrs or not KEYED_OPTIONS.issuperset(options):
        return None
    if options.get("target", "cpu") != "cpu" or options.get("fusion", "stitch") not in BUILT_IN:
        return None
    if has_own_rules() or not _has_only_bundled_operators(graph):
        return None
    library = snapshot() if library is None else library
    facts = (
        FORMAT,
        digest(graph),
        ([graph.names[n] for n in graph.inputs], [n.name for n in graph.states]),
        sorted(options.items()),
        source_files(),
        [files_of(folder) for folder in _frontend_folders(graph)],
        instruction_set(),
        (library.digest, cpu_profile_digest()),
    )
    return sha256(repr(facts).encode()).hexdigest()


def _has_only_bundled_operators(graph: Graph) -> bool:
    """Return whether passkit's own files define every operator of a graph, and nobody changed one.

    An attribute that another file registers for any of passkit's operators counts as a change.
    """
    bundled: set[str] = set()
    foreign: set[str] = set()
    for table in registry.tables():
        for name, row in table.rows.items():
            (bundled if row.place.startswith(_BUNDLED) else foreign).add(name)
    return not foreign & (bundled | {n.op.name for n in graph.nodes if n.op is not None})


def _frontend_folders(graph: Graph) -> list[str]:
    """Return the folders of frontends that define operators of a graph, in order.

    There are none where the frontends are inside the package, whose files count anyway.
    """
    places = {n.op.place for n in graph.nodes if n.op is not None}
    return sorted({os.path.dirname(p) for p in places if p.startswith(_FRONTENDS)})


@lru_cache(maxsize=1)
def source_files() -> list[tuple[str, int, int]]:
    """Return name without folder, size and modification time of each source file of passkit.

    Those of frontends beside the package are left out. The time is in nanoseconds. Read once: a
    file that changes later is not the code that this process runs. The list is cached and must not
    be changed.
    """
    return files_of(_PACKAGE, _OPS)


@lru_cache(maxsize=16)
def files_of(*roots: str) -> list[tuple[str, int, int]]:
    """Return name, size and modification time of each source file below some folders."""
    files = []
    folders = list(roots)
    while folders:
        for item in os.scandir(folders.pop()):
            if item.name.endswith((".py", ".h", ".c", ".cpp")):
                facts = item.stat()
                files.append((item.name, facts.st_size, facts.st_mtime_ns))
            elif "." not in item.name and item.name != "__pycache__" and item.is_dir():
                folders.append(item.path)
    return sorted(files)


def load_plan(key: str, graph: Graph, state: Mapping[str, Any]) -> ProgramTable | None:
    """Read the plan stored under a key.

    Args:
        key: The result of `plan_key`.
        graph: The graph of that key, which holds the constants that a plan refers to.
        state: The arrays of the graph's variables, by name.

    Returns: The table to run, or None if no intact plan is stored or a kernel is not in the cache.

    Raises: CacheError if other users may write to the cache folder; CompilerError if the launcher,
    which has some library calls, cannot be compiled, and SettingError if it is loaded for them and
    PASSKIT_THREADS is no number of threads.
    """
    cache = open_cache()
    try:
        checksum, _, body = read_private(plan_path(cache, key)).partition(b"\n")
        if sha256(body).hexdigest().encode() != checksum:
            return None
        plan = json.loads(body)
    except (OSError, ValueError, RecursionError):
        return None
    if plan["format"] != FORMAT:
        return None
    addresses = build.recall(plan["kernels"])
    if addresses is None:
        return None
    constants = _read_constants(plan, graph)
    return ProgramTable(
        tuple((name, dtype_of(d), decode_value(s)) for name, d, s in plan["inputs"]),
        tuple((dtype_of(d), decode_value(s)) for d, s in plan["outputs"]),
        tuple(None if r is None else _link(decode_value(r), addresses) for r in plan["rows"]),
        decode_value(plan["guards"]),
        decode_value(plan["slots"]),
        plan["donors"],
        (*constants, *(state[name] for name in plan["states"])),
        plan["parallel"],
        [_read_chain(chain) for chain in plan["chains"]],
    )


def _read_chain(chain: Any) -> RowChain:
    """Return a row chain of a plan file: positions, and fields of the tiles of each or None."""
    positions, tiles = chain
    return RowChain(tuple(positions), tuple(None if t is None else RowTiles(*t) for t in tiles))


def _read_constants(plan: Mapping[str, Any], graph: Graph) -> list[Any]:
    """Return the arrays of a plan's constants: decoded, taken from ``graph``, or computed.

    ``plan`` is the content of the file. `passkit.program.plan_writer.encode_constants` describes
    the encoding.
    """
    source = constant_arrays(graph) if plan["constants"] else []
    computed: list[Any] = []
    if plan["recipe"] is not None:
        from passkit.runtime.interpret import interpret  # most plans have no folded constants
        from passkit.serial.json import from_json

        recipe = from_json(plan["recipe"])
        feeds = {n.name: source[int(n.name.removeprefix("c"))] for n in recipe.inputs}
        computed = interpret(recipe, feeds)
    arrays = []
    for dtype, shape, origin in plan["constants"]:
        if isinstance(origin, str):
            array = np.frombuffer(b64decode(origin), dtype_of(dtype).numpy)
        else:
            array = computed[origin[0]] if isinstance(origin, list) else source[origin]
            array = np.ascontiguousarray(array)
        arrays.append(array.reshape(shape))
    return arrays


def constant_arrays(graph: Graph) -> list[Any]:
    """Return the arrays of a graph's constants, in the order of its nodes, which the key pins."""
    return [n.params["value"] for n in graph.nodes if n.op is CONSTANT]


def plan_path(cache: KernelCache, key: str) -> str:
    """Return the path of the file in which a cache keeps the plan of ``key``."""
    return os.path.join(cache.name, "plans", f"{key}.plan")


def _link(row: Any, addresses: Mapping[str, int]) -> Any:
    """Return a row of the table with the addresses of kernels in place of their keys.

    ``addresses`` has the address of each compiled kernel and unit of convolutions; those of
    matrix products come from the launcher. Other rows stay.

    Raises: CompilerError if the launcher cannot be compiled, SettingError if PASSKIT_THREADS is no
    number of threads, CacheError if other users may write to the cache folder.
    """
    if row[0] == "launch":
        return ("launch", addresses[row[1]], *row[2:])
    if row[0] == "python":
        return ("python", _library_function(row[1]), *row[2:])
    if row[0] in ("gemm", "gemm_sum"):
        address = launcher.builtin(row[1] if row[0] == "gemm" else f"{row[1]}_sum")
        return (*row[:2], address, *row[3:])
    if row[0] in ("convolution", "window_products"):
        entries = tuple(0 if key is None else addresses[key] for key in row[1])
        return (row[0], entries, *row[2:])
    return row


def _library_function(text: str) -> Any:
    """Return the function of a step in Python that evaluates the node of a graph in JSON."""
    from passkit.runtime.assemble import python_function  # most plans have no such steps
    from passkit.serial.json import from_json

    return python_function(from_json(text).outputs[0].node)


def encode_value(value: Any) -> Any:
    """Return a value of a table as JSON can hold it: tuples become lists, sizes become objects.

    Other values are returned as they are.
    """
    if isinstance(value, Size):
        return {"size": [[[encode_value(a) for a in m], c] for m, c in value.terms]}
    if isinstance(value, Quotient):
        return {"over": [encode_value(value.numerator), encode_value(value.denominator)]}
    if isinstance(value, (tuple, list)):
        return [encode_value(v) for v in value]
    return value


def decode_value(value: Any) -> Any:
    """Return the value that `encode_value` encoded; lists become tuples."""
    if isinstance(value, list):
        return tuple(decode_value(v) for v in value)
    if isinstance(value, dict):
        if "over" in value:
            return Quotient(*(decode_value(v) for v in value["over"]))
        return Size({tuple(decode_value(a) for a in m): c for m, c in value["size"]})
    return value
