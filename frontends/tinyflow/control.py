"""Control flow: branches, loops, and folds along the first axis, by functions of Python.

A branch that only a run can choose is computed beside the other, and ``where`` chooses; what it
writes to variables is written if it was chosen. A loop whose condition is known while the graph is
built is unrolled, and has gradients. Another one goes round in the run: its condition and its body
are graphs of their own, functions of the loop's variables and of what they read from outside.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from attrs import evolve

from passkit.errors import GraphError, SettingError, ShapeError
from passkit.frontends.tinyflow import arrays, elementwise, sources
from passkit.frontends.tinyflow.deferring import is_unranked
from passkit.frontends.tinyflow.graphs import Write, get_default_graph
from passkit.frontends.tinyflow.numbers import length, whole
from passkit.frontends.tinyflow.ranks import known_shape
from passkit.frontends.tinyflow.refusals import either, refuses
from passkit.frontends.tinyflow.scopes import name_scope, shared_variables
from passkit.frontends.tinyflow.shapes import shown
from passkit.frontends.tinyflow.tensors import (
    Operation,
    Tensor,
    convert_to_tensor,
    known_tensor,
    named,
    scalar,
    wrapped,
)
from passkit.frontends.tinyflow.types import as_dtype
from passkit.graph.graph import Graph, post_order
from passkit.graph.node import CONSTANT, Entry, Node, var
from passkit.graph.op import TStateful
from passkit.ops.helpers import make
from passkit.runtime import loop as runtime
from passkit.runtime.interpret import interpret

MOST_ROUNDS = 256
"""A loop of more rounds is not unrolled, even if their number is known."""
MOST_MASKED = 64
"""Nor is one of at most so many, of which a run knows how many it needs."""
MOST_NODES = 64
"""A number computed from more constants than this is not looked for."""
ONE_PROGRAM = "a run is one program"


# numbers that are known while the graph is built


def _value(tensor: Any) -> Any:
    """The number that a scalar is known to be, or None."""
    if not isinstance(tensor, Tensor):
        return tensor
    if tensor.known is not None:
        return tensor.known[()] if tensor.known.ndim == 0 else None
    if is_unranked(tensor) or known_shape(tensor.entry) != ():
        return None
    nodes: list[Node] = post_order([tensor.entry.node])
    fixed = all(n.op is not None and not TStateful.get(n.op.name, False) for n in nodes)
    if len(nodes) > MOST_NODES or not fixed or any(n in tensor.graph.writes for n in nodes):
        return None
    return interpret(Graph([tensor.entry]), {})[0][()]


def _simple(tensor: Tensor) -> Tensor:
    """A whole number that is known as a constant, so that the next round knows it, too."""
    number = _value(tensor) if tensor.dtype.is_integer and tensor.known is None else None
    if number is None:
        return tensor
    known = np.array(int(number), dtype=object)
    return known_tensor(known, tensor.dtype, None, "counter")


def _shared(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that makes variables in its first call, and shares them in later ones."""
    graph = get_default_graph()
    counts: dict[str, int] | None = None

    def called(*args: Any) -> Any:
        nonlocal counts
        if counts is None:
            counts = dict(graph.scope_counts)
            return function(*args)
        graph.scope_counts = dict(counts)
        with shared_variables():
            return function(*args)

    return called


# structures: lists, tuples and dicts of tensors


def _leaves(nest: Any) -> list[Any]:
    if isinstance(nest, dict):
        return [leaf for key in sorted(nest) for leaf in _leaves(nest[key])]
    if isinstance(nest, (list, tuple)):
        return [leaf for part in nest for leaf in _leaves(part)]
    return [nest]


def _like(nest: Any, leaves: Iterator[Any]) -> Any:
    """Leaves in the structure of ``nest``."""
    if isinstance(nest, dict):
        return {key: _like(nest[key], leaves) for key in sorted(nest)}
    if isinstance(nest, (list, tuple)):
        parts = [_like(part, leaves) for part in nest]
        if hasattr(nest, "_make"):
            return nest._make(parts)
        return parts if isinstance(nest, list) else tuple(parts)
    return next(leaves)


