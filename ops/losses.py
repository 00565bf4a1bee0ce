"""Losses: how far predictions are from labels, in forms that neither overflow nor cancel.

Labels come first, as in TensorFlow. Those with a ``reduction`` fold the elements by 'mean' or
'sum', or keep them for 'none'; cross entropies of logits keep one loss for each example.
"""

from __future__ import annotations

from collections.abc import Callable
from math import log
from typing import TYPE_CHECKING, Any

from passkit import ast
from passkit.errors import DTypeError, GraphError, ShapeError
from passkit.graph.infer import agree, show_shape
from passkit.graph.node import Entry, Node, known_shape
from passkit.graph.op import OpPattern, register_op
from passkit.ops.composites import composite
from passkit.ops.helpers import check_kinds, common_dtype, make, normalize_axis
from passkit.values.dtype import DType
from passkit.values.size import Shape

if TYPE_CHECKING:
    from passkit.ast import Expr
    from passkit.space.reads import Index, Reader

REDUCTIONS = ("mean", "sum", "none")


def reduced(node: Node, loss: Entry) -> Entry:
    """A loss folded as the node's ``reduction`` says."""
    how = node.params["reduction"]
    if how not in REDUCTIONS:
        raise GraphError(f"{node.where} needs 'mean', 'sum' or 'none' as reduction, got {how!r}")
    return loss if how == "none" else make(f"reduce_{how}", loss)


def loss(
    name: str,
    element: Callable[..., Entry],
    doc: str,
    aliases: str = "",
    inputs: tuple[str, str] = ("labels", "predictions"),
    **params: Any,
) -> None:
    """Register an elementwise loss of two inputs, ``element(node, labels, predictions)``."""
    composite(
        name,
        inputs,
        lambda node, labels, x: reduced(node, element(node, labels, x)),
        doc,
        {**params, "reduction": "mean"},
        aliases=aliases,
    )


def _above(node: Node, name: str) -> float:
    """A parameter that must be positive."""
    value = float(node.params[name])
    if not value > 0:
        raise GraphError(f"{node.where} needs {name} above 0, got {value}")
    return value


def _huber(node: Node, labels: Entry, x: Entry) -> Entry:
    """Source: Huber, Robust Estimation of a Location Parameter, equation 6."""
    delta = _above(node, "delta")
    d = x - labels
    near = make("clip", d, -delta, delta)
    return near * (d - near * 0.5)


def _smooth_l1(node: Node, labels: Entry, x: Entry) -> Entry:
    """Huber's loss divided by its width."""
    beta = _above(node, "beta")
    d = x - labels
    near = make("clip", d, -beta, beta)
    return near * (d - near * 0.5) * (1 / beta)


def _log_cosh(node: Node, labels: Entry, x: Entry) -> Entry:
    """log(cosh(d)) = |d| + log(1 + exp(-2|d|)) - log(2), which cannot overflow."""
    d = make("abs", x - labels)
    return d + make("log1p", make("exp", d * -2.0)) - log(2.0)


def _hinge(node: Node, labels: Entry, x: Entry) -> Entry:
    return make("relu", 1.0 - labels * x)


def _squared_hinge(node: Node, labels: Entry, x: Entry) -> Entry:
    return make("square", make("relu", 1.0 - labels * x))


def _binary(node: Node, labels: Entry, p: Entry) -> Entry:
    """Probabilities are kept ``epsilon`` away from 0 and 1."""
    epsilon = float(node.params["epsilon"])
    p = make("clip", p, epsilon, 1 - epsilon)
    return -(labels * make("log", p) + (1.0 - labels) * make("log1p", -p))


def _kl(node: Node, labels: Entry, p: Entry) -> Entry:
    """labels * log(labels / p), where 0 * log(0) is 0."""
    there = labels > 0
    ratio = make("where", there, labels, 1.0) / make("where", there, p, 1.0)
    return make("where", there, labels * make("log", ratio), 0.0)


def _poisson(node: Node, labels: Entry, x: Entry) -> Entry:
    return make("exp", x) - labels * x


