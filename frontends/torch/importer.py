"""Graphs of torch.fx with operators of ATen as passkit graphs.

The metadata of nodes has their results as fake tensors, whose shapes may have symbolic integers. A
node that no importer takes becomes a call of PyTorch inside the same graph, and the reason is kept
for `report`.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from attrs import field, frozen
from torch._higher_order_ops.effects import with_effects
from torch._subclasses.fake_tensor import unset_fake_temporarily
from torch.fx import GraphModule, Node
from torch.utils import _pytree as pytree

import passkit.ops as ops
from passkit.errors import PasskitError
from passkit.frontends.torch.dtypes import array_of, passkit_dtype
from passkit.frontends.torch.errors import UnsupportedNodeError
from passkit.frontends.torch.extern import extern_call
from passkit.frontends.torch.op_importers import IMPORTERS, AtenCall
from passkit.frontends.torch.op_importers.linalg import check_errors
from passkit.frontends.torch.op_importers.registry import aten, constant
from passkit.frontends.torch.symbols import extent_of, stride_of
from passkit.graph.graph import Graph
from passkit.graph.node import Entry, known_shape, var
from passkit.graph.node import Node as GraphNode
from passkit.values.size import Extent, Size, symbols_of


@frozen
class ExternNode:
    """A node that PyTorch runs.

    Attributes:
        name: its name in the graph of PyTorch.
        function: the name of its operator.
        reason: why passkit does not run it.
        line: the line of the user's program, if it is known.
    """

    name: str
    function: str
    reason: str
    line: str = ""


@frozen
class InputTensor:
    """A result that is an input: the position among the arguments."""

    position: int


def input_name(position: int) -> str:
    """Return the name of the graph's input for the argument at a position."""
    return f"x{position}"


def size_input_name(symbol: str) -> str:
    """Return the name of the graph's input whose length is a symbol."""
    return f"size_{symbol}"


@frozen(eq=False)
class OutputLayout:
    """How a result of a program becomes a tensor.

    Attributes:
        position: the position among the results of the graph; -1 for what is no computed tensor.
        value: that value: None, an extent, or the position of an input that is returned as it is.
        order: the order of axes, from the slowest to the fastest, in which the array lies.
        is_dense: whether the array has all elements in this order; else it is copied to strides.
        strides: the strides of the tensor, in elements.
    """

    position: int
    value: Any = None
    order: tuple[int, ...] = ()
    is_dense: bool = True
    strides: tuple[Extent, ...] = ()


@frozen(eq=False)
class ImportedGraph:
    """A graph of PyTorch as a passkit graph.

    Attributes:
        graph: the graph, whose inputs are named by `input_name`; None if nothing is computed.
        sized_by: symbols that no input of the graph determines. For each there is an input more,
            named by `size_input_name`, whose length it is.
        feeds: the positions of tensors among the arguments.
        sizes: the positions of symbolic integers among the arguments, with their extents.
        shapes: the symbolic shape of each fed tensor.
        outputs: the layout of each result.
        externs: the nodes that PyTorch runs.
        node_count: the number of operators in the graph of PyTorch.
    """

    graph: Graph | None
    sized_by: tuple[str, ...]
    feeds: tuple[int, ...]
    sizes: tuple[tuple[int, Extent], ...]
    shapes: tuple[tuple[Extent, ...], ...]
    outputs: tuple[OutputLayout, ...]
    externs: tuple[ExternNode, ...]
    node_count: int


def import_graph(
    module: GraphModule,
    constants: Mapping[str, torch.Tensor] | None = None,
    keeps_names: bool = False,
) -> ImportedGraph:
    """Import a graph of functional operators of ATen with fake tensors as metadata.

    Args:
        module: the graph; its placeholders are tensors, symbolic integers or numbers.
        constants: the values of placeholders, by name, that are constants of the graph.
        keeps_names: whether inputs have the names of placeholders in place of `input_name`.

    Raises: UnsupportedNodeError for what is neither imported nor called: a symbolic size of an
    input or output that is no polynomial, a dtype that passkit does not have, nested graphs.
    """
    return _GraphImporter(module, constants or {}, keeps_names).imported()


