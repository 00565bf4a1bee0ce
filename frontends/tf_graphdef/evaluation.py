"""Symbolic evaluation of graph and function bodies, which builds the passkit graph.

A `BodyEvaluation` evaluates one `GraphBody` once: a function is evaluated anew for each call, an
unrolled loop for each iteration. Ordinary operators (`registry`) become nodes. Operators with a
context importer call functions, take branches, run loops, and access variables.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Mapping, MutableMapping, Sequence
from typing import TYPE_CHECKING, Any

from attrs import define, field, frozen

from passkit.errors import GraphError, ModelError, PasskitError
from passkit.frontends.tf_graphdef.graph_body import (
    ARGUMENT,
    EXITS,
    GraphBody,
    ResultRef,
    reachable_nodes,
    topological_order,
)
from passkit.frontends.tf_graphdef.import_state import (
    MAX_CALL_DEPTH,
    UNIQUE_IMPORTERS,
    ImportState,
    current_value,
)
from passkit.frontends.tf_graphdef.imported_value import ImportCall, ImportedValue
from passkit.frontends.tf_graphdef.non_arrays import (
    UNIQUE_VALUES,
    AnyValue,
    DeadValue,
    NonArray,
    StringInput,
    UnsupportedResult,
    VariableHandle,
)
from passkit.frontends.tf_graphdef.proto import NodeDef, node_label, short
from passkit.frontends.tf_graphdef.registry import NODE_NBYTES, OP_IMPORTERS, import_node

if TYPE_CHECKING:
    pass


@define(eq=False)
class BodyEvaluation:
    """One evaluation of a body, with the results of its nodes so far."""

    shared: ImportState
    body: GraphBody
    prefix: str = ""
    call_stack: tuple[str, ...] = ()
    """Names of the functions that this evaluation is nested in, outermost first."""
    attrs: Mapping[str, Any] = field(factory=dict)
    """Values of the function's own attributes, given by its caller."""
    values: dict[int, Sequence[AnyValue]] = field(factory=dict)
    names: dict[ResultRef, str] = field(factory=dict)
    """Names for results that differ from their node's name: those of the outputs they become."""
    loop_results: dict[bytes, dict[int, AnyValue]] = field(factory=dict)
    """Final values of each TensorFlow 1 loop by frame name, then by Merge node."""
    outer: BodyEvaluation | None = None
    """For an iteration of a loop, the evaluation that contains the loop."""
    loop_name: bytes | None = None
    """For an iteration of a TensorFlow 1 loop, its frame name."""

    def result(self, ref: ResultRef) -> AnyValue:
        """Return a node result that was computed, here or in an outer evaluation.

        ``ref`` is the node's number and the index of the result.

        Raises:
            ModelError: If its node has no such result, or is inside a loop that has ended.
        """
        number, index = ref
        evaluation: BodyEvaluation | None = self
        while evaluation is not None and number not in evaluation.values:
            evaluation = evaluation.outer
        if evaluation is None:
            raise ModelError(
                f"{node_label(self.body.nodes[number])} of {self.body.where} is inside a loop and "
                f"is read outside of it; read the loop's Exit instead"
            )
        results = evaluation.values[number]
        if not isinstance(results, UniformResults) and index >= len(results):
            raise ModelError(
                f"{node_label(self.body.nodes[number])} of {self.body.where} has {len(results)} "
                f"output(s), and output {index} is requested; outputs are counted from 0"
            )
        return results[index]

    def run(
        self, heads: Sequence[ResultRef], kind: tuple[Any, ...] = (), targets: int = 0
    ) -> list[AnyValue]:
        """Evaluate the nodes that ``heads`` need, and return their results.

        Results of the nodes are stored in ``values``, and with a ``kind`` the order in the body's
        ``cached_orders``. Nodes that have results when the order is computed are not in it.

        Args:
            heads: Node results to compute.
            kind: Key to cache the order of nodes under. Evaluations of one kind must start with
                values for the same nodes.
            targets: Number of last heads that run only for their side effects and give no results.

        Returns:
            The values of the heads in order, without the targets.

        Raises:
            ModelError: If a node is malformed, nodes form a cycle, a result is missing, or a limit
                is exceeded.
            ShapeError: If shapes do not fit an operator.
            DTypeError: If dtypes do not fit an operator.
        """
        ordered = self.body.cached_orders.get(kind)
        if ordered is None:
            ordered = self._order([number for number, _ in heads])
            if kind:
                self.body.cached_orders[kind] = ordered
        self.compute(ordered)
        return [self.result(ref) for ref in heads[: len(heads) - targets]]

    def _order(self, heads: Sequence[int]) -> list[int]:
        """Return the nodes to evaluate in topological order.

        These are the nodes that ``heads`` need; the nodes that change variables among heads, the
        body's effects, and all that these depend on by data or control; and the nodes that those
        need. Nodes that have results are left out.

        Args:
            heads: Numbers of the nodes that are needed.

        Raises:
            ModelError: If nodes form a cycle.
        """
        library, body, done = self.shared.library, self.body, self._done()
        needed = reachable_nodes(body, heads, done)
        reachable = reachable_nodes(body, [*heads, *body.effects], done, control=True)
        side_effects = [k for k in reachable if library.changes(body.nodes[k])]
        needed |= reachable_nodes(body, side_effects, done)
        return topological_order(body, [*heads, *side_effects], needed, done)

    def _done(self) -> Mapping[int, Any]:
        """Return a view that maps each node evaluated so far, here or outside, to its results."""
        chain: list[MutableMapping[int, Any]] = []
        evaluation: BodyEvaluation | None = self
        while evaluation is not None:
            chain.append(evaluation.values)
            evaluation = evaluation.outer
        return ChainMap(*chain)

    def compute(self, numbers: Sequence[int]) -> None:
        """Evaluate nodes in the given order and store their results in ``values``.

        ``numbers`` are the numbers of the nodes, each after those that it reads.

        Raises:
            ModelError: If a node is malformed, or a limit is exceeded.
            ShapeError: If shapes do not fit the operator; likewise DTypeError for dtypes, and other
                errors of operators.
        """
        for number in numbers:
            self.values[number] = self.node(number)

    def node(self, number: int) -> Sequence[AnyValue]:
        """Evaluate node ``number``, whose inputs have results, and return its results.

        One node and its memory are taken from the budgets. The results are not stored.

        Raises:
            ModelError: If the node is malformed, its importer raises GraphError, or a limit is
                exceeded.
            ShapeError: If shapes do not fit the operator; likewise DTypeError for dtypes, and other
                errors of operators. Errors of its importer have a note that names the node.
        """
        node = self.body.nodes[number]
        shared = self.shared
        shared.node_budget.take(node_label(node))
        shared.budget.take(NODE_NBYTES + len(self.prefix), f"node {short(node.name)}")
        if self.call_stack:
            node = self._bound(node)
        name = self.prefix + node.name
        if node.op not in shared.context_importers and node.op not in shared.library:
            name = self.names.get((number, 0), name)
        call = ImportCall(node, name, shared.budget)
        reads = () if node.op in EXITS else self.body.inputs[number]  # an Exit runs its loop
        inputs = [self.result(ref) for ref in reads]
        try:
            try:
                return self._results(NodeContext(self, number, call), inputs)
            except GraphError as error:  # of an attribute's value, which is the model's
                raise ModelError(str(error)) from error
        except PasskitError as error:
            error.add_note(f"in {node_label(node)} of {self.body.where}")
            raise

    def _bound(self, node: Any) -> Any:
        """Return a copy of a node whose placeholder attributes have the caller's values.

        A node without such attributes is returned itself.

        Raises:
            ModelError: If the caller gives no value.
        """
        placeholder_keys = [
            k for k, v in node.attr.items() if v.WhichOneof("value") == "placeholder"
        ]
        if not placeholder_keys:
            return node
        bound = NodeDef()
        bound.CopyFrom(node)
        for key in placeholder_keys:
            name = node.attr[key].placeholder
            if name not in self.attrs:
                raise ModelError(
                    f"{node_label(node)} of {self.body.where} needs a value for the function's "
                    f"attribute {short(name)}, and the caller passes none"
                )
            bound.attr[key].CopyFrom(self.attrs[name])
        return bound

    def _results(self, ctx: NodeContext, inputs: Sequence[AnyValue]) -> Sequence[AnyValue]:
        """Return the results of the node ``ctx``, by the first of these that applies.

        A factory of model inputs, outside of functions; a context importer; dead results, if an
        input is dead; unsupported results, if an input is unsupported or the operator has nothing
        of what follows, which is recorded in the import state's ``unsupported``; an op importer; a
        function of the model; a host op.

        Raises:
            ModelError: If a node without context importer reads a string that is fed or another
                value that is no array, or its importer refuses it.
            GraphError: If the operator refuses an attribute, such as the equation of an Einsum.
            ShapeError: If shapes do not fit the operator; likewise DTypeError for dtypes, and other
                errors of operators.
        """
        call, shared = ctx.call, self.shared
        op = call.node.op
        if not self.call_stack and ctx.number in shared.inputs:
            return (shared.inputs[ctx.number](call, inputs),)
        context_importer = shared.context_importers.get(op)
        if op in UNIQUE_IMPORTERS and any(isinstance(x, UNIQUE_VALUES) for x in inputs):
            context_importer = UNIQUE_IMPORTERS[op]
        if context_importer is not None:
            return context_importer(ctx, inputs)
        if any(isinstance(x, DeadValue) for x in inputs):
            return UniformResults(DeadValue(call.name))
        for x in inputs:
            if isinstance(x, StringInput):
                raise ModelError(
                    f"{call.where} needs an array, got {short(x.name)}, {x.description}"
                )
        supported = op in OP_IMPORTERS or op in shared.library or op in shared.host_ops
        if not supported:
            location = (self.body.where, call.node.name)
            shared.unsupported.setdefault(op, {}).setdefault(location, self.prefix + call.node.name)
        if not supported or any(isinstance(x, UnsupportedResult) for x in inputs):
            return UniformResults(UnsupportedResult(call.name))
        if op in OP_IMPORTERS:
            return import_node(call, [ctx.value(x) for x in inputs])
        if op in shared.library:
            return ctx.call_function(op, call.node.attr, inputs, call.name)
        return shared.host_ops[op].results(call, [ctx.value(x) for x in inputs])


