"""Workloads by kind of operator: sets for ``compare.py --set NAME``. A set is one entry of `SETS`.

Formulas are written as in `workloads`: once, over a namespace of functions that `peers` supplies.
"""

from typing import Any

from workloads import Formula, Workload, colsum, fullsum, softmax


def scale(f: Any, x: Any) -> Any:
    """What reads and writes every element once: the bandwidth that others are measured against."""
    return x * 2.0


def total(axis: Any) -> Formula:
    """The plain sum over axes."""
    return lambda f, x: f.total(x, axis)


def statistics(axes: tuple[int, ...]) -> Formula:
    """Mean and variance over ``axes``, both of which the result needs."""

    def formula(f: Any, x: Any) -> Any:
        mean = f.mean(x, axes)
        d = x - mean
        return mean + f.mean(d * d, axes)

    return formula


def running(axis: int) -> Formula:
    """The running sum along an axis."""
    return lambda f, x: f.cumsum(x, axis)


def largest(axis: int | None) -> Formula:
    """The greatest element along an axis."""
    return lambda f, x: f.max(x, axis)


def _row(name: str, formula: Formula, *shapes: tuple[int, ...], **rest: Any) -> Workload:
    names = "xyz"[: len(shapes)]
    return Workload(name, formula, tuple(zip(names, shapes, strict=True)), **rest)


LOOSE: dict[str, Any] = {"tolerance": 3e-5}

SETS: dict[str, tuple[Workload, ...]] = {
    "reductions": (
        _row("scale", scale, (1 << 24,)),
        _row("fullsum", total(None), (1 << 12,), **LOOSE),
        _row("fullsum", total(None), (1 << 18,), **LOOSE),
        _row("fullsum", total(None), (1 << 24,), quick=True, tolerance=1e-3),
        _row("fullsum_xy", fullsum, (1 << 22,), (1 << 22,), **LOOSE),
        _row("colsum_xy", colsum, (4096, 1024), (4096, 1024), quick=True, **LOOSE),
        _row("colsum", total(0), (4096, 1024), **LOOSE),
        _row("colsum", total(0), (100000, 32), quick=True, **LOOSE),
        _row("colsum", total(0), (100000, 7), **LOOSE),
        _row("colsum", total(0), (1000, 100), **LOOSE),
        _row("colmax", largest(0), (4096, 1024)),
        _row("rowsum", total(-1), (4096, 1024), **LOOSE),
        _row("rowsum", total(-1), (4, 1 << 20), **LOOSE),
        _row("batch_nhwc", statistics((0, 1, 2)), (32, 28, 28, 64), quick=True, **LOOSE),
        _row("batch_nhwc", statistics((0, 1, 2)), (32, 112, 112, 3), **LOOSE),
        _row("batch_nchw", statistics((0, 2, 3)), (32, 64, 28, 28), quick=True, **LOOSE),
        _row("batch_nchw", statistics((0, 2, 3)), (32, 3, 112, 112), **LOOSE),
        _row("softmax_first", softmax(0), (4096, 1024), quick=True),
        _row("softmax_middle", softmax(1), (64, 1024, 64), quick=True),
        _row("softmax_middle", softmax(1), (256, 40, 196)),
        _row("cumsum", running(-1), (4096, 1024), quick=True, **LOOSE),
        _row("cumsum", running(0), (4096, 1024), quick=True, **LOOSE),
        _row("cumsum", running(-1), (65536, 40), **LOOSE),
        _row("cumsum", running(0), (1 << 22,), tolerance=1e-3),
        _row("cumsum", running(1), (64, 1024, 64), **LOOSE),
    ),
}
