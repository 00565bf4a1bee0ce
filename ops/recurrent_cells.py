"""Recurrent cells: one time step, from an input and a state to the next state.

Weights are laid out as in Keras: ``kernel`` is (inputs, gates * units), ``recurrent`` is
(units, gates * units). A step is two matrix products and one kernel for all gates.
"""

from __future__ import annotations

from typing import Any

from passkit.errors import GraphError, ShapeError
from passkit.graph.infer import agree, show_shape
from passkit.graph.node import Entry, Node, known_shape
from passkit.ops.composites import composite
from passkit.ops.helpers import check_broadcast, make
from passkit.values.size import Extent, Shape

ACTIVATIONS = ("tanh", "relu", "sigmoid")
"""The operators that simple_rnn_cell takes as its parameter ``activation``."""


def _matmul(x: Entry, weights: Entry) -> Entry:
    """Return the matrix product of a batch of rows ``x`` with weights.

    Raises: ShapeError if they misfit, DTypeError if their dtypes differ.
    """
    return make("matmul", x, weights)


def _check_weights(
    node: Node, gates: int, x: Shape, h: Shape, kernel: Shape, recurrent: Shape
) -> Shape:
    """Check the shapes of input, state and weights, and return the state's shape.

    Args:
        node: The node to name in errors.
        gates: Number of gates, whose columns lie side by side in the weights.
        x: (examples, inputs).
        h: (examples, units).
        kernel: (inputs, gates * units).
        recurrent: (units, gates * units).

    Raises:
        ShapeError: If a rank is not 2, or extents differ.
    """
    for name, shape in (("x", x), ("h", h), ("kernel", kernel), ("recurrent", recurrent)):
        if len(shape) != 2:
            raise ShapeError(f"{node.where} needs {name} of rank 2, got {show_shape(shape)}")
    agree(node, x[0], h[0], "the number of examples in x and h")
    agree(node, kernel[0], x[1], "the rows of kernel and the length of x")
    agree(node, recurrent[0], h[1], "the rows of recurrent and the units of h")
    for name, columns in (("kernel", kernel[1]), ("recurrent", recurrent[1])):
        agree(node, columns, gates * h[1], f"the columns of {name} and {gates} times the units")
    return h


def _check_state(node: Node, h: Shape, c: Shape, name: str) -> None:
    """Check that ``c``, the shape of input ``name``, is that of the state ``h``.

    Raises: ShapeError, naming ``node``, if it is not.
    """
    if len(c) != 2:
        raise ShapeError(f"{node.where} needs {name} of rank 2, got {show_shape(c)}")
    for k in (0, 1):
        agree(node, c[k], h[k], f"dimension {k} of {name} and h")


def _state_extents(node: Node, h: Entry) -> tuple[Extent, Extent]:
    """Return the numbers of examples and of units, the extents of the state ``h``.

    Raises: ShapeError, naming ``node``, if the rank of ``h`` is not 2; also if it is unknown.
    """
    shape = known_shape(h)
    if len(shape) != 2:
        raise ShapeError(f"{node.where} needs a state of rank 2, got {show_shape(shape)}")
    return shape[0], shape[1]


def _gate(z: Entry, k: int, units: Any) -> Entry:
    """Return the columns of gate ``k`` of ``z``, of shape (examples, gates * units).

    Raises: ShapeError if a rank is unknown.
    """
    rows = known_shape(z)[0]
    return make("slice", z, begin=(0, k * units), size=(rows, units))


# The simple cell.


def _simple_rnn_shape(
    node: Node, x: Shape, h: Shape, kernel: Shape, recurrent: Shape, bias: Shape
) -> Any:
    """Infer the shape of the next state, that of ``h``, and check the parameter ``activation``.

    The shapes are x (examples, inputs), h (examples, units), kernel (inputs, units), recurrent
    (units, units), and bias, which broadcasts to h. ``node`` has the parameter ``activation``.

    Raises: GraphError if the activation is none of `ACTIVATIONS`, ShapeError if the shapes do not
    fit.
    """
    name = node.params["activation"]
    if name not in ACTIVATIONS:
        raise GraphError(
            f"{node.where} needs {', '.join(map(repr, ACTIVATIONS))} as activation, got {name!r}"
        )
    state = _check_weights(node, 1, x, h, kernel, recurrent)
    check_broadcast(node, bias, state, "the bias")
    return state


def _simple_rnn(
    node: Node, x: Entry, h: Entry, kernel: Entry, recurrent: Entry, bias: Entry
) -> Entry:
    """Expand simple_rnn_cell: activation(x @ kernel + h @ recurrent + bias), the next state.

    ``node`` has the parameter ``activation``.

    Source: Elman, Finding Structure in Time.

    Raises: ShapeError if the shapes do not fit, DTypeError if the dtypes of a product differ,
    RegistryError for an unknown activation.
    """
    return make(node.params["activation"], _matmul(x, kernel) + _matmul(h, recurrent) + bias)


