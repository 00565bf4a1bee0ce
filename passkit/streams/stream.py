"""A stream: the queue of operations of one thread, which is executed when a result is needed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from threading import RLock
from typing import Any

from passkit.errors import PasskitError
from passkit.streams.operation import ArrayType, Operation, OperationTable, Value
from passkit.streams.plan import SHORT_AXIS, Plan, interpret, literal
from passkit.streams.settings import settings
from passkit.streams.trie import Mode, Processor, TrieNode
from passkit.values.warning import warn_user


class PlanStore:
    """The plans of one device, which all its streams share.

    Attributes:
        trie: the root of the trie of plans.
        sightings: how often a sequence that has no plan was run unfused.
        counts: counters, by name; see `Stream.stats`.
    """

    def __init__(self) -> None:
        self.trie = TrieNode()
        self.sightings: Counter[tuple[Hashable, ...]] = Counter()
        self.counts: Counter[str] = Counter()
        self.lock = RLock()


class Stream:
    """A queue of operations on arrays, in program order.

    Args:
        store: where plans are kept.
        operations: the table that the recorded operations are from.
    """

    def __init__(self, store: PlanStore, operations: OperationTable) -> None:
        self.store, self.operations = store, operations
        self.queue: list[Value] = []
        self.lock = RLock()
        self.processor = Processor(store.trie, self, self._execute)
        self._inputs: list[Value] = []
        self._numbers: dict[Value, int] = {}
        self._count = 0
        self._symbols: dict[int, int] = {}
        self._pending_bytes = 0
        self._required: Sequence[Value] = ()
        self._mode = Mode.LAZY

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
            if len(self.queue) >= settings.max_ops or (
                self._pending_bytes > settings.max_pending_bytes
            ):
                self._run_lazily(operands)
            value = Value(result_type)
            value.operation, value.operands, value.stream = operation, operands, self
            self._append(value)
            if type(result_type) is ArrayType:
                self._pending_bytes += result_type.nbytes
        return value

    def _run_lazily(self, operands: tuple[Value, ...]) -> None:
        """Execute the queue, since it is full; ``operands`` are read by the next operation."""
        self._required = operands
        try:
            self.processor.run(Mode.LAZY)
        finally:
            self._required = ()

    def project(self, value: Value, index: int) -> Value:
        """Return one of the results of an operation that has several."""
        types: Any = value.type
        return self.record(self.operations.projection(index), (value,), types[index])

    def sync(self, values: Sequence[Value]) -> None:
        """Execute what pending values need; afterwards they are computed.

        Raises: PasskitError if an operation cannot be executed.
        """
        with self.lock:
            if any(v.operation is not None for v in values):
                self._required, self._mode = values, Mode.SYNC
                try:
                    self.processor.run(Mode.SYNC)
                finally:
                    self._required, self._mode = (), Mode.LAZY

    def flush(self) -> None:
        """Execute what all arrays that are still referred to need."""
        self.sync([v for v in self.queue if v.is_alive])

    # The relative form

    def _append(self, value: Value) -> None:
        """Put a value at the end of the queue, and tell the processor its relative form."""
        assert value.operation is not None
        numbers = self._numbers
        key: list[Any] = [value.operation.generic, None]
        for operand in value.operands:
            number = numbers.get(operand)
            key.append(self._input(operand) if number is None else number)
        extents = value.operation.extents
        if extents is not None:
            symbols = self._symbols
            key[1] = tuple([symbols.get(n, literal(n)) for n in extents])
        numbers[value] = self._count
        self._count += 1
        self.queue.append(value)
        self.processor.add(tuple(key))

    def _input(self, value: Value) -> tuple[Any, tuple[int, ...]]:
        """Add a value to the inputs of the queue, and return its relative form: dtype and dims."""
        if value.operation is not None:  # it is pending in another stream
            value.stream.sync([value])
        if not value.is_scalar:
            self._numbers[value] = self._count
        self._count += 1
        self._inputs.append(value)
        shape = value.type.shape
        if not shape:
            return value.type.dtype, ()
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
        """Return how to make a plan for the whole queue; None in lazy mode while it is short."""
        is_full = len(keys) >= settings.max_ops or (
            self._pending_bytes > settings.max_pending_bytes
        )
        if mode is Mode.LAZY and not is_full:
            return None
        return lambda: Plan(keys), len(keys)

    def _execute(self, plan: Plan, count: int) -> list[Hashable]:
        """Run the queue by a plan; return the relative form of the operations that stay pending."""
        queue = self.queue
        assert count == len(queue) == len(plan.keys)
        alive = [k for k, v in enumerate(queue) if v.handle is not None and v.is_alive]
        outputs = self._outputs(plan, alive)
        if outputs:
            self._run(plan, outputs)
        plan.runs += 1
        kept = self._kept([k for k in alive if queue[k].operation is not None], plan)
        self._clear()
        for value in kept:
            value.age += 1
            self._append(value)
        return self.processor.keys

    def _outputs(self, plan: Plan, alive: list[int]) -> tuple[int, ...]:
        """Return the positions of the results to write, sorted.

        These are the results that are waited for; all that are alive, if nobody waits or the
        settings say so; those that an earlier run left pending and that are still needed; and those
        that earlier runs of the plan showed to be needed later.
        """
        queue = self.queue
        required = {id(v) for v in self._required}
        positions = {k for k, v in enumerate(queue) if id(v) in required}
        if settings.materialize == "live" or self._mode is Mode.LAZY:
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

    def _run(self, plan: Plan, outputs: tuple[int, ...]) -> None:
        """Compute results by a variant of the plan, or unfused."""
        queue, counts = self.queue, self.store.counts
        computed = plan.computed(outputs)
        for position in computed:
            origin = queue[position].origin
            if origin is not None:
                origin[0].eager_writes.add(origin[1])
                queue[position].origin = None
        if not self._is_worth_a_plan(plan, outputs):
            counts["unfused_runs"] += 1
            interpret(queue, computed)
            self._drop_unwritten(computed, outputs)
            return
        dims = list(self._symbols)
        try:
            variant, is_new = plan.variant(outputs, dims, {"fusion": settings.fusion})
        except PasskitError as error:
            warn_user(
                f"passkit runs {len(computed)} operations one by one in NumPy, because compiling "
                f"them failed: {error}"
            )
            counts["failed_plans"] += 1
            interpret(queue, computed)
            self._drop_unwritten(computed, outputs)
            return
        if is_new:
            counts["explorations"] += 1
        else:
            counts["cache_hits"] += 1
        arguments = [self._inputs[k].buffer for k in variant.inputs]
        results = variant.executable.run_positional(*arguments)
        counts["executed_plans"] += 1
        for position, array in zip(outputs, results, strict=True):
            queue[position].buffer = array
            counts["bytes_written"] += array.nbytes
        for array in arguments:
            if array.ndim:
                counts["bytes_read"] += array.nbytes
        for position in outputs:
            self._settle(queue[position])

    def _is_worth_a_plan(self, plan: Plan, outputs: tuple[int, ...]) -> bool:
        """Return whether to compile a variant, if there is none yet."""
        if any(variant.outputs == outputs for variant in plan.variants.values()):
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

    def _drop_unwritten(self, computed: Sequence[int], outputs: tuple[int, ...]) -> None:
        """After an unfused run, keep only the results that a plan would have written."""
        written = set(outputs)
        for position in computed:
            if position in written:
                self._settle(self.queue[position])
            else:
                self.queue[position].buffer = None

    def _settle(self, value: Value) -> None:
        """Turn a pending value whose buffer is set into a computed one."""
        value.operation, value.operands, value.stream, value.is_owned = None, (), None, True

    def _kept(self, roots: list[int], plan: Plan) -> list[Value]:
        """Return pending values that are alive, with what they are computed from, in order."""
        if not roots:
            return []
        queue = self.queue
        for position in roots:
            queue[position].origin = plan, position
        needed: set[int] = set()
        pending = [queue[k] for k in roots]
        while pending:
            value = pending.pop()
            if id(value) not in needed and value.operation is not None:
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
        self.processor.reset(())
