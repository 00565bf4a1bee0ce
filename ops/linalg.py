"""Products of matrices: contractions that libraries run and kernels take up as epilogues."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from passkit import ast
from passkit.errors import ShapeError
from passkit.graph.call import promote_operands
from passkit.graph.infer import agree, broadcast_shapes, show_shape
from passkit.graph.node import Entry, Node, known_shape
from passkit.graph.op import OpPattern, get_op, register_op
from passkit.ops.helpers import common_dtype, make, show_shapes
from passkit.values.size import Shape, numel

if TYPE_CHECKING:
    from passkit.ast import Contract

matmul = register_op(
    "matmul",
    num_inputs=2,
    params={"transpose_a": False, "transpose_b": False},
    doc="the product of matrices in the last two dimensions; those before broadcast",
)


def _contract(node: Node, a: Shape, b: Shape) -> Contract:
    """Batch and extents of a product. Raises: ShapeError when the inner extents differ."""
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
    """Shapes: (…, m, k), (…, k, n) -> (…, m, n)."""
    found = _contract(node, a, b)
    return (*found.batch, found.m, found.n)


matmul.set_attr("FInferShape", _matmul_shape)
matmul.set_attr("FInferType", common_dtype("iuf"))
matmul.set_attr("FContract", lambda node: _contract(node, *map(known_shape, node.inputs)))
matmul.set_attr("TOpPattern", OpPattern.CONTRACT)
matmul.set_attr("TOpCost", "expensive")
matmul.set_attr("TLibraryCall", "gemm")
matmul.set_attr("TOperator", "@")


def _whole_product(node: Node, a: Entry, b: Entry) -> Entry | None:
    """Integers, for which there is no library, as sums of products: lanes along the columns.

    A transposed b is read along its rows instead, which are what is summed.
    """
    assert a.dtype is not None
    if not a.dtype.is_integer:
        return None
    if node.params["transpose_a"]:
        a = make("swapaxes", a, axis1=-1, axis2=-2)
    if node.params["transpose_b"]:
        rows, columns, axis = make("expand_dims", a, axis=-2), make("expand_dims", b, axis=-3), -1
    else:
        rows, columns, axis = make("expand_dims", a, axis=-1), make("expand_dims", b, axis=-3), -2
    return make("reduce_sum", rows * columns, axis=axis)


matmul.set_attr("FExpand", _whole_product)


def _at(x: Any, y: Any) -> Entry:
    """``x @ y`` in Python: vectors count as a row on the left and a column on the right."""
    a, b = promote_operands("@", (x, y))
    if a.shape is None or b.shape is None:  # as in a pattern: taken to be matrices
        return matmul(a, b)  # type: ignore[no-any-return]
    row, column = len(known_shape(a)) == 1, len(known_shape(b)) == 1
    expand, squeeze = get_op("expand_dims"), get_op("squeeze")
    a = expand(a, axis=0) if row else a
    b = expand(b, axis=1) if column else b
    out = matmul(a, b)
    if row or column:
        out = squeeze(out, axis=(-2,) * row + (-1,) * column)
    return out  # type: ignore[no-any-return]


matmul.set_attr("FOperator", _at)


def _product(a: Entry, b: Entry, flip_a: bool, flip_b: bool) -> Entry:
    return make("matmul", a, b, transpose_a=flip_a, transpose_b=flip_b)


def matmul_gradient(node: Node, dy: Entry) -> list[Entry]:
    """By the left operand ``dy bᵀ``, by the right one ``aᵀ dy``; batches that broadcast add up."""
    (a, b), flip_a, flip_b = node.inputs, node.params["transpose_a"], node.params["transpose_b"]
    da = _product(b, dy, flip_b, True) if flip_a else _product(dy, b, False, not flip_b)
    rank = len(known_shape(a))
    if len(known_shape(b)) == 2 and rank > 2 and not flip_a:
        a, dy = _rows(a), _rows(dy)  # one product sums over the batch
    db = _product(dy, a, True, flip_a) if flip_b else _product(a, dy, not flip_a, False)
    return [da, db]


def _rows(x: Entry) -> Entry:
    shape = known_shape(x)
    return make("reshape", x, shape=(numel(shape[:-1]), shape[-1]))


matmul.set_attr("FGradient", matmul_gradient)

LIBRARIES = ("float32", "float64")
"""The dtypes of which libraries have products."""


def _summed(nodes: Sequence[Node]) -> Entry | None:
    """The sum of products as one operator; None where no library serves them all alike."""
    first = nodes[0]
    for node in nodes:
        dtype = node.entries[0].dtype
        plain = all(len(known_shape(e)) == 2 for e in node.inputs)
        if not plain or node.params != first.params or dtype is None or dtype.name not in LIBRARIES:
            return None
    return make("matmul_sum", *(e for n in nodes for e in n.inputs), **first.params)


def _whole(node: Node) -> Entry | None:
    """The gradient of a filter: windows one below the other, transposed, times a matrix."""
    left, right = (e.node for e in node.inputs)
    dtype, flips = node.entries[0].dtype, (node.params["transpose_a"], node.params["transpose_b"])
    if flips != (True, False) or dtype is None or dtype.name != "float32":
        return None
    view = left.inputs[0].node if _is(left, "reshape") else left
    if view is left or not _is(view, "windows") or view.params["fill"] != 0:
        return None
    shape, out = known_shape(view.entries[0]), known_shape(node.entries[0])
    front = len(known_shape(view.inputs[0])) - 1
    rows, window = known_shape(left.entries[0]), shape[front:-1]
    if not all(isinstance(n, int) for n in (*shape, *rows, *out)) or numel(window) == 1:
        return None
    if rows != (numel(shape[:front]), numel(shape[front:])):
        return None
    over, given = (*shape[:front], out[-1]), node.inputs[1]
    if _is(right, "reshape") and known_shape(right.inputs[0]) == over:
        given = right.inputs[0]
    else:
        given = make("reshape", given, shape=over)
    params = {k: view.params[k] for k in ("strides", "padding", "dilations")}
    made = make("window_products", view.inputs[0], given, window=window, **params)
    return make("reshape", made, shape=out)


def _is(node: Node, name: str) -> bool:
    return node.op is not None and node.op.name == name


matmul.set_attr("FContractSum", _summed)
matmul.set_attr("FLibraryPattern", _whole)

linear = register_op(
    "linear",
    num_inputs=-1,
    params={"num_hidden": None, "no_bias": False},
    doc="data times the transpose of weight, plus bias: a fully connected layer",
)
linear.set_attr(
    "FListInputNames",
    lambda params: ["data", "weight"] if params["no_bias"] else ["data", "weight", "bias"],
)


def _num_hidden(node: Node, shapes: Sequence[Shape | None]) -> Any:
    """Rows of the weight, from the parameter or the weight itself."""
    given, weight = node.params["num_hidden"], shapes[1]
    if given is not None and (isinstance(given, bool) or not isinstance(given, int) or given < 0):
        raise ShapeError(f"{node.where} needs an int >= 0 as num_hidden, got {given!r}")
    if weight is None:
        return given
    if len(weight) != 2:
        raise ShapeError(
            f"{node.where} needs a weight of rank 2, got {show_shape(weight)}; reshape it to "
            f"(num_hidden, inputs)"
        )
    return weight[0] if given is None else agree(node, given, weight[0], "num_hidden")


def _linear_shape(node: Node, *shapes: Shape | None) -> Shape | None:
    """Shapes: (…, k), (n, k), (n,) -> (…, n)."""
    wanted = 2 if node.params["no_bias"] else 3
    if len(shapes) != wanted:
        raise ShapeError(f"{node.where} takes {wanted} inputs, got {len(shapes)}")
    data, weight = shapes[:2]
    hidden = _num_hidden(node, shapes)
    if data is None:
        return None
    if not data:
        raise ShapeError(f"{node.where} needs data of rank 1 or more, got (); insert expand_dims")
    if weight is not None:
        agree(node, data[-1], weight[1], "the last dimension of data and weight")
    if wanted == 3 and shapes[2] is not None and hidden is not None:
        if len(shapes[2]) != 1:
            raise ShapeError(f"{node.where} needs a bias of rank 1, got {show_shape(shapes[2])}")
        agree(node, hidden, shapes[2][0], "num_hidden and the length of bias")
    return None if hidden is None else (*data[:-1], hidden)


def _linear_back(
    node: Node, shapes: Sequence[Shape | None], outs: Sequence[Shape | None]
) -> list[Shape | None]:
    """Weight and bias follow from data and num_hidden, data from weight and result."""
    found = list(shapes)
    data, weight = found[:2]
    hidden = _num_hidden(node, shapes)
    if hidden is None and outs[0]:
        hidden = outs[0][-1]
    if data is None and outs[0] and weight is not None:
        found[0] = (*outs[0][:-1], weight[1])
    if weight is None and data and hidden is not None:
        found[1] = (hidden, data[-1])
    if len(found) == 3 and found[2] is None and hidden is not None:
        found[2] = (hidden,)
    return found


def _linear_expand(node: Node, data: Entry, weight: Entry, *bias: Entry) -> Entry:
    rank = len(known_shape(data))
    if rank == 1:
        data = get_op("expand_dims")(data, axis=0)
    out: Entry = matmul(data, weight, transpose_b=True)
    if rank == 1:
        out = get_op("squeeze")(out, axis=0)
    return get_op("add")(out, bias[0]) if bias else out


_linear_shape.__dict__["partial"] = True  # the weight's shape may be what is asked for
linear.set_attr("FInferShape", _linear_shape)
linear.set_attr("FInferShapeBack", _linear_back)
linear.set_attr("FInferType", common_dtype("f"))
linear.set_attr("FExpand", _linear_expand)
linear.set_attr("TOpCost", "expensive")
