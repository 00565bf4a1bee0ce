"""An interpreter of loop IR in final form: all threads of a block at once, as arrays in NumPy.

It shares nothing with the compiler but the classes of loop IR and the evaluation of single
expressions. Every access is checked: its bounds, that a vector access is aligned, and that elements
of shared memory and registers were stored before they are loaded. A block runs its statements in
lockstep, so that a missing barrier has no effect here; races are what `passkit.checks.ir_races`
and the emulator look for.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from attrs import field, frozen

from passkit.ast import Call, Const, Expr, left, right
from passkit.ir.loop import (
    Assign,
    Barrier,
    BarrierScope,
    Bind,
    Declare,
    DivideVector,
    Fence,
    For,
    If,
    IsAligned,
    KernelIR,
    LastBlock,
    LetStmt,
    LoopBuffer,
    PrepareDivisor,
    Return,
    Stmt,
    StorageScope,
    StoreStmt,
    ThreadIndex,
    VectorLoad,
    VectorStore,
    WarpReduce,
)
from passkit.ir.pack import PackIR, PackPhase
from passkit.runtime.evaluate import ExpressionEvaluator

Array = Any
WARP = 32
OF_NUMBERS = {"maximum_number": np.fmax, "minimum_number": np.fmin}


class KernelFault(Exception):  # noqa: N818
    """A fault of a kernel: an access out of bounds, of what nobody stored, or threads missing."""


@frozen(eq=False)
class Memory:
    """The elements of a buffer, and which of them have a value.

    Attributes:
        buffer: the buffer.
        data: its elements; of a register array, those of all threads one after the other.
        is_stored: which of them have a value.
        size: the elements of the buffer, for a register array those of one thread.
        starts: where the elements of each thread begin; 0 for what threads share.
    """

    buffer: LoopBuffer
    data: Array
    is_stored: Array
    size: int
    starts: Array

    @staticmethod
    def empty(buffer: LoopBuffer, threads: tuple[int, int]) -> Memory:
        """Return memory without values, for a register array of each thread."""
        size = int(buffer.extent)  # type: ignore[call-overload]
        is_register = buffer.scope is StorageScope.REGISTER
        count = math.prod(threads) if is_register else 1
        starts = np.arange(0, count * size, size).reshape(threads) if is_register else np.int64(0)
        data = np.zeros(count * size, buffer.dtype.numpy)
        return Memory(buffer, data, np.zeros(count * size, bool), size, starts)

    def at(self, index: Array, active: Array) -> Array:
        """Return where the elements of active threads are. Raises: KernelFault if out of bounds."""
        spread_index = spread(index, active.shape)
        chosen = spread_index[active]
        if some((chosen < 0) | (chosen >= self.size)):
            outside = chosen[(chosen < 0) | (chosen >= self.size)][0]
            name = self.buffer.name
            raise KernelFault(
                f"{name}[{outside}] is out of bounds, {name} has {self.size} elements"
            )
        return (spread_index + self.starts)[active] if self.starts.ndim else chosen

    def load(self, index: Array, active: Array) -> Array:
        """Return the elements of active threads. Raises: KernelFault for one without a value."""
        where = self.at(index, active)
        stored = self.is_stored.take(where)
        if not every(stored):
            bad = int(where[~stored][0]) % self.size
            raise KernelFault(f"{self.buffer.name}[{bad}] is loaded and nothing stored it")
        out = np.zeros(active.shape, self.data.dtype)
        out[active] = self.data.take(where)
        return out

    def store(self, index: Array, value: Array, active: Array) -> None:
        """Store the values of active threads. Raises: KernelFault if out of bounds."""
        where = self.at(index, active)
        self.data[where] = spread(value, active.shape)[active]
        self.is_stored[where] = True


def some(values: Array) -> bool:
    """Return whether one of some values is not 0, in a fifth of the time of `numpy.any`."""
    return bool(np.count_nonzero(values))


def every(holds: Array) -> bool:
    """Return whether all of some truth values hold."""
    return bool(np.count_nonzero(holds) == holds.size)


def spread(value: Array, shape: tuple[int, ...]) -> Array:
    """Return a value for each thread."""
    if isinstance(value, np.ndarray) and value.shape == shape:
        return value
    out = np.empty(shape, np.asarray(value).dtype)  # numpy.broadcast_to takes five times as long
    out[...] = value
    return out


class OperationEvaluator(ExpressionEvaluator):
    """The evaluation of expressions, with functions that only kernels call."""

    def function_of(self, x: Expr) -> tuple[Callable[..., Array], tuple[Expr, ...]]:
        """Return maxima and minima of numbers, which leave out NaN, too."""
        if isinstance(x, Call) and x.name in OF_NUMBERS:
            return OF_NUMBERS[x.name], x.args
        return super().function_of(x)


class ThreadEvaluator(OperationEvaluator):
    """The evaluation of expressions for all threads of a block."""

    leaves = (*ExpressionEvaluator.leaves, ThreadIndex, IsAligned)

    def __init__(self, block: BlockRun, active: Array) -> None:
        super().__init__(block.values, {}, {})
        self.block, self.active = block, active

    def leaf(self, x: Expr) -> Array:
        """Evaluate thread indices and alignments, too."""
        if isinstance(x, ThreadIndex):
            return self.block.indices[x.bind]
        if isinstance(x, IsAligned):
            return np.bool_(self.block.is_aligned)
        return super().leaf(x)

    def load(self, buffer: str, active: Array) -> Callable[[Array], Array]:
        """Return the function that loads elements of active threads."""
        threads = self.active if active is None else active & self.active
        threads = spread(threads, self.active.shape)
        return lambda index: self.block.memory[buffer].load(index, threads)


@frozen
class BlockRun:
    """The execution of one block.

    Attributes:
        kernel: the kernel.
        memory: its buffers by name.
        values: its variables by name.
        indices: the indices of block and threads.
        is_aligned: whether parameters count as aligned.
        counters: the counters of blocks.
        gone: where threads have returned.
    """

    kernel: KernelIR
    memory: dict[str, Memory]
    values: dict[str, Array]
    indices: Mapping[Bind, Array]
    is_aligned: bool
    counters: list[int]
    gone: Array = field(init=False)

    def __attrs_post_init__(self) -> None:
        launch = self.kernel.launch
        object.__setattr__(self, "gone", np.zeros((launch.y, launch.x), bool))

    def run(self) -> None:
        """Execute the block. Raises: KernelFault."""
        with np.errstate(all="ignore"):
            self.body(self.kernel.body, np.ones_like(self.gone))

    def value(self, x: Expr, active: Array) -> Array:
        """Return the value of an expression, one for each thread."""
        return spread(ThreadEvaluator(self, active).run(x), active.shape)

    def body(self, body: Sequence[Stmt], active: Array) -> None:
        """Execute statements for active threads."""
        for statement in body:
            here = active & ~self.gone
            if some(here):
                self.statement(statement, here)

    def statement(self, s: Stmt, active: Array) -> None:
        """Execute a statement for active threads."""
        match s:
            case LetStmt() | Declare():
                self.values[s.var.name] = self.value(s.value, active)
            case Assign(var, value):
                old = self.values[var.name]
                self.values[var.name] = np.where(active, self.value(value, active), old)
            case StoreStmt(buffer, index, value):
                where, value = self.value(index, active), self.value(value, active)
                self.memory[buffer].store(where, value, active)
            case VectorLoad():
                self.move(s.buffer, s.index, s.target, s.at, s.width, active)
            case VectorStore():
                self.move(s.source, s.at, s.buffer, s.index, s.width, active)
            case PrepareDivisor(name, value):
                self.values[name] = self.value(value, active)
            case DivideVector(target, source, divisor):
                by = divisor.value if isinstance(divisor, Const) else self.values[divisor]
                for k in range(self.memory[source].size):
                    index = np.full(active.shape, k)
                    dividend = self.memory[source].load(index, active)
                    self.memory[target].store(index, dividend / by, active)
            case WarpReduce():
                self.warp_reduce(s, active)
            case Barrier(scope):
                parts = self.warps(active) if scope is BarrierScope.WARP else active[None]
                self.all_or_none(parts, f"a barrier of the {scope.value}")
            case Fence():
                self.all_or_none(active[None], "a fence")
            case LastBlock(counter, count):
                self.last_block(self.value(counter, active), count, active)
            case Return():
                self.gone[active] = True
            case If(condition, body, otherwise):
                holds = self.value(condition, active)
                self.body(body, active & holds)
                self.body(otherwise, active & ~holds)
            case For():
                self.loop(s, active)
            case _:
                raise KernelFault(f"{type(s).__name__} is no statement of the final form")

    def last_block(self, counter: Array, count: int, active: Array) -> None:
        """Count the block; all its threads return unless it is the last one at the counter."""
        self.all_or_none(active[None], "a count of blocks")
        number = int(counter.reshape(-1)[0])
        if np.any(counter != number) or not 0 <= number < len(self.counters):
            raise KernelFault(f"blocks are counted at {number} of {len(self.counters)} counters")
        self.counters[number] += 1
        if self.counters[number] == count:
            self.counters[number] = 0
        else:
            self.gone[active] = True

    def loop(self, s: For, active: Array) -> None:
        """Execute a loop: each thread until its own stop."""
        value = np.array(self.value(s.start, active))
        while True:
            self.values[s.var.name] = value
            here = active & ~self.gone
            here = here & (value < self.value(s.stop, here))
            if not some(here):
                return
            self.body(s.body, here)
            value = value + s.step

    def move(
        self, source: str, start: Expr, target: str, to: Expr, width: int, active: Array
    ) -> None:
        """Copy ``width`` elements. Raises: KernelFault for an address that is not aligned."""
        first, then = self.value(start, active), self.value(to, active)
        for name, index in ((source, first), (target, then)):
            if width > 1 and some(index[active] % width):
                bad = int(index[active][np.flatnonzero(index[active] % width)[0]])
                raise KernelFault(f"{name}[{bad}] is not aligned to {width} elements")
        if width > 1 and not self.is_aligned:
            for name in (source, target):
                if self.memory[name].buffer.scope is StorageScope.GLOBAL:
                    raise KernelFault(f"{width} elements of {name} are accessed, not aligned")
        for k in range(width):
            values = self.memory[source].load(first + k, active)
            self.memory[target].store(then + k, values, active)

    def warps(self, values: Array) -> Array:
        """Return values of threads with an axis of warps in front."""
        flat = np.ascontiguousarray(values).reshape(-1)
        if flat.size % WARP:
            raise KernelFault(f"a block of {flat.size} threads has a warp that is not whole")
        return flat.reshape(-1, WARP)

    def all_or_none(self, parts: Array, what: str) -> None:
        """Check that threads come together. Raises: KernelFault if a part of them does not."""
        split = parts.any(axis=tuple(range(1, parts.ndim))) & ~parts.all(
            axis=tuple(range(1, parts.ndim))
        )
        if split.any():
            raise KernelFault(f"{int(parts.sum())} of {parts.size} threads come to {what}")

    def warp_reduce(self, s: WarpReduce, active: Array) -> None:
        """Execute a butterfly. Raises: KernelFault if a part of a warp does not come to it."""
        self.all_or_none(self.warps(active), f"the shuffle of {s.var.name}")
        own = np.array(self.values[s.var.name]).reshape(-1)
        lane = np.arange(own.size)
        a, b = left(s.var.dtype).name, right(s.var.dtype).name
        distance = s.lanes // 2
        while distance:
            other = own[lane ^ distance]
            is_upper = (lane & distance) != 0
            operands = {a: np.where(is_upper, other, own), b: np.where(is_upper, own, other)}
            own = np.asarray(OperationEvaluator(operands, {}, {}).run(s.combine))
            distance //= 2
        old = self.values[s.var.name]
        self.values[s.var.name] = np.where(active, own.reshape(active.shape), old)


def run_kernel(
    kernel: KernelIR,
    blocks: int,
    sizes: Sequence[int],
    inputs: Sequence[Array],
    outputs: Sequence[Array],
    is_aligned: bool = True,
    order: int = 0,
) -> None:
    """Run a kernel on arrays, of which it fills the outputs.

    Args:
        kernel: the kernel in final form.
        blocks: the number of blocks.
        sizes: the values of its size arguments.
        inputs: its inputs.
        outputs: its outputs.
        is_aligned: what the kernel's tests of addresses say.
        order: the seed of a random order of blocks; 0 for their own order.

    Raises: KernelFault for a fault, also for an element of an output that is not stored.
    """
    params = _params(kernel.params, inputs, outputs)
    counters = [0] * kernel.counters
    for block in np.random.default_rng(order).permutation(blocks) if order else range(blocks):
        values = dict(zip(kernel.sizes, sizes, strict=True))
        _run_block(kernel, int(block), params, values, is_aligned, counters)
    if any(counters):
        raise KernelFault(f"a counter of blocks is left at {max(counters)}")
    _check_stored(params)


def run_pack(
    pack: PackIR,
    blocks: int,
    sizes: Sequence[int],
    inputs: Sequence[Array],
    outputs: Sequence[Array],
    is_aligned: bool = True,
) -> None:
    """Run a pack of loop nests on arrays, of which it fills the outputs; see `run_kernel`."""
    params = _params(pack.params, inputs, outputs)
    values = dict(zip(pack.sizes, sizes, strict=True))
    for phase in pack.phases:
        count = blocks if phase.end is None else values[phase.end]
        _run_phase(pack, phase, count, params, values, is_aligned)
    _check_stored(params)


def _run_phase(
    pack: PackIR,
    phase: PackPhase,
    blocks: int,
    params: Mapping[str, Memory],
    values: Mapping[str, int],
    is_aligned: bool,
) -> None:
    """Run so many blocks of a phase of a pack.

    ``params`` and ``values`` are the parameters and the size arguments by name.
    """
    parts = list(phase.parts)
    for block in range(blocks):
        # Parts follow each other: one without blocks begins where the next one does.
        nest, part = [p for p in parts if values[p[1].first] <= block][-1]
        together = pack.side_by_side(nest)
        kernel = nest.kernel
        memory = {
            own.name: params[name] for own, name in zip(kernel.params, part.buffers, strict=True)
        }
        own_sizes = {n: values[v] for n, v in zip(kernel.sizes, part.sizes, strict=True)}
        for k in range(together):
            own = (block - values[part.first]) * together + k
            if part.blocks is None or own < values[part.blocks]:
                _run_block(kernel, own, memory, own_sizes, is_aligned, [])


def _params(
    buffers: Sequence[LoopBuffer], inputs: Sequence[Array], outputs: Sequence[Array]
) -> dict[str, Memory]:
    """Return the memory of parameters."""
    params: dict[str, Memory] = {}
    for k, (b, array) in enumerate(zip(buffers, (*inputs, *outputs), strict=True)):
        data = array.reshape(-1)
        params[b.name] = Memory(
            b, data, np.full(data.shape, k < len(inputs)), data.size, np.int64(0)
        )
    return params


def _run_block(
    kernel: KernelIR,
    block: int,
    params: Mapping[str, Memory],
    sizes: Mapping[str, int],
    is_aligned: bool,
    counters: list[int],
) -> None:
    """Run one block of a kernel."""
    launch = kernel.launch
    y, x = np.meshgrid(np.arange(launch.y), np.arange(launch.x), indexing="ij")
    arrays = {b.name: Memory.empty(b, (launch.y, launch.x)) for b in kernel.arrays}
    values = {n: np.int64(v) for n, v in sizes.items()}
    indices = {Bind.GRID: np.int64(block), Bind.THREAD_Y: y, Bind.THREAD_X: x}
    BlockRun(kernel, {**params, **arrays}, values, indices, is_aligned, counters).run()


def _check_stored(params: Mapping[str, Memory]) -> None:
    """Raise KernelFault for an element of an output that is not stored."""
    for memory in params.values():
        if not memory.is_stored.all():
            missing = int(np.flatnonzero(~memory.is_stored)[0])
            raise KernelFault(f"{memory.buffer.name}[{missing}] is not stored")
