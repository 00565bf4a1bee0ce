"""Training steps in PyTorch, eager or by `torch.compile`, as its users write them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
import torch

from training import ProgramInputs, TrainingProgram
from training.entrants import StepImplementation


def torch_functions() -> Any:
    """Return torch under the names that the losses use."""
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


def torch_step(
    program: TrainingProgram, drawn: ProgramInputs, compiled: bool = False, on: str = "cpu"
) -> StepImplementation:
    """Build the step in PyTorch, eager or compiled.

    Args:
        program: the program.
        drawn: its inputs and first values.
        compiled: use `torch.compile`.
        on: "cpu" or "cuda".

    Raises:
        ImportError: PyTorch finds no CUDA device.
    """
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
    return {n: torch.from_numpy(a).to(on) for n, a in feeds.items()}


def _item(loss: Any) -> float:
    """Convert a loss to a float."""
    return float(loss.detach())
