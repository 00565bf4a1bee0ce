"""``tf.summary``: what TensorBoard shows of a run."""

from passkit.frontends.tinyflow.missing import lookup
from passkit.frontends.tinyflow.summary.values import histogram, merge, merge_all, scalar
from passkit.frontends.tinyflow.summary.writer import FileWriter

__all__ = ["FileWriter", "histogram", "merge", "merge_all", "scalar"]
__getattr__ = lookup("tf.summary", lambda: dict.fromkeys(__all__))
