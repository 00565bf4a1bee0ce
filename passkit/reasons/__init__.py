"""Reasons: why edges are fused or not, and why a group has its template."""
