"""Writes NodeDefs: unique names, attributes, constants, and casts to types that have kernels."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
from attrs import define, field, frozen

from passkit.errors import ModelError
from passkit.frontends.tf_graphdef.export.kernels import TRUTHS, UNTYPED, computed_as
from passkit.frontends.tf_graphdef.proto import GraphDef
from passkit.frontends.tf_graphdef.tensor import NUMBERS
from passkit.values.dtype import DType, dtype_of
from passkit.values.size import Shape

Array = np.ndarray[Any, Any]

INT32, INT64, FLOAT32, BOOL = (dtype_of(n) for n in ("int32", "int64", "float32", "bool"))

_PRODUCER = 1087
"""The version of GraphDef that is written: TensorFlow 2.8's, which later ones read too."""


@frozen
class Tensor:
    """One result of a written node, as other nodes refer to it."""

    ref: str
    dtype: DType

    @property
    def node(self) -> str:
        """The name of the node."""
        return self.ref.partition(":")[0]


@frozen
class ShapeOf:
    """An attribute that is a shape; None for an unknown rank, other extents than ints unknown."""

    shape: Shape | None


@define(eq=False)
class Writer:
    """A GraphDef that grows."""

    graph: Any = field(factory=GraphDef)
    taken: set[str] = field(factory=set)
    constants: dict[Any, Tensor] = field(factory=dict)
    literals: dict[str, Any] = field(factory=dict)
    """The values of constants that are scalars, by reference."""
    sizes: dict[Any, Any] = field(factory=dict)
    """What is written already of sizes known in a call, and of random blocks."""

    def __attrs_post_init__(self) -> None:
        self.graph.versions.producer = _PRODUCER
        self.graph.versions.min_consumer = 12

    def unique(self, wanted: str) -> str:
        """A name as TensorFlow allows it, made from ``wanted`` and not used yet."""
        name = re.sub(r"[^A-Za-z0-9_.\\/>-]", "_", wanted)
        if not re.match(r"[A-Za-z0-9.]", name):
            name = f"x{name}"
        base, count = name, 1
        while name in self.taken:
            name, count = f"{base}_{count}", count + 1
        self.taken.add(name)
        return name

    def node(self, op: str, name: str, inputs: Sequence[Tensor], attrs: dict[str, Any]) -> str:
        """Add one node; its name, which is unique, for ``name`` as it is."""
        made = self.graph.node.add()
        made.op, made.name = op, name
        made.input.extend(t.ref for t in inputs)
        for key, value in attrs.items():
            _set(made.attr[key], value)
        return name

    def drop_unread(self, kept: set[str]) -> None:
        """Take out the nodes that none of those ``kept`` needs; readers stand behind the read."""
        needed = set(kept)
        dead = []
        for k in range(len(self.graph.node) - 1, -1, -1):
            node = self.graph.node[k]
            if node.name in needed:
                needed.update(ref.partition(":")[0].removeprefix("^") for ref in node.input)
            else:
                dead.append(k)
        for k in dead:
            del self.graph.node[k]

    def constant(self, value: Any, dtype: DType, scope: str, name: str = "") -> Tensor:
        """A Const; one of few elements is written once for each scope."""
        array = np.asarray(value, dtype.numpy)
        key = (scope, dtype.name, array.shape, array.tobytes()) if array.size <= 8 else None
        if key is not None and not name and key in self.constants:
            return self.constants[key]
        found = name or self.unique(f"{scope}/Const")
        made = Tensor(self.node("Const", found, (), {"value": array, "dtype": dtype}), dtype)
        if key is not None:
            self.constants[key] = made
            if not array.shape:
                self.literals[made.ref] = array.item()
        return made


def _set(attr: Any, value: Any) -> None:
    """Fill in an AttrValue: of what kind it is follows from the type of ``value``."""
    if isinstance(value, DType):
        attr.type = number_of(value)
    elif isinstance(value, ShapeOf):
        _shape(attr.shape, value.shape)
    elif isinstance(value, np.ndarray):
        attr.tensor.dtype = number_of(dtype_of(value.dtype))
        _shape(attr.tensor.tensor_shape, value.shape)
        plain = np.ascontiguousarray(value)
        attr.tensor.tensor_content = plain.astype(plain.dtype.newbyteorder("<")).tobytes()
    elif isinstance(value, bool):
        attr.b = value
    elif isinstance(value, int):
        attr.i = value
    elif isinstance(value, float):
        attr.f = value
    elif isinstance(value, str):
        attr.s = value.encode()
    else:
        attr.list.i.extend(value)


def _shape(message: Any, shape: Shape | None) -> None:
    message.unknown_rank = shape is None
    for n in shape or ():
        message.dim.add().size = n if isinstance(n, int) else -1


def number_of(dtype: DType) -> int:
    """TensorFlow's number of an element type."""
    assert dtype.name in NUMBERS, dtype.name
    return NUMBERS[dtype.name]


@define(eq=False)
class Scope:
    """What one operator of passkit is written as: a node of its name, and parts below it."""

    writer: Writer
    name: str
    """The name of the node that is to be the result; its parts stand below it."""

    def const(self, value: Any, dtype: DType = INT32) -> Tensor:
        """A constant."""
        return self.writer.constant(value, dtype, self.name)

    def nodes(
        self, op: str, inputs: Sequence[Tensor], out: Sequence[DType], last: bool, **attrs: Any
    ) -> tuple[Tensor, ...]:
        """The results of one node as it is, called as the operator if it is the ``last``."""
        name = self.name if last else self.writer.unique(f"{self.name}/{op}")
        self.writer.node(op, name, inputs, attrs)
        return tuple(Tensor(f"{name}:{k}" if k else name, d) for k, d in enumerate(out))

    def op(
        self,
        op: str,
        *inputs: Tensor,
        out: DType | None = None,
        last: bool = False,
        like: str = "T",
        **attrs: Any,
    ) -> Tensor:
        """The result of one node.

        ``like`` is the attribute that says the element type, of the first input unless given;
        where TensorFlow has no kernel for that, inputs of it are cast to a type that it has.
        ``out`` is the type of the result, if it is another.
        """
        if op in UNTYPED:
            return self.nodes(op, inputs, [BOOL], last, **attrs)[0]
        dtype: DType = attrs[like] if like in attrs else inputs[0].dtype
        wide = computed_as(op, dtype)
        if wide is None:
            raise ModelError(f"TensorFlow has no {op} of {dtype}, nor of a wider type")
        given = [self.cast(t, wide) if t.dtype is dtype else t for t in inputs]
        result = BOOL if op in TRUTHS else out or dtype
        found = wide if result is dtype and op not in TRUTHS else result
        is_last = last and found is result
        (made,) = self.nodes(op, given, [found], is_last, **{**attrs, like: wide})
        return made if found is result else self.cast(made, result, last=last)

    def cast(self, x: Tensor, dtype: DType, last: bool = False) -> Tensor:
        """``x`` in another element type, by TensorFlow's Cast, for values that fit."""
        if x.dtype is dtype and not last:
            return x
        attrs = {"SrcT": x.dtype, "DstT": dtype}
        return self.nodes("Cast", [x], [dtype], last, **attrs)[0]

    def inner(self, name: str) -> Scope:
        """The scope of a part called ``name``."""
        return Scope(self.writer, self.writer.unique(f"{self.name}/{name}"))
