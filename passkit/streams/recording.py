"""The actions that run for every operation on an array, in Python.

`recorder.c` has the same in C, with the same names. This is what it must do, and what runs where
there is no compiler; `recorder` chooses between the two.

An operation on small computed arrays is computed at once in NumPy. Any other operation is appended
to the queue of the thread's stream, and the position in the trie of plans advances with it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from itertools import chain, takewhile
from operator import attrgetter
from typing import Any
from weakref import ref

import numpy as np

from passkit.values.trees import flatten, unflatten

SHORT_ROW = 16  # recorder.c has the same
"""The extents of last axes that have at most so many elements together stand for themselves in
relative form."""
LARGE = 24  # recorder.c has the same
"""A program that stands for so many operators begins a new plan if the queue has it already."""
ALIVE, REQUIRED, AGED, HAS_ORIGIN = 1, 2, 4, 8
"""The flags of a queued value in `Queue.state`: an array object holds it; somebody waits for it; an
earlier run left it pending; it knows the plan of that run."""


class ArrayType:
    """The dtype and shape of an array. `operation.array_type` returns one object for equal ones.

    Args:
        dtype: the NumPy dtype.
        shape: the extents.
        band: the diagonals of its matrices that may differ from 0, an object of the frontend; None
            if nothing is known of them.
        device: the `device.StreamDevice` that the array is on; None for the CPU.

    Attributes:
        size: the number of elements.
        nbytes: the size in bytes.
    """

    __slots__ = ("band", "device", "dtype", "nbytes", "shape", "size")

    def __init__(
        self,
        dtype: np.dtype[Any],
        shape: tuple[int, ...],
        band: Hashable = None,
        device: Any = None,
    ) -> None:
        self.dtype, self.shape, self.band, self.device = dtype, shape, band, device
        size = 1
        for extent in shape:
            size *= extent
        self.size = size
        self.nbytes = size * dtype.itemsize

    def __repr__(self) -> str:
        return f"{self.dtype}[{', '.join(map(str, self.shape))}]"


class Value:
    """The value of an array: computed, or the result of a pending operation.

    Args:
        type: the `ArrayType`; of an operation with several results, the tuple of their types.
        buffer: the array that holds it; None while it is pending.

    Attributes:
        operation: the pending operation, None if it is computed.
        operands: the values that the operation reads.
        array: the array object that holds it; None if there is none, or it died.
        age: the number of flushes that left the value pending.
        origin: the plan whose execution left the value pending, and the position in it. A computed
            value has it if it was written because of its age, and nobody has used it since.
        is_scalar: whether this is a Python number: then equal ones are separate inputs of a plan.
        is_owned: whether no user has the buffer, so that a result may be stored over it.
        is_exposed: whether NumPy arrays may write to the buffer, as long as there are any.
        stream: the stream that the operation is queued in, or the last one that read the value.
    """

    # No slots: most values never leave the defaults, which then cost nothing to set.
    type: ArrayType
    buffer: Any = None
    operation: Any = None
    operands: tuple[Value, ...] = ()
    handle: ref[Any] | None = None
    age = 0
    origin: tuple[Any, int] | None = None
    is_scalar = False
    is_owned = False
    is_exposed = False
    stream: Any = None

    def __init__(self, type: Any, buffer: Any = None) -> None:
        self.type = type
        self.buffer = buffer

    @property
    def array(self) -> Any:
        """The array object that holds this value; None if there is none, or it has another one."""
        array = self.handle() if self.handle is not None else None
        return array if array is not None and array._value is self else None

    @property
    def is_alive(self) -> bool:
        """Return whether an array object holds this value."""
        return self.array is not None

    def __repr__(self) -> str:
        state = "computed" if self.operation is None else f"pending {self.operation}"
        return f"Value({self.type}, {state})"


class ArrayBase:
    """The base class of arrays: holds a value, which no other array holds."""

    __slots__ = ("_held",)  # subclasses add __weakref__

    @property
    def _value(self) -> Value:
        """The value of the array; setting it makes this the array object that holds the value."""
        value: Value = self._held
        return value

    @_value.setter
    def _value(self, value: Value) -> None:
        self._held = value
        value.handle = ref(self)


class OperationBase:
    """The base class of operations, with what is read when they are recorded.

    Attributes:
        generic: the operation without its parameter ``shape``, whose extents are relative in plans;
            the operation itself if it has none.
        extents: the parameter ``shape``; None if it has none.
        result_types: result types by those of the operands, as far as they are known.
        on_arrays: ``on_arrays(*arrays, **params)`` computes the same in NumPy; None interprets.
        is_direct: whether ``on_arrays`` takes the arrays and nothing else.
        num_operators: of a program: roughly the number of operators that it stands for; else 0.
    """

    __slots__ = ("extents", "generic", "is_direct", "num_operators", "on_arrays", "result_types")

    generic: Any
    extents: tuple[int, ...] | None
    result_types: dict[Any, Any]
    on_arrays: Callable[..., Any] | None
    is_direct: bool
    num_operators: int


class TrieNode:
    """A position in the trie: the sequence of operations from the root to here.

    Args:
        key: the last operation of the sequence, in relative form.

    Attributes:
        children: the next positions by operation, in relative form.
        plan: the plan for exactly this sequence, or None.
        program: the program that was recorded last for this sequence, see `differentiated_call`; or
            None.
        fire: the plan to execute in lazy mode as soon as this position is reached, and the number
            of operations that it covers; or None. It is for this sequence, or for the part of it
            that precedes the operations that closed it.
    """

    __slots__ = ("children", "fire", "key", "plan", "program")

    def __init__(self, key: Hashable = None) -> None:
        self.key = key
        self.children: dict[Hashable, TrieNode] = {}
        self.plan: Any = None
        self.program: tuple[Any, ...] | None = None
        self.fire: Any = None

    def drop_children(self) -> None:
        """Remove all positions of the trie that follow this one, in place."""
        self.children.clear()


class TrieCursor:
    """A sequence of operations in relative form, and its position in a trie.

    Args:
        trie: the root of the trie.

    Attributes:
        keys: the operations.
        position: the position in the trie; None if the sequence is not in it.
        hit: the first mark ``fire`` that was passed.
    """

    def __init__(self, trie: TrieNode) -> None:
        self.trie = trie
        self.keys: list[Any] = []
        self.position: TrieNode | None = trie
        self.hit: tuple[Any, int] | None = None

    def add(self, key: Hashable) -> None:
        """Append an operation in relative form, and move to its position in the trie.

        If the trie lacks it, the position becomes None and stays so. The first ``fire`` that is
        passed becomes the ``hit``.
        """
        self.keys.append(key)
        position = self.position
        if position is not None:
            position = self.position = position.children.get(key)
            if position is not None and position.fire is not None and self.hit is None:
                self.hit = position.fire

    def reset(self, keys: Iterable[Hashable]) -> None:
        """Replace the sequence by operations in relative form, and move to its position."""
        keys = tuple(keys)
        self.keys, self.position, self.hit = [], self.trie, None
        for key in keys:
            self.add(key)


def literal(extent: int) -> int:
    """Return the dim of an extent that stands for itself: -extent - 1."""
    return -extent - 1


class Queue:
    """The pending operations of a stream, with their relative form; see `plan` for that.

    Attributes:
        queue: the pending values, in program order.
        inputs: the computed values that they read, in the order of first use.
        processor: the sequence of operations in relative form.
        dims: the extents by symbol.
        num_new: how many queued operations no earlier run left pending.
        busy: whether the queue is executed; then recording waits.
        lock: is held while the queue is executed.
        watched: values that are computed with the next execution, with functions to call then.
        inspectors: logs to which executions are appended.
        counts: counters by name, which executions add to.
        device: the device of its arrays; None for the CPU.
        others: the queues of other devices that go with it, by these.
        traces: whether the queue is never executed, because it records what a function does.
        keeps_inputs: whether nothing may ever be stored over what a queue that traces reads.
        stand_ins: in a queue that traces, the pending values that stand for others, by these.
        num_arguments: how many of its first inputs are arguments of that function.
        purpose: the transformation and the function, for messages.
        outer: the stream of the thread when it began.
        is_open: whether the function runs.
        held: pairs of a pending input and the array that holds it; None for none.
    """

    processor: Any
    busy = 0
    traces = False
    keeps_inputs = False
    stand_ins: dict[Value, Value]
    num_arguments = 0
    purpose: str
    outer: Any
    is_open: bool
    held: tuple[tuple[Value, Any], ...] | None = None
    lock: Any
    watched: list[Any]
    inspectors: list[Any]
    counts: dict[str, int]
    device: Any
    others: dict[Any, Any]

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Empty the queue and its relative form; the values themselves stay as they are."""
        self.queue: list[Value] = []
        self.inputs: list[Value] = []
        self.num_new = 0
        self._numbers: dict[Value, int] = {}
        self._symbols: dict[int, int] = {}
        self._count = 0
        self._pending_bytes = 0
        if hasattr(self, "processor"):
            self.processor.reset(())
        if self.traces:
            self.stand_ins.clear()

    @property
    def is_full(self) -> bool:
        """Whether the queue has to be executed before an operation is recorded.

        That is at ``max_ops`` operations, or if its inputs have more than the limit of bytes.
        """
        return self._pending_bytes > limits.max_pending_bytes or len(self.queue) >= limits.max_ops

    @property
    def dims(self) -> list[int]:
        """A new list of the extents by symbol: symbol k stands for item k."""
        return list(self._symbols)

    def put(self, operation: Any, operands: tuple[Value, ...], type: Any) -> Value:
        """Queue an operation, and return its pending value; ``type`` is that of the result.

        In C, that is quick where the stream's method ``record`` would only append it.
        """
        value: Value = self.record(operation, operands, type)  # type: ignore[attr-defined]
        return value

    @property
    def count(self) -> int:
        """How many arrays have a number: inputs and results."""
        return self._count

    def number_of(self, value: Value) -> int | None:
        """Return the number of a value in relative form; None if it has none."""
        return self._numbers.get(value)

    def add_argument(self, value: Value, stand_in: Value) -> None:
        """Add ``value`` to the inputs, and give the number of this input to ``stand_in``.

        Operations that read ``stand_in`` thereby read that input.
        """
        self._numbers[stand_in] = self._count
        self._count += 1
        self.inputs.append(value)

    def begin_tracing(self, trie: TrieNode, operation: Any, keeps_inputs: bool) -> None:
        """Let the queue record what a function does with its arguments, and never execute it.

        Args:
            trie: where its sequences of operations are found.
            operation: the operation of the pending values that stand for inputs.
            keeps_inputs: see the attribute.
        """
        self.stand_ins = {}
        self.processor = TrieCursor(trie)
        self.traces, self.keeps_inputs, self.is_open = True, keeps_inputs, True
        self._argument_operation = operation

    def add_arguments(self, arrays: list[Any]) -> list[Any] | None:
        """Return new arrays that stand for others, which become inputs of this queue.

        Returns: None unless all are arrays of floats without a band; then nothing is added.
        """
        for array in arrays:
            if type(array) is not _connection.array_class:
                return None
            if array._value.type.band is not None or array._value.type.dtype.kind != "f":
                return None
        result = []
        for array in arrays:
            stand_in = Value(array._value.type)
            stand_in.operation, stand_in.stream = self._argument_operation, self
            self.add_argument(array._value, stand_in)
            result.append(wrap(stand_in))
        self.num_arguments += len(arrays)
        return result

    @property
    def extents(self) -> tuple[int, ...]:
        """The extents that are parameters of queued operations, one operation after the other."""
        return tuple(
            [
                n
                for value in self.queue
                if value.operation.extents is not None
                for n in value.operation.extents
            ]
        )

    def put_program(
        self,
        operation: Any,
        operands: tuple[Value, ...],
        types: tuple[ArrayType, ...],
        projections: list[Any],
    ) -> list[Any]:
        """Queue an operation that stands for many, and return a list of new arrays of its results.

        Before, the queue is executed if the next plan would become large otherwise, or if a new
        iteration of a loop begins. So each iteration is one plan, whether or not the loop reads its
        results. A new iteration begins if the queue has the same program, and that stands for
        `LARGE` operators or more: then only what the operands need is executed, if they are pending
        in this queue. A plan is large beyond ``max_ops``.

        Args:
            operation: the operation.
            operands: what it reads.
            types: the types of its results, one at least.
            projections: the operations that select a result of several, by number.

        Raises: what an operation raises that is executed.
        """
        if not self.traces:
            self._make_room(operation.generic, operands)
        if len(types) == 1:
            return [wrap(self.put(operation, operands, types[0]))]
        value = self.put(operation, operands, types)
        return [
            wrap(value.stream.put(projections[k], (value,), type)) for k, type in enumerate(types)
        ]

    def _make_room(self, generic: Any, operands: Sequence[Value]) -> None:
        """Execute the queue before a program is queued, see `put_program`.

        ``generic`` is its operation without extents.
        """
        programs = [
            v.operation.generic
            for v in self.queue
            if v.operation is not None and v.operation.generic.num_operators
        ]
        reason = "the next iteration begins"
        if generic in programs and generic.num_operators >= LARGE:
            pending = [v for v in operands if v.operation is not None and v.stream is self]
            if pending:  # what else is alive, such as old gradients, may not be needed any more
                self.sync(pending, reason)  # type: ignore[attr-defined]
            else:
                self.flush(reason)  # type: ignore[attr-defined]
        elif self.queue and sum([p.num_operators for p in (generic, *programs)]) > limits.max_ops:
            self.flush(reason)  # type: ignore[attr-defined]

    def append(self, value: Value) -> None:
        """Put a pending value at the end of the queue, and tell the processor its relative form."""
        operation, numbers = value.operation, self._numbers
        key: list[Any] = [operation.generic, None]
        for operand in value.operands:
            number = numbers.get(operand)
            key.append(self._input(operand) if number is None else number)
        if operation.extents is not None:
            symbols = self._symbols
            key[1] = tuple([symbols.get(n, literal(n)) for n in operation.extents])
        numbers[value] = self._count
        self._count += 1
        self.num_new += not value.age
        self.queue.append(value)
        self.processor.add(tuple(key))

    def _input(self, value: Value) -> tuple[Any, tuple[int, ...]]:
        """Add a value to the inputs of the queue, and return its relative form: dtype and dims.

        Extents get symbols, but 0, 1 and those of last axes within SHORT_ROW stand for themselves.
        A value that another stream has read loses ``is_owned``.
        """
        if not value.is_scalar:
            self._numbers[value] = self._count
            if value.stream is None:
                value.stream = self
            elif value.stream is not self:
                value.is_owned = False  # another stream may still read it after this one ran
        self._count += 1
        self.inputs.append(value)
        shape = value.type.shape
        if not shape:
            return value.type.dtype, ()
        self._pending_bytes += value.type.nbytes
        symbols, size = self._symbols, 1
        first_literal = len(shape)
        while first_literal and shape[first_literal - 1] <= SHORT_ROW:
            size *= shape[first_literal - 1]
            if size > SHORT_ROW:
                break
            first_literal -= 1
        dims = [
            literal(n) if n <= 1 or k >= first_literal else symbols.setdefault(n, len(symbols))
            for k, n in enumerate(shape)
        ]
        return value.type.dtype, tuple(dims)

    def state(self, required: Sequence[Value]) -> bytes:
        """Return a byte of flags for each queued value: ALIVE, REQUIRED, AGED, HAS_ORIGIN.

        Those in ``required`` are the ones that are waited for.
        """
        ids = {id(v) for v in required}
        return bytes(
            [
                ALIVE * v.is_alive
                | REQUIRED * (id(v) in ids)
                | AGED * (v.age > 0)
                | HAS_ORIGIN * (v.origin is not None)
                for v in self.queue
            ]
        )

    def prune(self, required: Sequence[Value]) -> None:
        """Drop operations that an earlier run left pending and that nobody needs any more.

        So a loop, which leaves something pending in each iteration, has one sequence of operations.
        Values are needed if they are in ``required``, if array objects hold them, or if needed or
        new operations read them.
        """
        queue = self.queue
        aged = [*takewhile(attrgetter("age"), queue)]
        used = {*required, *chain.from_iterable([v.operands for v in queue[len(aged) :]])}
        kept = []
        for value in reversed(aged):
            if value in used or value.is_alive:
                kept.append(value)
                used.update(value.operands)
        if len(kept) == len(aged):
            return
        self.clear()
        for value in (*reversed(kept), *queue[len(aged) :]):
            self.append(value)

    def arguments(self, positions: tuple[int, ...]) -> tuple[tuple[Any, ...], int]:
        """Return the buffers of queue inputs at positions, and the bytes of those with axes."""
        values = [self.inputs[k] for k in positions]
        return tuple(v.buffer for v in values), sum(v.type.nbytes for v in values if v.type.shape)

    def run(
        self, function: Callable[..., Any], arguments: tuple[Any, ...], positions: tuple[int, ...]
    ) -> int:
        """Call a function with arguments, and settle the queued values at positions by its results.

        In C, no signal handler runs in between: a result may lie over an operand, and then cannot
        be computed again.

        Returns: The bytes of the results. Raises: what the function raises.
        """
        return self.settle(positions, function(*arguments))

    def run_known(self, values: Sequence[Value]) -> bool:
        """Execute what values need as it was executed before; return whether they are computed.

        In C, executions that the plan remembers (`Plan.known`) are repeated, if nobody inspects or
        watches them. Here, nothing is executed and the result is False: `Stream.sync` does all.
        """
        return False

    def settle(self, positions: tuple[int, ...], arrays: Sequence[Any]) -> int:
        """Give the queued values at ``positions`` their buffers, ``arrays``, in place.

        They own these, and are computed from then on, but stay in the queue.

        Returns: The sum of their bytes. The value of an operation with several results counts 0.
        """
        nbytes = 0
        for position, array in zip(positions, arrays, strict=True):
            value = self.queue[position]
            value.buffer = array
            value.operation, value.operands, value.stream, value.origin = None, (), None, None
            value.is_owned = True
            nbytes += value.type.nbytes if type(value.type) is ArrayType else 0
        return nbytes


