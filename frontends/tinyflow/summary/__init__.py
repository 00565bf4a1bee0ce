"""``tf.summary``: data of runs for TensorBoard."""

from passkit.frontends.tinyflow.missing_names import missing_name_handler
from passkit.frontends.tinyflow.summary.values import histogram, merge, merge_all, scalar
from passkit.frontends.tinyflow.summary.writer import FileWriter

__all__ = ["FileWriter", "histogram", "merge", "merge_all", "scalar"]
__getattr__ = missing_name_handler("tf.summary", lambda: dict.fromkeys(__all__))
