"""``tf.nn.rnn_cell``: recurrent cells."""

from passkit.frontends.tinyflow.missing_names import missing_name_handler
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
__getattr__ = missing_name_handler("tf.nn.rnn_cell", lambda: dict.fromkeys(__all__))
