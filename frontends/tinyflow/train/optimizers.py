"""Update rules of optimizers: gradient descent, momentum, Adagrad, Adadelta, FTRL, RMSProp, Adam.

Rules are formulas of tensors. All updates of a training step are one program, and fuse. In the
formulas w is a variable, g its gradient. See `Optimizer.update` for the arguments and results of
the methods ``update``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from passkit.errors import GraphError
from passkit.frontends.tinyflow import creation, elementwise
from passkit.frontends.tinyflow.argument_checks import reject_arguments, require_float
from passkit.frontends.tinyflow.clipping import clip_by_value
from passkit.frontends.tinyflow.graphs import get_default_graph
from passkit.frontends.tinyflow.tensors import Tensor, as_tensor
from passkit.frontends.tinyflow.train.optimizer import Optimizer, hyperparameter, one_minus
from passkit.frontends.tinyflow.variables import Variable, assign
from passkit.graph.node import Entry, Node
from passkit.ops.helpers import make

sqrt: Callable[..., Tensor] = elementwise.FUNCTIONS["sqrt"]
rsqrt: Callable[..., Tensor] = elementwise.FUNCTIONS["rsqrt"]
square: Callable[..., Tensor] = elementwise.FUNCTIONS["square"]
IN_ORDER = "a session writes variables in the order of its program"


def row_additions(gradient: Entry) -> list[Node] | None:
    """Find the ``index_add`` nodes whose sum is a gradient, such as that of an embedding table.

    Args:
        gradient: The gradient.

    Returns:
        The nodes, which add rows to zeros; None if the gradient is anything but their sum.
    """
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
    """Return whether a node is a ``zeros_like``; other zeros are not recognized."""
    return node.op is not None and node.op.name == "zeros_like"


def add_rows(table: Entry, rows: list[Node], factor: Any) -> Entry:
    """Add rows times a factor to a table; rows of equal indices add up.

    Args:
        table: The table to add to, of shape (rows, …).
        rows: The nodes that `row_additions` returned.
        factor: A number or a scalar entry.

    Returns:
        The sum, an entry of the shape of ``table``; ``table`` itself without nodes.
    """
    for node in rows:
        _, index, value = node.inputs
        table = make("index_add", table, index, value * factor, **node.params)
    return table


class GradientDescentOptimizer(Optimizer):
    """Gradient descent: w -= learning_rate * g.

    Args:
        learning_rate: A number, a tensor, or a function that returns one of these.
        use_locking: Unsupported; only the default is accepted.
        name: The name scope of the operations, and the prefix of slot names; "GradientDescent" by
            default.

    Raises:
        SettingError: If an unsupported argument is set.
    """

    @reject_arguments(IN_ORDER, "use_locking")
    def __init__(
        self, learning_rate: Any, use_locking: bool = False, name: str = "GradientDescent"
    ) -> None:
        super().__init__(name)
        self.rate = learning_rate

    def update(
        self, gradient: Tensor, variable: Variable, slots: tuple[Variable, ...], shared: Any
    ) -> tuple[Tensor, list[Tensor]]:
        """Compute w - rate * g; of an embedding table, change only the rows that were read.

        Args:
            gradient: The gradient, of the variable's shape and dtype.
            variable: The variable, with its value before the step.
            slots: Empty.
            shared: Unused.

        Returns:
            The new value of the variable; and the list of writes to the slots, which is empty.

        Raises:
            SettingError: If a hyperparameter is neither a number, a tensor nor a function.
            ShapeError: If a hyperparameter is a tensor with axes.
            DTypeError: If it is a tensor of complex numbers or text.
            ArgumentError: If it is a function that returns neither a tensor nor numbers.
        """
        rate = hyperparameter(self.rate, variable)
        rows = row_additions(gradient.entry)
        if rows is None:
            return variable - gradient * rate, []
        factor = -rate.entry if isinstance(rate, Tensor) else -rate
        return as_tensor(add_rows(variable.entry, rows, factor), f"{variable._name}/rows"), []


class MomentumOptimizer(Optimizer):
    """Gradient descent with momentum: a = momentum * a + g; w -= learning_rate * a.

    Source: Sutskever and others, On the importance of initialization and momentum.

    Args:
        learning_rate: A number, a tensor, or a function that returns one of these.
        momentum: The factor of the accumulated gradient, as ``learning_rate``.
        use_locking: Unsupported; only the default is accepted.
        name: The name scope of the operations, and the prefix of slot names; "Momentum" by default.
        use_nesterov: Whether to use w -= learning_rate * (g + momentum * a) instead; False by
            default.

    Raises:
        SettingError: If an unsupported argument is set.
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
        """Create the slot of the accumulated gradient, and return it as a tuple of one."""
        return (self.slot(variable, self.name),)

    def update(
        self, gradient: Tensor, variable: Variable, slots: tuple[Variable, ...], shared: Any
    ) -> tuple[Tensor, list[Tensor]]:
        """Compute a = momentum * a + g, and w - rate * a, or the variant of Nesterov.

        Args:
            gradient: The gradient, of the variable's shape and dtype.
            variable: The variable, with its value before the step.
            slots: The accumulated gradient, as the only one.
            shared: Unused.

        Returns:
            The new value of the variable; and the list of writes to the slots.

        Raises:
            SettingError: If a hyperparameter is neither a number, a tensor nor a function.
            ShapeError: If a hyperparameter is a tensor with axes.
            DTypeError: If it is a tensor of complex numbers or text.
            ArgumentError: If it is a function that returns neither a tensor nor numbers.
        """
        rate, momentum = (
            hyperparameter(self.rate, variable),
            hyperparameter(self.momentum, variable),
        )
        total = assign(slots[0], slots[0] * momentum + gradient)
        if self.nesterov:
            return variable - (gradient * rate + total * momentum * rate), [total]
        return variable - total * rate, [total]


