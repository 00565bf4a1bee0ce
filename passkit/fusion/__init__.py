"""Fusion: which operators share a kernel, as a strategy decides and legality allows."""
