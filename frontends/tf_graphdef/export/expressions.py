"""Kernel expressions in TensorFlow's operators.

So elementwise operators without a twin are written, those that users registered among them.
Floats of 16 bits are computed in float32 and rounded where the expression says so, as in kernels.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from attrs import define, field

from passkit.ast import Binary, Cast, Const, Expr, Load, Select, SizeOf, Unary
from passkit.ast import Call as Function
from passkit.errors import ModelError
from passkit.frontends.tf_graphdef.export import sizes
from passkit.frontends.tf_graphdef.export.functions import FUNCTIONS
from passkit.frontends.tf_graphdef.export.kernels import computed_as
from passkit.frontends.tf_graphdef.export.writer import BOOL, FLOAT32, INT64, Scope, Tensor
from passkit.values.dtype import DType, is_narrow

SIGNS = {
    **{"+": "AddV2", "-": "Sub", "*": "Mul", "/": "RealDiv"},
    **{"<": "Less", "<=": "LessEqual", ">": "Greater", ">=": "GreaterEqual"},
    **{"==": "Equal", "!=": "NotEqual"},
    **{"&": "BitwiseAnd", "|": "BitwiseOr", "^": "BitwiseXor"},
}
TRUTHS = {"&": "LogicalAnd", "|": "LogicalOr", "^": "NotEqual", "~": "LogicalNot"}
COMPARISONS = ("<", "<=", ">", ">=", "==", "!=")
WHOLE = {"//": "TruncateDiv", "%": "TruncateMod"}


def work_type(dtype: DType) -> DType:
    """The type in which values of ``dtype`` are computed."""
    return FLOAT32 if is_narrow(dtype) else dtype


@define(eq=False)
class Speller:
    """Writes expressions below one scope; equal parts are written once."""

    scope: Scope
    given: Mapping[Expr, Tensor]
    """Variables, in the types they are computed in."""
    known: Mapping[str, sizes.Source]
    load: Callable[[Load, Speller], Tensor] | None = None
    done: dict[Expr, Tensor] = field(factory=dict)

    def write(self, x: Expr, last: bool = False) -> Tensor:
        """The tensor of an expression, named as the scope if it is the ``last``."""
        found = self.given.get(x) or self.done.get(x)
        if found is None:
            found = self.done[x] = self._written(x, last)
        return found

    def result(self, x: Expr) -> Tensor:
        """An expression as an operator's result: in the type that it has."""
        made = self.write(x, last=work_type(x.dtype) is x.dtype)
        return self.scope.cast(made, x.dtype, last=made.dtype is not x.dtype)

    def _written(self, x: Expr, last: bool) -> Tensor:
        scope = self.scope
        match x:
            case Const():
                return scope.const(x.value, work_type(x.dtype))
            case SizeOf():
                return sizes.scalar(scope, x.size, self.known)
            case Unary("-", a):
                return self._negative(self.write(a), last)
            case Unary(_, a) if x.dtype is BOOL:
                return scope.op("LogicalNot", self.write(a), last=last)
            case Unary(_, a):
                return scope.op("Invert", self.write(a), last=last)
            case Binary(sign, a, b):
                return self._binary(sign, self.write(a), self.write(b), last)
            case Select(c, a, b):
                parts = (self.write(a), self.write(b))
                return scope.op("SelectV2", self.write(c), *parts, T=parts[0].dtype,
                                out=parts[0].dtype, last=last)  # fmt: skip
            case Cast(a):
                return self._cast(self.write(a), x.dtype, last)
            case Load() if self.load is not None:
                return self.load(x, self)
            case Function(name, args):
                if name not in FUNCTIONS:
                    raise ModelError(f"TensorFlow has nothing that means the function {name}")
                return FUNCTIONS[name](scope, *(self.write(a) for a in args), last=last)
        raise ModelError(f"TensorFlow has nothing that means {type(x).__name__} of {x.dtype}")

    def _negative(self, value: Tensor, last: bool) -> Tensor:
        if value.dtype.kind != "u":
            return self.scope.op("Neg", value, last=last)
        return self.scope.op("Sub", self.scope.const(0, value.dtype), value, last=last)

    def _binary(self, sign: str, a: Tensor, b: Tensor, last: bool) -> Tensor:
        scope = self.scope
        if a.dtype is BOOL and sign in TRUTHS:
            if sign == "^":
                return scope.op("NotEqual", a, b, out=BOOL, last=last)
            return scope.op(TRUTHS[sign], a, b, last=last)
        if sign in WHOLE:
            return whole(scope, WHOLE[sign], a, b, last)
        out = BOOL if sign in COMPARISONS else a.dtype
        return scope.op(SIGNS[sign], a, b, out=out, last=last)

    def _cast(self, value: Tensor, dtype: DType, last: bool) -> Tensor:
        if is_narrow(dtype):  # rounded to 16 bits, and computed on in 32
            return self.scope.cast(self.scope.cast(value, dtype), FLOAT32, last=last)
        return converted(self.scope, value, dtype, last)


