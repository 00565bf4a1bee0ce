"""Models that are trained: variables are state of the graph, and train ops are its updates."""
