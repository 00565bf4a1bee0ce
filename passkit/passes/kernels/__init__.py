"""Kernels of groups: what CodeGen makes of a schedule."""
