"""Pictures inside a page: an SVG reduced to shapes and text, whose boxes can be chosen."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from passkit.viz.renderers import rendered
from passkit.viz.scene import printable

if TYPE_CHECKING:
    from passkit.viz.scene import Picture

SVG = "http://www.w3.org/2000/svg"
SHAPES = frozenset({"ellipse", "g", "path", "polygon", "polyline", "rect", "svg", "text", "title"})
PLAIN = frozenset(
    {
        "class",
        "cx",
        "cy",
        "d",
        "fill",
        "font-size",
        "height",
        "paint-order",
        "points",
        "r",
        "rx",
        "ry",
        "stroke",
        "stroke-dasharray",
        "stroke-width",
        "text-anchor",
        "transform",
        "viewBox",
        "width",
        "x",
        "y",
    }
)
"""What a renderer may say of a shape; links, scripts, styles and names of its own it may not."""


def embedded(picture: Picture, choices: Mapping[str, str], seconds: float) -> tuple[str, str]:
    """A picture as SVG for a page, and why it is laid out simply ("" if it is not).

    ``choices`` are the boxes and frames to choose, by key, with what a reader is told of them.
    """
    with tempfile.TemporaryDirectory(prefix="passkit-") as folder:
        path, why = rendered(picture, Path(folder, "plan.svg"), seconds)
        root = ElementTree.fromstring(path.read_text(encoding="utf-8"))
    clean = _cleaned(root, choices)
    clean.set("class", "plan-svg")
    clean.set("role", "group")
    clean.set("aria-label", "the plan")
    return ElementTree.tostring(clean, encoding="unicode"), why


def _cleaned(root: Element, choices: Mapping[str, str]) -> Element:
    """The shapes and texts of a drawing, without anything that does something."""
    made = Element("svg", {"xmlns": SVG})
    todo = [(root, made)]
    while todo:
        old, new = todo.pop()
        for name, value in old.attrib.items():
            if name in PLAIN:
                new.set(name, value)
        if old.text and old.tag.rpartition("}")[2] in ("text", "title"):
            new.text = old.text
        _make_choice(old, new, choices)
        for child in old:
            tag = str(child.tag).rpartition("}")[2]
            tag = "g" if tag == "a" else tag
            if tag in SHAPES and tag != "title":
                inner = Element(tag)
                new.append(inner)
                todo.append((child, inner))
    return made


def _make_choice(old: Element, new: Element, choices: Mapping[str, str]) -> None:
    """Let a box or frame be chosen by pointer and keyboard, if it is one of the choices."""
    title = old.find(f"{{{SVG}}}title")
    key = (title.text or "") if title is not None else ""
    key = key.removeprefix("cluster_")
    if old.get("class") in ("node", "cluster") and key in choices:
        new.set("data-box", key)
        new.set("tabindex", "0")
        new.set("role", "button")
        new.set("aria-label", printable(choices[key]))
        tip = Element("title")
        tip.text = printable(choices[key])
        new.append(tip)
