"""Diffs: two graphs side by side, with the nodes that a pass removed, added or regrouped."""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Mapping
from typing import TYPE_CHECKING

from attrs import frozen

from passkit.graph.graph import freeze, graph_of_argument
from passkit.viz.labels import call_lines, last_part, scalar_text, short_name, type_lines
from passkit.viz.picture import Picture, picture_of
from passkit.viz.scene import Scene, SceneArrow, SceneBox, SceneFrame
from passkit.viz.styles import CAME, GONE, MOVED, SAME

if TYPE_CHECKING:
    from passkit.graph.graph import Graph
    from passkit.graph.node import Entry, Node

MANY = 150
"""Nodes of a graph beyond which only changed nodes and their neighbours are drawn."""

CHANGES = {
    GONE: "removed",
    CAME: "added",
    MOVED: "moved to another group",
    SAME: "unchanged",
}
"""The meaning of each fill, for the legend."""


@frozen
class DiffSide:
    """One of the two graphs, with the operators of groups in place of the groups.

    Attributes:
        nodes: Its nodes in topological order.
        outputs: Its outputs.
    """

    nodes: Mapping[Node, DiffNode]
    outputs: tuple[Entry, ...]


@frozen
class DiffNode:
    """A node of one side.

    Attributes:
        node: The node, of the graph or of a group's graph.
        name: Its name.
        group: The node of the group that it is in, None outside groups.
        inputs: Its inputs, looking through the borders of groups.
    """

    node: Node
    name: str
    group: Node | None
    inputs: tuple[Entry, ...]


def diff(before: Graph, after: Graph) -> Picture:
    """Draw two graphs side by side: red is removed, green is added, yellow moved to another group.

    The operators of groups are drawn. A node is in both graphs if everything it depends on is, or
    everything that depends on it, or if it has the same name, operator and parameters in both. Of
    graphs of more than 150 nodes only the changes and their neighbours are drawn.

    Args:
        before: A graph, or an entry or entries as its outputs.
        after: Another graph, such as the result of a pass.

    Returns: A drawing, which `render` writes to a file and notebooks show.

    Raises: ArgumentError or GraphError if an argument is neither a graph nor entries.
    """
    before = graph_of_argument("diff: before", before)
    after = graph_of_argument("diff: after", after)
    old, new = expand_groups(before), expand_groups(after)
    fills = compare(old, new)
    scene = Scene("diff")
    for title, graph, side in (("before", before, old), ("after", after, new)):
        _draw_side(scene, title, graph, side.nodes, fills)
    used = {b.fill for b in scene.boxes.values()}
    scene.legend = [
        SceneBox(f"legend{k}", (text,), fill=fill)
        for k, (fill, text) in enumerate(CHANGES.items())
        if fill in used
    ]
    return picture_of(scene)


def expand_groups(graph: Graph) -> DiffSide:
    """Return the nodes of a graph, with the operators of each group instead of its node.

    Variables inside groups are left out: entries that cross a group's border are replaced by those
    that they stand for.
    """
    nodes: dict[Node, DiffNode] = {}
    source: dict[Entry, Entry] = {}  # of entries at the borders of groups
    for node in graph.nodes:
        body = node.params.get("body")
        inputs = tuple(source.get(e, e) for e in node.inputs)
        if body is None:
            nodes[node] = DiffNode(node, graph.names[node], None, inputs)
            continue
        source.update(zip((v.entries[0] for v in body.inputs), inputs, strict=True))
        names = body.graph.names
        for inner in body.graph.nodes:
            if inner.op is not None:
                inner_inputs = tuple(source.get(e, e) for e in inner.inputs)
                name = body.origin.get(inner) or names[inner]
                nodes[inner] = DiffNode(inner, name, node, inner_inputs)
        outputs = (source.get(e, e) for e in body.graph.outputs)
        source.update(zip(node.entries, outputs, strict=True))
    return DiffSide(nodes, tuple(source.get(e, e) for e in graph.outputs))


def compare(old: DiffSide, new: DiffSide) -> dict[Node, str]:
    """Return the fill of each node of both sides: GONE, CAME, MOVED or SAME.

    Nodes only in ``old`` are GONE, those only in ``new`` CAME; a pair is MOVED where the operators
    of its group differ.
    """
    pairs = _pairs(old, new)
    fills = dict.fromkeys(old.nodes, GONE) | dict.fromkeys(new.nodes, CAME)
    for a, b in pairs.items():
        with_a = {pairs.get(n) for n in _group_members(old.nodes, a)}
        is_same = with_a == set(_group_members(new.nodes, b))
        fills[a] = fills[b] = SAME if is_same else MOVED
    return fills


def _group_members(nodes: Mapping[Node, DiffNode], node: Node) -> list[Node]:
    """Return the operators of a node's group except constants; outside groups, the node alone."""
    group = nodes[node].group
    if group is None or _is_constant(node):
        return [node]
    members = [n for n in group.params["body"].graph.nodes if n.op is not None and n in nodes]
    return [n for n in members if not _is_constant(n)]


def _is_constant(node: Node) -> bool:
    """Return whether a node is a constant."""
    return node.op is not None and node.op.name == "constant"


