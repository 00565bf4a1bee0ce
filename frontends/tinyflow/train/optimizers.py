"""Optimizers: gradients, and rules that say what becomes of each variable and its slots.

Rules are formulas of tensors; all updates of a step are one program, and fuse.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

from passkit.errors import GraphError
from passkit.frontends.tinyflow import creation, elementwise
from passkit.frontends.tinyflow.argument_checks import reject_arguments
from passkit.frontends.tinyflow.arrays import clip_by_value
from passkit.frontends.tinyflow.deferred_variables import DeferredVariable
from passkit.frontends.tinyflow.differentiation import ALL_AT_ONCE, gradients
from passkit.frontends.tinyflow.graphs import get_default_graph
from passkit.frontends.tinyflow.scopes import group, name_scope
from passkit.frontends.tinyflow.tensors import (
    Operation,
    Tensor,
    as_tensor,
    convert_to_tensor,
    scalar_entry,
)
from passkit.frontends.tinyflow.variables import Variable, assign, assign_add, trainable_variables
from passkit.graph.node import Entry, Node
from passkit.ops.helpers import make

GradientsAndVariables = Sequence[tuple[Tensor | None, Variable]]
sqrt: Callable[..., Tensor] = elementwise.FUNCTIONS["sqrt"]
rsqrt: Callable[..., Tensor] = elementwise.FUNCTIONS["rsqrt"]
square: Callable[..., Tensor] = elementwise.FUNCTIONS["square"]
IN_ORDER = "a session writes variables in the order of its program"


class Optimizer(ABC):
    """What optimizers have in common. A new one overrides `update`, and may override `begin`."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._slots: dict[tuple[Variable, str], Variable] = {}

    @reject_arguments(
        ALL_AT_ONCE, "gate_gradients", "aggregation_method", "colocate_gradients_with_ops"
    )
    def minimize(
        self,
        loss: Any,
        global_step: Variable | None = None,
        var_list: Sequence[Variable] | None = None,
        gate_gradients: int = 1,
        aggregation_method: Any = None,
        colocate_gradients_with_ops: bool = False,
        name: str | None = None,
        grad_loss: Any = None,
    ) -> Operation:
        """The operation of one step: `compute_gradients`, then `apply_gradients`."""
        pairs = self.compute_gradients(loss, var_list, grad_loss=grad_loss)
        return self.apply_gradients(pairs, global_step, name)

    @reject_arguments(
        ALL_AT_ONCE, "gate_gradients", "aggregation_method", "colocate_gradients_with_ops"
    )
    def compute_gradients(
        self,
        loss: Any,
        var_list: Sequence[Variable] | None = None,
        gate_gradients: int = 1,
        aggregation_method: Any = None,
        colocate_gradients_with_ops: bool = False,
        grad_loss: Any = None,
    ) -> list[tuple[Tensor | None, Variable]]:
        """(gradient, variable) for each of ``var_list``, by default the trainable ones.

        Raises: GraphError when there are no variables.
        """
        variables = list(trainable_variables() if var_list is None else var_list)
        if not variables:
            raise GraphError(f"{self.name} needs variables to train, got none; tf.Variable")
        weights = None if grad_loss is None else [grad_loss]
        return list(zip(gradients([loss], variables, weights), variables, strict=True))

    @reject_arguments(ALL_AT_ONCE, "skip_gradients_aggregation")
    def apply_gradients(
        self,
        grads_and_vars: GradientsAndVariables,
        global_step: Variable | None = None,
        name: str | None = None,
        skip_gradients_aggregation: bool = False,
    ) -> Operation:
        """The operation that changes variables by their gradients; adds 1 to ``global_step``.

        Raises: GraphError when no variable has a gradient.
        """
        pairs = [(g, v) for g, v in grads_and_vars if g is not None]
        if not pairs:
            names = ", ".join(v.name for _, v in grads_and_vars) or "none"
            raise GraphError(
                f"{self.name} needs a gradient of at least one variable, and the loss depends on "
                f"none of them: {names}"
            )
        graph = get_default_graph()
        with graph.with_dependencies(None):
            slots = [self.begin(v) for _, v in pairs]
        with name_scope(name, self.name):
            shared = self.prepare()
            writes_done: list[Any] = []
            for (gradient, variable), variable_slots in zip(pairs, slots, strict=True):
                new_value, writes = self.update(gradient, variable, variable_slots, shared)
                if variable.constraint is not None:
                    new_value = variable.constraint(new_value)
                writes_done += [*writes, assign(variable, new_value)]
            writes_done += self.finish()
            if global_step is not None:
                writes_done.append(assign_add(global_step, 1))
            return group(*writes_done)

    def begin(self, variable: Variable) -> tuple[Variable, ...]:
        """The slots of a variable: its own variables, which the rule reads and writes."""
        return ()

    def prepare(self) -> Any:
        """What the rule needs once a step, such as the learning rate."""
        return None

    @abstractmethod
    def update(
        self, gradient: Tensor, variable: Variable, slots: tuple[Variable, ...], shared: Any
    ) -> tuple[Tensor, list[Tensor]]:
        """The new value of a variable, and the writes of its slots. The rule itself."""

    def finish(self) -> list[Any]:
        """What is written once a step, after the rule."""
        return []

    def slot(self, variable: Variable, name: str, value: float = 0.0) -> Variable:
        """A variable beside another, of its shape, that begins with ``value``."""
        key = (variable, name)
        if key not in self._slots:
            self._slots[key] = self._slot(variable, f"{variable._name}/{name}", value)
        return self._slots[key]

    def _slot(self, variable: Variable, name: str, value: float) -> Variable:
        if isinstance(variable, DeferredVariable):
            with get_default_graph().with_name_prefix(""):
                return DeferredVariable.slot_of(
                    variable, get_default_graph().unique_name(name), value
                )
        first = creation.constant(value, variable.dtype, variable.shape.as_list())
        with get_default_graph().with_name_prefix(""):
            return Variable(first, trainable=False, name=name)

    def get_slot(self, var: Variable, name: str) -> Variable | None:
        """The slot of a variable, or None."""
        return self._slots.get((var, f"{self.name}_{name}")) or self._slots.get((var, name))

    def get_slot_names(self) -> list[str]:
        """The names of the slots there are."""
        return sorted({name for _, name in self._slots})

    def variables(self) -> list[Variable]:
        """The optimizer's own variables."""
        return list(self._slots.values())


