"""Importers of recurrent cells, and of blocks of their steps."""

from __future__ import annotations

from passkit import ops
from passkit.errors import ModelError
from passkit.frontends.tf_graphdef.imported_value import ImportCall, ImportedValue
from passkit.frontends.tf_graphdef.proto import short
from passkit.frontends.tf_graphdef.registry import NODE_NBYTES, ImportResult, op_importer
from passkit.graph.infer import show_shape
from passkit.graph.node import Entry
from passkit.ops.layouts import as_dtype, widened
from passkit.values.size import Extent, Size

STEP_NBYTES = 60 * NODE_NBYTES
"""Approximate memory of one step of a block."""


def _gate(z: Entry, k: int, units: Extent) -> Entry:
    """Return columns k * units to (k + 1) * units of ``z``, of shape (batch, gates * units).

    Raises:
        ShapeError: If ``z`` has fewer columns.
    """
    gate: Entry = ops.slice(z, begin=(0, k * units), size=(z.shape[0], units))  # type: ignore[index]
    return gate


class _LstmCell:
    """An LSTM cell with TensorFlow's weights (inputs + units, 4 units) and optional peepholes.

    ``order`` is the order of the gates i, c, f and o in the weights.
    """

    def __init__(
        self,
        call: ImportCall,
        order: str,
        w: ImportedValue,
        peep: list[ImportedValue],
        b: ImportedValue,
    ) -> None:
        """Read weights and attributes of a cell.

        Attributes default to a ``cell_clip`` of 3 for "icfo" and of 0, none, for "ifco", a
        ``forget_bias`` of 1 for "icfo", while "ifco" has none, and no peepholes.

        Args:
            call: The node; its attributes are ``cell_clip``, ``forget_bias`` and ``use_peephole``.
            order: Order of the gates in the weights: "icfo" or, in BlockLSTMV2, "ifco".
            w: Weights (inputs + units, 4 units).
            peep: Peephole weights of i, f and o, each (units,); read only if ``use_peephole`` is
                set.
            b: Bias (4 units,).

        Raises:
            ModelError: If the bias, or a peephole that is used, is not a vector or of unknown rank,
                or an attribute is of another kind.
        """
        has_peepholes = call.attr("use_peephole", "b", False)
        for vector in (b, *peep) if has_peepholes else (b,):
            call.rank(vector, 1)
        self.w, self.b = widened(w.entry), widened(b.entry)
        self.order = order
        self.clip = call.attr("cell_clip", "f", 3.0 if order == "icfo" else 0.0)
        self.forget = call.attr("forget_bias", "f", 1.0) if order == "icfo" else 0.0
        peepholes = [widened(v.entry) for v in peep]
        self.peep = peepholes if has_peepholes else None

    def step(self, x: Entry, c: Entry, h: Entry) -> tuple[Entry, ...]:
        """Compute one step; return i, cs, f, o, ci, co and h, each of shape (batch, units).

        Args:
            x: Input (batch, inputs).
            c: Cell state before (batch, units).
            h: Output before (batch, units).

        Returns:
            Input gate, new cell state, forget gate, output gate, cell input, tanh of the cell
            state, and new output.

        Raises:
            ShapeError: If the shapes of weights, input and state do not fit.
            DTypeError: If ``x``, ``h`` and the weights differ in dtype or are no floats, or another
                one is complex.
        """
        units = h.shape[1]  # type: ignore[index]
        z = ops.matmul(ops.concat(x, h, axis=1), self.w) + self.b
        gates = {name: _gate(z, k, units) for k, name in enumerate(self.order)}
        i, f, o = gates["i"], gates["f"] + self.forget, gates["o"]
        if self.peep:
            i, f = i + c * self.peep[0], f + c * self.peep[1]
        i, f, ci = ops.sigmoid(i), ops.sigmoid(f), ops.tanh(gates["c"])
        cs = ci * i + c * f
        if self.clip > 0:
            cs = ops.clip(cs, -self.clip, self.clip)
        o = ops.sigmoid(o + cs * self.peep[2] if self.peep else o)
        co = ops.tanh(cs)
        return i, cs, f, o, ci, co, o * co


def _check_floats(call: ImportCall, x: ImportedValue) -> None:
    """Raise ModelError if ``x``, an input of the node ``call``, is not of floats."""
    if not x.dtype.is_float:
        raise ModelError(f"{call.where} needs {short(x.name)} of floats, got {x.dtype}")


