"""Recurrent networks: a cell over a sequence, step by step, with sequences of several lengths.

Steps are unrolled, so that they fuse; past the end of a sequence outputs are 0 and states stay.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from passkit.errors import SettingError, ShapeError
from passkit.frontends.tinyflow import arrays
from passkit.frontends.tinyflow.nn.cells import RNNCell
from passkit.frontends.tinyflow.numbers import length
from passkit.frontends.tinyflow.ranks import known_shape
from passkit.frontends.tinyflow.refusals import refuses
from passkit.frontends.tinyflow.scopes import variable_scope
from passkit.frontends.tinyflow.tensors import Tensor, convert_to_tensor, read, wrapped
from passkit.graph.node import Entry, constant
from passkit.ops.helpers import make

UNROLLED = "all steps are one program"


def static_rnn(
    cell: RNNCell,
    inputs: Sequence[Any],
    initial_state: Any = None,
    dtype: Any = None,
    sequence_length: Any = None,
    scope: Any = None,
) -> tuple[list[Tensor], Any]:
    """The outputs of all steps and the last state, of inputs (examples, length), one a step."""
    with variable_scope(scope or "rnn"):
        return _steps(cell, [convert_to_tensor(x) for x in inputs], initial_state, dtype,
                      sequence_length)


def _steps(
    cell: RNNCell, inputs: Sequence[Tensor], state: Any, dtype: Any, lengths: Any
) -> tuple[list[Tensor], Any]:
    if not inputs:
        raise ShapeError("static_rnn needs at least one step of inputs, got none")
    if state is None:
        if dtype is None:
            raise SettingError("static_rnn needs an initial_state or its dtype, got neither")
        rows = length("static_rnn", known_shape(inputs[0].entry, "static_rnn"), 0)
        state = cell.zero_state(rows, dtype)
    wanted = None if lengths is None else make("cast", read(lengths), dtype="int32")
    outputs = []
    for k, x in enumerate(inputs):
        out, new = cell(x, state)
        if wanted is not None:
            over = make("expand_dims", make("greater_equal", constant(k, "int32"), wanted), axis=1)
            out = _chosen(over, out, None)
            new = _nested(over, new, state)
        outputs.append(out)
        state = new
    return outputs, state


def _chosen(over: Entry, new: Tensor, old: Tensor | None) -> Tensor:
    """``old``, or 0, for the examples that are over."""
    rest: Any = 0.0 if old is None else old.entry
    return wrapped(make("where", over, rest, new.entry), new._name)


def _nested(over: Entry, new: Any, old: Any) -> Any:
    if isinstance(new, tuple):
        parts = [_nested(over, n, o) for n, o in zip(new, old, strict=True)]
        return new._make(parts) if hasattr(new, "_make") else tuple(parts)
    return _chosen(over, new, convert_to_tensor(old))


def static_bidirectional_rnn(
    cell_fw: RNNCell,
    cell_bw: RNNCell,
    inputs: Sequence[Any],
    initial_state_fw: Any = None,
    initial_state_bw: Any = None,
    dtype: Any = None,
    sequence_length: Any = None,
    scope: Any = None,
) -> tuple[list[Tensor], Any, Any]:
    """Outputs of a cell forwards and one backwards, side by side, and both last states."""
    with variable_scope(scope or "bidirectional_rnn"):
        steps = [convert_to_tensor(x) for x in inputs]
        with variable_scope("fw"):
            ahead, last = _steps(cell_fw, steps, initial_state_fw, dtype, sequence_length)
        with variable_scope("bw"):
            turned = _turned(steps, sequence_length)
            back, first = _steps(cell_bw, turned, initial_state_bw, dtype, sequence_length)
        back = _turned(back, sequence_length)
    pairs = zip(ahead, back, strict=True)
    return [arrays.concat([a, b], 1) for a, b in pairs], last, first


def _turned(steps: Sequence[Tensor], lengths: Any) -> list[Tensor]:
    """The steps from the last to the first; of each sequence only as far as it goes."""
    if lengths is None:
        return list(reversed(steps))
    whole = make("stack", *(s.entry for s in steps), axis=1)
    turned = make("reverse_sequence", whole, read(lengths), axis=1, batch_axis=0)
    return arrays.unstack(wrapped(turned, "reversed"), len(steps), 1)


@refuses(UNROLLED, "parallel_iterations", "swap_memory")
def dynamic_rnn(
    cell: RNNCell,
    inputs: Any,
    sequence_length: Any = None,
    initial_state: Any = None,
    dtype: Any = None,
    parallel_iterations: int | None = None,
    swap_memory: bool = False,
    time_major: bool = False,
    scope: Any = None,
) -> tuple[Tensor, Any]:
    """Outputs (examples, steps, length) and the last state of such inputs.

    With ``time_major`` both are (steps, examples, length). The number of steps must be known.
    """
    x = convert_to_tensor(inputs)
    axis = 0 if time_major else 1
    if not isinstance(length("dynamic_rnn", known_shape(x.entry, "dynamic_rnn"), axis), int):
        raise ShapeError(
            f"dynamic_rnn needs a known number of steps, got {x!r}; give the placeholder the "
            f"longest, and sequence_length the length of each sequence"
        )
    with variable_scope(scope or "rnn"):
        steps = arrays.unstack(x, axis=axis)
        outputs, state = _steps(
            cell, steps, initial_state, dtype or x.dtype, sequence_length
        )
    return arrays.stack(outputs, axis), state


@refuses(UNROLLED, "parallel_iterations", "swap_memory")
def bidirectional_dynamic_rnn(
    cell_fw: RNNCell,
    cell_bw: RNNCell,
    inputs: Any,
    sequence_length: Any = None,
    initial_state_fw: Any = None,
    initial_state_bw: Any = None,
    dtype: Any = None,
    parallel_iterations: int | None = None,
    swap_memory: bool = False,
    time_major: bool = False,
    scope: Any = None,
) -> tuple[tuple[Tensor, Tensor], tuple[Any, Any]]:
    """Outputs of a cell forwards and of one backwards, and both last states, as `dynamic_rnn`."""
    x, axis = convert_to_tensor(inputs), 0 if time_major else 1
    with variable_scope(scope or "bidirectional_rnn"):
        with variable_scope("fw") as forwards:
            ahead, last = dynamic_rnn(
                cell_fw, x, sequence_length, initial_state_fw, dtype, time_major=time_major,
                scope=forwards,
            )
        with variable_scope("bw") as backwards:
            back, first = dynamic_rnn(
                cell_bw, _reversed(x, sequence_length, axis), sequence_length, initial_state_bw,
                dtype, time_major=time_major, scope=backwards,
            )
    return (ahead, _reversed(back, sequence_length, axis)), (last, first)


def _reversed(x: Tensor, lengths: Any, axis: int) -> Tensor:
    """The steps from the last to the first; of each sequence only as far as it goes."""
    if lengths is None:
        return arrays.reverse(x, [axis])
    turned = make(
        "reverse_sequence", x.entry, read(lengths), axis=axis, batch_axis=1 - axis
    )
    return wrapped(turned, "reversed")
