"""``tf.contrib``: older addresses of what stands elsewhere."""

from types import SimpleNamespace

from passkit.frontends.tinyflow import initializers
from passkit.frontends.tinyflow import layers as _layers
from passkit.frontends.tinyflow.missing import lookup
from passkit.frontends.tinyflow.nn import cells, recurrent

rnn = SimpleNamespace(
    BasicRNNCell=cells.BasicRNNCell,
    BasicLSTMCell=cells.BasicLSTMCell,
    GRUCell=cells.GRUCell,
    LSTMStateTuple=cells.LSTMStateTuple,
    MultiRNNCell=cells.MultiRNNCell,
    DropoutWrapper=cells.DropoutWrapper,
    static_rnn=recurrent.static_rnn,
    static_bidirectional_rnn=recurrent.static_bidirectional_rnn,
)
"""Recurrent cells and networks."""
layers = SimpleNamespace(
    flatten=_layers.flatten, xavier_initializer=initializers.glorot_uniform_initializer
)
"""What tf.layers has."""

__all__ = ["layers", "rnn"]
__getattr__ = lookup("tf.contrib", lambda: dict.fromkeys(__all__))
