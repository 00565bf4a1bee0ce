"""Hostile models: valid models with changed bytes or changed messages."""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from attrs import frozen

from passkit.frontends.tf_graphdef.import_state import CONTEXT_IMPORTERS
from passkit.frontends.tf_graphdef.proto import message
from passkit.frontends.tf_graphdef.registry import OP_IMPORTERS
from tests.frontends.tf_graphdef.models import DIGITS
from tests.frontends.tf_graphdef.reference.case import FIXTURES, stored
from tests.frontends.tf_graphdef.test_saved_model import SAVED

FOLDERS = ("functions", "lstm", "lstm_any", "tf1", "dense")
SIGNATURES = ("product", "choose", "count", "some_rounds", "running", "growing_list", "switch")
NUMBERS = (0, 1, -1, 2, 7, 64, 255, 1 << 20, (1 << 31) - 1, -(1 << 31), 1 << 40, (1 << 62) + 3)
TEXTS = (
    "",
    'a"b',
    "a\nb",
    "$(rm -rf ~)",
    "x" * 3000,
    "<script>",
    "../../etc/passwd",
    "a:0",
    "^a",
    "é",
)
_MOST_ADDED = 200_000
"""Bytes that one change may add: how long a file takes to read must not depend on luck."""
OPS = (*OP_IMPORTERS, *CONTEXT_IMPORTERS, "Placeholder", "Odd")


@frozen
class Mutant:
    """A model as files of a folder, and the signature to load; a file "" is a GraphDef."""

    seed: int
    name: str
    files: dict[str, bytes]
    signature: str | None

    def load(self, folder: Path) -> Any:
        """Write the files to a folder and load the model."""
        from passkit.frontends import tf_graphdef

        if "" in self.files:
            return tf_graphdef.load(self.files[""])
        for name, data in self.files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(data)
        return tf_graphdef.load(folder, signature=self.signature)


def mutant(seed: int) -> Mutant:
    """Return the model of a seed; two of five are SavedModels."""
    rng = random.Random(seed)
    return (saved_model if rng.random() < 0.4 else graphdef)(seed, rng)


def graphdef(seed: int, rng: random.Random) -> Mutant:
    """Return a GraphDef: of the digits network, of a function, or of a single operator."""
    name = rng.choice(("digits", "lone", "case", "case", "case"))
    if name == "case":
        data = changed_message("GraphDef", rng.choice(_cases()), rng)
        return Mutant(seed, name, {"": data}, None)
    data = DIGITS.read_bytes() if name == "digits" else _function_as_graph(rng)
    if rng.random() < 0.3:
        return Mutant(seed, name, {"": changed_bytes(data, rng)}, None)
    return Mutant(seed, name, {"": changed_message("GraphDef", data, rng)}, None)


def saved_model(seed: int, rng: random.Random) -> Mutant:
    """Return a SavedModel with a changed graph, a changed file, or a missing file."""
    name = rng.choice(FOLDERS)
    folder = SAVED / name
    files = {
        str(p.relative_to(folder)): p.read_bytes()
        for p in sorted(folder.rglob("*"))
        if p.is_file() and p.suffix != ".npz"
    }
    signature = rng.choice(SIGNATURES) if name == "functions" else None
    kind = rng.random()
    if kind < 0.6:
        files["saved_model.pb"] = changed_message("SavedModel", files["saved_model.pb"], rng)
    else:
        which = rng.choice(sorted(files))
        files[which] = changed_bytes(files[which], rng)
        if rng.random() < 0.1:
            del files[rng.choice(sorted(files))]
    return Mutant(seed, name, files, signature)


@cache
def _cases() -> list[bytes]:
    """Return the models of single operators of all families."""
    families = sorted(FIXTURES.glob("*.npz"))
    return [case.model for family in families for case in stored(family)]


def _function_as_graph(rng: random.Random) -> bytes:
    """Return the graph of a SavedModel without the values of its variables."""
    data = (SAVED / rng.choice(FOLDERS) / "saved_model.pb").read_bytes()
    graph: bytes = (
        message("SavedModel").FromString(data).meta_graphs[0].graph_def.SerializeToString()
    )
    return graph


def changed_bytes(data: bytes, rng: random.Random) -> bytes:
    """Return a copy with bytes flipped, set, removed, duplicated, moved or truncated."""
    out = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 5, 20))):
        at = rng.randrange(len(out) + 1)
        size = rng.choice((1, 2, 8, 100))
        match rng.randrange(6):
            case 0 if at < len(out):
                out[at] ^= 1 << rng.randrange(8)
            case 1 if at < len(out):
                out[at] = rng.choice((0, 1, 127, 128, 255, rng.randrange(256)))
            case 2:
                del out[at : at + size]
            case 3:
                out[at:at] = out[:size] * rng.choice((1, 1, 50))
            case 4:
                other = rng.randrange(len(out) + 1)
                out[at : at + size] = out[other : other + size]
            case 5 if rng.random() < 0.3:
                del out[at:]
    return bytes(out)


def changed_message(kind: str, data: bytes, rng: random.Random) -> bytes:
    """Return a well-formed copy in which some fields have other values."""
    whole = message(kind).FromString(data)
    names = _names(whole)
    for _ in range(rng.choice((1, 1, 2, 3, 8, 30))):
        _change(whole, names, rng)
    out: bytes = whole.SerializeToString()
    return out