# branches


@refuses("a branch gives what its function returns", "strict")
def cond(
    pred: Any,
    true_fn: Callable[[], Any] | None = None,
    false_fn: Callable[[], Any] | None = None,
    strict: bool = False,
    name: str | None = None,
    fn1: Callable[[], Any] | None = None,
    fn2: Callable[[], Any] | None = None,
) -> Any:
    """Return the result of ``true_fn`` where ``pred`` holds, else that of ``false_fn``.

    Both are computed, unless ``pred`` is known, and one is chosen; variables are written by the one
    that is chosen. A NaN in the gradient of the other spreads: guard a division by `tf.where`.

    Raises: GraphError where the two do not return tensors of the same number, dtypes and shapes.
    """
    yes = either("cond", "true_fn", true_fn, "fn1", fn1)
    no = either("cond", "false_fn", false_fn, "fn2", fn2)
    if not callable(yes) or not callable(no):
        raise SettingError(f"cond needs functions as true_fn and false_fn, got {yes!r} and {no!r}")
    with name_scope(name, "cond"):
        known = _value(pred) if isinstance(pred, Tensor) else bool(pred)
        if known is not None:
            return (yes if known else no)()
        chosen = scalar(pred)
        if chosen.dtype is None or chosen.dtype.name != "bool":
            raise GraphError(f"cond needs a bool as pred, got {pred!r}; tf.cast converts it")
        with _written_if(chosen):
            first = yes()
        with _written_if(make("logical_not", chosen)):
            second = no()
        return _chosen(chosen, first, second)


@contextmanager
def _written_if(condition: Entry) -> Iterator[None]:
    """Within it, variables are written in a run in which ``condition`` holds."""
    graph = get_default_graph()
    before = set(graph.writes)
    yield
    for node in set(graph.writes) - before:
        write: Write = graph.writes[node]
        when = condition if write.when is None else make("logical_and", condition, write.when)
        graph.writes[node] = evolve(write, when=when)


def _chosen(condition: Entry, first: Any, second: Any) -> Any:
    """One of two structures of tensors, which are alike. Raises: GraphError where they differ."""
    sides = [_leaves(first), _leaves(second)]
    if len(sides[0]) != len(sides[1]):
        raise GraphError(
            f"cond needs functions that return as many tensors, got {len(sides[0])} and "
            f"{len(sides[1])}"
        )
    return _like(first, iter([_one(condition, *pair) for pair in zip(*sides, strict=True)]))


def _one(condition: Entry, first: Any, second: Any) -> Any:
    if first is None and second is None:
        return None
    if isinstance(first, Operation) or isinstance(second, Operation):
        nodes = [n for s in (first, second) if s is not None for n in _nodes(s)]
        return Operation(named(None, "Merge"), nodes, get_default_graph())
    a, b = convert_to_tensor(first), convert_to_tensor(second)
    ranked = not (is_unranked(a) or is_unranked(b))
    if a.dtype is not b.dtype or (ranked and len(a.shape) != len(b.shape)):
        raise GraphError(
            f"cond needs functions that return tensors of one dtype and rank, got {a!r} and {b!r}"
        )
    return wrapped(make("where", condition, a.entry, b.entry), named(None, "Merge"))


def _nodes(value: Any) -> Sequence[Node]:
    return value.nodes if isinstance(value, Operation) else [convert_to_tensor(value).entry.node]


@refuses("a branch gives what its function returns", "strict")
@refuses("the first that holds is taken", "exclusive")
def case(
    pred_fn_pairs: Any,
    default: Callable[[], Any] | None = None,
    exclusive: bool = False,
    strict: bool = False,
    name: str = "case",
) -> Any:
    """Return the result of the first pair whose condition holds, else that of ``default``.

    Without a default, the last function is taken where none holds.
    """
    pairs = list(pred_fn_pairs.items() if isinstance(pred_fn_pairs, dict) else pred_fn_pairs)
    if not pairs:
        raise SettingError("case needs pairs of a condition and a function, got none")
    last = pairs.pop()[1] if default is None else default
    with name_scope(name, "case"):
        found = last
        for condition, function in reversed(pairs):
            found = _nested(condition, function, found)
        return found()


