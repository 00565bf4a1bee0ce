"""Every name of the surface, with every argument that TensorFlow 1 documents."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

import pytest

from passkit.errors import PasskitError
from passkit.frontends import tinyflow as tf
from tests.frontends.tinyflow import (
    cases_layers,
    cases_math,
    cases_more,
    cases_nn,
    cases_program,
)
from tests.frontends.tinyflow.page import PAGE, page
from tests.frontends.tinyflow.surface import (
    SIGNATURES,
    Also,
    Refused,
    Row,
    find,
    parameters,
    seen,
)

ROWS = {
    **cases_math.ROWS,
    **cases_nn.ROWS,
    **cases_layers.ROWS,
    **cases_program.ROWS,
    **cases_more.ROWS,
}


def test_the_table_has_every_name() -> None:
    """No name is documented without a row, and no row is of an unknown name."""
    assert ROWS.keys() == SIGNATURES.keys()


@pytest.mark.parametrize("name", SIGNATURES)
def test_arguments_stand_where_tensorflow_has_them(name: str) -> None:
    """Each documented argument is there under its name, in its place."""
    function = find(name)
    own = [p for p in inspect.signature(function).parameters if p != "self"]
    wanted = list(parameters(name))

    assert own[: len(wanted)] == wanted


def without(name: str, row: Row, more: Mapping[str, Any]) -> Any:
    """What a call shows with all but one argument, or that it is refused."""
    try:
        return seen(name, row, more)
    except PasskitError as error:
        return str(error)


@pytest.mark.parametrize("name", SIGNATURES)
def test_arguments_have_an_effect(name: str) -> None:
    """Each argument changes what is seen of a call, or is refused by its name."""
    row = ROWS[name]
    plain = seen(name, row, {})

    for argument in parameters(name):
        other = row.other.get(argument, "given" if argument == "name" else None)
        assert other is not None, f"the row of {name} has no other value of {argument}"
        more = dict(other.more) if isinstance(other, Also) else {}
        value = other.value if isinstance(other, Also) else other
        if isinstance(value, Refused):
            with pytest.raises(PasskitError, match=argument):
                seen(name, row, {**more, argument: value.value})
            continue
        against = without(name, row, more) if more and value is not None else plain
        changed = {**more, argument: value} if value is not None else more
        assert seen(name, row, changed) != against, f"{argument} of {name} has no effect"


def test_a_missing_name_says_what_is_there() -> None:
    """What tinyflow lacks has a way out, or the nearest name."""
    with pytest.raises(AttributeError, match=r"tinyflow has no tf\.data; feed NumPy arrays"):
        _ = tf.data
    with pytest.raises(AttributeError, match=r"no tf\.nn\.rellu; did you mean 'relu'\?"):
        _ = tf.nn.rellu
    assert not hasattr(tf.train, "QueueRunner")


def test_the_page_says_what_the_table_says() -> None:
    """docs/tinyflow.md is up to date; `python -m tests.frontends.tinyflow.page` writes it."""
    assert PAGE.read_text() == page()
