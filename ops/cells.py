"""Recurrent cells: one step of a network, from an input and a state to the next state.

Weights are as in Keras: ``kernel`` is (inputs, gates * units), ``recurrent`` is (units, gates *
units). A step is two products and one kernel for all gates.
"""

from __future__ import annotations

from typing import Any

from passkit.errors import GraphError, ShapeError
from passkit.graph.infer import agree, show_shape
from passkit.graph.node import Entry, Node, known_shape
from passkit.ops.composites import composite
from passkit.ops.helpers import check_broadcast, make
from passkit.values.size import Shape

ACTIVATIONS = ("tanh", "relu", "sigmoid")


def _product(x: Entry, kernel: Entry) -> Entry:
    return make("matmul", x, kernel)


def _matrices(node: Node, gates: int, x: Shape, h: Shape, kernel: Shape, recurrent: Shape) -> Shape:
    """The state's shape, once those of the weights fit. Raises: ShapeError where they do not."""
    for what, s in (("x", x), ("h", h), ("kernel", kernel), ("recurrent", recurrent)):
        if len(s) != 2:
            raise ShapeError(f"{node.where} needs {what} of rank 2, got {show_shape(s)}")
    agree(node, x[0], h[0], "the number of examples in x and h")
    agree(node, kernel[0], x[1], "the rows of kernel and the length of x")
    agree(node, recurrent[0], h[1], "the rows of recurrent and the units of h")
    for what, n in (("kernel", kernel[1]), ("recurrent", recurrent[1])):
        agree(node, n, gates * h[1], f"the columns of {what} and {gates} times the units")
    return h


def _gate(z: Entry, k: int, units: Any) -> Entry:
    rows = known_shape(z)[0]
    return make("slice", z, begin=(0, k * units), size=(rows, units))


def _simple_shape(
    node: Node, x: Shape, h: Shape, kernel: Shape, recurrent: Shape, bias: Shape
) -> Any:
    name = node.params["activation"]
    if name not in ACTIVATIONS:
        raise GraphError(
            f"{node.where} needs {', '.join(map(repr, ACTIVATIONS))} as activation, got {name!r}"
        )
    state = _matrices(node, 1, x, h, kernel, recurrent)
    check_broadcast(node, bias, state, "the bias")
    return state


def _simple(node: Node, x: Entry, h: Entry, kernel: Entry, recurrent: Entry, bias: Entry) -> Entry:
    """Source: Elman, Finding Structure in Time."""
    return make(node.params["activation"], _product(x, kernel) + _product(h, recurrent) + bias)


composite(
    "simple_rnn_cell",
    ["x", "h", "kernel", "recurrent", "bias"],
    _simple,
    "the next state: activation(x @ kernel + h @ recurrent + bias)",
    {"activation": "tanh"},
    shape=_simple_shape,
)


def _lstm_shape(
    node: Node, x: Shape, h: Shape, c: Shape, kernel: Shape, recurrent: Shape, bias: Shape
) -> Any:
    _matrices(node, 4, x, h, kernel, recurrent)
    _check_state(node, h, c, "c")
    check_broadcast(node, bias, (h[0], 4 * h[1]), "the bias")
    return h, h


def _check_state(node: Node, h: Shape, c: Shape, name: str) -> None:
    """Make sure that ``c`` is a state like ``h``. Raises: ShapeError where it is not."""
    if len(c) != 2:
        raise ShapeError(f"{node.where} needs {name} of rank 2, got {show_shape(c)}")
    for k in (0, 1):
        agree(node, c[k], h[k], f"dimension {k} of {name} and h")


def _lstm(
    node: Node, x: Entry, h: Entry, c: Entry, kernel: Entry, recurrent: Entry, bias: Entry
) -> tuple[Entry, Entry]:
    """Source: Gers, Schmidhuber and Cummins, Learning to Forget; gates in Keras's order i f c o."""
    z = _product(x, kernel) + _product(h, recurrent) + bias
    units = known_shape(h)[1]
    i, f, g, o = (_gate(z, k, units) for k in range(4))
    more = float(node.params["forget_bias"])
    kept = make("sigmoid", f + more if more else f) * c
    new = kept + make("sigmoid", i) * make("tanh", g)
    return make("sigmoid", o) * make("tanh", new), new


composite(
    "lstm_cell",
    ["x", "h", "c", "kernel", "recurrent", "bias"],
    _lstm,
    "the next h and c of a long short-term memory; gates lie in the order i, f, c, o",
    {"forget_bias": 0.0},
    shape=_lstm_shape,
    results=2,
)


