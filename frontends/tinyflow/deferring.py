"""Calls that wait for the ranks of a feed.

A placeholder without a shape has an unknown rank until it is fed. Most operators are made of such
tensors all the same, and infer their shapes in a run. What needs a rank while the graph is built,
such as ``tf.shape(x)[0]`` or a gradient, becomes a *deferred* node: it holds the Python call, and
`passkit.frontends.tinyflow.resolving` makes the call once a run tells the ranks of its feeds.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

from passkit.errors import ShapeError
from passkit.frontends.tinyflow.graphs import get_default_graph
from passkit.frontends.tinyflow.ranks import known_shape
from passkit.frontends.tinyflow.shapes import shown
from passkit.frontends.tinyflow.tensors import Tensor, convert_to_tensor, named, wrapped
from passkit.frontends.tinyflow.types import as_dtype
from passkit.graph.graph import post_order
from passkit.graph.node import Entry, Node, var
from passkit.graph.op import REQUIRED, OpPattern, register_op
from passkit.ops.helpers import make
from passkit.values.dtype import DType
from passkit.values.size import Extent, Shape, Size

F = TypeVar("F", bound=Callable[..., Any])
Call = Callable[[Sequence[Tensor]], Sequence[Tensor]]
Output = tuple[Shape | None, DType | None]


def _shapes(node: Node, *shapes: Shape | None) -> tuple[Shape | None, ...]:
    """The shapes that were declared when the call was deferred; None for an unknown rank."""
    return tuple(shape for shape, _ in node.params["outputs"])


_shapes.__dict__["partial"] = True

DEFERRED = register_op(
    "deferred",
    num_inputs=-1,
    num_outputs=-1,
    params={"call": REQUIRED, "outputs": REQUIRED},
    doc="A Python call that waits for the shapes of its inputs; a run replaces it by its results.",
)
DEFERRED.set_attr("FInferShape", _shapes)
DEFERRED.set_attr("FInferType", lambda node, *dtypes: tuple(d for _, d in node.params["outputs"]))
DEFERRED.set_attr("TOpPattern", OpPattern.OPAQUE)


def deferred(
    call: Call, inputs: Iterable[Entry], outputs: Sequence[Output], name: str
) -> tuple[Entry, ...]:
    """The results of a call that is made when a run knows the shapes of ``inputs``.

    Args:
        call: Gets the inputs as tensors of known rank, and returns as many tensors as ``outputs``.
        inputs: What the call reads.
        outputs: For each result its shape, None where the rank is unknown, and its dtype.
        name: The name of the node.
    """
    params = {"call": call, "outputs": tuple(outputs)}
    return Node(DEFERRED, inputs, params, name, get_default_graph().controls).entries


def is_deferred(node: Node) -> bool:
    """Whether a node is a call that waits for shapes."""
    return node.op is DEFERRED


def is_unranked(value: Any) -> bool:
    """Whether a value is a tensor of unknown rank."""
    return isinstance(value, Tensor) and value.known is None and value.entry.shape is None


def awaits_numbers(values: Any) -> bool:
    """Whether a shape has parts that only a run computes, from sizes that it is told."""
    return any(
        t.known is None and any(map(is_deferred, post_order([t.entry.node])))
        for t in tensors_of(values)
    )


def tensors_of(values: Any) -> Iterator[Tensor]:
    """The tensors in lists, tuples and dicts, one in another."""
    if isinstance(values, Tensor):
        yield values
    elif isinstance(values, (list, tuple)):
        for value in values:
            yield from tensors_of(value)
    elif isinstance(values, dict):
        yield from tensors_of(list(values.values()))


def _put(values: Any, found: Iterator[Tensor]) -> Any:
    """``values`` with its tensors, in the order of `tensors_of`, replaced by those of ``found``."""
    if isinstance(values, Tensor):
        return next(found)
    if isinstance(values, (list, tuple)):
        parts = [_put(v, found) for v in values]
        if hasattr(values, "_make"):
            return values._make(parts)
        return parts if isinstance(values, list) else tuple(parts)
    if isinstance(values, dict):
        return {k: _put(v, found) for k, v in values.items()}
    return values


def call_later(
    function: Callable[..., Any], arguments: dict[str, Any], outputs: Sequence[Output], name: str
) -> list[Tensor]:
    """The results of ``function(**arguments)``, called when a run knows the ranks of its tensors.

    ``name`` is the full name, which the function gets as the argument ``name``.
    """
    tensors = list(tensors_of(arguments))

    def call(known: Sequence[Tensor]) -> Sequence[Tensor]:
        found = function(**_put(arguments, iter(known)), name=f"{name}/")
        return found if isinstance(found, (list, tuple)) else [found]

    entries = deferred(call, [t.entry for t in tensors], outputs, name)
    return [wrapped(e, name, index=k) for k, e in enumerate(entries)]


def needs_ranks(
    default: str, dtype: Any = None, shape: Shape | None = None, like: str = ""
) -> Callable[[F], F]:
    """Defer a function of one result where an argument is a tensor of unknown rank.

    Args:
        default: The name of the result where none is given.
        dtype: The result's dtype; by default that of the first tensor among the arguments.
        shape: The result's shape; by default its rank is unknown, too.
        like: The argument that has the result's dtype, where it is not the first tensor.
    """

    def wrap(function: F) -> F:
        signature = inspect.signature(function)

        @functools.wraps(function)
        def called(*args: Any, **kwargs: Any) -> Any:
            if not any(map(is_unranked, tensors_of((args, kwargs)))):
                return function(*args, **kwargs)
            given = dict(signature.bind(*args, **kwargs).arguments)
            full = named(given.pop("name", None), default)
            kind = as_dtype(dtype) if dtype else convert_to_tensor(_first(given, like)).dtype
            return call_later(function, given, [(shape, kind)], full)[0]

        return called  # type: ignore[return-value]

    return wrap


def _first(given: dict[str, Any], like: str) -> Any:
    """The argument ``like``, or the first tensor among all."""
    return given[like] if like in given else next(tensors_of(given))


def free_size(name: str, axis: int) -> Size:
    """A size that a run tells, of one axis of a deferred result."""
    return Size.symbol(f"{name}.{axis}")


def shaped(tensor: Tensor, shape: Sequence[Extent | None]) -> Entry:
    """A tensor of unknown rank with the shape that `set_shape` states; a run checks it.

    Args:
        tensor: The tensor. Of a placeholder a new variable takes the feed.
        shape: Its extents; None where a run tells them.
    """
    entry, graph = tensor.entry, tensor.graph
    if entry.node.op is None:
        sizes = tuple(free_size(tensor._name, k) if n is None else n for k, n in enumerate(shape))
        made = var(entry.node.name, sizes, entry.dtype)
        graph.shaped[entry] = made
        return made
    return checked(tensor, shape, tensor.name)


def checked(tensor: Tensor, shape: Sequence[Extent | None], what: str) -> Entry:
    """A tensor of unknown rank as one of this shape, which a run checks.

    Raises (in a run): ShapeError that begins with ``what``.
    """
    sizes = tuple(free_size(tensor._name, k) if n is None else n for k, n in enumerate(shape))

    def call(known: Sequence[Tensor]) -> Sequence[Tensor]:
        found = known_shape(known[0].entry)
        pairs = list(zip(shape, found, strict=False))
        numbers = [(n, m) for n, m in pairs if isinstance(n, int) and isinstance(m, int)]
        if len(found) != len(shape) or any(n != m for n, m in numbers):
            raise ShapeError(
                f"{what} needs a value of shape {shown(shape)}, got '{tensor.name}' of shape "
                f"{shown(found)} in this run"
            )
        stated = tuple(m if n is None else n for n, m in pairs)
        return [Tensor(make("reshape", known[0].entry, shape=stated), what, tensor.graph)]

    return deferred(call, [tensor.entry], [(sizes, tensor.dtype)], tensor._name)[0]
