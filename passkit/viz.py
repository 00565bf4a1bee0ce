"""Pictures of graphs: a fusion plan with its groups as clusters, and what a pass changed.

`plan` and `diff` make the drawing, `render` writes it to a file with the first renderer found.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping

import graphviz
from attrs import define, field

from passkit.dtype import DType
from passkit.graph import Graph, freeze
from passkit.group import Group, Kind
from passkit.node import Entry, Node
from passkit.render import render
from passkit.size import Extent, Shape, numel
from passkit.units import bytes_text

__all__ = ["diff", "nbytes", "plan", "render"]

FILL = {
    Kind.ELEMWISE: "#e3f1e1",
    Kind.REDUCTION: "#dfeaf7",
    Kind.GEMM: "#fbe9d3",
    Kind.PACKED: "#ecdff3",
    Kind.LIBRARY: "#e9e9e9",
}
LINE = {
    Kind.ELEMWISE: "#4c8c46",
    Kind.REDUCTION: "#3b6ea5",
    Kind.GEMM: "#c17a1f",
    Kind.PACKED: "#8450a3",
    Kind.LIBRARY: "#777777",
}
GONE, CAME, SAME = "#f8d4d0", "#d3ecd0", "#ffffff"
INNER = "#8a8a8a"
MANY = 400
"""Operators beyond which a group is drawn as one box."""


def nbytes(shape: Shape, dtype: DType) -> str:
    """How much memory a value takes, with its unknown sizes as factors.

    >>> from passkit.dtype import float32
    >>> from passkit.size import Size
    >>> nbytes((32, 512), float32), nbytes((Size.symbol("n"), 512), float32)
    ('64 KiB', '2 KiB·n')
    """
    total: Extent = numel(shape) * dtype.nbytes
    if isinstance(total, int):
        return bytes_text(total)
    if len(total.terms) == 1:
        (atoms, count), *_ = total.terms
        return "·".join([bytes_text(count), *map(str, atoms)])
    return f"{total} B"


def _type(entry: Entry) -> str:
    short = entry.dtype.short if entry.dtype else "?"
    shape = "[?]" if entry.shape is None else f"[{', '.join(map(str, entry.shape))}]"
    size = "" if entry.shape is None or entry.dtype is None else nbytes(entry.shape, entry.dtype)
    return f"  {short}{shape}" + (f"\n  {size}" if size else "")


@define(eq=False)
class _Drawing:
    """A digraph being drawn: ids of what is there already."""

    dot: graphviz.Digraph
    ids: dict[Node, str] = field(factory=dict)
    """Nodes that edges may start from."""

    def add(self, where: graphviz.Digraph, node: Node, label: str, **style: str) -> str:
        key = self.ids.setdefault(node, f"n{len(self.ids)}")
        where.node(key, _quoted(label), tooltip=_quoted(node.where), **style)
        return key

    def edge(self, tail: str, head: str, label: str = "", **style: str) -> None:
        text = graphviz.escape(label).replace("\n", "\\l") + ("\\l" if label else "")
        self.dot.edge(tail, head, text, **style)


def _quoted(text: str) -> str:
    quoted: str = graphviz.nohtml(graphviz.escape(text))
    return quoted


def _digraph(name: str) -> graphviz.Digraph:
    font = {"fontname": "Helvetica"}
    return graphviz.Digraph(
        name,
        graph_attr={**font, "rankdir": "TB", "nodesep": "0.3", "ranksep": "0.4", "fontsize": "11"},
        node_attr={**font, "fontsize": "11", "shape": "box", "style": "rounded,filled",
                   "fillcolor": "white", "color": "#555555", "height": "0.3", "margin": "0.1,0.04"},
        edge_attr={**font, "fontsize": "9", "color": "#333333", "arrowsize": "0.6"},
    )  # fmt: skip


def _small(node: Node) -> str | None:
    """A constant of one element as text; it is written into its users instead of drawn."""
    if node.op is None or node.op.name != "constant":
        return None
    value = node.params["value"]
    return f"{value.item():.6g}" if value.size == 1 and value.dtype.kind == "f" else (
        str(value.item()) if value.size == 1 else None
    )  # fmt: skip


def _label(node: Node, name: str) -> str:
    """The op with what its picture would not show: constants in place, and parameters."""
    assert node.op is not None
    small = [_small(e.node) for e in node.inputs]
    parts = [s or "·" for s in small] if any(small) else []
    parts += [
        f"{k}={_brief(v)}"
        for k, v in node.params.items()
        if v is not None and v is not False and repr(v) != repr(node.op.params.get(k))
    ]
    call = f"{node.op.name}({', '.join(parts)})" if parts else node.op.name
    return call if name.startswith(node.op.name) else f"{_brief(name)}\n{call}"


def _brief(value: object) -> str:
    text = str(value)
    return text if len(text) <= 28 else f"{text[:20]}…{text[-7:]}"


def plan(graph: Graph, detail: bool | None = None) -> graphviz.Digraph:
    """The graph with each group as a cluster, coloured by kind.

    Dark edges go through memory and tell their shape and bytes; grey ones stay in a kernel.
    ``detail`` False draws a group as one box; by default that is done from 400 operators on.
    """
    bodies = {n: n.params["body"] for n in graph.nodes if "body" in n.params}
    if detail is None:
        total = sum(len(b.graph.nodes) for b in bodies.values()) + len(graph.nodes)
        detail = total <= MANY
    drawing = _Drawing(_digraph("plan"))
    sources: dict[Entry, tuple[str, Entry]] = {}
    for node in graph.nodes:
        if _small(node) is not None:
            continue
        if node in bodies and detail:
            _draw_group(drawing, node, graph.names[node], bodies[node], sources)
            continue
        style = _style(node)
        label = _title(node, graph.names[node], bodies.get(node))
        key = drawing.add(drawing.dot, node, label, **style)
        for entry in node.inputs:
            if entry in sources:
                tail, seen = sources[entry]
                drawing.edge(tail, key, _type(seen))
        sources.update({e: (key, e) for e in node.entries})
    _draw_results(drawing, graph, sources)
    return drawing.dot


def _title(node: Node, name: str, body: Group | None) -> str:
    if node.op is None or node.op.name == "constant":
        return _brief(name)
    if body is None:
        return _label(node, name)
    return f"{_brief(name)}\n{body.kind.value}, {len(body.ops)} operators"


def _style(node: Node) -> dict[str, str]:
    if "body" in node.params:
        kind = node.params["body"].kind
        return {"fillcolor": FILL[kind], "color": LINE[kind]}
    if node.op is None:
        return {"shape": "cylinder" if node.params.get("state") else "ellipse", "style": "filled"}
    if node.op.name == "constant":
        return {"shape": "note", "style": "filled"}
    return {"style": "rounded,filled,bold"}


def _draw_group(
    drawing: _Drawing, fused: Node, name: str, body: Group, sources: dict[Entry, tuple[str, Entry]]
) -> None:
    outside = {v.entries[0]: e for v, e in zip(body.inputs, fused.inputs, strict=True)}
    names = body.graph.names
    with drawing.dot.subgraph(name=f"cluster_{len(drawing.ids)}") as cluster:
        cluster.attr(
            label=_quoted(f"{_brief(name)} · {body.kind.value}"),
            style="rounded,filled",
            fillcolor=FILL[body.kind],
            color=LINE[body.kind],
            fontcolor=LINE[body.kind],
            labeljust="l",
        )
        for node in body.graph.nodes:
            if node.op is None or _small(node) is not None:
                continue
            label = _title(node, names[node], None)
            if node.op.name != "constant":
                label = _label(node, body.origin.get(node) or names[node])
            key = drawing.add(cluster, node, label, color=LINE[body.kind])
            for entry in node.inputs:
                source = outside.get(entry)
                if source is None and entry.node in drawing.ids:
                    inner = drawing.ids[entry.node]
                    drawing.edge(inner, key, _type(entry), color=INNER, fontcolor=INNER)
                elif source in sources:
                    tail, seen = sources[source]
                    drawing.edge(tail, key, _type(seen))
    for entry, inner_entry in zip(fused.entries, body.graph.outputs, strict=True):
        inner_entry = outside.get(inner_entry, inner_entry)
        if inner_entry in sources:
            sources[entry] = sources[inner_entry]
        elif inner_entry.node in drawing.ids:
            sources[entry] = (drawing.ids[inner_entry.node], entry)


def _draw_results(
    drawing: _Drawing, graph: Graph, sources: Mapping[Entry, tuple[str, Entry]]
) -> None:
    for k, entry in enumerate(graph.outputs):
        if entry in sources:
            tail, seen = sources[entry]
            head = f"out{k}"
            label = f"output {k}" if len(graph.outputs) > 1 else "output"
            drawing.dot.node(head, label, shape="ellipse", style="filled", peripheries="2")
            drawing.edge(tail, head, _type(seen))
    for variable, value in graph.updates:
        if value in sources:
            drawing.edge(
                sources[value][0], drawing.ids[variable], "update", style="dashed",
                constraint="false",
            )  # fmt: skip


def diff(before: Graph, after: Graph) -> graphviz.Digraph:
    """Two graphs side by side: red is gone, green is new, white is in both.

    A node is in both when all that it depends on is there too, or all that depends on it.
    """
    common = _common(before, after)
    dot = _digraph("diff")
    for side, graph, colour in (("before", before, GONE), ("after", after, CAME)):
        drawing = _Drawing(dot)
        with dot.subgraph(name=f"cluster_{side}") as cluster:
            cluster.attr(label=side, style="rounded", color="#999999")
            for node in graph.nodes:
                if _small(node) is None:
                    label = _title(node, graph.names[node], node.params.get("body"))
                    style = {**_style(node), "fillcolor": SAME if node in common else colour}
                    _add_one(drawing, cluster, side, node, label, style)
            for k, entry in enumerate(graph.outputs):
                cluster.node(f"{side}_out{k}", "output", shape="ellipse", peripheries="2")
                drawing.edge(drawing.ids[entry.node], f"{side}_out{k}", _type(entry))
    return dot


def _add_one(
    drawing: _Drawing,
    where: graphviz.Digraph,
    side: str,
    node: Node,
    label: str,
    style: dict[str, str],
) -> None:
    drawing.ids[node] = f"{side}{len(drawing.ids)}"
    drawing.add(where, node, label, **style)
    for entry in node.inputs:
        if entry.node in drawing.ids:
            drawing.edge(drawing.ids[entry.node], drawing.ids[node], _type(entry))


def _common(before: Graph, after: Graph) -> set[Node]:
    """Nodes of either graph that have a partner in the other, by what feeds or what reads them."""
    found: set[Node] = set()
    for digests in (_upstream, _downstream):
        old, new = digests(before), digests(after)
        counts = Counter(old.values()) & Counter(new.values())
        for side in (old, new):
            left = Counter(counts)
            for node, key in side.items():
                if left[key] > 0:
                    left[key] -= 1
                    found.add(node)
    return found


def _what(node: Node) -> str:
    name = node.op.name if node.op else f"variable {node.name}"
    return f"{name} {freeze(node.params)!r}"


def _digest(*parts: object) -> str:
    return hashlib.sha256(repr(parts).encode()).hexdigest()


def _upstream(graph: Graph) -> dict[Node, str]:
    keys: dict[Node, str] = {}
    for node in graph.nodes:
        keys[node] = _digest(_what(node), [(keys[e.node], e.index) for e in node.inputs])
    return keys


def _downstream(graph: Graph) -> dict[Node, str]:
    readers: dict[Node, list[str]] = {n: [] for n in graph.nodes}
    for k, entry in enumerate(graph.outputs):
        readers[entry.node].append(f"output {k} {entry.index}")
    keys: dict[Node, str] = {}
    for node in reversed(graph.nodes):
        keys[node] = _digest(_what(node), sorted(readers[node]))
        for k, entry in enumerate(node.inputs):
            readers[entry.node].append(f"{keys[node]} {k} {entry.index}")
    return keys
