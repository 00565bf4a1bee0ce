"""Calls of NumPy, Python's math module and `passkit.ops` on expressions, which have no value.

A ufunc that implements an operator, as in ``np.float64(2) * x``, is applied as that operator. All
others raise a DTypeError that names the equivalent in `passkit.ast`.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from passkit.errors import DTypeError, nearest
from passkit.values.arguments import shown

OPERATORS: dict[str, Callable[..., Any]] = {
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "divide": operator.truediv,
    "floor_divide": operator.floordiv,
    "remainder": operator.mod,
    "power": operator.pow,
    "float_power": operator.pow,
    "negative": operator.neg,
    "positive": operator.pos,
    "absolute": abs,
    "less": operator.lt,
    "less_equal": operator.le,
    "greater": operator.gt,
    "greater_equal": operator.ge,
    "bitwise_and": operator.and_,
    "bitwise_or": operator.or_,
    "bitwise_xor": operator.xor,
    "invert": operator.invert,
}
"""The operators that NumPy calls for its scalars, by the names of its ufuncs."""

SPELLINGS = {
    "arcsin": "asin",
    "arccos": "acos",
    "arctan": "atan",
    "arcsinh": "asinh",
    "arccosh": "acosh",
    "arctanh": "atanh",
    "arctan2": "atan2",
    "fabs": "abs",
    "round": "rint",
    "around": "rint",
    "gamma": "tgamma",
    "gammaln": "lgamma",
    "expit": "sigmoid",
    "select": "where",
    "astype": "cast",
    "array_equal": "equal",
}
"""Names in `passkit.ast` of functions that NumPy, SciPy or `passkit.ops` call otherwise."""

FORMULAS = {
    "square": "x * x",
    "reciprocal": "1 / x",
    "clip": "pk.ast.minimum(pk.ast.maximum(x, low), high)",
    "fmax": "pk.ast.maximum(x, y), or pk.ast.where",
    "fmin": "pk.ast.minimum(x, y), or pk.ast.where",
    "isnan": "pk.ast.not_equal(x, x)",
    "logical_and": "x & y",
    "logical_or": "x | y",
    "logical_not": "~x",
    "left_shift": "pk.ast.left_shift(x, y)",
    "right_shift": "pk.ast.right_shift(x, y)",
}
"""Expressions for functions that `passkit.ast` does not have."""

REDUCTIONS = frozenset(
    [
        "all",
        "amax",
        "amin",
        "any",
        "argmax",
        "argmin",
        "cumprod",
        "cumsum",
        "max",
        "mean",
        "min",
        "prod",
        "sort",
        "std",
        "sum",
        "var",
    ]
)
"""Functions of several elements, while an expression is one."""


def is_entry(value: object) -> bool:
    """Return whether a value is an entry of a graph, a class of a higher layer, by its type's name.

    That is "Entry".
    """
    return type(value).__name__ == "Entry"


def way_out(name: str) -> str:
    """Return, for messages, how to write a function of NumPy or `passkit.ops` with expressions.

    Where there is no way, it says so, with the nearest names. ``name`` is the function's name.
    """
    from passkit import ast

    formula = FORMULAS.get(name)
    name_in_ast = SPELLINGS.get(name, name)
    if formula is None and name_in_ast in ast.__all__ and callable(getattr(ast, name_in_ast)):
        formula = f"pk.ast.{name_in_ast}(…)"
    if formula is not None:
        return f"write {formula}"
    if name in REDUCTIONS:
        return "an expression is one element; FReduce and FScan describe reductions and scans"
    functions = [n for n in ast.__all__ if n in ast.FUNCTIONS or n in ast.INTEGER_FUNCTIONS]
    return f"pk.ast has no {name}: {nearest(name, functions)}"


def ufunc(function: np.ufunc, method: str, inputs: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """Return the result of the operator that a ufunc implements, for expressions and scalars.

    Args:
        function: the ufunc.
        method: the name of its method; only ``"__call__"`` is allowed.
        inputs: its inputs.
        options: its keyword arguments; none are allowed.

    Raises: DTypeError for other ufuncs, for arrays with axes, for methods such as reduce, and for
    options; what the operator raises.
    """
    name = function.__name__
    arrays = [x for x in inputs if isinstance(x, np.ndarray) and x.ndim]
    if arrays:
        raise DTypeError(
            f"np.{name} of an expression and {shown(arrays[0])}: an expression is one element; "
            "give the operator the array as another input"
        )
    if method != "__call__" or options:
        more = f".{method}" if method != "__call__" else f" with {', '.join(options)}"
        raise DTypeError(f"np.{name}{more} cannot take an expression; {way_out('sum')}")
    numbers = (np.generic, np.ndarray)
    if name in OPERATORS:
        return OPERATORS[name](*(x.item() if isinstance(x, numbers) else x for x in inputs))
    refuse(f"np.{name}", name)


def refuse(call: str, name: str) -> NoReturn:
    """Raise a DTypeError for a call that needs a value, with what to write instead.

    ``call`` is the call as messages show it, ``name`` the function's name.
    """
    raise DTypeError(
        f"{call} cannot take an expression, which has no value before the kernel runs; "
        f"{way_out(name)}"
    )


def needs_value(call: str, example: str) -> NoReturn:
    """Raise a DTypeError for a conversion that needs a value.

    ``call`` is the conversion, such as ``float(x)``, ``example`` what to write instead.
    """
    raise DTypeError(
        f"{call} cannot take an expression, which has no value before the kernel runs; {example}"
    )
