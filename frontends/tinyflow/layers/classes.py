"""Layers as objects: created once, called often, with the variables of their first call.

Each class is derived from a function of `passkit.frontends.tinyflow.layers`. Its constructor takes
the arguments of the function except ``inputs``, ``reuse`` and those that each call gets.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, ClassVar

from passkit.errors import GraphError
from passkit.frontends.tinyflow.graphs import get_default_graph
from passkit.frontends.tinyflow.layers import convolutions, core, normalization, pooling
from passkit.frontends.tinyflow.scopes import VariableScope, variable_scope
from passkit.frontends.tinyflow.tensors import Tensor
from passkit.frontends.tinyflow.variables import Variable


class Layer:
    """Base class of layer objects. The first call creates the variables; later calls reuse them."""

    function: ClassVar[Callable[..., Tensor]]
    """The layer function."""
    default: ClassVar[str]
    """The default variable scope."""
    call_arguments: ClassVar[tuple[str, ...]] = ()
    """The arguments of the function that are passed to each call, not to the constructor."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Store the arguments of the layer function, without calling it.

        Args:
            *args: The arguments of the layer function in its order, without ``inputs``, ``reuse``
                and `call_arguments`.
            **kwargs: The same by name; ``name`` is the variable scope.

        Raises:
            TypeError: For an argument that the layer does not have.
        """
        self.arguments = dict(inspect.signature(type(self)).bind(*args, **kwargs).arguments)
        self._scope: VariableScope | None = None
        self._variables: list[Variable] = []
        self.name: str | None = self.arguments.pop("name", None)

    def __call__(self, inputs: Any, **kwargs: Any) -> Tensor:
        """Apply the layer.

        Args:
            inputs: The inputs of the layer function, a tensor or numbers.
            **kwargs: The arguments in ``call_arguments``, such as ``training``.

        Returns:
            The result of the layer function. The first call creates the variables.

        Raises:
            GraphError: For another keyword.
            PasskitError: A subclass that the layer function raises, such as ShapeError.
        """
        unknown = [k for k in kwargs if k not in self.call_arguments]
        if unknown:
            expected = ", ".join(("inputs", *self.call_arguments))
            raise GraphError(
                f"a {type(self).__name__} is called with {expected}, got {unknown[0]!r}"
            )
        function = type(self).function
        if "reuse" not in inspect.signature(function).parameters:
            name = {} if self.name is None else {"name": self.name}
            return function(inputs, **self.arguments, **kwargs, **name)
        reuse = True if self._scope is not None else None
        if self._scope is None:
            with variable_scope(self.name, self.default) as scope:
                self._scope, self.name = scope, scope.name
        graph = get_default_graph()
        variable_count = len(graph.get_collection("variables"))
        output = function(inputs, **self.arguments, **kwargs, name=self._scope, reuse=reuse)
        self._variables += graph.get_collection("variables")[variable_count:]
        return output

    apply = __call__

    @property
    def variables(self) -> list[Variable]:
        """The variables that calls of the layer created, a new list; empty before the first one."""
        return list(self._variables)

    weights = variables

    @property
    def trainable_variables(self) -> list[Variable]:
        """Those of `variables` that optimizers change, a new list."""
        return [v for v in self._variables if v.trainable]

    trainable_weights = trainable_variables

    def __getattr__(self, name: str) -> Any:
        """Return the variable of this name, such as ``layer.kernel``.

        Raises:
            AttributeError: If the layer has no such variable, or was not called yet.
        """
        for variable in self.__dict__.get("_variables", ()):
            if variable._name.rsplit("/", 1)[-1] == name:
                return variable
        raise AttributeError(
            f"{type(self).__name__} has no {name!r}; the variables of a layer exist after its "
            f"first call"
        )


def _layer_class(
    name: str, function: Callable[..., Tensor], default: str, *call_arguments: str
) -> type[Layer]:
    """Derive a layer class from a layer function.

    Args:
        name: The name of the class.
        function: The layer function.
        default: The default variable scope.
        *call_arguments: Arguments that are passed to each call, not to the constructor.

    Returns:
        The class. Its docstring is that of the function, with a note on the arguments of a call.
    """
    members = {
        "__doc__": _class_docstring(function, call_arguments),
        "__module__": __name__,
        "function": staticmethod(function),
        "default": default,
        "call_arguments": call_arguments,
    }
    layer_class = type(name, (Layer,), members)
    signature = inspect.signature(function)
    excluded = {"inputs", "reuse", *call_arguments}
    parameters = [p for p in signature.parameters.values() if p.name not in excluded]
    layer_class.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    return layer_class


def _class_docstring(function: Callable[..., Tensor], call_arguments: tuple[str, ...]) -> str:
    """Return the docstring of a layer function with a note on the arguments of the class.

    Args:
        function: The layer function.
        call_arguments: Arguments that are passed to each call, not to the constructor.
    """
    summary, *sections = inspect.cleandoc(function.__doc__ or "").split("\n\n")
    names = " and ".join(f"``{name}``" for name in ("inputs", *call_arguments))
    note = (
        f"Arguments of a call of the layer: {names}. The constructor takes the others, and "
        f"errors are raised by the call."
    )
    return "\n\n".join([summary, note, *sections])


Dense = _layer_class("Dense", core.dense, "dense")
Conv1D = _layer_class("Conv1D", convolutions.conv1d, "conv1d")
Conv2D = _layer_class("Conv2D", convolutions.conv2d, "conv2d")
Conv2DTranspose = _layer_class("Conv2DTranspose", convolutions.conv2d_transpose, "conv2d_transpose")
MaxPooling1D = _layer_class("MaxPooling1D", pooling.max_pooling1d, "max_pooling1d")
MaxPooling2D = _layer_class("MaxPooling2D", pooling.max_pooling2d, "max_pooling2d")
AveragePooling1D = _layer_class("AveragePooling1D", pooling.average_pooling1d, "average_pooling1d")
AveragePooling2D = _layer_class("AveragePooling2D", pooling.average_pooling2d, "average_pooling2d")
Flatten = _layer_class("Flatten", core.flatten, "flatten")
Dropout = _layer_class("Dropout", core.dropout, "dropout", "training")
BatchNormalization = _layer_class(
    "BatchNormalization",
    normalization.batch_normalization,
    "batch_normalization",
    "training",
)
