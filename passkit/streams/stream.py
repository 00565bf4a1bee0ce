"""A stream: the queue of operations of one thread, which is executed when a result is needed."""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from sys import getrefcount
from threading import RLock
from typing import Any
from weakref import WeakSet

import numpy as np

from passkit.errors import PasskitError
from passkit.program.executable import Executable
from passkit.streams.device import StreamDevice
from passkit.streams.operation import Operation, owns_memory
from passkit.streams.plan import Flush, Plan, PlanVariant, interpret
from passkit.streams.plan_file import StoredVariant
from passkit.streams.plan_store import PlanStore
from passkit.streams.recorder import (
    AGED,
    ALIVE,
    HAS_ORIGIN,
    REQUIRED,
    ArrayType,
    Queue,
    Value,
)
from passkit.streams.settings import settings
from passkit.streams.trie import Processor, RunMode
from passkit.values.warning import warn_user

_streams: WeakSet[Stream] = WeakSet()


def _renew_locks() -> None:
    """Replace the locks of all streams by new ones: after a fork, nobody would release them."""
    for stream in _streams:
        stream.lock = RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_locks)


class FailedStream:
    """The stream of values that cannot be computed, because an operation failed that they need.

    Args:
        error: what it raised.
    """

    def __init__(self, error: Exception) -> None:
        self._error = error

    def sync(self, values: Sequence[Value], reason: str = "") -> None:
        """Raise the error of the operation that made this value, whatever is needed and why."""
        raise self._error


