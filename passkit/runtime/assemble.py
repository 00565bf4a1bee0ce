"""Assembly: the annotations of a planned graph become a `Program`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from attrs import evolve

from passkit.ast import Contract
from passkit.ast.folds import Convolution
from passkit.graph import rules
from passkit.graph.graph import Graph
from passkit.graph.node import CONSTANT, Entry, Node
from passkit.graph.op import FHostCall, THostLibrary, TLibraryCall
from passkit.plan.storage import Home, StoragePlan
from passkit.plan.target import Target
from passkit.runtime.epilogue import epilogue_of
from passkit.runtime.interpret import compute
from passkit.runtime.native.launcher import builtin
from passkit.runtime.native.products import library_name
from passkit.runtime.program import (
    Alias,
    Copy,
    FilterGradient,
    Launch,
    Library,
    Product,
    ProductSum,
    Program,
    Python,
    Ref,
    Role,
    Step,
    constant_array,
)
from passkit.runtime.state import State
from passkit.values.dtype import DType
from passkit.values.size import Extent, Shape, numel, symbols_of

GEMM = {"float32": "gemm_f32", "float64": "gemm_f64"}
HALVES = ("float16", "bfloat16")
"""What only libraries of CUDA devices multiply; elsewhere NumPy does."""


class Input(NamedTuple):
    """An input as it was declared, and the shape that the plan relies on."""

    name: str
    dtype: DType
    declared: Shape
    planned: Shape

    @property
    def guards(self) -> list[tuple[Extent, Extent, str]]:
        """The sizes that were taken to be equal, because operators join them."""
        pairs = zip(self.declared, self.planned, strict=True)
        return [
            (a, b, f"input '{self.name}': dimension {k}")
            for k, (a, b) in enumerate(pairs)
            if a != b
        ]


def assemble(
    graph: Graph,
    state: State,
    target: Target,
    inputs: Sequence[Input],
    program: Callable[[Graph], Callable[..., list[Any]]] | None = None,
) -> Program:
    """The program of a graph that has "rtc" and "storage".

    ``inputs`` are what a call feeds, in order, also those that no operator is left to read.
    """
    return _Assembly(graph, state, target, inputs, program).program()


class _Assembly:
    def __init__(
        self,
        graph: Graph,
        state: State,
        target: Target,
        inputs: Sequence[Input],
        nested: Callable[[Graph], Callable[..., list[Any]]] | None = None,
    ) -> None:
        self.nested = nested
        self.graph, self.target, self.inputs = graph, target, tuple(inputs)
        names = [i.name for i in inputs]
        self.fed = [names.index(graph.names[n]) for n in graph.inputs]
        self.storage: StoragePlan = graph.attrs["storage"]
        constants = [n for n in graph.nodes if n.op is not None and n.op.name == "constant"]
        self.constants = [constant_array(n.params["value"]) for n in constants]
        self.first_state = len(self.constants)
        self.constants += [state.memory[n.name] for n in graph.states]

    def program(self) -> Program:
        g = self.graph
        found = [(n, s) for n in g.nodes if (s := self.step(n)) is not None]
        steps, names = with_epilogues([s for _, s in found]), [g.names[n] for n, _ in found]
        for copy in self.storage.copies:
            source, target = self.at(copy.source, copy.entry), self.at(copy.target, copy.entry)
            if source != target:
                steps.append(Copy(source, target))
                names.append("")
        return Program(
            inputs=tuple((i.name, i.dtype, i.declared) for i in self.inputs),
            outputs=tuple((g.dtype(e), g.shape(e)) for e in g.outputs),
            steps=tuple(steps),
            guards=self.guards(),
            slots=self.storage.slots,
            constants=tuple(self.constants),
            target=self.target,
            names=tuple(names),
        )

    def guards(self) -> tuple[tuple[Extent, Extent, str], ...]:
        """The equalities that a call checks; not those of an input that a pass took away."""
        told = symbols_of(n for i in self.inputs for n in i.declared)
        own = [guard for i in self.inputs for guard in i.guards]
        found = (*own, *self.graph.attrs.get("shape_guards", ()))
        return tuple(guard for guard in found if symbols_of(guard[:2]) <= told)

    def at(self, place: Any, entry: Entry) -> Ref:
        """A reference to a storage place, with the shape of what lies there."""
        kind, index = place.home.value, place.index
        if place.home is Home.STATE:
            kind, index = "constant", self.first_state + index
        elif place.home is Home.INPUT:
            index = self.fed[index]
        return Ref(kind, index, self.graph.shape(entry), self.graph.dtype(entry))

    def ref(self, entry: Entry) -> Ref:
        """Where an entry lives."""
        return self.at(self.storage[entry], entry)

    def step(self, node: Node) -> Step | None:
        """What a node runs."""
        if node.op is None or node.op.name == "constant":
            return None
        if all(e in self.storage.aliases for e in node.entries):
            return Alias(node.label, self.ref(node.entries[0]))
        rtc = self.graph.attrs["rtc"].get(node)
        if rtc is not None and rtc.entry is not None:
            refs = (*map(self.ref, node.inputs), *map(self.ref, node.entries))
            return Launch(rtc.kernel, rtc.entry, refs)
        if TLibraryCall.get(node.op.name) == "gemm" and self.multiplies(self.dtype(node)):
            return self.gemm(node)
        if TLibraryCall.get(node.op.name) == "gemm_sum" and self.dtype(node) in GEMM:
            return self.gemm_sum(node)
        if TLibraryCall.get(node.op.name) == "convolution" and self.dtype(node) in GEMM:
            return self.convolution(node)
        if TLibraryCall.get(node.op.name) == "window_products" and self.dtype(node) == "float32":
            return self.window_products(node)
        return self.python(node)

    def python(self, node: Node) -> Python:
        """A step in Python: programs of graphs that the node holds, or NumPy."""
        assert node.op is not None
        if FHostCall.get(node.op.name) is not None and self.nested is not None:
            role = Role.HOST
        elif THostLibrary.get(node.op.name) is not None:
            role = Role.LIBRARY
        else:
            role = Role.INTERPRETED
        return Python(
            node.label,
            python_function(node, self.nested),
            tuple(map(self.ref, node.inputs)),
            tuple(map(self.ref, node.entries)),
            role,
        )

    def multiplies(self, dtype: str) -> bool:
        """Whether a library may have products of a dtype."""
        return dtype in GEMM or (dtype in HALVES and self.target.device == "cuda")

    def dtype(self, node: Node) -> str:
        return self.graph.dtype(node.entries[0]).name

    def gemm(self, node: Node) -> Library:
        """Products of matrices for BLAS."""
        contract = rules.contraction_of(node)
        assert isinstance(contract, Contract)
        rank = len(contract.batch)
        batch_a, batch_b = (
            (1,) * (rank + 2 - len(s)) + s[:-2] for s in map(self.graph.shape, node.inputs)
        )
        m, n, k = contract.m, contract.n, contract.k
        flags = contract.transpose_a, contract.transpose_b
        product = Product(batch_a, batch_b, m, n, k, *flags)
        refs = (*map(self.ref, node.inputs), self.ref(node.entries[0]))
        what = f"({numel(contract.batch)}, {m}, {k}) x ({k}, {n})"
        flops = 2 * numel(contract.batch) * m * n * k
        if self.dtype(node) in HALVES:
            own = self.python(node)
            views = [r.view for r in refs]
            called = "python", own.function, views[:2], views[2:]
            return Library("numpy", what, refs, called, flops, product)
        name = GEMM[self.dtype(node)]
        places, ints = [r.place for r in refs], tuple(map(int, flags))
        row = ("gemm", name, builtin(name), places, batch_a, batch_b, m, n, k, ints)
        by = library_name(m, n, k, *flags, name == "gemm_f32")
        return Library(by, what, refs, row, flops, product)

    def gemm_sum(self, node: Node) -> Library:
        """A sum of products of matrices, which BLAS adds up in place."""
        flips = node.params["transpose_a"], node.params["transpose_b"]
        m, n = self.graph.shape(node.entries[0])
        steps = [self.graph.shape(e)[0 if flips[0] else 1] for e in node.inputs[::2]]
        name = GEMM[self.dtype(node)]
        refs = (*map(self.ref, node.inputs), self.ref(node.entries[0]))
        flags = tuple(map(int, flips))
        places = [r.place for r in refs]
        row = ("gemm_sum", name, builtin(f"{name}_sum"), places, m, n, steps, flags)
        total = sum(steps[1:], steps[0])
        what = f"{len(steps)} products, ({m}, {total}) x ({total}, {n}) in all"
        by = library_name(m, n, steps[0], *flips, name == "gemm_f32")
        parts = (Product((), (), m, n, k, *flips) for k in steps)
        return Library(by, what, refs, row, 2 * m * n * total, ProductSum(tuple(parts)))

    def convolution(self, node: Node) -> Library:
        """A convolution for oneDNN, or for BLAS by its windows."""
        from passkit.runtime.native import convolution  # few programs have one

        c = rules.contraction_of(node)
        assert isinstance(c, Convolution)
        refs = (*map(self.ref, node.inputs), self.ref(node.entries[0]))
        constant = node.inputs[1].node.op is CONSTANT
        itemsize = self.graph.dtype(node.entries[0]).nbytes
        places = [r.place for r in refs]
        (result,) = node.entries
        only = result in self.graph.outputs and not self.graph.users.get(result)
        stream = max(1, self.target.stream_apart) if only else 0
        head = "convolution", convolution.entry(), itemsize, places, tuple(c)
        row = (*head, constant, stream, None)
        what = f"{(c.batch, *c.size, c.channels)} -> {c.filters}"
        turns = numel(c.window) * (c.channels // c.groups)
        flops = 2 * c.batch * numel(c.result) * c.filters * turns
        return Library("convolution", what, refs, row, flops, c)

    def window_products(self, node: Node) -> Library:
        """The gradient of a filter for oneDNN, or for BLAS by windows."""
        from passkit.runtime.native import convolution  # few programs have one

        c = rules.contraction_of(node)
        assert isinstance(c, Convolution)
        refs = (*map(self.ref, node.inputs), self.ref(node.entries[0]))
        row = ("window_products", convolution.entry(), [r.place for r in refs], tuple(c))
        what = f"{(*c.window, c.channels, c.filters)} of {(c.batch, *c.result)} windows"
        flops = 2 * c.batch * numel(c.result) * c.filters * numel(c.window) * c.channels
        return Library("convolution", what, refs, row, flops, FilterGradient(c))


def with_epilogues(steps: Sequence[Step]) -> list[Step]:
    """Let convolutions run the kernels behind them row by row, where these can be run so.

    A kernel that stores over what the convolution reads is left to run by itself.
    """
    joined = list(steps)
    for k, (step, following) in enumerate(pairwise(steps)):
        if not isinstance(step, Library) or step.row[0] != "convolution":
            continue
        if not isinstance(following, Launch):
            continue
        sources = {r.place for r in step.reads}
        if sources & {r.place for r in following.writes}:
            continue
        epilogue = epilogue_of(following, step.refs[-1])
        if epilogue is not None:
            joined[k] = evolve(step, row=(*step.row[:-1], tuple(epilogue)))
    return joined


def python_function(
    node: Node, nested: Callable[[Graph], Callable[..., list[Any]]] | None = None
) -> Callable[..., None]:
    """A function of sizes, input arrays and result arrays that fills the results by NumPy.

    An operator that holds graphs runs them as ``nested`` makes programs of them.
    """
    assert node.op is not None
    held = FHostCall.get(node.op.name) is not None and nested is not None
    running = rules.call(FHostCall, node, node, nested) if held else None

    def run(sizes: Mapping[str, int], inputs: list[Any], outputs: list[Any]) -> None:
        with np.errstate(all="ignore"):
            found = running(*inputs) if running is not None else compute(node, inputs, sizes)
        for target, value in zip(outputs, found, strict=True):
            target[...] = value

    return run
