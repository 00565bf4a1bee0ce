"""Scratch memory of a tile: offsets of its buffers, from live ranges."""
