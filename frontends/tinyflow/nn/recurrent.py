"""Recurrent networks: a cell applied to each step of a sequence.

Steps are unrolled, so that they fuse. Past the end of a sequence, outputs are 0 and states stay.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from passkit.errors import SettingError, ShapeError
from passkit.frontends.tinyflow import arrays
from passkit.frontends.tinyflow.argument_checks import (
    axis_length,
    reject_arguments,
    require_list,
)
from passkit.frontends.tinyflow.nn.cells import RNNCell
from passkit.frontends.tinyflow.scopes import variable_scope
from passkit.frontends.tinyflow.shapes import require_shape
from passkit.frontends.tinyflow.tensors import Tensor, as_entry, as_tensor, convert_to_tensor
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
    """Apply a cell to a list of steps.

    Args:
        cell: The cell.
        inputs: A list with a tensor of shape (examples, length) for each step.
        initial_state: The first state, in the structure of ``cell.state_size``; zeros by default.
        dtype: The dtype of a state of zeros; required without ``initial_state``.
        sequence_length: The length of each example's sequence, a vector of integers, or of floats,
            which are truncated; by default all steps. Past the end, outputs are 0 and the state
            stays.
        scope: The variable scope; "rnn" by default.

    Returns:
        A list of the outputs, one of shape (examples, output_size) for each step; and the last
        state.

    Raises:
        ShapeError: If there are no steps, an input or state does not fit the cell, or
            ``sequence_length`` not the examples.
        SettingError: If both ``initial_state`` and ``dtype`` are None.
        GraphError: If ``inputs`` is no list, such as a single tensor, or the cell's variables exist
            already and are not to be reused.
        DTypeError: If inputs hold no floats, the state has another dtype than they, or
            ``sequence_length`` holds complex numbers.
        ArgumentError: For inputs, states or lengths that are neither tensors nor numbers.
    """
    with variable_scope(scope or "rnn"):
        return _run_steps(
            cell,
            [convert_to_tensor(x) for x in require_list("static_rnn", "inputs", inputs)],
            initial_state,
            dtype,
            sequence_length,
        )


def _run_steps(
    cell: RNNCell, inputs: Sequence[Tensor], state: Any, dtype: Any, lengths: Any
) -> tuple[list[Tensor], Any]:
    """Apply a cell to each step of a list.

    Args:
        cell: The cell.
        inputs: A tensor for each step.
        state: The first state; None for zeros.
        dtype: The dtype of a state of zeros.
        lengths: The length of each example's sequence; None for all steps.

    Returns:
        A list of the outputs of all steps, 0 behind the end of a sequence; and the last state.

    Raises:
        ShapeError: If there are no steps, an input or state does not fit the cell, or the lengths
            not the examples.
        SettingError: If both the state and its dtype are None.
        GraphError: If the cell's variables exist already and are not to be reused.
        DTypeError: If inputs hold no floats, the state has another dtype than they, or the lengths
            are complex numbers.
        ArgumentError: If the lengths or the state are neither tensors nor numbers.
    """
    if not inputs:
        raise ShapeError("static_rnn needs at least one step of inputs, got none")
    if state is None:
        if dtype is None:
            raise SettingError("static_rnn needs an initial_state or its dtype, got neither")
        rows = axis_length("static_rnn", require_shape(inputs[0].entry, "static_rnn"), 0)
        state = cell.zero_state(rows, dtype)
    length_entry = None if lengths is None else make("cast", as_entry(lengths), dtype="int32")
    outputs = []
    for k, x in enumerate(inputs):
        output, new_state = cell(x, state)
        if length_entry is not None:
            is_past_end = make(
                "expand_dims", make("greater_equal", constant(k, "int32"), length_entry), axis=1
            )
            output = _select_active(is_past_end, output, None)
            new_state = _select_active_states(is_past_end, new_state, state)
        outputs.append(output)
        state = new_state
    return outputs, state


def _select_active(is_past_end: Entry, new_value: Tensor, old_value: Tensor | None) -> Tensor:
    """Return ``new_value`` for examples that go on, else ``old_value`` or 0.

    Args:
        is_past_end: Bool of shape (examples, 1), true behind the end of an example's sequence.
        new_value: Value that this step computed.
        old_value: Value of the step before; None for 0.

    Returns:
        A tensor of the shape of ``new_value``.

    Raises:
        ShapeError: If there is another number of examples in ``is_past_end``.
    """
    inactive: Any = 0.0 if old_value is None else old_value.entry
    return as_tensor(make("where", is_past_end, inactive, new_value.entry), new_value._name)


def _select_active_states(is_past_end: Entry, new_state: Any, old_state: Any) -> Any:
    """Apply `_select_active` to each part of two states.

    Args:
        is_past_end: Bool of shape (examples, 1), true behind the end of an example's sequence.
        new_state: The state that this step computed: a tensor, or nested tuples.
        old_state: The state of the step before, in the same structure.

    Returns:
        The selected state, in the structure of ``new_state``.

    Raises:
        ShapeError: If there is another number of examples in ``is_past_end``.
    """
    if isinstance(new_state, tuple):
        parts = [
            _select_active_states(is_past_end, n, o)
            for n, o in zip(new_state, old_state, strict=True)
        ]
        return new_state._make(parts) if hasattr(new_state, "_make") else tuple(parts)
    return _select_active(is_past_end, new_state, convert_to_tensor(old_state))


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
    """Apply a cell forwards and another one backwards to a list of steps.

    Args:
        cell_fw: The cell of the forward direction.
        cell_bw: The cell of the backward direction.
        inputs: A list with a tensor of shape (examples, length) for each step.
        initial_state_fw: The first state of the forward direction; zeros by default.
        initial_state_bw: The first state of the backward direction; zeros by default.
        dtype: The dtype of states of zeros; required without initial states.
        sequence_length: The length of each example's sequence, a vector of ints; by default all
            steps.
        scope: The variable scope; "bidirectional_rnn" by default.

    Returns:
        Three members: a list of the outputs of both cells, concatenated along the last axis, one
        for each step, 0 behind the end of an example's sequence; the state of the forward cell at
        that end; that of the backward cell at the first step.

    Raises:
        ShapeError: If there are no steps, an input or state does not fit a cell, or
            ``sequence_length`` not the examples.
        SettingError: If both an initial state and ``dtype`` are None.
        DTypeError: If ``sequence_length`` holds no integers, inputs hold no floats, or a state has
            another dtype than they.
        GraphError: If ``inputs`` is no list, such as a single tensor, or a cell's variables exist
            already and are not to be reused.
        ArgumentError: For inputs, states or lengths that are neither tensors nor numbers.
    """
    with variable_scope(scope or "bidirectional_rnn"):
        listed = require_list("static_bidirectional_rnn", "inputs", inputs)
        steps = [convert_to_tensor(x) for x in listed]
        with variable_scope("fw"):
            forward_outputs, forward_state = _run_steps(
                cell_fw, steps, initial_state_fw, dtype, sequence_length
            )
        with variable_scope("bw"):
            reversed_steps = _reverse_steps(steps, sequence_length)
            backward_outputs, backward_state = _run_steps(
                cell_bw, reversed_steps, initial_state_bw, dtype, sequence_length
            )
        backward_outputs = _reverse_steps(backward_outputs, sequence_length)
    pairs = zip(forward_outputs, backward_outputs, strict=True)
    return [arrays.concat([a, b], 1) for a, b in pairs], forward_state, backward_state


def _reverse_steps(steps: Sequence[Tensor], lengths: Any) -> list[Tensor]:
    """Reverse the order of steps.

    Args:
        steps: A tensor of shape (examples, size) for each step.
        lengths: The length of each example's sequence, within which it is reversed; None for all
            steps.

    Raises:
        DTypeError: If the lengths are no integers.
        ShapeError: If there is not one length for each example.
        ArgumentError: If the lengths are neither a tensor nor numbers.
    """
    if lengths is None:
        return list(reversed(steps))
    stacked = make("stack", *(s.entry for s in steps), axis=1)
    reversed_steps = make("reverse_sequence", stacked, as_entry(lengths), axis=1, batch_axis=0)
    return arrays.unstack(as_tensor(reversed_steps, "reversed"), len(steps), 1)


@reject_arguments(UNROLLED, "parallel_iterations", "swap_memory")
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
    """Apply a cell to each step of a tensor.

    Args:
        cell: The cell.
        inputs: A tensor of shape (examples, steps, length), of a known number of steps; see
            ``time_major``.
        sequence_length: The length of each example's sequence, a vector of integers, or of floats,
            which are truncated; by default all steps. Past the end, outputs are 0 and the state
            stays.
        initial_state: The first state, in the structure of ``cell.state_size``; zeros by default.
        dtype: The dtype of a state of zeros; by default that of ``inputs``.
        parallel_iterations: Unsupported; only the default is accepted.
        swap_memory: Unsupported; only the default is accepted.
        time_major: Whether inputs and outputs have the shape (steps, examples, length); False by
            default.
        scope: The variable scope; "rnn" by default.

    Returns:
        The outputs, of shape (examples, steps, output_size) unless ``time_major``; and the last
        state.

    Raises:
        ShapeError: If the rank or the number of steps is unknown or the latter 0, an input or state
            does not fit the cell, or ``sequence_length`` not the examples.
        SettingError: If an unsupported argument is set.
        GraphError: If the cell's variables exist already and are not to be reused.
        DTypeError: If ``inputs`` holds no floats, the state has another dtype, or
            ``sequence_length`` holds complex numbers.
        ArgumentError: For inputs, states or lengths that are neither tensors nor numbers.
    """
    x = convert_to_tensor(inputs)
    axis = 0 if time_major else 1
    if not isinstance(axis_length("dynamic_rnn", require_shape(x.entry, "dynamic_rnn"), axis), int):
        raise ShapeError(
            f"dynamic_rnn needs a known number of steps, got {x!r}; give the placeholder the "
            f"longest, and sequence_length the length of each sequence"
        )
    with variable_scope(scope or "rnn"):
        steps = arrays.unstack(x, axis=axis)
        kind = x.dtype if dtype is None else dtype
        outputs, state = _run_steps(cell, steps, initial_state, kind, sequence_length)
    return arrays.stack(outputs, axis), state


@reject_arguments(UNROLLED, "parallel_iterations", "swap_memory")
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
    """Apply a cell forwards and another one backwards to each step of a tensor.

    Args:
        cell_fw: The cell of the forward direction.
        cell_bw: The cell of the backward direction.
        inputs: A tensor of shape (examples, steps, length), of a known number of steps; see
            ``time_major``.
        sequence_length: The length of each example's sequence, a vector of ints; by default all
            steps.
        initial_state_fw: The first state of the forward direction; zeros by default.
        initial_state_bw: The first state of the backward direction; zeros by default.
        dtype: The dtype of states of zeros; by default that of ``inputs``.
        parallel_iterations: Unsupported; only the default is accepted.
        swap_memory: Unsupported; only the default is accepted.
        time_major: Whether inputs and outputs have the shape (steps, examples, length); False by
            default.
        scope: The variable scope; "bidirectional_rnn" by default.

    Returns:
        Two pairs, forward first: the outputs of each cell, as in `dynamic_rnn`, and the last state
        of each cell.

    Raises:
        ShapeError: If the rank or the number of steps is unknown or the latter 0, an input or state
            does not fit a cell, or ``sequence_length`` not the examples.
        SettingError: If an unsupported argument is set.
        DTypeError: If ``sequence_length`` holds no integers, ``inputs`` no floats, or a state has
            another dtype.
        GraphError: If a cell's variables exist already and are not to be reused.
        ArgumentError: For inputs, states or lengths that are neither tensors nor numbers.
    """
    x, axis = convert_to_tensor(inputs), 0 if time_major else 1
    with variable_scope(scope or "bidirectional_rnn"):
        with variable_scope("fw") as forwards:
            forward_outputs, forward_state = dynamic_rnn(
                cell_fw,
                x,
                sequence_length,
                initial_state_fw,
                dtype,
                time_major=time_major,
                scope=forwards,
            )
        with variable_scope("bw") as backwards:
            backward_outputs, backward_state = dynamic_rnn(
                cell_bw,
                _reverse_time(x, sequence_length, axis),
                sequence_length,
                initial_state_bw,
                dtype,
                time_major=time_major,
                scope=backwards,
            )
    return (forward_outputs, _reverse_time(backward_outputs, sequence_length, axis)), (
        forward_state,
        backward_state,
    )


def _reverse_time(x: Tensor, lengths: Any, axis: int) -> Tensor:
    """Reverse a tensor along the axis of steps.

    Args:
        x: A tensor whose first two axes are examples and steps.
        lengths: The length of each example's sequence, within which it is reversed; None for all
            steps.
        axis: The axis of the steps, 0 or 1.

    Raises:
        DTypeError: If the lengths are no integers.
        ShapeError: If there is not one length for each example.
        ArgumentError: If the lengths are neither a tensor nor numbers.
    """
    if lengths is None:
        return arrays.reverse(x, [axis])
    reversed_steps = make(
        "reverse_sequence", x.entry, as_entry(lengths), axis=axis, batch_axis=1 - axis
    )
    return as_tensor(reversed_steps, "reversed")
