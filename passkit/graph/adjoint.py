"""Gradients: the reverse sweep over a graph, from results to what they come from.

Source: reverse accumulation as in NNVM's Gradient; each node is visited once, after all that uses
it, with the sum of the gradients that they pass to it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from passkit.errors import DTypeError, GraphError, SettingError, ShapeError
from passkit.graph.backward import Flow, backward
from passkit.graph.call import find_operator
from passkit.graph.graph import post_order
from passkit.graph.infer import show_shape
from passkit.graph.narrow import narrowed, widened
from passkit.graph.node import AS_READ, Entry, Node, as_entry, constant, is_state
from passkit.graph.op import TStateful
from passkit.graph.rematerialize import Rematerialization, pinned
from passkit.graph.rounding import is_narrow_entry
from passkit.values import arguments
from passkit.values.size import symbols_of

Aggregate = Callable[[Sequence[Entry]], Entry]
UNCONNECTED = ("zero", "none", "error")


def gradients(
    ys: Entry | Sequence[Entry],
    xs: Entry | Sequence[Entry],
    grad_ys: Entry | Sequence[Flow] | None = None,
    *,
    unconnected: str = "zero",
    aggregate: Aggregate | None = None,
    recompute: Callable[[Node], bool] | None = None,
) -> list[Entry | None]:
    """The gradients of the sum of ``ys`` by each of ``xs``: entries of the same shapes and dtypes.

    ``grad_ys`` weigh the elements of ``ys``; None is all ones. An x that no y depends on has a
    gradient of zeros, of None with ``unconnected="none"``, or is refused with ``"error"``.
    ``aggregate`` sums a list of entries; by default they are added as a balanced tree. Nodes for
    which ``recompute`` holds are computed again where a gradient needs them, not kept until then.
    Gradients of 16-bit floats, and their sums, are computed in float32 and rounded once:
    ``aggregate`` then gets entries of float32.

    Raises: GraphError for an operator without a gradient, or an x out of reach; DTypeError when a
    y or x is no float; ShapeError when a gradient does not fit.
    """
    if unconnected not in UNCONNECTED:
        raise SettingError(
            f"unconnected must be one of {', '.join(map(repr, UNCONNECTED))}, got {unconnected!r}"
        )
    heads, leaves = _entries("ys", ys), _entries("xs", xs)
    for what, entries in (("ys", heads), ("xs", leaves)):
        for e in entries:
            if e.dtype is not None and not e.dtype.is_float:
                raise DTypeError(
                    f"gradients are of floats, and {e.name} in {what} is {e.dtype}; "
                    f"pk.ops.cast(x, 'float32') makes it one"
                )
    seeds = _seeds(heads, grad_ys)
    order = post_order(e.node for e in heads)
    again = None if recompute is None else Rematerialization(recompute)
    found = Sweep(aggregate or added, again).over(order, heads, seeds, leaves, pinned=True)
    return [
        _unconnected(x, k, unconnected) if dx is None else dx
        for k, (x, dx) in enumerate(zip(leaves, sized(found, order), strict=True))
    ]


def _entries(what: str, given: Entry | Sequence[Entry]) -> list[Entry]:
    need = "an Entry or a sequence of entries"
    if isinstance(given, Entry):
        return [given]
    found = list(arguments.sequence(f"gradients: {what}", given, object, need))
    for k, e in enumerate(found):
        if not isinstance(e, Entry):
            raise GraphError(f"{what}[{k}] of gradients must be an Entry, got {type(e).__name__}")
    return found


def _seeds(ys: Sequence[Entry], given: Entry | Sequence[Flow] | None) -> list[Entry]:
    """The gradient that each y begins with."""
    if given is None:
        return [ones(y) for y in ys]
    weights = list(given) if isinstance(given, (list, tuple)) else [given]
    if len(weights) != len(ys):
        raise GraphError(f"grad_ys must be one for each of {len(ys)} ys, got {len(weights)}")
    return [ones(y) if w is None else _weight(y, w) for y, w in zip(ys, weights, strict=True)]


def _weight(y: Entry, given: Any) -> Entry:
    """A given gradient, checked against what it weighs."""
    weight = as_entry(given)
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
    """Ones of an entry's shape, for which its value need not be computed if that is known."""
    if like.shape is None or like.dtype is None:
        return find_operator("ones_like")(like)  # type: ignore[no-any-return]
    one = constant(1, like.dtype)
    return find_operator("broadcast_to")(one, shape=like.shape) if like.shape else one


def _unconnected(x: Entry, k: int, how: str) -> Entry | None:
    if how == "none":
        return None
    if how == "zero":
        return find_operator("zeros_like")(x)  # type: ignore[no-any-return]
    raise GraphError(
        f"xs[{k}], {x.name}, is out of reach: no y depends on it; leave it out, or ask for zeros "
        f"by unconnected='zero'"
    )


def added(terms: Sequence[Entry]) -> Entry:
    """The sum of entries as a balanced tree, in their order."""
    level = list(terms)
    add = find_operator("+")
    while len(level) > 1:
        pairs = [add(a, b) for a, b in zip(level[::2], level[1::2], strict=False)]
        level = pairs + level[len(pairs) * 2 :]
    return level[0]


