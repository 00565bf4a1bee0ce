"""Operators: re-opening, aliases, groups, calls."""

from __future__ import annotations

import pickle
import sys
from pathlib import Path

import pytest

import passkit as pk
from passkit.graph.op import register_later


def test_registering_twice_is_one_operator() -> None:
    """Registration re-opens; documentation and parameters are added."""
    first = pk.register_op("test_op_twice", num_inputs=2, params={"a": 1})
    again = pk.register_op("test_op_twice", params={"b": 2, "a": 5}, doc="later")

    assert first is again is pk.get_op("test_op_twice")
    assert (again.params, again.doc) == ({"a": 1, "b": 2}, "later")


@pytest.mark.parametrize("count, message", [
    ({"num_inputs": 3}, "at .*test_op.py:.* with num_inputs=2, now with 3"),
    ({"num_outputs": 2}, "with num_outputs=1, now with 2"),
])
def test_counts_do_not_change(count: dict[str, int], message: str) -> None:
    """Another number of inputs or results is refused, naming the first place."""
    pk.register_op("test_op_counts", num_inputs=2)

    with pytest.raises(pk.RegistryError, match=message):
        pk.register_op("test_op_counts", **count)


def test_aliases() -> None:
    """An alias is the same operator; a name that is taken is refused."""
    op = pk.register_op("test_op_alias", num_inputs=1).add_alias("test_op_other_name")

    assert pk.get_op("test_op_other_name") is op
    assert "test_op_other_name" in pk.list_ops(aliases=True)
    assert "test_op_other_name" not in pk.list_ops()
    with pytest.raises(pk.RegistryError, match="alias 'exp' of op test_op_alias is already the na"):
        op.add_alias("exp")


def test_unknown_operators() -> None:
    """A wrong name offers the nearest."""
    with pytest.raises(pk.RegistryError, match="operator 'reduce_sun' is not registered; did you"):
        pk.get_op("reduce_sun")


def test_groups_are_free_of_order() -> None:
    """Attributes reach members whether they are set before or after joining; own ones win."""
    group = pk.op_group("test_op_group").set_attr("TestGroup", "early")
    member = pk.register_op("test_op_member").include("test_op_group").include("test_op_group")
    group.set_attr("TestGroupLate", "late")
    own = pk.register_op("test_op_own").set_attr("TestGroup", "own").include("test_op_group")

    assert (member.get_attr("TestGroup"), member.get_attr("TestGroupLate")) == ("early", "late")
    assert own.get_attr("TestGroup") == "own"


def test_two_groups_that_disagree() -> None:
    """The same attribute at the same level from two groups names both."""
    pk.op_group("test_op_left").set_attr("TestSides", 1)
    pk.op_group("test_op_right").set_attr("TestSides", 2)
    op = pk.register_op("test_op_sides").include("test_op_left")

    with pytest.raises(pk.RegistryError, match="op group test_op_left at .* and op group test_op_"):
        op.include("test_op_right")


def test_operators_travel() -> None:
    """An operator pickles by name; its pattern is OPAQUE unless it says more."""
    op = pk.get_op("exp")

    assert pickle.loads(pickle.dumps(op)) is op
    assert repr(op) == "Op('exp')"
    assert pk.register_op("test_op_opaque").pattern is pk.OpPattern.OPAQUE


def x() -> pk.Entry:
    """An input."""
    return pk.var("x", (2, 3))


def test_calls() -> None:
    """Parameters go by name or behind the inputs; several inputs may be one sequence."""
    by_name, by_place = pk.ops.reduce_sum(x(), axis=1), pk.ops.reduce_sum(x(), 1, True)

    assert by_name.node.params == {"axis": 1, "keepdims": False}
    assert by_place.node.params == {"axis": 1, "keepdims": True}
    assert pk.ops.concat([x(), x()], 1).shape == (2, 6)
    assert pk.ops.reduce_sum(x(), [0, 1]).node.params["axis"] == (0, 1)


BAD = [
    (lambda: pk.ops.reduce_sum(x(), axes=1, name="s"),
     "reduce_sum 's' has no parameter 'axes'; did you mean 'axis'"),
    (lambda: pk.ops.exp(x(), axis=1), "exp has no parameter 'axis'; it takes none"),
    (lambda: pk.ops.exp(), r"exp takes 1 input\(s\), got 0"),
    (lambda: pk.ops.exp(x(), x()), r"exp takes 1 input\(s\), got 2"),
    (lambda: pk.ops.reshape(x()), "reshape needs the parameter 'shape'"),
    (lambda: pk.ops.constant(3), "constant needs a NumPy array as value, got 3; pk.constant makes"),
    (lambda: pk.ops.reduce_sum(x(), 1, axis=0), "reduce_sum: parameter 'axis' is given twice"),
    (lambda: pk.ops.exp((x(), x())), r"variable 'x' has 2 results and one is needed here"),
]


@pytest.mark.parametrize("k", range(len(BAD)))
def test_calls_that_are_refused(k: int) -> None:
    """Unknown parameters offer the nearest, wrong counts say what is taken."""
    build, message = BAD[k]
    with pytest.raises(pk.GraphError, match=message):
        build()


def test_operators_register_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A module is imported when a name is asked for that is not known, and no sooner."""
    (tmp_path / "late_operators.py").write_text(
        "from passkit.graph.op import register_op\nregister_op('test_late', num_inputs=3)\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    register_later("late_operators")

    pk.get_op("add")
    assert "late_operators" not in sys.modules
    assert pk.get_op("test_late").num_inputs == 3


def test_an_operator_belongs_to_the_row_that_calls_for_it() -> None:
    """The library's helpers that register are looked through."""
    assert Path(pk.get_op("softmax").place.rpartition(":")[0]).name == "nn.py"
    assert Path(pk.get_op("reduce_sum").place.rpartition(":")[0]).name == "reduce.py"
