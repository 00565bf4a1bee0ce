"""Cases of recurrent cells and blocks, and of Keras cells composed of operators."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from tests.frontends.tf_graphdef.reference.case import Case
from tests.frontends.tf_graphdef.reference.families.convolutions import draw

N, U = 3, 4
W, B = draw(N + U, 4 * U) / 2, draw(4 * U)
PEEP = [draw(U, seed=k) for k in (1, 2, 3)]


def cases(tf: Any) -> Iterator[Case]:
    """Yield all cases."""
    yield from _lstm_cell(tf)
    yield from _lstm_cell_grad(tf)
    yield from _lstm_block(tf)
    yield from _gru(tf)
    yield from _keras(tf)


def _lstm_cell(tf: Any) -> Iterator[Case]:
    for bias, clip, peep in ((1.0, 3.0, False), (0.0, -1.0, True), (0.5, 0.4, True)):
        for dtype in ("float32", "float16") if clip == 3 else ("float32",):
            inputs = {"w": W, "b": B, "wci": PEEP[0], "wcf": PEEP[1], "wco": PEEP[2]}
            inputs = {k: v.astype(dtype) for k, v in inputs.items()}
            yield Case(
                "LSTMBlockCell",
                f"forget_bias={bias} cell_clip={clip} use_peephole={peep}",
                lambda x, c, h, g=inputs, f=bias, k=clip, p=peep: tf.raw_ops.LSTMBlockCell(
                    x=x, cs_prev=c, h_prev=h, forget_bias=f, cell_clip=k, use_peephole=p, **g
                ),
                {
                    "x": draw(2, N, dtype=dtype),
                    "c": draw(2, U, dtype=dtype),
                    "h": draw(2, U, dtype=dtype, seed=9),
                },
            )


def _lstm_cell_grad(tf: Any) -> Iterator[Case]:
    def function(x: Any, c: Any, h: Any, dc: Any, dh: Any, peep: bool, arguments: Any) -> Any:
        how = {"x": x, "cs_prev": c, "h_prev": h, "use_peephole": peep, **arguments}
        i, cs, f, o, ci, co, _ = tf.raw_ops.LSTMBlockCell(**how, forget_bias=0.5, cell_clip=-1.0)
        gates = {"i": i, "cs": cs, "f": f, "o": o, "ci": ci, "co": co}
        return tf.raw_ops.LSTMBlockCellGrad(**how, **gates, cs_grad=dc, h_grad=dh)

    for peep, dtype in ((False, "float32"), (True, "float32"), (False, "float16")):
        arguments = {"w": W, "b": B, "wci": PEEP[0], "wcf": PEEP[1], "wco": PEEP[2]}
        arguments = {k: v.astype(dtype) for k, v in arguments.items()}
        inputs = {"x": draw(2, N, dtype=dtype)}
        inputs |= {k: draw(2, U, dtype=dtype, seed=n) for n, k in enumerate(("c", "h", "dc", "dh"))}
        yield Case(
            "LSTMBlockCellGrad",
            f"use_peephole={peep}",
            lambda *a, p=peep, g=arguments: function(*a, p, g),
            inputs,
        )


def _lstm_block(tf: Any) -> Iterator[Case]:
    """Yield LSTM blocks. For omitted steps TensorFlow writes zeros only to cs and h."""
    inputs = {"w": W, "b": B, "wci": PEEP[0], "wcf": PEEP[1], "wco": PEEP[2]}
    x = {"x": draw(5, 2, N), "c": draw(2, U), "h": draw(2, U, seed=9)}
    for length in (5, 3, 1):
        for peep in (False, True):
            yield Case(
                "BlockLSTM",
                f"seq_len_max={length} use_peephole={peep}",
                lambda x, c, h, p=peep, n=length: tf.raw_ops.BlockLSTM(
                    seq_len_max=tf.constant(n, tf.int64),
                    x=x,
                    cs_prev=c,
                    h_prev=h,
                    forget_bias=0.5,
                    cell_clip=2.0,
                    use_peephole=p,
                    **inputs,
                )[1 :: _some(n)],
                x,
                free=False,
            )
            yield Case(
                "BlockLSTMV2",
                f"seq_len_max={length} use_peephole={peep}",
                lambda x, c, h, p=peep, n=length: tf.raw_ops.BlockLSTMV2(
                    seq_len_max=tf.constant(n, tf.int64),
                    x=x,
                    cs_prev=c,
                    h_prev=h,
                    use_peephole=p,
                    **inputs,
                )[1 :: _some(n)],
                x,
                free=False,
            )
    yield Case(
        "BlockLSTMV2",
        "unknown length",
        lambda x, c, h, n: tf.raw_ops.BlockLSTMV2(
            seq_len_max=n[0], x=x, cs_prev=c, h_prev=h, **inputs
        ),
        {**x, "n": np.array([3])},
        free=False,
    )


def _some(steps: int) -> int:
    """Return the results to compare: all but the first, or cs and h."""
    return 1 if steps == 5 else 5


def _gru(tf: Any) -> Iterator[Case]:
    yield Case(
        "GRUBlockCell",
        "",
        lambda x, h: tf.raw_ops.GRUBlockCell(
            x=x, h_prev=h, w_ru=W[:, : 2 * U], w_c=W[:, 2 * U : 3 * U], b_ru=B[: 2 * U], b_c=B[:U]
        ),
        {"x": draw(2, N), "h": draw(2, U)},
    )


def _keras(tf: Any) -> Iterator[Case]:
    layers = tf.keras.layers
    for name, cell, states in (
        ("SimpleRNNCell", layers.SimpleRNNCell(U), 1),
        ("LSTMCell", layers.LSTMCell(U), 2),
        ("GRUCell", layers.GRUCell(U), 1),
        ("GRUCell reset_after=False", layers.GRUCell(U, reset_after=False), 1),
    ):
        cell.build((None, N))
        weights = [draw(*w.shape, seed=k) / 2 for k, w in enumerate(cell.trainable_variables)]
        inputs = {"x": draw(2, N), "h": draw(2, U, seed=8), "c": draw(2, U, seed=9)}
        inputs = dict(list(inputs.items())[: 1 + states])

        def function(x: Any, *given: Any, cell: Any = cell, w: Any = weights) -> Any:
            (out, state), _ = cell.stateless_call(w, cell.non_trainable_variables, x, list(given))
            return tf.nest.flatten([out, state])[1:]

        yield Case("MatMul", f"keras {name}", function, inputs)
