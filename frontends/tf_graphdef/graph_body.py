"""Nodes of a graph or a function, indexed by number, with their names and edges checked.

The arguments of a function are nodes too; they precede the others and have the operator `ARGUMENT`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from attrs import define, field

from passkit.errors import ModelError
from passkit.frontends.tf_graphdef.proto import Budget, NodeDef, node_label, short
from passkit.frontends.tf_graphdef.result_names import RESULTS

ResultRef: TypeAlias = tuple[int, int]
"""One result of a node: the node's number and the index of the result."""

ARGUMENT = "_Arg"
EXITS = ("Exit", "RefExit")
_ENTERS = ("Enter", "RefEnter")
_MERGES = ("Merge", "RefMerge")
_NEXT = ("NextIteration", "RefNextIteration")
_NAME = re.compile(r"[A-Za-z0-9._][A-Za-z0-9_.\\/>-]*\Z")  # TensorFlow's, and its own names
_INDEX_NBYTES = 280
_EDGE_NBYTES = 100
"""Approximate bytes of the index per node, and per input of a node."""
_MOST_INDEX = 10
"""Maximal number of digits of an index; TensorFlow's indices have 32 bits."""


@define(eq=False)
class GraphBody:
    """The nodes of one graph or function, with indexes by name and edges by number."""

    where: str
    nodes: Sequence[Any]
    producer: int = 0
    """Version of the GraphDef format that the producer wrote."""
    node_numbers: dict[str, int] = field(factory=dict)
    inputs: list[tuple[ResultRef, ...]] = field(factory=list)
    control_inputs: list[tuple[int, ...]] = field(factory=list)
    is_read: bytearray = field(factory=bytearray)
    """For each node, 1 if an edge of another node refers to it."""
    num_arguments: int = 0
    results: tuple[ResultRef, ...] = ()
    """The results that a function returns, in order."""
    effects: tuple[int, ...] = ()
    """Nodes that a function runs for their side effects."""
    loop_enters: dict[bytes, list[int]] = field(factory=dict)
    """For each TensorFlow 1 loop, by frame name, the numbers of its Enter nodes."""
    all_enters: set[int] = field(factory=set)
    """The numbers of all Enter nodes."""
    loop_readers: dict[int, list[int]] = field(factory=dict)
    """For each node, the Merge and Switch nodes whose first input it is; filled on first use."""
    conditions: dict[int, Mapping[ResultRef, int]] = field(factory=dict)
    """For each node, the Switch conditions under which it has a value.

    Filled on first use by a Merge.
    """
    cached_orders: dict[Any, list[int]] = field(factory=dict)
    """Topological orders that were computed before, by the kind of evaluation."""

    def data_inputs(self, number: int) -> Iterable[int]:
        """Return the numbers of the nodes whose results node ``number`` needs.

        The NextIteration input of a Merge is left out, since it belongs to the previous iteration.
        An Exit needs all Enter nodes of its loop instead of its inputs. A number may occur more
        than once.
        """
        op = self.nodes[number].op
        if op in EXITS:
            loop_name = self.loop_name(number)
            return [k for k in self.loop_enters.get(loop_name, ()) if k != number]
        reads = [k for k, _ in self.inputs[number]]
        if op in _MERGES:
            return [k for k in reads if self.nodes[k].op not in _NEXT]
        return reads

    def predecessors(self, number: int) -> Iterable[int]:
        """Return the nodes, by number, that run before node ``number``.

        These are its data inputs and its control dependencies.
        """
        return [*self.data_inputs(number), *self.control_inputs[number]]

    def loop_name(self, number: int) -> bytes:
        """Return the frame name of the loop of node ``number``, an Exit.

        It is that of the Enter behind three first inputs: those of the Exit, its Switch and its
        Merge. It is empty if there is no Enter.
        """
        for _ in ("Exit", "Switch", "Merge"):
            if not self.inputs[number]:
                return b""
            number = self.inputs[number][0][0]
        return bytes(self.nodes[number].attr["frame_name"].s) if number in self.all_enters else b""


