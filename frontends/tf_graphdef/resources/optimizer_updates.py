"""Updates of variables: the rules of TensorFlow 1's optimizers, and scatters into rows.

Source: the functors of TensorFlow's `training_ops.cc`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from attrs import frozen

from passkit.errors import ModelError
from passkit.frontends.tf_graphdef.control_flow.calls import unavailable_results
from passkit.frontends.tf_graphdef.evaluation import NodeContext
from passkit.frontends.tf_graphdef.function_library import APPLIES, SCATTERS
from passkit.frontends.tf_graphdef.import_state import context_importer, current_value
from passkit.frontends.tf_graphdef.imported_value import value_of
from passkit.frontends.tf_graphdef.non_arrays import AnyValue, ModelVariable, VariableHandle
from passkit.frontends.tf_graphdef.operators import ops
from passkit.frontends.tf_graphdef.proto import short
from passkit.frontends.tf_graphdef.resources.unique_indices import scatter_operands
from passkit.frontends.tf_graphdef.resources.variables import check_assignable, variable_of
from passkit.graph.infer import show_shape
from passkit.graph.node import Entry
from passkit.values.size import Extent

OptimizerUpdate: TypeAlias = Callable[..., Sequence[Entry]]
"""Formula of an optimizer: takes the context, the variables and the other inputs as entries.

It returns the new values of the variables, in the same order.
"""


@frozen
class OptimizerRule:
    """How one of TensorFlow's `Apply*` operators changes its variables."""

    num_variables: int
    """The first inputs are this many variables: the weights, then the optimizer's slots."""
    inputs: tuple[str, ...]
    """Names of the other inputs in TensorFlow's order; ``grad`` or ``delta`` is the gradient."""
    update: OptimizerUpdate


OPTIMIZER_RULES: dict[str, OptimizerRule] = {}
"""The rules by TensorFlow's name of the optimizer, such as ``Momentum``."""


def _optimizer_rule(
    name: str,
    *,
    num_variables: int,
    inputs: tuple[str, ...],
) -> Callable[[OptimizerUpdate], OptimizerUpdate]:
    """Return a decorator that registers the formula of an optimizer in `OPTIMIZER_RULES`.

    The formula takes the node, the values of the variables, and the other inputs. It returns the
    new values of the variables.

    Args:
        name: Name of the optimizer in its operators, such as "Adam" in ResourceApplyAdam.
        num_variables: Number of variables: the weights and their slots.
        inputs: Names of the operator's other inputs, in their order.
    """

    def register(update: OptimizerUpdate) -> OptimizerUpdate:
        OPTIMIZER_RULES[name] = OptimizerRule(num_variables, inputs, update)
        return update

    return register


@_optimizer_rule(
    "GradientDescent",
    num_variables=1,
    inputs=(
        "alpha",
        "delta",
    ),
)
def _gradient_descent(ctx: NodeContext, w: Entry, rate: Entry, g: Entry) -> Sequence[Entry]:
    """Return the new weights, ``w - rate * g`` for the gradient g, as a tuple of one.

    ``rate`` is the learning rate; the node ``ctx`` is not read.

    Raises:
        ShapeError: If the shapes do not broadcast.
        DTypeError: If inputs that are not all floats of one dtype cannot be combined.
    """
    return (w - rate * g,)


@_optimizer_rule(
    "Momentum",
    num_variables=2,
    inputs=(
        "lr",
        "grad",
        "momentum",
    ),
)
def _momentum(
    ctx: NodeContext, w: Entry, a: Entry, rate: Entry, g: Entry, momentum: Entry
) -> Sequence[Entry]:
    """Return the new weights w and velocity a of Momentum, for the gradient g.

    a becomes ``a * momentum + g`` and w loses ``rate * a``, or ``g * rate + a * momentum * rate``
    if the attribute ``use_nesterov`` of the node ``ctx`` is set.

    Raises:
        ModelError: If the attribute is of another kind.
        ShapeError: If the shapes do not broadcast.
        DTypeError: If inputs that are not all floats of one dtype cannot be combined.
    """
    a = a * momentum + g
    return (w - (g * rate + a * momentum * rate) if _nesterov(ctx) else w - rate * a), a


