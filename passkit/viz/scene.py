"""Scenes: the boxes, arrows and frames of a drawing, before anything is laid out.

`plan` and `diff` build a scene. `passkit.viz.picture` prints it as DOT, and
`passkit.viz.fallback_layout` lays it out without Graphviz.
"""

from __future__ import annotations

from collections.abc import Iterator

from attrs import define, field, frozen

from passkit.viz.styles import FILL, INK, LINE

UNRANKED = ("update", "carried", "time back")
"""Kinds of arrows that may point upwards: their head need not be below their tail."""


@frozen
class SceneBox:
    """A box of a drawing, such as an operator, an input or a collapsed scope.

    Attributes:
        key: A name that is unique in the scene.
        lines: The lines of its text.
        form: The name of a Graphviz shape.
        fill: The colour inside.
        line: The colour of the border.
        ink: The colour of the text.
        tooltip: A text shown on hovering; by default the lines.
        frame: The key of the frame that it is in, if any.
        members: The names of the graph's nodes that it stands for.
        double: Whether it has a double border, as the outputs of a graph have.
        dashed: Whether its border is dashed, as that of operations that have not run.
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
    dashed: bool = False


@frozen
class SceneArrow:
    """An arrow from the producer of a value to a consumer.

    Attributes:
        tail: The key of the producer's box.
        head: The key of the consumer's box.
        lines: The lines of its label.
        kind: "memory" for a value in memory, "inner" for one that stays inside a kernel, "update"
            for the new value of a state, or "carried" for a value that goes to the next iteration
            of a repeated sequence. Between runs of a stream: "pending" for a value that is not
            computed yet, "time" from a run to the next, "time back" if that is
            above, and "order", which is not drawn, from a box
            to one that must be below it.
        width: The width of the line in points.
    """

    tail: str
    head: str
    lines: tuple[str, ...] = ()
    kind: str = "memory"
    width: float = 1.0


@frozen
class SceneFrame:
    """A labelled border around boxes: a group with its operators, a scope, or a repetition.

    Attributes:
        key: A name that is unique in the scene.
        label: The title; it may have several lines.
        parent: The key of the frame around it, if any.
        fill: The colour inside, "none" for no colour.
        line: The colour of the border and the title.
        tooltip: A text shown on hovering; by default the label.
    """

    key: str
    label: str
    parent: str | None = None
    fill: str = "none"
    line: str = "#999999"
    tooltip: str = ""


@define(eq=False)
class Scene:
    """The contents of a drawing.

    Attributes:
        name: The name of the DOT graph, such as "plan".
        boxes: The boxes by key, in topological order.
        arrows: The arrows between boxes.
        frames: The frames by key, outer frames first.
        legend: Boxes that explain colours and shapes, one entry each.
    """

    name: str
    boxes: dict[str, SceneBox] = field(factory=dict)
    arrows: list[SceneArrow] = field(factory=list)
    frames: dict[str, SceneFrame] = field(factory=dict)
    legend: list[SceneBox] = field(factory=list)

    def add(self, box: SceneBox) -> str:
        """Add a box and return its key; a box of the same key is replaced."""
        self.boxes[box.key] = box
        return box.key

    def enclosing_frames(self, key: str | None) -> Iterator[str]:
        """Yield the key of a frame and of the frames around it, innermost first; nothing for None.

        Raises: KeyError where there is no frame of that key.
        """
        while key is not None:
            yield key
            key = self.frames[key].parent


def printable(text: str) -> str:
    r"""Replace characters that pictures and pages cannot show, except line ends.

    >>> printable("a\tb") == "a\N{REPLACEMENT CHARACTER}b"
    True
    """
    return "".join(c if c.isprintable() or c == "\n" else "\ufffd" for c in text)
