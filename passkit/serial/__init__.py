"""Graphs as text and as JSON, written and parsed."""
