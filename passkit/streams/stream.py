"""A stream: the queue of operations of one thread, which is executed when a result is needed."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from threading import RLock
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from attrs import frozen

from passkit.errors import PasskitError
from passkit.program.executable import Executable
from passkit.streams.operation import (
    ArrayType,
    Operation,
    OperationTable,
    Value,
    owns_memory,
)
from passkit.streams.plan import SHORT_AXIS, Plan, Variant, interpret, literal
from passkit.streams.plan_file import PlanFile, StoredVariant
from passkit.streams.settings import settings
from passkit.streams.trie import Mode, Processor, TrieNode
from passkit.values.warning import warn_user

if TYPE_CHECKING:
    from passkit.plan.kernel import Kernel


@frozen
class StreamRun:
    """One execution of the queue of a stream, for those who inspect it.

    Attributes:
        reason: why the queue was executed.
        operations: the names of all queued operations, in order.
        computed: positions of those that ran.
        written: positions of those whose results were written to memory.
        pending: positions of those that stay pending, because nobody needs their results yet.
        path: "explored" for a new plan, "cached" for a known one, "unfused" for NumPy.
        executable: the compiled plan; None if it ran unfused.
        bytes_read, bytes_written: the bytes of the arrays that were read and written.
        aliases: how many results were stored over inputs.
    """

    reason: str
    operations: tuple[str, ...]
    computed: tuple[int, ...]
    written: tuple[int, ...]
    pending: tuple[int, ...]
    path: str
    executable: Executable | None
    bytes_read: int
    bytes_written: int
    aliases: int

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        """The kernels of the plan."""
        return () if self.executable is None else self.executable.kernels

    def __str__(self) -> str:
        ran = ", ".join(self.operations[k] for k in self.computed) or "nothing"
        text = f"{self.reason}: ran {ran} ({self.path}"
        if self.executable is not None:
            count = len(self.kernels)
            text += f", {count} kernel" if count == 1 else f", {count} kernels"
        text += f"), read {self.bytes_read:,} and wrote {self.bytes_written:,} bytes"
        if self.aliases:
            text += f", {self.aliases} in place"
        if self.pending:
            text += f"; {', '.join(self.operations[k] for k in self.pending)} stay pending"
        return text


class PlanStore:
    """The plans of one device, which all its streams share.

    Args:
        operations: the operations that plans consist of.
        device: the name of the device.

    Attributes:
        trie: the root of the trie of plans.
        sightings: how often a sequence that has no plan was run unfused.
        counts: counters by name, which `passkit.xp.stats` explains.
        inspectors: lists to which every execution is appended.
        has_compiler: whether plans can be compiled, as far as that was tried.
    """

    def __init__(self, operations: OperationTable, device: str) -> None:
        self.operations = operations
        self.trie = TrieNode()
        self.sightings: Counter[Hashable] = Counter()
        self.counts: Counter[str] = Counter()
        self.inspectors: list[list[StreamRun]] = []
        self.has_compiler = True
        self._device = device
        self._file: PlanFile | None = None
        self._lock = RLock()

    def load(self) -> PlanFile:
        """Return the plans on disk; the first call adds them to the trie."""
        if self._file is None:
            with self._lock:
                if self._file is None:
                    file = PlanFile(self.operations, self._device)
                    self._read(file)
                    self._file = file
        return self._file

    def _read(self, file: PlanFile) -> None:
        """Add the plans of a file to the trie."""
        for stored in file.read():
            node = self.trie.walk(stored.keys)
            if node.plan is None:
                node.plan = Plan(stored.keys)
            node.plan.needs_extents |= stored.dims is not None
            key = stored.outputs if stored.dims is None else (stored.outputs, stored.dims)
            node.plan.stored.add(key)

    def forget(self) -> None:
        """Drop all plans of this process; those on disk are read again."""
        with self._lock:
            self.has_compiler = True
            self.trie.children.clear()
            self.sightings.clear()
            self._file = None
            self.load()


_MAX_PENDING_BYTES = 2 << 30
"""A queue whose inputs have more bytes is executed although nobody waits for a result."""

_new_value = object.__new__
_streams: WeakSet[Stream] = WeakSet()


def _renew_locks() -> None:
    """Replace the locks of all streams: after a fork, no other thread will release them."""
    for stream in _streams:
        stream.lock = RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_locks)


class Stream:
    """A queue of operations on arrays, in program order.

    Args:
        store: where plans are kept.
    """

    def __init__(self, store: PlanStore) -> None:
        self.store, self.operations = store, store.operations
        self.queue: list[Value] = []
        self.lock = RLock()
        store.load()
        self.processor = Processor(store.trie, self, self._execute)
        self._inputs: list[Value] = []
        self._numbers: dict[Value, int] = {}
        self._count = 0
        self._symbols: dict[int, int] = {}
        self._pending_bytes = 0
        self._is_full = False
        self._required: Sequence[Value] = ()
        self._is_demanded = False
        self._reason = ""
        self._path = ""
        self._executable: Executable | None = None
        self._watched: list[tuple[Value, Callable[[], None]]] = []
        _streams.add(self)

    def record(
        self, operation: Operation, operands: tuple[Value, ...], result_type: ArrayType
    ) -> Value:
        """Queue an operation.

        Args:
            operation: the operation.
            operands: what it reads, pending or computed.
            result_type: the type of its result, or the tuple of types of its results.

        Returns: The pending result. If the operation has several, `project` selects one.
        """
        with self.lock:
            if self._is_full or len(self.queue) >= settings.max_ops:
                self._run_full_queue(operands)
            value = _new_value(Value)  # without the call of its constructor
            value.type = result_type
            value.operation = operation
            value.operands = operands
            value.stream = self
            for operand in operands:
                if operand.stream is not self and operand.operation is not None:
                    self._execute_others(operands)
                    break
            self._append(value)
        return value

    def _execute_others(self, operands: Sequence[Value]) -> None:
        """Execute the pending ones of ``operands`` that are in the queues of other streams."""
        # Without the lock: another thread may wait for a value of this stream meanwhile.
        self.lock.release()
        try:
            for operand in operands:
                if operand.operation is not None and operand.stream is not self:
                    operand.stream.sync((operand,), "another stream reads it")
        finally:
            self.lock.acquire()

    def _run_full_queue(self, operands: tuple[Value, ...]) -> None:
        """Execute the queue, which is full; ``operands`` are read by the next operation."""
        self._required, self._reason = operands, "the queue is full"
        try:
            self.processor.run(Mode.SYNC)
        finally:
            self._required = ()
        if self._watched:
            self._notify()

    def project(self, value: Value, index: int) -> Value:
        """Return one of the results of an operation that has several."""
        types: Any = value.type
        return self.record(self.operations.projection(index), (value,), types[index])

    def sync(self, values: Sequence[Value], reason: str = "a result is needed") -> None:
        """Execute what pending values need; afterwards they are computed.

        Args:
            values: values of this stream or others.
            reason: why they are needed, for those who inspect the stream.

        Raises: PasskitError if an operation cannot be executed.
        """
        for value in values:
            if value.operation is not None and value.stream is not self:
                value.stream.sync((value,), reason)
        with self.lock:
            if any(v.operation is not None for v in values):
                if self._watched:
                    values = (*values, *[v for v, _ in self._watched])
                self._required, self._reason, self._is_demanded = values, reason, True
                if self._has_aged(self.queue):
                    self._prune()
                try:
                    self.processor.run(Mode.SYNC)
                finally:
                    self._required, self._is_demanded = (), False
        if self._watched:
            self._notify()

    def watch(self, value: Value, notify: Callable[[], None]) -> None:
        """Compute a pending value when the stream is executed next, and call a function then.

        Args:
            value: a value of this stream, to which an array refers that the function holds.
            notify: is called once, after the results that were needed are there. What it raises,
                the caller gets that needed them.
        """
        with self.lock:
            self._watched.append((value, notify))

    def _notify(self) -> None:
        """Call the functions of the watched values that are computed, and forget these.

        If one raises, those after it are forgotten, too: one error is raised for each execution.
        """
        with self.lock:
            computed = [notify for v, notify in self._watched if v.operation is None]
            self._watched = [w for w in self._watched if w[0].operation is not None]
        for notify in computed:
            notify()

    def flush(self, reason: str = "the stream is flushed") -> None:
        """Execute what all arrays that are still referred to need, and empty the queue."""
        with self.lock:
            alive = [v for v in self.queue if v.is_alive]
            if alive:
                self.sync(alive, reason)
            else:
                self.store.counts["recorded"] += len(self.queue)
                self._clear()

    # The relative form

    def _append(self, value: Value) -> None:
        """Put a value at the end of the queue, and tell the processor its relative form."""
        operation, numbers = value.operation, self._numbers
        assert operation is not None
        key: list[Any] = [operation.generic, None]
        for operand in value.operands:
            number = numbers.get(operand)
            key.append(self._input(operand) if number is None else number)
        if operation.extents is not None:
            symbols = self._symbols
            key[1] = tuple([symbols.get(n, literal(n)) for n in operation.extents])
        numbers[value] = self._count
        self._count += 1
        self.queue.append(value)
        self.processor.add(tuple(key))

    def _input(self, value: Value) -> tuple[Any, tuple[int, ...]]:
        """Add a value to the inputs of the queue, and return its relative form: dtype and dims."""
        if not value.is_scalar:
            self._numbers[value] = self._count
        self._count += 1
        self._inputs.append(value)
        if value.stream is None:
            value.stream = self
        elif value.stream is not self:
            value.is_owned = False  # another stream may still read it after this one ran
        shape = value.type.shape
        if not shape:
            return value.type.dtype, ()
        self._pending_bytes += value.type.nbytes
        self._is_full = self._pending_bytes > _MAX_PENDING_BYTES
        symbols = self._symbols
        dims = []
        for n in shape:
            if n <= 1:
                dims.append(literal(n))
            else:
                dims.append(symbols.setdefault(n, len(symbols)))
        if 1 < shape[-1] <= SHORT_AXIS:
            dims[-1] = literal(shape[-1])
        return value.type.dtype, tuple(dims)

    # Exploring and executing

    def explore(self, keys: Sequence[Hashable], mode: Mode) -> Any:
        """Return how to make a plan for the entire queue, when a result is needed.

        No sequence closes by itself: whatever follows may be fused with it.
        """
        if mode is Mode.LAZY:
            return None
        return lambda: Plan(keys), len(keys)

    def _execute(self, plan: Plan, count: int) -> list[Hashable]:
        """Run the queue by a plan; return the relative form of the operations that stay pending."""
        queue = self.queue
        assert count == len(queue) == len(plan.keys)
        alive = [k for k, v in enumerate(queue) if v.handle is not None and v.is_alive]
        outputs = self._outputs(plan, alive)
        counts = self.store.counts
        counts["recorded"] += sum(not v.age for v in queue)
        inspected = self._snapshot() if self.store.inspectors else None
        self._path, self._executable = "nothing", None
        kept = self._kept(alive, outputs)
        if outputs:
            self._run(plan, outputs, kept)
        for position in alive:
            queue[position].origin = plan, position
        if inspected is not None:
            self._report(inspected, plan, outputs, kept)
        self._clear()
        for value in kept:
            value.age += 1
            self._append(value)
        return self.processor.keys

    def _prune(self) -> None:
        """Drop operations that an earlier run left pending and that nobody needs any more.

        So a loop, which leaves something pending in each iteration, has one sequence of operations.
        """
        queue = self.queue
        needed: set[int] = set()
        for value in reversed(queue):
            if not value.age or id(value) in needed or value.is_alive or value in self._required:
                needed.add(id(value))
                needed.update(map(id, value.operands))
        if all(id(v) in needed for v in queue):
            return
        self._clear()
        for value in queue:
            if id(value) in needed:
                self._append(value)

    def _snapshot(self) -> tuple[tuple[str, ...], Counter[str]]:
        """Return the names of the queued operations, and the counters."""
        names = tuple(v.operation.name for v in self.queue if v.operation is not None)
        return names, self.store.counts.copy()

    def _report(
        self,
        before: tuple[tuple[str, ...], Counter[str]],
        plan: Plan,
        outputs: tuple[int, ...],
        kept: list[Value],
    ) -> None:
        """Append an execution to the lists of those who inspect the stream."""
        names, counts = before
        kept_ids = {id(v) for v in kept}
        now = self.store.counts
        run = StreamRun(
            reason=self._reason,
            operations=names,
            computed=plan.computed(outputs) if outputs else (),
            written=outputs,
            pending=tuple(k for k, v in enumerate(self.queue) if id(v) in kept_ids),
            path=self._path,
            executable=self._executable,
            bytes_read=now["bytes_read"] - counts["bytes_read"],
            bytes_written=now["bytes_written"] - counts["bytes_written"],
            aliases=now["aliases"] - counts["aliases"],
        )
        for runs in self.store.inspectors:
            runs.append(run)

    def _outputs(self, plan: Plan, alive: list[int]) -> tuple[int, ...]:
        """Return the positions of the results to write, sorted.

        These are the results that are waited for; all that are alive, if nobody waits or the
        settings say so; those that an earlier run left pending and that are still needed; and those
        that earlier runs of the plan showed to be needed later.
        """
        queue = self.queue
        required = {id(v) for v in self._required}
        positions = {k for k, v in enumerate(queue) if id(v) in required}
        if settings.materialize == "live" or not self._is_demanded:
            positions.update(alive)
            return tuple(sorted(positions))
        eager = plan.eager_writes
        positions.update([k for k in alive if queue[k].age or k in eager])
        if self._has_aged(queue):
            positions |= self._aged_operands(plan, [k for k in alive if k not in positions])
        return tuple(sorted(positions))

    def _aged_operands(self, plan: Plan, unwritten: list[int]) -> set[int]:
        """Return positions of values pending since an earlier run that new pending ones read.

        Writing them bounds how often anything is computed again.
        """
        if not unwritten:
            return set()
        queue = self.queue
        operands = {
            id(operand)
            for k in plan.computed(tuple(unwritten))
            if not queue[k].age
            for operand in queue[k].operands
        }
        return {
            k
            for k, v in enumerate(queue)
            if v.age and id(v) in operands and type(v.type) is ArrayType
        }

    def _has_aged(self, queue: list[Value]) -> bool:
        """Return whether the queue begins with values that an earlier run left pending."""
        return bool(queue) and queue[0].age > 0

    def _run(self, plan: Plan, outputs: tuple[int, ...], kept: list[Value]) -> None:
        """Compute results by a variant of the plan, or unfused; ``kept`` stay pending."""
        queue = self.queue
        computed = plan.computed(outputs)
        for position in computed:
            origin = queue[position].origin
            if origin is not None:  # an earlier run would better have written it
                origin[0].eager_writes.add(origin[1])
                queue[position].origin = None
        variant = self._variant(plan, outputs) if self._is_worth_a_plan(plan, outputs) else None
        if variant is None:
            self._run_unfused(computed, outputs)
            return
        arguments = [self._inputs[k].buffer for k in variant.inputs]
        out = self._donated(variant, kept) if settings.inplace else None
        if out is None:
            results = variant.executable.run_positional(*arguments)
        else:
            results = variant.executable.run_into(out, *arguments)
        self._count_run(variant, arguments, results, out)
        for position, array in zip(outputs, results, strict=True):
            queue[position].buffer = array
            self._settle(queue[position])

    def _variant(self, plan: Plan, outputs: tuple[int, ...]) -> Variant | None:
        """Return the variant of a plan that writes these results; None if compiling it fails."""
        counts = self.store.counts
        dims = list(self._symbols)
        try:
            variant, is_new = plan.variant(outputs, dims)
        except PasskitError as error:
            if not plan.has_failed:
                warn_user(
                    f"passkit runs {len(plan.computed(outputs))} operations one by one in NumPy, "
                    f"because compiling them failed: {error}"
                )
            plan.has_failed = True
            counts["failed_plans"] += 1
            return None
        if not variant.is_native:  # the executable has warned that there is no compiler
            self.store.has_compiler = False
            return None
        self._path, self._executable = "cached", variant.executable
        if not is_new:
            counts["cache_hits"] += 1
        elif plan.variant_key(outputs, dims) in plan.stored:
            counts["disk_hits"] += 1
        else:
            self._path = "explored"
            counts["explorations"] += 1
            extents = tuple(dims) if plan.needs_extents else None
            self.store.load().append(StoredVariant(plan.keys, outputs, extents))
        return variant

    def _run_unfused(self, computed: tuple[int, ...], outputs: tuple[int, ...]) -> None:
        """Compute results operation by operation in NumPy, and keep what a plan would write."""
        counts = self.store.counts
        counts["unfused_runs"] += 1
        self._path = "unfused"
        interpret(self.queue, computed)
        written = set(outputs)
        for position in computed:
            value = self.queue[position]
            counts["bytes_read"] += sum(
                v.buffer.nbytes for v in value.operands if getattr(v.buffer, "ndim", 0)
            )
            if type(value.type) is ArrayType:
                counts["bytes_written"] += value.type.nbytes
                counts["bytes_allocated"] += value.type.nbytes
        for position in computed:
            if position in written:
                value = self.queue[position]
                is_owned = owns_memory(value.buffer, value.operands)
                self._settle(value)
                value.is_owned = is_owned
            else:
                self.queue[position].buffer = None

    def _donated(self, variant: Variant, kept: list[Value]) -> list[Any] | None:
        """Return the arrays over which results may be stored, None for those to allocate.

        An input gives its memory up if nothing refers to it, and no operation that stays pending
        reads it; that also goes for operations that run now and whose results are not written.

        Returns: None if no input does.
        """
        if not any(k >= 0 for k in variant.donors):
            return None
        out: list[Any] = []
        read_later = {id(operand) for value in kept for operand in value.operands}
        for position, donor in zip(variant.outputs, variant.donors, strict=True):
            value = self._inputs[variant.inputs[donor]] if donor >= 0 else None
            if value is None or not value.is_owned or value.is_alive:
                out.append(None)
                continue
            is_free = id(value) not in read_later
            fits = _holds(value.buffer, self.queue[position].type)
            out.append(value.buffer if is_free and fits else None)
        return out if any(array is not None for array in out) else None

    def _count_run(
        self, variant: Variant, arguments: list[Any], results: list[Any], out: list[Any] | None
    ) -> None:
        """Add one run of a variant to the counters."""
        counts = self.store.counts
        counts["executed_plans"] += 1
        counts["launches"] += variant.launches
        for array in arguments:
            if array.ndim:
                counts["bytes_read"] += array.nbytes
        for k, array in enumerate(results):
            counts["bytes_written"] += array.nbytes
            if out is not None and out[k] is not None:
                counts["aliases"] += 1
            else:
                counts["bytes_allocated"] += array.nbytes

    def _is_worth_a_plan(self, plan: Plan, outputs: tuple[int, ...]) -> bool:
        """Return whether to compile a variant, if there is none yet."""
        if plan.has_failed or not self.store.has_compiler:
            return False
        if plan.is_ready(outputs, list(self._symbols)):
            return True
        store = self.store
        limit = settings.max_explorations
        if limit is not None and store.counts["explorations"] >= limit:
            return False
        work = sum(v.type.size for v in self.queue if type(v.type) is ArrayType)
        if work >= settings.compile_at:
            return True
        key = plan.keys, outputs
        store.sightings[key] += 1
        return store.sightings[key] > 1

    def _settle(self, value: Value) -> None:
        """Turn a pending value whose buffer is set into a computed one."""
        value.operation, value.operands, value.stream, value.is_owned = None, (), None, True

    def _kept(self, alive: list[int], outputs: tuple[int, ...]) -> list[Value]:
        """Return the values that stay pending when ``outputs`` are written, in order.

        These are the values that are alive and not written, with the values that they are computed
        from, up to written ones.
        """
        queue = self.queue
        written = {id(queue[k]) for k in outputs}
        needed: set[int] = set()
        pending = [queue[k] for k in alive]
        while pending:
            value = pending.pop()
            if value.operation is not None and id(value) not in needed | written:
                needed.add(id(value))
                pending += value.operands
        return [v for v in queue if id(v) in needed]

    def _clear(self) -> None:
        """Empty the queue and its relative form."""
        self.queue = []
        self._inputs = []
        self._numbers = {}
        self._symbols = {}
        self._count = 0
        self._pending_bytes = 0
        self._is_full = False
        self.processor.reset(())


def _holds(array: Any, type: ArrayType) -> bool:
    """Return whether an array can take a result of a type: donors are matched by their bytes."""
    return bool(array.dtype == type.dtype and array.shape == type.shape and array.flags.carray)
