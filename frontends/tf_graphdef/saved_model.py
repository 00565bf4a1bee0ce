"""SavedModel folders: a graph with functions and signatures, and a checkpoint of its variables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from passkit.errors import ModelError, nearest
from passkit.frontends.tf_graphdef.bundle import OBJECT_GRAPH, Bundle
from passkit.frontends.tf_graphdef.foreign import parse_file
from passkit.frontends.tf_graphdef.model import Model, calling
from passkit.frontends.tf_graphdef.opaque import Variable
from passkit.frontends.tf_graphdef.proto import (
    Budget,
    budget_for,
    dtype_name,
    parse,
    short,
)
from passkit.frontends.tf_graphdef.tensor import dtype_from, shape_from
from passkit.frontends.tf_graphdef.value import Array

DEFAULT = "serving_default"
_INIT = "__saved_model_init_op"


class Weights:
    """The checkpoint of a model, opened when a variable is first asked for."""

    def __init__(self, prefix: Path, budget: Budget) -> None:
        self.prefix, self.budget = prefix, budget
        self._bundle: Bundle | None = None
        self._objects: Any = None
        self._names: dict[str, str] = {}

    @property
    def bundle(self) -> Bundle:
        """The checkpoint. Raises: ModelError where there is none."""
        if self._bundle is None:
            self._bundle = Bundle(self.prefix, self.budget)
            if OBJECT_GRAPH in self._bundle.keys:
                where = f"the graph of objects in {self._bundle.where}"
                data = self._bundle.string(OBJECT_GRAPH)
                self._objects = parse(data, where, self.budget, "TrackableObjectGraph")
                for node in self._objects.nodes:
                    for saved in node.attributes:
                        self._names.setdefault(saved.full_name, saved.checkpoint_key)
        return self._bundle

    def find(self, variable: Variable) -> str | None:
        """The key of a variable of this name: that of an object, or as TensorFlow 1 has it."""
        keys = self.bundle.keys
        for key in (self._names.get(variable.name), variable.name):
            if key is not None and key in keys:
                return key
        return None

    def names(self) -> list[str]:
        """What variables may be called: by objects, and by keys; the first thousand, for hints."""
        return [n[:200] for n in [*self._names, *self.bundle.keys][:1000]]

    def key_of(self, number: int) -> str | None:
        """The key of the variable that is the object of a number."""
        assert self.bundle is not None
        if self._objects is None or not 0 <= number < len(self._objects.nodes):
            return None
        saved = self._objects.nodes[number].attributes
        return saved[0].checkpoint_key if len(saved) == 1 else None

    def array(self, key: str) -> Array:
        """A tensor of the checkpoint."""
        return self.bundle.array(key)


def from_folder(
    folder: Path, max_nbytes: int | None, signature: str | None, tags: Sequence[str]
) -> Model:
    """The model in a SavedModel folder: the function that a signature names.

    Raises: ModelError when there is no such folder, signature or set of tags.
    """
    where = short(str(folder))
    try:
        size = sum(f.stat().st_size for f in folder.glob("variables/variables.*"))
        found = [
            f for f in (folder / "saved_model.pb", folder / "saved_model.pbtxt") if f.is_file()
        ]
        if not found:
            raise ModelError(
                f"{where} is a folder without saved_model.pb or saved_model.pbtxt, so it is no "
                f"SavedModel; give the file of a frozen graph, or the folder that was exported"
            )
        data = found[0].read_bytes()
    except OSError as error:
        raise ModelError(f"{where} cannot be read: {error.strerror}") from None
    budget = budget_for(len(data) + size, max_nbytes)
    is_text = found[0].suffix != ".pb"
    saved = parse_file(data, short(str(found[0])), budget, "SavedModel", is_text)
    weights = Weights(folder / "variables" / "variables", budget)
    return _model(_meta_graph(saved, tags, where), weights, where, budget, signature)


def _meta_graph(saved: Any, tags: Sequence[str], where: str) -> Any:
    graphs = [g for g in saved.meta_graphs if set(tags) <= set(g.meta_info_def.tags)]
    if len(graphs) == 1 or (graphs and all(graphs[0] == g for g in graphs)):
        return graphs[0]
    exact = [g for g in graphs if set(tags) == set(g.meta_info_def.tags)]
    if len(exact) == 1:
        return exact[0]
    there = "; ".join(
        ", ".join(short(t)[1:-1] for t in list(g.meta_info_def.tags)[:8]) or "no tags"
        for g in list(saved.meta_graphs)[:8]
    )
    raise ModelError(
        f"{where} has {len(graphs)} graphs with the tags {', '.join(tags)}, and one is needed; "
        f"tags= chooses among: {there or 'none at all'}"
    )


def _model(meta: Any, weights: Weights, where: str, budget: Budget, signature: str | None) -> Model:
    graph = meta.graph_def
    restore = meta.saver_def.restore_op_name
    base = Model(graph, where, budget, checkpoint=weights, restore=restore)
    signatures = {k: s for k, s in meta.signature_def.items() if k != _INIT}
    name = signature
    if name is None:
        name = DEFAULT if DEFAULT in signatures else None
        if name is None and len(signatures) == 1:
            name = next(iter(signatures))
    if name is not None and name in signatures:
        return _signed(base, signatures[name])
    methods = _methods(meta.object_graph_def)
    if name is None and not signatures and len(methods) == 1:
        name = next(iter(methods))
    if name is not None:
        functions = {f.signature.name: f for f in graph.library.function}
        concrete = methods.get(name, name)
        if concrete in functions:
            return _method(base, meta.object_graph_def, weights, functions[concrete])
    known = [*signatures, *methods]
    wanted = "" if signature is None else f" called {short(signature)}"
    raise ModelError(
        f"{where} has {len(signatures)} signatures and {len(methods)} methods, and none{wanted} to "
        f"take; signature= chooses one: {nearest((name or DEFAULT)[:200], known)}"
    )


def _signed(base: Model, signature: Any) -> Model:
    """The model that a signature describes."""
    for kind, infos in (("input", signature.inputs), ("output", signature.outputs)):
        for name, info in infos.items():
            if not info.name:
                raise ModelError(
                    f"{base.where}: the {kind} {short(name)} of the signature is sparse or "
                    f"composite ({dtype_name(info.dtype)}), and a dense tensor is needed"
                )
    base.inputs = {k: i.name for k, i in sorted(signature.inputs.items())}
    base.infos = dict(signature.inputs)
    base.outputs = {k: o.name for k, o in sorted(signature.outputs.items())}
    return base


def _methods(objects: Any) -> dict[str, str]:
    """The functions of the model's root object, and the concrete one that each stands for."""
    if not objects.nodes:
        return {}
    found = {}
    for child in objects.nodes[0].children:
        if 0 <= child.node_id < len(objects.nodes):
            node = objects.nodes[child.node_id]
            if node.WhichOneof("value") == "function" and node.function.concrete_functions:
                found[child.local_name] = node.function.concrete_functions[0]
            elif node.WhichOneof("value") == "bare_concrete_function":
                found[child.local_name] = node.bare_concrete_function.concrete_function_name
    return found


def _method(base: Model, objects: Any, weights: Weights, function: Any) -> Model:
    """The model that one function is, with the variables that it was traced with."""
    name = function.signature.name
    told: Mapping[str, Any] = objects.concrete_functions
    captures = list(told[name].bound_inputs) if name in told else []
    count = len(function.signature.input_arg)
    if len(captures) > count:
        raise ModelError(
            f"{base.where}: the function {short(name)} takes {count} arguments, and "
            f"{len(captures)} values are bound to it"
        )
    bound = {}
    for k, number in enumerate(captures, count - len(captures)):
        where = f"argument {k} of the function {short(name)}"
        there = 0 <= number < len(objects.nodes)
        kind = objects.nodes[number].WhichOneof("value") if there else None
        if kind != "variable":
            raise ModelError(
                f"{base.where}: {where} is object {number}, which is {kind or 'none'}, and only "
                f"variables are supported there; call a signature instead"
            )
        saved = objects.nodes[number].variable
        shape = shape_from(saved.shape, where)
        known = None if shape is None or None in shape else tuple(n for n in shape if n is not None)
        bound[k] = Variable(
            saved.name, dtype_from(saved.dtype, where), known, weights.key_of(number)
        )
    return calling(base, function, bound)
