"""Look-up by name: registration, unknown names, and the hooks that are called for these."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import passkit as pk
from passkit.dialects.base import dialect_of
from passkit.passes.base import find_pass
from passkit.plan.strategy import find_fusion
from passkit.plan.target import list_targets, target_of
from passkit.values import named
from passkit.values.named import NamedRegistry, on_unknown_name

Calls = list[tuple[str, str]]
"""Kind and name of each unknown name that a hook was called with."""


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Iterator[Calls]:
    """Collect the calls of a hook, which is the only one."""
    monkeypatch.setattr(named, "_hooks", [])
    calls: Calls = []
    on_unknown_name(lambda kind, name: calls.append((kind, name)))
    yield calls


def test_hooks_are_called_for_unknown_names_only(calls: Calls) -> None:
    """Every registry calls the hooks before it refuses a name, and not for a registered name."""
    for look_up in (pk.get_op, find_pass, dialect_of, target_of, find_fusion):
        with pytest.raises(pk.PasskitError, match="'test_nameless'"):
            look_up("test_nameless")
    kinds = ["operator", "pass", "dialect", "target", "fusion strategy"]
    assert calls == [(kind, "test_nameless") for kind in kinds]

    pk.get_op("exp"), find_pass("Fusion"), dialect_of("cxx"), target_of("cpu"), find_fusion("deep")
    assert len(calls) == 5


def test_a_hook_may_register_the_name(calls: Calls) -> None:
    """The look-up that calls a hook returns the value that the hook registers."""
    colours: NamedRegistry[int] = NamedRegistry("colour", pk.SettingError)
    on_unknown_name(lambda kind, name: colours.register(name, 7) if name == "red" else None)

    assert colours["red"] == 7 and list(colours) == ["red"]
    with pytest.raises(pk.SettingError, match="colour 'rad' is not registered; did you mean 'red'"):
        colours["rad"]


def test_a_name_is_registered_at_one_source_position() -> None:
    """The same position may register again; another one, or a name that is no string, may not."""
    colours: NamedRegistry[int] = NamedRegistry("colour", pk.SettingError)
    colours.register("red", 1, "here:1")
    colours.register("red", 2, "here:1")

    assert colours["red"] == 2
    with pytest.raises(pk.RegistryError, match="'red' is registered at here:1 and now at there:2"):
        colours.register("red", 3, "there:2")
    with pytest.raises(pk.RegistryError, match="name of a colour must be a string, got None"):
        colours.register(None, 3)  # type: ignore[arg-type]


def test_custom_targets_are_looked_up_by_name() -> None:
    """Other objects than a Target or Dialect are refused."""
    with pytest.raises(pk.SettingError, match=r"needs a pk.Target, got 'cpu'; attrs.evolve"):
        pk.register_target("cpu")  # type: ignore[arg-type]
    with pytest.raises(pk.RegistryError, match="register_dialect needs a pk.Dialect, got None"):
        pk.register_dialect(None)  # type: ignore[arg-type]
    custom = pk.register_target(pk.Target("test_named_target", "cxx", 16, 1 << 18))

    assert target_of("test_named_target") is custom and "test_named_target" in list_targets()
