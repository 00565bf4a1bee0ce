"""Programs: from a graph to an executable, on disk and off it."""
