"""The ways in: each package here turns programs written elsewhere into graphs."""