composite(
    "simple_rnn_cell",
    inputs=["x", "h", "kernel", "recurrent", "bias"],
    expand=_simple_rnn,
    doc="the next state activation(x @ kernel + h @ recurrent + bias), of shape (examples, units)",
    params={"activation": "tanh"},
    shape=_simple_rnn_shape,
)


# Long short-term memory.


def _lstm_shape(
    node: Node, x: Shape, h: Shape, c: Shape, kernel: Shape, recurrent: Shape, bias: Shape
) -> Any:
    """Infer the shapes of the next h and c, both that of ``h``, (examples, units).

    The others are x (examples, inputs), kernel (inputs, 4 * units), recurrent (units, 4 * units),
    and bias, which broadcasts to (examples, 4 * units).

    Raises: ShapeError, naming ``node``, where the inputs do not fit.
    """
    _check_weights(node, 4, x, h, kernel, recurrent)
    _check_state(node, h, c, "c")
    check_broadcast(node, bias, (h[0], 4 * h[1]), "the bias")
    return h, h


def _lstm(
    node: Node, x: Entry, h: Entry, c: Entry, kernel: Entry, recurrent: Entry, bias: Entry
) -> tuple[Entry, Entry]:
    """Expand lstm_cell, with the gates in the order of Keras: i, f, c, o.

    ``x`` is the input, ``h`` and ``c`` are the state; ``kernel``, ``recurrent`` and ``bias`` are
    the weights. The parameter ``forget_bias`` of ``node`` is added to gate f. Source: Gers,
    Schmidhuber and Cummins, Learning to Forget.

    Returns: The next h and c.

    Raises: ShapeError if the shapes do not fit, or a rank is unknown; DTypeError if the dtypes of a
    product differ.
    """
    z = _matmul(x, kernel) + _matmul(h, recurrent) + bias
    units = _state_extents(node, h)[1]
    i, f, g, o = (_gate(z, k, units) for k in range(4))
    forget_bias = float(node.params["forget_bias"])
    remembered = make("sigmoid", f + forget_bias if forget_bias else f) * c
    next_c = remembered + make("sigmoid", i) * make("tanh", g)
    return make("sigmoid", o) * make("tanh", next_c), next_c


composite(
    "lstm_cell",
    inputs=["x", "h", "c", "kernel", "recurrent", "bias"],
    expand=_lstm,
    doc="the next h and c of a long short-term memory, each (examples, units). Gates are in the "
    "order i, f, c, o",
    params={"forget_bias": 0.0},
    shape=_lstm_shape,
    results=2,
)


def _lstm_block_shape(node: Node, x: Shape, c: Shape, h: Shape, w: Shape, bias: Shape) -> Any:
    """Infer the shapes of the seven results, all that of the state ``c``, (examples, units).

    The others are x (examples, inputs), h as c, w (inputs + units, 4 * units), and bias, which
    broadcasts to (examples, 4 * units).

    Raises: ShapeError, naming ``node``, where the inputs do not fit.
    """
    for name, shape in (("x", x), ("h_prev", h), ("w", w)):
        if len(shape) != 2:
            raise ShapeError(f"{node.where} needs {name} of rank 2, got {show_shape(shape)}")
    agree(node, x[0], h[0], "the number of examples in x and h_prev")
    _check_state(node, h, c, "cs_prev")
    check_broadcast(node, bias, (h[0], 4 * h[1]), "the bias")
    agree(node, w[0], x[1] + h[1], "the rows of w and the lengths of x and h_prev together")
    agree(node, w[1], 4 * h[1], "the columns of w and 4 times the units")
    return (c,) * 7


def _lstm_block(
    node: Node, x: Entry, c: Entry, h: Entry, w: Entry, bias: Entry
) -> tuple[Entry, ...]:
    """Expand TensorFlow's LSTMBlockCell without peepholes: gates in the order i, c, f, o.

    ``x`` is the input, ``c`` and ``h`` are the state, ``w`` and ``bias`` weights. The parameter
    ``forget_bias`` of ``node`` is added to gate f; a ``cell_clip`` above 0 bounds the cell state.

    Returns: i, cs, f, o, ci, co and h, as TensorFlow calls them.

    Raises: ShapeError if the shapes do not fit, or a rank is unknown; DTypeError if the dtypes of a
    product differ.
    """
    units = _state_extents(node, h)[1]
    z = _matmul(make("concat", x, h, axis=1), w) + bias
    i, ci, f, o = (_gate(z, k, units) for k in range(4))
    i, ci = make("sigmoid", i), make("tanh", ci)
    f = make("sigmoid", f + float(node.params["forget_bias"]))
    o = make("sigmoid", o)
    cs = ci * i + c * f
    cell_clip = float(node.params["cell_clip"])
    if cell_clip > 0:
        cs = make("clip", cs, -cell_clip, cell_clip)
    co = make("tanh", cs)
    return i, cs, f, o, ci, co, co * o


