"""Programs: compile a graph to an executable, save it, load it and trace functions."""