@frozen(eq=False)
class _GraphImporter:
    """The import of one graph."""

    module: GraphModule
    constants: Mapping[str, torch.Tensor]
    keeps_names: bool
    values: dict[Node, Any] = field(factory=dict)
    feeds: list[int] = field(factory=list)
    sizes: list[tuple[int, Extent]] = field(factory=list)
    inputs: list[Entry] = field(factory=list)
    positions: dict[Entry, int] = field(factory=dict)
    externs: list[ExternNode] = field(factory=list)
    ordered: list[GraphNode] = field(factory=list)

    def imported(self) -> ImportedGraph:
        """Import all nodes, and return the graph.

        Raises: UnsupportedNodeError for a node, input or result that is neither imported nor
        called.
        """
        count = number = 0
        results: Sequence[Any] = ()
        for node in self.module.graph.nodes:
            if node.op == "placeholder":
                self._placeholder(node, number)
                number += 1
            elif node.op == "get_attr":
                self.values[node] = self._attribute(node)
            elif node.op == "call_function":
                self.values[node] = self._function(node)
                count += node.target is not operator.getitem
            elif node.op == "output":
                (results,) = node.args
            else:
                raise UnsupportedNodeError(f"{node.op} of {node.target}")
        computed: list[Entry] = []
        layouts = tuple(self._output(x, computed) for x in pytree.tree_leaves(results))
        shapes = tuple(known_shape(x) for x in self.inputs)
        sized_by: tuple[str, ...] = ()
        if computed:
            graph, sized_by = self._sized(computed)
        return ImportedGraph(
            graph=graph if computed else None,
            sized_by=sized_by,
            feeds=tuple(self.feeds),
            sizes=tuple(self.sizes),
            shapes=shapes,
            outputs=layouts,
            externs=tuple(self.externs),
            node_count=count,
        )

    # Inputs.

    def _placeholder(self, node: Node, number: int) -> None:
        """Add an input: a variable for a tensor, an extent for a symbolic integer.

        Tokens, by which effects are in order, are None in calls: they are constants.
        """
        fake = node.meta.get("val")
        if node.name in self.constants:
            self.values[node] = _constant(self.constants[node.name], node.name)
        elif any(user.target is with_effects and user.args[0] is node for user in node.users):
            self.values[node] = ops.full(tuple(fake.shape), 0, passkit_dtype(fake.dtype).name)
        elif isinstance(fake, torch.Tensor):
            shape = tuple(map(extent_of, fake.shape))
            name = node.name if self.keeps_names else input_name(number)
            entry = var(name, shape, passkit_dtype(fake.dtype))
            self.inputs.append(entry)
            self.positions[entry] = number
            self.feeds.append(number)
            self.values[node] = entry
        elif isinstance(fake, torch.SymInt):
            self.values[node] = extent_of(fake)
            self.sizes.append((number, self.values[node]))
        else:
            self.values[node] = fake

    def _attribute(self, node: Node) -> Any:
        """Return an attribute of the module: a tensor is a constant.

        Raises: UnsupportedNodeError for a graph inside of the module.
        """
        value: Any = self.module
        for name in str(node.target).split("."):
            value = getattr(value, name)
        if isinstance(value, torch.Tensor):
            return _constant(value, node.name)
        raise UnsupportedNodeError(f"an attribute {node.target} of type {type(value).__name__}")

    # Calls.

    def _function(self, node: Node) -> Any:
        """Return the results of a call: an entry, a sequence of them, or an extent.

        Raises: UnsupportedNodeError where it is neither imported nor called.
        """
        fake = node.meta.get("val")
        if isinstance(fake, (torch.SymInt, int)) and not isinstance(fake, bool):
            return extent_of(fake)
        if node.target is operator.getitem:
            source, position = node.args
            return self.values[source][position]
        if isinstance(fake, (torch.SymFloat, torch.SymBool)):
            raise UnsupportedNodeError(f"{node.target} gives a {type(fake).__name__}")
        args, kwargs = pytree.tree_map_only(Node, self._value, (node.args, node.kwargs))
        if node.target is with_effects and args[1] is aten._linalg_check_errors.default:
            return [check_errors(args[0], *args[2:], **kwargs)]
        fakes = pytree.tree_map_only(Node, _fake, (node.args, node.kwargs))
        call = AtenCall(node.target, fakes[0], fakes[1], fake, _used(node))
        importer = IMPORTERS.get(node.target)
        reason = "passkit has no importer for it"
        if torch.Tag.nondeterministic_seeded in getattr(node.target, "tags", ()):
            reason = "its random numbers are those of PyTorch's generator"
        if importer is not None:
            try:
                return self._checked(call, importer(call, *args, **kwargs))
            except (UnsupportedNodeError, PasskitError) as error:
                reason = str(error)
        return self._extern(node, call, args, kwargs, reason)

    def _value(self, node: Node) -> Any:
        """Return the results of a node."""
        return self.values[node]

    def _checked(self, call: AtenCall, results: Any) -> Any:
        """Return the results of an importer.

        Raises: UnsupportedNodeError if one has another shape or dtype than the fake tensor.
        """
        fakes = [call.result] if isinstance(call.result, torch.Tensor) else call.result
        entries = [results] if isinstance(results, Entry) else results
        for entry, fake in zip(entries, fakes, strict=True):
            if entry is None or fake is None:
                continue
            shape = tuple(map(extent_of, fake.shape))
            if entry.shape != shape or entry.dtype is not passkit_dtype(fake.dtype):
                raise UnsupportedNodeError(
                    f"the importer gives {entry.dtype}{list(entry.shape or ())}, and PyTorch "
                    f"{fake.dtype}{list(shape)}"
                )
        return results

    def _extern(self, node: Node, call: AtenCall, args: Any, kwargs: Any, reason: str) -> Any:
        """Return the results of a call of PyTorch, which is kept as extern.

        Raises: UnsupportedNodeError where it cannot be called.
        """
        if not isinstance(node.target, torch._ops.OpOverload):
            raise UnsupportedNodeError(f"{node.target} is no operator of PyTorch")
        if call.result is None:
            raise UnsupportedNodeError(f"{node.target} has no result")
        fakes = [call.result] if isinstance(call.result, torch.Tensor) else list(call.result)
        is_random = torch.Tag.nondeterministic_seeded in node.target.tags
        control = tuple(self.ordered[-1:]) if is_random else ()
        number = len(self.externs) + 1 if is_random else 0
        call_node = extern_call(node.target, args, kwargs, fakes, number, node.name, control)
        if is_random:
            self.ordered.append(call_node)
        self.externs.append(ExternNode(node.name, node.target.name(), reason, _line(node)))
        if isinstance(call.result, torch.Tensor):
            return call_node.entries[0]
        own = iter(call_node.entries)
        return [None if f is None else next(own) for f in fakes]

    # Results.

    def _sized(self, computed: Sequence[Entry]) -> tuple[Graph, tuple[str, ...]]:
        """Return the graph of results, and the symbols that its own inputs do not determine."""
        graph = Graph(computed)
        needed: set[str] = set()
        given: set[str] = set()
        for node in graph.nodes:
            for entry in node.entries:
                needed |= symbols_of(known_shape(entry))
            needed |= symbols_of([node.params["size"]] if "size" in node.params else [])
            if node.op is None:
                extents = known_shape(node.entries[0])
                given |= {str(n) for n in extents if isinstance(n, Size) and str(n).isidentifier()}
        missing = tuple(sorted(needed - given))
        if not missing:
            return graph, ()
        sizes = (var(size_input_name(name), (Size.symbol(name),), "bool") for name in missing)
        return Graph([ops.sized_by(computed[0], *sizes), *computed[1:]]), missing

    def _output(self, result: Any, computed: list[Entry]) -> OutputLayout:
        """Return the layout of a result; what is computed is added to ``computed``."""
        value = self.values[result] if isinstance(result, Node) else result
        if not isinstance(value, Entry):
            return OutputLayout(-1, value)
        if value in self.positions:
            return OutputLayout(-1, InputTensor(self.positions[value]))
        fake = result.meta["val"]
        order = tuple(sorted(range(fake.dim()), key=lambda k: _stride_key(fake, k)))
        strides = tuple(map(stride_of, fake.stride()))
        is_dense = _is_dense(tuple(map(extent_of, fake.shape)), strides, order)
        if is_dense and order != tuple(range(fake.dim())):
            value = ops.transpose(value, axes=order)
        elif not is_dense:
            order = tuple(range(fake.dim()))
        computed.append(value)
        return OutputLayout(len(computed) - 1, None, order, is_dense, strides)


