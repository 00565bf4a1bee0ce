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
    from passkit.frontends.tf_graphdef.training.session import ModelSession

__all__ = ["ModelSession", "load", "save"]


def __getattr__(name: str) -> Any:
    """Return `ModelSession`, which is imported on first use.

    Raises:
        AttributeError: If the module has no attribute of this name.
    """
    if name == "ModelSession":  # imported on first use, since loading does not need it
        from passkit.frontends.tf_graphdef.training.session import ModelSession

        return ModelSession
    raise AttributeError(f"passkit.frontends.tf_graphdef has no {name!r}; it has {__all__}")


def save(graph: Any, path: str | PathLike[str] | None = None) -> bytes:
    """Write ``graph`` as a TensorFlow model and return the bytes of its GraphDef.

    A `pk.Graph` becomes a frozen graph: state variables are written as constants of their initial
    values. Tensors and operations of tinyflow (such as the loss, the train op and the initializer)
    are written with their variables, assignments and control dependencies, so that TensorFlow 1 and
    `ModelSession` can train them.

    Inputs and outputs keep their names as far as TensorFlow allows them; a second result of one
    node is called ``name_1``. Sizes that are known only at call time become shape arithmetic.

    Args:
        graph: A `pk.Graph`, or a tinyflow tensor or operation, a list of these (which keep the
            names that the program gave), or a dict of them by the names to write.
        path: File to write. A ``.pbtxt`` or ``.txt`` file gets the text form. None writes no file.

    Returns:
        The serialized GraphDef, in binary form whatever the file gets.

    Raises:
        ModelError: If ``graph`` is none of these or of two tinyflow graphs, operators have no
            equivalent in TensorFlow (at most 50 are named), a `pk.Graph` updates state or has state
            without initial values, the model has 2 GiB or more, or the file cannot be written.
        ShapeError: If the rank of a value of a `pk.Graph` cannot be inferred, or inferred shapes do
            not fit an operator; likewise DTypeError for dtypes.
        ArgumentError: If ``path`` is no path.
    """
    from passkit.frontends.tf_graphdef.export import save  # loading does not need it

    if path is not None:
        path = arguments.path("tf_graphdef.save: path", path)
    if isinstance(graph, Graph):
        return save(graph, path)
    from passkit.frontends.tf_graphdef.training.program_exporter import (
        save_program,  # needed for programs only
    )

    return save_program(graph, path)
