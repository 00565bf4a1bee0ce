"""Operators and graphs: the registry, nodes, calls, rewriting and gradients."""
