"""Importers of elementwise operators: a table of names, with PyTorch's promotion of dtypes."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any, Literal

import torch
from torch._prims_common import ELEMENTWISE_TYPE_PROMOTION_KIND as KINDS
from torch._prims_common import elementwise_dtypes

import passkit.ops as ops
from passkit.frontends.torch.dtypes import passkit_dtype
from passkit.frontends.torch.op_importers.registry import (
    BOOL,
    IMPORTERS,
    AtenCall,
    aten,
    cast,
    constant,
    dtype_name,
    imports,
)
from passkit.frontends.torch.sizes import size_value
from passkit.graph.node import Entry, known_shape
from passkit.values.dtype import DType, dtype_of
from passkit.values.size import Size

Operand = Entry | bool | int | float | complex | Size
DEFAULT, TO_FLOAT, TO_BOOL = KINDS.DEFAULT, KINDS.INT_TO_FLOAT, KINDS.ALWAYS_BOOL


def operand(x: Operand, dtype: DType) -> Entry:
    """Return an operand, a tensor or number, in the dtype of a computation."""
    if isinstance(x, Entry):
        return cast(x, dtype)
    if isinstance(x, Size):
        return size_value(x, dtype)
    return constant(x, dtype)


def promoted(
    call: AtenCall, kind: KINDS, operands: tuple[Operand, ...], numbers: tuple[Any, ...]
) -> tuple[list[Entry], DType]:
    """Return operands in the dtype that PyTorch computes with, and the dtype of the result.

    Args:
        call: the call.
        kind: the kind of its promotion.
        operands: its operands.
        numbers: the same as fake tensors and numbers.
    """
    computed, result = elementwise_dtypes(*numbers, type_promotion_kind=kind)
    dtype = passkit_dtype(computed)
    return [operand(x, dtype) for x in operands], passkit_dtype(result)


def elementwise(
    kind: KINDS, count: int, function: Callable[..., Entry], call: AtenCall, *args: Any, **kw: Any
) -> Entry:
    """Import an operator whose first ``count`` arguments are its operands.

    ``function`` is called with the operands in one dtype and the other arguments.
    """
    entries, dtype = promoted(call, kind, args[:count], tuple(call.args[:count]))
    return cast(function(*entries, *args[count:], **kw), dtype)


def _register(kind: KINDS, count: int, table: dict[str, Any]) -> None:
    """Register elementwise operators by the names of their overloads and passkit's function."""
    for names, function in table.items():
        for name in names.split():
            packet, _, overload = name.partition(".")
            target = getattr(getattr(aten, packet), overload or "default")
            IMPORTERS[target] = partial(elementwise, kind, count, function)


def _scaled(x: Entry, alpha: Any) -> Entry:
    """Return ``x * alpha``, without a product by 1."""
    return x if isinstance(alpha, (int, float)) and alpha == 1 else x * alpha


def _add(x: Entry, y: Entry, alpha: Any = 1) -> Entry:
    """Return ``x + alpha * y``; of bools, whether one of them is true."""
    if dtype_name(x) == "bool":
        return ops.logical_or(x, y) if alpha else x
    return x + _scaled(y, alpha)


def _sub(x: Entry, y: Entry, alpha: Any = 1) -> Entry:
    """Return ``x - alpha * y``."""
    return x - _scaled(y, alpha)


def _rsub(x: Entry, y: Entry, alpha: Any = 1) -> Entry:
    """Return ``y - alpha * x``."""
    return y - _scaled(x, alpha)


def _mul(x: Entry, y: Entry) -> Entry:
    """Return ``x * y``; of bools, whether both are true."""
    return ops.logical_and(x, y) if dtype_name(x) == "bool" else x * y


def _relu(x: Entry) -> Entry:
    """Return x where it is positive or NaN, else 0."""
    return ops.maximum(x, 0)


def _silu(x: Entry) -> Entry:
    """Return x / (1 + exp(-x))."""
    return x * ops.sigmoid(x)


def _bitwise(of_bools: Callable[..., Entry], of_bits: Callable[..., Entry]) -> Any:
    """Return a function that is logical for bools and bitwise for integers."""

    def function(*x: Entry) -> Entry:
        return (of_bools if dtype_name(x[0]) == "bool" else of_bits)(*x)

    return function


