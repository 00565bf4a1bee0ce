"""Loops: unrolled during import if the number of iterations is known, else run at run time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from passkit.errors import ModelError
from passkit.frontends.tf_graphdef.control_flow.branches import known_condition
from passkit.frontends.tf_graphdef.evaluation import NodeContext, UniformResults
from passkit.frontends.tf_graphdef.import_state import (
    MAX_UNROLLED_NODES,
    assigned_values,
    context_importer,
    reset_variables,
)
from passkit.frontends.tf_graphdef.non_arrays import AnyValue, NonArray, UnsupportedResult
from passkit.frontends.tf_graphdef.proto import short
from passkit.frontends.tf_graphdef.runtime_loops import LoopFunctions, build_runtime_loop


@context_importer("While", "StatelessWhile")
def _while(ctx: NodeContext, inputs: Sequence[AnyValue]) -> Sequence[AnyValue]:
    """Import While and StatelessWhile: return the final values of the loop variables.

    The inputs are their initial values. ``ctx`` is the node. Where the condition or the body has an
    operator that passkit lacks, the results are `UnsupportedResult`, which is an error only if they
    are read.

    Raises:
        ModelError: If an attribute or a function is missing, the condition has other than one
            result, an array of bools or no array, the body returns another number of values, or, in
            a loop that runs at run time, it changes a dtype or shape or assigns to a variable.
        ShapeError: If shapes in the loop do not fit an operator; likewise DTypeError for dtypes.
    """
    condition_function, body_function = ctx.call.attr("cond", "func"), ctx.call.attr("body", "func")

    def loop_condition(values: Sequence[AnyValue], k: int) -> AnyValue:
        return _call_for_one_result(ctx, condition_function, values, f"{ctx.call.name}/{k}/cond")

    def loop_body(values: Sequence[AnyValue], k: int) -> Sequence[AnyValue]:
        return _call(ctx, body_function, values, f"{ctx.call.name}/{k}")

    return run_loop(
        ctx,
        LoopFunctions(loop_condition, loop_body, _find_invariants(ctx, body_function.name)),
        inputs,
    )


def _find_invariants(ctx: NodeContext, name: str) -> frozenset[int]:
    """Return the positions of arguments that function ``name`` returns unchanged at the same place.

    Identity nodes in between are ignored. ``ctx`` is the node.

    Raises:
        ModelError: If there is no such function, or it is malformed.
    """
    body = ctx.shared.library.body(name)
    invariants = set()
    for k, (number, _) in enumerate(body.results):
        visited = set()
        while body.nodes[number].op == "Identity" and body.inputs[number] and number not in visited:
            visited.add(number)
            number = body.inputs[number][0][0]
        if number == k < body.num_arguments:
            invariants.add(k)
    return frozenset(invariants)


def _call(
    ctx: NodeContext, function: Any, values: Sequence[AnyValue], prefix: str
) -> list[AnyValue]:
    """Evaluate a function of the loop, a NameAttrList, and return its results.

    Args:
        ctx: The node of the loop.
        function: The function.
        values: Its arguments: the values of the loop.
        prefix: Prefix of the names of its nodes.

    Raises:
        ModelError: If the function does not exist, takes another number of arguments, is recursive,
            or contains a malformed node.
        ShapeError: If shapes in the loop do not fit an operator; likewise DTypeError for dtypes.
    """
    return ctx.call_function(function.name, function.attr, values, prefix, keep_names=False)


def _call_for_one_result(
    ctx: NodeContext, function: Any, values: Sequence[AnyValue], prefix: str
) -> AnyValue:
    """Evaluate a function of the loop that must have one result, and return that.

    Args:
        ctx: The node of the loop.
        function: The function, a NameAttrList.
        values: Its arguments: the values of the loop.
        prefix: Prefix of the names of its nodes.

    Raises:
        ModelError: If it has another number of results, or cannot be evaluated.
        ShapeError: If shapes in the loop do not fit an operator; likewise DTypeError for dtypes.
    """
    results = _call(ctx, function, values, prefix)
    if len(results) != 1:
        raise ModelError(
            f"{ctx.where} needs one result from its condition function {short(function.name)}, got "
            f"{len(results)}"
        )
    return results[0]


def run_loop(
    ctx: NodeContext, loop: LoopFunctions, inputs: Sequence[AnyValue]
) -> Sequence[AnyValue]:
    """Return the final values of a loop, in the order of its variables.

    The loop is unrolled while its condition is known and neither the number of iterations nor that
    of nodes exceeds its limit; otherwise it iterates at run time.

    If the condition or a value is unsupported, so are the results, for every index. A loop that
    turns out to iterate at run time is evaluated again; variables assigned meanwhile are reset.

    Args:
        ctx: The node of the loop.
        loop: Its condition and body.
        inputs: Initial values of the loop variables.

    Raises:
        ModelError: If the condition is no array or an array of bools, the body returns another
            number of values, or a loop at run time changes dtypes or shapes or assigns to a
            variable.
        ShapeError: If shapes in the loop do not fit an operator; likewise DTypeError for dtypes.
    """
    assigned_before, nodes_before = assigned_values(ctx.shared), ctx.shared.node_budget.left
    values: Sequence[AnyValue] = list(inputs)
    for k in range(ctx.shared.node_budget.max_iterations + 1):
        condition = loop.condition(values, k)
        if isinstance(condition, NonArray):
            if isinstance(condition, UnsupportedResult):
                loop.body(values, k)  # finds further unsupported operators
                return UniformResults(UnsupportedResult(ctx.call.name))
            raise ModelError(
                f"{ctx.where} needs an array as its condition, got "
                f"{short(condition.name)}, {condition.description}"
            )
        truth = known_condition(ctx, condition)
        if truth is False:
            return values
        num_built = nodes_before - ctx.shared.node_budget.left
        if (
            truth is None
            or k == ctx.shared.node_budget.max_iterations
            or num_built > MAX_UNROLLED_NODES
        ):
            break
        next_values = loop.body(values, k)
        if len(next_values) != len(values):
            raise ModelError(
                f"{ctx.where} needs {len(values)} results from its body, one for each loop "
                f"variable, got {len(next_values)}"
            )
        values = next_values
    reset_variables(assigned_before)
    return build_runtime_loop(ctx, loop, inputs)
