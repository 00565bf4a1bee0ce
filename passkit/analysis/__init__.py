"""Analyses of a group: iteration domains, accesses, tile maps, loop nests and live ranges."""
