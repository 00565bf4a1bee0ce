"""Making a case that fails smaller, as long as it fails in the same way."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any

from attrs import evolve

import passkit as pk
from passkit.errors import ShapeError
from passkit.graph.graph import Graph
from passkit.graph.infer import show_shape
from passkit.graph.node import Entry, Node, constant, known_shape, var
from passkit.values.size import Size
from tests.fuzzing import Failure, check
from tests.random_graphs import Case


def minimised(
    failure: Failure, seconds: float = 60.0, by: Callable[[Case], str | None] | None = None
) -> Failure:
    """The failure of a smaller graph: fewer runs, outputs and operators, as far as time allows.

    It fails as `check` says, or another check ``by`` which it was found.
    """
    by = by or check
    end = time.monotonic() + seconds
    best = failure

    def attempt(case: Case) -> bool:
        nonlocal best
        if time.monotonic() > end:
            return False
        what = by(case)
        if what is None or (kind_of(what) != kind_of(best.what)):
            return False
        best = Failure(case, what)
        return True

    for k in range(len(best.case.feeds)):
        if attempt(evolve(best.case, feeds=(best.case.feeds[k],))):
            break
    progress = True
    while progress and time.monotonic() < end:
        progress = any(attempt(case) for case in _tried(_smaller(best.case)))
    return best


def _tried(cases: Iterator[Case]) -> Iterator[Case]:
    """Yield cases until one cannot be built; its error only ends the iteration."""
    with suppress(Exception):
        yield from cases


def kind_of(what: str) -> str:
    """Return the kind of a failure: the error's type, or "unequal" if values differ."""
    return what.split(":", 1)[0] if "Error" in what.split(":", 1)[0] else "unequal"


def _smaller(case: Case) -> Iterator[Case]:
    """Graphs with something left out, those with most left out first."""
    graph = case.graph
    outputs = graph.outputs
    if len(outputs) > 1:
        for k in range(len(outputs)):
            yield _with(case, Graph([outputs[k]]))
        for k in range(len(outputs)):
            yield _with(case, Graph([*outputs[:k], *outputs[k + 1 :]]))
    for k, entry in enumerate(outputs):
        before = [e for e in entry.node.inputs if e.node.op is None or e.node.inputs]
        if before:
            yield _with(case, Graph([*outputs[:k], *dict.fromkeys(before), *outputs[k + 1 :]]))
    for node in reversed(graph.nodes):
        if node.op is None or node.op.name == "constant":
            continue
        entry = node.entries[0]
        for inner in node.inputs:
            if inner.shape == entry.shape and inner.dtype is entry.dtype:
                with suppress(Exception):  # what shapes say elsewhere may not allow it
                    yield _with(case, graph.replace({entry: inner}))
    for node in graph.nodes:
        if node.op is not None and node.op.name not in ("constant", "assign"):
            with suppress(Exception):
                yield _cut(case, node)
    for node in graph.nodes:
        if node.control:
            yield _with(case, graph.rebuild(lambda n, i, gone=node: _free(n, i, gone)))


def _free(node: Node, inputs: Sequence[Entry], gone: Node) -> Sequence[Entry] | None:
    return node.replaced(inputs, ()).entries if node is gone else None


def _with(case: Case, graph: Graph) -> Case:
    names = {n.name for n in graph.inputs}
    feeds = tuple({k: v for k, v in f.items() if k in names} for f in case.feeds)
    return evolve(case, graph=graph, feeds=feeds)


def _cut(case: Case, node: Node) -> Case:
    """A graph that is fed the values of ``node``, a constant where it is a single element.

    Raises: ShapeError where its shape is more than names and numbers, or only other inputs have
    its size.
    """
    inputs: dict[Entry, Entry] = {}
    more: list[dict[str, Any]] = [{} for _ in case.feeds]
    for entry in node.entries:
        shape = known_shape(entry)
        if any(isinstance(n, Size) and not str(n).isidentifier() for n in shape):
            raise ShapeError(f"{node.where} has the shape {show_shape(shape)}")
        name = f"v{sum(n.is_variable for n in case.graph.nodes)}_{node.name}_{entry.index}"
        inner = _with(case, Graph([entry]))
        values = [pk.interpret(inner.graph, feeds)[0] for feeds in inner.feeds]
        single = values[0].shape == () and len({v.tobytes() for v in values}) == 1
        inputs[entry] = constant(values[0]) if single else var(name, shape, entry.dtype)
        if not single:
            for feeds, value in zip(more, values, strict=True):
                feeds[name] = value
    out = case.graph.replace(inputs)
    feeds = tuple({**a, **b} for a, b in zip(case.feeds, more, strict=True))
    return _with(evolve(case, feeds=feeds), out)
