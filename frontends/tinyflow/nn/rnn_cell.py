"""``tf.nn.rnn_cell``: recurrent cells."""

from passkit.frontends.tinyflow.missing import lookup
from passkit.frontends.tinyflow.nn.cells import (
    BasicLSTMCell,
    BasicRNNCell,
    DropoutWrapper,
    GRUCell,
    LSTMCell,
    LSTMStateTuple,
    MultiRNNCell,
    RNNCell,
)

__all__ = [
    "BasicLSTMCell",
    "BasicRNNCell",
    "DropoutWrapper",
    "GRUCell",
    "LSTMCell",
    "LSTMStateTuple",
    "MultiRNNCell",
    "RNNCell",
]
__getattr__ = lookup("tf.nn.rnn_cell", lambda: dict.fromkeys(__all__))
