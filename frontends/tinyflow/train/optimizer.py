"""The base class of optimizers: gradients, slots, and the operation of a training step.

A *slot* is a variable of an optimizer that belongs to a trained variable and has its shape, such as
the accumulated gradient of momentum.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any

from passkit.errors import GraphError, ShapeError
from passkit.frontends.tinyflow import creation, elementwise
from passkit.frontends.tinyflow.argument_checks import (
    reject_arguments,
    require_float,
    require_list,
)
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

GradientsAndVariables = Iterable[tuple[Tensor | None, Variable]]


class Optimizer(ABC):
    """Base class of optimizers.

    A new optimizer overrides `update`, which computes the new value of one variable. It may
    override `begin` to create slots, `prepare` for a value that all updates share, and `finish` for
    writes after all updates.

    Args:
        name: The name scope of its operations, and the prefix of slot names.
    """

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
        """Create the operation of one training step: `compute_gradients`, then `apply_gradients`.

        Args:
            loss: The tensor of floats whose sum is minimized.
            global_step: A variable that the step increments; None (default) for none.
            var_list: The variables to train; by default the trainable ones of the graph.
            gate_gradients: Unsupported; only the default is accepted.
            aggregation_method: Unsupported; only the default is accepted.
            colocate_gradients_with_ops: Unsupported; only the default is accepted.
            name: The name of the operation; by default that of the optimizer.
            grad_loss: The gradient with respect to the loss, of its shape; ones by default.

        Returns:
            An operation; a session that runs it updates the variables.

        Raises:
            GraphError: If there are no variables, ``var_list`` is no list, no variable has a
                gradient, or one of those that have one, or ``global_step``, is no variable.
            SettingError: If an unsupported argument is set, or a hyperparameter of the optimizer is
                neither a number, a tensor nor a function.
            DTypeError: If the loss or a variable does not hold floats, or ``var_list`` holds
                anything but variables and tensors, or ``grad_loss`` has another dtype than the
                loss, or a hyperparameter is a tensor of complex numbers or text.
            ShapeError: If ``grad_loss`` has another shape than the loss, or a hyperparameter is a
                tensor with axes.
            ArgumentError: If the loss, ``grad_loss``, or what a function as hyperparameter returns
                is neither a tensor nor numbers, or ``name`` is no text.
        """
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
        """Compute the gradient of a loss with respect to each variable to train.

        Args:
            loss: The tensor of floats whose sum is minimized.
            var_list: The variables; by default the trainable ones of the graph.
            gate_gradients: Unsupported; only the default is accepted.
            aggregation_method: Unsupported; only the default is accepted.
            colocate_gradients_with_ops: Unsupported; only the default is accepted.
            grad_loss: The gradient with respect to the loss, of its shape; ones by default.

        Returns:
            A list of pairs (gradient, variable). A gradient is a tensor of the variable's shape;
            None if the loss does not depend on the variable.

        Raises:
            GraphError: If there are no variables, ``var_list`` is no list, or an operator has no
                gradient.
            SettingError: If an unsupported argument is set.
            DTypeError: If the loss or a variable does not hold floats, or ``var_list`` holds
                anything but variables and tensors, or ``grad_loss`` has another dtype than the
                loss.
            ShapeError: If ``grad_loss`` has another shape than the loss.
            ArgumentError: If the loss or ``grad_loss`` is neither a tensor nor numbers.
        """
        given = trainable_variables() if var_list is None else var_list
        variables = require_list("compute_gradients", "var_list", given)
        if not variables:
            raise GraphError(
                f"{self.name} needs variables to train, got none; tf.Variable creates one"
            )
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
        """Create the operation that updates variables by their gradients.

        Args:
            grads_and_vars: Pairs (gradient, variable), in a list, a ``zip`` or another iterable.
                Those whose gradient is None are left out.
            global_step: A variable that the operation increments; None (default) for none.
            name: The name of the operation; by default that of the optimizer.
            skip_gradients_aggregation: Unsupported; only the default is accepted.

        Returns:
            An operation. It reads all variables before it writes one.

        Raises:
            GraphError: If no variable has a gradient, one of them or ``global_step`` is no
                variable, or ``grads_and_vars`` are no pairs.
            SettingError: If an unsupported argument is set, or a hyperparameter of the optimizer is
                neither a number, a tensor nor a function.
            ShapeError: If a gradient does not have its variable's shape, or a hyperparameter is a
                tensor with axes.
            DTypeError: If a gradient does not have its variable's dtype, or a hyperparameter is a
                tensor of complex numbers or text.
            ArgumentError: If a gradient is neither None, a tensor nor numbers, a function as
                hyperparameter returns neither, or ``name`` is no text.
        """
        given_pairs = require_list("apply_gradients", "grads_and_vars", grads_and_vars)
        for pair in given_pairs:
            if not isinstance(pair, (list, tuple)) or len(pair) != 2:
                raise GraphError(f"{self.name} needs pairs (gradient, variable), got {pair!r}")
            if not isinstance(pair[1], Variable):
                raise GraphError(f"{self.name} needs variables to train, got {pair[1]!r}")
        pairs = [(convert_to_tensor(g), v) for g, v in given_pairs if g is not None]
        if not pairs:
            names = ", ".join(v.name for _, v in given_pairs) or "none"
            raise GraphError(
                f"{self.name} needs a gradient of at least one variable, and the loss depends on "
                f"none of them: {names}"
            )
        graph = get_default_graph()
        with graph.with_dependencies(None):
            slots = [self.begin(v) for _, v in pairs]
        with name_scope(name, self.name):
            shared = self.prepare()
            operations: list[Any] = []
            for (gradient, variable), variable_slots in zip(pairs, slots, strict=True):
                new_value, writes = self.update(gradient, variable, variable_slots, shared)
                if variable.constraint is not None:
                    new_value = variable.constraint(new_value)
                operations += [*writes, assign(variable, new_value)]
            operations += self.finish()
            if global_step is not None:
                operations.append(assign_add(global_step, 1))
            return group(*operations)

    def begin(self, variable: Variable) -> tuple[Variable, ...]:
        """Create the slots of a variable; called once for each variable by `apply_gradients`.

        `slot` returns those of an earlier call.

        Args:
            variable: A variable to train.

        Returns:
            The slots, which `update` gets in this order; none by default.
        """
        return ()

    def prepare(self) -> Any:
        """Compute a value that the updates of all variables share, such as a learning rate.

        Returns:
            Any value, which each call of `update` gets as ``shared``; None by default.
        """
        return None

    @abstractmethod
    def update(
        self, gradient: Tensor, variable: Variable, slots: tuple[Variable, ...], shared: Any
    ) -> tuple[Tensor, list[Tensor]]:
        """Compute the update of one variable.

        Args:
            gradient: The gradient, of the variable's shape and dtype.
            variable: The variable; as a tensor it is the value before the update.
            slots: The slots of this variable, as `begin` returned them.
            shared: The value that `prepare` returned for this training step.

        Returns:
            The new value of the variable, before its constraint is applied; and a list of the
            writes to its slots, made by `tf.assign`. The caller assigns the new value.
        """

    def finish(self) -> list[Any]:
        """Create writes that happen once in a training step, after all updates.

        Returns:
            A list of operations or tensors to run; none by default.
        """
        return []

    def slot(self, variable: Variable, name: str, value: float = 0.0) -> Variable:
        """Return the slot of a variable; create it if it is new.

        Args:
            variable: The variable to train.
            name: The name of the slot among those of the variable.
            value: The initial value of all elements; 0 by default.

        Returns:
            A variable of the shape and dtype of ``variable``, which is not trainable.
        """
        key = (variable, name)
        if key not in self._slots:
            self._slots[key] = self._slot(variable, f"{variable._name}/{name}", value)
        return self._slots[key]

    def _slot(self, variable: Variable, name: str, value: float) -> Variable:
        """Create a slot: a variable of the shape and dtype of another one, filled with a number.

        Args:
            variable: The other variable. If its shape is not known yet, the slot's follows later.
            name: The name of the slot, outside of the current name scope.
            value: The initial value of all elements.
        """
        if isinstance(variable, DeferredVariable):
            with get_default_graph().with_name_prefix(""):
                return DeferredVariable.slot_of(
                    variable, get_default_graph().unique_name(name), value
                )
        first = creation.constant(value, variable.dtype, variable.shape.as_list())
        with get_default_graph().with_name_prefix(""):
            return Variable(first, trainable=False, name=name)

    def get_slot(self, var: Variable, name: str) -> Variable | None:
        """Return a slot of a variable by its name.

        Args:
            var: The trained variable.
            name: The name of the slot, with or without the optimizer's name and "_" before it.

        Returns:
            The slot; None if there is none.
        """
        short_named = self._slots.get((var, f"{self.name}_{name}"))
        return self._slots.get((var, name)) if short_named is None else short_named

    def get_slot_names(self) -> list[str]:
        """Return the names of the slots of all variables, sorted, each once, as `slot` got them."""
        return sorted({name for _, name in self._slots})

    def variables(self) -> list[Variable]:
        """Return the variables that the optimizer created so far, a new list: all slots."""
        return list(self._slots.values())


def hyperparameter(value: Any, like: Tensor) -> Any:
    """Convert a hyperparameter to a float, or to a scalar tensor of the dtype of ``like``.

    Args:
        value: A number, a tensor, or a function that returns one of these.
        like: The variable or tensor that it is used with.

    Returns:
        A Python float for a number, else a scalar tensor. One of unknown rank is reshaped, so that
        a run checks that it has one element. The result of a function is a tensor in any case.

    Raises:
        SettingError: For text and other values that are no number.
        ArgumentError: For a function that returns neither a tensor nor numbers.
        DTypeError: For a tensor of complex numbers or text.
        ShapeError: For a tensor with axes, also one of a single element.
    """
    if isinstance(value, Tensor) or callable(value):
        tensor = convert_to_tensor(value() if callable(value) else value)
        if tensor.shape.ndims:
            raise ShapeError(
                f"an optimizer needs a scalar as a hyperparameter, got '{tensor.name}' of shape "
                f"{tensor.shape}"
            )
        if scalar_entry(tensor) is not tensor.entry:
            tensor = as_tensor(scalar_entry(tensor), tensor._name)
        return tensor if tensor.dtype is like.dtype else elementwise.cast(tensor, like.dtype)
    return require_float("an optimizer", "a hyperparameter", value)


def one_minus(value: Any, like: Tensor) -> Any:
    """Return 1 - value, rounded in the dtype of ``like``: 1 - 0.999 is not 0.001 in float32.

    Args:
        value: A number, a tensor, or a function that returns one of these.
        like: The variable or tensor that it is used with.

    Returns:
        A Python float for a number, else a scalar tensor of the dtype of ``like``.

    Raises:
        SettingError: For text and other values that are no number.
        ArgumentError: For a function that returns neither a tensor nor numbers.
        DTypeError: For a tensor of complex numbers or text.
        ShapeError: For a tensor with axes, also one of a single element.
    """
    number = hyperparameter(value, like)
    return 1 - number if isinstance(number, Tensor) else float(1 - like.dtype.numpy.type(number))
