"""Operators that a user supplies as NumPy functions: ``allow_host_ops={"Name": function}``.

What a function returns for given shapes is found by calling it, on ones: unknown sizes are tried
with two numbers each, and a dimension of the result that follows one of them is that size.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from attrs import frozen

from passkit.errors import ModelError
from passkit.frontends.tf_graphdef.value import Call, Value, value_of
from passkit.graph.infer import show_shape
from passkit.graph.node import Node
from passkit.graph.op import REQUIRED, OpPattern, register_op
from passkit.values.dtype import DType, dtype_of
from passkit.values.size import Extent, Size, evaluate, symbols_of

_PROBES = ((31, 37, 41, 43, 47, 53), (59, 61, 67, 71, 73, 79))
"""Two numbers for each unknown size, such that no dimension follows one of them by chance."""

HOST = register_op(
    "host",
    num_inputs=-1,
    num_outputs=-1,
    params={"function": REQUIRED, "shapes": REQUIRED, "dtypes": REQUIRED},
    doc="A NumPy function that a user supplied for an operator of a model.",
)
HOST.set_attr("FInferShape", lambda node, *shapes: node.params["shapes"])
HOST.set_attr("FInferType", lambda node, *dtypes: tuple(map(dtype_of, node.params["dtypes"])))
HOST.set_attr("FCompute", lambda node, *arrays: _checked(node, arrays))
HOST.set_attr("TOpPattern", OpPattern.OPAQUE)


def _checked(node: Node, arrays: Sequence[Any]) -> tuple[Any, ...]:
    found = _listed(node.params["function"](*arrays))
    dtypes = [dtype_of(d).numpy for d in node.params["dtypes"]]
    return tuple(np.asarray(x, d) for x, d in zip(found, dtypes, strict=True))


def _listed(found: Any) -> list[Any]:
    return [np.asarray(x) for x in (found if isinstance(found, (tuple, list)) else (found,))]


@frozen(eq=False)
class HostOp:
    """A NumPy function for one operator. Keyword parameters take attributes of their names."""

    name: str
    function: Callable[..., Any]

    def results(self, call: Call, inputs: Sequence[Value]) -> tuple[Value, ...]:
        """The results of a node. Raises: ModelError where its shapes cannot be found."""
        bound = self._bound(call)
        given = [(call.shape(x), x.dtype) for x in inputs]
        symbols = sorted(symbols_of(n for shape, _ in given for n in shape))
        if len(symbols) > len(_PROBES[0]):
            raise ModelError(
                f"{call.where} reads {len(symbols)} unknown sizes, and a host function may read "
                f"{len(_PROBES[0])}; give load the whole shapes of its inputs in shapes="
            )
        probes = [dict(zip(symbols, numbers, strict=False)) for numbers in _PROBES]
        first, second = (self._tried(call, bound, given, numbers) for numbers in probes)
        shapes = tuple(
            self._shape(call, symbols, probes, (a.shape, b.shape))
            for a, b in zip(first, second, strict=True)
        )
        params = {
            "function": bound,
            "shapes": shapes,
            "dtypes": tuple(dtype_of(x.dtype).name for x in first),
        }
        node = Node(HOST, [x.entry for x in inputs], params, call.name)
        return tuple(map(value_of, node.entries))

    def _bound(self, call: Call) -> Callable[..., Any]:
        """The function with the attributes that it asks for."""
        asked = {}
        for name, parameter in inspect.signature(self.function).parameters.items():
            if parameter.kind is inspect.Parameter.KEYWORD_ONLY and name in call.node.attr:
                asked[name] = _plain(call.node.attr[name])

        def bound(*arrays: Any) -> Any:
            return self.function(*arrays, **asked)

        bound.__qualname__ = f"{self.name}.{sorted(asked.items())}"
        return bound

    def _tried(
        self,
        call: Call,
        function: Callable[..., Any],
        given: Sequence[tuple[Sequence[Extent], DType]],
        numbers: Mapping[str, int],
    ) -> list[Any]:
        arrays = []
        for shape, dtype in given:
            sizes = [evaluate(n, numbers) if isinstance(n, Size) else n for n in shape]
            call.budget.take(int(np.prod(sizes, dtype=object)) * dtype.nbytes, call.where)
            arrays.append(np.ones(sizes, dtype.numpy))
        try:
            return _listed(function(*arrays))
        except Exception as error:
            shown = ", ".join(str(a.shape) for a in arrays)
            error.add_note(f"{call.where}: the function for {self.name}, tried on ones of {shown}")
            raise

    def _shape(
        self,
        call: Call,
        symbols: Sequence[str],
        probes: Sequence[Mapping[str, int]],
        found: tuple[tuple[int, ...], tuple[int, ...]],
    ) -> tuple[Extent, ...]:
        shape: list[Extent] = []
        for k, (a, b) in enumerate(zip(*found, strict=False)):
            same = [s for s in symbols if (probes[0][s], probes[1][s]) == (a, b)]
            if a != b and not same:
                tried = " and ".join(str(dict(p)) for p in probes)
                raise ModelError(
                    f"{call.where}: dimension {k} of what the function for {self.name} returns is "
                    f"{a} and {b} for {tried}; give load the whole shapes of its inputs in shapes="
                )
            shape.append(Size.symbol(same[0]) if a != b else a)
        if len(found[0]) != len(found[1]):
            raise ModelError(
                f"{call.where}: the function for {self.name} returns {show_shape(found[0])}, then "
                f"{show_shape(found[1])}: its rank must not depend on sizes"
            )
        return tuple(shape)


def _plain(value: Any) -> Any:
    """An attribute as Python has it: numbers, bytes, and lists of them."""
    kind = value.WhichOneof("value")
    if kind == "list":
        return [*value.list.i, *value.list.f, *value.list.b, *value.list.s]
    if kind == "shape":
        return tuple(d.size for d in value.shape.dim)
    return getattr(value, kind) if kind else None


def host_ops(functions: Mapping[str, Callable[..., Any]] | None) -> dict[str, HostOp]:
    """The operators that a user supplies. Raises: ModelError for what is no function."""
    for name, function in (functions or {}).items():
        if not callable(function):
            raise ModelError(
                f"allow_host_ops gives {function!r} for {name}; a function of arrays is needed"
            )
    return {name: HostOp(name, function) for name, function in (functions or {}).items()}
