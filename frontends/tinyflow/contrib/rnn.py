"""``tf.contrib.rnn``: recurrent cells and networks of ``tf.nn`` under older names."""

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
from passkit.frontends.tinyflow.nn.recurrent import static_bidirectional_rnn, static_rnn

__all__ = [
    "BasicLSTMCell",
    "BasicRNNCell",
    "DropoutWrapper",
    "GRUCell",
    "LSTMCell",
    "LSTMStateTuple",
    "MultiRNNCell",
    "RNNCell",
    "static_bidirectional_rnn",
    "static_rnn",
]
__getattr__ = missing_name_handler("tf.contrib.rnn", lambda: dict.fromkeys(__all__))