composite(
    "lstm_block_cell",
    inputs=["x", "cs_prev", "h_prev", "w", "b"],
    expand=_lstm_block,
    doc="one step of TensorFlow's LSTMBlockCell: seven results i, cs, f, o, ci, co, h of shape "
    "(examples, units). w is (inputs + units, 4 * units) in the order i, c, f, o",
    params={"forget_bias": 1.0, "cell_clip": -1.0},
    shape=_lstm_block_shape,
    results=7,
)


# The gated recurrent unit.


def _gru_shape(node: Node, x: Shape, h: Shape, kernel: Shape, recurrent: Shape, bias: Shape) -> Any:
    """Infer the shape of the next state, that of ``h``, (examples, units).

    The others are x (examples, inputs), kernel (inputs, 3 * units), recurrent (units, 3 * units),
    and bias (3 * units,), or with ``reset_after`` (2, 3 * units), a row for each product. ``node``
    has the parameter ``reset_after``.

    Raises: ShapeError where the inputs do not fit.
    """
    state = _check_weights(node, 3, x, h, kernel, recurrent)
    bias_shape = (2, 3 * h[1]) if node.params["reset_after"] else (3 * h[1],)
    if len(bias) != len(bias_shape):
        raise ShapeError(
            f"{node.where} needs a bias of shape {show_shape(bias_shape)}, got {show_shape(bias)}"
        )
    for k, (n, needed) in enumerate(zip(bias, bias_shape, strict=True)):
        agree(node, n, needed, f"dimension {k} of the bias")
    return state


def _gru(node: Node, x: Entry, h: Entry, kernel: Entry, recurrent: Entry, bias: Entry) -> Entry:
    """Expand gru_cell to the next state, with the gates in the order of Keras: z, r, h.

    With ``reset_after``, as in cuDNN, the reset gate multiplies the product of h, which has its own
    bias; otherwise it multiplies h. ``x`` is the input, ``h`` the state; ``kernel``, ``recurrent``
    and ``bias`` are the weights. Source: Cho and others, Learning Phrase Representations. ``node``
    has the parameter ``reset_after``.

    Raises: ShapeError if the shapes do not fit, or a rank is unknown; DTypeError if the dtypes of a
    product differ.
    """
    rows, units = _state_extents(node, h)
    reset_after = node.params["reset_after"]

    def biased_gate(product: Entry, k: int, bias_row: int) -> Entry:
        """Return the columns of gate ``k`` of a product plus the gate's part of the bias.

        With ``reset_after`` that is in row ``bias_row`` of the bias, which otherwise is a vector.
        """
        row_begin, row_size = ((bias_row,), (1,)) if reset_after else ((), ())
        gate_bias = make("slice", bias, begin=(*row_begin, k * units), size=(*row_size, units))
        return make("slice", product, begin=(0, k * units), size=(rows, units)) + gate_bias

    a = _matmul(x, kernel)
    if reset_after:
        b = _matmul(h, recurrent)
        z, r = (make("sigmoid", biased_gate(a, k, 0) + biased_gate(b, k, 1)) for k in range(2))
        candidate = make("tanh", biased_gate(a, 2, 0) + r * biased_gate(b, 2, 1))
    else:
        height = known_shape(recurrent)[0]
        gate_weights = make("slice", recurrent, begin=(0, 0), size=(height, 2 * units))
        state_weights = make("slice", recurrent, begin=(0, 2 * units), size=(height, units))
        b = _matmul(h, gate_weights)
        z, r = (make("sigmoid", biased_gate(a, k, 0) + _gate(b, k, units)) for k in range(2))
        candidate = make("tanh", biased_gate(a, 2, 0) + _matmul(r * h, state_weights))
    return z * h + (1.0 - z) * candidate


composite(
    "gru_cell",
    inputs=["x", "h", "kernel", "recurrent", "bias"],
    expand=_gru,
    doc="the next state of a gated recurrent unit, (examples, units). Gates are in the order z, "
    "r, h; bias is (2, 3 * units) with reset_after, else (3 * units,)",
    params={"reset_after": True},
    shape=_gru_shape,
)
