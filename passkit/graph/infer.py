"""Shapes and dtypes of results from those of inputs, and the equalities only a call can check."""

from __future__ import annotations

from collections.abc import Sequence
from contextvars import ContextVar
from typing import TYPE_CHECKING

from passkit.errors import DTypeError, GraphError, ShapeError
from passkit.graph import rules
from passkit.graph.op import FInferShape, FInferType, OpPattern
from passkit.values.arguments import shortened
from passkit.values.dtype import DType, promote
from passkit.values.size import Extent, Shape

if TYPE_CHECKING:
    from passkit.graph.node import Node


def infer_shapes(node: Node, shapes: Sequence[Shape | None]) -> Sequence[Shape | None]:
    """The result shapes that follow from input shapes; None where the rank stays unknown."""
    op = node.op
    assert op is not None
    rule = FInferShape.get(op.name)
    if rule is not None and getattr(rule, "partial", False):
        return rules.shapes(node, shapes)
    known_shapes = [s for s in shapes if s is not None]
    spreads = rule is broadcast_rule or (rule is None and op.pattern <= OpPattern.BROADCAST)
    if len(known_shapes) != len(shapes) or (rule is None and not spreads):
        return (None,) * max(1, op.num_outputs)
    if spreads:
        return (broadcast_rule(node, *known_shapes),) * max(1, op.num_outputs)
    return rules.shapes(node, known_shapes)


def infer_dtypes(node: Node, dtypes: Sequence[DType | None]) -> Sequence[DType | None]:
    """The result dtypes that follow from input dtypes; None where one is unknown.

    The default for an op with FCodeGen is what its expression has; else all inputs share one.
    """
    op = node.op
    assert op is not None
    rule = FInferType.get(op.name)
    if any(d is None for d in dtypes) or (rule is None and not dtypes):
        return (None,) * max(1, op.num_outputs)
    known_dtypes = [d for d in dtypes if d is not None]
    if rule is not None:
        return rules.dtypes(node, known_dtypes)
    if op.has_attr("FCodeGen"):
        return code_dtypes(node, *known_dtypes)
    return (same_dtype_rule(node, *known_dtypes),) * max(1, op.num_outputs)


def code_dtypes(node: Node, *dtypes: DType) -> tuple[DType, ...]:
    """The dtypes that the op's FCodeGen expressions have for inputs of ``dtypes``."""
    from passkit.ast import Var  # takes a third of a warm start; few operators need it here

    x = (Var(f"x{k}", d) for k, d in enumerate(dtypes))
    return tuple(value.dtype for value in rules.code(node, *x))


def same_dtype_rule(node: Node, *dtypes: DType) -> DType:
    """The dtype that all inputs share.

    Raises: DTypeError naming two that differ; GraphError where there are no inputs.
    """
    assert node.op is not None
    if not dtypes:
        raise GraphError(f"{node.where} needs at least one input, got none")
    for d in dtypes[1:]:
        if d is not dtypes[0]:
            raise DTypeError(
                f"{node.where} needs inputs of one dtype, got {' and '.join(map(str, dtypes))}; "
                f"insert pk.ops.cast(x, '{promote(dtypes[0], d)}')"
            )
    return dtypes[0]


_guards: ContextVar[list[tuple[Extent, Extent, str]] | None] = ContextVar("guards", default=None)


class collect_guards:  # noqa: N801 – used like a function: with collect_guards() as found
    """Within it, `agree` records the equalities that only a call can check."""

    def __enter__(self) -> list[tuple[Extent, Extent, str]]:
        found: list[tuple[Extent, Extent, str]] = []
        self._outer = _guards.set(found)
        return found

    def __exit__(self, *error: object) -> None:
        _guards.reset(self._outer)


def agree(node: Node, a: Extent, b: Extent, what: str) -> Extent:
    """The extent that ``a`` and ``b`` must both be.

    Raises: ShapeError when they are known and differ; an unknown one becomes a guard.
    """
    if a == b:
        return a
    if isinstance(a, int) and isinstance(b, int):
        raise ShapeError(f"{node.where}: {what} must agree, got {a} and {b}")
    guards = _guards.get()
    if guards is not None:
        guards.append((a, b, f"{node.where}: {what}"))
    return b if isinstance(b, int) else a


def demand(node: Node, a: Extent, b: Extent, what: str) -> None:
    """Make sure that ``a >= b``, for extents that are not negative.

    Raises: ShapeError when they are known and a < b; an unknown one becomes the guard
    ``b // (a + 1) == 0``, which says the same as an equality.
    """
    lack = b - a
    if isinstance(lack, int):
        if lack > 0:
            raise ShapeError(f"{node.where}: {what}, got {a} for at least {b}")
        return
    guards = _guards.get()
    if guards is not None:
        guards.append((b // (a + 1), 0, f"{node.where}: {what}"))


def broadcast_rule(node: Node, *shapes: Shape) -> Shape:
    """NumPy broadcasting: align at the end, stretch 1s. Raises: ShapeError naming the shapes."""
    return broadcast_shapes(node, shapes)


def broadcast_shapes(node: Node, shapes: Sequence[Shape]) -> Shape:
    """The shape that ``shapes`` broadcast to."""
    first = shapes[0] if shapes else ()
    if all(s == first for s in shapes):
        return first
    rank = max(map(len, shapes))
    out: list[Extent] = [1] * rank
    for s in shapes:
        for k, d in enumerate(s, rank - len(s)):
            if d == 1 or d == out[k]:
                continue
            if out[k] == 1:
                out[k] = d
            elif isinstance(d, int) and isinstance(out[k], int):
                shown = " and ".join(show_shape(x) for x in shapes)
                raise ShapeError(
                    f"{node.where} needs inputs that broadcast together, got {shown}; "
                    f"insert expand_dims or reshape"
                )
            else:
                out[k] = agree(node, out[k], d, f"dimension {k}")
    return tuple(out)


def show_shape(shape: Shape | None) -> str:
    """A shape as text, such as ``(n, 512)``."""
    if shape is None:
        return "(?)"
    inside = ", ".join(shortened(str(n)) for n in shape)
    return f"({inside}{',' if len(shape) == 1 else ''})"
