"""Pictures inside a report page: an SVG reduced to shapes and text, with selectable boxes."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from passkit.viz.picture import Picture
from passkit.viz.renderers import render_with_note
from passkit.viz.scene import printable

SVG = "http://www.w3.org/2000/svg"
"""The XML namespace of SVG."""
SHAPES = frozenset({"ellipse", "g", "path", "polygon", "polyline", "rect", "svg", "text", "title"})
"""The elements that a page takes over from a renderer."""
ATTRIBUTES = frozenset(
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
"""The attributes that a page takes over. Links, scripts, styles and ids are left out."""


def svg_for_page(
    picture: Picture, selectable: Mapping[str, str], timeout: float
) -> tuple[str, str]:
    """Return a picture as SVG for a page, and why its layout is simple, "" if it is not.

    Only allowed shapes, attributes and texts are taken over.

    Args:
        picture: The picture.
        selectable: The keys of the boxes and frames that a reader can select, with their labels.
        timeout: Seconds that the renderer may take.

    Raises: OSError where the temporary file cannot be written, ArgumentError where ``timeout`` is
    no number.
    """
    with tempfile.TemporaryDirectory(prefix="passkit-") as folder:
        path, note = render_with_note(picture, Path(folder, "plan.svg"), timeout)
        root = ElementTree.fromstring(path.read_text(encoding="utf-8"))
    svg = _sanitized(root, selectable)
    svg.set("class", "plan-svg")
    svg.set("role", "group")
    svg.set("aria-label", "the plan")
    return ElementTree.tostring(svg, encoding="unicode"), note


def _sanitized(root: Element, selectable: Mapping[str, str]) -> Element:
    """Return a copy of the drawing ``root`` that has only allowed shapes, attributes and texts.

    ``selectable`` has the labels of the boxes and frames that a reader can select, by their keys.
    """
    result = Element("svg", {"xmlns": SVG})
    pending = [(root, result)]
    while pending:
        old, new = pending.pop()
        for name, value in old.attrib.items():
            if name in ATTRIBUTES:
                new.set(name, value)
        if old.text and old.tag.rpartition("}")[2] in ("text", "title"):
            new.text = old.text
        _make_selectable(old, new, selectable)
        for child in old:
            tag = str(child.tag).rpartition("}")[2]
            tag = "g" if tag == "a" else tag
            if tag in SHAPES and tag != "title":
                inner = Element(tag)
                new.append(inner)
                pending.append((child, inner))
    return result


def _make_selectable(old: Element, new: Element, selectable: Mapping[str, str]) -> None:
    """Make ``new`` selectable by pointer and keyboard if ``old`` is a selectable box or frame.

    Args:
        old: An element of the renderer's drawing.
        new: Its copy in the page, which is changed in place.
        selectable: The keys of selectable boxes and frames, with their labels.
    """
    title = old.find(f"{{{SVG}}}title")
    key = (title.text or "") if title is not None else ""
    key = key.removeprefix("cluster_")
    if old.get("class") in ("node", "cluster") and key in selectable:
        label = printable(selectable[key])
        new.set("data-box", key)
        new.set("tabindex", "0")
        new.set("role", "button")
        new.set("aria-label", label)
        tooltip = Element("title")
        tooltip.text = label
        new.append(tooltip)
