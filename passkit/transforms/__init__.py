"""Passes over loop IR, from a schedule to the statements that are printed."""
