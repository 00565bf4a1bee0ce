"""The meaning of a graph: NumPy, operator by operator, in post-order, unfused.

An operator with FCompute is what that computes. For others the meaning is derived from FElement,
FReduce, FContract, FCodeGen or FExpand, whichever comes first. Each operation rounds to its dtype;
sums of floats are accumulated in float64 and rounded once.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from typing import Any

import numpy as np

from passkit.ast import Contract, Expr, Load, Var, size_of
from passkit.errors import CapacityError, CodeGenError, DTypeError, FeedError, ShapeError
from passkit.graph import rules
from passkit.graph.graph import Graph, post_order
from passkit.graph.infer import show_shape
from passkit.graph.narrow import expanded
from passkit.graph.node import AS_READ, Entry, Node, is_state, known_shape
from passkit.graph.op import (
    FCodeGen,
    FCompute,
    FContract,
    FElement,
    FExpand,
    FReduce,
    FScan,
    TStateful,
)
from passkit.plan.group import FUSED
from passkit.runtime.evaluate import cast_array, evaluate
from passkit.runtime.feeds import all_sizes, bind_sizes, check_feeds
from passkit.runtime.folding import by_reduce, by_scan
from passkit.runtime.state import check_names
from passkit.space.reads import element
from passkit.values import arguments
from passkit.values.dtype import dtype_of, int64
from passkit.values.size import Shape, Size, awaits, has_size, numel, substitute, symbols_of

Array = Any
Arrays = list[Array]
Sizes = Mapping[str, int]

WIDE_PRODUCTS = 1 << 27
"""Products of float32 matrices of up to so many multiplications are computed in float64."""


def interpret(
    graph: Graph,
    feeds: Mapping[str, Any] | None = None,
    state: MutableMapping[str, Any] | None = None,
) -> Arrays:
    """The outputs of ``graph`` for arrays by input name, as new arrays.

    A read of a state variable sees the last assign before it in post-order; an output that is a
    state variable is read when the outputs in front of it are done. ``state`` maps the names of
    state variables to values and is updated; a variable that it lacks starts at its initial value.

    Raises: FeedError for feeds that do not fit, and for a state variable read before it is set.
    """
    arguments.instance("interpret: graph", graph, Graph, "a Graph; pk.Graph([y]) makes one")
    if state is not None:
        need = "a dict of arrays by the names of state variables, or None"
        arguments.instance("interpret: state", state, MutableMapping, need)
    check_names(graph)
    names = [(graph.names[n], n.entries[0].dtype, n.entries[0].shape) for n in graph.inputs]
    arrays = check_feeds(names, {} if feeds is None else feeds, graph.unread)
    sizes = all_sizes((name, shape, arrays[name].shape) for name, _, shape in names)
    memory = {} if state is None else state
    run = _Run(graph, sizes, memory)
    with np.errstate(all="ignore"):
        return [np.array(x, order="C") for x in run([arrays[name] for name, _, _ in names])]


def derive(node: Node, *arrays: Array) -> Arrays:
    """The array of each result of ``node`` by its other attributes, as if it had no FCompute."""
    assert node.op is not None
    with np.errstate(all="ignore"):
        for column, meaning in _DERIVED:
            if column.get(node.op.name) is not None:
                return meaning(node, *arrays)
    raise CodeGenError(
        f"{node.where} has no meaning: set FCompute, FElement, FReduce, FContract, FCodeGen or "
        f"FExpand on op {node.op.name}"
    )


class _Run:
    """One run of a graph: values of entries, freed after their last use, and the state."""

    def __init__(self, graph: Graph, sizes: Sizes, state: MutableMapping[str, Any]) -> None:
        self.graph, self.sizes, self.state = graph, sizes, state
        self.values: dict[Entry, Array] = {}
        self.kept: dict[tuple[Node, Entry], Array | None] = {
            (n.control[0], n.inputs[0]): None for n in graph.nodes if n.op is AS_READ
        }
        self.uses = {e: len(users) for e, users in graph.users.items()}
        for e in graph.heads:
            self.uses[e] = self.uses.get(e, 0) + 1

    def __call__(self, feeds: Sequence[Array]) -> Arrays:
        given = dict(zip(self.graph.inputs, feeds, strict=True))
        positions = {node: k for k, node in enumerate(self.graph.nodes)}
        heads = self.graph.heads
        due: dict[int, list[int]] = {}
        done = 0
        for h, e in enumerate(heads):  # a state variable is read once the heads before it are done
            if is_state(e):
                due.setdefault(done, []).append(h)
            done = max(done, positions[e.node] + 1)
        read: dict[int, Array] = {}
        for k, node in enumerate(self.graph.nodes):
            read.update((h, self.value(heads[h])) for h in due.get(k, ()))
            if not node.is_variable:
                self.execute(node)
            elif not node.params.get("state"):
                self.values[node.entries[0]] = given[node]
        read.update((h, self.value(heads[h])) for h in due.get(len(positions), ()))
        results = [read[h] if h in read else self.values[e] for h, e in enumerate(heads)]
        for (variable, _), new in zip(
            self.graph.updates, results[len(self.graph.outputs) :], strict=True
        ):
            self.state[variable.name] = np.array(new)
        return results[: len(self.graph.outputs)]

    def value(self, entry: Entry) -> Array:
        """What ``entry`` has now."""
        if not is_state(entry):
            return self.values[entry]
        node = entry.node
        if node.name not in self.state:
            if node.params["initial"] is None:
                raise FeedError(
                    f"state variable '{node.name}' is read before it has a value; assign it first, "
                    f"or give pk.state an initial array"
                )
            self.state[node.name] = node.params["initial"]
        return self.state[node.name]

    def execute(self, node: Node) -> None:
        """Compute ``node``; free what it was the last to use."""
        assert node.op is not None
        stateful = bool(TStateful.get(node.op.name))
        arrays = [self.value(e) if k or not stateful else None for k, e in enumerate(node.inputs)]
        for e, array in zip(node.inputs, arrays, strict=True):
            if (node, e) in self.kept:
                self.kept[node, e] = array
        if node.op is AS_READ:
            results = [self.kept[node.control[0], node.inputs[0]]]
        elif node.op is FUSED:
            body = node.params["body"].graph
            results = _Run(body, self.inner_sizes(body, arrays), {})(arrays)
        elif stateful:
            results = rules.arrays(node, rules.call(FCompute, node, node, *arrays))
            self.state[node.inputs[0].node.name] = np.array(results[0])
        else:
            try:
                results = compute(node, arrays, self.sizes)
            except MemoryError as error:
                raise CapacityError(f"{node.where}: {error}") from None
        self.values.update(zip(node.entries, results, strict=True))
        for e in node.inputs:
            self.uses[e] -= 1
            if not self.uses[e]:
                self.values.pop(e, None)

    def inner_sizes(self, body: Graph, arrays: Arrays) -> Sizes:
        """The sizes inside of a fused node: those outside, and what its inputs say."""
        known = [
            (v.name, v.entries[0].shape, a.shape) for v, a in zip(body.inputs, arrays, strict=True)
        ]
        return {**self.sizes, **bind_sizes(known, "fused input", self.sizes)}


def compute(node: Node, arrays: Sequence[Array], sizes: Sizes) -> Arrays:
    """The results of one operator for these inputs, checked against its shapes and dtypes.

    Raises: ShapeError or DTypeError when the operator's own rules do not allow the inputs, or when
    its FCompute returns something else than it promised.
    """
    known = concrete(node, arrays, sizes)
    assert node.op is not None
    if FCompute.get(node.op.name) is not None:
        results = rules.arrays(node, rules.call(FCompute, known, known, *arrays))
    else:
        results = derive(known, *arrays)
    return [_checked(e, r) for e, r in zip(known.entries, results, strict=True)]


def _checked(entry: Entry, result: Any) -> Array:
    array = np.asarray(result)
    if entry.dtype is not None and array.dtype != entry.dtype.numpy:
        raise DTypeError(
            f"{entry.node.where} promises {entry.dtype} by FInferType, its FCompute gave "
            f"{array.dtype}; make them agree"
        )
    if entry.shape is not None and array.shape != entry.shape:
        if entry.node.op is not None and not FCompute.get(entry.node.op.name):
            return np.broadcast_to(array, array_shape(entry.shape))
        raise ShapeError(
            f"{entry.node.where} promises shape {show_shape(entry.shape)} by FInferShape, its "
            f"FCompute gave {show_shape(array.shape)}; make them agree"
        )
    return array


def concrete(node: Node, arrays: Sequence[Array], sizes: Sizes) -> Node:
    """``node`` with the shapes that ``arrays`` have, and numbers for unknown sizes.

    Raises: ShapeError for a size that no input of the graph has.
    """
    fits = all(e.shape == a.shape for e, a in zip(node.inputs, arrays, strict=True))
    if fits and not (any(has_size(e.shape) for e in node.entries) or awaits(node.params)):
        return node
    inputs = [
        Node(None, (), {"shape": a.shape, "dtype": e.dtype or dtype_of(a.dtype)}, e.node.name)
        for e, a in zip(node.inputs, arrays, strict=True)
    ]
    params = {k: numbers(v, sizes) for k, v in node.params.items()}
    known = Node(node.op, [n.entries[0] for n in inputs], params, node.name)
    for e in known.entries:
        missing = symbols_of(e.shape or ())
        if missing:
            raise ShapeError(
                f"{node.where} needs a value for the size '{min(missing)}' of its result "
                f"{show_shape(e.shape)}, and no input of the graph has it; feed an array of that "
                "size, or give the result a shape of numbers"
            )
    return known


def array_shape(shape: Shape) -> tuple[int, ...]:
    """A shape as numbers. Raises: ShapeError when an extent is not known."""
    return tuple(operator.index(n) for n in shape)


def numbers(value: Any, sizes: Sizes) -> Any:
    """A parameter with every size that has a value replaced by it."""
    if isinstance(value, Size):
        return substitute(value, sizes)
    if isinstance(value, tuple):
        return tuple(numbers(v, sizes) for v in value)
    return value


def by_element(node: Node, *arrays: Array) -> Arrays:
    """FElement over the whole grid of indices."""
    shape = array_shape(known_shape(node.entries[0]))
    flat = {f"x{k}": np.ascontiguousarray(a).reshape(-1) for k, a in enumerate(arrays)}
    index = tuple(Var(f"i{k}", int64) for k in range(len(shape)))
    grid = np.ogrid[tuple(slice(0, n) for n in shape)] if shape else ()
    values = {f"i{k}": g for k, g in enumerate(grid)}
    found = element(node, index, [_reader(k, e) for k, e in enumerate(node.inputs)])
    if numel(shape) == 0:
        return [np.zeros(shape, x.dtype.numpy) for x in found]
    return [np.broadcast_to(evaluate(x, values, flat), shape) for x in found]


def _reader(k: int, entry: Entry) -> Callable[..., Expr]:
    shape, dtype = known_shape(entry), entry.dtype
    assert dtype is not None

    def read(*at: Expr) -> Expr:
        if len(at) != len(shape):
            raise CodeGenError(
                f"FElement reads input {k} at {len(at)} indices; it has {len(shape)} axes"
            )
        linear: Expr = size_of(0)
        for i, n in zip(at, shape, strict=True):
            linear = linear * size_of(n) + i
        return Load(f"x{k}", linear, dtype)

    return read


def by_code(node: Node, *arrays: Array) -> Arrays:
    """FCodeGen on whole arrays, which broadcast."""
    dtypes = [e.dtype or dtype_of(a.dtype) for e, a in zip(node.inputs, arrays, strict=True)]
    code = rules.code(node, *(Var(f"x{k}", d) for k, d in enumerate(dtypes)))
    values = {f"x{k}": a for k, a in enumerate(arrays)}
    return [np.asarray(evaluate(x, values)) for x in code]


def by_contract(node: Node, *arrays: Array) -> Arrays:
    """FContract: a product of matrices; small ones and those of 16 bits in wider floats."""
    found = rules.contraction_of(node)
    if not isinstance(found, Contract) or len(arrays) != 2:
        raise CodeGenError(f"{node.where} is no product of matrices: set FCompute on its operator")
    a, b = arrays
    out = a.dtype
    a = np.swapaxes(a, -1, -2) if found.transpose_a else a
    b = np.swapaxes(b, -1, -2) if found.transpose_b else b
    if dtype_of(out).is_float and out.itemsize < 8:
        work = numel((*found.batch, found.m, found.n, found.k))
        wide = np.float64 if isinstance(work, int) and work <= WIDE_PRODUCTS else np.float32
        a, b = a.astype(wide), b.astype(wide)
    return [cast_array(np.matmul(a, b), dtype_of(out))]


def by_expand(node: Node, *arrays: Array) -> Arrays:
    """FExpand: the primitives, one by one."""
    assert node.op is not None
    inputs = [
        Node(None, (), {"shape": a.shape, "dtype": dtype_of(a.dtype)}, f"x{k}").entries[0]
        for k, a in enumerate(arrays)
    ]
    heads = expanded(node, inputs)
    if heads is None:
        raise CodeGenError(
            f"{node.where} has no meaning: its FExpand gives None; set FCompute on op "
            f"{node.op.name}"
        )
    values = dict(zip(inputs, arrays, strict=True))
    for inner in post_order(e.node for e in heads):
        if not inner.is_variable:
            results = compute(inner, [values[e] for e in inner.inputs], {})
            values.update(zip(inner.entries, results, strict=True))
    return [values[e] for e in heads]


_DERIVED = (
    (FElement, by_element),
    (FReduce, by_reduce),
    (FScan, by_scan),
    (FContract, by_contract),
    (FCodeGen, by_code),
    (FExpand, by_expand),
)
