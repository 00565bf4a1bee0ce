"""Running graphs: feeds, the NumPy interpreter, and native programs."""