def read_graph_body(graph: Any, where: str, budget: Budget) -> GraphBody:
    """Return the indexed nodes of the GraphDef ``graph``, which ``where`` names in errors.

    The memory of the index is taken from ``budget``.

    Raises:
        ModelError: If there are no nodes, if a name is invalid or used twice, if an edge refers to
            a missing node, or if the index exceeds the memory budget.
    """
    if not len(graph.node):
        raise ModelError(
            f"{where} needs at least one node to be a model, and has none; it may hold another "
            f"message than a GraphDef"
        )
    body = GraphBody(where, graph.node, graph.versions.producer)
    _number(body, budget)
    for node in graph.node:
        _connect(body, node, budget, lambda text: (*reference(text), ""))
    return body


def read_function_body(function: Any, budget: Budget) -> GraphBody:
    """Return the indexed nodes of a FunctionDef; its arguments become nodes with the first numbers.

    Control results that name no node are left out. The memory of the index is taken from
    ``budget``.

    Raises:
        ModelError: If a name is invalid or used twice, if an edge or a result of the function
            refers to a missing node or result, or if the index exceeds the memory budget.
    """
    name = function.signature.name
    arguments = [NodeDef(name=a.name, op=ARGUMENT) for a in function.signature.input_arg]
    where = f"the function {short(name)}"
    body = GraphBody(where, [*arguments, *function.node_def])
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
        body.node_numbers[n] for n in function.control_ret.values() if n in body.node_numbers
    )
    return body


def _number(body: GraphBody, budget: Budget) -> None:
    """Check the names of the nodes, and fill in the body's indexes of names and of Enter nodes.

    ``is_read`` becomes all zeros.

    Raises:
        ModelError: If a name is invalid or used twice, or the index exceeds the memory budget.
    """
    count = len(body.nodes)
    budget.take(_INDEX_NBYTES * count, f"an index of the {count:,} nodes of {body.where}")
    body.is_read = bytearray(count)
    for number, node in enumerate(body.nodes):
        if not is_name(node.name):
            raise ModelError(
                f"node {number} of {body.where} needs a name of letters, digits and _ . / > -, got "
                f"{short(node.name)}"
            )
        if node.name in body.node_numbers:
            raise ModelError(
                f"{body.where} needs unique names of nodes, and nodes "
                f"{body.node_numbers[node.name]} and {number} are both called {short(node.name)}"
            )
        body.node_numbers[node.name] = number
        if node.op in _ENTERS:
            body.loop_enters.setdefault(bytes(node.attr["frame_name"].s), []).append(number)
            body.all_enters.add(number)


EdgeParser: TypeAlias = Callable[[str], tuple[str, int, str]]
"""Splits the text of an edge into the node's name, the index, and the name of the result."""


def _connect(body: GraphBody, node: Any, budget: Budget, read: EdgeParser) -> None:
    """Resolve the data and control inputs of a node, and append them to the body's lists.

    Nodes that it reads or depends on are marked in ``is_read``.

    Args:
        body: The body.
        node: NodeDef.
        budget: Memory budget.
        read: Parses the text of an edge.

    Raises:
        ModelError: If an input refers to a missing node, or exceeds the budget.
    """
    budget.take(_EDGE_NBYTES * len(node.input), f"the inputs of {node_label(node)}")
    inputs: list[ResultRef] = []
    control: list[int] = []
    for text in node.input:
        name = text.removeprefix("^")
        producer = _resolve(body, name, node_label(node), read, text)
        body.is_read[producer[0]] = 1
        if name is not text:
            control.append(producer[0])
        else:
            inputs.append(producer)
    body.inputs.append(tuple(inputs))
    body.control_inputs.append(tuple(control))