class Stream(Queue):
    """A queue of operations on arrays, in program order.

    Args:
        store: where plans are kept.

    Attributes:
        device: the device of all its arrays; None for the CPU.
        path: how the last execution ran, see `StreamRun`.
        executable: the compiled plan that it ran; None if it ran unfused.
        is_demanded: whether somebody waits for a result of the execution in progress.
    """

    def __init__(self, store: PlanStore) -> None:
        super().__init__()
        self.store, self.operations, self.device = store, store.operations, store.device
        self.others = {}
        self.lock = RLock()
        self.inspectors, self.counts = store.inspectors, store.counts
        store.load()
        self.processor = Processor(store.trie, self, self._execute)
        self._required: Sequence[Value] = ()
        self.is_demanded = False
        self._reason = ""
        self.path = ""
        self.executable: Executable | None = None
        self.watched: list[tuple[Value, Callable[[], None]]] = []
        _streams.add(self)

    def on(self, device: StreamDevice | None) -> Stream:
        """Return the stream of a device that goes with this one; it is created at the first call.

        For None and for the device of this stream, it is this stream itself.
        """
        if device is self.device or device is None:
            return self
        stream = self.others.get(device)
        if stream is None:
            store = self.store.on(device)
            stream = self.others[device] = DeviceStream(store, device)
        return stream

    @property
    def all_devices(self) -> list[Stream]:
        """This stream, and then those of other devices that go with it."""
        return [self, *self.others.values()]

    @contextmanager
    def _exclusive(self) -> Iterator[None]:
        """Hold the lock of the stream in the block, so that no other thread records or executes."""
        with self.lock:
            self.busy += 1
            try:
                yield
            finally:
                self.busy -= 1

    def record(
        self, operation: Operation, operands: tuple[Value, ...], result_type: ArrayType
    ) -> Value:
        """Queue an operation. If the queue is full, it is executed before; but not by `project`.

        The recorder does the same by itself, also for devices, where the queue has room and no
        other thread executes it, and where no operand is pending in another stream or can be
        written to by NumPy.

        Args:
            operation: the operation.
            operands: what it reads, pending or computed.
            result_type: the type of its result, or the tuple of types of its results.

        Returns: The pending result. If the operation has several, `project` selects one.

        Raises: what an operation raises, a PasskitError or an error of NumPy, that must be executed
            before: one of the full queue, or one that an operand pending in another stream needs.
        """
        types: Any = result_type
        device = (types if type(types) is ArrayType else types[0]).device
        if device is not self.device:
            return self.on(device).record(operation, operands, result_type)
        with self._exclusive():
            # An operation with several results runs only when these were selected: it writes them.
            if self.is_full and not _is_projection(operation):
                self._run_full_queue(operands)
            for operand in operands:
                if operand.stream is not self and operand.operation is not None:
                    self._execute_others(operands)
                    break
            if any([v.is_exposed for v in operands]):
                operands = tuple([_unexposed(v) for v in operands])
            value = Value(result_type)
            value.operation = operation
            value.operands = operands
            value.stream = self
            self.append(value)
        return value

    def _execute_others(self, operands: Sequence[Value]) -> None:
        """Execute the pending ones of ``operands`` that are in the queues of other streams.

        Raises: what an operation raises, see `sync`.
        """
        # Without the lock: another thread may wait for a value of this stream meanwhile.
        self.busy -= 1
        self.lock.release()
        try:
            for operand in operands:
                if operand.operation is not None and operand.stream is not self:
                    operand.stream.sync((operand,), "another stream reads it")
        finally:
            self.lock.acquire()
            self.busy += 1

    def _run_full_queue(self, operands: tuple[Value, ...]) -> None:
        """Execute the queue, which is full, for ``operands`` that the next operation reads.

        Other results are written if they are needed, as always. If an operation fails that these do
        not need, it is taken out, and the rest is executed. Raises: what an operation raises that
        they do need, and whatever is no Exception, such as KeyboardInterrupt.
        """
        self._required, self._reason = operands, "the queue is full"
        queue = self.queue
        try:
            self.processor.run(RunMode.SYNC)
        except BaseException as error:
            self._restore(queue)
            if not self._failed(queue) or not isinstance(error, Exception):
                raise
            self._run_full_queue(operands)  # reading a result that failed raises its error
        finally:
            self._required = ()
        if self.watched:
            self._notify()

    def project(self, value: Value, index: int) -> Value:
        """Queue the selection of result ``index`` of an operation that has several; return it.

        ``value`` is what `record` returned for the operation.
        """
        types: Any = value.type
        return self.put(self.operations.projection(index), (value,), types[index])

    def sync(self, values: Sequence[Value], reason: str = "a result is needed") -> None:
        """Execute what pending values need; afterwards they are computed.

        The run also computes what an earlier run left pending and arrays still hold, what is
        watched, and what showed to be needed later; it drops operations whose results nobody can
        read any more. Other values stay pending. Nothing runs if none of the values is pending.

        Args:
            values: values of this stream or others.
            reason: why they are needed, for those who inspect the stream.

        Raises: what an operation raises that the values need, a PasskitError or an error of NumPy.
            Reading what needs its result raises the same again; operations that do not need it stay
            in the queue.
        """
        if self.run_known(values):
            return
        is_pending = False
        others = None
        for value in values:
            if value.operation is not None:
                is_pending = True
                if value.stream is not self:
                    others = [value] if others is None else [*others, value]
        if others is not None:
            for stream in dict.fromkeys([v.stream for v in others]):
                stream.sync([v for v in others if v.stream is stream], reason)
        if not is_pending:
            return
        self.lock.acquire()  # as in `_exclusive`, whose generator would cost a tenth of a flush
        self.busy += 1
        queue, is_repeated = self.queue, False
        try:
            if self.watched:
                values = (*values, *[v for v, _ in self.watched])
            self._required, self._reason, self.is_demanded = values, reason, True
            self.prune(values)
            # Another thread may have computed them meanwhile.
            if any([v.operation is not None for v in values]):
                position = self.processor.position
                plan = None if position is None else position.plan
                if plan is None or self.processor.hit is not None:
                    self.processor.run(RunMode.SYNC)
                else:  # the same, shorter
                    self._execute(plan, len(self.queue))
        except BaseException as error:
            self._restore(queue)
            is_repeated = isinstance(error, Exception) and self._failed(queue)
            if not is_repeated or self._failed(values):
                raise
        finally:
            self._required, self.is_demanded = (), False
            self.busy -= 1
            self.lock.release()
        if is_repeated:  # without what failed, which these values do not need
            self.sync(values, reason)
            return
        if self.watched:
            self._notify()

    def _failed(self, values: Sequence[Value]) -> bool:
        """Return whether one of ``values`` needs an operation that failed: `_poison` marked it."""
        return any(isinstance(v.stream, FailedStream) for v in values)

    def _poison(self, computed: Sequence[int], error: Exception) -> None:
        """Mark the operation that failed, and all that need its result, so that none runs again.

        Reading the result of one of them raises the error, and `_restore` does not queue them. What
        watches them is forgotten. On Python 3.11 the error gets a note with the operation.

        Args:
            computed: the positions that were to run; the first one without a result failed.
            error: what it raised.
        """
        failed = next(self.queue[k] for k in computed if self.queue[k].buffer is None)
        if hasattr(error, "add_note"):  # Python 3.11
            error.add_note(f"This was raised by the operation {failed.operation} of a stream.")
        stream = FailedStream(error)
        ids = {id(failed)}
        for value in self.queue:
            if id(value) in ids or any(id(operand) in ids for operand in value.operands):
                ids.add(id(value))
                value.stream, value.operands = stream, ()
        self.watched = [w for w in self.watched if w[0].stream is self]

    def _restore(self, queue: list[Value]) -> None:
        """Queue again what is still pending of ``queue``, whose execution an error or signal ended.

        What `_poison` has marked is left out.
        """
        self.clear()
        for value in queue:
            if value.operation is not None and value.stream is self:
                value.buffer = None
                self.append(value)

    def watch(self, value: Value, notify: Callable[[], None]) -> None:
        """Compute a pending value when the stream is executed next, and call a function then.

        Args:
            value: a value of this stream, to which an array refers that the function holds.
            notify: is called once, after the results that were needed are there. What it raises,
                the caller gets that needed them.
        """
        with self._exclusive():
            self.watched.append((value, notify))

    def _notify(self) -> None:
        """Call the functions of the watched values that are computed, and forget these.

        If one raises, such as a CheckError, that error is raised, and those after it are forgotten.
        """
        with self.lock:
            computed = [notify for v, notify in self.watched if v.operation is None]
            self.watched = [w for w in self.watched if w[0].operation is not None]
        for notify in computed:
            notify()

    def flush(self, reason: str = "the stream is flushed") -> None:
        """Execute what all arrays that are still referred to need, and empty the queue.

        ``reason`` says why, for those who inspect the stream. Raises: what an operation raises that
        they need, a PasskitError or an error of NumPy.
        """
        with self._exclusive():
            alive = [v for v in self.queue if v.is_alive]
            if alive:
                self.sync(alive, reason)
            else:
                self.store.counts["recorded"] += len(self.queue)
                self.clear()

    # Exploring and executing

    def explore(self, keys: Sequence[Hashable], mode: RunMode) -> Any:
        """Return a function that makes a plan for ``keys``, the entire queue, and their number.

        Returns: None in mode LAZY. No sequence closes by itself: whatever follows may be fused with
            it.
        """
        if mode is RunMode.LAZY:
            return None
        self.store.explore()
        return lambda: Plan(keys, self._equal_inputs()), len(keys)

    def _equal_inputs(self) -> tuple[tuple[int, int], ...]:
        """Return the positions of inputs that are equal Python numbers, as pairs.

        In each, the first is that of a number with the dtype and bits of an earlier input; the
        second is that of the first such input.
        """
        first: dict[tuple[Any, bytes], int] = {}
        pairs = []
        for position, value in enumerate(self.inputs):
            if value.is_scalar:
                key = value.type.dtype, value.buffer.tobytes()
                earlier = first.setdefault(key, position)
                if earlier != position:
                    pairs.append((position, earlier))
        return tuple(pairs)

    def _are_equal(self, pairs: tuple[tuple[int, int], ...]) -> bool:
        """Return whether the two inputs of each pair are one value, or numbers of the same bits.

        ``pairs`` are positions of inputs of the queue.
        """
        inputs = self.inputs
        for later, earlier in pairs:
            x, y = inputs[later], inputs[earlier]
            if x is not y:
                if not (x.is_scalar and y.is_scalar):
                    return False
                if x.buffer.tobytes() != y.buffer.tobytes():
                    return False
        return True

    def _execute(self, plan: Plan, count: int) -> list[Hashable]:
        """Run the queue by a plan for all of it; return the relative form of what stays pending.

        ``count`` is the number of queued operations. Pending values that nobody needs any more are
        dropped, and the queue keeps the others. Raises: what an operation or kernel raises; the
        queue is unchanged then.
        """
        queue = self.queue
        assert count == len(queue) == len(plan.keys)
        store = self.store
        store.counts["recorded"] += self.num_new
        before = store.tracker.before(self, plan, self._required) if store.inspectors else None
        self.path, self.executable = "nothing", None
        if plan.equal_inputs and not self._are_equal(plan.equal_inputs):
            plan.generalize()
        flush = self._flush_of(plan)
        for value in (*[queue[k] for k in flush.used], *self.inputs):
            if value.origin is not None:  # an earlier run would better have written it
                write_eagerly(value)
        origins = [(v, v.origin) for k in flush.aged if (v := queue[k]).origin is not None]
        if flush.outputs:
            self._run(plan, flush)
        for value, origin in origins:
            if value.operation is None:  # written because it aged; nobody has used it yet
                value.origin = origin
        if before is not None:
            run = store.tracker.after(self, plan, flush, before, self._reason)
            for log in store.inspectors:
                log.append(run)
        if not flush.kept and len(queue) == count:
            self.clear()
            return []
        late = queue[count:]  # finalizers recorded them meanwhile
        kept = [queue[k] for k in flush.kept]
        for position in flush.unwritten:
            queue[position].origin = plan, position
        self.clear()
        for value in kept:
            value.age += 1
            self.append(value)
        for value in late:
            self.append(value)
        keys: list[Hashable] = self.processor.keys
        return keys

    def _flush_of(self, plan: Plan) -> Flush:
        """Return what to do with the queue, which depends on who holds and waits for its values.

        It also depends on whether an execution is demanded, and on the setting ``materialize``. The
        plan remembers it by these two and the state of the queue.
        """
        state = self.state(self._required)
        key = state, self.is_demanded, settings.materialize
        flush = plan.flushes.get(key)
        if flush is None:
            alive = [k for k, flags in enumerate(state) if flags & ALIVE]
            outputs = self._outputs(plan, state, alive)
            computed = plan.computed(outputs) if outputs else ()
            kept = self._kept(alive, outputs)
            flush = Flush(
                state=state,
                outputs=outputs,
                computed=computed,
                aged=tuple(k for k in computed if state[k] & HAS_ORIGIN),
                used=self._used(state, computed),
                kept=kept,
                unwritten=tuple(k for k in kept if state[k] & ALIVE),
            )
            plan.add_flush(key, flush)
        return flush

    def _used(self, state: bytes, computed: tuple[int, ...]) -> tuple[int, ...]:
        """Return the positions of values that an earlier run left pending and that are used now.

        They are waited for, or operands of operations that were not queued then.

        Args:
            state: the flags of each value.
            computed: the positions of the operations that run.
        """
        queue = self.queue
        read = {id(v) for k in computed if not state[k] & AGED for v in queue[k].operands}
        return tuple(
            k
            for k in computed
            if state[k] & HAS_ORIGIN and (state[k] & REQUIRED or id(queue[k]) in read)
        )

    def _outputs(self, plan: Plan, state: bytes, alive: list[int]) -> tuple[int, ...]:
        """Return the positions of the results to write, sorted.

        These are the results that are waited for; all that are alive, if nobody waits or the
        settings say so; those that an earlier run left pending and that are still needed; and those
        that earlier runs of the plan showed to be needed later.

        Args:
            plan: the plan of the queue.
            state: the flags of each value.
            alive: the positions of values that array objects hold.
        """
        positions = {k for k, flags in enumerate(state) if flags & REQUIRED}
        if settings.materialize == "live" or not self.is_demanded:
            positions.update(alive)
            return tuple(sorted(positions))
        eager = plan.eager_writes
        needed = {k for k in alive if state[k] & AGED or k in eager}
        if self._has_aged(self.queue):
            unwritten = [k for k in alive if k not in positions | needed]
            needed |= self._aged_operands(plan, unwritten)
        positions.update([k for k in needed if not self._is_recomputed(self.queue[k])])
        if positions:
            positions |= self._single_numbers(plan, tuple(sorted(positions)), alive)
        return tuple(sorted(positions))

    def _single_numbers(self, plan: Plan, outputs: tuple[int, ...], alive: list[int]) -> set[int]:
        """Return the positions of alive results without axes that computing ``outputs`` yields too.

        They belong to operations with several results, such as a loss with its gradients. Writing
        them costs little, and computing them later would repeat the entire operation.
        """
        queue = self.queue
        projections = [
            k for k in alive if not queue[k].type.shape and _is_projection(queue[k].operation)
        ]
        if not projections:
            return set()
        computed = {id(queue[k]) for k in plan.computed(outputs)}
        return {k for k in projections if id(queue[k].operands[0]) in computed}

    def _is_recomputed(self, value: Value) -> bool:
        """Return whether a value is rather computed again than written.

        That goes for a pending value whose operands are computed, of an operation in the table's
        `recomputed`.
        """
        return (
            value.operation is not None
            and value.operation.name in self.operations.recomputed
            and all([v.operation is None for v in value.operands])
        )

    def _aged_operands(self, plan: Plan, unwritten: list[int]) -> set[int]:
        """Return positions of values pending since an earlier run that new pending ones read.

        ``unwritten`` are the positions of values that arrays hold and that would stay pending.
        Writing the returned ones bounds how often anything is computed again.
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
        """Return whether an earlier run left values of ``queue`` pending: they are its first."""
        return bool(queue) and queue[0].age > 0

    def _run(self, plan: Plan, flush: Flush) -> None:
        """Compute the outputs of a flush by a variant of the plan, or unfused, and count it.

        Raises: what an operation or kernel raises.
        """
        outputs, counts = flush.outputs, self.store.counts
        variant = flush.variant
        if variant is None:
            if self._is_worth_a_plan(plan, outputs):
                variant = self._variant(plan, outputs)
            if variant is None:
                self._run_unfused(flush.computed, outputs)
                return
            if not plan.needs_extents:
                flush.variant = variant
            if self.is_demanded:
                self._remember(plan, flush, variant)
        else:
            self.path, self.executable = "cached", variant.executable
            counts["cache_hits"] += 1
        arguments, bytes_read = self.arguments(variant.inputs)
        out = None
        if variant.has_donors and settings.inplace:
            out = self._donated(variant, flush.kept)
        if out is None:
            bytes_written = self.run(variant.run, arguments, outputs)
        else:
            bytes_written = self.run(variant.run_into, (out, *arguments), outputs)
        counts["executed_plans"] += 1
        counts["launches"] += variant.launches
        counts["bytes_read"] += bytes_read
        counts["bytes_written"] += bytes_written
        counts["bytes_allocated"] += bytes_written
        if out is not None:
            donated = [array.nbytes for array in out if array is not None]
            counts["aliases"] += len(donated)
            counts["bytes_allocated"] -= sum(donated)

    def _remember(self, plan: Plan, flush: Flush, variant: PlanVariant) -> None:
        """Let the recorder repeat an execution by itself when the same values are waited for.

        Nothing happens unless the settings have ``materialize="demand"`` and ``inplace``.
        """
        if settings.materialize == "demand" and settings.inplace:
            extents = np.array(self.dims, np.int64).tobytes() if plan.needs_extents else b""
            plan.remember(flush.state + extents, flush, variant)

    def _variant(self, plan: Plan, outputs: tuple[int, ...]) -> PlanVariant | None:
        """Return the variant of a plan that writes these results, compiled if there is none.

        Returns: None if compiling it fails, which is warned of once and noted in the plan, or if
            there is no compiler.
        """
        counts = self.store.counts
        dims = self.dims
        try:
            variant, is_new = plan.variant(outputs, dims, self.device)
        except PasskitError as error:
            if not plan.failure:
                warn_user(
                    f"passkit runs {len(plan.computed(outputs))} operations one by one in NumPy, "
                    f"because compiling them failed: {error}"
                )
            plan.failure = str(error)
            counts["failed_plans"] += 1
            return None
        if not variant.is_native:  # the executable has warned that there is no compiler
            self.store.has_compiler = False
            return None
        self.path, self.executable = "cached", variant.executable
        if not is_new:
            counts["cache_hits"] += 1
        elif plan.variant_key(outputs, dims) in plan.stored:
            self.path = "disk"
            counts["disk_hits"] += 1
        else:
            self.path = "explored"
            counts["explorations"] += 1
            extents = tuple(dims) if plan.needs_extents else None
            self.store.load().append(StoredVariant(plan.keys, outputs, extents, plan.equal_inputs))
        return variant

    def _run_unfused(self, computed: tuple[int, ...], outputs: tuple[int, ...]) -> None:
        """Compute results operation by operation in NumPy, and keep what a plan would write.

        ``computed`` are the positions of operations to run, ``outputs`` those of results to keep.

        Raises: what an operation raises; it and all that need its result leave the queue.
        """
        counts = self.store.counts
        counts["unfused_runs"] += 1
        self.path = "unfused"
        try:
            interpret(self.queue, computed)
        except Exception as error:
            self._poison(computed, error)
            raise
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
                self.settle((position,), (self._stored(value.buffer),))
                value.is_owned = is_owned or self.device is not None
            else:
                self.queue[position].buffer = None

    def _stored(self, array: Any) -> Any:
        """Return a result that was computed in NumPy as the buffer of a value: the array itself."""
        return array

    def _donated(self, variant: PlanVariant, kept: Sequence[int]) -> list[Any] | None:
        """Return the arrays over which results may be stored, None for those to allocate.

        An input gives its memory up if nothing refers to it, and no operation that stays pending
        reads it; that also goes for operations that run now and whose results are not written.

        Args:
            variant: what runs.
            kept: the positions of the operations that stay pending.

        Returns: None if no input does.
        """
        out: list[Any] = []
        queue = self.queue
        read_later = {id(operand) for k in kept for operand in queue[k].operands}
        for position, donor in zip(variant.outputs, variant.donors, strict=True):
            value = self.inputs[variant.inputs[donor]] if donor >= 0 else None
            if value is None or not value.is_owned or value.is_alive:
                out.append(None)
                continue
            is_free = id(value) not in read_later
            fits = _holds(value.buffer, queue[position].type)
            out.append(value.buffer if is_free and fits else None)
        return out if any(array is not None for array in out) else None

    def _is_worth_a_plan(self, plan: Plan, outputs: tuple[int, ...]) -> bool:
        """Return whether to run a variant that writes ``outputs``, compiled if there is none yet.

        It is not if compiling the plan failed before, there is no compiler, or the setting
        ``max_explorations`` is reached. A new one is worth it for as many elements as the setting
        ``compile_at``, and otherwise when the sequence is seen again, which this notes.
        """
        if plan.failure or not self.store.has_compiler:
            return False
        if plan.is_ready(outputs, self.dims):
            return True
        store = self.store
        limit = settings.max_explorations
        if limit is not None and store.counts["explorations"] >= limit:
            return False
        # Results count, and what reductions read.
        work = sum(v.type.size for v in self.queue if type(v.type) is ArrayType)
        work += sum(v.type.size for v in self.inputs)
        if work >= settings.compile_at:
            return True
        key = plan.keys, outputs
        store.sightings[key] += 1
        return store.sightings[key] > 1

    def _kept(self, alive: list[int], outputs: tuple[int, ...]) -> tuple[int, ...]:
        """Return the positions of values that stay pending when ``outputs`` are written, in order.

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
        return tuple(k for k, v in enumerate(queue) if id(v) in needed)


