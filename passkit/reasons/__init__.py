"""Reasons: why edges are fused or not, and why a group runs as it does."""
