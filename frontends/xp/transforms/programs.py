"""Programs: recorded operations as one operation of a stream, with gradients of its results.

The operation's ``build`` puts the operators of the recorded operations, and those of the gradients
that are derived from them, into the graph of the plan. So they fuse with what surrounds them, and
the plan is found again by the sequence of operations, like any. The parameter ``code`` holds the
recorded operations as JSON; ``shape`` has the extents that are parameters of them, one after the
other, so that one plan serves all sizes.

Values have numbers: the arguments first, then for each operation its new inputs and its result, at
last new inputs among the results and weights.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Any

from attrs import frozen

import passkit.ops as ops
from passkit.errors import GraphError
from passkit.frontends.xp import runtime
from passkit.frontends.xp.array import Array, wrap
from passkit.frontends.xp.runtime import OPERATIONS
from passkit.frontends.xp.transforms.tracing_stream import ARGUMENT, TracingStream, array_with
from passkit.graph.adjoint import gradients
from passkit.graph.node import Entry
from passkit.streams.operation import MAX_MEMO, Operation
from passkit.streams.recorder import ArrayType, Queue, TrieNode, Value
from passkit.streams.recording import LARGE
from passkit.streams.stream import Stream
from passkit.streams.trie import walk


@frozen
class RecordedStep:
    """A recorded operation.

    Attributes:
        operation: the operation, without its parameter ``shape``.
        extents: the number of extents in that parameter; None if it has none.
        operands: the numbers of the operands.
    """

    operation: Operation
    extents: int | None
    operands: tuple[int, ...]


@frozen
class ProgramResults:
    """The results of a program: values, then gradients, or directional derivatives.

    Attributes:
        outputs: the numbers of the values that are returned first.
        heads: the numbers of the values that are differentiated.
        seeds: the numbers of the weights of the heads' elements; none at all for ones.
        leaves: the numbers of the arguments by which heads are differentiated; their gradients
            follow the outputs.
        tangents: the numbers of directions of the leaves, if there are any. Then the derivatives
            of the heads in these directions follow the outputs instead.
    """

    outputs: tuple[int, ...]
    heads: tuple[int, ...] = ()
    seeds: tuple[int, ...] = ()
    leaves: tuple[int, ...] = ()
    tangents: tuple[int, ...] = ()


@frozen
class ArrayProgram:
    """Recorded operations and what is returned.

    Attributes:
        num_arguments: the number of arguments, which have the first numbers.
        steps: the operations.
        results: what is returned.
    """

    num_arguments: int
    steps: tuple[RecordedStep, ...]
    results: ProgramResults

    def run(
        self,
        inputs: Sequence[Any],
        extents: Sequence[Any],
        perform: Callable[[Operation, tuple[Any, ...] | None, list[Any]], Any],
    ) -> list[Any]:
        """Perform the operations in order, and return all values by number, the inputs included.

        Args:
            inputs: the arguments, then the other inputs in the order of their numbers.
            extents: all extents that are parameters of steps, one step after the other.
            perform: called with the operation, its extents or None, and a list of its operands;
                returns the value of the step.
        """
        values = list(inputs[: self.num_arguments])
        rest = iter(inputs[self.num_arguments :])
        position = 0
        for step in self.steps:
            _extend(values, step.operands, rest)
            shape = None
            if step.extents is not None:
                shape = tuple(extents[position : position + step.extents])
                position += step.extents
            operands = [values[n] for n in step.operands]
            values.append(perform(step.operation, shape, operands))
        for numbers in (self.results.outputs, self.results.heads):
            _extend(values, numbers, rest)
        for numbers in (self.results.seeds, self.results.tangents):
            _extend(values, numbers, rest)
        return values


def _extend(values: list[Any], numbers: Sequence[int], inputs: Iterator[Any]) -> None:
    """Append the next of ``inputs`` to ``values``, in place, until each of ``numbers`` is an index.

    Raises: StopIteration if there are too few inputs.
    """
    for n in numbers:
        while n >= len(values):
            values.append(next(inputs))


# The code of a program.


def _encoded(value: Any) -> Any:
    """Return a parameter for JSON: a tuple as a dict of the key "tuple" and a list; others stay.

    So are nested tuples.
    """
    return {"tuple": [_encoded(v) for v in value]} if isinstance(value, tuple) else value


def _decoded(value: Any) -> Any:
    """Return the parameter that `_encoded` encoded."""
    return tuple(_decoded(v) for v in value["tuple"]) if isinstance(value, dict) else value


def _encoded_step(step: RecordedStep) -> list[Any]:
    """Return a step for JSON: the operation's name, parameters, extents, and operand numbers."""
    params = {name: _encoded(value) for name, value in step.operation.params.items()}
    return [step.operation.name, params, step.extents, *step.operands]


