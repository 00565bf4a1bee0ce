"""Calling the rules of operators: the functions that FCodeGen, FExpand and other attributes hold.

Whoever needs a rule's answer asks for it here. A rule that takes other parameters than its
attribute declares, or gives something else, is refused where it is called, with what was expected
and what came; errors from inside of a rule pass through as they are.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from passkit.errors import RuleError
from passkit.graph.op import (
    FCodeGen,
    FCompute,
    FContract,
    FElement,
    FExpand,
    FGradient,
    FInferShape,
    FInferShapeBack,
    FInferType,
    FListInputNames,
    FReduce,
    FScan,
    Op,
)
from passkit.graph.registry import Table
from passkit.values.arguments import shown
from passkit.values.dtype import DType
from passkit.values.size import Extent, Shape, Size

if TYPE_CHECKING:  # Contract, Expr and their like take a third of a warm start
    from passkit.ast import Contract, Expr, Reduce, Scan
    from passkit.ast.folds import Convolution
    from passkit.graph.node import Entry, Node


def call(column: Table, node: Node, *arguments: Any) -> Any:
    """Call the rule that ``node``'s operator has in ``column`` and return its answer.

    Raises: RuleError where the rule cannot be called with so many arguments.
    """
    assert node.op is not None
    rule = column.get(node.op.name)
    try:
        return rule(*arguments)
    except TypeError as error:
        _check_arity(column, rule, node.where, len(arguments), error)
        raise


def call_of(column: Table, name: str, where: str, *arguments: Any) -> Any:
    """Call the rule of the operator called ``name``; messages call it ``where``.

    Raises: RuleError where the rule cannot be called with so many arguments.
    """
    rule = column.get(name)
    try:
        return rule(*arguments)
    except TypeError as error:
        _check_arity(column, rule, where, len(arguments), error)
        raise


def _check_arity(
    column: Table, rule: Callable[..., Any], where: str, count: int, error: TypeError
) -> None:
    """Raises: RuleError where ``error`` is that ``rule`` does not take ``count`` arguments."""
    if _takes(rule, count, error):
        return
    names = ", ".join(parameter_names(column, count))
    raise RuleError(
        f"{column.key} of {where} is called with {count} argument(s), ({names}), and its function "
        f"takes {_parameters(rule)}; give it a parameter for each: "
        f"set_attr({column.key!r}, lambda {names}: …)"
    ) from None


def refuse(column: Table, node: Node, need: str, got: Any, way_out: str = "") -> NoReturn:
    """Raises: RuleError saying what a rule must give, what it gave, and what to write instead."""
    refuse_of(column, node.where, need, got, way_out)


def refuse_of(column: Table, where: str, need: str, got: Any, way_out: str = "") -> NoReturn:
    """Raises: RuleError, as `refuse`, of an operator that messages call ``where``."""
    if way_out == "" and got is None:
        way_out = "does its function return what it computes?"
    more = f"; {way_out}" if way_out else ""
    raise RuleError(f"{column.key} of {where} must give {need}, got {shown(got)}{more}")


def _takes(rule: Callable[..., Any], count: int, error: TypeError) -> bool:
    """Whether a rule can be called with so many arguments, so that ``error`` is from inside it."""
    try:
        inspect.signature(rule).bind(*range(count))
    except TypeError:
        return False
    except ValueError:  # a function of C without a signature
        trace = error.__traceback__
        return trace is None or trace.tb_next is not None
    return True


def _parameters(rule: Callable[..., Any]) -> str:
    """The parameters of a rule as messages show them."""
    try:
        return str(inspect.signature(rule)).partition(" ->")[0]
    except (TypeError, ValueError):
        return "others"


def parameter_names(column: Table, count: int) -> list[str]:
    """Names for ``count`` arguments of a rule, after the signature that its attribute declares.

    The signature ``(node, *x)`` gives ``node, x0, x1`` for three arguments, ``node, x`` for two.
    """
    declared = re.match(r"\(([^)]*)\)", column.signature)
    names: list[str] = []
    for name in declared[1].split(", ") if declared else ():
        if not name.startswith("*"):
            names.append(name)
            continue
        rest = count - len(names)
        base = name[1:]
        names += [base] if rest == 1 else [f"{base}{k}" for k in range(rest)]
    return names[:count] + [f"a{k}" for k in range(len(names), count)]


def _each(node: Node, what: str) -> str:
    """How messages say what a rule must give for the results of a node."""
    assert node.op is not None
    count = node.op.num_outputs
    if count == 1:
        return what
    return f"a tuple{f' of {count}' if count > 0 else ''}, {what} for each result"


def _is_short(node: Node, count: int) -> bool:
    """Whether a rule that gave ``count`` values left out a result, or has too many."""
    assert node.op is not None
    return node.op.num_outputs not in (count, -1)


def code(node: Node, *x: Expr) -> tuple[Expr, ...]:
    """The expression of one element of each result, by FCodeGen, given those of the inputs.

    Raises: RuleError where the rule gives something else.
    """
    return _expressions(FCodeGen, node, call(FCodeGen, node, node, *x))


def element(node: Node, index: Sequence[Expr], readers: Sequence[Any]) -> tuple[Expr, ...]:
    """The expression of each result at ``index``, by FElement, given readers of the inputs.

    Raises: RuleError where the rule gives something else.
    """
    return _expressions(FElement, node, call(FElement, node, node, index, *readers))


@cache
def _expression_type() -> type[Expr]:
    """The class of expressions, which is imported once a rule may have given one."""
    from passkit.ast import Expr

    return Expr


def _expressions(column: Table, node: Node, answer: Any) -> tuple[Expr, ...]:
    """The expressions that a rule gives, one for each result."""
    assert node.op is not None
    Expr = _expression_type()  # noqa: N806
    if isinstance(answer, Expr) and node.op.num_outputs == 1:
        return (answer,)
    many = tuple(answer) if isinstance(answer, (tuple, list)) else (answer,)
    need = _each(node, "an expression (pk.ast)")
    for x in many:
        if not isinstance(x, Expr):
            number = isinstance(x, (bool, int, float, np.generic))
            way_out = f"pk.ast.const({x}, dtype) makes a number one" if number else ""
            if type(x).__name__ == "Entry":
                way_out = f"it computes with pk.ast, on elements; on entries that is {FExpand.key}"
            refuse(column, node, need, x, way_out)
    if _is_short(node, len(many)):
        refuse(column, node, need, answer, f"it gave {len(many)}")
    return many


def reduce_of(node: Node) -> Reduce | None:
    """The reduction that an operator is, by FReduce; None for another operator.

    Raises: RuleError where the rule gives something else.
    """
    return _fold(FReduce, node)  # type: ignore[no-any-return]


def scan_of(node: Node) -> Scan | None:
    """The scan that an operator is, by FScan; None for another operator.

    Raises: RuleError where the rule gives something else.
    """
    return _fold(FScan, node)  # type: ignore[no-any-return]


def contraction_of(node: Node) -> Contract | Convolution | None:
    """The product or convolution that an operator is, by FContract; None for another operator.

    Raises: RuleError where the rule gives something else.
    """
    return _fold(FContract, node)  # type: ignore[no-any-return]


def _fold(column: Table, node: Node) -> Any:
    if node.op is None or node.op.name not in column.rows:
        return None
    from passkit.ast import folds

    kinds = {
        "FReduce": (folds.Reduce,),
        "FScan": (folds.Scan,),
        "FContract": (folds.Contract, folds.Convolution),
    }[column.key]
    answer = call(column, node, node)
    if not isinstance(answer, kinds):
        refuse(column, node, f"a pk.ast.{kinds[0].__name__}", answer)
    return answer


def shapes(node: Node, given: Sequence[Shape | None]) -> Sequence[Shape | None]:
    """The shape of each result by FInferShape, given those of the inputs; None where unknown.

    Raises: RuleError where the rule gives something else.
    """
    assert node.op is not None
    answer = call(FInferShape, node, node, *given)
    if answer is not None and node.op.num_outputs == 1 and _is_plain(answer):
        return (answer,)
    nested = isinstance(answer, tuple) and any(s is None or isinstance(s, tuple) for s in answer)
    many = answer if nested else (answer,)
    if _is_short(node, len(many)):
        refuse(FInferShape, node, _each(node, "a shape or None"), answer, f"it gave {len(many)}")
    return tuple(_shape(FInferShape, node, s, answer) for s in many)


def shapes_back(
    node: Node, given: Sequence[Shape | None], outs: Sequence[Shape | None]
) -> Sequence[Shape | None]:
    """The shape of each input by FInferShapeBack; None where unknown.

    Raises: RuleError where the rule gives something else.
    """
    answer = call(FInferShapeBack, node, node, list(given), list(outs))
    if not isinstance(answer, (tuple, list)) or len(answer) != len(given):
        need = f"a sequence of {len(given)}, a shape or None for each input"
        refuse(FInferShapeBack, node, need, answer)
    return [_shape(FInferShapeBack, node, s, answer) for s in answer]


def _shape(column: Table, node: Node, shape: Any, answer: Any) -> Shape | None:
    """A shape that a rule gives, with Python's numbers in place of NumPy's."""
    if shape is None:
        return None
    if not isinstance(shape, tuple):
        one = isinstance(shape, (int, np.integer, Size))
        way_out = f"({shape},) is the shape of one axis" if one else "write it as a tuple"
        is_list = isinstance(shape, list)
        refuse(column, node, "a shape (a tuple of extents) or None", answer,
               way_out if one or is_list else "")
    if _is_plain(shape):
        return shape
    return tuple(_extent(column, node, n, answer) for n in shape)


def _is_plain(shape: Any) -> bool:
    """Whether a value is a shape of Python's whole numbers and sizes."""
    if type(shape) is not tuple:
        return False
    for n in shape:  # noqa: SIM110 – a loop, since each node that is answer comes here
        if not (type(n) is Size or (type(n) is int and n >= 0)):
            return False
    return True


