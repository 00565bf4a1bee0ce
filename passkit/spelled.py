"""Kernel expressions spelled out in operators: the graph that computes what an expression says.

A sign is the operator that implements it in Python (TOperator), a function the operator of its
name; so nothing here knows which operators there are.
"""

from __future__ import annotations

from collections.abc import Mapping

from passkit.ast import Binary, Call, Cast, Const, Expr, Select, Unary
from passkit.call import convert, find_operator
from passkit.errors import CodeGenError, RegistryError
from passkit.node import Entry, constant
from passkit.op import Op, get_op

TRUNCATING = ("//", "%")
"""Signs that mean something else in Python than in a kernel, where they round toward zero."""


def spelled(x: Expr, known: Mapping[Expr, Entry], made: dict[Expr, Entry]) -> Entry:
    """The entry of ``x`` by elementwise operators; ``known`` has the entries of parts.

    ``made`` remembers what was made for parts, so that an equal part is made once.

    Raises: CodeGenError for a part that no operator means.
    """
    found = known.get(x)
    if found is None:
        found = made.get(x)
    if found is None:
        found = made[x] = _spelled(x, known, made)
    return found


def _spelled(x: Expr, known: Mapping[Expr, Entry], made: dict[Expr, Entry]) -> Entry:
    def of(part: Expr) -> Entry:
        return spelled(part, known, made)

    match x:
        case Const():
            return constant(x.value, x.dtype)
        case Unary("-", a):
            return _one(find_operator("neg"), of(a))
        case Unary("~", a):
            return _one(find_operator("~"), of(a))
        case Binary(sign, a, b) if sign not in TRUNCATING:
            return _one(find_operator(sign), of(a), of(b))
        case Select(c, a, b):
            return _one(find_operator("where"), of(c), of(a), of(b))
        case Cast(a):
            return convert(of(a), x.dtype)
        case Call(name, args):
            return _one(_function(name), *map(of, args))
    what = f"'{x.op}'" if isinstance(x, Binary) else type(x).__name__
    raise CodeGenError(
        f"no operator means the kernel expression {what} of {x.dtype}; set FGradient on the "
        f"operator that uses it"
    )


def _one(op: Op, *inputs: Entry) -> Entry:
    return op(*inputs)  # type: ignore[no-any-return]


def _function(name: str) -> Op:
    try:
        return get_op(name)
    except RegistryError:
        raise CodeGenError(
            f"no operator is called {name!r}, as the kernel function is; register one whose "
            f"FCodeGen is ast.{name}(x), or set FGradient on the operator that uses it"
        ) from None
