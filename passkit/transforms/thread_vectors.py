"""Vectors of threads: loops whose threads compute with consecutive elements as one vector.

For devices whose threads have vectors of their own, such as CPUs. Vectors take the elements that
are left, too: so all elements are computed by the same functions, which may round otherwise than
those of single numbers. A loop that has something without a spelling for vectors has none at all.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from attrs import frozen

from passkit.ast import Binary, Call, Cast, Const, Expr, Load, Select, Unary, Var
from passkit.ast.stage import Fold, Let, Loop, Statement, Store
from passkit.ast.walk import children, loads, variables
from passkit.ir.features import AccessFeatures
from passkit.ir.threads import AccessArray, VectorThreadFor, term_of, total_of
from passkit.transforms.partial_results import partial_variable
from passkit.transforms.thread_accesses import (
    Agreement,
    BufferElement,
    consecutive_elements,
    plain_statements,
)
from passkit.transforms.vector_shape import SLOW_FUNCTIONS, computed_parts
from passkit.values import dtype as dt

COMPARISONS = frozenset(["<", "<=", ">", ">=", "==", "!="])
OF_BOOLS = frozenset(["&", "|", "^"])
EXTREMES = frozenset(["maximum", "minimum"])
MAX_WIDTH = 16
"""Elements of a vector, at most."""


def vector_count(
    loop: Loop,
    statements: Iterable[Statement],
    arrays: Sequence[AccessArray],
    features: AccessFeatures,
) -> int:
    """Return how many elements the vectors of a loop have; 0 where it has none.

    Args:
        loop: the loop over elements.
        statements: its statements, see `plain_statements`.
        arrays: the elements of buffers that are next to each other.
        features: the vector accesses of the language.
    """
    own = _VectorStatements.of(loop, statements, arrays, features)
    if not arrays or not all(map(own.has_form, own.statements)):
        return 0
    sizes = [a.dtype.nbytes for a in arrays]
    for s in own.statements:
        parts = (x for e in _values(s) for x in computed_parts(e))
        sizes += [x.dtype.nbytes for x in parts if own.varies(x)]
    count = min(features.nbytes // max(sizes), MAX_WIDTH)
    is_short = False
    if isinstance(loop.start, Const) and isinstance(loop.stop, Const):
        is_short = int(loop.stop.value) - int(loop.start.value) < count
    return 0 if count < 2 or is_short else count


def gains_by_vectors(statements: Iterable[Statement]) -> bool:
    """Return whether statements gain by vectors: they reduce, or call more than an instruction.

    Of other loops a compiler makes vectors by itself, and better.
    """
    return any(
        isinstance(s, Fold)
        or any(
            isinstance(x, Call) and x.name in SLOW_FUNCTIONS
            for e in _values(s)
            for x in computed_parts(e)
        )
        for s in statements
    )


def vector_thread_loop(
    loop: Loop,
    statements: Iterable[Statement],
    features: AccessFeatures | None,
    agreement: Agreement | None,
) -> VectorThreadFor | None:
    """Return a loop whose threads compute with vectors; None where it has something else.

    Args:
        loop: the loop over elements.
        statements: its statements.
        features: the vector accesses of the language.
        agreement: what the loop has in common with others; None for nothing.
    """
    if features is None or features.vector_functions is None:
        return None
    plain = plain_statements(statements)
    arrays = consecutive_elements(loop, plain)
    if arrays is None or (agreement is not None and not agreement.count):
        return None
    if agreement is None and not gains_by_vectors(plain):
        return None
    count = vector_count(loop, plain, arrays, features) if agreement is None else agreement.count
    if not count:
        return None
    own = _VectorStatements.of(loop, plain, arrays, features)
    values = [e for s in own.statements for e in _values(s)]
    return VectorThreadFor(
        loop,
        count,
        tuple(arrays),
        own.varying,
        any(_is_read(loop.var, e) for e in values),
        tuple(partial_variable(s) for s in own.statements if isinstance(s, Fold)),
        own.statements,  # type: ignore[arg-type]
    )


def _values(s: Statement) -> list[Expr]:
    """Return the expressions that a statement computes."""
    values: list[Expr] = [s.value]  # type: ignore[union-attr]
    return [*values, s.combine] if isinstance(s, Fold) else values


@frozen
class _VectorStatements:
    """The statements of a loop, and which of their values are vectors.

    Attributes:
        statements: the statements.
        elements: the elements of buffers that are vectors.
        varying: the variables that are vectors.
        number: the loop's variable.
        functions: the functions of vectors.
    """

    statements: tuple[Statement, ...]
    elements: frozenset[BufferElement]
    varying: frozenset[Var]
    number: Var
    functions: frozenset[str]

    @classmethod
    def of(
        cls,
        loop: Loop,
        statements: Iterable[Statement],
        arrays: Iterable[AccessArray],
        features: AccessFeatures,
    ) -> _VectorStatements:
        """Return those of a loop, of which some elements of buffers are arrays."""
        kept, varying = tuple(statements), {loop.var}
        for s in kept:
            if isinstance(s, Fold):
                varying |= {total_of(s), term_of(s), *variables(s.combine)}
            elif isinstance(s, Let) and not varying.isdisjoint(variables(s.value)):
                varying.add(s.var)
        elements = frozenset((a.buffer, a.index) for a in arrays)
        assert features.vector_functions is not None
        return cls(kept, elements, frozenset(varying), loop.var, features.vector_functions)

    def varies(self, x: Expr) -> bool:
        """Return whether a value differs from element to element."""
        return not self.varying.isdisjoint(variables(x))

    def has_form(self, s: Statement) -> bool:
        """Return whether a statement has a form of vectors."""
        match s:
            case Let():
                return self._is_vector(s.value)
            case Store():
                return (s.buffer, s.index) in self.elements and self._is_vector(s.value)
            case Fold():
                reduces = s.var.dtype.is_float or s.var.dtype is dt.int64
                return reduces and self._is_vector(s.value) and self._is_vector(s.combine)
        return False

    def _is_vector(self, x: Expr, is_chosen: bool = False) -> bool:
        """Return whether an expression has a form of vectors, or is one number for all.

        With ``is_chosen`` it is a value of a choice, computed for some elements only.
        """
        if not self.varies(x):
            return not (is_chosen and any(True for _ in loads(x)))
        if dt.is_narrow(x.dtype):
            return False
        match x:
            case Load():
                return (x.buffer, x.index) in self.elements
            case Var():
                return True
            case Unary(op, a):
                has_form = x.dtype.is_float if op == "-" else x.dtype is dt.bool_
                return has_form and self._is_vector(a, is_chosen)
            case Binary(op, a, b):
                has_form = op in COMPARISONS and a.dtype is not dt.bool_
                has_form |= op in OF_BOOLS and x.dtype is dt.bool_
                has_form |= op in ("+", "-", "*", "/") and x.dtype.is_float
                has_form |= op in ("+", "-", "*") and self._is_number(x)
                both = self._is_vector(a, is_chosen) and self._is_vector(b, is_chosen)
                return has_form and both
            case Call(name, args):
                has_form = x.dtype.is_float and name in self.functions
                has_form |= x.dtype is dt.int64 and name in EXTREMES
                return has_form and all(self._is_vector(a, is_chosen) for a in args)
            case Cast(a):
                return x.dtype.is_float and self._is_vector(a, is_chosen)
            case Select(condition, a, b):
                has_form = x.dtype is not dt.bool_ and self._is_vector(condition, is_chosen)
                return has_form and self._is_vector(a, True) and self._is_vector(b, True)
        return False

    def _is_number(self, x: Expr) -> bool:
        """Return whether a value is made of the element's number and of what all share."""
        if x.dtype is not dt.int64:
            return False
        if not self.varies(x) or x == self.number:
            return True
        return isinstance(x, Binary) and all(map(self._is_number, children(x)))


def _is_read(var: Var, x: Expr) -> bool:
    """Return whether a variable is a value in an expression, not only a part of an index."""
    if isinstance(x, Load):
        return False
    return x == var or any(_is_read(var, child) for child in children(x))
