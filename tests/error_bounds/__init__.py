"""How far a correct kernel may be from `pk.interpret`: every value with a bound of its error.

A bound of 0 demands equal bits; it spreads by what operators do to intervals, so that a graph of
exact operators is compared exactly, and a long one of others no more loosely than it must be. An
infinite bound says that the element may be anything: a comparison of values too close to tell.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from passkit.analysis.accesses import Reader, element_expr
from passkit.ast import Const, Expr, Load, Select, Var, size_of
from passkit.graph.graph import Graph
from passkit.graph.narrow import expand_node
from passkit.graph.node import Entry, Node, known_shape
from passkit.graph.op import FCodeGen, FCompute, FContract, FElement, FExpand, FReduce
from passkit.ops.linalg import sum_of_matmuls
from passkit.runtime.interpret import array_shape, compute, concrete
from passkit.values.dtype import dtype_of, int64
from tests.error_bounds.expressions import expression
from tests.error_bounds.folds import contracted, is_known_fold, is_matrix_product, reduced
from tests.error_bounds.opaque import convolved, disturbed
from tests.error_bounds.values import Value, difference, is_float, least, mismatch, openness

__all__ = ["FCompute", "Value", "apply", "bounded", "mismatch", "openness"]


POLE = 1e3
"""Results from this size on that may be as large again are near a pole."""


def bounded(
    graph: Graph, feeds: Mapping[str, Any], sizes: Mapping[str, int], state: dict[str, Value]
) -> list[Value]:
    """Interpret a functional graph; return outputs with bounds, and put updates into ``state``."""
    values: dict[Entry, Value] = {}
    names = graph.names
    for node in graph.nodes:
        if node.is_variable:
            held = state.get(node.name) if node.params.get("state") else Value(feeds[names[node]])
            assert held is not None
            values[node.entries[0]] = held
        else:
            results = apply(node, [values[e] for e in node.inputs], sizes)
            values.update(zip(node.entries, results, strict=True))
    for variable, entry in graph.updates:
        state[variable.name] = values[entry]
    return [values[e] for e in graph.outputs]


def apply(node: Node, inputs: Sequence[Value], sizes: Mapping[str, int]) -> list[Value]:
    """Interpret one operator; return its results with bounds of a kernel's error."""
    arrays = [np.asarray(v.array) for v in inputs]
    concrete_node = concrete(node, arrays, sizes)
    with np.errstate(all="ignore"):
        exact = compute(node, arrays, sizes)
        results = _results(concrete_node, inputs, exact)
        if node.op is not None and node.op.name == "sum_like":
            results = [_summed_or_not(node, *results)]
    return [_joined(a, v) for a, v in zip(exact, results, strict=True)]


def _joined(exact: Any, result: Value) -> Value:
    """Return the interpreter's result, with a bound of the rule's error and of their difference."""
    if result.error is None or not np.any(result.error):
        return Value(exact)
    error = np.broadcast_to(result.error, exact.shape)
    if result.array is not None:
        apart = difference(np.broadcast_to(result.array, exact.shape), exact)
        error = np.where(error > 0, error + apart, error)
    if is_float(exact):  # so near a pole the other side of it is as right
        size = np.abs(exact.astype(np.float64))
        error = np.where((size > POLE) & (error > size), np.inf, error)
    return Value(exact, error)


def _results(node: Node, inputs: Sequence[Value], exact: Sequence[Any]) -> Sequence[Value]:
    """Bound results by the rule for the attribute that defines the operator's kernels."""
    assert node.op is not None
    name = node.op.name
    if any(np.iscomplexobj(x) for x in (*exact, *(v.array for v in inputs))):
        return disturbed(node, inputs, exact)  # these run in NumPy
    if FElement.get(name) is not None:
        return _elements(node, inputs)
    if FReduce.get(name) is not None and is_known_fold(node):
        return [reduced(node, inputs[0])]
    if FContract.get(name) is not None:
        if is_matrix_product(node):
            return [contracted(node, *inputs)]
        return [convolved(node, inputs, *exact)]
    if FCodeGen.get(name) is not None:
        return _code(node, inputs)
    if FExpand.get(name) is not None:
        return _expanded(node, inputs)
    return disturbed(node, inputs, exact)