def _extent(column: Table, node: Node, n: Any, answer: Any) -> Extent:
    if isinstance(n, Size):
        return n
    if isinstance(n, (int, np.integer)) and not isinstance(n, bool) and n >= 0:
        return int(n)
    refuse(
        column,
        node,
        "a shape of extents (whole numbers from 0 on, or Size)",
        answer,
        f"{shown(n)} is none; an unknown extent is pk.Size, an unknown shape None",
    )


def dtypes(node: Node, given: Sequence[DType]) -> Sequence[DType]:
    """The dtype of each result by FInferType, given those of the inputs.

    One dtype stands for those of all results.

    Raises: RuleError where the rule gives something else.
    """
    assert node.op is not None
    answer = call(FInferType, node, node, *given)
    if isinstance(answer, DType):
        return (answer,) * max(1, node.op.num_outputs)
    many = answer if isinstance(answer, tuple) else (answer,)
    for dtype in many:
        if not isinstance(dtype, DType):
            way_out = ""
            if isinstance(dtype, (str, type, np.dtype)):
                way_out = "pk.ast.dt.dtype_of(…) makes one of a name"
            refuse(FInferType, node, _each(node, "a DType, such as pk.ast.dt.float32"), answer,
                   way_out)
    if _is_short(node, len(many)):
        refuse(FInferType, node, _each(node, "a DType"), answer, f"it gave {len(many)}")
    return many


