"""Passkit graphs as TensorFlow models in GraphDef form, written without TensorFlow."""

from passkit.frontends.tf_graphdef.export import op_exporters as _op_exporters  # noqa: F401 (registers)
from passkit.frontends.tf_graphdef.export.saving import graph_def, save

__all__ = ["graph_def", "save"]
