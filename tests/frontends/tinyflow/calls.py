"""The calls of the surface that TensorFlow can make, too: the base of each row, and its changes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from passkit.frontends.tinyflow.dtypes import exported
from tests.frontends.tinyflow import cases_math, cases_nn
from tests.frontends.tinyflow.surface import Also, Refused, Row, parameters

ROWS = {**cases_math.ROWS, **cases_nn.ROWS}
SEEN = (None, cases_nn._moving, cases_nn._in_one)
DRAWN = (
    *("random_normal", "truncated_normal", "random_uniform", "random_shuffle", "nn.dropout"),
    "nn.log_uniform_candidate_sampler",
)
"""What is different in each process."""
TYPES = tuple(exported().values())


def calls() -> Iterator[tuple[str, str, dict[str, Any]]]:
    """The name of each call, what it changes, and its arguments, all of them plain values."""
    for name, row in ROWS.items():
        if row.see in SEEN and name not in DRAWN:
            yield from _calls(name, row)


def _calls(name: str, row: Row) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for argument in ("", *parameters(name)):
        other = row.other.get(argument) if argument else {}
        more = dict(other.more) if isinstance(other, Also) else {}
        value = other.value if isinstance(other, Also) else other
        if value is None or isinstance(value, Refused) or argument == "name":
            continue
        arguments = {**row.base, **more, **({argument: value} if argument else {})}
        drawn = name == "nn.nce_loss" and argument != "sampled_values"
        if not drawn and not any(getattr(v, "lazy", 0) for v in arguments.values()):
            yield name, argument, arguments


def leaves(result: Any) -> list[Any]:
    """The tensors of a result."""
    if isinstance(result, (list, tuple)):
        return [leaf for part in result for leaf in leaves(part)]
    return [] if result is None else [result]
