"""Tilings: which elements of a value each tile has, and what follows for its operands."""
