"""Every public name has TensorFlow 1's parameters, and each parameter has an effect."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from typing import Any

import pytest

from passkit.errors import PasskitError
from passkit.frontends import tinyflow as tf
from tests.frontends.tinyflow.all_cases import CASES
from tests.frontends.tinyflow.page import PAGE, page
from tests.frontends.tinyflow.surface import (
    SIGNATURES,
    CallCase,
    CombinedValue,
    RejectedValue,
    observe_call,
    parameters,
    resolve_name,
)


def test_cases_cover_all_documented_names() -> None:
    """Each documented name has a case, and each case a documented name."""
    assert CASES.keys() == SIGNATURES.keys()


WITHOUT_CASES = {
    "convert_to_tensor",
    "get_variable_scope",
    "infer_variable_shapes",
    "normal",
}
"""Exported functions that other tests cover."""


def test_every_exported_function_is_documented() -> None:
    """A function of the module is documented by its signature and a case."""
    exported = {
        name
        for name, value in vars(tf).items()
        if inspect.isfunction(value)
        and value.__module__.startswith(tf.__name__)
        and not name.startswith("_")
        and not name.endswith("_")
        and name != "missing_name_handler"
    }

    assert exported - SIGNATURES.keys() == WITHOUT_CASES


@pytest.mark.parametrize("name", SIGNATURES)
def test_parameters_have_tensorflow_order(name: str) -> None:
    """The parameters of each function begin with those of TensorFlow, in the same order."""
    function = resolve_name(name)
    parameter_names = [p for p in inspect.signature(function).parameters if p != "self"]
    expected = list(parameters(name))

    assert parameter_names[: len(expected)] == expected


MODULES = (
    "",
    "contrib.layers.",
    "contrib.rnn.",
    "image.",
    "layers.",
    "losses.",
    "math.",
    "metrics.",
    "nn.",
    "nn.rnn_cell.",
    "summary.",
    "train.",
)
"""The prefixes of the public names."""


def exported_functions() -> dict[str, Any]:
    """Return the functions and classes of tinyflow's modules by public name."""
    functions = {}
    for prefix in MODULES:
        module = resolve_name(prefix[:-1]) if prefix else tf
        names = getattr(module, "__all__", None) or vars(module)
        functions.update({f"{prefix}{name}": getattr(module, name) for name in names})
    return {name: value for name, value in functions.items() if callable(value)}


def test_exported_functions_have_the_names_that_they_are_exported_by() -> None:
    """``tf.nn.relu.__name__`` is "relu", also where passkit's operator has another name."""
    functions = exported_functions()
    own_names = {name: (value.__name__, value.__qualname__) for name, value in functions.items()}

    assert len(functions) > 300
    assert own_names == {name: (name.split(".")[-1],) * 2 for name in functions}


def test_exported_functions_describe_each_parameter_and_the_result() -> None:
    """The docstring of each exported function has an entry for each parameter, and its result."""
    incomplete = {}
    for name, function in exported_functions().items():
        if name.endswith(WITHOUT_PARAMETERS):
            continue
        doc = inspect.cleandoc(function.__doc__)
        parameter_names = [p for p in inspect.signature(function).parameters if p != "self"]
        missing = [p for p in parameter_names if not re.search(rf"^    \**{p}: .", doc, re.M)]
        if inspect.isfunction(function) and name not in WITHOUT_RESULT:
            missing += [] if re.search(r"^Return|Returns:\n", doc, re.M) else ["Returns"]
        if missing:
            incomplete[name] = missing

    assert incomplete == {}


WITHOUT_RESULT = {"add_to_collection", "losses.add_loss", "reset_default_graph", "set_random_seed"}
"""Functions that return None."""
WITHOUT_PARAMETERS = (
    "GraphKeys",
    "LSTMStateTuple",
    "NumericsError",
    "Reduction",
    "ResizeMethod",
    "TensorShape",
)
"""Classes that programs do not call with arguments of their own."""


def without(name: str, row: CallCase, more: Mapping[str, Any]) -> Any:
    """Return what is observed of a call, or its error message."""
    try:
        return observe_call(name, row, more)
    except PasskitError as error:
        return str(error)


@pytest.mark.parametrize("name", SIGNATURES)
def test_each_argument_has_an_effect_or_is_rejected_by_name(name: str) -> None:
    """Another value of an argument changes the result, or raises an error that names it."""
    case = CASES[name]
    plain = observe_call(name, case, {})

    for argument in parameters(name):
        alternative = case.other.get(argument, "given" if argument == "name" else None)
        assert alternative is not None, f"the case of {name} has no alternative value of {argument}"
        further_arguments = dict(alternative.more) if isinstance(alternative, CombinedValue) else {}
        value = alternative.value if isinstance(alternative, CombinedValue) else alternative
        if isinstance(value, RejectedValue):
            with pytest.raises(PasskitError, match=argument):
                observe_call(name, case, {**further_arguments, argument: value.value})
            continue
        against = (
            without(name, case, further_arguments)
            if further_arguments and value is not None
            else plain
        )
        changed = {**further_arguments, argument: value} if value is not None else further_arguments
        assert observe_call(name, case, changed) != against, f"{argument} of {name} has no effect"


def test_missing_names_raise_with_an_alternative() -> None:
    """A name that tinyflow lacks raises AttributeError with an alternative or the nearest name."""
    with pytest.raises(AttributeError, match=r"tinyflow has no tf\.data; feed NumPy arrays"):
        _ = tf.data
    with pytest.raises(AttributeError, match=r"no tf\.nn\.rellu; did you mean 'relu'\?"):
        _ = tf.nn.rellu
    assert not hasattr(tf.train, "QueueRunner")


def test_docs_page_is_up_to_date() -> None:
    """docs/tinyflow.md is what `python -m tests.frontends.tinyflow.page` writes."""
    assert PAGE.read_text() == page()