def hyperparameter(value: Any, like: Tensor) -> Any:
    """A hyperparameter: a number, or a tensor in the dtype of what it is for."""
    if isinstance(value, Tensor) or callable(value):
        tensor = convert_to_tensor(value() if callable(value) else value)
        if scalar_entry(tensor) is not tensor.entry:
            tensor = as_tensor(scalar_entry(tensor), tensor._name)
        return tensor if tensor.dtype is like.dtype else elementwise.cast(tensor, like.dtype)
    return float(value)


def one_minus(value: Any, like: Tensor) -> Any:
    """1 - value, in the precision of what it is for: 1 - 0.999 is not 0.001 in float32."""
    number = hyperparameter(value, like)
    return 1 - number if isinstance(number, Tensor) else float(1 - like.dtype.numpy.type(number))


class GradientDescentOptimizer(Optimizer):
    """w -= learning_rate * g."""

    @reject_arguments(IN_ORDER, "use_locking")
    def __init__(
        self, learning_rate: Any, use_locking: bool = False, name: str = "GradientDescent"
    ) -> None:
        super().__init__(name)
        self.rate = learning_rate

    def update(
        self, gradient: Tensor, variable: Variable, slots: tuple[Variable, ...], shared: Any
    ) -> tuple[Tensor, list[Tensor]]:
        """A step against the gradient; of a table only in the rows that were looked up."""
        rate = hyperparameter(self.rate, variable)
        rows = row_additions(gradient.entry)
        if rows is None:
            return variable - gradient * rate, []
        factor = -rate.entry if isinstance(rate, Tensor) else -rate
        return as_tensor(add_rows(variable.entry, rows, factor), f"{variable._name}/rows"), []


