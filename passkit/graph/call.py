"""Calls of operators on entries, arrays and numbers, by name or as Python's operators.

A call checks inputs and parameters and creates a node. Python scalars are weak, as in NumPy 2: they
take the dtype of the other operands.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from typing import Any

import numpy as np

from passkit.errors import DTypeError, GraphError, RegistryError, nearest
from passkit.graph.attribute_calls import call_list_input_names, call_operator_attribute
from passkit.graph.node import Entry, Node, as_entry, constant, var
from passkit.graph.op import (
    REQUIRED,
    FListInputNames,
    FOperator,
    Op,
    TOperator,
    get_op,
    load_operators,
)
from passkit.values import arguments
from passkit.values.arguments import shortened, shown
from passkit.values.dtype import DType, dtype_of, promote, weak_scalar


def apply(
    op: Op, inputs: Sequence[Any], params: Mapping[str, Any], name: str, control: Sequence[Node]
) -> Node:
    """Create a node of ``op`` after checking inputs and parameters.

    Args:
        op: the operator.
        inputs: entries, arrays and numbers; parameters may follow them.
        params: parameters by name, and inputs by name where the operator names them
            (FListInputNames). A named input that is missing becomes a new variable called
            ``{name or op.name}_{input}``.
        name: the name of the node, or "".
        control: nodes that must run before it.

    Raises:
        GraphError: The number of inputs is wrong, a parameter is unknown, missing, passed twice or,
            where its default is a bool, float or string, of another type; or an input is a tuple of
            entries.
        ArgumentError: ``name`` is no string, ``control`` no sequence of nodes, or an input is
            neither an entry, an array nor a number, or a Python int beyond 64 bits.
        ShapeError: The shapes of the inputs, or a parameter, do not fit the operator.
        DTypeError: The dtypes of the inputs, or a parameter, do not fit the operator, passkit does
            not have one, or a Python int does not fit the integer dtype of the other inputs.
        RuleError: An attribute function of the operator returns something else than it must.
    """
    arguments.text("the name of a node", name)
    where = f"{op.name} '{shortened(name)}'" if name else op.name
    inputs, given = _positional(op, inputs, params, where)
    given = {k: _param(v, op.params[k]) if k in op.params else v for k, v in given.items()}
    names = _input_names(op, given)
    by_name = {k: given.pop(k) for k in list(given) if k in names and k not in op.params}
    for key in given:
        if key not in op.params:
            hint = nearest(key, [*op.params, *names]) if op.params or names else "it takes none"
            raise GraphError(f"{where} has no parameter {shown(key)}; {hint}")
    full = {k: given.get(k, plain(default)) for k, default in op.params.items()}
    for key, value in full.items():
        if value is REQUIRED:
            raise GraphError(f"{where} needs the parameter {key!r}")
        check_param(where, key, value, op.params[key])
    if names and len(inputs) > len(names):
        raise GraphError(f"{where} takes the inputs {', '.join(names)}, got {len(inputs)}")
    if names and (by_name or len(inputs) < len(names)):
        inputs = _complete(op, inputs, by_name, names, name or op.name)
    if op.num_inputs not in (-1, len(inputs)):
        raise GraphError(f"{where} takes {op.num_inputs} input(s), got {len(inputs)}")
    return Node(op, _same_dtype(inputs), full, name, control)


def _positional(
    op: Op, inputs: Sequence[Any], params: Mapping[str, Any], where: str
) -> tuple[Sequence[Any], dict[str, Any]]:
    """Return the inputs and the passed parameters of a call, where parameters may follow inputs.

    An operator of any number of inputs takes them one by one or as one list or tuple, which
    parameters may follow. A text in front of them is its first parameter if that is required, as in
    ``einsum("ij,jk", a, b)``. Names and types of parameters are not checked.

    Args:
        op: the operator.
        inputs: the positional arguments of the call.
        params: its keyword arguments.
        where: the operator or node, for messages.

    Returns: The inputs, as they were passed, and the parameters by name, without defaults.

    Raises: GraphError where there are too many positional arguments, an entry stands where a
    parameter is expected, or a parameter is passed by position and by name.
    """
    given = dict(params)
    rest: Sequence[Any] = ()
    if op.num_inputs is not None and op.num_inputs >= 0:
        inputs, rest = inputs[: op.num_inputs], inputs[op.num_inputs :]
    else:
        needs = next(iter(op.params.values()), None) is REQUIRED
        if needs and inputs and isinstance(inputs[0], str):
            inputs, rest = inputs[1:], inputs[:1]
        if inputs and isinstance(inputs[0], (list, tuple)):
            inputs, rest = inputs[0], (*rest, *inputs[1:])
    if len(rest) > len(op.params) or any(isinstance(x, Entry) for x in rest):
        raise GraphError(f"{where} takes {len(inputs)} input(s), got {len(inputs) + len(rest)}")
    for key, value in zip(op.params, rest, strict=False):
        if key in given:
            raise GraphError(f"{where}: parameter {key!r} is given twice")
        given[key] = value
    return inputs, given


def check_param(where: str, key: str, value: Any, default: Any) -> None:
    """Raise a GraphError unless a parameter has the type of its default: bool, float or str.

    A float accepts ints, but no bools. With a default of another type, such as int or None, any
    value passes.

    Args:
        where: the operator, for the message.
        key: the parameter's name.
        value: its value in a call.
        default: its default.
    """
    for kind, fits in ((bool, bool), (float, (int, float)), (str, str)):
        if type(default) is kind and (
            not isinstance(value, fits) or (kind is float and isinstance(value, bool))
        ):
            raise GraphError(f"{where} needs a {kind.__name__} as {key}, got {shown(value)}")


def _param(value: Any, default: Any) -> Any:
    """Return the value of a parameter as nodes store it: tuples and Python's numbers, as `plain`.

    An array becomes a number or tuples where the default is a bool, number, string or tuple.
    Elsewhere it stays, since a custom operator may take a table as a parameter.

    Raises: DTypeError for a NumPy dtype that passkit does not have.
    """
    is_list = isinstance(default, (bool, int, float, str, tuple)) and isinstance(value, np.ndarray)
    return plain(value.tolist() if is_list else value)


def plain(value: Any) -> Any:
    """Return a parameter with tuples for lists, Python's numbers for NumPy's, names for dtypes.

    A dtype is a DType, one of NumPy or its scalar types, or bool, int, float or complex. Other
    values, arrays too, stay.

    Raises: DTypeError for a NumPy dtype that passkit does not have.
    """
    if isinstance(value, (list, tuple)):
        return tuple(plain(v) for v in value)
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, (DType, np.dtype)) or (
        isinstance(value, type) and issubclass(value, (np.generic, bool, int, float, complex))
    ):
        return dtype_of(value).name
    return value


def _input_names(op: Op, params: Mapping[str, Any]) -> list[str]:
    """Return the names of an operator's inputs, as FListInputNames gives them for ``params``.

    Args:
        op: the operator.
        params: the parameters of the call, on which names may depend; defaults complete them.

    Returns: [] where the operator does not name its inputs.

    Raises: RuleError where FListInputNames returns no list or tuple of texts. Its errors propagate
    unchanged.
    """
    named = FListInputNames.get(op.name) is not None
    return call_list_input_names(op, {**op.params, **params}) if named else []


def _complete(
    op: Op, inputs: Sequence[Any], by_name: Mapping[str, Any], names: list[str], prefix: str
) -> list[Any]:
    """Return the inputs of a call in the order of ``names``; a missing one is a new variable.

    NNVM does the same, so that weights need not be declared.

    Args:
        op: the operator, for messages.
        inputs: the inputs given by position.
        by_name: those given by name.
        names: the names of all inputs.
        prefix: the node's name; a new variable is called ``{prefix}_{name}``. It has the dtype of
            the first entry among the inputs (unknown without one) and no shape yet.

    Raises: GraphError where an input is given both by position and by name.
    """
    filled = dict(zip(names, inputs, strict=False))
    for key, value in by_name.items():
        if key in filled:
            raise GraphError(f"{op.name} '{shortened(prefix)}': input {key!r} is given twice")
        filled[key] = value
    like = next((v.dtype for v in filled.values() if isinstance(v, Entry)), None)
    return [filled[n] if n in filled else var(f"{prefix}_{n}", None, like) for n in names]


def _same_dtype(inputs: Sequence[Any]) -> list[Entry]:
    """Return the inputs as entries; Python scalars get a dtype by the promoted one of the entries.

    It is that of `weak_scalar`: the entries' own, or one of a higher kind (0.5 beside int32 is
    float64). Entries and arrays keep their dtypes. Without an entry of known dtype a scalar becomes
    a constant of NumPy's dtype for it.

    Raises: ArgumentError for an input that is neither an entry, an array nor a number; DTypeError
    for a Python int that does not fit the integer dtype of the entries, or an array of a dtype that
    passkit does not have; GraphError for a tuple of entries.
    """
    if not any(map(_is_weak, inputs)):
        return [as_entry(x) for x in inputs]
    dtypes = [x.dtype for x in inputs if isinstance(x, Entry) and x.dtype is not None]
    like = reduce(promote, dtypes) if dtypes and any(map(_is_weak, inputs)) else None
    return [
        constant(x, weak_scalar(x, like)) if _is_weak(x) and like is not None else as_entry(x)
        for x in inputs
    ]


def operate(symbol: str, *operands: Any) -> Entry:
    """Apply the operator that implements a Python operator, after promoting dtypes.

    Args:
        symbol: the TOperator of the operator, such as ``"+"``.
        *operands: entries, arrays or numbers. An operator with FOperator, such as indexing, gets
            them as they are, and raises errors of its own.

    Raises:
        RegistryError: No registered operator implements it.
        GraphError: The operator takes another number of operands, or one is a tuple of entries.
        ArgumentError: An operand is neither an entry, an array nor a number, or a Python int beyond
            64 bits beside floats.
        DTypeError: All operands are Python scalars, their dtypes do not fit the operator or each
            other (complex and real ones do not), or a Python int does not fit the dtype of integers
            beside it.
        ShapeError: Their shapes do not.
    """
    op = find_operator(symbol)
    if FOperator.get(op.name) is not None:
        return call_operator_attribute(FOperator, op.name, f"op {op.name}", *operands)  # type: ignore[no-any-return]
    return op(*promote_operands(symbol, operands))  # type: ignore[no-any-return]


def find_operator(symbol: str) -> Op:
    """Return the operator whose TOperator is ``symbol``, such as ``"+"`` or ``"cast"``.

    All operator modules are loaded before it is given up.

    Raises: RegistryError where there is none.
    """
    for name, setting in TOperator.rows.items():
        if setting.value == symbol:
            return get_op(name)
    if load_operators():
        return find_operator(symbol)
    raise RegistryError(
        f"no operator implements '{symbol}'; import passkit.ops, or set TOperator on one of yours"
    )


def promote_operands(operator: str, operands: Iterable[Any]) -> list[Entry]:
    """Return operands as entries of one dtype, with casts where they differ (NumPy 2's rules).

    Entries of unknown dtype are not cast; if all entries and arrays are such, Python scalars become
    constants of NumPy's dtype for them. ``operator`` is the sign of the Python operator.

    Raises: DTypeError where all operands are Python scalars (the message names ``operator``), a
    Python int does not fit the common integer dtype, a real entry or array would become complex, or
    passkit does not have the dtype of an array; ArgumentError where one is neither an entry, an
    array nor a number, or a Python int beyond 64 bits beside floats; GraphError where one is a
    tuple of entries.
    """
    operands = list(operands)
    arrays = [as_entry(x) for x in operands if not _is_weak(x)]
    if not arrays:
        raise DTypeError(f"'{operator}' needs an entry or array, got {shown(operands)}")
    dtypes = [e.dtype for e in arrays if e.dtype is not None]
    if not dtypes:
        return [as_entry(x) for x in operands]
    dtype = reduce(promote, dtypes)
    for x in operands:
        if _is_weak(x):
            dtype = weak_scalar(x, dtype)
    entries = iter(arrays)
    return [constant(x, dtype) if _is_weak(x) else convert(next(entries), dtype) for x in operands]


def convert(entry: Entry, dtype: DType) -> Entry:
    """Return ``entry`` cast to ``dtype``, or itself if it has that dtype or an unknown one.

    Raises: DTypeError for a cast from or to a complex dtype.
    """
    if entry.dtype is dtype or entry.dtype is None:
        return entry
    return find_operator("cast")(entry, dtype=dtype.name)  # type: ignore[no-any-return]


def _is_weak(value: Any) -> bool:
    """Return whether a value is a Python bool, int, float or complex.

    The dtype of such an operand follows the others; that of NumPy's scalars does not.
    """
    return isinstance(value, (bool, int, float, complex)) and not isinstance(value, np.generic)
