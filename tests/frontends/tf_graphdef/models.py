"""Builders of GraphDefs for tests, without TensorFlow."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from passkit.frontends.tf_graphdef.proto import (
    AttrValue,
    FunctionDef,
    GraphDef,
    NodeDef,
    TensorProto,
)
from passkit.frontends.tf_graphdef.proto import budget_for as budget_for
from passkit.frontends.tf_graphdef.proto import message as message
from passkit.frontends.tf_graphdef.registry import OP_IMPORTERS as OP_IMPORTERS

ROOT = Path(__file__).resolve().parents[3]
DIGITS = ROOT / "examples" / "models" / "digits.pb"

NUMBERS = {
    "float32": 1,
    "float64": 2,
    "int32": 3,
    "uint8": 4,
    "int16": 5,
    "int8": 6,
    "complex64": 8,
    "int64": 9,
    "bool": 10,
    "bfloat16": 14,
    "uint16": 17,
    "complex128": 18,
    "float16": 19,
    "uint32": 22,
    "uint64": 23,
}
"""TensorFlow's DataType of each dtype."""


def tensor(array: Any) -> Any:
    """Return a TensorProto with the bytes of an array."""
    array = np.asarray(array)
    out = TensorProto(dtype=NUMBERS[array.dtype.name], tensor_content=array.tobytes())
    for size in array.shape:
        out.tensor_shape.dim.add(size=size)
    return out


def attr(value: Any) -> Any:
    """Return the AttrValue of a Python value; a NumPy dtype becomes a type."""
    match value:
        case bool():
            return AttrValue(b=value)
        case int():
            return AttrValue(i=value)
        case str():
            return AttrValue(s=value.encode())
        case list():
            return AttrValue(list={"i": value})
        case np.dtype():
            return AttrValue(type=NUMBERS[value.name])
        case tuple():
            dims = [{"size": -1 if d is None else d} for d in value]
            return AttrValue(shape={"dim": dims})
        case np.ndarray():
            return AttrValue(tensor=tensor(value))
    return AttrValue(**value)


def node(op: str, name: str, *inputs: str, **attrs: Any) -> Any:
    """Return a NodeDef."""
    out = NodeDef(op=op, name=name, input=inputs)
    for key, value in attrs.items():
        out.attr[key].CopyFrom(attr(value))
    return out


def placeholder(name: str, *shape: int | None, dtype: str = "float32") -> Any:
    """Return a Placeholder; a dimension of None is unknown."""
    return node("Placeholder", name, dtype=np.dtype(dtype), shape=shape)


def const(name: str, value: Any, dtype: str | None = None) -> Any:
    """Return a Const; ints are int32 by default."""
    array = np.asarray(value, dtype)
    if dtype is None and array.dtype == np.int64:
        array = array.astype(np.int32)
    if dtype is None and array.dtype == np.float64:
        array = array.astype(np.float32)
    return node("Const", name, dtype=array.dtype, value=array)


def model(*nodes: Any) -> Any:
    """Return a serialized GraphDef in the version that TensorFlow 2 writes."""
    return GraphDef(node=nodes, versions={"producer": 2000})


def calls(name: str) -> dict[str, Any]:
    """Return an attribute that refers to a function."""
    return {"func": {"name": name}}


def function(name: str, arguments: str, results: dict[str, str], *nodes: Any) -> Any:
    """Return a FunctionDef with float arguments and results, and edges in the form of functions."""
    signature = {
        "name": name,
        "input_arg": [{"name": a, "type": 1} for a in arguments.split()],
        "output_arg": [{"name": r, "type": 1} for r in results],
    }
    return FunctionDef(signature=signature, node_def=nodes, ret=results)


def with_functions(nodes: list[Any], *functions: Any) -> Any:
    """Return a serialized GraphDef with a library of functions."""
    out = model(*nodes)
    out.library.function.extend(functions)
    return out
