"""Operators that a user supplies as NumPy functions: ``allow_host_ops={"Name": function}``.

The output shapes of such a function are inferred by calling it on arrays of ones: each symbolic
size is tried with two numbers, and an output dimension that follows one of them is that size.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from attrs import frozen

from passkit.errors import ModelError
from passkit.frontends.tf_graphdef.imported_value import ImportCall, ImportedValue, value_of
from passkit.graph.infer import show_shape
from passkit.graph.node import Node
from passkit.graph.op import REQUIRED, OpPattern, register_op
from passkit.values.dtype import DType, dtype_of
from passkit.values.size import Extent, Size, evaluate, symbols_of

_PROBES = ((31, 37, 41, 43, 47, 53), (59, 61, 67, 71, 73, 79))
"""Two numbers for each symbolic size, chosen so that no dimension matches them by chance."""

HOST = register_op(
    "host",
    num_inputs=-1,
    num_outputs=-1,
    params={"function": REQUIRED, "shapes": REQUIRED, "dtypes": REQUIRED},
    doc="A NumPy function that a user supplied for an operator of a model.",
)
HOST.set_attr("FInferShape", lambda node, *shapes: node.params["shapes"])
HOST.set_attr("FInferType", lambda node, *dtypes: tuple(map(dtype_of, node.params["dtypes"])))
HOST.set_attr("FCompute", lambda node, *arrays: _call_function(node, arrays))
HOST.set_attr("TOpPattern", OpPattern.OPAQUE)


def _call_function(node: Node, arrays: Sequence[Any]) -> tuple[Any, ...]:
    """Call the function of a `host` node on ``arrays`` and return its results, as a tuple.

    They are cast to the dtypes that the node declares.

    Raises:
        ModelError: If it returns another number of results than when it was probed.
        Exception: Whatever the function raises.
    """
    results = _listed(node.params["function"](*arrays))
    if len(results) != len(node.params["dtypes"]):
        raise ModelError(
            f"{node.where} needs {len(node.params['dtypes'])} results of its function, as when the "
            f"model was loaded, got {len(results)}"
        )
    dtypes = [dtype_of(d).numpy for d in node.params["dtypes"]]
    return tuple(np.asarray(x, d) for x, d in zip(results, dtypes, strict=True))


def _listed(result: Any) -> list[Any]:
    """Return the result of a function, one array-like or a tuple or list of them, as arrays.

    A list of numbers counts as several results.

    Raises: ValueError for nested lists of different lengths.
    """
    return [np.asarray(x) for x in (result if isinstance(result, (tuple, list)) else (result,))]


@frozen(eq=False)
class HostOp:
    """A NumPy function for one TensorFlow operator.

    Keyword-only parameters of the function receive the node's attributes of these names.
    """

    name: str
    function: Callable[..., Any]

    def results(
        self, call: ImportCall, inputs: Sequence[ImportedValue]
    ) -> tuple[ImportedValue, ...]:
        """Build the `host` node that calls the function, and return its results.

        Args:
            call: The TensorFlow node.
            inputs: Its inputs.

        Raises:
            ModelError: If an input has an unknown rank, the inputs have more than six unknown
                sizes, the number of results or a dimension of one depends on sizes in another way
                than being one of them, or the arrays exceed the memory budget.
            DTypeError: If a result has a dtype that passkit does not have.
            Exception: Whatever the function raises for arrays of ones; a note names the node.
        """
        bound = self._bound(call)
        signatures = [(call.shape(x), x.dtype) for x in inputs]
        symbols = sorted(symbols_of(n for shape, _ in signatures for n in shape))
        if len(symbols) > len(_PROBES[0]):
            raise ModelError(
                f"{call.where} has inputs with {len(symbols)} unknown sizes, and a host function "
                f"supports at most {len(_PROBES[0])}; give load the full shapes of its inputs in "
                f"shapes="
            )
        probes = [dict(zip(symbols, numbers, strict=False)) for numbers in _PROBES]
        first, second = (self._probe(call, bound, signatures, numbers) for numbers in probes)
        if len(first) != len(second):
            raise ModelError(
                f"{call.where}: the function for {self.name} needs to return one number of results "
                f"for all sizes, got {len(first)} and {len(second)}"
            )
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

    def _bound(self, call: ImportCall) -> Callable[..., Any]:
        """Return a new function: that of the user, with keyword-only parameters bound.

        They get the attributes of the node ``call`` of these names, as `_plain` converts them. A
        parameter without an attribute of its name keeps its default. The ``__qualname__`` of the
        function has the attributes' values.
        """
        attributes = {}
        for name, parameter in _parameters(self.function).items():
            if parameter.kind is inspect.Parameter.KEYWORD_ONLY and name in call.node.attr:
                attributes[name] = _plain(call.node.attr[name])

        def bound(*arrays: Any) -> Any:
            return self.function(*arrays, **attributes)

        bound.__qualname__ = f"{self.name}.{sorted(attributes.items())}"
        return bound

    def _probe(
        self,
        call: ImportCall,
        function: Callable[..., Any],
        signatures: Sequence[tuple[Sequence[Extent], DType]],
        numbers: Mapping[str, int],
    ) -> list[Any]:
        """Call the function on arrays of ones, and return its results as arrays.

        Args:
            call: The node.
            function: The user's function.
            signatures: Shape and dtype of each input.
            numbers: Number for each symbolic size.

        Raises:
            ModelError: If the arrays exceed the memory budget.
            Exception: Whatever the function raises; a note names the node and the shapes.
        """
        arrays = []
        for shape, dtype in signatures:
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
        call: ImportCall,
        symbols: Sequence[str],
        probes: Sequence[Mapping[str, int]],
        result_shapes: tuple[tuple[int, ...], tuple[int, ...]],
    ) -> tuple[Extent, ...]:
        """Infer the shape of one output from its shapes for both probes.

        An extent that is the same in both is a number; another is the size whose numbers it has.

        Args:
            call: The node.
            symbols: Symbolic sizes of the inputs.
            probes: Numbers of the symbols in two calls.
            result_shapes: Shape of the output in each.

        Raises:
            ModelError: If an extent differs between the calls but equals no symbol, or the ranks
                differ.
        """
        shape: list[Extent] = []
        for k, (a, b) in enumerate(zip(*result_shapes, strict=False)):
            matching_symbols = [s for s in symbols if (probes[0][s], probes[1][s]) == (a, b)]
            if a != b and not matching_symbols:
                tried = " and ".join(str(dict(p)) for p in probes)
                raise ModelError(
                    f"{call.where}: result dimension {k} of the function for {self.name} needs "
                    f"to be constant or a size of an input, got {a} and {b} for {tried}; give load "
                    f"the full shapes of its inputs in shapes="
                )
            shape.append(Size.symbol(matching_symbols[0]) if a != b else a)
        if len(result_shapes[0]) != len(result_shapes[1]):
            raise ModelError(
                f"{call.where}: the function for {self.name} needs to return results whose rank "
                f"does not depend on sizes, got shapes {show_shape(result_shapes[0])} and "
                f"{show_shape(result_shapes[1])}"
            )
        return tuple(shape)


def _parameters(function: Callable[..., Any]) -> Mapping[str, inspect.Parameter]:
    """Return the parameters of a function by name; none for a function of C without a signature."""
    try:
        return inspect.signature(function).parameters
    except ValueError:
        return {}


def _plain(value: Any) -> Any:
    """Return an AttrValue as a Python value: a number, bool, bytes, a shape, or a list.

    Unknown dimensions of a shape are -1, a dtype is its DataType number, and a tensor or function
    its message. A list has its ints, floats, bools and bytes, in this order, without other
    elements. An empty AttrValue gives None.
    """
    kind = value.WhichOneof("value")
    if kind == "list":
        return [*value.list.i, *value.list.f, *value.list.b, *value.list.s]
    if kind == "shape":
        return tuple(d.size for d in value.shape.dim)
    return getattr(value, kind) if kind else None


def host_ops(functions: Mapping[str, Callable[..., Any]] | None) -> dict[str, HostOp]:
    """Wrap the functions that a user supplies by operator; None gives an empty dict.

    Raises:
        ModelError: If a value is not callable.
    """
    for name, function in (functions or {}).items():
        if not callable(function):
            raise ModelError(
                f"allow_host_ops needs a function of arrays for {name}, got {function!r}"
            )
    return {name: HostOp(name, function) for name, function in (functions or {}).items()}