class AdagradOptimizer(Optimizer):
    """Adagrad: a += g * g; w -= learning_rate * g / sqrt(a).

    Source: Duchi and others, Adaptive Subgradient Methods.

    Args:
        learning_rate: A number, a tensor, or a function that returns one of these.
        initial_accumulator_value: The first a, a number above 0; 0.1 by default.
        use_locking: Unsupported; only the default is accepted.
        name: The name scope of the operations, and the prefix of slot names; "Adagrad" by default.

    Raises:
        GraphError: If ``initial_accumulator_value`` is not above 0.
        SettingError: If ``initial_accumulator_value`` is no number, or an unsupported argument is
            set.
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
        first = require_float(name, "initial_accumulator_value", initial_accumulator_value)
        if not first > 0:
            raise GraphError(
                f"{name} needs an initial_accumulator_value above 0, got {first}; it divides the "
                f"first step"
            )
        self.rate, self.first = learning_rate, first

    def begin(self, variable: Variable) -> tuple[Variable, ...]:
        """Create the slot of the sum of squared gradients, and return it as a tuple of one."""
        return (self.slot(variable, self.name, self.first),)

    def update(
        self, gradient: Tensor, variable: Variable, slots: tuple[Variable, ...], shared: Any
    ) -> tuple[Tensor, list[Tensor]]:
        """Compute a = a + g * g, and w - rate * g / sqrt(a).

        Args:
            gradient: The gradient, of the variable's shape and dtype.
            variable: The variable, with its value before the step.
            slots: That sum, as the only one.
            shared: Unused.

        Returns:
            The new value of the variable; and the list of writes to the slots.

        Raises:
            SettingError: If a hyperparameter is neither a number, a tensor nor a function.
            ShapeError: If a hyperparameter is a tensor with axes.
            DTypeError: If it is a tensor of complex numbers or text.
            ArgumentError: If it is a function that returns neither a tensor nor numbers.
        """
        total = assign(slots[0], slots[0] + square(gradient))
        return variable - gradient * hyperparameter(self.rate, variable) * rsqrt(total), [total]


class AdadeltaOptimizer(Optimizer):
    """Adadelta: steps by the ratio of the running means of squared steps and squared gradients.

    The step is d = g * sqrt(mean of d * d + epsilon) / sqrt(mean of g * g + epsilon), and w -=
    learning_rate * d. Source: Zeiler, ADADELTA: An Adaptive Learning Rate Method.

    Args:
        learning_rate: A number, a tensor, or a function that returns one of these. 0.001 by
            default.
        rho: The weight of the old running mean when it is updated; 0.95 by default.
        epsilon: A number that is added to the running means; 1e-8 by default.
        use_locking: Unsupported; only the default is accepted.
        name: The name scope of the operations, and the prefix of slot names; "Adadelta" by default.

    Raises:
        SettingError: If an unsupported argument is set.
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
        """Create and return the slots of the running means of squared gradients and steps."""
        return self.slot(variable, self.name), self.slot(variable, f"{self.name}_1")

    def update(
        self, gradient: Tensor, variable: Variable, slots: tuple[Variable, ...], shared: Any
    ) -> tuple[Tensor, list[Tensor]]:
        """Move both running means, and step by g * sqrt(mean step^2 / mean g^2) * rate.

        Args:
            gradient: The gradient, of the variable's shape and dtype.
            variable: The variable, with its value before the step.
            slots: The running means of squared gradients and of squared steps.
            shared: Unused.

        Returns:
            The new value of the variable; and the list of writes to the slots.

        Raises:
            SettingError: If a hyperparameter is neither a number, a tensor nor a function.
            ShapeError: If a hyperparameter is a tensor with axes.
            DTypeError: If it is a tensor of complex numbers or text.
            ArgumentError: If it is a function that returns neither a tensor nor numbers.
        """
        numbers = (self.rate, self.rho, self.epsilon)
        rate, rho, epsilon = (hyperparameter(v, variable) for v in numbers)
        one_minus_rho = one_minus(self.rho, variable)
        mean_square = assign(slots[0], slots[0] * rho + square(gradient) * one_minus_rho)
        step = sqrt(slots[1] + epsilon) * rsqrt(mean_square + epsilon) * gradient
        mean_step_square = assign(slots[1], slots[1] * rho + square(step) * one_minus_rho)
        return variable - step * rate, [mean_square, mean_step_square]