class _Limits:
    """When operations run at once, and when a queue is full; see `StreamSettings`."""

    small = 256
    max_ops = 256
    max_pending_bytes = 2 << 30


class _Connection:
    """The class and the functions that `connect` sets."""

    array_class: Any = None
    apply: Callable[..., Value]
    operand: Callable[..., Any]
    thread: Callable[[], tuple[Any, Any]]


limits = _Limits()
_connection = _Connection()


def set_limits(
    small: int, max_ops: int, max_pending_bytes: int, remembers: bool, has_views: bool
) -> None:
    """Set when operations run at once, when a queue is full, and what the recorder does by itself.

    Args:
        small: the most elements of arrays that operations are computed on at once.
        max_ops: the most operations of a queue.
        max_pending_bytes: the most bytes of its inputs.
        remembers: whether `Queue.run_known` may execute anything. Here it has no effect.
        has_views: whether slices are views; then the recorder in C leaves subscripts to Python.
    """
    limits.small, limits.max_ops = small, max_ops
    limits.max_pending_bytes = max_pending_bytes


def connect(
    array_class: Any,
    apply: Callable[..., Value],
    operand: Callable[..., Any],
    thread: Callable[[], tuple[Any, Any]],
    array_type: Callable[..., ArrayType],
    state: Any,
) -> None:
    """Set the class of arrays, and functions for what is not done here, for the whole process.

    Args:
        array_class: a subclass of `ArrayBase`.
        apply: ``apply(operation, *values)`` applies an operation.
        operand: ``operand(operand, dtype)`` returns the value of an operand beside an array of a
            dtype, or NotImplemented.
        thread: returns the stream of this thread, and the context in which it calls NumPy.
        array_type: ``array_type(dtype, shape)`` returns the type of an array; unused here.
        state: has an attribute ``stream``, the stream of this thread; unused here.
    """
    _connection.array_class, _connection.apply = array_class, apply
    _connection.operand, _connection.thread = operand, thread


