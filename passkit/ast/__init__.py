"""The kernel language of operators: scalar expressions, dialect functions and reductions.

An operator's attribute functions, such as FCodeGen and FElement, describe one element of a result
as an expression built here. Indices are int64 expressions of the same kind, which
`passkit.ast.index` simplifies.

Public names are imported when they are first used. Operator modules can thus import this package
at the top, and a warm start, which builds no expressions, does not pay for it.
"""

from __future__ import annotations

from importlib import import_module

TYPE_CHECKING = False  # known to type checkers; importing typing costs more than this package
if TYPE_CHECKING:
    from typing import Any

# module: the public names that it defines
_MODULES = {
    "passkit.ast.expr": (
        "Binary Call Cast Const Expr Fixed Load Operand Read Select SizeOf Unary Var binary "
        "call cast compare const equal is_const lift not_equal size_of where"
    ),
    "passkit.ast.folds": ("Chunks Contract Convolution Reduce Scan is_sum left right"),
    "passkit.ast.functions": (
        "FUNCTIONS INTEGER_FUNCTIONS WORDS VARIANTS exp exp2 expm1 log log2 log10 log1p sin cos "
        "tan sinh cosh tanh asin acos atan asinh acosh atanh erf erfc sigmoid sqrt rsqrt floor "
        "ceil trunc rint cbrt lgamma tgamma digamma trigamma erfinv erfcinv pow atan2 hypot "
        "fmod copysign nextafter ldexp igamma igammac zeta betainc fma abs maximum minimum "
        "left_shift right_shift gcd whole_power"
    ),
}
_NAMES = {name: module for module, names in _MODULES.items() for name in names.split()}

__all__ = sorted([*_NAMES, "dt"])  # noqa: PLE0604, RUF100


def __getattr__(name: str) -> Any:
    """Import a public name from the module that defines it; ``dt`` is `passkit.values.dtype`.

    Raises: AttributeError for any other name.
    """
    if name == "dt":
        value = import_module("passkit.values.dtype")
    elif name in _NAMES:
        value = getattr(import_module(_NAMES[name]), name)
    else:
        raise AttributeError(f"module 'passkit.ast' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """Return the public names, sorted."""
    return list(__all__)
