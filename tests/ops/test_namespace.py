"""``pk.ops``: every registered operator, by name and alias."""

from __future__ import annotations

import pytest

import passkit as pk


def test_every_operator_is_an_attribute() -> None:
    """Operators and aliases are attributes of ``pk.ops``, and listed by ``dir``."""
    for name in pk.list_ops(aliases=True):
        assert getattr(pk.ops, name) is pk.get_op(name)
    assert {"add", "subtract", "split", "reduce_sum"} <= set(dir(pk.ops))


def test_user_operators_are_attributes() -> None:
    """An operator registered later is an attribute at once."""
    mine = pk.register_op("test_namespace_mine", num_inputs=1)

    assert pk.ops.test_namespace_mine is mine


def test_unknown_operator_suggests_the_nearest() -> None:
    """A wrong name offers the nearest, as an AttributeError."""
    with pytest.raises(AttributeError, match="'sofmax' is not registered; did you mean 'softmax'"):
        _ = pk.ops.sofmax


def test_every_standard_operator_is_documented() -> None:
    """Each operator has a line of documentation, and a pattern or an expansion."""
    for name in pk.list_ops():
        op = pk.get_op(name)
        if "/ops/" in op.place and "/tests/" not in op.place:
            assert op.doc, name
            assert op.has_attr("TOpPattern") or op.has_attr("FExpand"), name


def test_unknown_public_name_is_an_attribute_error() -> None:
    """The package says which name it lacks."""
    with pytest.raises(AttributeError, match="module 'passkit' has no attribute 'grahp'"):
        _ = pk.grahp  # type: ignore[attr-defined]
