"""From a TensorFlow model to a passkit Graph.

The model is untrusted: names, edges and sizes are checked before anything is built from them, all
walks are iterative but for calls of functions, which are counted, and what is kept is accounted
for in a budget of memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from passkit import ops
from passkit.errors import ModelError, nearest
from passkit.frontends.tf_graphdef.body import Body, Ref, graph_body, reference
from passkit.frontends.tf_graphdef.inputs import find_inputs
from passkit.frontends.tf_graphdef.model import Model
from passkit.frontends.tf_graphdef.opaque import Anything, Opaque
from passkit.frontends.tf_graphdef.proto import short
from passkit.frontends.tf_graphdef.source import Source, read_model
from passkit.frontends.tf_graphdef.training.tracing import Trainer
from passkit.frontends.tf_graphdef.value import Value
from passkit.graph.graph import Graph
from passkit.graph.node import Entry, state, var
from passkit.values import arguments
from passkit.values.lazy import Lazy

if TYPE_CHECKING:
    from passkit.frontends.tf_graphdef import host
else:
    host = Lazy("passkit.frontends.tf_graphdef.host")  # few models need it

Dims: TypeAlias = Sequence[int | str | None]

RUN_NUMBER = "run_number"
"""The input, or the state, that draws differ by from call to call."""


def load(
    source: Source,
    outputs: Iterable[str] | str | None = None,
    shapes: Mapping[str, Dims] | None = None,
    max_nbytes: int | None = None,
    *,
    signature: str | None = None,
    tags: Sequence[str] = ("serve",),
    max_rounds: int = 1000,
    allow_host_ops: Mapping[str, Callable[..., Any]] | None = None,
    targets: Iterable[str] | None = None,
) -> Graph:
    """The graph of a TensorFlow model.

    ``source`` is a ``.pb`` or ``.pbtxt`` file of a GraphDef, a SavedModel folder, the bytes of a
    GraphDef, a GraphDef object, or a concrete function, tf.function or Keras model of a TensorFlow
    that is imported.
    ``signature`` names a signature of a SavedModel, by default ``serving_default``, a method of
    its object or a function; ``tags`` choose among its graphs.
    ``outputs`` are names such as ``"Identity:0"``, or those of the signature; by default all of
    the signature, or the nodes that nobody reads. A placeholder that no output needs is no input
    of the graph; a call may still feed it, by its name, as in TensorFlow.
    ``shapes`` make inputs' shapes more precise; a dimension of None or a name stays unknown.
    ``max_nbytes`` bounds the memory taken: by default 4 times the file and 64 MiB.
    ``max_rounds`` bounds how far a loop is unrolled.
    ``allow_host_ops`` gives NumPy functions for operators that passkit does not have. A function
    takes the arrays; keyword-only parameters take attributes of the node.
    ``targets`` names nodes to run for what they do, such as a train op, or none, ``()``: all
    variables are state then, and draws are made from the input ``run_number``, of which each run
    needs another. `Session` does all that.

    Without ``targets`` variables are constants, but for those that what is loaded assigns. As in
    TensorFlow these keep what a call leaves in them: they are state of the graph, which begins
    with the checkpoint's values, and `pk.compile`'s ``state=`` shares it between signatures.
    Operators that draw, such as `RandomUniform` of a dropout, make other draws in each call: the
    graph counts its calls in the state variable ``run_number``, which begins at 0.

    Raises: ModelError on anything that is damaged, hostile or not supported.
    """
    shapes = arguments.mapping("tf_graphdef.load: shapes", shapes, "a mapping of inputs to shapes")
    for name, names in (("outputs", outputs), ("targets", targets), ("tags", tags)):
        if names is not None and not isinstance(names, str):
            where = f"tf_graphdef.load: {name}"
            arguments.sequence(where, names, str, "a name or a sequence of names")
    model = read_model(source, max_nbytes, signature, tags)
    body = graph_body(model.graph, model.where, model.budget)
    hosts = host.host_ops(allow_host_ops) if allow_host_ops else {}
    inputs = find_inputs(model, body, shapes)
    ran = [node_number(model, body, t) for t in targets or ()]
    heads = [] if outputs is None and ran else _outputs(model, body, outputs)
    number = _run_number(body) if targets is None else var(RUN_NUMBER, (), "int64")
    trainer = Trainer(
        model, body, number, inputs.makers, max_rounds, hosts, all_state=targets is not None
    )
    run = trainer.trace(heads, ran, inputs.fed)
    graph = Graph(_entries(model, heads, run.results), run.updates)
    if number.node in graph.states:
        graph = Graph(graph.outputs, [*graph.updates, (number.node, number + 1)])
    names = [*inputs.names, *([] if targets is None else [RUN_NUMBER])]
    return graph.with_unread(names)


def _run_number(body: Body) -> Entry:
    """A state variable that counts the calls, under a name that no node has."""
    name = RUN_NUMBER
    while name in body.numbers:
        name += "_"
    return state(name, np.int64(0))


def _entries(
    model: Model, wanted: Sequence[tuple[str, Ref]], found: Sequence[Anything]
) -> list[Entry]:
    """Results under their names. Raises: ModelError for what is no array."""
    entries = []
    for (name, _), value in zip(wanted, found, strict=True):
        entry = array_of(model, name, value).entry
        entries.append(entry if entry.node.name == name else ops.identity(entry, name=name))
    return entries


def array_of(model: Model, name: str, value: Anything) -> Value:
    """A result that is an array. Raises: ModelError for what is none."""
    if isinstance(value, Opaque):
        raise ModelError(
            f"{model.where} cannot return {short(name)}: it is {value.what}, and an array is "
            f"needed; outputs= chooses others"
        )
    return value


def _outputs(
    model: Model, body: Body, outputs: Iterable[str] | str | None
) -> list[tuple[str, Ref]]:
    """Name and reference of each result to return.

    Raises: ModelError for an unknown name, or when there is nothing to return.
    """
    if outputs is None and model.outputs:
        return [_output(model, body, name, text) for name, text in model.outputs.items()]
    if outputs is None:
        hidden = ("NoOp", "Const", "Placeholder", "PlaceholderWithDefault", "Assert")
        found = [
            (node.name, (number, 0))
            for number, node in enumerate(body.nodes)
            if not body.is_read[number] and node.op not in hidden
        ]
        if not found:
            raise ModelError(
                f"{model.where} has {len(body.nodes)} nodes and no operator that nobody reads; "
                f"say what to return: outputs=['name:0']"
            )
        return found
    found = []
    for text in [outputs] if isinstance(outputs, str) else outputs:
        told = str(text)
        if told in model.outputs:
            found.append(_output(model, body, told, model.outputs[told]))
        else:
            found.append(_output(model, body, None, told))
    if not found:
        raise ModelError(f"{model.where}: outputs={outputs!r} names nothing to return")
    return found


def _output(model: Model, body: Body, called: str | None, text: str) -> tuple[str, Ref]:
    name, index = reference(text)
    return called or name, (node_number(model, body, name, text), index)


def node_number(model: Model, body: Body, name: str, text: str | None = None) -> int:
    """The number of a node. Raises: ModelError for an unknown name."""
    if name not in body.numbers:
        known = [*model.outputs, *body.numbers]
        what = "to run" if text is None else "to return"
        raise ModelError(
            f"{model.where} has no node {short(text or name)} {what}; "
            f"{nearest(name[:200], known)}"
        )
    return body.numbers[name]