def remember_subscript(
    type: ArrayType,
    key: Any,
    part: ArrayType,
    slice: Any,
    assign: Any,
    inputs: tuple[Value, ...],
    is_everything: bool,
) -> None:
    """Let the recorder read and write parts of arrays by itself; here it does not, only in C.

    Args:
        type: the type of the arrays; they have neither a band nor a device.
        key: the subscript, of ints, slices, None and ``...``.
        part: the type of what it selects.
        slice: the operation that reads it, of the array and ``inputs``.
        assign: the operation that replaces it, of the array, the new part and ``inputs``.
        inputs: the values that give extents and positions at run time.
        is_everything: whether the key selects all elements in their order; then ``slice`` reads the
            array only, and Python reads computed arrays.
    """


def enter_stream(stream: Any) -> None:
    """Record the operations of this thread in a stream, to which the thread refers.

    Here nothing is remembered, and it does nothing; the version in C does.
    """


def leaves_like(structure: Any, value: Any) -> list[Any] | None:
    """Return the leaves of a nested container if it has a structure, as of `trees.flatten`.

    Returns: None if it has another one. In C, also if it has parts that are neither lists, tuples,
        dicts whose keys are texts, arrays nor Python numbers.
    """
    leaves, own = flatten(value)
    return leaves if own == structure else None


