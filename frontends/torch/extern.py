"""Calls of PyTorch as steps of a passkit program, for operators that passkit does not have.

Such a step gets its inputs as tensors that share the memory of the program's arrays. Operator and
arguments are parameters of the node as text, so that graphs with such steps can be stored.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import torch

from passkit.frontends.torch.dtypes import array_of, passkit_dtype, tensor_of
from passkit.frontends.torch.errors import UnsupportedNodeError
from passkit.frontends.torch.sizes import size_value
from passkit.frontends.torch.symbols import extent_of, memory_order
from passkit.graph.node import Entry, Node, known_shape
from passkit.graph.op import REQUIRED, OpPattern, register_op
from passkit.values.dtype import dtype_of
from passkit.values.size import Extent, Size

_NAMED_TYPES: dict[str, type] = {
    "dtype": torch.dtype,
    "layout": torch.layout,
    "memory_format": torch.memory_format,
}
"""Types of arguments that are attributes of the module torch, such as torch.float32."""


class _Encoder:
    """The encoding of the arguments of one call, which collects its tensors, and sizes as such."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []

    def encoded(self, x: Any, fake: Any = None) -> Any:
        """Return an argument as a value that JSON can hold.

        Args:
            x: the argument.
            fake: the argument with fake tensors, where the order of their axes matters.

        Raises: UnsupportedNodeError for a type of argument that is not known.
        """
        if isinstance(x, Entry):
            self.entries.append(x)
            number = len(self.entries) - 1
            order = memory_order(fake) if isinstance(fake, torch.Tensor) else ()
            is_ordered = order != tuple(range(len(order)))
            return {"ordered": [number, *order]} if is_ordered else {"tensor": number}
        if isinstance(x, Size):
            self.entries.append(size_value(x, dtype_of("int64")))
            return {"size": len(self.entries) - 1}
        if isinstance(x, (list, tuple)):
            fakes = fake if isinstance(fake, (list, tuple)) else [None] * len(x)
            return [self.encoded(y, f) for y, f in zip(x, fakes, strict=True)]
        if x is None or isinstance(x, (bool, int, str)):
            return x
        if isinstance(x, float):
            return {"float": x.hex()}
        if isinstance(x, complex):
            return {"complex": [x.real.hex(), x.imag.hex()]}
        if isinstance(x, torch.device):
            return {"device": str(x)}
        for kind, type_ in _NAMED_TYPES.items():
            if isinstance(x, type_):
                return {kind: str(x).removeprefix("torch.")}
        raise UnsupportedNodeError(f"an argument {x!r} of type {type(x).__name__}")


def _decoded(x: Any, tensors: Sequence[torch.Tensor]) -> Any:
    """Return an argument that `_Encoder` encoded, for these tensors."""
    if isinstance(x, list):
        return [_decoded(y, tensors) for y in x]
    if not isinstance(x, dict):
        return x
    ((kind, value),) = x.items()
    if kind == "tensor":
        return tensors[value]
    if kind == "ordered":
        return _in_order(tensors[value[0]], value[1:])
    if kind == "size":
        return int(tensors[value])
    if kind == "float":
        return float.fromhex(value)
    if kind == "complex":
        return complex(*map(float.fromhex, value))
    return torch.device(value) if kind == "device" else getattr(torch, value)


def _in_order(tensor: torch.Tensor, order: Sequence[int]) -> torch.Tensor:
    """Return a tensor whose axes lie in memory in an order, the slowest first."""
    packed = tensor.permute(tuple(order)).contiguous()
    return packed.permute([order.index(k) for k in range(len(order))])


@lru_cache(maxsize=4096)
def _parsed(text: str) -> Any:
    """Return encoded arguments from their text; the result must not be changed."""
    return json.loads(text)


@lru_cache(maxsize=4096)
def _overload(name: str) -> Callable[..., Any]:
    """Return an operator of PyTorch by its name, such as "aten::sort.stable".

    Raises: AttributeError where this version of PyTorch does not have it.
    """
    namespace, _, rest = name.partition("::")
    packet, _, overload = rest.partition(".")
    operators = getattr(getattr(torch.ops, namespace), packet)
    return getattr(operators, overload or "default")  # type: ignore[no-any-return]


