"""Calls: operators applied to entries, arrays and numbers, by name or as Python's operators.

A call checks inputs and parameters and makes a node. Python scalars are weak, as in NumPy 2.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from typing import Any

import numpy as np

from passkit.errors import DTypeError, GraphError, RegistryError, nearest
from passkit.graph import rules
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
    """Make a node of ``op``, with its inputs and parameters checked.

    Raises: GraphError on a wrong number of inputs or an unknown parameter.
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
        raise GraphError(f"{where} takes {', '.join(names)}, got {len(inputs)} inputs")
    if names and (by_name or len(inputs) < len(names)):
        inputs = _complete(op, inputs, by_name, names, name or op.name)
    if op.num_inputs not in (-1, len(inputs)):
        raise GraphError(f"{where} takes {op.num_inputs} input(s), got {len(inputs)}")
    return Node(op, _same_dtype(inputs), full, name, control)


def _positional(
    op: Op, inputs: Sequence[Any], params: Mapping[str, Any], where: str
) -> tuple[Sequence[Any], dict[str, Any]]:
    """Inputs and parameters of a call: parameters may follow the inputs by position.

    An op of any number of inputs takes them one by one or as one sequence; a text before them,
    which no input can be, is the parameter that it needs: ``einsum("ij,jk", a, b)``.
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
    """Make sure that a parameter is of its default's type, where that is bool, float or str.

    Raises: GraphError naming the type that is needed.
    """
    for kind, fits in ((bool, bool), (float, (int, float)), (str, str)):
        if type(default) is kind and (
            not isinstance(value, fits) or (kind is float and isinstance(value, bool))
        ):
            raise GraphError(f"{where} needs a {kind.__name__} as {key}, got {shown(value)}")


def _param(value: Any, default: Any) -> Any:
    """A parameter as `plain`; an array is what it lists where the default is a number or a tuple.

    Elsewhere it stays: an operator of a user's may have a table as a parameter.
    """
    listed = isinstance(default, (bool, int, float, str, tuple)) and isinstance(value, np.ndarray)
    return plain(value.tolist() if listed else value)


def plain(value: Any) -> Any:
    """A parameter as text and JSON write it: tuples, Python numbers, dtypes by name."""
    if isinstance(value, (list, tuple)):
        return tuple(plain(v) for v in value)
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, (DType, np.dtype)) or (
        isinstance(value, type) and issubclass(value, (np.generic, bool, int, float))
    ):
        return dtype_of(value).name
    return value


def _input_names(op: Op, params: Mapping[str, Any]) -> list[str]:
    named = FListInputNames.get(op.name) is not None
    return rules.input_names(op, {**op.params, **params}) if named else []


def _complete(
    op: Op, inputs: Sequence[Any], by_name: Mapping[str, Any], names: list[str], prefix: str
) -> list[Any]:
    """Named inputs put in order; a missing one becomes a variable `<node>_<arg>` (NNVM)."""
    filled = dict(zip(names, inputs, strict=False))
    for key, value in by_name.items():
        if key in filled:
            raise GraphError(f"{op.name} '{shortened(prefix)}': input {key!r} is given twice")
        filled[key] = value
    like = next((v.dtype for v in filled.values() if isinstance(v, Entry)), None)
    return [filled[n] if n in filled else var(f"{prefix}_{n}", None, like) for n in names]


def _same_dtype(inputs: Sequence[Any]) -> list[Entry]:
    """Entries of the inputs; Python scalars take the dtype that the entries have together."""
    if not any(map(_is_weak, inputs)):
        return [as_entry(x) for x in inputs]
    known = [x.dtype for x in inputs if isinstance(x, Entry) and x.dtype is not None]
    like = reduce(promote, known) if known and any(map(_is_weak, inputs)) else None
    return [
        constant(x, weak_scalar(x, like)) if _is_weak(x) and like is not None else as_entry(x)
        for x in inputs
    ]


def operate(symbol: str, *sides: Any) -> Entry:
    """What a Python operator means: the op whose TOperator is ``symbol``, dtypes promoted.

    An op with FOperator reads the operands in its own way, as indexing does.

    Raises: RegistryError when no registered operator implements it.
    """
    op = find_operator(symbol)
    if FOperator.get(op.name) is not None:
        return rules.call_of(FOperator, op.name, f"op {op.name}", *sides)  # type: ignore[no-any-return]
    return op(*promote_operands(symbol, sides))  # type: ignore[no-any-return]


def find_operator(symbol: str) -> Op:
    """The op that implements a Python operator or protocol, by its TOperator."""
    for name, row in TOperator.rows.items():
        if row.value == symbol:
            return get_op(name)
    if load_operators():
        return find_operator(symbol)
    raise RegistryError(
        f"no operator implements '{symbol}'; import passkit.ops, or set TOperator on one of yours"
    )


def promote_operands(what: str, sides: Iterable[Any]) -> list[Entry]:
    """The operands as entries of one dtype, with casts where they differ (NumPy 2's rules)."""
    sides = list(sides)
    arrays = [as_entry(s) for s in sides if not _is_weak(s)]
    if not arrays:
        raise DTypeError(f"'{what}' needs an entry or array, got {shown(sides)}")
    known = [e.dtype for e in arrays if e.dtype is not None]
    if not known:
        return [as_entry(s) for s in sides]
    wanted = known[0]
    for d in known[1:]:
        wanted = promote(wanted, d)
    for s in sides:
        if _is_weak(s):
            wanted = weak_scalar(s, wanted)
    found = iter(arrays)
    return [constant(s, wanted) if _is_weak(s) else convert(next(found), wanted) for s in sides]


def convert(entry: Entry, wanted: DType) -> Entry:
    """``entry`` with dtype ``wanted``, through the op that implements "cast"."""
    if entry.dtype is wanted or entry.dtype is None:
        return entry
    return find_operator("cast")(entry, dtype=wanted.name)  # type: ignore[no-any-return]


def _is_weak(value: Any) -> bool:
    return isinstance(value, (bool, int, float, complex)) and not isinstance(value, np.generic)
