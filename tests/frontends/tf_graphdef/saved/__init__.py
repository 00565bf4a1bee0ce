"""SavedModels of TensorFlow, kept with its results; `make` writes them, which needs TensorFlow."""
