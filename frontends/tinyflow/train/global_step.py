"""The global step, and learning rates that decay with it."""

from __future__ import annotations

from typing import Any

from passkit.frontends.tinyflow import creation, elementwise
from passkit.frontends.tinyflow.argument_checks import require_float
from passkit.frontends.tinyflow.graphs import Graph, GraphKeys, get_default_graph
from passkit.frontends.tinyflow.tensors import Tensor, convert_to_tensor
from passkit.frontends.tinyflow.variables import Variable


def get_global_step(graph: Graph | None = None) -> Variable | None:
    """Return the variable that counts training steps.

    Args:
        graph: The graph; by default the default graph.

    Returns:
        The variable that `get_or_create_global_step` created; None if there is none.
    """
    steps = (graph or get_default_graph()).get_collection(GraphKeys.GLOBAL_STEP)
    return steps[0] if steps else None


def get_or_create_global_step(graph: Graph | None = None) -> Variable:
    """Return the variable that counts training steps; create it if it is new.

    Args:
        graph: The graph; by default the default graph.

    Returns:
        A scalar int64 variable, which starts at 0 and is not trainable. A new one is called
        "global_step" and is in the collections of global variables and GraphKeys.GLOBAL_STEP.
    """
    target_graph = graph or get_default_graph()
    existing = get_global_step(target_graph)
    if existing is not None:
        return existing
    with target_graph.as_default(), target_graph.with_name_prefix(""):
        step = Variable(creation.constant(0, "int64"), False, name="global_step")
    target_graph.add_to_collection(GraphKeys.GLOBAL_STEP, step)
    return step


def exponential_decay(
    learning_rate: Any,
    global_step: Any,
    decay_steps: Any,
    decay_rate: Any,
    staircase: bool = False,
    name: str | None = None,
) -> Tensor:
    """Return learning_rate * decay_rate^(global_step / decay_steps).

    Args:
        learning_rate: The rate at step 0, a number or a tensor.
        global_step: The number of the step, a number or a tensor.
        decay_steps: The number of steps for one factor of ``decay_rate``, a number, no tensor.
        decay_rate: The factor, a number, no tensor.
        staircase: Whether the exponent is rounded down; False by default.
        name: The name of the result; "ExponentialDecay" by default.

    Returns:
        A tensor of the dtype of ``learning_rate``; float32 if that has no floats.

    Raises:
        SettingError: If ``decay_steps`` or ``decay_rate`` is no number.
        ArgumentError: For a value that is neither a tensor nor numbers.
        DTypeError: If a tensor holds complex numbers or text.
    """
    rate = convert_to_tensor(learning_rate)
    if not rate.dtype.is_float:
        rate = elementwise.to_float(rate)
    steps = elementwise.cast(convert_to_tensor(global_step), rate.dtype) / require_float(
        "exponential_decay", "decay_steps", decay_steps
    )
    power = elementwise.FUNCTIONS["floor"](steps) if staircase else steps
    base = convert_to_tensor(
        require_float("exponential_decay", "decay_rate", decay_rate), rate.dtype
    )
    return elementwise.FUNCTIONS["multiply"](
        rate, elementwise.FUNCTIONS["pow"](base, power), name or "ExponentialDecay"
    )
