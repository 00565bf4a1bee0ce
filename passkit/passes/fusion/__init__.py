"""Fusion: which operators share a kernel. Provides the fused graph, its groups, and the reasons."""

from passkit.passes.fusion.run import fusion

__all__ = ["fusion"]
