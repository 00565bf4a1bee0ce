"""The surface as a table: a call of every name, and what each argument changes.

A row calls a name with base arguments. For every other argument that TensorFlow 1 documents it has
another value, under which the call must differ in what is seen of it, or be refused by name.
``signatures.json`` are TensorFlow 1's signatures, as tf.compat.v1 of 2.21 and the documentation of
1.15 have them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from attrs import field, frozen

from passkit.frontends import tinyflow as tf
from passkit.frontends.tinyflow.scopes import nodes_of
from passkit.frontends.tinyflow.tensors import HostTensor

SIGNATURES: dict[str, list[str]] = json.loads(
    (Path(__file__).parent / "signatures.json").read_text()
)
Maker = Callable[[], Any]


@frozen
class Refused:
    """A value that an argument does not take."""

    value: Any


@frozen
class Also:
    """A value of an argument that has an effect together with other arguments."""

    value: Any
    more: Mapping[str, Any]


@frozen
class Row:
    """A call and the other values of its arguments; functions are called for the values."""

    base: Mapping[str, Any]
    other: Mapping[str, Any] = field(factory=dict)
    see: Callable[..., Any] | None = None
    """What is seen of a call with these arguments; by default the values of its tensors."""


def find(name: str) -> Any:
    """What a name of the surface stands for."""
    found: Any = tf
    for part in name.split("."):
        found = getattr(found, part)
    return found


def parameters(name: str) -> dict[str, str | None]:
    """TensorFlow's parameters of a name, and their defaults as text."""
    split = [text.partition("=") for text in SIGNATURES[name]]
    return {n.lstrip("*"): (d if eq else None) for n, eq, d in split}


def seen(name: str, row: Row, changes: Mapping[str, Any]) -> Any:
    """What a call shows, in a graph of its own whose draws repeat."""
    with tf.Graph().as_default():
        tf.set_random_seed(5)
        arguments = {k: v() if callable(v) and getattr(v, "lazy", 0) else v
                     for k, v in {**row.base, **changes}.items()}
        if row.see is not None:
            return row.see(find(name), **arguments)
        positional = arguments.pop("*", ())
        return values(find(name)(*positional, **arguments))


def lazy(make: Maker) -> Maker:
    """An argument that is made in the graph of the call."""
    make.lazy = True  # type: ignore[attr-defined]
    return make


def values(result: Any, **feeds: Any) -> list[Any]:
    """Names, dtypes, shapes and values of the tensors that a call gave, variables initialised."""
    flat = [r for r in _leaves(result) if r is not None]
    graph = tf.get_default_graph()
    losses = [t for key in ("regularization_losses", "update_ops") for t in tf.get_collection(key)]
    with tf.Session(target="interpret", graph=graph) as session:
        if tf.global_variables():
            session.run(tf.global_variables_initializer())
        tensors = [t for t in (*flat, *losses) if not isinstance(t, tf.Operation)]
        found = session.run(tensors)
        if steps := [t for t in (*losses, *flat) if isinstance(t, tf.Operation)]:
            session.run(steps)
        after = session.run(tf.global_variables()) if tf.global_variables() else []
    return [
        *((t.name, _shown(v)) for t, v in zip(tensors, found, strict=True)),
        *((v.name, v.trainable, _shown(a))
          for v, a in zip(tf.global_variables(), after, strict=True)),
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


__all__ = ["HostTensor", "nodes_of"]
