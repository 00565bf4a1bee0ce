"""The backend of `torch.compile`: ``torch.compile(model, backend="passkit")``.

AOTAutograd hands over functional graphs of ATen, forward and backward; each becomes one passkit
program. Its results are tensors on the memory of passkit's arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

import torch
from functorch.compile import make_boxed_func, min_cut_rematerialization_partition
from torch._decomp import core_aten_decompositions, get_decompositions
from torch._dynamo.backends.common import aot_autograd
from torch._subclasses.fake_tensor import unset_fake_temporarily
from torch.fx import GraphModule

from passkit.errors import DTypeError, SettingError, nearest
from passkit.frontends.torch.errors import UnsupportedNodeError
from passkit.frontends.torch.importer import (
    import_graph,
)
from passkit.frontends.torch.op_importers import IMPORTERS
from passkit.frontends.torch.program import Program
from passkit.frontends.torch.reports import GraphRecord, record

aten = torch.ops.aten
FALLBACKS = ("extern", "error")
"""The ways to treat operators that passkit does not have: PyTorch runs them, or it is an error."""
_MORE_DECOMPOSED = (
    aten.native_layer_norm_backward,
    aten.native_group_norm,
    aten.native_group_norm_backward,
    aten._native_batch_norm_legit,
    aten._native_batch_norm_legit_functional,
    aten._native_batch_norm_legit_no_training,
    aten.native_batch_norm,
    aten.native_batch_norm_backward,
    aten.cudnn_batch_norm,
    aten._softmax_backward_data,
    aten._log_softmax_backward_data,
    aten.gelu_backward,
    aten.silu_backward,
    aten.tanh_backward,
    aten.sigmoid_backward,
    aten.threshold_backward,
    aten.embedding_dense_backward,
    aten.nll_loss_forward,
    aten.nll_loss_backward,
    aten.mse_loss,
    aten.mse_loss_backward,
    aten.masked_fill,
    aten.lerp,
    aten.addcmul,
    aten.addcdiv,
    aten.native_dropout_backward,
    aten.slice_backward,
    aten.select_backward,
    aten._batch_norm_with_update_functional,
    aten.addmv,
    aten.dist,
    aten.elu,
    aten.elu_backward,
    aten.grid_sampler_2d,
    aten.ldexp,
)
"""Operators that are decomposed besides those that PyTorch decomposes for core ATen."""
_NOT_DECOMPOSED = (aten.bernoulli,)
"""Operators that PyTorch runs: their decompositions draw other random numbers."""


@cache
def decompositions() -> dict[Any, Callable[..., Any]]:
    """Return the decompositions of operators; those with importers are not decomposed."""
    table = dict(core_aten_decompositions())
    table.update(get_decompositions(list(_MORE_DECOMPOSED)))
    kept = set(IMPORTERS) | {f for packet in _NOT_DECOMPOSED for f in _overloads(packet)}
    return {k: f for k, f in table.items() if k not in kept}


def _overloads(packet: Any) -> list[Any]:
    """Return the overloads of an operator."""
    return [getattr(packet, name) for name in packet.overloads()]


class PasskitBackend:
    """The backend object, which is registered as "passkit".

    ``torch.compile(model, backend="passkit", options={...})`` takes the options of
    `passkit.compile`, and ``fallback``: "extern" (default), so that PyTorch runs the operators that
    passkit does not have, or "error".
    """

    def __call__(
        self,
        module: GraphModule,
        example_inputs: Sequence[Any],
        *,
        options: Mapping[str, Any] | None = None,
        mode: str | None = None,
    ) -> Callable[..., Any]:
        """Compile a graph that Dynamo captured.

        Args:
            module: the graph.
            example_inputs: tensors of the shapes that it is compiled for.
            options: options, see the class.
            mode: accepted for the sake of `torch.compile`; only None and "default" are.

        Raises: SettingError for an unknown mode or value of ``fallback``, or, with the fallback
        "error", for a graph with operators that passkit does not have.
        """
        if mode not in (None, "default"):
            raise SettingError(f"backend passkit: mode {mode!r} is unknown; leave it out")
        compiler = _compiler(tuple(sorted((options or {}).items())))
        return compiler(module, example_inputs)  # type: ignore[no-any-return]


passkit_backend = PasskitBackend()
"""The backend that the entry point names."""


@cache
def _compiler(options: tuple[tuple[str, Any], ...]) -> Callable[..., Any]:
    """Return the compiler of graphs that Dynamo captured, for some options.

    Raises: SettingError for an unknown value of ``fallback``.
    """
    own = dict(options)
    fallback = own.pop("fallback", "extern")
    if fallback not in FALLBACKS:
        raise SettingError(
            f"backend passkit: fallback is {fallback!r}{nearest(str(fallback), FALLBACKS)}; it is "
            f"one of {', '.join(FALLBACKS)}"
        )

    def compile_graph(module: GraphModule, example_inputs: Sequence[Any]) -> Callable[..., Any]:
        return compile_functional(module, fallback, own)

    return aot_autograd(  # type: ignore[no-any-return]
        fw_compiler=compile_graph,
        bw_compiler=compile_graph,
        inference_compiler=compile_graph,
        decompositions=decompositions(),
        partition_fn=min_cut_rematerialization_partition,
    )


def compile_functional(
    module: GraphModule, fallback: str, options: Mapping[str, Any]
) -> Callable[..., Any]:
    """Compile a graph of functional operators; return a function of a list of arguments.

    Args:
        module: the graph, with fake tensors as metadata.
        fallback: one of `FALLBACKS`.
        options: options of `passkit.compile`.

    Raises: SettingError for operators that passkit does not have, with the fallback "error"; what
    `passkit.compile` raises.
    """
    with unset_fake_temporarily():
        return _compiled(module, fallback, options)


def _compiled(module: GraphModule, fallback: str, options: Mapping[str, Any]) -> Callable[..., Any]:
    """Compile a graph outside of PyTorch's modes, in which real tensors are errors.

    Raises: SettingError for operators that passkit does not have, with the fallback "error".
    """
    try:
        imported = import_graph(module)
    except (UnsupportedNodeError, DTypeError) as error:
        if fallback == "error":
            text = f"backend passkit: PyTorch would run a whole graph: {error}"
            raise SettingError(text) from None
        nodes = sum(n.op == "call_function" for n in module.graph.nodes)
        record(GraphRecord(nodes, (), str(error)))
        return make_boxed_func(module.forward)  # type: ignore[no-any-return]
    if fallback == "error" and imported.externs:
        first = imported.externs[0]
        raise SettingError(
            f"backend passkit: PyTorch would run {len(imported.externs)} of {imported.node_count} "
            f"operators, first {first.function} ({first.reason}); leave out fallback='error'"
        )
    program = Program(imported, options)
    graph = GraphRecord(imported.node_count, imported.externs, program=program)
    is_reported = record(graph)

    def run(args: list[Any]) -> list[Any]:
        """Call the program; for a report, keep the arguments of the first call."""
        if is_reported and not graph.calls:
            graph.calls.append(list(args))
        return program(args)

    run._boxed_call = True  # type: ignore[attr-defined]
    return run
