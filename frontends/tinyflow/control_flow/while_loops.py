"""Loops: ``tf.while_loop``.

A loop whose condition is known while the graph is built is unrolled, and has gradients. Any other
loop iterates in the run: its condition and its body are graphs of their own, functions of the loop
variables and of the values that they read from outside.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from passkit.errors import GraphError, SettingError, ShapeError
from passkit.frontends.tinyflow import creation, elementwise
from passkit.frontends.tinyflow.argument_checks import (
    reject_arguments,
    require_function,
    require_int,
)
from passkit.frontends.tinyflow.control_flow.branches import select, writing_only_if
from passkit.frontends.tinyflow.control_flow.static_values import (
    ONE_PROGRAM,
    share_variables,
    simplify_counter,
    static_scalar,
)
from passkit.frontends.tinyflow.deferred_calls import is_unranked
from passkit.frontends.tinyflow.graphs import get_default_graph
from passkit.frontends.tinyflow.nest import flatten_nest, pack_like
from passkit.frontends.tinyflow.scopes import name_scope
from passkit.frontends.tinyflow.shapes import UnknownShape, format_shape, require_shape
from passkit.frontends.tinyflow.tensors import (
    Tensor,
    as_tensor,
    convert_to_tensor,
    scalar_entry,
    unique_name,
)
from passkit.graph.graph import Graph, post_order
from passkit.graph.node import CONSTANT, Entry, var
from passkit.ops.helpers import make
from passkit.runtime import loop as runtime

MAX_UNROLLED = 256
"""The most iterations that are unrolled, even if their number is known."""
MAX_MASKED = 64
"""The most iterations that are unrolled if only a run knows how many of them it needs."""


@reject_arguments(ONE_PROGRAM, "swap_memory", "parallel_iterations")
def while_loop(
    cond: Callable[..., Any],
    body: Callable[..., Any],
    loop_vars: Any,
    shape_invariants: Any = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    name: str | None = None,
    maximum_iterations: Any = None,
    return_same_structure: bool = False,
) -> Any:
    """Repeat ``body`` while ``cond`` holds, and return the loop variables.

    The loop is unrolled if the condition is known while the graph is built, for up to 256
    iterations, or if ``maximum_iterations`` is at most 64. It then has gradients. Any other loop
    iterates in the run: variables keep dtype and shape, the body assigns no `tf.Variable`, and
    there is no gradient.

    Args:
        cond: Takes the loop variables as arguments and returns a scalar bool.
        body: Takes the loop variables as arguments and returns their next values, in the same
            structure.
        loop_vars: The initial values: tensors or numbers in a list or tuple, which may be nested.
        shape_invariants: May only repeat the shapes of the loop variables; none by default.
        parallel_iterations: Unsupported; only the default is accepted.
        back_prop: Whether gradients flow through the loop; True by default.
        swap_memory: Unsupported; only the default is accepted.
        name: The name scope; "while" by default.
        maximum_iterations: The most iterations, an int that is known while the graph is built, none
            for a negative one; no limit by default.
        return_same_structure: Whether a single loop variable is returned in its structure, too;
            False by default.

    Returns:
        The loop variables after the last iteration, in the structure of ``loop_vars``; a single one
        by itself unless ``return_same_structure``.

    Raises:
        GraphError: If the condition is no scalar bool, if the body returns another number of
            tensors or other dtypes than it gets, also another rank in an unrolled loop whose
            condition only a run knows, or assigns a variable in a loop that iterates in the run.
        ShapeError: If a loop variable changes its shape in a loop that iterates in the run, or
            contradicts ``shape_invariants``; if its shapes before and after an iteration do not
            broadcast in an unrolled loop whose condition only a run knows.
        SettingError: If ``cond`` or ``body`` is no function, ``maximum_iterations`` is no int, or
            known only in a run, ``shape_invariants`` holds anything but a shape for each loop
            variable, or an unsupported argument is set.
        ArgumentError: If a loop variable is neither a tensor nor numbers, or the functions return
            such values.
        DTypeError: For a tensor of text.

    >>> from passkit.frontends import tinyflow as tf
    >>> total = tf.while_loop(lambda i: i < 100, lambda i: i * 2, [tf.constant(1)])
    >>> with tf.Session(target="interpret") as session:
    ...     session.run(total)
    np.int32(128)
    """
    limit = None if maximum_iterations is None else static_scalar(maximum_iterations)
    if maximum_iterations is not None:
        limit = require_int("while_loop", "maximum_iterations", limit)
    with name_scope(name, "while"):
        nest = loop_vars if isinstance(loop_vars, (list, tuple)) else [loop_vars]
        initial = [simplify_counter(convert_to_tensor(v)) for v in flatten_nest(nest)]
        _check_invariants(initial, shape_invariants)
        loop = _LoopTracer(cond, body, nest)
        results = loop.unroll(initial, limit, back_prop)
        if results is None:
            results = loop.build_runtime_loop(initial, limit)
        if not back_prop:
            results = [elementwise.stop_gradient(v) for v in results]
        packed = pack_like(nest, iter(results))
        return packed[0] if len(packed) == 1 and not return_same_structure else packed


def _check_invariants(initial: Sequence[Tensor], invariants: Any) -> None:
    """Raise ShapeError for a shape invariant that is not the shape of its loop variable.

    Raise SettingError for one that is no shape, or for another number of them.

    Args:
        initial: The initial values of the loop variables.
        invariants: A `TensorShape` for each of them, in nested lists and tuples; None for no check,
            of all or of one. Unknown ranks pass.
    """
    if invariants is None:
        return
    shapes = _flatten_shapes(invariants)
    if len(shapes) != len(initial):
        raise SettingError(
            f"while_loop needs one of shape_invariants for each of {len(initial)} loop variables, "
            f"got {len(shapes)}"
        )
    for value, invariant in zip(initial, shapes, strict=True):
        shape = None if isinstance(invariant, UnknownShape) else invariant
        actual = None if is_unranked(value) else [d.value for d in value.shape]
        if shape is not None and actual is not None and shape.as_list() != actual:
            raise ShapeError(
                f"while_loop needs variables that keep their shape, got shape_invariants with "
                f"{shape} for {value!r}; a tensor of the largest size and a count serve instead"
            )


def _flatten_shapes(invariants: Any) -> list[Any]:
    """Return the shapes in nested lists and tuples, and None; a `TensorShape` is itself a tuple.

    Raises:
        SettingError: For anything else, such as ints.
    """
    if hasattr(invariants, "as_list") or invariants is None:
        return [invariants]
    if not isinstance(invariants, (list, tuple)):
        raise SettingError(
            f"while_loop needs shapes such as tensor.shape as shape_invariants, got {invariants!r}"
        )
    return [s for part in invariants for s in _flatten_shapes(part)]


class _LoopTracer:
    """Traces the condition and the body of a loop.

    Args:
        cond: Takes the loop variables as arguments and returns a scalar bool.
        body: Takes the loop variables as arguments and returns their next values, in the same
            structure. The variables that it gets from `tf.get_variable` are created once.
        nest: The structure of the loop variables, a list or tuple.
    """

    def __init__(self, cond: Callable[..., Any], body: Callable[..., Any], nest: Any) -> None:
        self.cond = require_function("while_loop", "cond", cond)
        self.body = share_variables(require_function("while_loop", "body", body))
        self.nest = nest

    def trace_condition(self, values: Sequence[Tensor]) -> Tensor:
        """Return the condition for these loop variables.

        Args:
            values: A tensor for each loop variable.

        Returns:
            A tensor of bools, scalar unless its rank is unknown.

        Raises:
            GraphError: If it is no scalar bool.
            ArgumentError: If it is neither a tensor nor a number.
            DTypeError: For a tensor of text.
        """
        condition = convert_to_tensor(self.cond(*pack_like(self.nest, iter(values))))
        is_scalar = is_unranked(condition) or not len(condition.shape)
        if condition.dtype.name != "bool" or not is_scalar:
            raise GraphError(f"while_loop needs a single bool of its condition, got {condition!r}")
        return condition

    def trace_body(self, values: Sequence[Tensor]) -> list[Tensor]:
        """Return the loop variables after one iteration.

        Args:
            values: A tensor for each loop variable.

        Returns:
            The next values, in order.

        Raises:
            GraphError: If their number or dtypes changed.
            ArgumentError: If one is neither a tensor nor numbers.
            DTypeError: For a tensor of text.
        """
        result = self.body(*pack_like(self.nest, iter(values)))
        new_values = [convert_to_tensor(v) for v in flatten_nest(result)]
        if len(new_values) != len(values):
            raise GraphError(
                f"while_loop has {len(values)} variables, and its body returns {len(new_values)}"
            )
        for k, (old, new) in enumerate(zip(values, new_values, strict=True)):
            if old.dtype is not new.dtype:
                raise GraphError(
                    f"while_loop begins with {old!r} as variable {k}, and its body returns {new!r}"
                )
        return [simplify_counter(v) for v in new_values]

    def unroll(
        self, initial: list[Tensor], limit: int | None, back_prop: bool
    ) -> list[Tensor] | None:
        """Trace the iterations one after the other.

        Args:
            initial: The initial values of the loop variables.
            limit: The most iterations; None for no limit.
            back_prop: Whether to unroll up to `MAX_MASKED` iterations if the condition is not
                known while the graph is built.

        Returns:
            The final values; None if the loop has to iterate in the run.

        Raises:
            GraphError: If the condition is no scalar bool, or the body returns another number of
                values or other dtypes.
            ArgumentError: If the condition or a loop variable is neither a tensor nor numbers.
            DTypeError: For a tensor of text.
            ShapeError: As `unroll_masked`, which it calls for a condition that only a run knows.
        """
        values, iterations = initial, 0
        while limit is None or iterations < limit:
            goes_on = static_scalar(self.trace_condition(values))
            if goes_on is None or iterations == MAX_UNROLLED:
                if iterations == 0 and back_prop and limit is not None and limit <= MAX_MASKED:
                    return self.unroll_masked(initial, limit)
                return None
            if not goes_on:
                return values
            values, iterations = self.trace_body(values), iterations + 1
        return values

    def unroll_masked(self, values: list[Tensor], iterations: int) -> list[Tensor]:
        """Trace all iterations; those after the condition failed change no variables.

        Args:
            values: Initial values of the loop variables.
            iterations: Number of iterations to trace.

        Returns:
            The final values.

        Raises:
            GraphError: If the condition is no scalar bool, or the body returns another number of
                values, other dtypes or ranks.
            ShapeError: If the shapes of a value before and after an iteration do not broadcast.
            ArgumentError: If the condition or a loop variable is neither a tensor nor numbers.
            DTypeError: For a tensor of text.
        """
        active: Entry | None = None
        for _ in range(iterations):
            goes_on = scalar_entry(self.trace_condition(values))
            active = goes_on if active is None else make("logical_and", active, goes_on)
            with writing_only_if(active):
                new_values = self.trace_body(values)
            pairs = zip(values, new_values, strict=True)
            values = [select(active, new, old) for old, new in pairs]
        return values

    def build_runtime_loop(self, initial: list[Tensor], limit: int | None) -> list[Tensor]:
        """Create a node that iterates in the run.

        Args:
            initial: The initial values of the loop variables.
            limit: The most iterations; None for no limit.

        Returns:
            A tensor for each loop variable.

        Raises:
            GraphError: If the condition is no scalar bool, or the body assigns a variable or
                returns another number of values or other dtypes.
            ShapeError: If a loop variable changes its shape, or its rank is unknown.
            ArgumentError: If the condition or a loop variable is neither a tensor nor numbers.
            DTypeError: For a tensor of text.
        """
        graph = get_default_graph()
        begin = [v.entry for v in initial] + [creation.constant(0, "int64").entry]
        for entry in begin:
            require_shape(entry, "while_loop")
        states = [var(f"{runtime.INPUT_PREFIX}{k}", e.shape, e.dtype) for k, e in enumerate(begin)]
        loop_values = [as_tensor(e, f"loop_{k}", control=False) for k, e in enumerate(states)]
        write_count = len(graph.writes)
        with graph.with_dependencies(None), graph.loop_iteration(states[-1]):
            condition = self.trace_condition(loop_values[:-1]).entry
            if limit is not None:
                condition = make("logical_and", condition, make("less", states[-1], limit))
            heads = [v.entry for v in self.trace_body(loop_values[:-1])] + [states[-1] + 1]
        if len(graph.writes) != write_count:
            raise GraphError(
                "while_loop iterates in the run, and its body assigns to a variable; pass the "
                "value as a loop variable, and assign it after the loop"
            )
        for k, (old, new) in enumerate(zip(states, heads, strict=True)):
            if old.shape != new.shape:
                raise ShapeError(
                    f"while_loop needs variables that keep their shape, and variable {k} changes "
                    f"from {format_shape(require_shape(old))} to "
                    f"{format_shape(require_shape(new, 'while_loop'))}"
                )
        graphs, invariants = _lift_invariants([[condition], heads], states)
        results = runtime.while_loop(
            graphs[0], graphs[1], begin, invariants, unique_name(None, "while")
        )
        return [as_tensor(e, unique_name(None, "Exit")) for e in results[:-1]]


def _lift_invariants(
    heads: list[list[Entry]], states: list[Entry]
) -> tuple[list[Graph], list[Entry]]:
    """Make loop-invariant values inputs of the loop's graphs, so that they are computed once.

    Args:
        heads: The outputs of each graph.
        states: The loop variables.

    Returns:
        The graphs, as functions of the loop variables and the invariant values; and the entries
        outside of the loop that compute these.

    Raises:
        ShapeError: If the rank of an invariant value is unknown.
    """
    order = post_order([h.node for part in heads for h in part])
    varying = {s.node for s in states}
    for node in order:
        if any(e.node in varying for e in node.inputs):
            varying.add(node)
    entries = [e for n in order if n in varying for e in n.inputs]
    entries += [h for part in heads for h in part]
    invariants = dict.fromkeys(
        e for e in entries if e.node not in varying and e.node.op is not CONSTANT
    )
    inputs = {
        e: var(f"{runtime.INPUT_PREFIX}{len(states) + k}", require_shape(e, "while_loop"), e.dtype)
        for k, e in enumerate(invariants)
    }
    graphs = []
    for part in heads:
        graph = Graph(part)
        members = {e for n in graph.nodes for e in n.entries}
        replacements = {e: new for e, new in inputs.items() if e in members}
        graphs.append(graph.replace(replacements) if replacements else graph)
    return graphs, list(invariants)
