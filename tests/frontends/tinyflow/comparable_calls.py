"""The calls of the API cases that TensorFlow can make, too, so that results can be compared."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from passkit.frontends import tinyflow as tf
from tests.frontends.tinyflow import math_cases, nn_cases
from tests.frontends.tinyflow.surface import CallCase, CombinedValue, RejectedValue, parameters

CASES = {**math_cases.CASES, **nn_cases.CASES}
PLAIN_OBSERVERS = (None, nn_cases.observe_gradients, nn_cases.observe_results)
DRAWN = (
    "random_normal",
    "truncated_normal",
    "random_uniform",
    "random_shuffle",
    "nn.dropout",
    "nn.log_uniform_candidate_sampler",
)
"""Calls whose results differ from process to process."""
DTYPE_CLASS = type(tf.float32)


def calls() -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield each call's name, the argument that it changes, and its arguments."""
    for name, row in CASES.items():
        if row.observe in PLAIN_OBSERVERS and name not in DRAWN:
            yield from _calls(name, row)


def _calls(name: str, case: CallCase) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield the calls of a case that neither draw random numbers nor build their arguments."""
    for argument in ("", *parameters(name)):
        alternative = case.other.get(argument) if argument else {}
        further_arguments = dict(alternative.more) if isinstance(alternative, CombinedValue) else {}
        value = alternative.value if isinstance(alternative, CombinedValue) else alternative
        if value is None or isinstance(value, RejectedValue) or argument == "name":
            continue
        arguments = {**case.base, **further_arguments, **({argument: value} if argument else {})}
        is_random = name == "nn.nce_loss" and argument != "sampled_values"
        if not is_random and not any(getattr(v, "lazy", 0) for v in arguments.values()):
            yield name, argument, arguments


def leaves(result: Any) -> list[Any]:
    """Return the tensors in nested lists and tuples; None is left out."""
    if isinstance(result, (list, tuple)):
        return [leaf for part in result for leaf in leaves(part)]
    return [] if result is None else [result]
