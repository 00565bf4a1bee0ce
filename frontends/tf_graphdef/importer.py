"""Import of TensorFlow models: `load` reads a model and evaluates it symbolically into a Graph.

Models are untrusted. Names, edges and sizes are checked before anything is built from them,
traversals are iterative except for counted function calls, and memory is taken from a budget.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from passkit import ops
from passkit.errors import ModelError, nearest
from passkit.frontends.tf_graphdef.graph_body import (
    GraphBody,
    ResultRef,
    read_graph_body,
    reference,
)
from passkit.frontends.tf_graphdef.imported_value import ImportedValue
from passkit.frontends.tf_graphdef.inputs import InputDims, find_inputs
from passkit.frontends.tf_graphdef.model import Model
from passkit.frontends.tf_graphdef.model_source import ModelSource, read_model
from passkit.frontends.tf_graphdef.non_arrays import AnyValue, NonArray
from passkit.frontends.tf_graphdef.proto import short
from passkit.frontends.tf_graphdef.training.tracing import Trainer
from passkit.graph.graph import Graph
from passkit.graph.node import Entry, state, var
from passkit.values import arguments
from passkit.values.lazy import Lazy

if TYPE_CHECKING:
    from passkit.frontends.tf_graphdef import host_ops
else:
    host_ops = Lazy("passkit.frontends.tf_graphdef.host_ops")  # few models need it

RUN_NUMBER = "run_number"
"""Input or state variable that makes random draws differ between calls."""


def load(
    source: ModelSource,
    outputs: Iterable[str] | str | None = None,
    shapes: Mapping[str, InputDims] | None = None,
    max_nbytes: int | None = None,
    *,
    signature: str | None = None,
    tags: Sequence[str] = ("serve",),
    max_rounds: int = 1000,
    allow_host_ops: Mapping[str, Callable[..., Any]] | None = None,
    targets: Iterable[str] | None = None,
) -> Graph:
    """Import a TensorFlow model.

    Without ``targets``, variables are constants, except those that the loaded part assigns. As in
    TensorFlow, these keep their values between calls: they are state of the graph that starts with
    the checkpoint's values, and `pk.compile`'s ``state=`` shares it between signatures. Random
    operators, such as `RandomUniform` of a dropout, draw anew in each call: the graph counts its
    calls in the state variable ``run_number``, which starts at 0.

    Args:
        source: A ``.pb`` or ``.pbtxt`` file of a GraphDef, a SavedModel folder, the bytes of a
            GraphDef, a GraphDef object, or a concrete function, tf.function or Keras model of an
            imported TensorFlow.
        outputs: Names of tensors such as ``"Identity:0"``, or outputs of the signature; a string is
            one name. By default all outputs of the signature; without a signature, result 0 of each
            node to which no edge of a node leads, except constants, placeholders, NoOp and Assert;
            with at least one target, none. A placeholder that no output needs is no input of the
            graph; a call may still feed it by name, as in TensorFlow.
        shapes: Shapes of inputs by name, which refine those of the model. A dimension that is None
            or a string stays as the model has it, or symbolic.
        max_nbytes: Bound of the memory that reading takes, in bytes; by default 4 times the file
            size plus 64 MiB.
        signature: A signature of a SavedModel (default ``serving_default``), a method of its root
            object, or a function.
        tags: Tags that select a graph of a SavedModel; a string is one tag.
        max_rounds: Maximal number of iterations for which a loop is unrolled.
        allow_host_ops: NumPy functions for operators that passkit does not have, by operator. A
            function takes arrays; keyword-only parameters receive attributes of the node.
        targets: Names of nodes to run for their side effects, such as a train op, or one name; may
            be empty, ``()``. All variables are state then, and random draws depend on the input
            ``run_number``, of which each run needs another value. `ModelSession` feeds it and keeps
            the state.

    Returns:
        The graph of the requested outputs.

    Raises:
        ModelError: If the model is damaged, exceeds ``max_nbytes``, uses unsupported operators, or
            lacks an output, target or input that was named; if ``shapes`` contradicts it, or a host
            function is none.
        ShapeError: If shapes do not fit an operator; a note names the node.
        DTypeError: If dtypes do not.
        ArgumentError: If an argument other than ``source`` has a wrong type; a ModelError for
            ``source``.
        SettingError: If ``max_nbytes`` or ``max_rounds`` is no integer of at least 0.
        Exception: Whatever a function of ``allow_host_ops`` raises, which is tried on arrays of
            ones.
    """
    shapes = arguments.mapping("tf_graphdef.load: shapes", shapes, "a mapping of inputs to shapes")
    output_names = None if outputs is None else names_of("tf_graphdef.load: outputs", outputs)
    target_names = None if targets is None else names_of("tf_graphdef.load: targets", targets)
    tag_names = names_of("tf_graphdef.load: tags", tags)
    if signature is not None:
        arguments.text("tf_graphdef.load: signature", signature)
    if max_nbytes is not None:
        max_nbytes = arguments.count("tf_graphdef.load: max_nbytes", max_nbytes, 0)
    max_rounds = arguments.count("tf_graphdef.load: max_rounds", max_rounds, 0)
    need = "a mapping of operators to functions"
    functions = arguments.mapping("tf_graphdef.load: allow_host_ops", allow_host_ops, need)
    model = read_model(source, max_nbytes, signature, tag_names)
    body = read_graph_body(model.graph, model.where, model.budget)
    hosts = host_ops.host_ops(functions) if functions else {}
    inputs = find_inputs(model, body, shapes)
    target_nodes = [node_number(model, body, t) for t in target_names or ()]
    requested = [] if output_names is None and target_nodes else _outputs(model, body, output_names)
    run_number = _run_number(body) if targets is None else var(RUN_NUMBER, (), "int64")
    trainer = Trainer(
        model, body, run_number, inputs.factories, max_rounds, hosts, all_state=targets is not None
    )
    run = trainer.trace(requested, target_nodes, inputs.fed)
    graph = Graph(_entries(model, requested, run.results), run.updates)
    if run_number.node in graph.states:
        graph = Graph(graph.outputs, [*graph.updates, (run_number.node, run_number + 1)])
    names = [*inputs.names, *([] if targets is None else [RUN_NUMBER])]
    return graph.with_unread(names)


def names_of(where: str, names: Iterable[str] | str) -> tuple[str, ...]:
    """Return the argument ``names`` as a tuple; a string is one name. ``where`` is in errors.

    Raises:
        ArgumentError: If it is no string and no iterable of strings.
    """
    if isinstance(names, str):
        return (names,)
    return arguments.sequence(where, names, str, "a name or a sequence of names")


def _run_number(body: GraphBody) -> Entry:
    """Return an int64 scalar state that starts at 0, ``run_number`` or a name that no node has."""
    unique_name = RUN_NUMBER
    while unique_name in body.node_numbers:
        unique_name += "_"
    return state(unique_name, np.int64(0))


def _entries(
    model: Model, requested: Sequence[tuple[str, ResultRef]], results: Sequence[AnyValue]
) -> list[Entry]:
    """Return the results as entries that carry the output names.

    Args:
        model: The model, for errors.
        requested: Name and node result of each output.
        results: Their values, in the same order.

    Raises:
        ModelError: If a result is not an array, or consists of too many symbolic sizes.
    """
    entries = []
    for (name, _), value in zip(requested, results, strict=True):
        entry = require_array(model, name, value).entry
        entries.append(entry if entry.node.name == name else ops.identity(entry, name=name))
    return entries


def require_array(model: Model, name: str, value: AnyValue) -> ImportedValue:
    """Return the value of output ``name`` unchanged if it is an array.

    Raises:
        ModelError: If it is a handle, a list, a string or the like; ``model`` names itself in the
            error.
    """
    if isinstance(value, NonArray):
        raise ModelError(
            f"{model.where} needs arrays as outputs, and {short(name)} is {value.description}; "
            f"select other outputs by outputs="
        )
    return value


def _outputs(
    model: Model, body: GraphBody, outputs: Sequence[str] | None
) -> list[tuple[str, ResultRef]]:
    """Return the name and node result of each output.

    None requests all outputs of the signature. Without a signature it requests result 0 of each
    node to which no edge of a node leads, also no control dependency, except constants,
    placeholders, NoOp and Assert.

    Args:
        model: The model.
        body: Its nodes.
        outputs: Names of tensors or outputs that the caller requests; None for all.

    Raises:
        ModelError: If a name is unknown, there are no names, or no output can be found.
    """
    if outputs is None and model.outputs:
        return [_output(model, body, name, text) for name, text in model.outputs.items()]
    if outputs is None:
        never_outputs = ("NoOp", "Const", "Placeholder", "PlaceholderWithDefault", "Assert")
        requested = [
            (node.name, (number, 0))
            for number, node in enumerate(body.nodes)
            if not body.is_read[number] and node.op not in never_outputs
        ]
        if not requested:
            raise ModelError(
                f"{model.where} has {len(body.nodes)} nodes, and none has a result that no other "
                f"node reads; name the outputs to return: outputs=['name:0']"
            )
        return requested
    requested = []
    for output_name in outputs:
        if output_name in model.outputs:
            requested.append(_output(model, body, output_name, model.outputs[output_name]))
        else:
            requested.append(_output(model, body, None, output_name))
    if not requested:
        raise ModelError(f"{model.where}: outputs= needs at least one name of an output, got []")
    return requested


def _output(
    model: Model, body: GraphBody, public_name: str | None, text: str
) -> tuple[str, ResultRef]:
    """Resolve one output to its name and result.

    Args:
        model: The model.
        body: Its nodes.
        public_name: Name in the signature; None for that of the node.
        text: Name of the result, such as "logits:0".

    Raises:
        ModelError: If there is no such node.
    """
    name, index = reference(text)
    return public_name or name, (node_number(model, body, name, text), index)


def node_number(model: Model, body: GraphBody, name: str, text: str | None = None) -> int:
    """Return the number of the node called ``name``.

    Args:
        model: The model, for errors.
        body: Its nodes.
        name: Name of the node.
        text: The requested output in errors, such as "logits:0"; None if the node is to be run.

    Raises:
        ModelError: If there is no node of this name.
    """
    if name not in body.node_numbers:
        candidates = [*model.outputs, *body.node_numbers]
        purpose = "to run" if text is None else "to return"
        raise ModelError(
            f"{model.where} has no node {short(text or name)} {purpose}; "
            f"{nearest(name[:200], candidates)}"
        )
    return body.node_numbers[name]
