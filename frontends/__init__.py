"""Frontends: each package turns programs written for another framework into passkit graphs."""
