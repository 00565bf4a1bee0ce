"""Training programs in passkit, PyTorch and JAX, each written as its users write one.

Variables stay in memory of the library, and change there. Every library is imported where it is
used: it may be missing in the Python that runs this, such as that of TensorFlow's process.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
from attrs import frozen
from peers import jax_device

from training import ProgramInputs, TrainingProgram
from training.micro import lstm
from training.optimizers import OPTIMIZERS

SETTINGS = {
    "passkit": "pk.compile(graph), target cpu, fusion stitch, numerics strict",
    "unfused": "passkit with fusion none",
    "eager": "autograd and torch.optim: SGD and Adam with fused=True, RMSprop with foreach=True, "
    "sparse rows by index_add_; recurrent networks by nn.LSTM, ragged ones packed",
    "compile": "torch.compile(fullgraph=True, dynamic=False) of the loss, and of optimizer.step; "
    "recurrent networks written out",
    "jax": "jax.jit of jax.value_and_grad and the optimizer, variables donated; recurrent networks "
    "written out",
    "scan": "as jax, recurrent networks by lax.scan",
}


OWN = ("passkit", "unfused")
"""Implementations that are not competitors."""


@frozen
class StepImplementation:
    """A training step in one library.

    Attributes:
        step: takes feeds from ``prepare`` and returns the loss as the library's scalar.
        prepare: converts NumPy feeds.
        value: converts the loss to a float.
    """

    step: Callable[[Any], Any]
    prepare: Callable[[Mapping[str, np.ndarray]], Any]
    value: Callable[[Any], float] = float


def passkit(
    program: TrainingProgram, drawn: ProgramInputs, on: str = "cpu", fusion: str = "stitch"
) -> StepImplementation:
    """Compile the step as one graph, for a target."""
    import passkit as pk
    from training.passkit_steps import training_step  # imports passkit

    exe = pk.compile(training_step(program, drawn).graph, target=on, fusion=fusion)
    return StepImplementation(lambda feeds: exe(feeds)[0], dict)


# PyTorch.


def torch_functions() -> Any:
    """Return torch under the names that the losses use."""
    import torch

    # torch.compile ignores the default device for tensors created from nothing.
    default_device = {"device": torch.get_default_device()}

    class Functions:
        """Functions of the micro-benchmarks."""

        matmul, exp, log, tanh = torch.matmul, torch.exp, torch.log, torch.tanh
        sigmoid, square, sqrt, rsqrt = torch.sigmoid, torch.square, torch.sqrt, torch.rsqrt
        where, stack, mean, sum = torch.where, torch.stack, torch.mean, torch.sum
        concat, reshape, transpose = torch.cat, torch.reshape, torch.permute
        zeros, ones = partial(torch.zeros, **default_device), partial(torch.ones, **default_device)
        arange = partial(torch.arange, **default_device)
        softmax = staticmethod(partial(torch.softmax, dim=-1))
        take = staticmethod(lambda x, i: x[i])

        @staticmethod
        def split(x: Any, count: int, axis: int) -> Any:
            return torch.chunk(x, count, axis)

        @staticmethod
        def cross_entropy(labels: Any, x: Any) -> Any:
            return torch.nn.functional.cross_entropy(x, labels, reduction="none")

        @staticmethod
        def sigmoid_cross_entropy(labels: Any, x: Any) -> Any:
            f = torch.nn.functional.binary_cross_entropy_with_logits
            return f(x, labels, reduction="none")

    class Networks(Functions):
        """Functions of networks, too."""

        relu, pow, sparse_cross_entropy = torch.relu, torch.pow, Functions.cross_entropy

        @staticmethod
        def mean_over(x: Any, axes: Any) -> Any:
            return torch.mean(x, axes, keepdim=True)

        @staticmethod
        def conv(x: Any, w: Any, padding: str) -> Any:
            y = torch.conv2d(x.permute(0, 3, 1, 2), w.permute(3, 2, 0, 1), padding=padding.lower())
            return y.permute(0, 2, 3, 1)

        @staticmethod
        def max_pool(x: Any, window: int, stride: int) -> Any:
            pool = torch.nn.functional.max_pool2d
            return pool(x.permute(0, 3, 1, 2), window, stride).permute(0, 2, 3, 1)

        @staticmethod
        def avg_pool(x: Any, window: int, stride: int) -> Any:
            pool, padding = torch.nn.functional.avg_pool2d, (window - stride) // 2
            y = pool(x.permute(0, 3, 1, 2), window, stride, padding, count_include_pad=False)
            return y.permute(0, 2, 3, 1)

    return Networks


def _lstm(variables: Mapping[str, Any], direction: str, inputs: int) -> Any:
    """Return an nn.LSTM with a cell's first values; its gates have the order i, f, j, o."""
    import torch

    kernel, bias = variables[f"K{direction}"].detach(), variables[f"b{direction}"].detach()
    units = bias.shape[0] // 4
    order = torch.cat([torch.arange(k * units, (k + 1) * units) for k in (0, 2, 1, 3)])
    module = torch.nn.LSTM(inputs, units, batch_first=True).to(kernel.device)
    with torch.no_grad():
        module.weight_ih_l0.copy_(kernel[:inputs, order].T)
        module.weight_hh_l0.copy_(kernel[inputs:, order].T)
        module.bias_ih_l0.copy_(bias[order])
        module.bias_hh_l0.zero_()[units : 2 * units] = 1.0
    module.bias_hh_l0.requires_grad_(False)
    return module