def _resolve(
    body: GraphBody, text: str, reader: str, read: EdgeParser, shown: str | None = None
) -> ResultRef:
    """Return the node number and result index that the text of an edge refers to.

    Args:
        body: The body.
        text: The edge, such as "conv:0".
        reader: The node that has it, for errors.
        read: Parses the text.
        shown: Text in errors; None for ``text``.

    Raises:
        ModelError: If there is no such node, or its operator is in `RESULTS` and has no result of
            the name in the text. The indexes of other results are not checked.
    """
    name, index, result = read(text)
    number = body.node_numbers.get(name)
    if number is None:
        raise ModelError(
            f"{reader} of {body.where} reads {short(text if shown is None else shown)}, and no "
            f"node has that name"
        )
    names = RESULTS.get(body.nodes[number].op)
    if result and names:
        if result not in names or index:
            raise ModelError(
                f"{reader} of {body.where} reads {short(text)}, and "
                f"{node_label(body.nodes[number])} has the results {', '.join(names)}"
            )
        index = names.index(result)
    return number, index


def reference(text: str) -> tuple[str, int]:
    """Split the name of a result, such as ``"Identity:0"``, into node name and index, as a tuple.

    If the text does not end in a colon and 1 to 9 digits, it is the name and the index is 0.
    """
    name, colon, index = text.rpartition(":")
    if colon and index.isascii() and index.isdigit() and len(index) < _MOST_INDEX:
        return name, int(index)
    return text, 0


def _inner_reference(text: str) -> tuple[str, int, str]:
    """Split ``text``, an edge in a function: ``argument`` or ``node:result:index``.

    Return the name of the argument or node, the index (0 if there is none), and the name of the
    result (empty if there is none).
    """
    rest, index = reference(text)
    name, colon, result = rest.rpartition(":")
    return (name, index, result) if colon else (rest, index, "")


def is_name(text: str) -> bool:
    """Return whether TensorFlow allows ``text`` as the name of a node.

    Names that begin with an underscore, which TensorFlow's own passes write, are allowed, too.
    """
    return bool(_NAME.match(text))


def topological_order(
    body: GraphBody, heads: Sequence[int], selected: Container[int], done: Mapping[int, Any]
) -> list[int]:
    """Return the ``selected`` nodes that lead to ``heads``, each after its predecessors.

    Args:
        body: The nodes and their edges; control dependencies are followed, too.
        heads: Numbers of the nodes that are needed.
        selected: Numbers of the nodes to return.
        done: Nodes that already have results, by number; they are not returned, and their
            predecessors not visited.

    Raises:
        ModelError: If the nodes form a cycle; two of its nodes are named.
    """
    ordered = []
    state = bytearray(len(body.nodes))  # 1: on the stack, 2: finished
    for head in heads:
        stack = [(head, iter(()) if head in done else iter(body.predecessors(head)))]
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
                        f"{body.where} needs to be acyclic, and its node "
                        f"{short(body.nodes[number].name)} reads {short(body.nodes[k].name)}, "
                        f"which depends on it"
                    )
                if not state[k]:
                    state[k] = 1
                    stack.append((k, iter(body.predecessors(k))))
                    break
            else:
                state[number] = 2
                stack.pop()
                if number in selected and number not in done:
                    ordered.append(number)
    return ordered


def reachable_nodes(
    body: GraphBody, heads: Iterable[int], done: Container[int], control: bool = False
) -> set[int]:
    """Return the numbers of ``heads`` and the nodes they depend on, except those in ``done``.

    Nodes in ``done`` are not passed, either. Control dependencies of ``body`` are followed only if
    ``control`` is set.
    """
    nodes: set[int] = set()
    pending = list(heads)
    while pending:
        number = pending.pop()
        if number in nodes or number in done:
            continue
        nodes.add(number)
        pending += body.predecessors(number) if control else body.data_inputs(number)
    return nodes
