"""Calls of NumPy as steps of a program: Fourier transforms, and factors with error codes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from passkit.frontends.torch.dtypes import passkit_dtype
from passkit.frontends.torch.op_importers.registry import AtenCall
from passkit.frontends.torch.symbols import extent_of
from passkit.graph.node import Entry, Node
from passkit.graph.op import REQUIRED, OpPattern, register_op
from passkit.values.dtype import dtype_of

Array = np.ndarray[Any, Any]
HOST_FUNCTIONS: dict[str, Callable[..., Any]] = {}
"""The NumPy functions by name: of arrays and keyword arguments, to an array or a tuple of them."""


def host_function(function: Callable[..., Any]) -> Callable[..., Any]:
    """Register a function of arrays by its name, as a decorator."""
    HOST_FUNCTIONS[function.__name__] = function
    return function


def _call(node: Node, *arrays: Array) -> tuple[Array, ...]:
    """Run a `torch_host_call` node; results get the dtypes and shapes of the node."""
    function = HOST_FUNCTIONS[node.params["function"]]
    results = function(*arrays, **dict(node.params["options"]))
    if not isinstance(results, tuple):
        results = (results,)
    return tuple(
        np.ascontiguousarray(x, dtype_of(name).numpy).reshape(np.shape(x))
        for x, name in zip(results, node.params["dtypes"], strict=True)
    )


HOST_CALL = register_op(
    "torch_host_call",
    num_inputs=-1,
    num_outputs=-1,
    params={
        "function": REQUIRED,
        "options": (),
        "shapes": REQUIRED,
        "dtypes": REQUIRED,
    },
    doc="An operator of PyTorch that NumPy computes.",
)
HOST_CALL.set_attr("FInferShape", lambda node, *shapes: node.params["shapes"])
HOST_CALL.set_attr("FInferType", lambda node, *dtypes: tuple(map(dtype_of, node.params["dtypes"])))
HOST_CALL.set_attr("FCompute", _call)
HOST_CALL.set_attr("TOpPattern", OpPattern.OPAQUE)
HOST_CALL.set_attr("TOpCost", "expensive")
HOST_CALL.set_attr("THostLibrary", "numpy")


def host_call(
    call: AtenCall, function: str, inputs: Sequence[Entry], options: Mapping[str, Any]
) -> list[Entry]:
    """Return the results of a function of `HOST_FUNCTIONS`, which are those of a call.

    Args:
        call: the call.
        function: the name of the function.
        inputs: its inputs.
        options: its keyword arguments, plain values.
    """
    fakes = call.results
    params = {
        "function": function,
        "options": tuple(sorted(options.items())),
        "shapes": tuple(tuple(map(extent_of, x.shape)) for x in fakes),
        "dtypes": tuple(passkit_dtype(x.dtype).name for x in fakes),
    }
    return list(Node(HOST_CALL, list(inputs), params).entries)
