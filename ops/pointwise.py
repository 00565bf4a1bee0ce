"""How elementwise operators are registered: what all of them share, and what a row may say."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from passkit import ast
from passkit.graph.infer import broadcast_shapes
from passkit.graph.node import Node
from passkit.graph.op import Op, OpPattern, op_group, register_op
from passkit.ops.helpers import add_aliases, common_dtype
from passkit.values.dtype import DType, bool_
from passkit.values.size import Shape

if TYPE_CHECKING:
    from passkit.ast import Expr

EXPENSIVE = (
    *("exp", "log", "log1p", "expm1", "tanh", "sigmoid", "erf", "pow", "sin", "cos", "sqrt"),
    *("rsqrt", "div", "floor_div", "mod", "reciprocal"),
)
"""What costs as much as several loads, so that computing it twice may not pay."""

TRUTHS = ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal", "isnan")
"""What gives a bool, whatever it is given; everything else gives what it is given."""


def _shapes_back(
    node: Node, shapes: Sequence[Shape | None], outs: Sequence[Shape | None]
) -> Sequence[Shape | None]:
    """An input of unknown rank has the shape of the result, or of what is known of it."""
    known = [s for s in (*outs, *shapes) if s is not None]
    if not known:
        return shapes
    whole = outs[0] if outs[0] is not None else broadcast_shapes(node, known)
    return [whole if s is None else s for s in shapes]


ELEMENTWISE = op_group("elementwise")
ELEMENTWISE.set_attr("FInferShapeBack", _shapes_back)
ELEMENTWISE.set_attr("FInplaceOption", lambda node: [(k, 0) for k in range(len(node.inputs))])


def elementwise(
    name: str,
    kinds: str,
    code: Callable[..., Expr],
    doc: str,
    infer_type: Callable[..., Any] | None = None,
    *,
    params: Mapping[str, Any] | None = None,
    cost: str = "",
    truth: bool = False,
    zero: bool = False,
    least: DType | None = None,
    aliases: str = "",
    gradient: Callable[..., Any] | None = None,
) -> Op:
    """Register ``name`` with what all elementwise operators share; ``code`` has its arguments.

    ``params`` reach ``code`` by name. ``truth`` says that it gives a bool, ``zero`` that 0 gives 0;
    narrower floats are computed in ``least`` and rounded once.
    """
    arity = code.__code__.co_argcount
    made = code if least is None else computed_in(least, code)
    op = register_op(name, num_inputs=arity, params=params, doc=doc).include("elementwise")

    def rule(node: Node, *x: Expr) -> Expr:
        return made(*x, **node.params)

    rule.__wrapped__ = code  # type: ignore[attr-defined]  # its names are those of the inputs
    op.set_attr("FCodeGen", rule)
    op.set_attr(
        "FInferType", infer_type or common_dtype(kinds, bool_ if truth or name in TRUTHS else None)
    )
    op.set_attr("TOpPattern", OpPattern.ELEMWISE if arity == 1 else OpPattern.BROADCAST)
    op.set_attr("TOpCost", cost or ("expensive" if name in EXPENSIVE else "light"))
    if zero:
        op.set_attr("TZeroPreserving", True)
    if gradient is not None:
        op.set_attr("FGradient", gradient)
    add_aliases(op, aliases)
    return op


def computed_in(least: DType, code: Callable[..., Expr]) -> Callable[..., Expr]:
    """``code`` with narrower floats computed in ``least`` and rounded once, at the end."""

    def compute(*x: Expr, **params: Any) -> Expr:
        like = x[0].dtype
        if not like.is_float or like.nbytes >= least.nbytes:
            return code(*x, **params)
        out = code(*(ast.cast(v, least) if v.dtype is like else v for v in x), **params)
        return ast.cast(out, like) if out.dtype is least else out

    return compute
