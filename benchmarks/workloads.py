"""The programs that the benchmarks measure, each written once for all competitors.

A formula takes a namespace ``f`` of functions (``f.exp``, ``f.sum(x, axis)`` …) and the inputs, so
the same text traces in passkit, PyTorch, JAX and NumPy; NumPy's float64 result is the reference.
`peers` supplies the competitors' namespaces.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from attrs import frozen
from layers import ReferenceLayers

try:
    from scipy import special
except ImportError:
    special = None

WorkloadShape = tuple[int, ...]
Formula = Callable[..., Any]
SQRT2 = math.sqrt(2.0)


def gelu(x: Any, erf: Callable[[Any], Any]) -> Any:
    """Return GELU by the error function ``erf``."""
    return x * (erf(x / SQRT2) + 1.0) / 2.0


def gelu_erf(f: Any, x: Any) -> Any:
    """Return GELU by the built-in error function."""
    return x * (f.erf(x / SQRT2) + 1.0) / 2.0


def gelu_custom_ref(f: Any, x: Any) -> Any:
    """Return GELU by a function that takes the error function as an argument."""
    return gelu(x, f.erf)


def gelu_custom_erf(f: Any, x: Any) -> Any:
    """Return GELU by the user's own error function.

    Source: Abramowitz and Stegun, 7.1.26.
    """
    p, (a1, a2, a3, a4, a5) = (
        0.3275911,
        (0.254829592, -0.284496736, 1.421413741, -1.453152027, 1.061405429),
    )

    def positive(z: Any) -> Any:
        t = 1.0 / (1.0 + p * f.abs(z))
        return 1.0 - ((((a5 * t + a4) * t + a3) * t + a2) * t + a1) * t * f.exp(-z * z)

    return gelu(x, lambda z: f.where(z > 0.0, positive(z), -positive(-z)))


def chain(f: Any, a: Any, b: Any, c: Any) -> Any:
    """Return three tanh with broadcasts between them."""
    x = a * b + c
    for _ in range(3):
        x = f.tanh(x * 0.5 + b) * a - f.abs(c) * 0.1
    return x


def small20(f: Any, x: Any, y: Any) -> Any:
    """Return twenty elementwise operations, one exponential and one division among them."""
    s, d = x + y, x - y
    q = s * d * 0.5
    r = q + x
    u = f.exp(-f.abs(r)) + 1.0
    k = r / u * y - s
    m = f.maximum(k, d) * 0.25
    o = f.minimum(m + u, 2.0)
    return (o * o - q) * 0.125 + x


def softmax(axis: int) -> Formula:
    """Return the formula of a softmax over one axis, by primitives."""

    def formula(f: Any, x: Any) -> Any:
        e = f.exp(x - f.max(x, axis))
        return e / f.sum(e, axis)

    return formula


def layer_norm(f: Any, x: Any, g: Any, b: Any) -> Any:
    """Return a layer norm over the last axis, by primitives."""
    d = x - f.mean(x, -1)
    return d * f.rsqrt(f.mean(d * d, -1) + 1e-5) * g + b


def rms_norm(f: Any, x: Any, g: Any) -> Any:
    """Return a norm by the root of the mean square over the last axis, by primitives."""
    return x * f.rsqrt(f.mean(x * x, -1) + 1e-5) * g


def bias_gelu(f: Any, x: Any, b: Any) -> Any:
    """Return the GELU of a sum."""
    return gelu(x + b, f.erf)


def dense(f: Any, x: Any, w: Any, b: Any) -> Any:
    """Return a dense layer with relu."""
    return f.maximum(f.matmul(x, w) + b, 0.0)


def colsum(f: Any, x: Any, y: Any) -> Any:
    """Return the sum of products over the rows."""
    return f.total(x * y, 0)


def fullsum(f: Any, x: Any, y: Any) -> Any:
    """Return the sum of squared differences over everything."""
    d = x - y
    return f.total(d * d, None)


def transpose_add(f: Any, x: Any, y: Any) -> Any:
    """Return the sum of a transposed and a plain matrix."""
    return f.transpose(x, (1, 0)) + y


@frozen
class Workload:
    """One row of the comparison.

    Attributes:
        name: its name.
        formula: (namespace, inputs) -> result.
        inputs: names and shapes.
        core: whether the row counts in the promised geometric means.
        quick: whether `--quick` includes the row.
        hand: name of the hand-written kernel, if there is one.
        tolerance: largest allowed |error| / (|reference| + rms).
        scale: deviation of the inputs.
        indices: an input of integers, and their exclusive upper bound.
        together: whether passkit has to build one kernel of all operators.
        results: number of results; several are a tuple.
        onnx: the operator of ONNX that equals the formula, if there is one.
    """

    name: str
    formula: Formula
    inputs: tuple[tuple[str, WorkloadShape], ...]
    core: bool = False
    quick: bool = False
    hand: str | None = None
    tolerance: float = 5e-6
    scale: float = 1.0
    indices: tuple[str, int] = ("", 0)
    together: bool = False
    results: int = 1
    onnx: str | None = None

    @property
    def label(self) -> str:
        """Name and the first input's shape."""
        return f"{self.name} {'x'.join(map(str, self.inputs[0][1]))}"

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the inputs."""
        return tuple(name for name, _ in self.inputs)

    @property
    def nbytes(self) -> int:
        """Bytes of the first input, by which rows count as large."""
        return 4 * math.prod(self.inputs[0][1])

    def arrays(self, seed: int) -> tuple[np.ndarray, ...]:
        """Draw inputs, normally distributed, by a seed."""
        stream = np.random.default_rng([seed, *self.name.encode()])
        return tuple(
            stream.integers(0, self.indices[1], shape)
            if name == self.indices[0]
            else stream.standard_normal(shape, dtype=np.float32) * np.float32(self.scale)
            for name, shape in self.inputs
        )

    def dtype(self, name: str) -> str:
        """Return the dtype of an input."""
        return "int64" if name == self.indices[0] else "float32"

    def reference(self, arrays: tuple[np.ndarray, ...]) -> np.ndarray:
        """Compute the result in float64 by NumPy; several results are `joined`."""
        wide = (a if a.dtype.kind == "i" else a.astype(np.float64) for a in arrays)
        return joined(self.formula(NumpyFunctions, *wide))

    def error(self, result: np.ndarray, reference: np.ndarray) -> float:
        """Return the largest |result - reference| / (|reference| + rms).

        It is inf for a wrong shape or a NaN.
        """
        if result.shape != reference.shape:
            return math.inf
        rms = math.sqrt(float(np.mean(np.square(reference))))
        worst = float(np.max(np.abs(result - reference) / (np.abs(reference) + rms)))
        return math.inf if math.isnan(worst) else worst


def joined(result: Any) -> np.ndarray:
    """Return a result as an array; several results are flattened and concatenated."""
    if isinstance(result, tuple | list):
        return np.concatenate([np.ravel(x) for x in result])
    return np.asarray(result)


def _erf(x: np.ndarray) -> np.ndarray:
    """Compute the error function in float64, by SciPy if it is installed (JAX brings it)."""
    if special is None:
        return np.vectorize(math.erf, otypes=[np.float64])(x)
    return np.asarray(special.erf(x))


class NumpyFunctions(ReferenceLayers):
    """NumPy under the names of the formulas."""

    abs, exp, log, tanh, where, matmul = np.abs, np.exp, np.log, np.tanh, np.where, np.matmul
    maximum, minimum, erf = np.maximum, np.minimum, staticmethod(_erf)
    transpose, concat = np.transpose, np.concatenate
    take = staticmethod(lambda x, i: x[i])

    @staticmethod
    def rsqrt(x: Any) -> Any:
        """Return 1 / sqrt(x)."""
        return 1.0 / np.sqrt(x)

    @staticmethod
    def max(x: Any, axis: int) -> Any:
        """Return the maximum over an axis, which stays."""
        return np.max(x, axis, keepdims=True)

    @staticmethod
    def sum(x: Any, axis: int) -> Any:
        """Sum over an axis, which stays."""
        return np.sum(x, axis, keepdims=True)

    @staticmethod
    def mean(x: Any, axis: int) -> Any:
        """Average over an axis, which stays."""
        return np.mean(x, axis, keepdims=True)

    @staticmethod
    def total(x: Any, axis: int | None) -> Any:
        """Sum over an axis, which is dropped."""
        return np.sum(x, axis)

    @staticmethod
    def cumsum(x: Any, axis: int) -> Any:
        """Return the running sum."""
        return np.cumsum(x, axis)


def _one(shape: WorkloadShape) -> tuple[tuple[str, WorkloadShape], ...]:
    return (("x", shape),)


def _norm(rows: int, columns: int) -> tuple[tuple[str, WorkloadShape], ...]:
    return (("x", (rows, columns)), ("g", (columns,)), ("b", (columns,)))


def _dense(rows: int, k: int, columns: int) -> tuple[tuple[str, WorkloadShape], ...]:
    return (("x", (rows, k)), ("w", (k, columns)), ("b", (columns,)))


BIG, THOUSAND = (4, 512, 2048), (1000,)
PAIR = (("x", THOUSAND), ("y", THOUSAND))
CHAIN = (("a", (2048, 1024)), ("b", (1024,)), ("c", (2048, 1)))
BIAS = (("x", (2048, 3072)), ("b", (3072,)))
COLUMNS = (("x", (4096, 1024)), ("y", (4096, 1024)))

WORKLOADS = (
    Workload("gelu_erf", gelu_erf, _one(BIG), core=True, quick=True, hand="gelu_erf"),
    Workload("gelu_custom_ref", gelu_custom_ref, _one(BIG), core=True, hand="gelu_erf"),
    Workload(
        "gelu_custom_erf", gelu_custom_erf, _one(BIG), core=True, quick=True, hand="gelu_custom_erf"
    ),
    Workload("chain", chain, CHAIN, core=True, quick=True, hand="chain", tolerance=1e-5),
    Workload(
        "softmax",
        softmax(-1),
        _one((4096, 1024)),
        core=True,
        quick=True,
        hand="softmax",
        onnx="Softmax",
    ),
    Workload("softmax", softmax(-1), _one((65536, 40)), core=True, quick=True, hand="softmax"),
    Workload("softmax", softmax(-1), _one((32, 100)), core=True, quick=True, hand="softmax"),
    Workload("layer_norm", layer_norm, _norm(4096, 768), core=True, quick=True, hand="layer_norm"),
    Workload("bias_gelu", bias_gelu, BIAS, core=True, quick=True, hand="bias_gelu"),
    Workload("small20", small20, PAIR, quick=True, hand="small20"),
    Workload("gelu_erf", gelu_erf, _one(THOUSAND), hand="gelu_erf"),
    Workload("gelu_custom_erf", gelu_custom_erf, _one(THOUSAND), hand="gelu_custom_erf"),
    Workload("gelu_erf", gelu_erf, _one((32, 512, 2048)), hand="gelu_erf"),
    Workload("softmax", softmax(-1), _one((128, 50000)), hand="softmax"),
    Workload("softmax_first", softmax(0), _one((4096, 1024))),
    Workload("softmax_middle", softmax(1), _one((64, 1024, 64))),
    Workload("layer_norm", layer_norm, _norm(64, 1024), hand="layer_norm"),
    Workload("layer_norm", layer_norm, _norm(65536, 64), hand="layer_norm"),
    Workload("dense", dense, _dense(128, 784, 512), tolerance=1e-5),
    Workload("dense", dense, _dense(4096, 768, 3072), tolerance=1e-5),
    Workload("colsum", colsum, COLUMNS, hand="column_sum", tolerance=2e-5),
    Workload(
        "fullsum", fullsum, (("x", (1 << 22,)), ("y", (1 << 22,))), hand="full_sum", tolerance=2e-5
    ),
)
