"""Export of passkit graphs as TensorFlow GraphDefs, without TensorFlow."""

from passkit.frontends.tf_graphdef.export import op_exporters as _op_exporters  # noqa: F401 (registers)
from passkit.frontends.tf_graphdef.export.graph_exporter import graph_def, save

__all__ = ["graph_def", "save"]
