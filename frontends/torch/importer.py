"""Graphs of torch.fx with operators of ATen as passkit graphs.

The metadata of nodes has their results as fake tensors, whose shapes may have symbolic integers. A
node that no importer takes becomes a call of PyTorch inside the same graph, and the reason is kept
for `report`.
"""

from __future__ import annotations

import operator
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from attrs import evolve, field, frozen
from torch._higher_order_ops.effects import with_effects
from torch._subclasses.fake_tensor import unset_fake_temporarily
from torch.fx import GraphModule, Node
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils import _pytree as pytree

import passkit.ops as ops
from passkit.errors import PasskitError
from passkit.frontends.torch.dtypes import array_of, passkit_dtype
from passkit.frontends.torch.errors import UnsupportedNodeError
from passkit.frontends.torch.extern import extern_call
from passkit.frontends.torch.op_importers import AtenCall
from passkit.frontends.torch.op_importers.linalg import check_errors
from passkit.frontends.torch.op_importers.registry import aten, cast, constant, importer_of
from passkit.frontends.torch.sizes import SIZE_VALUE
from passkit.frontends.torch.symbols import (
    ComputedSize,
    GraphSymbols,
    extent_of,
    known_symbols,
    may_overlap,
    memory_order,
    signed_parts,
    stride_of,
    symbols_of_graph,
)
from passkit.graph.graph import Graph
from passkit.graph.node import Entry, known_shape, var
from passkit.graph.node import Node as GraphNode
from passkit.values.dtype import dtype_of
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
class Argument:
    """A result that is an argument, or lies in its memory: the position among the arguments."""

    position: int


_READ_MEMORY = (
    aten.as_strided.default,
    aten.as_strided_copy.default,
    aten.as_strided_scatter.default,
)
"""Operators that read the memory around a tensor, which calls of PyTorch on arrays do not have."""
_SCATTERED = (
    aten.as_strided_scatter.default,
    aten.diagonal_scatter.default,
    aten.select_scatter.default,
    aten.slice_scatter.default,
)
"""Operators that replace elements of a tensor, and with them those in the same place of memory."""


def input_name(position: int) -> str:
    """Return the name of the graph's input for the argument at a position."""
    return f"x{position}"


def size_input_name(symbol: str) -> str:
    """Return the name of the graph's input whose length is a symbol."""
    return f"size_{symbol}"


def number_input_name(position: int) -> str:
    """Return the name of the graph's input for one of `ImportedGraph.numbers`."""
    return f"number_{position}"


@frozen(eq=False)
class OutputLayout:
    """How a result of a program becomes a tensor.

    Attributes:
        position: the position among the results of the graph; -1 for what is no computed tensor.
        value: that value: None, an extent, or an input that is returned, as it is or as a view.
        order: the order of axes, from the slowest to the fastest, in which the array lies.
        is_dense: whether the tensor is the array with its axes in this order.
        is_gapless: whether it has the memory of the array, by strides; else it is copied to them.
        is_view: whether it lies in memory that an input or another result has, too.
        shape: the shape of the tensor.
        strides: the strides of the tensor, in elements.
        offset: where a view begins in the memory, in elements from the array or input.
        dtype: the dtype of the tensor; that of a view may be another one than the array's.
        repeats: the number of the result that is the same tensor; -1 for none before it.
    """

    position: int
    value: Any = None
    order: tuple[int, ...] = ()
    is_dense: bool = True
    is_gapless: bool = True
    is_view: bool = False
    shape: tuple[Extent, ...] = ()
    strides: tuple[Extent, ...] = ()
    offset: Extent = 0
    dtype: torch.dtype | None = None
    repeats: int = -1


