"""Planners: the rules by which a target's schedules are found."""
