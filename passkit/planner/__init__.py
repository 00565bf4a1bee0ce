"""Planners: the rules and searches by which the schedule of a group is found."""
