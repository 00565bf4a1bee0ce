"""Calls of attribute functions: the functions that operators hold as FCodeGen, FExpand and so on.

Passes, planner and runtime call attribute functions only through this module, which checks the
result. A function that takes other parameters than its attribute declares, or returns something
else, is refused with a RuleError that names the operator, what was expected and what was returned.
Exceptions raised inside an attribute function propagate unchanged.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from passkit import ast  # it imports expressions on use: they take a third of a warm start
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

if TYPE_CHECKING:
    from passkit.ast import Contract, Convolution, Expr, Reduce, Scan
    from passkit.graph.node import Entry
    from passkit.graph.node_view import NodeLike


def call_attribute(table: Table, node: NodeLike, *arguments: Any) -> Any:
    """Call the attribute function of ``node``'s operator and return its unchecked result.

    Args:
        table: the attribute, such as `passkit.graph.op.FExpand`; the operator must have it.
        node: the node, or a view of one; only its operator is used here.
        *arguments: what the attribute function is called with, usually ``node`` first.

    Raises:
        RuleError: The function cannot be called with that number of arguments. Other errors of the
            function propagate unchanged.
    """
    assert node.op is not None
    function = table.get(node.op.name)
    try:
        return function(*arguments)
    except TypeError as error:
        _check_arity(table, function, node.where, len(arguments), error)
        raise


def call_operator_attribute(table: Table, name: str, where: str, *arguments: Any) -> Any:
    """Call an attribute function of the operator called ``name``, for which there is no node.

    Args:
        table: the attribute; the operator must have it.
        name: the operator's name.
        where: the operator, as messages name it.
        *arguments: what the function is called with.

    Returns: The result of the function, unchecked.

    Raises: RuleError where the function cannot be called with that number of arguments. Other
    errors of the function propagate unchanged.
    """
    function = table.get(name)
    try:
        return function(*arguments)
    except TypeError as error:
        _check_arity(table, function, where, len(arguments), error)
        raise


def _check_arity(
    table: Table, function: Callable[..., Any], where: str, count: int, error: TypeError
) -> None:
    """Raise a RuleError if an attribute function has the wrong number of parameters.

    Args:
        table: the attribute.
        function: its function, called with ``count`` arguments.
        where: the operator or node, for the message.
        count: the number of arguments passed.
        error: the TypeError of the call. If it came from inside the function, nothing is raised
            here.
    """
    if _accepts(function, count, error):
        return
    names = ", ".join(parameter_names(table, count))
    raise RuleError(
        f"{table.key} of {where} is called with {count} argument(s), ({names}), and its function "
        f"takes {_parameters(function)}; give it a parameter for each: "
        f"set_attr({table.key!r}, lambda {names}: …)"
    ) from None


def refuse_result(
    table: Table, node: NodeLike, need: str, result: Any, way_out: str = ""
) -> NoReturn:
    """Raise a RuleError: the attribute function of ``node`` must return ``need``.

    Args:
        table: the attribute.
        node: the node that the function was called for.
        need: what it must return, as a phrase.
        result: what it returned.
        way_out: advice that ends the message; for a result of None there is a default.
    """
    refuse_operator_result(table, node.where, need, result, way_out)


def refuse_operator_result(
    table: Table, where: str, need: str, result: Any, way_out: str = ""
) -> NoReturn:
    """Raise a RuleError: the attribute function of an operator must return ``need``.

    Args:
        table: the attribute, whose name begins the message.
        where: the operator, as messages name it.
        need: what the function must return, as a phrase.
        result: what it returned.
        way_out: advice that ends the message; for a result of None there is a default.
    """
    if way_out == "" and result is None:
        way_out = "does its function return what it computes?"
    more = f"; {way_out}" if way_out else ""
    raise RuleError(f"{table.key} of {where} must give {need}, got {shown(result)}{more}")


def _accepts(function: Callable[..., Any], count: int, error: TypeError) -> bool:
    """Return whether ``function`` takes ``count`` arguments, so ``error`` came from inside it.

    For a function without a signature, that is whether the traceback of ``error``, the TypeError of
    calling it, leads into another function.
    """
    try:
        inspect.signature(function).bind(*range(count))
    except TypeError:
        return False
    except ValueError:  # a function of C without a signature
        trace = error.__traceback__
        return trace is None or trace.tb_next is not None
    return True


def _parameters(function: Callable[..., Any]) -> str:
    """Return the parameter list of a function as text, "others" if it has no signature."""
    try:
        return str(inspect.signature(function)).partition(" ->")[0]
    except (TypeError, ValueError):
        return "others"


def parameter_names(table: Table, count: int) -> list[str]:
    """Return names for ``count`` arguments, after the signature that an attribute declares.

    ``table`` is the attribute. Arguments beyond the signature are called a0, a1 and so on by their
    position.

    The signature ``(node, *x)`` gives ``node, x0, x1`` for three arguments, ``node, x`` for two.
    """
    declared = re.match(r"\(([^)]*)\)", table.signature)
    names: list[str] = []
    for name in declared[1].split(", ") if declared else ():
        if not name.startswith("*"):
            names.append(name)
            continue
        rest = count - len(names)
        base = name[1:]
        names += [base] if rest == 1 else [f"{base}{k}" for k in range(rest)]
    return names[:count] + [f"a{k}" for k in range(len(names), count)]


def _for_each_output(node: NodeLike, need: str) -> str:
    """Return ``need``, a phrase for one result, extended unless the operator has one output.

    It then reads "a tuple of 2, … for each result", or "a tuple, …" for any number of outputs.
    """
    assert node.op is not None
    count = node.op.num_outputs
    if count == 1:
        return need
    return f"a tuple{f' of {count}' if count > 0 else ''}, {need} for each result"


def _is_wrong_count(node: NodeLike, count: int) -> bool:
    """Return whether ``count`` values are too few or too many for the outputs of a node.

    It is False for an operator of any number of outputs (-1).
    """
    assert node.op is not None
    return node.op.num_outputs not in (count, -1)


def call_codegen(node: NodeLike, *x: Expr) -> tuple[Expr, ...]:
    """Call FCodeGen: return the expression of one element of each output.

    Args:
        node: a node whose operator has FCodeGen.
        *x: an expression of the element of each input.

    Raises:
        RuleError: The result is not one expression for each output, or the function takes another
            number of arguments. Errors of the function propagate unchanged.
    """
    return _check_expressions(FCodeGen, node, call_attribute(FCodeGen, node, node, *x))


def call_element(node: NodeLike, index: Sequence[Expr], readers: Sequence[Any]) -> tuple[Expr, ...]:
    """Call FElement: return the expression of each output's element at ``index``.

    Args:
        node: a node whose operator has FElement.
        index: an int64 expression for each axis of the output.
        readers: for each input, a function from index expressions to the element there.

    Raises:
        RuleError: The result is not one expression for each output, or the function takes another
            number of arguments. Errors of the function propagate unchanged.
    """
    return _check_expressions(FElement, node, call_attribute(FElement, node, node, index, *readers))


def _check_expressions(table: Table, node: NodeLike, result: Any) -> tuple[Expr, ...]:
    """Return the result of an attribute function as one expression for each output of ``node``.

    ``table`` is the attribute, for messages. One expression stands for the only output, a tuple or
    list for several.

    Raises: RuleError where an element is no expression or their number is not that of the outputs.
    """
    assert node.op is not None
    if isinstance(result, ast.Expr) and node.op.num_outputs == 1:
        return (result,)
    values = tuple(result) if isinstance(result, (tuple, list)) else (result,)
    need = _for_each_output(node, "an expression (pk.ast)")
    for x in values:
        if not isinstance(x, ast.Expr):
            number = isinstance(x, (bool, int, float, np.generic))
            way_out = f"pk.ast.const({x}, dtype) makes a number one" if number else ""
            if type(x).__name__ == "Entry":
                way_out = f"it computes with pk.ast, on elements; on entries that is {FExpand.key}"
            refuse_result(table, node, need, x, way_out)
    if _is_wrong_count(node, len(values)):
        refuse_result(table, node, need, result, f"it gave {len(values)}")
    return values


def reduce_of(node: NodeLike) -> Reduce | None:
    """Return the reduction that FReduce describes; None for a variable or without FReduce.

    Raises: RuleError where FReduce returns something else than a `pk.ast.Reduce`, or takes other
    arguments than the node. Its errors propagate unchanged.
    """
    return _described(FReduce, node)  # type: ignore[no-any-return]


def scan_of(node: NodeLike) -> Scan | None:
    """Return the scan that FScan describes; None for a variable or an operator without FScan.

    Raises: RuleError where FScan returns something else than a `pk.ast.Scan`, or takes other
    arguments than the node. Its errors propagate unchanged.
    """
    return _described(FScan, node)  # type: ignore[no-any-return]


def contraction_of(node: NodeLike) -> Contract | Convolution | None:
    """Return the matrix product or convolution that FContract describes.

    It is None for a variable or an operator without FContract.

    Raises: RuleError where FContract returns neither `pk.ast.Contract` nor `pk.ast.Convolution`, or
    takes other arguments than the node. Its errors propagate unchanged.
    """
    return _described(FContract, node)  # type: ignore[no-any-return]


def _described(table: Table, node: NodeLike) -> Any:
    """Return the reduction, scan or contraction that FReduce, FScan or FContract gives for a node.

    Returns: None for a variable, or where the node's operator does not have the attribute.

    Raises: RuleError where the function returns something else, or takes other arguments than the
    node. Errors of the function propagate unchanged.
    """
    if node.op is None or node.op.name not in table.rows:
        return None
    kinds = {
        "FReduce": (ast.Reduce,),
        "FScan": (ast.Scan,),
        "FContract": (ast.Contract, ast.Convolution),
    }[table.key]
    result = call_attribute(table, node, node)
    if not isinstance(result, kinds):
        refuse_result(table, node, f"a pk.ast.{kinds[0].__name__}", result)
    return result


def call_infer_shape(node: NodeLike, shapes: Sequence[Shape | None]) -> Sequence[Shape | None]:
    """Call FInferShape: return the shape of each output, None where its rank is unknown.

    Args:
        node: a node whose operator has FInferShape; its ``entries`` may not exist yet.
        shapes: the shape of each input.

    Raises:
        RuleError: The result is not a shape or None for each output, or the function takes another
            number of arguments. Errors of the function propagate unchanged.
    """
    assert node.op is not None
    result = call_attribute(FInferShape, node, node, *shapes)
    if result is not None and node.op.num_outputs == 1 and _is_plain_shape(result):
        return (result,)
    nested = isinstance(result, tuple) and any(s is None or isinstance(s, tuple) for s in result)
    values = result if nested else (result,)
    if _is_wrong_count(node, len(values)):
        need = _for_each_output(node, "a shape or None")
        refuse_result(FInferShape, node, need, result, f"it gave {len(values)}")
    return tuple(_check_shape(FInferShape, node, s, result) for s in values)


def call_infer_shape_back(
    node: NodeLike, shapes: Sequence[Shape | None], outs: Sequence[Shape | None]
) -> Sequence[Shape | None]:
    """Call FInferShapeBack: return the shape of each input, None where its rank is unknown.

    Args:
        node: a node whose operator has FInferShapeBack.
        shapes: the shape of each input, as far as it is known.
        outs: the shape of each output, as far as it is known.

    Raises:
        RuleError: The result is not a shape or None for each input, or the function takes another
            number of arguments. Errors of the function propagate unchanged.
    """
    result = call_attribute(FInferShapeBack, node, node, list(shapes), list(outs))
    if not isinstance(result, (tuple, list)) or len(result) != len(shapes):
        need = f"a sequence of {len(shapes)}, a shape or None for each input"
        refuse_result(FInferShapeBack, node, need, result)
    return [_check_shape(FInferShapeBack, node, s, result) for s in result]


def _check_shape(table: Table, node: NodeLike, shape: Any, result: Any) -> Shape | None:
    """Return ``shape`` with Python's integers in place of NumPy's; None, an unknown shape, stays.

    Args:
        table: the attribute whose function returned it.
        node: the node that it was called for.
        shape: the shape.
        result: the entire result of the function, for messages.

    Raises: RuleError where it is no tuple of sizes and integers >= 0; a bool is none.
    """
    if shape is None:
        return None
    if not isinstance(shape, tuple):
        one = isinstance(shape, (int, np.integer, Size))
        way_out = f"({shape},) is the shape of one axis" if one else "write it as a tuple"
        if not one and not isinstance(shape, list):
            way_out = ""
        refuse_result(table, node, "a shape (a tuple of extents) or None", result, way_out)
    if _is_plain_shape(shape):
        return shape
    return tuple(_check_extent(table, node, n, result) for n in shape)


def _is_plain_shape(shape: Any) -> bool:
    """Return whether a value is a tuple of Python's non-negative integers and sizes."""
    if type(shape) is not tuple:
        return False
    for n in shape:  # noqa: SIM110 – a loop is faster, and this runs for every node
        if not (type(n) is Size or (type(n) is int and n >= 0)):
            return False
    return True