class UniformResults(Sequence[AnyValue]):
    """The results of a node that was not computed: one non-array value at every index."""

    def __init__(self, value: NonArray) -> None:
        """Store the value that all results are."""
        self.value = value

    def __len__(self) -> int:
        """Return 1, although every index is valid."""
        return 1

    def __getitem__(self, index: Any) -> Any:
        """Return the value, whatever the index is."""
        return self.value


@frozen(eq=False)
class NodeContext:
    """A node that is evaluated and its evaluation: the argument ``ctx`` of context importers."""

    evaluation: BodyEvaluation
    number: int
    call: ImportCall

    @property
    def shared(self) -> ImportState:
        """State shared by all evaluations of the model."""
        return self.evaluation.shared

    @property
    def where(self) -> str:
        """Operator and name of the node, for error messages."""
        return self.call.where

    def value(self, value: AnyValue) -> ImportedValue:
        """Return the input ``value`` as an array; a ref variable is read, an array is unchanged.

        Raises:
            ModelError: If it is no array, such as a handle, a list or a dead value, or a ref
                variable has no value.
        """
        if isinstance(value, VariableHandle) and value.by_reference:
            return current_value(self.shared, value.variable)
        if isinstance(value, NonArray):
            raise ModelError(
                f"{self.where} needs an array, got {short(value.name)}, {value.description}"
            )
        return value

    def check_count(
        self, inputs: Sequence[AnyValue], minimum: int, maximum: int | None = -1
    ) -> None:
        """Raise ModelError unless the number of inputs is in range.

        Args:
            inputs: The inputs of the node.
            minimum: Least number of inputs.
            maximum: Largest number; None for any, by default the same as ``minimum``.

        Raises:
            ModelError: If there are fewer or more.
        """
        upper = minimum if maximum == -1 else maximum
        if len(inputs) < minimum or (upper is not None and len(inputs) > upper):
            expected = str(minimum)
            if upper is None:
                expected = f"at least {minimum}"
            elif upper != minimum:
                expected = f"{minimum} to {upper}"
            raise ModelError(f"{self.where} needs {expected} input(s), got {len(inputs)}")

    def call_function(
        self,
        name: str,
        attrs: Mapping[str, Any],
        arguments: Sequence[AnyValue],
        prefix: str,
        keep_names: bool = True,
    ) -> list[AnyValue]:
        """Evaluate a function and return its results.

        The attributes are those of the node that calls, for placeholders in the function.

        Args:
            name: Name of the function.
            attrs: Values of the function's attributes.
            arguments: Its arguments.
            prefix: Prefix of the names of its nodes, without the slash.
            keep_names: Whether results get the output names that were requested for this node's
                results.

        Raises:
            ModelError: If there is no such function, the number of arguments is wrong, the function
                is recursive or nested in 64 others, or a node in it is malformed.
            ShapeError: If shapes do not fit an operator in it; likewise DTypeError for dtypes.
        """
        evaluation = self.evaluation
        if name in evaluation.call_stack:
            raise ModelError(
                f"{self.where} is part of the function {short(name)} and calls it; recursive "
                f"functions are not supported"
            )
        if len(evaluation.call_stack) >= MAX_CALL_DEPTH:
            raise ModelError(
                f"{self.where} calls {short(name)} inside {MAX_CALL_DEPTH} nested functions, and "
                f"at most {MAX_CALL_DEPTH} are supported"
            )
        body = self.shared.library.body(name)
        if len(arguments) != body.num_arguments:
            raise ModelError(
                f"{self.where} calls the function {short(name)}, which needs {body.num_arguments} "
                f"arguments, got {len(arguments)}"
            )
        callee_evaluation = BodyEvaluation(
            self.shared, body, f"{prefix}/", (*evaluation.call_stack, name), attrs
        )
        callee_evaluation.values.update((k, (value,)) for k, value in enumerate(arguments))
        if keep_names:
            requested = [
                (evaluation.names[self.number, k], ref)
                for k, ref in enumerate(body.results)
                if (self.number, k) in evaluation.names
            ]
            callee_evaluation.names.update(output_names(body, requested))
        return callee_evaluation.run(body.results, ("call",))


def output_names(body: GraphBody, outputs: Sequence[tuple[str, ResultRef]]) -> dict[ResultRef, str]:
    """Map node results to the names of the outputs they become, looking through Identity nodes.

    Args:
        body: Body of the model.
        outputs: Name and result of each output.

    Returns:
        The name that each result's node gets in the built graph. Arguments and placeholders keep
        their names and are not in it. If Identity nodes of several outputs lead to one result, it
        gets the name of the first, or of the output that it is itself.
    """
    names: dict[ResultRef, str] = {}
    taken = {ref for _, ref in outputs}
    for name, output in outputs:
        ref, visited = output, {output}
        while body.nodes[ref[0]].op == "Identity" and body.inputs[ref[0]]:
            ref = body.inputs[ref[0]][0]
            if ref in visited:
                break
            visited.add(ref)
        if (ref == output or ref not in taken) and body.nodes[ref[0]].op not in _NAMED_THEMSELVES:
            names[ref] = name
            taken.add(ref)
    return names


_NAMED_THEMSELVES = (ARGUMENT, "Placeholder")