class MomentumOptimizer(Optimizer):
    """a = momentum * a + g; w -= learning_rate * a, or by Nesterov's rule.

    Source: Sutskever and others, On the importance of initialization and momentum.
    """

    @reject_arguments(IN_ORDER, "use_locking")
    def __init__(
        self,
        learning_rate: Any,
        momentum: Any,
        use_locking: bool = False,
        name: str = "Momentum",
        use_nesterov: bool = False,
    ) -> None:
        super().__init__(name)
        self.rate, self.momentum, self.nesterov = learning_rate, momentum, use_nesterov

    def begin(self, variable: Variable) -> tuple[Variable, ...]:
        """The running sum."""
        return (self.slot(variable, self.name),)

    def update(
        self, gradient: Tensor, variable: Variable, slots: tuple[Variable, ...], shared: Any
    ) -> tuple[Tensor, list[Tensor]]:
        """A step along the running sum."""
        rate, momentum = (
            hyperparameter(self.rate, variable),
            hyperparameter(self.momentum, variable),
        )
        total = assign(slots[0], slots[0] * momentum + gradient)
        if self.nesterov:
            return variable - (gradient * rate + total * momentum * rate), [total]
        return variable - total * rate, [total]


class AdagradOptimizer(Optimizer):
    """a += g * g; w -= learning_rate * g / sqrt(a).

    Source: Duchi and others, Adaptive Subgradient Methods.
    """

    @reject_arguments(IN_ORDER, "use_locking")
    def __init__(
        self,
        learning_rate: Any,
        initial_accumulator_value: float = 0.1,
        use_locking: bool = False,
        name: str = "Adagrad",
    ) -> None:
        super().__init__(name)
        if initial_accumulator_value <= 0:
            raise GraphError(
                f"{name} needs an initial_accumulator_value above 0, got "
                f"{initial_accumulator_value}; it divides the first step"
            )
        self.rate, self.first = learning_rate, initial_accumulator_value

    def begin(self, variable: Variable) -> tuple[Variable, ...]:
        """The sum of squares."""
        return (self.slot(variable, self.name, self.first),)

    def update(
        self, gradient: Tensor, variable: Variable, slots: tuple[Variable, ...], shared: Any
    ) -> tuple[Tensor, list[Tensor]]:
        """A step that shrinks as the squares add up."""
        total = assign(slots[0], slots[0] + square(gradient))
        return variable - gradient * hyperparameter(self.rate, variable) * rsqrt(total), [total]


class AdadeltaOptimizer(Optimizer):
    """A step by the ratio of the running means of squared steps and squared gradients.

    d = g * sqrt(mean of d * d + epsilon) / sqrt(mean of g * g + epsilon); w -= learning_rate * d.
    Source: Zeiler, ADADELTA: An Adaptive Learning Rate Method.
    """

    @reject_arguments(IN_ORDER, "use_locking")
    def __init__(
        self,
        learning_rate: Any = 0.001,
        rho: Any = 0.95,
        epsilon: Any = 1e-8,
        use_locking: bool = False,
        name: str = "Adadelta",
    ) -> None:
        super().__init__(name)
        self.rate, self.rho, self.epsilon = learning_rate, rho, epsilon

    def begin(self, variable: Variable) -> tuple[Variable, ...]:
        """The running means of squared gradients and of squared steps."""
        return self.slot(variable, self.name), self.slot(variable, f"{self.name}_1")

    def update(
        self, gradient: Tensor, variable: Variable, slots: tuple[Variable, ...], shared: Any
    ) -> tuple[Tensor, list[Tensor]]:
        """A step whose size follows from the steps before."""
        numbers = (self.rate, self.rho, self.epsilon)
        rate, rho, epsilon = (hyperparameter(v, variable) for v in numbers)
        one_minus_rho = one_minus(self.rho, variable)
        mean_square = assign(slots[0], slots[0] * rho + square(gradient) * one_minus_rho)
        step = sqrt(slots[1] + epsilon) * rsqrt(mean_square + epsilon) * gradient
        mean_step_square = assign(slots[1], slots[1] * rho + square(step) * one_minus_rho)
        return variable - step * rate, [mean_square, mean_step_square]


