"""Registration of elementwise operators: one call of `elementwise` for each, with named fields."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from passkit import ast
from passkit.graph.infer import broadcast_shapes
from passkit.graph.node import Entry, Node
from passkit.graph.op import Op, OpPattern, op_group, register_op
from passkit.ops.helpers import add_aliases, common_dtype
from passkit.values.dtype import DType
from passkit.values.size import Shape

if TYPE_CHECKING:
    from passkit.ast import Expr


def _infer_shapes_back(
    node: Node, shapes: Sequence[Shape | None], outs: Sequence[Shape | None]
) -> Sequence[Shape | None]:
    """Infer input shapes (FInferShapeBack): an input of unknown rank has the output's shape.

    Where that is unknown too, it has the shape to which the known inputs broadcast.

    Args:
        node: The node, for errors.
        shapes: The shapes of the inputs, None where unknown.
        outs: The shapes of the outputs, None where unknown.

    Returns:
        A shape for each input; ``shapes``, with None where unknown, if nothing is known.

    Raises:
        ShapeError: If the known inputs do not broadcast.
    """
    inferred = [s for s in (*outs, *shapes) if s is not None]
    if not inferred:
        return shapes
    output = outs[0] if outs[0] is not None else broadcast_shapes(node, inferred)
    return [output if s is None else s for s in shapes]


ELEMENTWISE = op_group("elementwise")
"""The attributes that all elementwise operators share."""

ELEMENTWISE.set_attr("FInferShapeBack", _infer_shapes_back)
ELEMENTWISE.set_attr("FInplaceOption", lambda node: [(k, 0) for k in range(len(node.inputs))])


def elementwise(
    *,
    name: str,
    code: Callable[..., Expr],
    doc: str,
    kinds: str = "",
    result_dtype: DType | None = None,
    infer_type: Callable[..., Any] | None = None,
    params: Mapping[str, Any] | None = None,
    input_names: Sequence[str] = (),
    compute_dtype: DType | None = None,
    compute: Callable[..., Any] | None = None,
    cost: str = "light",
    zero_preserving: bool = False,
    commutative: bool = False,
    simplify: Callable[..., Entry | None] | None = None,
    gradient: Callable[..., Any] | None = None,
    operator: str = "",
    python_operator: Callable[..., Entry] | None = None,
    aliases: str = "",
) -> Op:
    """Register an elementwise operator: element i of the output depends on element i of each input.

    Args:
        name: Name of the operator.
        code: ``code(*inputs, **params)`` returns the expression of one output element. Its
            positional arguments are the expressions of one element of each input; the operator has
            as many inputs, with these names.
        doc: What an output element is, for help and reference pages.
        kinds: The kinds of dtype that the inputs may have: b bool, i signed, u unsigned, f float, c
            complex, which runs in NumPy only. All inputs share one dtype.
        result_dtype: Dtype of the output; None: that of the inputs.
        infer_type: FInferType, in place of ``kinds`` and ``result_dtype``.
        params: Parameters with their defaults.
        input_names: Names of the inputs in help, and in calls by name; default: those in ``code``.
        compute_dtype: Floats narrower than this dtype are cast to it, and the result is rounded
            once to the dtype of the inputs; None: computed in the dtype of the inputs.
        compute: FCompute, the NumPy function for dtypes that kernels do not have.
        cost: "expensive" if an element costs as much as several loads, so that computing it twice
            may not pay; else "light".
        zero_preserving: Whether the output of 0 is 0.
        commutative: Whether the two inputs may be exchanged; only the payload of NaN may differ.
        simplify: ``simplify(node, *inputs)`` returns an entry with the same bits for all inputs,
            NaN, infinities and -0 among them, or None.
        gradient: FGradient; None: derived from ``code``.
        operator: The Python operator, such as "+", or the protocol that calls this operator.
        python_operator: FOperator, where the Python operator does more than apply this one.
        aliases: Further names, separated by spaces.

    Returns:
        The registered operator.

    Raises:
        RegistryError: If the operator exists with another number of inputs, an alias names another
            operator, or an attribute was set elsewhere.
        ArgumentError: If ``name`` or an alias is no identifier.
    """
    num_inputs = code.__code__.co_argcount
    element = code if compute_dtype is None else _widened(compute_dtype, code)
    op = register_op(name, num_inputs=num_inputs, params=params, doc=doc).include("elementwise")

    def generate(node: Node, *x: Expr) -> Expr:
        """Return the expression of an output element (FCodeGen), with the parameters of ``node``.

        ``x`` are the expressions of one element of each input.
        """
        return element(*x, **node.params)

    # Inputs are named by the arguments of what is wrapped.
    generate.__wrapped__ = code  # type: ignore[attr-defined]
    op.set_attr("FCodeGen", generate)
    op.set_attr("FInferType", infer_type or common_dtype(kinds, result_dtype))
    op.set_attr("TOpPattern", OpPattern.ELEMWISE if num_inputs == 1 else OpPattern.BROADCAST)
    op.set_attr("TOpCost", cost)
    if zero_preserving:
        op.set_attr("TZeroPreserving", True)
    if commutative:
        op.set_attr("TCommutative", True)
    if simplify is not None:
        op.set_attr("FSimplify", lambda node: simplify(node, *node.inputs))
    if input_names:
        op.set_attr("FListInputNames", lambda params: list(input_names))
    if operator:
        op.set_attr("TOperator", operator)
    optional = {"FCompute": compute, "FGradient": gradient, "FOperator": python_operator}
    for key, function in optional.items():
        if function is not None:
            op.set_attr(key, function)
    add_aliases(op, aliases)
    return op


def _widened(compute_dtype: DType, code: Callable[..., Expr]) -> Callable[..., Expr]:
    """Return ``code`` with narrower floats computed in ``compute_dtype`` and rounded once.

    ``code`` maps expressions of the inputs' elements and parameters to that of the output's
    element.
    """

    def compute(*x: Expr, **params: Any) -> Expr:
        """Compute floats narrower than ``compute_dtype`` in it, and cast the result back.

        The dtype of the first input decides. Inputs of another dtype, and results that are not in
        ``compute_dtype``, such as bools, are not cast.
        """
        dtype = x[0].dtype
        if not dtype.is_float or dtype.nbytes >= compute_dtype.nbytes:
            return code(*x, **params)
        widened = (ast.cast(v, compute_dtype) if v.dtype is dtype else v for v in x)
        out = code(*widened, **params)
        return ast.cast(out, dtype) if out.dtype is compute_dtype else out

    return compute