@frozen(eq=False)
class ImportedGraph:
    """A graph of PyTorch as a passkit graph.

    Attributes:
        graph: the graph, whose inputs are named by `input_name`; None if nothing is computed.
        sized_by: symbols that no input of the graph determines. For each there is an input more,
            named by `size_input_name`, whose length it is.
        signed: symbols of integer arguments that may be negative; extents have their
            `signed_parts`.
        computed: symbols of sizes that are computed of other ones at each call.
        numbers: numbers that depend on such arguments. For each there is a scalar input more, of
            int64, named by `number_input_name`.
        feeds: the positions of tensors among the arguments.
        sizes: the positions of symbolic integers among the arguments, with their symbols.
        shapes: the symbolic shape of each fed tensor.
        outputs: the layout of each result.
        externs: the nodes that PyTorch runs.
        node_count: the number of operators in the graph of PyTorch.
    """

    graph: Graph | None
    sized_by: tuple[str, ...]
    signed: frozenset[str]
    computed: tuple[ComputedSize, ...]
    numbers: tuple[Extent, ...]
    feeds: tuple[int, ...]
    sizes: tuple[tuple[int, str], ...]
    shapes: tuple[tuple[Extent, ...], ...]
    outputs: tuple[OutputLayout, ...]
    externs: tuple[ExternNode, ...]
    node_count: int


def import_graph(
    module: GraphModule,
    constants: Mapping[str, torch.Tensor] | None = None,
    stands_alone: bool = False,
) -> ImportedGraph:
    """Import a graph of functional operators of ATen with fake tensors as metadata.

    Args:
        module: the graph; its placeholders are tensors, symbolic integers or numbers.
        constants: the values of placeholders, by name, that are constants of the graph.
        stands_alone: whether the graph is for use without the layouts: inputs have the names of
            placeholders in place of `input_name`, and each result is an array with axes in order.

    Raises: UnsupportedNodeError for what is neither imported nor called: a symbolic size of an
    input or output that is no polynomial, a dtype that passkit does not have, nested graphs.
    """
    symbols = symbols_of_graph(module)
    if stands_alone:
        symbols = evolve(symbols, signed=frozenset(), computed=None)
    with known_symbols(symbols):
        return _GraphImporter(module, constants or {}, stands_alone, symbols).imported()