def _check_extent(table: Table, node: NodeLike, n: Any, result: Any) -> Extent:
    """Return ``n``, one extent of a shape in ``result``, as a Size or one of Python's integers.

    Raises: RuleError, which names the attribute ``table`` of ``node`` and shows ``result``, unless
    ``n`` is a Size or an integer >= 0 of Python or NumPy; a bool is none.
    """
    if isinstance(n, Size):
        return n
    if isinstance(n, (int, np.integer)) and not isinstance(n, bool) and n >= 0:
        return int(n)
    refuse_result(
        table,
        node,
        "a shape of extents (whole numbers from 0 on, or Size)",
        result,
        f"{shown(n)} is none; an unknown extent is pk.Size, an unknown shape None",
    )


def call_infer_type(node: NodeLike, dtypes: Sequence[DType]) -> Sequence[DType]:
    """Call FInferType: return the dtype of each output; a single dtype applies to all of them.

    For an operator of any number of outputs (-1), a single dtype is returned once.

    Args:
        node: a node whose operator has FInferType; its ``entries`` may not exist yet.
        dtypes: the dtype of each input.

    Raises:
        RuleError: The result is neither one dtype nor one for each output, or the function takes
            another number of arguments. Errors of the function propagate unchanged.
    """
    assert node.op is not None
    result = call_attribute(FInferType, node, node, *dtypes)
    if isinstance(result, DType):
        return (result,) * max(1, node.op.num_outputs)
    values = result if isinstance(result, tuple) else (result,)
    for dtype in values:
        if not isinstance(dtype, DType):
            way_out = ""
            if isinstance(dtype, (str, type, np.dtype)):
                way_out = "pk.ast.dt.dtype_of(…) makes one of a name"
            need = _for_each_output(node, "a DType, such as pk.ast.dt.float32")
            refuse_result(FInferType, node, need, result, way_out)
    if _is_wrong_count(node, len(values)):
        need = _for_each_output(node, "a DType")
        refuse_result(FInferType, node, need, result, f"it gave {len(values)}")
    return values


