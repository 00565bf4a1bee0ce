"""TensorFlow models, as GraphDefs and SavedModels, read without TensorFlow.

>>> from passkit.frontends import tf_graphdef
>>> graph = tf_graphdef.load("examples/models/digits.pb")
>>> [node.name for node in graph.inputs], [entry.name for entry in graph.outputs]
(['x'], ['probabilities'])
"""

from passkit.frontends.tf_graphdef import rows as _rows  # noqa: F401  (enters the operators)
from passkit.frontends.tf_graphdef import structures as _structures  # noqa: F401  (so does this)
from passkit.frontends.tf_graphdef.importer import load

__all__ = ["load"]