class DeviceStream(Stream):
    """A queue of operations on arrays of a device.

    Its plans are compiled when a sequence is first seen, as running it in NumPy would take copies.

    Args:
        store: where plans are kept.
        device: the device.
    """

    def __init__(self, store: PlanStore, device: StreamDevice) -> None:
        super().__init__(store)
        self._device = device

    def _is_worth_a_plan(self, plan: Plan, outputs: tuple[int, ...]) -> bool:
        """Return whether to run a variant that writes ``outputs``, compiled if there is none yet.

        It is not if compiling the plan failed before, or if there is none and the setting
        ``max_explorations`` is reached.
        """
        limit = settings.max_explorations
        is_allowed = limit is None or self.store.counts["explorations"] < limit
        return not plan.failure and (is_allowed or plan.is_ready(outputs, self.dims))

    def _stored(self, array: Any) -> Any:
        """Return a copy on the device of a result that was computed in NumPy, for a value's buffer.

        Raises: DeviceError without memory.
        """
        return self._device.upload(array)


_value = Value(None, np.zeros(1))
UNREFERENCED = getrefcount(_value.buffer)
"""The number of references to a buffer that a value alone has, where they are counted."""


def _unexposed(value: Value) -> Value:
    """Return a value whose buffer nobody writes to: itself, or a copy if NumPy arrays share it.

    An operation reads its operands when it runs, but means their values when it is recorded. If
    nothing shares an exposed buffer any more, the value notes that.
    """
    if not value.is_exposed:
        return value
    if getrefcount(value.buffer) <= UNREFERENCED:
        value.is_exposed = False
        return value
    copy = Value(value.type, value.buffer.copy())
    copy.is_owned = True
    return copy


def write_eagerly(value: Value) -> None:
    """Let the plan whose execution left ``value`` pending write it from now on.

    The value must have an ``origin``, this plan and the position in it, which is cleared.
    """
    plan, position = value.origin  # type: ignore[misc]
    plan.write_eagerly(position)
    value.origin = None


def _is_projection(operation: Operation) -> bool:
    """Return whether an operation selects one of several results."""
    return operation.name == "project"


def _holds(array: Any, type: ArrayType) -> bool:
    """Return whether an array can take a result of a type: of its dtype and shape, C-contiguous.

    Donors are matched by their bytes only, hence this check.
    """
    if array.dtype != type.dtype or array.shape != type.shape:
        return False
    is_on_host = isinstance(array, np.ndarray)
    return bool(array.flags.carray) if type.device is None else not is_on_host
