"""Control flow: ``tf.cond``, ``tf.case``, ``tf.while_loop`` and functions over the first axis."""

from passkit.frontends.tinyflow.control_flow.branches import case, cond
from passkit.frontends.tinyflow.control_flow.sequences import foldl, map_fn, scan
from passkit.frontends.tinyflow.control_flow.while_loops import while_loop

__all__ = ["case", "cond", "foldl", "map_fn", "scan", "while_loop"]
