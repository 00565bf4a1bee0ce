"""The interpreter: evaluates a graph in NumPy, operator by operator, in post-order, unfused.

It defines the results that compiled programs are compared with. An operator with FCompute is
evaluated by it; others by the first of FElement, FReduce, FScan, FContract, FCodeGen and FExpand
that they have. Each operation rounds to its dtype; sums of floats are accumulated in float64 and
rounded once.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from passkit.analysis.accesses import element_expr
from passkit.analysis.group import FUSED
from passkit.ast import Contract, Expr, Load, Var, size_of
from passkit.errors import CapacityError, CodeGenError, DTypeError, FeedError, ShapeError
from passkit.graph import attribute_calls
from passkit.graph.graph import Graph
from passkit.graph.infer import show_shape
from passkit.graph.node import AS_READ, Entry, Node, is_state, known_shape
from passkit.graph.op import (
    FCodeGen,
    FCompute,
    FContract,
    FElement,
    FExpand,
    FReduce,
    FScan,
    TStateful,
)
from passkit.runtime.evaluate import cast_array, evaluate
from passkit.runtime.expansions import expansion
from passkit.runtime.feeds import all_sizes, bind_sizes, check_feeds, signature
from passkit.runtime.reductions import evaluate_reduce, evaluate_scan
from passkit.runtime.state import check_names
from passkit.values import arguments
from passkit.values.dtype import dtype_of, int64
from passkit.values.size import Shape, Size, has_size, has_symbols, numel, substitute, symbols_of

Array = Any
ArrayList = list[Array]
SizeValues = Mapping[str, int]

WIDE_PRODUCTS = 1 << 27
"""The most multiplications of a product of float matrices that is computed in float64."""


def interpret(
    graph: Graph,
    feeds: Mapping[str, Any] | None = None,
    state: MutableMapping[str, Any] | None = None,
) -> ArrayList:
    """Evaluate a graph in NumPy.

    A read of a state variable returns the value of the last assignment before it in post-order. An
    output that is a state variable is read after the outputs before it are computed.

    Args:
        graph: the graph.
        feeds: an array for each input, by name; None if the graph has no inputs.
        state: the values of state variables by name, which are replaced by new arrays as nodes
            assign them, also where a later node fails; a variable that is missing is added when it
            is read or assigned, with its initial value, a read-only array, or the assigned one.
            None for all initial values.

    Returns:
        The outputs, as new arrays.

    Raises:
        FeedError: A feed is missing, unknown or does not match its input, the feeds do not
            determine a symbolic size, a value of ``state`` does not match its variable, or a state
            variable without initial value is read before it is assigned.
        ArgumentError: ``graph`` is no Graph, ``state`` is no mutable mapping, such as a dict, or a
            feed is a masked array.
        GraphError: Two state variables have the same name.
        ShapeError, DTypeError, CodeGenError, RuleError, GraphError: A node cannot be evaluated; see
            `compute`.
        CapacityError: There is no memory for the result of a node.

    >>> import passkit as pk
    >>> x = pk.var("x", (3,))
    >>> pk.interpret(pk.Graph([x + x]), {"x": np.float32([1, 2, 3])})[0].tolist()
    [2.0, 4.0, 6.0]
    """
    arguments.instance("interpret: graph", graph, Graph, "a Graph; pk.Graph([y]) makes one")
    if state is not None:
        need = "a dict of arrays by the names of state variables, or None"
        arguments.instance("interpret: state", state, MutableMapping, need)
    check_names(graph)
    names = [(graph.names[n], n.entries[0].dtype, n.entries[0].shape) for n in graph.inputs]
    arrays = check_feeds(names, {} if feeds is None else feeds, graph.unread)
    sizes = all_sizes((name, shape, arrays[name].shape) for name, _, shape in names)
    memory = {} if state is None else state
    _check_state(graph, memory)
    run = _Interpreter(graph, sizes, memory)
    with np.errstate(all="ignore"):
        results = run([arrays[name] for name, _, _ in names])
        return [_new_array(x, e) for x, e in zip(results, graph.outputs, strict=True)]


def _new_array(value: Array, output: Entry) -> Array:
    """Return a C-contiguous copy of ``value``, the result of a graph's ``output``.

    Raises: CapacityError, naming the output, where there is no memory for it.
    """
    try:
        return np.array(value, order="C")
    except MemoryError as error:
        raise CapacityError(
            f"{output.node.where} has no memory for its result: {error}; use smaller arrays"
        ) from None


def _check_state(graph: Graph, state: Mapping[str, Any]) -> None:
    """Check that ``state`` has arrays for the state variables of a graph that are in it.

    Raises:
        FeedError: A value is no NumPy array or scalar of the variable's dtype and shape.
    """
    for entry in (node.entries[0] for node in graph.states if node.name in state):
        name, value = entry.node.name, state[entry.node.name]
        is_array = isinstance(value, (np.ndarray, np.generic))
        dtype = entry.node.params["dtype"].numpy
        if not is_array or value.dtype != dtype or value.shape != entry.shape:
            raise FeedError(
                f"state variable '{name}' needs {signature(entry.dtype, entry.shape)}, got "
                f"{arguments.shown(value)}; pass an array of that dtype and shape"
            )


def derive(node: Node, *arrays: Array) -> ArrayList:
    """Return the results of a node by its other attributes, as if it had no FCompute.

    The first of FElement, FReduce, FScan, FContract, FCodeGen and FExpand that its operator has is
    used.

    Args:
        node: a node with an operator, whose shapes are numbers.
        arrays: the arrays of its inputs.

    Returns:
        An array for each output.

    Raises:
        CodeGenError: The operator has none of these attributes, or the one that is used cannot be
            evaluated.
        RuleError: That attribute has other parameters or another result than declared.
        ShapeError: A symbolic size in it has no value.
        DTypeError: By FExpand: a result has another dtype than declared.
    """
    assert node.op is not None
    with np.errstate(all="ignore"):
        for column, evaluate_attribute in _EVALUATORS:
            if column.get(node.op.name) is not None:
                return evaluate_attribute(node, *arrays)
    raise CodeGenError(
        f"{node.where} cannot be evaluated: set FCompute, FElement, FReduce, FContract, FCodeGen "
        f"or FExpand on op {node.op.name}"
    )


class _Interpreter:
    """One evaluation of a graph; values are freed after their last use.

    Args:
        graph: the graph.
        sizes: the values of symbolic sizes.
        state: the values of state variables by name, which are updated.

    Attributes:
        values: the arrays of entries that later nodes or outputs use.
        values_as_read: for each node that an `AS_READ` node refers to, the array that it read.
        uses: how often each entry is still used.
    """

    def __init__(self, graph: Graph, sizes: SizeValues, state: MutableMapping[str, Any]) -> None:
        self.graph, self.sizes, self.state = graph, sizes, state
        self.values: dict[Entry, Array] = {}
        self.values_as_read: dict[tuple[Node, Entry], Array | None] = {
            (n.control[0], n.inputs[0]): None for n in graph.nodes if n.op is AS_READ
        }
        self.uses = {e: len(users) for e, users in graph.users.items()}
        for e in graph.heads:
            self.uses[e] = self.uses.get(e, 0) + 1

    def __call__(self, feeds: Sequence[Array]) -> ArrayList:
        """Evaluate the graph on an array for each input; return its outputs, and update the state.

        ``feeds`` are in the order of the graph's inputs. Raises: FeedError where a state variable
        is read before it has a value; CapacityError where there is no memory for a result;
        ShapeError, DTypeError, CodeGenError, RuleError or GraphError where a node cannot be
        evaluated, and FeedError where NumPy refuses a matrix.
        """
        feeds_by_node = dict(zip(self.graph.inputs, feeds, strict=True))
        positions = {node: k for k, node in enumerate(self.graph.nodes)}
        heads = self.graph.heads
        due: dict[int, list[int]] = {}
        done = 0
        for h, e in enumerate(heads):  # a state variable is read after the heads before it
            if is_state(e):
                due.setdefault(done, []).append(h)
            done = max(done, positions[e.node] + 1)
        read: dict[int, Array] = {}
        for k, node in enumerate(self.graph.nodes):
            read.update((h, self.value(heads[h])) for h in due.get(k, ()))
            if not node.is_variable:
                self.execute(node)
            elif not node.params.get("state"):
                self.values[node.entries[0]] = feeds_by_node[node]
        read.update((h, self.value(heads[h])) for h in due.get(len(positions), ()))
        results = [read[h] if h in read else self.values[e] for h, e in enumerate(heads)]
        for (variable, _), new in zip(
            self.graph.updates, results[len(self.graph.outputs) :], strict=True
        ):
            self.state[variable.name] = np.array(new)
        return results[: len(self.graph.outputs)]

    def value(self, entry: Entry) -> Array:
        """Return the current value of an entry, that of the state if it is a state variable.

        A state variable that the state lacks is added to it with its initial value. Raises:
        FeedError where it has no initial value either.
        """
        if not is_state(entry):
            return self.values[entry]
        node = entry.node
        if node.name not in self.state:
            if node.params["initial"] is None:
                raise FeedError(
                    f"state variable '{node.name}' is read before it has a value; assign it first, "
                    f"or pass pk.state an initial array"
                )
            self.state[node.name] = node.params["initial"]
        return self.state[node.name]

    def execute(self, node: Node) -> None:
        """Compute a node, store its results, and free the values that it is the last to use.

        A stateful node also updates the state. Raises: CapacityError where `compute` has no memory;
        FeedError where the node reads a state variable without value; ShapeError, DTypeError,
        CodeGenError, RuleError, GraphError or FeedError where it cannot be evaluated, see
        `compute`.
        """
        assert node.op is not None
        stateful = bool(TStateful.get(node.op.name))
        arrays = [self.value(e) if k or not stateful else None for k, e in enumerate(node.inputs)]
        for e, array in zip(node.inputs, arrays, strict=True):
            if (node, e) in self.values_as_read:
                self.values_as_read[node, e] = array
        if node.op is AS_READ:
            results = [self.values_as_read[node.control[0], node.inputs[0]]]
        elif node.op is FUSED:
            body = node.params["body"].graph
            results = _Interpreter(body, self.inner_sizes(body, arrays), {})(arrays)
        elif stateful:
            results = attribute_calls.check_arrays(
                node, attribute_calls.call_attribute(FCompute, node, node, *arrays)
            )
            self.state[node.inputs[0].node.name] = np.array(results[0])
        else:
            try:
                results = compute(node, arrays, self.sizes)
            except MemoryError as error:
                raise CapacityError(
                    f"{node.where} has no memory for its result: {error}; use smaller arrays"
                ) from None
        self.values.update(zip(node.entries, results, strict=True))
        for e in node.inputs:
            self.uses[e] -= 1
            if not self.uses[e]:
                self.values.pop(e, None)

    def inner_sizes(self, body: Graph, arrays: ArrayList) -> SizeValues:
        """Return the values of sizes inside a fused node, whose body is ``body``.

        They are those of the graph, and those of the shapes of ``arrays``, the node's inputs.
        Raises: FeedError where two shapes need different values of a size, ShapeError where one
        divides by zero.
        """
        shapes = [
            (v.name, v.entries[0].shape, a.shape) for v, a in zip(body.inputs, arrays, strict=True)
        ]
        return {**self.sizes, **bind_sizes(shapes, "fused input", self.sizes)}


def compute(node: Node, arrays: Sequence[Array], sizes: SizeValues) -> ArrayList:
    """Evaluate one node.

    Args:
        node: the node; it has an operator, which is not stateful.
        arrays: the arrays of its inputs.
        sizes: the values of symbolic sizes.

    Returns:
        The results in a list, checked against the shapes and dtypes of the node's entries. They may
        be inputs, or read-only views of them.

    Raises:
        ShapeError: The operator does not allow inputs of these shapes, a result has another shape
            than by FInferShape, or a size of a result has no value.
        DTypeError: A result has another dtype than by FInferType.
        CodeGenError: The operator has no attribute by which it can be evaluated, or it reads
            outside of an input.
        RuleError: An attribute function has other parameters or another number of results than
            declared.
        GraphError: A rule of inference refuses a parameter for these shapes.
        MemoryError: There is no memory for a result.

    What FCompute itself raises is passed on, such as a FeedError for a singular matrix.
    """
    concrete_node = concrete(node, arrays, sizes)
    assert node.op is not None
    if FCompute.get(node.op.name) is not None:
        results = attribute_calls.check_arrays(
            node, attribute_calls.call_attribute(FCompute, concrete_node, concrete_node, *arrays)
        )
    else:
        results = derive(concrete_node, *arrays)
    return [_checked(e, r) for e, r in zip(concrete_node.entries, results, strict=True)]


def _checked(entry: Entry, result: Any) -> Array:
    """Return a result as an array after comparing its dtype and shape with its entry's.

    A dtype or shape that the entry does not know is not compared. A result of an operator without
    FCompute is broadcast to the entry's shape.

    Raises: DTypeError or ShapeError where they differ, or the result cannot be broadcast.
    """
    array, op = np.asarray(result), entry.node.op
    is_derived = op is not None and FCompute.get(op.name) is None
    origin = "other attributes give" if is_derived else "FCompute returned"
    if entry.dtype is not None and array.dtype != entry.dtype.numpy:
        raise DTypeError(
            f"{entry.node.where} has dtype {entry.dtype} by FInferType, and its {origin} "
            f"{array.dtype}; change one of them"
        )
    if entry.shape is not None and array.shape != entry.shape:
        if is_derived:
            with suppress(ValueError):
                return np.broadcast_to(array, array_shape(entry.shape))
        raise ShapeError(
            f"{entry.node.where} has shape {show_shape(entry.shape)} by FInferShape, and its "
            f"{origin} {show_shape(array.shape)}; change one of them"
        )
    return array


def concrete(node: Node, arrays: Sequence[Array], sizes: SizeValues) -> Node:
    """Return a node whose inputs have the shapes of ``arrays``, with numbers for symbolic sizes.

    Inputs of unknown dtype get the dtypes of the arrays. It is the node itself where that changes
    nothing, else a new node on new variables, whose result shapes and dtypes are inferred.
    ``sizes`` are the values of symbolic sizes by name.

    Raises:
        ShapeError: The shape of a result has a size that no input of the graph has, or the operator
            does not allow these input shapes.
        DTypeError, GraphError, RuleError: A rule of inference fails for these input shapes or
            dtypes.
    """
    fits = all(
        e.shape == a.shape and e.dtype is not None for e, a in zip(node.inputs, arrays, strict=True)
    )
    if fits and not (any(has_size(e.shape) for e in node.entries) or has_symbols(node.params)):
        return node
    inputs = [
        Node(None, (), {"shape": a.shape, "dtype": e.dtype or dtype_of(a.dtype)}, e.node.name)
        for e, a in zip(node.inputs, arrays, strict=True)
    ]
    params = {k: numbers(v, sizes) for k, v in node.params.items()}
    concrete_node = Node(node.op, [n.entries[0] for n in inputs], params, node.name)
    for e in concrete_node.entries:
        missing = symbols_of(e.shape or ())
        if missing:
            raise ShapeError(
                f"{node.where} needs a value for the size '{min(missing)}' of its result "
                f"{show_shape(e.shape)}, and no input of the graph has it; feed an array of that "
                "size, or give the result a shape of numbers"
            )
    return concrete_node


def array_shape(shape: Shape) -> tuple[int, ...]:
    """Return a shape as numbers.

    Raises:
        ShapeError: An extent is symbolic.
    """
    return tuple(operator.index(n) for n in shape)


def numbers(value: Any, sizes: SizeValues) -> Any:
    """Return a node's parameter ``value`` with ``sizes`` in place of its symbolic sizes.

    Sizes inside tuples are replaced too; a size without value stays symbolic. A value of another
    type is returned itself. Raises: ShapeError where a size then divides by zero.
    """
    if isinstance(value, Size):
        return substitute(value, sizes)
    if isinstance(value, tuple):
        return tuple(numbers(v, sizes) for v in value)
    return value


def evaluate_element(node: Node, *arrays: Array) -> ArrayList:
    """Evaluate the FElement of ``node`` at all indices; return an array for each output.

    ``arrays`` are the inputs' values, of any strides. All outputs have the shape of the first, and
    may be read-only broadcast views; without elements they are not evaluated. Raises: CodeGenError
    where FElement reads an input with a wrong number of indices or outside of it; RuleError where
    it returns something else than declared; ShapeError where a size in an index has no value.
    """
    shape = array_shape(known_shape(node.entries[0]))
    flat = {f"x{k}": np.ascontiguousarray(a).reshape(-1) for k, a in enumerate(arrays)}
    index = tuple(Var(f"i{k}", int64) for k in range(len(shape)))
    grid = np.ogrid[tuple(slice(0, n) for n in shape)] if shape else ()
    values = {f"i{k}": g for k, g in enumerate(grid)}
    exprs = element_expr(node, index, [_reader(k, e) for k, e in enumerate(node.inputs)])
    if numel(shape) == 0:
        return [np.zeros(shape, x.dtype.numpy) for x in exprs]
    return [np.broadcast_to(evaluate(x, values, flat), shape) for x in exprs]


def _reader(k: int, entry: Entry) -> Callable[..., Expr]:
    """Return the function by which FElement reads input ``k``, which is ``entry``.

    It returns a load for an expression of each index, and raises a CodeGenError where their number
    is not the rank of the input. ``entry`` has a known shape and dtype; the load reads the flat
    buffer ``x{k}``.
    """
    shape, dtype = known_shape(entry), entry.dtype
    assert dtype is not None

    def read(*at: Expr) -> Expr:
        """Return the load at an index for each axis. Raises: CodeGenError for another number."""
        if len(at) != len(shape):
            raise CodeGenError(
                f"FElement reads input {k}, which has {len(shape)} axes, at {len(at)} indices; "
                "pass one for each axis"
            )
        linear: Expr = size_of(0)
        for i, n in zip(at, shape, strict=True):
            linear = linear * size_of(n) + i
        return Load(f"x{k}", linear, dtype)

    return read


def evaluate_code(node: Node, *arrays: Array) -> ArrayList:
    """Evaluate the FCodeGen of ``node`` on ``arrays``, which broadcast; return a list.

    It has an array for each output, of the shape that the inputs which it reads broadcast to.
    Raises: CodeGenError where an expression has a function or type that NumPy cannot evaluate;
    RuleError where FCodeGen returns something else than declared; ShapeError where it has a
    symbolic size.
    """
    dtypes = [e.dtype or dtype_of(a.dtype) for e, a in zip(node.inputs, arrays, strict=True)]
    code = attribute_calls.call_codegen(node, *(Var(f"x{k}", d) for k, d in enumerate(dtypes)))
    values = {f"x{k}": a for k, a in enumerate(arrays)}
    return [np.asarray(evaluate(x, values)) for x in code]


def evaluate_contract(node: Node, *arrays: Array) -> ArrayList:
    """Evaluate the FContract of ``node``, a matrix product; return its result in a list.

    Products of floats below 64 bits are computed in float64, those of more than `WIDE_PRODUCTS`
    multiplications in float32, and rounded once to the dtype of the first array. Raises:
    CodeGenError where FContract returns a convolution, or there are not two arrays; RuleError where
    it returns anything else.
    """
    contract = attribute_calls.contraction_of(node)
    if not isinstance(contract, Contract) or len(arrays) != 2:
        raise CodeGenError(
            f"{node.where} cannot be evaluated: its FContract is no product of two matrices; set "
            "FCompute on its operator"
        )
    a, b = arrays
    out = a.dtype
    a = np.swapaxes(a, -1, -2) if contract.transpose_a else a
    b = np.swapaxes(b, -1, -2) if contract.transpose_b else b
    if dtype_of(out).is_float and out.itemsize < 8:
        work = numel((*contract.batch, contract.m, contract.n, contract.k))
        wide = np.float64 if isinstance(work, int) and work <= WIDE_PRODUCTS else np.float32
        a, b = a.astype(wide), b.astype(wide)
    return [cast_array(np.matmul(a, b), dtype_of(out))]


def evaluate_expand(node: Node, *arrays: Array) -> ArrayList:
    """Evaluate the operators that the FExpand of ``node`` returns; return an array per output.

    ``arrays`` are the inputs' values. Raises: CodeGenError where FExpand returns None; RuleError
    where it returns something else than entries; ShapeError, DTypeError, CodeGenError, RuleError,
    GraphError or FeedError where one of its operators cannot be evaluated, see `compute`.
    """
    types = tuple((a.shape, dtype_of(a.dtype)) for a in arrays)
    inner = expansion(node, types)
    values = dict(zip(inner.inputs, arrays, strict=True))
    for each in inner.nodes:
        results = compute(each, [values[e] for e in each.inputs], {})
        values.update(zip(each.entries, results, strict=True))
    return [values[e] for e in inner.heads]


_EVALUATORS = (
    (FElement, evaluate_element),
    (FReduce, evaluate_reduce),
    (FScan, evaluate_scan),
    (FContract, evaluate_contract),
    (FCodeGen, evaluate_code),
    (FExpand, evaluate_expand),
)