def encode(program: ArrayProgram) -> str:
    """Return the code of a program: JSON from which `decode` makes an equal one."""
    steps = [_encoded_step(step) for step in program.steps]
    results = program.results
    parts = [results.outputs, results.heads, results.seeds, results.leaves, results.tangents]
    return json.dumps([program.num_arguments, steps, parts], separators=(",", ":"))


@lru_cache(MAX_MEMO)
def decode(code: str) -> ArrayProgram:
    """Return the program of a code of `encode`.

    For equal codes it is the same object, while that is in the memo of `MAX_MEMO` programs.

    Raises: a built-in error, such as ValueError or KeyError, for a code that is none.
    """
    num_arguments, steps, parts = json.loads(code)
    results = ProgramResults(*(tuple(map(int, part)) for part in parts))
    return ArrayProgram(num_arguments, tuple(_step(*step) for step in steps), results)


def _step(name: str, params: dict[str, Any], extents: int | None, *operands: int) -> RecordedStep:
    """Return a recorded step from name and encoded parameters of its operation, and numbers.

    ``extents`` is how many extents the operation has, None if it has none; ``operands`` are the
    numbers of its operands.

    Raises: KeyError if there is no operation of this name.
    """
    if name == "project":
        return RecordedStep(OPERATIONS.projection(params["index"]), None, operands)
    operation = OPERATIONS.get(name, **{k: _decoded(v) for k, v in params.items()})
    return RecordedStep(operation, extents, operands)


# The operation.


def _build_step(operation: Operation, shape: tuple[Any, ...] | None, operands: list[Any]) -> Any:
    """Build an operation for entries; return an entry, or a tuple of them for several results.

    ``shape`` is its parameter of that name; None if it has none.
    """
    params = {} if shape is None else {"shape": shape}
    assert operation.build is not None
    return operation.build(*operands, **operation.params, **params)


def _build(*entries: Entry, code: str, shape: tuple[Any, ...]) -> Any:
    """Build the results of a program for entries of its inputs: an entry, or a tuple of several.

    ``code`` is that of the program, and ``shape`` has all extents that are parameters of its steps.

    Raises: PasskitError if a step cannot be built; GraphError if one has no gradient.
    """
    program = decode(code)
    results = program.results
    inputs = list(entries)
    for n in results.leaves:  # the same entry may be given for several arguments
        inputs[n] = ops.identity(inputs[n])
    values = program.run(inputs, shape, _build_step)
    outputs = [values[n] for n in results.outputs]
    leaves = [values[n] for n in results.leaves]
    heads = [values[n] for n in results.heads]
    if results.tangents:
        outputs += _derivatives(heads, leaves, [values[n] for n in results.tangents])
    elif leaves:
        seeds = [values[n] for n in results.seeds]
        outputs += gradients(heads, leaves, seeds or None)
    # A value that is returned as it was given must be one of this operation's own.
    outputs = [ops.identity(e) if any(e is x for x in entries) else e for e in outputs]
    return outputs[0] if len(outputs) == 1 else tuple(outputs)


