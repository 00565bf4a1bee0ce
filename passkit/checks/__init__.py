"""Checks of kernels that do not read the planners' own data: races, hazards, missing waits."""
