"""Targets by name: those that passkit ships, and those of users and plug-ins."""

from __future__ import annotations

from functools import cache

from attrs import evolve

from passkit.errors import SettingError
from passkit.target.cpu import cpu
from passkit.target.gpus import SHIPPED
from passkit.target.target import KIB, Target
from passkit.values.named import NamedRegistry

_targets: NamedRegistry[Target] = NamedRegistry("target", SettingError, unknown="is not known")


@cache
def _register_shipped() -> None:
    """Register the targets that passkit ships, where nobody has registered one of the name."""
    cuda = Target("cuda", "cuda", 1, 48 * KIB, max_arguments=448, nests=True, cooperates=True)
    shipped = {
        "cpu": cpu(),
        "interpret": evolve(cpu(), name="interpret"),
        "blocks": evolve(cpu(), name="blocks"),
        "opencl": Target(
            name="opencl",
            dialect="opencl",
            lanes=1,
            scratch=32 * KIB,
            launch=1e-5,
            max_arguments=128,
            costed=False,
        ),
        "cuda": SHIPPED["H100"].numbers(cuda),
    }
    for name, target in shipped.items():
        _targets.register(name, target)


def target_of(what: str | Target) -> Target:
    """Return the target of a name, or the target given.

    Raises: SettingError with the nearest name.
    """
    if isinstance(what, Target):
        return what
    _register_shipped()
    return _targets[what]


def list_targets() -> list[str]:
    """Return the names of all targets, sorted."""
    _register_shipped()
    return _targets.names()


def register_target(target: Target) -> Target:
    """Make a target of your own known by its name; a later one of the same name replaces it.

    Its ``dialect`` prints the kernels, and is looked up when one is made.

    Raises: SettingError for what is no Target.
    """
    if not isinstance(target, Target):
        raise SettingError(
            f"register_target needs a pk.Target, got {target!r}; "
            f"attrs.evolve(target_of('opencl'), name=…) makes one of another"
        )
    _register_shipped()
    _targets.register(target.name, target)
    return target