@_optimizer_rule(
    "KerasMomentum",
    num_variables=2,
    inputs=(
        "lr",
        "grad",
        "momentum",
    ),
)
def _keras_momentum(
    ctx: NodeContext, w: Entry, a: Entry, rate: Entry, g: Entry, momentum: Entry
) -> Sequence[Entry]:
    """Return the new weights w and velocity a of Keras' momentum, for the gradient g.

    a, which includes the learning ``rate``, becomes ``a * momentum - g * rate``. w grows by a, or
    by ``a * momentum - g * rate`` if the attribute ``use_nesterov`` of the node ``ctx`` is set.

    Raises:
        ModelError: If the attribute is of another kind.
        ShapeError: If the shapes do not broadcast.
        DTypeError: If inputs that are not all floats of one dtype cannot be combined.
    """
    a = a * momentum - g * rate
    return (w + a * momentum - g * rate if _nesterov(ctx) else w + a), a


@_optimizer_rule(
    "Adagrad",
    num_variables=2,
    inputs=(
        "lr",
        "grad",
    ),
)
def _adagrad(ctx: NodeContext, w: Entry, a: Entry, rate: Entry, g: Entry) -> Sequence[Entry]:
    """Return the new weights w and sum of squared gradients a of Adagrad, for the gradient g.

    w loses ``g * rate / sqrt(a)``. The sum is unchanged if the attribute ``update_slots`` of the
    node ``ctx`` is False.

    Raises:
        ModelError: If an attribute is of another kind.
        ShapeError: If the shapes do not broadcast.
        DTypeError: If inputs that are not all floats of one dtype cannot be combined.
    """
    a = a + g * g if ctx.call.attr("update_slots", "b", True) else a
    return w - g * rate * ops.rsqrt(a), a


@_optimizer_rule(
    "AdagradV2",
    num_variables=2,
    inputs=(
        "lr",
        "epsilon",
        "grad",
    ),
)
def _adagrad2(
    ctx: NodeContext, w: Entry, a: Entry, rate: Entry, epsilon: Entry, g: Entry
) -> Sequence[Entry]:
    """Return the new weights w and sum of squared gradients a, as Adagrad but with an epsilon.

    w loses ``g * rate / (sqrt(a) + epsilon)`` for the gradient g. The sum is unchanged if the
    attribute ``update_slots`` of the node ``ctx`` is False.

    Raises:
        ModelError: If an attribute is of another kind.
        ShapeError: If the shapes do not broadcast.
        DTypeError: If inputs that are not all floats of one dtype cannot be combined.
    """
    a = a + g * g if ctx.call.attr("update_slots", "b", True) else a
    return w - g * rate / (ops.sqrt(a) + epsilon), a


@_optimizer_rule(
    "RMSProp",
    num_variables=3,
    inputs=(
        "lr",
        "rho",
        "momentum",
        "epsilon",
        "grad",
    ),
)
def _rms_prop(
    ctx: NodeContext,
    w: Entry,
    ms: Entry,
    mom: Entry,
    rate: Entry,
    rho: Entry,
    momentum: Entry,
    epsilon: Entry,
    g: Entry,
) -> Sequence[Entry]:
    """Return the new weights w, mean square ms and velocity mom of RMSProp, for the gradient g.

    ``rho`` is the decay of the mean square, ``momentum`` that of the velocity, ``rate`` the
    learning rate; ``epsilon`` is added to the mean square before its root. ``ctx`` is not read.

    Raises:
        ShapeError: If the shapes do not broadcast.
        DTypeError: If inputs that are not all floats of one dtype cannot be combined.
    """
    ms = ms + (g * g - ms) * (1 - rho)
    mom = mom * momentum + g * rate * ops.rsqrt(ms + epsilon)
    return w - mom, ms, mom


@_optimizer_rule(
    "CenteredRMSProp",
    num_variables=4,
    inputs=(
        "lr",
        "rho",
        "momentum",
        "epsilon",
        "grad",
    ),
)
def _centered_rms_prop(
    ctx: NodeContext,
    w: Entry,
    mg: Entry,
    ms: Entry,
    mom: Entry,
    rate: Entry,
    rho: Entry,
    momentum: Entry,
    epsilon: Entry,
    g: Entry,
) -> Sequence[Entry]:
    """Return the new weights w, mean mg, mean square ms and velocity mom of centered RMSProp.

    ``rho`` is the decay of the means of the gradient g, ``momentum`` that of the velocity, ``rate``
    the learning rate; ``epsilon`` is added to the variance, ms - mg², before its root. ``ctx`` is
    not read.

    Raises:
        ShapeError: If the shapes do not broadcast.
        DTypeError: If inputs that are not all floats of one dtype cannot be combined.
    """
    ms = ms + (g * g - ms) * (1 - rho)
    mg = mg + (g - mg) * (1 - rho)
    mom = mom * momentum + g * rate * ops.rsqrt(ms - mg * mg + epsilon)
    return w - mom, mg, ms, mom


