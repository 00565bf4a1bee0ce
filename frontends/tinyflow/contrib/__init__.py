"""``tf.contrib``: layers with activation and regularizers, and older names of recurrent cells."""

from passkit.frontends.tinyflow.contrib import layers, rnn
from passkit.frontends.tinyflow.missing_names import missing_name_handler

__all__ = ["layers", "rnn"]
__getattr__ = missing_name_handler("tf.contrib", lambda: dict.fromkeys(__all__))