def call_expand(node: NodeLike, inputs: Sequence[Entry]) -> tuple[Entry, ...] | None:
    """Call FExpand: return the entries that replace the outputs of a node.

    Args:
        node: a node whose operator has FExpand.
        inputs: the entries to compute from, in place of the node's inputs.

    Returns:
        An entry for each output, or None where FExpand declines to expand this node.

    Raises:
        RuleError: The result is neither None nor one entry for each output, or the function takes
            another number of arguments. Errors of the function propagate unchanged.
    """
    result = call_attribute(FExpand, node, node, *inputs)
    if result is None:
        return None
    heads = check_entries(FExpand, node, result, _for_each_output(node, "an entry or None"))
    if _is_wrong_count(node, len(heads)):
        need = _for_each_output(node, "an entry")
        refuse_result(FExpand, node, need, result, f"it gave {len(heads)}")
    return heads


def check_entries(table: Table, node: NodeLike, result: Any, need: str) -> tuple[Entry, ...]:
    """Return the result of an attribute function, one entry or a sequence of them, as a tuple.

    Args:
        table: the attribute, for messages.
        node: the node that its function was called for, for messages.
        result: what it returned.
        need: what it must return, as a phrase.

    Raises: RuleError where an element is no entry. The number of entries is not checked.
    """
    from passkit.graph.node import Entry

    values = tuple(result) if isinstance(result, (tuple, list)) else (result,)
    for e in values:
        if not isinstance(e, Entry):
            refuse_result(table, node, need, result, _advice_for_entry(e))
    return values


