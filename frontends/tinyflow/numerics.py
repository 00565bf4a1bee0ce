"""Numerical checks: find the operator that produced the first NaN or infinity of a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from passkit.errors import PassError
from passkit.graph.graph import Graph
from passkit.graph.node import Entry
from passkit.runtime.interpret import interpret
from passkit.runtime.state import State


class NumericsError(PassError):
    """A run produced a NaN or an infinity.

    With ``Session(check_numerics=True)`` the variables keep the values from before the run.
    """


def check_outputs(messages: Sequence[str], outputs: Sequence[Any]) -> None:
    """Check that the last outputs of a run are finite (`tf.check_numerics`).

    Args:
        messages: One message for each of the last outputs; at least one.
        outputs: All outputs of the run.

    Raises:
        NumericsError: With the message of the first output that is not finite.
    """
    for message, value in zip(messages, outputs[-len(messages) :], strict=True):
        if not _is_finite(value):
            nonfinite = _count_nonfinite(np.asarray(value))
            raise NumericsError(f"{message}: {nonfinite} in a checked tensor")


def find_first_nonfinite(
    graph: Graph,
    inputs: Sequence[Any],
    values_before: Mapping[str, Any],
    outputs: Sequence[Any],
    state: State,
) -> None:
    """Check the results of a run; if one is not finite, find the first operator that computed such.

    If one is not finite, ``values_before`` is written back to ``state``, and the run is repeated
    operator by operator from these values.

    Args:
        graph: The pure graph of the run.
        inputs: The arrays of its inputs.
        values_before: The values of the variables before the run, by name.
        outputs: The outputs of the run.
        state: The variables after the run.

    Raises:
        NumericsError: If a result or an updated variable is not finite: names the first operator
            that computed such numbers from finite ones, or a feed that holds some. Nothing is
            raised if the repeated run is finite.
    """
    updated = [state.arrays[v.name] for v, _ in graph.updates]
    if all(_is_finite(a) for a in (*outputs, *updated)):
        return
    for name, value in values_before.items():
        state[name] = value
    nodes = [n for n in graph.nodes if not n.is_variable]
    entries = [e for n in nodes for e in n.entries]
    feeds = {n.name: a for n, a in zip(graph.inputs, inputs, strict=True)}
    nonfinite_feeds = [name for name, a in feeds.items() if not _is_finite(a)]
    if nonfinite_feeds:
        raise NumericsError(
            f"the feed of '{nonfinite_feeds[0]}' holds numbers that are not finite; look at the "
            f"data"
        )
    with np.errstate(all="ignore"):
        read = {n.name for n in graph.nodes if n.is_variable}
        values_read = {name: value for name, value in values_before.items() if name in read}
        arrays = interpret(Graph(entries), feeds, values_read)
    values = dict(zip(entries, arrays, strict=True))
    for entry, value in values.items():
        if not _is_finite(value):
            operands = ", ".join(
                f"{i.name} {_format_range(values[i])}" for i in _nonempty_inputs(entry, values)
            )
            raise NumericsError(
                f"{entry.node.where} computed {_count_nonfinite(value)} from finite numbers "
                f"({operands}); the variables have the values from before this run; a smaller "
                f"learning rate, or an epsilon under a logarithm, a root or a division may help"
            )


def _nonempty_inputs(entry: Entry, values: Mapping[Entry, Any]) -> list[Entry]:
    """Return the inputs of an entry's node that have a value with elements.

    Args:
        entry: An output of the node.
        values: The computed arrays by entry.
    """
    return [i for i in entry.node.inputs if i in values and values[i].size]


def _is_finite(array: Any) -> bool:
    """Return whether an array holds no NaN and no infinity; True for integers and bools."""
    numbers = np.asarray(array)
    return numbers.dtype.kind not in "fcV" or bool(np.isfinite(numbers).all())  # V: bfloat16


def _count_nonfinite(value: Any) -> str:
    """Describe the NaNs and infinities of an array of floats or complex numbers.

    For example ``3 NaN and 1 infinite``; kinds of which it has none are left out.
    """
    nans, nonfinite = int(np.isnan(value).sum()), int((~np.isfinite(value)).sum())
    counts = ((nans, "NaN"), (nonfinite - nans, "infinite"))
    return " and ".join(f"{count} {kind}" for count, kind in counts if count)


def _format_range(value: Any) -> str:
    """Format the smallest and the largest element of an array that has elements.

    Complex numbers are compared by magnitude, and only that is shown.
    """
    value = np.abs(value) if np.iscomplexobj(value) else value
    return f"from {float(np.min(value)):.3g} to {float(np.max(value)):.3g}"