@_optimizer_rule(
    "Adam",
    num_variables=3,
    inputs=(
        "beta1_power",
        "beta2_power",
        "lr",
        "beta1",
        "beta2",
        "epsilon",
        "grad",
    ),
)
def _adam(
    ctx: NodeContext,
    w: Entry,
    m: Entry,
    v: Entry,
    power1: Entry,
    power2: Entry,
    rate: Entry,
    beta1: Entry,
    beta2: Entry,
    epsilon: Entry,
    g: Entry,
) -> Sequence[Entry]:
    """Return the new weights w, first moment m and second moment v of Adam, for the gradient g.

    ``power1`` and ``power2`` are beta1 and beta2 to the power of the step's number, ``rate`` is the
    learning rate; ``epsilon`` is added to the root of v. The attribute ``use_nesterov`` of the node
    ``ctx`` selects Nesterov's momentum.

    Raises:
        ModelError: If the attribute is of another kind.
        ShapeError: If the shapes do not broadcast.
        DTypeError: If inputs that are not all floats of one dtype cannot be combined.
    """
    step = rate * ops.sqrt(1 - power2) / (1 - power1)
    m = m + (g - m) * (1 - beta1)
    v = v + (g * g - v) * (1 - beta2)
    direction = g * (1 - beta1) + beta1 * m if _nesterov(ctx) else m
    return w - direction * step / (ops.sqrt(v) + epsilon), m, v


@_optimizer_rule(
    "AdaMax",
    num_variables=3,
    inputs=(
        "beta1_power",
        "lr",
        "beta1",
        "beta2",
        "epsilon",
        "grad",
    ),
)
def _adamax(
    ctx: NodeContext,
    w: Entry,
    m: Entry,
    v: Entry,
    power1: Entry,
    rate: Entry,
    beta1: Entry,
    beta2: Entry,
    epsilon: Entry,
    g: Entry,
) -> Sequence[Entry]:
    """Return the new weights w, first moment m and infinity norm v of AdaMax, for the gradient g.

    ``power1`` is beta1 to the power of the step's number, ``beta1`` and ``beta2`` are the decays of
    m and v, ``rate`` is the learning rate; ``epsilon`` is added to v. ``ctx`` is not read.

    Raises:
        ShapeError: If the shapes do not broadcast.
        DTypeError: If inputs that are not all floats of one dtype cannot be combined.
    """
    m = m + (g - m) * (1 - beta1)
    v = ops.maximum(beta2 * v, ops.abs(g))
    return w - rate / (1 - power1) * (m / (v + epsilon)), m, v


@_optimizer_rule(
    "Adadelta",
    num_variables=3,
    inputs=(
        "lr",
        "rho",
        "epsilon",
        "grad",
    ),
)
def _adadelta(
    ctx: NodeContext,
    w: Entry,
    a: Entry,
    delta_average: Entry,
    rate: Entry,
    rho: Entry,
    epsilon: Entry,
    g: Entry,
) -> Sequence[Entry]:
    """Return the new weights w, mean square a of gradients, and that of updates, of Adadelta.

    ``delta_average`` is the mean square of updates, ``rho`` the decay of both means, ``rate`` the
    learning rate, g the gradient; ``epsilon`` is added to the means before their roots. ``ctx`` is
    not read.

    Raises:
        ShapeError: If the shapes do not broadcast.
        DTypeError: If inputs that are not all floats of one dtype cannot be combined.
    """
    a = a * rho + g * g * (1 - rho)
    step = ops.sqrt(delta_average + epsilon) * ops.rsqrt(a + epsilon) * g
    return w - step * rate, a, delta_average * rho + step * step * (1 - rho)


