"""Pictures of graphs: a fusion plan with its groups, and the changes of a pass.

`plan` and `diff` return a drawing; `render` writes it to a file with the best installed renderer.
"""

from passkit.viz.diff import diff
from passkit.viz.labels import nbytes
from passkit.viz.plan import BOXES, MANY, plan
from passkit.viz.renderers import render
from passkit.viz.styles import CAME, FILL, GONE, LINE, MOVED, SAME

__all__ = [
    "BOXES",
    "CAME",
    "FILL",
    "GONE",
    "LINE",
    "MANY",
    "MOVED",
    "SAME",
    "diff",
    "nbytes",
    "plan",
    "render",
]
