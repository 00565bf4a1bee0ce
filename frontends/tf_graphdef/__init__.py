"""TensorFlow models, as GraphDefs and SavedModels, read and written without TensorFlow.

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
    """Write ``graph`` as a TensorFlow model; the bytes of its GraphDef.

    A `pk.Graph` is written frozen. Tensors and operations of tinyflow, such as the loss, the train
    op and the initializer, are written with their variables, the writes of these and what orders
    them: TensorFlow 1 and `Session` train it. A dict of them says what each is called; in a list
    they keep the names that the program gave.

    A ``.pbtxt`` file gets the text form. Inputs and outputs keep their names, as far as TensorFlow
    allows them; a second result of one node is called ``name_1``. State variables are written as
    constants of their initial values. Sizes known only in a call become arithmetic on shapes.

    Raises: ModelError naming each operator that TensorFlow has nothing for, a graph that updates
    state, and a model of 2 GiB or more.
    """
    from passkit.frontends.tf_graphdef.export import save  # who only reads does not pay for it

    if path is not None:
        path = arguments.path("tf_graphdef.save: path", path)
    if isinstance(graph, Graph):
        return save(graph, path)
    from passkit.frontends.tf_graphdef.training.saving import save_program  # nor does who freezes

    return save_program(graph, path)