@frozen(eq=False)
class _GraphImporter:
    """The import of one graph."""

    module: GraphModule
    constants: Mapping[str, torch.Tensor]
    stands_alone: bool
    symbols: GraphSymbols
    values: dict[Node, Any] = field(factory=dict)
    feeds: list[int] = field(factory=list)
    sizes: list[tuple[int, str]] = field(factory=list)
    numbers: dict[Size, Entry] = field(factory=dict)
    integers: dict[Node, int] = field(factory=dict)
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
            _check_layout(node)
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
        leaves = pytree.tree_leaves(results)
        owners = {} if self.stands_alone else self._owners(leaves)
        places: dict[Node, int] = {}
        layouts = tuple(
            evolve(self._output(x, owners, places, computed), repeats=_first(leaves, k))
            for k, x in enumerate(leaves)
        )
        shapes = tuple(known_shape(x) for x in self.inputs)
        sized_by: tuple[str, ...] = ()
        if computed:
            graph, sized_by = self._sized(computed)
        return ImportedGraph(
            graph=graph if computed else None,
            sized_by=sized_by,
            signed=self.symbols.signed,
            computed=tuple((self.symbols.computed or {}).values()),
            numbers=tuple(self.numbers),
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
            name = node.name if self.stands_alone else input_name(number)
            entry = var(name, shape, passkit_dtype(fake.dtype))
            self.inputs.append(entry)
            self.positions[entry] = number
            self.feeds.append(number)
            self.values[node] = entry
        elif isinstance(fake, torch.SymInt):
            self.values[node] = extent_of(fake)
            self.sizes.append((number, str(fake.node.expr)))
            self.integers[node] = number
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
        if isinstance(fake, torch.SymFloat):
            return fake  # sizes are computed of it; it is no operand
        if isinstance(fake, torch.SymBool):
            raise UnsupportedNodeError(f"{node.target} gives a {type(fake).__name__}")
        args, kwargs = pytree.tree_map_only(Node, self._value, (node.args, node.kwargs))
        if node.target is with_effects and args[1] is aten._linalg_check_errors.default:
            return [check_errors(args[0], *args[2:], **kwargs)]
        fakes = pytree.tree_map_only(Node, _fake, (node.args, node.kwargs))
        if node.target in _SCATTERED and may_overlap(fakes[0][0]):
            raise UnsupportedNodeError(f"{node.target} writes elements that share memory")
        call = AtenCall(node.target, fakes[0], fakes[1], fake, _used(node))
        importer = importer_of(node.target)
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
        """Return the results of a node.

        Raises: UnsupportedNodeError for a float that is computed of sizes.
        """
        value = self.values[node]
        if isinstance(value, torch.SymFloat):
            raise UnsupportedNodeError(f"{node.target} gives a {type(value).__name__}")
        return value

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
        if node.target in _READ_MEMORY:
            raise UnsupportedNodeError(f"{node.target} reads memory by strides, and {reason}")
        if not isinstance(node.target, torch._ops.OpOverload):
            raise UnsupportedNodeError(f"{node.target} is no operator of PyTorch")
        if call.result is None:
            raise UnsupportedNodeError(f"{node.target} has no result")
        fakes = [call.result] if isinstance(call.result, torch.Tensor) else list(call.result)
        is_random = torch.Tag.nondeterministic_seeded in node.target.tags
        # Operators of others may read what is no argument, too.
        is_ordered = is_random or node.target.namespace not in ("aten", "prims")
        if is_ordered and not self.ordered:
            # What waits for a node is not folded, also where all inputs are constants.
            self.ordered.append(constant(0, dtype_of("int64"), "generator").node)
        control = tuple(self.ordered[-1:]) if is_ordered else ()
        number = len(self.externs) + 1 if is_ordered else 0
        layouts = (call.args, call.kwargs) if is_random else None
        call_node = extern_call(
            node.target, args, kwargs, fakes, number, node.name, control, layouts
        )
        if is_ordered:
            self.ordered.append(call_node)
        self.externs.append(ExternNode(node.name, node.target.name(), reason, _line(node)))
        if isinstance(call.result, torch.Tensor):
            return call_node.entries[0]
        own = iter(call_node.entries)
        return [None if f is None else next(own) for f in fakes]

    # Results.

    def _sized(self, computed: Sequence[Entry]) -> tuple[Graph, tuple[str, ...]]:
        """Return the graph of results, and the symbols that its own inputs do not determine."""
        graph = self._with_numbers(Graph(computed))
        needed: set[str] = set()
        given: set[str] = set()
        for node in graph.nodes:
            for entry in node.entries:
                needed |= symbols_of(known_shape(entry))
            needed |= symbols_of(node.params.values())
            if node.op is None:
                extents = known_shape(node.entries[0])
                given |= {str(n) for n in extents if isinstance(n, Size) and str(n).isidentifier()}
        missing = tuple(sorted(needed - given))
        if not missing:
            return graph, ()
        sizes = (var(size_input_name(name), (Size.symbol(name), 0), "bool") for name in missing)
        first, *others = graph.outputs
        return Graph([ops.sized_by(first, *sizes), *others]), missing

    def _with_numbers(self, graph: Graph) -> Graph:
        """Return a graph in which numbers that depend on signed symbols are inputs.

        Kernels compute with sizes, which are never negative.
        """
        parts = {name for symbol in self.symbols.signed for name in signed_parts(symbol)}

        def as_input(node: GraphNode, inputs: tuple[Entry, ...]) -> Sequence[Entry] | None:
            """Return the input in place of such a number, None for other nodes."""
            if node.op is not SIZE_VALUE or not symbols_of([node.params["size"]]) & parts:
                return None
            size = node.params["size"]
            if size not in self.numbers:
                self.numbers[size] = var(number_input_name(len(self.numbers)), (), "int64")
            return [cast(self.numbers[size], dtype_of(node.params["dtype"]))]

        return graph.rebuild(as_input) if parts else graph

    def _owners(self, results: Sequence[Any]) -> dict[int, Node]:
        """Return the node whose array holds the memory of results, by storage.

        That is an input of which results are views, or the node that PyTorch computes the memory
        with that several results share.
        """
        counts = Counter(
            _storage(x)
            for x in results
            if isinstance(x, Node) and isinstance(self.values[x], Entry)
        )
        owners: dict[int, Node] = {}
        visited: set[int] = set()
        for node in self.module.graph.nodes:
            if len(visited) == len(counts):
                break
            fake = node.meta.get("val")
            if not isinstance(fake, torch.Tensor) or node.name in self.constants:
                continue
            storage = _storage(node)
            if storage not in counts or storage in visited:
                continue
            visited.add(storage)
            is_shared = counts[storage] > 1 and node.op == "call_function"
            if node.op == "placeholder" or (is_shared and _layout(fake).is_gapless):
                owners[storage] = node
        return owners

    def _output(
        self,
        result: Any,
        owners: Mapping[int, Node],
        places: dict[Node, int],
        computed: list[Entry],
    ) -> OutputLayout:
        """Return the layout of a result.

        Args:
            result: the node, or another value.
            owners: the nodes whose memory results share.
            places: the positions of their arrays among what is computed, which grow.
            computed: what is computed, which grows.
        """
        value = self.values[result] if isinstance(result, Node) else result
        if result in self.integers:
            return OutputLayout(-1, Argument(self.integers[result]))
        if not isinstance(value, Entry):
            return OutputLayout(-1, value)
        if self.stands_alone:
            computed.append(value)
            return OutputLayout(len(computed) - 1)
        if result.op == "placeholder":
            return OutputLayout(-1, Argument(self.positions[value]))
        fake = result.meta["val"]
        owner = owners.get(_storage(result))
        if owner is None or not _is_view(fake, owner.meta["val"]):
            return self._computed(value, fake, computed)
        base = owner.meta["val"]
        begin = base.storage_offset() * base.itemsize // fake.itemsize
        offset = extent_of(fake.storage_offset() - begin)
        view = evolve(_layout(fake), is_dense=False, is_view=True, offset=offset)
        if owner.op == "placeholder":
            return evolve(view, value=Argument(self.positions[self.values[owner]]))
        if owner not in places:
            layout = self._computed(self.values[owner], base, computed)
            places[owner] = layout.position
            if owner is result:
                return layout
        return evolve(view, position=places[owner])

    def _computed(self, value: Entry, fake: torch.Tensor, computed: list[Entry]) -> OutputLayout:
        """Add an array to what is computed, in the order of axes of its tensor."""
        layout = _layout(fake)
        if layout.order != tuple(range(fake.dim())):
            value = ops.transpose(value, axes=layout.order)
        computed.append(value)
        return evolve(layout, position=len(computed) - 1)


def _first(results: Sequence[Any], position: int) -> int:
    """Return the position of the same node among earlier results, -1 if it is not there."""
    node = results[position]
    first = results.index(node) if isinstance(node, Node) else position
    return first if first < position else -1


def _is_view(fake: torch.Tensor, base: torch.Tensor) -> bool:
    """Return whether a tensor in the memory of a base has its elements, in other places."""
    return (fake.is_conj(), fake.is_neg()) == (base.is_conj(), base.is_neg())


def _layout(fake: torch.Tensor) -> OutputLayout:
    """Return the layout of a tensor as an array, whose position is not known yet."""
    shape, strides = tuple(map(extent_of, fake.shape)), tuple(map(stride_of, fake.stride()))
    order = memory_order(fake)
    packed: list[Extent] = [1] * fake.dim()
    step: Extent = 1
    for axis in reversed(order):
        packed[axis] = step
        step = step * shape[axis]
    is_gapless = 0 in shape or all(
        n == 1 or a == b for n, a, b in zip(shape, strides, packed, strict=True)
    )
    is_dense = 0 not in shape and strides == tuple(packed)
    return OutputLayout(
        position=-1,
        order=order if is_gapless else tuple(range(fake.dim())),
        is_dense=is_dense,
        is_gapless=is_gapless,
        shape=shape,
        strides=strides,
        dtype=fake.dtype,
    )


def _storage(node: Node) -> int:
    """Return the number of the storage of a node's fake tensor."""
    return StorageWeakRef(node.meta["val"].untyped_storage()).cdata  # type: ignore[no-any-return]


def _check_layout(node: Node) -> None:
    """Refuse a node with a tensor whose elements do not lie in memory by strides.

    Raises: UnsupportedNodeError for it.
    """
    for x in pytree.tree_leaves(node.meta.get("val")):
        if isinstance(x, torch.Tensor) and x.layout is not torch.strided:
            raise UnsupportedNodeError(f"{node.target} has a tensor of layout {x.layout}")


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