def _nested(
    condition: Any, function: Callable[[], Any], rest: Callable[[], Any]
) -> Callable[[], Any]:
    return lambda: cond(condition, function, rest)


# loops


@refuses(ONE_PROGRAM, "swap_memory", "parallel_iterations")
def while_loop(
    cond: Callable[..., Any],
    body: Callable[..., Any],
    loop_vars: Any,
    shape_invariants: Any = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    name: str | None = None,
    maximum_iterations: Any = None,
    return_same_structure: bool = False,
) -> Any:
    """The loop's variables after rounds of ``body``, which goes on while ``cond`` holds of them.

    Unrolled where the condition is known while the graph is built, for up to 256 rounds, and for
    ``maximum_iterations`` up to 64; then it has gradients, unless ``back_prop`` is False. Else it
    goes round in the run: variables keep dtype and shape, nothing is assigned in the body, and
    there is no gradient. ``shape_invariants`` may only repeat the shapes that they have.

    Raises: GraphError for a body that returns something else than it gets, or that assigns.
    """
    most = None if maximum_iterations is None else _value(maximum_iterations)
    if maximum_iterations is not None:
        most = whole("while_loop", "maximum_iterations", most)
    with name_scope(name, "while"):
        nest = loop_vars if isinstance(loop_vars, (list, tuple)) else [loop_vars]
        first = [_simple(convert_to_tensor(v)) for v in _leaves(nest)]
        _check_invariants(first, shape_invariants)
        loop = _Loop(cond, body, nest)
        found = loop.unrolled(first, most, back_prop)
        if found is None:
            found = loop.running(first, most)
        if not back_prop:
            found = [elementwise.stop_gradient(v) for v in found]
        out = _like(nest, iter(found))
        return out[0] if len(out) == 1 and not return_same_structure else out


def _check_invariants(values: Sequence[Tensor], invariants: Any) -> None:
    if invariants is None:
        return
    given = [i if hasattr(i, "as_list") else None for i in _leaves_of_shapes(invariants)]
    for value, shape in zip(values, given, strict=False):
        own = None if is_unranked(value) else [d.value for d in value.shape]
        if shape is not None and own is not None and shape.as_list() != own:
            raise ShapeError(
                f"while_loop needs variables that keep their shape, got shape_invariants with "
                f"{shape} for {value!r}; a tensor of the largest size and a count serve instead"
            )


def _leaves_of_shapes(invariants: Any) -> list[Any]:
    """Shapes in lists and tuples, which are themselves tuples."""
    if hasattr(invariants, "as_list") or invariants is None:
        return [invariants]
    return [s for part in invariants for s in _leaves_of_shapes(part)]


