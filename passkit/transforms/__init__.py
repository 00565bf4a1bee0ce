"""Lowering: from a group and its schedule to loop IR, and the passes over it."""
