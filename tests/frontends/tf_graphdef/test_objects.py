"""TensorFlow objects are recognized by their attributes; the classes here imitate them."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import passkit as pk
from passkit.errors import ModelError
from passkit.frontends import tf_graphdef
from tests.frontends.tf_graphdef.models import model, node, placeholder

WEIGHTS = np.array([1, 2, 3], np.float32)
FEED = np.array([[1, 1, 1], [2, 2, 2]], np.float32)


class Tensor:
    """A tensor of a graph, or one with a value."""

    def __init__(self, name: str, value: Any = None) -> None:
        self.name, self.op = f"{name}:0", SimpleNamespace(name=name)
        self.value = value
        self.shape = SimpleNamespace(num_elements=lambda: 3)

    def numpy(self) -> Any:
        """Return the value."""
        return self.value


class Variable(Tensor):
    """A variable with its handle."""

    def __init__(self, name: str, value: Any) -> None:
        super().__init__(name, value)
        self.handle = Tensor(f"{name}/handle")
        self.dtype = SimpleNamespace(as_numpy_dtype=value.dtype.type)
        self.shape = Shape(value.shape)


class Shape(tuple[int, ...]):
    """A shape, which counts its elements."""

    def num_elements(self) -> int:
        """Return the number of elements."""
        return int(np.prod(self))


class Concrete:
    """A concrete function: x times a variable plus a captured array."""

    def __init__(self, structured: Any = None) -> None:
        graph = model(
            placeholder("x", None, 3),
            node("Placeholder", "w", dtype={"type": 20}),
            placeholder("c", 3),
            node("ReadVariableOp", "r", "w", dtype=np.dtype("float32")),
            node("Mul", "m", "x", "r"),
            node("Add", "y", "m", "c"),
        )
        del graph.node[1].attr["dtype"]
        graph.node[1].attr["dtype"].type = 20
        variable, constant = Variable("weights", WEIGHTS), Tensor("const", WEIGHTS)
        self.name = "call"
        self.graph = SimpleNamespace(as_graph_def=lambda: graph, variables=[variable])
        self.captured_inputs = [variable.handle, constant]
        self.inputs = [Tensor("x"), Tensor("w"), Tensor("c")]
        self.outputs = [Tensor("y")]
        self.structured_outputs = structured


class Function:
    """A tf.function, which is traced on request."""

    __name__ = "my_function"

    def __init__(self, needs: str = "") -> None:
        self.needs = needs

    def get_concrete_function(self, *specs: Any) -> Concrete:
        """Return the function for arguments."""
        if self.needs:
            raise TypeError(self.needs)
        return Concrete({"result": None})


@pytest.mark.parametrize(
    ("source", "name"), [(Concrete(), "output"), (Concrete({"z": 1}), "z"), (Function(), "result")]
)
def test_captured_variables_and_constants_are_bound(source: Any, name: str) -> None:
    """Variables have the values of the process, and results the names of their structure."""
    graph = tf_graphdef.load(source)

    assert ([n.name for n in graph.inputs], [e.name for e in graph.outputs]) == (["x"], [name])
    np.testing.assert_array_equal(pk.interpret(graph, {"x": FEED})[0], FEED * WEIGHTS + WEIGHTS)


def test_unnamed_results_are_numbered() -> None:
    """Results without names are numbered."""
    function = Concrete()
    function.outputs = [Tensor("y"), Tensor("m")]

    assert [e.name for e in tf_graphdef.load(function).outputs] == ["output_0", "output_1"]


def test_functions_that_need_arguments_are_refused() -> None:
    """A function that cannot be traced without arguments is refused with advice."""
    with pytest.raises(
        ModelError, match="'my_function' needs argument types .*: 1 argument missing; give"
    ):
        tf_graphdef.load(Function("1 argument missing\nand more"))


def test_a_graph_is_loaded_by_its_graphdef() -> None:
    """A tf.Graph is loaded by its GraphDef."""
    graph = SimpleNamespace(
        as_graph_def=lambda: model(placeholder("x", 2, 3), node("Neg", "y", "x")),
        get_operations=list,
    )

    assert [e.name for e in tf_graphdef.load(graph).outputs] == ["y"]


Model = type("Model", (), {"__module__": "keras.src.models.model", "name": "net", "inputs": None})


def test_keras_models_are_traced_for_their_inputs(monkeypatch: pytest.MonkeyPatch) -> None:
    """A Keras model is traced by the imported TensorFlow for its declared inputs."""
    asked: list[Any] = []

    class Net(Model):  # type: ignore[misc, valid-type]
        inputs = (SimpleNamespace(shape=(None, 3), dtype="float32", name="input/1"),)

        def __call__(self, x: Any, training: bool) -> Any:
            asked.append((x, training))

    def function(call: Any) -> Any:
        def traced(*specs: Any) -> Concrete:
            call(*specs)
            return Concrete()

        return SimpleNamespace(get_concrete_function=traced)

    def spec(shape: Any, dtype: Any, name: str) -> Any:
        return shape, dtype, name

    with pytest.raises(
        ModelError, match="the Keras model 'net' needs the TensorFlow backend, .* give load"
    ):
        tf_graphdef.load(Model())
    monkeypatch.setitem(
        sys.modules, "tensorflow", SimpleNamespace(function=function, TensorSpec=spec)
    )  # type: ignore[arg-type]
    with pytest.raises(ModelError, match="Keras model 'net' needs declared inputs, .*; give load"):
        tf_graphdef.load(Model())
    assert len(tf_graphdef.load(Net()).outputs) == 1
    assert asked == [(((None, 3), "float32", "input_0"), False)]
