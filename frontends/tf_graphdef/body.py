"""Bodies: the nodes of a graph or a function, with their names and edges checked.

A function's arguments are nodes too, in front of the others, with the operator `ARGUMENT`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from attrs import define, field

from passkit.errors import ModelError
from passkit.frontends.tf_graphdef.arguments import RESULTS
from passkit.frontends.tf_graphdef.proto import Budget, NodeDef, called, short

Ref: TypeAlias = tuple[int, int]
"""A result of a node: the node's number, and which of its results."""

ARGUMENT = "_Arg"
EXITS = ("Exit", "RefExit")
_ENTERS = ("Enter", "RefEnter")
_MERGES = ("Merge", "RefMerge")
_NEXT = ("NextIteration", "RefNextIteration")
_NAME = re.compile(r"[A-Za-z0-9._][A-Za-z0-9_.\\/>-]*\Z")  # TensorFlow's, and its own names
_INDEX_NBYTES = 280
_EDGE_NBYTES = 100
"""About what a node takes to find it, and to find one of its inputs."""
_MOST_INDEX = 10
"""The digits of an index; TensorFlow's own are of 32 bits."""


@define(eq=False)
class Body:
    """Nodes whose names and edges have been checked."""

    where: str
    nodes: Sequence[Any]
    producer: int = 0
    """The version of what wrote this."""
    numbers: dict[str, int] = field(factory=dict)
    inputs: list[tuple[Ref, ...]] = field(factory=list)
    control: list[tuple[int, ...]] = field(factory=list)
    is_read: bytearray = field(factory=bytearray)
    """For each node whether another one names it."""
    num_arguments: int = 0
    results: tuple[Ref, ...] = ()
    """What a function returns, in order."""
    effects: tuple[int, ...] = ()
    """The nodes that a function runs for what they do, not for what they return."""
    entrances: dict[bytes, list[int]] = field(factory=dict)
    """The nodes that enter each loop of TensorFlow 1, by its name."""
    loops: set[int] = field(factory=set)
    """All of these nodes."""
    readers: dict[int, list[int]] = field(factory=dict)
    """The Merge and Switch nodes that read a node first, once a loop has asked for them."""
    contexts: dict[int, Mapping[Ref, int]] = field(factory=dict)
    """The conditions under which a node has a value, once a Merge has asked for them."""
    orders: dict[Any, list[int]] = field(factory=dict)
    """Orders of nodes that were found before, for runs that begin and end alike."""

    def data(self, number: int) -> Iterable[int]:
        """The nodes whose results a node needs.

        What one round of a loop hands to the next is not among them, and what leaves a loop needs
        all that enters it.
        """
        op = self.nodes[number].op
        if op in EXITS:
            frame = self.frame(number)
            return [k for k in self.entrances.get(frame, ()) if k != number]
        reads = [k for k, _ in self.inputs[number]]
        if op in _MERGES:
            return [k for k in reads if self.nodes[k].op not in _NEXT]
        return reads

    def before(self, number: int) -> Iterable[int]:
        """The nodes that a node comes after: those it needs, and those that only order it."""
        return [*self.data(number), *self.control[number]]

    def frame(self, number: int) -> bytes:
        """The name of the loop that a node stands at the end of; empty where there is none."""
        for _ in ("Exit", "Switch", "Merge"):
            if not self.inputs[number]:
                return b""
            number = self.inputs[number][0][0]
        return bytes(self.nodes[number].attr["frame_name"].s) if number in self.loops else b""


def graph_body(graph: Any, where: str, budget: Budget) -> Body:
    """The nodes of a graph.

    Raises: ModelError on a name that TensorFlow does not allow, a name used twice, or an edge
    from nowhere.
    """
    if not len(graph.node):
        raise ModelError(f"{where} holds no nodes, so it is no model; it may be another message")
    body = Body(where, graph.node, graph.versions.producer)
    _number(body, budget)
    for node in graph.node:
        _connect(body, node, budget, lambda text: (*_reference(text), ""))
    return body


def function_body(function: Any, budget: Budget) -> Body:
    """The nodes of a function. Raises: ModelError as `graph_body`, and for results from nowhere."""
    name = function.signature.name
    arguments = [NodeDef(name=a.name, op=ARGUMENT) for a in function.signature.input_arg]
    where = f"the function {short(name)}"
    body = Body(where, [*arguments, *function.node_def])
    body.num_arguments = len(arguments)
    _number(body, budget)
    for node in body.nodes:
        _connect(body, node, budget, _inner_reference)
    results = []
    for result in function.signature.output_arg:
        text = function.ret.get(result.name, "") if result.name in function.ret else ""
        results.append(_resolve(body, text, f"the result {short(result.name)}", _inner_reference))
    body.results = tuple(results)
    body.effects = tuple(
        body.numbers[n] for n in function.control_ret.values() if n in body.numbers
    )
    return body


