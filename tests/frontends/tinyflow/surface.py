"""API cases: a call of every public name, and another value of every argument.

A case calls a name with base arguments. For every argument that TensorFlow 1 documents it has
another value, under which the observed result must differ, or which must be rejected by name.
``signatures.json`` holds TensorFlow 1's signatures, from tf.compat.v1 of 2.21 and the documentation
of 1.15.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from attrs import field, frozen

from passkit.frontends import tinyflow as tf

SIGNATURES: dict[str, list[str]] = json.loads(
    (Path(__file__).parent / "signatures.json").read_text()
)
Maker = Callable[[], Any]


@frozen
class RejectedValue:
    """A value that must be rejected with an error that names the argument."""

    value: Any


@frozen
class CombinedValue:
    """A value of an argument that has an effect in combination with other arguments."""

    value: Any
    more: Mapping[str, Any]


@frozen
class CallCase:
    """A call, and other values of its arguments.

    Arguments that `lazy` marks are functions, which are called for the value.
    """

    base: Mapping[str, Any]
    other: Mapping[str, Any] = field(factory=dict)
    observe: Callable[..., Any] | None = None
    """Takes the function and the arguments, and returns what to compare.

    By default names and values of the tensors that the function returns.
    """


def resolve_name(name: str) -> Any:
    """Return the object that a public name refers to."""
    value: Any = tf
    for part in name.split("."):
        value = getattr(value, part)
    return value


def parameters(name: str) -> dict[str, str | None]:
    """Return TensorFlow's parameters of a function, with their defaults as text."""
    split = [text.partition("=") for text in SIGNATURES[name]]
    return {n.lstrip("*"): (d if eq else None) for n, eq, d in split}


def observe_call(name: str, case: CallCase, changes: Mapping[str, Any]) -> Any:
    """Make a call in a new graph with a seed, and return what is observed of it."""
    with tf.Graph().as_default():
        tf.set_random_seed(5)
        arguments = {
            k: v() if callable(v) and getattr(v, "lazy", 0) else v
            for k, v in {**case.base, **changes}.items()
        }
        if case.observe is not None:
            return case.observe(resolve_name(name), **arguments)
        positional = arguments.pop("*", ())
        return values(resolve_name(name)(*positional, **arguments))


def lazy(make: Maker) -> Maker:
    """Mark a function that creates an argument inside the graph of the call."""
    make.lazy = True  # type: ignore[attr-defined]
    return make


def values(result: Any, **feeds: Any) -> list[Any]:
    """Return names, dtypes, shapes and values of the tensors of a result, and of all variables."""
    leaves_of_result = [r for r in _leaves(result) if r is not None]
    graph = tf.get_default_graph()
    losses = [t for key in ("regularization_losses", "update_ops") for t in tf.get_collection(key)]
    with tf.Session(target="interpret", graph=graph) as session:
        if tf.global_variables():
            session.run(tf.global_variables_initializer())
        tensors = [t for t in (*leaves_of_result, *losses) if not isinstance(t, tf.Operation)]
        results = session.run(tensors)
        if steps := [t for t in (*losses, *leaves_of_result) if isinstance(t, tf.Operation)]:
            session.run(steps)
        values_after = session.run(tf.global_variables()) if tf.global_variables() else []
    return [
        *((t.name, _shown(v)) for t, v in zip(tensors, results, strict=True)),
        *(
            (v.name, v.trainable, _shown(a))
            for v, a in zip(tf.global_variables(), values_after, strict=True)
        ),
    ]


def _leaves(result: Any) -> list[Any]:
    if isinstance(result, (list, tuple)):
        return [leaf for part in result for leaf in _leaves(part)]
    return [result]


def _shown(value: Any) -> Any:
    if isinstance(value, bytes):
        return value
    array = np.asarray(value)
    return (str(array.dtype), array.shape, array.tobytes())
