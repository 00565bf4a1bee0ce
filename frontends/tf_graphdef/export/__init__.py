"""Passkit graphs as TensorFlow models in GraphDef form, written without TensorFlow."""

from passkit.frontends.tf_graphdef.export import rows as _rows  # noqa: F401  (enters the operators)
from passkit.frontends.tf_graphdef.export.saving import graph_def, save

__all__ = ["graph_def", "save"]