loss(
    "mean_squared_error",
    lambda node, labels, x: make("square", x - labels),
    "(predictions - labels)**2",
    "mse_loss",
)
loss(
    "mean_absolute_error",
    lambda node, labels, x: make("abs", x - labels),
    "abs(predictions - labels)",
    "l1_loss absolute_difference",
)
loss("huber_loss", _huber, "d**2 / 2 up to delta, from there a straight line", delta=1.0)
loss("smooth_l1_loss", _smooth_l1, "Huber's loss of delta=beta, divided by beta", beta=1.0)
loss("log_cosh_loss", _log_cosh, "log(cosh(predictions - labels))")
loss("hinge_loss", _hinge, "1 - labels * predictions if positive; labels are -1 and 1")
loss("squared_hinge_loss", _squared_hinge, "the square of the hinge loss")
loss(
    "binary_cross_entropy",
    _binary,
    "-labels * log(p) - (1 - labels) * log(1 - p) of probabilities, kept off 0 and 1 by epsilon",
    epsilon=1e-7,
)
loss("kl_divergence", _kl, "labels * log(labels / predictions), 0 where the label is 0")
loss("poisson_loss", _poisson, "exp(x) - labels * x: of counts, by the logarithm of their rate")


# cross entropies of logits


def _sigmoid_cross_entropy(node: Node, labels: Entry, x: Entry) -> Entry:
    """Source: TensorFlow's max(x, 0) - x * z + log(1 + exp(-abs(x)))."""
    return make("relu", x) - x * labels + make("log1p", make("exp", -make("abs", x)))


def _sigmoid_gradient(node: Node, dy: Entry | None) -> list[Entry | None]:
    """sigmoid(x) - labels for logits, -x for labels."""
    if dy is None:
        return [None, None]
    labels, x = node.inputs
    return [-(dy * x), dy * (make("sigmoid", x) - labels)]


def _equal_shapes(node: Node, labels: Shape, logits: Shape) -> Shape:
    if len(labels) != len(logits):
        raise ShapeError(
            f"{node.where} needs labels and logits of one shape, got {show_shape(labels)} and "
            f"{show_shape(logits)}"
        )
    return tuple(
        agree(node, a, b, f"dimension {k} of labels and logits")
        for k, (a, b) in enumerate(zip(labels, logits, strict=True))
    )


def _example_shape(node: Node, labels: Shape, logits: Shape) -> Shape:
    shape = _equal_shapes(node, labels, logits)
    axis = normalize_axis(node, len(shape), node.params["axis"])
    return shape[:axis] + shape[axis + 1 :]


def _softmax_cross_entropy(node: Node, labels: Entry, x: Entry) -> Entry:
    """Nothing is lost where a label is 0 and its logit -inf."""
    axis = node.params["axis"]
    logp = make("log_softmax", x, axis=axis)
    terms = make("where", make("equal", labels, 0.0), 0.0, labels * logp)
    return -make("reduce_sum", terms, axis=axis)


def _widened(node: Node, x: Entry, dy: Entry) -> Entry:
    """What one loss an example gets, for all its logits."""
    axis = normalize_axis(node, len(known_shape(x)), node.params["axis"])
    return make("expand_dims", dy, axis=axis)


def _softmax_cross_gradient(node: Node, dy: Entry | None) -> list[Entry | None]:
    """softmax(x) * sum(labels) - labels for logits, -log_softmax(x) for labels."""
    if dy is None:
        return [None, None]
    labels, x = node.inputs
    axis = node.params["axis"]
    wide = _widened(node, x, dy)
    total = make("reduce_sum", labels, axis=axis, keepdims=True)
    return [
        -(wide * make("log_softmax", x, axis=axis)),
        wide * (make("softmax", x, axis=axis) * total - labels),
    ]


composite(
    "sigmoid_cross_entropy_with_logits",
    ["labels", "logits"],
    _sigmoid_cross_entropy,
    "the cross entropy of labels and sigmoid(logits), element by element",
    shape=_equal_shapes,
    FGradient=_sigmoid_gradient,
)
composite(
    "softmax_cross_entropy_with_logits",
    ["labels", "logits"],
    _softmax_cross_entropy,
    "the cross entropy of label distributions and softmax(logits) along axis; 0 * -inf is 0",
    {"axis": -1},
    shape=_example_shape,
    FGradient=_softmax_cross_gradient,
)


def _label_shape(node: Node, x: Shape, labels: Shape) -> Shape:
    axis = normalize_axis(node, len(x), node.params["axis"])
    rest = x[:axis] + x[axis + 1 :]
    if len(labels) != len(rest):
        raise ShapeError(
            f"{node.where} needs labels of shape {show_shape(rest)}, got {show_shape(labels)}"
        )
    for k, (a, b) in enumerate(zip(labels, rest, strict=True)):
        agree(node, a, b, f"dimension {k} of labels")
    return x


def _label_type(node: Node, x: DType, labels: DType) -> DType:
    check_kinds(node, "f", x)
    if not labels.is_integer:
        raise DTypeError(f"{node.where} needs integer labels, got {labels}; argmax gives such")
    return x


