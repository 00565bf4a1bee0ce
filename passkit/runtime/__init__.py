"""Running graphs: feeds, the NumPy interpreter, native programs and device runtimes."""
