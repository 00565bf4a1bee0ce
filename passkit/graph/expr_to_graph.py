"""Kernel expressions as graphs: the operators that compute what an expression computes.

A sign is translated to the operator that implements it in Python (TOperator), a function to the
operator of its name, so that this module refers to no particular operator. An expression is
translated once to a sequence of operator calls, which can then be applied to many nodes.
`passkit.graph.backward` differentiates elementwise operators this way.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from attrs import frozen

from passkit.ast import Binary, Call, Cast, Const, Expr, Select, Unary
from passkit.errors import CodeGenError, RegistryError
from passkit.graph.call import convert, find_operator
from passkit.graph.node import Entry, constant
from passkit.graph.op import get_op
from passkit.values.dtype import DType

TRUNCATING = ("//", "%")
"""Signs that round toward zero in kernels and toward minus infinity in Python's operators."""


@frozen
class OperatorCall:
    """One operator applied to values of an `OperatorSequence`, by their numbers."""

    operator: Callable[..., Entry]
    operands: tuple[int, ...]


@frozen
class OperatorSequence:
    """Operator calls that compute some results from given entries.

    Values are numbered: first the given entries, then the result of each call in order.

    Attributes:
        calls: the calls, producers first.
        results: the number of each result, or None for a result that does not exist.
    """

    calls: tuple[OperatorCall, ...]
    results: tuple[int | None, ...]

    def apply(self, inputs: Sequence[Entry]) -> list[Entry | None]:
        """Call the operators in turn on ``inputs``, the first of the numbered values.

        Returns: The results, None where `results` has None. One may be an input itself.

        Raises: the errors of operators that refuse the inputs, such as DTypeError.
        """
        values = list(inputs)
        for call in self.calls:
            values.append(call.operator(*[values[k] for k in call.operands]))
        return [None if k is None else values[k] for k in self.results]


def expr_to_graph(results: Sequence[Expr | None], inputs: Mapping[Expr, int]) -> OperatorSequence:
    """Translate expressions to operator calls.

    Args:
        results: the expressions to compute; None passes through.
        inputs: the expressions that are given, with the number of the entry that holds each.

    Returns: The operator calls, with the number of each result, None for None. Equal parts are
    computed once.

    Raises:
        CodeGenError: A part is no input, and no operator computes it.
        RegistryError: No operator has the TOperator of a sign.
    """
    numbers = dict(inputs)
    calls: list[OperatorCall] = []
    first = 1 + max(inputs.values(), default=-1)

    def number_of(x: Expr) -> int:
        """Return the number of the value of ``x``, after adding the calls that compute it.

        Raises: CodeGenError or RegistryError where no operator computes a part of it.
        """
        if x not in numbers:
            operator, parts = _operator_of(x)
            operands = tuple(number_of(part) for part in parts)
            numbers[x] = first + len(calls)
            calls.append(OperatorCall(operator, operands))
        return numbers[x]

    result_numbers = tuple(None if x is None else number_of(x) for x in results)
    return OperatorSequence(tuple(calls), result_numbers)


def _operator_of(x: Expr) -> tuple[Callable[..., Entry], tuple[Expr, ...]]:
    """Return the operator that computes the outermost operation of ``x``, and its operands.

    Raises: CodeGenError where no operator computes it: for ``//`` and ``%``, variables, and
    functions without an operator of their name; RegistryError where no operator is registered for
    another sign.
    """
    match x:
        case Const():
            return _literal(x.value, x.dtype), ()
        case Unary("-", a):
            return find_operator("neg"), (a,)
        case Unary("~", a):
            return find_operator("~"), (a,)
        case Binary(sign, a, b) if sign not in TRUNCATING:
            return find_operator(sign), (a, b)
        case Select(c, a, b):
            return find_operator("where"), (c, a, b)
        case Cast(a):
            return _cast(x.dtype), (a,)
        case Call(name, args):
            return _function(name), args
    operation = f"'{x.op}'" if isinstance(x, Binary) else type(x).__name__
    raise CodeGenError(
        f"no operator computes the kernel expression {operation} of {x.dtype}, which a derivative "
        f"contains; set FGradient on the operator whose FCodeGen uses it"
    )


def _literal(value: Any, dtype: DType) -> Callable[..., Entry]:
    """Return a function without arguments that creates the constant ``value`` of ``dtype``."""
    return lambda: constant(value, dtype)


def _cast(dtype: DType) -> Callable[..., Entry]:
    """Return a function that converts an entry to ``dtype``, as `passkit.graph.call.convert`."""
    return lambda entry: convert(entry, dtype)


def _function(name: str) -> Callable[..., Entry]:
    """Return the operator called like a kernel function. Raises: CodeGenError if there is none."""
    try:
        return get_op(name)
    except RegistryError:
        raise CodeGenError(
            f"no operator has the name of the kernel function {name!r}; register one whose "
            f"FCodeGen is ast.{name}(x), or set FGradient on the operator that uses it"
        ) from None