@_optimizer_rule(
    "Ftrl",
    num_variables=3,
    inputs=(
        "grad",
        "lr",
        "l1",
        "l2",
        "lr_power",
    ),
)
def _ftrl(
    ctx: NodeContext,
    w: Entry,
    a: Entry,
    linear: Entry,
    g: Entry,
    rate: Entry,
    l1: Entry,
    l2: Entry,
    power: Entry,
) -> Sequence[Entry]:
    """Return the new weights w, accumulator a and linear terms of FTRL without shrinkage.

    Args:
        ctx: The node.
        w: Weights.
        a: Sum of squared gradients.
        linear: Linear terms.
        g: Gradient.
        rate: Learning rate.
        l1: L1 regularization.
        l2: L2 regularization.
        power: Negative power of the accumulator in the rate, such as -0.5.

    Raises:
        ModelError: If the attribute ``multiply_linear_by_lr`` is set.
        ShapeError: If the shapes do not broadcast.
        DTypeError: If inputs that are not all floats of one dtype cannot be combined.
    """
    return _ftrl_v2(ctx, w, a, linear, g, rate, l1, l2, None, power)


@_optimizer_rule(
    "FtrlV2",
    num_variables=3,
    inputs=(
        "grad",
        "lr",
        "l1",
        "l2",
        "l2_shrinkage",
        "lr_power",
    ),
)
def _ftrl_v2(
    ctx: NodeContext,
    w: Entry,
    a: Entry,
    linear: Entry,
    g: Entry,
    rate: Entry,
    l1: Entry,
    l2: Entry,
    shrink: Entry | None,
    power: Entry,
) -> Sequence[Entry]:
    """Return the new weights w, accumulator a and linear terms of FTRL.

    Args:
        ctx: The node.
        w: Weights.
        a: Sum of squared gradients.
        linear: Linear terms.
        g: Gradient.
        rate: Learning rate.
        l1: L1 regularization.
        l2: L2 regularization.
        shrink: Coefficient of L2 shrinkage of the gradient; None for none.
        power: Negative power of the accumulator in the rate, such as -0.5.

    Raises:
        ModelError: If the attribute ``multiply_linear_by_lr`` is set, or of another kind.
        ShapeError: If the shapes do not broadcast.
        DTypeError: If inputs that are not all floats of one dtype cannot be combined.
    """
    if ctx.call.attr("multiply_linear_by_lr", "b", False):
        raise ModelError(
            f"{ctx.where} needs multiply_linear_by_lr=False, got True, which is not supported"
        )
    shrunk_gradient = g if shrink is None else g + 2.0 * shrink * w
    total = a + g * g
    new_power, old_power = ops.pow(total, -power), ops.pow(a, -power)
    linear = linear + shrunk_gradient - (new_power - old_power) / rate * w
    curvature = new_power / rate + 2.0 * l2
    minimum = (ops.sign(linear) * l1 - linear) / curvature
    return ops.where(ops.abs(linear) > l1, minimum, ops.zeros_like(w)), total, linear


def _nesterov(ctx: NodeContext) -> bool:
    """Return the attribute ``use_nesterov``, by default False.

    ``ctx`` is the node.

    Raises:
        ModelError: If an attribute is of another kind.
    """
    return bool(ctx.call.attr("use_nesterov", "b", False))


@context_importer(*sorted(APPLIES), training=True)
def _apply(ctx: NodeContext, inputs: Sequence[AnyValue]) -> Sequence[AnyValue]:
    """Import an optimizer step: assign new values to the weights and slots by the rule.

    The inputs are handles of the weights and slots, then those of the rule in `OPTIMIZER_RULES`.
    Return the first input, the handle of the weights. If an input is unsupported or dead, so is the
    result, and nothing is assigned. ``ctx`` is the node.

    Raises:
        ModelError: If the number of inputs is wrong, a variable is no handle or has no value,
            variables differ in dtype or shape, or another input does not fit the variable.
        DTypeError: If the rule needs floats and the variables have others.
    """
    name = ctx.call.node.op.removeprefix("Resource").removeprefix("Apply")
    rule = OPTIMIZER_RULES[name]
    count = rule.num_variables
    ctx.check_count(inputs, count + len(rule.inputs))
    if (unavailable := unavailable_results(ctx, inputs)) is not None:
        return unavailable
    variables = [variable_of(ctx, x) for x in inputs[:count]]
    old_values = matching_values(ctx, variables)
    rule_inputs = [
        rule_input(ctx, variables[0], name, ctx.value(x).entry, old_values[0])
        for name, x in zip(rule.inputs, inputs[count:], strict=True)
    ]
    for variable, new in zip(variables, rule.update(ctx, *old_values, *rule_inputs), strict=True):
        variable.value = check_assignable(ctx, variable, value_of(new))
    return (inputs[0],)


