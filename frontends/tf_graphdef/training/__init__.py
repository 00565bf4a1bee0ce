"""Training of TensorFlow 1 models: variables are state of the graph, and train ops its updates."""