def _require_not_negative(optimizer: str, argument: str, value: Any) -> float:
    """Convert a number of ``optimizer`` to a float; ``argument`` is its name, for messages.

    Raises:
        GraphError: If it is not 0 or more.
        SettingError: If it is no number.
    """
    number = require_float(optimizer, argument, value)
    if not number >= 0:
        raise GraphError(f"{optimizer} needs an {argument} of 0 or more, got {number}")
    return number


class FtrlOptimizer(Optimizer):
    """Follow the regularized leader: weights that L1 regularization keeps at 0 stay there.

    Source: McMahan and others, Ad Click Prediction: a View from the Trenches; with the L2 shrinkage
    of TensorFlow.

    Args:
        learning_rate: A number, a tensor, or a function that returns one of these.
        learning_rate_power: The exponent of the learning rate's decay, 0 or less; -0.5 by default.
        initial_accumulator_value: The first sum of squares, 0 or more; 0.1 by default.
        l1_regularization_strength: The factor of the L1 norm in the objective, 0 or more; 0 by
            default.
        l2_regularization_strength: The factor of the squared L2 norm, 0 or more; 0 by default.
        use_locking: Unsupported; only the default is accepted.
        name: The name scope of the operations, and the prefix of slot names; "Ftrl" by default.
        accum_name: The name of the slot of squares; ``name`` by default.
        linear_name: The name of the slot of the linear part; ``name`` and "_1" by default.
        l2_shrinkage_regularization_strength: The strength of an L2 loss that only changes
            gradients; 0 by default.
        beta: A number that is added to the power of the sum of squares; 0 by default.

    Raises:
        GraphError: If a number is out of range.
        SettingError: If one of the arguments but ``learning_rate`` is no number, or an unsupported
            argument is set.
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
        self.rate = learning_rate
        self.power = require_float(name, "learning_rate_power", learning_rate_power)
        if not self.power <= 0:
            raise GraphError(f"{name} needs a learning_rate_power of 0 or less, got {self.power}")
        self.first, self.l1, self.l2 = (
            _require_not_negative(name, argument, value)
            for argument, value in (
                ("initial_accumulator_value", initial_accumulator_value),
                ("l1_regularization_strength", l1_regularization_strength),
                ("l2_regularization_strength", l2_regularization_strength),
            )
        )
        self.shrinkage = require_float(
            name, "l2_shrinkage_regularization_strength", l2_shrinkage_regularization_strength
        )
        self.beta = 0.0 if beta is None else require_float(name, "beta", beta)
        self.names = accum_name or name, linear_name or f"{name}_1"

    def begin(self, variable: Variable) -> tuple[Variable, ...]:
        """Create and return the slots of the sum of squares and of the objective's linear part."""
        squares, linear = self.names
        return self.slot(variable, squares, self.first), self.slot(variable, linear)

    def update(
        self, gradient: Tensor, variable: Variable, slots: tuple[Variable, ...], shared: Any
    ) -> tuple[Tensor, list[Tensor]]:
        """Compute the w that minimizes the linear part of the objective plus the regularization.

        Args:
            gradient: The gradient, of the variable's shape and dtype.
            variable: The variable, with its value before the step.
            slots: The sum of squared gradients, and the linear part.
            shared: Unused.

        Returns:
            The new value of the variable; and the list of writes to the slots.

        Raises:
            SettingError: If a hyperparameter is neither a number, a tensor nor a function.
            ShapeError: If a hyperparameter is a tensor with axes.
            DTypeError: If it is a tensor of complex numbers or text.
            ArgumentError: If it is a function that returns neither a tensor nor numbers.
        """
        rate = hyperparameter(self.rate, variable)
        squares = slots[0] + square(gradient)
        before, after = slots[0] ** -self.power, squares**-self.power
        shrunk_gradient = gradient + 2 * self.shrinkage * variable if self.shrinkage else gradient
        linear = slots[1] + shrunk_gradient - (after - before) / rate * variable
        curvature = (after + self.beta) / rate + 2 * self.l2
        clipped = clip_by_value(linear, -self.l1, self.l1)
        return (clipped - linear) / curvature, [assign(slots[0], squares), assign(slots[1], linear)]


