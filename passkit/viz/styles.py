"""Styles of drawings: colours, shapes and labels of the kinds of work, shared with reports.

Each kind has its own hue. With a profile, a box is darker the more of the time it takes.
"""

from __future__ import annotations

from attrs import frozen

FONT = "Helvetica"
"""A font whose letter widths all renderers know. Given a list of fonts, some use the widths of
Times, and text is wider than its box. In SVG any sans-serif font may replace it."""


@frozen
class KindStyle:
    """How one kind of work looks.

    Attributes:
        fill: The pale colour of a box without a profile, and of a group's frame.
        line: The colour of the border; with a profile, the fill of the box that takes most time.
        form: The Graphviz shape of a box, so that kinds differ without colours, too.
        label: The kind in a legend.
    """

    fill: str
    line: str
    form: str
    label: str


KINDS = {
    "elementwise": KindStyle(
        fill="#e3f1e1",
        line="#3c7a37",
        form="box",
        label="elementwise kernel",
    ),
    "reduction": KindStyle(
        fill="#dfeaf7",
        line="#2f5f93",
        form="invhouse",
        label="reduction kernel",
    ),
    "gemm": KindStyle(
        fill="#fbe9d3",
        line="#a8640f",
        form="box3d",
        label="gemm kernel",
    ),
    "packed": KindStyle(
        fill="#ecdff3",
        line="#75419a",
        form="octagon",
        label="packed kernel",
    ),
    "phased": KindStyle(
        fill="#d9efee",
        line="#1f7471",
        form="hexagon",
        label="phased kernel",
    ),
    "library": KindStyle(
        fill="#fbe9d3",
        line="#a8640f",
        form="component",
        label="library call",
    ),
    "own": KindStyle(
        fill="#f3efd2",
        line="#77691a",
        form="box",
        label="own kernel",
    ),
    "NumPy": KindStyle(
        fill="#f6dddd",
        line="#a33a3a",
        form="box",
        label="NumPy call",
    ),
    "operator": KindStyle(
        fill="#ffffff",
        line="#555555",
        form="box",
        label="operator",
    ),
}
"""The style of each kind: the kinds of kernels, a kernel that an operator brings along ("own"), a
library call, a call of NumPy, and an operator of a graph without a plan."""

FILL = {kind: style.fill for kind, style in KINDS.items()}
"""The pale colour of each kind."""
LINE = {kind: style.line for kind, style in KINDS.items()}
"""The border colour of each kind."""

GONE, CAME, MOVED, SAME = "#f8d4d0", "#d3ecd0", "#fdf0c4", "#ffffff"
"""Fills in a diff: removed, new, in another group than before, unchanged."""
INNER = "#6f6f6f"
"""The ink of texts about values that stay inside a kernel."""
PENDING, TIME = "#8a5a00", "#4a5a8a"
"""The colours of what is pending in a stream, and of the arrow from a run to the next."""
INK, LIGHT = "#1c1c1c", "#ffffff"
"""The ink on light and on dark fills."""


def heat(kind: str, share: float | None) -> tuple[str, str]:
    """Return two colours: the fill of a box, and the ink on it.

    Args:
        kind: A key of KINDS; another raises a KeyError.
        share: The box's part of the time, limited to 0 to 1; None, for the pale fill, if unknown.

    >>> heat("elementwise", None), heat("elementwise", 0.0), heat("elementwise", 1.0)
    (('#e3f1e1', '#1c1c1c'), ('#fdfefd', '#1c1c1c'), ('#3c7a37', '#ffffff'))
    """
    if share is None:
        return FILL[kind], INK
    fill = mixed("#ffffff", LINE[kind], 0.01 + 0.99 * min(1.0, max(0.0, share)) ** 0.5)
    return fill, INK if luminance(fill) > 0.32 else LIGHT


def mixed(first: str, second: str, part: float) -> str:
    """Return a colour between two: a ``part`` of 0 gives ``first``, 1 gives ``second``.

    >>> mixed("#000000", "#ffffff", 0.5)
    '#808080'
    """
    pairs = zip(_channels(first), _channels(second), strict=True)
    return "#" + "".join(f"{round(a + (b - a) * part):02x}" for a, b in pairs)


def luminance(colour: str) -> float:
    """Return the relative luminance of a colour, from 0 to 1. Source: WCAG 2."""
    linear = [
        c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4
        for c in (x / 255 for x in _channels(colour))
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def _channels(colour: str) -> list[int]:
    """Return red, green and blue, from 0 to 255, of a colour like "#1c1c1c"."""
    return [int(colour[k : k + 2], 16) for k in (1, 3, 5)]