def _number(body: Body, budget: Budget) -> None:
    count = len(body.nodes)
    budget.take(_INDEX_NBYTES * count, f"an index of the {count:,} nodes of {body.where}")
    body.is_read = bytearray(count)
    for number, node in enumerate(body.nodes):
        if not is_name(node.name):
            raise ModelError(
                f"node {number} of {body.where} is called {short(node.name)}; a name needs "
                f"letters, digits and _ . / > - only"
            )
        if node.name in body.numbers:
            raise ModelError(
                f"{body.where} has two nodes called {short(node.name)}, number "
                f"{body.numbers[node.name]} and {number}"
            )
        body.numbers[node.name] = number
        if node.op in _ENTERS:
            body.entrances.setdefault(bytes(node.attr["frame_name"].s), []).append(number)
            body.loops.add(number)


Reader: TypeAlias = Callable[[str], tuple[str, int, str]]
"""Takes the text of an edge apart: the node's name, an index, and the name of a result."""


def _connect(body: Body, node: Any, budget: Budget, read: Reader) -> None:
    budget.take(_EDGE_NBYTES * len(node.input), f"the inputs of {called(node)}")
    inputs: list[Ref] = []
    control: list[int] = []
    for text in node.input:
        plain = text.removeprefix("^")
        found = _resolve(body, plain, called(node), read, text)
        body.is_read[found[0]] = 1
        if plain is not text:
            control.append(found[0])
        else:
            inputs.append(found)
    body.inputs.append(tuple(inputs))
    body.control.append(tuple(control))


def _resolve(body: Body, text: str, reader: str, read: Reader, shown: str | None = None) -> Ref:
    name, index, result = read(text)
    number = body.numbers.get(name)
    if number is None:
        raise ModelError(
            f"{reader} of {body.where} reads {short(text if shown is None else shown)}, "
            f"and there is no node of that name"
        )
    names = RESULTS.get(body.nodes[number].op)
    if result and names:
        if result not in names or index:
            raise ModelError(
                f"{reader} of {body.where} reads {short(text)}, and "
                f"{called(body.nodes[number])} has the results {', '.join(names)}"
            )
        index = names.index(result)
    return number, index


def _reference(text: str) -> tuple[str, int]:
    """``name:index`` in parts; the index is 0 where none is given."""
    name, colon, index = text.rpartition(":")
    if colon and index.isascii() and index.isdigit() and len(index) < _MOST_INDEX:
        return name, int(index)
    return text, 0


def _inner_reference(text: str) -> tuple[str, int, str]:
    """``argument``, or ``node:result:index``, as functions write it, in parts."""
    rest, index = _reference(text)
    name, colon, result = rest.rpartition(":")
    return (name, index, result) if colon else (rest, index, "")


def is_name(text: str) -> bool:
    """Whether TensorFlow allows a node to be called so."""
    return bool(_NAME.match(text))


def reference(text: str) -> tuple[str, int]:
    """The node's name and the index in an output that a caller names, such as ``"Identity:0"``."""
    return _reference(text)


def order(
    body: Body, heads: Sequence[int], wanted: Container[int], done: Mapping[int, Any]
) -> list[int]:
    """The ``wanted`` nodes in front of ``heads``, each after those it comes after.

    Nodes in ``done`` have their results, and what leads to them is not looked at.

    Raises: ModelError naming two nodes of a cycle.
    """
    found = []
    state = bytearray(len(body.nodes))  # 1: begun, 2: done
    for head in heads:
        stack = [(head, iter(()) if head in done else iter(body.before(head)))]
        if state[head]:
            continue
        state[head] = 1
        while stack:
            number, before = stack[-1]
            for k in before:
                if k in done:
                    continue
                if state[k] == 1:
                    raise ModelError(
                        f"{body.where}: node {short(body.nodes[number].name)} reads "
                        f"{short(body.nodes[k].name)}, which depends on it: a cycle"
                    )
                if not state[k]:
                    state[k] = 1
                    stack.append((k, iter(body.before(k))))
                    break
            else:
                state[number] = 2
                stack.pop()
                if number in wanted and number not in done:
                    found.append(number)
    return found


def reached(
    body: Body, heads: Iterable[int], done: Container[int], control: bool = False
) -> set[int]:
    """The nodes that ``heads`` read, directly or not; with those they come after, if asked."""
    found: set[int] = set()
    pending = list(heads)
    while pending:
        number = pending.pop()
        if number in found or number in done:
            continue
        found.add(number)
        pending += body.before(number) if control else body.data(number)
    return found