def _on_numbers(function: Callable[..., Entry]) -> Callable[..., Entry]:
    """Return a function that takes bools as the integers 0 and 1."""

    def on_numbers(*x: Entry) -> Entry:
        if dtype_name(x[0]) != "bool":
            return function(*x)
        return cast(function(*(cast(v, dtype_of("uint8")) for v in x)), BOOL)

    return on_numbers


_register(
    TO_FLOAT,
    1,
    {
        "acos": ops.acos,
        "acosh": ops.acosh,
        "asin": ops.asin,
        "asinh": ops.asinh,
        "atan": ops.atan,
        "atanh": ops.atanh,
        "cos": ops.cos,
        "cosh": ops.cosh,
        "digamma": ops.digamma,
        "erf": ops.erf,
        "erfc": ops.erfc,
        "erfinv": ops.erfinv,
        "exp": ops.exp,
        "exp2": ops.exp2,
        "expm1": ops.expm1,
        "i0": ops.bessel_i0,
        "special_i0e": ops.bessel_i0e,
        "special_modified_bessel_i0": ops.bessel_i0,
        "special_modified_bessel_i1": ops.bessel_i1,
        "special_i1": ops.bessel_i1,
        "special_i1e": ops.bessel_i1e,
        "lgamma": ops.lgamma,
        "log": ops.log,
        "log10": ops.log10,
        "log1p": ops.log1p,
        "log2": ops.log2,
        "reciprocal": lambda x: 1 / x,
        "rsqrt": ops.rsqrt,
        "sigmoid": ops.sigmoid,
        "sin": ops.sin,
        "sinc": ops.sinc,
        "sinh": ops.sinh,
        "sqrt": ops.sqrt,
        "tan": ops.tan,
        "tanh": ops.tanh,
    },
)
_register(
    DEFAULT,
    1,
    {
        "bitwise_not": _bitwise(ops.logical_not, ops.bitwise_not),
        "ceil": ops.ceil,
        "floor": ops.floor,
        "neg": ops.neg,
        "relu": _relu,
        "round": ops.round,
        "sign": _on_numbers(ops.sign),
        "silu": _silu,
        "square": ops.square,
        "trunc": ops.trunc,
    },
)
_register(
    TO_BOOL,
    1,
    {
        "isinf": _on_numbers(ops.is_inf),
        "isnan": _on_numbers(ops.is_nan),
        "logical_not": lambda x: ops.logical_not(cast(x, BOOL)),
        "signbit": _on_numbers(ops.signbit),
    },
)
_register(
    DEFAULT,
    2,
    {
        "add.Tensor add.Scalar": _add,
        "sub.Tensor sub.Scalar": _sub,
        "rsub.Tensor rsub.Scalar": _rsub,
        "mul.Tensor mul.Scalar": _mul,
        "maximum": _on_numbers(ops.maximum),
        "minimum": _on_numbers(ops.minimum),
        "fmax": _on_numbers(ops.fmax),
        "fmin": _on_numbers(ops.fmin),
        "fmod.Tensor fmod.Scalar": ops.fmod,
        "remainder.Tensor remainder.Scalar": ops.mod,
        "hypot": ops.hypot,
        "nextafter": ops.nextafter,
        "bitwise_and.Tensor bitwise_and.Scalar": _bitwise(ops.logical_and, ops.bitwise_and),
        "bitwise_or.Tensor bitwise_or.Scalar": _bitwise(ops.logical_or, ops.bitwise_or),
        "bitwise_xor.Tensor bitwise_xor.Scalar": _bitwise(ops.logical_xor, ops.bitwise_xor),
        "bitwise_left_shift.Tensor": ops.left_shift,
        "bitwise_right_shift.Tensor": ops.right_shift,
        "gcd": ops.gcd,
        "lcm": ops.lcm,
    },
)
_register(
    TO_FLOAT,
    2,
    {
        "div.Tensor div.Scalar true_divide.Tensor true_divide.Scalar": ops.div,
        "atan2": ops.atan2,
        "copysign.Tensor copysign.Scalar": ops.copysign,
        "xlogy.Tensor": ops.xlogy,
        "igamma": ops.igamma,
        "igammac": ops.igammac,
        "special_zeta special_zeta.self_scalar special_zeta.other_scalar": ops.zeta,
    },
)
_register(KINDS.COMPLEX_TO_FLOAT, 1, {"abs": ops.abs})
_register(
    TO_BOOL,
    2,
    {
        "eq.Tensor eq.Scalar": ops.equal,
        "ne.Tensor ne.Scalar": ops.not_equal,
        "lt.Tensor lt.Scalar": ops.less,
        "le.Tensor le.Scalar": ops.less_equal,
        "gt.Tensor gt.Scalar": ops.greater,
        "ge.Tensor ge.Scalar": ops.greater_equal,
        "logical_and": lambda x, y: ops.logical_and(cast(x, BOOL), cast(y, BOOL)),
        "logical_or": lambda x, y: ops.logical_or(cast(x, BOOL), cast(y, BOOL)),
        "logical_xor": lambda x, y: ops.logical_xor(cast(x, BOOL), cast(y, BOOL)),
    },
)


