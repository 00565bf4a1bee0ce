"""Whether a program's first three steps are those of its reference: an independent NumPy rebuild.

Of that a file keeps, for each program at its own and at its small sizes: the three losses, and of
every first gradient and of every variable after the third step some elements (the largest gradients
and others at random), of the gradients also the root mean square, the sum, and the sum of
magnitudes, all in float64.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import passkit as pk
from training import Drawn, Program
from training.steps import Step, training_step

REFERENCE = Path(__file__).resolve().parents[2] / "tests/benchmarks/fixtures/training.npz"
STEPS = 3


def errors(program: Program, small: bool = False, **options: Any) -> dict[str, float]:
    """By name the relative error of each loss, gradient and variable: 0 where all is equal.

    ``options`` are those of `pk.compile`.
    """
    drawn = program.drawn(small)
    step = training_step(program, drawn)
    exe = pk.compile(step.with_gradients(), **options)
    return errors_of(program, drawn, step, exe, small)


def beside_numpy(program: Program) -> dict[str, float]:
    """`errors` beside NumPy, operator by operator, at small sizes: for programs of no reference.

    Gradients are compared by the largest element, updates by their norm: Adam makes whole steps of
    elements that are next to nothing. An update counts where its gradient is more than rounding,
    which that of biases that softmax takes away is not.
    """
    drawn = program.drawn(True)
    step = training_step(program, drawn)
    exes = [pk.compile(step.with_gradients(), target=t) for t in ("cpu", "interpret")]
    runs = [[exe(dict(drawn.feeds)) for exe in exes] for _ in range(STEPS)]
    first = runs[0][0][0]
    found = {f"loss {k + 1}": abs(float(a[0] - b[0]) / first) for k, (a, b) in enumerate(runs)}
    top = max(float(np.abs(g).max()) for g in runs[0][1][1:])
    for name, a, b in zip(step.gradients, runs[0][0][1:], runs[0][1][1:], strict=False):
        large = float(np.abs(b).max()) > 1e-6 * top
        found[f"gradient {name}"] = float(np.abs(a - b).max() / (np.abs(b).max() if large else top))
        if large:
            now, wanted = (exe.state[name] for exe in exes)
            moved = np.linalg.norm(wanted - drawn.variables[name])
            found[f"update {name}"] = float(np.linalg.norm(now - wanted) / moved)
    return found


def errors_of(
    program: Program, drawn: Drawn, step: Step, exe: pk.Executable, small: bool
) -> dict[str, float]:
    """As `errors`, of what was compiled of ``step.with_gradients()`` and did not run yet."""
    losses, first = [], {}
    for _ in range(STEPS):
        outs = exe(dict(drawn.feeds))
        losses.append(float(outs[0]))
        first = first or dict(_gradients(step, outs[1:], exe))
    wanted = reference_losses(program, small)
    found = {f"loss {k + 1}": abs(losses[k] / wanted[k] - 1) for k in range(STEPS)}
    with np.load(REFERENCE) as reference:
        for name, start in drawn.variables.items():
            key = f"{_key(program, small)}/{name}"
            at, value = reference[f"{key}/at"], reference[f"{key}/value"]
            gradient = [reference[f"{key}/gradient{end}"] for end in ("", "_norm")]
            found[f"gradient {name}"] = _error(first[name], at, *gradient)
            now = exe.state[name].ravel()[at]
            found[f"update {name}"] = _update_error(now, value, start.ravel()[at])
    return found


def reference_losses(program: Program, small: bool = False) -> Any:
    """The losses of the reference's steps."""
    with np.load(REFERENCE) as reference:
        return reference[f"{_key(program, small)}/losses"]


def _key(program: Program, small: bool) -> str:
    return f"{program.name}/{'small' if small else 'full'}"


def _gradients(step: Step, outs: list[Any], exe: pk.Executable) -> Iterator[tuple[str, Any]]:
    """Every gradient as large as its variable."""
    numbers = dict(zip(step.rows, outs[len(step.gradients) :], strict=True))
    for name, array in zip(step.gradients, outs, strict=False):
        if name in numbers:
            whole = np.zeros(exe.state.arrays[name].shape)
            np.add.at(whole, numbers[name], array.astype(np.float64))
            yield name, whole
        else:
            yield name, array


def _error(array: Any, at: Any, elements: Any, totals: Any) -> float:
    """The largest of the errors of elements and totals, relative to the root mean square."""
    wide = array.astype(np.float64)
    rms, total, magnitudes = totals
    least = max(rms, 1e-30)
    elementwise = np.abs(wide.ravel()[at] - elements) / (np.abs(elements) + least)
    means = (np.sqrt(np.mean(wide**2)) / least - 1, (wide.sum() - total) / max(magnitudes, least),
             np.abs(wide).sum() / max(magnitudes, least) - 1)
    return float(max(elementwise.max(), *map(abs, means)))


def _update_error(value: Any, wanted: Any, start: Any) -> float:
    """The largest error relative to what three steps change, without what they must round."""
    change = np.abs(wanted - start.astype(np.float64))
    wrong = np.abs(value - wanted) - STEPS * np.spacing(np.abs(value)).astype(np.float64) / 2
    return float(np.max(wrong.clip(0) / (change + np.sqrt(np.mean(change**2)) + 1e-30)))
