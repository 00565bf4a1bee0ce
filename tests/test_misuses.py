"""Misuse of public functions ends in errors that name the argument and what was found."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import passkit as pk
from tests import misuses
from tests.misuses import VALUES, Argument, Call

USER_FUNCTIONS = frozenset({"function", "type"})
"""Values that are called; what they raise then is the caller's."""


def message_pattern(name: str, argument: Argument) -> str:
    """The regular expression that a message about an argument must match from end to end."""
    called = "|".join(filter(None, (re.escape(name), argument.called)))
    return f"(?s)^.*({called}).*$"


def check(call: Call) -> None:
    """Go through all wrong values of all arguments of a call."""
    good = {k: a.good for k, a in call.arguments.items()}
    run(call, good)
    for name, argument in call.arguments.items():
        fits = set(argument.fits.split())
        for label in VALUES:
            if f"-{label}" in fits:
                continue
            given = {**good, name: VALUES[label]}
            try:
                if label not in fits:
                    with pytest.raises(pk.PasskitError, match=message_pattern(name, argument)):
                        run(call, given)
                elif label not in USER_FUNCTIONS:
                    run(call, given)
            except BaseException as error:
                error.add_note(f"in {call.name} with {name or 'the input'}: {label}")
                raise


def run(call: Call, arguments: dict[str, Any]) -> None:
    """Call the function; an argument without a name goes by position."""
    named = {k: v for k, v in arguments.items() if k}
    call.function(*(v for k, v in arguments.items() if not k), **named)


@pytest.mark.parametrize(
    "table",
    [
        misuses.making_graphs,
        misuses.using_graphs,
        misuses.registering,
        misuses.options,
        misuses.kernels,
        misuses.operators,
        misuses.frontends,
    ],
)
def test_wrong_arguments_are_refused(
    table: Callable[[], list[Call]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each argument of each function, replaced by each wrong value, is refused by name."""
    monkeypatch.chdir(tmp_path)
    for call in table():
        check(call)


def test_wrong_arguments_of_running_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, quick_kernels: None
) -> None:
    """So are those of what compiles, runs, saves and loads graphs."""
    monkeypatch.chdir(tmp_path)
    for call in misuses.running(tmp_path):
        check(call)


def test_the_table_has_every_public_function() -> None:
    """No public function or class is left out of the table but for reasons given here."""
    tables = (misuses.making_graphs, misuses.using_graphs, misuses.registering, misuses.options)
    rows = [c.name for t in tables for c in t()]
    source = Path(misuses.__file__).read_text()
    spared = {
        "Pass": "register_pass makes it",
        "Op": "register_op makes it",
        "OpPattern": "an enumeration of Python's",
        "REQUIRED": "a value",
        **dict.fromkeys(("Decision", "Kernel", "Schedule", "Target"), "records that passes make"),
        "Dialect": "a record, whose fields are templates of text",
        "list_ops": "has one flag",
        "load_plugins": "has no argument",
    }
    classes = ("Error", "Warning")
    public = [n for n in pk.__all__ if not n.endswith(classes) and n not in spared]
    public = [n for n in public if not hasattr(getattr(pk, n), "__path__")]
    missing = [n for n in public if n not in rows and f'"{n}"' not in source]

    assert missing == []


def test_masked_arrays_are_refused() -> None:
    """A mask that a kernel would ignore is refused, with two ways out."""
    masked = VALUES["masked"]
    way_out = r"without a mask \(fill it by .filled\(0\), or .* got a MaskedArray float32\[2, 3\]"
    run = pk.compile(pk.Graph([misuses.X + 1]), target="interpret")

    with pytest.raises(pk.ArgumentError, match=way_out):
        pk.constant(masked)
    with pytest.raises(pk.ArgumentError, match=f"input 'x' must be an array {way_out}"):
        run(x=masked)
    assert run(x=masked.filled(0))[0][0, 0] == 1


def test_numpy_makes_no_array_of_an_entry() -> None:
    """An array of objects would compute with entries one by one; the error says what to do."""
    with pytest.raises(pk.GraphError, match=r"x has no value before the graph runs, .* pk\.ops"):
        np.asarray(misuses.X)
    with pytest.raises(pk.GraphError, match="x has no value before the graph runs"):
        np.array([misuses.X, misuses.X])


@pytest.mark.parametrize("target", ["interpret", "cpu"])
def test_two_inputs_of_one_name(target: str, quick_kernels: None) -> None:
    """Where the second is not fed, the message says how it is called and what to do."""
    graph = pk.Graph([pk.var("x", (2,)) + pk.var("x", (2,))])
    hint = "input 'x_1' is missing.*if two variables are called 'x', the second is fed as 'x_1'"

    with pytest.raises(pk.FeedError, match=hint):
        pk.compile(graph, target=target)(x=np.ones(2, np.float32))


@pytest.mark.parametrize("run", [pk.interpret, pk.compile])
def test_two_states_of_one_name(run: Callable[[pk.Graph], Any]) -> None:
    """They would share a value, so that one of their initial values would be lost."""
    first, second = pk.state("w", np.zeros(2)), pk.state("w", np.ones(2))

    with pytest.raises(pk.GraphError, match="two state variables of the graph are called 'w'"):
        run(pk.Graph([first + second]))


@pytest.mark.parametrize(
    "make, elements",
    [
        (lambda n: pk.var("v", (n, 4)), 2**64),
        (lambda n: pk.ops.tile(misuses.X, (n, 1)), 2**62 * 6),
        (lambda n: pk.ops.zeros(shape=(n,)), 2**62),
        (lambda n: pk.ops.zeros(shape=(0, n)), 2**62),
    ],
)
def test_arrays_that_cannot_be_addressed(make: Callable[[int], Any], elements: int) -> None:
    """A shape of more than 2**59 elements is refused where it arises, with their number."""
    with pytest.raises(pk.ShapeError, match=f"multiply to {elements} elements or more; the most"):
        make(2**62)


def test_arrays_of_too_many_axes() -> None:
    """A shape of more axes than NumPy's arrays can have is refused with their number."""
    with pytest.raises(pk.ShapeError, match="a shape of 65 axes was given; .* at most 64"):
        pk.var("v", ("n",) * 65)
    with pytest.raises(pk.ShapeError, match="a shape of 70 axes was given"):
        pk.ops.reshape(misuses.X, shape=(1,) * 68 + (3, 2))


def test_arrays_that_memory_does_not_hold(quick_kernels: None) -> None:
    """A run that needs too much memory ends in a PasskitError that is a MemoryError."""
    graph = pk.Graph([pk.ops.zeros(shape=(2**56,)) + 1])

    with pytest.raises(pk.CapacityError, match="Unable to allocate 512. PiB"):
        pk.interpret(graph)
    with pytest.raises(pk.CapacityError, match=f"no memory for an array of {2**58} bytes"):
        pk.compile(graph)()
    assert issubclass(pk.CapacityError, MemoryError)


def test_jitted_functions_compute_with_their_arguments() -> None:
    """A variable from outside of a jitted function is named."""
    with pytest.raises(pk.GraphError, match="<lambda> computes with the variable 'x', which is no"):
        pk.jit(lambda y: y + misuses.X, target="interpret")(np.ones((2, 3), np.float32))