class FtrlOptimizer(Optimizer):
    """Follow the regularised leader: weights that l1 keeps at 0 stay there.

    Source: McMahan and others, Ad Click Prediction: a View from the Trenches; with the l2 shrinkage
    of TensorFlow.
    """

    @reject_arguments(IN_ORDER, "use_locking")
    def __init__(
        self,
        learning_rate: Any,
        learning_rate_power: float = -0.5,
        initial_accumulator_value: float = 0.1,
        l1_regularization_strength: float = 0.0,
        l2_regularization_strength: float = 0.0,
        use_locking: bool = False,
        name: str = "Ftrl",
        accum_name: str | None = None,
        linear_name: str | None = None,
        l2_shrinkage_regularization_strength: float = 0.0,
        beta: float | None = None,
    ) -> None:
        super().__init__(name)
        for requirement, number, is_valid in (
            ("a learning_rate_power of 0 or less", learning_rate_power, learning_rate_power <= 0),
            (
                "an initial_accumulator_value of 0 or more",
                initial_accumulator_value,
                initial_accumulator_value >= 0,
            ),
            (
                "an l1_regularization_strength of 0 or more",
                l1_regularization_strength,
                l1_regularization_strength >= 0,
            ),
            (
                "an l2_regularization_strength of 0 or more",
                l2_regularization_strength,
                l2_regularization_strength >= 0,
            ),
        ):
            if not is_valid:
                raise GraphError(f"{name} needs {requirement}, got {number}")
        self.rate, self.power, self.first = (
            learning_rate,
            learning_rate_power,
            initial_accumulator_value,
        )
        self.l1, self.l2 = l1_regularization_strength, l2_regularization_strength
        self.shrinkage, self.beta = l2_shrinkage_regularization_strength, beta or 0.0
        self.names = accum_name or name, linear_name or f"{name}_1"

    def begin(self, variable: Variable) -> tuple[Variable, ...]:
        """The sum of squares, and the linear part of what is minimised."""
        squares, linear = self.names
        return self.slot(variable, squares, self.first), self.slot(variable, linear)

    def update(
        self, gradient: Tensor, variable: Variable, slots: tuple[Variable, ...], shared: Any
    ) -> tuple[Tensor, list[Tensor]]:
        """The minimum of the linear part and the regularisation."""
        rate = hyperparameter(self.rate, variable)
        squares = slots[0] + square(gradient)
        before, after = slots[0] ** -self.power, squares**-self.power
        shrunk_gradient = gradient + 2 * self.shrinkage * variable if self.shrinkage else gradient
        linear = slots[1] + shrunk_gradient - (after - before) / rate * variable
        curvature = (after + self.beta) / rate + 2 * self.l2
        clipped = clip_by_value(linear, -self.l1, self.l1)
        return (clipped - linear) / curvature, [assign(slots[0], squares), assign(slots[1], linear)]


class RMSPropOptimizer(Optimizer):
    """ms += (1 - decay) (g * g - ms); mom = momentum * mom + rate * g / sqrt(ms + epsilon).

    Then w -= mom. The mean of squares begins at 1. ``centered`` takes the square of the mean
    gradient away from it. Source: Tieleman and Hinton, Lecture 6.5; Graves, Generating
    Sequences, equations 38-45.
    """

    @reject_arguments(IN_ORDER, "use_locking")
    def __init__(
        self,
        learning_rate: Any,
        decay: Any = 0.9,
        momentum: Any = 0.0,
        epsilon: Any = 1e-10,
        use_locking: bool = False,
        centered: bool = False,
        name: str = "RMSProp",
    ) -> None:
        super().__init__(name)
        self.rate, self.decay, self.momentum = learning_rate, decay, momentum
        self.epsilon, self.centered = epsilon, centered

    def begin(self, variable: Variable) -> tuple[Variable, ...]:
        """The mean of squares, the momentum, and the mean if it is centered."""
        slots = self.slot(variable, self.name, 1.0), self.slot(variable, f"{self.name}_1")
        return (*slots, self.slot(variable, f"{self.name}_2")) if self.centered else slots

    def update(
        self, gradient: Tensor, variable: Variable, slots: tuple[Variable, ...], shared: Any
    ) -> tuple[Tensor, list[Tensor]]:
        """A step by the root of the mean of squares."""
        numbers = (self.rate, self.momentum, self.epsilon)
        rate, momentum, epsilon = (hyperparameter(v, variable) for v in numbers)
        one_minus_decay = one_minus(self.decay, variable)
        mean = assign(slots[0], slots[0] + (square(gradient) - slots[0]) * one_minus_decay)
        writes, denominator = [mean], mean + epsilon
        if self.centered:
            center = assign(slots[2], slots[2] + (gradient - slots[2]) * one_minus_decay)
            writes, denominator = [mean, center], mean - square(center) + epsilon
        momentum_step = assign(slots[1], slots[1] * momentum + gradient * rate * rsqrt(denominator))
        return variable - momentum_step, [*writes, momentum_step]


