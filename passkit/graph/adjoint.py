"""Reverse-mode differentiation: `gradients` of some entries by others, as new entries of the graph.

Source: reverse accumulation as in NNVM's Gradient; each node is visited once, after all its users,
with the sum of the adjoints that they pass to it. `passkit.graph.backward` differentiates one node.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from passkit.errors import DTypeError, GraphError, SettingError, ShapeError
from passkit.graph.backward import Adjoint, backward
from passkit.graph.call import find_operator
from passkit.graph.graph import post_order
from passkit.graph.infer import show_shape
from passkit.graph.narrow import narrow_like, widen
from passkit.graph.node import AS_READ, Entry, Node, as_entry, constant, is_state
from passkit.graph.node_view import NodeLike
from passkit.graph.op import TStateful
from passkit.graph.rematerialize import Rematerialization, view_of_state_read
from passkit.graph.rounding import is_narrow_entry
from passkit.values import arguments
from passkit.values.size import symbols_of

Aggregate = Callable[[Sequence[Entry]], Entry]
UNCONNECTED = ("zero", "none", "error")


def gradients(
    ys: Entry | Sequence[Entry],
    xs: Entry | Sequence[Entry],
    grad_ys: Entry | Sequence[Adjoint] | None = None,
    *,
    unconnected: str = "zero",
    aggregate: Aggregate | None = None,
    recompute: Callable[[Node], bool] | None = None,
) -> list[Entry | None]:
    """Return the gradients of the sum of ``ys`` by each of ``xs``.

    Gradients of 16-bit floats are computed in float32 where they, or their sums, would otherwise be
    rounded more than once.

    Args:
        ys: the entries to differentiate; floats (not complex), or of unknown dtype.
        xs: the entries to differentiate by, variables or computed; floats, or of unknown dtype.
        grad_ys: a list or tuple with the weights of each y: an entry or array of exactly its shape
            and dtype, or None for ones. Anything else is the weights of the only y. None in place
            of the list is ones for all.
        unconnected: the gradient of an x that no y depends on, or only through operators that pass
            on no gradient, such as stop_gradient, floor and casts to integers: ``"zero"`` is zeros
            of its shape, ``"none"`` is None, ``"error"`` raises a GraphError.
        aggregate: called with the two or more gradients that the users of an entry pass to it;
            returns their sum. They are float32 for some 16-bit entries. By default they are added
            as a balanced tree.
        recompute: called with each forward node that a gradient needs and that has inputs and no
            state; where it returns True the node is computed again in the backward pass, so that
            its results need not be kept.

    Returns:
        A gradient for each x, of its shape and dtype; None for an unconnected x with
        ``unconnected="none"``.

    Raises:
        GraphError: An operator has no gradient, an x is unconnected with ``"error"``, an element of
            ``ys`` or ``xs`` is no entry, or ``grad_ys`` has another length than ``ys``.
        ArgumentError: ``ys`` or ``xs`` is neither an entry nor a sequence, a weight neither an
            entry nor numbers, ``aggregate`` or ``recompute`` no function, or a result of
            ``aggregate`` no entry.
        DTypeError: A y or x is known to be no float, a weight or gradient has the wrong dtype, or
            an elementwise operator has an input of unknown dtype.
        ShapeError: A gradient does not fit its input, or a weight its y.
        RuleError: FGradient or FExpand of an operator returns something else than it must.
        CodeGenError: No operator computes the derivative of an operator's FCodeGen.
        SettingError: ``unconnected`` is none of the three.

    Example:
        >>> import numpy as np, passkit as pk
        >>> x = pk.var("x", (3,))
        >>> (dx,) = pk.gradients(pk.ops.reduce_sum(x * x), x)
        >>> pk.interpret(pk.Graph([dx]), {"x": np.array([1, 2, 3], "float32")})[0].tolist()
        [2.0, 4.0, 6.0]
    """
    if unconnected not in UNCONNECTED:
        raise SettingError(
            f"unconnected must be one of {', '.join(map(repr, UNCONNECTED))}, got {unconnected!r}"
        )
    for name, function in (("aggregate", aggregate), ("recompute", recompute)):
        if function is not None:
            arguments.function(f"gradients: {name}", function)
    heads, leaves = _entries("ys", ys), _entries("xs", xs)
    for argument, entries in (("ys", heads), ("xs", leaves)):
        for e in entries:
            if e.dtype is not None and not e.dtype.is_float:
                raise DTypeError(
                    f"gradients: {argument} must be floats, and {e.name} is {e.dtype}; "
                    f"pk.ops.cast(x, 'float32') converts it"
                )
    seeds = _seeds(heads, grad_ys)
    order = post_order(e.node for e in heads)
    rematerialization = None if recompute is None else Rematerialization(recompute)
    sweep = ReverseSweep(aggregate or add_all, rematerialization)
    results = sweep.adjoints(order, heads, seeds, leaves, state_as_read=True)
    return [
        _unconnected(x, k, unconnected) if dx is None else dx
        for k, (x, dx) in enumerate(zip(leaves, with_known_sizes(results, order), strict=True))
    ]


def _entries(argument: str, value: Entry | Sequence[Entry]) -> list[Entry]:
    """Return an argument of `gradients`, one entry or a sequence, as a list of entries.

    Args:
        argument: the argument's name, for messages.
        value: the argument: an entry, or any iterable but a text or mapping.

    Raises: ArgumentError where it is neither, GraphError where an element is no entry.
    """
    need = "an Entry or a sequence of entries"
    if isinstance(value, Entry):
        return [value]
    entries = list(arguments.sequence(f"gradients: {argument}", value, object, need))
    for k, e in enumerate(entries):
        if not isinstance(e, Entry):
            raise GraphError(
                f"{argument}[{k}] of gradients must be an Entry, got {type(e).__name__}"
            )
    return entries


def _seeds(ys: Sequence[Entry], grad_ys: Entry | Sequence[Adjoint] | None) -> list[Entry]:
    """Return the adjoint that the sweep starts with at each of ``ys``.

    Args:
        ys: the entries to differentiate.
        grad_ys: a list or tuple of one weight for each y, of its shape and dtype; anything else is
            the weight of the only y. None, for all or for one, means ones.

    Raises: GraphError on another number of weights; ShapeError or DTypeError on a weight whose
    known shape or dtype is not that of its y; ArgumentError on one that is neither an entry nor
    numbers.
    """
    if grad_ys is None:
        return [ones(y) for y in ys]
    weights = list(grad_ys) if isinstance(grad_ys, (list, tuple)) else [grad_ys]
    if len(weights) != len(ys):
        raise GraphError(
            f"gradients: grad_ys must have one weight for each of the {len(ys)} ys, got "
            f"{len(weights)}; None in place of a weight means ones"
        )
    return [ones(y) if w is None else _weight(y, w) for y, w in zip(ys, weights, strict=True)]


def _weight(y: Entry, value: Any) -> Entry:
    """Return ``value``, the adjoint that a user gives for ``y``, as an entry.

    Raises: ShapeError or DTypeError where its shape or dtype and that of ``y`` are known and not
    equal (a symbolic size equals only itself); ArgumentError where it is neither an entry nor
    numbers, DTypeError for a kernel expression and a dtype that passkit does not have, and
    GraphError for a tuple of entries.
    """
    weight = as_entry(value)
    if weight.shape != y.shape and None not in (weight.shape, y.shape):
        raise ShapeError(
            f"the gradient given for {y.name} must have its shape {show_shape(y.shape)}, got "
            f"{show_shape(weight.shape)}; insert broadcast_to"
        )
    if weight.dtype is not y.dtype and None not in (weight.dtype, y.dtype):
        raise DTypeError(
            f"the gradient given for {y.name} must be {y.dtype}, got {weight.dtype}; insert "
            f"pk.ops.cast(…, '{y.dtype}')"
        )
    return weight


def ones(like: Entry) -> Entry:
    """Return ones of the shape and dtype of ``like``.

    They depend on ``like`` itself only where its shape or dtype is not known.
    """
    if like.shape is None or like.dtype is None:
        return find_operator("ones_like")(like)  # type: ignore[no-any-return]
    one = constant(1, like.dtype)
    return find_operator("broadcast_to")(one, shape=like.shape) if like.shape else one


def _unconnected(x: Entry, k: int, unconnected: str) -> Entry | None:
    """Return the gradient of ``xs[k]``, which is ``x`` and gets no gradient from any y.

    ``unconnected`` says which: ``"none"`` gives None, ``"zero"`` zeros of its shape and dtype.

    Raises: GraphError on any other value of ``unconnected``.
    """
    if unconnected == "none":
        return None
    if unconnected == "zero":
        return find_operator("zeros_like")(x)  # type: ignore[no-any-return]
    raise GraphError(
        f"gradients: no y depends on xs[{k}], {x.name}, so it has no gradient; leave it out, or "
        f"pass unconnected='zero' to get zeros"
    )


def add_all(terms: Sequence[Entry]) -> Entry:
    """Return the sum of one or more entries of one dtype, added in order as a balanced tree.

    A single entry is returned itself.
    """
    level = list(terms)
    add = find_operator("+")
    while len(level) > 1:
        pairs = [add(a, b) for a, b in zip(level[::2], level[1::2], strict=False)]
        level = pairs + level[len(pairs) * 2 :]
    return level[0]


def with_known_sizes(results: Sequence[Adjoint], order: Iterable[Node]) -> Sequence[Adjoint]:
    """Return gradients that depend on variables from which all their symbolic sizes follow.

    A call determines symbolic sizes from the shapes of the arrays it feeds. The gradient of a sum
    has the shape of its input but does not read it; where no variable that a gradient depends on
    has one of its symbols, ``sized_by`` adds a variable of ``order`` that does.

    Args:
        results: the gradients, in any order; None stays None.
        order: the nodes of the forward graph, whose variables may be added.

    Returns: A gradient for each of ``results``, in their order: the same entry where no variable
    has to be added.
    """
    sources: dict[str, tuple[int, Entry]] = {}  # symbol: its bit, and a variable that has it
    for node in order:
        if node.op is None:
            for symbol in symbols_of(node.entries[0].shape or ()):
                sources.setdefault(symbol, (1 << len(sources), node.entries[0]))
    if not sources:
        return results
    sum_like = find_operator("sum_like")
    symbols: dict[Node, tuple[int, int]] = {}  # bits of the sizes needed, of those determined
    for node in post_order(e.node for e in results if e is not None):
        used = determined = 0
        for value in node.params.values():
            for symbol in symbols_of(value if isinstance(value, tuple) else (value,)):
                used |= sources[symbol][0] if symbol in sources else 0
        if node.op is None:
            determined, used = used, 0
        for k, entry in enumerate(node.inputs):
            bits = symbols[entry.node]
            used |= bits[0]
            if k == 0 or node.op is not sum_like:  # which is simplified to what reads one input
                determined |= bits[1]
        symbols[node] = used, determined

    def with_sources(result: Adjoint) -> Adjoint:
        """Return a gradient that reads the variables it misses; None for None."""
        if result is None:
            return None
        used, determined = symbols[result.node]
        missing = [e for bit, e in sources.values() if used & ~determined & bit]
        if not missing:
            return result
        return find_operator("sized_by")(result, *dict.fromkeys(missing))  # type: ignore[no-any-return]

    return [with_sources(result) for result in results]


class ReverseSweep:
    """A traversal of nodes, users first, that passes adjoints from results to inputs.

    Args:
        aggregate: sums the adjoints that several users pass to an entry.
        rematerialization: creates the copies of forward nodes that gradients refer to; by default
            gradients refer to the forward nodes themselves.
    """

    def __init__(
        self, aggregate: Aggregate, rematerialization: Rematerialization | None = None
    ) -> None:
        self.aggregate = aggregate
        self.rematerialization = rematerialization

    def adjoints(
        self,
        order: Sequence[Node],
        ys: Sequence[Entry],
        seeds: Sequence[Adjoint],
        xs: Sequence[Entry],
        state_as_read: bool = False,
    ) -> list[Adjoint]:
        """Return the adjoint of each of ``xs``, None where no adjoint of a y reaches it.

        Args:
            order: the nodes to go through, in post-order.
            ys: the entries at which the sweep starts.
            seeds: the adjoint of each y; None where it is zero.
            xs: the entries at which it ends.
            state_as_read: whether gradients refer to state variables as the nodes read them, rather
                than as they are when the gradient runs.

        Raises: GraphError where an operator has no gradient; CodeGenError where no operator
        computes its derivative; RuleError, ShapeError or DTypeError where a gradient is no entry or
        does not fit its input; ArgumentError where ``aggregate`` returns no entry.
        """
        values = state_values(order)
        live = _live(order, values, xs)
        counts = Counter(e for n in order for e in values.get(n, n.inputs) if e in live)
        counts.update(y for y, seed in zip(ys, seeds, strict=True) if seed is not None)
        terms: dict[Entry, list[Entry]] = {}
        totals: dict[Entry, Adjoint] = {}
        for y, seed in zip(ys, seeds, strict=True):
            if y in live and seed is not None:
                terms.setdefault(y, []).append(seed)

        def total(entry: Entry) -> Adjoint:
            """Return the sum of the terms passed to an entry so far, None if there are none.

            It is computed at the first call, when all users of the entry were visited. Raises:
            ArgumentError where ``aggregate`` returns no entry.
            """
            if entry not in totals:
                own_terms = terms.pop(entry, None)
                totals[entry] = self.sum(own_terms, entry) if own_terms else None
            return totals[entry]

        for node in reversed(order):
            inputs = values.get(node, node.inputs)
            needed = [e in live for e in inputs]
            if node.op is None or not any(needed):
                continue
            dys = [total(e) for e in node.entries]
            after = next((dy.node for dy in dys if dy is not None), None)
            if after is None:
                continue
            forward = self.forward_node(node, after) if state_as_read else node
            has_more = [counts[e] > 1 for e in inputs]
            dxs = backward(forward, dys, needed, has_more, self.through_expansion)
            for e, dx in zip(inputs, dxs, strict=True):
                if dx is not None:
                    terms.setdefault(e, []).append(dx)
        return [total(x) for x in xs]

    def forward_node(self, node: Node, after: Node) -> NodeLike:
        """Return what the gradient of ``node`` refers to: a copy of it, a view, or ``node`` itself.

        A copy, or a view with copied inputs, comes from the rematerialization, if there is one; new
        copies run after the node ``after``. Else it is a view if the node reads state variables.
        """
        if self.rematerialization is not None:
            return self.rematerialization.forward_node(node, after)
        return view_of_state_read(node) or node

    def sum(self, terms: Sequence[Entry], entry: Entry) -> Entry:
        """Return the adjoint of ``entry``: the sum of the one or more terms that users pass to it.

        Terms of a 16-bit entry are summed in float32 where there are more than two, or one of them
        is float32; the sum is rounded once. A single term is returned itself, or rounded.

        Raises: ArgumentError where ``aggregate`` returns no entry.
        """
        rounds = len(terms) > 2 or any(t.dtype is not entry.dtype for t in terms)
        if is_narrow_entry(entry) and len(terms) > 1 and rounds:
            terms = [widen(t) for t in terms]
        total: Any = terms[0] if len(terms) == 1 else self.aggregate(terms)
        if not isinstance(total, Entry):
            need = "a function that returns the sum of the entries it is called with"
            arguments.refuse("gradients: aggregate", total, need)
        return narrow_like(total, entry)

    def through_expansion(
        self, heads: Sequence[Entry], dys: Sequence[Adjoint], xs: Sequence[Entry]
    ) -> list[Adjoint]:
        """Differentiate a composite operator through the graph that it expands to.

        Args:
            heads: the results of the expansion.
            dys: the adjoint of each of them; None where it is zero.
            xs: the composite's inputs.

        Returns: An adjoint for each of ``xs``, None where no adjoint of a head reaches it. For an
        entry that occurs twice in ``xs``, the first occurrence has the entire adjoint and the
        others None.

        Raises: GraphError where an operator in between has no gradient; CodeGenError, RuleError,
        ShapeError, DTypeError or ArgumentError as `adjoints` raises them.
        """
        unique = list(dict.fromkeys(xs))
        dxs = self.adjoints(nodes_between(heads, xs), heads, dys, unique)
        by_entry = dict(zip(unique, dxs, strict=True))
        return [by_entry.pop(x, None) for x in xs]  # an input that occurs twice counts once


def state_values(order: Iterable[Node]) -> dict[Node, tuple[Entry, ...]]:
    """Return the inputs of nodes that read state variables after they were written.

    Args:
        order: the nodes in program order.

    Returns:
        For each such node, and only for these, its inputs with the last value written in place of
        each state variable; for an AS_READ node the value that the node it depends on had read.
    """
    latest: dict[Entry, Entry] = {}
    inputs_of: dict[Node, tuple[Entry, ...]] = {}
    for node in order:
        if latest and any(e in latest for e in node.inputs):
            values = latest
            if node.op is AS_READ:  # the value that another node read
                reader = node.control[0]
                read = inputs_of.get(reader, reader.inputs)
                values = dict(zip(reader.inputs, read, strict=True))
            inputs_of[node] = tuple(values.get(e, e) for e in node.inputs)
        is_stateful = node.op is not None and TStateful.get(node.op.name)
        if is_stateful and node.inputs and is_state(node.inputs[0]):
            latest[node.inputs[0]] = node.entries[0]
    return inputs_of


def _live(
    order: Iterable[Node], values: Mapping[Node, tuple[Entry, ...]], xs: Sequence[Entry]
) -> set[Entry]:
    """Return ``xs`` and the entries that depend on any of them: those that have an adjoint.

    Args:
        order: the nodes, producers first.
        values: for some nodes the inputs to use in place of their own.
        xs: the entries to differentiate by.

    Results known not to be floats are left out, as is what depends on ``xs`` only through them.
    """
    live = set(xs)
    for node in order:
        if any(e in live for e in values.get(node, node.inputs)):
            live.update(e for e in node.entries if e.dtype is None or e.dtype.is_float)
    return live


def nodes_between(heads: Iterable[Entry], xs: Iterable[Entry]) -> list[Node]:
    """Return the nodes that compute ``heads``, producers first, without the nodes of ``xs``.

    What only those of ``xs`` read is left out, too. Control dependencies are not followed.
    """
    done = {e.node for e in xs}
    order: list[Node] = []
    stack = [e.node for e in heads]
    while stack:
        node = stack[-1]
        pending = [e.node for e in node.inputs if e.node not in done] if node not in done else []
        if pending:
            stack += reversed(pending)
            continue
        stack.pop()
        if node not in done:
            done.add(node)
            order.append(node)
    return order
