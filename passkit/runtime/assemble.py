"""Assembly: a planned graph, with its kernels and storage plan, becomes a `RuntimeProgram`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from attrs import evolve

from passkit.ast import Contract
from passkit.ast.folds import Convolution
from passkit.graph import attribute_calls
from passkit.graph.graph import Graph
from passkit.graph.node import CONSTANT, Entry, Node
from passkit.graph.op import FHostCall, THostLibrary, TLibraryCall
from passkit.graph.storage import Home, Storage, StoragePlan
from passkit.runtime.epilogue import row_epilogue
from passkit.runtime.interpret import compute
from passkit.runtime.native import convolution_unit
from passkit.runtime.native.convolution import possible_units
from passkit.runtime.native.convolution_unit import ConvolutionUnit
from passkit.runtime.native.launcher import builtin
from passkit.runtime.native.matrix_products import library_name
from passkit.runtime.program import (
    AliasStep,
    ArrayRef,
    CopyStep,
    FilterGradient,
    LaunchStep,
    LibraryCall,
    MatrixProduct,
    MatrixProductSum,
    ProgramStep,
    PythonCall,
    PythonCallKind,
    RuntimeProgram,
    constant_array,
)
from passkit.runtime.row_chain import row_chains
from passkit.runtime.state import State
from passkit.runtime.table_binder import RowChain
from passkit.target import Target
from passkit.values.dtype import DType
from passkit.values.size import Extent, Shape, numel, symbols_of

GEMM = {"float32": "gemm_f32", "float64": "gemm_f64"}
"""The built-in kernel for matrix products of each dtype."""
HALF_DTYPES = ("float16", "bfloat16")
"""Dtypes whose products only CUDA's libraries compute; on other devices NumPy does."""

NestedCompiler = Callable[[Graph], Callable[..., list[Any]]]
"""Compiles a graph that an operator contains, to a function of arrays by input name."""


class ProgramInput(NamedTuple):
    """An input of a program.

    Attributes:
        name: the name under which a call feeds it.
        dtype: the element type.
        declared: the shape as the user declared it.
        planned: the shape that the plan relies on; sizes that operators require to be equal are
            one size in it.
    """

    name: str
    dtype: DType
    declared: Shape
    planned: Shape

    @property
    def guards(self) -> list[tuple[Extent, Extent, str]]:
        """The extents that the plan replaced by others: (declared, planned, text for messages).

        Both must be equal in a call. Dimensions that are the same in both shapes are left out.
        """
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
    inputs: Sequence[ProgramInput],
    nested: NestedCompiler | None = None,
) -> RuntimeProgram:
    """Build the program of a planned graph.

    Args:
        graph: a graph with the annotations "rtc" (kernels) and "storage" (a `StoragePlan`).
        state: the values of state variables.
        target: the target that the graph was planned for.
        inputs: the inputs of a call, in order, including those that no operator reads any more.
        nested: the compiler of graphs that operators contain; None to interpret them.

    Returns:
        A program with a step for each node except variables and constants, and after them the
        copies of the storage plan, to outputs and state variables.

    Raises:
        CompilerError: The launcher, or the unit of convolutions, cannot be compiled.
        CacheError: Others can write to the cache folder.
        SettingError: The launcher is needed, and PASSKIT_THREADS is no number of threads.
        RuleError: An FHostCall cannot be called with a node and ``nested``.
        PasskitError: What ``nested`` raises.
    """
    return _Assembler(graph, state, target, inputs, nested).program()


