"""Complex numbers: their parts, and numbers made of two parts. They run in NumPy only.

Of a real number the imaginary part is 0, and it is its own conjugate.
"""

from __future__ import annotations

from collections.abc import Callable
from math import pi
from typing import Any

import numpy as np

from passkit import ast
from passkit.ast import Expr
from passkit.errors import DTypeError
from passkit.graph import rules
from passkit.graph.infer import same_dtype_rule
from passkit.graph.node import Node
from passkit.graph.op import OpPattern, register_op
from passkit.ops.helpers import check_kinds
from passkit.ops.pointwise import elementwise
from passkit.values.dtype import DType, dtype_of


def _real(dtype: DType) -> DType:
    """The dtype of a part."""
    return dtype_of(f"float{4 * dtype.nbytes}") if dtype.kind == "c" else dtype


def _part_type(node: Node, dtype: DType) -> DType:
    check_kinds(node, "iufc", dtype)
    return _real(dtype)


def _same_type(node: Node, dtype: DType) -> DType:
    check_kinds(node, "iufc", dtype)
    return dtype


def _angle_type(node: Node, dtype: DType) -> DType:
    check_kinds(node, "fc", dtype)
    return _real(dtype)


def _complex_type(node: Node, *dtypes: DType) -> DType:
    part = same_dtype_rule(node, *dtypes)
    if part.name not in ("float32", "float64"):
        raise DTypeError(
            f"{node.where} needs float32 or float64 as parts, got {part}; pk.ops.cast(x, 'float32')"
        )
    return dtype_of(f"complex{16 * part.nbytes}")


def _in_its_dtype(compute: Callable[..., Any]) -> Callable[..., Any]:
    """An FCompute that gives what FInferType promises."""

    def run(node: Node, *x: Any) -> Any:
        (result_dtype,) = rules.dtypes(node, [dtype_of(v.dtype) for v in x])
        return np.asarray(compute(*x)).astype(result_dtype.numpy)

    return run


def _joined(x: Any, y: Any) -> Any:
    """Part by part: a product with the imaginary unit would make NaN of infinities."""
    x, y = np.broadcast_arrays(x, y)
    out = np.empty(x.shape, np.result_type(x, np.complex64))
    out.real, out.imag = x, y
    return out


def _angle(x: Expr) -> Expr:
    """Of a real number: pi where it has a minus, -0 too."""
    minus = ast.copysign(ast.const(1, x.dtype), x) < 0
    return ast.where(ast.equal(x, x), ast.where(minus, ast.const(pi, x.dtype), 0), x)


# name, NumPy's function, code for real numbers, dtype rule, meaning, the other names
for _name, _function, _code, _types, _doc, _aliases in (
    ("real", np.real, lambda x: x, _part_type, "the real part of x", ""),
    ("imag", np.imag, lambda x: ast.const(0, x.dtype), _part_type, "the imaginary part of x", ""),
    ("conj", np.conj, lambda x: x, _same_type, "x with the opposite imaginary part", "conjugate"),
    ("angle", np.angle, _angle, _angle_type, "the angle of x in the complex plane", ""),
):
    _op = elementwise(_name, "", _code, _doc, _types, aliases=_aliases)
    _op.set_attr("FCompute", _in_its_dtype(_function))

complex_ = register_op(
    "complex", num_inputs=2, doc="the complex number of a real and an imaginary part"
).include("elementwise")
complex_.set_attr("FCompute", _in_its_dtype(_joined))
complex_.set_attr("FInferType", _complex_type)
complex_.set_attr("TOpPattern", OpPattern.BROADCAST)
complex_.set_attr("TOpCost", "expensive")
