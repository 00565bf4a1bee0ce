"""Collapsing scopes: nodes with names like ``a/b/c`` share boxes until a picture is small enough.

Scopes are opened in order of their weight, as long as the limit of boxes allows it. Where names
have no scopes, runs of neighbours share a box.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Sequence

from attrs import define, evolve, field, frozen

MAX_DEPTH = 8
"""Parts of a name that make frames; more frames inside each other would not stay readable."""


@frozen
class CollapsedBox:
    """A box that stands for one node, a scope, or a run of neighbours.

    Attributes:
        kind: "node", "scope" or "run".
        label: The node's name, the scope's path with a "/" at the end, or the first and last label
            of the run.
        members: The positions of the nodes that it stands for.
        scope: The path of the open scope that it is drawn in, "" for none.
    """

    kind: str
    label: str
    members: tuple[int, ...]
    scope: str = ""


@define(eq=False)
class _ScopeTree:
    """A scope: the positions of its direct nodes, its inner scopes, and its total weight."""

    path: str
    direct: list[int] = field(factory=list)
    scopes: dict[str, _ScopeTree] = field(factory=dict)
    weight: float = 0.0

    @property
    def num_children(self) -> int:
        """The number of boxes that appear when the scope is opened."""
        return len(self.direct) + len(self.scopes)


def collapse_scopes(
    names: Sequence[str], limit: int, weights: Sequence[float] | None = None
) -> tuple[list[CollapsedBox], list[str]]:
    """Choose at most about ``limit`` boxes for nodes, by the scopes in their names.

    Args:
        names: The name of each node, with parts that "/" separates.
        limit: The number of boxes to aim at.
        weights: The importance of each node; by default all are equal.

    Returns: The boxes in the order of their first members, and the paths of the open scopes, outer
        ones first, without scopes that would hold a single box.

    >>> [box.label for box in collapse_scopes(["a/x", "a/y", "b/x", "b/y", "c"], 4)[0]]
    ['a/', 'b/', 'c']
    """
    root = _tree(names, weights or [1.0] * len(names))
    opened = _opened(root, limit)
    contents = {scope.path: _contents(scope, opened, names) for scope in opened.values()}
    total = sum(map(len, contents.values()))
    for path, boxes in contents.items():
        if total > limit and len(boxes) > 1:
            count = max(1, len(boxes) * limit // total)
            contents[path] = list(_runs(boxes, -(-len(boxes) // count)))
    frames = [
        path
        for path, scope in opened.items()
        if path and len(contents[path]) + sum(s.path in opened for s in scope.scopes.values()) > 1
    ]
    collapsed = [
        evolve(box, scope=_innermost_frame(frames, box.scope))
        for boxes in contents.values()
        for box in boxes
    ]
    return sorted(collapsed, key=lambda box: box.members[0]), frames


def _innermost_frame(frames: Sequence[str], path: str) -> str:
    """Return the innermost of the frames that the scope ``path`` is in, "" for none."""
    while path and path not in frames:
        path = path.rpartition("/")[0]
    return path


def _tree(names: Sequence[str], weights: Sequence[float]) -> _ScopeTree:
    """Return the root of the tree of scopes, which has the path "".

    ``names`` and ``weights`` are those of the nodes, whose positions the tree holds.
    """
    root = _ScopeTree("")
    for k, name in enumerate(names):
        scope = root
        scope.weight += weights[k]
        for part in _scope_parts(name):
            path = f"{scope.path}/{part}" if scope.path else part
            scope = scope.scopes.setdefault(part, _ScopeTree(path))
            scope.weight += weights[k]
        scope.direct.append(k)
    return root


def _scope_parts(name: str) -> list[str]:
    """Return the scopes in a name, outermost first, at most MAX_DEPTH."""
    return [p for p in name.split("/")[:-1] if p][:MAX_DEPTH]


def _opened(root: _ScopeTree, limit: int) -> dict[str, _ScopeTree]:
    """Return the scopes in ``root`` to open by path, outer ones first.

    Scopes of about the same weight are opened together or not at all: equal layers look equal. They
    are opened while the number of boxes stays within ``limit``, or is below a third of it. The
    root, with the path "", is always open.
    """
    opened = {"": root}
    total = root.num_children
    pending: list[tuple[float, str, list[_ScopeTree]]] = []

    def push(scopes: Iterable[_ScopeTree]) -> None:
        """Add scopes to ``pending``, those of similar weight together."""
        for batch in _batches(scopes):
            heapq.heappush(pending, (-sum(s.weight for s in batch), batch[0].path, batch))

    push(root.scopes.values())
    while pending:
        *_, scopes = heapq.heappop(pending)
        increased = total + sum(s.num_children - 1 for s in scopes)
        if increased > limit and total > limit // 3:
            continue  # with fewer boxes, runs of what is inside would show more
        total = increased
        opened.update({s.path: s for s in scopes})
        push(inner for s in scopes for inner in s.scopes.values())
    return opened


def _batches(scopes: Iterable[_ScopeTree]) -> Iterator[list[_ScopeTree]]:
    """Yield scopes of similar weight together; a batch ends where the weight drops by a third."""
    batch: list[_ScopeTree] = []
    for scope in sorted(scopes, key=lambda s: (-s.weight, s.path)):
        if batch and scope.weight < batch[-1].weight / 1.5:
            yield batch
            batch = []
        batch.append(scope)
    if batch:
        yield batch


def _contents(
    scope: _ScopeTree, opened: dict[str, _ScopeTree], names: Sequence[str]
) -> list[CollapsedBox]:
    """Return the boxes directly in an open scope, in the order of their first members.

    ``opened`` are the open scopes by path; inner scopes that are not open get one box each.
    ``names`` are those of all nodes.
    """
    boxes = [CollapsedBox("node", names[k], (k,), scope.path) for k in scope.direct]
    for inner in scope.scopes.values():
        if inner.path not in opened:
            members = tuple(sorted(_members(inner)))
            if len(members) == 1:
                boxes.append(CollapsedBox("node", names[members[0]], members, scope.path))
            else:
                boxes.append(CollapsedBox("scope", f"{inner.path}/", members, scope.path))
    return sorted(boxes, key=lambda box: box.members[0])


def _members(scope: _ScopeTree) -> Iterator[int]:
    """Yield the positions of all nodes in a scope and its inner scopes."""
    pending = [scope]
    while pending:
        inner = pending.pop()
        yield from inner.direct
        pending += inner.scopes.values()


def _runs(boxes: Sequence[CollapsedBox], length: int) -> Iterator[CollapsedBox]:
    """Yield one box for every ``length`` neighbours of ``boxes``; a single one stays as it is."""
    for k in range(0, len(boxes), length):
        run = boxes[k : k + length]
        if len(run) == 1:
            yield run[0]
        else:
            members = tuple(sorted(m for box in run for m in box.members))
            yield CollapsedBox("run", f"{run[0].label} … {run[-1].label}", members, run[0].scope)