def _pairs(old: DiffSide, new: DiffSide) -> dict[Node, Node]:
    """Return nodes of the old side with their equivalents of the new one.

    Nodes are paired by equal digests: first of all they depend on, then of all that depends on
    them, then of their names.
    """
    pairs: dict[Node, Node] = {}
    for digests in (_upstream_digests, _downstream_digests, _name_digests):
        unpaired = {n: key for n, key in digests(old).items() if n not in pairs}
        paired = set(pairs.values())
        candidates: dict[str, deque[Node]] = {}
        for node, key in digests(new).items():
            if node not in paired:
                candidates.setdefault(key, deque()).append(node)
        for node, key in unpaired.items():
            if candidates.get(key):
                pairs[node] = candidates[key].popleft()
    return pairs


def _operator_key(diff_node: DiffNode) -> str:
    """Return a node's operator with its parameters, or a variable's name, as text."""
    node = diff_node.node
    name = node.op.name if node.op else f"variable {node.name}"
    return f"{name} {freeze(node.params)!r}"


def _digest(*values: object) -> str:
    """Return a SHA-256 digest of the repr of values, in hexadecimal."""
    return hashlib.sha256(repr(values).encode()).hexdigest()


def _upstream_digests(side: DiffSide) -> dict[Node, str]:
    """Return for each node a digest of it and of everything it depends on."""
    digests: dict[Node, str] = {}
    for node, diff_node in side.nodes.items():
        inputs = [(digests[e.node], e.index) for e in diff_node.inputs]
        digests[node] = _digest(_operator_key(diff_node), inputs)
    return digests


def _downstream_digests(side: DiffSide) -> dict[Node, str]:
    """Return for each node a digest of it and of everything that depends on it."""
    consumers: dict[Node, list[str]] = {n: [] for n in side.nodes}
    for k, entry in enumerate(side.outputs):
        consumers[entry.node].append(f"output {k} {entry.index}")
    digests: dict[Node, str] = {}
    for node in reversed(list(side.nodes)):
        diff_node = side.nodes[node]
        digests[node] = _digest(_operator_key(diff_node), sorted(consumers[node]))
        for k, entry in enumerate(diff_node.inputs):
            consumers[entry.node].append(f"{digests[node]} {k} {entry.index}")
    return digests


def _name_digests(side: DiffSide) -> dict[Node, str]:
    """Return for each named node of ``side`` a digest of its name, operator and parameters.

    Nodes without a name have none.
    """
    return {n: _digest(n.name, _operator_key(d)) for n, d in side.nodes.items() if n.name}


def _draw_side(
    scene: Scene,
    side: str,
    graph: Graph,
    nodes: Mapping[Node, DiffNode],
    fills: Mapping[Node, str],
) -> None:
    """Add one graph to the scene, in a frame called ``side``, with its groups as frames inside.

    Constants of one element are written into their consumers. Of large graphs a box says how many
    nodes are left out.

    Args:
        scene: The scene, which is changed.
        side: "before" or "after".
        graph: The graph.
        nodes: Its nodes, with the operators of groups in place of the groups.
        fills: The fill of each node, as `compare` returns it.
    """
    scene.frames[side] = SceneFrame(side, side)
    drawn = _drawn_nodes(nodes, fills)
    frames: dict[Node, str] = {}
    keys: dict[Node, str] = {}
    for node, diff_node in nodes.items():
        if node not in drawn or scalar_text(node) is not None:
            continue
        group = diff_node.group
        if group is not None and group not in frames:
            key = frames[group] = f"{side}_g{len(frames)}"
            kind = group.params["body"].kind.value
            scene.frames[key] = SceneFrame(key, f"{short_name(graph.names[group])} · {kind}", side)
        frame = side if group is None else frames[group]
        keys[node] = scene.add(_box(f"{side}{len(keys)}", diff_node, fills[node], frame))
        for entry in diff_node.inputs:
            if entry.node in keys:
                scene.arrows.append(SceneArrow(keys[entry.node], keys[node], type_lines(entry)))
    num_hidden = len(nodes) - len(drawn)
    if num_hidden:
        num_same = sum(fills[n] == SAME for n in nodes if n not in drawn)
        text = f"{num_same} unchanged nodes are not shown"
        text += f", and {num_hidden - num_same} changed ones" if num_hidden > num_same else ""
        scene.add(SceneBox(f"{side}_rest", (text,), "plaintext", "none", frame=side))


def _drawn_nodes(nodes: Mapping[Node, DiffNode], fills: Mapping[Node, str]) -> set[Node]:
    """Return all nodes, or of more than MANY the first MANY that changed, with their neighbours.

    ``fills`` has the fill of each node; those that are not SAME have changed.
    """
    if len(nodes) <= MANY:
        return set(nodes)
    changed = set([n for n in nodes if fills[n] != SAME][:MANY])
    producers = {e.node for n in changed for e in nodes[n].inputs}
    consumers = {n for n, d in nodes.items() if any(e.node in changed for e in d.inputs)}
    return changed | producers | consumers


def _box(key: str, diff_node: DiffNode, fill: str, frame: str) -> SceneBox:
    """Return the scene's box called ``key``, in ``frame``, for a node; ``fill`` is its colour."""
    node, name = diff_node.node, diff_node.name
    if node.op is None:
        form = "cylinder" if node.params.get("state") else "ellipse"
        return SceneBox(key, (short_name(name),), form, fill, frame=frame)
    if _is_constant(node):
        return SceneBox(key, (short_name(name),), "note", fill, frame=frame)
    lines = call_lines(node, last_part(name))
    return SceneBox(key, lines, "box", fill, frame=frame, tooltip=name)