class RMSPropOptimizer(Optimizer):
    """RMSProp: steps by the gradient over the root of the running mean of its squares.

    It computes ms += (1 - decay) * (g * g - ms), mom = momentum * mom + learning_rate * g / sqrt(ms
    + epsilon) and w -= mom, where ms is 1 at first. Source: Tieleman and Hinton, Lecture 6.5;
    Graves, Generating Sequences With Recurrent Neural Networks, equations 38-45.

    Args:
        learning_rate: A number, a tensor, or a function that returns one of these.
        decay: The weight of the old running mean when it is updated; 0.9 by default.
        momentum: The factor of the last step; 0 by default.
        epsilon: A number that is added to the mean of squares; 1e-10 by default.
        use_locking: Unsupported; only the default is accepted.
        centered: Whether to subtract the square of the mean gradient from ms; False by default.
        name: The name scope of the operations, and the prefix of slot names; "RMSProp" by default.

    Raises:
        SettingError: If an unsupported argument is set.
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
        """Create and return the slots of mean square, last step, and, if centered, the mean."""
        slots = self.slot(variable, self.name, 1.0), self.slot(variable, f"{self.name}_1")
        return (*slots, self.slot(variable, f"{self.name}_2")) if self.centered else slots

    def update(
        self, gradient: Tensor, variable: Variable, slots: tuple[Variable, ...], shared: Any
    ) -> tuple[Tensor, list[Tensor]]:
        """Move the running means, and step by the gradient over the root of the mean square.

        Args:
            gradient: The gradient, of the variable's shape and dtype.
            variable: The variable, with its value before the step.
            slots: The mean of squares, the last step, and the mean gradient if centered.
            shared: Unused.

        Returns:
            The new value of the variable; and the list of writes to the slots.

        Raises:
            SettingError: If a hyperparameter is neither a number, a tensor nor a function.
            ShapeError: If a hyperparameter is a tensor with axes.
            DTypeError: If it is a tensor of complex numbers or text.
            ArgumentError: If it is a function that returns neither a tensor nor numbers.
        """
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
    """Adam: steps by the ratio of the running means of gradients and of their squares.

    With these means m and v, w -= lr_t * m / (sqrt(v) + epsilon), where lr_t = learning_rate *
    sqrt(1 - beta2^t) / (1 - beta1^t). Source: Kingma and Ba, Adam, the formulation before section
    2.1.

    Args:
        learning_rate: A number, a tensor, or a function that returns one of these. 0.001 by
            default.
        beta1: The weight of the old m when it is updated, a number; 0.9 by default.
        beta2: The weight of the old v when it is updated, a number; 0.999 by default.
        epsilon: A number that is added to the root of v; 1e-8 by default.
        use_locking: Unsupported; only the default is accepted.
        name: The name scope of the operations, and the prefix of slot names; "Adam" by default.
        use_own_namescope_for_non_slot_vars: Unsupported; only the default is accepted.

    Raises:
        SettingError: If an unsupported argument is set.
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
        """Create and return the slots of the running means of gradients and of their squares.

        The first call also creates the variables of the betas' powers, of the dtype of
        ``variable``.

        Raises:
            SettingError: If a beta is no number, such as a tensor.
        """
        if self.powers is None:
            first, second = (
                creation.constant(require_float(self.name, argument, beta), variable.dtype)
                for argument, beta in (("beta1", self.beta1), ("beta2", self.beta2))
            )
            with get_default_graph().with_name_prefix(""):
                self.powers = (
                    Variable(first, False, name="beta1_power"),
                    Variable(second, False, name="beta2_power"),
                )
        return self.slot(variable, self.name), self.slot(variable, f"{self.name}_1")

    def prepare(self) -> Tensor:
        """Return the learning rate of this step, lr_t, a scalar tensor.

        It has the dtype of the betas' powers. `begin` must have created these.

        Raises:
            SettingError: If the learning rate is neither a number, a tensor nor a function.
            ShapeError: If the learning rate is a tensor with axes.
            DTypeError: If it is a tensor of complex numbers or text.
            ArgumentError: If it is a function that returns neither a tensor nor numbers.
        """
        assert self.powers is not None
        beta1_power, beta2_power = self.powers
        rate: Tensor = (
            sqrt(1 - beta2_power) / (1 - beta1_power) * hyperparameter(self.rate, beta1_power)
        )
        return rate

    def update(
        self, gradient: Tensor, variable: Variable, slots: tuple[Variable, ...], shared: Any
    ) -> tuple[Tensor, list[Tensor]]:
        """Move the running means m and v, and compute w - lr_t * m / (sqrt(v) + epsilon).

        Args:
            gradient: The gradient, of the variable's shape and dtype.
            variable: The variable, with its value before the step.
            slots: The running means of gradients and of squared gradients.
            shared: The learning rate of this step, a scalar tensor; see `prepare`.

        Returns:
            The new value of the variable; and the list of writes to the slots.

        Raises:
            SettingError: If a hyperparameter is neither a number, a tensor nor a function.
            ShapeError: If a hyperparameter is a tensor with axes.
            DTypeError: If it is a tensor of complex numbers or text.
            ArgumentError: If it is a function that returns neither a tensor nor numbers.
        """
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
        """Return the writes that multiply the betas' powers by the betas for the next step.

        The list holds two tensors. `begin` must have created the powers.
        """
        assert self.powers is not None
        beta1_power, beta2_power = self.powers
        next_powers = (
            beta1_power * hyperparameter(self.beta1, beta1_power),
            beta2_power * hyperparameter(self.beta2, beta2_power),
        )
        return [assign(beta1_power, next_powers[0]), assign(beta2_power, next_powers[1])]

    def variables(self) -> list[Variable]:
        """Return the slots, and the variables of the betas' powers once they exist."""
        return [*super().variables(), *(self.powers or ())]
