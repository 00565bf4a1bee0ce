"""What a device computes less exactly than passkit does elsewhere, by what OpenCL asks of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from attrs import fields, has

from passkit.ast import Binary, Call, Expr
from passkit.ast.walk import walk
from passkit.plan.kernel import Kernel
from passkit.runtime.opencl.device import Limits
from passkit.values.dtype import float32

LOOSE = {
    **{"atan": 5, "atanh": 5, "tan": 5, "tanh": 5, "atan2": 6, "sigmoid": 6},
    **{"erf": 16, "erfc": 16, "pow": 16, "tgamma": 16},
}
"""Functions that may be off by more than 4 ulp, and by how many. Source: OpenCL C 1.2, table 7.4.

A sigmoid is an exponential and a quotient. Others that are sums of many terms are loose elsewhere.
"""


def relaxed(kernels: Iterable[Kernel], limits: Limits) -> tuple[str, ...]:
    """The operations of kernels that may miss what they promise elsewhere, each with its ulps."""
    found: set[str] = set()
    for x in (e for k in kernels for e in _expressions(k.ast)):
        if isinstance(x, Call) and x.name in LOOSE:
            found.add(f"{x.name} ({LOOSE[x.name]} ulp)")
        single = x.dtype is float32 and not limits.exact
        if single and isinstance(x, Call) and x.name in ("sqrt", "rsqrt"):
            found.add(f"{x.name} (3 ulp)")
        if single and isinstance(x, Binary) and x.op == "/":
            found.add("division (2.5 ulp)")
        if x.dtype is float32 and not limits.denormal:
            found.add("denormals (0)")
    return tuple(sorted(found))


def _expressions(x: Any) -> Iterator[Expr]:
    """The expressions in a part of a kernel's AST, and those inside them."""
    if isinstance(x, Expr):
        yield from walk(x)
    elif isinstance(x, tuple):
        for each in x:
            yield from _expressions(each)
    elif has(type(x)):
        for f in fields(type(x)):
            yield from _expressions(getattr(x, f.name))