def whole(scope: Scope, op: str, a: Tensor, b: Tensor, last: bool) -> Tensor:
    """A division of integers, or its rest, 0 where it is by 0: TensorFlow would fail there."""
    if op in ("TruncateMod", "FloorMod") and computed_as(op, a.dtype) is None:
        quotient = whole(scope, op.replace("Mod", "Div"), a, b, last=False)
        rest = scope.op("Sub", a, scope.op("Mul", quotient, b))
        none = scope.op("Equal", b, scope.const(0, b.dtype))
        return scope.op("SelectV2", none, scope.const(0, a.dtype), rest, T=a.dtype, last=last)
    if scope.writer.literals.get(b.ref, 0) not in (0, -1):
        return scope.op(op, a, b, last=last)
    none = scope.op("Equal", b, scope.const(0, b.dtype), out=BOOL)
    safe = scope.op("SelectV2", none, scope.const(1, b.dtype), b, T=b.dtype, out=b.dtype)
    negative = None
    if a.dtype.kind == "i":  # -128 / -1 is a trap of the processor
        negative = scope.op("Equal", b, scope.const(-1, b.dtype), out=BOOL)
        safe = scope.op("SelectV2", negative, scope.const(1, b.dtype), safe, T=b.dtype, out=b.dtype)
    made = scope.op(op, a, safe)
    if negative is not None:
        other = scope.op("Neg", made) if op in ("TruncateDiv", "FloorDiv") else made
        made = scope.op("SelectV2", negative, other, made, T=a.dtype, out=a.dtype)
    zero = scope.const(0, a.dtype)
    return scope.op("SelectV2", none, zero, made, T=a.dtype, out=a.dtype, last=last)


def converted(scope: Scope, x: Tensor, dtype: DType, last: bool = False) -> Tensor:
    """``x`` in another type; floats too large for an integer become its limit, and NaN 0."""
    if not (x.dtype.is_float and dtype.is_integer):
        if dtype is BOOL and x.dtype is not BOOL:
            return scope.op("NotEqual", x, scope.const(0, x.dtype), out=BOOL, last=last)
        return scope.cast(x, dtype, last)
    wide = scope.cast(x, FLOAT32) if is_narrow(x.dtype) else x
    limits = np.iinfo(dtype.numpy)
    top = scope.const(float(int(limits.max) + 1), wide.dtype)
    bottom = scope.const(float(limits.min), wide.dtype)
    inside = scope.op(
        "LogicalAnd",
        scope.op("Less", wide, top, out=BOOL),
        scope.op("GreaterEqual", wide, bottom, out=BOOL),
    )  # fmt: skip
    fitting = scope.op(
        "SelectV2", inside, wide, scope.const(0, wide.dtype), T=wide.dtype, out=wide.dtype
    )
    made = scope.cast(fitting, dtype)
    for sign, limit, value in (("GreaterEqual", top, limits.max), ("Less", bottom, limits.min)):
        beyond = scope.op(sign, wide, limit, out=BOOL)
        made = scope.op("SelectV2", beyond, scope.const(value, dtype), made, T=dtype, out=dtype,
                        last=last and sign == "Less")  # fmt: skip
    return made


def index(scope: Scope, axis: int, rank: int, extent: Tensor) -> Tensor:
    """The positions along one axis of a result, of a shape that broadcasts with the others'."""
    positions = scope.op(
        "Range", scope.const(0, INT64), extent, scope.const(1, INT64), like="Tidx", out=INT64
    )
    if rank == 1:
        return positions
    shape = [-1 if k == axis else 1 for k in range(rank)]
    return scope.op("Reshape", positions, scope.const(shape), Tshape=scope.const(shape).dtype)