class AdamOptimizer(Optimizer):
    """m, v: running means of g and g * g; w -= lr_t * m / (sqrt(v) + epsilon).

    lr_t = learning_rate * sqrt(1 - beta2**t) / (1 - beta1**t). Source: Kingma and Ba, Adam, the
    formulation before section 2.1.
    """

    @reject_arguments(IN_ORDER, "use_locking")
    @reject_arguments(
        "its two powers have names of their own", "use_own_namescope_for_non_slot_vars"
    )
    def __init__(
        self,
        learning_rate: Any = 0.001,
        beta1: Any = 0.9,
        beta2: Any = 0.999,
        epsilon: Any = 1e-8,
        use_locking: bool = False,
        name: str = "Adam",
        use_own_namescope_for_non_slot_vars: bool = False,
    ) -> None:
        super().__init__(name)
        self.rate, self.beta1, self.beta2, self.epsilon = learning_rate, beta1, beta2, epsilon
        self.powers: tuple[Variable, Variable] | None = None

    def begin(self, variable: Variable) -> tuple[Variable, ...]:
        """The two running means; and once the powers of the betas."""
        if self.powers is None:
            with get_default_graph().with_name_prefix(""):
                self.powers = (
                    Variable(
                        creation.constant(self.beta1, variable.dtype), False, name="beta1_power"
                    ),
                    Variable(
                        creation.constant(self.beta2, variable.dtype), False, name="beta2_power"
                    ),
                )
        return self.slot(variable, self.name), self.slot(variable, f"{self.name}_1")

    def prepare(self) -> Tensor:
        """The learning rate of this step."""
        assert self.powers is not None
        beta1_power, beta2_power = self.powers
        rate: Tensor = (
            sqrt(1 - beta2_power) / (1 - beta1_power) * hyperparameter(self.rate, beta1_power)
        )
        return rate

    def update(
        self, gradient: Tensor, variable: Variable, slots: tuple[Variable, ...], shared: Any
    ) -> tuple[Tensor, list[Tensor]]:
        """A step by the ratio of the means."""
        numbers = (self.beta1, self.beta2, self.epsilon)
        beta1, beta2, epsilon = (hyperparameter(v, variable) for v in numbers)
        rate = hyperparameter(shared, variable)
        one_minus_beta1, one_minus_beta2 = (
            one_minus(self.beta1, variable),
            one_minus(self.beta2, variable),
        )
        m = assign(slots[0], slots[0] * beta1 + gradient * one_minus_beta1)
        v = assign(slots[1], slots[1] * beta2 + square(gradient) * one_minus_beta2)
        return variable - rate * m / (sqrt(v) + epsilon), [m, v]

    def finish(self) -> list[Any]:
        """The powers of the next step."""
        assert self.powers is not None
        beta1_power, beta2_power = self.powers
        next_powers = (
            beta1_power * hyperparameter(self.beta1, beta1_power),
            beta2_power * hyperparameter(self.beta2, beta2_power),
        )
        return [assign(beta1_power, next_powers[0]), assign(beta2_power, next_powers[1])]

    def variables(self) -> list[Variable]:
        """The running means and the powers."""
        return [*super().variables(), *(self.powers or ())]


def row_additions(gradient: Entry) -> list[Node] | None:
    """The additions of rows to zeros that a gradient is the sum of; None if it is no such sum."""
    additions: list[Node] = []
    waiting = [gradient.node]
    while waiting:
        node = waiting.pop()
        name = node.op.name if node.op is not None else ""
        if name == "add":
            waiting += [e.node for e in node.inputs]
        elif name == "index_add" and _is_zeros(node.inputs[0].node):
            additions.append(node)
        else:
            return None
    return additions


def _is_zeros(node: Node) -> bool:
    return node.op is not None and node.op.name == "zeros_like"


def add_rows(table: Entry, rows: list[Node], factor: Any) -> Entry:
    """A table with ``factor`` times these rows added; equal indices add up."""
    for node in rows:
        _, index, value = node.inputs
        table = make("index_add", table, index, value * factor, **node.params)
    return table
