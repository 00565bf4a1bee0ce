"""Writing of NodeDefs: unique names, attributes, constants, and casts to types with kernels."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
from attrs import define, field, frozen

from passkit.errors import ModelError
from passkit.frontends.tf_graphdef.export.kernel_types import TRUTHS, UNTYPED, kernel_dtype
from passkit.frontends.tf_graphdef.proto import GraphDef
from passkit.frontends.tf_graphdef.tensor import NUMBERS
from passkit.values.dtype import DType, dtype_of
from passkit.values.size import Shape

INT32, INT64, FLOAT32, BOOL = (dtype_of(n) for n in ("int32", "int64", "float32", "bool"))

_PRODUCER = 1087
"""GraphDef version that is written: that of TensorFlow 2.8, which later releases read too."""


@frozen
class NodeOutput:
    """One result of a written node, as other nodes refer to it."""

    ref: str
    dtype: DType

    @property
    def node(self) -> str:
        """Name of the node: the reference without the output number."""
        return self.ref.partition(":")[0]


@frozen
class ShapeAttr:
    """An attribute that is a shape; None for an unknown rank, and symbolic extents are unknown."""

    shape: Shape | None


@define(eq=False)
class GraphDefWriter:
    """A GraphDef under construction."""

    graph: Any = field(factory=GraphDef)
    taken: set[str] = field(factory=set)
    constants: dict[Any, NodeOutput] = field(factory=dict)
    literals: dict[str, Any] = field(factory=dict)
    """Values of scalar constants by reference."""
    sizes: dict[Any, Any] = field(factory=dict)
    """Tensors written for symbolic sizes and random blocks, by key."""

    def __attrs_post_init__(self) -> None:
        """Set the versions of the new GraphDef that TensorFlow checks."""
        self.graph.versions.producer = _PRODUCER
        self.graph.versions.min_consumer = 12

    def unique(self, name_hint: str) -> str:
        """Return an unused name that TensorFlow allows, derived from ``name_hint``, and reserve it.

        Other characters become underscores; a name that does not begin with a letter, digit or
        period gets an ``x`` before it; a used name gets the suffix ``_1``, ``_2`` and so on.
        """
        name = re.sub(r"[^A-Za-z0-9_.\\/>-]", "_", name_hint)
        if not re.match(r"[A-Za-z0-9.]", name):
            name = f"x{name}"
        base, count = name, 1
        while name in self.taken:
            name, count = f"{base}_{count}", count + 1
        self.taken.add(name)
        return name

    def node(self, op: str, name: str, inputs: Sequence[NodeOutput], attrs: dict[str, Any]) -> str:
        """Add a node and return ``name``, which must be unique; that is not checked.

        Args:
            op: TensorFlow operator.
            name: Name of the node.
            inputs: Its inputs.
            attrs: Attributes: dtypes, `ShapeAttr`, arrays, Python's bools, ints, floats and
                strings, or lists of ints.

        Raises:
            AssertionError: If TensorFlow does not have a dtype among the attributes.
        """
        node_def = self.graph.node.add()
        node_def.op, node_def.name = op, name
        node_def.input.extend(t.ref for t in inputs)
        for key, value in attrs.items():
            _set(node_def.attr[key], value)
        return name

    def remove_unread(self, kept_names: set[str]) -> None:
        """Keep the nodes named in ``kept_names`` and those they depend on; remove the others.

        Nodes must be in topological order. Control inputs count as dependencies.
        """
        needed = set(kept_names)
        unread = []
        for k in range(len(self.graph.node) - 1, -1, -1):
            node = self.graph.node[k]
            if node.name in needed:
                needed.update(ref.partition(":")[0].removeprefix("^") for ref in node.input)
            else:
                unread.append(k)
        for k in unread:
            del self.graph.node[k]

    def constant(self, value: Any, dtype: DType, scope: str, name: str = "") -> NodeOutput:
        """Write a Const and return its tensor.

        One of at most 8 elements is returned for equal constants of the scope later on; values of
        such scalars are stored in ``literals``.

        Args:
            value: Number or array.
            dtype: Its dtype.
            scope: Name prefix of the node.
            name: Name of the node, which is written in any case then; empty for one in the scope.

        Raises:
            OverflowError: If an int of Python does not fit the dtype.
        """
        array = np.asarray(value, dtype.numpy)
        key = (scope, dtype.name, array.shape, array.tobytes()) if array.size <= 8 else None
        if key is not None and not name and key in self.constants:
            return self.constants[key]
        const_name = name or self.unique(f"{scope}/Const")
        output = NodeOutput(
            self.node("Const", const_name, (), {"value": array, "dtype": dtype}), dtype
        )
        if key is not None:
            self.constants[key] = output
            if not array.shape:
                self.literals[output.ref] = array.item()
        return output


def _set(attr: Any, value: Any) -> None:
    """Set the field of the AttrValue ``attr`` that belongs to the type of ``value``.

    A value that is no DType, `ShapeAttr`, array, bool, int, float or string must be a sequence of
    ints. NumPy's integers are no ints here.

    Raises:
        AssertionError: If TensorFlow does not have a dtype.
    """
    if isinstance(value, DType):
        attr.type = number_of(value)
    elif isinstance(value, ShapeAttr):
        _shape(attr.shape, value.shape)
    elif isinstance(value, np.ndarray):
        attr.tensor.dtype = number_of(dtype_of(value.dtype))
        _shape(attr.tensor.tensor_shape, value.shape)
        contiguous = np.ascontiguousarray(value)
        attr.tensor.tensor_content = contiguous.astype(contiguous.dtype.newbyteorder("<")).tobytes()
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
    """Set the TensorShapeProto ``message`` to ``shape``, in place.

    None is an unknown rank; symbolic extents become -1, unknown.
    """
    message.unknown_rank = shape is None
    for n in shape or ():
        message.dim.add().size = n if isinstance(n, int) else -1


def number_of(dtype: DType) -> int:
    """Return TensorFlow's DataType number of a dtype.

    Raises:
        AssertionError: If TensorFlow does not have it.
    """
    assert dtype.name in NUMBERS, dtype.name
    return NUMBERS[dtype.name]


@define(eq=False)
class NameScope:
    """The name of an operator's result node, and the prefix of the nodes it needs."""

    writer: GraphDefWriter
    name: str
    """Name of the result node; auxiliary nodes get names below it."""

    def const(self, value: Any, dtype: DType = INT32) -> NodeOutput:
        """Write a constant in this scope and return its tensor; ``dtype`` is int32 by default.

        ``value`` is a number or an array. One of at most 8 elements is written once in the scope.

        Raises:
            OverflowError: If an int of Python does not fit the dtype.
        """
        return self.writer.constant(value, dtype, self.name)

    def nodes(
        self,
        op: str,
        inputs: Sequence[NodeOutput],
        out: Sequence[DType],
        is_result: bool,
        **attrs: Any,
    ) -> tuple[NodeOutput, ...]:
        """Write one node, without casts, and return its results, in order.

        Args:
            op: TensorFlow operator.
            inputs: Its inputs.
            out: Dtype of each result to return.
            is_result: Whether the node gets the scope's name instead of one below it.
            attrs: All its attributes.
        """
        name = self.name if is_result else self.writer.unique(f"{self.name}/{op}")
        self.writer.node(op, name, inputs, attrs)
        return tuple(NodeOutput(f"{name}:{k}" if k else name, d) for k, d in enumerate(out))

    def op(
        self,
        op: str,
        *inputs: NodeOutput,
        out: DType | None = None,
        is_result: bool = False,
        like: str = "T",
        **attrs: Any,
    ) -> NodeOutput:
        """Write one node and return its first result.

        Operators of `UNTYPED` have no attribute ``like``, and their inputs are not cast. Their
        result is bool, as it is for those of `TRUTHS`; ``out`` is ignored then.

        Args:
            op: TensorFlow operator.
            inputs: Its inputs. If TensorFlow has no kernel for the element type, those that have it
                are cast to a wider type that has one, and a result of the element type is cast
                back.
            out: Dtype of the result; by default the element type.
            is_result: Whether the last node, operator or cast, gets the scope's name.
            like: Attribute of the element type. Its value is in ``attrs``, by default the dtype of
                the first input.
            attrs: All other attributes, which have no defaults.

        Raises:
            ModelError: If TensorFlow has no kernel, also not for a wider type.
        """
        if op in UNTYPED:
            return self.nodes(op, inputs, [BOOL], is_result, **attrs)[0]
        dtype: DType = attrs[like] if like in attrs else inputs[0].dtype
        work_dtype = kernel_dtype(op, dtype)
        if work_dtype is None:
            raise ModelError(
                f"TensorFlow has no kernel of {op} for {dtype}, nor for a dtype that holds it"
            )
        operands = [self.cast(t, work_dtype) if t.dtype is dtype else t for t in inputs]
        result_dtype = BOOL if op in TRUTHS else out or dtype
        computed_dtype = work_dtype if result_dtype is dtype and op not in TRUTHS else result_dtype
        is_last = is_result and computed_dtype is result_dtype
        (output,) = self.nodes(
            op, operands, [computed_dtype], is_last, **{**attrs, like: work_dtype}
        )
        return (
            output
            if computed_dtype is result_dtype
            else self.cast(output, result_dtype, is_result=is_result)
        )

    def cast(self, x: NodeOutput, dtype: DType, is_result: bool = False) -> NodeOutput:
        """Write a Cast of ``x``; return ``x`` itself if it has the dtype, unless ``is_result``.

        Args:
            x: Tensor to cast.
            dtype: Dtype of the result.
            is_result: Whether the node gets the scope's name.
        """
        if x.dtype is dtype and not is_result:
            return x
        attrs = {"SrcT": x.dtype, "DstT": dtype}
        return self.nodes("Cast", [x], [dtype], is_result, **attrs)[0]

    def inner(self, name: str) -> NameScope:
        """Return a new scope below this one, called ``name`` with a suffix if that is taken.

        Its name is reserved in the writer.
        """
        return NameScope(self.writer, self.writer.unique(f"{self.name}/{name}"))
