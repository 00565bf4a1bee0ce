"""Kernel expressions (FCodeGen) written as TensorFlow operators.

Elementwise operators without an equivalent are written so, including those that users registered.
16-bit floats are computed in float32 and rounded where the expression says so, as in kernels.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from attrs import define, field

from passkit.ast import Binary, Cast, Const, Expr, Load, Select, SizeOf, Unary
from passkit.ast import Call as Function
from passkit.errors import ModelError
from passkit.frontends.tf_graphdef.export import size_arithmetic
from passkit.frontends.tf_graphdef.export.functions import FUNCTIONS
from passkit.frontends.tf_graphdef.export.graphdef_writer import (
    BOOL,
    FLOAT32,
    INT64,
    NameScope,
    NodeOutput,
)
from passkit.frontends.tf_graphdef.export.kernel_types import kernel_dtype
from passkit.values.dtype import DType, is_narrow

SIGNS = {
    "+": "AddV2",
    "-": "Sub",
    "*": "Mul",
    "/": "RealDiv",
    "<": "Less",
    "<=": "LessEqual",
    ">": "Greater",
    ">=": "GreaterEqual",
    "==": "Equal",
    "!=": "NotEqual",
    "&": "BitwiseAnd",
    "|": "BitwiseOr",
    "^": "BitwiseXor",
}
TRUTHS = {"&": "LogicalAnd", "|": "LogicalOr", "^": "NotEqual", "~": "LogicalNot"}
COMPARISONS = ("<", "<=", ">", ">=", "==", "!=")
WHOLE = {"//": "TruncateDiv", "%": "TruncateMod"}


def work_type(dtype: DType) -> DType:
    """Return the dtype in which values of ``dtype`` are computed: float32 for 16-bit floats.

    Other dtypes are returned unchanged.
    """
    return FLOAT32 if is_narrow(dtype) else dtype


@define(eq=False)
class ExpressionWriter:
    """Writes expressions in one name scope; equal subexpressions are written once."""

    scope: NameScope
    inputs: Mapping[Expr, NodeOutput]
    """Tensors of variables, in the types they are computed in."""
    size_sources: Mapping[str, size_arithmetic.SizeSource]
    load: Callable[[Load, ExpressionWriter], NodeOutput] | None = None
    done: dict[Expr, NodeOutput] = field(factory=dict)

    def write(self, x: Expr, is_result: bool = False) -> NodeOutput:
        """Write an expression unless it is in ``inputs`` or ``done``, and return its tensor.

        The tensor has the `work_type` of the expression's dtype: float32 for 16-bit floats. The
        expression's subexpressions are written, too, and all are stored in ``done``. With
        ``is_result``, the node gets the name of the scope; constants, sizes, loads, and what is in
        ``inputs`` or ``done`` already do not.

        Raises:
            ModelError: If TensorFlow has no equivalent of a function, sign or kind of expression,
                or no kernel for a dtype, or if a size has a symbol without a source.
        """
        written = self.inputs.get(x) or self.done.get(x)
        if written is None:
            written = self.done[x] = self._written(x, is_result)
        return written

    def result(self, x: Expr) -> NodeOutput:
        """Write an expression by `write`, as the operator's result; return it in its dtype.

        A 16-bit float, which `write` computes in float32, is cast.

        Raises:
            ModelError: If TensorFlow has no equivalent of a function, sign or kind of expression,
                or no kernel for a dtype, or if a size has a symbol without a source.
        """
        value = self.write(x, is_result=work_type(x.dtype) is x.dtype)
        return self.scope.cast(value, x.dtype, is_result=value.dtype is not x.dtype)

    def _written(self, x: Expr, is_result: bool) -> NodeOutput:
        """Write one expression as a node, after its operands, and return its tensor.

        The tensor has the `work_type` of the expression's dtype.

        Args:
            x: The expression.
            is_result: Whether the node gets the name of the scope; ignored for constants, sizes and
                loads.

        Raises:
            ModelError: If TensorFlow has no equivalent of a function, sign or kind of expression,
                or no kernel for a dtype, or if a size has a symbol without a source.
        """
        scope = self.scope
        match x:
            case Const():
                return scope.const(x.value, work_type(x.dtype))
            case SizeOf():
                return size_arithmetic.extent_tensor(scope, x.size, self.size_sources)
            case Unary("-", a):
                return self._negative(self.write(a), is_result)
            case Unary(_, a) if x.dtype is BOOL:
                return scope.op("LogicalNot", self.write(a), is_result=is_result)
            case Unary(_, a):
                return scope.op("Invert", self.write(a), is_result=is_result)
            case Binary(sign, a, b):
                return self._binary(sign, self.write(a), self.write(b), is_result)
            case Select(c, a, b):
                parts = (self.write(a), self.write(b))
                return scope.op(
                    "SelectV2",
                    self.write(c),
                    *parts,
                    T=parts[0].dtype,
                    out=parts[0].dtype,
                    is_result=is_result,
                )
            case Cast(a):
                return self._cast(self.write(a), x.dtype, is_result)
            case Load() if self.load is not None:
                return self.load(x, self)
            case Function(name, args):
                if name not in FUNCTIONS:
                    raise ModelError(f"TensorFlow has no equivalent of the function {name}")
                return FUNCTIONS[name](scope, *(self.write(a) for a in args), is_result=is_result)
        raise ModelError(f"TensorFlow has no equivalent of {type(x).__name__} of {x.dtype}")

    def _negative(self, value: NodeOutput, is_result: bool) -> NodeOutput:
        """Write ``-value``; for unsigned integers, which Neg does not take, as ``0 - value``.

        Args:
            value: The operand.
            is_result: Whether the node gets the name of the scope.

        Raises:
            ModelError: If TensorFlow has no kernel for the dtype.
        """
        if value.dtype.kind != "u":
            return self.scope.op("Neg", value, is_result=is_result)
        return self.scope.op("Sub", self.scope.const(0, value.dtype), value, is_result=is_result)

    def _binary(self, sign: str, a: NodeOutput, b: NodeOutput, is_result: bool) -> NodeOutput:
        """Write ``a sign b``, such as ``a + b``, by TensorFlow's operator for the operands' dtype.

        Bools have logical operators for ``& | ^``. ``//`` and ``%`` truncate, and are 0 for a
        divisor 0. Comparisons return bools. With ``is_result``, the node gets the name of the
        scope.

        Raises:
            ModelError: If TensorFlow has no operator for ``sign``, or no kernel for the dtype.
        """
        scope = self.scope
        if a.dtype is BOOL and sign in TRUTHS:
            if sign == "^":
                return scope.op("NotEqual", a, b, out=BOOL, is_result=is_result)
            return scope.op(TRUTHS[sign], a, b, is_result=is_result)
        if sign in WHOLE:
            return divide_integers(scope, WHOLE[sign], a, b, is_result)
        if sign not in SIGNS:
            raise ModelError(f"TensorFlow has no equivalent of {sign} in expressions")
        out = BOOL if sign in COMPARISONS else a.dtype
        return scope.op(SIGNS[sign], a, b, out=out, is_result=is_result)

    def _cast(self, value: NodeOutput, dtype: DType, is_result: bool) -> NodeOutput:
        """Write a cast of ``value`` to ``dtype`` by `cast_saturating`.

        For a 16-bit float, the value is rounded to it and returned as float32. With ``is_result``,
        the last node gets the name of the scope.
        """
        if is_narrow(dtype):  # rounded to 16 bits, and computed on in 32
            return self.scope.cast(self.scope.cast(value, dtype), FLOAT32, is_result=is_result)
        return cast_saturating(self.scope, value, dtype, is_result)


def divide_integers(
    scope: NameScope, op: str, a: NodeOutput, b: NodeOutput, is_result: bool
) -> NodeOutput:
    """Write an integer division or remainder that is 0 for a divisor 0, where TensorFlow fails.

    Args:
        scope: Name scope to write in.
        op: TruncateDiv, FloorDiv, TruncateMod or FloorMod.
        a: Dividend.
        b: Divisor.
        is_result: Whether the last node gets the scope's name.

    Returns:
        The quotient or remainder, in the operands' dtype. The most negative number divided by -1
        wraps, with remainder 0.

    Raises:
        ModelError: If TensorFlow has no kernel for the dtype.
    """
    if op in ("TruncateMod", "FloorMod") and kernel_dtype(op, a.dtype) is None:
        quotient = divide_integers(scope, op.replace("Mod", "Div"), a, b, is_result=False)
        remainder = scope.op("Sub", a, scope.op("Mul", quotient, b))
        is_zero = scope.op("Equal", b, scope.const(0, b.dtype))
        return scope.op(
            "SelectV2", is_zero, scope.const(0, a.dtype), remainder, T=a.dtype, is_result=is_result
        )
    if scope.writer.literals.get(b.ref, 0) not in (0, -1):
        return scope.op(op, a, b, is_result=is_result)
    is_zero = scope.op("Equal", b, scope.const(0, b.dtype), out=BOOL)
    divisor = scope.op("SelectV2", is_zero, scope.const(1, b.dtype), b, T=b.dtype, out=b.dtype)
    is_minus_one = None
    if a.dtype.kind == "i":  # -128 / -1 is a trap of the processor
        is_minus_one = scope.op("Equal", b, scope.const(-1, b.dtype), out=BOOL)
        divisor = scope.op(
            "SelectV2", is_minus_one, scope.const(1, b.dtype), divisor, T=b.dtype, out=b.dtype
        )
    quotient = scope.op(op, a, divisor)
    if is_minus_one is not None:
        negated = scope.op("Neg", quotient) if op in ("TruncateDiv", "FloorDiv") else quotient
        quotient = scope.op("SelectV2", is_minus_one, negated, quotient, T=a.dtype, out=a.dtype)
    zero = scope.const(0, a.dtype)
    return scope.op(
        "SelectV2", is_zero, zero, quotient, T=a.dtype, out=a.dtype, is_result=is_result
    )


def cast_saturating(
    scope: NameScope, x: NodeOutput, dtype: DType, is_result: bool = False
) -> NodeOutput:
    """Write a cast; from float to integer, it saturates out of range and turns NaN into 0.

    Integers and complex numbers are cast by TensorFlow's Cast: integers wrap.

    Args:
        scope: Name scope to write in.
        x: Tensor to cast.
        dtype: Dtype of the result; numbers become bools by comparison with 0.
        is_result: Whether the last node gets the scope's name.

    Returns:
        The tensor; ``x`` itself if it has the dtype, unless ``is_result``.
    """
    if not (x.dtype.is_float and dtype.is_integer):
        if dtype is BOOL and x.dtype is not BOOL:
            return scope.op("NotEqual", x, scope.const(0, x.dtype), out=BOOL, is_result=is_result)
        return scope.cast(x, dtype, is_result)
    value = scope.cast(x, FLOAT32) if is_narrow(x.dtype) else x
    limits = np.iinfo(dtype.numpy)
    upper = scope.const(float(int(limits.max) + 1), value.dtype)
    lower = scope.const(float(limits.min), value.dtype)
    in_range = scope.op(
        "LogicalAnd",
        scope.op("Less", value, upper, out=BOOL),
        scope.op("GreaterEqual", value, lower, out=BOOL),
    )
    clamped = scope.op(
        "SelectV2", in_range, value, scope.const(0, value.dtype), T=value.dtype, out=value.dtype
    )
    result = scope.cast(clamped, dtype)
    for comparison, limit, replacement in (
        ("GreaterEqual", upper, limits.max),
        ("Less", lower, limits.min),
    ):
        exceeds = scope.op(comparison, value, limit, out=BOOL)
        result = scope.op(
            "SelectV2",
            exceeds,
            scope.const(replacement, dtype),
            result,
            T=dtype,
            out=dtype,
            is_result=is_result and comparison == "Less",
        )
    return result


def axis_positions(scope: NameScope, axis: int, rank: int, extent: NodeOutput) -> NodeOutput:
    """Write the positions along one axis, in a shape that broadcasts with the result.

    Args:
        scope: Name scope to write in.
        axis: The axis, from 0 on.
        rank: Rank of the result, at least 1.
        extent: int64 scalar tensor of the axis' length.

    Returns:
        int64 tensor of the numbers from 0 on, with length 1 along other axes.
    """
    positions = scope.op(
        "Range", scope.const(0, INT64), extent, scope.const(1, INT64), like="Tidx", out=INT64
    )
    if rank == 1:
        return positions
    shape = [-1 if k == axis else 1 for k in range(rank)]
    return scope.op("Reshape", positions, scope.const(shape), Tshape=scope.const(shape).dtype)
