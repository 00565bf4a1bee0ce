"""Operators are registered, re-opened, aliased, grouped and called."""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path

import pytest

import passkit as pk


def test_registering_twice_is_one_operator() -> None:
    """A second registration returns the operator and adds documentation and parameters."""
    first = pk.register_op("test_op_twice", num_inputs=2, params={"a": 1})
    again = pk.register_op("test_op_twice", params={"b": 2, "a": 5}, doc="later")

    assert first is again is pk.get_op("test_op_twice")
    assert (again.params, again.doc) == ({"a": 1, "b": 2}, "later")


@pytest.mark.parametrize(
    "count, message",
    [
        ({"num_inputs": 3}, "at .*test_op.py:.* with num_inputs=2, now with 3"),
        ({"num_outputs": 2}, "with num_outputs=1, now with 2"),
    ],
)
def test_counts_do_not_change(count: dict[str, int], message: str) -> None:
    """Another number of inputs or results is refused, naming the first registration."""
    pk.register_op("test_op_counts", num_inputs=2)

    with pytest.raises(pk.RegistryError, match=message):
        pk.register_op("test_op_counts", **count)


def test_an_operator_has_results() -> None:
    """An operator without results cannot be registered."""
    with pytest.raises(pk.SettingError, match="'test_nothing'.: num_outputs .* any number, got 0"):
        pk.register_op("test_nothing", num_outputs=0)


def test_an_alias_is_the_same_operator() -> None:
    """An alias is looked up as the operator is; the name of another operator is refused."""
    op = pk.register_op("test_op_alias", num_inputs=1).add_alias("test_op_other_name")

    assert pk.get_op("test_op_other_name") is op
    assert "test_op_other_name" in pk.list_ops(aliases=True)
    assert "test_op_other_name" not in pk.list_ops()
    with pytest.raises(pk.RegistryError, match="alias 'exp' of op test_op_alias is already the na"):
        op.add_alias("exp")


def test_unknown_operators_are_refused_with_the_nearest_name() -> None:
    """A misspelled operator is refused; the message has the nearest name."""
    with pytest.raises(pk.RegistryError, match="operator 'reduce_sun' is not registered; did you"):
        pk.get_op("reduce_sun")


def test_members_of_a_group_get_its_attributes() -> None:
    """Attributes set before or after joining reach members that do not set them themselves."""
    group = pk.op_group("test_op_group").set_attr("TestGroup", "early")
    member = pk.register_op("test_op_member").include("test_op_group").include("test_op_group")
    group.set_attr("TestGroupLate", "late")
    own = pk.register_op("test_op_own").set_attr("TestGroup", "own").include("test_op_group")

    assert (member.get_attr("TestGroup"), member.get_attr("TestGroupLate")) == ("early", "late")
    assert own.get_attr("TestGroup") == "own"


def test_two_groups_with_different_values_are_refused() -> None:
    """The same attribute at the same level from two groups is refused, naming both."""
    pk.op_group("test_op_left").set_attr("TestSides", 1)
    pk.op_group("test_op_right").set_attr("TestSides", 2)
    op = pk.register_op("test_op_sides").include("test_op_left")

    with pytest.raises(pk.RegistryError, match="op group test_op_left at .* and op group test_op_"):
        op.include("test_op_right")


def test_operators_are_pickled_by_name() -> None:
    """An operator unpickles to itself; its default pattern is OPAQUE."""
    op = pk.get_op("exp")

    assert pickle.loads(pickle.dumps(op)) is op
    assert repr(op) == "Op('exp')"
    assert pk.register_op("test_op_opaque").pattern is pk.OpPattern.OPAQUE


def x() -> pk.Entry:
    """Return an input."""
    return pk.var("x", (2, 3))


def test_parameters_are_given_by_name_or_position() -> None:
    """Parameters go by name or after the inputs; several inputs may be one sequence."""
    by_name, by_position = pk.ops.reduce_sum(x(), axis=1), pk.ops.reduce_sum(x(), 1, True)

    assert by_name.node.params == {"axis": 1, "keepdims": False}
    assert by_position.node.params == {"axis": 1, "keepdims": True}
    assert pk.ops.concat([x(), x()], 1).shape == (2, 6)
    assert pk.ops.reduce_sum(x(), [0, 1]).node.params["axis"] == (0, 1)


BAD = [
    (
        lambda: pk.ops.reduce_sum(x(), axes=1, name="s"),
        "reduce_sum 's' has no parameter 'axes'; did you mean 'axis'",
    ),
    (lambda: pk.ops.exp(x(), axis=1), "exp has no parameter 'axis'; it takes none"),
    (lambda: pk.ops.exp(), r"exp takes 1 input\(s\), got 0"),
    (lambda: pk.ops.exp(x(), x()), r"exp takes 1 input\(s\), got 2"),
    (lambda: pk.ops.reshape(x()), "reshape needs the parameter 'shape'"),
    (lambda: pk.ops.constant(3), "constant needs a NumPy array as value, got 3; pk.constant makes"),
    (lambda: pk.ops.reduce_sum(x(), 1, axis=0), "reduce_sum: parameter 'axis' is given twice"),
    (lambda: pk.ops.exp((x(), x())), r"variable 'x' has 2 results and one is needed here"),
]


@pytest.mark.parametrize("k", range(len(BAD)))
def test_invalid_calls_are_refused(k: int) -> None:
    """The message has the nearest parameter, or the number of inputs."""
    build, message = BAD[k]
    with pytest.raises(pk.GraphError, match=message):
        build()


def test_modules_of_operators_are_imported_when_one_is_looked_up() -> None:
    """A common operator imports no further module; a rare one imports its module."""
    code = (
        "import sys, passkit as pk\n"
        "names = 'passkit.ops.sorting', 'passkit.ops.triangles'\n"
        "modules = [[name in sys.modules for name in names]\n"
        "           for op in ('add', 'sort') if pk.get_op(op)]\n"
        "print(modules, pk.get_op('sort').num_inputs)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert run.stdout.strip() == "[[False, False], [True, False]] 1"


def test_the_place_of_an_operator_is_its_definition() -> None:
    """Helper functions of the library that register operators are skipped."""
    assert Path(pk.get_op("softmax").place.rpartition(":")[0]).name == "nn.py"
    assert Path(pk.get_op("reduce_sum").place.rpartition(":")[0]).name == "reduce.py"
