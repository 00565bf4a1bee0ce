"""The backend of `torch.compile`: ``torch.compile(model, backend="passkit")``.

AOTAutograd hands over functional graphs of ATen, forward and backward; each becomes one passkit
program. Its results are tensors on the memory of passkit's arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any

import torch
from functorch.compile import min_cut_rematerialization_partition
from torch._decomp import core_aten_decompositions, get_decompositions
from torch._dynamo.backends.common import aot_autograd
from torch._functorch import config as functorch_config
from torch._functorch._aot_autograd.schemas import SerializableAOTDispatchCompiler
from torch._inductor.output_code import OutputCode
from torch._subclasses.fake_tensor import unset_fake_temporarily
from torch.fx import GraphModule

from passkit.errors import DTypeError, SettingError, nearest
from passkit.frontends.torch.compiled import (
    CompiledGraph,
    GraphOfPyTorch,
    cache_tag,
    keys_without_inductor,
)
from passkit.frontends.torch.devices import check_on_cuda, cuda_options, is_on_cuda
from passkit.frontends.torch.errors import UnsupportedNodeError
from passkit.frontends.torch.frozen import fixed_arguments
from passkit.frontends.torch.importer import import_graph
from passkit.frontends.torch.op_importers import IMPORTERS
from passkit.frontends.torch.symbols import float_guard
from passkit.runtime.native import convolution_unit
from passkit.runtime.native.convolution_unit import ConvolutionUnit

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


class _Decompositions(Mapping[Any, Callable[..., Any]]):
    """The decompositions, which are collected when the first one is asked for."""

    def __getitem__(self, function: Any) -> Callable[..., Any]:
        """Return the decomposition of an operator."""
        return decompositions()[function]

    def __iter__(self) -> Iterator[Any]:
        """Yield the operators that are decomposed."""
        return iter(decompositions())

    def __len__(self) -> int:
        """Return the number of operators that are decomposed."""
        return len(decompositions())


def _overloads(packet: Any) -> list[Any]:
    """Return the overloads of an operator."""
    return [getattr(packet, name) for name in packet.overloads()]


class PasskitBackend:
    """The backend object, which is registered as "passkit".

    ``torch.compile(model, backend="passkit", options={...})`` takes the options of
    `passkit.compile`, and ``fallback``: "extern" (default), so that PyTorch runs the operators that
    passkit does not have, or "error". With ``freezing=True`` parameters and buffers are constants
    of graphs on the CPU that need no gradients, see `FrozenProgram`.
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

        Raises: SettingError for an unknown mode or option, a wrong value of ``fallback`` or
        ``freezing``, or, with the fallback "error", for a graph with operators that passkit does
        not have.
        """
        if mode not in (None, "default"):
            raise SettingError(f"backend passkit: mode {mode!r} is unknown; leave it out")
        own = dict(options or {})
        check_names(own)
        fallback = own.pop("fallback", "extern")
        if fallback not in FALLBACKS:
            raise SettingError(
                f"backend passkit: fallback must be one of {', '.join(map(repr, FALLBACKS))}, got "
                f"{fallback!r}; {nearest(str(fallback), FALLBACKS)}"
            )

        check_names(own)
        keyed = dict(own)
        freezing = own.pop("freezing", False)
        if not isinstance(freezing, bool):
            raise SettingError(f"backend passkit: freezing must be True or False, got {freezing!r}")

        def compile_graph(module: GraphModule, example_inputs: Sequence[Any]) -> OutputCode:
            return compile_functional(module, fallback, own)

        def compile_inference(module: GraphModule, example_inputs: Sequence[Any]) -> OutputCode:
            return compile_functional(module, fallback, own, fixed_arguments() if freezing else ())

        if any("conv" in str(node.target) for node in module.graph.nodes):
            # While PyTorch traces. What other units are needed is known when shapes are.
            convolution_unit.prefetch([ConvolutionUnit.LIBRARIES])
        # The gradients are compiled with the graph, so that both are stored together.
        with (
            functorch_config.patch(
                bundled_autograd_cache=True, force_non_lazy_backward_lowering=True
            ),
            torch.compiler.config.patch(cache_key_tag=cache_tag(fallback, keyed)),
            keys_without_inductor(),
        ):
            compiler = aot_autograd(
                fw_compiler=SerializableAOTDispatchCompiler(OutputCode, compile_graph),
                bw_compiler=SerializableAOTDispatchCompiler(OutputCode, compile_graph),
                inference_compiler=SerializableAOTDispatchCompiler(OutputCode, compile_inference),
                decompositions=_Decompositions(),
                partition_fn=min_cut_rematerialization_partition,
            )
            return compiler(module, example_inputs)  # type: ignore[no-any-return]


def check_names(options: Mapping[str, Any]) -> None:
    """Check the names of options of `passkit.compile`, and of the backend's own.

    Raises: SettingError for an unknown name.
    """
    if not options:
        return
    from passkit.passes.options import OPTIONS  # a warm start has no options, and plans nothing

    names = ("fallback", "freezing", *OPTIONS)
    for name in options:
        if name not in names:
            raise SettingError(
                f"backend passkit: there is no option {name!r}; {nearest(name, names)}"
            )


passkit_backend = PasskitBackend()
"""The backend that the entry point names."""


def compile_functional(
    module: GraphModule, fallback: str, options: Mapping[str, Any], fixed: Sequence[int] = ()
) -> OutputCode:
    """Compile a graph of functional operators; return a function of a list of arguments.

    Args:
        module: the graph, with fake tensors as metadata.
        fallback: one of `FALLBACKS`.
        options: options of `passkit.compile`.
        fixed: the positions of arguments that are constants, where tensors are on the CPU.

    Raises: SettingError for operators that passkit does not have, with the fallback "error", and
    for another target than that of the tensors; what `passkit.compile` raises.
    """
    with unset_fake_temporarily():
        return _compiled(module, fallback, options, fixed)


def _compiled(
    module: GraphModule, fallback: str, options: Mapping[str, Any], fixed: Sequence[int]
) -> OutputCode:
    """Compile a graph outside of PyTorch's modes, in which real tensors are errors.

    Raises: SettingError for operators that passkit does not have, with the fallback "error", and
    for another target than that of the tensors; what `passkit.compile` raises.
    """
    try:
        on_cuda = is_on_cuda(module)
        imported = import_graph(module)
        if on_cuda:
            check_on_cuda(imported)
    except (UnsupportedNodeError, DTypeError) as error:
        if fallback == "error":
            text = f"backend passkit: PyTorch would run a whole graph: {error}"
            raise SettingError(text) from None
        return GraphOfPyTorch(module, str(error))
    if fallback == "error" and imported.externs:
        first = imported.externs[0]
        raise SettingError(
            f"backend passkit: PyTorch would run {len(imported.externs)} of {imported.node_count} "
            f"operators, first {first.function} ({first.reason}); leave out fallback='error'"
        )
    if on_cuda:
        options = cuda_options(options)
    fixed = () if on_cuda else fixed
    return CompiledGraph(imported, options, on_cuda, float_guard(module), fixed)
