"""Scans along an axis: each output element combines all input elements up to its position.

``axis`` may be left out for vectors only. ``exclusive`` leaves the element at the position out,
``reverse`` scans from the last element to the first, as in TensorFlow. The result has the input's
dtype: integers wrap; sums and products of floats are accumulated in float64, and each output
element is rounded once.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import TYPE_CHECKING, Any

from passkit import ast
from passkit.errors import ShapeError
from passkit.graph.node import Entry, Node, known_dtype, known_shape
from passkit.graph.op import Op, OpPattern, register_op
from passkit.ops.composites import composite
from passkit.ops.helpers import (
    add_aliases,
    as_replacement,
    check_kinds,
    common_dtype,
    make,
    normalize_axis,
)
from passkit.ops.reduce import highest, lowest
from passkit.values.dtype import DType, dtype_of, float64, int32
from passkit.values.size import Shape

if TYPE_CHECKING:
    from passkit.ast import Expr, Scan

PARAMS = {"axis": None, "exclusive": False, "reverse": False}
"""The parameters of all scans."""


def scan_axis(node: Node, rank: int) -> int:
    """Return the axis along which a node scans, from 0 to below ``rank``, the rank of its input.

    An ``axis`` of None is that of a vector.

    Raises:
        ShapeError: If ``axis`` is None and the input is no vector, or it is no int or out of range.
    """
    axis = node.params["axis"]
    if axis is None and rank != 1:
        raise ShapeError(
            f"{node.where} needs an axis for an input of rank {rank}; name one, or reshape it to "
            f"(-1,)"
        )
    return normalize_axis(node, rank, 0 if axis is None else axis)


def _infer_scan_shape(node: Node, shape: Shape) -> Shape:
    """Infer the shape, ``shape`` of the input.

    ``node`` has the parameter ``axis``.

    Raises: ShapeError if ``axis`` is no int or out of range, or None and the input no vector.
    """
    scan_axis(node, len(shape))
    return shape


def _simplify_length_one(node: Node) -> Entry | None:
    """Return the input of a scan along an axis of length 1, else None.

    An exclusive scan is not replaced: its result is the identity element. None also if shape or
    dtype are unknown. ``node`` has the parameters ``axis`` and ``exclusive``.

    Raises: ShapeError if a parameter is invalid.
    """
    x = node.inputs[0]
    if node.params["exclusive"] or x.shape is None or x.shape[scan_axis(node, len(x.shape))] != 1:
        return None
    return as_replacement(node, x)


def scan(
    *,
    name: str,
    kinds: str,
    identity: Callable[[DType], Any],
    combine: Callable[[Expr, Expr], Expr],
    gradient: Callable[..., Any],
    doc: str,
    exact: bool = False,
    aliases: str = "",
) -> Op:
    """Register a scan with the parameters ``axis``, ``exclusive`` and ``reverse``.

    Args:
        name: Name of the operator.
        kinds: The kinds of dtype that the input may have, such as "iuf".
        identity: Returns the identity element of ``combine`` in an accumulator dtype.
        combine: Returns the expression that combines two partial results.
        gradient: FGradient.
        doc: What an output element is, for help and reference pages.
        exact: Whether combining never rounds; else floats are accumulated in float64.
        aliases: Further names, separated by spaces.

    Returns:
        The registered operator.

    Raises:
        RegistryError: If an operator of that name has other numbers of inputs or outputs, an
            attribute of it was set elsewhere, or an alias names another.
        ArgumentError: If ``name`` or an alias is no identifier.
    """

    def build(node: Node) -> Scan:
        """Return the loop description of a node: FScan.

        Raises: ShapeError if the rank of its input is unknown, or the axis invalid; DTypeError if
        the dtype of its input is unknown.
        """
        dtype = known_dtype(node.inputs[0])
        accumulator = float64 if dtype.is_float and not exact else dtype
        same = accumulator is dtype
        return ast.Scan(
            axis=scan_axis(node, len(known_shape(node.inputs[0]))),
            identity=ast.const(identity(accumulator), accumulator),
            combine=combine(ast.left(accumulator), ast.right(accumulator)),
            exclusive=node.params["exclusive"],
            reverse=node.params["reverse"],
            prepare=None if same else lambda x: ast.cast(x, accumulator),
            finish=None if same else lambda total: ast.cast(total, dtype),
        )

    op = register_op(name, num_inputs=1, params=PARAMS, doc=doc)
    op.set_attr("FScan", build)
    op.set_attr("FInferShape", _infer_scan_shape)
    op.set_attr("FInferType", common_dtype(kinds))
    op.set_attr("FSimplify", _simplify_length_one)
    op.set_attr("FGradient", gradient)
    op.set_attr("TOpPattern", OpPattern.REDUCE)
    op.set_attr("TOpCost", "expensive")
    add_aliases(op, aliases)
    return op


# Gradients.


def _scan_like(node: Node, x: Entry, name: str, **params: Any) -> Entry:
    """Scan ``x`` by the operator ``name``, along the axis and in the direction of ``node``.

    ``params`` replace the node's parameters.

    Raises: ShapeError if the rank of the node's input is unknown, or its ``axis`` invalid;
    DTypeError if the operator does not take the dtype of ``x``.
    """
    axis = scan_axis(node, len(known_shape(node.inputs[0])))
    return make(name, x, **{**node.params, "axis": axis, **params})


def _scan_reversed(node: Node, x: Entry, name: str = "cumsum") -> Entry:
    """Scan ``x`` by the operator ``name`` in the direction opposite to that of ``node``.

    For ``x`` of the shape of the output, each element gets the combination of all output positions
    that the input element at its position takes part in.

    Raises: ShapeError if the rank of the node's input is unknown, or its ``axis`` invalid;
    DTypeError if the operator does not take the dtype of ``x``.
    """
    return _scan_like(node, x, name, reverse=not node.params["reverse"])


def _cumsum_gradient(node: Node, dy: Entry) -> list[Entry]:
    """Return the gradient of the input: the sum of dy over all outputs that contain the element.

    ``node`` is the forward node, with the parameters ``axis`` and ``reverse``; ``dy`` is the
    gradient of its output, of its dtype.

    Raises: ShapeError if the rank of the node's input is unknown, or its ``axis`` invalid.
    """
    return [_scan_reversed(node, dy)]


def _cumprod_gradient(node: Node, dy: Entry) -> list[Entry]:
    """Return the gradient of the input x: the sum of dy * y behind each element, over the element.

    That quotient holds in front of the first 0. For the first 0 itself, the products are computed
    with 1 in its place; behind it, every product contains a 0, and the gradient is 0. ``node`` is
    the forward node, with the parameters ``axis`` and ``reverse``; ``dy`` is the gradient of its
    output.

    Raises: ShapeError if the rank of the node's input is unknown, or its ``axis`` invalid;
    DTypeError for integers.
    """
    x = node.inputs[0]
    is_zero = make("equal", x, 0)
    zero_count = _scan_like(node, make("cast", is_zero, dtype="int32"), "cumsum", exclusive=False)
    one = make("ones_like", x)
    quotient = _scan_reversed(node, dy * node.entries[0]) / make("where", is_zero, one, x)
    is_first_zero = make("logical_and", is_zero, make("equal", zero_count, 1))
    other_products = _scan_like(node, make("where", is_first_zero, one, x), "cumprod")
    at_first_zero = _scan_reversed(node, dy * other_products)
    behind = make("where", is_first_zero, at_first_zero, 0.0)
    return [make("where", make("equal", zero_count, 0), quotient, behind)]


def _extremum_gradient(node: Node, dy: Entry) -> list[Entry]:
    """Return the gradient of the input: each dy added to the element that is the extremum so far.

    Of equal elements that is the first one. ``node`` is the forward node, with the parameters
    ``axis`` and ``reverse``; ``dy`` is the gradient of its output.

    Raises: ShapeError if the rank of the node's input is unknown, or its ``axis`` invalid.
    """
    x, name = node.inputs[0], node.op.name if node.op else ""
    axis = scan_axis(node, len(known_shape(x)))
    extremum_before = _scan_like(node, x, name, exclusive=True)
    ones = make("cast", make("ones_like", x), dtype="int32")
    position = make("cumsum", ones, axis=axis, exclusive=True)
    exceeds = make("greater" if name == "cummax" else "less", x, extremum_before)
    is_first = make("equal", _scan_like(node, ones, "cumsum", exclusive=True), 0)
    is_record = make("logical_or", exceeds, is_first)
    if node.params["reverse"]:
        record = make("where", is_record, position, highest(int32))
        record_position = _scan_like(node, record, "cummin")
    else:
        record = make("where", is_record, position, lowest(int32))
        record_position = _scan_like(node, record, "cummax")
    return [make("add_along_axis", make("zeros_like", x), record_position, dy, axis=axis)]


def _logcumsumexp_gradient(node: Node, dy: Entry) -> list[Entry]:
    """Return the gradient of each element x: the sum of dy * exp(x - y) over the outputs behind it.

    y are these outputs. Positive and negative dy are summed separately, each as the exponential of
    a scan of logarithms, so that nothing overflows. Elements and outputs of -inf contribute
    nothing. ``node`` is the forward node; ``dy`` is the gradient of its output.

    Raises: ShapeError if the rank of the node's input is unknown, or its ``axis`` invalid.
    """
    x, y = node.inputs[0], node.entries[0]
    y = make("where", make("equal", y, -inf), 0.0, y)

    def sum_of_positive(weight: Entry) -> Entry:
        """Return the sum for the positive elements of ``weight``, the others taken as 0.

        Raises: ShapeError if the rank of the node's input is unknown, or its ``axis`` invalid.
        """
        is_positive = make("greater", weight, 0.0)
        log = make("log", make("where", is_positive, weight, 1.0))
        log = make("where", is_positive, log, -inf)
        return make("exp", x + _scan_reversed(node, log - y, "logcumsumexp"))

    return [sum_of_positive(dy) - sum_of_positive(-dy)]


def _log_add(a: Expr, b: Expr) -> Expr:
    """Return log(exp(a) + exp(b)); where the larger is infinite, that."""
    high, low = ast.maximum(a, b), ast.minimum(a, b)
    return ast.where(ast.equal(ast.abs(high), inf), high, high + ast.log1p(ast.exp(low - high)))


# The operators.

scan(
    name="cumsum",
    aliases="running_sum",
    kinds="iuf",
    identity=lambda dtype: 0,
    combine=lambda a, b: a + b,
    gradient=_cumsum_gradient,
    doc="the cumulative sums along axis, in the shape of x",
)
scan(
    name="cumprod",
    kinds="iuf",
    identity=lambda dtype: 1,
    combine=lambda a, b: a * b,
    gradient=_cumprod_gradient,
    doc="the cumulative products along axis, in the shape of x",
)
scan(
    name="cummax",
    kinds="iuf",
    identity=lowest,
    combine=lambda a, b: ast.maximum(a, b),
    gradient=_extremum_gradient,
    exact=True,
    doc="the largest element so far along axis, in the shape of x; NaN from the first NaN on",
)
scan(
    name="cummin",
    kinds="iuf",
    identity=highest,
    combine=lambda a, b: ast.minimum(a, b),
    gradient=_extremum_gradient,
    exact=True,
    doc="the smallest element so far along axis, in the shape of x; NaN from the first NaN on",
)
scan(
    name="logcumsumexp",
    aliases="cumulative_logsumexp",
    kinds="f",
    identity=lambda dtype: -inf,
    combine=_log_add,
    gradient=_logcumsumexp_gradient,
    doc="log(cumsum(exp(x))) along axis, in the shape of x",
)


# Scans as the array API standard defines them.


def _cumulative(scan_name: str, initial: int) -> Callable[[Node, Entry], Entry]:
    """Return the FExpand of a scan with the parameters ``dtype`` and ``include_initial``.

    Args:
        scan_name: The operator that scans.
        initial: Its result for no elements.
    """

    def expand(node: Node, x: Entry) -> Entry:
        """Cast x to the output's dtype, scan, and put the initial value in front if requested.

        The parameters ``dtype`` (None for that of x), ``axis`` and ``include_initial`` say so.
        ``node`` has the parameters ``axis``, ``dtype`` and ``include_initial``.

        Raises: ShapeError if the axis is no int or out of range, or None and x no vector, or the
        rank of x is unknown; DTypeError if ``dtype`` is bool, complex or none, or unknown for the
        initial value.
        """
        dtype, shape = node.params["dtype"], known_shape(x)
        axis = scan_axis(node, len(shape))
        x = x if dtype is None else make("cast", x, dtype=dtype)
        out = make(scan_name, x, axis=axis)
        if not node.params["include_initial"]:
            return out
        first_shape = (*shape[:axis], 1, *shape[axis + 1 :])
        first = make("full", shape=first_shape, fill_value=initial, dtype=known_dtype(x).name)
        return make("concat", first, out, axis=axis)

    return expand


def _infer_cumulative_type(node: Node, dtype: DType) -> DType:
    """Infer the dtype: the parameter ``dtype``, or where it is None ``dtype`` of the input.

    ``node`` has the parameter ``dtype``.

    Raises: DTypeError if the input is bool or complex, or there is no such dtype; that of the
    result is checked by the scan.
    """
    check_kinds(node, "iuf", dtype)
    result = node.params["dtype"]
    return dtype if result is None else dtype_of(result)


composite(
    name="cumulative_sum",
    inputs=1,
    expand=_cumulative("cumsum", initial=0),
    params={"axis": None, "dtype": None, "include_initial": False},
    types=_infer_cumulative_type,
    doc="the cumulative sums along axis, in dtype; with include_initial one element longer, "
    "beginning with 0",
)
composite(
    name="cumulative_prod",
    inputs=1,
    expand=_cumulative("cumprod", initial=1),
    params={"axis": None, "dtype": None, "include_initial": False},
    types=_infer_cumulative_type,
    doc="the cumulative products along axis, in dtype; with include_initial one element longer, "
    "beginning with 1",
)
