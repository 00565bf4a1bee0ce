"""What a pass changed: two graphs side by side, and which nodes changed their group."""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Mapping
from typing import TYPE_CHECKING

from attrs import frozen

from passkit.graph.graph import freeze, graph_of_argument
from passkit.viz.colours import CAME, GONE, MOVED, SAME
from passkit.viz.labels import call_lines, last_part, short_name, small, type_lines
from passkit.viz.scene import Arrow, Box, Frame, Scene

if TYPE_CHECKING:
    from passkit.graph.graph import Graph
    from passkit.graph.node import Entry, Node
    from passkit.viz.scene import Picture

MANY = 150
"""Nodes of a side beyond which only what changed is drawn, and what touches it."""


@frozen
class Side:
    """One of the graphs: its nodes in post-order, groups opened, and what it returns."""

    parts: Mapping[Node, Part]
    outputs: tuple[Entry, ...]


@frozen
class Part:
    """A node with the group it is in (None: by itself), its name, and what its inputs are."""

    node: Node
    name: str
    group: Node | None
    reads: tuple[Entry, ...]


def diff(before: Graph, after: Graph) -> Picture:
    """Two graphs side by side: red is gone, green is new, yellow runs with others than before.

    Groups are opened. A node is in both graphs when all that it depends on is there too, or all
    that depends on it, or when it has a name and does the same. Of large graphs only the changes
    are drawn, with what they touch.
    """
    before = graph_of_argument("diff: before", before)
    after = graph_of_argument("diff: after", after)
    old, new = opened(before), opened(after)
    fates = compare(old, new)
    scene = Scene("diff")
    for side, graph, found in (("before", before, old), ("after", after, new)):
        _draw(scene, side, graph, found.parts, fates)
    texts = {
        GONE: "gone",
        CAME: "new",
        MOVED: "runs with others than before",
        SAME: "as before",
    }
    used = {b.fill for b in scene.boxes.values()}
    scene.legend = [
        Box(f"legend{k}", (text,), fill=fill)
        for k, (fill, text) in enumerate(texts.items())
        if fill in used
    ]
    return scene.picture()


def opened(graph: Graph) -> Side:
    """A graph with its groups opened; reads go through their borders."""
    found: dict[Node, Part] = {}
    real: dict[Entry, Entry] = {}
    for node in graph.nodes:
        body = node.params.get("body")
        reads = tuple(real.get(e, e) for e in node.inputs)
        if body is None:
            found[node] = Part(node, graph.names[node], None, reads)
            continue
        real.update(zip((v.entries[0] for v in body.inputs), reads, strict=True))
        names = body.graph.names
        for inner in body.graph.nodes:
            if inner.op is not None:
                inner_reads = tuple(real.get(e, e) for e in inner.inputs)
                name = body.origin.get(inner) or names[inner]
                found[inner] = Part(inner, name, node, inner_reads)
        outputs = (real.get(e, e) for e in body.graph.outputs)
        real.update(zip(node.entries, outputs, strict=True))
    return Side(found, tuple(real.get(e, e) for e in graph.outputs))


def compare(old: Side, new: Side) -> dict[Node, str]:
    """The colour of each node of both sides."""
    pairs = _partners(old, new)
    fates = dict.fromkeys(old.parts, GONE) | dict.fromkeys(new.parts, CAME)
    for a, b in pairs.items():
        with_a = {pairs.get(n) for n in _company(old.parts, a)}
        same = with_a == set(_company(new.parts, b))
        fates[a] = fates[b] = SAME if same else MOVED
    return fates


def _company(side: Mapping[Node, Part], node: Node) -> list[Node]:
    """The operators that share a group with a node; by itself it is alone, grouped or not."""
    group = side[node].group
    if group is None:
        return [node]
    members = [n for n in group.params["body"].graph.nodes if n.op is not None and n in side]
    return [n for n in members if not _is_constant(n)] if not _is_constant(node) else [node]


def _is_constant(node: Node) -> bool:
    return node.op is not None and node.op.name == "constant"


