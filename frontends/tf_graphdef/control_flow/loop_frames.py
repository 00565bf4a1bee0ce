"""Control flow of TensorFlow 1: Switch and Merge of branches, and loops between Enter and Exit.

A Switch with a known condition has one live result; nodes that read the dead one are not computed.
Otherwise both results are live, and the Merge behind them selects at run time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from attrs import frozen

from passkit.errors import ModelError
from passkit.frontends.tf_graphdef.control_flow.branches import (
    as_condition,
    known_condition,
    select,
)
from passkit.frontends.tf_graphdef.control_flow.calls import unavailable_results
from passkit.frontends.tf_graphdef.control_flow.loops import run_loop
from passkit.frontends.tf_graphdef.evaluation import BodyEvaluation, NodeContext, UniformResults
from passkit.frontends.tf_graphdef.graph_body import (
    GraphBody,
    ResultRef,
    reachable_nodes,
    topological_order,
)
from passkit.frontends.tf_graphdef.import_state import MAX_CALL_DEPTH, context_importer
from passkit.frontends.tf_graphdef.imported_value import value_of
from passkit.frontends.tf_graphdef.non_arrays import (
    AnyValue,
    DeadValue,
    UnsupportedResult,
    VariableHandle,
)
from passkit.frontends.tf_graphdef.proto import node_label, short
from passkit.frontends.tf_graphdef.runtime_loops import LoopFunctions
from passkit.ops.helpers import make
from passkit.values.dtype import dtype_of

_VISITS_PER_NODE = 50
"""Number of nodes visited for a Merge that counts as one built node."""

_DEEPEST = 64
_FREE: Mapping[ResultRef, int] = {}
"""Conditions of a node that always has a value."""


@context_importer("Switch", "RefSwitch")
def _switch(ctx: NodeContext, inputs: Sequence[AnyValue]) -> Sequence[AnyValue]:
    """Import Switch: the value on the side of the condition, a dead value on the other side.

    Args:
        ctx: The node.
        inputs: The value and the condition.

    Returns:
        The results for false and for true; both are the value if the condition is not known. They
        are unsupported or dead if an input is.

    Raises:
        ModelError: If there are not two inputs, the condition is an array of bools or no array, or
            a reference to a variable has no value.
    """
    ctx.check_count(inputs, 2)
    if (unavailable := unavailable_results(ctx, inputs)) is not None:
        return unavailable
    value = inputs[0]
    if isinstance(value, VariableHandle) and value.by_reference and ctx.call.node.op == "Switch":
        value = ctx.value(value)
    truth = known_condition(ctx, ctx.value(inputs[1]))
    dead_value = DeadValue(ctx.call.name)
    return (value if truth is not True else dead_value, value if truth is not False else dead_value)


@context_importer("Merge", "RefMerge")
def _merge(ctx: NodeContext, inputs: Sequence[AnyValue]) -> Sequence[AnyValue]:
    """Import Merge: return the live input and its int32 position among the inputs.

    Of two live inputs, one is selected at run time by the condition of a Switch. The results are
    dead if all inputs are, and unsupported if a live one is. ``ctx`` is the node.

    Raises:
        ModelError: If there are no inputs, more than two values are live, no Switch decides between
            two, they differ in kind, dtype or shape, or they depend on more than 64 conditions, or
            the memory budget of the import is exceeded.
    """
    ctx.check_count(inputs, 1, None)
    live = [(k, x) for k, x in enumerate(inputs) if not isinstance(x, DeadValue)]
    if not live:
        return UniformResults(DeadValue(ctx.call.name))
    if any(isinstance(x, UnsupportedResult) for _, x in live):
        return UniformResults(UnsupportedResult(ctx.call.name))
    if len(live) == 1:
        k, value = live[0]
        return value, ctx.call.known_value(dtype_of("int32"), k)
    if len(live) > 2:
        raise ModelError(
            f"{ctx.where} merges {len(live)} values whose conditions are known only at run time, "
            f"and supports at most two; use tf.cond or tf.switch_case with tensors of one shape"
        )
    (first_position, a), (second_position, b) = live
    refs = ctx.evaluation.body.inputs[ctx.number]
    ref, is_first = _condition(ctx, refs[first_position], refs[second_position])
    condition = as_condition(ctx.value(ctx.evaluation.result(ref)))
    selected = select(ctx, condition, a, b) if is_first else select(ctx, condition, b, a)
    if_true, if_false = (
        (first_position, second_position) if is_first else (second_position, first_position)
    )
    position_entries = [
        make("full", shape=(), fill_value=k, dtype="int32") for k in (if_true, if_false)
    ]
    return selected, value_of(make("where", condition, *position_entries))


def _condition(ctx: NodeContext, a: ResultRef, b: ResultRef) -> tuple[ResultRef, int]:
    """Return the condition that decides between two values, and its value for the first one.

    The conditions of all nodes that lead to them are stored in the body's ``conditions``.

    Args:
        ctx: The Merge.
        a: The first value, a result of a node.
        b: The second value.

    Returns:
        The result that is the condition, and 1 if the first value is that for true, else 0.

    Raises:
        ModelError: If no Switch leads to both, a node depends on more than 64 conditions, or the
            budget of nodes, of which visits take a part, is exceeded.
    """
    body = ctx.evaluation.body
    heads = [a[0], b[0]]
    reachable = reachable_nodes(body, heads, body.conditions, control=True)
    for k, number in enumerate(topological_order(body, heads, reachable, body.conditions)):
        body.conditions[number] = _node_conditions(body, number)
        if k % _VISITS_PER_NODE == 0:
            ctx.shared.node_budget.take(ctx.where)
    conditions_a, conditions_b = _result_conditions(body, a), _result_conditions(body, b)
    for condition, side in conditions_a.items():
        if conditions_b.get(condition) == 1 - side:
            return condition, side
    raise ModelError(
        f"{ctx.where} merges two values, one of which is selected at run time, and needs one "
        f"Switch that leads to both, found none"
    )


def _result_conditions(body: GraphBody, ref: ResultRef) -> Mapping[ResultRef, int]:
    """Return the conditions under which a result is live, each with 1 for true or 0 for false.

    ``body`` must have the conditions of the node of ``ref``, a pair of node number and result
    index. A Switch adds its own condition, with the index as side. A condition is the result that
    decides.
    """
    number, index = ref
    conditions = body.conditions[number]
    if body.nodes[number].op in ("Switch", "RefSwitch") and len(body.inputs[number]) == 2:
        return {**conditions, body.inputs[number][1]: index}
    return conditions


def _node_conditions(body: GraphBody, number: int) -> Mapping[ResultRef, int]:
    """Return the conditions under which node ``number`` runs, each with 1 for true or 0 for false.

    These are the conditions of all its inputs and control dependencies that ``body`` has conditions
    for; of a Merge, those that its inputs share. Empty if it always runs.

    Raises:
        ModelError: If a node depends on more than 64 conditions.
    """
    refs = [ref for ref in body.inputs[number] if ref[0] in body.conditions]
    input_conditions = [_result_conditions(body, ref) for ref in refs]
    input_conditions += [
        body.conditions[k] for k in body.control_inputs[number] if k in body.conditions
    ]
    input_conditions = [c for c in input_conditions if c]
    if not input_conditions:
        return _FREE
    if body.nodes[number].op.removeprefix("Ref") == "Merge":
        first_conditions, *other_conditions = (
            input_conditions if len(input_conditions) == len(body.inputs[number]) else [_FREE]
        )
        return {
            c: s
            for c, s in first_conditions.items()
            if all(r.get(c) == s for r in other_conditions)
        }
    all_same = all(c is input_conditions[0] for c in input_conditions)
    merged = (
        input_conditions[0]
        if all_same
        else {c: s for conditions in input_conditions for c, s in conditions.items()}
    )
    if len(merged) > _DEEPEST:
        raise ModelError(
            f"{node_label(body.nodes[number])} of {body.where} depends on {len(merged)} nested "
            f"conditions, and at most {_DEEPEST} are supported"
        )
    return merged


@context_importer("Enter", "RefEnter", "NextIteration", "RefNextIteration")
def _passed(ctx: NodeContext, inputs: Sequence[AnyValue]) -> Sequence[AnyValue]:
    """Return the one input of Enter, NextIteration and their Ref variants unchanged.

    ``ctx`` is the node, and ``inputs`` are its inputs.

    Raises:
        ModelError: If there is not exactly one input.
    """
    ctx.check_count(inputs, 1)
    return tuple(inputs)


@frozen(eq=False)
class _LoopFrame:
    """The nodes of a TensorFlow 1 loop."""

    loop_enters: tuple[int, ...]
    """Enter nodes of loop variables, in the order of ``merges``, then those of invariants."""
    merges: tuple[int, ...]
    next_refs: tuple[ResultRef, ...]
    """Results that the loop variables take in the next iteration."""
    condition: ResultRef


@context_importer("Exit", "RefExit")
def _exit(ctx: NodeContext, inputs: Sequence[AnyValue]) -> Sequence[AnyValue]:
    """Import Exit: return the final value of its loop variable.

    The first Exit of a loop runs the loop and stores all final values in the evaluation, as
    ``loop_results``. The result is unsupported or dead if an initial value is. ``inputs`` is not
    read. ``ctx`` is the node.

    Raises:
        ModelError: If the loop is malformed, part of itself or nested too deeply, its condition is
            no array, its values change dtype or shape where it runs at run time, or the Exit reads
            no variable of it.
        ShapeError: If shapes in the loop do not fit an operator; likewise DTypeError for dtypes.
    """
    evaluation, body = ctx.evaluation, ctx.evaluation.body
    name = body.loop_name(ctx.number)
    if name not in evaluation.loop_results:
        _check_depth(ctx, name)
        frame = _find_frame(ctx, name)
        initial_values = [evaluation.result((k, 0)) for k in frame.loop_enters]
        if (unavailable := unavailable_results(ctx, initial_values)) is not None:
            return unavailable
        final_values = run_loop(ctx, _loop_functions(evaluation, frame, name), initial_values)
        evaluation.loop_results[name] = dict(
            zip(frame.merges, _final_values(final_values, frame), strict=False)
        )
    merge = body.inputs[body.inputs[ctx.number][0][0]][0][0]
    if merge not in evaluation.loop_results[name]:
        raise ModelError(
            f"{ctx.where} leaves the loop {short(name.decode('utf-8', 'replace'))} and needs the "
            f"Merge of a loop variable, got {short(body.nodes[merge].name)}"
        )
    return (evaluation.loop_results[name][merge],)


def _check_depth(ctx: NodeContext, name: bytes) -> None:
    """Raise ModelError if the loop ``name`` is part of itself or nested too deeply.

    ``ctx`` is the Exit that runs it.

    Raises:
        ModelError: If so; at most 63 loops and calls may be around it.
    """
    enclosing: BodyEvaluation | None = ctx.evaluation
    depth = len(ctx.evaluation.call_stack)
    while enclosing is not None:
        depth += 1
        if enclosing.loop_name == name or depth > MAX_CALL_DEPTH:
            shown = short(name.decode("utf-8", "replace"))
            reason = (
                "part of itself"
                if enclosing.loop_name == name
                else f"nested in more than {MAX_CALL_DEPTH} loops and calls"
            )
            raise ModelError(f"{ctx.where} leaves the loop {shown}, which is {reason}")
        enclosing = enclosing.outer


def _final_values(final_values: Sequence[AnyValue], frame: _LoopFrame) -> list[AnyValue]:
    """Return the values of the variables of loop ``frame``, without the invariants behind them."""
    return [final_values[k] for k in range(len(frame.merges))]


def _find_frame(ctx: NodeContext, name: bytes) -> _LoopFrame:
    """Find the nodes of a loop by its frame name.

    ``ctx`` is the node.

    Raises:
        ModelError: If it is no loop in the form that TensorFlow builds, of Enter, Merge, LoopCond,
            Switch and NextIteration nodes.
    """
    body = ctx.evaluation.body
    entrances = body.loop_enters.get(name, [])
    merges, next_refs, condition = [], [], None
    readers = _find_loop_readers(body)
    for enter in entrances:
        for merge in readers.get(enter, ()):
            if len(body.inputs[merge]) != 2 or "Merge" not in body.nodes[merge].op:
                continue
            switches = [k for k in readers.get(merge, ()) if "Switch" in body.nodes[k].op]
            if "NextIteration" in body.nodes[body.inputs[merge][1][0]].op and switches:
                merges.append((enter, merge))
                next_refs.append(body.inputs[merge][1])
                condition = body.inputs[switches[0]][-1]
                break
    if condition is None or body.nodes[condition[0]].op != "LoopCond":
        shown = short(name.decode("utf-8", "replace"))
        raise ModelError(
            f"{ctx.where} leaves the loop {shown} of {len(entrances)} Enter nodes, which has no "
            f"LoopCond; a loop needs Enter, Merge, LoopCond, Switch and NextIteration"
        )
    loop_variable_enters = {enter for enter, _ in merges}
    invariant_enters = [k for k in entrances if k not in loop_variable_enters]
    return _LoopFrame(
        (*(enter for enter, _ in merges), *invariant_enters),
        tuple(merge for _, merge in merges),
        tuple(next_refs),
        condition,
    )


def _find_loop_readers(body: GraphBody) -> dict[int, list[int]]:
    """Map a node to the Merge and Switch nodes whose first input it is, all by number.

    Nodes without such readers have no entry. The map is stored in the body as ``loop_readers``, so
    that it is computed once.
    """
    if not body.loop_readers:
        for number, reads in enumerate(body.inputs):
            if reads and body.nodes[number].op.removeprefix("Ref") in ("Merge", "Switch"):
                body.loop_readers.setdefault(reads[0][0], []).append(number)
    return body.loop_readers


def _loop_functions(evaluation: BodyEvaluation, frame: _LoopFrame, name: bytes) -> LoopFunctions:
    """Return a loop as functions of its values; each iteration evaluates the same nodes.

    Args:
        evaluation: Evaluation of the body that contains the loop.
        frame: Nodes of the loop.
        name: Its frame name.

    Returns:
        The condition and the body, which take the values of loop variables, then of invariants.
    """
    count = len(frame.merges)
    iterations: dict[int, BodyEvaluation] = {}

    def begin_iteration(values: Sequence[AnyValue], k: int) -> BodyEvaluation:
        prefix = f"{evaluation.prefix}{name.decode('utf-8', 'replace')}/{k}/"
        inner = BodyEvaluation(
            evaluation.shared,
            evaluation.body,
            prefix,
            evaluation.call_stack,
            evaluation.attrs,
            outer=evaluation,
            loop_name=name,
        )
        inner.values.update((m, (v, v)) for m, v in zip(frame.merges, values, strict=False))
        inner.values.update(
            (e, (v,)) for e, v in zip(frame.loop_enters[count:], values[count:], strict=True)
        )
        iterations.clear()
        iterations[k] = inner
        return inner

    def condition(values: Sequence[AnyValue], k: int) -> AnyValue:
        return begin_iteration(values, k).run([frame.condition], ("condition", name))[0]

    def loop_body(values: Sequence[AnyValue], k: int) -> Sequence[AnyValue]:
        return [*iterations[k].run(frame.next_refs, ("iteration", name)), *values[count:]]

    invariants = frozenset(range(count, len(frame.loop_enters)))
    return LoopFunctions(condition, loop_body, invariants)