def _derivatives(
    heads: list[Entry], leaves: list[Entry], tangents: list[Entry]
) -> list[Entry | None]:
    """Return for each head its derivative in the direction of the leaves' tangents.

    The gradient of the heads is linear in their weights; the gradient of its product with the
    tangents, by these weights, is the derivative. The weights themselves do not occur in it. It is
    zeros for a head that depends on no leaf.
    """
    weights = [ops.identity(ops.zeros_like(y)) for y in heads]
    adjoints = gradients(heads, leaves, weights, unconnected="none")
    products = [
        ops.reduce_sum(dx * t) for dx, t in zip(adjoints, tangents, strict=True) if dx is not None
    ]
    if not products:
        return [ops.zeros_like(y) for y in heads]
    total = products[0]
    for term in products[1:]:
        total = total + term
    return gradients(total, weights)


OPERATIONS.define("program", _build)


# Recording.


_trie = TrieNode()
"""The sequences of operations that were recorded: each with its steps and the codes of programs."""
MAX_RESULTS = 64
"""The most results of programs that the recorder finds by itself."""
_memo_sizes = [0]
"""The number of codes in the trie."""


class ProgramStream(Queue, TracingStream):
    """A stream that records a program.

    Operations are queued like those of any stream, so that recording them costs as little; but the
    queue is never executed. A stand-in takes the place of each value of another stream.

    Args:
        purpose: the transformation and the function, for messages.
        captures_are_kept: whether the program is used again later, so that nothing may be stored
            over the inputs that are no arguments; pending ones are then executed.
    """

    _recording: _Recording | None = None

    def __init__(self, purpose: str, captures_are_kept: bool = False) -> None:
        Queue.__init__(self)
        TracingStream.__init__(self, purpose)
        self.begin_tracing(_trie, ARGUMENT, captures_are_kept)

    def argument(self, value: Value, type: ArrayType | None = None) -> Value:
        """Add an argument, and return the pending value that stands for it in the function.

        Call this before anything is recorded. ``type`` is the type of the returned value; None:
        that of ``value``.
        """
        self.num_arguments += 1
        return self._stand_in(value, value.type if type is None else type)

    def _stand_in(self, value: Value, type: Any) -> Value:
        """Add ``value`` to the inputs of the program; return a pending value that stands for it.

        ``type`` is the type of the latter.
        """
        stand_in = self.pending(type)
        self.add_argument(value, stand_in)
        return stand_in

    def trace(self, operation: Operation, operands: tuple[Value, ...], result_type: Any) -> Value:
        """Record an operation, and return its pending result.

        Operands that are no values of this stream become inputs of the program.

        Raises: ConcretizationError if an operand belongs to another function that has ended.
        """
        value = self.pending(result_type, operation)
        value.operands = tuple([v if v.is_scalar else self._own(v) for v in operands])
        self.append(value)
        return value

    def _own(self, value: Value) -> Value:
        """Return a pending value of this stream itself, and the stand-in for any other value.

        At the first call, the other value becomes an input of the program.

        Raises: ConcretizationError if it belongs to another function that has ended.
        """
        if value.stream is self and value.operation is not None:
            return value
        stand_in = self.stand_ins.get(value)
        if stand_in is None:
            self._hold(value)
            stand_in = self.stand_ins[value] = self._stand_in(value, value.type)
        return stand_in

    @property
    def num_values(self) -> int:
        """Return how many values have numbers: the number that the next one gets."""
        return self.count if self._recording is None else self._recording.num_values

    def number(self, value: Value) -> int:
        """Return the number of a value; one that has none yet becomes an input of the program.

        Python numbers are a new input each time: programs do not depend on which are equal.

        Raises: ConcretizationError if it belongs to another function that has ended.
        """
        is_number = value.is_scalar
        own = self._stand_in(value, value.type) if is_number else self._own(value)
        number = self.number_of(own)
        assert number is not None
        return number

    def _hold(self, value: Value) -> None:
        """Keep an input from being dropped and stored over until the program is recorded.

        With ``captures_are_kept``, it is executed if it is pending, and nothing is ever stored over
        it.

        Raises: ConcretizationError if it belongs to another function that has ended.
        """
        stream = value.stream
        if isinstance(stream, TracingStream) and value.operation is not None:
            if not stream.is_open:
                stream.sync((value,), "its use in another function")
            return
        if value.operation is not None and self.keeps_inputs:
            stream.sync((value,), "a compiled function uses it")
        if value.operation is None and (self.keeps_inputs or value.is_alive):
            value.is_owned = False
            return
        self.held = (*(self.held or ()), (value, array_with(value)))

    def recorded(self, results: ProgramResults) -> RecordedProgram:
        """Return the recorded program with these results, and forget the values of this stream.

        The numbers in ``results`` are those that `number` returned before. More programs with the
        same steps and other results may follow.

        Raises: GraphError if a pending array that it uses was changed in place meanwhile.
        """
        recording = self._recording
        if recording is None:
            recording = self._recording = self._finished()
        key = self.num_arguments, results
        last = recording.programs.get(key)
        if last is None or last[0] != recording.extents:
            code = self._code(recording, key, results) if last is None else last[1]
            operation = OPERATIONS.get("program", code=code, shape=recording.extents)
            last = recording.programs[key] = recording.extents, code, operation
        if self.held:
            self._check_held(self.held)
        self.release()
        generic = last[2].generic
        generic.num_operators = recording.size
        if results.leaves:
            generic.num_operators = max(3 * recording.size, LARGE)
        return RecordedProgram(last[2], recording.inputs)

    def gradient_results(self, head: Value) -> list[Array]:
        """Record the program of a value and its gradient by all arguments; return these as arrays.

        `differentiated_call` finds the program by itself when the same operations are recorded
        again. The program is recorded in the stream around this one.

        Raises: GraphError as `recorded`; ConcretizationError if ``head`` belongs to another
        function that has ended; what an operation raises that is executed before; ArgumentError in
        `vmap` if the program cannot be vectorized.
        """
        number = self.number(head)
        leaves = tuple(range(self.num_arguments))
        position = self.processor.position
        program = self.recorded(ProgramResults((number,), (number,), (), leaves))
        types = (head.type, *[v.type for v in program.inputs[: len(leaves)]])
        if position is not None:
            extents: Any = program.operation.extents
            position.program = number, len(leaves), extents, program.operation, types
        return put_program(self.outer, program.operation, program.inputs, types)

    def _code(self, recording: _Recording, key: Any, results: ProgramResults) -> str:
        """Return the code of the program of a recording, and count it in the memo.

        ``key`` is that of the program in ``recording.programs``, ``results`` are its results.
        """
        if _memo_sizes[0] >= MAX_MEMO:
            _trie.drop_children()
            _memo_sizes[0] = 0
        _memo_sizes[0] += 1
        return encode(ArrayProgram(self.num_arguments, recording.steps, results))

    def _finished(self) -> _Recording:
        """Return what was recorded, with the steps and programs of equal operations before."""
        node = self.processor.position
        if node is None or node.plan is None:
            node = walk(_trie, self.processor.keys)
            size = sum([size_of(v.operation) for v in self.queue])
            node.plan = self._steps(), {}, size
        steps, programs, size = node.plan
        return _Recording(steps, programs, tuple(self.inputs), self.extents, size, self.count)

    def _steps(self) -> tuple[RecordedStep, ...]:
        """Return the queued operations as steps of a program."""
        steps = []
        for value in self.queue:
            operation: Any = value.operation
            result = self.number_of(value)
            assert result is not None
            # Its Python numbers are the inputs right before its result.
            scalars = result - sum(v.is_scalar for v in value.operands)
            numbers: list[Any] = []
            for operand in value.operands:
                if operand.is_scalar:
                    numbers.append(scalars)
                    scalars += 1
                else:
                    numbers.append(self.number_of(operand))
            extents = None if operation.extents is None else len(operation.extents)
            steps.append(RecordedStep(operation.generic, extents, tuple(numbers)))
        return tuple(steps)

    def release(self) -> None:
        """Forget the values of this stream and their numbers."""
        self.clear()

    def _check_held(self, held: tuple[tuple[Value, Any], ...]) -> None:
        """Raise a GraphError if a pending input was changed in place, and thereby left its queue.

        ``held`` has pairs of a pending input and its array. That array holds another value then,
        and nothing can compute the input any more.
        """
        for value, array in held:
            is_dropped = array._value is not value and value.operation is not None
            if is_dropped and not any(value is v for v in value.stream.queue):
                raise GraphError(
                    f"{self.purpose} changed an array in place that it uses and that is none of "
                    f"its arguments; make it an argument, or write x = x + … in place of x += …"
                )


