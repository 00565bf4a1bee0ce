"""Look-up by name of operators, passes, dialects, targets and strategies: registration, errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import passkit as pk

GRAPH = pk.parse("x: f32[4]; return exp(x)")


def print_in_dialect(name: str) -> Any:
    """Print the kernel of GRAPH in a dialect."""
    target = pk.Target("test_named_dialect", name, 16, 1 << 18)
    return pk.ApplyPasses(GRAPH, ["Fusion", "CodeGen"], target=target)


LOOK_UPS: dict[str, Callable[[str], Any]] = {
    "operator": pk.get_op,
    "pass": lambda name: pk.ApplyPasses(GRAPH, name),
    "dialect": print_in_dialect,
    "target": lambda name: pk.PassContext(target=name),
    "fusion": lambda name: pk.PassContext(fusion=name),
}
"""For each kind, a call that looks a name up."""


@pytest.mark.parametrize(
    ("kind", "misspelt", "name"),
    [
        ("operator", "layr_norm", "layer_norm"),
        ("pass", "Fuson", "Fusion"),
        ("dialect", "opncl", "opencl"),
        ("target", "cuad", "cuda"),
        ("fusion", "stich", "stitch"),
    ],
)
def test_an_unknown_name_is_an_error_with_the_nearest_name(
    kind: str, misspelt: str, name: str
) -> None:
    """The error has the kind, the unknown name, and the registered name that is most like it."""
    with pytest.raises(pk.PasskitError, match=f"{kind} .*'{misspelt}'.*; did you mean '{name}'"):
        LOOK_UPS[kind](misspelt)
    with pytest.raises(pk.PasskitError, match=f"{kind} .*'zqxjvkw'.*; known: "):
        LOOK_UPS[kind]("zqxjvkw")


def test_a_name_is_registered_at_one_source_position() -> None:
    """The same position may register again; another one, or a name that is no string, may not."""

    def register(operator: Any) -> None:
        @pk.register_pass("TestNamedTwice", changes_graph=True)
        def replace(graph: pk.Graph) -> pk.Graph:
            return graph.rewrite(pk.ops.exp, operator)

    register(pk.ops.sin)
    register(pk.ops.tanh)
    assert "tanh(" in pk.to_text(pk.ApplyPasses(GRAPH, "TestNamedTwice"))
    here = r"test_named\.py:\d+"
    message = f"pass TestNamedTwice is registered at .*{here} and now at .*{here}; give one"
    with pytest.raises(pk.RegistryError, match=message):
        pk.register_pass("TestNamedTwice")(lambda graph: graph)
    with pytest.raises(pk.RegistryError, match="name of a fusion strategy must be .*, got None"):
        pk.register_fusion(None)(lambda graph: [])  # type: ignore[arg-type]


def test_custom_targets_are_looked_up_by_name() -> None:
    """A registered target is an option by its name; other objects than targets are refused."""
    with pytest.raises(pk.SettingError, match=r"needs a pk.Target, got 'cpu'; attrs.evolve"):
        pk.register_target("cpu")  # type: ignore[arg-type]
    with pytest.raises(pk.RegistryError, match="register_dialect needs a pk.Dialect, got None"):
        pk.register_dialect(None)  # type: ignore[arg-type]
    custom = pk.register_target(pk.Target("test_named_target", "cxx", 16, 1 << 18))

    assert pk.PassContext(target="test_named_target").target is custom
    with pytest.raises(pk.SettingError, match="did you mean 'test_named_target'"):
        pk.PassContext(target="test_named_targt")