def _eager_loss(
    program: TrainingProgram, variables: dict[str, Any], drawn: ProgramInputs
) -> Callable[..., Any]:
    """Return the loss as written for PyTorch; cells' variables become those of modules."""
    import torch

    functional = torch.nn.functional
    if program.name not in ("bi-rnn", "dyn-rnn"):
        return partial(program.loss, torch_functions())
    inputs = drawn.feeds["x"].shape[-1]
    cells = {
        direction: _lstm(variables, direction, inputs)
        for direction in "fb"
        if f"K{direction}" in variables
    }
    for direction, cell in cells.items():
        del variables[f"K{direction}"], variables[f"b{direction}"]
        variables.update(
            (f"{direction}/{n}", v) for n, v in cell.named_parameters() if v.requires_grad
        )

    def bi_rnn(p: Any, x: Any) -> Any:
        h, _ = cells["f"](x["x"])
        last, _ = cells["b"](x["x"][:, -1:])
        joined = torch.cat([h[:, -1], last[:, 0]], 1)
        return functional.cross_entropy(torch.addmm(p["b"], joined, p["W"]), x["y"])

    def dyn_rnn(p: Any, x: Any) -> Any:
        packed = torch.nn.utils.rnn.pack_padded_sequence(
            x["x"], x["lengths"].cpu(), batch_first=True, enforce_sorted=False
        )
        _, (h, _) = cells["f"](packed)
        return functional.cross_entropy(torch.addmm(p["b"], h[0], p["W"]), x["y"])

    return bi_rnn if program.name == "bi-rnn" else dyn_rnn


def torch(
    program: TrainingProgram, drawn: ProgramInputs, compiled: bool = False, on: str = "cpu"
) -> StepImplementation:
    """Build the step in PyTorch, eager or compiled.

    Raises:
        ImportError: torch is not installed, or finds no CUDA device.
    """
    import torch

    if on == "cuda" and not torch.cuda.is_available():
        raise ImportError("PyTorch finds no CUDA device")
    torch.set_default_device(on)  # for tensors that the loss creates
    tensors = partial(_tensors, on=on)
    variables = tensors({n: np.array(a) for n, a in drawn.variables.items()})
    functions = torch_functions()
    if compiled:
        torch.compiler.reset()
        eager_loss = partial(program.loss, functions)
        loss = torch.compile(lambda p, x: eager_loss(p, x), fullgraph=True, dynamic=False)
    else:
        loss = _eager_loss(program, variables, drawn)
    dense = [v.requires_grad_() for n, v in variables.items() if n not in program.rows]
    if program.rows:
        assert not dense
        return StepImplementation(_sparse(program, variables, loss, functions), tensors, _item)
    optimizer = {
        "sgd": partial(torch.optim.SGD, fused=True),
        "adam": partial(torch.optim.Adam, fused=True),
        "tinyflow_adam": partial(torch.optim.Adam, eps=1e-4, fused=True),
        "rmsprop": partial(torch.optim.RMSprop, alpha=0.9, eps=1e-10, foreach=True),
    }[program.optimizer](dense, lr=program.rate)
    update = torch.compile(optimizer.step, fullgraph=False) if compiled else optimizer.step

    def step(feeds: Any) -> Any:
        optimizer.zero_grad(set_to_none=True)
        value = loss(variables, feeds)
        value.backward()
        update()
        return value

    return StepImplementation(step, tensors, _item)


