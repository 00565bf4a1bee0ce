"""Scopes: names with parts (``a/b/c``) folded until what is left fits a picture.

A fold is what one box stands for: a node, a scope, or a run of neighbours where names have no
parts. Scopes are opened from the heaviest on as long as boxes are left.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Sequence

from attrs import define, evolve, field, frozen

DEEPEST = 8
"""Parts of a name beyond which it is one scope: frames in frames do not stay readable."""


@frozen
class Fold:
    """One box: the positions of what it stands for, its label, and the scope it is drawn in."""

    kind: str
    """"node", "scope" or "run"."""
    label: str
    members: tuple[int, ...]
    scope: str = ""


@define(eq=False)
class _Scope:
    path: str
    own: list[int] = field(factory=list)
    scopes: dict[str, _Scope] = field(factory=dict)
    weight: float = 0.0
    count: int = 0

    @property
    def parts(self) -> int:
        """The boxes that opening it shows."""
        return len(self.own) + len(self.scopes)


def folded(
    names: Sequence[str], limit: int, weights: Sequence[float] | None = None
) -> tuple[list[Fold], list[str]]:
    """What ``limit`` boxes show of nodes with these names, and the scopes that are open.

    ``weights`` say how much one wants to see of each; by default all count the same. Open scopes
    are told outer ones first, without those that would hold one box.

    >>> [f.label for f in folded(["a/x", "a/y", "b/x", "b/y", "c"], 4)[0]]
    ['a/', 'b/', 'c']
    """
    root = _tree(names, weights or [1.0] * len(names))
    opened = _opened(root, limit)
    items = {scope.path: list(_items(scope, opened, names)) for scope in opened.values()}
    total = sum(map(len, items.values()))
    for path, folds in items.items():
        if total > limit and len(folds) > 1:
            kept = max(1, len(folds) * limit // total)
            items[path] = list(_runs(folds, -(-len(folds) // kept)))
    frames = [
        path
        for path, scope in opened.items()
        if path and len(items[path]) + sum(s.path in opened for s in scope.scopes.values()) > 1
    ]
    folds = [evolve(f, scope=_within(frames, f.scope)) for found in items.values() for f in found]
    return sorted(folds, key=lambda f: f.members[0]), frames


def _within(frames: Sequence[str], path: str) -> str:
    """The innermost of the frames that a scope is in."""
    while path and path not in frames:
        path = path.rpartition("/")[0]
    return path


def _tree(names: Sequence[str], weights: Sequence[float]) -> _Scope:
    root = _Scope("")
    for k, name in enumerate(names):
        scope = root
        scope.weight += weights[k]
        scope.count += 1
        for part in _parts(name):
            path = f"{scope.path}/{part}" if scope.path else part
            scope = scope.scopes.setdefault(part, _Scope(path))
            scope.weight += weights[k]
            scope.count += 1
        scope.own.append(k)
    return root


def _parts(name: str) -> list[str]:
    return [p for p in name.split("/")[:-1] if p][:DEEPEST]


def _opened(root: _Scope, limit: int) -> dict[str, _Scope]:
    """The scopes that are shown open, each after the one it is in.

    Those that weigh about the same are opened together or not at all: equal layers look equal.
    """
    opened = {"": root}
    total = root.parts
    waiting: list[tuple[float, str, list[_Scope]]] = []
    for batch in _alike(root.scopes.values()):
        heapq.heappush(waiting, (-sum(s.weight for s in batch), batch[0].path, batch))
    while waiting:
        *_, scopes = heapq.heappop(waiting)
        grown = total + sum(s.parts - 1 for s in scopes)
        if grown > limit and total > limit // 3:
            continue  # with so few boxes so far, runs of what is inside tell more
        total = grown
        opened.update({s.path: s for s in scopes})
        for batch in _alike(i for s in scopes for i in s.scopes.values()):
            heapq.heappush(waiting, (-sum(s.weight for s in batch), batch[0].path, batch))
    return opened


def _alike(scopes: Iterable[_Scope]) -> Iterator[list[_Scope]]:
    """Scopes in batches of about the same weight, which end where it falls by a third."""
    batch: list[_Scope] = []
    for scope in sorted(scopes, key=lambda s: (-s.weight, s.path)):
        if batch and scope.weight < batch[-1].weight / 1.5:
            yield batch
            batch = []
        batch.append(scope)
    if batch:
        yield batch


def _items(scope: _Scope, opened: dict[str, _Scope], names: Sequence[str]) -> Iterator[Fold]:
    """What an open scope shows itself, in the order of first members."""
    found = [Fold("node", names[k], (k,), scope.path) for k in scope.own]
    for inner in scope.scopes.values():
        if inner.path not in opened:
            members = tuple(sorted(_members(inner)))
            if len(members) == 1:
                found.append(Fold("node", names[members[0]], members, scope.path))
            else:
                found.append(Fold("scope", f"{inner.path}/", members, scope.path))
    return iter(sorted(found, key=lambda f: f.members[0]))


def _members(scope: _Scope) -> Iterator[int]:
    todo = [scope]
    while todo:
        inner = todo.pop()
        yield from inner.own
        todo += inner.scopes.values()


def _runs(folds: Sequence[Fold], length: int) -> Iterator[Fold]:
    """Neighbours together, ``length`` at a time."""
    for k in range(0, len(folds), length):
        run = folds[k : k + length]
        if len(run) == 1:
            yield run[0]
        else:
            members = tuple(sorted(m for f in run for m in f.members))
            yield Fold("run", f"{run[0].label} … {run[-1].label}", members, run[0].scope)
