"""Every public name has TensorFlow 1's parameters, and each parameter has an effect."""

from __future__ import annotations

import inspect
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
