"""Scratch memory of a tile: its arrays, and which of them lie in the same bytes."""
