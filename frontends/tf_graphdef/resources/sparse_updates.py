"""Optimizer updates of the rows that indices select: `SparseApply*`.

They apply the rules of `optimizer_updates` to the selected rows of the variable and its slots;
other rows are unchanged. Source: the `SparseApply` kernels in TensorFlow's `training_ops.cc`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from passkit import ops
from passkit.errors import ModelError
from passkit.frontends.tf_graphdef.control_flow.calls import unavailable_results
from passkit.frontends.tf_graphdef.evaluation import NodeContext
from passkit.frontends.tf_graphdef.function_library import SPARSE_APPLIES
from passkit.frontends.tf_graphdef.import_state import context_importer
from passkit.frontends.tf_graphdef.imported_value import value_of
from passkit.frontends.tf_graphdef.non_arrays import AnyValue, ModelVariable, UniqueElements
from passkit.frontends.tf_graphdef.proto import short
from passkit.frontends.tf_graphdef.resources.optimizer_updates import (
    OPTIMIZER_RULES,
    matching_values,
    row_count,
    rule_input,
)
from passkit.frontends.tf_graphdef.resources.unique_indices import scatter_operands
from passkit.frontends.tf_graphdef.resources.variables import check_assignable, variable_of
from passkit.graph.infer import show_shape


@context_importer(*sorted(SPARSE_APPLIES), training=True)
def _sparse_apply(ctx: NodeContext, inputs: Sequence[AnyValue]) -> Sequence[AnyValue]:
    """Import an optimizer step for some rows: gather them, apply the rule, and scatter them back.

    Assign the new values to the variables and return the first input, the handle of the weights. If
    an input is unsupported or dead, so is the result, and nothing is assigned.

    Args:
        ctx: The node.
        inputs: Handles of the weights and the optimizer's slots, then the inputs of its rule, with
            the indices of the rows behind the gradient.

    Raises:
        ModelError: If the number of inputs is wrong, one does not fit the variable, variables
            differ in dtype or shape, or indices may repeat or are not a vector of integers.
        ShapeError: If the variables have no rows and there are indices.
        DTypeError: If the rule needs floats and the variables have others.
    """
    rule_name = ctx.call.node.op.removeprefix("Resource").removeprefix("SparseApply")
    rule = OPTIMIZER_RULES[rule_name]
    count, position = rule.num_variables, rule.inputs.index("grad") + 1
    names = (*rule.inputs[:position], "indices", *rule.inputs[position:])
    ctx.check_count(inputs, count + len(names))
    if (unavailable := unavailable_results(ctx, inputs)) is not None:
        return unavailable
    variables = [variable_of(ctx, x) for x in inputs[:count]]
    old_values = matching_values(ctx, variables)
    other_inputs = dict(zip(names, inputs[count:], strict=True))
    indices, grad = other_inputs.pop("indices"), other_inputs.pop("grad")
    row_indices, gradient_rows = scatter_operands(
        ctx, indices, grad, row_count(ctx, variables[0], old_values[0])
    )
    _check_once(ctx, variables[0], indices)
    read_at = indices.indices.entry if isinstance(indices, UniqueElements) else row_indices
    old_rows = [ops.gather(x, read_at) for x in old_values]
    rule_inputs = {
        k: rule_input(ctx, variables[0], k, ctx.value(x).entry, old_values[0])
        for k, x in other_inputs.items()
    }
    rule_inputs["grad"] = rule_input(ctx, variables[0], "grad", gradient_rows, old_rows[0])
    new_rows = rule.update(ctx, *old_rows, *(rule_inputs[k] for k in rule.inputs))
    points = ops.expand_dims(row_indices, axis=-1)
    for variable, old_value, new in zip(variables, old_values, new_rows, strict=True):
        new_value = ops.tensor_scatter_nd_update(old_value, points, new)
        variable.value = check_assignable(ctx, variable, value_of(new_value))
    return (inputs[0],)


def _check_once(ctx: NodeContext, variable: ModelVariable, value: AnyValue) -> None:
    """Raise ModelError unless indices are a vector of integers that are known to be distinct.

    TensorFlow applies equal indices one after the other, each to the result of the one before.

    Args:
        ctx: The node, for errors.
        variable: The variable, for errors.
        value: The indices: distinct elements of Unique, or known integers.

    Raises:
        ModelError: If they are not a vector of integers, or not known to be distinct.
    """
    if isinstance(value, UniqueElements):
        return
    indices = ctx.value(value)
    shape = ctx.call.shape(indices)
    if not indices.dtype.is_integer or len(shape) != 1:
        raise ModelError(
            f"{ctx.where} updates rows of the variable {short(variable.name)} and needs a vector "
            f"of integers as their indices, got {indices.dtype}{show_shape(shape)}; reshape or "
            f"cast them"
        )
    array = indices.array
    if array is None or array.dtype == object or np.unique(array).size != array.size:
        raise ModelError(
            f"{ctx.where} updates rows of the variable {short(variable.name)}, and its indices "
            f"must be known to be distinct, got {ctx.call.shown(indices)}; remove repeated "
            f"indices by tf.unique and add up their gradients by tf.math.unsorted_segment_sum, "
            f"as TensorFlow's optimizers do"
        )
