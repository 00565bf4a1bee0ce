"""Inference of result shapes and dtypes, and conditions on symbolic sizes that a call checks.

Operators infer by FInferShape and FInferType; the functions here apply them, or the defaults where
an operator has none. `agree` and `demand` are for use in such functions: what cannot be decided
while sizes are symbolic is recorded as a guard.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextvars import ContextVar
from typing import TYPE_CHECKING

from passkit import ast
from passkit.errors import DTypeError, GraphError, ShapeError
from passkit.graph.attribute_calls import call_codegen, call_infer_shape, call_infer_type
from passkit.graph.op import FInferShape, FInferType, OpPattern
from passkit.values.arguments import shortened
from passkit.values.dtype import DType, promote
from passkit.values.size import Extent, Shape

if TYPE_CHECKING:
    from passkit.graph.node_view import NodeLike


def infer_shapes(node: NodeLike, shapes: Sequence[Shape | None]) -> Sequence[Shape | None]:
    """Return the shape of each result of ``node``, None where the rank is unknown.

    Without FInferShape, elementwise operators broadcast their inputs, and other ranks are unknown.
    An input of unknown rank makes all results unknown, unless FInferShape has an attribute
    ``partial`` that is true. If the operator has any number of results (-1), "all" is one.

    Raises: ShapeError where the input shapes do not fit the operator; RuleError where FInferShape
    returns no shape for each result; GraphError or DTypeError where it refuses a parameter.
    """
    op = node.op
    assert op is not None
    rule = FInferShape.get(op.name)
    if rule is not None and getattr(rule, "partial", False):
        return call_infer_shape(node, shapes)
    known_shapes = [s for s in shapes if s is not None]
    spreads = rule is broadcast_rule or (rule is None and op.pattern <= OpPattern.BROADCAST)
    if len(known_shapes) != len(shapes) or (rule is None and not spreads):
        return (None,) * max(1, op.num_outputs)
    if spreads:
        return (broadcast_rule(node, *known_shapes),) * max(1, op.num_outputs)
    return call_infer_shape(node, known_shapes)


def infer_dtypes(node: NodeLike, dtypes: Sequence[DType | None]) -> Sequence[DType | None]:
    """Return the dtype of each result of ``node``; all are None if an input dtype is unknown.

    Without FInferType, the dtypes are those of the FCodeGen expressions; without FCodeGen, all
    inputs must have one dtype, and the results have it; they are None if there are no inputs. If
    the operator has any number of results (-1), "all" is one.

    Raises: DTypeError where the input dtypes do not fit the operator; RuleError where FInferType or
    FCodeGen returns something else than it must; GraphError or ShapeError where it refuses a
    parameter, or that there are no inputs.
    """
    op = node.op
    assert op is not None
    rule = FInferType.get(op.name)
    if any(d is None for d in dtypes) or (rule is None and not dtypes):
        return (None,) * max(1, op.num_outputs)
    known_dtypes = [d for d in dtypes if d is not None]
    if rule is not None:
        return call_infer_type(node, known_dtypes)
    if op.has_attr("FCodeGen"):
        return code_dtypes(node, *known_dtypes)
    return (same_dtype_rule(node, *known_dtypes),) * max(1, op.num_outputs)


def code_dtypes(node: NodeLike, *dtypes: DType) -> tuple[DType, ...]:
    """Return the dtypes of the FCodeGen expressions of ``node`` for inputs of ``dtypes``.

    Raises: DTypeError where these do not fit the operator; RuleError where FCodeGen returns no
    expression for each result.
    """
    x = (ast.Var(f"x{k}", d) for k, d in enumerate(dtypes))
    return tuple(value.dtype for value in call_codegen(node, *x))


def same_dtype_rule(node: NodeLike, *dtypes: DType) -> DType:
    """Return the dtype that all inputs have.

    Raises: DTypeError where two differ; GraphError where there are no inputs.
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


class collect_guards:  # noqa: N801 – used like a function: with collect_guards() as guards
    """Context manager that collects the guards which `agree` and `demand` record inside it.

    Entering it returns the list of guards, which grows: tuples of two extents that must be equal,
    and a text for messages. The innermost one gets them all.
    """

    def __enter__(self) -> list[tuple[Extent, Extent, str]]:
        guards: list[tuple[Extent, Extent, str]] = []
        self._outer = _guards.set(guards)
        return guards

    def __exit__(self, *error: object) -> None:
        _guards.reset(self._outer)


def agree(node: NodeLike, a: Extent, b: Extent, what: str) -> Extent:
    """Return the extent that ``a`` and ``b`` must both have.

    Args:
        node: the node whose shapes are inferred, for messages.
        a: an extent.
        b: another extent.
        what: what the extents are, for messages, such as ``"dimension 0"``.

    Returns:
        ``b`` if it is a number, else ``a``. If they are not equal and one is symbolic, that they
        must be is recorded as a guard, inside `collect_guards`; elsewhere it is not checked.

    Raises:
        ShapeError: Both are numbers and differ.
    """
    if a == b:
        return a
    if isinstance(a, int) and isinstance(b, int):
        raise ShapeError(f"{node.where}: {what} must agree, got {a} and {b}")
    guards = _guards.get()
    if guards is not None:
        guards.append((a, b, f"{node.where}: {what}"))
    return b if isinstance(b, int) else a


def demand(node: NodeLike, a: Extent, b: Extent, what: str) -> None:
    """Require ``a >= b``, for extents that are not negative, while shapes of ``node`` are inferred.

    Where ``b - a`` depends on symbolic sizes the equivalent guard ``b // (a + 1) == 0`` is recorded
    inside `collect_guards`; elsewhere it is not checked.

    Raises: ShapeError where ``b - a`` is a number above 0; the message is ``what`` with b, unless
    that is 1, and a.
    """
    lack = b - a
    if isinstance(lack, int):
        if lack > 0:
            least = "" if b == 1 else f" (at least {b})"
            raise ShapeError(f"{node.where}: {what}{least}, got {a}")
        return
    guards = _guards.get()
    if guards is not None:
        guards.append((b // (a + 1), 0, f"{node.where}: {what}"))


def broadcast_rule(node: NodeLike, *shapes: Shape) -> Shape:
    """Infer the shape of a result as NumPy broadcasts ``shapes``; an FInferShape of any arity.

    It is () for no shapes. Symbolic extents that differ are taken as equal, with a guard.

    Raises: ShapeError, naming ``node``, where two extents are numbers, differ, and neither is 1.
    """
    return broadcast_shapes(node, shapes)


def broadcast_shapes(node: NodeLike, shapes: Sequence[Shape]) -> Shape:
    """Return the shape that ``shapes`` broadcast to as in NumPy, aligned at the last axis.

    A symbolic extent beside another one that is not 1 is taken as equal to it, which is recorded as
    a guard. The result is () for no shapes.

    Raises: ShapeError, naming ``node``, where two extents are numbers, differ, and neither is 1.
    """
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
    """Return a shape as text, such as ``(n, 512)`` or ``(3,)``; ``(?)`` for None, an unknown rank.

    Long extents are cut to 80 characters.
    """
    if shape is None:
        return "(?)"
    inside = ", ".join(shortened(str(n)) for n in shape)
    return f"({inside}{',' if len(shape) == 1 else ''})"
