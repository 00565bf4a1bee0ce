"""Lowering of a group with its schedule and scratch plan to a kernel AST."""

from passkit.lowering.arguments import pool_sizes
from passkit.lowering.kernels import lower

__all__ = ["lower", "pool_sizes"]
