"""Activation functions of neural networks, gated linear units among them.

At a kink, the derivative is that of one side: of relu, relu6, elu, selu, celu, leaky_relu and prelu
at 0 that of x < 0, of hard_* and *_shrink at their ends that of the flat side. Sources:
TensorFlow's nn and PyTorch's nn.functional, each by its defining formula.
"""

from __future__ import annotations

from typing import Any

from passkit import ast
from passkit.ast import Expr
from passkit.errors import ShapeError
from passkit.graph.infer import show_shape
from passkit.graph.node import Entry, Node, known_shape
from passkit.ops.composites import composite
from passkit.ops.elementwise_definition import elementwise
from passkit.ops.helpers import make, normalize_axis
from passkit.values.dtype import float32
from passkit.values.size import divide_exactly

SELU_SCALE = 1.0507009873554804934193349852946
SELU_ALPHA = 1.6732632423543772848170429916717
"""Source: Klambauer et al., Self-Normalizing Neural Networks, 2017."""

TANH_SHRINK_SERIES = (
    1 / 3,
    -2 / 15,
    17 / 315,
    -62 / 2835,
    1382 / 155925,
    -21844 / 6081075,
    929569 / 638512875,
    -6404582 / 10854718875,
    443861162 / 1856156927625,
)
"""Taylor coefficients of x - tanh(x), of x^3, x^5 and so on."""


def _positive_or(x: Expr, otherwise: Expr | float) -> Expr:
    """Return x where it is positive, else ``otherwise``, which must be NaN where x is NaN."""
    return ast.where(x > 0, x, otherwise)


def _clamp(x: Expr, low: float, high: float) -> Expr:
    """Return x limited to low and high; NaN stays."""
    return ast.where(x <= low, low, ast.where(x >= high, high, x))


def _elu(x: Expr, *, alpha: float) -> Expr:
    """Return x where it is positive, else alpha (exp(x) - 1)."""
    return _positive_or(x, ast.expm1(x) * alpha)


def _selu(x: Expr) -> Expr:
    """Return SELU: x, or alpha (exp(x) - 1) where x is not positive, scaled by a constant."""
    return _positive_or(x, ast.expm1(x) * SELU_ALPHA) * SELU_SCALE


def _celu(x: Expr, *, alpha: float) -> Expr:
    """Return x where it is positive, else alpha (exp(x / alpha) - 1)."""
    return _positive_or(x, ast.expm1(x / alpha) * alpha)


def _hard_sigmoid(x: Expr) -> Expr:
    """Return x / 6 + 1/2, limited to 0 and 1."""
    return _clamp(x + 3.0, 0.0, 6.0) / 6.0


def _mish(x: Expr) -> Expr:
    """Return x tanh(log(1 + exp(x))) as x n / (n + 2): n = e (e + 2), e = exp(min(x, 30))."""
    e = ast.exp(ast.minimum(x, 30))
    n = e * (e + 2.0)
    return x * (n / (n + 2.0))


def _tanh_shrink(x: Expr) -> Expr:
    """Return x - tanh(x); for |x| < 0.2, where that cancels, by its Taylor series."""
    z = x * x
    series: Any = 0.0
    for coefficient in TANH_SHRINK_SERIES[::-1]:
        series = series * z + coefficient
    return ast.where(z < 0.04, x * z * series, x - ast.tanh(x))