@imports(aten.pow.Tensor_Tensor, aten.pow.Tensor_Scalar, aten.pow.Scalar)
def _pow(call: AtenCall, x: Operand, y: Operand) -> Entry:
    """Import pow; small whole powers are products."""
    kind = KINDS.BOOL_TO_LONG
    (base, exponent), dtype = promoted(call, kind, (x, y), tuple(call.args[:2]))
    is_float = base.dtype is not None and base.dtype.is_float
    if isinstance(y, (int, float)) and not isinstance(y, bool):
        if y == 2:
            return cast(base * base, dtype)
        if y == 3:
            return cast(base * base * base, dtype)
        if is_float and y == 0.5:
            return cast(ops.sqrt(base), dtype)
        if is_float and y == -1:
            return cast(1 / base, dtype)
    return cast(ops.pow(base, exponent), dtype)


@imports(aten.polygamma.default)
def _polygamma(call: AtenCall, n: int, x: Entry) -> Entry:
    """Import a derivative of digamma; the 0th is digamma."""
    (a,), dtype = promoted(call, TO_FLOAT, (x,), (call.args[1],))
    if n == 0:
        return cast(ops.digamma(a), dtype)
    is_pole = ops.logical_and(ops.less_equal(a, 0), ops.equal(a, ops.floor(a)))
    pole = math.inf if n % 2 else -math.inf
    return cast(ops.where(is_pole, pole, ops.polygamma(a, n=n)), dtype)


@imports(aten.angle.default)
def _angle(call: AtenCall, x: Entry) -> Entry:
    """Import the angle of numbers in the complex plane: 0 for positive ones, NaN for NaN."""
    if x.dtype is not None and x.dtype.kind == "c":
        return cast(ops.angle(x), call.dtype)
    wide = cast(x, call.dtype)
    angle = ops.where(ops.less(wide, 0), math.pi, ops.zeros_like(wide))
    return ops.where(ops.is_nan(wide), wide, angle)


@imports(aten.complex.default)
def _complex(call: AtenCall, real: Entry, imaginary: Entry) -> Entry:
    """Import complex numbers of two parts."""
    part = dtype_of("float32" if call.dtype.name == "complex64" else "float64")
    return ops.complex(cast(real, part), cast(imaginary, part))


@imports(aten.polar.default)
def _polar(call: AtenCall, length: Entry, angle: Entry) -> Entry:
    """Import complex numbers of lengths and angles."""
    return ops.complex(length * ops.cos(angle), length * ops.sin(angle))


@imports(aten.view_as_complex.default)
def _view_as_complex(call: AtenCall, x: Entry) -> Entry:
    """Import pairs of numbers along the last axis as complex numbers."""
    shape = known_shape(x)
    real, imaginary = (
        ops.slice(x, begin=[0] * (len(shape) - 1) + [k], size=(*shape[:-1], 1)) for k in (0, 1)
    )
    return ops.reshape(ops.complex(real, imaginary), call.shape)


@imports(aten.view_as_real.default)
def _view_as_real(call: AtenCall, x: Entry) -> Entry:
    """Import complex numbers as pairs of numbers along a new last axis."""
    return ops.stack(ops.real(x), ops.imag(x), axis=-1)


@imports(aten._conj.default, aten._conj_physical.default, aten.conj_physical.default)
def _conj(call: AtenCall, x: Entry) -> Entry:
    """Import the conjugates of numbers; real ones are their own."""
    return ops.conj(x) if x.dtype is not None and x.dtype.kind == "c" else x


@imports(aten.real.default)
def _real(call: AtenCall, x: Entry) -> Entry:
    """Import the real parts of numbers."""
    return cast(ops.real(x), call.dtype)


@imports(aten.imag.default)
def _imag(call: AtenCall, x: Entry) -> Entry:
    """Import the imaginary parts of numbers."""
    return cast(ops.imag(x), call.dtype)