class _Loop:
    """A loop as the functions of a program: ``nest`` is the structure of its variables."""

    def __init__(self, cond: Callable[..., Any], body: Callable[..., Any], nest: Any) -> None:
        self.cond, self.body, self.nest = cond, _shared(body), nest

    def goes_on(self, values: Sequence[Tensor]) -> Tensor:
        """Whether there is another round. Raises: GraphError for what is no single bool."""
        found = convert_to_tensor(self.cond(*_like(self.nest, iter(values))))
        if found.dtype.name != "bool" or (not is_unranked(found) and len(found.shape)):
            raise GraphError(f"while_loop needs a single bool of its condition, got {found!r}")
        return found

    def next(self, values: Sequence[Tensor]) -> list[Tensor]:
        """The variables after a round. Raises: GraphError for another number or dtype of them."""
        result = self.body(*_like(self.nest, iter(values)))
        found = [convert_to_tensor(v) for v in _leaves(result)]
        if len(found) != len(values):
            raise GraphError(
                f"while_loop has {len(values)} variables, and its body returns {len(found)}"
            )
        for k, (old, new) in enumerate(zip(values, found, strict=True)):
            if old.dtype is not new.dtype:
                raise GraphError(
                    f"while_loop begins with {old!r} as variable {k}, and its body returns {new!r}"
                )
        return [_simple(v) for v in found]

    def unrolled(
        self, first: list[Tensor], most: int | None, back_prop: bool
    ) -> list[Tensor] | None:
        """The variables after all rounds, one behind the other; None if it is not known when."""
        values, rounds = first, 0
        while most is None or rounds < most:
            on = _value(self.goes_on(values))
            if on is None or rounds == MOST_ROUNDS:
                if rounds == 0 and back_prop and most is not None and most <= MOST_MASKED:
                    return self.masked(first, most)
                return None
            if not on:
                return values
            values, rounds = self.next(values), rounds + 1
        return values

    def masked(self, values: list[Tensor], most: int) -> list[Tensor]:
        """``most`` rounds, of which those that the condition ends leave the variables alone."""
        on: Entry | None = None
        for _ in range(most):
            more = scalar(self.goes_on(values))
            on = more if on is None else make("logical_and", on, more)
            with _written_if(on):
                new = self.next(values)
            values = [_one(on, b, a) for a, b in zip(values, new, strict=True)]
        return values

    def running(self, first: list[Tensor], most: int | None) -> list[Tensor]:
        """The variables after a loop that goes round in the run."""
        graph = get_default_graph()
        begin = [v.entry for v in first] + [sources.constant(0, "int64").entry]
        for entry in begin:
            known_shape(entry, "while_loop")
        states = [var(f"{runtime.STATE}{k}", e.shape, e.dtype) for k, e in enumerate(begin)]
        inside = [wrapped(e, f"loop_{k}", control=False) for k, e in enumerate(states)]
        writes = len(graph.writes)
        with graph.after(None), graph.in_round(states[-1]):
            goes_on = self.goes_on(inside[:-1]).entry
            if most is not None:
                goes_on = make("logical_and", goes_on, make("less", states[-1], most))
            heads = [v.entry for v in self.next(inside[:-1])] + [states[-1] + 1]
        if len(graph.writes) != writes:
            raise GraphError(
                "while_loop goes round in the run, and its body assigns to a variable; pass the "
                "value around the loop, and assign it afterwards"
            )
        for k, (old, new) in enumerate(zip(states, heads, strict=True)):
            if old.shape != new.shape:
                raise ShapeError(
                    f"while_loop needs variables that keep their shape, and variable {k} changes "
                    f"from {shown(known_shape(old))} to {shown(known_shape(new, 'while_loop'))}"
                )
        graphs, given = _closed([[goes_on], heads], states)
        made = runtime.while_loop(graphs[0], graphs[1], begin, given, named(None, "while"))
        return [wrapped(e, named(None, "Exit")) for e in made[:-1]]


def _closed(heads: list[list[Entry]], states: list[Entry]) -> tuple[list[Graph], list[Entry]]:
    """Graphs of the loop's variables and of what they read, and what that is outside.

    What does not depend on the variables is computed once, outside.
    """
    order = post_order([h.node for part in heads for h in part])
    moving = {s.node for s in states}
    for node in order:
        if any(e.node in moving for e in node.inputs):
            moving.add(node)
    inputs = [e for n in order if n in moving for e in n.inputs]
    inputs += [h for part in heads for h in part]
    read = dict.fromkeys(
        e
        for e in inputs
        if e.node not in moving and e.node.op is not CONSTANT
    )
    names = {
        e: var(f"{runtime.STATE}{len(states) + k}", known_shape(e, "while_loop"), e.dtype)
        for k, e in enumerate(read)
    }
    graphs = []
    for part in heads:
        graph = Graph(part)
        inside = {e for n in graph.nodes for e in n.entries}
        own = {e: new for e, new in names.items() if e in inside}
        graphs.append(graph.replace(own) if own else graph)
    return graphs, list(read)


