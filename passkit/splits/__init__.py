"""Splits: how the elements of values are shared out over blocks, and what follows for operands."""
