"""Fusion strategies: functions that say which operators share a kernel, by their names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from passkit.errors import RegistryError, SettingError, nearest
from passkit.graph.registry import calling_place
from passkit.values import arguments
from passkit.values.named import NamedRegistry

BUILT_IN = {
    "none": "passkit.fusion.strategies.pairwise",
    "nnvm": "passkit.fusion.strategies.pairwise",
    "xla": "passkit.fusion.strategies.xla",
    "deep": "passkit.fusion.strategies.deep",
    "stitch": "passkit.fusion.strategies.stitch",
}
"""Every operator alone; pairs of elementwise ones; XLA's basic rules; what grows from results by
work and span; groups of one iteration space with several results, joined where that gains."""


class Strategy(NamedTuple):
    """A fusion strategy: what `register_fusion` made of a function.

    ``expands`` says that it is given composites as what they are made of, ``library_patterns`` that
    operators which a library computes as one are joined before it runs.
    """

    name: str
    function: Callable[..., Any]
    expands: bool
    library_patterns: bool
    takes_context: bool

    def __call__(self, graph: Any, context: Any) -> Any:
        """The partition of a graph: lists of nodes, one list for each kernel."""
        return self.function(graph, context) if self.takes_context else self.function(graph)

    @property
    def doc(self) -> str:
        """The first line of the function's docstring."""
        return (self.function.__doc__ or "").strip().partition("\n")[0]


_strategies: NamedRegistry[Strategy] = NamedRegistry("fusion strategy", SettingError, BUILT_IN)


def register_fusion(
    name: str, *, expands: bool = True, library_patterns: bool = False
) -> Callable[[Callable[..., Any]], Strategy]:
    """Make the decorated function the fusion strategy called ``name``.

    The function takes a Graph and, if it has a second parameter, the PassContext. It returns a
    list of groups, each a list of nodes of that graph that are to share a kernel; operators in no
    group run by themselves. `Fusion` checks the groups before it uses them.

    Args:
        name: What ``fusion=`` and ``--fusion`` call it.
        expands: Whether composites, such as a softmax, are expanded before; without it those stay
            whole that have a kernel, a library or NumPy to run them.
        library_patterns: Whether operators that a library computes as one (the gradient of a
            filter, a sum of products) are replaced by that call before.

    Raises: RegistryError when the name was registered at another place, or is no string, or what
    is decorated is no function.
    """
    place = calling_place()

    def register(function: Callable[..., Any]) -> Strategy:
        if not callable(function):
            raise RegistryError(
                f"fusion strategy {name!r} must be a function of a graph, got {function!r}"
            )
        need = "of a graph, or of a graph and the PassContext"
        count = arguments.parameters(f"fusion strategy {name!r}", function, need, 1, 2)
        strategy = Strategy(name, function, expands, library_patterns, count > 1)
        _strategies.register(name, strategy, place)
        return strategy

    return register


def find_fusion(name: str) -> Strategy:
    """A registered strategy. Raises: SettingError with the nearest name."""
    return _strategies[name]


def fusion_name(value: Any) -> str:
    """The name of a strategy given by name or as it is.

    Raises: SettingError with the names of all where there is none such.
    """
    name = value.name if isinstance(value, Strategy) else value
    if name not in _strategies:
        names = list_fusions()
        raise SettingError(
            f"fusion must be one of {', '.join(map(repr, names))}, got {name!r}; "
            f"{nearest(str(name), names)}"
        )
    return str(name)


def list_fusions() -> list[str]:
    """The names of all strategies: those of passkit first."""
    return _strategies.names()