@imports(aten.div.Tensor_mode, aten.div.Scalar_mode)
def _div_mode(call: AtenCall, x: Operand, y: Operand, *, rounding_mode: str | None = None) -> Entry:
    """Import a division that is rounded down or toward 0."""
    kind = TO_FLOAT if rounding_mode is None else DEFAULT
    (a, b), dtype = promoted(call, kind, (x, y), tuple(call.args[:2]))
    divide = {None: ops.div, "floor": ops.floor_div, "trunc": ops.trunc_div}[rounding_mode]
    return cast(divide(a, b), dtype)


@imports(aten.floor_divide.default)
def _floor_divide(call: AtenCall, x: Operand, y: Operand) -> Entry:
    """Import a division that is rounded down."""
    (a, b), dtype = promoted(call, DEFAULT, (x, y), tuple(call.args[:2]))
    return cast(ops.floor_div(a, b), dtype)


@imports(aten.where.self, aten.where.ScalarOther, aten.where.ScalarSelf, aten.where.Scalar)
def _where(call: AtenCall, condition: Entry, x: Operand, y: Operand) -> Entry:
    """Import a choice between two tensors or numbers."""
    (a, b), dtype = promoted(call, KINDS.NO_OPMATH, (x, y), tuple(call.args[1:3]))
    return cast(ops.where(cast(condition, BOOL), a, b), dtype)


@imports(aten.clamp.default, aten.clamp.Tensor)
def _clamp(call: AtenCall, x: Entry, low: Any = None, high: Any = None) -> Entry:
    """Import limits from below and above; NaN stays."""
    limits = [(k, v) for k, v in (("min", low), ("max", high)) if v is not None]
    fakes = [v for v in [*call.args, *call.kwargs.values()] if v is not None]
    entries, dtype = promoted(call, DEFAULT, (x, *(v for _, v in limits)), tuple(fakes))
    result = entries[0]
    for (kind, _), limit in zip(limits, entries[1:], strict=True):
        function = ops.maximum if kind == "min" else ops.minimum
        result = _on_numbers(function)(result, limit)
    return cast(result, dtype)


@imports(aten.clamp_min.default, aten.clamp_min.Tensor)
def _clamp_min(call: AtenCall, x: Entry, low: Any) -> Entry:
    """Import a limit from below."""
    return elementwise(DEFAULT, 2, _on_numbers(ops.maximum), call, x, low)


@imports(aten.clamp_max.default, aten.clamp_max.Tensor)
def _clamp_max(call: AtenCall, x: Entry, high: Any) -> Entry:
    """Import a limit from above."""
    return elementwise(DEFAULT, 2, _on_numbers(ops.minimum), call, x, high)


@imports(aten.gelu.default)
def _gelu(call: AtenCall, x: Entry, *, approximate: Literal["none", "tanh"] = "none") -> Entry:
    """Import gelu."""
    (a,), dtype = promoted(call, DEFAULT, (x,), (call.args[0],))
    return cast(ops.gelu(a, approximate=approximate), dtype)


@imports(aten.leaky_relu.default)
def _leaky_relu(call: AtenCall, x: Entry, slope: float = 0.01) -> Entry:
    """Import leaky_relu."""
    (a,), dtype = promoted(call, DEFAULT, (x,), (call.args[0],))
    return cast(ops.where(ops.greater(a, 0), a, a * slope), dtype)


@imports(aten.hardtanh.default)
def _hardtanh(call: AtenCall, x: Entry, low: float = -1, high: float = 1) -> Entry:
    """Import hardtanh."""
    (a,), dtype = promoted(call, DEFAULT, (x,), (call.args[0],))
    lowest, highest = (operand(limit, dtype_of(dtype_name(a))) for limit in (low, high))
    return cast(ops.minimum(ops.maximum(a, lowest), highest), dtype)


@imports(aten._to_copy.default, torch.ops.prims.convert_element_type.default)
def _to_copy(call: AtenCall, x: Entry, *args: Any, **kwargs: Any) -> Entry:
    """Import a conversion to another dtype; devices and layouts stay."""
    return cast(x, call.dtype)


@imports("prims::fma")
def _fma(call: AtenCall, x: Operand, y: Operand, z: Operand) -> Entry:
    """Import x * y + z, of floats rounded once; Dynamo writes ``addcmul_`` so."""
    (a, b, c), dtype = promoted(call, DEFAULT, (x, y, z), tuple(call.args))
    return cast(ops.fma(a, b, c) if dtype.kind == "f" else a * b + c, dtype)
