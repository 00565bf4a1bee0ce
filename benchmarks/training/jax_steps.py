"""Training steps in JAX by `jax.jit`, with recurrent networks unrolled or by `lax.scan`."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from peers import jax_device

from training import ProgramInputs, TrainingProgram
from training.entrants import StepImplementation
from training.micro import lstm
from training.optimizers import OPTIMIZERS


def jax_functions() -> Any:
    """Return jax.numpy under the names that the losses use."""

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


def jax_step(
    program: TrainingProgram, drawn: ProgramInputs, scan: bool = False, on: str = "cpu"
) -> StepImplementation | None:
    """Compile the entire step with `jax.jit`.

    Args:
        program: the program.
        drawn: its inputs and first values.
        scan: use `lax.scan` for recurrent networks.
        on: "cpu" or "cuda".

    Returns:
        The step; None for ``scan`` of a program without a loop.

    Raises:
        ImportError: JAX finds no such device.
    """
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
