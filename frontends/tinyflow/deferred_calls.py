"""Deferred calls: functions that need a rank which only a run determines.

A placeholder without a shape has an unknown rank until it is fed. Most operators accept such
tensors and infer their shapes in a run. A function that needs a rank while the graph is built,
such as ``tf.shape(x)[0]`` or a gradient, becomes a *deferred* node instead. The node holds the
Python call, and `resolution` makes the call once a run has the shapes of its feeds.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

from passkit.errors import ShapeError
from passkit.frontends.tinyflow.dtypes import as_dtype
from passkit.frontends.tinyflow.graphs import get_default_graph
from passkit.frontends.tinyflow.shapes import TensorShape, format_shape, require_shape
from passkit.frontends.tinyflow.tensors import Tensor, as_tensor, convert_to_tensor, unique_name
from passkit.graph.graph import post_order
from passkit.graph.node import Entry, Node, var
from passkit.graph.op import REQUIRED, OpPattern, register_op
from passkit.ops.helpers import make
from passkit.values.dtype import DType
from passkit.values.size import Extent, Shape, Size

F = TypeVar("F", bound=Callable[..., Any])
DeferredFunction = Callable[[Sequence[Tensor]], Sequence[Tensor]]
OutputSpec = tuple[Shape | None, DType | None]
"""The shape, None for an unknown rank, and the dtype of an output."""


def _declared_shapes(node: Node, *shapes: Shape | None) -> tuple[Shape | None, ...]:
    """Return the shapes that were declared when the call was deferred; None for an unknown rank."""
    return tuple(shape for shape, _ in node.params["outputs"])


_declared_shapes.__dict__["partial"] = True

DEFERRED = register_op(
    "deferred",
    num_inputs=-1,
    num_outputs=-1,
    params={"call": REQUIRED, "outputs": REQUIRED},
    doc="A Python call that waits for the shapes of its inputs; a run replaces it by its results.",
)
DEFERRED.set_attr("FInferShape", _declared_shapes)
DEFERRED.set_attr("FInferType", lambda node, *dtypes: tuple(d for _, d in node.params["outputs"]))
DEFERRED.set_attr("TOpPattern", OpPattern.OPAQUE)


def deferred_entries(
    call: DeferredFunction, inputs: Iterable[Entry], outputs: Sequence[OutputSpec], name: str
) -> tuple[Entry, ...]:
    """Create a deferred node and return its entries.

    Args:
        call: Receives the inputs as tensors of known rank, and returns one tensor per output.
        inputs: The entries whose shapes the call waits for.
        outputs: For each output its shape, None for an unknown rank, and its dtype.
        name: The name of the node.

    Returns:
        The outputs of the node, one for each of ``outputs``.
    """
    params = {"call": call, "outputs": tuple(outputs)}
    return Node(DEFERRED, inputs, params, name, get_default_graph().controls).entries


def is_deferred(node: Node) -> bool:
    """Return whether a node is a deferred call."""
    return node.op is DEFERRED


def is_unranked(value: Any) -> bool:
    """Return whether a value is a tensor of unknown rank.

    Raises:
        DTypeError: For a tensor of text.
    """
    return isinstance(value, Tensor) and value.static_value is None and value.entry.shape is None


def depends_on_deferred(values: Any) -> bool:
    """Return whether a tensor in nested ``values`` is, or is computed from, a deferred call.

    ``values`` is nested as for `nested_tensors`.

    Raises:
        DTypeError: For a tensor of text.
    """
    return any(
        t.static_value is None and any(map(is_deferred, post_order([t.entry.node])))
        for t in nested_tensors(values)
    )


def nested_tensors(values: Any) -> Iterator[Tensor]:
    """Yield the tensors in nested lists, tuples and dicts, in order; other values are left out.

    Values of dicts are in the order of insertion.
    """
    if isinstance(values, Tensor):
        yield values
    elif isinstance(values, (list, tuple)) and not isinstance(values, TensorShape):
        for value in values:
            yield from nested_tensors(value)
    elif isinstance(values, dict):
        yield from nested_tensors(list(values.values()))


def _replace_tensors(values: Any, tensors: Iterator[Tensor]) -> Any:
    """Return nested ``values``, as new lists, tuples and dicts, with other tensors in them.

    Args:
        values: Lists, tuples, named tuples and dicts, to any depth.
        tensors: A tensor for each one in ``values``, in the order of `nested_tensors`.
    """
    if isinstance(values, Tensor):
        return next(tensors)
    if isinstance(values, (list, tuple)):
        parts = [_replace_tensors(v, tensors) for v in values]
        if hasattr(values, "_make"):
            return values._make(parts)
        return parts if isinstance(values, list) else tuple(parts)
    if isinstance(values, dict):
        return {k: _replace_tensors(v, tensors) for k, v in values.items()}
    return values


def defer_call(
    function: Callable[..., Any],
    arguments: dict[str, Any],
    outputs: Sequence[OutputSpec],
    name: str,
) -> list[Tensor]:
    """Defer ``function(**arguments, name=name + "/")`` until a run has the ranks of its tensors.

    The slash tells the function that the name is a full one, which is not made unique.

    Args:
        function: Returns one tensor, or a list with one tensor per output.
        arguments: Its arguments, which may hold tensors in nested structures.
        outputs: For each output its shape, None for an unknown rank, and its dtype.
        name: The full name of the outputs.

    Returns:
        A tensor for each of ``outputs``.
    """
    tensors = list(nested_tensors(arguments))

    def call(ranked: Sequence[Tensor]) -> Sequence[Tensor]:
        results = function(**_replace_tensors(arguments, iter(ranked)), name=f"{name}/")
        return results if isinstance(results, (list, tuple)) else [results]

    entries = deferred_entries(call, [t.entry for t in tensors], outputs, name)
    return [as_tensor(e, name, index=k) for k, e in enumerate(entries)]


def defer_if_unranked(
    default: str,
    dtype: Any = None,
    shape: Shape | None = None,
    like: str = "",
    dtype_argument: str = "",
) -> Callable[[F], F]:
    """Make a function of one result defer itself if an argument is a tensor of unknown rank.

    Args:
        default: The default name of the result.
        dtype: The result's dtype; by default that of the first tensor among the arguments.
        shape: The result's shape; by default its rank is unknown, too.
        like: The argument that has the result's dtype, where it is not the first tensor.
        dtype_argument: The argument that names the result's dtype, if it is passed and not None.

    Returns:
        A decorator of a function that takes ``name``. The call that a run makes passes it the
        tensors with their ranks.
    """

    def wrap(function: F) -> F:
        signature = inspect.signature(function)

        @functools.wraps(function)
        def call_or_defer(*args: Any, **kwargs: Any) -> Any:
            if not any(map(is_unranked, nested_tensors((args, kwargs)))):
                return function(*args, **kwargs)
            arguments = dict(signature.bind(*args, **kwargs).arguments)
            full_name = unique_name(arguments.pop("name", None), default)
            requested_dtype = arguments.get(dtype_argument)
            if requested_dtype is not None:
                result_dtype = as_dtype(requested_dtype)
            elif dtype:
                result_dtype = as_dtype(dtype)
            else:
                source = arguments[like] if like in arguments else next(nested_tensors(arguments))
                result_dtype = convert_to_tensor(source).dtype
            return defer_call(function, arguments, [(shape, result_dtype)], full_name)[0]

        return call_or_defer  # type: ignore[return-value]

    return wrap


def runtime_size(name: str, axis: int) -> Size:
    """Return the symbol of a size that a run determines.

    Args:
        name: Name of the deferred result.
        axis: Axis whose size it is.
    """
    return Size.symbol(f"{name}.{axis}")


def _runtime_sizes(name: str, shape: Sequence[Extent | None]) -> Shape:
    """Return the extents of the deferred result ``name``, with a symbol for each None."""
    return tuple(runtime_size(name, k) if n is None else n for k, n in enumerate(shape))


def refine_shape(tensor: Tensor, shape: Sequence[Extent | None]) -> Entry:
    """Give a tensor of unknown rank the shape that `Tensor.set_shape` states.

    Args:
        tensor: The tensor, which is not changed.
        shape: Its extents; None where a run determines them.

    Returns:
        For a placeholder a new input of that shape, for other tensors an entry of it that each run
        checks.
    """
    entry = tensor.entry
    if entry.node.op is None:
        return var(entry.node.name, _runtime_sizes(tensor._name, shape), entry.dtype)
    return check_shape_at_run(tensor, shape, tensor.name)


def check_shape_at_run(tensor: Tensor, shape: Sequence[Extent | None], subject: str) -> Entry:
    """Return a tensor of unknown rank as an entry of ``shape``, which each run checks.

    Args:
        tensor: The tensor.
        shape: Its extents; None where a run determines them.
        subject: The beginning of the message of the ShapeError that a run raises.

    Returns:
        The output of a deferred node. A run replaces it by a reshape of the tensor.
    """

    def call(ranked: Sequence[Tensor]) -> Sequence[Tensor]:
        actual = require_shape(ranked[0].entry)
        pairs = list(zip(shape, actual, strict=False))
        numbers = [(n, m) for n, m in pairs if isinstance(n, int) and isinstance(m, int)]
        if len(actual) != len(shape) or any(n != m for n, m in numbers):
            raise ShapeError(
                f"{subject} needs a value of shape {format_shape(shape)}, got '{tensor.name}' of "
                f"shape {format_shape(actual)} in this run"
            )
        stated = tuple(m if n is None else n for n, m in pairs)
        return [Tensor(make("reshape", ranked[0].entry, shape=stated), subject, tensor.graph)]

    outputs = [(_runtime_sizes(tensor._name, shape), tensor.dtype)]
    return deferred_entries(call, [tensor.entry], outputs, tensor._name)[0]
