"""Dtypes, symbolic sizes, units, and small Python utilities that every layer uses."""
