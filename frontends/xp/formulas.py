"""Formulas in text: expressions of the kernel language in Python's syntax, for `xp.kernel`."""

from __future__ import annotations

import ast as syntax
import operator
from collections.abc import Callable, Sequence
from typing import Any

from passkit import ast
from passkit.errors import ParseError, PasskitError, nearest

BINARY: dict[type, Callable[[Any, Any], Any]] = {
    syntax.Add: operator.add,
    syntax.Sub: operator.sub,
    syntax.Mult: operator.mul,
    syntax.Div: operator.truediv,
    syntax.FloorDiv: operator.floordiv,
    syntax.Mod: operator.mod,
    syntax.Pow: operator.pow,
    syntax.BitAnd: operator.and_,
    syntax.BitOr: operator.or_,
    syntax.BitXor: operator.xor,
}


def _negated(x: Any) -> Any:
    """Return ``not x`` for a Python number, and the inverse of an expression."""
    return not x if isinstance(x, (int, float)) else operator.invert(x)


UNARY: dict[type, Callable[[Any], Any]] = {
    syntax.USub: operator.neg,
    syntax.UAdd: operator.pos,
    syntax.Invert: operator.invert,
    syntax.Not: _negated,
}
COMPARISONS: dict[type, Callable[[Any, Any], Any]] = {
    syntax.Lt: operator.lt,
    syntax.LtE: operator.le,
    syntax.Gt: operator.gt,
    syntax.GtE: operator.ge,
    syntax.Eq: ast.equal,
    syntax.NotEq: ast.not_equal,
}
FUNCTIONS = {name: getattr(ast, name) for name in (*ast.FUNCTIONS, "where")}
"""The functions that formulas may call."""


class TextFormula:
    """A formula: assignments to names, then the result, or several results with commas.

    Args:
        where: the function and its name, for messages.
        text: the statements, on lines of their own or separated by semicolons.

    Attributes:
        operands: the names that it reads without assigning them, in the order of their appearance.
        num_results: the number of its results.

    Raises: ParseError if the text is no Python, does not end with a result, or has a statement that
        does not assign to one name.
    """

    def __init__(self, where: str, text: str) -> None:
        self._where = where
        try:
            body = syntax.parse(text.strip()).body
        except SyntaxError as error:
            raise ParseError(f"{where}: {error.msg} in {error.text!r}") from None
        last = body[-1] if body else None
        if not isinstance(last, syntax.Expr):
            raise ParseError(f"{where}: a formula ends with its result, got {text!r}")
        self._assignments: list[tuple[str, syntax.expr]] = []
        names: list[str] = []
        assigned: set[str] = set()
        for statement in body[:-1]:
            targets = statement.targets if isinstance(statement, syntax.Assign) else []
            target = targets[0] if len(targets) == 1 else None
            if not isinstance(statement, syntax.Assign) or not isinstance(target, syntax.Name):
                raise ParseError(
                    f"{where}: a statement has the form 'name = expression', got "
                    f"{syntax.unparse(statement)!r}"
                )
            names += [n for n in self._names(statement.value) if n not in assigned]
            assigned.add(target.id)
            self._assignments.append((target.id, statement.value))
        results = last.value
        self._results = results.elts if isinstance(results, syntax.Tuple) else [results]
        self.num_results = len(self._results)
        names += [n for e in self._results for n in self._names(e) if n not in assigned]
        self.operands = tuple(dict.fromkeys(names))

    def _names(self, node: syntax.AST) -> list[str]:
        """Return the names that an expression reads, in order and repeated as they occur.

        The names of functions that are called, and what keyword arguments read, do not count.
        """
        if isinstance(node, syntax.Name):
            return [node.id]
        parts = node.args if isinstance(node, syntax.Call) else syntax.iter_child_nodes(node)
        return [name for part in parts for name in self._names(part)]

    def __call__(self, *operands: Any) -> Any:
        """Return the expression of the result for expressions of the operands.

        It is a tuple of them for several results. There is an operand for each name in
        ``operands``, in this order.

        Raises: ParseError for syntax or functions that no formula has.
        """
        values = dict(zip(self.operands, operands, strict=True))
        for name, expression in self._assignments:
            values[name] = self._value(expression, values)
        results = tuple(self._value(e, values) for e in self._results)
        return results if len(results) > 1 else results[0]

    def _value(self, node: Any, values: dict[str, Any]) -> Any:
        """Return the expression of a syntax node, by the expressions of names in ``values``.

        That of constants alone is a Python number.

        Raises:
            ParseError: it has syntax or functions that no formula has, such as text, attributes and
                keyword arguments, or constants without a value, such as 1 / 0.
            DTypeError, ArgumentError: a function does not take its operands.
        """
        try:
            return self._expression(node, values)
        except PasskitError:
            raise
        except (TypeError, ValueError, ArithmeticError) as error:
            raise ParseError(
                f"{self._where}: {syntax.unparse(node)!r} has no value: {error}"
            ) from None

    def _expression(self, node: Any, values: dict[str, Any]) -> Any:
        """Return the expression of a syntax node, as `_value`.

        Raises: ParseError, what `_value` raises, or the error of Python for constants without a
        value.
        """
        if isinstance(node, syntax.Name):
            return values[node.id]
        if isinstance(node, syntax.Constant) and type(node.value) in (bool, int, float):
            return node.value
        if isinstance(node, syntax.BinOp) and type(node.op) in BINARY:
            return BINARY[type(node.op)](*self._values([node.left, node.right], values))
        if isinstance(node, syntax.UnaryOp):
            return UNARY[type(node.op)](self._value(node.operand, values))
        if isinstance(node, syntax.BoolOp):
            join = operator.and_ if isinstance(node.op, syntax.And) else operator.or_
            first, *rest = self._values(node.values, values)
            for other in rest:
                first = join(first, other)
            return first
        if isinstance(node, syntax.IfExp):
            return ast.where(*self._values([node.test, node.body, node.orelse], values))
        if isinstance(node, syntax.Compare) and all(type(o) in COMPARISONS for o in node.ops):
            return self._comparison(node, values)
        is_call = isinstance(node, syntax.Call) and isinstance(node.func, syntax.Name)
        if is_call and not node.keywords:
            if node.func.id in FUNCTIONS:
                return FUNCTIONS[node.func.id](*self._values(node.args, values))
            raise ParseError(
                f"{self._where}: a formula has no function {node.func.id}; "
                f"{nearest(node.func.id, FUNCTIONS)}"
            )
        raise ParseError(f"{self._where}: a formula cannot contain {syntax.unparse(node)!r}")

    def _values(self, nodes: Sequence[Any], values: dict[str, Any]) -> list[Any]:
        """Return the expressions of syntax nodes, as `_value`, which may raise a ParseError."""
        return [self._value(node, values) for node in nodes]

    def _comparison(self, node: syntax.Compare, values: dict[str, Any]) -> Any:
        """Return the expression of a chain of comparisons, all of which must hold.

        Their operators are among `COMPARISONS`. Raises ParseError as `_value`.
        """
        sides = self._values([node.left, *node.comparators], values)
        result: Any = None
        for k, op in enumerate(node.ops):
            holds = COMPARISONS[type(op)](sides[k], sides[k + 1])
            result = holds if result is None else result & holds
        return result
