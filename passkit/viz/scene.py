"""Scenes: what a drawing shows, as boxes, arrows and frames; printed as DOT or laid out simply."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import graphviz
from attrs import define, field, frozen

from passkit.values.lazy import Lazy
from passkit.viz.colours import FILL, INK, LINE

notebook: Any = Lazy("passkit.reporting.notebook")
"""What notebooks show stands above, and is asked for only by them."""

LOOSE = ("update", "carried")
"""Kinds of arrows whose head need not stand below their tail."""
FONT = "Helvetica"
"""One that all renderers know the widths of letters in: for a list of fonts some take those of
Times, and text is wider than its box. In SVG any font without serifs may stand in for it."""


@frozen
class Box:
    """One thing to look at. ``form`` is a shape of Graphviz; ``frame`` the key of what it is in.

    ``members`` are the names of the graph's nodes that it stands for.
    """

    key: str
    lines: tuple[str, ...]
    form: str = "box"
    fill: str = FILL["operator"]
    line: str = LINE["operator"]
    ink: str = INK
    tooltip: str = ""
    frame: str | None = None
    members: tuple[str, ...] = ()
    double: bool = False
    """With a double border: a result."""


@frozen
class Arrow:
    """A value on its way.

    ``kind`` is "memory", "inner" (it stays in a kernel), "update" (of a state) or "carried" (to the
    next iteration of what is repeated).
    """

    tail: str
    head: str
    lines: tuple[str, ...] = ()
    kind: str = "memory"
    width: float = 1.0


@frozen
class Frame:
    """A labelled border round boxes: a group with its operators, a scope, or what is repeated."""

    key: str
    label: str
    parent: str | None = None
    fill: str = "none"
    line: str = "#999999"
    tooltip: str = ""


class Picture(graphviz.Digraph):  # type: ignore[misc]
    """A drawing in DOT that knows the scene it shows."""

    scene: Scene

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        """What a notebook shows."""
        return notebook.picture(self)  # type: ignore[no-any-return]

    def simple(self, note: str) -> str:
        """The same as SVG without a renderer; ``note`` stands above it."""
        from passkit.viz.simple import simple_svg  # draws scenes, and few need it

        return simple_svg(self.scene, note)


@define(eq=False)
class Scene:
    """What a drawing shows. ``legend`` says what its signs mean, a line each."""

    name: str
    boxes: dict[str, Box] = field(factory=dict)
    arrows: list[Arrow] = field(factory=list)
    frames: dict[str, Frame] = field(factory=dict)
    legend: list[Box] = field(factory=list)

    def add(self, box: Box) -> str:
        """Put a box into the scene; its key."""
        self.boxes[box.key] = box
        return box.key

    def picture(self) -> Picture:
        """The scene in DOT."""
        dot = _digraph(self.name)
        dot.scene = self
        inside: dict[str | None, list[Box]] = {}
        frames: dict[str | None, list[Frame]] = {}
        for box in self.boxes.values():
            inside.setdefault(box.frame, []).append(box)
        for frame in self.frames.values():
            frames.setdefault(frame.parent, []).append(frame)
        _fill(dot, None, inside, frames)
        for arrow in self.arrows:
            _draw_arrow(dot, arrow)
        for above, below in self._ranks_of_titles():
            dot.edge(above, below, style="invis")
        if self.legend:
            with dot.subgraph(name="cluster_legend") as cluster:
                cluster.attr(
                    label="what is what",
                    style="rounded",
                    color="#bbbbbb",
                    fontcolor="#555555",
                    fontsize="9",
                )
                for box in self.legend:
                    _draw_box(cluster, box, fontsize="9")
        return dot

    def _ranks_of_titles(self) -> list[tuple[str, str]]:
        """Return pairs of nodes of which the first must stand above the second.

        The title of a frame is a node, since renderers lead arrows round nodes but through labels
        of clusters. It stands above all that is in the frame, and below what feeds the frame; but
        not where that depends on the frame itself: frames of scopes may depend on each other.
        """
        around: dict[str, list[str]] = {}
        for key, parent in (
            *((_title(f.key), f.parent) for f in self.frames.values()),
            *((b.key, b.frame) for b in self.boxes.values()),
        ):
            around[key] = list(self._frames_from(parent))
        above = [(_title(frames[0]), key) for key, frames in around.items() if frames]
        below: dict[str, list[str]] = {}
        for tail, head in above:
            below.setdefault(tail, []).append(head)
        feeds: dict[tuple[str, str], None] = {}
        for arrow in self.arrows:
            if arrow.kind in LOOSE or not {arrow.tail, arrow.head} <= around.keys():
                continue
            below.setdefault(arrow.tail, []).append(arrow.head)
            entered = [f for f in around[arrow.head] if f not in around[arrow.tail]]
            if entered and self.boxes[arrow.tail].form != "note":
                feeds[arrow.tail, _title(entered[-1])] = None
        for tail, title in feeds:
            if not _leads(below, title, tail):
                below.setdefault(tail, []).append(title)
                above.append((tail, title))
        return above

    def _frames_from(self, key: str | None) -> Iterator[str]:
        """Yield a frame and those around it, from the inside out."""
        while key is not None:
            yield key
            key = self.frames[key].parent


def _digraph(name: str) -> Picture:
    font = {"fontname": FONT}
    return Picture(
        name,
        graph_attr={**font, "rankdir": "TB", "nodesep": "0.3", "ranksep": "0.4", "fontsize": "11"},
        node_attr={
            **font,
            "fontsize": "11",
            "shape": "box",
            "style": "filled",
            "fillcolor": "white",
            "color": "#555555",
            "height": "0.3",
            "margin": "0.2,0.05",
        },
        edge_attr={**font, "fontsize": "9", "color": "#333333", "arrowsize": "0.6"},
    )


def _fill(
    where: graphviz.Digraph,
    frame: str | None,
    boxes: dict[str | None, list[Box]],
    frames: dict[str | None, list[Frame]],
) -> None:
    """Draw what is in a frame. Frames are as deep as names have parts, which `folded` limits."""
    for box in boxes.get(frame, ()):
        _draw_box(where, box)
    for inner in frames.get(frame, ()):
        with where.subgraph(name=f"cluster_{inner.key}") as cluster:
            cluster.attr(
                style="rounded" if inner.fill == "none" else "rounded,filled",
                fillcolor=inner.fill,
                color=inner.line,
                tooltip=quoted(inner.tooltip or inner.label),
            )
            cluster.node(
                _title(inner.key),
                quoted(inner.label).replace("\n", "\\l") + "\\l",
                shape="plaintext",
                style="",
                fontcolor=inner.line,
                margin="0.12,0.02",
                tooltip=quoted(inner.tooltip or inner.label),
                **{"class": "title"},
            )
            _fill(cluster, inner.key, boxes, frames)


def _leads(below: Mapping[str, Sequence[str]], start: str, end: str) -> bool:
    """Return whether a way leads from one node down to another."""
    seen, todo = {start}, [start]
    while todo:
        for key in below.get(todo.pop(), ()):
            if key == end:
                return True
            if key not in seen:
                seen.add(key)
                todo.append(key)
    return False


def _title(frame: str) -> str:
    """The key of the node that is a frame's title."""
    return f"title_{frame}"