def _partners(old: Side, new: Side) -> dict[Node, Node]:
    """For a node of the first its partner in the second: by inputs, readers or name."""
    pairs: dict[Node, Node] = {}
    for digests in (_upstream, _downstream, _named):
        left = {n: k for n, k in digests(old).items() if n not in pairs}
        taken = set(pairs.values())
        waiting: dict[str, deque[Node]] = {}
        for node, key in digests(new).items():
            if node not in taken:
                waiting.setdefault(key, deque()).append(node)
        for node, key in left.items():
            if waiting.get(key):
                pairs[node] = waiting[key].popleft()
    return pairs


def _what(part: Part) -> str:
    node = part.node
    name = node.op.name if node.op else f"variable {node.name}"
    return f"{name} {freeze(node.params)!r}"


def _digest(*what: object) -> str:
    return hashlib.sha256(repr(what).encode()).hexdigest()


def _upstream(side: Side) -> dict[Node, str]:
    keys: dict[Node, str] = {}
    for node, part in side.parts.items():
        keys[node] = _digest(_what(part), [(keys[e.node], e.index) for e in part.reads])
    return keys


def _downstream(side: Side) -> dict[Node, str]:
    readers: dict[Node, list[str]] = {n: [] for n in side.parts}
    for k, entry in enumerate(side.outputs):
        readers[entry.node].append(f"output {k} {entry.index}")
    keys: dict[Node, str] = {}
    for node in reversed(list(side.parts)):
        keys[node] = _digest(_what(side.parts[node]), sorted(readers[node]))
        for k, entry in enumerate(side.parts[node].reads):
            readers[entry.node].append(f"{keys[node]} {k} {entry.index}")
    return keys


def _named(side: Side) -> dict[Node, str]:
    return {n: _digest(n.name, _what(p)) for n, p in side.parts.items() if n.name}


def _draw(
    scene: Scene, side: str, graph: Graph, found: Mapping[Node, Part], fates: Mapping[Node, str]
) -> None:
    scene.frames[side] = Frame(side, side)
    shown = _shown(found, fates)
    frames: dict[Node, str] = {}
    keys: dict[Node, str] = {}
    for part in found.values():
        node = part.node
        if node not in shown or small(node) is not None:
            continue
        if part.group is not None and part.group not in frames:
            key = frames[part.group] = f"{side}_g{len(frames)}"
            label = (
                f"{short_name(graph.names[part.group])} · {part.group.params['body'].kind.value}"
            )
            scene.frames[key] = Frame(key, label, side)
        keys[node] = scene.add(_box(f"{side}{len(keys)}", part, fates[node], frames, side))
        for entry in part.reads:
            if entry.node in keys:
                scene.arrows.append(Arrow(keys[entry.node], keys[node], type_lines(entry)))
    hidden = len(found) - len(shown)
    if hidden:
        same = sum(fates[n] == SAME for n in found if n not in shown)
        text = f"{same} nodes as before are left out"
        text += f", and {hidden - same} that changed" if hidden > same else ""
        scene.add(Box(f"{side}_rest", (text,), "plaintext", "none", frame=side))


def _shown(found: Mapping[Node, Part], fates: Mapping[Node, str]) -> set[Node]:
    """All nodes, or where they are many the first that changed, with their neighbours."""
    if len(found) <= MANY:
        return set(found)
    changed = set([n for n in found if fates[n] != SAME][:MANY])
    near = {e.node for n in changed for e in found[n].reads}
    readers = {n for n, p in found.items() if any(e.node in changed for e in p.reads)}
    return changed | near | readers


def _box(key: str, part: Part, fill: str, frames: Mapping[Node, str], side: str) -> Box:
    node = part.node
    frame = frames[part.group] if part.group is not None else side
    if node.op is None:
        form = "cylinder" if node.params.get("state") else "ellipse"
        return Box(key, (short_name(part.name),), form, fill, frame=frame)
    if _is_constant(node):
        return Box(key, (short_name(part.name),), "note", fill, frame=frame)
    lines = call_lines(node, last_part(part.name))
    return Box(key, lines, "box", fill, frame=frame, tooltip=part.name)
