"""Errors of a program's first three steps against a reference: an independent NumPy program.

The reference file holds, for each program at its full and at its small sizes: the three losses, and
some elements of every first gradient and of every variable after the third step (the largest
gradients and others at random). Of gradients it also holds the root mean square, the sum, and the
sum of magnitudes. All are float64.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import passkit as pk
from training import ProgramInputs, TrainingProgram
from training.passkit_steps import TrainingStep, training_step

REFERENCE = Path(__file__).resolve().parents[2] / "tests/benchmarks/fixtures/training.npz"
STEPS = 3


def errors(program: TrainingProgram, small: bool = False, **options: Any) -> dict[str, float]:
    """Compute the relative errors of losses, gradients and variables, by name.

    Args:
        program: the program.
        small: use its small sizes.
        options: those of `pk.compile`.
    """
    drawn = program.drawn(small)
    step = training_step(program, drawn)
    exe = pk.compile(step.with_gradients(), **options)
    return errors_of(program, drawn, step, exe, small)


def beside_numpy(program: TrainingProgram) -> dict[str, float]:
    """Compute `errors` against NumPy, operator by operator, for programs without a reference.

    Gradients are compared by the largest element, updates by their norm: Adam makes full steps for
    elements that are almost 0. An update counts if its gradient exceeds rounding, unlike that of
    biases that softmax cancels.
    """
    drawn = program.drawn(True)
    step = training_step(program, drawn)
    exes = [pk.compile(step.with_gradients(), target=t) for t in ("cpu", "interpret")]
    runs = [[exe(dict(drawn.feeds)) for exe in exes] for _ in range(STEPS)]
    first_loss = runs[0][0][0]
    errors_by_name = {
        f"loss {k + 1}": abs(float(a[0] - b[0]) / first_loss) for k, (a, b) in enumerate(runs)
    }
    largest = max(float(np.abs(g).max()) for g in runs[0][1][1:])
    for name, a, b in zip(step.gradients, runs[0][0][1:], runs[0][1][1:], strict=False):
        is_large = float(np.abs(b).max()) > 1e-6 * largest
        errors_by_name[f"gradient {name}"] = float(
            np.abs(a - b).max() / (np.abs(b).max() if is_large else largest)
        )
        if is_large:
            actual, expected = (exe.state[name] for exe in exes)
            moved = np.linalg.norm(expected - drawn.variables[name])
            errors_by_name[f"update {name}"] = float(np.linalg.norm(actual - expected) / moved)
    return errors_by_name


def errors_of(
    program: TrainingProgram,
    drawn: ProgramInputs,
    step: TrainingStep,
    exe: pk.Executable,
    small: bool,
) -> dict[str, float]:
    """Compute `errors` of an executable of ``step.with_gradients()`` that has not run yet."""
    losses, first = [], {}
    for _ in range(STEPS):
        outs = exe(dict(drawn.feeds))
        losses.append(float(outs[0]))
        first = first or dict(_gradients(step, outs[1:], exe))
    expected = reference_losses(program, small)
    errors_by_name = {f"loss {k + 1}": abs(losses[k] / expected[k] - 1) for k in range(STEPS)}
    with np.load(REFERENCE) as reference:
        for name, start in drawn.variables.items():
            key = f"{_key(program, small)}/{name}"
            positions, values = reference[f"{key}/at"], reference[f"{key}/value"]
            gradient = [reference[f"{key}/gradient{end}"] for end in ("", "_norm")]
            errors_by_name[f"gradient {name}"] = _error(first[name], positions, *gradient)
            actual = exe.state[name].ravel()[positions]
            errors_by_name[f"update {name}"] = _update_error(
                actual, values, start.ravel()[positions]
            )
    return errors_by_name


def reference_losses(program: TrainingProgram, small: bool = False) -> Any:
    """Return the losses of the reference's three steps."""
    with np.load(REFERENCE) as reference:
        return reference[f"{_key(program, small)}/losses"]


def _key(program: TrainingProgram, small: bool) -> str:
    """Return the prefix of a program's arrays in the reference file."""
    return f"{program.name}/{'small' if small else 'full'}"


def _gradients(
    step: TrainingStep, outs: list[Any], exe: pk.Executable
) -> Iterator[tuple[str, Any]]:
    """Yield every gradient by name, in the shape of its variable."""
    row_numbers = dict(zip(step.rows, outs[len(step.gradients) :], strict=True))
    for name, array in zip(step.gradients, outs, strict=False):
        if name in row_numbers:
            dense = np.zeros(exe.state.arrays[name].shape)
            np.add.at(dense, row_numbers[name], array.astype(np.float64))
            yield name, dense
        else:
            yield name, array


def _error(array: Any, positions: Any, elements: Any, totals: Any) -> float:
    """Return the largest error of elements and totals, relative to the root mean square."""
    gradient = array.astype(np.float64)
    rms, total, magnitudes = totals
    least = max(rms, 1e-30)
    elementwise = np.abs(gradient.ravel()[positions] - elements) / (np.abs(elements) + least)
    means = (
        np.sqrt(np.mean(gradient**2)) / least - 1,
        (gradient.sum() - total) / max(magnitudes, least),
        np.abs(gradient).sum() / max(magnitudes, least) - 1,
    )
    return float(max(elementwise.max(), *map(abs, means)))


def _update_error(value: Any, expected: Any, start: Any) -> float:
    """Return the largest error relative to the change of three steps, without their rounding."""
    change = np.abs(expected - start.astype(np.float64))
    difference = np.abs(value - expected) - STEPS * np.spacing(np.abs(value)).astype(np.float64) / 2
    return float(np.max(difference.clip(0) / (change + np.sqrt(np.mean(change**2)) + 1e-30)))
