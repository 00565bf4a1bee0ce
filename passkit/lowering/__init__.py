"""Lowering: a group, its schedule and its scratch become a kernel AST."""

from passkit.lowering.arguments import pool_sizes
from passkit.lowering.kernels import lower

__all__ = ["lower", "pool_sizes"]
