"""Stitched kernels: groups of several iteration spaces, cut into parts that meet in scratch."""
