"""The competitors: how each is set up, compiled and called, with all their settings.

Every competitor gets its own native arrays, prepared before the clock starts: PyTorch tensors, JAX
arrays on the CPU device, NumPy arrays for passkit and the hand-written kernels. A call is the
public call; it ends when the result can be read, and leaves it in memory of its own.

Every library is imported where it is used: it may be missing in the Python that runs this.
"""

import importlib.metadata
import os
from collections.abc import Callable, Iterable
from functools import cache
from typing import Any

import hand
import layers
import numpy as np
from attrs import frozen
from workloads import Workload, joined

SETTINGS = {
    "passkit": "pk.compile(graph), target cpu, fusion stitch, numerics strict; exe(x=...)[0]; set "
    "stitched with keep_together of all operators; "
    "PASSKIT_THREADS = threads",
    "unfused": "passkit with fusion none, on rows of one stitched kernel",
    "eager": "torch.set_num_threads(threads), inference_mode, operators one by one",
    "compile": "torch.compile(fullgraph=True, dynamic=False), default mode (Inductor C++), "
    "inference_mode, torch.set_num_threads(threads)",
    "jax": "jax.jit, CPU device, float32, the call followed by block_until_ready(); the process "
    "may use `threads` CPUs, from which XLA sizes its pool",
    "onnx": "ONNX Runtime: the operator that a row is, CPU provider, intra_op threads = threads",
    "hand": "g++ " + " ".join(hand.FLAGS) + "; OpenMP static, workers pinned, pooled results",
}
NAMES = tuple(SETTINGS)
PEERS = ("eager", "compile", "jax", "onnx")


@frozen
class Competitor:
    """One implementation of a workload.

    Attributes:
        function: the callable to time.
        call: source of the call, on the function ``f`` and the inputs' names.
        prepare: converts a NumPy array to the native input.
        numpy: converts a result to a NumPy array.
    """

    function: Callable[..., Any]
    call: str
    prepare: Callable[[np.ndarray], Any]
    numpy: Callable[[Any], np.ndarray]


def confine(threads: int) -> int:
    """Restrict this process, and the thread pools of all libraries, to ``threads`` CPUs.

    Call it before a competitor is loaded. An environment that restricts OpenBLAS, which only
    passkit uses here, to another CPU's kernels is cleared of that: with Haswell's on a CPU with
    AVX-512 its products take twice as long.

    Returns:
        The number of CPUs, which is less on a smaller machine.
    """
    cpus = sorted(os.sched_getaffinity(0))[:threads]
    os.sched_setaffinity(0, cpus)
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "PASSKIT_THREADS"):
        os.environ[name] = str(len(cpus))
    os.environ["JAX_PLATFORMS"] = "cpu"
    for name in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE"):
        os.environ.pop(name, None)
    return len(cpus)