def _advice_for_entry(value: Any) -> str:
    """Return how to make an entry of a value that was returned in place of one.

    It is "" for anything but numbers, arrays and kernel expressions.
    """
    if isinstance(value, (bool, int, float, complex, np.generic, np.ndarray)):
        return "pk.constant(…) makes an entry of an array or number"
    if isinstance(value, ast.Expr):
        return f"expressions (pk.ast) are {FCodeGen.key}'s; entries are computed with by pk.ops"
    return ""


def check_entry(table: Table, node: NodeLike, result: Any) -> Entry | None:
    """Return ``result``, of an attribute function, if it is an entry or None.

    Raises: RuleError where it is something else, naming the attribute ``table`` and ``node``.
    """
    from passkit.graph.node import Entry

    if result is not None and not isinstance(result, Entry):
        refuse_result(table, node, "an entry or None", result, _advice_for_entry(result))
    return result


def call_gradient(node: NodeLike, dys: Sequence[Entry | None]) -> Sequence[Entry | None]:
    """Call FGradient: return its list or tuple of the gradient of each input, None where it is 0.

    Shapes and dtypes are not checked.

    Args:
        node: a node whose operator has FGradient, or a view of one with other inputs or entries.
        dys: the gradient of each output, None where it is 0.

    Raises:
        RuleError: The result is not an entry or None for each input, or the function takes another
            number of arguments. Errors of the function propagate unchanged.
    """
    from passkit.graph.node import Entry

    result = call_attribute(FGradient, node, node, *dys)
    need = f"a sequence of {len(node.inputs)}, an entry or None for each input"
    if isinstance(result, Entry):
        refuse_result(FGradient, node, need, result, "put it into a list: [dx]")
    if not isinstance(result, (tuple, list)):
        refuse_result(FGradient, node, need, result)
    if len(result) != len(node.inputs):
        refuse_result(FGradient, node, need, result, f"it gave {len(result)}")
    for dx in result:
        if dx is not None and not isinstance(dx, Entry):
            way_out = _advice_for_entry(dx) or "None is a gradient of 0"
            refuse_result(FGradient, node, need, result, way_out)
    return result