def matching_values(ctx: NodeContext, variables: Sequence[ModelVariable]) -> list[Entry]:
    """Return the current values of variables, which must have one dtype and shape.

    Raises:
        ModelError: If their dtypes or shapes differ, or one has no value; ``ctx`` names the node.
    """
    values = [current_value(ctx.shared, v).entry for v in variables]
    for variable, entry in zip(variables, values, strict=True):
        if (entry.dtype, entry.shape) != (values[0].dtype, values[0].shape):
            raise ModelError(
                f"{ctx.where} needs variables of one dtype and shape, got "
                f"{short(variables[0].name)} of {values[0].dtype}{show_shape(values[0].shape)} and "
                f"{short(variable.name)} of {entry.dtype}{show_shape(entry.shape)}"
            )
    return values


def rule_input(
    ctx: NodeContext, variable: ModelVariable, name: str, entry: Entry, like: Entry
) -> Entry:
    """Return an input of a rule in the variable's shape, or as a scalar if it is no gradient.

    An input of this shape is returned itself. One of symbolic extents or unknown rank is reshaped;
    known extents are compared first.

    Args:
        ctx: The node.
        variable: The variable, for errors.
        name: Name of the input; "grad" and "delta" are gradients.
        entry: The input.
        like: Value of the variable.

    Raises:
        ModelError: If the dtype or shape differs.
    """
    shape = like.shape if name in ("grad", "delta") else ()
    has_shape = entry.shape is not None
    fits = has_shape and len(entry.shape or ()) == len(shape or ())
    for n, m in zip(entry.shape or (), shape or (), strict=False):
        fits = fits and (n == m or not isinstance(n, int))
    if entry.dtype != like.dtype or (has_shape and not fits):
        raise ModelError(
            f"{ctx.where} needs {like.dtype}{show_shape(shape)} as {name} for the variable "
            f"{short(variable.name)}, got {entry.dtype}{show_shape(entry.shape)}"
        )
    return entry if entry.shape == shape else ops.reshape(entry, shape=shape)


@context_importer(*sorted(SCATTERS), training=True)
def _scatter(ctx: NodeContext, inputs: Sequence[AnyValue]) -> Sequence[AnyValue]:
    """Import ScatterAdd, ScatterSub and ScatterUpdate of rows of a variable.

    The inputs are the handle, the indices of rows, and the rows. The new value is assigned to the
    variable. Return the first input, the handle. If an input is unsupported or dead, so is the
    result, and nothing is assigned. ``ctx`` is the node.

    Raises:
        ModelError: If there are not three inputs, the first is no handle, the variable is a scalar
            or has no value, indices are not integers, or the dtype of the rows differs.
        ShapeError: If the shapes of indices and rows do not fit.
        DTypeError: If bools are subtracted.
    """
    ctx.check_count(inputs, 3)
    if (unavailable := unavailable_results(ctx, inputs)) is not None:
        return unavailable
    variable = variable_of(ctx, inputs[0])
    old_value = current_value(ctx.shared, variable).entry
    row_indices, rows = scatter_operands(
        ctx, inputs[1], inputs[2], row_count(ctx, variable, old_value)
    )
    if (
        row_indices.dtype is None
        or not row_indices.dtype.is_integer
        or rows.dtype != variable.dtype
    ):
        raise ModelError(
            f"{ctx.where} needs integer indices and rows of {variable.dtype} for the variable "
            f"{short(variable.name)}, got {row_indices.dtype} and {rows.dtype}"
        )
    kind = ctx.call.node.op.removeprefix("Resource").removeprefix("Scatter").lower()
    points = ops.expand_dims(row_indices, axis=-1)
    new_value = getattr(ops, f"tensor_scatter_nd_{kind}")(old_value, points, rows)
    variable.value = check_assignable(ctx, variable, value_of(new_value))
    return (inputs[0],) if isinstance(inputs[0], VariableHandle) else ()


def row_count(ctx: NodeContext, variable: ModelVariable, value: Entry) -> Extent:
    """Return the number of rows of a variable, the extent of its first axis.

    Args:
        ctx: The node, for errors.
        variable: The variable, for errors.
        value: Its current value.

    Raises:
        ModelError: If it is a scalar or of unknown rank.
    """
    if not value.shape:
        raise ModelError(
            f"{ctx.where} needs a variable with rows, got {short(variable.name)} of shape "
            f"{show_shape(value.shape)}"
        )
    return value.shape[0]
