"""PyTorch's symbolic integers as passkit's sizes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import sympy
import torch
from attrs import field, frozen
from torch.fx import GraphModule
from torch.utils._sympy.functions import CleanDiv, FloorDiv, Max, Mod, PythonMod
from torch.utils._sympy.printers import PythonPrinter
from torch.utils._sympy.symbol import SymT, symbol_is_type
from torch.utils._sympy.value_ranges import ValueRanges, bound_sympy

from passkit.errors import ShapeError
from passkit.frontends.torch.errors import UnsupportedNodeError
from passkit.values.size import Extent, Size, evaluate


@frozen
class ComputedSize:
    """A size that is no polynomial of symbols, such as a maximum: a symbol of its own.

    Attributes:
        name: the name of the symbol.
        code: an expression in Python of other symbols.
    """

    name: str
    code: str

    def value(self, symbols: Mapping[str, int]) -> int:
        """Return the value of the size, for the values of the other symbols by name."""
        return int(eval(self.code, {"math": math, "torch": torch}, dict(symbols)))


@frozen
class GraphSymbols:
    """The symbols of a graph: their signs and example values.

    Attributes:
        signed: those of integer arguments that may be negative.
        hints: the values that the graph was traced with, for whose signs and order it holds.
        ranges: the values that each may have, by symbol.
        computed: the sizes that `extent_of` met and made a symbol of, by expression; None where
            nobody could compute them for a call.
    """

    signed: frozenset[str] = frozenset()
    hints: dict[str, int] = field(factory=dict)
    ranges: Mapping[sympy.Symbol, ValueRanges[Any]] = field(factory=dict)
    computed: dict[sympy.Expr, ComputedSize] | None = None


_NOTHING = GraphSymbols()
_symbols: ContextVar[GraphSymbols] = ContextVar("_symbols", default=_NOTHING)
"""The symbols of the graph that is being imported."""


def signed_parts(name: str) -> tuple[str, str]:
    """Return the names of two symbols, 0 or more, whose difference is a symbol with a sign."""
    return f"{name}_above", f"{name}_below"


def values_of_parts(name: str, value: int) -> dict[str, int]:
    """Return the values of the `signed_parts` of a symbol with a value."""
    above, below = signed_parts(name)
    return {above: max(value, 0), below: max(-value, 0)}


def symbols_of_graph(module: GraphModule) -> GraphSymbols:
    """Return what is known of the symbols of a graph.

    Symbols that are the extent of a tensor argument have no sign, nor have lengths of ragged axes.
    """
    fakes = [x.meta.get("val") for x in module.graph.nodes if x.op == "placeholder"]
    environment = _environment(module)
    if environment is None:
        return _NOTHING
    tensors = [x for x in fakes if isinstance(x, torch.Tensor)]
    extents = {n.node.expr for x in tensors for n in x.shape if isinstance(n, torch.SymInt)}
    signed: set[str] = set()
    for x in fakes:
        if isinstance(x, torch.SymInt) and x.node.expr not in extents:
            values = environment.var_to_range.get(x.node.expr)
            if values is not None and values.lower < 0:
                signed.add(str(x.node.expr))
    hints = {str(x): int(n) for x, n in environment.backed_var_to_val.items() if n.is_Integer}
    for name in signed & hints.keys():
        hints.update(values_of_parts(name, hints[name]))
    return GraphSymbols(frozenset(signed), hints, dict(environment.var_to_range), {})


@contextmanager
def known_symbols(symbols: GraphSymbols) -> Iterator[None]:
    """Let `extent_of` and `hint_of` use what is known of the symbols of a graph.

    `extent_of` writes signed symbols as differences of their `signed_parts`.
    """
    token = _symbols.set(symbols)
    try:
        yield
    finally:
        _symbols.reset(token)


def hint_of(extent: Extent) -> int:
    """Return the value of an extent that the graph was traced with, which is being imported.

    Raises: UnsupportedNodeError for an extent that only a call computes.
    """
    try:
        return evaluate(extent, _symbols.get().hints)
    except ShapeError:
        raise UnsupportedNodeError(f"the value of {extent} is not known before a call") from None


def _environment(module: GraphModule) -> Any:
    """Return what PyTorch knows of the symbols of a graph; None for a graph without any."""
    fakes = [x.meta.get("val") for x in module.graph.nodes]
    mode = torch._guards.detect_fake_mode([x for x in fakes if isinstance(x, torch.Tensor)])
    return None if mode is None else mode.shape_env


def extent_of(value: Any) -> Extent:
    """Return a PyTorch integer, plain or symbolic, as a passkit extent.

    Raises: UnsupportedNodeError for an expression that may be negative, or cannot be computed.
    """
    if isinstance(value, torch.SymInt):
        return extent_of_expression(value.node.expr)
    return int(value)


def extent_of_expression(expression: sympy.Expr) -> Extent:
    """Return a sympy expression of symbolic sizes as a passkit extent.

    Raises: UnsupportedNodeError for an expression that may be negative, or cannot be computed.
    """
    match expression:
        case sympy.Integer():
            return int(expression)
        case sympy.Symbol():
            name = str(expression)
            if name in _symbols.get().signed:
                above, below = map(Size.symbol, signed_parts(name))
                return above - below
            return Size.symbol(name)
        case sympy.Add():
            return sum((extent_of_expression(x) for x in expression.args), start=0)
        case sympy.Mul():
            product: Extent = 1
            for x in expression.args:
                product = product * extent_of_expression(x)
            return product
        case sympy.Pow() if expression.exp.is_Integer and expression.exp > 0:
            product = 1
            for _ in range(int(expression.exp)):
                product = product * extent_of_expression(expression.base)
            return product
        case FloorDiv() | CleanDiv():
            numerator, denominator = expression.args
            return extent_of_expression(numerator) // extent_of_expression(denominator)
        case Mod() | PythonMod():
            number, modulus = expression.args
            return _remainder(extent_of_expression(number), extent_of_expression(modulus))
    return _computed_size(expression)


def _computed_size(expression: sympy.Expr) -> Size:
    """Return the symbol of a size that is more than arithmetic of integers.

    Raises: UnsupportedNodeError where it may be negative, or is needed without a call.
    """
    symbols = _symbols.get()
    if symbols.computed is None:
        raise UnsupportedNodeError(
            f"the size {expression} is no sum, product, quotient or remainder"
        )
    computed = symbols.computed.get(expression)
    if computed is None:
        if not bound_sympy(expression, dict(symbols.ranges)).lower >= 0:
            raise UnsupportedNodeError(f"the size {expression} may be negative")
        code = PythonPrinter().doprint(expression)
        computed = ComputedSize(f"computed_{len(symbols.computed)}", code)
        symbols.computed[expression] = computed
        if all(str(x) in symbols.hints for x in expression.free_symbols):
            symbols.hints[computed.name] = computed.value(symbols.hints)
    return Size.symbol(computed.name)


def _remainder(number: Extent, modulus: Extent) -> Extent:
    """Return the remainder of a quotient that is rounded down."""
    return number - number // modulus * modulus


def stride_of(value: Any) -> Extent:
    """Return a stride of a tensor as a passkit extent.

    PyTorch writes the stride of an axis as ``Max(1, n)``, so that it is not 0 in empty tensors; it
    does not matter there.

    Raises: UnsupportedNodeError for an expression that may be negative, or cannot be computed.
    """
    if not isinstance(value, torch.SymInt):
        return int(value)
    expression = value.node.expr
    plain = expression.replace(
        lambda x: isinstance(x, (sympy.Max, Max)) and sympy.Integer(1) in x.args,
        lambda x: x.func(*(a for a in x.args if a != 1)),
    )
    return extent_of_expression(plain)


def memory_order(fake: torch.Tensor) -> tuple[int, ...]:
    """Return the axes of a tensor in the order in which they lie in memory, the slowest first."""
    return tuple(sorted(range(fake.dim()), key=lambda axis: (-_hint(fake.stride(axis)), axis)))


def may_overlap(fake: torch.Tensor) -> bool:
    """Return whether elements of a tensor may lie in the same place of memory, by its strides."""
    reach = 0
    for axis in reversed(memory_order(fake)):
        extent, stride = _hint(fake.shape[axis]), _hint(fake.stride(axis))
        if extent > 1 and stride <= reach:
            return True
        reach += max(extent - 1, 0) * stride
    return False


def float_guard(module: GraphModule) -> str:
    """Return a condition on float arguments that a graph was traced for, "" if there is none.

    PyTorch replaces such arguments by their values where an operator takes only numbers.
    """
    environment = _environment(module)
    for guard in environment.guards if environment is not None else ():
        if any(symbol_is_type(x, SymT.FLOAT) for x in guard.expr.free_symbols):
            return str(guard.expr)
    return ""


def _hint(value: Any) -> int:
    """Return an integer, for a symbolic one that of the tensors that are compiled for."""
    return int(value.node.hint) if isinstance(value, torch.SymInt) else int(value)