def _is_dense(shape: Sequence[Extent], strides: Sequence[Extent], order: Sequence[int]) -> bool:
    """Return whether the elements of a tensor lie without gaps, with its axes in this order."""
    expected: Extent = 1
    for axis in reversed(order):
        if shape[axis] != 1 and strides[axis] != expected:
            return 0 in shape
        expected = expected * shape[axis]
    return True


def _stride_key(fake: torch.Tensor, axis: int) -> tuple[int, int]:
    """Return the key by which axes are sorted from the slowest to the fastest."""
    stride = fake.stride(axis)
    hint = stride.node.hint if isinstance(stride, torch.SymInt) else stride
    return -int(hint), axis


def _constant(tensor: torch.Tensor, name: str) -> Entry:
    """Return a copy of a tensor as a constant of a name, which stays as the tensor changes."""
    with unset_fake_temporarily():  # PyTorch compiles while operators make fake tensors
        return constant(array_of(tensor), passkit_dtype(tensor.dtype), name)


def _used(node: Node) -> frozenset[int] | None:
    """Return the positions of a node's results that are read; None if it is read as a whole."""
    if any(user.target is not operator.getitem for user in node.users):
        return None
    return frozenset(int(user.args[1]) for user in node.users)


def _fake(node: Node) -> Any:
    """Return the metadata of a node: a fake tensor, or a symbolic integer."""
    return node.meta.get("val")


def _line(node: Node) -> str:
    """Return file and line of a node in the user's program, "" if they are not known."""
    trace = node.meta.get("stack_trace") or ""
    places = re.findall(r'^ *File "(.*)", line (\d+), in ', trace, re.MULTILINE)
    return ":".join(places[-1]) if places else ""
