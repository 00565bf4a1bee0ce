"""Pictures of graphs: a fusion plan with its groups, and what a pass changed.

`plan` and `diff` make the drawing, `render` writes it to a file with the first renderer found.
"""

from passkit.viz.colours import CAME, FILL, GONE, LINE, MOVED, SAME
from passkit.viz.diff import diff
from passkit.viz.labels import nbytes
from passkit.viz.plan import BOXES, MANY, plan
from passkit.viz.renderers import render

__all__ = ["BOXES", "CAME", "FILL", "GONE", "LINE", "MANY", "MOVED", "SAME"]
__all__ += ["diff", "nbytes", "plan", "render"]
