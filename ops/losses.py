"""Losses between labels and predictions, in forms that neither overflow nor cancel.

Labels come first, as in TensorFlow. Losses with a ``reduction`` reduce the elements by 'mean' or
'sum', or return one loss for each element for 'none'; cross entropies of logits return one loss for
each example.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
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
    from passkit.analysis.accesses import Index, Reader
    from passkit.ast import Expr

REDUCTIONS = ("mean", "sum", "none")


def _reduce_loss(node: Node, loss: Entry) -> Entry:
    """Reduce ``loss``, that of all elements, by the parameter ``reduction`` of ``node``.

    It is returned as it is for 'none'.

    Raises:
        GraphError: If the parameter is not 'mean', 'sum' or 'none'.
    """
    reduction = node.params["reduction"]
    if reduction not in REDUCTIONS:
        raise GraphError(
            f"{node.where} needs 'mean', 'sum' or 'none' as reduction, got {reduction!r}"
        )
    return loss if reduction == "none" else make(f"reduce_{reduction}", loss)


# Elementwise losses.


def elementwise_loss(
    *,
    name: str,
    element: Callable[[Node, Entry, Entry], Entry],
    doc: str,
    params: Mapping[str, Any] | None = None,
    aliases: str = "",
) -> None:
    """Register a loss of labels and predictions, with the parameter ``reduction``.

    Its FExpand raises GraphError if that is not 'mean', 'sum' or 'none', and what ``element``
    raises.

    Args:
        name: Name of the operator.
        element: ``element(node, labels, predictions)`` returns the loss of each element; it is
            called with floats of one dtype.
        doc: What the loss of an element is, for help and reference pages.
        params: Further parameters with their defaults.
        aliases: Further names, separated by spaces.

    Raises:
        RegistryError: If an operator of that name has other numbers of inputs or outputs, an
            attribute of it was set elsewhere, or an alias names another.
        ArgumentError: If ``name`` or an alias is no identifier.
    """
    composite(
        name=name,
        aliases=aliases,
        inputs=("labels", "predictions"),
        expand=lambda node, labels, x: _reduce_loss(node, element(node, labels, x)),
        params={**(params or {}), "reduction": "mean"},
        doc=f"{doc}; the mean over all elements, or as reduction says",
    )


def _positive_param(node: Node, name: str) -> float:
    """Return the parameter ``name`` of ``node``, a number, as a float.

    Raises: GraphError if it is not above 0, or NaN.
    """
    value = float(node.params[name])
    if not value > 0:
        raise GraphError(f"{node.where} needs {name} above 0, got {value}")
    return value


def _huber(node: Node, labels: Entry, x: Entry) -> Entry:
    """Return Huber's loss of each element: d²/2 for a distance d up to ``delta``, then linear.

    d is ``x``, the predictions, minus ``labels``. Source: Huber, Robust Estimation of a Location
    Parameter, equation 6.

    Labels and predictions are floats of one dtype.

    Raises: GraphError if the parameter ``delta`` of ``node`` is not above 0, ShapeError if labels
    and predictions do not broadcast.
    """
    delta = _positive_param(node, "delta")
    d = x - labels
    clipped = make("clip", d, -delta, delta)
    return clipped * (d - clipped * 0.5)


def _smooth_l1(node: Node, labels: Entry, x: Entry) -> Entry:
    """Return Huber's loss of width ``beta`` of each element, divided by that parameter.

    ``x`` are the predictions, ``labels`` what they should be, floats of one dtype. ``node`` has the
    parameter ``beta``.

    Raises: GraphError if ``beta`` is not above 0, ShapeError if labels and predictions do not
    broadcast.
    """
    beta = _positive_param(node, "beta")
    d = x - labels
    clipped = make("clip", d, -beta, beta)
    return clipped * (d - clipped * 0.5) * (1 / beta)


def _log_cosh(node: Node, labels: Entry, x: Entry) -> Entry:
    """Return log(cosh(d)) as |d| + log(1 + exp(-2|d|)) - log(2), which cannot overflow.

    d is ``x``, the predictions, minus ``labels``, floats of one dtype. ``node`` is not used.

    Raises: ShapeError if they do not broadcast.
    """
    d = make("abs", x - labels)
    return d + make("log1p", make("exp", d * -2.0)) - log(2.0)


def _hinge(node: Node, labels: Entry, x: Entry) -> Entry:
    """Return max(0, 1 - labels * x) for labels -1 and 1 and predictions ``x``.

    Both are floats of one dtype. ``node`` is not used.

    Raises: ShapeError if labels and predictions do not broadcast.
    """
    return make("relu", 1.0 - labels * x)


def _binary_cross_entropy(node: Node, labels: Entry, p: Entry) -> Entry:
    """Return the cross entropy of labels and probabilities ``p``.

    ``p`` is limited to the range from ``epsilon``, a parameter of ``node``, to 1 - ``epsilon``.
    Both are floats of one dtype.

    Raises: ShapeError if ``labels`` and ``p`` do not broadcast.
    """
    epsilon = float(node.params["epsilon"])
    p = make("clip", p, epsilon, 1 - epsilon)
    return -(labels * make("log", p) + (1.0 - labels) * make("log1p", -p))


def _kl_divergence(node: Node, labels: Entry, p: Entry) -> Entry:
    """Return labels * log(labels / p), and 0 where a label is 0 or less; NaN stays.

    ``labels`` and ``p`` are floats of one dtype. ``node`` is not used.

    Raises: ShapeError if ``labels`` and ``p`` do not broadcast.
    """
    no_mass = labels <= 0
    ratio = make("where", no_mass, 1.0, labels) / make("where", no_mass, 1.0, p)
    return make("where", no_mass, 0.0, labels * make("log", ratio))


elementwise_loss(
    name="mean_squared_error",
    aliases="mse_loss",
    element=lambda node, labels, x: make("square", x - labels),
    doc="the squared error (predictions - labels)**2",
)
elementwise_loss(
    name="mean_absolute_error",
    aliases="l1_loss absolute_difference",
    element=lambda node, labels, x: make("abs", x - labels),
    doc="the absolute error abs(predictions - labels)",
)
elementwise_loss(
    name="huber_loss",
    params={"delta": 1.0},
    element=_huber,
    doc="for errors d the square d**2 / 2 up to delta, and a straight line beyond",
)
elementwise_loss(
    name="smooth_l1_loss",
    params={"beta": 1.0},
    element=_smooth_l1,
    doc="huber_loss with delta = beta, divided by beta",
)
elementwise_loss(
    name="log_cosh_loss",
    element=_log_cosh,
    doc="log(cosh(predictions - labels))",
)
elementwise_loss(
    name="hinge_loss",
    element=_hinge,
    doc="max(0, 1 - labels * predictions) for labels -1 and 1",
)
elementwise_loss(
    name="squared_hinge_loss",
    element=lambda node, labels, x: make("square", _hinge(node, labels, x)),
    doc="the square of hinge_loss for each element",
)
elementwise_loss(
    name="binary_cross_entropy",
    params={"epsilon": 1e-7},
    element=_binary_cross_entropy,
    doc="-labels * log(p) - (1 - labels) * log(1 - p) for probabilities p, limited to epsilon from "
    "0 and 1",
)
elementwise_loss(
    name="kl_divergence",
    element=_kl_divergence,
    doc="labels * log(labels / predictions), 0 where the label is 0",
)
elementwise_loss(
    name="poisson_loss",
    element=lambda node, labels, x: make("exp", x) - labels * x,
    doc="exp(predictions) - labels * predictions, for counts and the logarithms of their rates",
)


# Cross entropies of logits and distributions.


def _infer_elementwise_shape(node: Node, labels: Shape, logits: Shape) -> Shape:
    """Infer the shape, the common one of labels and logits.

    Errors name ``node``.

    Raises:
        ShapeError: If the shapes ``labels`` and ``logits`` differ.
    """
    if len(labels) != len(logits):
        raise ShapeError(
            f"{node.where} needs labels and logits of one shape, got {show_shape(labels)} and "
            f"{show_shape(logits)}"
        )
    return tuple(
        agree(node, a, b, f"dimension {k} of labels and logits")
        for k, (a, b) in enumerate(zip(labels, logits, strict=True))
    )


def _infer_example_shape(node: Node, labels: Shape, logits: Shape) -> Shape:
    """Infer the shape of the losses: that of labels and logits, with the classes' axis removed.

    The parameter ``axis`` of the node is the classes' axis.

    Raises: ShapeError if their shapes differ, or the axis is no int or out of range.
    """
    shape = _infer_elementwise_shape(node, labels, logits)
    axis = normalize_axis(node, len(shape), node.params["axis"])
    return shape[:axis] + shape[axis + 1 :]


def _sigmoid_cross_entropy(node: Node, labels: Entry, x: Entry) -> Entry:
    """Expand to max(x, 0) - x * labels + log(1 + exp(-|x|)) for logits ``x``, as TensorFlow.

    ``labels`` and ``x`` are floats of one dtype. ``node`` is not used.

    Raises: ShapeError if ``labels`` and ``x`` do not broadcast.
    """
    return make("relu", x) - x * labels + make("log1p", make("exp", -make("abs", x)))


def _sigmoid_cross_entropy_gradient(node: Node, dy: Entry | None) -> list[Entry | None]:
    """Return the gradients of labels and logits x: -x dy and (sigmoid(x) - labels) dy.

    Both are None if ``dy``, the gradient of the losses, is None. ``node`` is the forward node.
    """
    if dy is None:
        return [None, None]
    labels, x = node.inputs
    return [-(dy * x), dy * (make("sigmoid", x) - labels)]


def _softmax_cross_entropy(node: Node, labels: Entry, x: Entry) -> Entry:
    """Return -sum(labels * log_softmax(x)) along the parameter ``axis``, where 0 * -inf is 0.

    ``x`` are the logits, of floats as ``labels``. ``node`` has the parameter ``axis``.

    Raises: ShapeError if the axis is out of range or no int, or labels and logits do not broadcast.
    """
    axis = node.params["axis"]
    log_p = make("log_softmax", x, axis=axis)
    terms = make("where", make("equal", labels, 0.0), 0.0, labels * log_p)
    return -make("reduce_sum", terms, axis=axis)


def _softmax_cross_entropy_gradient(node: Node, dy: Entry | None) -> list[Entry | None]:
    """Return the gradients of labels and logits x, both None if ``dy`` is None.

    They are -log_softmax(x) dy, and (softmax(x) * sum(labels) - labels) dy. ``node`` is the forward
    node, with the parameter ``axis``.

    Raises: ShapeError if a rank is unknown, or a parameter is invalid.
    """
    if dy is None:
        return [None, None]
    labels, x = node.inputs
    axis = node.params["axis"]
    dy = _expand_example_axis(node, x, dy)
    total = make("reduce_sum", labels, axis=axis, keepdims=True)
    return [
        -(dy * make("log_softmax", x, axis=axis)),
        dy * (make("softmax", x, axis=axis) * total - labels),
    ]


def _expand_example_axis(node: Node, x: Entry, dy: Entry) -> Entry:
    """Return dy, one element for each example, so that it broadcasts to the logits ``x``.

    It gets an axis of length 1 at the parameter ``axis``. ``node`` is the forward node, with the
    parameter ``axis``; ``dy`` is the gradient of its output.

    Raises: ShapeError if that is no int or out of range, or the rank of ``x`` unknown.
    """
    axis = normalize_axis(node, len(known_shape(x)), node.params["axis"])
    return make("expand_dims", dy, axis=axis)


composite(
    name="sigmoid_cross_entropy_with_logits",
    inputs=["labels", "logits"],
    expand=_sigmoid_cross_entropy,
    shape=_infer_elementwise_shape,
    FGradient=_sigmoid_cross_entropy_gradient,
    doc="the cross entropy of labels and sigmoid(logits) for each element",
)
composite(
    name="softmax_cross_entropy_with_logits",
    inputs=["labels", "logits"],
    expand=_softmax_cross_entropy,
    params={"axis": -1},
    shape=_infer_example_shape,
    FGradient=_softmax_cross_entropy_gradient,
    doc="the cross entropy of label distributions and softmax(logits) along axis, which the "
    "result does not have; 0 * -inf is 0",
)


# Losses of integer labels.


def _infer_pick_shape(node: Node, x: Shape, labels: Shape) -> Shape:
    """Return ``x``, the shape of the first input.

    ``node`` has the parameter ``axis``.

    Raises:
        ShapeError: If ``axis`` is no int or out of range, or ``labels`` is not the shape of ``x``
            without it.
    """
    axis = normalize_axis(node, len(x), node.params["axis"])
    example_shape = x[:axis] + x[axis + 1 :]
    if len(labels) != len(example_shape):
        raise ShapeError(
            f"{node.where} needs labels of shape {show_shape(example_shape)}, got "
            f"{show_shape(labels)}"
        )
    for k, (a, b) in enumerate(zip(labels, example_shape, strict=True)):
        agree(node, a, b, f"dimension {k} of labels")
    return x


def _infer_pick_type(node: Node, x: DType, labels: DType) -> DType:
    """Return ``x``, the dtype of the first input.

    Errors name ``node``.

    Raises:
        DTypeError: If ``x`` is no float, or ``labels`` is no integer.
    """
    check_kinds(node, "f", x)
    if not labels.is_integer:
        raise DTypeError(f"{node.where} needs integer labels, got {labels}; argmax gives such")
    return x


def _pick_element(node: Node, index: Index, x: Reader, labels: Reader) -> Expr:
    """Return x where its position along ``axis`` is the label, else 0.

    Positions are compared with labels, so that nothing is loaded from a computed position.

    Args:
        node: The node, with the parameter ``axis``.
        index: An expression for each axis of the output.
        x: Reads the first input.
        labels: Reads the labels, which have no ``axis``.

    Raises: ShapeError if a parameter is invalid.
    """
    axis = normalize_axis(node, len(index), node.params["axis"])
    value = x(*index)
    label = ast.cast(labels(*index[:axis], *index[axis + 1 :]), "int64")
    return ast.where(ast.equal(label, index[axis]), value, 0.0)


def _pick_gradient(node: Node, dy: Entry | None) -> list[Entry | None]:
    """Return the gradients of x and labels: dy where the position is the label, else 0; and None.

    Both are None if ``dy`` is None. ``node`` is the forward node.
    """
    if dy is None:
        return [None, None]
    return [make("pick_label", dy, node.inputs[1], **node.params), None]


pick_label = register_op(
    "pick_label",
    num_inputs=2,
    params={"axis": -1},
    doc="x where its position along axis is the label, else 0, in the shape of x; labels has that "
    "shape without axis",
)
pick_label.set_attr("FListInputNames", lambda params: ["x", "labels"])
pick_label.set_attr("FInferShape", _infer_pick_shape)
pick_label.set_attr("FInferType", _infer_pick_type)
pick_label.set_attr("FElement", _pick_element)
pick_label.set_attr("FGradient", _pick_gradient)
pick_label.set_attr("TOpPattern", OpPattern.INJECTIVE)
pick_label.set_attr("TOpCost", "light")


def _infer_sparse_shape(node: Node, labels: Shape, logits: Shape) -> Shape:
    """Infer the shape, that of the labels: one loss for each example.

    ``node`` has the parameter ``axis``.

    Raises: ShapeError if ``axis`` is no int or out of range, or ``labels`` is not the shape
    ``logits`` without it.
    """
    _infer_pick_shape(node, logits, labels)
    return labels


def _infer_sparse_type(node: Node, labels: DType, logits: DType) -> DType:
    """Infer the dtype, that of the logits.

    Raises: DTypeError, naming ``node``, if the labels are no integers, or the logits no floats.
    """
    return _infer_pick_type(node, logits, labels)


def _sparse_cross_entropy(node: Node, labels: Entry, x: Entry) -> Entry:
    """Return -log_softmax(x) at the label along ``axis``, 0 where the label is no class.

    ``x`` are the logits. ``node`` has the parameter ``axis``.

    Raises: ShapeError if ``axis`` is out of range or the shapes do not fit.
    """
    axis = node.params["axis"]
    log_p = make("log_softmax", x, axis=axis)
    return -make("reduce_sum", make("pick_label", log_p, labels, axis=axis), axis=axis)


def _sparse_cross_entropy_gradient(node: Node, dy: Entry | None) -> list[Entry | None]:
    """Return None for labels, and for logits x: softmax(x), less 1 at the label, times dy.

    It is 0 where the label is no class; None too if ``dy`` is None. ``node`` is the forward node,
    with the parameter ``axis``.

    Raises: ShapeError if a rank is unknown, or a parameter is invalid.
    """
    if dy is None:
        return [None, None]
    labels, x = node.inputs
    axis = node.params["axis"]
    p = make("softmax", x, axis=axis)
    one_hot = make("pick_label", make("ones_like", x), labels, axis=axis)
    is_class = make("reduce_sum", one_hot, axis=axis, keepdims=True)
    return [None, _expand_example_axis(node, x, dy) * (p * is_class - one_hot)]


def _nll_loss(node: Node, labels: Entry, log_p: Entry) -> Entry:
    """Expand nll_loss: minus ``log_p``, logarithms of probabilities, at each label, then reduced.

    A label that is no class gives 0. ``node`` has the parameters ``axis`` and ``reduction``.

    Raises: ShapeError if ``axis`` is out of range or the labels do not fit; GraphError for an
    unknown ``reduction``; DTypeError if ``labels`` are no integers.
    """
    axis = node.params["axis"]
    picked = make("pick_label", log_p, labels, axis=axis)
    return _reduce_loss(node, -make("reduce_sum", picked, axis=axis))


composite(
    name="sparse_softmax_cross_entropy_with_logits",
    inputs=["labels", "logits"],
    expand=_sparse_cross_entropy,
    params={"axis": -1},
    shape=_infer_sparse_shape,
    types=_infer_sparse_type,
    FGradient=_sparse_cross_entropy_gradient,
    doc="the cross entropy of integer labels and softmax(logits) along axis, in the shape of "
    "labels; 0 for a label that is no class",
)
composite(
    name="nll_loss",
    inputs=["labels", "log_probabilities"],
    expand=_nll_loss,
    params={"axis": -1, "reduction": "mean"},
    types=_infer_sparse_type,
    doc="minus the log probability of whole-number labels along axis",
)


# Similarity of vectors, and labels.


def _cosine_similarity(node: Node, a: Entry, b: Entry) -> Entry:
    """Return the cosine of vectors along ``axis``; lengths below ``epsilon`` count as ``epsilon``.

    So the cosine with a vector of 0 is 0. ``node`` has the parameters ``axis`` and ``epsilon``.

    Raises: ShapeError if the axis is out of range or the shapes do not broadcast.
    """
    axis = node.params["axis"]
    smallest_square = float(node.params["epsilon"]) ** 2

    def dot(x: Entry, y: Entry) -> Entry:
        """Return the sums of products of x and y along the axis.

        Raises: ShapeError if it is out of range or the shapes do not broadcast.
        """
        return make("reduce_sum", x * y, axis=axis)

    def inverse_length(x: Entry) -> Entry:
        """Return 1 / the length of vectors along the axis; a length counts as ``epsilon`` at least.

        Raises: ShapeError if the axis is out of range.
        """
        return make("rsqrt", make("maximum", dot(x, x), smallest_square))

    return dot(a, b) * inverse_length(a) * inverse_length(b)


def _label_smoothing(node: Node, labels: Entry) -> Entry:
    """Mix labels with the even distribution over the classes along the parameter ``axis``.

    That has the weight ``smoothing``. Source: Szegedy et al., Rethinking the Inception
    Architecture, section 7. ``node`` has the parameters ``axis`` and ``smoothing``.

    Raises:
        GraphError: If ``smoothing`` is not from 0 to 1.
        ShapeError: If ``axis`` is no int or out of range, or the rank unknown.
    """
    shape = known_shape(labels)
    classes = shape[normalize_axis(node, len(shape), node.params["axis"])]
    smoothing = float(node.params["smoothing"])
    if not 0 <= smoothing <= 1:
        raise GraphError(f"{node.where} needs smoothing from 0 to 1, got {smoothing}")
    if not isinstance(classes, int):
        ones = make("ones_like", labels)
        count = make("reduce_sum", ones, axis=node.params["axis"], keepdims=True)
        return labels * (1 - smoothing) + smoothing / count
    return labels * (1 - smoothing) + smoothing / max(classes, 1)


composite(
    name="cosine_similarity",
    inputs=2,
    expand=_cosine_similarity,
    params={"axis": -1, "epsilon": 1e-8},
    types=common_dtype("f"),
    doc="the cosine of the angle between vectors along axis, which the result does not have; "
    "lengths below epsilon count as epsilon",
)
composite(
    name="label_smoothing",
    inputs=1,
    expand=_label_smoothing,
    params={"smoothing": 0.1, "axis": -1},
    doc="labels * (1 - smoothing) + smoothing / n for the n classes along axis",
)
