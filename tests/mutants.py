"""Mutants of every kind of file that passkit reads.

These are GraphDefs, SavedModels, graphs as JSON and as text, and saved programs. A seed always
gives the same mutant. Bytes are flipped, lost, moved and cut off, two files are spliced, numbers
become boundary values and strings long ones. JSON, text and protocol buffers are changed in their
structure, too.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Mapping
from contextlib import contextmanager
from functools import cache, partial
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from attrs import frozen

import passkit as pk
from passkit.runtime.native.cache import cache_folder
from passkit.values.size import numel, substitute, symbols_of
from tests.frontends.tf_graphdef import mutations
from tests.frontends.tf_graphdef.models import DIGITS
from tests.frontends.tf_graphdef.mutations import changed_bytes
from tests.random_graphs import random_case

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


GRAPHS = 12
"""Random graphs whose JSON and text are changed."""
MOST_ELEMENTS = 1 << 16
"""Elements of an input, for a mutant to be run: larger ones are only planned."""
NUMBERS = (
    "0",
    "1",
    "-1",
    "2",
    "65",
    "255",
    "2147483647",
    "-2147483648",
    "4294967296",
    "4611686018427387904",
    "9223372036854775807",
    "-9223372036854775808",
    "1" + "0" * 30,
    "9" * 5000,
    "NaN",
    "Infinity",
    "-Infinity",
    "nan",
    "inf",
    "1e400",
    "1e-400",
    "0.5",
    "-0.0",
    "true",
    "false",
    "null",
    "none",
    "?",
    "n",
    '"1"',
    "[]",
    "{}",
    "()",
)
STRINGS = (
    "",
    "x",
    "é",
    "\x00",
    "\n",
    "\ud800",
    "../../etc/passwd",
    "$(touch ran)",
    "%s%n",
    "null",
    "x" * 700_000,
    "\\",
    '"',
    "return",
    "state",
    "a:0",
    "float32",
    "object",
    "int4",
    "V8",
    "1",
)
WORDS = (
    "return",
    "state",
    "update",
    "after",
    "array",
    "base64",
    "dtype",
    "elided",
    "graph",
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    ",",
    "=",
    ":",
    ";",
    "?",
    "$",
    "*",
    "//",
    "+",
    "-",
    "...",
    "\n",
    "true",
    "none",
    "inf",
    "nan",
    "f32",
    "i64",
    "axis",
    "shape",
    "fused",
    '"a b"',
    "(" * 500,
)
PROGRAMS = (
    """state w: f32[3] = [1, 2, 3]; x: f32[n, 3]; y = softmax(mul(x, w))
    s = assign(w, add(w, 1)) after(y); return y, s""",
    """x: f32[n, 40]; c: f32[40, 3] = base64("%s"); m = reduce_max(x, axis=1, keepdims=true)
    y = exp(sub(x, m)); z = matmul(y, c); return z, argsort(m)""",
)


@frozen
class Mutant:
    """The mutant of a seed. ``load`` writes it into an empty folder and reads it."""

    kind: str
    seed: int
    load: Callable[[Path], pk.Graph | pk.Executable]


def mutant(kind: str, seed: int, programs: Path | None = None) -> Mutant:
    """Make the mutant of a seed.

    Args:
        kind: "graphdef", "saved_model", "json", "text" or "program".
        seed: The seed.
        programs: The folder that `save_programs` wrote, for mutants of saved programs.
    """
    rng = random.Random(f"{kind} {seed}")
    match kind:
        case "graphdef":
            return Mutant(kind, seed, partial(_load_model, _graphdef(rng)))
        case "saved_model":
            return Mutant(kind, seed, partial(_load_model, mutations.saved_model(seed, rng)))
        case "json":
            text = changed_json(_texts(pk.to_json), rng)
            return Mutant(kind, seed, lambda _: pk.from_json(text))
        case "text":
            text = changed_text(_texts(pk.to_text), rng)
            return Mutant(kind, seed, lambda _: pk.parse(text))
        case "program" if programs is not None:
            return Mutant(kind, seed, partial(_load_program, _program(programs, rng)))
    raise ValueError(f"no mutants of {kind} with {programs}")


def _graphdef(rng: random.Random) -> mutations.Mutant:
    """A GraphDef of which bytes or fields are changed, or the end is that of another file."""
    mutation = mutations.graphdef(rng.randrange(1 << 32), rng)
    if rng.random() < 0.1:
        data = spliced(mutation.files[""], DIGITS.read_bytes(), rng)
        return mutations.Mutant(0, "splice", {"": data}, None)
    return mutation


def _load_model(model: mutations.Mutant, folder: Path) -> pk.Graph:
    return model.load(folder)  # type: ignore[no-any-return]


@cache
def _texts(write: Callable[[pk.Graph], str]) -> tuple[str, ...]:
    """Random graphs and those of `PROGRAMS`, as JSON or as text."""
    return tuple(write(graph) for graph in _graphs())


@cache
def _graphs() -> tuple[pk.Graph, ...]:
    graphs = [random_case(seed).graph for seed in range(GRAPHS)]
    return (*graphs, *(pk.parse(text) for text in _programs()))


def spliced(first: Any, second: Any, rng: random.Random) -> Any:
    """The beginning of one text or byte string and the end of another."""
    return first[: rng.randrange(len(first) + 1)] + second[rng.randrange(len(second) + 1) :]


def _changed_raw(text: str, others: tuple[str, ...], rng: random.Random) -> str:
    """A text changed without regard to its structure: bytes, cut off, spliced, one number."""
    if not text:
        return rng.choice((*NUMBERS, *STRINGS))
    match rng.randrange(5):
        case 0:
            return changed_bytes(text.encode(), rng).decode(errors=rng.choice(_DECODINGS))
        case 1:
            return text[: rng.randrange(len(text))]
        case 2:
            return spliced(text, rng.choice(others), rng)  # type: ignore[no-any-return]
        case 3:
            at = rng.randrange(len(text))
            return text[:at] + rng.choice((*NUMBERS, *STRINGS, *WORDS)) + text[at:]
    return _other_number(text, rng)


_DECODINGS = ("replace", "surrogateescape", "ignore")
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[A-Za-z_][\w.]*|[\d.]+|\s+|.', re.DOTALL)


def _other_number(text: str, rng: random.Random) -> str:
    matches = list(_NUMBER.finditer(text))
    if not matches:
        return text
    match = rng.choice(matches)
    return text[: match.start()] + rng.choice(NUMBERS) + text[match.end() :]


def changed_text(texts: tuple[str, ...], rng: random.Random) -> str:
    """One of some texts, with bytes or tokens changed."""
    text = rng.choice(texts)
    if rng.random() < 0.4:
        return _changed_raw(text, texts, rng)
    tokens = _TOKEN.findall(text)
    for _ in range(rng.choice((1, 1, 2, 5))):
        at, other = rng.randrange(len(tokens)), rng.randrange(len(tokens))
        match rng.randrange(6):
            case 0:
                tokens[at] = tokens[other]
            case 1:
                tokens[at], tokens[other] = tokens[other], tokens[at]
            case 2:
                tokens[at] = ""
            case 3:
                tokens[at] = rng.choice((*NUMBERS, *WORDS, json.dumps(rng.choice(STRINGS))))
            case 4:
                tokens[at] = rng.choice((*pk.list_ops(), *STRINGS))
            case 5:
                tokens[at] *= rng.choice((2, 2, 2000))
    return "".join(tokens)


def changed_json(texts: tuple[str, ...], rng: random.Random) -> str:
    """One of some JSON texts, with bytes or values changed."""
    text = rng.choice(texts)
    if rng.random() < 0.3:
        return _changed_raw(text, texts, rng)
    try:
        data = json.loads(text)
        for _ in range(rng.choice((1, 1, 2, 5))):
            data = _changed_value(data, rng)
        return json.dumps(data)
    except (ValueError, RecursionError):  # lines of JSON; values nested too deep to be written
        return _changed_raw(text, texts, rng)


def _changed_value(data: Any, rng: random.Random) -> Any:
    """JSON data in which one value, anywhere, is another, is lost or stands twice."""
    places = list(_places(data)) if isinstance(data, (list, dict)) else []
    if not places:
        return rng.choice(STRINGS)
    holder, key = rng.choice(places)
    match rng.randrange(6):
        case 0 | 1:
            holder[key] = _other_value(holder[key], rng)
        case 2:
            other, at = rng.choice(places)
            holder[key] = json.loads(json.dumps(other[at]))  # a copy: no value contains itself
        case 3:
            del holder[key]
        case 4 if isinstance(holder, list):
            holder[key:key] = [holder[key]] * rng.choice((1, 1, 100))
        case 4:
            holder[rng.choice((*STRINGS, *_KEYS))] = holder.pop(key)
        case 5:
            for _ in range(rng.choice((1, 40, 800))):
                holder[key] = [holder[key]]
    return data


_KEYS = ("nodes", "op", "attrs", "shape", "dtype", "array", "size", "dict", "graph", "with")


def _places(data: Any) -> Iterator[tuple[Any, Any]]:
    """Every list or dict in JSON data with each of its keys."""
    for key in range(len(data)) if isinstance(data, list) else list(data):
        yield data, key
        if isinstance(data[key], (list, dict)):
            yield from _places(data[key])


def _other_value(value: Any, rng: random.Random) -> Any:
    """A number, string or structure in the place of a value; often one of its own type."""
    if isinstance(value, str) and rng.random() < 0.6:
        return rng.choice((*STRINGS, value[::-1], value * 2, *pk.list_ops()))
    word = rng.choice(NUMBERS)
    try:
        return json.loads(word)
    except ValueError:
        return word


@cache
def _programs() -> tuple[str, ...]:
    from base64 import b64encode

    array = np.linspace(-1, 1, 120, dtype=np.float32)
    return tuple(text % b64encode(array).decode() if "%s" in text else text for text in PROGRAMS)


def save_programs(folder: Path) -> None:
    """Compile and save the programs that are changed, with what they compute for `feeds_of`."""
    for k, text in enumerate(_programs()):
        executable = pk.compile(pk.parse(text))
        executable.save(folder / str(k))
        results = executable(**feeds_of(executable.source_graph))
        np.savez(folder / f"{k}.npz", *results)


@frozen
class Program:
    """The changed files of a saved program.

    Attributes:
        files: Their bytes by their paths in the folder.
        libraries: The digests of the machine code that was saved.
        results: What the program computed, where the change must not alter that.
    """

    files: dict[str, bytes]
    libraries: frozenset[str]
    results: tuple[Any, ...] | None


def _program(programs: Path, rng: random.Random) -> Program:
    number = rng.randrange(len(PROGRAMS))
    folder = programs / str(number)
    files = {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
    libraries = frozenset(Path(name).stem for name in files if name.endswith(".so"))
    changed = set()
    for _ in range(rng.choice((1, 1, 1, 2))):
        name = rng.choice(sorted(files))
        files[name] = _changed_file(name, files, rng)
        changed.add(name)
        if rng.random() < 0.05:
            del files[name]
    results = None
    if all(name.startswith(("cache", "tuned")) for name in changed):
        with np.load(programs / f"{number}.npz") as arrays:
            results = tuple(arrays[key] for key in arrays.files)
    return Program(files, libraries, results)


def _changed_file(name: str, files: Mapping[str, bytes], rng: random.Random) -> bytes:
    others = [other for other in sorted(files) if other.split(".")[-1] == name.split(".")[-1]]
    if rng.random() < 0.1:
        return files[rng.choice(others)]
    if not name.endswith((".json", ".jsonl")):
        if rng.random() < 0.1:
            return spliced(files[name], files[rng.choice(others)], rng)  # type: ignore[no-any-return]
        return changed_bytes(files[name], rng)
    text = changed_json((files[name].decode(),), rng)
    if rng.random() < 0.1:
        text = rng.choice(("{}", "[]", "null", "[" * 5000, '{"a":' * 5000, text + text))
    return text.encode(errors="surrogatepass")


def _load_program(program: Program, folder: Path) -> pk.Executable:
    """Load a changed program.

    Raises: AssertionError when it maps machine code into this process that was not saved, or
        computes something else although only its kernels or measurements were changed.
    """
    for name, data in program.files.items():
        path = folder / name
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.write_bytes(data)
    with _only_known(program.libraries, (folder, cache_folder())):
        executable = pk.load(folder)
    if program.results is not None:
        results = executable(**feeds_of(executable.source_graph))
        for result, expected in zip(results, program.results, strict=True):
            np.testing.assert_allclose(result, expected, 1e-5)  # some operators may be interpreted
    return executable


@contextmanager
def _only_known(libraries: frozenset[str], folders: Sequence[Path]) -> Iterator[None]:
    """Fail when a library in some folders is opened that has other bytes than the saved ones."""
    from passkit.runtime.native import launcher

    opened = launcher.open_library

    def checked(name: str) -> int:
        path = Path(name)
        if any(path.is_relative_to(folder) for folder in folders):
            digest = sha256(path.read_bytes()).hexdigest()
            assert digest in libraries, f"foreign machine code was mapped: {path}"
        return opened(name)

    launcher.open_library = checked
    try:
        yield
    finally:
        launcher.open_library = opened


def feeds_of(graph: pk.Graph) -> dict[str, Any] | None:
    """Small arrays for the inputs of a graph, with 2 for each unknown size.

    None where an input is large or of unknown rank.
    """
    feeds = {}
    for node in graph.inputs:
        entry = node.entries[0]
        if entry.shape is None or entry.dtype is None:
            return None
        sizes = {s: 2 for s in symbols_of(entry.shape)}
        shape = [substitute(n, sizes) for n in entry.shape]
        count = numel(shape)
        if not isinstance(count, int) or not 0 <= count <= MOST_ELEMENTS:
            return None
        numbers = np.arange(count, dtype=np.int64) % 3
        feeds[graph.names[node]] = numbers.astype(entry.dtype.numpy).reshape(shape)
    return feeds
