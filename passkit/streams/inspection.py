"""Records of what ran and why, for those who inspect streams: `passkit.xp.inspect`.

A `RunTracker` looks at the queue of a stream before and after an execution, and makes a `StreamRun`
of it. It is not called while nobody inspects.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from hashlib import sha256
from itertools import count
from threading import RLock, current_thread
from time import perf_counter
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary, ref

from attrs import frozen

from passkit.errors import PassError
from passkit.streams.operation import Projection
from passkit.streams.plan_file import StoredVariant, encoded
from passkit.streams.recorder import AGED, ALIVE, REQUIRED, ArrayType, Value
from passkit.streams.settings import settings
from passkit.values import arguments
from passkit.values.arguments import shortened
from passkit.values.lazy import Lazy

if TYPE_CHECKING:
    from types import FrameType

    from passkit.graph.kernel import Kernel
    from passkit.program.executable import Executable
    from passkit.reasons.explanation import Explanation
    from passkit.streams import plan_details, run_tables
    from passkit.streams.operation import Operation
    from passkit.streams.plan import Flush, Plan
    from passkit.streams.plan_details import PlanDetails
    from passkit.streams.stream import Stream
else:  # what plans and prints, no warm start needs
    plan_details = Lazy("passkit.streams.plan_details")
    run_tables = Lazy("passkit.streams.run_tables")

NOT_USER_CODE = ("passkit", "numpy", "contextlib", "array_api_compat", "functools")
"""Packages whose lines are not reported: what calls them is."""

MAX_NAMES = 2048
"""The number of plans whose names are remembered; then all are forgotten, and made again."""

WAITED_FOR = "waited for"
READ_NEXT = "the next operation reads it"
ALIVE_AT_FLUSH = "alive at a flush that waits for no result"
ALL_LIVE = 'alive, and materialize="live"'
PENDING_BEFORE = "pending since an earlier run"
NEEDED_BEFORE = "needed after earlier runs of the plan"
READ_BY_PENDING = "pending since an earlier run, and read by what stays pending"

NOT_NEEDED = "an array refers to it, but nobody needs it yet"
FOR_PENDING = "what stays pending reads it"


def user_line() -> str:
    """Return "file:line" of the innermost stack frame that is not in a package of NOT_USER_CODE.

    Where all frames are in these, such as passkit and NumPy, it is that of the outermost one.
    """
    frame: FrameType = sys._getframe(1)
    while frame.f_back is not None:
        package = frame.f_globals.get("__name__", "").partition(".")[0]
        if package not in NOT_USER_CODE:
            break
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"


@frozen
class RunInput:
    """A computed value that an execution read.

    Attributes:
        type: the dtype and shape, such as "float32[512, 1024]".
        nbytes: the size in bytes.
        value: the number of the value, which identifies it in other runs; -1 for Python numbers.
        number: the text of the element of a 0-d value, else "".
    """

    type: str
    nbytes: int
    value: int
    number: str


@frozen(repr=False)
class StreamRun:
    """One execution of the queue of a stream, for those who inspect it.

    Operations are identified by their positions in ``operations``.

    Attributes:
        reason: why the queue was executed, such as "float" for ``float(array)``.
        line: the file and line of the user's code that made it run, such as "train.py:12".
        operations: the names of all queued operations, in order.
        computed: positions of those that ran.
        written: positions of those whose results were written to memory.
        pending: positions of those that stay pending, because nobody needs their results yet.
        path: "explored" for a new plan, "disk" for one of an earlier process that is used for the
            first time, "cached" for a known one, "unfused" for NumPy, "nothing" if none ran.
        executable: the compiled plan; None if it ran unfused.
        bytes_read, bytes_written: the bytes of the arrays that were read and written.
        aliases: how many results were stored over inputs.
        number: the number of this run in the process, counted while somebody inspects.
        stream, thread: the number of the stream, and the name of the thread that executed it.
        started: when it began, as `time.perf_counter` has it.
        seconds: how long it took, with compiling.
        plan: the name of the plan: equal in all processes for equal sequences of operations with
            equal written results.
        why_unfused: why it ran in NumPy, "" if it did not.
        why_written: for each position in ``written``, why.
        why_pending: for each position in ``pending``, why.
        in_place: the position of each result that was stored over an input, with the index of that.
        inputs: the computed values that were read.
        types: the types of the results of all operations.
        values: the numbers of the results, which identify them in other runs.
        waited_since: positions of those that an earlier run left pending.
        launches: the number of kernels and library calls that ran.
    """

    reason: str
    line: str
    operations: tuple[str, ...]
    computed: tuple[int, ...]
    written: tuple[int, ...]
    pending: tuple[int, ...]
    path: str
    executable: Executable | None
    bytes_read: int
    bytes_written: int
    aliases: int
    number: int
    stream: int
    thread: str
    started: float
    seconds: float
    plan: str
    why_unfused: str
    why_written: Mapping[int, str]
    why_pending: Mapping[int, str]
    in_place: tuple[tuple[int, int], ...]
    inputs: tuple[RunInput, ...]
    types: tuple[str, ...]
    values: tuple[int, ...]
    waited_since: tuple[int, ...]
    launches: int
    _keys: tuple[Any, ...]
    _details: PlanDetails | None

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        """The kernels of the plan; none if it ran unfused or nothing ran."""
        return () if self.executable is None else self.executable.kernels

    @property
    def source(self) -> str:
        """The text of the kernels, each once; "" if it ran unfused or nothing ran."""
        return "" if self.executable is None else self.executable.source

    @property
    def operands(self) -> tuple[tuple[tuple[str, int], ...], ...]:
        """For each operation its operands, as pairs ("input", index) or ("operation", position).

        The index is one of `inputs`.
        """
        sources: list[tuple[str, int]] = []
        operands = []
        num_inputs = 0
        for position, (_, _, *items) in enumerate(self._keys):
            pairs = []
            for item in items:
                if not isinstance(item, int):
                    item = len(sources)
                    sources.append(("input", num_inputs))
                    num_inputs += 1
                pairs.append(sources[item])
            sources.append(("operation", position))
            operands.append(tuple(pairs))
        return tuple(operands)

    def call(self, position: int) -> str:
        """Return the operation at a position as text, such as "sum(axis=0)" or "multiply(·, 2)".

        Operands are shown if one of them is a 0-d input: its number, and a dot for others.
        Parameters that are None or False are left out. One of several results of an operation is
        "result 2", counted from 0. Raises: IndexError if there is no such position.
        """
        operation: Operation = self._keys[position][0]
        if isinstance(operation, Projection):
            return f"result {operation.index}"
        numbers = [
            self.inputs[k].number if kind == "input" and self.inputs[k].number else "·"
            for kind, k in self.operands[position]
        ]
        inside = numbers if any(n != "·" for n in numbers) else []
        inside += _params(operation)
        return f"{operation.name}({', '.join(inside)})" if inside else operation.name

    @property
    def groups(self) -> tuple[tuple[str, str, tuple[int, ...]], ...]:
        """The kernels and library calls: kind of work, name, and positions of their operations.

        An operation that several kernels compute is listed in each. Those that simplifying removed
        are in none. The first use plans the operations again, which takes as long as then. There
        are none if it ran unfused or nothing ran.
        """
        return () if self._details is None else self._details.groups

    def explain(self, name: str | None = None) -> Explanation:
        """Return, for each edge between two operations, whether it is fused, and the reason.

        Args:
            name: the name of an operation with its position, such as "multiply_2", to return only
                its edges; None for all.

        Returns: A sequence of decisions; printed, a table. Operations have their names in ``xp``,
            followed by their positions; parts of composite operations have those of operators.

        Raises: ArgumentError if the name is no text; PassError if the run was unfused or nothing
            ran; GraphError if no operation has this name.
        """
        if name is not None:
            arguments.text("explain: name", name)
        if self._details is None:
            why = self.why_unfused or "no operation ran"
            raise PassError(f"run {self.number} has no plan to explain: {why}")
        return self._details.explain(name)

    def report(self) -> str:
        """Return all that is known about the run, as several lines of text."""
        return run_tables.report(self)

    def __str__(self) -> str:
        ran = ", ".join(self.operations[k] for k in self.computed) or "nothing"
        text = f"{self.reason}: ran {ran} ({self.path}"
        if self.executable is not None:
            kernel_count = len(self.kernels)
            text += f", {kernel_count} kernel" if kernel_count == 1 else f", {kernel_count} kernels"
        text += f"), read {self.bytes_read:,} and wrote {self.bytes_written:,} bytes"
        if self.aliases:
            text += f", {self.aliases} in place"
        if self.pending:
            text += f"; {', '.join(self.operations[k] for k in self.pending)} stay pending"
        return text

    def __repr__(self) -> str:
        return f"<run {self.number}, {self}>"


@frozen
class HostOperation:
    """An operation that was computed at once in NumPy, because it has no kernel.

    Attributes:
        operation: its name and parameters, such as "sort(axis=-1)".
        line: the file and line of the user's code that applied it.
        types: the types of the operands.
        seconds: how long NumPy took.
    """

    operation: str
    line: str
    types: tuple[str, ...]
    seconds: float


class RunLog(list[StreamRun]):
    """The executions that were inspected, in order; printed, a table.

    Attributes:
        host_operations: the operations that were computed at once in NumPy meanwhile.
    """

    def __init__(self, runs: Sequence[StreamRun] = ()) -> None:
        super().__init__(runs)
        self.host_operations: list[HostOperation] = []

    def summary(self) -> str:
        """Return tables of the plans that ran, and of the lines that made something run, as text.

        There is another one of the operations that NumPy computed at once, if there are any.
        """
        return run_tables.summary(self, self.host_operations)

    def __str__(self) -> str:
        return run_tables.table_of_runs(self)


@frozen
class _QueueSnapshot:
    """The queue of a stream before an execution.

    Attributes:
        line: the file and line of the user's code that makes it run.
        started: when it begins, as `time.perf_counter` has it.
        counts: a copy of the counters of the store.
        operations: the queued operations.
        types: the types of their results, as text.
        state: the flags of each value, see `Queue.state`.
        eager: positions whose results the plan writes although nobody waits for them.
        inputs: the computed values that are read.
        index_of_buffer: the index of an input by the identity of its buffer.
        dims: the extents by symbol.
        pending_numbers: the number of a value by its identity, of those left pending before.
    """

    line: str
    started: float
    counts: Counter[str]
    operations: tuple[Operation, ...]
    types: tuple[str, ...]
    state: bytes
    eager: frozenset[int]
    inputs: tuple[RunInput, ...]
    index_of_buffer: dict[int, int]
    dims: tuple[int, ...]
    pending_numbers: dict[int, int]


class RunTracker:
    """Makes records of executions, and gives values numbers by which they are known in all of them.

    Values are known by their buffers, and pending ones by the queue that they are in.
    """

    def __init__(self) -> None:
        self._lock = RLock()
        self._num_runs = count()
        self._num_values = count()
        self._num_streams = count()
        self._buffers: dict[int, tuple[Any, int]] = {}
        self._streams: WeakKeyDictionary[Stream, int] = WeakKeyDictionary()
        self._pending: WeakKeyDictionary[Stream, dict[int, int]] = WeakKeyDictionary()
        self._names: dict[Any, tuple[Plan, str]] = {}
        self._details: dict[str, PlanDetails] = {}

    def before(self, stream: Stream, plan: Plan, required: Sequence[Value]) -> _QueueSnapshot:
        """Return the state of a queue that is about to be executed by a plan.

        ``required`` are the values that are waited for. Inputs that are new here get numbers.
        """
        with self._lock:
            inputs = tuple(map(self._input, stream.inputs))
        return _QueueSnapshot(
            line=user_line(),
            started=perf_counter(),
            counts=stream.store.counts.copy(),
            operations=tuple(v.operation for v in stream.queue),
            types=tuple(_type_text(v.type) for v in stream.queue),
            state=stream.state(required),
            eager=frozenset(plan.eager_writes),
            inputs=inputs,
            index_of_buffer={id(v.buffer): k for k, v in enumerate(stream.inputs)},
            dims=tuple(stream.dims),
            pending_numbers=self._pending.get(stream, {}),
        )

    def after(
        self, stream: Stream, plan: Plan, flush: Flush, before: _QueueSnapshot, reason: str
    ) -> StreamRun:
        """Return the record of an execution, from the state before it and that of the stream.

        Args:
            stream: the stream; its queue still has all values.
            plan: the plan that ran.
            flush: what was done with the queue.
            before: the queue before the execution.
            reason: why it ran.
        """
        now, path, executable = stream.store.counts, stream.path, stream.executable
        with self._lock:
            values = self._numbers(stream, flush, before)
            # A value that is kept has this number in the next run, too.
            self._pending[stream] = {id(stream.queue[k]): values[k] for k in flush.kept}
            name = self._name(plan, flush.outputs, before.dims) if flush.outputs else ""
            details = None
            if executable is not None:
                details = self._details.get(name)
                if details is None:
                    dims = before.dims if plan.needs_extents else None
                    details = plan_details.PlanDetails(
                        plan, flush.outputs, dims, executable, stream.device
                    )
                    self._details[name] = details
            stream_number = self._streams.get(stream)
            if stream_number is None:
                stream_number = self._streams[stream] = next(self._num_streams)
        why_unfused = ""
        if path == "unfused":
            why_unfused = _why_unfused(stream, plan)
        in_place = []
        if executable is not None:
            for k in flush.outputs:
                index = before.index_of_buffer.get(id(stream.queue[k].buffer))
                if index is not None:
                    in_place.append((k, index))
        return StreamRun(
            reason=reason,
            line=before.line,
            operations=tuple(o.name for o in before.operations),
            computed=flush.computed,
            written=flush.outputs,
            pending=flush.kept,
            path=path,
            executable=executable,
            bytes_read=now["bytes_read"] - before.counts["bytes_read"],
            bytes_written=now["bytes_written"] - before.counts["bytes_written"],
            aliases=now["aliases"] - before.counts["aliases"],
            number=next(self._num_runs),
            stream=stream_number,
            thread=current_thread().name,
            started=before.started,
            seconds=perf_counter() - before.started,
            plan=name,
            why_unfused=why_unfused,
            why_written={k: _why_written(k, before, stream.is_demanded) for k in flush.outputs},
            why_pending={
                k: NOT_NEEDED if before.state[k] & ALIVE else FOR_PENDING for k in flush.kept
            },
            in_place=tuple(in_place),
            inputs=before.inputs,
            types=before.types,
            values=values,
            waited_since=tuple(k for k, flags in enumerate(before.state) if flags & AGED),
            launches=now["launches"] - before.counts["launches"],
            keys=plan.keys,
            details=details,
        )

    def host_operation(
        self, operation: Operation, operands: Sequence[Value], seconds: float
    ) -> HostOperation:
        """Return the record of an operation that NumPy just computed at once, in ``seconds``.

        It has the line of the user's code that is running.
        """
        params = ", ".join(_params(operation))
        name = f"{operation.name}({params})" if params else operation.name
        return HostOperation(
            name, user_line(), tuple(_type_text(v.type) for v in operands), seconds
        )

    def _input(self, value: Value) -> RunInput:
        """Return the record of a computed value that a run reads.

        Values are numbered, except Python numbers, for which -1 stands. The text of the element is
        recorded only of values without axes on the host; it is "" for others.
        """
        number = ""
        if not value.type.shape and value.type.device is None:
            element = value.buffer.item()
            number = f"{element:.6g}" if value.type.dtype.kind == "f" else str(element)
        value_number = -1 if value.is_scalar else self._number(value.buffer)
        return RunInput(_type_text(value.type), value.type.nbytes, value_number, number)

    def _number(self, buffer: Any) -> int:
        """Return the number of the value in a buffer; a buffer that is new here gets one."""
        entry = self._buffers.get(id(buffer))
        if entry is None or entry[0]() is not buffer:
            return self._assign(buffer, next(self._num_values))
        return entry[1]

    def _assign(self, buffer: Any, number: int) -> int:
        """Give the value in a buffer a number, until the buffer is freed; return the number."""
        key = id(buffer)
        self._buffers[key] = ref(buffer, lambda _: self._buffers.pop(key, None)), number
        return number

    def _numbers(self, stream: Stream, flush: Flush, before: _QueueSnapshot) -> tuple[int, ...]:
        """Return the numbers of the results of all queued operations, by position.

        Values left pending before keep theirs, others get new ones; so do the buffers of written
        results.
        """
        numbers = []
        outputs = set(flush.outputs)
        for k, value in enumerate(stream.queue):
            number = before.pending_numbers.get(id(value)) if before.state[k] & AGED else None
            number = next(self._num_values) if number is None else number
            if k in outputs and type(value.type) is ArrayType:
                self._assign(value.buffer, number)
            numbers.append(number)
        return tuple(numbers)

    def _name(self, plan: Plan, outputs: tuple[int, ...], dims: tuple[int, ...]) -> str:
        """Return the name of a plan that writes certain results: eight hexadecimal digits.

        ``dims``, the extents by symbol, count if the plan can only be compiled for known ones.
        """
        fixed = dims if plan.needs_extents else None
        key = id(plan), outputs, fixed, plan.equal_inputs
        entry = self._names.get(key)
        if entry is None:
            if len(self._names) >= MAX_NAMES:
                self._names.clear()
                self._details.clear()
            variant = StoredVariant(plan.keys, outputs, fixed, plan.equal_inputs)
            text = encoded(variant) or repr(variant).encode()
            entry = self._names[key] = plan, sha256(text).hexdigest()[:8]
        return entry[1]


def _params(operation: Operation) -> list[str]:
    """Return the parameters of an operation as a list of texts, such as "axis=0".

    Those that are None or False are left out, and values of more than 40 letters are shortened.
    """
    params = operation.params.items()
    return [f"{k}={shortened(repr(v), 40)}" for k, v in params if v is not None and v is not False]


def _type_text(type: Any) -> str:
    """Return an array type as text; of a tuple of those of several results, texts with commas."""
    return ", ".join(map(str, type)) if isinstance(type, tuple) else str(type)


def _why_written(position: int, before: _QueueSnapshot, is_demanded: bool) -> str:
    """Return why the result at a position was written, a text.

    ``before`` is the queue before the execution; ``is_demanded`` says whether somebody waited for a
    result.
    """
    flags = before.state[position]
    if flags & REQUIRED:
        return WAITED_FOR if is_demanded else READ_NEXT
    if settings.materialize == "live":
        return ALL_LIVE
    if not is_demanded:
        return ALIVE_AT_FLUSH
    if position in before.eager and flags & ALIVE:
        return NEEDED_BEFORE
    return PENDING_BEFORE if flags & ALIVE else READ_BY_PENDING


def _why_unfused(stream: Stream, plan: Plan) -> str:
    """Return why the operations of a plan ran one by one in NumPy, and what to do about it."""
    if not stream.store.has_compiler:
        return "no C++ compiler was found; install g++ or clang++"
    if plan.failure:
        return f"compiling failed: {plan.failure}"
    limit = settings.max_explorations
    if limit is not None and stream.store.counts["explorations"] >= limit:
        return (
            f"max_explorations={limit} plans were made; xp.config(max_explorations=None) lifts it"
        )
    return (
        f"seen first, and smaller than compile_at={settings.compile_at:,} elements; it is compiled "
        f"when it is seen again"
    )
