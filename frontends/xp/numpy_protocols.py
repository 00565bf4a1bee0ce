"""NumPy's functions applied to an `Array`: they are queued where `passkit.xp` has the function.

Others compute the arrays and run in NumPy; what they return as NumPy arrays becomes an `Array`.
"""

from __future__ import annotations

from collections.abc import Callable
from inspect import Parameter, Signature, signature
from typing import TYPE_CHECKING, Any

import numpy as np

from passkit.errors import ArgumentError
from passkit.frontends.xp.array import Array, operand_value, wrap
from passkit.frontends.xp.elementwise_operations import FUNCTIONS
from passkit.frontends.xp.runtime import apply, from_numpy, operation
from passkit.streams.device import StreamDevice
from passkit.values.lazy import Lazy
from passkit.values.trees import flatten

if TYPE_CHECKING:
    from passkit.frontends import xp
else:
    xp = Lazy("passkit.frontends.xp")

OPERATION_NAMES = {
    **{f.on_arrays: f.name for f in FUNCTIONS if isinstance(f.on_arrays, np.ufunc)},
    np.tanh: "tanh",
    np.expm1: "expm1",
    np.power: "pow",
    np.reciprocal: "reciprocal",
}
"""The operations of ufuncs."""

EQUIVALENTS = {
    "all": "all",
    "any": "any",
    "argmax": "argmax",
    "argmin": "argmin",
    "broadcast_arrays": "broadcast_arrays",
    "broadcast_to": "broadcast_to",
    "clip": "clip",
    "concatenate": "concat",
    "copy": "asarray",
    "cumulative_prod": "cumulative_prod",
    "cumulative_sum": "cumulative_sum",
    "diff": "diff",
    "empty_like": "empty_like",
    "expand_dims": "expand_dims",
    "flip": "flip",
    "full_like": "full_like",
    "imag": "imag",
    "matrix_transpose": "matrix_transpose",
    "max": "max",
    "mean": "mean",
    "min": "min",
    "moveaxis": "moveaxis",
    "ones_like": "ones_like",
    "prod": "prod",
    "real": "real",
    "repeat": "repeat",
    "reshape": "reshape",
    "roll": "roll",
    "round": "round",
    "searchsorted": "searchsorted",
    "sort": "sort",
    "stack": "stack",
    "std": "std",
    "sum": "sum",
    "take": "take",
    "take_along_axis": "take_along_axis",
    "tensordot": "tensordot",
    "tile": "tile",
    "transpose": "permute_dims",
    "tril": "tril",
    "triu": "triu",
    "var": "var",
    "where": "where",
    "zeros_like": "zeros_like",
}
"""Functions of `passkit.xp` by NumPy's names. They mean the same for arguments of equal names."""

PARAMETERS = {
    ("clip", "a_max"): "max",
    ("clip", "a_min"): "min",
    ("std", "ddof"): "correction",
    ("transpose", "axes"): "axes",
    ("var", "ddof"): "correction",
}
"""Parameters of `passkit.xp` by NumPy's function and parameter, where the names differ."""


