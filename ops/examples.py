"""Examples: a call of each operator that variables of one dtype and shape (4, 6) do not fit.

A row has the operator's name, its inputs, and parameters other than the defaults. Inputs are dtype
and shape; T is the dtype at hand, and ``state`` a state variable of it. The reference pages are made from
these calls.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from passkit.dtype import DType, dtype_of
from passkit.node import Entry, state, var
from passkit.op import FExample
from passkit.registry import Setting, calling_place, put


def example(name: str, inputs: str, **params: Any) -> None:
    """Set FExample; the operator itself need not be registered yet."""
    made = Setting(_maker(inputs, params), 10, calling_place(), f"op {name}")
    put(FExample.key, name, made)


def _maker(inputs: str, params: dict[str, Any]) -> Callable[[DType], Any]:
    def make(dtype: DType) -> tuple[list[Entry], dict[str, Any]]:
        more = {k: dtype.name if v == "T" else v for k, v in params.items()}
        return [_input(f"x{k}", text, dtype) for k, text in enumerate(inputs.split())], more

    return make


def _input(name: str, text: str, dtype: DType) -> Entry:
    """A variable of what ``text`` says, such as ``T[4,6]``."""
    kind, _, shape = text.rstrip("]").partition("[")
    extents = tuple(int(n) for n in shape.split(",") if n)
    if kind == "state":
        return state(name, (extents, dtype))
    return var(name, extents, dtype if kind == "T" else dtype_of(kind))


example("alibi_bias", "T[3,4,4]")
example("assign", "state[4,6] T[4,6]")
example("broadcast_to", "T[6]", shape=(4, 6))
example("dropout", "T[5,7] int64[]")
example("group_norm", "T[2,3,5,6] T[6] T[6]", groups=3)
example("gru_cell", "T[3,4] T[3,5] T[4,15] T[5,15] T[2,15]")
example("gumbel_softmax", "T[5,7] int64[]")
example("instance_norm", "T[2,3,5,6] T[6] T[6]")
example("layer_norm", "T[4,9] T[9] T[9]", axis=-1)
example("linear", "T[4,6] T[5,6] T[5]")
example("lstm_block_cell", "T[3,4] T[3,5] T[3,5] T[9,20] T[20]")
example("lstm_cell", "T[3,4] T[3,5] T[3,5] T[4,20] T[5,20] T[20]")
example("masked_softmax", "T[5,7] bool[5,7]", axis=-1)
example("matmul", "T[4,6] T[6,5]")
example("nll_loss", "int32[5] T[5,7]")
example("pick_label", "T[5,7] int32[5]")
example("random_bernoulli", "T[5,7] int64[]")
example("random_bits", "int64[]", shape=(4, 6), dtype="T")
example("random_categorical", "T[4,6] int64[]")
example("random_exponential", "int64[]", shape=(4, 6), dtype="T")
example("random_gumbel", "int64[]", shape=(4, 6), dtype="T")
example("random_integers", "int64[]", shape=(4, 6), high=10, dtype="T")
example("random_laplace", "int64[]", shape=(4, 6), dtype="T")
example("random_logistic", "int64[]", shape=(4, 6), dtype="T")
example("random_normal", "int64[]", shape=(4, 6), dtype="T")
example("random_permutation", "int64[]", num=6)
example("random_truncated_normal", "int64[]", shape=(4, 6), dtype="T")
example("random_uniform", "int64[]", shape=(4, 6), dtype="T")
example("random_words", "int64[]", shape=(3, 5))
example("reshape", "T[4,6]", shape=(3, 8))
example("rms_norm", "T[4,9] T[9]")
example("shuffle", "T[4,6] int64[]")
example("simple_rnn_cell", "T[3,4] T[3,5] T[4,5] T[5,5] T[5]")
example("slice", "T[4,6]", begin=(1, 2), size=(2, 3))
example("sparse_softmax_cross_entropy_with_logits", "int32[5] T[5,7]")
example("split_key", "int64[]")
