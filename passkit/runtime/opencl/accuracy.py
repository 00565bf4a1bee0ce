"""Operations that a device computes less accurately than other targets, as OpenCL allows it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from attrs import fields, has

from passkit.ast import Binary, Call, Expr
from passkit.ast.walk import walk
from passkit.graph.kernel import Kernel
from passkit.runtime.opencl.device import OpenClLimits
from passkit.values.dtype import float32

ULP_BOUNDS = {
    "atan": 5,
    "atanh": 5,
    "tan": 5,
    "tanh": 5,
    "atan2": 6,
    "sigmoid": 6,
    "erf": 16,
    "erfc": 16,
    "pow": 16,
    "tgamma": 16,
}
"""Functions whose error may exceed 4 ulp, with the bound. Source: OpenCL C 1.2, table 7.4.

A sigmoid is an exponential and a quotient. Functions that are sums of many terms have the same
error on other targets.
"""


def relaxed_operations(kernels: Iterable[Kernel], limits: OpenClLimits) -> tuple[str, ...]:
    """Return the operations of kernels that may miss the accuracy of other targets.

    Args:
        kernels: The kernels.
        limits: The limits and features of the device that runs them.

    Returns:
        The name of each with its error bound, such as "tanh (5 ulp)", sorted.
    """
    relaxed: set[str] = set()
    for x in (e for kernel in kernels for e in _expressions(kernel.ast)):
        if isinstance(x, Call) and x.name in ULP_BOUNDS:
            relaxed.add(f"{x.name} ({ULP_BOUNDS[x.name]} ulp)")
        is_inexact = x.dtype is float32 and not limits.exact
        if is_inexact and isinstance(x, Call) and x.name in ("sqrt", "rsqrt"):
            relaxed.add(f"{x.name} (3 ulp)")
        if is_inexact and isinstance(x, Binary) and x.op == "/":
            relaxed.add("division (2.5 ulp)")
        if x.dtype is float32 and not limits.denormal:
            relaxed.add("denormals (0)")
    return tuple(sorted(relaxed))


def _expressions(x: Any) -> Iterator[Expr]:
    """Yield all expressions in a part of a kernel's AST: an expression, statement or tuple.

    Other values, such as numbers, have none.
    """
    if isinstance(x, Expr):
        yield from walk(x)
    elif isinstance(x, tuple):
        for part in x:
            yield from _expressions(part)
    elif has(type(x)):
        for attribute in fields(type(x)):
            yield from _expressions(getattr(x, attribute.name))