def apply_ufunc(ufunc: Any, method: str, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Apply a ufunc of NumPy to arrays, of which one at least, maybe one in ``out``, is an `Array`.

    It is queued if `passkit.xp` has it, ``method`` is "__call__", all operands are arrays or
    numbers, and there is no further argument but ``out``; else NumPy computes it at once.

    Args:
        ufunc: the ufunc.
        method: "__call__", or another method such as "reduce".
        inputs: the operands.
        kwargs: the other arguments; "out", a tuple with an array or None for each result, is
            removed. An `Array` in it gets the result as its value, a NumPy array its elements.

    Returns: The result, an `Array`, or a tuple of several; those with an array in ``out`` are that
        array.

    Raises: what the operation or NumPy raises, such as ShapeError where shapes do not broadcast;
        for an `Array` in ``out``, ArgumentError if the result has another shape, DTypeError if it
        has a dtype of a higher kind; ConcretizationError if NumPy computes it, and an array depends
        on arguments of a function that is traced.
    """
    outputs = kwargs.pop("out", None)
    result = None
    if method == "__call__" and not kwargs:
        result = _queued(ufunc, inputs)
    if result is None:
        result = _in_numpy(getattr(ufunc, method), inputs, kwargs)
    if outputs is None:
        return result
    results = result if isinstance(result, tuple) else (result,)
    for output, part in zip(outputs, results, strict=True):
        if isinstance(output, Array):
            output._assign(part._value, ufunc.__name__)
        elif output is not None:
            output[...] = np.asarray(part)
    stored = tuple(r if o is None else o for o, r in zip(outputs, results, strict=True))
    return stored if isinstance(result, tuple) else stored[0]


def _queued(ufunc: Any, inputs: tuple[Any, ...]) -> Array | None:
    """Return the result of a ufunc for ``inputs``, queued.

    Returns: None if no operation stands for it, or none of the inputs is an `Array`. None also
        where an input is neither an array nor a number.

    Raises: ShapeError or DTypeError if the operands do not fit.
    """
    name = OPERATION_NAMES.get(ufunc)
    like = next((i.dtype for i in inputs if isinstance(i, Array)), None)
    if name is not None and like is not None:
        try:
            operands = [operand_value(i, like) for i in inputs]
        except ArgumentError:
            return None
        return wrap(apply(operation(name), *operands))
    if ufunc in (np.matmul, np.vecdot) and like is not None:
        return getattr(xp, ufunc.__name__)(*map(xp.asarray, inputs))  # type: ignore[no-any-return]
    if ufunc is np.conjugate and hasattr(xp, "conj"):
        return xp.conj(*inputs)
    return None


def apply_function(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """Apply a function of NumPy that is no ufunc to arguments with an `Array` in them.

    The function of `passkit.xp` of the same meaning is called, if it takes these arguments; else
    what the arrays need is executed, and NumPy computes the result.

    Args:
        function: the function.
        args: its arguments by position.
        kwargs: its arguments by name.

    Returns: The result. NumPy arrays in it, also in lists and tuples, but not in named tuples such
        as that of `numpy.linalg.svd`, are `Array`.

    Raises: what the function that is called raises; TypeError if NumPy's does not take these
        arguments; ConcretizationError if NumPy computes it, and an array depends on arguments of a
        function that is traced.
    """
    if function is np.transpose:
        given = dict(_bound(signature(function), args, kwargs))
        if isinstance(given["a"], Array) and given.get("axes") is None:
            return given["a"].T
    name = function.__name__
    if function.__module__ == "numpy" and name in EQUIVALENTS:
        equivalent = _attribute(EQUIVALENTS[name])
        if equivalent is not None:
            arguments = _translated(function, equivalent, args, kwargs)
            if arguments is not None:
                return equivalent(*arguments[0], **arguments[1])
    return _in_numpy(function, args, kwargs)


def _attribute(name: str) -> Callable[..., Any] | None:
    """Return the attribute ``name`` of `passkit.xp`, a function, or None if it has none."""
    try:
        return getattr(xp, name)  # type: ignore[no-any-return]
    except AttributeError:
        return None


def _translated(
    function: Callable[..., Any],
    equivalent: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> tuple[list[Any], dict[str, Any]] | None:
    """Return the arguments of NumPy's function for ``equivalent``, that of `passkit.xp`.

    ``args`` and ``kwargs`` are the arguments by position and by name.

    Returns: Arguments by position and by name; None if the equivalent does not take one of them, or
    one by position is a NumPy array.

    Raises: TypeError if NumPy's function does not take them either.
    """
    parameters = signature(equivalent).parameters
    given = _bound(signature(function), args, kwargs)
    positional: list[Any] = []
    named: dict[str, Any] = {}
    open_positions = [p for p in parameters.values() if p.kind is Parameter.POSITIONAL_ONLY]
    variadic = any(p.kind is Parameter.VAR_POSITIONAL for p in parameters.values())
    for name, value in given:
        target = PARAMETERS.get((function.__name__, name), name)
        if target in parameters and parameters[target].kind is Parameter.KEYWORD_ONLY:
            named[target] = value
        elif variadic or (len(positional) < len(open_positions) and not named):
            positional.append(value)
        elif target in parameters and parameters[target].kind is not Parameter.POSITIONAL_ONLY:
            named[target] = value
        else:
            return None
    if any(isinstance(v, np.ndarray) for v in positional):
        return None
    try:
        signature(equivalent).bind(*positional, **named)
    except TypeError:
        return None
    return positional, named


def _bound(form: Signature, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[tuple[str, Any]]:
    """Return the arguments of a call by the names of parameters, in their order.

    ``form`` is the signature, ``args`` and ``kwargs`` are the arguments. Those of *args and
    **kwargs are listed one by one. Raises: TypeError if they do not fit.
    """
    given: list[tuple[str, Any]] = []
    for name, value in form.bind(*args, **kwargs).arguments.items():
        kind = form.parameters[name].kind
        if kind is Parameter.VAR_POSITIONAL:
            given += [(name, item) for item in value]
        elif kind is Parameter.VAR_KEYWORD:
            given += [*value.items()]
        else:
            given.append((name, value))
    return given


def _in_numpy(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return the result of a function of NumPy for computed arrays; arrays in it become `Array`.

    ``args`` and ``kwargs`` are its arguments, which may hold arrays in lists, tuples and dicts. If
    one of these is on a device, the results are there, too; see `_wrapped`. Raises: what the
    function raises; ConcretizationError if an array depends on arguments of a function that is
    traced.
    """
    result = function(*map(_computed, args), **{k: _computed(v) for k, v in kwargs.items()})
    leaves = flatten((args, kwargs))[0]
    devices = [a._value.type.device for a in leaves if isinstance(a, Array)]
    return _wrapped(result, next((d for d in devices if d is not None), None))


def _computed(argument: Any) -> Any:
    """Return an argument with a NumPy array in place of each `Array`, which is executed.

    Lists, tuples and dicts, but no subclasses of them, are searched; anything else is returned
    itself. Raises: ConcretizationError for an array that depends on the arguments of a function
    that is traced; PasskitError if an operation fails that one needs.
    """
    if isinstance(argument, Array):
        return np.asarray(argument)
    if type(argument) in (list, tuple):
        return type(argument)([_computed(a) for a in argument])
    if type(argument) is dict:
        return {k: _computed(v) for k, v in argument.items()}
    return argument


def _wrapped(result: Any, device: StreamDevice | None) -> Any:
    """Return a result with each NumPy array or scalar of numbers or booleans as an `Array`.

    It is on ``device``, None for the CPU. Lists and tuples, but not named ones, are searched;
    anything else is returned as it is.
    """
    if isinstance(result, (np.ndarray, np.generic)) and result.dtype.kind in "biufc":
        return wrap(from_numpy(np.asarray(result), device=device))
    if type(result) in (list, tuple):
        return type(result)([_wrapped(r, device) for r in result])
    return result