class _Assembler:
    """Translates the nodes of one graph into steps; the arguments are those of `assemble`.

    Attributes:
        input_positions: the position of each of the graph's inputs among the program's.
        constants: the arrays of constants, then those of state variables.
        first_state: the position of the first state variable in ``constants``.
    """

    def __init__(
        self,
        graph: Graph,
        state: State,
        target: Target,
        inputs: Sequence[ProgramInput],
        nested: NestedCompiler | None = None,
    ) -> None:
        self.nested = nested
        self.graph, self.target, self.inputs = graph, target, tuple(inputs)
        names = [i.name for i in inputs]
        self.input_positions = [names.index(graph.names[n]) for n in graph.inputs]
        self.storage: StoragePlan = graph.attrs["storage"]
        constants = [n for n in graph.nodes if n.op is not None and n.op.name == "constant"]
        self.constants = [constant_array(n.params["value"]) for n in constants]
        self.first_state = len(self.constants)
        self.constants += [state.memory[n.name] for n in graph.states]

    def program(self) -> RuntimeProgram:
        """Return the program: the nodes' steps, then copies, with inputs, outputs and constants.

        A copy whose source and target are the same memory is left out. Raises: CompilerError,
        CacheError or SettingError where the launcher or the unit of convolutions cannot be compiled
        or loaded.
        """
        graph = self.graph
        pairs = [(n, s) for n in graph.nodes if (s := self._step(n)) is not None]
        steps: list[ProgramStep] = [step for _, step in pairs]
        names = [graph.names[node] for node, _ in pairs]
        donors = tuple(k if k < 0 else self.input_positions[k] for k in self.storage.donors)
        chains: list[RowChain] = []
        if not self.target.device:
            order, chains = row_chains(steps, donors)
            steps, names = [steps[k] for k in order], [names[k] for k in order]
        steps = with_epilogues(steps)
        for copy in self.storage.copies:
            source = self._ref_at(copy.source, copy.entry)
            target = self._ref_at(copy.target, copy.entry)
            if source != target:
                steps.append(CopyStep(source, target))
                names.append("")
        return RuntimeProgram(
            inputs=tuple((i.name, i.dtype, i.declared) for i in self.inputs),
            outputs=tuple((graph.dtype(e), graph.shape(e)) for e in graph.outputs),
            steps=tuple(steps),
            guards=self._guards(),
            slots=self.storage.slots,
            donors=donors,
            constants=tuple(self.constants),
            target=self.target,
            names=tuple(names),
            chains=tuple(chains),
        )

    def _guards(self) -> tuple[tuple[Extent, Extent, str], ...]:
        """Return the pairs of sizes that a call must find equal: (size, size, text for messages).

        Pairs with a size that no declared input has are left out: a pass removed that input.
        """
        declared_sizes = symbols_of(n for i in self.inputs for n in i.declared)
        input_guards = [guard for i in self.inputs for guard in i.guards]
        guards = (*input_guards, *self.graph.attrs.get("shape_guards", ()))
        return tuple(guard for guard in guards if symbols_of(guard[:2]) <= declared_sizes)

    def _ref_at(self, storage: Storage, entry: Entry) -> ArrayRef:
        """Return a reference to a storage of the memory plan, with an entry's shape and dtype.

        State variables are constants of the program, after those of the graph; inputs are numbered
        as the program numbers them.
        """
        kind, index = storage.home.value, storage.index
        if storage.home is Home.STATE:
            kind, index = "constant", self.first_state + index
        elif storage.home is Home.INPUT:
            index = self.input_positions[index]
        return ArrayRef(kind, index, self.graph.shape(entry), self.graph.dtype(entry))

    def _ref(self, entry: Entry) -> ArrayRef:
        """Return a reference to the storage of an entry."""
        return self._ref_at(self.storage[entry], entry)

    def _operands_and_result(self, node: Node) -> tuple[ArrayRef, ...]:
        """Return references to the inputs of a node and to its first result."""
        return (*map(self._ref, node.inputs), self._ref(node.entries[0]))

    def _dtype(self, node: Node) -> str:
        """Return the name of the dtype of a node's first result."""
        return self.graph.dtype(node.entries[0]).name

    def _step(self, node: Node) -> ProgramStep | None:
        """Return the step of a node; None for variables and constants.

        It is an AliasStep where all results share other memory, else a LaunchStep where the node
        has a compiled kernel, else a LibraryCall for a matrix product, a convolution or a gradient
        of its filters that a library computes in this dtype, else a PythonCall. Raises:
        CompilerError, CacheError or SettingError where the launcher or the unit of convolutions
        cannot be compiled or loaded.
        """
        if node.op is None or node.op.name == "constant":
            return None
        if all(e in self.storage.aliases for e in node.entries):
            return AliasStep(node.label, self._ref(node.entries[0]))
        rtc = self.graph.attrs["rtc"].get(node)
        if rtc is not None and rtc.entry is not None:
            refs = (*map(self._ref, node.inputs), *map(self._ref, node.entries))
            return LaunchStep(rtc.kernel, rtc.entry, refs)
        call, dtype = TLibraryCall.get(node.op.name), self._dtype(node)
        if call == "gemm" and self._has_library_products(dtype):
            return self._gemm(node)
        if call == "gemm_sum" and dtype in GEMM:
            return self._gemm_sum(node)
        if call == "convolution" and dtype in GEMM:
            return self._convolution(node)
        if call == "window_products" and dtype == "float32":
            return self._window_products(node)
        return self._python_call(node)

    def _python_call(self, node: Node) -> PythonCall:
        """Return the step that evaluates a node in Python.

        Its kind is HOST for an operator with FHostCall if there is a nested compiler, else LIBRARY
        with THostLibrary, else INTERPRETED.
        """
        assert node.op is not None
        if FHostCall.get(node.op.name) is not None and self.nested is not None:
            kind = PythonCallKind.HOST
        elif THostLibrary.get(node.op.name) is not None:
            kind = PythonCallKind.LIBRARY
        else:
            kind = PythonCallKind.INTERPRETED
        return PythonCall(
            name=node.label,
            function=python_function(node, self.nested),
            reads=tuple(map(self._ref, node.inputs)),
            writes=tuple(map(self._ref, node.entries)),
            kind=kind,
            node=node,
        )

    def _has_library_products(self, dtype: str) -> bool:
        """Return whether a library multiplies matrices of the dtype of this name.

        That is so for float32 and float64 on every target, for 16-bit floats on CUDA only.
        """
        return dtype in GEMM or (dtype in HALF_DTYPES and self.target.device == "cuda")

    def _gemm(self, node: Node) -> LibraryCall:
        """Return the library call for a batched matrix product, a node with FContract.

        The table entry of a product of 16-bit floats, which only CUDA's libraries compute,
        evaluates the node in NumPy. Raises: CompilerError where the launcher, whose kernel other
        products use, cannot be compiled; CacheError or SettingError where it cannot be loaded.
        """
        contract = attribute_calls.contraction_of(node)
        assert isinstance(contract, Contract)
        rank = len(contract.batch)
        batch_a, batch_b = (
            (1,) * (rank + 2 - len(s)) + s[:-2] for s in map(self.graph.shape, node.inputs)
        )
        m, n, k = contract.m, contract.n, contract.k
        flags = contract.transpose_a, contract.transpose_b
        operation = MatrixProduct(batch_a, batch_b, m, n, k, *flags)
        refs = self._operands_and_result(node)
        sizes_text = f"({numel(contract.batch)}, {m}, {k}) x ({k}, {n})"
        flops = 2 * numel(contract.batch) * m * n * k
        dtype = self._dtype(node)
        if dtype in HALF_DTYPES:
            views = [r.view for r in refs]
            python_entry = "python", self._python_call(node).function, views[:2], views[2:]
            return LibraryCall("numpy", sizes_text, refs, python_entry, flops, operation)
        kernel = GEMM[dtype]
        table_entry = (
            "gemm",
            kernel,
            builtin(kernel),
            [r.key for r in refs],
            batch_a,
            batch_b,
            m,
            n,
            k,
            tuple(map(int, flags)),
        )
        routine = library_name(m, n, k, *flags, kernel == "gemm_f32")
        return LibraryCall(routine, sizes_text, refs, table_entry, flops, operation)

    def _gemm_sum(self, node: Node) -> LibraryCall:
        """Return the library call for a sum of matrix products, which BLAS adds to the result.

        The inputs of ``node`` are pairs of matrices, multiplied pair by pair. Raises: CompilerError
        where the launcher cannot be compiled; CacheError or SettingError where it cannot be loaded.
        """
        flags = node.params["transpose_a"], node.params["transpose_b"]
        m, n = self.graph.shape(node.entries[0])
        inner_sizes = [self.graph.shape(e)[0 if flags[0] else 1] for e in node.inputs[::2]]
        kernel = GEMM[self._dtype(node)]
        refs = self._operands_and_result(node)
        table_entry = (
            "gemm_sum",
            kernel,
            builtin(f"{kernel}_sum"),
            [r.key for r in refs],
            m,
            n,
            inner_sizes,
            tuple(map(int, flags)),
        )
        total = sum(inner_sizes[1:], inner_sizes[0])
        sizes_text = f"{len(inner_sizes)} products, ({m}, {total}) x ({total}, {n}) in all"
        routine = library_name(m, n, inner_sizes[0], *flags, kernel == "gemm_f32")
        products = tuple(MatrixProduct((), (), m, n, k, *flags) for k in inner_sizes)
        operation = MatrixProductSum(products)
        flops = 2 * m * n * total
        return LibraryCall(routine, sizes_text, refs, table_entry, flops, operation)

    def _convolution(self, node: Node) -> LibraryCall:
        """Return the library call for a convolution; binding to shapes selects its kernel.

        Raises: CompilerError, CacheError or SettingError where a unit of convolutions cannot be
        compiled or loaded.
        """
        c = attribute_calls.contraction_of(node)
        assert isinstance(c, Convolution)
        refs = self._operands_and_result(node)
        (result,) = node.entries
        itemsize = self.graph.dtype(result).nbytes
        is_output_only = result in self.graph.outputs and not self.graph.users.get(result)
        table_entry = (
            "convolution",
            convolution_unit.entries(possible_units(c, itemsize)),
            itemsize,
            [r.key for r in refs],
            tuple(c),
            node.inputs[1].node.op is CONSTANT,
            max(1, self.target.stream_apart) if is_output_only else 0,
            None,
        )
        sizes_text = f"{(c.batch, *c.size, c.channels)} -> {c.filters}"
        terms = numel(c.window) * (c.channels // c.groups)
        flops = 2 * c.batch * numel(c.result) * c.filters * terms
        return LibraryCall("convolution", sizes_text, refs, table_entry, flops, c)

    def _window_products(self, node: Node) -> LibraryCall:
        """Return the library call for the gradient of a convolution's filters.

        Raises: CompilerError, CacheError or SettingError where a unit of convolutions cannot be
        compiled or loaded.
        """
        c = attribute_calls.contraction_of(node)
        assert isinstance(c, Convolution)
        refs = self._operands_and_result(node)
        keys = [r.key for r in refs]
        entries = convolution_unit.entries([ConvolutionUnit.LIBRARIES])
        table_entry = ("window_products", entries, keys, tuple(c))
        shape_text = f"{(*c.window, c.channels, c.filters)} of {(c.batch, *c.result)} windows"
        flops = 2 * c.batch * numel(c.result) * c.filters * numel(c.window) * c.channels
        return LibraryCall("convolution", shape_text, refs, table_entry, flops, FilterGradient(c))


def prefetch_convolutions(graph: Graph) -> None:
    """Start to compile the units of kernels for the convolutions of a graph; do not wait for them.

    Raises: CacheError where others can write to the cache folder; what FContract raises.
    """
    units: set[ConvolutionUnit] = set()
    for node in graph.nodes:
        if node.op is None or TLibraryCall.get(node.op.name) != "convolution":
            continue
        c = attribute_calls.contraction_of(node)
        if isinstance(c, Convolution) and graph.dtype(node.entries[0]).name in GEMM:
            units |= possible_units(c, graph.dtype(node.entries[0]).nbytes)
    convolution_unit.prefetch(sorted(units))


def with_epilogues(steps: Sequence[ProgramStep]) -> list[ProgramStep]:
    """Return a list of the steps in which convolutions have the kernel after them as epilogue.

    The table entry of such a convolution gets the fields of a `RowEpilogue`. The kernel remains in
    the list of steps; binding leaves out its launch. A kernel that writes to an array that the
    convolution reads, or cannot run row by row, is no epilogue.
    """
    merged = list(steps)
    for k, (step, following) in enumerate(pairwise(steps)):
        if not isinstance(step, LibraryCall) or step.table_entry[0] != "convolution":
            continue
        if not isinstance(following, LaunchStep):
            continue
        sources = {r.key for r in step.reads}
        if sources & {r.key for r in following.writes}:
            continue
        epilogue = row_epilogue(following, step.refs[-1])
        if epilogue is not None:
            merged[k] = evolve(step, table_entry=(*step.table_entry[:-1], tuple(epilogue)))
    return merged


def python_function(node: Node, nested: NestedCompiler | None = None) -> Callable[..., None]:
    """Return a function that evaluates a node in Python.

    Args:
        node: the node.
        nested: the compiler of graphs that the operator contains, used for an operator with
            FHostCall; None to interpret them.

    Returns:
        ``function(sizes, inputs, outputs)``, which takes the values of symbolic sizes by name and
        the input arrays, and fills the output arrays. It raises the errors of `compute`, or of the
        nested programs.

    Raises: RuleError if an FHostCall cannot be called with a node and ``nested``; what ``nested``
    raises, which is called at once.
    """
    assert node.op is not None
    runs_programs = FHostCall.get(node.op.name) is not None and nested is not None
    host_call = (
        attribute_calls.call_attribute(FHostCall, node, node, nested) if runs_programs else None
    )

    def run(sizes: Mapping[str, int], inputs: list[Any], outputs: list[Any]) -> None:
        """Compute the node on ``inputs``, and copy the results into ``outputs``.

        Raises: the errors of `compute`, or of the nested programs.
        """
        with np.errstate(all="ignore"):
            results = host_call(*inputs) if host_call is not None else compute(node, inputs, sizes)
        for output, result in zip(outputs, results, strict=True):
            output[...] = result

    return run