def _label_element(node: Node, index: Index, x: Reader, labels: Reader) -> Expr:
    """The position along axis is compared with the label: no load at a computed place."""
    axis = normalize_axis(node, len(index), node.params["axis"])
    value = x(*index)
    chosen = ast.cast(labels(*index[:axis], *index[axis + 1 :]), "int64")
    return ast.where(ast.equal(chosen, index[axis]), value, 0.0)


pick_label = register_op(
    "pick_label",
    num_inputs=2,
    params={"axis": -1},
    doc="x where its position along axis is the label, else 0: a label outside picks nothing",
)
pick_label.set_attr("FListInputNames", lambda params: ["x", "labels"])
pick_label.set_attr("FInferShape", _label_shape)
pick_label.set_attr("FInferType", _label_type)
pick_label.set_attr("FElement", _label_element)
pick_label.set_attr("TOpPattern", OpPattern.INJECTIVE)
pick_label.set_attr("TOpCost", "light")
pick_label.set_attr(
    "FGradient",
    lambda node, dy: [
        None if dy is None else make("pick_label", dy, node.inputs[1], **node.params),
        None,
    ],
)


def _sparse_type(node: Node, labels: DType, logits: DType) -> DType:
    return _label_type(node, logits, labels)


def _sparse_shape(node: Node, labels: Shape, x: Shape) -> Shape:
    _label_shape(node, x, labels)
    return labels


def _sparse_cross_entropy(node: Node, labels: Entry, x: Entry) -> Entry:
    axis = node.params["axis"]
    logp = make("log_softmax", x, axis=axis)
    return -make("reduce_sum", make("pick_label", logp, labels, axis=axis), axis=axis)


def _sparse_gradient(node: Node, dy: Entry | None) -> list[Entry | None]:
    """softmax(x), less 1 at the label; nothing where the label is no class."""
    if dy is None:
        return [None, None]
    labels, x = node.inputs
    axis = node.params["axis"]
    p = make("softmax", x, axis=axis)
    hot = make("pick_label", make("ones_like", x), labels, axis=axis)
    known = make("reduce_sum", hot, axis=axis, keepdims=True)
    return [None, _widened(node, x, dy) * (p * known - hot)]


def _nll(node: Node, labels: Entry, logp: Entry) -> Entry:
    axis = node.params["axis"]
    picked = make("pick_label", logp, labels, axis=axis)
    return reduced(node, -make("reduce_sum", picked, axis=axis))


composite(
    "sparse_softmax_cross_entropy_with_logits",
    ["labels", "logits"],
    _sparse_cross_entropy,
    "the cross entropy of whole-number labels and softmax(logits) along axis; 0 for a label that "
    "is no class",
    {"axis": -1},
    shape=_sparse_shape,
    types=_sparse_type,
    FGradient=_sparse_gradient,
)
composite(
    "nll_loss",
    ["labels", "log_probabilities"],
    _nll,
    "minus the log probability of whole-number labels along axis",
    {"axis": -1, "reduction": "mean"},
    types=_sparse_type,
)


def _cosine(node: Node, a: Entry, b: Entry) -> Entry:
    """Each length is kept above epsilon, so that 0 is similar to nothing."""
    axis = node.params["axis"]
    least = float(node.params["epsilon"]) ** 2

    def dot(x: Entry, y: Entry) -> Entry:
        return make("reduce_sum", x * y, axis=axis)

    def inverse(x: Entry) -> Entry:
        return make("rsqrt", make("maximum", dot(x, x), least))

    return dot(a, b) * inverse(a) * inverse(b)


def _label_smoothing(node: Node, labels: Entry) -> Entry:
    """Source: Szegedy and others, Rethinking the Inception Architecture, section 7."""
    shape = known_shape(labels)
    classes = shape[normalize_axis(node, len(shape), node.params["axis"])]
    share = float(node.params["smoothing"])
    if not 0 <= share <= 1:
        raise GraphError(f"{node.where} needs smoothing from 0 to 1, got {share}")
    if not isinstance(classes, int):
        ones = make("ones_like", labels)
        count = make("reduce_sum", ones, axis=node.params["axis"], keepdims=True)
        return labels * (1 - share) + share / count
    return labels * (1 - share) + share / max(classes, 1)


composite(
    "cosine_similarity",
    2,
    _cosine,
    "the cosine of the angle between vectors along axis, their lengths taken as epsilon at least",
    {"axis": -1, "epsilon": 1e-8},
    types=common_dtype("f"),
)
composite(
    "label_smoothing",
    1,
    _label_smoothing,
    "labels mixed with the even distribution over the classes along axis",
    {"smoothing": 0.1, "axis": -1},
)