def _check_matrices(call: ImportCall, *values: ImportedValue) -> None:
    """Raise ModelError if one of ``values``, inputs of the node ``call``, is no matrix of floats.

    An unknown rank is refused, too.
    """
    for v in values:
        _check_floats(call, v)
        if len(call.shape(v)) != 2:
            shape = show_shape(call.shape(v))
            raise ModelError(f"{call.where} needs {short(v.name)} of rank 2, got {shape}")


@op_importer("LSTMBlockCell")
def _lstm_cell(
    call: ImportCall,
    x: ImportedValue,
    c: ImportedValue,
    h: ImportedValue,
    w: ImportedValue,
    wci: ImportedValue,
    wcf: ImportedValue,
    wco: ImportedValue,
    b: ImportedValue,
) -> ImportResult:
    """Import LSTMBlockCell: one step of an LSTM, with the seven results of `_LstmCell.step`.

    Args:
        call: The node.
        x: Input (batch, inputs).
        c: Cell state (batch, units).
        h: Output of the step before (batch, units).
        w: Weights (inputs + units, 4 units).
        wci: Peephole weights of the input gate.
        wcf: Peephole weights of the forget gate.
        wco: Peephole weights of the output gate.
        b: Bias (4 units,).

    Returns:
        Input gate, new cell state, forget gate, output gate, cell input, tanh of the cell state,
        and new output, each (batch, units).

    Raises:
        ModelError: If ``x``, ``c``, ``h`` or ``w`` is not of floats or not of rank 2, ``b`` or a
            peephole that is used not of rank 1, or an attribute is of another kind.
        ShapeError: If their sizes do not fit.
        DTypeError: If ``x``, ``h`` and ``w`` differ in dtype, where 16-bit floats count as float32,
            or the bias or a peephole that is used is complex.
    """
    _check_matrices(call, x, c, h, w)
    cell = _LstmCell(call, "icfo", w, [wci, wcf, wco], b)
    results = cell.step(*(widened(v.entry) for v in (x, c, h)))
    return tuple(as_dtype(e, x.entry) for e in results)


@op_importer("LSTMBlockCellGrad")
def _lstm_cell_grad(call: ImportCall, *inputs: ImportedValue) -> ImportResult:
    """Import LSTMBlockCellGrad, from the results of the forward cell.

    Args:
        call: The node.
        inputs: The eight inputs of LSTMBlockCell, its results i, cs, f, o, ci and co, and the
            gradients of cs and h.

    Returns:
        Gradients of the cell state (batch, units); of the gates before activation (batch, 4 units);
        and of the three peephole weights, each (units,), zeros without ``use_peephole``. All have
        the dtype of the first input.

    Raises:
        ModelError: If there are not 16 inputs, or an attribute is of another kind.
        ShapeError: If their shapes do not broadcast.
        DTypeError: If an input that is read is complex, or the inputs promote the gradients of the
            gates to different dtypes.
    """
    if len(inputs) != 16:
        raise ModelError(f"{call.where} needs 16 inputs, got {len(inputs)}")
    previous_state, i, cs, f, o, ci, co, dcs, dh = (
        widened(inputs[k].entry) for k in (1, 8, 9, 10, 11, 12, 13, 14, 15)
    )
    peep = [widened(v.entry) for v in inputs[4:7]]
    has_peep = call.attr("use_peephole", "b", False)
    do = o * (1.0 - o) * dh * co
    dcs = dcs + (1.0 - co * co) * dh * o
    if has_peep:
        dcs = dcs + do * peep[2]
    dci, df, di = (
        (1.0 - ci * ci) * dcs * i,
        f * (1.0 - f) * dcs * previous_state,
        i * (1.0 - i) * dcs * ci,
    )
    state_gradient = dcs * f
    peephole_gradients = [ops.zeros_like(p) for p in peep]
    if has_peep:
        state_gradient = state_gradient + di * peep[0] + df * peep[1]
        peephole_gradients = [
            ops.reduce_sum(e, axis=0) for e in (di * previous_state, df * previous_state, do * cs)
        ]
    gates = ops.concat(di, dci, df, do, axis=1)
    return tuple(as_dtype(e, inputs[0].entry) for e in (state_gradient, gates, *peephole_gradients))