def _sparse(
    program: TrainingProgram, tables: Any, loss: Any, functions: Any
) -> Callable[[Any], Any]:
    """Return a step that reads and changes only some rows of each table."""
    import torch

    def step(feeds: Any) -> Any:
        with torch.no_grad():
            row_numbers = {n: rows(functions, feeds) for n, rows in program.rows.items()}
        values = {f"{n}_rows": tables[n][row_numbers[n]].requires_grad_() for n in tables}
        value = loss(values, feeds)
        value.backward()
        with torch.no_grad():
            for name, table in tables.items():
                table.index_add_(
                    0, row_numbers[name], values[f"{name}_rows"].grad, alpha=-program.rate
                )
        return value

    return step


def _tensors(feeds: Mapping[str, np.ndarray], on: str) -> dict[str, Any]:
    """Convert NumPy arrays to tensors on a device."""
    import torch

    return {n: torch.from_numpy(a).to(on) for n, a in feeds.items()}


def _item(loss: Any) -> float:
    """Convert a loss to a float."""
    return float(loss.detach())


# JAX.


def jax_functions() -> Any:
    """Return jax.numpy under the names that the losses use."""
    import jax
    import jax.numpy as jnp

    class Functions:
        """Functions of the micro-benchmarks."""

        matmul, exp, log, tanh, sigmoid = jnp.matmul, jnp.exp, jnp.log, jnp.tanh, jax.nn.sigmoid
        square, sqrt, rsqrt = jnp.square, jnp.sqrt, jax.lax.rsqrt
        where, stack, mean, sum = jnp.where, jnp.stack, jnp.mean, jnp.sum
        concat, reshape, transpose = jnp.concatenate, jnp.reshape, jnp.transpose
        zeros, ones, arange, split = jnp.zeros, jnp.ones, jnp.arange, jnp.split
        softmax = staticmethod(jax.nn.softmax)
        take = staticmethod(lambda x, i: x[i])

        @staticmethod
        def cross_entropy(labels: Any, x: Any) -> Any:
            return -jnp.sum(labels * jax.nn.log_softmax(x), -1)

        @staticmethod
        def sigmoid_cross_entropy(labels: Any, x: Any) -> Any:
            return jnp.maximum(x, 0) - x * labels + jnp.log1p(jnp.exp(-jnp.abs(x)))

    class Networks(Functions):
        """Functions of networks, too."""

        relu, pow = jax.nn.relu, jnp.power

        @staticmethod
        def sparse_cross_entropy(labels: Any, x: Any) -> Any:
            return -jnp.take_along_axis(jax.nn.log_softmax(x), labels[:, None], 1)[:, 0]

        @staticmethod
        def mean_over(x: Any, axes: Any) -> Any:
            return jnp.mean(x, axes, keepdims=True)

        @staticmethod
        def conv(x: Any, w: Any, padding: str) -> Any:
            return jax.lax.conv_general_dilated(
                x, w, (1, 1), padding, dimension_numbers=("NHWC", "HWIO", "NHWC")
            )

        @staticmethod
        def max_pool(x: Any, window: int, stride: int) -> Any:
            size, step = (1, window, window, 1), (1, stride, stride, 1)
            return jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, size, step, "VALID")

        @staticmethod
        def avg_pool(x: Any, window: int, stride: int) -> Any:
            size, step = (1, window, window, 1), (1, stride, stride, 1)

            def total(x: Any) -> Any:
                return jax.lax.reduce_window(x, 0.0, jax.lax.add, size, step, "SAME")

            return total(x) / total(jnp.ones_like(x))

    return Networks


