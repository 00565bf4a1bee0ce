"""Matrix products: ``matmul``, sums of products ``matmul_sum``, and fully connected layers.

Floats are multiplied by libraries or by generated kernels with epilogues.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any

import numpy as np

from passkit import ast
from passkit.errors import ShapeError
from passkit.graph.call import promote_operands
from passkit.graph.infer import agree, broadcast_shapes, show_shape
from passkit.graph.node import Entry, Node, known_dtype, known_shape
from passkit.graph.op import OpPattern, get_op, register_op
from passkit.ops.helpers import common_dtype, make, show_shapes
from passkit.values.size import Shape, numel

if TYPE_CHECKING:
    from passkit.ast import Contract

LIBRARY_DTYPES = ("float32", "float64")
"""The dtypes for which libraries have matrix products."""


# matmul.


matmul = register_op(
    "matmul",
    num_inputs=2,
    params={"transpose_a": False, "transpose_b": False},
    doc="the matrix products over the last two axes, leading axes broadcast: (…, m, k), (…, k, n) "
    "-> (…, m, n)",
)


def _matmul_contract(node: Node, a: Shape, b: Shape) -> Contract:
    """Return the description of a matrix product: its batch and extents.

    Inner or batch extents that differ symbolically are recorded as guards.

    Args:
        node: The node, whose parameters say which operand is transposed.
        a: The shape (…, m, k) of the left operand, or (…, k, m) if it is transposed.
        b: The shape (…, k, n) of the right operand, or (…, n, k) if it is transposed.

    Raises:
        ShapeError: If a rank is below 2, the inner extents differ, or the batches do not broadcast.
    """
    if len(a) < 2 or len(b) < 2:
        raise ShapeError(
            f"{node.where} needs matrices of rank 2 or more, got {show_shapes((a, b))}; "
            f"insert expand_dims"
        )
    flip_a, flip_b = node.params["transpose_a"], node.params["transpose_b"]
    m, k = (a[-1], a[-2]) if flip_a else (a[-2], a[-1])
    k_b, n = (b[-1], b[-2]) if flip_b else (b[-2], b[-1])
    if isinstance(k, int) and isinstance(k_b, int) and k != k_b:
        raise ShapeError(
            f"{node.where} needs inner dimensions that agree, got {k} and {k_b} in "
            f"{show_shapes((a, b))}; set transpose_a or transpose_b, or reshape"
        )
    inner = agree(node, k, k_b, "the inner dimension")
    batch = broadcast_shapes(node, (a[:-2], b[:-2]))
    return ast.Contract(batch, m, n, inner, flip_a, flip_b)


def _matmul_shape(node: Node, a: Shape, b: Shape) -> Shape:
    """Infer the shape (…, m, n) from (…, m, k) and (…, k, n), the shapes of both operands.

    ``node`` has the parameters ``transpose_a`` and ``transpose_b``.

    Raises: ShapeError if a rank is below 2, the inner extents differ, or the batches do not
    broadcast.
    """
    contract = _matmul_contract(node, a, b)
    return (*contract.batch, contract.m, contract.n)


def _expand_integer_matmul(node: Node, a: Entry, b: Entry) -> Entry | None:
    """Expand a product of integers, for which there is no library, to a sum of products.

    The sum vectorizes along the columns of the result, or, where b is transposed, along the axis
    that is summed, which is the contiguous one of b then. ``node`` says which operand is
    transposed.

    Returns:
        None for floats, which are not expanded.

    Raises: DTypeError if the dtype of ``a`` is unknown, ShapeError if the operands do not fit.
    """
    if not known_dtype(a).is_integer:
        return None
    if node.params["transpose_a"]:
        a = make("swapaxes", a, axis1=-1, axis2=-2)
    if node.params["transpose_b"]:
        rows, columns, axis = make("expand_dims", a, axis=-2), make("expand_dims", b, axis=-3), -1
    else:
        rows, columns, axis = make("expand_dims", a, axis=-1), make("expand_dims", b, axis=-3), -2
    return make("reduce_sum", rows * columns, axis=axis)


def _matmul_operator(x: Any, y: Any) -> Entry:
    """Implement ``x @ y``: a vector is a row on the left and a column on the right.

    The axis of length 1 is removed from the result. Operands are promoted to one dtype. If a rank
    is unknown, both count as matrices.

    Raises: ShapeError if the operands do not fit, such as a scalar; DTypeError for bools, complex
    numbers, two Python scalars or a Python int that does not fit the integers beside it;
    ArgumentError or GraphError for an operand that is neither an entry, an array nor a number.
    """
    a, b = promote_operands("@", (x, y))
    if a.shape is None or b.shape is None:  # as in a pattern: assumed to be matrices
        return matmul(a, b)  # type: ignore[no-any-return]
    row, column = len(known_shape(a)) == 1, len(known_shape(b)) == 1
    expand, squeeze = get_op("expand_dims"), get_op("squeeze")
    a = expand(a, axis=0) if row else a
    b = expand(b, axis=1) if column else b
    out = matmul(a, b)
    if row or column:
        out = squeeze(out, axis=(-2,) * row + (-1,) * column)
    return out  # type: ignore[no-any-return]


def _product(a: Entry, b: Entry, flip_a: bool, flip_b: bool) -> Entry:
    """Return the matrix product of a and b; ``flip_a`` and ``flip_b`` transpose them first.

    Raises: ShapeError if a rank is below 2 or the extents do not fit, DTypeError if the dtypes
    differ.
    """
    return make("matmul", a, b, transpose_a=flip_a, transpose_b=flip_b)


def matmul_gradient(node: Node, dy: Entry) -> list[Entry]:
    """Return the gradients of a matmul node: ``dy bᵀ`` for a and ``aᵀ dy`` for b.

    Where batches were broadcast, the gradient pass sums the result to the operand's shape. Where b
    has no batch, a single product over all rows of the batch sums its gradient already.

    Args:
        node: A node of ``matmul``.
        dy: The gradient of its result.

    Raises:
        ShapeError: If the rank of an operand is unknown.
    """
    (a, b), flip_a, flip_b = node.inputs, node.params["transpose_a"], node.params["transpose_b"]
    da = _product(b, dy, flip_b, True) if flip_a else _product(dy, b, False, not flip_b)
    rank = len(known_shape(a))
    if len(known_shape(b)) == 2 and rank > 2 and not flip_a:
        a, dy = _as_rows(a), _as_rows(dy)
    db = _product(dy, a, True, flip_a) if flip_b else _product(a, dy, not flip_a, False)
    return [da, db]


def _as_rows(x: Entry) -> Entry:
    """Return ``x`` as a matrix: all axes but the last become one.

    Raises: ShapeError if its rank is unknown.
    """
    shape = known_shape(x)
    return make("reshape", x, shape=(numel(shape[:-1]), shape[-1]))


def _contract_sum(nodes: Sequence[Node]) -> Entry | None:
    """Return the sum of the outputs of matmul nodes as one ``matmul_sum``.

    Args:
        nodes: One or more nodes.

    Returns:
        None where an operand is no matrix, the transposes differ, or a dtype is none of
        `LIBRARY_DTYPES` or unknown.

    Raises:
        ShapeError: If the rank of an operand is unknown, or the outputs have different shapes.
    """
    first = nodes[0]
    for node in nodes:
        dtype = node.entries[0].dtype
        if any(len(known_shape(e)) != 2 for e in node.inputs) or node.params != first.params:
            return None
        if dtype is None or dtype.name not in LIBRARY_DTYPES:
            return None
    return make("matmul_sum", *(e for n in nodes for e in n.inputs), **first.params)


def _match_window_products(node: Node) -> Entry | None:
    """Rewrite the gradient of a convolution's filter to ``window_products``.

    The pattern is a product of float32 matrices, of which the left one is transposed and is a view
    of windows with one window a row.

    Returns:
        The rewritten result, or None where the node does not match; for example where an extent is
        symbolic, a window has one element, or padding is not filled with 0.

    Raises: ShapeError if a rank is unknown.
    """
    left, right = (e.node for e in node.inputs)
    dtype, flips = node.entries[0].dtype, (node.params["transpose_a"], node.params["transpose_b"])
    if flips != (True, False) or dtype is None or dtype.name != "float32":
        return None
    view = left.inputs[0].node if _is_op(left, "reshape") else left
    if view is left or not _is_op(view, "windows") or view.params["fill"] != 0:
        return None
    shape, out_shape = known_shape(view.entries[0]), known_shape(node.entries[0])
    front = len(known_shape(view.inputs[0])) - 1  # (batch, *result) come before (*window, channels)
    left_shape, window = known_shape(left.entries[0]), shape[front:-1]
    if not all(isinstance(n, int) for n in (*shape, *left_shape, *out_shape)):
        return None
    if numel(window) == 1 or left_shape != (numel(shape[:front]), numel(shape[front:])):
        return None
    factor_shape, factor = (*shape[:front], out_shape[-1]), node.inputs[1]
    if _is_op(right, "reshape") and known_shape(right.inputs[0]) == factor_shape:
        factor = right.inputs[0]
    else:
        factor = make("reshape", factor, shape=factor_shape)
    params = {k: view.params[k] for k in ("strides", "padding", "dilations")}
    product = make("window_products", view.inputs[0], factor, window=window, **params)
    return make("reshape", product, shape=out_shape)


def _is_op(node: Node, name: str) -> bool:
    """Return whether ``node`` applies the operator called ``name``; False for a variable."""
    return node.op is not None and node.op.name == name


matmul.set_attr("FInferShape", _matmul_shape)
matmul.set_attr("FInferType", common_dtype("iuf"))
matmul.set_attr("FContract", lambda node: _matmul_contract(node, *map(known_shape, node.inputs)))
matmul.set_attr("FExpand", _expand_integer_matmul)
matmul.set_attr("FOperator", _matmul_operator)
matmul.set_attr("FGradient", matmul_gradient)
matmul.set_attr("FContractSum", _contract_sum)
matmul.set_attr("FLibraryPattern", _match_window_products)
matmul.set_attr("TOpPattern", OpPattern.CONTRACT)
matmul.set_attr("TOpCost", "expensive")
matmul.set_attr("TLibraryCall", "gemm")
matmul.set_attr("TOperator", "@")


# matmul_sum: the gradient of a weight that the iterations of a loop share is such a sum.


matmul_sum = register_op(
    "matmul_sum",
    num_inputs=-1,
    params={"transpose_a": False, "transpose_b": False},
    doc="the sum of matrix products of consecutive pairs of inputs, a1 @ b1 + a2 @ b2 + …, of "
    "shape (m, n)",
)


def _operand_pairs(node: Node, operands: Sequence[Any]) -> list[tuple[Any, Any]]:
    """Return operands, left and right ones in turn, as (left, right) pairs.

    Raises: ShapeError, which names ``node``, if their number is odd or 0.
    """
    if not operands or len(operands) % 2:
        raise ShapeError(
            f"{node.where} needs pairs of matrices, got {len(operands)} operands; give a right "
            f"one for each left one"
        )
    return list(zip(operands[::2], operands[1::2], strict=True))


def _matmul_sum_shape(node: Node, *shapes: Shape) -> Shape:
    """Infer the shape (m, n) from the pairs (m, k1), (k1, n), then (m, k2), (k2, n) and so on.

    The parameters transpose_a and transpose_b hold for all pairs. ``node`` has the parameters
    ``transpose_a`` and ``transpose_b``.

    Raises: ShapeError if there are no pairs, an operand is no matrix, or extents differ.
    """
    flip_a, flip_b = node.params["transpose_a"], node.params["transpose_b"]
    rows = columns = None
    for a, b in _operand_pairs(node, shapes):
        if len(a) != 2 or len(b) != 2:
            raise ShapeError(
                f"{node.where} needs matrices of rank 2, got {show_shapes((a, b))}; reshape them"
            )
        (m, k), (k_b, n) = a[:: -1 if flip_a else 1], b[:: -1 if flip_b else 1]
        agree(node, k, k_b, "the inner dimension")
        rows = m if rows is None else agree(node, rows, m, "the number of rows")
        columns = n if columns is None else agree(node, columns, n, "the number of columns")
    assert rows is not None and columns is not None
    return rows, columns


def _compute_matmul_sum(node: Node, *arrays: Any) -> Any:
    """Compute matmul_sum with NumPy in float64, rounded once to the dtype of the first array.

    ``arrays`` are left and right matrices in turn; the result is a new one. ``node`` has the
    parameters ``transpose_a`` and ``transpose_b``.

    Raises: ShapeError if their number is odd or 0.
    """
    flip_a, flip_b = node.params["transpose_a"], node.params["transpose_b"]
    wide = [np.asarray(x, np.float64) for x in arrays]
    pairs = [(a.T if flip_a else a, b.T if flip_b else b) for a, b in _operand_pairs(node, wide)]
    total: Any = sum(a @ b for a, b in pairs)
    return total.astype(arrays[0].dtype)


def _matmul_sum_gradient(node: Node, dy: Entry) -> list[Entry]:
    """Return the gradients of all inputs, left and right matrices in turn.

    ``dy`` is the gradient of the sum. ``node`` is the forward node.

    Raises: ShapeError if a rank is unknown.
    """
    gradients: list[Entry] = []
    for a, b in _operand_pairs(node, node.inputs):
        gradients += matmul_gradient(matmul(a, b, **node.params).node, dy)
    return gradients


def sum_of_matmuls(node: Node, *operands: Entry) -> Entry:
    """Return a ``matmul_sum`` as products and additions, each of which rounds.

    Args:
        node: A node of ``matmul_sum``, whose parameters the products get.
        operands: Left and right matrices in turn, of one dtype. The shapes of the products are
            equal; others are broadcast, without an error.

    Raises:
        ShapeError: If their number is odd or 0, or two matrices of a pair do not fit.
        DTypeError: If the dtypes differ, or are bool.
    """
    products = [matmul(a, b, **node.params) for a, b in _operand_pairs(node, operands)]
    total: Entry = reduce(get_op("add"), products)
    return total


def _expand_matmul_sum(node: Node, *operands: Entry) -> Entry | None:
    """Expand a sum of products of a dtype that libraries do not have, such as float16.

    Returns None for float32, float64 and an unknown dtype.

    Args:
        node: A node of ``matmul_sum``, whose parameters the products get.
        operands: Left and right matrices in turn, of one dtype, one pair or more. The shapes of the
            products are equal; others are broadcast, without an error.

    Raises: ShapeError if the number of operands is odd, or two matrices of a pair do not fit;
    DTypeError if the dtypes differ, or are bool.
    """
    dtype = operands[0].dtype
    if dtype is None or dtype.name in LIBRARY_DTYPES:
        return None
    return sum_of_matmuls(node, *operands)


matmul_sum.set_attr("FExpand", _expand_matmul_sum)
matmul_sum.set_attr("FInferShape", _matmul_sum_shape)
matmul_sum.set_attr("FInferType", common_dtype("f"))
matmul_sum.set_attr("FCompute", _compute_matmul_sum)
matmul_sum.set_attr("FGradient", _matmul_sum_gradient)
matmul_sum.set_attr("TOpPattern", OpPattern.OPAQUE)
matmul_sum.set_attr("TOpCost", "expensive")
matmul_sum.set_attr("TLibraryCall", "gemm_sum")


# linear: a fully connected layer.


linear = register_op(
    "linear",
    num_inputs=-1,
    params={"num_hidden": None, "no_bias": False},
    doc="data @ transpose(weight) + bias, a fully connected layer: (…, inputs), (outputs, "
    "inputs), (outputs,) -> (…, outputs)",
)


def _linear_inputs(params: Any) -> list[str]:
    """Return the input names: data, weight and bias; no bias if ``params["no_bias"]`` is true."""
    return ["data", "weight"] if params["no_bias"] else ["data", "weight", "bias"]


def _hidden_units(node: Node, weight: Shape | None) -> Any:
    """Return the number of rows of the weight, from ``num_hidden`` or the weight's shape.

    None if neither is known; ``weight`` is None where its shape is unknown. ``node`` has the
    parameter ``num_hidden``, which may be None.

    Raises:
        ShapeError: If ``num_hidden`` is neither None nor an int >= 0, or the weight has another
            rank than 2 or another number of rows.
    """
    units = node.params["num_hidden"]
    if units is not None and (isinstance(units, bool) or not isinstance(units, int) or units < 0):
        raise ShapeError(f"{node.where} needs an int >= 0 as num_hidden, got {units!r}")
    if weight is None:
        return units
    if len(weight) != 2:
        raise ShapeError(
            f"{node.where} needs a weight of rank 2, got {show_shape(weight)}; reshape it to "
            f"(num_hidden, inputs)"
        )
    return weight[0] if units is None else agree(node, units, weight[0], "num_hidden")


def _linear_shape(node: Node, *shapes: Shape | None) -> Shape | None:
    """Infer the shape (…, n) from (…, k), (n, k), (n,); None while data or n is unknown.

    ``shapes`` are those of data, weight and, without ``no_bias``, bias; None where unknown.
    ``node`` has the parameters ``no_bias`` and ``num_hidden``.

    Raises:
        ShapeError: If the number of inputs, a rank or an extent does not fit, or ``num_hidden`` is
            no int >= 0.
    """
    input_count = 2 if node.params["no_bias"] else 3
    if len(shapes) != input_count:
        raise ShapeError(f"{node.where} takes {input_count} inputs, got {len(shapes)}")
    data, weight = shapes[:2]
    units = _hidden_units(node, weight)
    if data is None:
        return None
    if not data:
        raise ShapeError(f"{node.where} needs data of rank 1 or more, got (); insert expand_dims")
    if weight is not None:
        agree(node, data[-1], weight[1], "the last dimension of data and weight")
    if input_count == 3 and shapes[2] is not None and units is not None:
        if len(shapes[2]) != 1:
            raise ShapeError(f"{node.where} needs a bias of rank 1, got {show_shape(shapes[2])}")
        agree(node, units, shapes[2][0], "num_hidden and the length of bias")
    return None if units is None else (*data[:-1], units)


def _linear_back(
    node: Node, shapes: Sequence[Shape | None], outs: Sequence[Shape | None]
) -> list[Shape | None]:
    """Infer missing input shapes of data, weight and bias (FInferShapeBack).

    The number of units is that of num_hidden, of the weight's rows, or the last extent of the
    result. Weight and bias follow from it and data, data from weight and result.

    Args:
        node: The node.
        shapes: The shapes of the inputs, None where unknown.
        outs: The shapes of the outputs, None where unknown.

    Returns:
        A shape for each input, None where it remains unknown; known ones stay.

    Raises:
        ShapeError: If the weight is no matrix of ``num_hidden`` rows, or that is neither None nor
            an int >= 0.
    """
    inferred = list(shapes)
    data, weight = inferred[:2]
    units = _hidden_units(node, weight)
    if units is None and outs[0]:
        units = outs[0][-1]
    if data is None and outs[0] and weight is not None:
        inferred[0] = (*outs[0][:-1], weight[1])
    if weight is None and data and units is not None:
        inferred[1] = (units, data[-1])
    if len(inferred) == 3 and inferred[2] is None and units is not None:
        inferred[2] = (units,)
    return inferred


def _expand_linear(node: Node, data: Entry, weight: Entry, *bias: Entry) -> Entry:
    """Expand linear: data @ weight.T + bias; a vector of data is a row, and the result a vector.

    ``node`` is not used.

    Raises: ShapeError if the shapes do not fit, or the rank of data is unknown.
    """
    rank = len(known_shape(data))
    if rank == 1:
        data = get_op("expand_dims")(data, axis=0)
    out: Entry = matmul(data, weight, transpose_b=True)
    if rank == 1:
        out = get_op("squeeze")(out, axis=0)
    return get_op("add")(out, bias[0]) if bias else out


_linear_shape.__dict__["partial"] = True  # the weight's shape may be inferred backwards
linear.set_attr("FListInputNames", _linear_inputs)
linear.set_attr("FInferShape", _linear_shape)
linear.set_attr("FInferShapeBack", _linear_back)
linear.set_attr("FInferType", common_dtype("f"))
linear.set_attr("FExpand", _expand_linear)
linear.set_attr("TOpCost", "expensive")