def versions(names: Iterable[str]) -> dict[str, str]:
    """Return the versions of those packages that are installed."""
    installed = {}
    for name in names:
        try:
            installed[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return installed


def passkit(work: Workload, threads: int) -> Competitor:
    """Compile the workload in passkit, from primitives."""
    return _passkit(work, together=work.together)


def unfused(work: Workload, threads: int) -> Competitor | None:
    """Compile the workload in passkit without fusion; None unless the row is about one kernel."""
    return _passkit(work, fusion="none") if work.together else None


def _passkit(work: Workload, together: bool = False, **options: Any) -> Competitor:
    """Compile the workload in passkit; ``together`` requests one kernel of all operators."""
    import passkit as pk

    graph, own = passkit_graph(work, together)
    executable = pk.compile(graph, **options, **own)
    arguments = ", ".join(f"{name}={name}" for name in work.names)
    numpy = joined if work.results > 1 else lambda r: r[0]
    return Competitor(executable, f"f({arguments})", lambda a: a, numpy)


def passkit_graph(work: Workload, together: bool = False) -> tuple[Any, dict[str, Any]]:
    """Return the workload as a graph of passkit, and the options of its compilation."""
    import passkit as pk

    ops = pk.ops

    class Functions(layers.passkit_layers()):  # type: ignore[misc]
        """pk.ops under the names of `workloads`."""

        abs, exp, tanh, erf, where = ops.abs, ops.exp, ops.tanh, ops.erf, ops.where
        matmul, rsqrt, log = ops.matmul, ops.rsqrt, ops.log
        maximum, minimum = ops.maximum, ops.minimum
        transpose, concat, take = ops.transpose, ops.concat, ops.gather

        @staticmethod
        def max(x: Any, axis: int) -> Any:
            return ops.reduce_max(x, axis=axis, keepdims=True)

        @staticmethod
        def sum(x: Any, axis: int) -> Any:
            return ops.reduce_sum(x, axis=axis, keepdims=True)

        @staticmethod
        def mean(x: Any, axis: int) -> Any:
            return ops.reduce_mean(x, axis=axis, keepdims=True)

        @staticmethod
        def total(x: Any, axis: int | None) -> Any:
            return ops.reduce_sum(x, axis=axis, keepdims=False)

        @staticmethod
        def cumsum(x: Any, axis: int) -> Any:
            return ops.cumsum(x, axis=axis)

    names = [pk.var(name, shape, work.dtype(name)) for name, shape in work.inputs]
    result = work.formula(Functions, *names)
    graph = pk.Graph(list(result) if work.results > 1 else [result])
    nodes = [n for n in graph.nodes if n.op is not None and n.op.name != "constant"]
    return graph, {"keep_together": [[graph.names[n] for n in nodes]]} if together else {}


@cache
def _torch(threads: int) -> Any:
    """Return the module torch, prepared for inference, and its namespace for `workloads`."""
    import torch

    torch.set_num_threads(threads)
    torch.inference_mode().__enter__()  # for the whole process: a wrapper would cost each call

    class Functions(layers.torch_layers()):  # type: ignore[misc]
        """torch under the names of `workloads`."""

        abs, exp, tanh, erf, where = torch.abs, torch.exp, torch.tanh, torch.erf, torch.where
        matmul, rsqrt = torch.matmul, torch.rsqrt
        transpose, concat, log = torch.permute, torch.cat, torch.log
        take = staticmethod(lambda x, i: x[i])

        @staticmethod
        def maximum(x: Any, y: Any) -> Any:
            return torch.clamp_min(x, y) if isinstance(y, float) else torch.maximum(x, y)

        @staticmethod
        def minimum(x: Any, y: Any) -> Any:
            return torch.clamp_max(x, y) if isinstance(y, float) else torch.minimum(x, y)

        @staticmethod
        def max(x: Any, axis: int) -> Any:
            return torch.amax(x, axis, keepdim=True)

        @staticmethod
        def sum(x: Any, axis: int) -> Any:
            return torch.sum(x, axis, keepdim=True)

        @staticmethod
        def mean(x: Any, axis: int) -> Any:
            return torch.mean(x, axis, keepdim=True)

        @staticmethod
        def total(x: Any, axis: int | None) -> Any:
            return torch.sum(x) if axis is None else torch.sum(x, axis)

        @staticmethod
        def cumsum(x: Any, axis: int) -> Any:
            return torch.cumsum(x, axis)

    return torch, Functions


def _torch_competitor(
    torch: Any, function: Callable[..., Any], names: tuple[str, ...]
) -> Competitor:
    return Competitor(function, f"f({', '.join(names)})", torch.from_numpy, joined)


def eager(work: Workload, threads: int) -> Competitor:
    """Run the workload in PyTorch, operator by operator."""
    torch, functions = _torch(threads)
    return _torch_competitor(torch, lambda *xs: work.formula(functions, *xs), work.names)


def compiled(work: Workload, threads: int) -> Competitor:
    """Compile the workload with `torch.compile`."""
    torch, functions = _torch(threads)
    torch.compiler.reset()
    function = torch.compile(
        lambda *xs: work.formula(functions, *xs), fullgraph=True, dynamic=False
    )
    return _torch_competitor(torch, function, work.names)


def jax_device(on: str) -> Any:
    """Return JAX's first device of a kind, "cpu" or "cuda".

    Raises:
        ImportError: JAX is missing or finds no such device.
    """
    import jax

    try:
        return jax.devices("gpu" if on == "cuda" else on)[0]
    except RuntimeError as error:
        raise ImportError(f"JAX finds no {on} device: {error}") from None


def jax(work: Workload, threads: int) -> Competitor:
    """Compile the workload with `jax.jit`."""
    import jax
    import jax.numpy as jnp

    class Functions:
        """jax under the names of `workloads`."""

        abs, exp, tanh, where, matmul = jnp.abs, jnp.exp, jnp.tanh, jnp.where, jnp.matmul
        maximum, minimum = jnp.maximum, jnp.minimum
        transpose, concat, log = jnp.transpose, jnp.concatenate, jnp.log
        take = staticmethod(lambda x, i: x[i])
        erf, rsqrt = staticmethod(jax.lax.erf), staticmethod(jax.lax.rsqrt)

        @staticmethod
        def max(x: Any, axis: int) -> Any:
            return jnp.max(x, axis, keepdims=True)

        @staticmethod
        def sum(x: Any, axis: int) -> Any:
            return jnp.sum(x, axis, keepdims=True)

        @staticmethod
        def mean(x: Any, axis: int) -> Any:
            return jnp.mean(x, axis, keepdims=True)

        @staticmethod
        def total(x: Any, axis: int | None) -> Any:
            return jnp.sum(x, axis)

        @staticmethod
        def cumsum(x: Any, axis: int) -> Any:
            return jnp.cumsum(x, axis)

    function = jax.jit(lambda *xs: work.formula(Functions, *xs))
    call = f"f({', '.join(work.names)})"
    if work.results == 1:
        blocking_function, call = function, f"{call}.block_until_ready()"
    else:

        def blocking_function(*xs: Any) -> Any:
            return jax.block_until_ready(function(*xs))

    return Competitor(
        blocking_function, call, lambda a: jax.device_put(a, jax.devices("cpu")[0]), joined
    )


def onnx_session(model: bytes, threads: int) -> Any:
    """Load a model in ONNX Runtime, on ``threads`` threads."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def onnx(work: Workload, threads: int) -> Competitor | None:
    """Run the workload in ONNX Runtime; None unless it is one of its operators."""
    if work.onnx is None:
        return None
    from onnx import TensorProto, helper

    inputs = [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in work.inputs]
    result = helper.make_tensor_value_info("result", TensorProto.FLOAT, None)
    nodes = [helper.make_node(work.onnx, list(work.names), ["result"])]
    graph = helper.make_graph(nodes, work.name, inputs, [result])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=10)
    session = onnx_session(model.SerializeToString(), threads)
    pairs = ", ".join(f"{name!r}: {name}" for name in work.names)
    return Competitor(session.run, f"f(None, {{{pairs}}})", lambda a: a, lambda r: r[0])


def by_hand(work: Workload, threads: int) -> Competitor | None:
    """Return the hand-written kernel; None if the workload has none."""
    if work.hand is None:
        return None
    hand.set_threads(threads)
    return Competitor(
        hand.kernel(work.hand), f"f({', '.join(work.names)})", lambda a: a, lambda r: r
    )


BUILDERS: dict[str, Callable[[Workload, int], Competitor | None]] = {
    "passkit": passkit,
    "unfused": unfused,
    "eager": eager,
    "compile": compiled,
    "jax": jax,
    "onnx": onnx,
    "hand": by_hand,
}