def _names(whole: Any) -> list[str]:
    """Return the names of nodes and functions, to be interchanged."""
    results = []
    for node in _nodes(whole):
        results += [node.name, *node.input]
    for graph in _graphs(whole):
        results += [f.signature.name for f in graph.library.function]
    return sorted({*results})


def _graphs(whole: Any) -> list[Any]:
    if hasattr(whole, "meta_graphs"):
        return [m.graph_def for m in whole.meta_graphs]
    return [whole]


def _nodes(whole: Any) -> Iterator[Any]:
    for graph in _graphs(whole):
        yield from graph.node
        for function in graph.library.function:
            yield from function.node_def


def _change(whole: Any, names: list[str], rng: random.Random) -> None:
    nodes = list(_nodes(whole))
    if nodes and rng.random() < 0.5:
        _change_node(rng.choice(nodes), nodes, names, rng)
        return
    at = whole
    while True:
        fields = at.ListFields()
        if not fields:
            return
        field, value = rng.choice(fields)
        repeated = hasattr(value, "__len__") and not isinstance(value, (str, bytes))
        if repeated and hasattr(value, "keys"):
            key = rng.choice(sorted(value))
            if hasattr(value[key], "ListFields"):
                at = value[key]
                continue
            value[key] = _other(value[key], names, rng)
            return
        if field.message_type is not None and rng.random() < 0.85:
            at = rng.choice(value) if repeated else value
            continue
        if repeated:
            _change_list(value, names, rng)
        elif field.message_type is not None:
            at.ClearField(field.name)
        else:
            setattr(at, field.name, _other(value, names, rng))
        return


def _change_node(node: Any, nodes: list[Any], names: list[str], rng: random.Random) -> None:
    """Change an operator, input, attribute or name."""
    other = rng.choice(nodes)
    keys = sorted(node.attr)
    match rng.randrange(7):
        case 0:
            node.op = rng.choice(OPS) if rng.random() < 0.7 else rng.choice(names)
        case 1 if node.input:
            node.input[rng.randrange(len(node.input))] = rng.choice(names)
        case 2:
            node.input.append(rng.choice(("", "^")) + rng.choice(names))
        case 3 if keys and other.attr:
            node.attr[rng.choice(keys)].CopyFrom(other.attr[rng.choice(sorted(other.attr))])
        case 4 if keys:
            value = node.attr[rng.choice(keys)]
            if value.WhichOneof("value") == "func":
                value.func.name = rng.choice(names)
            elif value.WhichOneof("value") == "tensor":
                _change_tensor(value.tensor, rng)
            elif value.WhichOneof("value") == "i":
                value.i = rng.choice(NUMBERS)
            elif value.WhichOneof("value") == "s":
                value.s = rng.choice((b"", b"SAME", b"VALID", b"NCHW", b"NHWC", b"\xff"))
            elif value.WhichOneof("value") == "type":
                value.type = rng.randrange(26)
            elif value.WhichOneof("value") == "list" and value.list.i:
                value.list.i[rng.randrange(len(value.list.i))] = rng.choice(NUMBERS)
        case 5:
            node.name = rng.choice((*TEXTS, other.name))
        case 6:
            node.op = other.op


def _change_tensor(tensor: Any, rng: random.Random) -> None:
    """Change the numbers of a tensor, such as axes and sizes, or its shape."""
    size = {3: 4, 9: 8}.get(tensor.dtype, 0)
    if size and len(tensor.tensor_content) >= size and rng.random() < 0.7:
        content = bytearray(tensor.tensor_content)
        at = size * rng.randrange(len(content) // size)
        number = rng.choice(NUMBERS) % (1 << 8 * size)
        content[at : at + size] = number.to_bytes(size, "little")
        tensor.tensor_content = bytes(content)
    elif tensor.int_val and rng.random() < 0.7:
        tensor.int_val[rng.randrange(len(tensor.int_val))] = rng.choice((-1, 0, 2, 99, -(2**31)))
    else:
        tensor.tensor_shape.dim.add(size=rng.choice(NUMBERS))


def _change_list(values: Any, names: list[str], rng: random.Random) -> None:
    """Remove, duplicate or change an element; sometimes add very many copies."""
    k = rng.randrange(len(values))
    match rng.randrange(3):
        case 0:
            del values[k]
        case 1:
            size = values[k].ByteSize() if hasattr(values[k], "ByteSize") else 100
            copies = rng.choice((1, 1, 1, min(1000, _MOST_ADDED // (size + 1))))
            for _ in range(copies):
                values.append(values[k])
        case 2 if not hasattr(values[k], "ListFields"):
            values[k] = _other(values[k], names, rng)


def _other(value: Any, names: list[str], rng: random.Random) -> Any:
    """Return another value of the same kind."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        number = rng.choice(NUMBERS)
        return number if abs(number) < 1 << 31 and (value >= 0) <= (number >= 0) else value ^ 1
    if isinstance(value, float):
        return rng.choice((0.0, float("nan"), float("inf"), 1e30))
    if isinstance(value, bytes):
        return rng.choice((b"", value[:-1], value + b"\0", b"\xff" * 9, value * 2))
    return rng.choice((*TEXTS, *names)) if names else rng.choice(TEXTS)
