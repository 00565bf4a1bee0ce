"""The block interpreter: kernel ASTs in NumPy, tile by tile, with every access checked.

It runs what the printers print, and finds what a machine may not: accesses outside of buffers,
loads of what nothing stored, and threads that come to one element with no wait between them.
"""

from passkit.runtime.blocks.kernels import BARRIERS, run_blocks

__all__ = ["BARRIERS", "run_blocks"]
