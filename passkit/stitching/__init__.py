"""Kernels of several loop nests that exchange values through scratch memory."""