# folds along the first axis


def _slices(where: str, elems: Any) -> list[Any]:
    """The elements along the first axis, in the structure of ``elems``.

    Raises: ShapeError where their number is not known.
    """
    tensors = [convert_to_tensor(e) for e in _leaves(elems)]
    counts = {length(where, known_shape(t.entry, where), 0) for t in tensors}
    if len(counts) != 1 or not isinstance(next(iter(counts)), int):
        raise ShapeError(
            f"{where} needs elements of one known number, got {tensors!r}; it is unrolled, so that "
            f"placeholders need the length of their first axis"
        )
    parts = [arrays.unstack(t) for t in tensors]
    return [_like(elems, iter(row)) for row in zip(*parts, strict=True)]


def _stacked(rows: list[Any]) -> Any:
    """Structures of tensors as one structure of tensors with a further axis, the first."""
    columns = zip(*(_leaves(r) for r in rows), strict=True)
    whole = [arrays.stack([convert_to_tensor(v) for v in column]) for column in columns]
    return _like(rows[0], iter(whole))


@refuses(ONE_PROGRAM, "parallel_iterations", "swap_memory", "infer_shape")
def scan(
    fn: Callable[[Any, Any], Any],
    elems: Any,
    initializer: Any = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    infer_shape: bool = True,
    reverse: bool = False,
    name: str | None = None,
) -> Any:
    """a = fn(a, element) for each element along the first axis; all of them, stacked.

    The number of elements must be known. Without ``initializer`` the first one is it.
    """
    with name_scope(name, "scan"):
        found = list(_accumulated("scan", fn, elems, initializer, reverse))
        out = _stacked(list(reversed(found)) if reverse else found)
        return out if back_prop else _still(out)


@refuses(ONE_PROGRAM, "parallel_iterations", "swap_memory")
def foldl(
    fn: Callable[[Any, Any], Any],
    elems: Any,
    initializer: Any = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    name: str | None = None,
) -> Any:
    """a = fn(a, element) for each element along the first axis; the last of them."""
    with name_scope(name, "foldl"):
        *_, last = _accumulated("foldl", fn, elems, initializer, False)
        return last if back_prop else _still(last)


def _accumulated(
    where: str, fn: Callable[[Any, Any], Any], elems: Any, initializer: Any, reverse: bool
) -> Iterator[Any]:
    rows, fn = _slices(where, elems), _shared(fn)
    rows = rows[::-1] if reverse else rows
    if initializer is None:
        a, rows = rows[0], rows[1:]
        yield a
    else:
        a = initializer
    for row in rows:
        a = fn(a, row)
        yield a


@refuses(ONE_PROGRAM, "parallel_iterations", "swap_memory", "infer_shape", "fn_output_signature")
def map_fn(
    fn: Callable[[Any], Any],
    elems: Any,
    dtype: Any = None,
    parallel_iterations: int | None = None,
    back_prop: bool = True,
    swap_memory: bool = False,
    infer_shape: bool = True,
    name: str | None = None,
    fn_output_signature: Any = None,
) -> Any:
    """fn(element) of each element along the first axis, stacked; their number must be known.

    ``dtype`` is that of the results. Raises: GraphError where they are of another one.
    """
    with name_scope(name, "map"):
        called = _shared(fn)
        out = _stacked([called(row) for row in _slices("map_fn", elems)])
        for tensor, kind in zip(_leaves(out), _leaves(dtype) if dtype else (), strict=False):
            if tensor.dtype is not as_dtype(kind):
                raise GraphError(
                    f"map_fn needs results of its dtype {as_dtype(kind)}, got {tensor!r}"
                )
        return out if back_prop else _still(out)


def _still(nest: Any) -> Any:
    """Tensors through which no gradient flows."""
    return _like(nest, iter([elementwise.stop_gradient(t) for t in _leaves(nest)]))
