"""Iteration domains: how operators access elements, and the axes of a kernel."""
