"""Iteration spaces: what operators read, a kernel's axes, and where values live in them."""