elementwise(
    name="relu6",
    kinds="f",
    code=lambda x: _clamp(x, 0, 6),
    compute_dtype=float32,
    zero_preserving=True,
    doc="x limited to the range from 0 to 6",
)
elementwise(
    name="leaky_relu",
    kinds="f",
    params={"alpha": 0.2},
    code=lambda x, *, alpha: _positive_or(x, x * alpha),
    compute_dtype=float32,
    zero_preserving=True,
    doc="x where it is positive, else alpha * x",
)
elementwise(
    name="elu",
    kinds="f",
    params={"alpha": 1.0},
    code=_elu,
    compute_dtype=float32,
    zero_preserving=True,
    doc="x where it is positive, else alpha * (exp(x) - 1)",
)
elementwise(
    name="selu",
    kinds="f",
    code=_selu,
    compute_dtype=float32,
    cost="expensive",
    zero_preserving=True,
    doc="elu with a scale and an alpha that keep mean 0 and variance 1 from layer to layer",
)
elementwise(
    name="celu",
    kinds="f",
    params={"alpha": 1.0},
    code=_celu,
    compute_dtype=float32,
    zero_preserving=True,
    doc="x where it is positive, else alpha * (exp(x / alpha) - 1)",
)
elementwise(
    name="softsign",
    kinds="f",
    code=lambda x: x / (abs(x) + 1.0),
    compute_dtype=float32,
    cost="expensive",
    zero_preserving=True,
    doc="x / (1 + |x|)",
)
elementwise(
    name="hard_sigmoid",
    kinds="f",
    code=_hard_sigmoid,
    compute_dtype=float32,
    cost="expensive",
    doc="relu6(x + 3) / 6",
)
elementwise(
    name="hard_swish",
    aliases="hard_silu",
    kinds="f",
    code=lambda x: x * _hard_sigmoid(x),
    compute_dtype=float32,
    cost="expensive",
    zero_preserving=True,
    doc="x * relu6(x + 3) / 6",
)
elementwise(
    name="hard_tanh",
    kinds="f",
    params={"low": -1.0, "high": 1.0},
    code=lambda x, *, low, high: _clamp(x, low, high),
    compute_dtype=float32,
    doc="x limited to the range from low to high",
)
elementwise(
    name="hard_shrink",
    kinds="f",
    params={"threshold": 0.5},
    code=lambda x, *, threshold: ast.where(abs(x) <= threshold, 0, x),
    compute_dtype=float32,
    doc="x where its magnitude exceeds threshold, else 0",
)
elementwise(
    name="soft_shrink",
    kinds="f",
    params={"threshold": 0.5},
    code=lambda x, *, threshold: x - _clamp(x, -threshold, threshold),
    compute_dtype=float32,
    zero_preserving=True,
    doc="x moved towards 0 by threshold; 0 where its magnitude is smaller",
)
elementwise(
    name="threshold",
    kinds="f",
    params={"threshold": 0.0, "value": 0.0},
    code=lambda x, *, threshold, value: ast.where(x <= threshold, value, x),
    compute_dtype=float32,
    doc="x where it exceeds threshold, else value",
)
elementwise(
    name="mish",
    kinds="f",
    code=_mish,
    compute_dtype=float32,
    cost="expensive",
    zero_preserving=True,
    doc="x * tanh(log(1 + exp(x)))",
)
elementwise(
    name="quick_gelu",
    kinds="f",
    code=lambda x: x * ast.sigmoid(x * 1.702),
    compute_dtype=float32,
    cost="expensive",
    zero_preserving=True,
    doc="x * sigmoid(1.702 * x), an approximation of gelu",
)
elementwise(
    name="tanh_shrink",
    kinds="f",
    code=_tanh_shrink,
    compute_dtype=float32,
    cost="expensive",
    zero_preserving=True,
    doc="x - tanh(x), accurate near 0",
)

elementwise(
    name="prelu",
    kinds="f",
    code=lambda x, alpha: _positive_or(x, x * alpha),
    compute_dtype=float32,
    doc="x where it is positive, else alpha * x; alpha is an input that broadcasts",
)


# Gated linear units.


def gated_linear_unit(*, name: str, activation: str, activated_half: str, doc: str) -> None:
    """Register a gated linear unit: the product of the halves a and b of x, one of them activated.

    Source: Dauphin et al., Language Modeling with Gated Convolutional Networks; the variants are
    those of Shazeer, GLU Variants Improve Transformer.

    Args:
        name: Name of the operator.
        activation: The operator that is applied to one half.
        activated_half: Which half: "a", the first along the axis; anything else is "b", the second.
        doc: What the output is, for help and reference pages.

    Raises:
        RegistryError: If an operator of that name has other numbers of inputs or outputs, or an
            attribute of it was set elsewhere.
        ArgumentError: If ``name`` is no identifier.
    """

    def expand(node: Node, x: Entry) -> Entry:
        """Expand to slices, an activation and a product of the halves of ``x`` along ``axis``.

        ``node`` has the parameter ``axis``, one int.

        Raises: ShapeError for a length that is odd or a symbol not known to be even, an axis that
        is out of range or no int, or an unknown rank.
        """
        shape = known_shape(x)
        axis = normalize_axis(node, len(shape), node.params["axis"])
        half = divide_exactly(shape[axis], 2)
        if half is None:
            raise ShapeError(
                f"{node.where} needs an even length at axis {axis}, got {show_shape(shape)}"
            )
        size = (*shape[:axis], half, *shape[axis + 1 :])
        origin = [0] * len(shape)
        middle = [*origin[:axis], half, *origin[axis + 1 :]]
        a = make("slice", x, begin=origin, size=size)
        b = make("slice", x, begin=middle, size=size)
        return make(activation, a) * b if activated_half == "a" else a * make(activation, b)

    composite(
        name=name,
        inputs=1,
        expand=expand,
        params={"axis": -1},
        doc=doc,
    )


gated_linear_unit(
    name="glu",
    activation="sigmoid",
    activated_half="b",
    doc="a * sigmoid(b) for the halves a and b of x along axis, whose length is halved",
)
gated_linear_unit(
    name="reglu",
    activation="relu",
    activated_half="a",
    doc="relu(a) * b for the halves a and b of x along axis, whose length is halved",
)
gated_linear_unit(
    name="geglu",
    activation="gelu",
    activated_half="a",
    doc="gelu(a) * b for the halves a and b of x along axis, whose length is halved",
)
gated_linear_unit(
    name="swiglu",
    activation="silu",
    activated_half="a",
    doc="silu(a) * b for the halves a and b of x along axis, whose length is halved",
)
