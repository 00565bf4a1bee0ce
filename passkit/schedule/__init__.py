"""Schedules of loop nests: how the steps of their axes are distributed over threads and vectors."""
