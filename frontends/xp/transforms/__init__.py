"""Transformations of functions of arrays: gradients, compilation and vectorization."""
