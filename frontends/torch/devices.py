"""Devices of PyTorch's tensors: the target that runs a graph, and tensors on a CUDA device.

passkit's work is in a stream of its own. It waits for PyTorch's current stream, which waits for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import torch
from torch.fx import GraphModule
from torch.utils import _pytree as pytree

from passkit.errors import SettingError
from passkit.frontends.torch.errors import unsupported
from passkit.frontends.torch.importer import ImportedGraph

LEGACY_STREAM = 1
"""The handle of CUDA's default stream in the CUDA array interface, where 0 is ambiguous."""
DEVICE = "device"
"""The value of ``out`` by which results of an executable stay on its device."""


def is_on_cuda(module: GraphModule) -> bool:
    """Return whether the tensors of a graph are on the CUDA device 0, and not on the CPU.

    Raises: UnsupportedNodeError for tensors on other devices, and on several.
    """
    devices = {
        x.device
        for node in module.graph.nodes
        for x in pytree.tree_leaves(node.meta.get("val"))
        if isinstance(x, torch.Tensor)
    }
    if all(x.type == "cpu" for x in devices):
        return False
    if not all(x.type == "cuda" and not x.index for x in devices):
        names = ", ".join(sorted(map(str, devices)))
        unsupported(f"its tensors are on {names}, and passkit needs all on the CPU or on cuda:0")
    return True


def check_on_cuda(imported: ImportedGraph) -> None:
    """Refuse a graph on a CUDA device with operators that PyTorch would run on the host.

    Raises: UnsupportedNodeError for such a graph.
    """
    if imported.externs:
        first = imported.externs[0]
        unsupported(
            f"on CUDA PyTorch runs all of a graph with {first.function}, which passkit does not "
            f"have: {first.reason}"
        )


def cuda_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return options of `passkit.compile` with the target of tensors on a CUDA device.

    Raises: SettingError for another target.
    """
    target = options.get("target", "cuda")
    if str(getattr(target, "name", target)) != "cuda":
        raise SettingError(
            f"backend passkit: tensors are on cuda:0, and target is {target!r}; leave it out"
        )
    return {**options, "target": target}


class TensorInStream(NamedTuple):
    """A contiguous tensor on a CUDA device, and the handle of the stream that it is ready in."""

    tensor: torch.Tensor
    stream: int

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """The tensor by version 3 of Numba's CUDA array interface."""
        return {
            "shape": tuple(self.tensor.shape),
            "typestr": torch.empty(0, dtype=self.tensor.dtype).numpy().dtype.str,
            "strides": None,
            "version": 3,
            "data": (self.tensor.data_ptr(), False),
            "stream": self.stream,
        }


def device_array_of(tensor: torch.Tensor) -> Any:
    """Return a tensor on a CUDA device as an array that executables read where it is.

    The tensor is made contiguous. The array names PyTorch's current stream; one of bfloat16, which
    the CUDA array interface lacks, is exchanged by DLPack.
    """
    tensor = tensor.detach()
    if tensor._is_zerotensor():
        tensor = torch.zeros(tensor.shape, dtype=tensor.dtype, device=tensor.device)
    tensor = tensor.resolve_conj().resolve_neg().contiguous()
    if tensor.dtype is torch.bfloat16:
        return tensor
    return TensorInStream(tensor, current_stream(tensor.device) or LEGACY_STREAM)


def current_stream(device: torch.device) -> int:
    """Return the handle of PyTorch's current stream on a CUDA device; 0 for the default one."""
    return int(torch.cuda.current_stream(device).cuda_stream)


def device_tensor_of(array: Any) -> torch.Tensor:
    """Return an array on a CUDA device as a tensor, for which PyTorch's current stream waits."""
    return torch.from_dlpack(array)
