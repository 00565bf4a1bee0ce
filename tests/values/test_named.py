"""Look-up by name: what is registered, what is not, and who is asked about the latter."""

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

Asked = list[tuple[str, str]]


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Iterator[Asked]:
    """What hooks are asked, while one listens."""
    monkeypatch.setattr(named, "_hooks", [])
    found: Asked = []
    on_unknown_name(lambda kind, name: found.append((kind, name)))
    yield found


def test_hooks_are_asked_for_unknown_names_only(asked: Asked) -> None:
    """Every registry asks before it refuses a name, and not for a name that it knows."""
    for look_up in (pk.get_op, find_pass, dialect_of, target_of, find_fusion):
        with pytest.raises(pk.PasskitError, match="'test_nameless'"):
            look_up("test_nameless")
    kinds = ["operator", "pass", "dialect", "target", "fusion strategy"]
    assert asked == [(kind, "test_nameless") for kind in kinds]

    pk.get_op("exp"), find_pass("Fusion"), dialect_of("cxx"), target_of("cpu"), find_fusion("deep")
    assert len(asked) == 5


def test_a_hook_may_register_the_name(asked: Asked) -> None:
    """What a hook registers is found by the look-up that asked it."""
    colours: NamedRegistry[int] = NamedRegistry("colour", pk.SettingError)
    on_unknown_name(lambda kind, name: colours.put(name, 7) if name == "red" else None)

    assert colours["red"] == 7 and list(colours) == ["red"]
    with pytest.raises(pk.SettingError, match="colour 'rad' is not registered; did you mean 'red'"):
        colours["rad"]


def test_names_are_strings_of_one_place() -> None:
    """A name is registered at one place, again from there, and is a string."""
    colours: NamedRegistry[int] = NamedRegistry("colour", pk.SettingError)
    colours.put("red", 1, "here:1")
    colours.put("red", 2, "here:1")

    assert colours["red"] == 2
    with pytest.raises(pk.RegistryError, match="'red' is registered at here:1 and now at there:2"):
        colours.put("red", 3, "there:2")
    with pytest.raises(pk.RegistryError, match="name of a colour must be a string, got None"):
        colours.put(None, 3)  # type: ignore[arg-type]


def test_targets_and_dialects_are_registered_as_such() -> None:
    """What is no Target or Dialect is refused; a target of one's own is found by its name."""
    with pytest.raises(pk.SettingError, match=r"needs a pk.Target, got 'cpu'; attrs.evolve"):
        pk.register_target("cpu")  # type: ignore[arg-type]
    with pytest.raises(pk.RegistryError, match="register_dialect needs a pk.Dialect, got None"):
        pk.register_dialect(None)  # type: ignore[arg-type]
    own = pk.register_target(pk.Target("test_named_target", "cxx", 16, 1 << 18))

    assert target_of("test_named_target") is own and "test_named_target" in list_targets()
