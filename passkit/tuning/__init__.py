"""Tuning: measures the templates of a graph's groups, and lets the planner know."""