def _code(node: Node, inputs: Sequence[Value]) -> list[Value]:
    """Bound an elementwise operator by its expression."""
    names = [f"x{k}" for k in range(len(inputs))]
    dtypes = [dtype_of(v.array.dtype) for v in inputs]
    code = FCodeGen.get(node.op.name)(node, *map(Var, names, dtypes))  # type: ignore[union-attr]
    values = {n: Value(np.asarray(v.array), v.error) for n, v in zip(names, inputs, strict=True)}
    return [expression(x, values) for x in ((code,) if isinstance(code, Expr) else code)]


def _elements(node: Node, inputs: Sequence[Value]) -> list[Value]:
    """Bound an operator by the expression of its elements; data movement keeps errors."""
    shape = array_shape(known_shape(node.entries[0]))
    index = tuple(Var(f"i{k}", int64) for k in range(len(shape)))
    elements = element_expr(node, index, [_reader(k, e) for k, e in enumerate(node.inputs)])
    many = elements if isinstance(elements, tuple) else (elements,)
    if 0 in shape or (all(v.error is None for v in inputs) and all(map(_only_moves, many))):
        return [Value(None) for _ in many]
    grid = np.ogrid[tuple(slice(0, n) for n in shape)] if shape else ()
    values = {f"i{k}": Value(np.asarray(g)) for k, g in enumerate(grid)}
    buffers = {f"x{k}": _flattened(v) for k, v in enumerate(inputs)}
    return [expression(x, values, buffers) for x in many]


def _flattened(value: Value) -> Value:
    """Return a value and its error as arrays of one dimension."""
    error = value.error
    if error is not None:
        error = np.ravel(np.broadcast_to(error, np.shape(value.array)))
    return Value(np.ravel(value.array), error)


def _reader(k: int, entry: Entry) -> Reader:
    """Return a function that loads an element of an input, which is contiguous in memory."""
    shape, dtype = known_shape(entry), entry.dtype
    assert dtype is not None

    def read(*at: Expr) -> Expr:
        linear: Expr = size_of(0)
        for i, n in zip(at, shape, strict=True):
            linear = linear * size_of(n) + i
        return Load(f"x{k}", linear, dtype)

    return read


def _only_moves(x: Expr) -> bool:
    """Whether nothing rounds in an element of exact inputs."""
    if isinstance(x, Select):
        return _only_moves(x.a) and _only_moves(x.b)
    return isinstance(x, (Load, Const)) or not x.dtype.is_float


def _expanded(node: Node, inputs: Sequence[Value]) -> list[Value]:
    """Bound a composite by its expansion."""
    variables = [
        Node(None, (), {"shape": v.array.shape, "dtype": dtype_of(v.array.dtype)}, f"x{k}")
        for k, v in enumerate(inputs)
    ]
    operands = [n.entries[0] for n in variables]
    heads = expand_node(node, operands)
    if heads is None:  # a library adds products up where they lie: rounded as often as these are
        heads = (sum_of_matmuls(node, *operands),)
    values = {n.entries[0]: v for n, v in zip(variables, inputs, strict=True)}
    for inner in Graph(heads).nodes:
        if not inner.is_variable:
            results = apply(inner, [values[e] for e in inner.inputs], {})
            values.update(zip(inner.entries, results, strict=True))
    return [values[e] for e in heads]


def _summed_or_not(node: Node, total: Value) -> Value:
    """A sum over one element turns -0 into 0, and where there is one, nothing need be summed.

    A plan may not know, so the sign of a 0 is open where an input has an axis of unknown length.
    """
    has_known_shapes = all(isinstance(n, int) for e in node.inputs for n in known_shape(e))
    if has_known_shapes or not is_float(total.array):
        return total
    error = np.maximum(total.bound, least(dtype_of(total.array.dtype)))
    return Value(total.array, np.where(total.array == 0, error, total.bound))