def _scanned(program: TrainingProgram) -> Callable[..., Any] | None:
    """Return the loss of a recurrent network as a loop; None for other programs."""
    import jax
    import jax.numpy as jnp

    f = jax_functions()

    def bi_rnn(p: Any, x: Any) -> Any:
        xs = jnp.swapaxes(x["x"], 0, 1)
        zero = jnp.zeros((xs.shape[1], p["bf"].shape[0] // 4))
        (h, _), _ = jax.lax.scan(
            lambda hc, xt: (lstm(f, xt, *hc, p["Kf"], p["bf"]), None), (zero, zero), xs
        )
        last, _ = lstm(f, xs[-1], zero, zero, p["Kb"], p["bb"])
        logits = jnp.concatenate([h, last], 1) @ p["W"] + p["b"]
        return jnp.mean(f.cross_entropy(x["y"], logits))

    def dyn_rnn(p: Any, x: Any) -> Any:
        xs = jnp.swapaxes(x["x"], 0, 1)
        zero = jnp.zeros((xs.shape[1], p["bf"].shape[0] // 4))

        def advance(hc: Any, x_and_t: Any) -> Any:
            xt, t = x_and_t
            new = lstm(f, xt, *hc, p["Kf"], p["bf"])
            done = (x["lengths"] <= t)[:, None]
            return tuple(jnp.where(done, a, b) for a, b in zip(hc, new, strict=True)), None

        (h, _), _ = jax.lax.scan(advance, (zero, zero), (xs, jnp.arange(len(xs))))
        return jnp.mean(f.cross_entropy(x["y"], h @ p["W"] + p["b"]))

    return {"bi-rnn": bi_rnn, "dyn-rnn": dyn_rnn}.get(program.name)


def jax(
    program: TrainingProgram, drawn: ProgramInputs, scan: bool = False, on: str = "cpu"
) -> StepImplementation | None:
    """Compile the entire step with `jax.jit`; None for ``scan`` of a program without a loop."""
    import jax

    jax_target = jax_device(on)

    f, optimizer = jax_functions(), OPTIMIZERS[program.optimizer]
    loss = _scanned(program) if scan else partial(program.loss, f)
    if loss is None:
        return None
    variables = dict(drawn.variables)
    slots = {
        n: {s: np.full_like(a, v) for s, v in optimizer.slots.items()} for n, a in variables.items()
    }

    def advanced(state: Any, feeds: Any) -> Any:
        variables, slots, shared = state
        if program.rows:
            row_numbers = {n: rows(f, feeds) for n, rows in program.rows.items()}
            values = {f"{n}_rows": variables[n][row_numbers[n]] for n in variables}
            value, gradients = jax.value_and_grad(loss)(values, feeds)
            new = {
                n: v.at[row_numbers[n]].add(-program.rate * gradients[f"{n}_rows"])
                for n, v in variables.items()
            }
            return value, (new, slots, shared)
        value, gradients = jax.value_and_grad(loss)(variables, feeds)
        new_slots = {
            n: optimizer.rule(f, program.rate, v, gradients[n], slots[n], shared)
            for n, v in variables.items()
        }
        new = {n: m.pop("") for n, m in new_slots.items()}
        return value, (new, new_slots, optimizer.advance(shared))

    function = jax.jit(advanced, donate_argnums=0)
    shared = {n: np.float32(v) for n, v in optimizer.shared.items()}
    state = jax.device_put((variables, slots, shared), jax_target)

    def step(feeds: Any) -> Any:
        nonlocal state
        value, state = function(state, feeds)
        jax.block_until_ready((value, state))
        return value

    return StepImplementation(step, lambda feeds: jax.device_put(dict(feeds), jax_target))


RIVALS: dict[str, Callable[..., StepImplementation | None]] = {
    "passkit": passkit,
    "unfused": partial(passkit, fusion="none"),
    "eager": torch,
    "compile": partial(torch, compiled=True),
    "jax": jax,
    "scan": partial(jax, scan=True),
}