def call_list_input_names(op: Op, params: Mapping[str, Any]) -> list[str]:
    """Call FListInputNames: return the names of an operator's inputs in a call with ``params``.

    Raises: RuleError where the result is not a list or tuple of texts, or the function takes other
    arguments than the parameters. Errors of the function propagate unchanged.
    """
    where = f"op {op.name}"
    result = call_operator_attribute(FListInputNames, op.name, where, params)
    if not isinstance(result, (tuple, list)) or not all(isinstance(n, str) for n in result):
        refuse_operator_result(FListInputNames, where, "a sequence of names", result)
    return list(result)


def check_arrays(node: NodeLike, result: Any) -> list[Any]:
    """Return the result of FCompute for ``node`` as a list with an array for each output.

    A tuple or list is taken as its elements, anything else as the only output. The elements are
    returned as they are, also numbers and lists that NumPy converts.

    Raises: RuleError where there are too few or too many, or one is None, an array of objects or
    no array at all, such as a list of rows of different lengths.
    """
    arrays = list(result) if isinstance(result, (tuple, list)) else [result]
    need = _for_each_output(node, "an array")
    if _is_wrong_count(node, len(arrays)):
        refuse_result(FCompute, node, need, result, f"it gave {len(arrays)}")
    for array in arrays:
        if array is None or not _is_array_like(array):
            refuse_result(FCompute, node, need, array)
    return arrays


def _is_array_like(value: Any) -> bool:
    """Return whether NumPy makes an array of ``value``, and not one of objects."""
    try:
        return bool(np.asarray(value).dtype.kind != "O")
    except ValueError:  # rows of different lengths
        return False
