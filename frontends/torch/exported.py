"""PyTorch modules as passkit graphs, for all tools that work on graphs: `from_torch`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch.export import ExportedProgram, export
from torch.export.graph_signature import InputKind, OutputKind

from passkit.errors import ModelError
from passkit.frontends.torch.backend import decompositions
from passkit.frontends.torch.errors import UnsupportedNodeError
from passkit.frontends.torch.importer import Argument, import_graph
from passkit.graph.graph import Graph


def from_torch(
    module: torch.nn.Module | ExportedProgram,
    example_inputs: Sequence[Any] = (),
    dynamic_shapes: Any = None,
    example_kwargs: Mapping[str, Any] | None = None,
) -> Graph:
    """Return a module as a graph, with its parameters and buffers as constants.

    Inputs are named as the parameters of ``forward``, outputs are in the order of its results. An
    operator that passkit does not have is a `torch_call` node, which PyTorch runs.

    Args:
        module: a module, or what `torch.export.export` made of one.
        example_inputs: tensors for a call of ``forward``; not needed for an exported program.
        dynamic_shapes: which extents are symbolic, as for `torch.export.export`.
        example_kwargs: tensors for parameters of ``forward`` that are passed by name.

    Raises: ModelError for a module that changes its buffers, as batch norms do in training, whose
    results are no tensors, or with a part that is neither imported nor called; and what
    `torch.export.export` raises.

    Example:
        >>> import torch
        >>> import passkit as pk
        >>> run = pk.compile(from_torch(torch.nn.ReLU(), (torch.ones(2),)))
        >>> run(input=torch.ones(2).numpy())
        [array([1., 1.], dtype=float32)]
    """
    program = module
    if not isinstance(module, ExportedProgram):
        program = export(
            module,
            tuple(example_inputs),
            dict(example_kwargs or {}),
            dynamic_shapes=dynamic_shapes,
        )
    assert isinstance(program, ExportedProgram)
    program = program.run_decompositions(decompositions())
    for output in program.graph_signature.output_specs:
        if output.kind is not OutputKind.USER_OUTPUT:
            raise ModelError(
                f"from_torch: the module changes {output.target}; call eval() on it first, so that "
                f"it only computes"
            )
    values = _constants(program)
    try:
        imported = import_graph(program.graph_module, values, stands_alone=True)
    except UnsupportedNodeError as error:
        raise ModelError(f"from_torch: {error}") from None
    for number, output in enumerate(imported.outputs):
        if output.position < 0:
            raise ModelError(
                f"from_torch: results must be tensors, and result {number} of the module is "
                f"{_shown(output.value)}; leave it out of what forward returns"
            )
    if imported.graph is None:
        raise ModelError("from_torch: the module returns no tensor")
    return imported.graph


def _shown(value: Any) -> str:
    """Return a result that is no tensor as text."""
    return "an integer argument" if isinstance(value, Argument) else repr(value)


def _constants(program: ExportedProgram) -> Mapping[str, torch.Tensor]:
    """Return the parameters, buffers and constants of a program, by the names of placeholders."""
    values: dict[str, torch.Tensor] = {}
    for x in program.graph_signature.input_specs:
        name = getattr(x.arg, "name", "")
        if x.kind in (InputKind.PARAMETER, InputKind.BUFFER):
            assert x.target is not None
            state = program.state_dict.get(x.target)
            values[name] = program.constants[x.target] if state is None else state
        elif x.kind is InputKind.CONSTANT_TENSOR:
            assert x.target is not None
            values[name] = program.constants[x.target]
    return values
