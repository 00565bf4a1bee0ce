"""``tf.contrib``: layers with an activation of their own, and older addresses."""

from passkit.frontends.tinyflow.contrib import layers, rnn
from passkit.frontends.tinyflow.missing import lookup

__all__ = ["layers", "rnn"]
__getattr__ = lookup("tf.contrib", lambda: dict.fromkeys(__all__))