def _is_same_constant(leaf: Any, constant: Any) -> bool:
    """Return whether an argument that is no array is the same object as one, or an equal number."""
    if leaf is constant:
        return True
    is_plain = type(leaf) is type(constant) and type(leaf) in (float, int, str)
    return is_plain and bool(leaf == constant)


def values_like(structure: Any, forms: tuple[Any, ...], value: Any) -> tuple[Value, ...] | None:
    """Return the values of the arrays in a nested container of a structure, as of `leaves_like`.

    ``forms`` has an item for each leaf: the `ArrayType` of an array; else a pair of the type and
    the leaf, to which a leaf must be equal.

    Returns: None if the structure or a form is another one, also one that is equal but another
        object. In C, also if a leaf is another object than before and no number or text.
    """
    leaves = leaves_like(structure, value)
    if leaves is None:
        return None
    values = []
    for leaf, form in zip(leaves, forms, strict=True):
        if type(leaf) is _connection.array_class:
            if leaf._value.type is not form:
                return None
            values.append(leaf._value)
        elif type(form) is not tuple or not _is_same_constant(leaf, form[1]):
            return None
    return tuple(values)


def differentiated_call(
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    form: tuple[int, tuple[int, ...], Any],
    purpose: str,
    context: tuple[Any, ...],
) -> tuple[Any, ...] | None:
    """Call a function whose gradients are wanted, and return its value and gradients.

    Here nothing is done. In C, this does all that a call needs if it is like one before: the
    function records the operations that it recorded then, so that their program is known.

    Args:
        function: the function.
        args: its arguments by position.
        kwargs: its arguments by name.
        form: the number of ``args``, the positions of those to differentiate by, and the structure
            of a tuple of these.
        purpose: the transformation, for messages.
        context: the class of the `Queue` that records the function; the trie of recorded sequences,
            whose positions have ``program``: the number of the function's value, the number of
            arguments, the extents of operations, the program as an operation and the types of its
            results; the operation of stand-ins; the list of operations that select results; and a
            function that copies an argument that the function may change.

    Returns: A pair of the function's value, an array, and a tuple of the gradients; or a tuple of
        None, the queue that recorded the function and what the function returned, if the program
        is not known. None, if the arguments have another form, or the leaves to differentiate by
        are no arrays of floats; then the function was not called.

    Raises: what the function raises.
    """
    return None