def call_context(copied: Callable[[Any], Any]) -> tuple[Any, ...]:
    """Return the context of calls of `differentiated_call`.

    ``copied`` copies an argument that the function may change.
    """
    projections = OPERATIONS.projections(MAX_RESULTS)
    return ProgramStream, _trie, ARGUMENT, projections, copied


@frozen
class _Recording:
    """The operations that a `ProgramStream` has recorded.

    Attributes:
        steps: the operations.
        programs: the last program with these steps for each number of arguments and results: its
            extents, code and operation.
        inputs: the values that the program reads: arguments, then others that the function uses.
        extents: the extents that are parameters of the operations, one after the other.
        size: the number of operators that they stand for, roughly.
        num_values: the number of inputs and results.
    """

    steps: tuple[RecordedStep, ...]
    programs: dict[Any, tuple[tuple[int, ...], str, Operation]]
    inputs: tuple[Value, ...]
    extents: tuple[int, ...]
    size: int
    num_values: int


@frozen
class RecordedProgram:
    """A program as an operation, with the values that it reads.

    Attributes:
        operation: the operation.
        inputs: its operands.
    """

    operation: Operation
    inputs: tuple[Value, ...]

    def apply(
        self, types: Sequence[ArrayType], more: Sequence[Value] = (), arguments: Any = ()
    ) -> list[Array]:
        """Record the program in the stream of this thread, and return its results.

        Args:
            types: the types of the results, one at least.
            more: inputs that follow those that the program was recorded with.
            arguments: values in place of the first ones that it was recorded with.

        Returns: A pending array for each type. Before, what is queued may be executed, see
            `Queue.put_program`.

        Raises: what an operation raises that is executed; ArgumentError in `vmap` if the program
        cannot be vectorized.
        """
        operands = (*arguments, *self.inputs[len(arguments) :], *more)
        return put_program(runtime.current_stream(), self.operation, operands, tuple(types))


def put_program(
    stream: Any, operation: Operation, operands: tuple[Value, ...], types: tuple[ArrayType, ...]
) -> list[Array]:
    """Record a program in a stream, and return a pending array of each result.

    ``operation``, ``operands`` and ``types`` are the program, what it reads and the types of its
    results. Before, what is queued may be executed, see `Queue.put_program`.

    Raises: what an operation raises that is executed; ArgumentError in `vmap` if the program cannot
    be vectorized.
    """
    if not isinstance(stream, Queue):
        if len(types) == 1:
            return [wrap(stream.put(operation, operands, types[0]))]
        value = stream.put(operation, operands, types)
        return [wrap(stream.project(value, k)) for k in range(len(types))]
    if types[0].device is not stream.device and isinstance(stream, Stream):
        stream = stream.on(types[0].device)
    projections = OPERATIONS.projections(len(types))
    arrays: list[Array] = stream.put_program(operation, operands, types, projections)
    return arrays


def size_of(operation: Operation) -> int:
    """Return roughly the number of operators that an operation stands for.

    It is 1 for all but programs.
    """
    generic: Operation = operation.generic
    return generic.num_operators or 1
