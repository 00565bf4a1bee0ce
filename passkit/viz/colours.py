"""Colours of drawings: a hue for each kind of work, darker where more of the time goes."""

from __future__ import annotations

FILL = {
    "elementwise": "#e3f1e1",
    "reduction": "#dfeaf7",
    "gemm": "#fbe9d3",
    "packed": "#ecdff3",
    "phased": "#d9efee",
    "library": "#fbe9d3",
    "own": "#f3efd2",
    "NumPy": "#f6dddd",
    "operator": "#ffffff",
}
"""The pale colour of what runs an operator: a kind of kernel, one that the operator brings along
(own), a library, or NumPy."""
LINE = {
    "elementwise": "#3c7a37",
    "reduction": "#2f5f93",
    "gemm": "#a8640f",
    "packed": "#75419a",
    "phased": "#1f7471",
    "library": "#a8640f",
    "own": "#77691a",
    "NumPy": "#a33a3a",
    "operator": "#555555",
}
FORM = {
    "elementwise": "box",
    "reduction": "invhouse",
    "gemm": "box3d",
    "packed": "octagon",
    "phased": "hexagon",
    "library": "component",
    "own": "box",
    "NumPy": "box",
    "operator": "box",
}
"""The shape of a box, so that colours are not needed to tell kinds apart."""

GONE, CAME, MOVED, SAME = "#f8d4d0", "#d3ecd0", "#fdf0c4", "#ffffff"
INNER = "#6f6f6f"
INK, LIGHT = "#1c1c1c", "#ffffff"


def heat(kind: str, share: float | None) -> tuple[str, str]:
    """The fill of a box and the ink on it. ``share`` is its part of the time, None if unknown.

    >>> heat("elementwise", None), heat("elementwise", 0.0), heat("elementwise", 1.0)
    (('#e3f1e1', '#1c1c1c'), ('#fdfefd', '#1c1c1c'), ('#3c7a37', '#ffffff'))
    """
    if share is None:
        return FILL[kind], INK
    fill = mixed("#ffffff", LINE[kind], 0.01 + 0.99 * min(1.0, max(0.0, share)) ** 0.5)
    return fill, INK if luminance(fill) > 0.32 else LIGHT


def mixed(one: str, another: str, part: float) -> str:
    """A colour between two, ``part`` of the way from the first.

    >>> mixed("#000000", "#ffffff", 0.5)
    '#808080'
    """
    pairs = zip(_channels(one), _channels(another), strict=True)
    return "#" + "".join(f"{round(a + (b - a) * part):02x}" for a, b in pairs)


def luminance(colour: str) -> float:
    """How bright a colour is, from 0 to 1. Source: WCAG 2, relative luminance."""
    linear = [
        c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4
        for c in (x / 255 for x in _channels(colour))
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def _channels(colour: str) -> list[int]:
    return [int(colour[k : k + 2], 16) for k in (1, 3, 5)]
