"""Finding what made the first number that is not finite."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from passkit.errors import PassError
from passkit.graph.graph import Graph
from passkit.runtime.interpret import interpret
from passkit.runtime.state import State


class NumericsError(PassError):
    """A run made a number that is not finite; the variables are what they were before it."""


def look(messages: Sequence[str], outs: Sequence[Any]) -> None:
    """Make sure that the last results are finite. Raises: NumericsError with its message."""
    for message, value in zip(messages, outs[-len(messages) :], strict=True):
        if not _finite(value):
            raise NumericsError(f"{message}: {_kinds(np.asarray(value))} in a checked tensor")


def find_culprit(
    graph: Graph,
    arrays: Sequence[Any],
    before: Mapping[str, Any],
    outs: Sequence[Any],
    state: State,
) -> None:
    """Compute a run again, one operator at a time, if any of its results is not finite.

    ``before`` are the variables as they were; they are put back.

    Raises: NumericsError naming the first operator that makes such numbers out of finite ones.
    """
    written = [state.arrays[v.name] for v, _ in graph.updates]
    if all(_finite(a) for a in (*outs, *written)):
        return
    for name, value in before.items():
        state[name] = value
    nodes = [n for n in graph.nodes if not n.is_variable]
    entries = [e for n in nodes for e in n.entries]
    feeds = {n.name: a for n, a in zip(graph.inputs, arrays, strict=True)}
    bad = [name for name, a in feeds.items() if not _finite(a)]
    if bad:
        raise NumericsError(
            f"the feed of '{bad[0]}' holds numbers that are not finite; look at the data"
        )
    with np.errstate(all="ignore"):
        values = interpret(Graph(entries), feeds, dict(before))
    for e, value in zip(entries, values, strict=True):
        if not _finite(value):
            inputs = ", ".join(f"{i.name} {_span(v)}" for i, v in _inputs(e, entries, values))
            raise NumericsError(
                f"{e.node.where} made {_kinds(value)} of finite numbers ({inputs}); the variables "
                f"are what they were before this run; a smaller learning rate, or an epsilon "
                f"under a logarithm, a root or a division may help"
            )


def _inputs(e: Any, entries: Sequence[Any], values: Sequence[Any]) -> list[tuple[Any, Any]]:
    known = dict(zip(entries, values, strict=True))
    return [(i, known[i]) for i in e.node.inputs if i in known and known[i].size]


def _finite(array: Any) -> bool:
    found = np.asarray(array)
    return found.dtype.kind not in "fc" or bool(np.isfinite(found).all())


def _kinds(value: Any) -> str:
    nans, all_ = int(np.isnan(value).sum()), int((~np.isfinite(value)).sum())
    return " and ".join(
        f"{n} {what}" for n, what in ((nans, "NaN"), (all_ - nans, "infinite")) if n
    )


def _span(value: Any) -> str:
    return f"from {float(np.min(value)):.3g} to {float(np.max(value)):.3g}"
