"""Plans: compiled executables for sequences of operations in relative form.

A *relative operation* is a tuple ``(operation, extents, *operands)``. Every array of a sequence has
a number, in the order of first appearance: new inputs of an operation first, then its result. An
operand is the number of an array that appeared before, or a pair ``(dtype, dims)`` for a new input.
A dim ``k >= 0`` is the symbol of an extent, equal for equal extents; ``-n - 1`` is the extent n
itself. ``extents`` are dims that are parameters of the operation, such as the shape of `reshape`.

So one plan serves all sizes with the same pattern of equal extents. Extents of 0 and 1 stand for
themselves, since they decide about broadcasting, and so do those of last axes with few elements
together, which kernels unroll.

Python numbers are inputs, whatever their values. Those that are equal when a plan is made are one
input of its executables, so that equal subexpressions are computed once. When they differ for the
first time, the plan is compiled again for any numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any

from attrs import define

from passkit.errors import PasskitError
from passkit.graph.call import find_operator
from passkit.graph.graph import Graph
from passkit.graph.node import Entry, Node, var
from passkit.passes.apply import ApplyPasses
from passkit.program.executable import Executable
from passkit.streams.device import StreamDevice, host_array
from passkit.streams.operation import Operation
from passkit.streams.recorder import ArrayType, Value
from passkit.values.dtype import dtype_of
from passkit.values.size import Extent, Size, symbols_of

MAX_FLUSHES = 64


def extent_of(dim: int, dims: Sequence[int] | None) -> Extent:
    """Return the extent of a dim: -dim - 1 for a negative one; else ``dims[dim]``.

    If ``dims`` is None, the latter is a symbol, such as d0 for the dim 0.
    """
    if dim < 0:
        return -dim - 1
    return Size.symbol(f"d{dim}") if dims is None else dims[dim]


def node_name(operation: str, position: int) -> str:
    """Return the name of the node for an operation of a plan, such as "multiply_2"."""
    return f"{operation}_{position}"


def _named(result: Any, name: str, operands: Sequence[Any]) -> Any:
    """Return the result of an operation, or the tuple of its results, from nodes with names.

    The node of the result gets ``name``, and those before it, down to ``operands``, names in its
    scope, such as "matmul_2/transpose". Variables and constants keep theirs.
    """
    entries = result if isinstance(result, tuple) else (result,)
    results = {e.node for e in entries}
    listed = [e for o in operands for e in (o if isinstance(o, tuple) else (o,))]
    copies: dict[Node, Node] = {e.node: e.node for e in listed}

    def renamed(node: Node) -> Node:
        """Return the copy of a node with its name, or the node itself if it is to keep its name.

        The recursion is as deep as the operation's own nodes.
        """
        if node not in copies:
            inputs = [renamed(e.node).entries[e.index] for e in node.inputs]
            if node.op is None or node.op.name == "constant":
                copies[node] = node
            else:
                inner = name if node in results else f"{name}/{node.op.name}"
                copies[node] = node.replaced(inputs, name=inner)
        return copies[node]

    named = tuple(renamed(e.node).entries[e.index] for e in entries)
    return named if isinstance(result, tuple) else named[0]


Origin = tuple["Plan", int]
"""A plan and the position of one of its operations, whose result it could have written."""
Execution = tuple[
    Callable[..., Any],
    tuple[int, ...],
    tuple[int, ...],
    tuple[int, ...] | None,
    int,
    tuple[int, ...],
    tuple[int, ...],
    tuple[Origin, ...],
    tuple[int, ...],
    tuple[int, ...],
]
"""What the recorder needs to repeat an execution: a function of arrays; the positions of the inputs
that it gets, and of the operations whose results it returns; its donors as in `PlanVariant`, or
None; the number of its kernels and library calls; ``kept`` and ``unwritten`` as in `Flush`; the
origins that the latter get; ``used`` as in `Flush`; and those of ``aged`` that it writes, which
keep their origins. With donors, the function gets a list of arrays for the results first."""


@define
class Flush:
    """The effect of one execution of a plan, for certain values that are held and waited for.

    All are positions of operations, sorted.

    Attributes:
        state: the flags of the queued values, see `Queue.state`.
        outputs: those whose results are written.
        computed: those that run.
        aged: those that run although an earlier execution could have written their results.
        used: those of ``aged`` that are waited for, or that operations read which came later.
        kept: those that stay pending.
        unwritten: those of ``kept`` whose results array objects hold.
        variant: the executable, if it serves all extents and was compiled; else None.
    """

    state: bytes
    outputs: tuple[int, ...]
    computed: tuple[int, ...]
    aged: tuple[int, ...]
    used: tuple[int, ...]
    kept: tuple[int, ...]
    unwritten: tuple[int, ...]
    variant: PlanVariant | None = None


class PlanVariant:
    """An executable for the operations of a plan, or part of them, and certain results.

    Attributes:
        executable: computes the results.
        outputs: positions of the operations whose results it returns.
        inputs: positions of its arguments among the plan's inputs.
        donors: for each result, the position in ``inputs`` of the argument over which it may be
            stored, or -1.
        has_donors: whether any result may be stored over an argument.
        launches: the number of kernels and library calls of one run.
        is_native: whether it is compiled; an executable interprets where there is no compiler.
        run: ``run(*arrays)`` returns the results for arguments.
        run_into: ``run_into(out, *arrays)`` also takes a list of arrays for the results, None for
            each that is to be allocated.
    """

    __slots__ = (
        "donors",
        "executable",
        "has_donors",
        "inputs",
        "is_native",
        "launches",
        "outputs",
        "run",
        "run_into",
    )

    def __init__(
        self,
        executable: Executable,
        outputs: tuple[int, ...],
        inputs: tuple[int, ...],
        device: StreamDevice | None = None,
    ) -> None:
        self.executable, self.outputs, self.inputs = executable, outputs, inputs
        self.donors = executable.donors
        self.has_donors = any(donor >= 0 for donor in self.donors)
        self.launches = executable.num_steps
        self.is_native = hasattr(executable, "run_positional")
        run_into: Any = getattr(executable, "run_into", None)
        self.run: Any = getattr(executable, "run_positional", None)
        self.run_into: Any = run_into
        if device is not None:
            self.run, self.run_into = device.runners(run_into)


class Plan:
    """A sequence of operations in relative form, with its compiled variants.

    Args:
        keys: the operations in relative form.
        equal_inputs: pairs of positions of inputs, a later and an earlier one, which are equal
            numbers in every execution so far.

    Attributes:
        keys, equal_inputs: as above.
        variants: executables by the positions of the results that they write; and by the extents,
            for sequences that can only be compiled for known extents.
        stored: the keys of variants that an earlier process compiled, and stored.
        needs_extents: whether it can only be compiled for known extents.
        eager_writes: positions whose results are written although nobody waits for them, because
            such results were needed by later operations before.
        flushes: what executions do, by the state of the queue.
        known: executions that the recorder repeats by itself, by `execution_key`.
        failure: why compiling it failed, then it is not tried again; "" if it did not.
    """

    __slots__ = (
        "_slices",
        "eager_writes",
        "equal_inputs",
        "failure",
        "flushes",
        "keys",
        "known",
        "needs_extents",
        "stored",
        "variants",
    )

    def __init__(
        self, keys: Sequence[Hashable], equal_inputs: tuple[tuple[int, int], ...] = ()
    ) -> None:
        self.keys: tuple[Any, ...] = tuple(keys)
        self.equal_inputs = equal_inputs
        self.variants: dict[Hashable, PlanVariant] = {}
        self.stored: set[Hashable] = set()
        self.needs_extents = False
        self.eager_writes: set[int] = set()
        self.flushes: dict[Hashable, Flush] = {}
        self.known: dict[bytes, Execution] = {}
        self.failure = ""
        self._slices: dict[tuple[int, ...], tuple[int, ...]] = {}

    def add_flush(self, key: Hashable, flush: Flush) -> None:
        """Remember what an execution does in the state ``key`` of the queue and settings.

        If MAX_FLUSHES states are remembered already, these are forgotten before.
        """
        if len(self.flushes) >= MAX_FLUSHES:
            self.flushes.clear()
        self.flushes[key] = flush

    def remember(self, key: bytes, flush: Flush, variant: PlanVariant) -> None:
        """Let the recorder repeat an execution in the state ``key`` of the queue.

        If MAX_FLUSHES states are remembered already, these are forgotten before.

        Args:
            key: the state of the queue, and the extents if the plan serves certain ones only.
            flush: the effect of the execution.
            variant: the executable that it runs.
        """
        if len(self.known) >= MAX_FLUSHES:
            self.known.clear()
        donors = variant.donors if variant.has_donors else None
        self.known[key] = (
            variant.run if donors is None else variant.run_into,
            variant.inputs,
            variant.outputs,
            donors,
            variant.launches,
            flush.kept,
            flush.unwritten,
            tuple((self, position) for position in flush.unwritten),
            flush.used,
            tuple(position for position in flush.aged if position in flush.outputs),
        )

    def _forget_flushes(self) -> None:
        """Forget what executions of the plan do in each state, so that it is determined again."""
        self.flushes.clear()
        self.known.clear()

    def write_eagerly(self, position: int) -> None:
        """From now on, write the result of the operation at a position though nobody waits for it.

        What executions do is forgotten, and determined again.
        """
        if position not in self.eager_writes:
            self.eager_writes.add(position)
            self._forget_flushes()

    def generalize(self) -> None:
        """From now on, serve any numbers: forget `equal_inputs`, and what was compiled for them."""
        self.equal_inputs = ()
        self.variants.clear()
        self.stored.clear()
        self._forget_flushes()

    def release(self) -> bool:
        """Drop the executables, which are in the cache on disk; count their keys as stored.

        Returns: Whether a variant of this plan was ever compiled, in any process.
        """
        self.stored.update(self.variants)
        self.variants.clear()
        self._forget_flushes()
        return bool(self.stored)

    def computed(self, outputs: tuple[int, ...]) -> tuple[int, ...]:
        """Return the positions of the operations that ``outputs`` depend on, sorted.

        These themselves are among them. The positions are remembered.
        """
        positions = self._slices.get(outputs)
        if positions is None:
            positions = self._slices[outputs] = self._backward_slice(outputs)
        return positions

    def _backward_slice(self, outputs: tuple[int, ...]) -> tuple[int, ...]:
        """Return, sorted, the positions of ``outputs`` and of operations that they depend on."""
        producers: dict[int, int] = {}
        operands: list[list[int]] = []
        number = 0
        for position, (_, _, *items) in enumerate(self.keys):
            numbers = []
            for item in items:
                if isinstance(item, int):
                    numbers.append(item)
                else:
                    number += 1
            operands.append(numbers)
            producers[number] = position
            number += 1
        needed: set[int] = set()
        pending = list(outputs)
        while pending:
            position = pending.pop()
            if position not in needed:
                needed.add(position)
                pending += [producers[n] for n in operands[position] if n in producers]
        return tuple(sorted(needed))

    def graph(
        self,
        outputs: tuple[int, ...],
        dims: Sequence[int] | None = None,
        has_names: bool = False,
    ) -> tuple[Graph, tuple[int, ...]]:
        """Build the graph that computes the results of operations.

        Args:
            outputs: positions of the operations.
            dims: the extents by symbol; None keeps symbols.
            has_names: whether nodes are named after the operations, see `node_name`.

        Returns: The graph, and the position among the plan's inputs of each of its inputs.

        Raises: PasskitError if an operation cannot be built for symbolic extents.
        """
        computed = set(self.computed(outputs))
        equal_inputs = dict(self.equal_inputs)
        by_number: list[Any] = []
        inputs: list[Entry] = []
        results: dict[int, Any] = {}
        for position, (operation, extents, *items) in enumerate(self.keys):
            operands = []
            for item in items:
                if isinstance(item, int):
                    operands.append(by_number[item])
                    continue
                dtype, item_dims = item
                index = len(inputs)
                if index in equal_inputs:
                    inputs.append(inputs[equal_inputs[index]])
                else:
                    shape = tuple(extent_of(d, dims) for d in item_dims)
                    inputs.append(var(f"x{index}", shape, dtype_of(dtype)))
                operands.append(inputs[-1])
                by_number.append(inputs[-1])
            result = None
            if position in computed:
                result = self._build(operation, extents, operands, dims)
                if has_names:
                    result = _named(result, node_name(operation.name, position), operands)
            by_number.append(result)
            results[position] = result
        graph = Graph([results[p] for p in outputs])
        if dims is None:
            graph = self._sized(graph, computed, inputs)
        if any(n.op is not None and n.op.name == "slice" for n in graph.nodes):
            graph = ApplyPasses(graph, "PushSlices")
        position_of = {f"x{k}": k for k in range(len(inputs))}
        return graph, tuple(position_of[n.name] for n in graph.inputs)

    def _sized(self, graph: Graph, computed: Iterable[int], inputs: Sequence[Entry]) -> Graph:
        """Return a graph whose inputs determine the extents that its operations have as parameters.

        They can be extents of arrays that only other operations read. Then the first output gets
        such an array as a further input, by the operator ``sized_by``.

        Args:
            graph: the graph.
            computed: the positions of its operations.
            inputs: the inputs of all operations.
        """
        extents = {d for k in computed for d in self.keys[k][1] or () if d >= 0}
        if not extents:
            return graph
        open_symbols = {f"d{d}" for d in extents}
        open_symbols -= symbols_of(node.entries[0].shape for node in graph.inputs)
        added = []
        for entry in inputs:
            symbols = symbols_of(entry.shape or ())
            if symbols & open_symbols:
                open_symbols -= symbols
                added.append(entry)
        if not added:
            return graph
        first, *others = graph.outputs
        return Graph([find_operator("sized_by")(first, *added), *others])

    def _build(
        self,
        operation: Operation,
        extents: tuple[int, ...] | None,
        operands: list[Any],
        dims: Sequence[int] | None,
    ) -> Entry | tuple[Entry, ...]:
        """Return the result of one operation as an entry, or a tuple of them for several results.

        ``extents`` are the dims of its parameter ``shape``, None without one; ``dims`` are the
        extents by symbol, None for symbols.

        Raises: PasskitError if it cannot be built for these extents.
        """
        params: dict[str, Any] = {}
        if extents is not None:
            params["shape"] = tuple(extent_of(d, dims) for d in extents)
        assert operation.build is not None
        return operation.build(*operands, **operation.params, **params)  # type: ignore[no-any-return]

    def variant_key(self, outputs: tuple[int, ...], dims: Sequence[int]) -> Hashable:
        """Return the key of a variant among `variants`.

        It is ``outputs``; or a pair of them and ``dims``, if the plan needs known extents.
        """
        return (outputs, tuple(dims)) if self.needs_extents else outputs

    def is_ready(self, outputs: tuple[int, ...], dims: Sequence[int]) -> bool:
        """Return whether a variant that writes ``outputs`` was compiled, in any process so far.

        ``dims`` are the extents by symbol, which count if variants need known ones.
        """
        key = self.variant_key(outputs, dims)
        return key in self.variants or key in self.stored

    def variant(
        self, outputs: tuple[int, ...], dims: Sequence[int], device: StreamDevice | None = None
    ) -> tuple[PlanVariant, bool]:
        """Return the variant that writes these results, and whether it was compiled by this call.

        If it cannot be compiled for symbolic extents, it is compiled for ``dims`` alone, and so are
        all later variants of the plan.

        Args:
            outputs: positions of the operations whose results are written, sorted.
            dims: the extents by symbol.
            device: what it is compiled for, None for the CPU; the same in all calls.

        Raises: PasskitError if the operations cannot be compiled.
        """
        key = self.variant_key(outputs, dims)
        variant = self.variants.get(key)
        if variant is not None:
            return variant, False
        fixed = dims if self.needs_extents else None
        try:
            graph, inputs = self.graph(outputs, fixed)
            if device is None:
                executable = Executable(graph, {}, reads_plans=True)
            else:
                executable = device.compile(graph)
        except PasskitError:
            if self.needs_extents:
                raise
            # Symbols may leave open what numbers decide, such as whether a reshape is possible.
            self.needs_extents = True
            return self.variant(outputs, dims, device)
        variant = PlanVariant(executable, outputs, inputs, device)
        self.variants[key] = variant
        return variant, True


def interpret(plan_values: Sequence[Value], computed: Sequence[int]) -> None:
    """Compute the results of pending values at once, operation by operation, in NumPy.

    Operands on a device are copied to the host; results are NumPy arrays.

    Args:
        plan_values: the values of a queue by position.
        computed: positions to compute, in order; their buffers are set, to a tuple of arrays for an
            operation with several results. The values stay pending.

    Raises: what an operation raises, DeviceError where copying to the host fails; later positions
    keep no buffer then.
    """
    for position in computed:
        value = plan_values[position]
        assert value.operation is not None
        arrays = [host_array(v.buffer) for v in value.operands]
        results = value.operation.evaluate(arrays)
        value.buffer = results[0] if type(value.type) is ArrayType else results