@op_importer("BlockLSTM", "BlockLSTMV2")
def _lstm_block(
    call: ImportCall,
    length: ImportedValue,
    x: ImportedValue,
    c: ImportedValue,
    h: ImportedValue,
    w: ImportedValue,
    wci: ImportedValue,
    wcf: ImportedValue,
    wco: ImportedValue,
    b: ImportedValue,
) -> ImportResult:
    """Import BlockLSTM and BlockLSTMV2: LSTM steps, unrolled; from step ``length`` on, zeros.

    Args:
        call: The node.
        length: Number of steps to compute, known during import; it is clipped to 0 and the steps of
            x.
        x: Input (steps, batch, inputs).
        c: Initial cell state (batch, units).
        h: Initial output (batch, units).
        w: Weights (inputs + units, 4 units).
        wci: Peephole weights of the input gate (units,).
        wcf: Peephole weights of the forget gate (units,).
        wco: Peephole weights of the output gate (units,).
        b: Bias (4 units,).

    Returns:
        The seven results of `_LstmCell.step`, each (steps, batch, units).

    Raises:
        ModelError: If ``length`` or the number of steps is unknown, ``x``, ``c``, ``h`` or ``w`` is
            not of floats, ``c``, ``h`` or ``w`` is not of rank 2, ``x`` not of rank 3, the bias or
            a used peephole not of rank 1, an attribute is of another kind, or the steps exceed the
            memory budget.
        ShapeError: If the sizes do not fit.
        DTypeError: If ``x``, ``h`` and ``w`` differ in dtype, where 16-bit floats count as float32,
            the bias or a peephole that is used is complex, or another input promotes the states to
            another dtype. Not checked if no step is computed.
    """
    _check_floats(call, x)
    _check_matrices(call, c, h, w)
    shape = call.shape(x)
    if len(shape) != 3 or isinstance(shape[0], Size):
        raise ModelError(
            f"{call.where} needs {short(x.name)} as (steps, batch, inputs) with a known number of "
            f"steps, got {show_shape(shape)}; give load the shape of its input in shapes="
        )
    count = max(min(call.integer(length, "seq_len_max"), shape[0]), 0)
    call.budget.take(STEP_NBYTES * count, call.where)
    cell = _LstmCell(call, "icfo" if call.node.op == "BlockLSTM" else "ifco", w, [wci, wcf, wco], b)
    data, state, hidden = widened(x.entry), widened(c.entry), widened(h.entry)
    padding = ops.broadcast_to(
        ops.zeros_like(ops.expand_dims(hidden, axis=0)), shape=(shape[0] - count, *call.shape(h))
    )
    steps: list[tuple[Entry, ...]] = []
    for t in range(count):
        steps.append(cell.step(data[t], state, hidden))
        state, hidden = steps[-1][1], steps[-1][6]
    results = []
    for k in range(7):
        rows = [ops.expand_dims(step[k], axis=0) for step in steps]
        results.append(as_dtype(ops.concat(*rows, padding, axis=0), x.entry))
    return tuple(results)


@op_importer("GRUBlockCell")
def _gru_cell(
    call: ImportCall,
    x: ImportedValue,
    h: ImportedValue,
    w_ru: ImportedValue,
    w_c: ImportedValue,
    b_ru: ImportedValue,
    b_c: ImportedValue,
) -> ImportResult:
    """Import GRUBlockCell: one step of a GRU, in which r scales the state before its product.

    Args:
        call: The node.
        x: Input (batch, inputs).
        h: State (batch, units).
        w_ru: Weights of the reset and update gates (inputs + units, 2 units).
        w_c: Weights of the candidate (inputs + units, units).
        b_ru: Bias of the gates (2 units,).
        b_c: Bias of the candidate (units,).

    Returns:
        Reset gate, update gate, candidate and new state, each (batch, units).

    Raises:
        ModelError: If ``x``, ``h`` or a matrix of weights is not of floats or not of rank 2, or a
            bias not of rank 1.
        ShapeError: If their sizes do not fit.
        DTypeError: If ``x``, ``h`` and the weights differ in dtype, where 16-bit floats count as
            float32, ``b_ru`` promotes the gates to another, or ``b_c`` is complex.
    """
    _check_matrices(call, x, h, w_ru, w_c)
    for bias in (b_ru, b_c):
        call.rank(bias, 1)
    data, state = widened(x.entry), widened(h.entry)
    units = state.shape[1]  # type: ignore[index]
    z = ops.matmul(ops.concat(data, state, axis=1), widened(w_ru.entry)) + widened(b_ru.entry)
    r, u = (ops.sigmoid(_gate(z, k, units)) for k in (0, 1))
    c = ops.matmul(ops.concat(data, state * r, axis=1), widened(w_c.entry)) + widened(b_c.entry)
    c = ops.tanh(c)
    new = u * state + (1.0 - u) * c
    return tuple(as_dtype(e, x.entry) for e in (r, u, c, new))
