"""Layers as objects: made once, called often, with the variables of their first call.

Each class is made of a function of `passkit.frontends.tinyflow.layers`, whose arguments it takes
except ``inputs`` and ``reuse``.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, ClassVar

from passkit.errors import GraphError
from passkit.frontends.tinyflow import layers
from passkit.frontends.tinyflow.graphs import get_default_graph
from passkit.frontends.tinyflow.scopes import VariableScope, variable_scope
from passkit.frontends.tinyflow.tensors import Tensor
from passkit.frontends.tinyflow.variables import Variable


class Layer:
    """A layer that is called with tensors; the first call makes its variables, all share them."""

    function: ClassVar[Callable[..., Tensor]]
    default: ClassVar[str]
    in_call: ClassVar[tuple[str, ...]] = ()
    """Arguments of the call, not of the object."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.arguments = dict(inspect.signature(type(self)).bind(*args, **kwargs).arguments)
        self._scope: VariableScope | None = None
        self._variables: list[Variable] = []
        self.name: str | None = self.arguments.pop("name", None)

    def __call__(self, inputs: Any, **kwargs: Any) -> Tensor:
        """Apply the layer to ``inputs``. Raises: GraphError for an unknown argument."""
        unknown = [k for k in kwargs if k not in self.in_call]
        if unknown:
            takes = ", ".join(("inputs", *self.in_call))
            raise GraphError(f"a {type(self).__name__} is called with {takes}, got {unknown[0]!r}")
        function = type(self).function
        if "reuse" not in inspect.signature(function).parameters:
            own = {} if self.name is None else {"name": self.name}
            return function(inputs, **self.arguments, **kwargs, **own)
        again = self._scope is not None
        if self._scope is None:
            with variable_scope(self.name, self.default) as scope:
                self._scope, self.name = scope, scope.name
        graph = get_default_graph()
        before = len(graph.get_collection("variables"))
        reuse = True if again else None
        out = function(inputs, **self.arguments, **kwargs, name=self._scope, reuse=reuse)
        self._variables += graph.get_collection("variables")[before:]
        return out

    apply = __call__

    @property
    def variables(self) -> list[Variable]:
        """The variables of the layer; none before its first call."""
        return list(self._variables)

    weights = variables

    @property
    def trainable_variables(self) -> list[Variable]:
        """Those that optimizers change."""
        return [v for v in self._variables if v.trainable]

    trainable_weights = trainable_variables

    def __getattr__(self, name: str) -> Any:
        for variable in self.__dict__.get("_variables", ()):
            if variable._name.rsplit("/", 1)[-1] == name:
                return variable
        raise AttributeError(
            f"{type(self).__name__} has no {name!r}; the variables of a layer are there after its "
            f"first call"
        )


def _class(
    name: str, function: Callable[..., Tensor], default: str, *in_call: str
) -> type[Layer]:
    """The class of a function; ``in_call`` are arguments that every call has its own value of."""
    made = type(name, (Layer,), {
        "__doc__": function.__doc__,
        "__module__": __name__,
        "function": staticmethod(function),
        "default": default,
        "in_call": in_call,
    })
    signature = inspect.signature(function)
    left_out = {"inputs", "reuse", *in_call}
    own = [p for p in signature.parameters.values() if p.name not in left_out]
    made.__signature__ = signature.replace(parameters=own)  # type: ignore[attr-defined]
    return made


Dense = _class("Dense", layers.dense, "dense")
Conv1D = _class("Conv1D", layers.conv1d, "conv1d")
Conv2D = _class("Conv2D", layers.conv2d, "conv2d")
Conv2DTranspose = _class("Conv2DTranspose", layers.conv2d_transpose, "conv2d_transpose")
MaxPooling1D = _class("MaxPooling1D", layers.max_pooling1d, "max_pooling1d")
MaxPooling2D = _class("MaxPooling2D", layers.max_pooling2d, "max_pooling2d")
AveragePooling1D = _class("AveragePooling1D", layers.average_pooling1d, "average_pooling1d")
AveragePooling2D = _class("AveragePooling2D", layers.average_pooling2d, "average_pooling2d")
Flatten = _class("Flatten", layers.flatten, "flatten")
Dropout = _class("Dropout", layers.dropout, "dropout", "training")
BatchNormalization = _class(
    "BatchNormalization", layers.batch_normalization, "batch_normalization", "training"
)
CLASSES = {
    c.__name__: c
    for c in (
        *(Dense, Conv1D, Conv2D, Conv2DTranspose, MaxPooling1D, MaxPooling2D),
        *(AveragePooling1D, AveragePooling2D, Flatten, Dropout, BatchNormalization),
    )
}
"""The classes by name, as ``tf.layers`` has them."""