def with_leaves(structure: Any, leaves: list[Any]) -> Any:
    """Return the nested container of a structure with these leaves, as `trees.unflatten`.

    In C, the result is NotImplemented if it has parts other than lists, tuples and dicts.

    Raises: StopIteration for too few leaves.
    """
    return unflatten(structure, leaves)


def with_new_arrays(value: Any) -> Any:
    """Return an argument of a function that may change it: an array as a new one of the same value.

    Python numbers and texts are returned themselves. In C, computed arrays and these are; else the
    result is NotImplemented. Here it always is.
    """
    return NotImplemented


def apply(operation: Any, *values: Value) -> Value:
    """Apply an operation with one result to values; return the result, computed or pending.

    Raises: PasskitError if the operands do not fit.
    """
    return _connection.apply(operation, *values)


def wrap(value: Value) -> Any:
    """Return a new array that holds a value, which no other array holds."""
    array = object.__new__(_connection.array_class)
    array._value = value
    return array


def operand_beside(operand: Any, beside: Value) -> Any:
    """Return the value of an operand of an operation that also reads the value ``beside``.

    Python numbers take its dtype, or a default one if that is of a lower kind. In C, values of
    numbers are remembered. Returns: NotImplemented for no operand.

    Raises: DTypeError if a Python integer does not fit the dtype.
    """
    if type(operand) is _connection.array_class:
        return operand._value
    return _connection.operand(operand, beside.type.dtype)


def unary_method(operation: Any) -> Callable[[Any], Any]:
    """Return the method of arrays that applies a unary operation and returns a new array."""

    def method(self: Any) -> Any:
        return wrap(_connection.apply(operation, self._value))

    return method


def binary_method(operation: Any, swap: bool = False) -> Callable[[Any, Any], Any]:
    """Return the method of arrays that applies a binary operation.

    Args:
        operation: the operation.
        swap: whether the array is the right operand.

    Returns: A method that returns a new array, or NotImplemented if the other operand is none.
    """

    def method(self: Any, other: Any) -> Any:
        value = self._value
        if type(other) is _connection.array_class:
            right = other._value
        else:
            right = _connection.operand(other, value.type.dtype)
            if right is NotImplemented:
                return NotImplemented
        operands = (right, value) if swap else (value, right)
        return wrap(_connection.apply(operation, *operands))

    return method


def slot_method(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a method that Python calls by a slot of the class only: here the function itself.

    The version in C keeps the interpreter from calling the function without the slot that `connect`
    has set.
    """
    return function