def _call(node: Node, arrays: Sequence[np.ndarray[Any, Any]]) -> tuple[np.ndarray[Any, Any], ...]:
    """Run a `torch_call` node on arrays; a result that PyTorch leaves out is zeros."""
    params = node.params
    tensors = [tensor_of(a) for a in arrays]
    args, kwargs = _decoded_call(params["arguments"], tensors)
    with torch.no_grad():
        results = _overload(params["function"])(*args, **kwargs)
    if isinstance(results, torch.Tensor):
        results = (results,)
    computed = (results[k] for k in params["positions"])
    return tuple(_array(x, e) for x, e in zip(computed, node.entries, strict=True))


def _array(result: torch.Tensor | None, entry: Entry) -> np.ndarray[Any, Any]:
    """Return a result as a contiguous array.

    Some operators leave out a result, or leave it empty, that PyTorch's metadata describes with
    elements; it is filled with zeros.
    """
    assert entry.dtype is not None
    shape = known_shape(entry)
    if result is None or (result.numel() == 0 and all(isinstance(n, int) and n for n in shape)):
        return np.zeros([int(n) for n in shape if isinstance(n, int)], entry.dtype.numpy)
    return np.ascontiguousarray(array_of(result)).reshape(result.shape)


def _decoded_call(text: str, tensors: Sequence[torch.Tensor]) -> tuple[list[Any], dict[str, Any]]:
    """Return the positional and the keyword arguments of a call."""
    args, kwargs = _parsed(text)
    return (
        [_decoded(x, tensors) for x in args],
        {name: _decoded(x, tensors) for name, x in kwargs},
    )


TORCH_CALL = register_op(
    "torch_call",
    num_inputs=-1,
    num_outputs=-1,
    params={
        "function": REQUIRED,
        "arguments": REQUIRED,
        "shapes": REQUIRED,
        "dtypes": REQUIRED,
        "positions": REQUIRED,
        "number": 0,
    },
    doc="An operator that PyTorch runs, for one that passkit does not have.",
)
TORCH_CALL.set_attr("FInferShape", lambda node, *shapes: node.params["shapes"])
TORCH_CALL.set_attr("FInferType", lambda node, *dtypes: tuple(map(dtype_of, node.params["dtypes"])))
TORCH_CALL.set_attr("FCompute", lambda node, *arrays: _call(node, arrays))
TORCH_CALL.set_attr("TOpPattern", OpPattern.OPAQUE)
TORCH_CALL.set_attr("THostLibrary", "torch")


def extern_call(
    function: Any,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    results: Sequence[torch.Tensor | None],
    number: int,
    name: str,
    control: Sequence[Node],
    layouts: tuple[Sequence[Any], Mapping[str, Any]] | None = None,
) -> Node:
    """Create the node of a call of PyTorch.

    Args:
        function: the operator overload.
        args: its arguments, with entries for tensors and extents for sizes.
        kwargs: its keyword arguments, likewise.
        results: fake tensors of its results; None for those that it does not have.
        number: the number of the call, which keeps equal calls of random operators apart; 0 for
            operators whose equal calls give equal results.
        name: the name of the node.
        control: the nodes that run before it.
        layouts: the arguments with fake tensors, for an operator whose results depend on the order
            of axes in memory, as random numbers do.

    Raises: UnsupportedNodeError for a type of argument or a size that is not known, DTypeError for
    a dtype that passkit does not have.
    """
    encoder = _Encoder()
    fake_args, fake_kwargs = layouts or ([None] * len(args), {})
    arguments = [
        [encoder.encoded(x, fake) for x, fake in zip(args, fake_args, strict=True)],
        [[key, encoder.encoded(x, fake_kwargs.get(key))] for key, x in kwargs.items()],
    ]
    kept = [(k, x) for k, x in enumerate(results) if x is not None]
    shapes: list[tuple[Extent, ...]] = [tuple(map(extent_of, x.shape)) for _, x in kept]
    params = {
        "function": function.name(),
        "arguments": json.dumps(arguments),
        "shapes": tuple(shapes),
        "dtypes": tuple(passkit_dtype(x.dtype).name for _, x in kept),
        "positions": tuple(k for k, _ in kept),
        "number": number,
    }
    return Node(TORCH_CALL, encoder.entries, params, name, control)