def _block_shape(node: Node, x: Shape, c: Shape, h: Shape, w: Shape, bias: Shape) -> Any:
    for what, s in (("x", x), ("h_prev", h), ("w", w)):
        if len(s) != 2:
            raise ShapeError(f"{node.where} needs {what} of rank 2, got {show_shape(s)}")
    agree(node, x[0], h[0], "the number of examples in x and h_prev")
    _check_state(node, h, c, "cs_prev")
    check_broadcast(node, bias, (h[0], 4 * h[1]), "the bias")
    agree(node, w[0], x[1] + h[1], "the rows of w and the lengths of x and h_prev together")
    agree(node, w[1], 4 * h[1], "the columns of w and 4 times the units")
    return (c,) * 7


def _block(node: Node, x: Entry, c: Entry, h: Entry, w: Entry, bias: Entry) -> tuple[Entry, ...]:
    """Source: TensorFlow's LSTMBlockCell without peepholes: gates in the order i, c, f, o."""
    units = known_shape(h)[1]
    z = _product(make("concat", x, h, axis=1), w) + bias
    i, ci, f, o = (_gate(z, k, units) for k in range(4))
    i, ci = make("sigmoid", i), make("tanh", ci)
    f = make("sigmoid", f + float(node.params["forget_bias"]))
    o = make("sigmoid", o)
    cs = ci * i + c * f
    most = float(node.params["cell_clip"])
    if most > 0:
        cs = make("clip", cs, -most, most)
    co = make("tanh", cs)
    return i, cs, f, o, ci, co, co * o


composite(
    "lstm_block_cell",
    ["x", "cs_prev", "h_prev", "w", "b"],
    _block,
    "TensorFlow's LSTMBlockCell: i, cs, f, o, ci, co, h; w is (inputs + units, 4 * units) in the "
    "order i, c, f, o; cs is clipped where cell_clip is above 0",
    {"forget_bias": 1.0, "cell_clip": -1.0},
    shape=_block_shape,
    results=7,
)


def _gru_shape(node: Node, x: Shape, h: Shape, kernel: Shape, recurrent: Shape, bias: Shape) -> Any:
    state = _matrices(node, 3, x, h, kernel, recurrent)
    wanted = (*((2,) if node.params["reset_after"] else ()), 3 * h[1])
    if len(bias) != len(wanted):
        raise ShapeError(
            f"{node.where} needs a bias of shape {show_shape(wanted)}, got {show_shape(bias)}"
        )
    for k, (n, need) in enumerate(zip(bias, wanted, strict=True)):
        agree(node, n, need, f"dimension {k} of the bias")
    return state


def _gru(node: Node, x: Entry, h: Entry, kernel: Entry, recurrent: Entry, bias: Entry) -> Entry:
    """Source: Cho and others; gates in Keras's order z, r, h.

    With reset_after, as in cuDNN, the reset gate meets the product of h, which has a bias of its
    own; before, it meets h.
    """
    rows, units = known_shape(h)
    after = node.params["reset_after"]

    def part(matrix: Entry, k: int, which: int) -> Entry:
        """One gate's columns of a product, with one gate's bias."""
        row, one = ((which,), (1,)) if after else ((), ())
        own = make("slice", bias, begin=(*row, k * units), size=(*one, units))
        return make("slice", matrix, begin=(0, k * units), size=(rows, units)) + own

    a = _product(x, kernel)
    if after:
        b = _product(h, recurrent)
        z, r = (make("sigmoid", part(a, k, 0) + part(b, k, 1)) for k in range(2))
        new = make("tanh", part(a, 2, 0) + r * part(b, 2, 1))
    else:
        whole = known_shape(recurrent)[0]
        gates = make("slice", recurrent, begin=(0, 0), size=(whole, 2 * units))
        last = make("slice", recurrent, begin=(0, 2 * units), size=(whole, units))
        b = _product(h, gates)
        z, r = (make("sigmoid", part(a, k, 0) + _gate(b, k, units)) for k in range(2))
        new = make("tanh", part(a, 2, 0) + _product(r * h, last))
    return z * h + (1.0 - z) * new


composite(
    "gru_cell",
    ["x", "h", "kernel", "recurrent", "bias"],
    _gru,
    "the next state of a gated recurrent unit; gates lie in the order z, r, h; the bias is (2, 3 * "
    "units) with reset_after, else (3 * units,)",
    {"reset_after": True},
    shape=_gru_shape,
)
