"""SavedModel folders: a graph with functions and signatures, and a checkpoint of its variables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from passkit.errors import ModelError, nearest
from passkit.frontends.tf_graphdef.checkpoint_bundle import OBJECT_GRAPH, CheckpointBundle
from passkit.frontends.tf_graphdef.file_formats import parse_file
from passkit.frontends.tf_graphdef.model import Model, model_calling
from passkit.frontends.tf_graphdef.non_arrays import ModelVariable
from passkit.frontends.tf_graphdef.proto import (
    Budget,
    budget_for,
    dtype_name,
    parse,
    short,
)
from passkit.frontends.tf_graphdef.tensor import parse_dtype, parse_shape

DEFAULT = "serving_default"
_INIT = "__saved_model_init_op"


class CheckpointWeights:
    """The checkpoint of a model, opened when a variable is first read.

    Args:
        prefix: Path of the checkpoint without ``.index``.
        budget: Memory that reading may take.
    """

    def __init__(self, prefix: Path, budget: Budget) -> None:
        """Prepare to read a checkpoint, which is opened on first use.

        Args:
            prefix: Path of the checkpoint without ``.index``.
            budget: Memory that reading may take.
        """
        self.prefix, self.budget = prefix, budget
        self._bundle: CheckpointBundle | None = None
        self._objects: Any = None
        self._names: dict[str, str] = {}

    @property
    def bundle(self) -> CheckpointBundle:
        """The opened checkpoint.

        Raises:
            ModelError: If it is missing or damaged.
        """
        if self._bundle is None:
            self._bundle = CheckpointBundle(self.prefix, self.budget)
            if OBJECT_GRAPH in self._bundle.keys:
                where = f"the graph of objects in {self._bundle.where}"
                data = self._bundle.string(OBJECT_GRAPH)
                self._objects = parse(data, where, self.budget, "TrackableObjectGraph")
                for node in self._objects.nodes:
                    for saved in node.attributes:
                        self._names.setdefault(saved.full_name, saved.checkpoint_key)
        return self._bundle

    def find(self, variable: ModelVariable) -> str | None:
        """Return the checkpoint key of a variable; None if the checkpoint does not have it.

        It is looked up by the variable's name in the object graph, then by its own, as in
        TensorFlow 1.

        Raises:
            ModelError: If the checkpoint is missing or damaged.
        """
        keys = self.bundle.keys
        for key in (self._names.get(variable.name), variable.name):
            if key is not None and key in keys:
                return key
        return None

    def names(self) -> list[str]:
        """Return at most 1000 names and keys, each cut to 200 characters, to suggest in errors.

        Raises:
            ModelError: If the checkpoint is missing or damaged.
        """
        keys = self.bundle.keys  # opens the checkpoint, which fills in the names
        return [n[:200] for n in [*self._names, *keys][:1000]]

    def key_of(self, number: int) -> str | None:
        """Return the checkpoint key of the object with this number in the object graph.

        None if there is no object graph or no such object, or if it does not have exactly one
        attribute. The checkpoint is opened if it is not yet.

        Raises:
            ModelError: If the checkpoint is missing or damaged.
        """
        assert self.bundle is not None
        if self._objects is None or not 0 <= number < len(self._objects.nodes):
            return None
        attributes = self._objects.nodes[number].attributes
        return attributes[0].checkpoint_key if len(attributes) == 1 else None

    def array(self, key: str) -> NDArray[Any]:
        """Return the tensor of the checkpoint under ``key``; see `CheckpointBundle.array`.

        Raises:
            ModelError: If the checkpoint or the tensor is missing or damaged.
        """
        return self.bundle.array(key)


def from_folder(
    folder: Path, max_nbytes: int | None, signature: str | None, tags: Sequence[str]
) -> Model:
    """Read the function of a SavedModel that a signature names.

    saved_model.pb is preferred to saved_model.pbtxt.

    Args:
        folder: The folder, which has saved_model.pb or saved_model.pbtxt.
        max_nbytes: Bound of the memory that reading takes, in bytes; None for 4 times the size of
            the files plus 64 MiB.
        signature: A signature, a method of the root object, or a function; None for the default
            signature, or the only one.
        tags: Tags that select a graph.

    Raises:
        ModelError: If the folder, signature or set of tags does not exist, files are damaged,
            cannot be read or exceed the memory limit, the signature has sparse inputs or outputs,
            or the function captured other values than variables.
    """
    where = short(str(folder))
    try:
        checkpoint_nbytes = sum(f.stat().st_size for f in folder.glob("variables/variables.*"))
        model_files = [
            f for f in (folder / "saved_model.pb", folder / "saved_model.pbtxt") if f.is_file()
        ]
        if not model_files:
            raise ModelError(
                f"{where}: expected a SavedModel, found a folder without saved_model.pb or "
                f"saved_model.pbtxt; give load the file of a frozen graph, or the folder that was "
                f"exported"
            )
        data = model_files[0].read_bytes()
    except OSError as error:
        raise ModelError(
            f"{where} cannot be read: {error.strerror}; load needs a folder that may be read"
        ) from None
    budget = budget_for(len(data) + checkpoint_nbytes, max_nbytes)
    is_text = model_files[0].suffix != ".pb"
    saved = parse_file(data, short(str(model_files[0])), budget, "SavedModel", is_text)
    weights = CheckpointWeights(folder / "variables" / "variables", budget)
    return _model(_meta_graph(saved, tags, where), weights, where, budget, signature)


def _meta_graph(saved: Any, tags: Sequence[str], where: str) -> Any:
    """Return the MetaGraphDef of the SavedModel ``saved`` that has all ``tags``.

    Of several different ones, the one that has no further tags is chosen. ``where`` names the model
    in errors.

    Raises:
        ModelError: If none has them, or several different ones have, and not exactly one of them
            has no further tags.
    """
    graphs = [g for g in saved.meta_graphs if set(tags) <= set(g.meta_info_def.tags)]
    if len(graphs) == 1 or (graphs and all(graphs[0] == g for g in graphs)):
        return graphs[0]
    exact_matches = [g for g in graphs if set(tags) == set(g.meta_info_def.tags)]
    if len(exact_matches) == 1:
        return exact_matches[0]
    available = "; ".join(
        ", ".join(short(t)[1:-1] for t in list(g.meta_info_def.tags)[:8]) or "no tags"
        for g in list(saved.meta_graphs)[:8]
    )
    raise ModelError(
        f"{where} needs one graph with the tags {', '.join(tags)}, and has {len(graphs)}; tags= "
        f"selects among: {available or 'none'}"
    )


def _model(
    meta: Any, weights: CheckpointWeights, where: str, budget: Budget, signature: str | None
) -> Model:
    """Return the model of a signature, a method of the root object, or a function.

    Args:
        meta: MetaGraphDef.
        weights: The checkpoint.
        where: Name of the model in errors.
        budget: Memory budget.
        signature: Name to look up. None for the default signature, or the only signature, or
            without signatures the only method.

    Raises:
        ModelError: If there is none of this name, or it has sparse inputs or outputs, or captured
            other values than variables.
    """
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
    candidates = [*signatures, *methods]
    raise ModelError(
        f"{where} has {len(signatures)} signatures and {len(methods)} methods, and needs "
        f"{'one that is the default' if signature is None else f'one called {short(signature)}'}; "
        f"select one by signature=: {nearest((name or DEFAULT)[:200], candidates)}"
    )


def _signed(base: Model, signature: Any) -> Model:
    """Set inputs and outputs of ``base`` to those of ``signature``, in place, and return it.

    ``signature`` is a SignatureDef.

    Raises:
        ModelError: If an input or output is sparse or composite.
    """
    for kind, tensor_infos in (("input", signature.inputs), ("output", signature.outputs)):
        for name, info in tensor_infos.items():
            if not info.name:
                raise ModelError(
                    f"{base.where} needs a dense tensor as the {kind} {short(name)} of the "
                    f"signature, got a sparse or composite one ({dtype_name(info.dtype)}); export "
                    f"the model with dense tensors"
                )
    base.inputs = {k: i.name for k, i in sorted(signature.inputs.items())}
    base.infos = dict(signature.inputs)
    base.outputs = {k: o.name for k, o in sorted(signature.outputs.items())}
    return base


def _methods(objects: Any) -> dict[str, str]:
    """Map each method of the root object to the name of its first concrete function.

    Methods without a concrete function are left out. ``objects`` is a SavedObjectGraph; without
    objects the map is empty.
    """
    if not objects.nodes:
        return {}
    functions = {}
    for child in objects.nodes[0].children:
        if 0 <= child.node_id < len(objects.nodes):
            node = objects.nodes[child.node_id]
            if node.WhichOneof("value") == "function" and node.function.concrete_functions:
                functions[child.local_name] = node.function.concrete_functions[0]
            elif node.WhichOneof("value") == "bare_concrete_function":
                functions[child.local_name] = node.bare_concrete_function.concrete_function_name
    return functions


def _method(base: Model, objects: Any, weights: CheckpointWeights, function: Any) -> Model:
    """Return the model of a concrete function, bound to the variables that it captured.

    Args:
        base: The model that has the function.
        objects: SavedObjectGraph with the captured objects.
        weights: The checkpoint, for the variables' keys.
        function: FunctionDef whose last arguments are the captures.

    Raises:
        ModelError: If it captured another object than a variable, or more than it has arguments, or
            a variable's shape or dtype is not supported.
    """
    name = function.signature.name
    concrete_functions: Mapping[str, Any] = objects.concrete_functions
    captures = list(concrete_functions[name].bound_inputs) if name in concrete_functions else []
    count = len(function.signature.input_arg)
    if len(captures) > count:
        raise ModelError(
            f"{base.where}: the function {short(name)} takes {count} arguments, and is bound to "
            f"{len(captures)} captured values; export the model again"
        )
    bound = {}
    for k, number in enumerate(captures, count - len(captures)):
        where = f"argument {k} of the function {short(name)}"
        is_valid = 0 <= number < len(objects.nodes)
        kind = objects.nodes[number].WhichOneof("value") if is_valid else None
        if kind != "variable":
            raise ModelError(
                f"{base.where}: {where} needs to be a captured variable, got object {number} of "
                f"kind {kind or 'none'}; select a signature instead, by signature="
            )
        saved_variable = objects.nodes[number].variable
        shape = parse_shape(saved_variable.shape, where)
        static_shape = (
            None if shape is None or None in shape else tuple(n for n in shape if n is not None)
        )
        bound[k] = ModelVariable(
            saved_variable.name,
            parse_dtype(saved_variable.dtype, where),
            static_shape,
            weights.key_of(number),
        )
    return model_calling(base, function, bound)
