"""`grad`, `value_and_grad`, `vjp` and `jvp`: derivatives of functions of arrays.

A call runs the function once, on arrays without elements, and records its operations. They and
their gradients become one operation of the stream, which runs with what surrounds it. Nothing is
kept from one call to the next but the plan, so a function may read Python variables and numbers
that change, and plans are not compiled again for that.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import update_wrapper
from typing import Any

import numpy as np
from attrs import frozen

import passkit.ops as ops
from passkit.errors import ArgumentError, DTypeError, ShapeError
from passkit.frontends.xp.array import Array, wrap
from passkit.frontends.xp.conversion import asarray, duplicate
from passkit.frontends.xp.transforms.programs import (
    ProgramResults,
    ProgramStream,
    call_context,
)
from passkit.frontends.xp.transforms.tracing_stream import describe
from passkit.graph.adjoint import gradients
from passkit.graph.infer import show_shape
from passkit.graph.node import Entry, as_entry
from passkit.streams.operation import banded_type
from passkit.streams.recorder import (
    ArrayType,
    Value,
    differentiated_call,
    with_new_arrays,
)
from passkit.values import arguments
from passkit.values.arguments import shown
from passkit.values.dtype import dtype_of
from passkit.values.trees import Structure, flatten, paths, unflatten


def grad(
    function: Callable[..., Any] | None = None,
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
) -> Any:
    """Return a function that computes the gradient of a function with a scalar result.

    Args:
        function: takes arrays of `passkit.xp`, or nested lists, tuples, dicts and data classes of
            them, and other arguments; or entries of a graph. It returns a 0-dimensional array of
            floats, or a float, whose gradient is 0. Without a function, return a decorator.
        argnums: the position of the argument to differentiate by, or a sequence of several, which
            gives a tuple of gradients; negative ones count from the end. All leaves of these
            arguments must be arrays of floats, of `passkit.xp` or NumPy, or Python floats. None has
            no leaves.
        has_aux: whether the function returns a pair, a tuple of the scalar and anything else, which
            is returned beside the gradient.

    Returns: A function of the same arguments. It returns gradients in the form of the arguments;
        with ``has_aux`` a pair of these and what else the function returned.

    Raises: ArgumentError if an argument is nothing of these. When the returned function is called:

        - ArgumentError: an argument to differentiate by is not passed by position or has a leaf
          that is no array, or the function returns no array, or no pair with ``has_aux``.
        - DTypeError: such a leaf has no floats, such as an int, or the result is no float.
        - ShapeError: the result has axes.
        - ConcretizationError: the function needs the elements of an array, also for an operation
          that only NumPy computes.
        - GraphError: an operator on entries has no gradient.

    The gradient is executed later; a CodeGenError says then that an operation has no derivative by
    an argument, such as `xp.special.gammainc` by its first one.

    >>> import passkit as pk
    >>> from passkit import xp
    >>> pk.grad(lambda x: xp.sum(x**3))(xp.asarray([1.0, 2.0])).numpy()
    array([ 3., 12.])
    """
    if function is None:
        return lambda f: grad(f, argnums, has_aux)
    both = value_and_grad(function, argnums, has_aux)

    def gradient_function(*args: Any, **kwargs: Any) -> Any:
        value, gradient = both(*args, **kwargs)
        return (gradient, value[1]) if has_aux else gradient

    update_wrapper(gradient_function, function, updated=())
    return gradient_function


def value_and_grad(
    function: Callable[..., Any] | None = None,
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
) -> Any:
    """Return a function that computes a function with a scalar result, and its gradient.

    Args:
        function: as for `grad`: it returns a 0-dimensional array of floats; None for a decorator.
        argnums: the position of the argument to differentiate by, or a sequence of several.
        has_aux: whether the function returns a pair of the scalar and anything else.

    Without a function, return a decorator.

    Returns: A function of the same arguments, which returns a pair of what the function returns (a
        pair itself with ``has_aux``) and the gradient, in the form of the argument; a tuple of
        gradients for a sequence of positions.

    Raises: ArgumentError if an argument is nothing of these; the returned function raises
        ArgumentError, DTypeError, ShapeError, ConcretizationError and GraphError as that of `grad`.

    >>> import passkit as pk
    >>> from passkit import xp
    >>> loss, gradient = pk.value_and_grad(lambda p: xp.sum(p["w"] ** 2))({"w": xp.ones(3)})
    >>> float(loss), gradient["w"].numpy()
    (3.0, array([2., 2., 2.]))
    """
    if function is None:
        return lambda f: value_and_grad(f, argnums, has_aux)
    arguments.function("value_and_grad: function", function)
    arguments.instance("grad: has_aux", has_aux, bool, "True or False")
    positions, is_single = _positions(argnums), isinstance(argnums, int)
    purpose = describe("grad", function)

    last_form: Any = None
    context: Any = None

    def value_and_gradient(*args: Any, **kwargs: Any) -> Any:
        nonlocal last_form, context
        form = last_form
        if form is not None:
            called = differentiated_call(function, args, kwargs, form, purpose, context)
            if called is not None:
                if len(called) == 3:  # operations that were not seen before
                    called = _first_results(called[1], called[2], form[2], purpose)
                value, parts = called
                return value, parts[0] if is_single else parts
        call = _differentiated_call(purpose, args, kwargs, positions)
        if not has_aux:
            context = call_context(_copied)
            last_form = len(args), call.positions, (tuple, None, call.structures)
        if any(isinstance(leaf, Entry) for leaf in call.differentiated):
            return _of_entries(function, call, is_single, has_aux, purpose)
        stream, types = ProgramStream(purpose), call.types
        with stream.recording():
            new_args, new_kwargs = call.traced(stream, types)
            value = function(*new_args, **new_kwargs)
            loss, aux = _split(value, has_aux, purpose)
            head = _scalar_value(loss, purpose)
        outputs, pack = _outputs(stream, aux) if has_aux else ([], None)
        number, leaves = stream.number(head), tuple(range(len(types)))
        results = ProgramResults((number, *[n for n, _ in outputs]), (number,), (), leaves)
        arrays = stream.recorded(results).apply([head.type, *[t for _, t in outputs], *types])
        parts = call.packed(arrays[1 + len(outputs) :])
        gradient = parts[0] if is_single else tuple(parts)
        if pack is not None:
            return (arrays[0], pack(arrays[1 : 1 + len(outputs)])), gradient
        return arrays[0], gradient

    update_wrapper(value_and_gradient, function, updated=())
    return value_and_gradient


def _first_results(
    stream: ProgramStream, result: Any, structure: Structure, purpose: str
) -> tuple[Array, Any]:
    """Return the value and a tuple of the gradients of a function that a stream has recorded.

    Args:
        stream: the stream.
        result: what the function returned.
        structure: the structure of the tuple.
        purpose: the transformation, for messages.

    Raises: ArgumentError, DTypeError or ShapeError for a result that cannot be differentiated, as
    `value_and_grad`.
    """
    try:
        head = _scalar_value(result, purpose)
        arrays = stream.gradient_results(head)
    finally:
        stream.release()
    return arrays[0], unflatten(structure, arrays[1:])


def vjp(function: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    """Compute a function, and return a function for products with its Jacobian from the left.

    Args:
        function: takes and returns arrays of floats, or nested containers of them; in a result,
            Python floats count as arrays.
        *primals: its arguments, which consist of arrays of floats, or Python floats.
        has_aux: whether the function returns a pair, a tuple of what is differentiated and anything
            else.

    Returns: A pair of what the function returns and a function. That takes weights in the form of
        the result and returns a tuple with, for each argument, the gradient of the weighted sum of
        the results. With ``has_aux``, what else the function returned comes third.

    Raises:
        ArgumentError: ``function`` cannot be called, a leaf of an argument or of the result is no
            array, the result has no leaf, or the function returns no pair with ``has_aux``.
        DTypeError: such a leaf has no floats.
        ConcretizationError: the function needs the elements of an array.

    The returned function raises ArgumentError for weights of another structure, ShapeError for
    another shape than the result's, and DTypeError for arrays of another dtype; a Python number
    stands for a 0-dimensional array.

    >>> import passkit as pk
    >>> from passkit import xp
    >>> y, pull = pk.vjp(lambda x: x**2, xp.asarray([1.0, 2.0]))
    >>> pull(xp.asarray([1.0, 10.0]))[0].numpy()
    array([ 2., 40.])
    """
    arguments.function("vjp: function", function)
    purpose = describe("vjp", function)
    call = _differentiated_call(purpose, primals, {}, tuple(range(len(primals))))
    _refuse_entries(purpose, call)
    # Nothing may be stored over them as long as the returned function exists.
    call.differentiated[:] = map(duplicate, call.differentiated)
    stream, heads, aux, structure = _traced_results(function, call, purpose, has_aux)
    types = [v.type for v in heads]
    outputs, pack = _outputs(stream, aux)
    numbers = tuple(stream.number(v) for v in heads)
    forward = stream.recorded(ProgramResults((*numbers, *[n for n, _ in outputs])))
    arrays = forward.apply([*types, *[t for _, t in outputs]])
    leaves = tuple(range(len(call.differentiated)))

    def pull_back(weights: Any) -> Any:
        """Return a tuple with the gradient of the weighted sum of results by each argument.

        Raises: ArgumentError, ShapeError or DTypeError for weights that are not like the results.
        """
        seeds = _like_results("vjp", weights, structure, types)
        if not leaves:
            return tuple(call.packed([]))
        seed_numbers = tuple(range(stream.num_values, stream.num_values + len(seeds)))
        backward = stream.recorded(ProgramResults((), numbers, seed_numbers, leaves))
        return tuple(call.packed(backward.apply(call.types, seeds)))

    result = unflatten(structure, arrays[: len(heads)])
    return (result, pull_back, pack(arrays[len(heads) :])) if has_aux else (result, pull_back)


def jvp(function: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any]) -> Any:
    """Compute a function, and its derivative in a direction.

    Args:
        function: as for `vjp`.
        primals: a sequence of its arguments, which consist of arrays of floats, or Python floats.
        tangents: for each argument the direction, in the form, shapes and dtypes of the argument.

    Returns: A pair of what the function returns and of the derivative, in the same form.

    Raises:
        ArgumentError: ``function`` cannot be called, primals or tangents are no sequence, a leaf of
            an argument or of the result is no array, the result has no leaf, or the tangents have
            another structure.
        DTypeError: a leaf has no floats, or a tangent another dtype than its argument.
        ShapeError: a tangent has another shape than its argument.
        ConcretizationError: the function needs the elements of an array.

    >>> import passkit as pk
    >>> from passkit import xp
    >>> y, dy = pk.jvp(lambda x: x**2, [xp.asarray([1.0, 2.0])], [xp.asarray([1.0, 10.0])])
    >>> dy.numpy()
    array([ 2., 40.])
    """
    arguments.function("jvp: function", function)
    purpose = describe("jvp", function)
    args = tuple(arguments.sequence("jvp: primals", primals, object))
    directions = tuple(arguments.sequence("jvp: tangents", tangents, object))
    call = _differentiated_call(purpose, args, {}, tuple(range(len(args))))
    _refuse_entries(purpose, call)
    stream, heads, _, structure = _traced_results(function, call, purpose, False)
    types = [v.type for v in heads]
    weights = _like_results("jvp", directions, flatten(args)[1], call.types)
    numbers = tuple(stream.number(v) for v in heads)
    tangent_numbers = tuple(range(stream.num_values, stream.num_values + len(weights)))
    leaves = tuple(range(len(call.differentiated)))
    results = ProgramResults(numbers, numbers, (), leaves, tangent_numbers)
    derivative_types = [banded_type(type, None) for type in types]
    arrays = stream.recorded(results).apply([*types, *derivative_types], weights)
    count = len(types)
    return unflatten(structure, arrays[:count]), unflatten(structure, arrays[count:])


# Arguments.


@frozen
class DifferentiatedCall:
    """The arguments of a call of a differentiated function.

    Attributes:
        args: the arguments by position.
        kwargs: the arguments by name.
        positions: the positions of those to differentiate by.
        structures: their structures.
        counts: the numbers of their leaves.
        differentiated: their leaves, arrays or entries, one after the other.
    """

    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    positions: tuple[int, ...]
    structures: tuple[Structure, ...]
    counts: tuple[int, ...]
    differentiated: list[Any]

    @property
    def types(self) -> list[ArrayType]:
        """Return the types of the leaves to differentiate by, and so of their gradients.

        They have no view: all elements are independent variables.
        """
        types = [leaf._value.type for leaf in self.differentiated]
        return [type if type.band is None else banded_type(type, None) for type in types]

    def traced(
        self, stream: ProgramStream, types: Sequence[ArrayType]
    ) -> tuple[list[Any], dict[str, Any]]:
        """Return the positional and the named arguments for the function.

        Leaves to differentiate by are new arrays of ``stream``, whose types are ``types``; other
        arrays are copies. In-place operations of the function change these, and not the arrays of
        the caller.
        """
        pairs = zip(self.differentiated, types, strict=True)
        return self.replaced([wrap(stream.argument(x._value, type)) for x, type in pairs])

    def replaced(self, leaves: Sequence[Any]) -> tuple[list[Any], dict[str, Any]]:
        """Return the positional and the named arguments, with other leaves to differentiate by.

        ``leaves`` take their places, in order. Arrays in other arguments are new ones of the same
        values.
        """
        args = list(self.args)
        parts = dict(zip(self.positions, self.packed(leaves), strict=True))
        new_args = [parts[k] if k in parts else _copied(arg) for k, arg in enumerate(args)]
        return new_args, {name: _copied(arg) for name, arg in self.kwargs.items()}

    def packed(self, leaves: Sequence[Any]) -> list[Any]:
        """Return a list of containers, one in the form of each argument to differentiate by.

        ``leaves`` are their leaves, one argument after the other, as many as `counts` says.
        """
        rest = iter(leaves)
        return [
            unflatten(structure, [next(rest) for _ in range(count)])
            for structure, count in zip(self.structures, self.counts, strict=True)
        ]


def _refuse_entries(purpose: str, call: DifferentiatedCall) -> None:
    """Raise an ArgumentError if there are entries among the leaves to differentiate by."""
    for leaf in call.differentiated:
        if isinstance(leaf, Entry):
            raise ArgumentError(
                f"{purpose}: an argument must be an array of passkit.xp, got {leaf}; for entries "
                f"use pk.gradients, whose grad_ys are the weights"
            )


def _copied(argument: Any) -> Any:
    """Return an argument with a new array of the same value in place of each `Array` in it.

    An argument without arrays of `passkit.xp` is returned itself.
    """
    copy = with_new_arrays(argument)
    if copy is not NotImplemented:
        return copy
    if type(argument) is Array:
        return duplicate(argument)
    leaves, structure = flatten(argument)
    if not any(isinstance(leaf, Array) for leaf in leaves):
        return argument
    return unflatten(structure, [duplicate(x) if isinstance(x, Array) else x for x in leaves])


def _positions(argnums: Any) -> tuple[int, ...]:
    """Return an int, or a sequence of them, as a tuple of positions, which may be negative.

    Raises: ArgumentError if it is neither, is empty, has a bool, or has a number twice.
    """
    listed = (argnums,) if isinstance(argnums, int) else argnums
    need = "a position of an argument, or a sequence of different ones"
    positions = tuple(arguments.sequence("grad: argnums", listed, int, need))
    if not positions or True in map(_is_bool, positions) or len(set(positions)) != len(positions):
        arguments.refuse("grad: argnums", argnums, need)
    return positions


def _is_bool(value: Any) -> bool:
    """Return whether a value is True or False, which Python also takes for integers."""
    return isinstance(value, bool)


def _differentiated_call(
    purpose: str, args: tuple[Any, ...], kwargs: dict[str, Any], positions: tuple[int, ...]
) -> DifferentiatedCall:
    """Return the record of a call, with the leaves to differentiate by as arrays.

    Entries among these stay entries. ``positions`` may count from the end of ``args``; ``purpose``
    is the transformation, for messages.

    Raises:
        ArgumentError: A position is not one of ``args``, or such a leaf is no array, entry or
            number.
        DTypeError: A leaf has no real float dtype, such as an int.
    """
    listed = tuple(k + len(args) if k < 0 else k for k in positions)
    for k in listed:
        if not 0 <= k < len(args):
            raise ArgumentError(
                f"{purpose} needs argument {k} by position to differentiate by it, got "
                f"{len(args)} by position"
            )
    leaves: list[Any] = []
    counts: list[int] = []
    structures: list[Structure] = []
    for k in listed:
        part, structure = flatten(args[k])
        leaves += part
        counts.append(len(part))
        structures.append(structure)
    if not all([type(leaf) is Array and leaf._value.type.dtype.kind == "f" for leaf in leaves]):
        names = [
            name
            for k, structure in zip(listed, structures, strict=True)
            for name in paths(structure, f"argument {k}")
        ]
        leaves = _converted_leaves(purpose, leaves, names)
    return DifferentiatedCall(args, kwargs, listed, tuple(structures), tuple(counts), leaves)


def _converted_leaves(purpose: str, leaves: list[Any], names: list[str]) -> list[Any]:
    """Return leaves to differentiate by as arrays, and entries as they are.

    Python floats get the dtype of the arrays of floats among them, if that is a single one, or
    float64. ``purpose`` and ``names`` are the transformation and the leaves, for messages.

    Raises:
        ArgumentError: A leaf is neither an array, an entry nor a number.
        DTypeError: It has no float dtype, such as an int.
    """
    floats = {x.dtype for x in leaves if isinstance(x, Array) and dtype_of(x.dtype).is_float}
    dtype = floats.pop() if len(floats) == 1 else np.dtype(np.float64)
    pairs = zip(names, leaves, strict=True)
    return [_leaf(f"{purpose}: {name}", leaf, dtype) for name, leaf in pairs]


def _leaf(where: str, leaf: Any, dtype: Any) -> Any:
    """Return a leaf to differentiate by as an array, a Python float as one of ``dtype``.

    An entry or `Array` is returned itself. ``where`` is the function and the leaf, for messages.

    Raises:
        ArgumentError: It is neither an array, an entry nor a number.
        DTypeError: It has no real float dtype; so has an int.
    """
    if isinstance(leaf, Entry):
        return leaf
    if type(leaf) is float:
        return asarray(leaf, dtype=dtype)
    if isinstance(leaf, (np.ndarray, np.generic, bool, int, complex)):
        leaf = asarray(leaf)
    if not isinstance(leaf, Array):
        raise ArgumentError(
            f"{where} must be an array to differentiate by it, got {shown(leaf)}; pass it in an "
            f"argument that argnums does not name"
        )
    if leaf.dtype.kind == "c" or not dtype_of(leaf.dtype).is_float:
        raise DTypeError(
            f"{where} is {leaf.dtype}, and gradients are of floats; convert it with xp.astype, or "
            f"pass it in an argument that argnums does not name"
        )
    return leaf


# Results.


def _split(value: Any, has_aux: bool, purpose: str) -> tuple[Any, Any]:
    """Return what is differentiated of what a function returned, and what it returned beside that.

    The latter is None without ``has_aux``. ``purpose`` is the transformation, for messages.

    Raises: ArgumentError if it should be a pair, a tuple of two, and is none.
    """
    if not has_aux:
        return value, None
    if not isinstance(value, tuple) or len(value) != 2:
        raise ArgumentError(
            f"{purpose}: with has_aux=True the function must return a pair, got {shown(value)}"
        )
    return value


def _result_value(purpose: str, result: Any) -> Value:
    """Return the value of a leaf of what a function returned; numbers and NumPy arrays count, too.

    ``purpose`` is the transformation, for messages.

    Raises:
        ArgumentError: It is no array or number.
        DTypeError: It has no real float dtype.
    """
    if isinstance(result, (int, float, complex, np.ndarray, np.generic)):
        result = asarray(result)
    if not isinstance(result, Array):
        raise ArgumentError(
            f"{purpose}: the function must return an array of passkit.xp, got {shown(result)}"
        )
    if result.dtype.kind == "c" or not dtype_of(result.dtype).is_float:
        raise DTypeError(
            f"{purpose}: the function returned {result.dtype}, and only floats are "
            f"differentiated; convert it with xp.astype, or return it beside, with has_aux=True"
        )
    return result._value


def _scalar_value(result: Any, purpose: str) -> Value:
    """Return the value of the 0-dimensional array, or the number, that a function returned.

    ``purpose`` is the transformation, for messages.

    Raises:
        ArgumentError: It is neither.
        DTypeError: It has no real float dtype.
        ShapeError: It has axes.
    """
    value: Value | None = result._value if type(result) is Array else None
    if value is None or value.type.dtype.kind != "f":
        value = _result_value(purpose, result)
    if value.type.shape:
        raise ShapeError(
            f"{purpose}: the function must return a 0-dimensional array, got shape "
            f"{value.type.shape}; reduce it with xp.sum or xp.mean, or use pk.vjp"
        )
    return value


def _outputs(
    stream: ProgramStream, result: Any
) -> tuple[list[tuple[int, ArrayType]], Callable[[Sequence[Any]], Any]]:
    """Find the arrays of a stream among the leaves of a result.

    Returns: A list with the number in the program and the type of each; and a function that takes
        as many arrays and returns the result with these in their place. Other leaves stay as they
        are.
    """
    leaves, structure = flatten(result)
    positions = [
        k
        for k, leaf in enumerate(leaves)
        if isinstance(leaf, Array) and leaf._value.stream is stream
    ]
    values = [leaves[k]._value for k in positions]

    def pack(arrays: Sequence[Any]) -> Any:
        """Return the result with these arrays in the place of those of the stream."""
        for k, array in zip(positions, arrays, strict=True):
            leaves[k] = array
        return unflatten(structure, leaves)

    return [(stream.number(v), v.type) for v in values], pack


def _traced_results(
    function: Callable[..., Any], call: DifferentiatedCall, purpose: str, has_aux: bool
) -> tuple[ProgramStream, list[Value], Any, Structure]:
    """Call a function with arrays without elements, and record its operations.

    Args:
        function: the function.
        call: its arguments.
        purpose: the transformation, for messages.
        has_aux: whether it returns a pair of what is differentiated and anything else.

    Returns: The stream, the values of the leaves of the result, what it returned beside that (None
        without ``has_aux``), and the structure of the result.

    Raises:
        ArgumentError: A leaf of the result is no array or number, there is no leaf, or the result
            should be a pair and is none.
        DTypeError: A leaf has no real float dtype.
        ConcretizationError: The function needs elements of an array.
    """
    stream = ProgramStream(purpose)
    with stream.recording():
        args, kwargs = call.traced(stream, call.types)
        result, aux = _split(function(*args, **kwargs), has_aux, purpose)
        leaves, structure = flatten(result)
        heads = [_result_value(purpose, leaf) for leaf in leaves]
        if not heads:
            raise ArgumentError(
                f"{purpose}: the function must return an array of passkit.xp, got {shown(result)}"
            )
    return stream, heads, aux, structure


def _like_results(
    where: str, value: Any, structure: Structure, types: Sequence[ArrayType]
) -> list[Value]:
    """Return the values of the leaves of weights, or of directions.

    Args:
        where: the function, for messages.
        value: the weights: nested containers of arrays, or of Python numbers, which take the dtype
            of their type.
        structure: the structure that they need.
        types: the types that they need.

    Raises:
        ArgumentError: They have another structure, or a leaf is no array or real number.
        ShapeError: One has another shape.
        DTypeError: An array has another dtype, or a number does not fit that of its type.
    """
    leaves, own = flatten(value)
    if own != structure:
        expected = ", ".join(paths(structure, "x")) or "none"
        raise ArgumentError(
            f"{where}: the leaves {expected} are needed, got {', '.join(paths(own, 'x')) or 'none'}"
        )
    values: list[Value] = []
    for name, leaf, type in zip(paths(structure, "x"), leaves, types, strict=True):
        if isinstance(leaf, (float, int)) and not isinstance(leaf, np.generic):
            leaf = asarray(leaf, dtype=type.dtype)
        if isinstance(leaf, (np.ndarray, np.generic)):
            leaf = asarray(leaf)
        if not isinstance(leaf, Array):
            raise ArgumentError(f"{where}: {name} must be an array, got {shown(leaf)}")
        if leaf.shape != type.shape:
            raise ShapeError(f"{where}: {name} must have shape {type.shape}, got {leaf.shape}")
        if leaf.dtype != type.dtype:
            raise DTypeError(f"{where}: {name} must be {type.dtype}, got {leaf.dtype}")
        values.append(leaf._value)
    return values


# Functions of entries.


def _of_entries(
    function: Callable[..., Any],
    call: DifferentiatedCall,
    is_single: bool,
    has_aux: bool,
    purpose: str,
) -> tuple[Any, Any]:
    """Call a function of entries; return a pair of what it returns, and its gradient.

    Arrays among the leaves to differentiate by are executed, and become constants.

    Args:
        function: the function.
        call: its arguments, of which leaves to differentiate by are entries or arrays.
        is_single: whether the gradient is that by one argument, or a tuple of several.
        has_aux: whether the function returns a pair of the scalar and anything else.
        purpose: the transformation, for messages.

    Raises:
        ArgumentError: The result is no entry, or no pair with ``has_aux``.
        ShapeError: It has axes.
        DTypeError: It is no float.
        GraphError: An operator has no gradient.
    """
    # Entries of their own: an argument may depend on another one, or be the same.
    leaves = [ops.identity(as_entry(_array_of(leaf))) for leaf in call.differentiated]
    args, kwargs = call.replaced(leaves)
    loss, aux = _split(function(*args, **kwargs), has_aux, purpose)
    if not isinstance(loss, Entry):
        raise ArgumentError(f"{purpose}: the function must return an Entry, got {shown(loss)}")
    if loss.shape:
        raise ShapeError(
            f"{purpose}: the function must return a scalar, got shape {show_shape(loss.shape)}; "
            f"reduce it with pk.ops.reduce_sum"
        )
    results = call.packed(gradients(loss, leaves))
    return (loss, aux) if has_aux else loss, results[0] if is_single else tuple(results)


def _array_of(leaf: Any) -> Any:
    """Return a leaf as it is; an `Array` as a NumPy array, which executes what it needs.

    Raises: PasskitError if an operation that it needs fails; ConcretizationError if it depends on
    arguments of a function that is traced.
    """
    return leaf._numpy() if isinstance(leaf, Array) else leaf
