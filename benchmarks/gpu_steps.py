"""Rows of gpu.py with state on the device: Adam, and training steps of the micro-benchmarks.

Each rival takes steps with fresh gradients or feeds, which are on the device; a step counts until
the device is idle. passkit's first step is verified against NumPy in float64: parameters of Adam,
of training the losses, gradients and variables of three steps by the reference that
`training.agreement` keeps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from itertools import cycle
from typing import Any

import adam
import gpu_hand
import numpy as np
from gpu_hand import HandAdam, ToDevice
from training import TrainingProgram, agreement, micro
from training.rivals import RIVALS

from passkit.runtime.cuda.device import CudaDevice

TOLERANCE = {"adam": 2e-5, "training": 1e-4}  # PyTorch's fused Adam is 1e-5 off
MOVED = 7
"""Floats that a step of Adam reads and writes for each parameter: g, p, m, v and p, m, v."""
ADAM_RIVALS = ("passkit", "hand", *(n for n in adam.RIVALS if n != "passkit"))
TRAINED = ("passkit", "eager", "compile", "jax", "scan")

StepCall = Callable[[], Any]
Batch = Callable[[StepCall, CudaDevice], float]


def adam_rows(mib: int) -> dict[str, Sequence[int]]:
    """Return the sizes of parameters of each row: one of some MiB, and the thirty of adam.py."""
    if not mib:
        return {"adam 300": [300], "adam30": [1 + k for k in range(30)]}
    return {f"adam {mib << 18}": [mib << 18], "adam30": adam.ROWS["adam30"]}


def adam_row(
    label: str,
    sizes: Sequence[int],
    own: CudaDevice,
    speed: float,
    batch: Batch,
    to_device: ToDevice,
) -> dict[str, Any]:
    """Measure a row of Adam: each rival's error and seconds of a step, or why there are none.

    Args:
        label: the name of the row.
        sizes: the number of elements of each parameter.
        own: the device.
        speed: the bytes a second of a copy on it.
        batch: returns the seconds of a call, as `gpu.batch` does.
        to_device: copies a NumPy array to the device.
    """
    row: dict[str, Any] = {"row": label}
    drawn = [adam.gradients(sizes, seed) for seed in range(2)]
    expected = adam_expected(sizes)
    for name in ADAM_RIVALS:
        try:
            rival = (
                HandAdam(sizes, own, to_device)
                if name == "hand"
                else adam.RIVALS[name](sizes, 1, "cuda")
            )
        except ImportError as error:
            row[name] = {"missing": str(error).splitlines()[0]}
            continue
        given = [_prepared(rival.prepare(gs), own, to_device) for gs in drawn]
        rival.step(given[0])
        error = adam_error(rival.parameters(), expected)
        if not error <= TOLERANCE["adam"]:
            row[name] = {"wrong": error}
            continue
        row[name] = {
            "error": error,
            "call": batch(partial(_step_with_next, rival.step, cycle(given)), own),
        }
        nbytes = 4 * MOVED * sum(sizes)
        if name == "passkit":
            plain = {f"g{k}": g for k, g in enumerate(drawn[0])}
            row[name] |= device_figures(rival.step, plain, nbytes, speed)
        elif isinstance(rival, HandAdam):
            row[name] |= gpu_hand.device_figures(rival.kernel, given[0], nbytes, speed)
    return row


def adam_expected(sizes: Sequence[int]) -> list[np.ndarray]:
    """Return the parameters after a step, computed in float64."""
    arrays = (*adam.begin(sizes), adam.gradients(sizes, 0))
    wide = [[x.astype(np.float64) for x in xs] for xs in arrays]
    return [adam.updated(*old, np.sqrt)[0] for old in zip(*wide, strict=True)]


def adam_error(cells: Sequence[np.ndarray], expected: Sequence[np.ndarray]) -> float:
    """Return the largest error of parameters after a step, relative to values and their RMS."""
    worst = 0.0
    for one, right in zip(cells, expected, strict=True):
        scale = np.abs(right) + np.sqrt(np.mean(right**2))
        worst = max(worst, float(np.max(np.abs(one - right) / scale)))
    return worst


def device_figures(exe: Any, feeds: Mapping[str, Any], nbytes: int, speed: float) -> dict[str, Any]:
    """Return the device time of an executable's kernels, and the share of a copy's bandwidth.

    ``nbytes`` are the bytes that a call has to move, ``speed`` the bytes a second of a copy.
    """
    profile = exe.profile(dict(feeds), 20, copies=False)
    seconds = sum(r.seconds for r in profile.rows[:-1])
    return {"device": seconds, "kernels": len(exe.kernels), "of copy": nbytes / seconds / speed}


def _step_with_next(step: Callable[[Any], Any], given: Iterator[Any]) -> Any:
    """Run a step with the next feeds."""
    return step(next(given))


def _prepared(given: Any, own: CudaDevice, to_device: ToDevice) -> Any:
    """Return feeds whose NumPy arrays are on the device."""
    if not isinstance(given, dict):
        return given
    return {n: to_device(own, a) if isinstance(a, np.ndarray) else a for n, a in given.items()}


def training_programs(small: bool) -> Iterator[TrainingProgram]:
    """Yield the programs; only the first one where arrays are to be small."""
    yield from micro.PROGRAMS[:1] if small else micro.PROGRAMS


def with_gradients() -> AbstractContextManager[Any]:
    """Re-enable gradients in PyTorch, which other rows disable globally."""
    try:
        import torch
    except ImportError:
        return nullcontext()
    return torch.inference_mode(mode=False)  # type: ignore[no-any-return]


def training_row(
    program: TrainingProgram, small: bool, own: CudaDevice, batch: Batch, to_device: ToDevice
) -> dict[str, Any]:
    """Measure a row: each rival's seconds of a step, and the error of its first loss.

    passkit's error is the largest of its first three steps' losses, gradients and variables.
    """
    row: dict[str, Any] = {"row": program.name}
    drawn = program.drawn(small)
    feeds = [drawn.feeds, program.drawn(small, seed=1).feeds]
    first = float(agreement.reference_losses(program, small)[0])
    for name in TRAINED:
        try:
            rival = RIVALS[name](program, drawn, on="cuda")
        except ImportError as error:
            row[name] = {"missing": str(error).splitlines()[0]}
            continue
        if rival is None:  # a network without a loop
            continue
        given = [_prepared(rival.prepare(one), own, to_device) for one in feeds]
        error = abs(rival.value(rival.step(given[0])) / first - 1)
        if name == "passkit":
            error = max(error, *agreement.errors(program, small, target="cuda").values())
        if not error <= TOLERANCE["training"]:
            row[name] = {"wrong": error}
            continue
        row[name] = {
            "error": error,
            "call": batch(partial(_step_with_next, rival.step, cycle(given)), own),
        }
    return row


def table_row(row: Mapping[str, Any], names: Sequence[str]) -> tuple[str, ...]:
    """Return rivals as multiples of passkit's step, above 1 where passkit is faster."""
    own = row["passkit"]
    cells = [row["row"], f"{own['call'] * 1e6:.1f} us" if "call" in own else "wrong"]
    for name in names:
        rival = row.get(name, {})
        ratio = f"{rival['call'] / own['call']:.2f}" if "call" in rival and "call" in own else "-"
        cells.append("wrong" if "wrong" in rival else ratio)
    return tuple(cells)
