"""Import and export TensorFlow models (GraphDefs and SavedModels) without TensorFlow.

>>> from passkit.frontends import tf_graphdef
>>> graph = tf_graphdef.load("examples/models/digits.pb")
>>> [node.name for node in graph.inputs], [entry.name for entry in graph.outputs]
(['x'], ['probabilities'])
"""

from os import PathLike
from typing import TYPE_CHECKING, Any

from passkit.frontends.tf_graphdef import control_flow as _control_flow  # noqa: F401  (registers)
from passkit.frontends.tf_graphdef import op_importers as _op_importers  # noqa: F401  (registers)
from passkit.frontends.tf_graphdef import resources as _resources  # noqa: F401  (registers)
from passkit.frontends.tf_graphdef.importer import load
from passkit.graph.graph import Graph
from passkit.values import arguments

if TYPE_CHECKING:
    from passkit.frontends.tf_graphdef.training.session import Session

__all__ = ["Session", "load", "save"]


def __getattr__(name: str) -> Any:
    if name == "Session":  # who only loads does not pay for it
        from passkit.frontends.tf_graphdef.training.session import Session

        return Session
    raise AttributeError(f"passkit.frontends.tf_graphdef has no {name!r}; it has {__all__}")


def save(graph: Any, path: str | PathLike[str] | None = None) -> bytes:
    """Write ``graph`` as a TensorFlow model and return the bytes of its GraphDef.

    A `pk.Graph` becomes a frozen graph: state variables are written as constants of their initial
    values. Tensors and operations of tinyflow (such as the loss, the train op and the initializer)
    are written with their variables, assignments and control dependencies, so that TensorFlow 1 and
    `Session` can train them.

    Inputs and outputs keep their names as far as TensorFlow allows them; a second result of one
    node is called ``name_1``. Sizes that are known only at call time become shape arithmetic.

    Args:
        graph: A `pk.Graph`, or a tinyflow tensor or operation, a list of these (which keep the
            names that the program gave), or a dict of them by the names to write.
        path: File to write. A ``.pbtxt`` file gets the text form. None writes no file.

    Returns:
        The serialized GraphDef.

    Raises:
        ModelError: If operators have no equivalent in TensorFlow (all are named), if the graph
            updates state, or if the model has 2 GiB or more.
    """
    from passkit.frontends.tf_graphdef.export import save  # who only reads does not pay for it

    if path is not None:
        path = arguments.path("tf_graphdef.save: path", path)
    if isinstance(graph, Graph):
        return save(graph, path)
    from passkit.frontends.tf_graphdef.training.program_exporter import (
        save_program,  # nor does who freezes
    )

    return save_program(graph, path)
