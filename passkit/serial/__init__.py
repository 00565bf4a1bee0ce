"""Graphs written and read: a text for people, JSON to store."""