def sized(found: Sequence[Flow], order: Iterable[Node]) -> Sequence[Flow]:
    """Gradients from which every unknown size that they need can be told.

    The gradient of a sum does not read what was summed, and has its shape: what a call feeds says
    that shape only if it is an input of the gradient, too.
    """
    homes: dict[str, tuple[int, Entry]] = {}
    for node in order:
        if node.op is None:
            for symbol in symbols_of(node.entries[0].shape or ()):
                homes.setdefault(symbol, (1 << len(homes), node.entries[0]))
    if not homes:
        return found
    said: dict[Node, tuple[int, int]] = {}
    for node in post_order(e.node for e in found if e is not None):
        needs = has = 0
        for value in node.params.values():
            for symbol in symbols_of(value if isinstance(value, tuple) else (value,)):
                needs |= homes[symbol][0] if symbol in homes else 0
        if node.op is None:
            has, needs = needs, 0
        for before in node.inputs:
            needs, has = needs | said[before.node][0], has | said[before.node][1]
        said[node] = needs, has

    def whole(flow: Flow) -> Flow:
        if flow is None:
            return None
        needs, has = said[flow.node]
        lack = [e for bit, e in homes.values() if needs & ~has & bit]
        if not lack:
            return flow
        return find_operator("sized_by")(flow, *dict.fromkeys(lack))  # type: ignore[no-any-return]

    return [whole(flow) for flow in found]


class Sweep:
    """A reverse sweep: how what flows to an entry is summed, and what is computed again."""

    def __init__(self, aggregate: Aggregate, again: Rematerialization | None = None) -> None:
        self.aggregate, self.again = aggregate, again

    def over(
        self,
        order: Sequence[Node],
        ys: Sequence[Entry],
        seeds: Sequence[Flow],
        xs: Sequence[Entry],
        pinned: bool = False,
    ) -> list[Flow]:
        """The gradients of ``xs`` through the nodes in ``order``, which is a post-order.

        ``pinned`` lets rules refer to state variables as the nodes in ``order`` read them.
        """
        read = values_read(order)
        live = _live(order, read, xs)
        terms_of = Counter(e for n in order for e in read.get(n, n.inputs) if e in live)
        terms_of.update(y for y, seed in zip(ys, seeds, strict=True) if seed is not None)
        flows: dict[Entry, list[Entry]] = {}
        totals: dict[Entry, Flow] = {}
        for y, seed in zip(ys, seeds, strict=True):
            if y in live and seed is not None:
                flows.setdefault(y, []).append(seed)

        def total(entry: Entry) -> Flow:
            if entry not in totals:
                terms = flows.pop(entry, None)
                totals[entry] = self.sum(terms, entry) if terms else None
            return totals[entry]

        for node in reversed(order):
            inputs = read.get(node, node.inputs)
            wanted = [e in live for e in inputs]
            if node.op is None or not any(wanted):
                continue
            dys = [total(e) for e in node.entries]
            after = next((dy.node for dy in dys if dy is not None), None)
            if after is None:
                continue
            source = self.source(node, after) if pinned else node
            summed = [terms_of[e] > 1 for e in inputs]
            passed = backward(source, dys, wanted, summed, self.through)
            for e, flow in zip(inputs, passed, strict=True):
                if flow is not None:
                    flows.setdefault(e, []).append(flow)
        return [total(x) for x in xs]

    def source(self, node: Node, after: Node) -> Node:
        """``node`` as its rule is to see it: its copy, or itself with copies as inputs."""
        if self.again is not None:
            return self.again.source(node, after)
        return pinned(node) or node

    def sum(self, terms: Sequence[Entry], entry: Entry) -> Entry:
        """The gradient of ``entry``: the sum of the terms that flowed to it.

        Terms of a 16-bit entry that are float32, or more than two, are summed in float32; the sum
        is rounded once.
        """
        rounds = len(terms) > 2 or any(t.dtype is not entry.dtype for t in terms)
        if is_narrow_entry(entry) and len(terms) > 1 and rounds:
            terms = [widened(t) for t in terms]
        total = terms[0] if len(terms) == 1 else self.aggregate(terms)
        return narrowed(total, entry)

    def through(
        self, heads: Sequence[Entry], dys: Sequence[Flow], xs: Sequence[Entry]
    ) -> list[Flow]:
        """The gradients of a composite's inputs through what it expanded to."""
        once = list(dict.fromkeys(xs))
        found = dict(zip(once, self.over(between(heads, xs), heads, dys, once), strict=True))
        return [found.pop(x, None) for x in xs]  # an input given twice counts once


def values_read(order: Iterable[Node]) -> dict[Node, tuple[Entry, ...]]:
    """What nodes read in place of state variables that were written before, in program order."""
    latest: dict[Entry, Entry] = {}
    found: dict[Node, tuple[Entry, ...]] = {}
    for node in order:
        if latest and any(e in latest for e in node.inputs):
            given = latest
            if node.op is AS_READ:  # what another node read
                reader = node.control[0]
                given = dict(zip(reader.inputs, found.get(reader, reader.inputs), strict=True))
            found[node] = tuple(given.get(e, e) for e in node.inputs)
        if node.op is not None and TStateful.get(node.op.name) and is_state(node.inputs[0]):
            latest[node.inputs[0]] = node.entries[0]
    return found


def _live(
    order: Iterable[Node], read: Mapping[Node, tuple[Entry, ...]], xs: Sequence[Entry]
) -> set[Entry]:
    """The float entries that depend on any of ``xs``, and those themselves."""
    live = set(xs)
    for node in order:
        if any(e in live for e in read.get(node, node.inputs)):
            live.update(e for e in node.entries if e.dtype is None or e.dtype.is_float)
    return live


def between(heads: Iterable[Entry], xs: Iterable[Entry]) -> list[Node]:
    """The nodes from which ``heads`` are computed, down to those of ``xs``, in post-order."""
    done = {e.node for e in xs}
    order: list[Node] = []
    stack = [e.node for e in heads]
    while stack:
        node = stack[-1]
        before = [e.node for e in node.inputs if e.node not in done] if node not in done else []
        if before:
            stack += reversed(before)
            continue
        stack.pop()
        if node not in done:
            done.add(node)
            order.append(node)
    return order
