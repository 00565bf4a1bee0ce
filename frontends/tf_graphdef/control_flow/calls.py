"""Importers of function calls, constants, and operators that pass values on."""

from __future__ import annotations

from collections.abc import Sequence

from passkit.errors import ModelError
from passkit.frontends.tf_graphdef.evaluation import NodeContext, UniformResults
from passkit.frontends.tf_graphdef.import_state import context_importer
from passkit.frontends.tf_graphdef.non_arrays import (
    AnyValue,
    DeadValue,
    NonArray,
    StringConstant,
    UnsupportedResult,
    VariableHandle,
)
from passkit.frontends.tf_graphdef.registry import import_node

_STRING = 7  # DT_STRING


@context_importer("PartitionedCall", "StatefulPartitionedCall")
def _call(ctx: NodeContext, inputs: Sequence[AnyValue]) -> Sequence[AnyValue]:
    """Import PartitionedCall and its stateful variant: evaluate the function of attribute ``f``.

    ``inputs`` are its arguments, of any kind; return its results. ``ctx`` is the node.

    Raises:
        ModelError: If the attribute is missing, there is no such function, the number of arguments
            is wrong, or the function is recursive or nested in 64 others.
        ShapeError: If shapes do not fit an operator in it; likewise DTypeError for dtypes.
    """
    function = ctx.call.attr("f", "func")
    return ctx.call_function(function.name, function.attr, inputs, ctx.call.name)


@context_importer(
    "Identity", "Snapshot", "StopGradient", "PreventGradient", "PlaceholderWithDefault"
)
def _identity(ctx: NodeContext, inputs: Sequence[AnyValue]) -> Sequence[AnyValue]:
    """Return the input unchanged, of any kind; a reference to a variable is read.

    This imports Identity and its relatives, also PlaceholderWithDefault that is not fed. ``ctx`` is
    the node, and ``inputs`` are its inputs.

    Raises:
        ModelError: If there is not exactly one input, or a ref variable has no value.
    """
    ctx.check_count(inputs, 1)
    x = inputs[0]
    return (ctx.value(x) if isinstance(x, VariableHandle) and x.by_reference else x,)


@context_importer("IdentityN")
def _identity_n(ctx: NodeContext, inputs: Sequence[AnyValue]) -> Sequence[AnyValue]:
    """Import IdentityN: return all inputs unchanged, as a list; ref variables are read.

    ``ctx`` is the node.

    Raises:
        ModelError: If a ref variable has no value.
    """
    return [_identity(ctx, [x])[0] for x in inputs]


@context_importer("NoOp")
def _nothing(ctx: NodeContext, inputs: Sequence[AnyValue]) -> Sequence[AnyValue]:
    """Import NoOp: return no results, whatever the inputs are.

    ``ctx`` is the node.
    """
    return ()


@context_importer("Const")
def _const(ctx: NodeContext, inputs: Sequence[AnyValue]) -> Sequence[AnyValue]:
    """Import a constant. Those of strings become a `StringConstant`, which only checkpoints use.

    ``inputs``, control dependencies apart, are not read. ``ctx`` is the node.

    Raises:
        ModelError: If the attribute ``value`` is missing, the tensor is invalid, or it exceeds the
            memory budget of the import.
    """
    call = ctx.call
    value = call.node.attr["value"].tensor if "value" in call.node.attr else None
    if value is None or value.dtype != _STRING:
        return import_node(call, [])
    call.budget.take(sum(64 + len(s) for s in value.string_val), call.where)
    return (StringConstant(call.name, tuple(value.string_val)),)


def first_unavailable(inputs: Sequence[AnyValue]) -> NonArray | None:
    """Return the first input that is unsupported, else the first that is dead, else None."""
    for kind in (UnsupportedResult, DeadValue):
        for x in inputs:
            if isinstance(x, kind):
                return x
    return None


def unavailable_results(ctx: NodeContext, inputs: Sequence[AnyValue]) -> Sequence[AnyValue] | None:
    """Return results that are unsupported or dead if an input is, else None.

    Unsupported takes precedence. The results carry the name of the node ``ctx`` and are valid at
    any index.
    """
    unavailable = first_unavailable(inputs)
    return None if unavailable is None else UniformResults(type(unavailable)(ctx.call.name))


@context_importer("LoopCond")
def _passed(ctx: NodeContext, inputs: Sequence[AnyValue]) -> Sequence[AnyValue]:
    """Import LoopCond: return its one input unchanged.

    ``ctx`` is the node, and ``inputs`` are its inputs.

    Raises:
        ModelError: If there is not exactly one input.
    """
    ctx.check_count(inputs, 1)
    return tuple(inputs)


@context_importer("Placeholder")
def _placeholder(ctx: NodeContext, inputs: Sequence[AnyValue]) -> Sequence[AnyValue]:
    """Raise ModelError: a Placeholder inside a function has no input.

    Placeholders of the model's own graph do not get here. ``ctx`` is the node; ``inputs`` are not
    read.

    Raises:
        ModelError: Always.
    """
    raise ModelError(
        f"{ctx.where} is in {ctx.evaluation.body.where}, and only the model's own graph can have "
        f"inputs; pass the value as an argument of the function"
    )
