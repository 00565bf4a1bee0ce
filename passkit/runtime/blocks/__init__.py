"""The block interpreter: kernel ASTs run in NumPy, tile by tile, with every access checked.

It runs the same AST that the printers print, and finds errors that a machine may not show: accesses
outside a buffer, loads of elements that nothing stored, and races between threads.
"""

from passkit.runtime.blocks.kernels import BARRIERS, run_blocks

__all__ = ["BARRIERS", "run_blocks"]
