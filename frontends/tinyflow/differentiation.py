"""Gradients of tensors: ``tf.gradients``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from passkit.errors import DTypeError, SettingError
from passkit.frontends.tinyflow.argument_checks import reject_arguments
from passkit.frontends.tinyflow.deferred_calls import deferred_entries, is_deferred
from passkit.frontends.tinyflow.scopes import name_scope
from passkit.frontends.tinyflow.tensors import Tensor, as_entry, as_tensor
from passkit.frontends.tinyflow.variables import Variable
from passkit.graph import adjoint
from passkit.graph import graph as core
from passkit.graph.node import CONSTANT, Entry, Node
from passkit.ops.helpers import make

ALL_AT_ONCE = "a run is one program, in which all gradients are of the old values"


@reject_arguments(
    ALL_AT_ONCE, "colocate_gradients_with_ops", "gate_gradients", "aggregation_method"
)
def gradients(
    ys: Any,
    xs: Any,
    grad_ys: Any = None,
    name: str = "gradients",
    colocate_gradients_with_ops: bool = False,
    gate_gradients: bool = False,
    aggregation_method: Any = None,
    stop_gradients: Any = None,
    unconnected_gradients: str = "none",
) -> list[Tensor | None]:
    """Return the gradients of the sum of ``ys`` with respect to each of ``xs``.

    Args:
        ys: A tensor or a list of tensors, of floats.
        xs: A tensor or variable, or a list of them, of floats.
        grad_ys: For each of ``ys`` the gradient with respect to it, of its shape; ones by default,
            and where it is None.
        name: The name scope of the results; "gradients" by default.
        colocate_gradients_with_ops: Unsupported; only the default is accepted.
        gate_gradients: Unsupported; only the default is accepted.
        aggregation_method: Unsupported; only the default is accepted.
        stop_gradients: Tensors that are treated as constants, one or a list; none by default. They
            may be among ``xs``.
        unconnected_gradients: "none" (default) for None, or "zero" for zeros, where no y depends on
            an x.

    Returns:
        A list: for each of ``xs`` a tensor of its shape, or None.

    Raises:
        DTypeError: If one of ``xs`` or ``stop_gradients`` is no tensor, or one of ``xs`` or ``ys``
            is not of floats, or one of ``grad_ys`` has another dtype than its y.
        GraphError: If ``grad_ys`` has another length than ``ys``, or an operator has no gradient.
        ShapeError: If one of ``grad_ys`` has another shape than its y.
        SettingError: For another ``unconnected_gradients``, or if an unsupported argument is set.
        ArgumentError: If one of ``ys`` or ``grad_ys`` is neither a tensor nor numbers, or ``name``
            is no text.

    >>> from passkit.frontends import tinyflow as tf
    >>> x = tf.constant(3.0)
    >>> with tf.Session(target="interpret") as session:
    ...     session.run(tf.gradients(x * x, x))
    [np.float32(6.0)]
    """
    if unconnected_gradients not in ("none", "zero"):
        raise SettingError(
            f"gradients needs 'none' or 'zero' as unconnected_gradients, got "
            f"{unconnected_gradients!r}"
        )
    y_list, x_list = _as_list(ys), _as_list(xs)
    output_gradients = (
        None if grad_ys is None else [None if g is None else as_entry(g) for g in _as_list(grad_ys)]
    )
    for x in x_list:
        if not isinstance(x, Tensor):
            raise DTypeError(f"gradients needs tensors and variables as xs, got {x!r}")
    stop_list = _as_list([] if stop_gradients is None else stop_gradients)
    for x in stop_list:
        if not isinstance(x, Tensor):
            raise DTypeError(f"gradients needs tensors as stop_gradients, got {x!r}")
    stop_entries = [_source_entry(x) for x in stop_list]
    outputs, sources = [as_entry(y) for y in y_list], [_source_entry(x) for x in x_list]
    compute = _defer_gradients if _needs_runtime_ranks(outputs, sources) else _compute_gradients
    results = compute(outputs, sources, output_gradients, stop_entries, unconnected_gradients)
    with name_scope(name) as prefix:
        return [
            None if g is None else as_tensor(g, f"{prefix}{x._name}_grad")
            for x, g in zip(x_list, results, strict=True)
        ]


EntrySequence = Sequence[Entry]
OutputGradients = Sequence[Entry | None] | None


def _compute_gradients(
    ys: EntrySequence,
    xs: EntrySequence,
    weights: OutputGradients,
    stops: EntrySequence,
    unconnected: str,
) -> list[Entry | None]:
    """Return the gradient for each of ``xs`` in a graph whose ranks are known.

    Args:
        ys: The entries to differentiate.
        xs: The entries to differentiate by.
        weights: The gradient with respect to each of ``ys``; None, or None in it, for ones.
        stops: Entries that are treated as constants.
        unconnected: "none" or "zero", for an x that no y depends on.

    Returns:
        An entry for each of ``xs``; None if ``unconnected`` is "none" and no y depends on it.

    Raises:
        DTypeError: If one of ``xs`` or ``ys`` is not of floats, or a weight has another dtype than
            its y.
        GraphError: If an operator has no gradient, or ``weights`` has another length than ``ys``.
        ShapeError: If a weight has another shape than its y.
    """
    heads, bottoms = _insert_stops(list(ys), list(xs), stops)
    return adjoint.gradients(heads, bottoms, weights, unconnected=unconnected)


def _gradient_path(ys: EntrySequence, xs: EntrySequence) -> list[Node]:
    """Return the nodes through which a gradient flows from ``ys`` to ``xs``, in topological order.

    Those of ``xs`` and ``ys`` are included if they are connected. Gradients flow along
    `_differentiable_inputs`.
    """
    order = core.post_order([y.node for y in ys])
    depends_on_xs = {x.node for x in xs}
    for node in order:
        if any(e.node in depends_on_xs for e in _differentiable_inputs(node)):
            depends_on_xs.add(node)
    flowing = {y.node for y in ys} & depends_on_xs
    for node in reversed(order):
        if node in flowing:
            flowing.update(e.node for e in _differentiable_inputs(node) if e.node in depends_on_xs)
    return [n for n in order if n in flowing]


def _differentiable_inputs(node: Node) -> list[Entry]:
    """Return the inputs of a node that have floats or an unknown dtype.

    Variables have none, and neither has ``stop_gradient``, which passes no gradient.
    """
    if node.op is None or node.op.name == "stop_gradient":
        return []
    return [e for e in node.inputs if e.dtype is None or e.dtype.is_float]


def _needs_runtime_ranks(ys: EntrySequence, xs: EntrySequence) -> bool:
    """Return whether the gradients of ``ys`` by ``xs`` need a rank that only a run determines."""
    leaves = set(xs)
    return any(
        e.shape is None or is_deferred(node)
        for node in _gradient_path(ys, xs)
        for e in (*node.entries, *(() if leaves & set(node.entries) else node.inputs))
    )


def _defer_gradients(
    ys: EntrySequence,
    xs: EntrySequence,
    weights: OutputGradients,
    stops: EntrySequence,
    unconnected: str,
) -> list[Entry | None]:
    """Create a deferred node that builds the gradients once a run has the ranks.

    Args:
        ys: The entries to differentiate.
        xs: The entries to differentiate by.
        weights: The gradient with respect to each of ``ys``; None, or None in it, for ones.
        stops: Entries that are treated as constants.
        unconnected: "none" or "zero", for an x that no y depends on.

    Returns:
        An entry for each of ``xs``; None if ``unconnected`` is "none" and no y depends on it. An
        x that turns out to have no gradient in the run, such as one before a rounding, gets zeros.
    """
    fed_weights = [w for w in weights or () if w is not None]
    group_sizes = [len(ys), len(xs), len(fed_weights)]
    used = set(_gradient_path(ys, xs))

    def call(ranked: Sequence[Tensor]) -> list[Tensor]:
        entries = iter([t.entry for t in ranked])
        heads, bottoms, weight_entries = ([next(entries) for _ in range(n)] for n in group_sizes)
        weights_left = iter(weight_entries)
        seeds = (
            None
            if weights is None
            else [None if w is None else next(weights_left) for w in weights]
        )
        results = _compute_gradients(heads, bottoms, seeds, list(entries), "zero")
        return [as_tensor(g, "gradient") for g in results if g is not None]

    outputs = [(x.shape, x.dtype) for x in xs]
    results = deferred_entries(call, [*ys, *xs, *fed_weights, *stops], outputs, "gradients")
    if unconnected == "zero":
        return list(results)
    return [g if x.node in used else None for x, g in zip(xs, results, strict=True)]


def _source_entry(x: Tensor) -> Entry:
    """Return the entry to differentiate by: that of a tensor, or the state of a variable.

    Raises:
        DTypeError: For a tensor of text.
    """
    return x.state if isinstance(x, Variable) else x.entry


def _insert_stops(
    ys: list[Entry], xs: list[Entry], stops: Sequence[Entry]
) -> tuple[list[Entry], list[Entry]]:
    """Stop gradients at entries, and make constants among ``xs`` differentiable.

    Args:
        ys: The entries to differentiate.
        xs: The entries to differentiate by.
        stops: The entries after which ``stop_gradient`` is inserted; those outside of the graph are
            ignored.

    Returns:
        ``ys`` and ``xs`` of the changed graph; the arguments themselves if nothing changes.
    """
    graph = core.Graph([*ys, *xs])
    # A constant of one element is a number to the rules, which have no gradient by it.
    changed = {x: make("identity", x) for x in xs if x.node.op is CONSTANT}
    inside = {e for n in graph.nodes for e in n.entries}
    changed.update((e, make("stop_gradient", e)) for e in stops if e in inside)
    if not changed:
        return ys, xs
    outputs = graph.replace(changed).outputs
    return list(outputs[: len(ys)]), list(outputs[len(ys) :])


def _as_list(value: Any) -> Sequence[Any]:
    """Return a new list: of the elements of a list or tuple, or of any other value alone."""
    return list(value) if isinstance(value, (list, tuple)) else [value]
