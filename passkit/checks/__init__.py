"""Independent checks of kernel ASTs: races, bounds and missing barriers."""
