"""Cases: uses of TensorFlow operators, stored with TensorFlow's results."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from io import BytesIO
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
from attrs import field, frozen

Array = np.ndarray[Any, Any]

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures"
NETWORKS = FIXTURES / "networks"

TOLERANCE = {"float16": 2e-3, "bfloat16": 2e-2, "float32": 1e-5, "float64": 1e-10}
TOLERANCE |= {"complex64": 1e-5, "complex128": 1e-10}
"""Largest error, as a part of the largest value; integers and booleans are exact."""


@frozen(eq=False)
class Case:
    """A TensorFlow function of its inputs, before tracing."""

    op: str
    """The TensorFlow operator that it shows."""
    variant: str
    """Its attributes, as the page shows them: ``axis=1 exclusive``."""
    function: Callable[..., Any]
    """Takes one tensor for each input; returns a tensor or several."""
    inputs: Mapping[str, Array]
    free: bool = True
    """Whether the first dimension of every input is unknown in the model."""
    free_size: bool = False
    """Whether all dimensions but the last are."""
    jit: bool = False
    """Whether XLA tells the results, for what TensorFlow's own kernels lack on a CPU."""

    @property
    def dtype(self) -> str:
        """Dtype of the first input."""
        return next(iter(self.inputs.values())).dtype.name

    @property
    def name(self) -> str:
        """Unique name of the case."""
        return " ".join(filter(None, (self.op, self.variant, self.dtype)))


@frozen(eq=False)
class Stored:
    """A stored case: a model, its inputs, and TensorFlow's results by name."""

    name: str
    model: bytes = field(repr=False)
    inputs: Mapping[str, Array] = field(repr=False)
    outputs: Mapping[str, Array] = field(repr=False)

    @property
    def parts(self) -> tuple[str, str, str]:
        """Operator, variant and dtype."""
        op, *variant, dtype = self.name.split(" ")
        return op, " ".join(variant), dtype


def save(path: Path, cases: Iterable[Stored]) -> None:
    """Store cases in one file; equal cases give equal bytes.

    A JSON index gives the offsets in one array of bytes, which compresses well, since models and
    inputs are similar.
    """
    index: list[dict[str, Any]] = []
    models, arrays = bytearray(), bytearray()
    for case in cases:
        entry: dict[str, Any] = {"name": case.name, "model": len(case.model)}
        models += case.model
        for kind, values in (("in", case.inputs), ("out", case.outputs)):
            entry[kind] = {}
            for name, value in values.items():
                array = np.asarray(value)
                entry[kind][name] = [array.dtype.name, *array.shape]
                arrays += array.tobytes()
        index.append(entry)
    parts = {"index": json.dumps(index).encode(), "models": bytes(models), "arrays": bytes(arrays)}
    kept: Any = {k: np.frombuffer(v, np.uint8) for k, v in parts.items()}
    np.savez_compressed(path, allow_pickle=False, **kept)


def stored(path: Path) -> list[Stored]:
    """Return the cases in a file."""
    with np.load(path, allow_pickle=False) as archive:
        index = json.loads(archive["index"].tobytes())
        models, arrays = (BytesIO(archive[k].tobytes()) for k in ("models", "arrays"))
    results = []
    for entry in index:
        values = {
            kind: {name: _array(arrays, dtype, shape) for name, (dtype, *shape) in listed.items()}
            for kind, listed in ((kind, entry[kind]) for kind in ("in", "out"))
        }
        model = models.read(entry["model"])
        results.append(Stored(entry["name"], model, values["in"], values["out"]))
    return results


def _array(arrays: BytesIO, name: str, shape: list[int]) -> Array:
    """Return the next array of a file."""
    dtype = np.dtype(ml_dtypes.bfloat16 if name == "bfloat16" else name)
    data = arrays.read(dtype.itemsize * int(np.prod(shape)))
    return np.frombuffer(data, dtype).reshape(shape).copy()


def difference(got: Array, want: Array) -> float:
    """Return the largest error relative to the tolerance; at most 1 counts as equal.

    Raises:
        AssertionError: If dtype or shape differ.
    """
    assert got.dtype == want.dtype, f"{got.dtype} for {want.dtype}"
    assert got.shape == want.shape, f"{got.shape} for {want.shape}"
    tolerance = TOLERANCE.get(want.dtype.name)
    if tolerance is None:
        return 0.0 if np.array_equal(got, want) else np.inf
    wide = np.complex128 if want.dtype.kind == "c" else np.float64
    ours, theirs = got.astype(wide), want.astype(wide)
    finite = np.isfinite(theirs)
    if not np.array_equal(ours[~finite], theirs[~finite], equal_nan=True):
        return np.inf
    if not finite.any():
        return 0.0
    if not np.isfinite(ours[finite]).all():
        return np.inf
    scale = np.abs(theirs[finite]).max() or 1.0
    return float(np.abs(ours[finite] - theirs[finite]).max() / scale / tolerance)