def _draw_box(where: graphviz.Digraph, box: Box, **more: str) -> None:
    where.node(
        box.key,
        quoted("\n".join(box.lines)),
        tooltip=quoted(box.tooltip or " ".join(box.lines)),
        shape=box.form,
        style="rounded,filled" if box.form == "box" else "filled",
        fillcolor=box.fill,
        color=box.line,
        fontcolor=box.ink,
        **({"peripheries": "2"} if box.double else {}),
        **more,
    )


def _draw_arrow(dot: graphviz.Digraph, arrow: Arrow) -> None:
    text = "".join(f"  {graphviz.escape(printable(line))}\\l" for line in arrow.lines)
    style = {
        "memory": {"penwidth": f"{arrow.width:.3g}"},
        "inner": {"color": "#8a8a8a", "fontcolor": "#6f6f6f"},
        "update": {"style": "dashed", "constraint": "false"},
        "carried": {"style": "dashed", "constraint": "false"},
    }[arrow.kind]
    dot.edge(arrow.tail, arrow.head, text, **style)


def quoted(text: str) -> str:
    """Text as a label that shows it letter by letter."""
    found: str = graphviz.nohtml(graphviz.escape(printable(text)))
    return found


def printable(text: str) -> str:
    r"""Text that every picture and page can hold: what cannot be printed is replaced.

    >>> printable("a\tb") == "a\N{REPLACEMENT CHARACTER}b"
    True
    """
    return "".join(c if c.isprintable() or c == "\n" else "\ufffd" for c in text)