def expansion(node: Node, inputs: Sequence[Entry]) -> tuple[Entry, ...] | None:
    """The entries that take the place of a node's results, by FExpand; None where it declines.

    Raises: RuleError where the rule gives something else.
    """
    answer = call(FExpand, node, node, *inputs)
    if answer is None:
        return None
    heads = entries_of(FExpand, node, answer, _each(node, "an entry or None"))
    if _is_short(node, len(heads)):
        refuse(FExpand, node, _each(node, "an entry"), answer, f"it gave {len(heads)}")
    return heads


def entries_of(column: Table, node: Node, answer: Any, need: str) -> tuple[Entry, ...]:
    """The entries that a rule gives, one or a sequence of them.

    Raises: RuleError where it gives something else.
    """
    from passkit.graph.node import Entry

    many = tuple(answer) if isinstance(answer, (tuple, list)) else (answer,)
    for e in many:
        if not isinstance(e, Entry):
            refuse(column, node, need, answer, _as_entry(e))
    return many


def _as_entry(value: Any) -> str:
    """How to make an entry of what a rule gave in its place."""
    from passkit.ast import Expr

    if isinstance(value, (bool, int, float, np.generic, np.ndarray)):
        return "pk.constant(…) makes an entry of an array or number"
    if isinstance(value, Expr):
        return f"expressions (pk.ast) are {FCodeGen.key}'s; entries are computed with by pk.ops"
    return ""


def entry(column: Table, node: Node, answer: Any) -> Entry | None:
    """The entry that a rule gives, or None.

    Raises: RuleError where it gives something else.
    """
    from passkit.graph.node import Entry

    if answer is not None and not isinstance(answer, Entry):
        refuse(column, node, "an entry or None", answer, _as_entry(answer))
    return answer


def gradient(node: Node, dys: Sequence[Entry | None]) -> Sequence[Entry | None]:
    """The gradient of each input by FGradient, given those of the results; None where it is 0.

    Raises: RuleError where the rule gives something else.
    """
    from passkit.graph.node import Entry

    answer = call(FGradient, node, node, *dys)
    need = f"a sequence of {len(node.inputs)}, an entry or None for each input"
    if isinstance(answer, Entry):
        refuse(FGradient, node, need, answer, "put it into a list: [dx]")
    if not isinstance(answer, (tuple, list)):
        refuse(FGradient, node, need, answer)
    if len(answer) != len(node.inputs):
        refuse(FGradient, node, need, answer, f"it gave {len(answer)}")
    for flow in answer:
        if flow is not None and not isinstance(flow, Entry):
            refuse(FGradient, node, need, answer, _as_entry(flow) or "None is a gradient of 0")
    return answer


def input_names(op: Op, params: Mapping[str, Any]) -> list[str]:
    """The names of an operator's inputs in a call with ``params``, by FListInputNames.

    Raises: RuleError where the rule gives something else.
    """
    where = f"op {op.name}"
    answer = call_of(FListInputNames, op.name, where, params)
    if not isinstance(answer, (tuple, list)) or not all(isinstance(n, str) for n in answer):
        refuse_of(FListInputNames, where, "a sequence of names", answer)
    return list(answer)


def arrays(node: Node, answer: Any) -> list[Any]:
    """The array of each result that FCompute gave: one array, or a sequence of them.

    Raises: RuleError where it gave something else.
    """
    many = list(answer) if isinstance(answer, (tuple, list)) else [answer]
    if _is_short(node, len(many)):
        refuse(FCompute, node, _each(node, "an array"), answer, f"it gave {len(many)}")
    for array in many:
        if array is None or np.asarray(array).dtype.kind == "O":
            refuse(FCompute, node, _each(node, "an array"), array)
    return many
